#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `compare --fail-if` is wrong on real captures: 40 of two programs of JAX, interleaved in time.

usage: drift.py BUILD PYTHON

BUILD has the programs of xplaned, PYTHON has JAX.  Groups of three to five captures are compared, of one program with
itself and of the programs with each other, of which the second one has 30% more work.  At most 5% of the equal pairs
may raise an alarm, at most 5% of the others be called equal; what cannot be told is counted apart.  Captures that
another load of the machine disturbs are made anew, TRIES times.  The last line is "N passed, N failed, N skipped".
"""
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
CAPTURES, PAIRS, TRIES = 40, 30, 3
METRICS = ("step_time", "median_step_time")
EQUAL, MET, CANNOT_TELL = 0, 4, 5


@contextlib.contextmanager
def daemon_of(build, place):
    """A daemon on the captures; yields its address."""
    address = f"unix:{place}/daemon"
    process = subprocess.Popen([build / "server" / "xplaned", "--logdir", place / "logdir", "--listen", address,
                                "--http", "off", "--state-dir", place / "state"], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while subprocess.run([build / "cli" / "xplanectl", "--server", address, "sessions"], capture_output=True,
                             timeout=60, check=False).returncode:
            assert time.monotonic() < end, "the daemon did not start"
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def verdict(build, address, metric, a, b):
    asked = [build / "cli" / "xplanectl", "--server", address, "compare", ",".join(a), ",".join(b), "--json",
             "--fail-if", metric + ">5%"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (EQUAL, MET, CANNOT_TELL), done.stderr
    return done.returncode


def count(build, address, metric, names, rng):
    """By whether programs are equal, and by verdict: how many pairs."""
    counts = {kind: {EQUAL: 0, MET: 0, CANNOT_TELL: 0} for kind in ("equal", "different")}
    for n in (3, 4, 5):
        for i in range(PAIRS):
            one = rng.sample(names["ab"[i % 2]], 2 * n)
            counts["equal"][verdict(build, address, metric, one[:n], one[n:])] += 1
            counts["different"][verdict(build, address, metric, rng.sample(names["a"], n), rng.sample(names["b"], n))] += 1
    return counts


def experiment(build, python, place, seed):
    job = subprocess.run([python, HERE / "drift_job.py", place / "logdir", str(CAPTURES)], capture_output=True, text=True,
                         timeout=900, check=False)
    assert job.returncode == 0, job.stderr[-2000:]
    print("mean step, ms:", json.loads(job.stdout.splitlines()[-1]), flush=True)
    names = {side: [f"{side}{i:02}" for i in range(CAPTURES // 2)] for side in "ab"}
    with daemon_of(build, place) as address:
        counts = {metric: count(build, address, metric, names, random.Random(seed)) for metric in METRICS}
    for metric, kinds in counts.items():
        for kind, of in kinds.items():
            print(f"{metric}, {kind}: {of[EQUAL]} called equal, {of[MET]} alarms, {of[CANNOT_TELL]} cannot be told",
                  flush=True)
    return counts


def holds(build, python):
    for seed in range(TRIES):
        with tempfile.TemporaryDirectory() as place:
            counts = experiment(build, python, pathlib.Path(place), seed)
        most = 3 * PAIRS / 20
        if all(of["equal"][MET] <= most and of["different"][EQUAL] <= most for of in counts.values()):
            return True
    return False


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        passed = holds(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2])
    except Exception:
        traceback.print_exc(file=sys.stdout)
        passed = False
    print(f"{int(passed)} passed, {int(not passed)} failed, 0 skipped")
    sys.exit(not passed)


if __name__ == "__main__":
    main()
