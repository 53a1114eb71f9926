#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random profiles of model servers: requests, batches, transfers, tensors, of several hosts and models.

    serving.py --build BUILD [--seed N --count N] [--case I] [--out DIR]

Each is asked for inference_profile, sorted by a random column, and for overview_page, whose fifth table has the latencies.  A case
is determined by seed and index.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile

from judge import Judge
from ours import Ours
from protos import pb
from xprof_worker import XProf
from xspace import U, Ref, Plane

MS = 10 ** 9
BATCHER, GENERIC = 8, 5
RUNS = ["BatchingSessionRun", "BatchingSessionRun", "SessionRun", "RunGraph", "TfrtModelRun", "ServingModelRun", "handle", "ModelServerRequest_a"]
SCHEDULES = ["ScheduleWithSplit", "ScheduleWithoutSplit", "ScheduleWithEagerSplit", "ASBSQueue::Schedule"]
PADDINGS = ["ConcatInputTensors", "OrbaxServing::ConcatInputBuffers", "MergeInputTensors", "BrainSessionRun"]
EXECUTES = ["TPUPartitionedCallOp-ExecuteLocal", "TPUPartitionedCallOp-ExecuteRemote", "TPUPartitionedCallOp-InitializeVarOnTPU", "tpu::System::Execute"]
TRANSFERS = ["ReadHbm", "TransferD2HRequest", "WriteHbm", "TransferH2DRequest", "TransferPreprocessedH2DRequest"]
TENSORS = ["Linearize", "Delinearize", "TransferBufferFromDevice-FastPath"]
COLUMNS = ["Latency", "Request delay for batching", "Request size", "Host preprocess", "Host batch formation", "Host runtime", "Data transfer H2D",
           "Data transfer D2H", "Device compute", "Host postprocess", "Idle time"]
BATCH_COLUMNS = ["Latency", "Batching delay", "Padding amount", "Batch size after padding", "Batching efficiency"]


class Line:
    """Events by line; times are picoseconds, and no two of a kind last equally long."""

    def __init__(self, plane, name, number, r):
        self.plane, self.r = plane, r
        self.line = plane.p.lines.add(id=number, name=name, timestamp_ns=r.choice([0, 0, 1000]))

    def add(self, name, begin, duration, md=None, key=None, **stats):
        e = self.line.events.add(metadata_id=self.plane.event(name, stats=md, key=key), offset_ps=int(begin), duration_ps=int(duration))
        self.plane.fill(e.stats, stats)


