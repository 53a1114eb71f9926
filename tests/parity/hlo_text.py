#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The text of HLO programs and what their instructions cost, ours against XProf's: byte for byte, and to the last digit.

    hlo_text.py --build BUILD [--corpus DIR]... [--seed N --count N --costs N] [--out DIR]

Each different program of the profiles below tests/data and DIR, then N random ones (hlo_programs.py): the texts that
graph_viewer makes (short_txt, long_txt, long_txt with metadata, pbtxt), the neighbours of some instructions (adj_nodes), and
the text of every instruction as OpStats carry it, asked through a profile of a GPU that ran each once; these also have what it
costs.  XProf has no JSON of a program: ours must be read back as the same message.  Then N random programs that are made for
costs alone (hlo_cost_programs.py), after the cases there that once differed; of every fifth the texts, too.  BUILD has tests/parity/hlo_text.  What differs is written to --out.
A random program that XProf refuses is counted; at least half must be answered.
"""
import argparse
import os
import subprocess
import sys
import tempfile

from google.protobuf import json_format

import hlo_cost_programs
import hlo_programs
from hlo_programs import Hlo, XSpace
from xprof_worker import XProf

HERE = os.path.dirname(os.path.abspath(__file__))
FORMS = {"short": ("short_txt", 0), "long": ("long_txt", 0), "metadata": ("long_txt", 1), "pbtxt": ("pbtxt", 0)}
NODES = 4                     # instructions of a program whose neighbours the test requests


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, form, data):
        p = self.process
        p.stdin.write(f"{form} {len(data)}\n".encode() + data)
        p.stdin.flush()
        status, size = p.stdout.readline().split()
        text = p.stdout.read(int(size))
        return text if status == b"OK" else None

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def equal(a, b):
    """As messages, or as texts: a NaN equals none, and JSON does not say which it is."""
    return a == b or str(a) == str(b)


def stat_id(plane, name):
    for k, m in plane.stat_metadata.items():
        if m.name == name:
            return k
    k = len(plane.stat_metadata) + 1
    plane.stat_metadata[k].id, plane.stat_metadata[k].name = k, name
    return k


def profile_of(data, names):
    """A profile that carries the program, and a GPU that ran each of the instructions."""
    space = XSpace(hostnames=["h"])
    plane = space.planes.add(name="/host:metadata", id=1)
    m = plane.event_metadata[7]
    m.id, m.name = 7, "program"
    m.stats.add(metadata_id=stat_id(plane, "Hlo Proto"), bytes_value=data)
    gpu = space.planes.add(name="/device:GPU:0", id=2)
    line = gpu.lines.add(id=1, name="Stream #1(Compute)")
    gpu.event_metadata[1].id, gpu.event_metadata[1].name = 1, "kernel"
    for n, name in enumerate(names):
        e = line.events.add(metadata_id=1, offset_ps=n * 2000, duration_ps=1000)
        e.stats.add(metadata_id=stat_id(gpu, "hlo_module"), str_value="module")
        e.stats.add(metadata_id=stat_id(gpu, "hlo_op"), str_value=name)
        e.stats.add(metadata_id=stat_id(gpu, "program_id"), uint64_value=7)
    return space


def cost_of(m):
    """Model flops, device flops, bytes, bytes read and written of one run, as OpStats have them."""
    accesses = {b.operation_type: b.bytes_accessed for b in m.memory_accessed_breakdown}
    return int(m.model_flops_v2), int(m.flops_v2), m.bytes_accessed, accesses.get(1, 0), accesses.get(2, 0)


class Comparison:
    def __init__(self, xprof, ours, out):
        self.xprof, self.ours, self.out = xprof, ours, out
        self.nodes = self.texts = self.ops = self.costs = self.lost = self.refused = self.differ = self.programs = 0

    def wheel_ops(self, path):
        from xprof.protobuf import op_stats_pb2
        with tempfile.TemporaryDirectory() as top:
            keep = os.path.join(top, "op_stats.pb")
            self.xprof.ask("hlo_stats", [path], {"keep_op_stats": keep})
            if not os.path.exists(keep):
                return {}
            with open(keep, "rb") as f:
                db = op_stats_pb2.OpStats.FromString(f.read()).device_op_metrics_db
        return {m.name: m for m in db.metrics_db if m.name != "IDLE"}

    def our_costs(self, form, data):
        answer = self.ours.ask(form, data) or b""
        rows = (line.split("\t") for line in answer.decode("utf-8", "surrogateescape").splitlines())
        return {name: tuple(int(n) for n in numbers) for name, *numbers in rows}

    def compare_costs(self, label, data, wheel):
        """As XProf has them; where that is nothing, ours are counted (docs/differences.md: lost_costs)."""
        got = self.our_costs("xprof_costs", data)
        expected = {n: cost_of(m) for n, m in wheel.items()}
        self.costs += len(expected)
        ours = self.our_costs("costs", data)
        if ours != got:
            self.lost += 1
            if any(map(any, got.values())):
                self.note(label, data, "costs", b"none of a program that loses some", str(got).encode())
        bad = [n for n in expected if expected[n] != got.get(n)]
        if bad:
            self.note(label, data, f"cost of {bad[0]} and {len(bad) - 1} more", str(expected[bad[0]]).encode(), str(got.get(bad[0])).encode())

    def cost_program(self, label, data):
        """Costs alone.  A program that ends XProf, or that it refuses, has none."""
        self.programs += 1
        hlo = Hlo.FromString(data).hlo_module
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "host.xplane.pb")
            with open(path, "wb") as f:
                f.write(profile_of(data, [i.name for c in hlo.computations for i in c.instructions]).SerializeToString())
            wheel = self.wheel_ops(path)
        if wheel:
            self.compare_costs(label, data, wheel)
        else:
            self.refused += 1

    def neighbours(self, label, path, hlo, data, names):
        """Of some instructions: first, last, one that others use, one that has many operands."""
        uses = [i for c in hlo.computations for i in c.instructions]
        wanted = dict.fromkeys([names[0], names[-1], max(uses, key=lambda i: len(i.operand_ids)).name, names[len(names) // 2]])
        for node in list(wanted)[:NODES]:
            options = {"module_name": f"{hlo.name}(7)", "type": "adj_nodes", "node_name": node}
            status, expected = self.xprof.ask("graph_viewer", [path], options)
            got = self.ours.ask("neighbours", node.encode() + b"\n" + data)
            self.nodes += 1
            if status == "answer" and got != expected or status != "answer" and got is not None:
                self.note(label, data, f"neighbours of {node}", expected, got)

    def json(self, label, data):
        got = self.ours.ask("json", data)
        expected = Hlo.FromString(data)
        expected.DiscardUnknownFields()
        try:
            same = got is not None and equal(json_format.Parse(got, Hlo()), expected)
        except json_format.ParseError as e:
            print(e)
            same = False
        if not same:
            self.note(label, data, "json", b"a message that is equal", got)

    def note(self, label, data, form, expected, got):
        self.differ += 1
        print(f"DIFFERENT {label} {form}")
        a, b = (expected or b"").split(b"\n"), (got or b"<none>").split(b"\n")
        for x, y in zip(a + [b"<end>"], b + [b"<end>"]):
            if x != y:
                at = next((k for k, (c, d) in enumerate(zip(x, y)) if c != d), min(len(x), len(y)))
                print("  XProf:", x[max(0, at - 60):at + 160], "\n  ours: ", y[max(0, at - 60):at + 160])
                break
        if self.out:
            os.makedirs(self.out, exist_ok=True)
            with open(os.path.join(self.out, f"{label}.hlo_proto.pb"), "wb") as f:
                f.write(data)

    def program(self, label, data, may_be_refused):
        self.programs += 1
        hlo = Hlo.FromString(data).hlo_module
        names = [i.name for c in hlo.computations for i in c.instructions]
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "host.xplane.pb")
            with open(path, "wb") as f:
                f.write(profile_of(data, names).SerializeToString())
            for form, (kind, metadata) in FORMS.items():
                options = {"module_name": f"{hlo.name}(7)", "type": kind, "show_metadata": metadata, "graph_width": 3, "merge_fusion": 0}
                status, expected = self.xprof.ask("graph_viewer", [path], options)
                if status != "answer":
                    if not may_be_refused:
                        print(f"REFUSED {label}: {status}")
                    self.refused += 1
                    return
                self.texts += 1
                got = self.ours.ask(form, data)
                if got != expected:
                    self.note(label, data, form, expected, got)
            self.neighbours(label, path, hlo, data, names)
            self.json(label, data)
            found = self.wheel_ops(path)
            wheel = {n: m.long_name.encode("utf-8", "surrogateescape") for n, m in found.items()}
            ours = self.ours.ask("ops", data)
            got = dict(zip(names, split_ops(ours, names))) if ours is not None else {}
            self.ops += len(wheel)
            bad = [n for n in wheel if wheel[n] != got.get(n)]
            if bad:
                self.note(label, data, f"op {bad[0]} and {len(bad) - 1} more", wheel[bad[0]], got.get(bad[0]))
            if found:
                self.compare_costs(label, data, found)


def split_ops(text, names):
    """The texts of instructions, in order: each begins with its name, and may have lines."""
    out, at = [], 0
    for n, name in enumerate(names):
        at += len(name.encode()) + 1
        end = text.find(b"\n" + names[n + 1].encode() + b"\t", at) if n + 1 < len(names) else len(text) - 1
        out.append(text[at:end])
        at = end + 1
    return out


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--build", required=True)
    args.add_argument("--corpus", action="append", default=[])
    args.add_argument("--seed", default="1")
    args.add_argument("--count", type=int, default=0)
    args.add_argument("--costs", type=int, default=0)
    args.add_argument("--out")
    a = args.parse_args()
    ours = Ours(os.path.join(a.build, "tests", "parity", "hlo_text"))
    with XProf() as xprof:
        c = Comparison(xprof, ours, a.out)
        for n, data in enumerate(hlo_programs.of_profiles([os.path.join(HERE, "..", "data")] + a.corpus)):
            c.program(f"profile-{n}", data, False)
        real, refused = c.programs, c.refused
        for n in range(a.count):
            c.program(f"random-{a.seed}-{n}", hlo_programs.Program(a.seed, n).proto.SerializeToString(), True)
        for make in hlo_cost_programs.CASES if a.costs else []:
            before = c.refused
            c.cost_program(f"case-{make.__name__}", hlo_cost_programs.Case(make).proto.SerializeToString())
            if c.refused > before:
                c.note(make.__name__, b"", "case", b"costs", b"<refused>")
        for n in range(a.costs):
            label, data = f"cost-{a.seed}-{n}", hlo_cost_programs.CostProgram(a.seed, n).proto.SerializeToString()
            if n % 5:
                c.cost_program(label, data)
            else:
                c.program(label, data, True)
        crashes = xprof.crashes
    ours.close()
    random_refused = c.refused - refused
    print(f"{real} programs of profiles ({refused} refused), {a.count} + {a.costs} random ones ({random_refused} refused, {crashes} ended "
          f"XProf): {c.texts} texts, {c.nodes} lists of neighbours, {c.ops} texts of ops, {c.costs} costs ({c.lost} programs of which XProf has none: lost_costs)")
    failed = c.differ + refused + (2 * random_refused > a.count + a.costs)
    print(f"{c.programs - c.differ} passed, {failed} failed")
    sys.exit(1 if failed or c.texts == 0 or c.ops == 0 or c.costs == 0 or c.nodes == 0 else 0)


if __name__ == "__main__":
    main()
