#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the stages that cover what changed, one a line.

usage: changed_stages.py [--since COMMIT] STAGE...

Changed are the files that differ from COMMIT (default: where this branch left its upstream, else HEAD), and untracked
ones. STAGEs are those to choose from (A+B counts as two). stages.txt says which folders a stage covers, and
check_layers.sh which folders include a changed one.
"""
import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def run(*command):
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def output(*command):
    """What the command prints; ends the program if it fails."""
    done = run(*command)
    if done.returncode != 0:
        sys.exit(f"changed_stages: {command[0]}: {done.stderr.strip()}")
    return done.stdout


def changed_files(since):
    if not since:
        since = run("git", "merge-base", "HEAD", "@{upstream}").stdout.strip() or "HEAD"
    return (output("git", "diff", "--name-only", "--no-renames", since) +
            output("git", "ls-files", "--others", "--exclude-standard")).split("\n")


def covered():
    """{stage: folders} of stages.txt."""
    rows = (line.split() for line in (HERE / "stages.txt").read_text().splitlines() if line[:1] not in ("", "#"))
    return {name: folders for name, _, *folders in rows}


def overlap(a, b):
    """Whether one folder contains the other."""
    return a == b or a.startswith(b + "/") or b.startswith(a + "/")


def choose(files, stages, table, users):
    """`users` maps folders to those that include them."""
    if any(f in ("meson.build", "meson_options.txt") or f.startswith(("tests/stages", "tests/results")) for f in files):
        return stages
    folders = {str(pathlib.PurePath(f).parent) for f in files if f and (not f.endswith(".md") or f.startswith("docs/"))}
    folders.discard(".")
    folders |= set(users(sorted(folders))) if folders else set()
    return [s for s in stages if "." in table[s] or any(overlap(c, f) for c in table[s] for f in folders)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("stages", nargs="+", metavar="STAGE")
    args = parser.parse_args()
    stages = [part for stage in args.stages for part in stage.split("+")]
    table = covered()
    chosen = choose(changed_files(args.since), stages, table,
                    lambda folders: output(str(HERE / "check_layers.sh"), "--users", *folders).split())
    print("setup", *(s for s in chosen if s != "setup"), sep="\n")


if __name__ == "__main__":
    main()
