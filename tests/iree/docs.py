#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/iree.md: they succeed, and print the lines that the page shows.

usage: docs.py XPLANECTL
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    page = (ROOT / "docs" / "iree.md").read_text(encoding="utf-8")
    shown = re.compile(r"```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?", re.S)
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    passed = failed = 0
    run = set()
    for commands, lines in shown.findall(page):
        for command in commands.splitlines():
            words = command.split()
            assert words[0] == "xplanectl", command
            run.add(words[2])
            done = subprocess.run([sys.argv[1]] + words[1:], cwd=ROOT, capture_output=True,
                                  timeout=60, check=False)
            out = done.stdout.decode()
            silent = "-o" in words  # the answer is in a file
            wrong = None if done.returncode == 0 and (out or silent) else f"status {done.returncode}"
            for line in lines.splitlines():
                if not any(o.startswith(line.rstrip("…")) for o in out.splitlines()):
                    wrong = wrong or f"does not print: {line}"
            passed += wrong is None
            failed += wrong is not None
            if wrong:
                print(f"FAILED {command}: {wrong}\n{done.stderr.decode()}")
    if named - run:
        failed += 1
        print(f"FAILED no command shows: {', '.join(sorted(named - run))}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
