#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no golden answer changed without the version of its tool or of a product that it needs, and
no import without the version of its format.

usage: versions.py [ROOT] [--program XPLANECTL] [--update]

versions.txt has a line "version product/NAME N" for every product, "version tool/NAME N PRODUCT…"
for every tool and what it needs, "version format/NAME N" for every format whose files are imported,
"golden HASH CASE FILE" for every answer below cases/ and tests/data/iree/golden/, and
"import HASH FORMAT FILE HASH" for the XSpace that the program makes of every such file below
tests/data/iree/, with the file's own hash.  Stored answers and products of another version are never used: an answer that
changes while the versions stay would be served from old stores as it was.

The tree is compared with versions.txt of HEAD, of its parent and of where it left main; where git
knows none of these, with the file.  --program also compares the versions with the tables of that
build, and the imports with what it makes.  --update, which takes build/gcc/cli/xplanectl when no program is named, writes the file
again; it refuses what the check refuses.
"""
import argparse
import glob
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = "# Written by tests/golden/versions.py --update, which also checks it.\n"
FILE = "tests/golden/versions.txt"
MAIN = ("origin/main", "main")


class Record:
    """What versions.txt says: versions and needs by "tool/NAME" or "product/NAME"; goldens, the hash
    of each answer by (case, file); imports, the hash of each XSpace by (format, file, its hash)."""

    def __init__(self, text=""):
        self.versions, self.needs, self.goldens, self.imports = {}, {}, {}, {}
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["version"]:
                self.versions[words[1]] = words[2]
                self.needs[words[1]] = words[3:]
            elif words[:1] == ["golden"]:
                self.goldens[words[2], words[3]] = words[1]
            elif words[:1] == ["import"]:
                self.imports[tuple(words[2:])] = words[1]

    def text(self):
        lines = [" ".join(["version", name, n, *self.needs[name]]) for name, n in sorted(self.versions.items())]
        lines += [f"golden {digest} {case} {name}" for (case, name), digest in sorted(self.goldens.items())]
        lines += [f"import {digest} {' '.join(of)}" for of, digest in sorted(self.imports.items())]
        return HEAD + "".join(line + "\n" for line in lines)


def tables(program):
    """A record of the versions and needs of the program's tables."""
    out = subprocess.run([program, "tools", "--all", "--json"], check=True, capture_output=True, timeout=60)
    listed, record = json.loads(out.stdout), Record()
    for t in listed["tools"] + listed["hidden"]:
        record.versions["tool/" + t["name"]] = str(t["version"])
        record.needs["tool/" + t["name"]] = t["needs"]
    for p in listed["products"]:
        record.versions["product/" + p["name"]] = str(p["version"])
        record.needs["product/" + p["name"]] = []
    for f in listed["formats"]:
        record.versions["format/" + f["name"]] = str(f["version"])
        record.needs["format/" + f["name"]] = []
    return record


def short_hash(data):
    return hashlib.sha256(data).hexdigest()[:16]


def import_hash(program, path):
    """The hash of the XSpace that the program makes of the file; of a damaged one it is partial."""
    done = subprocess.run([program, "analyze", "iree_export", path, "--option", "format=xspace", "-o", "-"],
                          check=False, capture_output=True, timeout=60)
    if not done.stdout:
        sys.exit(f"versions: {path} is not imported: {done.stderr.decode(errors='replace').strip()}")
    return short_hash(done.stdout)


def current_imports(root, program):
    """{(format, file, its hash): hash} of bundles, and of the rows that IREE's tools export of them."""
    data, imports = os.path.join(root, "tests", "data", "iree"), {}
    for path in glob.glob(os.path.join(data, "**", "*.ireeprof"), recursive=True):
        with open(path, "rb") as f:
            of = "ireeprof", os.path.relpath(path, data), short_hash(f.read())
        imports[of] = import_hash(program, path)
    for path in glob.glob(os.path.join(data, "golden", "*", "ireeperf.jsonl.gz")):
        with tempfile.NamedTemporaryFile(suffix=".ireeperf.jsonl") as rows:
            with gzip.open(path) as f:
                text = f.read()
            rows.write(text)
            rows.flush()
            of = "ireeprof", os.path.relpath(path, data), short_hash(text)
            imports[of] = import_hash(program, rows.name)
    return imports


