# SPDX-License-Identifier: Apache-2.0
"""Programs of PyTorch/XLA on the CPU.  Usage: torch_job.py CASE LOGDIR

Profiles STEPS steps into LOGDIR and prints one JSON object: {"case", "wall_ms": of the steps, "lost_ms": of that, what the
case wastes, measured by the program}.  Cases:
    loader        a loader that sleeps, in a Trace, on the thread of the steps
    recompile     each step has a shape that was never seen
    healthy       nothing of the kind
"""
import json
import os
import sys
import time

os.environ["PJRT_DEVICE"] = "CPU"
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.debug.profiler as xp  # noqa: E402

STEPS, SIDE = 12, 384


def multiplied(times):
    weights = torch.full((SIDE, SIDE), 0.01, device=torch_xla.device())

    def run(x):
        for _ in range(times):
            x = torch.tanh(x @ weights)
        return x
    return run, weights


def loader(lost, times=30):
    run, x = multiplied(times)

    def one(_):
        begin = time.perf_counter()
        with xp.Trace("load_batch"):
            time.sleep(0.06)
        lost[0] += time.perf_counter() - begin
        run(x).sum().item()  # waits for the device
    return one


def recompile(lost):
    def one(i):
        begin = time.perf_counter()
        x = torch.ones((64 + max(i, 0), 64), device=torch_xla.device())
        torch.sin(x @ x.T).sum().item()
        lost[0] += time.perf_counter() - begin
    return one


def healthy(_lost):
    run, x = multiplied(60)

    return lambda _: run(x).sum().item()


CASES = {f.__name__: f for f in (loader, recompile, healthy)}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in CASES:
        sys.exit(__doc__)
    case, logdir = sys.argv[1:]
    lost = [0.0]
    one = CASES[case](lost)

    def step(i):
        with xp.StepTrace("train", step_num=i):  # also of warm steps: its name is part of the program
            one(i)
    for i in range(-3, 0):
        step(i)
    lost[0] = 0.0
    server = xp.start_server(0)  # noqa: F841
    xp.start_trace(logdir)
    begin = time.perf_counter()
    for i in range(STEPS):
        step(i)
    wall = time.perf_counter() - begin
    xp.stop_trace()
    print(json.dumps({"case": case, "wall_ms": 1e3 * wall, "lost_ms": 1e3 * lost[0]}))


if __name__ == "__main__":
    main()
