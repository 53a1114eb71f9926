#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/iree.md: they succeed, and print the lines that the page shows.

The page has every report that the program has, with lines of it, and every option of the command:
those of reports in a command that is run, those of captures in its text.

usage: docs.py XPLANECTL
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def ask(*words):
    return subprocess.run([sys.argv[1], *words], cwd=ROOT, capture_output=True, timeout=60, check=False)


def reports():
    """As the program lists them."""
    listed = ask("iree").stdout.decode() + ask("iree", "no-such-report").stderr.decode()
    found = set(re.findall(r"^  ([a-z]+) {2,}\S", listed, re.M))
    assert len(found) > 10, listed
    return found


def options():
    """Those of reports, and those of captures."""
    text = ask("help", "iree").stdout.decode()
    text = text[text.index("Options of iree:"):text.index("\nExamples:")]
    parts = re.split(r"^  (?=-)", text, flags=re.M)[1:]
    names = {re.match(r"(?:-\w, )?(--[\w-]+)", part)[1]: "capture:" in part for part in parts}
    assert len(names) > 15 and "--filter" in names, names
    return ({n for n, capture in names.items() if not capture},
            {n for n, capture in names.items() if capture})


def check_all_shown(page, run, words):
    """What the page leaves out, as lines."""
    plain, captures = options()
    general = {"--session", "--quiet"}  # of captures as well, and in the text
    left = {"table of reports": reports() - set(re.findall(r"^\| `(\w+)` \|", page, re.M)),
            "report with its lines": reports() - run,
            "option in a command": plain - general - words,
            "option in the text": {o for o in captures | general if o not in page}}
    return [f"{what}: no {', '.join(sorted(names))}" for what, names in left.items() if names]


def main():
    page = (ROOT / "docs" / "iree.md").read_text(encoding="utf-8")
    shown = re.compile(r"```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?", re.S)
    passed = failed = 0
    run, used = set(), set()
    for commands, lines in shown.findall(page):
        for command in commands.splitlines():
            words = command.split()
            assert words[0] == "xplanectl", command
            used.update(words)
            if lines and words[1] == "iree":
                run.add(words[2])
            done = ask(*words[1:])
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
    for line in check_all_shown(page, run, used):
        failed += 1
        print(f"FAILED {line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
