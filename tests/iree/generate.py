#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles made up by chance, well-formed and damaged, for the reports on IREE's bundles.

usage: generate.py FOLDER COUNT [SEED]     writes FOLDER/gen-SEED.ireeprof, ...

Equal seeds give equal bytes.  Every fourth bundle is damaged.
"""
import os
import random
import struct
import sys

PREFIX = b"application/vnd.iree.hal.profile."
NONE = 0xFFFFFFFF


class Bundle:
    """A bundle as it grows: file records behind the header."""

    def __init__(self, r):
        self.r = r
        self.records = []
        self.header_length = r.choice([24, 24, 24, 24, 40])

    def record(self, kind, content_type, payload=b"", **k):
        r = self.r
        header_length = k.get("header_length", r.choice([104] * 9 + [120]))
        name = k.get("name", b"local-task")
        content = PREFIX + content_type if kind in (1, 2, 3) else content_type
        total = header_length + len(content) + len(name) + len(payload)
        header = struct.pack(
            "<QQQQQQQIIIIIIQQIHH", total, len(payload), k.get("session", 1), k.get("stream", 0), 0,
            0, 0, header_length, len(content), len(name), k.get("device", NONE),
            k.get("queue", NONE), r.choice([0, 0xDEADBEEF]), k.get("chunk_flags", 0),
            k.get("dropped", 0), k.get("status", 0), kind, 0)
        assert len(header) == 104
        self.records.append(header + b"\0" * (header_length - 104) + content + name + payload)

    def bytes(self):
        body = b"".join(self.records)
        length = self.header_length + len(body)
        header = struct.pack("<IHHIIQ", 0x46505249, 1, 6, self.header_length, 0, length)
        return header + b"\0" * (self.header_length - 24) + body


def chance(r, p):
    return r.random() < p


def number(r, most=9):
    """Mostly a small number, sometimes a large one."""
    return r.randrange(1 << 62) if chance(r, 0.02) else r.randrange(most)


def text(r):
    if chance(r, 0.1):
        return b""
    if chance(r, 0.15):
        return r.choice([b'q"uo\\te', "größe".encode(), b"tab\there", b"nl\nend", b"<html>&"])
    return b"f_dispatch_%d_" % r.randrange(6) + r.choice([b"matmul", b"conv", b"softmax"])


def sized(body):
    """A typed record: its length stands first."""
    return struct.pack("<I", len(body) + 4) + body


class World:
    """Ids that exist."""

    def __init__(self, r):
        self.devices = list(range(r.randrange(1, 4)))
        self.queues = [(d, q, d << 32 | q) for d in self.devices for q in range(r.randrange(1, 3))]
        self.executables = r.sample(range(1, 30), r.randrange(1, 5))
        self.functions = [(e, f) for e in self.executables for f in range(r.randrange(1, 4))]
        self.buffers = r.sample(range(1, 50), r.randrange(1, 5))
        self.sets = list(range(1, r.randrange(1, 4)))
        self.time = r.randrange(10**9, 10**15)
        self.tick = r.randrange(10**6, 10**12)

    def span(self, r):
        self.time += r.randrange(1000)
        start, end = self.time, self.time + r.randrange(100000)
        return r.choice([(start, end)] * 12 + [(end + 1, start), (-5, end), (start, start), (0, 0)])

    def ticks(self, r):
        self.tick += r.randrange(1000)
        start, end = self.tick, self.tick + r.randrange(100000)
        return r.choice([(start, end)] * 12 + [(end + 1, start), (0, end), (start, 0), (0, 0)])


def metadata(b, r, w):
    b.record(2, b"devices", b"".join(
        sized(struct.pack("<III", chance(r, 0.5), d, 2) + r.randbytes(16)) for d in w.devices))
    b.record(2, b"queues", b"".join(
        sized(struct.pack("<IIIQ", d, q, 0, s)) for d, q, s in w.queues))
    b.record(2, b"executables", b"".join(
        sized(struct.pack("<IQIIQQ", chance(r, 0.3), e, 2, 0, r.randrange(1 << 64), 7))
        for e in w.executables))
    functions = b""
    for e, f in w.functions:
        name = text(r)
        functions += sized(struct.pack("<IQIIII3IIQQ", chance(r, 0.3), e, f, 1, 2, 3, 64, 1, 1,
                                       len(name), r.randrange(1 << 64), 1) + name)
    b.record(2, b"executable-functions", functions)
    b.record(2, b"command-buffers", b"".join(
        sized(struct.pack("<IQQQQII", 0, c, number(r, 200), 3, (1 << 64) - 1,
                          r.choice(w.devices), 0)) for c in w.buffers))
    operations = b""
    for i in range(r.randrange(12)):
        e, f = r.choice(w.functions)
        blocks = chance(r, 0.3)
        coordinates = (1, i) if blocks else (NONE, NONE)
        ends = (2, 3) if blocks else (NONE, NONE)
        operations += sized(struct.pack(
            "<IIIQIIQII3I3IQQQIIIIII", r.choice([2, 2, 2, 1, 3, 4, 5, 6, 7, 8, 9, 77]),
            64 if blocks else 4, i, r.choice(w.buffers), *coordinates, e, f, 3, 1, 2, 3, 4, 5, 6,
            number(r), number(r), number(r, 4096), 0, 1, *ends, 0, 0))
    b.record(2, b"command-operations", operations)


def clocks(b, r, w):
    for d in w.devices:
        flags = r.choice([15] * 6 + [3, 9, 1, 31, 0])
        for i in range(r.choice([0, 1, 2, 2, 3])):
            t, k = w.time + i * 10**7, w.tick + i * r.randrange(10**6, 10**8)
            b.record(2, b"clock-correlations", sized(struct.pack(
                "<IIIQQQQQqq", flags, d, 0, i + 1, k, t, t, 10**9, t - r.randrange(500),
                t + r.randrange(500))))


def dispatches(b, r, w):
    d, q, s = r.choice(w.queues)
    out = b""
    for i in range(r.randrange(14)):
        e, f = r.choice(w.functions)
        buffer = r.choice(w.buffers + [0])
        out += sized(struct.pack(
            "<IQQQQII3I3IQQ", chance(r, 0.5), i + 1, r.randrange(6), buffer, e,
            r.randrange(4) if buffer else NONE, f, 8, 1, 1, 64, 1, 1, *w.ticks(r)))
    b.record(2, b"dispatch-events", out, device=d, queue=q, stream=s, **loss(r))


def loss(r):
    if chance(r, 0.9):
        return {}
    return {"chunk_flags": 1, "dropped": r.randrange(100)}


def queue_events(b, r, w):
    out = b""
    for i in range(r.randrange(8)):
        d, q, s = r.choice(w.queues)
        start, ready = w.span(r)
        out += sized(struct.pack(
            "<IIIQqQQQQIIIIIIQq", r.randrange(13), 0, r.randrange(5), i + 1, start, r.randrange(6),
            r.choice(w.buffers + [0]), number(r), s, d, q, 1, 2, 0, r.randrange(5),
            number(r, 10000), ready))
    b.record(2, b"queue-events", out, **loss(r))


def queue_device_events(b, r, w):
    out = b""
    for i in range(r.randrange(8)):
        d, q, s = r.choice(w.queues)
        out += sized(struct.pack(
            "<IIIQQQQQQIIIIQQ", r.choice([3, 9, 10, 4]), 0, 0, i + 1, r.randrange(6),
            r.choice(w.buffers + [0]), r.randrange(5), s, number(r, 10000), d, q, 2, 0,
            *w.ticks(r)))
    b.record(2, b"queue-device-events", out, **loss(r))


def host_events(b, r, w):
    out = b""
    for i in range(r.randrange(14)):
        d, q, s = r.choice(w.queues)
        kind = r.choice([2, 2, 2, 3, 4, 9, 10])
        e, f = r.choice(w.functions) if kind == 2 else (0, NONE)
        buffer = r.choice(w.buffers + [0])
        out += sized(struct.pack(
            "<IIIQQQQQQIIII3I3IqqQQqII", kind, r.randrange(8), r.choice([0, NONE]), i + 1,
            r.randrange(6), buffer, e, number(r), s, d, q, r.randrange(4) if buffer else NONE, f,
            8, 2, 1, 1, 1, 1, *w.span(r), number(r, 100), number(r, 64) % (1 << 40),
            r.randrange(10**6), r.randrange(4), 0))
    b.record(2, b"host-execution-events", out, **loss(r))


def regions(b, r, w):
    out = b""
    for i in range(r.randrange(4)):
        d, q, s = r.choice(w.queues)
        numbers = [r.randrange(9) for _ in range(60)]
        start, end = w.span(r)
        body = struct.pack("<IQQQQII", r.randrange(16), i + 1, 1, 1, s, d, q)
        body += struct.pack("<IIiIIIIIII", *numbers[:7], *numbers[7:10])
        body += struct.pack("<III8II", *numbers[10:22])
        body += struct.pack("<qqqqqqqq", *numbers[22:28], start, end)
        body += struct.pack("<iIIIIiiiIIII", *numbers[28:40])
        out += sized(body)
    b.record(2, b"command-region-events", out)


def memory(b, r, w):
    out = b""
    for i in range(r.randrange(20)):
        d, q, _ = r.choice(w.queues)
        kind = r.choice(list(range(1, 13)) + [7, 8, 3, 5, 13])
        out += sized(struct.pack(
            "<IIIQqQQQQIIIIQQQQQQQQQII", kind, r.choice([0, 8, 8, 24, 25, 32, 40]),
            r.choice([0, 1, 3, NONE]), i + 1, w.time + i, r.randrange(1, 5), r.choice([0, 7, 9]),
            11, r.randrange(4), d, r.choice([q, q, NONE]), 0, 0, r.choice([50, 62]), 3,
            number(r), r.choice([0, 64, 128, 4096]), 16, *[r.randrange(10**6) for _ in range(4)],
            r.randrange(9), r.randrange(3)))
    b.record(2, b"memory-events", out, **loss(r))


def counters(b, r, w):
    for s in w.sets:
        name, n = text(r), r.randrange(1, 4)
        b.record(2, b"counter-sets", sized(struct.pack(
            "<IQIIII", 0, s, r.choice(w.devices), n, n, len(name)) + name))
        for c in range(n):
            block, counter = text(r), text(r)
            b.record(2, b"counters", sized(struct.pack(
                "<IIIQIIIIII", 1, r.randrange(5), 0, s, c, c, 1, len(block), len(counter), 3)
                + block + counter + b"des"))
        for i in range(r.randrange(5)):
            d, q, stream = r.choice(w.queues)
            e, f = r.choice(w.functions + [(0, NONE)])
            values = [number(r, 1000) for _ in range(n)]
            b.record(2, b"counter-samples", sized(struct.pack(
                "<IIIQQQQQQQQQIIIIII%dQ" % n, r.randrange(8), r.randrange(5), 0, i + 1, s, i, 2,
                r.choice(w.buffers), e, stream, *w.ticks(r), 1, f, d, q, n, 0, *values)),
                **loss(r))


def metrics(b, r, w):
    name = text(r)
    b.record(2, b"device-metric-sources", sized(struct.pack(
        "<IQIIIIII", 0, 5, 0, r.choice([0, 1, 2, 3, 9]), 1, 1, 2, len(name)) + name))
    for m, kind in ((3, 1), (1 << 63 | 5, 3), (4, 2)):
        b.record(2, b"device-metric-descriptors", sized(struct.pack(
            "<IQQIIIIII", 0, 5, m, r.randrange(12), kind, r.randrange(7), r.randrange(10), 1, 2)
            + b"mde"))
    for i in range(r.randrange(4)):
        start, end = w.span(r)
        values = [(3, r.randrange(1 << 64)), (4, r.randrange(1 << 64)),
                  (1 << 63 | 5, struct.unpack("<Q", struct.pack("<d", r.random() * 1e6))[0])]
        b.record(2, b"device-metric-samples", sized(struct.pack(
            "<IQQqqQQII", r.randrange(4), i, 5, start, end, 1, 2, 0, len(values))
            + b"".join(struct.pack("<QQII", m, v, 0, 0) for m, v in values)))


def others(b, r, w):
    if chance(r, 0.4):
        b.record(2, b"event-relationships", b"".join(sized(struct.pack(
            "<IQIIIIQQQQQ", r.randrange(6), i, r.randrange(10), r.randrange(10), 0, 0, 0, 1, 2, 3,
            4)) for i in range(3)))
    if chance(r, 0.3):
        b.record(2, b"executable-code-objects", sized(struct.pack(
            "<IQQQQQ", 1, w.executables[0], 1, 10, 2, 3) + b"0123456789"))
        b.record(2, b"executable-code-object-loads", sized(struct.pack(
            "<IQQqQ", 0, w.executables[0], 1, -5, 100)))
    if chance(r, 0.3):
        e, f = r.choice(w.functions)
        b.record(2, b"executable-traces", struct.pack(
            "<IIIIQQQQQQIIIIQ", 88, r.choice([1, 0, 7]), 3, 0, 1, 1, 1, 1, e, 0, 1, f, 0, 0, 6)
            + b"\x01\x02raw!")
    if chance(r, 0.2):
        b.record(2, b"something-new", b"?" * r.randrange(40))
    if chance(r, 0.1):
        b.record(9, b"other", b"!")


def well_formed(seed):
    r = random.Random(seed)
    b, w = Bundle(r), World(r)
    b.record(1, b"session")
    metadata(b, r, w)
    families = [clocks, dispatches, queue_events, queue_device_events, host_events, regions, memory,
                counters, metrics, others]
    for _ in range(r.randrange(1, 4)):
        for family in families:
            if chance(r, 0.6):
                # Descriptions of counters and metrics stand once: a second one would not count.
                if family in (counters, metrics):
                    families = [f for f in families if f is not family]
                family(b, r, w)
    b.record(3, b"session", status=r.choice([0] * 9 + [13, 99]))
    return b.bytes()


def damaged(seed):
    r = random.Random(seed)
    data = bytearray(well_formed(seed))
    how = r.randrange(4)
    if how == 0:
        return bytes(data[:r.randrange(len(data))])
    if how == 1:  # killed while it was written
        data[16:24] = bytes(8)
        return bytes(data[:r.randrange(24, len(data))])
    for _ in range(r.randrange(1, 4)):
        at = r.randrange(len(data))
        data[at] = r.randrange(256)
    return bytes(data + r.randbytes(r.randrange(50)) if how == 2 else data)


def bundle(seed):
    return damaged(seed) if seed % 4 == 3 else well_formed(seed)


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    os.makedirs(folder, exist_ok=True)
    for seed in range(first, first + count):
        with open(os.path.join(folder, f"gen-{seed}.ireeprof"), "wb") as f:
            f.write(bundle(seed))


if __name__ == "__main__":
    main()
