#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every member of every record of the format is in the record's exported row, or docs/iree.md says
where it is.

usage: members.py XPLANECTL

The structs are those of analysis/ireeprof/schema.h, the rows those of the bundle that has all kinds
of records.  What docs/iree.md says of a member that has another name must be true of the row, and
of a member that does not exist it may say nothing.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Rows whose type is not the struct's name.
ROWS = {"function": "executable_function", "host_event": "host_execution_event",
        "region_event": "command_region_event", "relationship": "event_relationship",
        "metric_source": "device_metric_source", "metric_descriptor": "device_metric_descriptor",
        "metric_sample": "device_metric_sample", "metric_value": "device_metric_sample",
        "trace": "executable_trace"}
# How the bytes lie.
FRAMING = re.compile(r"record_length|reserved\d|pad\d?|(block_)?name_length|description_length")


def structs():
    """Members of the structs of typed records, by the name of the struct."""
    text = (ROOT / "analysis" / "ireeprof" / "schema.h").read_text(encoding="utf-8")
    sizes = set(re.findall(r"static_assert\(sizeof\(struct xpl_iree_(\w+)\) ==", text))
    found = {}
    for name, body in re.findall(r"struct xpl_iree_(\w+) \{(.*?)\n\};", text, re.S):
        if name not in sizes:
            continue
        statements = re.sub(r"//.*", "", body).split(";")
        lists = [s.strip().split(None, 1)[1] for s in statements if s.strip()]
        found[name] = [re.sub(r"\[.*", "", m.strip()) for names in lists
                       for m in names.split(",")]
    assert sizes == set(found), sizes ^ set(found)
    return found


def keys(value):
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values()))
    return set()


def rows(xplanectl):
    """Names of members, also of those within members, by the type of the row."""
    bundle = ROOT / "tests" / "data" / "iree" / "syn-everything.ireeprof"
    done = subprocess.run([xplanectl, "iree", "export", bundle], capture_output=True, timeout=60,
                          check=False)
    found = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        found.setdefault(row["record_type"], set()).update(keys(row))
    return found


def documented():
    """{(record, member): names that the row has in its place} of the page; member "all"."""
    page = (ROOT / "docs" / "iree.md").read_text(encoding="utf-8")
    table = page.split("| record | member |", 1)[1].split("\n\n", 1)[0]
    found = {}
    for record, members, where in re.findall(r"^\| record `(\w+)` \| (.*?) \| (.*) \|$", table, re.M):
        for member in re.findall(r"`(\w+)`", members) or [members]:
            found[record, member] = [] if member == "all" else re.findall(r"`(\w+)`", where)
    return found


def main():
    exported, said, wrong, checked = rows(sys.argv[1]), documented(), [], 0
    known = structs()
    for name, members in known.items():
        row = exported.get(ROWS.get(name, name))
        whole = said.pop((name, "all"), None) is not None
        if whole == (row is not None):
            wrong.append(f"{name}: {'has a row' if whole else 'no row, and no exception'}")
        for member in members if row is not None else []:
            other = said.pop((name, member), None)
            checked += 1
            if other is not None and not set(other) <= row:
                wrong.append(f"{name}.{member}: the row has no {set(other) - row}")
            if other is None and member not in row and not FRAMING.fullmatch(member):
                wrong.append(f"{name}.{member}: neither in the row nor in docs/iree.md")
    wrong += [f"{name}.{member}: docs/iree.md has it, the record has not" for name, member in said]
    print("\n".join(f"FAILED {w}" for w in wrong) + f"\n{checked} members, {len(wrong)} wrong")
    return 1 if wrong or checked < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
