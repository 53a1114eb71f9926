#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles of shapes that captures seldom have, against numbers counted by hand.

usage: shapes.py XPLANECTL
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import generate
from generate import NONE, sized

DISPATCH, EXECUTE = 2, 3  # operations of queues


class Maker:
    """A bundle of one session in which `devices` have two queues each; steps add to it."""

    def __init__(self, devices=1):
        self.b = generate.Bundle(random.Random(1))
        self.b.header_length = 24
        self.record(1, b"session")
        self.record(2, b"devices", b"".join(
            sized(struct.pack("<III", 1, d, 2) + bytes([d + 1]) * 16) for d in range(devices)))
        self.record(2, b"queues", b"".join(
            sized(struct.pack("<IIIQ", d, q, 0, d << 32 | q)) for d in range(devices) for q in (0, 1)))

    def record(self, kind, suffix, payload=b"", **k):
        self.b.record(kind, suffix, payload, header_length=104, **k)
        return self

    def functions(self, *names):
        return self.record(2, b"executables", sized(struct.pack("<IQIIQQ", 0, 1, len(names), 0, 0, 0))).record(
            2, b"executable-functions", b"".join(sized(struct.pack(
                "<IQIIII3IIQQ", 0, 1, i, 0, 0, 0, 1, 1, 1, len(n), 0, 0) + n) for i, n in enumerate(names)))

    def clock(self, device, *samples):
        """Samples are (tick, time)."""
        return self.record(2, b"clock-correlations", b"".join(sized(struct.pack(
            "<IIIQQQQQqq", 15, device, 0, i, tick, ns, ns, 10**9, ns, ns))
            for i, (tick, ns) in enumerate(samples)))

    def dispatches(self, device, queue, *ticks):
        """Of the first function."""
        return self.record(2, b"dispatch-events", b"".join(sized(struct.pack(
            "<IQQQQII3I3IQQ", 0, i + 1, i + 1, 0, 1, NONE, 0, 4, 1, 1, 8, 1, 1, start, end))
            for i, (start, end) in enumerate(ticks)), device=device, queue=queue, stream=device << 32 | queue)

    def submissions(self, device, queue, *times, waits=0, ready=10):
        return self.record(2, b"queue-events", b"".join(sized(struct.pack(
            "<IIIQqQQQQIIIIIIQq", EXECUTE, 0, 0, i + 1, ns, i + 1, 1, 0, device << 32 | queue, device,
            queue, waits, 1, 0, 1, 0, ready and ns + ready)) for i, ns in enumerate(times)))

    def spans(self, *spans):
        """Of functions in turn, on the host."""
        return self.record(2, b"host-execution-events", b"".join(sized(struct.pack(
            "<IIIQQQQQQIIII3I3IqqQQqII", DISPATCH, 0, 0, i + 1, 1, 0, 1, 0, 0, 0, 0, NONE, i,
            4, 1, 1, 1, 1, 1, start, end, 0, 4, 100, 1, 0)) for i, (start, end) in enumerate(spans)))

    def memory(self, *events):
        """Reservations of a pool: (time, allocation, bytes)."""
        return self.record(2, b"memory-events", b"".join(sized(struct.pack(
            "<IIIQqQQQQIIIIQQQQQQQQQII", 3, 8, 0, i + 1, ns, allocation, 7, 0, 0, 0, NONE, 0, 0, 50, 3,
            0, n, 16, 0, 0, 0, 0, 0, 0)) for i, (ns, allocation, n) in enumerate(events)))

    def bytes(self):
        return self.record(3, b"session").b.bytes()


