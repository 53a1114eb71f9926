#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints "passed|failed|skipped STAGE: SUITE/TEST" for each test in a meson testlog.json.

usage: meson_results.py STAGE TESTLOG.json
"""
import json
import sys

WORDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def main():
    stage, path = sys.argv[1:]
    with open(path, encoding="utf-8") as log:
        tests = [json.loads(line) for line in log if line.strip()]
    for test in tests:
        print(WORDS.get(test["result"], "failed"), f"{stage}: {test['name']}")
    sys.exit(0 if tests else 1)


if __name__ == "__main__":
    main()
