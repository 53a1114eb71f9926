#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random profiles to the real XProf and to us; the answers must be equal.

    differential.py [--seed N] [--count 2000] [--build DIR] [--jobs 2] [--out DIR] [--traces]

Prints seed, count, how many answers were equal, excluded (docs/differences.md), unstable (XProf disagrees with itself),
different, how often XProf crashed, and the share of answers whose step, op, kernel and memory tables have rows.  The first
case of each kind of difference is shrunk into DIR.  With --traces the questions are those of the two trace viewers: windows,
resolutions, searches, details, formats.  Exit 1 where anything differed.
"""
import argparse
import collections
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time

from generator import KNOBS, make_case, parse_knobs
import oracle
from judge import Judge, Verdict, filled, questions, trace_questions
from ours import Ours
from protos import pb
from realhlo import real_modules
from shrink import Shrinker, write
from xprof_worker import XProf


class Runner:
    """One process's share of the cases."""

    def __init__(self, args, knobs, number):
        self.a, self.knobs = args, knobs
        self.scratch = tempfile.mkdtemp(prefix="xplaned-diff-", dir=memory_directory())
        self.xprof = XProf(scratch=self.scratch)
        self.judge = Judge(self.xprof, Ours(args.build, self.scratch), scratch=self.scratch)
        self.real = real_modules(args.data)
        self.counter = os.path.join(os.path.dirname(self.judge.ours.program), "..", "tests", "parity", "convert_opstats")
        self.number = number

    def paths(self, files, where):
        d = os.path.join(self.scratch, where)
        shutil.rmtree(d, ignore_errors=True)
        os.makedirs(d)
        out = []
        for n in sorted(files):
            out.append(os.path.join(d, n))
            with open(out[-1], "wb") as f:
                f.write(files[n])
        return out

    def case(self, index):
        """What one case gave: a dict to be summed, and its differences."""
        files, about = make_case(self.a.seed, index, self.knobs, self.real)
        rng = random.Random(f"questions {self.a.seed}/{index}")
        counts, found = collections.Counter(), []
        counts["bytes"] = sum(map(len, files.values()))
        hosts = self.paths(files, "case")
        asked = trace_questions(hosts, rng, most=2) if self.a.traces else questions(self.judge.ours.program, hosts, rng, most=2)
        for tool, paths, options in asked:
            if options.get("group_by", "program") != "program" and rng.random() < 0.7:
                continue
            v = self.judge.ask(tool, paths, options)
            counts["answers"] += 1
            counts[v.kind] += 1
            if v.kind == "unstable":
                counts["unstable as ours"] += v.name == "ours"
                if v.name != "ours":
                    print(f"... case {index} unstable {tool} {options} {[os.path.basename(p) for p in paths]}: {v.lines[:3]}", file=sys.stderr)
            if v.name and v.kind == "excluded":
                counts["excluded: " + v.name] += 1
            if v.answer is not None:
                what = filled(tool, v.answer)
                if what:
                    counts[f"asked {what[0]}"] += 1
                    counts[f"filled {what[0]}"] += what[1]
            if v.kind in ("different", "our crash"):
                found.append({"case": index, "about": about, "tool": tool, "options": options, "hosts": [os.path.basename(p) for p in paths],
                              "signature": v.signature, "lines": v.lines, "kind": v.kind})
        if about["family"] == "cpu" and not self.a.traces:
            self.oracle(index, about, files, counts, found)
        counts["cases with a difference"] += bool(found)
        return counts, found

    def oracle(self, index, about, files, counts, found):
        lines = oracle.disagreements(self.counter, self.paths(files, "case")) if os.access(self.counter, os.X_OK) else None
        if lines is None:
            return
        counts["oracle asked"] += 1
        counts["oracle agrees"] += not lines
        if lines:
            found.append({"case": index, "about": about, "tool": "cpu oracle", "options": {}, "hosts": sorted(files), "signature": "cpu oracle",
                          "lines": lines, "kind": "oracle"})

    def shrink(self, d):
        """Writes the smallest case that shows the difference `d` in the same way."""
        files, _ = make_case(self.a.seed, d["case"], self.knobs, self.real)
        files = {n: files[n] for n in d["hosts"]}

        def differs(candidate):
            paths = self.paths(candidate, "shrink")
            if d["kind"] == "oracle":
                return bool(oracle.disagreements(self.counter, paths))
            if len(paths) > 1 and d["tool"] == "memory_profile":
                return False
            v = self.judge.ask(d["tool"], paths, d["options"])
            return v.kind == d["kind"] and (v.kind == "our crash" or v.signature == d["signature"])
        small = Shrinker(differs, self.a.shrink_s).run(files)
        paths = self.paths(small, "shrink")
        v = Verdict("oracle", d["tool"], oracle.disagreements(self.counter, paths)) if d["kind"] == "oracle" else self.judge.ask(d["tool"], paths, d["options"])
        name = "".join(c if c.isalnum() else "_" for c in d["signature"])[:80]
        where = os.path.join(self.a.out, name)
        notes = [f"seed {self.a.seed} case {d['case']} of {d['about']['family']}", f"{d['tool']} {d['options']}", *v.lines, "", "as generated:", *d["lines"], ""]
        write(where, small, "\n".join(notes))
        for n, data in (("expected.json", v.answer), ("actual.json", v.ours)):
            if data is not None:
                with open(os.path.join(where, n), "wb") as f:
                    f.write(data)
        for n, data in small.items():
            with open(os.path.join(where, n + ".txt"), "w", encoding="utf-8") as f:
                f.write(str(pb.XSpace.FromString(data)))
        return where

    def close(self):
        self.xprof.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


