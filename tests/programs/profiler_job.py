# SPDX-License-Identifier: Apache-2.0
"""Programs of PyTorch on the CPU under torch.profiler.  Usage: profiler_job.py CASE LOGDIR [RANK FILE]

Profiles STEPS steps into LOGDIR and prints one JSON object: {"case", "wall_ms": of the steps, "lost_ms": of that, what the
case wastes, measured by the program}.  Cases:
    loader    a DataLoader without workers, whose dataset sleeps
    rank      two ranks, of which the second computes more; what is wasted is the mean of both.  RANK and FILE, by which they
              meet, are of the second process
    tiny      Python starts thousands of ops on a few numbers
    item      Python reads the numbers of a result one by one
    healthy   nothing of the kind
"""
import json
import pathlib
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

STEPS, SAMPLES, SIDE = 12, 16, 1024


class Data(torch.utils.data.Dataset):
    def __init__(self, sleep_s):
        self.sleep_s = sleep_s

    def __len__(self):
        return SAMPLES * (STEPS + 3)

    def __getitem__(self, _):
        if self.sleep_s:
            time.sleep(self.sleep_s)
        return torch.ones(SIDE)


class Program:
    def __init__(self, case, rank):
        self.case, self.rank, self.lost_s = case, rank, 0.0
        self.model = torch.nn.Sequential(torch.nn.Linear(SIDE, SIDE), torch.nn.ReLU(), torch.nn.Linear(SIDE, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)

    def waste(self):
        x = torch.ones(4)
        if self.case == "tiny":
            for _ in range(2000):
                x = x * 1.0
        elif self.case == "item":
            self.total = sum(v.item() for v in torch.ones(2000))
        elif self.case == "rank" and self.rank:
            x, until = torch.ones(256, 256), time.perf_counter() + 0.1
            while time.perf_counter() < until:
                x = (x @ x).clamp(0, 1)

    def step(self, x):
        begin = time.perf_counter()
        self.waste()
        self.lost_s += time.perf_counter() - begin
        self.model(x.repeat(8, 1)).sum().backward()
        for p in self.model.parameters() if self.case == "rank" else ():
            dist.all_reduce(p.grad)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def run(self, logdir):
        batches = iter(torch.utils.data.DataLoader(Data(0.003 if self.case == "loader" else 0), batch_size=SAMPLES))
        with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=STEPS, repeat=1),
                     on_trace_ready=tensorboard_trace_handler(logdir, use_gzip=True), record_shapes=True) as prof:
            for i in range(STEPS + 2):
                if i == 2:
                    first, self.lost_s = time.perf_counter(), 0.0
                begin = time.perf_counter()
                x = next(batches)
                self.lost_s += time.perf_counter() - begin
                self.step(x)
                end = time.perf_counter()
                prof.step()
        return end - first


def main():
    if len(sys.argv) not in (3, 5) or sys.argv[1] not in ("loader", "rank", "tiny", "item", "healthy"):
        sys.exit(__doc__)
    case, logdir = sys.argv[1:3]
    rank, file = (int(sys.argv[3]), sys.argv[4]) if len(sys.argv) == 5 else (0, str(pathlib.Path(logdir).absolute()) + ".meeting")
    torch.set_num_threads(1)
    if case == "rank":
        other = subprocess.Popen([sys.executable, *sys.argv, "1", file], stdout=subprocess.PIPE) if rank == 0 else None
        dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    program = Program(case, rank)
    wall_s = program.run(logdir)
    measured = {"case": case, "wall_ms": 1e3 * wall_s, "lost_ms": 1e3 * program.lost_s}
    if case == "rank" and rank == 0:
        measured["lost_ms"] = json.loads(other.communicate()[0])["lost_ms"] / 2
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
