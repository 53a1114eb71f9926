#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small profiles with device ops of one name, whose words XProf takes in the order of a hash table, and neighbours without a choice.

    op_twice_cases.py --build BUILD

`Judge.op_twice` must excuse what differs in the first, and nothing else: figures that differ, words that no op has, and words of
two ops mixed are not excused.
"""
import types

import hash_order
from hash_order_cases import Plane, run_cases, write
from judge import EXACT
from ours import Served
from protos import pb

NAME, TPU = "fusion.1", "/device:TPU:0"
TOOLS = ("hlo_stats", "op_profile", "roofline_model", "framework_op_stats", "overview_page")


def op(symbol, category, tf_op="", program=1, name=NAME, child=0, **more):
    stats = {"program_id": program, "symbol_id": symbol, "hlo_category": category, "tf_op": tf_op, "flops": 1000, **more}
    return name, child, {k: v for k, v in stats.items() if v != ""}


MUL, DOT, ADD = op(7, "loop fusion", "jit(f)/mul:", source="a.py:1"), op(8, "copy", "jit(g)/dot:", bytes_accessed=64, source_stack="b.py:2"), op(9, "sort", "jit(h)/add:")
FEED, CALL, BARE = op(10, "infeed", "jit(i)/feed:"), op(11, "custom-call", "jit(j)/call:"), op(12, "")
ONE, OTHER = op(13, "loop fusion", "jit(f)/mul:", child=201), op(14, "convolution fusion", "jit(g)/mul:", child=202)


def profile(planes, shift=0):
    """Planes (name, ops) or ops alone; each op runs once.  `shift` is added to symbols: on these the order depends most."""
    space = pb.XSpace()
    for name, ops in planes if len(planes[0]) == 2 else [(TPU, planes)]:
        plane = Plane(space, name)
        line = plane.p.lines.add(id=1, name="Sparse Core Ops" if "Sparse" in name else "XLA Ops", timestamp_ns=1000)
        for i, (op_name, child, stats) in enumerate(ops):
            stats = {**stats, "symbol_id": stats["symbol_id"] + shift}
            plane.entry(i + 1, f"%{op_name} = f32[8] {stats.get('hlo_category', 'none').replace(' ', '_')}(f32[8] %p.0)", **stats)
            if stats.get("hlo_category"):
                plane.p.event_metadata[i + 1].display_name = op_name
            else:
                plane.p.event_metadata[i + 1].name = op_name
            if child:
                plane.entry(child, f"child.{child}", program_id=stats["program_id"], symbol_id=child, hlo_category="add", flops=5)
                plane.p.event_metadata[i + 1].child_id.append(child)
            line.events.add(metadata_id=i + 1, offset_ps=i * 10000, duration_ps=1000 * (i + 1))
    return space


MORE = [op(100 + i, "sort", name=f"sort.{i}") for i in range(16)]      # of few symbols XProf's table has not every order

# name: (ops or planes, how many ops of it XProf may choose from)
CASES = {
    "two of one name":              ([*MORE, MUL, DOT], 2),
    "two, the other way":           ([*MORE, DOT, MUL], 2),
    "three of one name":            ([MUL, DOT, ADD], 3),
    "two names, two each":          ([*MORE, MUL, DOT, op(20, "sort", name="b"), op(21, "copy", name="b")], 4),
    "work and no work":             ([*MORE, MUL, FEED], 2),
    "no work and work":             ([*MORE, FEED, MUL], 2),
    "a custom call":                ([*MORE, CALL, MUL], 2),
    "children":                     ([*MORE, ONE, OTHER], 2),
    "one without words":            ([BARE, MUL], 0),
    "one name, the same words":     ([MUL, op(13, "loop fusion", "jit(f)/mul:", source="a.py:1")], 0),
    "one name, one program each":   ([MUL, op(8, "copy", "jit(g)/dot:", program=2)], 0),
    "two names":                    ([MUL, op(8, "copy", "jit(g)/dot:", name="fusion.2")], 0),
    "the first plane has one":      ([(TPU, [MUL]), ("/device:TPU:1", [DOT, MUL])], 0),
    "the first plane has both":     ([(TPU, [*MORE, MUL, DOT]), ("/device:TPU:1", [DOT])], 2),
    "a SparseCore has both":        ([("/device:TPU:0 SparseCore 0", [MUL, DOT]), (TPU, [MUL])], 0),
    "a SparseCore has one":         ([("/device:TPU:0 SparseCore 0", [MUL]), (TPU, [*MORE, MUL, DOT])], 2),
}
MOST_ROUNDS = 64


def check_cases(checks, judge):
    for name, (planes, several) in CASES.items():
        found = sum(len(keys) for *_, keys in hash_order.op_choices([profile(planes)]))
        checks.check(f"{name}: ops to choose from", found == several, found)
        for tool in TOOLS:
            v, shift = None, 0
            while not v or several and v.kind == "equal" and shift < MOST_ROUNDS:
                v, shift = judge.ask(tool, [write(judge.scratch, profile(planes, shift))], {}), shift + 1
            checks.check(f"{name} in {tool}", (v.kind, v.name or "") == (("excluded", "op_twice") if several else ("equal", "")), f"{v.kind} {v.name} {v.lines[:2]}")


def other_order(judge, planes):
    """A file of which XProf takes other words than ours, and the answers of both."""
    for shift in range(MOST_ROUNDS):
        path = write(judge.scratch, profile(planes, shift))
        (_, expected), (_, got) = judge.xprof.ask("hlo_stats", [path], {}), judge.ours.ask("hlo_stats", [path], EXACT)
        if judge.differ("hlo_stats", expected, got):
            return path, expected, got
    raise SystemExit("XProf takes the words of the first in every order")


def check_not_excused(checks, judge):
    path, expected, got = other_order(judge, CASES["two of one name"][0])
    mixed = expected.replace(b'"copy"', b'"loop fusion"')
    for what, a, b, good in (("theirs and ours", expected, got, True), ("a category that no op has, of ours", expected, got.replace(b'"loop fusion"', b'"sort"'), False),
                             ("a category that no op has, of theirs", expected.replace(b'"copy"', b'"sort"'), got, False),
                             ("words of two ops", mixed, got, False), ("another sum", expected, got.replace(b'"v":2', b'"v":3'), False)):
        checks.check(f"{what}: other bytes", good or (a, b) != (expected, got))
        checks.check(f"{what}: {good}", judge.op_twice("hlo_stats", [path], {}, None, (a, b)) == good)
    path = write(judge.scratch, profile(CASES["one name, the same words"][0]))
    _, got = judge.ours.ask("hlo_stats", [path], EXACT)
    checks.check("no choice, no excuse", not judge.op_twice("hlo_stats", [path], {}, None, (got, got)))


def check_many(checks, judge):
    """A profile of a large program, whose words it would take long to seek, is not excused; no answer is asked for."""
    ops = [op(100 + i, "copy" if i % 2 else "sort", name=f"op.{i // 2}") for i in range(2 * hash_order.MOST_OPS)]
    path = write(judge.scratch, profile(ops))
    asked = []
    judge.ask_ours, usual = lambda *given: asked.append(given), judge.ask_ours
    checks.check("many ops", not judge.op_twice("hlo_stats", [path], {}, None, (b"{}", b"{}")) and not asked, len(asked))
    judge.ask_ours = usual


def check_served(checks, judge):
    """Where ours is asked through a daemon, profiles that a judge makes are asked for without it."""
    path = write(judge.scratch, profile([MUL, DOT]))
    daemon = types.SimpleNamespace(ctl=judge.ours.program, address="unix:/nowhere")
    served = Served(daemon, {}, judge.ours.out)
    checks.check("a made profile beside a daemon", served.ask("hlo_stats", [path], EXACT) == judge.ours.ask("hlo_stats", [path], EXACT))


def check_all(checks, judge, unused_folder):
    check_cases(checks, judge)
    check_not_excused(checks, judge)
    check_many(checks, judge)
    check_served(checks, judge)


if __name__ == "__main__":
    run_cases(__doc__, "op_twice_cases", check_all)
