# SPDX-License-Identifier: Apache-2.0
"""Profiles two programs of JAX alternately, of which the second one has 30% more work.

usage: drift_job.py LOGDIR CAPTURES

Captures are LOGDIR/plugins/profile/a00, b00, a01, ... of STEPS steps each.  Prints one JSON object: the mean step of
each program in milliseconds, measured by the loop.
"""
import json
import pathlib
import shutil
import sys
import tempfile
import time

import jax
import jax.numpy as jnp

STEPS = 12
WORK = {"a": 40, "b": 52}


def program(times):
    def run(x):
        return jax.lax.fori_loop(0, times, lambda _, y: jnp.tanh(y @ x) * 0.5, x)
    return jax.jit(run)


def capture(step, x, place):
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as scratch:
        with jax.profiler.trace(scratch, profiler_options=options):
            begin = time.perf_counter()
            for i in range(STEPS):
                with jax.profiler.StepTraceAnnotation("train", step_num=i):
                    step(x).block_until_ready()
            wall = time.perf_counter() - begin
        place.mkdir(parents=True)
        for file in pathlib.Path(scratch).glob("plugins/profile/*/*.xplane.pb"):
            shutil.copy(file, place / "host.xplane.pb")
    return wall / STEPS


def main():
    logdir, captures = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    x = jnp.full((192, 192), 0.01)
    steps = {name: program(times) for name, times in WORK.items()}
    seconds = {name: [] for name in WORK}
    for step in steps.values():
        step(x).block_until_ready()
    for i in range(captures // 2):
        for name, step in steps.items():
            seconds[name].append(capture(step, x, logdir / "plugins" / "profile" / f"{name}{i:02}"))
    print(json.dumps({name: 1000 * sum(all_of) / len(all_of) for name, all_of in seconds.items()}))


if __name__ == "__main__":
    main()
