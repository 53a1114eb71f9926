#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs of HLO programs (graph_viewer's type=graph, format=dot), ours against XProf's, byte for byte but for what XProf keeps in
the order of a hash table or by address.

    hlo_graph.py --build BUILD [--corpus DIR]... [--seed N --count N] [--nodes N] [--out DIR]

Each different program of the profiles below tests/data and DIR, then N random ones (hlo_graph_programs.py): the graphs of the
entry computation, of a random computation, and around N random instructions, with random options.  What is told apart, by name,
and how often the answers had it:

    graph_ids      nodes and clusters are named by addresses; ours by numbers
    graph_hover    the rules of the stylesheet stand in the order of a hash table
    graph_callers  so do the callers in a title

Where XProf has no answer ours may have none either.  What differs is written to --out.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

import hlo_graph_programs
import hlo_programs
from hlo_memory import profile_of
from hlo_programs import Hlo
from xprof_worker import XProf

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = "font-size: 12px;\n  }\n\n  "
IDS = re.compile(r"\bcluster_\d+\b|^\d+(?= \[label=)|^\d+(?= -> )|(?<= -> )\d+(?= \[)", re.M)
CALLERS = re.compile(r"(Caller instructions: )(.*)(</b>>;)")


def parts(dot):
    """What stands before the stylesheet, its rules, what comes after."""
    begin = dot.index(HEAD) + len(HEAD)
    end = dot.index("\n>\n\n", begin - 2)
    return dot[:begin], [r.strip("\n") for r in dot[begin:end].split("\n\n")], dot[end:]


def graph_ids(body):
    """The text with its ids numbered in the order in which they come."""
    seen = {}
    return IDS.sub(lambda m: f"id{seen.setdefault(m.group(0), len(seen))}", body)


def graph_hover(rules):
    return sorted(r.strip() for r in rules)


def graph_callers(head):
    return CALLERS.sub(lambda m: m.group(1) + ", ".join(sorted(m.group(2).split(", "))) + m.group(3), head)


PREDICATES = (graph_callers, graph_hover, graph_ids)


class Comparison:
    def __init__(self, xprof, build, out):
        self.xprof, self.program, self.out = xprof, os.path.join(build, "cli", "xplanectl"), out
        self.excused = {p.__name__: 0 for p in PREDICATES}
        self.graphs = self.equal = self.refused = self.crashed = self.differ = 0

    def ours(self, path, options):
        words = [self.program, "analyze", "graph_viewer", path]
        for k, v in options.items():
            words += ["--option", f"{k}={str(v).lower()}"]
        p = subprocess.run(words, capture_output=True, timeout=60)
        return p.stdout.decode("utf-8", "surrogateescape") if p.returncode == 0 else None

    def note(self, label, what, data, theirs, ours):
        self.differ += 1
        print(f"{label}: {what}", flush=True)
        if self.out:
            os.makedirs(self.out, exist_ok=True)
            for name, content in (("pb", data), ("theirs", theirs), ("ours", ours)):
                content = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
                with open(os.path.join(self.out, f"graph {label}.{name}".replace("/", "_")), "wb") as f:
                    f.write(content or b"")

    def one(self, label, data, path, options):
        """False when XProf did not survive it."""
        status, theirs = self.xprof.ask("graph_viewer", [path], {**options, "merge_fusion": int(options["merge_fusion"]), "show_metadata": int(options["show_metadata"])})
        ours = self.ours(path, options)
        if status == "crash":
            self.crashed += 1
            return False
        if status != "answer":
            self.refused += 1
            if ours is not None:
                self.note(label, f"XProf has no answer ({status})", data, theirs, ours)
            return True
        theirs = theirs.decode("utf-8", "surrogateescape")
        self.graphs += 1
        if ours is None:
            self.note(label, "no answer", data, theirs, ours)
            return True
        same = True
        for predicate, a, b in zip(PREDICATES, parts(theirs), parts(ours)):
            if a == b:
                continue
            if predicate(a) == predicate(b):
                self.excused[predicate.__name__] += 1
            else:
                same = False
        self.equal += same
        if not same:
            self.note(label, f"another graph {options}", data, theirs, ours)
        return True

    def compare(self, label, data, nodes):
        m = Hlo.FromString(data).hlo_module
        r = random.Random(label)
        entry = next((c.name for c in m.computations if c.id == m.entry_computation_id), m.entry_computation_name)
        names = [i.name for c in m.computations for i in c.instructions]
        asked = [(entry, False, True), (entry, True, False), (r.choice([c.name for c in m.computations]), False, False)]
        asked += [(r.choice(names).upper() if r.random() < 0.1 else r.choice(names), r.random() < 0.4, r.random() < 0.4) for _ in range(nodes)]
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "h.xplane.pb")
            with open(path, "wb") as f:
                f.write(profile_of(data))
            for k, (node, merge, metadata) in enumerate(asked):
                options = {"module_name": f"{m.name}(7)", "type": "graph", "format": "dot", "node_name": node, "graph_width": r.choice([0, 1, 2, 3, 3, 9]),
                           "merge_fusion": merge, "show_metadata": metadata}
                if not self.one(f"{label} {k}", data, path, options):
                    return


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", required=True)
    p.add_argument("--corpus", action="append", default=[])
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--nodes", type=int, default=2)
    p.add_argument("--out")
    args = p.parse_args()
    with XProf() as xprof:
        c = Comparison(xprof, args.build, args.out)
        n = 0
        for n, data in enumerate(hlo_programs.of_profiles([os.path.join(HERE, "..", "data"), *args.corpus]), 1):
            c.compare(f"program {n}", data, args.nodes)
        for k in range(args.count):
            c.compare(f"random {args.seed} {k}", hlo_graph_programs.GraphProgram(args.seed, k).proto.SerializeToString(), args.nodes)
    excused = ", ".join(f"{k} {v}" for k, v in c.excused.items())
    print(f"graphs: {n} programs, {args.count} random ones: {c.graphs} graphs, {c.equal} equal (of these, {excused}), {c.refused} without an answer "
          f"of XProf, {c.crashed} that it did not survive; {c.differ} differ")
    if not n or c.graphs < 2 * (n + args.count):
        print("graphs: too little was compared")
        c.differ += 1
    sys.exit(1 if c.differ else 0)


if __name__ == "__main__":
    main()
