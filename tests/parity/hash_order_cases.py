#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small profiles on which the order of a hash table in XProf decides the answer, or a number that it never sets, and neighbours on which not.

    hash_order_cases.py --build BUILD

Each is asked of the real XProf and of ours.  The named predicate must excuse what differs, and nothing else: answers that XProf
cannot give, and profiles without a choice, are not excused.
"""
import argparse
import copy
import json
import os
import random
import shutil
import sys
import tempfile

import differences
import hash_order
import oracle
from hlo import Module
from judge import EXACT, Judge
from ours import Ours
from protos import pb
from xprof_worker import XProf

BROKEN = b"\x0a\x05abc"                     # an HloProto that ends inside its module
MIN = 2 ** 63


class Plane:
    """A plane under construction; names get ids in the order in which they come."""

    def __init__(self, space, name):
        self.p = space.planes.add(name=name)

    def stat(self, name):
        for k, m in self.p.stat_metadata.items():
            if m.name == name:
                return k
        k = len(self.p.stat_metadata) + 1
        self.p.stat_metadata[k].id, self.p.stat_metadata[k].name = k, name
        return k

    def add(self, to, **stats):
        for name, value in stats.items():
            field = {int: "uint64_value", str: "str_value", bytes: "bytes_value"}[type(value)]
            to.stats.add(metadata_id=self.stat(name.replace("__", " ")), **{field: value})

    def entry(self, key, name, **stats):
        m = self.p.event_metadata[key]
        m.id, m.name = key, name
        self.add(m, **stats)


def gpu_profile(*entries):
    """One kernel of program 5, and the metadata entries [(key, name, HloProto)]."""
    module = module_of_5()
    space = pb.XSpace()
    plane = Plane(space, "/device:GPU:0")
    line = plane.p.lines.add(id=16, name="Stream #16(Compute)")
    plane.entry(6, "a_kernel")
    event = line.events.add(metadata_id=6, offset_ps=1000, duration_ps=999000)
    plane.add(event, hlo_op=module.kernels[0][0], program_id=5, kernel_details="regs:32 grid:1,1,1 block:1,1,1 occ_pct:0")
    metadata = Plane(space, "/host:metadata")
    for key, name, proto in entries:
        metadata.entry(key, name, Hlo__Proto=module.proto.SerializeToString() if proto is None else proto)
    return space


def module_of_5():
    """A module of opaque ops; the first has a framework name, by which an answer shows that it was found."""
    module = Module(random.Random(2), "jit_f", 5, "opaque")
    name = module.kernels[0][0]
    for computation in module.hlo.computations:
        for i in computation.instructions:
            if i.name == name:
                i.metadata.op_name = "jit(f)/dot"
    return module


def tpu_profile(*planes, sparse=None):
    """Planes of ops (program, symbol, framework op), one run of each; before them a SparseCore that ran the ops `sparse`."""
    space = pb.XSpace()
    named = [("/device:TPU:0 SparseCore 0", "Sparse Core Ops", sparse)] if sparse else []
    for name, line_name, ops in named + [(f"/device:TPU:{i}", "XLA Ops", ops) for i, ops in enumerate(planes)]:
        plane = Plane(space, name)
        line = plane.p.lines.add(id=1, name=line_name, timestamp_ns=1000)
        for i, (program, symbol, op) in enumerate(ops):
            plane.entry(i + 1, f"op.{program}.{symbol}", program_id=program, symbol_id=symbol, hlo_category="fusion", tf_op=op)
            line.events.add(metadata_id=i + 1, offset_ps=i * 1000, duration_ps=1000)
    return space


F, TYPED = "jit(f)/mul", "jit(f)/mul:"      # the type of the second is mul, the first has none

# name: (profile, tool, what may excuse a difference).  Where that is "", the answers are equal.
CASES = {
    "two entries for one program":      (gpu_profile((1, "broken(5)", BROKEN), (48, "jit_f(5)", None)), "kernel_stats", "program_id_twice"),
    "the other way":                    (gpu_profile((48, "broken(5)", BROKEN), (1, "jit_f(5)", None)), "kernel_stats", "program_id_twice"),
    "neighbours":                       (gpu_profile((7, "broken(5)", BROKEN), (8, "jit_f(5)", None)), "kernel_stats", "program_id_twice"),
    "neighbours, the other way":        (gpu_profile((8, "broken(5)", BROKEN), (7, "jit_f(5)", None)), "kernel_stats", "program_id_twice"),
    "two entries, op_profile":          (gpu_profile((7, "broken(5)", BROKEN), (8, "jit_f(5)", None)), "op_profile", "program_id_twice"),
    "the moved entry wins":             (gpu_profile((5, "broken(5)", BROKEN), (48, "jit_f(5)", None)), "kernel_stats", ""),
    "the moved entry wins, and breaks": (gpu_profile((1, "broken(5)", BROKEN), (5, "jit_f(5)", None)), "kernel_stats", ""),
    "one entry":                        (gpu_profile((48, "jit_f(5)", None)), "kernel_stats", ""),
    "two programs":                     (tpu_profile([(1, 7, F), (2, 8, TYPED)]), "overview_page", "framework_type"),
    # XProf never begins with the first of three.
    "three programs":                   (tpu_profile([(1, 7, F), (2, 8, TYPED), (MIN + 13, 9, TYPED)]), "overview_page", "framework_type"),
    "three programs, op table":         (tpu_profile([(1, 7, F), (2, 8, TYPED), (MIN + 13, 9, TYPED)]), "framework_op_stats", "framework_type"),
    "two symbols":                      (tpu_profile([(1, 7, F), (1, 8, TYPED)]), "framework_op_stats", "framework_type"),
    "two planes":                       (tpu_profile([(1, 7, F)], [(2, 8, TYPED)]), "framework_op_stats", ""),
    "two planes, the other way":        (tpu_profile([(1, 7, TYPED)], [(2, 8, F)]), "framework_op_stats", ""),
    "two programs behind a SparseCore": (tpu_profile([(1, 7, F), (2, 8, TYPED)], sparse=[(1, 7, F)]), "framework_op_stats", "framework_type"),
    "two programs of a SparseCore":     (tpu_profile([(1, 7, F)], sparse=[(1, 7, F), (2, 8, TYPED)]), "framework_op_stats", ""),
    "one type":                         (tpu_profile([(1, 7, TYPED), (2, 8, TYPED)]), "framework_op_stats", ""),
}


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, good, detail=""):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print(f"FAILED: {name} {detail}")


def ask_all(checks, judge, folder):
    for name, (space, tool, excuse) in CASES.items():
        path = write(folder, space)
        v = judge.ask(tool, [path], {})
        checks.check(name, v.kind == "equal" or (v.kind, v.name) == ("excluded", excuse), f"{v.kind} {v.name} {v.lines[:2]}")
        has_choice = bool(hash_order.program_id_choices(space)) if tool in ("kernel_stats", "op_profile") else bool(hash_order.framework_types([space]))
        checks.check(f"{name}: a choice is seen where there is one", has_choice == bool(excuse))


def write(folder, space):
    path = os.path.join(folder, "h.xplane.pb")
    with open(path, "wb") as f:
        f.write(space.SerializeToString())
    return path


def framework_names(answer):
    table = json.loads(answer)
    column = [c["id"] for c in table["cols"]].index("op_name")
    return [row["c"][column]["v"] for row in table["rows"]]


def check_both_seen(checks, xprof, folder):
    """XProf says both over these four profiles, which differ in the numbering of the entries alone; nearly always at once."""
    seen, rounds = set(), 0
    while len(seen) < 2 and rounds < 64:
        rounds += 1
        for name in ("two entries for one program", "the other way", "neighbours", "neighbours, the other way"):
            status, answer = xprof.ask("kernel_stats", [write(folder, CASES[name][0])], {})
            if status == "answer":
                seen |= set(framework_names(answer))
    checks.check("XProf finds the op in one numbering and not in another", seen == {"", "jit(f)/dot"}, seen)


OP_NAMES = ["jit(f)/mul", "jit(f)/mul:", "jit(f)/mul:x", "jit(f)/mul_39:", "jit(f)/mul_39:x", "jit(f)/a[permutation=(1, 0)]:", "jit(f)/b:c[d=1]",
            "jit(f)/d:E", "model/MatMul_1:MatMul", "model/MatMul_2:", "model/a b:AddV2", "x:y z", "x/Y-Z:", "x/y_-3:", "_x:AddV2", "x/y:A-B"]


def check_types(checks, xprof, folder):
    """parse_op() gives names and types as XProf does."""
    for text in OP_NAMES:
        _, answer = xprof.ask("overview_page", [write(folder, tpu_profile([(1, 7, text)]))], {})
        cells = [c["v"] for c in json.loads(answer)[0]["rows"][0]["c"]]
        name, kind = hash_order.parse_op(text)
        checks.check(f"type of {text!r}", [kind or "Unknown", name] == cells[2:4], cells[2:4])


def host_profile(*events):
    """Events of a host's thread, one after the other, each with a name of its own."""
    space = pb.XSpace()
    plane = Plane(space, "/host:CPU")
    line = plane.p.lines.add(id=6, name="a thread")
    for i, name in enumerate(events):
        plane.entry(i + 1, name)
        line.events.add(metadata_id=i + 1, offset_ps=i * 2000000, duration_ps=1000000 + i)
    return space