def current_goldens(root):
    """{(case, file): hash of the answer}; cases of IREE's are called iree/NAME."""
    goldens = {}
    for prefix, folder in (("", "tests/golden/cases/*/*.gz"), ("iree/", "tests/data/iree/golden/*/*.gz")):
        for path in glob.glob(os.path.join(root, folder)):
            with gzip.open(path) as f:
                digest = short_hash(f.read())
            goldens[prefix + os.path.basename(os.path.dirname(path)), os.path.basename(path)] = digest
    return goldens


def tool_of(case, name):
    """The tool whose answer the file is: REPORT of IREE's is iree_REPORT, but for its exports."""
    stem = name.split(".")[0]
    if not case.startswith("iree/"):
        return "tool/" + stem
    return "tool/iree_" + ("export" if stem in ("ireeperf", "perfetto") else stem)


def git(root, *args):
    """What git says, or None."""
    done = subprocess.run(["git", "-C", root, *args], check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def references(root):
    """[(commit or file, record)] that the tree is compared with."""
    commits = []
    if os.path.exists(os.path.join(root, ".git")):
        names = ["HEAD", "HEAD^"] + [git(root, "merge-base", "HEAD", branch) for branch in MAIN]
        commits = [git(root, "rev-parse", "--verify", "--quiet", name + "^{commit}") for name in names if name]
    found = []
    for commit in dict.fromkeys(c for c in commits if c):
        text = git(root, "show", f"{commit}:{FILE}")
        if text is not None:
            found.append((commit[:12], Record(text)))
    return found or [(FILE, read(root))]


def read(root):
    with open(os.path.join(root, FILE), encoding="utf-8") as f:
        return Record(f.read())


def raised(old, new):
    return {name for name, n in new.versions.items() if int(n) > int(old.versions.get(name, -1))}


def unannounced(old, new):
    """Answers that changed while the versions of their tool and of what it needs stayed."""
    rose, bad = raised(old, new), []
    for (case, name), digest in sorted(old.goldens.items()):
        tool = tool_of(case, name)
        excuses = {tool} | {f"product/{product}" for product in new.needs.get(tool, ())}
        if new.goldens.get((case, name), digest) != digest and not rose & excuses:
            bad.append(f"{case}/{name} changed: raise the version of {' or '.join(sorted(excuses))}")
    for of, digest in sorted(old.imports.items()):
        if new.imports.get(of, digest) != digest and f"format/{of[0]}" not in rose:
            bad.append(f"what is made of {of[1]} changed: raise the version of format/{of[0]}")
    return bad


def lowered(old, new):
    return [f"the version of {name} was {old.versions[name]} and is {new.versions[name]}: versions only rise"
            for name in sorted(new.versions)
            if name in old.versions and int(new.versions[name]) < int(old.versions[name])]


def unknown_tools(record):
    tools = {tool_of(case, name): f"{case}/{name}" for case, name in record.goldens}
    return [f"{tools[tool]}: there is no {tool}" for tool in sorted(set(tools) - set(record.versions))]


def check(root, program, update):
    """The messages; with `update`, writes the file when there are none."""
    if not os.path.exists(os.path.join(root, FILE)):
        return [f"{FILE} is missing: take it from git, then run this again"]
    recorded = read(root)
    new = tables(program) if program else read(root)
    new.goldens = current_goldens(root)
    if program:
        new.imports = current_imports(root, program)
    if not new.versions or not new.goldens:
        return ["no versions, or no golden answers, are found"]
    bad = unknown_tools(new)
    for where, old in references(root):
        bad += [f"{message} (compared with {where})" for message in lowered(old, new) + unannounced(old, new)]
    if not bad and update:
        with open(os.path.join(root, FILE), "w", encoding="utf-8") as f:
            f.write(new.text())
    elif not bad and new.text() != recorded.text():
        bad = [f"{FILE} is not of this tree: run tests/golden/versions.py --update and read its diff"]
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", nargs="?", default=os.path.join(HERE, "..", ".."))
    parser.add_argument("--program", metavar="XPLANECTL", help="the build whose tables are asked")
    parser.add_argument("--update", action="store_true", help="write versions.txt")
    args = parser.parse_args()
    program = args.program
    if args.update and not program:
        program = os.path.join(args.root, "build", "gcc", "cli", "xplanectl")
        if not os.path.exists(program):
            sys.exit(f"versions: {program} is not built: build it, or name one with --program")
    bad = check(args.root, program, args.update)
    for message in bad:
        print(f"versions: {message}", file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
