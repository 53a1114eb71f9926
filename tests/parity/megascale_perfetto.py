#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trace for Perfetto of megascale_stats, ours against XProf's: packet by packet, with interned texts put in and arguments as sets.

    megascale_perfetto.py --build BUILD [--seed N] [--count N]

On a recorded profile of a TPU, and on random ones, most of them with what MegaScale records on the host.  Flows are renumbered in the order
in which they are met, since XProf numbers device after device in the order of a hash table.  With xprof_exact=true ours are the same
packets; without it they are when what XProf leaves out (docs/differences.md, `megascale_recv_done`) is taken away.
"""
import argparse
import copy
import gzip
import os
import random
import re
import struct
import sys
import tempfile

from ours import Ours
from protos import pb
from xprof_worker import XProf
from xspace import Plane, U

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(HERE, "../data/logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb")
UINT, INT, DOUBLE, ARRAY, TEXT = 3, 4, 5, 12, 17  # fields of an argument
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
FLOWS = (b"flow_in", b"flow_out")
US = 1000000


def varint(data, i):
    value = shift = 0
    while True:
        value |= (data[i] & 127) << shift
        shift += 7
        i += 1
        if data[i - 1] < 128:
            return value, i


def fields(data):
    """{field: [value]} of a message; numbers as they are, all else as bytes."""
    out, i = {}, 0
    while i < len(data):
        tag, i = varint(data, i)
        if tag & 7 == 0:
            value, i = varint(data, i)
        else:
            size, i = varint(data, i) if tag & 7 == 2 else (8 if tag & 7 == 1 else 4, i)
            value, i = data[i:i + size], i + size
        out.setdefault(tag >> 3, []).append(value)
    return out


def value_of(argument, texts):
    if ARRAY in argument:
        return tuple(value_of(fields(a), texts) for a in argument[ARRAY])
    for field in (UINT, INT, DOUBLE, TEXT):
        if field in argument:
            value = argument[field][0]
            return field, texts[value] if field == TEXT else struct.unpack("<d", value)[0] if field == DOUBLE else value
    return None


class Event:
    """A packet of an event; `value` is a counter's, `flows` are ids."""

    def __init__(self, ns, kind, track, name, arguments, value, flows):
        self.ns, self.kind, self.track, self.name, self.arguments, self.value, self.flows = ns, kind, track, name, arguments, value, flows

    def argued(self, key):
        """[id] of flows that the arguments name"""
        value = self.arguments.get(key, ())
        ours = (v for v in (value if value and isinstance(value[0], tuple) else (value,)) if v)
        return [v for field, v in ours if field == INT]

    def key(self, ids):
        arguments = dict(self.arguments)
        for k in FLOWS:
            if k in arguments:
                arguments[k] = tuple(ids.setdefault(i, len(ids) + 1) for i in self.argued(k))
        return self.ns, self.kind, self.track, self.name, frozenset(arguments.items()), self.value, tuple(ids.setdefault(i, len(ids) + 1) for i in self.flows)


def value_of_counter(e):
    if 44 in e:
        return struct.unpack("<d", e[44][0])[0]
    return e[30][0] if 30 in e else None


def decode(data):
    """[packet]: an Event, or the tuple of a track"""
    pools, out = ({}, {}, {}), []
    for i, packet in enumerate(fields(gzip.decompress(data)).get(1, [])):
        p = fields(packet)
        assert p[10] == [1] and p[13] == [3 if i == 0 else 2], p
        for field, pool in zip((2, 3, 29), pools):
            for entry in (e for interned in p.get(12, []) for e in fields(interned).get(field, [])):
                e = fields(entry)
                assert e[1][0] not in pool, e
                pool[e[1][0]] = e.get(2, [b""])[0]
        if 60 in p:
            t = fields(p[60][0])
            counter = fields(t[8][0]) if 8 in t else {}
            out.append(("track", t[1][0], t.get(2, [b""])[0], t.get(5, [0])[0], counter.get(6), counter.get(7)))
            continue
        e = fields(p[11][0])
        arguments = {}
        for a in map(fields, e.get(4, [])):
            key = pools[1][a[1][0]]
            arguments[key] = None if key == b"description" else value_of(a, pools[2])  # a hint in words of one's own
        flows = [struct.unpack("<Q", v)[0] for v in e.get(47, [])]
        out.append(Event(p[8][0], e[9][0], e[11][0], pools[0].get(e.get(10, [None])[0]), arguments, value_of_counter(e), flows))
    return out


def comparable(packets):
    ids = {}
    return [p.key(ids) if isinstance(p, Event) else p for p in packets]


def is_recv_done(name):
    return name is not None and re.fullmatch(rb"recv-done\.?\d*", name) is not None


