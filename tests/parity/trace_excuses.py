#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the predicates trace_rows and trace_search excuse, and that they excuse no fault of ours of the same look.

Each case is a small profile, XProf's disorder in an answer, and our answer: excused as it is, reported when ours is changed.
"""
import copy
import json
import os
import sys
import tempfile

from differences import excuse
from protos import pb

NAMES = ("late", "early", "middle", "naïve")


def profile(folder):
    """A line that is recorded out of order: events of 2 ms at 30, 10 and 20 ms, and one whose name is not ASCII at 40 ms."""
    space = pb.XSpace()
    plane = space.planes.add(id=1, name="/host:CPU")
    line = plane.lines.add(id=7, name="python")
    for k, (name, begin) in enumerate(zip(NAMES, (30, 10, 20, 40)), 1):
        plane.event_metadata[k].id, plane.event_metadata[k].name = k, name
        line.events.add(metadata_id=k, offset_ps=begin * 10 ** 9, duration_ps=2 * 10 ** 9)
    path = os.path.join(folder, "h.xplane.pb")
    with open(path, "wb") as f:
        f.write(space.SerializeToString())
    return [path]


def event(name, begin, length=2, tid=7):
    return {"ph": "X", "pid": 1, "tid": tid, "ts": begin * 1e3, "dur": length * 1e3, "name": name}


LATE, EARLY, MIDDLE, SEARCHED = event("late", 30), event("early", 10), event("middle", 20), event("naïve", 40)
STATS = event("Launch Stats for step 1", 21)
WINDOW = {"start_time_ms": "15", "end_time_ms": "25"}

# the request, XProf's events, ours, the predicate, ours that must be reported
CASES = {
    "outside shown": (WINDOW, [MIDDLE, LATE], [MIDDLE], "trace_rows", {
        "one in the window is missing": [], "another length": [event("middle", 20, 1)], "another row": [event("middle", 20, 2, 8)],
        "behind the window": [MIDDLE, event("late", 30, 3)]}),
    "inside missed": (WINDOW, [], [MIDDLE], "trace_rows", {"no such name": [event("made up", 20)]}),
    "launch stats": (WINDOW, [MIDDLE, event("Launch Stats for step 9", 90)], [MIDDLE, STATS], "trace_rows", {"missing": [STATS]}),
    "searched rows": ({"search_prefix": "mid"}, [event("late", 20)], [MIDDLE], "trace_rows", {"not what was searched": [event("early", 20)]}),
    "found by both": ({"search_prefix": "mid"}, [MIDDLE, event("late", 10)], [MIDDLE], "trace_rows", {"one is missing": []}),
    "searched table": ({"search_prefix": "na"}, [], [SEARCHED, event("name", 50)], "trace_search", {"not what was searched": [event("early", 50)]}),
}


def answer(events):
    return json.dumps({"traceEvents": copy.deepcopy(events), "returnedEventsSize": len(events)}).encode()


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = profile(folder)
        for what, (options, theirs, ours, name, faults) in CASES.items():
            wanted = {"as it is": (ours, name), **{k: (v, "") for k, v in faults.items()}}
            for how, (mine, expected) in wanted.items():
                got = excuse("trace_viewer@", answer(theirs), answer(mine), paths, options)
                passed, failed = passed + (got == expected), failed + (got != expected)
                if got != expected:
                    print(f"{what}, {how}: excused by {got!r}, expected {expected!r}")
    print(f"trace_excuses: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
