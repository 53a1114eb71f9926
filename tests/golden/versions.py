#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no golden answer changed without the version of its tool or of a product.

usage: versions.py [ROOT] [--update]

versions.txt has a line "version KIND/NAME N" for every tool and product, and "golden HASH CASE FILE" for
every answer below cases/.  Stored answers and products of another version are never used: an answer
that changes while the versions stay would be served from old stores as it was.  --update writes the
file again; it refuses what the check refuses.
"""
import argparse
import glob
import gzip
import hashlib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = "# Written by tests/golden/versions.py --update, which also checks it.\n"
# A row of the tables of tools and products, up to the name of the next one.
ROW = re.compile(r'\.name = "([^"]+)"(?:(?!\.name = ).)*?\.version = (\w+)', re.S)
# One version for all, as long as the rows have none.
DEFINED = re.compile(r"^#define (XPL_\w*VERSION) (\d+)\b", re.M)


def current_versions(root):
    """{"tool/NAME" or "product/NAME": version}, from the rows of the tables in the sources."""
    versions, macros, rows = {}, {}, {}
    for path in sorted(glob.glob(os.path.join(root, "analysis", "**", "*.[ch]"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"//[^\n]*", "", f.read())
        macros.update(DEFINED.findall(text))
        if path.endswith(".c"):
            kind = "product" if os.sep + "products" + os.sep in path else "tool"
            rows.update({f"{kind}/{name}": value for name, value in ROW.findall(text)})
    for name, value in rows.items():
        number = macros.get(value, value)
        if not number.isdigit():
            sys.exit(f"versions: the version of {name} is {value}, which is neither a number nor a "
                     "#define XPL_…VERSION of analysis/")
        versions[name] = number
    versions.update({macro: number for macro, number in macros.items() if macro not in rows.values()})
    return versions


def current_goldens(root):
    """{(case, file): hash of the answer}."""
    goldens = {}
    for path in glob.glob(os.path.join(root, "tests", "golden", "cases", "*", "*.json.gz")):
        with gzip.open(path) as f:
            digest = hashlib.sha256(f.read()).hexdigest()[:16]
        goldens[os.path.basename(os.path.dirname(path)), os.path.basename(path)] = digest
    return goldens


def read(path):
    versions, goldens = {}, {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                words = line.split()
                if words[:1] == ["version"]:
                    versions[words[1]] = words[2]
                elif words[:1] == ["golden"]:
                    goldens[words[2], words[3]] = words[1]
    return versions, goldens


def write(path, versions, goldens):
    with open(path, "w", encoding="utf-8") as f:
        f.write(HEAD)
        f.writelines(f"version {name} {n}\n" for name, n in sorted(versions.items()))
        f.writelines(f"golden {digest} {case} {name}\n" for (case, name), digest in sorted(goldens.items()))


def unannounced(old, new, old_goldens, new_goldens, tools):
    """Answers that changed while the version of their tool and those of all products stayed."""
    raised = {name for name in new if old.get(name) != new[name]}
    bad = []
    for (case, name), digest in sorted(old_goldens.items()):
        tool = name.split(".")[0]
        others = {f"tool/{other}" for other in tools - {tool}}
        if new_goldens.get((case, name), digest) != digest and not raised - others:
            bad.append(f"{case}/{name} changed: raise the version of {tool}, or of the product that changed")
    return bad


def lowered(old, new):
    return [f"the version of {name} was {old[name]} and is {new[name]}: versions only rise"
            for name in sorted(new) if name in old and int(new[name]) < int(old[name])]


def stale(old, new, old_goldens, new_goldens):
    if old == new and old_goldens == new_goldens:
        return []
    return ["versions.txt is not of this tree: run tests/golden/versions.py --update and read its diff"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", nargs="?", default=os.path.join(HERE, "..", ".."))
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    path = os.path.join(args.root, "tests", "golden", "versions.txt")
    new, new_goldens = current_versions(args.root), current_goldens(args.root)
    if not new or not new_goldens:
        sys.exit("versions: no versions, or no golden answers, are found")
    old, old_goldens = read(path)
    tools = {name.split(".")[0] for _, name in new_goldens}
    bad = lowered(old, new) + unannounced(old, new, old_goldens, new_goldens, tools)
    if not bad and args.update:
        write(path, new, new_goldens)
    elif not bad:
        bad = stale(old, new, old_goldens, new_goldens)
    for message in bad:
        print(f"versions: {message}", file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
