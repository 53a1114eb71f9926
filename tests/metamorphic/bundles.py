# SPDX-License-Identifier: Apache-2.0
"""Bundles of IREE: what rows and totals must have in common.  tests/iree compares rows with their bundles."""
import collections
import json
import tempfile
import pathlib

import relations

REPORTS = ("summary", "dispatch", "queue", "command", "memory", "executable", "statistics", "counter", "functions", "self", "latency",
           "iterations", "usage")


def lines(asked, *args):
    return [json.loads(line) for line in asked.run("iree", *args, "--format=jsonl", statuses=(0, 3)).splitlines()]


def unknown_members(path, asked):
    """A member that no version has, in each row of an exported bundle."""
    with tempfile.TemporaryDirectory() as top:
        rows = asked.run("iree", "export", path, "--format=ireeperf-jsonl", statuses=(0, 3)).splitlines()
        plain, new = pathlib.Path(top) / "a.ireeperf.jsonl", pathlib.Path(top) / "b.ireeperf.jsonl"
        plain.write_bytes(b"\n".join(rows) + b"\n")
        new.write_bytes(b"".join(row[:-1] + b',"of_a_later_version":[1,{"x":2}]}\n' for row in rows))
        for report in REPORTS:
            a, b = lines(asked, report, plain), lines(asked, report, new)
            if a != b:
                yield f"{report}: {len(a)} rows, {len(b)} of rows with another member: {[x for x in a if x not in b][:1]}"


def dispatches(path, asked):
    """The totals of dispatches are the sums of their events."""
    sums, said = collections.Counter(), collections.Counter()
    for row in lines(asked, "dispatch", path, "--dispatch_events"):
        if row["type"] == "dispatch_event" and row["valid"]:
            at = row["physical_device_ordinal"], row["executable_id"], row["function_ordinal"]
            sums[at] += row["duration_ticks"]
    for row in lines(asked, "dispatch", path):
        if row["type"] == "dispatch_group":
            said[row["physical_device_ordinal"], row["executable_id"], row["function_ordinal"]] += row["total_ticks"]
    if sums != said:
        yield f"ticks: {dict(sums)} of events, {dict(said)} of totals"


def run(asked, results, folder, quick):
    for path in sorted(folder.glob("*.ireeprof"))[:1 if quick else None]:
        results.check(f"{path.name}: unknown_members", unknown_members(path, asked))
        results.check(f"{path.name}: dispatches", dispatches(path, asked))
        results.check(f"{path.name}: compare_itself", relations.no_difference(asked.ask("compare", [path, path])))
