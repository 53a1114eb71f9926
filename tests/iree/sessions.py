#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles of two sessions that give the same ids to other things: executables, command buffers and
their operations, devices, clocks, counters, metrics, allocations, submissions.

usage: sessions.py XPLANECTL

Reports of ours and all traces tell them apart; rows that IREE has, too, are IREE's: the first name.
"""
import json
import random
import struct
import subprocess
import sys
import tempfile

import generate
from generate import NONE, sized
from traces import BEGIN, COUNTER, Trace

SECOND = 10**9


class Session:
    """What one session writes.  A tick of its device lasts `rate` nanoseconds."""

    def __init__(self, tag, at, rate, workers, device=0, number=1):
        self.tag, self.at, self.rate, self.workers = tag, at, rate, workers
        self.device, self.number = device, number

    def record(self, b, kind, suffix, payload=b"", **k):
        b.record(kind, suffix, payload, name=b"hal-" + self.tag.encode(), session=self.number,
                 header_length=104, **k)

    def text(self, text):
        return text.replace("?", self.tag).encode()

    def begin(self, b):
        self.record(b, 1, b"session")

    def devices(self, b):
        uuid = self.text("uuid of ? ......")[:16].ljust(16, b".")
        self.record(b, 2, b"devices", sized(struct.pack("<III", 1, self.device, 1) + uuid))
        self.record(b, 2, b"queues", sized(struct.pack("<IIIQ", self.device, 0, 0, 7)))

    def metadata(self, b):
        name = self.text("?_dispatch_0_matmul_4x4")
        self.record(b, 2, b"executables", sized(struct.pack("<IQIIQQ", 0, 1, 1, 0, 0, 0)))
        self.record(b, 2, b"executable-functions", sized(struct.pack(
            "<IQIIII3IIQQ", 0, 1, 0, 0, 0, 0, 1, 1, 1, len(name), 0, 0) + name))
        self.record(b, 2, b"command-buffers", sized(struct.pack(
            "<IQQQQII", len(self.tag), 1, 128, 3, 1, self.device, 0)))
        self.record(b, 2, b"command-operations", sized(struct.pack(
            "<IIIQIIQII3I3IQQQIIIIII", 2, 0, 0, 1, NONE, NONE, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0,
            0, 0, NONE, NONE, 0, 0)))
        for i, names in enumerate((("set-?", "B?", "?-cycles"), ("both", "B", "both-cycles"))):
            group, block, counter = map(self.text, names)
            self.record(b, 2, b"counter-sets", sized(struct.pack(
                "<IQIIII", 0, 1 + i, self.device, 1, 1, len(group)) + group))
            self.record(b, 2, b"counters", sized(struct.pack(
                "<IIIQIIIIII", 1, 1, self.device, 1 + i, 0, 0, 1, len(block), len(counter), 0)
                + block + counter))
        source, metric = self.text("source-?"), self.text("metric.?")
        self.record(b, 2, b"device-metric-sources", sized(struct.pack(
            "<IQIIIIII", 0, 1, self.device, 1, 1, 1, 1, len(source)) + source))
        self.record(b, 2, b"device-metric-descriptors", sized(struct.pack(
            "<IQQIIIIII", 0, 1, 1 << 32, 1, 2, 1, 1, len(metric), 0) + metric))

    def clocks(self, b):
        for i in range(2):
            ns = self.at + i * SECOND
            self.record(b, 2, b"clock-correlations", sized(struct.pack(
                "<IIIQQQQQqq", 15, self.device, 0, i + 1, 1000 + i * SECOND // self.rate, ns, ns,
                SECOND, ns, ns)))

    def events(self, b):
        at, where = self.at, {"device": self.device, "queue": 0, "stream": 7}
        # Dispatches of the device, 100 ticks each.
        self.record(b, 2, b"dispatch-events", b"".join(sized(struct.pack(
            "<IQQQQII3I3IQQ", 0, i, 1, 1, 1, 0, 0, 4, 1, 1, 1, 1, 1, 1000 + i * 1000,
            1100 + i * 1000)) for i in (1, 2)), **where)
        # An execution of 1000 ns, and its dispatch of 600 ns within it.
        execute, dispatch = (at + 5000, at + 6000), (at + 5200, at + 5800)
        self.record(b, 2, b"host-execution-events", b"".join(sized(struct.pack(
            "<IIIQQQQQQIIII3I3IqqQQqII", kind, 5, 0, i + 1, 1, 1, e, 0, 7, self.device, 0, index, f,
            4, 1, 1, 1, 1, 1, *span, 0, 4, 600 * self.workers // 2, 1, 0))
            for i, (kind, e, index, f, span) in enumerate((
                (2, 1, 0, 0, dispatch), (3, 0, NONE, NONE, execute)))))
        self.record(b, 2, b"queue-events", b"".join(sized(struct.pack(
            "<IIIQqQQQQIIIIIIQq", 3, 0, 1, i, at + 100 * i, i, 1, 0, 7, self.device, 0, 1, 1, 0, 1,
            8, at + 100 * i + 50)) for i in (1, 2, 3)))
        self.record(b, 2, b"command-region-events", sized(
            struct.pack("<IQQQQII", 0, 1, 1, 1, 7, self.device, 0) + bytes(88)
            + struct.pack("<6qqq", *[0] * 6, at, at + 10) + struct.pack("<iIIIIiiiIIII", 0, 0, 0, 0,
                                                                   self.workers, *[0] * 7)))
        for i in (1, 2):
            self.record(b, 2, b"counter-samples", sized(struct.pack(
                "<IIIQQQQQQQQQIIIIIIQ", 7, 1, 0, i, i, 1, 1, 1, 1, 7, 2000, 2100, NONE, 0,
                self.device, 0, 1, 0, 40 + i)))
        self.record(b, 2, b"device-metric-samples", sized(struct.pack(
            "<IQQqqQQII", 0, 1, 1, at, at + 10, 1, 2, self.device, 1)
            + struct.pack("<QQII", 1 << 32, 77, 0, 0)))

    def memory(self, b, kinds):
        self.record(b, 2, b"memory-events", b"".join(sized(struct.pack(
            "<IIIQqQQQQIIIIQQQQQQQQQII", kind, 0, NONE, i + 1, self.at + i, 1, 0, 0, 1, self.device,
            0, 0, 0, 0, 0, 0, 100, 16, 0, 0, 0, 0, 0, 0)) for i, kind in enumerate(kinds)))

    def end(self, b):
        self.record(b, 3, b"session")


def write(steps):
    """A bundle: functions that are called with it."""
    b = generate.Bundle(random.Random(1))
    b.header_length = 24
    for step in steps:
        step(b)
    f = tempfile.NamedTemporaryFile(suffix=".ireeprof")
    f.write(b.bytes())
    f.flush()
    return f


def after_each_other(late=False):
    one, two = Session("one", SECOND, 1, 2), Session("two", 9 * SECOND, 2, 8)
    steps = []
    for s, kinds in ((one, (7,)), (two, (7, 8))):
        events = [s.clocks, s.events, lambda b, s=s, kinds=kinds: s.memory(b, kinds)]
        # A long record: the data that follows it is read in another way.
        gap = [lambda b, s=s: s.record(b, 2, b"something-new", bytes(70000))]
        steps += [s.begin, s.devices]
        steps += (events + [s.metadata] if late else [s.metadata] + events) + gap + [s.end]
    return write(steps)


def at_once():
    """Sessions of two devices; both have the number 1 and the same name."""
    a, z = Session("one", SECOND, 1, 2), Session("two", 9 * SECOND, 2, 8, device=1)
    for s in (a, z):
        s.record = lambda b, kind, suffix, payload=b"", **k: b.record(
            kind, suffix, payload, name=b"hal", session=1, header_length=104, **k)
    return write([a.begin, a.devices, a.metadata, z.begin, z.devices, z.metadata, a.clocks,
                  z.clocks, z.events, a.events, a.end, z.end])


def without_clock(same_device):
    one, two = Session("one", SECOND, 1, 2), Session("two", 9 * SECOND, 2, 8)
    if same_device:
        two.devices = one.devices
    steps = []
    for s in (one, two):
        steps += [s.begin, s.devices, s.metadata] + [one.clocks] * (s is one) + [s.events, s.end]
    return write(steps)


class Asked:
    def __init__(self, xplanectl, bundle):
        self.xplanectl, self.bundle = xplanectl, bundle.name

    def run(self, *args):
        done = subprocess.run([self.xplanectl, *args], capture_output=True, check=False,
                              timeout=120)
        assert done.returncode == 0, (args, done.returncode, done.stderr)
        return done.stdout

    def rows(self, report, kind=None):
        lines = self.run("iree", report, self.bundle, "--format", "jsonl").splitlines()
        return [r for r in map(json.loads, lines) if kind is None or r["type"] == kind]

    def trace(self):
        return Trace(self.run("iree", "export", self.bundle, "--format", "perfetto"))


def function(tag):
    return f"{tag}_dispatch_0_matmul_4x4"


def check_functions(x):
    found = {(r["key"], r["timing_source"]): (r["dispatches"], r["total_ns"], r["executables"])
             for r in x.rows("functions")}
    assert found == {(function("one"), "device_dispatch_event"): (2, 200, 1),
                     (function("two"), "device_dispatch_event"): (2, 400, 1),
                     (function("one"), "host_execution_event"): (1, 600, 1),
                     (function("two"), "host_execution_event"): (1, 600, 1)}, found
    assert {r["key"] for r in x.rows("dispatch", "dispatch_group")} <= {function("one")}


def check_self(x, devices):
    rows = x.rows("self")
    found = sorted((r["key"], r["total_ns"], r["self_ns"], r["workers"], r["worker_utilization"])
                   for r in rows if r["op"] == "dispatch")
    assert found == [(function("one"), 600, 600, 2, 0.5), (function("two"), 600, 600, 8, 0.5)], found
    found = [(r["spans"], r["total_ns"], r["self_ns"]) for r in rows if r["op"] == "execute"]
    assert found == [(2 // devices, 2000 // devices, 800 // devices)] * devices, found


def check_latency(x, devices):
    """An execution begins with the first dispatch of the device, and ends with the host's."""
    rows = [r for r in x.rows("latency") if r["part"] == "ready_to_start"]
    assert sum(r["total_ns"] for r in rows) == 1000 - 150 + 2000 - 150, rows
    assert [r["valid"] for r in rows] == [2 // devices] * devices, rows


def check_iterations(x):
    found = sorted((r["session_index"], r["iterations"], r["total_ns"])
                   for r in x.rows("iterations", "iterations"))
    assert found == [(0, 3, 200), (1, 3, 200)], found


def check_usage(x):
    usage, = x.rows("usage", "memory_usage")
    left, = x.rows("usage", "memory_open_at_end")
    assert (usage["allocations"], usage["peak_bytes"], usage["open_at_end_bytes"]) == (2, 200, 100)
    assert (left["bytes"], left["since_host_time_ns"]) == (100, SECOND), left


def check_sessions(x, names):
    rows = x.rows("sessions")
    assert [r["name"] for r in rows] == names, rows
    assert len({(r["chunks"], r["records"]) for r in rows}) <= 2 and rows[0]["records"] > 20, rows


def check_trace(x):
    t = x.trace()
    slices = {name for _, kind, _, name, _, _ in t.events if kind == BEGIN}
    assert {function("one"), function("two"), f"execute cb#1: {function('one')}",
            f"execute cb#1: {function('two')}"} <= slices, slices
    # Separate for each: device with UUID, clock, command buffer, operation.
    for tag, rate, at in (("one", 1, SECOND), ("two", 2, 9 * SECOND)):
        uuid = f"uuid of {tag} ......"[:16].encode().hex()
        mine = [e for e in t.events if uuid in e[2]]
        times = {e[0] + t.first for e in mine if e[1] == BEGIN and e[2].endswith("/ dispatch")}
        assert times == {at + rate * 1000, at + rate * 2000}, (tag, times)
        names = {e[3] for e in mine if e[1] == BEGIN}
        assert function(tag) in names and not any("two" in n for n in names if tag == "one"), names
        instants = {e[3] for e in mine if e[2].endswith("command buffer operations")}
        assert instants == {f"cb#1 op0 dispatch {function(tag)}"}, instants
        execute, = [dict(e[5]) for e in mine if e[1] == BEGIN and e[3].startswith("execute")]
        assert execute["iree_command_buffer_flags"] == len(tag)
        counters = {e[2].split(" / ", 2)[-1]: e[4] for e in mine if e[1] == COUNTER}
        counters.pop("queue[0] stream=7 / queue allocation bytes", None)
        assert counters == {
            f"dispatch-scoped counters / set-{tag} / B{tag}.{tag}-cycles": 41,
            "dispatch-scoped counters / both / B.both-cycles": 42,
            f"device metrics / metric.{tag}": 77}, counters
        sampled = [dict(e[5]) for e in mine if e[1] == COUNTER and "metric." in e[2]]
        assert [s["iree_metric_source_name"] for s in sampled] == [f"source-{tag}"], sampled
        args = [dict(e[5]) for e in mine if e[1] == BEGIN and e[2].endswith("/ dispatch")]
        assert {a["duration_ns"] for a in args} == {100 * rate}, args
    for flow in t.flows:
        assert len({time + t.first > 5 * SECOND for time, _, _ in flow}) == 1, flow
    assert len(t.flows) >= 2


def check_other_tools(x):
    chrome = json.loads(x.run("iree", "export", x.bundle, "--format", "chrome"))["traceEvents"]
    names = [e.get("name") for e in chrome if e["ph"] == "B"]
    assert [names.count(function(t)) for t in ("one", "two")] == [3, 3], names
    for tool in ("framework_op_stats", "op_profile", "trace_viewer", "kernel_stats"):
        text = x.run("analyze", tool, x.bundle).decode()
        assert function("one") in text and function("two") in text, (tool, text[:2000])
    planes = x.run("sql", x.bundle, "SELECT count(DISTINCT plane) FROM events WHERE plane LIKE "
                   "'/device%'", "--format", "csv").decode()
    assert planes.split()[-1] == "2", planes
    text = x.run("compare", x.bundle, x.bundle).decode()
    assert function("one") in text and function("two") in text, text


def check_rows(x):
    """Exported rows say which session each chunk is of, too."""
    with tempfile.NamedTemporaryFile(suffix=".ireeperf.jsonl") as f:
        f.write(x.run("iree", "export", x.bundle))
        f.flush()
        again = Asked(x.xplanectl, f)
        for report in ("functions", "self", "latency", "iterations", "usage"):
            assert again.rows(report) == x.rows(report), report
        assert again.trace().events == x.trace().events


def check_without_clock(xplanectl):
    """A session that has no clock has that of its device's before, and none of another device's."""
    for same_device, unit, slices in ((True, "ns", 4), (False, "device_tick", 2)):
        with without_clock(same_device) as bundle:
            x = Asked(xplanectl, bundle)
            found = {r["key"]: r["duration_unit"] for r in x.rows("functions")
                     if r["timing_source"] == "device_dispatch_event"}
            assert found == {function("one"): "ns", function("two"): unit}, found
            events = x.trace().events
            assert sum(e[1] == BEGIN and "/ dispatch" in e[2] for e in events) == slices


def main():
    xplanectl, failed = sys.argv[1], 0
    cases = {"after each other": (after_each_other(), 1),
             "described late": (after_each_other(late=True), 1),
             "at once": (at_once(), 2)}
    for case, (bundle, devices) in cases.items():
        x = Asked(xplanectl, bundle)
        checks = [check_functions, lambda x: check_self(x, devices),
                  lambda x: check_latency(x, devices), check_trace, check_other_tools,
                  check_iterations, check_rows]
        names = ["hal", "hal"] if devices == 2 else ["hal-one", "hal-two"]
        checks += [lambda x: check_sessions(x, names)] + ([check_usage] if devices == 1 else [])
        for check in checks:
            try:
                check(x)
            except AssertionError as e:
                failed += 1
                print(f"FAILED {case}: line {e.__traceback__.tb_next.tb_lineno}: {str(e)[:3000]}")
        bundle.close()
    try:
        check_without_clock(xplanectl)
    except AssertionError as e:
        failed += 1
        print(f"FAILED without a clock: {e}")
    print(f"{len(cases)} bundles, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