class Server:
    """One host."""

    def __init__(self, r, number):
        self.r, self.space = r, pb.XSpace(hostnames=[f"host{number}"])
        self.host = Plane(self.space, "/host:CPU", 1, r)
        self.requests, self.batches, self.other = (Line(self.host, n, i, r) for i, n in enumerate(("requests", "batches", "other")))
        self.device, self.modules, self.ids = None, None, 1
        if r.random() < 0.6:
            self.device = Plane(self.space, "/device:TPU:0", 10, r)
            self.modules = Line(self.device, "XLA Modules", 2, r)
        self.start = (1 + number * 1000) * MS
        self.models = r.choice([[], [], ["a"], ["b:1", "a", "c:x"], ["m:1", "m:2", 7, ""]])
        self.run = r.choice(RUNS)
        self.batching = self.run == "BatchingSessionRun" or r.random() < 0.3
        self.odd = r.random() < 0.3
        # Where batches say of which model a request is, XProf takes one of several in hash order: they all say the same.
        self.told = self.run in ("BatchingSessionRun", "handle", "ModelServerRequest_a")
        if self.told:
            self.models = self.models[:1]

    def number(self):
        self.ids += 1
        return self.ids

    def some(self, chance):
        return self.r.random() < chance

    def duration(self, ms):
        return self.r.randint(1, int(ms * MS))

    def model(self, chance=0.8):
        return {"model_id": self.r.choice(self.models)} if self.models and self.some(chance) else {}

    def root(self, i):
        if self.run == "handle":
            return {"_r": -1}
        return {"_r": 1, "step_num": i} if self.some(0.9) else {}

    def work(self, line, t, room):
        """What a group does on the host and on the device, within `room` milliseconds from t on."""
        r, at = self.r, lambda: t + r.randint(0, int(room * MS))
        if self.some(0.7):
            for _ in range(r.randint(1, 2)):
                line.add(r.choice(EXECUTES), at(), 1000)
        for _ in range(r.choice([0, 0, 1, 3])):
            line.add(r.choice(TRANSFERS), at(), self.duration(1))
        for _ in range(r.choice([0, 0, 1])):
            context, way = self.number(), r.choice(["To", "From"])
            line.add(f"tpu::System::Transfer{way}Device=>IssueEvent", at(), 1000, _ct=GENERIC, _c=context)
            line.add(f"tpu::System::Transfer{way}Device=>IssueEvent=>Done", at(), self.duration(1), _ct=GENERIC, _c=context)
        if self.some(0.4):
            line.add("CompleteCallbacks", at(), 1000)
        for _ in range(r.choice([0, 0, 1, 2])):
            stats = {"shape": r.choice(["[2,3]", Ref("[4]")]), "layout": r.choice(["{1,0}", "{0}"])}
            if self.odd and self.some(0.2):
                stats.pop(r.choice(list(stats)))
            line.add(r.choice(TENSORS), at(), self.duration(1), **stats)
        if self.device and self.some(0.8):
            self.launch(line, t, room)

    def launch(self, line, t, room):
        for _ in range(self.r.randint(1, 3)):
            run, program = self.number(), self.r.choice([3, 17, U(2 ** 63), -5])
            begin = t + self.r.randint(0, int(room * MS))
            line.add(self.r.choice(["DoEnqueueProgram", "DoEnqueueProgram", "DoEnqueueContinuationProgram"]), begin, 1000,
                     run_id=U(run), queue_id=U(0), device_ordinal=U(0))
            name = self.r.choice([f"jit_f({abs(program)})", "jit_f", "jit_f(x)"])
            where = self.r.choice(["event", "metadata", "none"])
            self.modules.add(name, begin + self.duration(2), self.duration(3), md={"program_id": program} if where == "metadata" else None,
                             key=(name, program, where), run_id=U(run), queue_id=U(0), **({"program_id": program} if where == "event" else {}))

    def request(self, i, t, batches):
        length = self.duration(8) + MS
        self.requests.add(self.run, t, length, **self.root(i), **self.model())
        for b in batches:
            size = {"batching_input_task_size": self.r.randint(1, 9)} if self.some(0.9) else {}
            self.requests.add(self.r.choice(SCHEDULES), t + self.r.randint(0, length), 1000, **size, _pt=BATCHER, _p=b)
        if not batches or self.some(0.2):
            self.work(self.requests, t, length / MS * 0.9)
        # What another request produced is taken, and carried nowhere.  Not beside batches: of several groups that schedule some XProf
        # takes one in hash order.
        if not self.batching and not self.told and self.some(0.3):
            self.requests.add("take", t + length // 2, 1000, _ct=GENERIC, _c=self.r.randint(900, 905))
        if not self.batching and not self.told and self.some(0.3):
            self.requests.add("give", t + length // 2, 1000, _pt=GENERIC, _p=self.r.randint(900, 905))

    def batch(self, number, t):
        r, name = self.r, self.r.choice(["ProcessBatch", "ProcessBatch", "OrbaxServing::ProcessBatch"])
        length = self.duration(10) + 2 * MS
        self.batches.add(name, t, length, _r=2, _ct=BATCHER, _c=number)
        stats = {"padding_amount": r.randint(0, 3), "batch_size_after_padding": r.choice([4, 8, 16, 0] if self.odd else [4, 8, 16])}
        if self.odd and self.some(0.2):
            stats.pop(r.choice(list(stats)))
        self.batches.add(r.choice(PADDINGS), t + MS // 2, 1000, **stats)
        if self.told or self.some(0.7):
            self.batches.add("SessionRun" if self.told or self.some(0.7) else "TfrtModelRun", t + MS, length - MS - 1000, **self.model(2 if self.told else 0.8))
        self.work(self.batches, t + MS, (length - MS) / MS * 0.8)

    def fill(self):
        n, t, waiting = self.r.choice([0, 1, 3, 7, 12, 70]), self.start, []
        for i in range(n):
            batches = [self.number() for _ in range(self.r.choice([1, 1, 2]))] if self.batching and self.some(0.7) else []
            if batches and waiting and self.some(0.6):
                batches[0] = waiting[-1]
            self.request(i, t, batches)
            waiting += [b for b in batches if b not in waiting]
            t += self.duration(3) + 10 * MS
            if waiting and (self.some(0.5) or i == n - 1):
                for b in waiting:
                    self.batch(b, t)
                    t += 14 * MS
                waiting = []
        self.other.add("noise", self.start, MS)
        if self.models and self.some(0.4):
            self.counters()
        return self.space

    def counters(self):
        plane = Plane(self.space, "/host:tfstreamz", 20, self.r)
        line = Line(plane, "", 1, self.r)
        for _ in range(self.r.choice([1, 2, 2, 2])):
            names = ("num_batch_threads", "batch_timeout_micros", "max_batch_size", "max_enqueued_batches")
            stats = {f"/tensorflow/serving/batching/{n}{{model_name={m}}}": self.r.randint(1, 99) for n in names for m in ("a", "b", "m")}
            stats["/tensorflow/serving/batching/allowed_batch_sizes{op_name=x, model_name=m}"] = "4,8"
            line.add("counters", 1000, 0, **stats)


def make_case(seed, index):
    r = random.Random(f"serving/{seed}/{index}")
    return [Server(r, i).fill() for i in range(r.choice([1, 1, 1, 2, 3]))], r


def write(folder, spaces):
    paths = []
    for i, s in enumerate(spaces):
        paths.append(os.path.join(folder, f"host{i}.xplane.pb"))
        with open(paths[-1], "wb") as f:
            f.write(s.SerializeToString())
    return paths


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build")
    p.add_argument("--seed", default="1")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--case", type=int)
    p.add_argument("--out", default="")
    a = p.parse_args()
    counts, rows, folder = {}, 0, tempfile.mkdtemp()
    try:
        with XProf(scratch=folder) as xprof:
            judge = Judge(xprof, Ours(a.build, folder), scratch=folder, retries=2)
            for i in range(a.count) if a.case is None else [a.case]:
                spaces, r = make_case(a.seed, i)
                paths = write(folder, spaces)
                columns = {"request_column": r.choice(COLUMNS), "batch_column": r.choice(BATCH_COLUMNS)}
                for tool, options in (("inference_profile", columns), ("overview_page", {})):
                    v = judge.ask(tool, paths, options)
                    counts[v.kind, v.name] = counts.get((v.kind, v.name), 0) + 1
                    rows += (v.answer or b"").count(b'"c":')
                    if v.kind in ("equal", "excluded"):
                        continue
                    print(f"{a.seed}/{i} {tool} {options}: {v.kind} {v.lines[:6]}")
                    if a.out:
                        shutil.copytree(folder, os.path.join(a.out, f"serving-{a.seed}-{i}"), dirs_exist_ok=True)
    finally:
        shutil.rmtree(folder)
    bad = sum(n for (kind, _), n in counts.items() if kind not in ("equal", "excluded"))
    print(f"serving: {counts}, {rows} rows")
    sys.exit(1 if bad or not rows else 0)


if __name__ == "__main__":
    main()
