#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are two answers of one tool equal in every way a user could see?

    compare.py TOOL EXPECTED ACTUAL        exit 0 and "equal", or 1 and the first differences

Not compared, because XProf itself does not keep it from one process to the next: the order of keys of JSON objects, of rows
that tie in every column a sort uses (with their ranks and running totals inside the tie), and which of several like
allocations stands for a row of the memory profile.  Numbers agree within 1e-9 of their size.  All else must be the same,
including the types of cells, columns and properties.
"""
import collections
import gzip
import json
import math
import re
import sys

import trace_data

RELATIVE, ABSOLUTE = 1e-9, 1e-12


def parse(data):
    """The JSON value, that of a trace in protobuf, or the bytes where they are neither."""
    if data[:4] == trace_data.MAGIC:
        return trace_data.decode(data)
    try:
        return json.loads(data)
    except ValueError:
        return data


def is_number(x):
    return type(x) in (int, float)


class Differences(list):
    """Lines 'path: expected != actual'; stops collecting at the limit."""

    def __init__(self, limit=20):
        super().__init__()
        self.limit = limit

    def full(self):
        return len(self) >= self.limit

    def note(self, path, text):
        if not self.full():
            self.append(f"{path or '.'}: {text}")


def walk(expected, got, path, out):
    if out.full() or expected is got:
        return
    if is_number(expected) and is_number(got):
        if not math.isclose(expected, got, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
            out.note(path, f"{expected!r} != {got!r}")
    elif isinstance(expected, dict) and isinstance(got, dict):
        for k in sorted(set(expected) | set(got)):
            if k in expected and k in got:
                walk(expected[k], got[k], f"{path}.{k}", out)
            else:
                out.note(f"{path}.{k}", "missing" if k in expected else "unexpected")
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            out.note(path, f"{len(expected)} items != {len(got)}")
        for i, (a, b) in enumerate(zip(expected, got)):
            walk(a, b, f"{path}[{i}]", out)
    elif type(expected) is not type(got) or expected != got:
        out.note(path, f"{str(expected)[:140]!r} != {str(got)[:140]!r}")


def fingerprint(x):
    """A text that is the same for values that are equal but for the last digits of numbers."""
    def blunt(v):
        if is_number(v):
            return f"{float(v):.9g}"
        if isinstance(v, dict):
            return {k: blunt(w) for k, w in v.items()}
        if isinstance(v, list):
            return [blunt(w) for w in v]
        return v
    return json.dumps(blunt(x), sort_keys=True)


def runs(rows, key):
    """Lists of neighbours with equal keys."""
    out = []
    for row in rows:
        k = key(row)
        if out and out[-1][0] == k:
            out[-1][1].append(row)
        else:
            out.append((k, [row]))
    return [r for _, r in out]


def ties_in_order(rows, key):
    """Rows with each run of ties in a fixed order."""
    return [row for run in runs(rows, key) for row in sorted(run, key=fingerprint)]


def values(row):
    return [c.get("v") if isinstance(c, dict) else c for c in row.get("c", [])]


def table(t):
    if not isinstance(t, dict) or "cols" not in t:
        return t
    names = [c.get("id") or "" for c in t["cols"]]
    sorted_by = [i for i, n in enumerate(names)
                 if "percent" not in n and ("self_time" in n or "duration_us" in n or n == "selfTimeInMs")]
    if not sorted_by:
        return t
    position = [i for i, n in enumerate(names) if n == "rank" or "umulative" in n]

    def key(row):
        v = values(row)
        return [v[i] for i in sorted_by if i < len(v)]

    def cleared(row):
        return {**row, "c": [None if i in position else c for i, c in enumerate(row.get("c", []))]}

    groups = runs(t.get("rows", []), key)
    ranks = [values(r)[i] for g in groups for r in g for i in position if names[i] == "rank" and i < len(values(r))]
    totals = [[values(g[-1])[i] for i in position if names[i] != "rank" and i < len(values(g[-1]))] for g in groups]
    rows = [c for g in groups for c in sorted((cleared(r) for r in g), key=fingerprint)]
    return {**t, "rows": rows, "ranks": ranks, "running totals": totals}


def tree(node):
    if not isinstance(node, dict):
        return node
    children = [tree(c) for c in node.get("children", [])]

    sorted_by = "rawFlops" if is_fusion(node) else "rawTime"

    def key(c):
        m = c.get("metrics") if isinstance(c, dict) else None
        return m.get(sorted_by) if isinstance(m, dict) else None
    return {**node, "children": ties_in_order(children, key)}


def is_fusion(node):
    """XProf sorts what a fusion contains by flops, all else by time; a group of fusions is no fusion."""
    category = node["xla"].get("category") if isinstance(node.get("xla"), dict) else None
    return str(category).endswith(" fusion") and not str(node.get("name")).endswith(" and its duplicate(s)")


ALIKE = ("requestedBytes", "allocationBytes", "tfOpName", "regionType", "dataType", "tensorShape")


def memory(m):
    m = dict(m)
    allocators = m.get("memoryProfilePerAllocator")
    if not isinstance(allocators, dict):
        return m
    m["memoryProfilePerAllocator"] = {k: allocator(v) for k, v in allocators.items()}
    return m


def allocator(a):
    snapshots, rows = a.get("memoryProfileSnapshots", []), []
    for row in a.get("activeAllocations", []):
        i, n = int(row.get("snapshotIndex", 0)), row.get("numOccurrences")
        if not 0 <= i < len(snapshots):
            what = row.get("specialIndex")
        elif int(n or 1) <= 1:
            what = snapshots[i]             # this row can show only one allocation
        else:
            md = snapshots[i].get("activityMetadata", {})
            what = {k: md.get(k) for k in ALIKE}
        rows.append([what, n])
    return {**a, "activeAllocations": rows, "memoryProfileSnapshots": len(snapshots)}


def trace(x):
    """A trace: its events in any order, without what numbers flows and events."""
    def event(e):
        e = {k: v for k, v in e.items() if k not in ("bind_id", "id", "sf", "z")}
        if isinstance(e.get("args"), dict):
            e["args"] = {k: v for k, v in e["args"].items() if k not in ("flow", "flow_id", "uid")}
        return e
    frames = sorted(f.get("name", "") for f in (x.get("stackFrames") or {}).values())
    events = sorted((event(e) for e in x.get("traceEvents", [])), key=lambda e: json.dumps(e, sort_keys=True))
    return {**x, "stackFrames": frames, "traceEvents": events}


def normal(tool, x):
    if tool in ("op_profile", "hlo_op_profile") and isinstance(x, dict):
        return {k: tree(v) for k, v in x.items()}
    if tool == "memory_profile" and isinstance(x, dict):
        return memory(x)
    if tool.startswith("trace_viewer") and isinstance(x, dict):
        return trace(x)
    if isinstance(x, list):
        return [table(t) for t in x]
    return table(x)


def compare(tool, expected, got, limit=20):
    """Lines that say where two answers (parsed, or bytes) differ."""
    out = Differences(limit)
    if isinstance(expected, bytes) or isinstance(got, bytes):
        if expected != got:
            out.note("", f"{size(expected)} != {size(got)}")
        return out
    try:
        expected, got = normal(tool, expected), normal(tool, got)
    except (AttributeError, KeyError, TypeError, ValueError):
        pass                                # not of the tool's form: then as it is
    walk(expected, got, "", out)
    return out


def size(x):
    return f"{len(x)} bytes that are no JSON" if isinstance(x, bytes) else "JSON"


def apart(a, b):
    """How many values only one of two parsed answers has, whatever row or child they are in."""
    def values(x, path=""):
        if isinstance(x, dict):
            for k, v in x.items():
                yield from values(v, f"{path}.{k}")
        elif isinstance(x, list):
            for i, v in enumerate(x):
                yield from values(v, f"{path}[{i if path.endswith('.c') else ''}]")
        else:
            yield path, f"{x:.9g}" if is_number(x) else x
    one, other = (collections.Counter(values(x)) for x in (a, b))
    return ((one - other) + (other - one)).total()


def signature(tool, lines):
    """What kind of difference this is: its first place, without numbers."""
    return f"{tool} {re.sub(r'[0-9]+', 'N', lines[0].split(': ')[0])}" if lines else ""


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return parse(f.read())


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    lines = compare(sys.argv[1], read(sys.argv[2]), read(sys.argv[3]))
    print("\n  ".join([f"{len(lines)} differences"] + lines) if lines else "equal")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
