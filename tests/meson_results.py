#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints "passed|failed|skipped STAGE: SUITE/TEST" for each test in a meson testlog.json, and why it was skipped.

usage: meson_results.py STAGE TESTLOG.json
"""
import json
import sys

WORDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def reason(test):
    """The last line that a skipped test printed."""
    lines = [line for name in ("stdout", "stderr") for line in test.get(name, "").splitlines() if line.strip()]
    return f" ({lines[-1].strip()[:200]})" if lines and test["result"] == "SKIP" else ""


def main():
    stage, path = sys.argv[1:]
    with open(path, encoding="utf-8") as log:
        tests = [json.loads(line) for line in log if line.strip()]
    for test in tests:
        print(WORDS.get(test["result"], "failed"), f"{stage}: {test['name']}{reason(test)}")
    sys.exit(0 if tests else 1)


if __name__ == "__main__":
    main()