class Shapes(unittest.TestCase):
    def ask(self, maker, *command):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "made.ireeprof"
            path.write_bytes(maker.bytes())
            done = subprocess.run([Shapes.xplanectl, *[path if w is None else w for w in command]],
                                  capture_output=True, timeout=60, check=False)
        self.err = done.stderr.decode()
        self.assertEqual(done.returncode, 0, self.err)
        return done.stdout.decode()

    def rows(self, maker, report):
        return [json.loads(line) for line in
                self.ask(maker, "iree", report, None, "--format", "jsonl").splitlines()]

    def times_of_session(self, maker):
        row, = self.rows(maker, "sessions")
        return row["first_host_time_ns"], row["last_host_time_ns"]

    def test_times_of_sessions(self):
        """From the first time of the host to the last, whatever has it."""
        self.assertEqual(self.times_of_session(Maker()), (0, 0))
        self.assertEqual(self.times_of_session(Maker().memory((1000, 1, 64), (3000, 2, 64))), (1000, 3000))
        self.assertEqual(self.times_of_session(Maker().submissions(0, 0, 5000, 9000)), (5000, 9010))
        made = Maker().functions(b"f").submissions(0, 0, 5000).spans((5100, 7000)).memory((4000, 1, 64))
        self.assertEqual(self.times_of_session(made), (4000, 7000))

    def test_devices(self):
        """A device counts once, however many of its queues are used, or none."""
        made = Maker(2).functions(b"m_dispatch_0_matmul").dispatches(0, 0, (1000, 2000)).dispatches(
            0, 1, (1000, 3000)).dispatches(1, 0, (1000, 4000))
        for _ in range(2):
            side = json.loads(self.ask(made, "compare", None, None, "--format", "json"))["a"]
            self.assertEqual(side["devices"], 2)
            made.submissions(0, 0, 100, 200).submissions(0, 1, 100).submissions(1, 0, 100)

    def ops(self, maker):
        table = json.loads(self.ask(maker, "analyze", "framework_op_stats", None))[0]
        names = [c["id"] for c in table["cols"]]
        rows = [dict(zip(names, (c["v"] for c in row["c"]))) for row in table["rows"]]
        return {r["operation"]: (r["type"], r["total_time"]) for r in rows
                if r["host_or_device"] == "Device" and r["operation"] != "IDLE"}

    def test_names(self):
        """Names of all scripts are ops of their own, and types what of ASCII stands there."""
        made = Maker().functions("日_dispatch_0_größe".encode(), "本_dispatch_0_größe".encode(),
                                 "a_dispatch_1_matmul_日本".encode(), b"a_dispatch_2_fooBar_4x4",
                                 b"a_dispatch_3_Foo", b"a$b_dispatch_4_x")
        made.spans(*[(1000 * i, 1000 * i + 100 * (i + 1)) for i in range(6)])
        self.assertEqual(self.ops(made), {
            "日/日_dispatch_0_größe": ("dispatch", 0.1), "本/本_dispatch_0_größe": ("dispatch", 0.2),
            "a/a_dispatch_1_matmul_日本": ("matmul", 0.3), "a/a_dispatch_2_fooBar_4x4": ("foobar", 0.4),
            "a/a_dispatch_3_Foo": ("foo", 0.5), "a_b/a_b_dispatch_4_x": ("x", 0.6)})

    def test_names_that_begin_alike(self):
        """However late names differ, they are of two ops; a NUL ends none."""
        long, odd = b"m_dispatch_0_matmul_" + b"4x" * 5000, b"z_dispatch_0_conv_4\0"
        made = Maker().functions(long + b"1", long + b"2", odd + b"1", odd + b"2")
        made.spans(*[(1000 * i, 1000 * i + 100 * (i + 1)) for i in range(4)])
        ops = self.ops(made)
        self.assertEqual(sorted(ops.values()), [("conv", 0.3), ("conv", 0.4), ("matmul", 0.1), ("matmul", 0.2)])
        self.assertLess(max(map(len, ops)), 250)
        words = [b"m_dispatch_0_" + b"add_" * 5000 + bytes([c]) for c in b"abcdefgh"]
        made = Maker().functions(*words).spans(*[(1000 * i, 1000 * i + 100 * (i + 1)) for i in range(8)])
        ops = self.ops(made)
        self.assertEqual((len(ops), len({kind for kind, _ in ops.values()})), (8, 1), ops)  # of one type

    def test_ready(self):
        """An operation is ready when it says so, else when it was submitted, if it waits for nothing."""
        for waits, ready, found in ((1, 10, [(2, 20)]), (0, 0, [(2, 0)]), (1, 0, [])):
            made = Maker().functions(b"f").submissions(0, 0, 100, 200, waits=waits, ready=ready)
            self.assertEqual([(r["valid"], r["total_ns"]) for r in self.rows(made, "latency")
                              if r["part"] == "submit_to_ready"], found)

    def test_unknown(self):
        """What is not known is null: workers without regions, what is busy within a device."""
        host = Maker().functions(b"f").spans((1000, 2000))
        device = Maker().functions(b"f").clock(0, (1000, 10000), (2000, 20000)).dispatches(0, 0, (1100, 1200))
        (on_host,), (on_device,) = self.rows(host, "functions"), self.rows(device, "functions")
        self.assertEqual((on_host["total_ns"], on_host["parallelism"]), (1000, 0.1))  # 100 ns of tiles
        self.assertEqual((on_device["total_ns"], on_device["parallelism"]), (1000, None))
        own, = self.rows(host, "self")
        self.assertEqual((own["tile_count"], own["workers"], own["worker_utilization"]), (4, 0, None))

    def test_nothing(self):
        """A bundle without events is no empty profile, and its tables have no rows."""
        for made in (Maker(), Maker().functions(b"f").dispatches(0, 0, (1000, 2000))):
            for tool in ("framework_op_stats", "kernel_stats", "op_profile", "memory_profile", "trace_viewer"):
                json.loads(self.ask(made, "analyze", tool, None))
                self.assertEqual(self.err, "", tool)
            memory = json.loads(self.ask(made, "analyze", "memory_profile", None))
            self.assertEqual(memory["memoryProfilePerAllocator"], {})
            self.assertEqual(self.ops(made), {})


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    Shapes.xplanectl = os.path.abspath(sys.argv[1])
    result = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False, verbosity=2).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
