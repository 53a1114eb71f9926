#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads what `xplanectl export` writes, with Perfetto's own code.

    check_export.py XPLANECTL PROFILE...

Perfetto's trace processor (PyPI package perfetto) counts slices, tracks, flows, counters and arguments and reports no error;
where its program, which the package fetches when first used, cannot be had, the package's protos decode the trace and the same is
counted here.  Either way the numbers must be those of the Chrome trace of the same profile.
"""
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


class Decoded:
    """What a reader makes of the packets; says what is wrong with them."""

    def __init__(self, path):
        trace = pb.Trace()
        with open(path, "rb") as f:
            trace.ParseFromString(f.read())
        self.names, self.keys, self.strings, self.tracks = {}, {}, {}, {}
        self.count, self.flows, self.cleared = Counter(), Counter(), set()
        events = []
        for at, p in enumerate(trace.packet):
            self.packet(p)
            if p.HasField("track_event"):
                events.append((p.timestamp, at, p))
        self.stacks = {}
        for _, _, p in sorted(events, key=lambda e: e[:2]):
            self.event(p.trusted_packet_sequence_id, p.track_event)
        assert not any(self.stacks.values()), "slices that do not end"

    def packet(self, p):
        s = p.trusted_packet_sequence_id
        if p.sequence_flags & 1:
            self.cleared.add(s)
        assert s in self.cleared, "a sequence that does not say where it begins"
        for table, entries in ((self.names, [(e.iid, e.name) for e in p.interned_data.event_names]),
                               (self.keys, [(e.iid, e.name) for e in p.interned_data.debug_annotation_names]),
                               (self.strings, [(e.iid, e.str) for e in p.interned_data.debug_annotation_string_values])):
            for iid, text in entries:
                assert (s, iid) not in table, "interned twice"
                table[s, iid] = text
        if p.HasField("track_descriptor"):
            d = p.track_descriptor
            assert d.uuid not in self.tracks and (not d.parent_uuid or d.parent_uuid in self.tracks), "tracks"
            self.tracks[d.uuid] = d
            self.count["process"] += d.HasField("process")
            self.count["thread"] += d.HasField("thread")

    def event(self, s, e):
        assert e.track_uuid in self.tracks, "an event of no track"
        stack = self.stacks.setdefault(e.track_uuid, [])
        if e.type in (BEGIN, INSTANT):
            assert (s, e.name_iid) in self.names if e.name_iid else e.name, "no name"
            self.count["slice"] += 1
        if e.type == BEGIN:
            stack.append(e)
        if e.type == END:
            assert stack, "an end without a beginning"
            stack.pop()
        self.count["sample"] += e.type == COUNTER
        for a in e.debug_annotations:
            assert not a.name_iid or (s, a.name_iid) in self.keys, "no argument name"
            assert not a.string_value_iid or (s, a.string_value_iid) in self.strings, "no argument text"
        self.flows.update(set(e.flow_ids))


@functools.cache
def have_processor():
    """Whether the trace processor's program can be had: fetched once, as a miss takes seconds."""
    try:
        from perfetto.trace_processor import TraceProcessor
        TraceProcessor().close()
    except Exception as e:  # no network, no program for this machine: in any case the trace is not the cause
        print(f"no trace processor ({type(e).__name__}); decoded by protos")
        return False
    return True


def processor_counts(path):
    """The same from the trace processor; None where there is none."""
    if not have_processor():
        return None
    from perfetto.trace_processor import TraceProcessor
    tp = TraceProcessor(trace=path)

    def one(query):
        return next(iter(tp.query(query))).n
    bad = [(r.name, r.value) for r in tp.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")]
    assert not bad, bad
    counts = {"slice": one("select count(*) n from slice"), "sample": one("select count(*) n from counter"),
              "thread": one("select count(*) n from thread join process using (upid) where tid != 0")}
    tp.close()
    return counts


def check(xplanectl, profile, top):
    perfetto, chrome = os.path.join(top, "t.pftrace"), os.path.join(top, "t.json")
    for form, out in (("perfetto", perfetto), ("chrome", chrome)):
        subprocess.run([xplanectl, "export", form, profile, "-o", out], check=True, timeout=120)
    with open(chrome, "rb") as f:
        events = json.load(f)["traceEvents"]
    phases = Counter(e["ph"] for e in events)
    flows = Counter((e["ph"], e["id"]) for e in events if e["ph"] in "sf")
    d = Decoded(perfetto)
    assert d.count["slice"] == phases["X"] + phases["i"], (d.count, phases)
    assert d.count["sample"] == sum(len(e["args"]) for e in events if e["ph"] == "C"), (d.count, phases)
    assert d.count["thread"] + d.count["process"] == phases["M"], (d.count, phases)
    assert len(d.flows) == len({i for _, i in flows}), (len(d.flows), len(flows))
    counts = processor_counts(perfetto)
    for what, n in (counts or {}).items():
        assert d.count[what] == n, (what, d.count[what], n)
    print(f"{os.path.basename(profile)}: {dict(d.count)}, {len(d.flows)} flows")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as top:
        for profile in sys.argv[2:]:
            check(sys.argv[1], profile, top)


if __name__ == "__main__":
    main()
