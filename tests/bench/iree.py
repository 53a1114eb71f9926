#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports on a large bundle of IREE, beside iree-profile in one run: time and peak memory.

usage: iree.py XPLANECTL IREE_PROFILE BUNDLE [--size MB] [--rounds N] [--only REPORT,...]

BUNDLE is repeated to SIZE: its metadata once, its events again and again, with ids and times of
their own.  Both programs take turns; the figures are the best of the rounds: seconds of the
processor, which a busy machine changes least, and the peak of memory.  Prints a table in Markdown.

The iree-profile of the package is a Python program that starts another one; to leave out the start
of Python (some 25 ms) name iree/_runtime_libs/iree-profile of the package.

With --zooms the build that XPLANECTL is of shows the trace, too: windows from a third of it down to a
millionth, by size of the answer; milliseconds until it is there, and of the daemon's processor.

With --tools only that build's tools are measured, on a daemon that knows nothing of the bundle:
op_profile, what follows it, and five tools at once (IREE_PROFILE is then not started).
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile

REPORTS = ["summary", "explain", "dispatch", "queue", "command", "memory", "executable",
           "statistics", "counter", "cat", "export"]
PREFIX = "application/vnd.iree.hal.profile."
# By chunk type: offsets of u64 ids of events, of submissions and allocations, and of times.
EVENTS = {
    "dispatch-events": (88, [8], [16], [72, 80]),
    "queue-events": (104, [16], [32, 48], [24, 96]),
    "queue-device-events": (96, [16], [24, 40], [80, 88]),
    "host-execution-events": (152, [16], [24, 48], [104, 112]),
    "command-region-events": (248, [8], [16], [136, 144, 168, 176, 184, 192]),
    "memory-events": (160, [16], [32, 56], [24]),
}


def records(data):
    """(offset, header length, content type, payload offset, length) of the records."""
    at = struct.unpack_from("<I", data, 8)[0]
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        header, kind, name = struct.unpack_from("<III", data, at + 56)
        content = data[at + header:at + header + kind].decode()
        yield at, content.removeprefix(PREFIX), at + header + kind + name, length
        at += length


class Repeated:
    """The events of a bundle, to be written again and again."""

    def __init__(self, data):
        self.data, self.events, self.front, self.back = data, [], [], []
        for at, content, payload, length in records(data):
            where = self.front
            if content in EVENTS:
                where = self.events
            elif struct.unpack_from("<H", data, at + 100)[0] == 3:
                where = self.back
            where.append((at, content, payload, length))
        self.spans = [1 + max(self.values(1) or [0]), 1 + max(self.values(2) or [0])]
        times = [t for t in self.values(3) if t > 0]
        self.spans.append(max(times) - min(times) + 1000 if times else 0)

    def values(self, column):
        found = []
        for at, content, payload, length in self.events:
            size = EVENTS[content][0]
            for item in range(payload, at + length, size):
                found += [struct.unpack_from("<q", self.data, item + o)[0]
                          for o in EVENTS[content][column]]
        return found

    def copy(self, k):
        """The k-th copy of all events, of which values that are 0 stay so."""
        out = bytearray()
        for at, content, payload, length in self.events:
            size, *columns = EVENTS[content]
            chunk = bytearray(self.data[at:at + length])
            for item in range(payload - at, length, size):
                for span, offsets in zip(self.spans, columns):
                    for offset in offsets:
                        v, = struct.unpack_from("<q", chunk, item + offset)
                        if v > 0:
                            struct.pack_into("<q", chunk, item + offset, v + k * span)
            out += chunk
        return out

    def write(self, path, size):
        take = lambda rows: b"".join(self.data[at:at + n] for at, _, _, n in rows)
        with open(path, "wb") as f:
            f.write(self.data[:24] + take(self.front))
            k = 0
            while f.tell() < size:
                f.write(self.copy(k))
                k += 1
            f.write(take(self.back))
            length = f.tell()
            f.seek(8)
            f.write(struct.pack("<I", 24))
            f.seek(16)
            f.write(struct.pack("<Q", length))