def memory_directory():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def work(args, knobs, number, todo, done):
    runner = Runner(args, knobs, number)
    try:
        for kind, what in iter(todo.get, None):
            if kind == "case":
                done.put(("case", what, *runner.case(what)))
            else:
                done.put(("shrunk", what["signature"], runner.shrink(what)))
        done.put(("end", number, runner.xprof.asked, runner.xprof.crashes + runner.xprof.timeouts))
    except Exception as e:
        done.put(("failed", number, repr(e)))
        raise
    finally:
        runner.close()


class Report:
    def __init__(self, args):
        self.a, self.counts, self.kinds, self.cases = args, collections.Counter(), collections.OrderedDict(), 0
        self.began = time.monotonic()

    def add(self, counts, found):
        self.cases += 1
        self.counts += counts
        new = []
        for d in found:
            first = self.kinds.setdefault(d["signature"], [0, d, None])
            first[0] += 1
            if first[0] == 1:
                new.append(d)
        return new

    def show(self, crashes):
        c = self.counts
        print(f"seed {self.a.seed}, {self.cases} profiles of {self.a.first} to {self.a.first + self.a.count - 1}, {c['bytes'] / 1e6:.1f} MB, "
              f"{time.monotonic() - self.began:.0f} s")
        print(f"answers {c['answers']}: equal {c['equal']}, excluded {c['excluded']}, reference unstable {c['unstable']} (at times as ours {c['unstable as ours']}), different {c['different']}, "
              f"our crashes {c['our crash']}, XProf crashes {crashes}")
        print(f"profiles with a difference: {c['cases with a difference']}; CPU as a device: the oracle agrees on {c['oracle agrees']} of {c['oracle asked']}")
        for k in sorted(k for k in c if k.startswith("excluded: ")):
            print(f"  {k} {c[k]}")
        shares = [f"{t} {c['filled ' + t]}/{c['asked ' + t]} ({100 * c['filled ' + t] / max(1, c['asked ' + t]):.0f}%)" for t in ("step", "op", "kernel", "memory")]
        print("answers with a non-empty table: " + ", ".join(shares))
        for signature, (n, d, where) in sorted(self.kinds.items(), key=lambda kv: -kv[1][0]):
            print(f"{n:6d} x {signature}   first: case {d['case']} {d['hosts']}" + (f" -> {where}" if where else ""))
            for line in d["lines"][:3]:
                print("           " + line)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    p.add_argument("--seed", default="1")
    p.add_argument("--count", type=int, default=2000)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--build")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    p.add_argument("--out", default="differences")
    p.add_argument("--data", default=os.path.join(here, "..", "data"), help="where real HLO protos are taken from")
    p.add_argument("--knob", action="append", help="NAME=VALUE of " + ", ".join(KNOBS))
    p.add_argument("--shrink", type=int, default=12, help="how many kinds of difference to shrink")
    p.add_argument("--shrink-s", type=float, default=60, help="at most that long each")
    p.add_argument("--traces", action="store_true", help="ask the trace viewers instead of the six tools")
    p.add_argument("--fail-fast", action="store_true")
    a = p.parse_args()
    knobs = parse_knobs(a.knob)
    todo, done = multiprocessing.Queue(), multiprocessing.Queue()
    indexes = iter(range(a.first, a.first + a.count))
    workers = [multiprocessing.Process(target=work, args=(a, knobs, n, todo, done), daemon=True) for n in range(a.jobs)]
    for w in workers:
        w.start()
    report, open_tasks, to_shrink, crashes, stop = Report(a), 0, [], 0, False

    def feed():
        nonlocal open_tasks
        if not stop:
            i = next(indexes, None)
            if i is not None:
                todo.put(("case", i))
                open_tasks += 1
                return
        if to_shrink:
            todo.put(("shrink", to_shrink.pop(0)))
            open_tasks += 1
    for _ in range(2 * a.jobs):
        feed()
    shrunk = 0
    while open_tasks:
        message = done.get()
        open_tasks -= 1
        if message[0] == "case":
            for d in report.add(message[2], message[3]):
                print(f"... case {d['case']} {d['signature']}: {d['lines'][:1]}", file=sys.stderr)
                if shrunk < a.shrink:
                    shrunk += 1
                    to_shrink.append(d)
                stop = stop or a.fail_fast
            if report.cases % 200 == 0:
                print(f"... {report.cases} profiles, {report.counts['different']} different", file=sys.stderr)
        elif message[0] == "shrunk":
            report.kinds[message[1]][2] = message[2]
        else:
            sys.exit(f"a worker failed: {message[2]}")
        feed()
    for _ in workers:
        todo.put(None)
    for _ in workers:
        crashes += done.get()[3]
    for w in workers:
        w.join()
    report.show(crashes)
    sys.exit(1 if report.kinds else 0)


if __name__ == "__main__":
    main()
