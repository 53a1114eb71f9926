#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool `launches` against code that is slow and simple, on real profiles of GPUs.

usage: test_launches.py XPLANECTL XPLANED
"""
import json
import shutil
import statistics

import events_oracle as oracle
from harness import DATA, Case, main

ACCELERATED = DATA.parents[2] / "accel" / "plugins" / "profile"
NOT_STREAMS = ("Steps", "XLA Modules", "XLA Ops", "_counters_")
POINTS = 7


def lines_of(xspace):
    """(plane's name, line's id, line's name, events)."""
    for number, plane in oracle.fields(xspace):
        parts = list(oracle.fields(plane)) if number == 1 else []
        name = next((oracle.text(v) for n, v in parts if n == 2), "")
        events, stats = oracle.names(v for n, v in parts if n == 4), oracle.names(v for n, v in parts if n == 5)
        for inside in (list(oracle.fields(v)) for n, v in parts if n == 3):
            first = {k: v for k, v in reversed(inside)}
            begin = oracle.signed(first.get(3, 0))
            yield (name, oracle.signed(first.get(1, 0)), oracle.text(first.get(2, b"")),
                   [oracle.Event(v, begin, events, stats) for k, v in inside if k == 4])


class Host:
    """Ops by stream as (name, begin, end, launch as (begin, end) or None), and the window of all."""

    def __init__(self, path):
        launches, self.streams = {}, {}
        for plane, number, line, events in lines_of(path.read_bytes()):
            if plane == "/host:CPU":
                for e in events:
                    key = e.stats.get("correlation_id")
                    if key is not None and (key not in launches or e.begin_ps < launches[key][0]):
                        launches[key] = (e.begin_ps, e.end_ps)
            derived = -559038737 <= number <= -559038737 + 405
            if plane.startswith("/device:GPU:") and not derived and line not in NOT_STREAMS and events:
                self.streams[plane, line] = events
        self.streams = {key: [(e.name, e.begin_ps, e.end_ps, launches.get(e.stats.get("correlation_id"))) for e in events]
                        for key, events in self.streams.items()}
        spans = [t for ops in self.streams.values() for op in ops for t in (op[1:3], op[3]) if t]
        self.begin, self.end = min(b for b, _ in spans), max(e for _, e in spans)

    def queue(self, key, begin, end):
        """Least, mean and greatest number of ops that wait, of all pieces between two changes."""
        waits = [(launch[0], at) for _, at, _, launch in self.streams[key] if launch and launch[0] < at]
        changes = sorted({begin, end, *(t for w in waits for t in w if begin < t < end)})
        lengths = [(b - a, sum(f <= a < t for f, t in waits)) for a, b in zip(changes, changes[1:])]
        return (min(n for _, n in lengths), sum(t * n for t, n in lengths) / (end - begin), max(n for _, n in lengths))


class Launches(Case):
    def tables(self, *arguments):
        status, out, err = self.ask("analyze", "launches", *arguments, "--option", f"points={POINTS}")
        self.assertEqual(status, 0, err)
        return [[dict(zip([c["id"] for c in t["cols"]], [c.get("v") for c in r["c"]])) for r in t["rows"]] for t in json.loads(out)]

    def check_kernels(self, rows, hosts):
        """hosts: {name: Host}"""
        ops = {}
        for host, h in hosts.items():
            for op in (op for stream in h.streams.values() for op in stream):
                ops.setdefault(op[0], {}).setdefault(host, []).append(op)
        self.assertEqual({r["kernel_name"] for r in rows}, set(ops))
        for r in rows:
            of = ops[r["kernel_name"]]
            every = [op for list_of in of.values() for op in list_of]
            times, known = [e - b for _, b, e, _ in every], [(b, e, l) for _, b, e, l in every if l]
            self.assertEqual((r["occurrences"], r["launched"], r["hosts"]), (len(every), len(known), len(of)))
            self.assertEqual(r["shorter_than_launch"], sum(e - b < l[1] - l[0] for b, e, l in known))
            expected = {"total": sum(times), "avg": statistics.mean(times), "min": min(times), "max": max(times)}
            got = {k: r[k + "_time"] for k in expected}
            for what, values in (("launch", [l[1] - l[0] for _, _, l in known]), ("delay", [max(0, b - l[1]) for b, _, l in known])):
                expected.update({"avg_" + what: statistics.mean(values), "max_" + what: max(values)} if known else {})
                got.update({k: r[k] for k in ("avg_" + what, "max_" + what)} if known else {})
                self.assertEqual(r["avg_" + what] is None, not known)
            means = {host: statistics.mean(e - b for _, b, e, _ in list_of) for host, list_of in of.items()}
            expected.update(slowest=max(means.values()), fastest=min(means.values()))
            got.update({k: r[k + "_avg_time"] for k in ("slowest", "fastest")})
            self.assertAlmostEqual(means[r["slowest_host"]], expected["slowest"])
            self.assertAlmostEqual(means[r["fastest_host"]], expected["fastest"])
            for key, ps in expected.items():
                self.assertAlmostEqual(got[key], ps / 1e6, msg=key)

    def check_queues(self, streams, queues, hosts):
        self.assertEqual({(r["host"], r["device"], r["stream"]) for r in streams}, {(n, *key) for n, h in hosts.items() for key in h.streams})
        for r in streams:
            h, key = hosts[r["host"]], (r["device"], r["stream"])
            self.assertEqual((r["ops"], r["launched"]), (len(h.streams[key]), sum(op[3] is not None for op in h.streams[key])))
            _, mean, most = h.queue(key, h.begin, h.end)
            self.assertEqual(r["max_queue"], most)
            self.assertAlmostEqual(r["avg_queue"], mean)
        self.assertEqual(len(queues), POINTS * len(streams))
        for r in queues:
            h = hosts[r["host"]]
            begin = h.begin + round(r["begin_time"] * 1e6)
            least, mean, most = h.queue((r["device"], r["stream"]), begin, begin + round(r["duration"] * 1e6))
            self.assertEqual((r["min_queue"], r["max_queue"]), (least, most))
            self.assertAlmostEqual(r["avg_queue"], mean)

    def test_one(self):
        for name in ("mi300_jax_gemm", "gpu_multi_worker"):
            with self.subTest(session=name):
                path = ACCELERATED / name / f"{name}.xplane.pb"
                kernels, streams, queues = self.tables(path)
                hosts = {name: Host(path)}
                self.assertGreater(max(r["max_queue"] for r in streams), 0)
                self.check_kernels(kernels, hosts)
                self.check_queues(streams, queues, hosts)

    def test_hosts(self):
        """Two programs on one kind of GPU: some kernels are of both."""
        run = self.logdir / "plugins" / "profile" / "two"
        run.mkdir(parents=True)
        for name in ("mi300_jax_gemm", "mi300_jax_attention"):
            shutil.copyfile(ACCELERATED / name / f"{name}.xplane.pb", run / f"{name}.xplane.pb")
        kernels, streams, queues = self.tables(run)
        hosts = {path.name.split(".")[0]: Host(path) for path in run.iterdir()}
        self.assertEqual(max(r["hosts"] for r in kernels), 2)
        self.check_kernels(kernels, hosts)
        self.check_queues(streams, queues, hosts)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
