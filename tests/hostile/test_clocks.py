# SPDX-License-Identifier: Apache-2.0
"""The clock jumps, forwards and backwards, while a daemon answers, captures and keeps schedules (libfaketime)."""

import glob
import json
import sys
import time

from harness import ROOT, Skip, answer_url, check, equal, reference_answers, same_answer, wait_for
from test_captures import fake_profilers, listing

JUMPS = ("+1h", "+30d", "-30d", "-1h", "+5y", "-5y", "+0")


class FakeClock:
    """The wall clock of a daemon: `env` is for its start; time since boot goes on as it does."""

    def __init__(self, run, name="clock"):
        if run.sanitized:
            raise Skip("a sanitizer's library must come first in LD_PRELOAD")
        library = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        if not library:
            raise Skip("no libfaketime")
        self.path = run.dir / name
        self.jump("+0")
        self.env = {"LD_PRELOAD": library[0], "FAKETIME_TIMESTAMP_FILE": str(self.path), "FAKETIME_NO_CACHE": "1",
                    "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1", "NO_FAKE_STAT": "1"}

    def jump(self, to):
        """From now on the clock is so far from the machine's."""
        self.path.write_text(to + "\n")


def test_clock_jumps(run):
    """Answers, labels and captures work at any time; a schedule goes on within a few of its periods; the next daemon, which
    starts with the clock right again, has the history and the schedule."""
    logdir, state = run.logdir("jax_matmul_nopy"), run.make_dir("state")
    expected = reference_answers(run, logdir, tools=("overview_page", "trace_viewer@"))
    clock = FakeClock(run)
    with fake_profilers(run, (("ok", 1000, 0), ("ok", 1000, 0))) as (target, scheduled):
        d = run.start("--no-prefetch", "--scan-interval=50ms", "--allow-delete", logdir=logdir, state=state, env=clock.env)
        done = d.ctl("capture", "--every", "1100ms", "--duration", "10ms", "--keep", "2", "--session", "often", scheduled)
        equal(done.returncode, 0, f"a schedule: {done.stderr.decode()}")

        def captured():
            """The newest capture of the schedule that has ended: the schedule waits then."""
            return max((c["id"] for c in listing(d, "captures") if c["session"].startswith("often") and c["state"] == "done"), default=0)

        wait_for(captured, 20, "the schedule's first capture")
        for i, jump in enumerate(JUMPS):
            now = captured()
            before = wait_for(lambda now=now: (new := captured()) > now and new, 20, f"before {jump} the schedule stands still")
            clock.jump(jump)
            for (session, tool), answer in expected.items():
                same_answer(d.get(answer_url(session, tool)), answer, f"{tool} after {jump}")
            done = d.ctl("capture", "--duration", "10ms", "--session", f"one{i}", target)
            equal(done.returncode, 0, f"a capture after {jump}: {done.stderr.decode()}")
            equal(d.ctl("label", f"one{i}", "jumped").returncode, 0, f"a label after {jump}")
            equal(d.get(answer_url(f"one{i}", "overview_page")).status, 200, f"what was captured after {jump}")
            wait_for(lambda before=before: captured() > before, 20, f"after {jump} the schedule stands still")
        check(f"{time.gmtime(time.time() + 5 * 365 * 86400).tm_year}-" in d.log(), "the daemon's clock did not jump")
        equal(d.stop(), 0, "exit status")
        d = run.start("--no-prefetch", "--scan-interval=50ms", "--allow-delete", logdir=logdir, state=state)
        equal(len(listing(d, "schedules")), 1, "schedules")
        last = captured()
        wait_for(lambda: captured() > last, 20, "the schedule goes on in the next daemon")
        names = {c["session"] for c in listing(d, "captures")}
        equal({f"one{i}" for i in range(len(JUMPS))} - names, set(), "captures that the history lacks")
        equal(d.ctl("unschedule", listing(d, "schedules")[0]["id"]).returncode, 0, "unschedule")


test_clock_jumps.slow = True
test_clock_jumps.limit = 300


def test_clock_jumps_of_a_fleet(run):
    """Of two daemons that share a database one clock jumps, then the other: both stay known as alive, each sees what the other
    captured and labelled, and a schedule goes on with one capture at a time."""
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
        raise Skip("no server of PostgreSQL")
    sys.path.insert(0, str(ROOT / "tests/cluster"))
    from measure import Database  # pylint: disable=import-outside-toplevel,import-error
    clocks = [FakeClock(run, name) for name in ("one", "two")]
    logdir = run.logdir("jax_matmul_nopy")
    run.dir.chmod(0o755)
    database = Database(str(run.make_dir("database")))
    try:
        with fake_profilers(run, (("ok", 1000, 0), ("ok", 1000, 0))) as (target, scheduled):
            daemons = [run.start("--no-prefetch", "--scan-interval=50ms", f"--store={database.url}", logdir=logdir, env=c.env) for c in clocks]
            done = daemons[0].ctl("capture", "--every", "1100ms", "--duration", "10ms", "--session", "often", scheduled)
            equal(done.returncode, 0, f"a schedule: {done.stderr.decode()}")

            def captured(d):
                return max((c["id"] for c in listing(d, "captures") if c["session"].startswith("often") and c["state"] == "done"), default=0)

            def alive(d):
                return len(json.loads(d.ctl("--json", "fleet").stdout)["daemons"])

            for i, jump in enumerate(JUMPS):
                before = wait_for(lambda: captured(daemons[0]), 20, "the schedule's first capture")
                clocks[i % 2].jump(jump)
                mine, other = daemons[i % 2], daemons[1 - i % 2]
                done = mine.ctl("capture", "--duration", "10ms", "--session", f"one{i}", target)
                equal(done.returncode, 0, f"a capture after {jump}: {done.stderr.decode()}")
                wait_for(lambda i=i, other=other: f"one{i}" in other.sessions(), 60, f"after {jump} the other daemon does not list a session")
                done = other.ctl("label", f"one{i}", "jumped")
                equal(done.returncode, 0, f"a label after {jump}: {done.stderr.decode()}")
                for d in daemons:
                    wait_for(lambda d=d, before=before: captured(d) > before, 60, f"after {jump} the schedule stands still")
                    equal(alive(d), 2, f"daemons that are alive after {jump}")
                    check(f"one{i}" in {c["session"] for c in listing(d, "captures")}, f"after {jump} a capture is unknown")
                running = [c for c in listing(other, "captures") if c["session"].startswith("often") and c["state"] == "running"]
                check(len(running) <= 1, f"after {jump}: {len(running)} captures at once")
    finally:
        for d in run.daemons:
            d.stop(60)
        database.stop()


test_clock_jumps_of_a_fleet.slow = True
test_clock_jumps_of_a_fleet.limit = 300
