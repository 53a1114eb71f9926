#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source file says its licence in its first line, or writes the line.

usage: check_spdx.py [ROOT] [--fix]

C, JavaScript and .proto files begin with "// SPDX-License-Identifier: Apache-2.0"; scripts have the
same with "#", after their "#!" line.  --fix adds what is missing.
"""
import argparse
import os
import sys

from check_structure import Tree

LICENCE = "SPDX-License-Identifier: Apache-2.0"
COMMENT = {".c": "//", ".h": "//", ".js": "//", ".proto": "//", ".sh": "#", ".py": "#"}
DATA = ("tests/data/", "tests/fuzz/corpus/", "tests/golden/cases/", "tests/golden/bad/")


def sources(tree):
    return [f for f in tree.files if os.path.splitext(f)[1] in COMMENT and not f.startswith(DATA)]


def wanted(name):
    return f"{COMMENT[os.path.splitext(name)[1]]} {LICENCE}\n"


def split(text):
    """The "#!" line, or nothing, and the rest."""
    end = text.index("\n") + 1 if text.startswith("#!") and "\n" in text else 0
    return text[:end], text[end:]


def missing(tree):
    return [f for f in sources(tree) if not split(tree.text(f))[1].startswith(wanted(f))]


def fix(tree, name):
    first, rest = split(tree.text(name))
    with open(os.path.join(tree.root, name), "w", encoding="utf-8") as f:
        f.write(first + wanted(name) + rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", nargs="?", default=os.path.join(os.path.dirname(__file__), ".."))
    parser.add_argument("--fix", action="store_true", help="add the missing lines")
    args = parser.parse_args()
    tree = Tree(args.root)
    names = missing(tree)
    for name in names:
        if args.fix:
            fix(tree, name)
        else:
            print(f"check_spdx: {name} does not begin with its licence: run {sys.argv[0]} --fix",
                  file=sys.stderr)
    sys.exit(1 if names and not args.fix else 0)


if __name__ == "__main__":
    main()