COPY, OP = "MemcpyHToD", "a/b:Add"


def check_copies(checks, judge, folder):
    """Events that are named as copies are two rows in XProf when one was read first and one after an op; sums that differ are none of that."""
    for events, excused in (([COPY, OP, COPY], "copy_rows"), ([OP, COPY, COPY], ""), ([COPY, COPY], ""), ([OP, COPY], "")):
        for tool in differences.NAME_AND_SUMS:
            v = judge.ask(tool, [write(folder, host_profile(*events))], {})
            kind = "excluded" if excused else "equal"
            checks.check(f"copies {events} in {tool}", (v.kind, v.name or "") == (kind, excused), f"{v.kind} {v.name} {v.lines[:2]}")
    both = tpu_profile([(1, 7, F), (1, 8, TYPED)])
    both.planes.extend(host_profile(COPY, OP, COPY).planes)
    path = write(folder, both)
    _, expected = judge.xprof.ask("framework_op_stats", [path], {})
    _, got = judge.ours.ask("framework_op_stats", [path], EXACT)
    names = set()
    for kind in ("mul", "Unknown"):  # of the op with two types, one of which is XProf's now
        told = json.loads(got)
        for table in told:
            at = {c["id"]: i for i, c in enumerate(table["cols"])}
            for row in table["rows"]:
                if row["c"][at["host_or_device"]]["v"] == "Device" and row["c"][at["operation"]]["v"] != "IDLE":
                    row["c"][at["type"]]["v"] = kind
        names.add(differences.excuse("framework_op_stats", expected, json.dumps(told).encode(), [path]))
    checks.check("copies and types that are open together", names == {"copy_rows", "framework_type+copy_rows"}, names)
    path = write(folder, host_profile(COPY, OP, COPY))
    _, expected = judge.xprof.ask("input_pipeline_analyzer", [path], {})
    _, got = judge.ours.ask("input_pipeline_analyzer", [path], EXACT)
    wrong = json.loads(got)
    for row in wrong[2]["rows"]:
        row["c"][1]["v"] += 1
    checks.check("copies counted wrong are not excused", differences.excuse("input_pipeline_analyzer", expected, json.dumps(wrong).encode(), [path]) == "")