def without_recv_done(packets):
    """Without the instants behind recv-dones, and without the arrows to and from these.  How many instants there were."""
    out, ends, dropped = [], 0, False
    for p in packets:
        if isinstance(p, Event) and p.kind == INSTANT and p.name.endswith(b" END") and is_recv_done(p.name[:-4]):
            ends += 1
            continue
        if isinstance(p, Event) and p.kind in (BEGIN, INSTANT) and is_recv_done(p.name):
            p.arguments = {k: v for k, v in p.arguments.items() if k not in FLOWS}
            p.flows = []
            dropped = True
        elif isinstance(p, Event) and p.kind == END and dropped:
            p.flows = []
            dropped = False
        out.append(p)
    return out, ends


RENDEZVOUS = ("rdv_1", "all-reduce.3_0", "a_b_2", "x", "odd name_1")
KEYS = ("$l1^i0", "$l1^i1", "$l2^i10", "$^i2^i", "$x", "", "$l\n^i3", "-x$^i4")


def ops(r, p, to, transfers):
    at = 20000
    for i in range(r.choice((0, 1, 5, 40))):
        event = r.choice(("fusion", "send", "recv-done.3", "send.x", "sendx", "copy.1", "all-reduce", "send.", "recv7", "send-done-1"))
        long_name, display = event, r.choice((None, event))
        if transfers and r.random() < 0.7:
            display = r.choice(("send", "recv", "send-done", "recv-done")) + r.choice(("", ".1", ".2", ".3", "4"))
            long_name = f'%{display} = send(x), frontend_attributes={{_xla_host_transfer_rendezvous="{r.choice(RENDEZVOUS[:3] if r.random() < 0.9 else RENDEZVOUS)}"' + r.choice(("}", "", ' b="c"'))
        md = p.event(long_name, display, {"hlo_category": "c", "flops": 7, "tf_op": "a/b"} if r.random() < 0.7 else {}, key=(event, r.random()))
        stats = [("run_id", r.choice((U(i), U(2 ** 63 + i), U(2 ** 64 - 1), i, None))), ("source", "x"), ("bytes", b"\1\2"), ("f", 0.5), ("twice", 1), ("twice", "b"), ("_r", 1), ("flow_in", "x")]
        to.add(at if r.random() < 0.98 else -at, r.choice((0, 1, 300, 999, 1000, 5000, 123456)), md, r.sample(stats, r.choice((0, 1, 3, 8))))
        at += r.choice((0, 0, 1, 100, 999, 1000, 70000))


def graph(r, p, to, at, key, name):
    """An execution of a graph: copies, sends and receives"""
    length = r.choice((0, 300, 200000, 200000, 10 ** 7))
    sizes = r.choice(("s1->0d|$c0=4096 ", "s0->1d|$c0=10,s1->0d|$c1=70000", "s1->1d|$c0=5", "s1->2d|$c0=x", "ss3->4d|$c12=1 s4->3d|$c0=99999999999999999999", "", b"s1->0d|$c0=1"))
    keyed = {"graph_key": key}
    to.add(at, length, name, {**keyed, "input_size": r.choice((4096, 0, U(7), None, -3))})
    for _ in range(r.choice((0, 1, 3, 6))):
        begin = r.choice((at, at, at, at, -at)) + r.randint(-10, 1 + int(length * 1.2))
        took = r.choice((0, 1, 999, 1000, 1001, 40000))
        event = r.choice(("DeviceToHost START", "DeviceToHost END", "HostToDevice START", "HostToDevice END", "NetworkSend END", "NetworkReceive END", "DeviceToHost", "Wait END", name))
        stats = {"action_index": r.choice((0, 0, 0, 1, U(0), None)), "buffer_sizes": sizes, "action_duration_ns": r.choice((0, 7, 20000, U(3), None)),
                 "network_transport_latency_us": r.choice((U(0), U(1), U(20), 20, None)), "is_last_instance": r.choice((None,) * 6 + (0, 1, U(1)))}
        md = p.event(event, r.choice((None, None, None, event)), {"graph_key": r.choice(("device_3_gid_other_1$l^i1", 5))} if r.random() < 0.05 else {}, key=(event, r.random()))
        to.add(begin if r.random() < 0.1 else max(0, begin), took, md, list({**keyed, **stats}.items()) + ([("graph_key", r.choice((key, 7)))] if r.random() < 0.03 else []))


