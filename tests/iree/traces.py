#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our Perfetto traces of bundles with those of IREE's renderer.

usage: traces.py XPLANECTL CORPUS [BUNDLE...]

CORPUS is as for compare.py, with golden/NAME/perfetto.pftrace[.gz].  Equal must be: the tracks with
their order, and all slices, instants and counters with names, times, values and arguments; and the
flows that the renderer has.  Ours may have more flows, and, of a bundle that is not whole, a
diagnostic for each warning.  Chrome's form must hold as many slices, instants and counters.
"""
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile

import change
import compare

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def fields(data):
    """(number, value) of a message: int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            b = data[at]
            at += 1
            v |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return v
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            at += 8
            yield key >> 3, data[at - 8:at]
        else:
            n = varint()
            at += n
            yield key >> 3, data[at - n:at]


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def double(v):
    return struct.unpack("<d", v)[0]


def argument(data):
    name = value = None
    for n, v in fields(data):
        if n == 10:
            name = v.decode()
        elif n == 2:
            value = bool(v)
        elif n == 4:
            value = signed(v)
        elif n == 5:
            value = double(v)
        elif n == 6:
            value = v.decode("utf-8", "replace")
        else:
            value = v
    return name, value


class Trace:
    """tracks: path -> (rank, whether a counter); events: (time, type, path, name, value,
    arguments); flows: sets of (time, path, name)."""

    def __init__(self, data):
        tracks, events = {}, []
        for n, packet in fields(data):
            assert n == 1
            time, event = 0, None
            for m, v in fields(packet):
                if m == 8:
                    time = v
                elif m == 11:
                    event = v
                elif m == 60:
                    t = dict(fields(v))
                    tracks.setdefault(t[1], t)
            if event is not None:
                events.append((time, event))
        self.paths = {u: self.path(tracks, u) for u in tracks}
        self.tracks = {(self.paths[u], t.get(12, 0), 8 in t, t.get(11, 0))
                       for u, t in tracks.items()}
        self.events, flows = collections.Counter(), collections.defaultdict(set)
        self.first = min((t for t, _ in events), default=0)
        for time, event in events:
            self.add(time - self.first, event, flows)
        # An arrow with one end is none.
        self.flows = {frozenset(ends) for ends in flows.values() if len(ends) > 1}

    @staticmethod
    def path(tracks, uuid):
        parts = []
        while uuid is not None:
            t = tracks[uuid]
            parts.append(t.get(2, b"").decode("utf-8", "replace"))
            uuid = t.get(5)
        return " / ".join(reversed(parts))

    def add(self, time, data, flows):
        kind = name = value = path = None
        arguments, ends = [], []
        for n, v in fields(data):
            if n == 9:
                kind = v
            elif n == 11:
                path = self.paths[v]
            elif n == 23:
                name = v.decode("utf-8", "replace")
            elif n == 30:
                value = signed(v)
            elif n == 44:
                value = double(v)
            elif n == 4:
                arguments.append(argument(v))
            elif n == 47:
                ends.append(v)
        for end in ends:
            flows[end].add((time, path, name))
        assert len({a for a, _ in arguments}) == len(arguments), arguments
        self.events[time, kind, path, name, value, tuple(sorted(arguments))] += 1


def export(xplanectl, bundle, form):
    done = subprocess.run([xplanectl, "iree", "export", bundle, "--format", form],
                          capture_output=True, timeout=300, check=False)
    assert done.returncode in (0, 3), (done.returncode, done.stderr)
    return done


def is_warning(event):
    return event[3] == "diagnostic" and ("category", "bundle") in event[5]


def once(events):
    """A counter that is described again has its values once; the renderer has them again."""
    return collections.Counter({e: 1 if e[1] == COUNTER else n for e, n in events.items()})


def difference(ours, theirs, partial):
    """A sentence about the first difference; None without one."""
    if ours.tracks != theirs.tracks:
        return f"tracks: {sorted(ours.tracks ^ theirs.tracks)[0]}"
    missing, more = once(theirs.events) - once(ours.events), ours.events - theirs.events
    if partial:
        more = collections.Counter({e: n for e, n in more.items() if not is_warning(e)})
    for what, events in (("lacks", missing), ("has more", more)):
        if events:
            return f"{what} {sum(events.values())} events: {sorted(events, key=str)[0]}"
    if not theirs.flows <= ours.flows:
        return f"lacks {len(theirs.flows - ours.flows)} flows"
    return None


