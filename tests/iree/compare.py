#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the reports of xplanectl with what IREE's tools said of the same bundles.

usage: compare.py XPLANECTL CORPUS [BUNDLE...]

CORPUS is a folder with NAME.ireeprof files and golden/NAME/REPORT.jsonl (with REPORT.jsonl.stderr
where iree-profile refused), or one with such folders.  Rows are compared member by member; what
IREE refused must still be read (status 0 or 3), unless the header is invalid (status 1).
"""
import gzip
import json
import os
import subprocess
import sys

# golden file -> arguments
REPORTS = {
    "summary": [], "explain": [], "dispatch": [], "queue": [], "command": [], "memory": [],
    "executable": [], "statistics": [], "counter": [], "cat": [],
    "dispatch.dispatch_events": ["--dispatch_events"],
    "queue.dispatch_events": ["--dispatch_events"],
    "command.dispatch_events": ["--dispatch_events"],
    "executable.dispatch_events": ["--dispatch_events"],
    "counter.samples": ["--counter_samples"],
    "ireeperf": [],
}
# What IREE refuses and we read without a reservation: functions that are called exports, as IREE
# wrote them before May 2026, and records that a newer producer made longer.
UNDERSTOOD = {"syn-old-executable-exports", "syn-padded-records"}


def golden(folder, name):
    """The bytes of a golden file, or None."""
    path = os.path.join(folder, name)
    if os.path.exists(path):
        with open(path, "rb") as f:
            return f.read()
    if os.path.exists(path + ".gz"):
        with gzip.open(path + ".gz") as f:
            return f.read()
    return None


def rows(data):
    """Rows of JSON lines.  IREE writes names of ill-formed UTF-8 and NaN as they are."""
    out = []
    for line in data.decode("utf-8", "replace").split("\n"):
        if line:
            text = line
            for bad in (":nan", ":-nan", ":inf", ":-inf"):
                text = text.replace(bad + ",", ":null,")
            out.append(json.loads(text, object_pairs_hook=list))
    return out


def difference(ours, theirs):
    """A sentence about the first difference; None without one."""
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a == b:
            continue
        for x, y in zip(a, b):
            if x != y:
                return f"row {i} {a[0][1]}: {x} instead of {y}"
        return f"row {i} {a[0]}: {len(a)} members instead of {len(b)}"
    if len(ours) != len(theirs):
        return f"{len(ours)} rows instead of {len(theirs)}"
    return None


def command_of(report):
    """The command and the form of a golden file's name."""
    return ("export", "ireeperf-jsonl") if report == "ireeperf" else (report.split(".")[0], "jsonl")


def ask(xplanectl, bundle, report, flags):
    """What our report says: the finished process, and a sentence when its status is none that may
    be."""
    command, form = command_of(report)
    done = subprocess.run([xplanectl, "iree", command, bundle, "--format", form] + flags,
                          capture_output=True, timeout=300, check=False)
    wrong = None if done.returncode in (0, 1, 3) else f"status {done.returncode}"
    return done, wrong and f"{wrong}: {done.stderr.decode()}"


def against(done, data):
    """Compares with what IREE answered; a sentence about what is wrong, or None."""
    if done.returncode == 1:
        return f"refused: {done.stderr.decode()}"
    return difference(rows(done.stdout), rows(data))


def check(xplanectl, bundle, report, data, refused):
    """A sentence about what is wrong; None when all is well."""
    done, wrong = ask(xplanectl, bundle, report, REPORTS[report])
    if wrong:
        return wrong
    if refused is None:
        return against(done, data)
    if done.returncode == 1:
        reason = refused.decode().split(";")[1].split("\n")[0].strip()
        return None if reason in done.stderr.decode() else f"not refused for: {reason}"
    rows(done.stdout)  # is valid JSON
    name = os.path.basename(bundle).removesuffix(".ireeprof")
    return None if done.stderr or name in UNDERSTOOD else "refused by IREE, and no warning"


def folders(corpus):
    for folder in [corpus] + [os.path.join(corpus, d) for d in sorted(os.listdir(corpus))]:
        if os.path.isdir(os.path.join(folder, "golden")):
            yield folder


def main():
    xplanectl, corpus, chosen = sys.argv[1], sys.argv[2], sys.argv[3:]
    passed = failed = 0
    for folder in folders(corpus):
        for name in sorted(os.listdir(os.path.join(folder, "golden"))):
            bundle = os.path.join(folder, name + ".ireeprof")
            if chosen and name not in chosen or not os.path.exists(bundle):
                continue
            for report in REPORTS:
                at = os.path.join(folder, "golden", name)
                data = golden(at, report + ".jsonl")
                refused = golden(at, report + ".jsonl.stderr")
                if data is None and refused is None:
                    continue
                wrong = check(xplanectl, bundle, report, data, refused)
                passed += wrong is None
                failed += wrong is not None
                if wrong:
                    print(f"FAILED {name} {report}: {wrong}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
