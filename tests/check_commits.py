#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that commits say what they change, and why.

usage: check_commits.py [ROOT] [--since COMMIT]

A subject has at most 72 characters; an empty line and a body follow, whose lines have at most 100
columns (what has no blank may be longer).  Merges and commits until COMMIT are excepted.  Where git
does not know it (an archive, a shallow clone) nothing is checked: exit status 77, skipped.
"""
import argparse
import os
import re
import subprocess
import sys

SINCE = "8fd24f60a1fda199249596b0de1f508c93b6f8e7"
SUBJECT_LIMIT = 72
COLUMN_LIMIT = 100
TRAILER = re.compile(r"[A-Z][\w-]+: \S")


def git(root, *args):
    return subprocess.run(["git", "-C", root, *args], check=False, capture_output=True, text=True)


def problems(message):
    """What is wrong with the message of a commit."""
    subject, *rest = message.rstrip("\n").split("\n")
    if len(subject) > SUBJECT_LIMIT:
        yield f"the subject has {len(subject)} characters: at most {SUBJECT_LIMIT}"
    if rest and rest[0]:
        yield "an empty line has to follow the subject"
    if not any(line.strip() and not TRAILER.match(line) for line in rest[1:]):
        yield "there is no body: say why"
    for line in rest:
        if len(line) > COLUMN_LIMIT and " " in line.strip():
            yield f"a line of the body has {len(line)} columns: at most {COLUMN_LIMIT}"


def check(root, since):
    """What is wrong with the messages since a commit; None when git does not know it."""
    if not os.path.exists(os.path.join(root, ".git")) or \
            git(root, "merge-base", "--is-ancestor", since, "HEAD").returncode != 0:
        return None
    listed = git(root, "log", "--no-merges", "-z", "--format=%h%n%B", f"{since}..HEAD").stdout
    bad = []
    for commit in listed.split("\0"):
        name, _, message = commit.partition("\n")
        subject = message.split("\n", 1)[0]
        bad += [f"{name} ({subject[:40]}): {problem}" for problem in problems(message) if name]
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", nargs="?", default=os.path.join(os.path.dirname(__file__), ".."))
    parser.add_argument("--since", default=SINCE, metavar="COMMIT", help="the last one that is not checked")
    args = parser.parse_args()
    bad = check(args.root, args.since)
    if bad is None:
        print(f"check_commits: git does not know {args.since[:12]} as an ancestor: nothing is checked")
        sys.exit(77)
    for message in bad:
        print(f"check_commits: {message}", file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
