#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the real XProf for the expected answers of tests/golden/cases.

    make_golden.py [CASE...]      all cases when none is named; prints what changed

A case's answers are asked twice, of two processes; one that XProf does not keep stable is refused.
"""
import gzip
import os
import sys

import megascale_perfetto
import suggestions
from compare import compare, parse
from ours import host_of
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


def place(case, tool, options, hosts):
    """The file of an answer, and what XProf is asked."""
    path, group = os.path.join(case, tool), options.get("group_by")
    every = "".join(f".{k}={v}" for k, v in options.items())
    if tool == "trace_viewer@":
        return path + every + ".json.gz", {"trace_viewer_options": trace_options(options)}
    if tool == "memory_viewer":
        return path + every + ".json.gz", {"memory_space": "0", **options}
    if tool == "event_time_fraction_analyzer":
        return path + every + ".pb.gz", options
    if options.get("perfetto") == "true":
        return path + ".perfetto=true.pb.gz", {"perfetto": True, "host": host_of(hosts[0])}
    return path + (f".{group}" if group else "") + ".json.gz", {"group_by": group} if group else {}


def differ(tool, a, b):
    if a[:2] == b[:2] == b"\x1f\x8b":
        return megascale_perfetto.comparable(megascale_perfetto.decode(a)) != megascale_perfetto.comparable(megascale_perfetto.decode(b))
    if tool == "event_time_fraction_analyzer":
        return suggestions.fractions(a) != suggestions.fractions(b)
    return compare(tool, parse(a), parse(b))


def stored(path):
    """The answer as XProf gave it: a trace for Perfetto is compressed by itself."""
    with open(path, "rb") as f:
        data = f.read()
    return data if "perfetto" in os.path.basename(path) else gzip.decompress(data)


def main():
    names = sys.argv[1:] or sorted(os.listdir(CASES))
    bad = 0
    with XProf() as one, XProf() as two:
        for name in names:
            case = os.path.join(CASES, name)
            hosts, questions = hosts_and_questions(case)
            for tool, options in questions:
                path, asked = place(case, tool, options, hosts)
                (status, data), (again, other) = one.ask(tool, hosts, asked), two.ask(tool, hosts, asked)
                if (status, again) != ("answer", "answer") or differ(tool, data, other):
                    print(f"{name}: {tool}: XProf gives {status}, or no stable answer; not written")
                    bad = 1
                    continue
                if os.path.exists(path):
                    old = stored(path)
                    if old == data or not differ(tool, old, data):
                        continue
                with open(path, "wb") as f:
                    f.write(data if "perfetto" in os.path.basename(path) else gzip.compress(data, 9, mtime=0))
                print(f"{name}: {os.path.basename(path)}, {len(data)} bytes")
    sys.exit(bad)


if __name__ == "__main__":
    main()
