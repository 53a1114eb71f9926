#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch: the commands of docs/pytorch.md, and tables of TraceLens on public traces.

The traces are not part of the repository: those tests are skipped without ../shared/corpus/kineto.
A row of ours may differ by 0.1% or 0.05 us, as TraceLens computes with doubles.

usage: test_pytorch.py XPLANECTL XPLANED
"""
import csv
import json
import re
import sys
import unittest

from harness import ROOT, Case, Programs

EXAMPLE = ROOT / "tests" / "data" / "pytorch" / "train.pt.trace.json"
CORPUS = ROOT.parent / "shared" / "corpus" / "kineto"


def rows(table):
    ids = [c["id"] for c in table["cols"]]
    return [dict(zip(ids, (c and c.get("v") for c in r["c"]))) for r in table["rows"]]


def sums(items):
    """{name: (count, time)} of (name, count, time)."""
    total = {}
    for name, count, time in items:
        n, t = total.get(name, (0, 0.0))
        total[name] = n + int(float(count)), t + float(time)
    return total


class Documented(Case):
    def test_commands(self):
        text = (ROOT / "docs" / "pytorch.md").read_text()
        commands = [c for block in re.findall(r"```sh\n(.*?)```", text, re.S) for c in block.splitlines()
                    if c.startswith("xplanectl") and "train.pt.trace.json" in c]
        self.assertGreaterEqual(len(commands), 6)
        for c in commands:
            words = [w.strip("'") for w in re.findall(r"'[^']*'|\S+", c)[1:]]
            words = [str(ROOT / w) if w.startswith("tests/") else w for w in words]
            words = [str(self.place / w) if w == "train.pftrace" else w for w in words]
            status, out, err = self.ask(*words)
            self.assertEqual(status, 0, (c, err))
            self.assertTrue(out or "-o" in words, c)

    def test_findings(self):
        _, out, _ = self.ask("findings", EXAMPLE)
        self.assertIn("1. Waiting for input (could save ", out)
        self.assertIn("enumerate(DataLoader)#_SingleProcessData", out)

    def test_steps(self):
        _, out, _ = self.ask("summary", EXAMPLE)
        self.assertRegex(out, r"\n +5 .*\n +6 .*\n +7 .*\n  3 steps")

    def test_cut_file(self):
        cut = self.place / "cut.pt.trace.json"
        cut.write_bytes(EXAMPLE.read_bytes()[:5000])
        status, _, err = self.ask("findings", cut)
        self.assertEqual(status, 3)
        self.assertIn("the trace ends at byte 5000 within a value", err)

    def test_daemon(self):
        run = self.logdir / "run1"
        run.mkdir()
        (run / EXAMPLE.name).write_bytes(EXAMPLE.read_bytes())
        _, ours, _ = self.ask("analyze", "framework_op_stats", EXAMPLE)
        self.daemon()
        status, served, err = self.ask("tool", "framework_op_stats", "run1")
        self.assertEqual(status, 0, err)
        self.assertEqual(json.loads(served), json.loads(ours))


@unittest.skipUnless(CORPUS.is_dir(), "../shared/corpus/kineto is not here")
class Tables(Case):
    def tool(self, name, path):
        status, out, err = self.ask("analyze", name, path)
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def cases(self, table):
        for golden in sorted(CORPUS.glob(f"*/golden/{table}.csv")):
            case = golden.parents[1]
            about = case / "case.json"
            skipped = json.loads(about.read_text())["not_judged"] if about.exists() else {}
            if table not in skipped:
                with open(golden, newline="") as f:
                    yield next(case.glob("*.json.gz")), list(csv.DictReader(f))

    def compare(self, path, ours, theirs, counts):
        self.assertEqual(sorted(ours), sorted(theirs), path)
        for name, (count, time) in theirs.items():
            self.assertAlmostEqual(ours[name][1], time, delta=max(0.05, time / 1000), msg=(path, name))
            if counts:
                self.assertEqual(ours[name][0], count, (path, name))

    def test_kernels(self):
        n = 0
        for path, golden in self.cases("kernel_summary"):
            theirs = sums((r["Kernel name"], r["Kernel duration (µs)_count"], r["Kernel duration (µs)_sum"])
                          for r in golden)
            ours = sums((r["kernel_name"], r["occurrences"], r["total_duration_us"])
                        for r in rows(self.tool("kernel_stats", path)))
            self.compare(path, ours, theirs, True)
            n += 1
        self.assertGreaterEqual(n, 6)

    def test_ops(self):
        n = 0
        for path, golden in self.cases("ops_summary"):
            theirs = sums((r["name"], r["Count"], r["total_direct_kernel_time_sum"]) for r in golden)
            ours = sums((r["operation"], r["occurrences"], r["total_self_time"])
                        for r in rows(self.tool("framework_op_stats", path)[0])
                        if r["host_or_device"] == "Device" and r["operation"] != "IDLE")
            self.compare(path, ours, theirs, False)
            n += 1
        self.assertGreaterEqual(n, 4)


if __name__ == "__main__":
    Programs.xplanectl, Programs.xplaned = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
