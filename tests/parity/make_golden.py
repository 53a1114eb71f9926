#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the real XProf for the expected answers of tests/golden/cases.

    make_golden.py [CASE...]      all cases when none is named; prints what changed

A case's answers are asked twice, of two processes; one that XProf does not keep stable is refused.
"""
import gzip
import os
import sys

from compare import compare, parse
from xprof_worker import XProf

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
CASES = os.path.join(TESTS, "golden", "cases")


def hosts_and_questions(case):
    hosts, questions = [], []
    with open(os.path.join(case, "case"), encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if words[:1] == ["host"]:
                here = os.path.join(case, words[1])
                hosts.append(here if os.path.exists(here) else os.path.join(TESTS, words[1]))
            elif words[:1] == ["answer"]:
                questions.append((words[1], dict(w.split("=", 1) for w in words[2:])))
    return hosts, questions


def trace_options(options):
    """As XProf's HTTP server gives them to the tool."""
    flags = ("full_dma", "search_metadata", "mpmd_pipeline_view")
    return {"resolution": "8000", **{k: v == "true" if k in flags else v for k, v in options.items()}}


def main():
    names = sys.argv[1:] or sorted(os.listdir(CASES))
    bad = 0
    with XProf() as one, XProf() as two:
        for name in names:
            case = os.path.join(CASES, name)
            hosts, questions = hosts_and_questions(case)
            for tool, options in questions:
                group = options.get("group_by")
                path = os.path.join(case, tool + (f".{group}" if group else "") + ".json.gz")
                asked = {"group_by": group} if group else {}
                if tool in ("trace_viewer@", "memory_viewer"):
                    path = os.path.join(case, tool + "".join(f".{k}={v}" for k, v in options.items()) + ".json.gz")
                    asked = {"trace_viewer_options": trace_options(options)} if tool == "trace_viewer@" else {"memory_space": "0", **options}
                (status, data), (again, other) = one.ask(tool, hosts, asked), two.ask(tool, hosts, asked)
                if (status, again) != ("answer", "answer") or compare(tool, parse(data), parse(other)):
                    print(f"{name}: {tool}: XProf gives {status}, or no stable answer; not written")
                    bad = 1
                    continue
                if os.path.exists(path):
                    with gzip.open(path) as f:
                        old = f.read()
                    if old == data or not compare(tool, parse(old), parse(data)):
                        continue
                with open(path, "wb") as f:
                    f.write(gzip.compress(data, 9, mtime=0))
                print(f"{name}: {os.path.basename(path)}, {len(data)} bytes")
    sys.exit(bad)


if __name__ == "__main__":
    main()