def check_not_excused(checks, judge, folder):
    """Answers that no order gives are not excused."""
    path = write(folder, CASES["two programs"][0])
    _, expected = judge.xprof.ask("overview_page", [path], {})
    for kind, excused in (("mul", True), ("Unknown", True), ("psum", False), ("", False)):
        wrong = json.loads(expected)
        right = copy.deepcopy(wrong)
        wrong[0]["rows"][0]["c"][2]["v"] = kind
        right[0]["rows"][0]["c"][2]["v"] = "mul" if kind == "Unknown" else "Unknown"
        a, b = (json.dumps(x).encode() for x in (right, wrong))
        name = differences.excuse("overview_page", a, b, [path])
        checks.check(f"type {kind!r} is excused: {excused}", (name == "framework_type") == excused, name)
    path = write(folder, CASES["neighbours"][0])
    _, expected = judge.xprof.ask("kernel_stats", [path], {})
    _, got = judge.ours.ask("kernel_stats", [path], EXACT)
    wrong = got.replace(b"a_kernel", b"b_kernel")
    for what, a, b, good in (("theirs and ours", expected, got, True), ("a name that is nowhere, of ours", expected, wrong, False),
                             ("a name that is nowhere, of theirs", wrong, got, False)):
        checks.check(f"{what}: {good}", judge.program_id_twice("kernel_stats", [path], {}, None, (a, b)) == good)


def check_oracle(checks, build, folder):
    """Which program an op of a CPU is in, where several entries have one id (seed 73194027, case 896)."""
    program = os.path.join(build, "tests", "parity", "convert_opstats")
    for first, second in (((1, "broken(5)", BROKEN), (5, "jit_f(5)", None)), ((5, "broken(5)", BROKEN), (48, "jit_f(5)", None)),
                          ((7, "jit_f(5)", None), (8, "broken(5)", BROKEN)), ((7, "broken(5)", BROKEN), (8, "jit_f(5)", None))):
        space, module = pb.XSpace(), module_of_5()
        plane = Plane(space, "/host:CPU")
        plane.entry(6, "ThunkExecutor")
        event = plane.p.lines.add(id=1, name="tf_XLATfrt/0").events.add(metadata_id=6, offset_ps=1000, duration_ps=999000)
        plane.add(event, hlo_op=module.kernels[0][0], hlo_module="jit_f")
        metadata = Plane(space, "/host:metadata")
        for key, name, proto in (first, second):
            metadata.entry(key, name, Hlo__Proto=module.proto.SerializeToString() if proto is None else proto)
        found = oracle.disagreements(program, [write(folder, space)])
        checks.check(f"oracle: {first[:2]}, {second[:2]}", found == [], found)


def run_cases(description, name, run):
    """A program of cases: its command line; run(checks, judge, folder) with a real XProf and ours; the last line, and the status."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build")
    a = p.parse_args()
    checks, folder = Checks(), tempfile.mkdtemp()
    try:
        with XProf(scratch=folder) as xprof:
            run(checks, Judge(xprof, Ours(a.build, folder), scratch=folder, retries=0), folder)
    finally:
        shutil.rmtree(folder)
    print(f"{name}: {checks.passed} passed, {checks.failed} failed")
    sys.exit(1 if checks.failed else 0)


def check_all(checks, judge, folder):
    ask_all(checks, judge, folder)
    check_both_seen(checks, judge.xprof, folder)
    check_copies(checks, judge, folder)
    check_types(checks, judge.xprof, folder)
    check_not_excused(checks, judge, folder)
    check_oracle(checks, os.path.dirname(os.path.dirname(judge.ours.program)), folder)


if __name__ == "__main__":
    run_cases(__doc__, "hash_order_cases", check_all)
