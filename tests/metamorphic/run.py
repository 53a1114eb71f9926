#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must not change an answer, and what parts of one add up to.  README.md lists the relations.

    run.py BUILD [--quick] [--corpus DIR] [--python PROGRAM] [--seed N] [--only TEXT]

Profiles are those of tests/data, and of DIR (cpu/, real/ and kineto/ of the corpus).  --quick: three small ones, and a few
changes.  PROGRAM is a python that has the client of client/python.  Prints "passed|failed|skipped NAME  [SECONDS]" and ends with
their counts.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import traceback

import bundles
import kineto
import relations
import transforms
import views

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
QUICK = ("jax_matmul_nopy", "mi300_jax_gemm", "jax_odd_names", "never.xplane.pb.gz")
QUICK_CHANGES = (transforms.metadata_ids, transforms.order_of_planes, transforms.unknown_fields, transforms.line_origins)
LARGE = 8 << 20  # of a file: not changed, because protobuf's Python takes minutes


class Session:
    def __init__(self, folder, files):
        self.folder, self.name, self.files = folder, folder.name, files
        self.served = f"{folder.parents[2].name}/{folder.name}"  # as a daemon over tests/data/logdir calls it


def sessions(top):
    """Sessions of a directory: its folders with profiles; a profile that lies in `top` is one of its own."""
    found = {}
    for path in sorted(top.rglob("*.xplane.pb*")):
        found.setdefault(path if path.parent == top else path.parent, []).append(path)
    for folder, files in sorted(found.items(), key=lambda x: sum(f.stat().st_size for f in x[1])):
        yield Session(folder, files)


class Results:
    def __init__(self, only):
        self.only, self.counts = only, {"passed": 0, "failed": 0, "skipped": 0}

    def say(self, outcome, name, start, lines=()):
        self.counts[outcome] += 1
        print(f"{outcome} {name}  [{time.monotonic() - start:.1f} s]", flush=True)
        for line in lines:
            print(f"    {line[:400]}", flush=True)

    def check(self, name, lines):
        if self.only not in name:
            return
        start = time.monotonic()
        try:
            lines = [line for _, line in zip(range(12), lines)]
        except (KeyError, TypeError, ValueError, AttributeError):  # an answer of another form
            lines = traceback.format_exc().splitlines()[-4:]
        self.say("failed" if lines else "passed", name, start, lines)

    def skip(self, name, why):
        if self.only in name:
            self.say("skipped", f"{name}: {why}", time.monotonic())

    def finish(self):
        print("{passed} passed, {failed} failed, {skipped} skipped".format(**self.counts))
        sys.exit(self.counts["failed"] > 0 or not self.counts["passed"])


class Served:
    """A daemon over some sessions."""

    def __init__(self, daemon):
        self.daemon = daemon

    def tool(self, tool, session):
        return self.daemon.tool(tool, session)

    def sql(self, statement):
        command = [self.daemon.ctl, "--server", self.daemon.address, "sql", "--json", statement]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)["rows"][0][0]


def in_python(program, address):
    """What client_totals.py says of the sessions of a daemon."""
    done = subprocess.run([program, HERE / "client_totals.py", address], capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"client_totals.py: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def alone(session, asked, results, out, rnd, changes):
    """All that concerns one session."""
    name = session.name
    session.views = asked.names(len(session.files) > 1)
    if any(results.only in f"{name}: {c}" for c in ("other_jobs", *(c.__name__ for c in changes))):
        session.answers = asked.all(session.views, session.files)
    small = all(f.stat().st_size <= LARGE and transforms.is_whole(f) for f in session.files)
    for change in changes:
        seed = rnd.random()
        if small:
            results.check(f"{name}: {change.__name__}", relations.same_answers(session, change, asked, out, seed))
        else:
            results.skip(f"{name}: {change.__name__}", "a large or a damaged file")
    results.check(f"{name}: other_jobs", relations.other_jobs(session, asked))
    results.check(f"{name}: compare_itself", relations.compare_itself(session, asked))
    results.check(f"{name}: windows", relations.windows(session, asked, rnd))
    if len(session.files) == 1 and small:
        results.check(f"{name}: split_hosts", relations.split_hosts(session, asked, out, rnd))
        results.check(f"{name}: split_lines", relations.split_lines(session, asked, out, rnd))
        results.check(f"{name}: twins", relations.twins(session, asked, out, rnd))


def together(some, asked, results, build, python):
    """What concerns several sessions, and the daemon over those of tests/data."""
    for a, b in zip(some, some[1:]):
        results.check(f"{a.name}, {b.name}: compare_back", relations.compare_back(a, b, asked))
    from daemon import running
    with running(build, DATA / "logdir") as daemon:
        served = Served(daemon)
        mine = [s for s in some if DATA / "logdir" in s.folder.parents]
        for s in mine:
            daemon.tool("op_list", s.served)
        known = in_python(python, daemon.address) if python else None
        for s in some:
            for relation in relations.TOTALS:
                places = (served, known) if s in mine else (None, None)
                results.check(f"{s.name}: {relation.__name__}", relation(s, *places, asked))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--corpus", type=pathlib.Path)
    p.add_argument("--python", help="one that has the client of client/python")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="", help="checks whose names have this in them")
    a = p.parse_args()
    asked, results, rnd = views.Views(a.build / "cli" / "xplanectl"), Results(a.only), random.Random(a.seed)
    some = [s for s in [*sessions(DATA / "logdir"), *sessions(DATA / "steps")] if not a.quick or s.name in QUICK]
    known = {s.name for s in some}
    for folder in ("cpu", "real") if a.corpus else ():
        some += [s for s in sessions(a.corpus / folder) if s.name.split(".")[0] not in known]
    if not a.quick and not a.corpus:
        results.skip("corpus", "no --corpus")
    if not a.python:
        results.skip("totals of the Python client", "no --python")
    with tempfile.TemporaryDirectory() as out:
        for s in some:
            alone(s, asked, results, pathlib.Path(out), rnd, QUICK_CHANGES if a.quick else transforms.CHANGES)
        together(some, asked, results, a.build, a.python)
        kineto.run(asked, results, pathlib.Path(out), rnd, [DATA / "pytorch", *([a.corpus / "kineto"] if a.corpus else [])])
        bundles.run(asked, results, DATA / "iree", a.quick)
    results.finish()


if __name__ == "__main__":
    main()
