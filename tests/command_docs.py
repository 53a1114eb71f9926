#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands that the documents run on the profiles of tests/data succeed, and print the lines that the documents show.

    command_docs.py XPLANECTL

A block `sh` has the commands, and a block `text` behind it lines of the last one's output, in order: "…" at the end of a line
stands for the rest of it, and a line "..." for any lines. docs/iree.md has a test of its own (tests/iree/docs.py).
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHOWN = re.compile(r"```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?", re.S)


def run(command, place):
    words = shlex.split(command)
    words = [str(place / w) if before == "-o" else w for before, w in zip(["", *words], words)]
    done = subprocess.run([pathlib.Path(sys.argv[1]).resolve(), *words[1:]], cwd=ROOT, capture_output=True, timeout=60, check=False, text=True)
    if done.returncode or not (done.stdout or "-o" in words):
        sys.exit(f"{command}: status {done.returncode}\n{done.stderr}")
    return done.stdout.splitlines()


def first_missing(shown, printed):
    """The first line of SHOWN that does not follow in PRINTED; None: all do."""
    rest = iter(printed)
    for line in shown:
        if line.strip() != "..." and not any(p.startswith(line[:-1]) if line.endswith("…") else p == line for p in rest):
            return line
    return None


def main():
    n = 0
    with tempfile.TemporaryDirectory() as place:
        for page in sorted((ROOT / "docs").glob("*.md")):
            if page.name == "iree.md":
                continue
            for commands, lines in SHOWN.findall(page.read_text(encoding="utf-8")):
                printed = []
                for command in commands.splitlines():
                    if command.startswith("xplanectl ") and "tests/data/" in command:
                        printed = run(command, pathlib.Path(place))
                        n += 1
                missing = first_missing(lines.splitlines(), printed) if printed else None
                if missing is not None:
                    sys.exit(f"{page.name}: {commands}does not print: {missing}")
    if n < 10:
        sys.exit(f"only {n} commands were found")


if __name__ == "__main__":
    main()