def megascale(r, space, n, twins):
    """Of two planes with one number XProf keeps what came last from a hash table, so that these get one device."""
    p = Plane(space, "/device:CUSTOM:Megascale Trace", n, r)
    devices = (7,) if twins else r.sample((200005, 7, 100, "00007", 10 ** 19), r.choice((1, 1, 2, 3, 4)))
    for k in range(r.choice((1, 1, 2))):
        to, at = p.line("m", k + 1, timestamp_ns=r.choice((0, 0, 17))), 20000
        for _ in range(r.choice((0, 3, 10, 30))):
            name = r.choice(("", "", "", "", "x")) + f"device_{r.choice(devices)}_gid_{r.choice(RENDEZVOUS)}"
            key = r.choice((name + r.choice(KEYS), name + "$l1^i0", f"XLA Modules$device_{devices[0]}_gid_q_1", "Steps$" + name, None if r.random() < 0.2 else name))
            graph(r, p, to, at, key, name)
            at += r.choice((0, 1, 1000, 70000, 10 ** 6))
        to.done()


def device(r, space, name, n, transfers):
    p = Plane(space, name, n, r)
    lines = ["Steps", "XLA Modules", "XLA Ops", "XLA TraceMe", "Async XLA Ops"]
    for k, line in enumerate(["XLA Modules", "XLA Ops"] if transfers and r.random() < 0.5 else r.sample(lines + ["XLA Modules", "XLA Ops"], r.randint(1, 7))):
        to = p.line(line, k + 1, timestamp_ns=r.choice((0, 0, 17)))
        ops(r, p, to, transfers and line == "XLA Ops")
        to.done()


def profile(r):
    space, transfers = pb.XSpace(hostnames=["h"]), r.random() < 0.7
    names = ["/device:TPU:0", "/device:TPU:1", "/device:TPU:10", "/device:TPU:01", "/device:TPU:2 SparseCore 0", "/device:GPU:0", "/host:CPU"]
    names = r.sample(names[:2] if transfers and r.random() < 0.6 else names, r.randint(1, 2) if transfers else r.randint(1, 4))
    for n, name in enumerate(names):
        device(r, space, name, n + 1, transfers)
    for n in range(50, 50 + r.choice((0, 0, 1, 1, 1, 1, 1, 1, 1, 2))):
        megascale(r, space, n, {"/device:TPU:1", "/device:TPU:01"} <= set(names))
    return space.SerializeToString()


def trace_of(answer):
    return decode(answer[1]) if answer[0] == "answer" else answer


class Counts:
    def __init__(self):
        self.equal = self.packets = self.hidden = self.arrows = self.counters = self.ends = 0

    def compare(self, case, xprof, exact, mine):
        xprof, exact, mine = map(trace_of, (xprof, exact, mine))
        mine, ends = without_recv_done(mine)
        # The fields removed from ours are not in XProf's, but where a profile contains them.
        theirs, _ = without_recv_done(copy.deepcopy(xprof))
        pairs = [(comparable(xprof), comparable(exact), "xprof_exact"), (comparable(theirs), comparable(mine), "ours")]
        for t, m, what in pairs:
            if t != m:
                at = next((i for i, (x, y) in enumerate(zip(t, m)) if x != y), min(len(t), len(m)))
                print(f"DIFFERENT case {case}, {what}: {len(t)} and {len(m)} packets, from {at} on\n  {t[at:at + 2]}\n  {m[at:at + 2]}")
        self.equal += all(t == m for t, m, _ in pairs)
        events = [p for p in xprof if isinstance(p, Event)]
        self.packets += len(xprof)
        self.hidden += sum(e.name is not None and e.name.endswith(b" events are hidden") for e in events)
        self.arrows += sum(len(e.flows) for e in events)
        self.counters += sum(e.kind == COUNTER for e in events)
        self.ends += ends


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=60)
    a = a.parse_args()
    r, n = random.Random(a.seed), Counts()
    with tempfile.TemporaryDirectory() as scratch, XProf(scratch=scratch) as xprof:
        ours = Ours(a.build, scratch)
        for case in range(a.count + 1):
            path = os.path.join(scratch, "p.xplane.pb")
            with open(path, "wb") as f, open(RECORDED, "rb") as recorded:
                f.write(profile(r) if case else recorded.read())
            n.compare(case, xprof.ask("megascale_stats", [path], {"host": "p", "perfetto": True}),
                      ours.ask("megascale_stats", [path], {"perfetto": "true", "xprof_exact": "true"}), ours.ask("megascale_stats", [path], {"perfetto": "true"}))
    print(f"{n.equal} of {a.count + 1} equal: {n.packets} packets, {n.hidden} groups of tiny events, {n.arrows} ends of arrows, {n.counters} values of counters, "
          f"{n.ends} ends of recv-dones that XProf leaves out")
    sys.exit(n.equal != a.count + 1 or n.packets < 10000 or not (n.hidden and n.arrows and n.counters and n.ends))


if __name__ == "__main__":
    main()
