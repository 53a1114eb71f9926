# SPDX-License-Identifier: Apache-2.0
"""Loops of several processes that wait for each other.  Usage: hosts_job.py LOGDIR RANK COUNT PORT CASE... | --list

Each process is a host.  Profiles each case into LOGDIR/CASE, after the same loop without the cause, and prints a line of JSON:
{"case", "steps", "wall_ms": of the loop until its last result is ready, "without_ms": of the one without the cause,
"cause": the finding that must come first, null for a healthy program}."""
import contextlib
import json
import os
import random
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

STEPS, SECONDS, SIDE = 16, 0.04, 192
CASES = {}


def case(cause=None, level=0):
    def add(f):
        CASES[f.__name__] = (f, cause, level)
        return f
    return add


class Program:
    """Every process works on its part, and all add up what they have."""

    def __init__(self, rank, count):
        self.rank, self.count, self.random = rank, count, random.Random(rank)
        mesh = Mesh(jax.devices(), "d")
        self.rows = NamedSharding(mesh, P("d"))
        self.x = self.shared(1 << 12)
        self.total = jax.jit(lambda x: x.sum(0), out_shardings=NamedSharding(mesh, P()))
        self.y = jnp.full((SIDE, SIDE), 0.01)
        self.inner = jax.jit(lambda y, n: jax.lax.fori_loop(0, n, lambda _, a: jnp.tanh(a @ y) * 0.5, y))

    def shared(self, columns):
        return jax.make_array_from_callback((self.count, columns), self.rows, lambda _: jnp.ones((1, columns)))

    def step(self, times=10):
        self.inner(self.y, times).block_until_ready()
        return self.total(self.x)

    def late(self, how=time.sleep, seconds=SECONDS):
        how(seconds)


@case()
def even(p, _slow, _i):
    return p.step()


@case()
def even_ahead(p, _slow, _i):
    """No process waits for its own steps."""
    p.inner(p.y, 10)
    return p.total(p.x)


@case("stragglers")
def last_sleeps(p, slow, _i):
    if slow and p.rank == p.count - 1:
        time.sleep(SECONDS)
    return p.step()


@case("stragglers")
def turns(p, slow, i):
    """Another process is late in each step."""
    if slow and p.rank == i % p.count:
        time.sleep(SECONDS)
    return p.step()


@case("stragglers")
def one_loads(p, slow, _i):
    if slow and p.rank == 0:
        with jax.profiler.TraceAnnotation("load_batch"):
            time.sleep(SECONDS)
    return p.step()


@case("input_wait")
def loads_in_turns(p, slow, i):
    """Another process loads in each step; the others wait for it."""
    if slow and p.rank == i % p.count:
        with jax.profiler.TraceAnnotation("load_batch"):
            time.sleep(SECONDS)
    return p.step()


@case("input_wait")
def loads_at_random(p, slow, _i):
    if slow:
        with jax.profiler.TraceAnnotation("load_batch"):
            time.sleep(SECONDS * p.random.random())
    return p.step()


@case("input_wait")
def loads_unevenly(p, slow, _i):
    """All load, the last process longest."""
    if slow:
        with jax.profiler.TraceAnnotation("load_batch"):
            time.sleep(SECONDS * (p.rank + 1) / p.count)
    return p.step()


@case("stragglers")
def more_work(p, slow, _i):
    return p.step(60 if slow and p.rank == 1 else 10)


@case("input_wait")
def all_load(p, slow, _i):
    if slow:
        with jax.profiler.TraceAnnotation("load_batch"):
            time.sleep(SECONDS)
    return p.step()


@case("stragglers")
def one_launches(p, slow, _i):
    """One process gives its device small programs, one by one."""
    y = p.y[0, 0]
    for _ in range(1200 if slow and p.rank == 1 else 0):
        y = p.small(y)
    jax.block_until_ready(y)
    return p.step()


@case("launch_bound")
def all_launch(p, slow, _i):
    y = p.y[0, 0]
    for _ in range(1200 if slow else 0):
        y = p.small(y)
    jax.block_until_ready(y)
    return p.step()


@case("host_copies")
def all_copy(p, slow, _i):
    if slow:
        jax.block_until_ready(jax.device_put(p.batch.T))
    return p.step()


@case("exposed_collectives")
def great_collective(p, slow, _i):
    value = p.step()
    if slow:
        value.block_until_ready()
        value = p.total(p.great)
    return value


def run(p, one, slow, mark):
    begin = time.perf_counter()
    for i in range(STEPS):
        with jax.profiler.StepTraceAnnotation("train", step_num=i) if mark else contextlib.nullcontext():
            value = one(p, slow, i)
            if one is not even_ahead:
                value.block_until_ready()
    value.block_until_ready()
    return 1e3 * (time.perf_counter() - begin)


def profile(p, name, logdir):
    one, cause, level = CASES[name]
    for i in range(2):
        one(p, True, i).block_until_ready()
    o = jax.profiler.ProfileOptions()
    o.python_tracer_level = level
    without = run(p, one, False, False)
    jax.profiler.start_trace(os.path.join(logdir, name), profiler_options=o)
    p.total(p.x).block_until_ready()  # all have begun
    wall = run(p, one, True, True)
    p.total(p.x).block_until_ready()
    jax.profiler.stop_trace()
    print(json.dumps({"case": name, "steps": STEPS, "wall_ms": wall, "without_ms": without, "cause": cause}), flush=True)


def main():
    if sys.argv[1:] == ["--list"]:
        return print(*CASES)
    if len(sys.argv) < 6 or not set(sys.argv[5:]) <= set(CASES):
        sys.exit(__doc__)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    jax.config.update("jax_platforms", "cpu")
    rank, count, port = map(int, sys.argv[2:5])
    jax.distributed.initialize(f"127.0.0.1:{port}", count, rank)
    p = Program(rank, count)
    p.small, p.batch, p.great = jax.jit(lambda v: v + 1), np.ones((3000, 3000), np.float32), p.shared(1 << 21)
    for name in sys.argv[5:]:
        profile(p, name, sys.argv[1])
    os._exit(0)


if __name__ == "__main__":
    main()
