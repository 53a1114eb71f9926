#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every tool of a page on real profiles, live against the real XProf.

    run.py [--corpus DIR]... [--build DIR] [--comparer PATH] [--oracle] [--without-daemon]

Profiles: tests/data, and every DIR given.  A directory of files below DIR is one session, asked host by host and all
together; files right in DIR are sessions of their own.  Each request is asked of `xplanectl analyze` and of a daemon through
`xplanectl tool`, both times as XProf answers it (xprof_exact=true) and plainly (where a difference must be one that
docs/differences.md names); with --oracle, CPU-only sessions also as a device (against cpu_oracle.py).  Prints one line per
session and a count for each exception.  Exit 1 where anything differed.
"""
import argparse
import collections
import contextlib
import os
import sys
import tempfile

import oracle
from daemon import running
from judge import EXACT, PLAIN, Judge, questions
from ours import Ours, Served, make_log_directory
from xprof_worker import XProf

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "logdir")


def sessions(directory):
    """[(name, [files])] of a directory of profiles."""
    out = []
    for top, dirs, names in sorted(os.walk(directory)):
        files = sorted(os.path.join(top, n) for n in names if n.endswith(".xplane.pb"))
        if top == directory:
            out += [(os.path.basename(f), [f]) for f in files]
        elif files:
            out.append((os.path.relpath(top, directory), files))
    return out


class Run:
    def __init__(self, judge, served):
        self.judge, self.ways = judge, [("analyze", judge.ours)] + ([("tool", served)] if served else [])
        self.exceptions, self.counts, self.failed = collections.Counter(), collections.Counter(), []

    def ask(self, name, tool, paths, options, way, mode, ours_options):
        said, self.judge.ours = way
        v = self.judge.ask(tool, paths, options, ours_options)
        self.counts[v.kind] += 1
        if v.kind == "excluded":
            self.exceptions[v.name] += 1
        if v.kind in ("different", "our crash"):
            self.failed.append((name, tool, options, [os.path.basename(p) for p in paths], f"{said}, {mode}", v.lines))
        return v.kind

    def session(self, name, files):
        kinds = collections.Counter()
        for tool, paths, options in questions(self.judge.ours.program, files):
            for way in self.ways:
                for mode, ours_options in (("exact", EXACT), ("plain", PLAIN)):
                    kinds[self.ask(name, tool, paths, options, way, mode, ours_options)] += 1
        print(f"{name}: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())), flush=True)

    def oracle(self, name, files, counter):
        lines = oracle.disagreements(counter, files)
        if lines is not None:
            self.counts["CPU profiles equal to the oracle"] += not lines
        if lines:
            self.failed.append((name, "cpu oracle", {}, [], "cpu_as_device", lines))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--corpus", action="append", default=[])
    p.add_argument("--build")
    p.add_argument("--comparer", help="another program that compares two answers, as compare.py does")
    p.add_argument("--only", help="sessions whose name has this in it")
    p.add_argument("--oracle", action="store_true")
    p.add_argument("--without-daemon", action="store_true", help="only xplanectl analyze")
    a = p.parse_args()
    found = [s for d in [DATA, *a.corpus] for s in sessions(d) if not a.only or a.only in s[0]]
    with tempfile.TemporaryDirectory() as scratch, XProf(scratch=scratch) as xprof:
        ours = Ours(a.build, scratch)
        build = os.path.dirname(os.path.dirname(ours.program))
        counter = os.path.join(build, "tests", "parity", "convert_opstats")
        with contextlib.ExitStack() as ends:
            served = None
            if not a.without_daemon:
                log_directory, places = make_log_directory(scratch, found)
                served = Served(ends.enter_context(running(build, log_directory)), places, ours.out)
            run = Run(Judge(xprof, ours, a.comparer, scratch, remember=True), served)
            for name, files in found:
                run.session(name, files)
                if a.oracle:
                    run.oracle(name, files, counter)
        crashes = xprof.crashes + xprof.timeouts
    print(f"{sum(run.counts.values())} answers of {len(found)} sessions: " + ", ".join(f"{n} {k}" for k, n in sorted(run.counts.items())) +
          f"; XProf crashes {crashes}")
    for k, n in sorted(run.exceptions.items()):
        print(f"  exception {k}: {n}")
    for name, tool, options, hosts, mode, lines in run.failed:
        print(f"DIFFERENT {name} {tool} {options} {hosts} ({mode})")
        for line in lines[:5]:
            print("    " + line[:300])
    sys.exit(1 if run.failed else 0)


if __name__ == "__main__":
    main()