def check_chrome(data, trace):
    elements = json.loads(data)["traceEvents"]
    kinds = collections.Counter(e["ph"] for e in elements)
    of = collections.Counter()
    for event, n in trace.events.items():
        of[event[1]] += n
    if (kinds["B"], kinds["E"], kinds["C"]) != (of[BEGIN], of[END], of[COUNTER]):
        return f"Chrome has {kinds}, not {of}"
    if kinds["i"] + kinds["X"] != of[INSTANT]:
        return f"Chrome has {kinds}, not {of}"
    times = [e["ts"] for e in elements if "ts" in e]
    if times != sorted(times) or (times and abs(times[0] * 1000 - trace.first) > 1000):
        return "Chrome's times are not those of Perfetto"
    started = {e["id"] for e in elements if e["ph"] == "s"}
    if {e["id"] for e in elements if e["ph"] == "t"} - started:
        return "a flow of Chrome's has no beginning"
    return None


def check(xplanectl, bundle, data):
    done = export(xplanectl, bundle, "perfetto")
    ours = Trace(done.stdout)
    return (difference(ours, Trace(data), done.returncode == 3) or
            check_chrome(export(xplanectl, bundle, "chrome").stdout, ours))


def check_again(xplanectl, bundle):
    """Counters that a later session of the file describes again are those of before."""
    with open(bundle, "rb") as f:
        data = f.read()
    records = list(change.records(data))
    again = [r for r in records if r[1].endswith(b".counters")]
    assert again
    twice = records[:-1] + again + records[-1:]
    data = data[:24] + b"".join(map(change.joined, twice))
    with tempfile.NamedTemporaryFile(suffix=".ireeprof") as f:
        f.write(data[:16] + struct.pack("<Q", len(data)) + data[24:])
        f.flush()
        ours, before = (Trace(export(xplanectl, b, "perfetto").stdout) for b in (f.name, bundle))
    return difference(ours, before, False) or difference(before, ours, False)


def check_large(xplanectl, bundle):
    """The sum of a counter's values is exact, as the renderer's, also where 64 bits are too few."""
    with open(bundle, "rb") as f:
        data = f.read()
    records = list(change.records(data))
    for r in records:
        if r[1].endswith(b".counter-samples"):
            r[3] = r[3][:112] + b"\xff" * 16 + r[3][128:]  # two values of the first sample
    with tempfile.NamedTemporaryFile(suffix=".ireeprof") as f:
        f.write(data[:24] + b"".join(map(change.joined, records)))
        f.flush()
        ours = Trace(export(xplanectl, f.name, "perfetto").stdout)
    sums = {value for e in ours.events for key, value in e[5] if key == "iree_counter_value"}
    return None if str(2 * ((1 << 64) - 1)) in sums else f"no large sum among {sums}"


def main():
    xplanectl, corpus, chosen = sys.argv[1], sys.argv[2], sys.argv[3:]
    passed = failed = 0
    for test in (check_again, check_large):
        wrong = test(xplanectl, change.DATA / "syn-everything.ireeprof")
        passed += wrong is None
        failed += wrong is not None
        if wrong:
            print(f"FAILED {test.__name__}: {wrong}")
    for folder in compare.folders(corpus):
        for name in sorted(os.listdir(os.path.join(folder, "golden"))):
            bundle = os.path.join(folder, name + ".ireeprof")
            data = compare.golden(os.path.join(folder, "golden", name), "perfetto.pftrace")
            if name in compare.UNDERSTOOD:  # the renderer had an export that IREE gave up
                continue
            if data is None or (chosen and name not in chosen) or not os.path.exists(bundle):
                continue
            wrong = check(xplanectl, bundle, data)
            passed += wrong is None
            failed += wrong is not None
            if wrong:
                print(f"FAILED {name}: {wrong}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
