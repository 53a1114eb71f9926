#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads ireeperf-jsonl back: every report on the rows of a bundle says what it says on the bundle.

usage: rows.py XPLANECTL CORPUS [BUNDLE...]

CORPUS is as for compare.py.  Rows are those of our export, and, where a golden file has them, those
of IREE's.  What the form lacks may differ: the names of sessions, what code objects and executable
traces hold, and the lengths of records.
"""
import json
import os
import subprocess
import sys
import tempfile

from compare import difference, folders, golden, rows

REPORTS = {
    "summary": [], "explain": [], "dispatch": ["--dispatch_events"], "queue": ["--dispatch_events"],
    "command": [], "memory": [], "executable": [], "statistics": [], "counter": ["--counter_samples"],
    "cat": [], "export": [], "functions": [], "self": [], "latency": [], "iterations": [],
    "usage": [], "sessions": [], "att": [],
}
# Members of rows that the form does not have.
LACKING = {
    "summary": ["executable_code_object_records", "executable_code_object_data_bytes",
                "executable_code_object_load_records"],
    "cat": ["record_length", "payload_length", "header_length", "name", "chunk_flags", "session_id",
            "physical_device_ordinal", "queue_ordinal", "stream_id", "content_type",
            "record_type_value", "event_id", "executable_id", "command_buffer_id"],
    "sessions": ["name", "records", "end_record"],
    "att": ["raw_offset"],
}
# Functions that are called exports become functions: reports that count chunks by name differ.
OTHERWISE = {"syn-old-executable-exports"}


def report(xplanectl, path, name, flags):
    form = "ireeperf-jsonl" if name == "export" else "jsonl"
    return subprocess.run([xplanectl, "iree", name, path, "--format", form] + flags,
                          capture_output=True, timeout=300, check=False)


def known(name, data):
    """Rows without what the form lacks."""
    lacking = LACKING.get(name, [])
    return [[member for member in row if member[0] not in lacking] for row in rows(data)]


def check(xplanectl, bundle, path):
    """Sentences about reports on the rows at `path` that differ from those on the bundle."""
    for name, flags in REPORTS.items():
        ours = report(xplanectl, path, name, flags)
        theirs = report(xplanectl, bundle, name, flags)
        if ours.returncode not in (0, 3) or theirs.returncode not in (0, 3):
            yield f"{name}: status {ours.returncode}: {ours.stderr.decode()}"
        elif b"no names of sessions" not in ours.stderr:
            yield f"{name}: what the rows lack is not said"
        else:
            wrong = difference(known(name, ours.stdout), known(name, theirs.stdout))
            if wrong:
                yield f"{name}: {wrong}"


def sorted_rows(data):
    """The rows as a tool that sorts members writes them."""
    lines = []
    for line in data.decode("utf-8", "replace").splitlines():
        row = json.loads(line)
        schema = row["record_type"] == "schema"
        lines.append(json.dumps(row, sort_keys=not schema, indent=None))
    return "\n".join(lines).encode()


def forms(xplanectl, bundle, at):
    """Names and bytes of the rows of a bundle; none when it is not whole."""
    done = report(xplanectl, bundle, "export", [])
    if done.returncode != 0:
        return
    yield "ours", done.stdout
    yield "sorted", sorted_rows(done.stdout)
    theirs = golden(at, "ireeperf.jsonl")
    if theirs and golden(at, "ireeperf.jsonl.stderr") is None:
        yield "IREE's", theirs


def main():
    xplanectl, corpus, chosen = sys.argv[1], sys.argv[2], sys.argv[3:]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "a.ireeperf.jsonl")
        for folder in folders(corpus):
            for name in sorted(os.listdir(os.path.join(folder, "golden"))):
                bundle = os.path.join(folder, name + ".ireeprof")
                if chosen and name not in chosen or name in OTHERWISE or \
                        not os.path.exists(bundle):
                    continue
                for form, data in forms(xplanectl, bundle, os.path.join(folder, "golden", name)):
                    with open(path, "wb") as f:
                        f.write(data)
                    wrong = list(check(xplanectl, bundle, path))
                    passed += len(REPORTS) - len(wrong)
                    failed += len(wrong)
                    for text in wrong:
                        print(f"FAILED {name}, {form} rows: {text}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
