#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the reports with iree-profile's (PyPI), live, on bundles made by generate.py or given.

usage: live.py XPLANECTL IREE_PROFILE COUNT [SEED]
       live.py XPLANECTL IREE_PROFILE changed COUNT [SEED]    those of change.py
       live.py XPLANECTL IREE_PROFILE BUNDLE...

IREE_PROFILE is the program of the package iree-base-runtime.  Where it accepts a bundle, rows must
be equal; where it refuses one, ours must give valid rows or refuse it for the same reason.
"""
import os
import subprocess
import sys
import tempfile

import change
import compare
import generate
import traces

# More arguments for some bundles, by chance of the bundle's number.
VARIANTS = {
    "explain": [["--filter", "*matmul*"], ["--id", "3"]],
    "dispatch": [["--filter", "*0*"], ["--id", "2"]],
    "queue": [["--filter", "d*"], ["--id", "1"]],
    "command": [["--filter", "*conv*"], ["--id", "5"]],
    "executable": [["--filter", "?_dispatch*"], ["--id", "4"]],
    "memory": [["--filter", "queue_*"], ["--id", "2"]],
    "counter": [["--filter", "f*"], ["--id", "2"]],
}


def judge(program, report, bundle, flags):
    """(rows or None, stderr) of iree-profile, whose flags have no blanks before their values."""
    command, form = compare.command_of(report)
    joined = []
    for flag in flags:
        if flag.startswith("--"):
            joined.append(flag)
        else:
            joined[-1] += "=" + flag
    done = subprocess.run([program, f"--format={form}"] + joined + [command, bundle],
                          capture_output=True, timeout=120, check=False)
    return (done.stdout if done.returncode == 0 else None), done.stderr


def check(xplanectl, program, bundle, report, flags):
    data, refused = judge(program, report, bundle, flags)
    ours, wrong = compare.ask(xplanectl, bundle, report, flags)
    if wrong:
        return wrong
    if data is not None:
        return compare.against(ours, data)
    compare.rows(ours.stdout)
    if ours.returncode == 1:
        said = ours.stderr.decode().split(": ", 2)[-1].strip()
        if said not in refused.decode() and "failed to map" not in refused.decode():
            return f"refused for {said}, not for {refused.decode()}"
    return None


def check_trace(xplanectl, program, bundle, folder):
    """Our trace against that of IREE's renderer, which reads what iree-profile exports."""
    data, _ = judge(program, "ireeperf", bundle, [])
    if data is None:
        return None
    rows, trace = os.path.join(folder, "rows.jsonl"), os.path.join(folder, "trace")
    with open(rows, "wb") as f:
        f.write(data)
    done = subprocess.run([program + "-render", "--format=perfetto", rows, "-o", trace],
                          capture_output=True, timeout=120, check=False)
    if done.returncode:  # it is not up to times below 0, or names that are no UTF-8
        return None if b"Error" in done.stderr or b"error" in done.stderr else "not rendered"
    with open(trace, "rb") as f:
        return traces.check(xplanectl, bundle, f.read())


def bundles(arguments, folder):
    maker = change if arguments[0] == "changed" else generate
    arguments = arguments[1:] if maker is change else arguments
    if arguments[0].isdigit():
        first = int(arguments[1]) if len(arguments) > 1 else 0
        for seed in range(first, first + int(arguments[0])):
            path = os.path.join(folder, f"gen-{seed}.ireeprof")
            with open(path, "wb") as f:
                f.write(maker.bundle(seed))
            yield seed, path
            os.unlink(path)
    else:
        yield from enumerate(arguments)


def main():
    xplanectl, program, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed, path in bundles(arguments, folder):
            wrong = check_trace(xplanectl, program, path, folder)
            passed += wrong is None
            failed += wrong is not None
            if wrong:
                print(f"FAILED {os.path.basename(path)} trace: {wrong}")
            jobs = list(compare.REPORTS.items())
            jobs += [(name, v[seed % len(v)]) for name, v in VARIANTS.items()]
            for report, flags in jobs:
                wrong = check(xplanectl, program, path, report, flags)
                passed += wrong is None
                failed += wrong is not None
                if wrong:
                    print(f"FAILED {os.path.basename(path)} {report} {flags}: {wrong}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
