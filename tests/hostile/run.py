#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on real daemons, and what must still hold.  Usage: run.py --build DIR [--quick | --short] [--list] [NAME...]

DIR is a build directory with server/xplaned and cli/xplanectl.  NAMEs choose tests (parts of "file: test").  --short is
the short form of each test; --quick leaves out those that are marked `slow` (over 3 s) as well.  Without them the whole
suite runs, which takes hours; README.md has the parameters.  The last line is
"N passed, N failed, N skipped".
"""

import argparse
import importlib
import pathlib
import signal
import sys
import time
import traceback

from harness import Failed, Run, Skip

LIMIT = 120  # seconds of a test that sets none (function attribute `limit`; `whole_limit` without --short)


class OverTime(Failed):
    pass


def on_alarm(unused_signal, unused_frame):
    raise OverTime("the test took longer than its limit")


def collect():
    """(name, function) of all tests, in order of files and of lines."""
    tests = []
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        own = [f for n, f in vars(module).items() if n.startswith("test_") and callable(f) and f.__module__ == path.stem]
        tests += [(f"{path.stem[5:]}: {f.__name__[5:]}", f) for f in sorted(own, key=lambda f: f.__code__.co_firstlineno)]
    return tests


def run_one(test, build, short):
    """("passed" | "failed" | "skipped", text)."""
    limit = getattr(test, "limit", LIMIT)
    if short and getattr(test, "whole_only", False):
        return "skipped", "part of the whole suite only"
    if not short:
        limit = getattr(test, "whole_limit", limit)
    run = Run(build, short)
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(limit)
    passed = False
    try:
        try:
            test(run)
            passed = True
        finally:
            signal.alarm(200)  # for the end of the daemons
            run.end(check_all=passed)
            signal.alarm(0)
        return "passed", ""
    except Skip as e:
        return "skipped", str(e)
    except Exception as e:  # a test may fail in any way
        where = traceback.extract_tb(e.__traceback__)
        lines = [f"{pathlib.Path(f.filename).name}:{f.lineno}" for f in where if "hostile" in f.filename][1:]
        logs = "".join(f"\n    | {line[:300]}" for d in run.daemons if d.last_lines for line in d.last_lines)
        return "failed", f"{type(e).__name__}: {e} ({' < '.join(reversed(lines))}){logs}"
    finally:
        signal.alarm(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--short", action="store_true", help="3 minutes")
    parser.add_argument("--quick", action="store_true", help="the form of every change: 1 minute")
    parser.add_argument("--list", action="store_true", help="print the tests' names")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, test in collect():
        if arguments.names and not any(n in name for n in arguments.names):
            continue
        if arguments.quick and getattr(test, "slow", False):
            continue
        if arguments.list:
            print(name)
            continue
        began = time.monotonic()
        outcome, text = run_one(test, arguments.build, arguments.short or arguments.quick)
        counts[outcome] += 1
        print(f"{outcome:7} {name}  [{time.monotonic() - began:.1f} s]{'  ' + text if text else ''}", flush=True)
    if arguments.list:
        return 0
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