def measure(argv):
    """(seconds of the processor, peak MiB) of a program whose output is thrown away."""
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with child.stderr:
        said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(argv)}: status {child.returncode}: {said.decode()[-300:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def commands(arguments, report, bundle):
    form = "ireeperf-jsonl" if report == "export" else "jsonl"
    ours = [arguments.xplanectl, "iree", report, bundle, "--format", form]
    return ours, [arguments.iree_profile, f"--format={form}", report, bundle]


def best(samples):
    return tuple(min(column) for column in zip(*samples))


def compare(arguments, bundle):
    print("| report | xplanectl, s | iree-profile, s | times faster | xplanectl, MiB | "
          "iree-profile, MiB | of its memory |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for report in arguments.only.split(",") if arguments.only else REPORTS:
        samples = [[], []]
        for _ in range(arguments.rounds):
            for i, argv in enumerate(commands(arguments, report, bundle)):
                samples[i].append(measure(argv))
        (ours, our_peak), (its, its_peak) = best(samples[0]), best(samples[1])
        print(f"| {report} | {ours:.3f} | {its:.3f} | {its / ours:.1f} | {our_peak:.1f} | "
              f"{its_peak:.1f} | {100 * our_peak / its_peak:.0f}% |", flush=True)


SIZES = [0, 256 << 10, 1 << 20, sys.maxsize]  # bytes of answers, between which a row of zooms is


def serve(build, bundle, folder):
    """A daemon that has not seen the bundle, the only host of its only session."""
    # Here, as the peaks that are measured begin with what this program has.
    from pathlib import Path

    from peers import HOST, SESSION, Xplaned

    folder = Path(tempfile.mkdtemp(dir=folder))
    run = folder / "logdir/plugins/profile" / SESSION
    run.mkdir(parents=True)
    os.link(bundle, run / f"{HOST}.ireeprof")
    return Xplaned(Path(build), folder, run.parents[2], folder / "state", http="127.0.0.1:0")


def zoom(build, bundle, folder, n=300):
    import json
    from statistics import median

    import viewer

    server = serve(build, bundle, folder)
    try:
        wire = server.wire()
        first = wire.get(viewer.trace_path())
        span = json.loads(bytes(first.body))["fullTimespan"][1]
        got = [wire.get(path) for path in viewer.windows(span, n, 0)]
    finally:
        server.stop()
    print(f"\n{n} zooms; the first answer: {first.cpu_ms / 1e3:.1f} s of the processor\n")
    print("| answers, KB | zooms | ms, p50 (goal < 2) | ms, p95 | processor, ms, p50 | p95 |\n" + "| --- " * 6 + "|")
    for least, most in zip(SIZES, SIZES[1:]):
        ms, cpu = ([getattr(a, key) for a in got if least <= a.size < most] for key in ("ms", "cpu_ms"))
        if ms:
            cells = [median(ms), viewer.percentile(ms, 0.95), median(cpu), viewer.percentile(cpu, 0.95)]
            print(f"| from {least >> 10} | {len(ms)} | " + " | ".join(f"{c:.2f}" for c in cells) + " |")


AT_ONCE = ["op_profile", "framework_op_stats", "kernel_stats", "memory_profile", "trace_viewer@"]


def figure(server, name):
    """The value of a figure of /metrics."""
    body = bytes(server.get("/metrics").body).decode()
    return next(int(line.split()[1]) for line in body.splitlines() if line.startswith(name + " "))


def ask_at_once(server, tools):
    """(ms until the last answer, ms of the daemon's processor) of requests on connections of their own."""
    import threading
    import time

    from peers import HOST, tool_query

    wires = [server.wire() for _ in tools]
    threads = [threading.Thread(target=w.get, args=(tool_query(t, HOST),)) for w, t in zip(wires, tools)]
    begin, cpu = time.perf_counter(), server.cpu_seconds()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return (time.perf_counter() - begin) * 1e3, (server.cpu_seconds() - cpu) * 1e3


def first_answers(build, bundle, folder, rounds):
    rows = {"op_profile, first": ["op_profile"], "op_profile, again": ["op_profile"],
            "framework_op_stats, after it": ["framework_op_stats"],
            "trace_viewer@, after these": ["trace_viewer@"]}
    found = {name: [] for name in [*rows, f"{len(AT_ONCE)} tools at once, first"]}
    imports = []
    for _ in range(rounds):
        for steps in (rows, {f"{len(AT_ONCE)} tools at once, first": AT_ONCE}):
            server = serve(build, bundle, folder)
            try:
                for name, tools in steps.items():
                    found[name].append(ask_at_once(server, tools))
                imports.append(figure(server, "xplaned_imports_total"))
            finally:
                server.stop()
    print(f"imports of each daemon: {sorted(set(imports))}\n")
    print("| answer | ms | processor, ms |\n| --- | ---: | ---: |")
    for name, samples in found.items():
        print("| " + " | ".join([name, *(f"{v:.1f}" for v in best(samples))]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("xplanectl", "iree_profile", "bundle"):
        parser.add_argument(name)
    parser.add_argument("--size", type=int, default=200, metavar="MB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="these reports")
    parser.add_argument("--zooms", action="store_true", help="zooms of the trace after them")
    parser.add_argument("--tools", action="store_true", help="only first and further answers of tools")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large = os.path.join(folder, "large.ireeprof")
        with open(arguments.bundle, "rb") as f:
            Repeated(f.read()).write(large, arguments.size * 1000 * 1000)
        build = os.path.join(os.path.dirname(arguments.xplanectl), "..")
        if arguments.tools:
            first_answers(build, large, folder, arguments.rounds)
            return
        compare(arguments, large)
        if arguments.zooms:
            zoom(build, large, folder)


main()
