# SPDX-License-Identifier: Apache-2.0
"""Captures and schedules of a daemon that is killed: what they had begun goes with the next start.  Profiler servers that
send what nobody should hold."""

import contextlib
import json
import random
import socket
import subprocess
import time

from harness import MIB, PATIENCE, Http2, Skip, answer_url, check, end_process, equal, left_of, wait_for
from hostile_profiler import HostileProfiler
from test_memory import growth

MODES = (("ok", 4 * MIB, 0), ("ok", 1000, 300), ("trickle", 100_000, 0), ("hang", 0, 0))


@contextlib.contextmanager
def fake_profilers(run, modes=MODES):
    """Profiler servers, (mode, bytes, milliseconds more) each: their addresses."""
    program = run.build / "tests/capture/fake_profiler"
    if not program.exists():
        raise Skip("the build has no tests/capture/fake_profiler")
    fakes = []
    try:
        for mode in modes:
            fakes.append(subprocess.Popen([program, *map(str, mode)], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        yield [f.stdout.readline().decode().strip() for f in fakes]
    finally:
        for f in fakes:
            f.stdin.close()
            f.stdout.close()
            end_process(f)


def listing(d, command):
    done = d.ctl("--json", command)
    equal(done.returncode, 0, f"{command}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def capture_until_killed(run, d, targets, i, moment):
    """Begins captures, kills the daemon at the moment (seconds; None: when it has just made a session's directory),
    and returns when their clients are over."""
    ctl = [str(run.build / "cli/xplanectl"), "--server", d.address, "capture", "--duration", "50ms", "--quiet"]
    several = [ctl + ["--session", f"all{i}", ",".join(targets)], ctl + [targets[0]], ctl + ["--session", "same", targets[1]]]
    clients = [subprocess.Popen(c, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for c in several]
    if moment is None:
        wait_for((d.logdir / "plugins/profile" / f"all{i}").exists, 30, "no session", every=0)
    else:
        time.sleep(moment)
    d.kill()
    for c in clients:
        end_process(c, 20)


def test_kills_of_captures(run):
    """SIGKILL at random moments of captures and schedules: the next daemon on the same files removes the sessions that
    have no whole profile, knows which captures were interrupted, and goes on with the schedules and what they keep."""
    chance = random.Random(run.parameter("SEED", 1, 1))
    state, logdir = run.make_dir("state"), run.make_dir("logdir")
    profiles = logdir / "plugins/profile"
    kills = run.parameter("CAPTURE_KILLS", 8, 300)
    with fake_profilers(run, MODES + (("ok", MIB, 0),)) as addresses:
        *targets, scheduled = addresses
        d = run.start(logdir=logdir, state=state)
        done = d.ctl("capture", "--every", "1100ms", "--duration", "50ms", "--keep", "2", "--session", "often", scheduled)
        equal(done.returncode, 0, f"a schedule: {done.stderr.decode()}")
        found = 0
        for i in range(kills):
            capture_until_killed(run, d, targets, i, None if i % 2 else chance.choice((0.05, 0.3, 1.0, 2.5)) * chance.random())
            before = [p for p in profiles.glob("*") if left_of(p)]
            found += len(before)
            d = run.start(logdir=logdir, state=state)
            # A schedule may have made one of the same name anew, and be about to write it.
            for p in before:
                wait_for(lambda p=p: not left_of(p), 30, f"kill {i} left {p.name}: {left_of(p)}")
            check(d.status() and "state.db" not in d.log(), f"state.db is in use: {d.log()[-1000:]}")
        check(found > 0, "none of the captures was broken off")
        after_kills(d, targets, profiles, kills)


def after_kills(d, targets, profiles, kills):
    """What the history, the schedules and the sessions are when all is over."""
    schedules = listing(d, "schedules")
    equal(len(schedules), 1, "schedules")
    captures = listing(d, "captures")  # the newest 100
    check(len(captures) > min(kills, 100) // 2, f"{len(captures)} captures after {kills} kills")
    # The last daemon's may run.
    equal({c["state"] for c in captures[2:]} - {"done", "partial", "failed"}, {"interrupted"}, "states of captures")
    for c in captures:
        if c["state"] in ("done", "partial") and not c["session"].startswith("often_"):  # those are removed in their turn
            stored = [h["host"] for h in c["hosts"] if h["state"] == "stored"]
            there = {p.name for p in (profiles / c["session"]).glob("*.xplane.pb")}
            check(stored and there >= {f"{h}.xplane.pb" for h in stored}, f"{c}: the session has {there}")
    # Those that a killed daemon had stored, and not noted yet, are among those it keeps two of; one more may be coming.
    wait_for(lambda: len(list(profiles.glob("often_*"))) <= 3, 30, "the schedule keeps more than two sessions")
    done = d.ctl("unschedule", schedules[0]["id"])
    equal(done.returncode, 0, f"unschedule: {done.stderr.decode()}")
    done = d.ctl("capture", "--duration", "50ms", "--session", "last", ",".join(targets[:2]))
    equal(done.returncode, 0, f"a capture after all kills: {done.stderr.decode()}")
    # The schedule's last capture receives the request to end, and does when its client is free.
    wait_for(lambda: not listing(d, "schedules") and all(c["state"] != "running" for c in listing(d, "captures")), 30, "the end")
    equal({p.name: left_of(p) for p in profiles.iterdir() if left_of(p)}, {}, "what was broken off")
    for p in profiles.iterdir():
        got = d.get(answer_url(p.name, "overview_page"))
        equal(got.status, 200, f"{p.name}: {got}")


def test_captures_side_by_side(run):
    """With the default limits as many answers are received at once as there is memory for, by what they say of their
    size; what one may become at most (2 GiB) would let in one alone."""
    with fake_profilers(run, (("trickle", 20 * MIB, 0),) * 6) as targets:
        d = run.start("--memory-limit=2GiB", "--memory-total=4GiB", "--answer-cache=256MiB", logdir=run.make_dir("logdir"))
        ctl = [str(run.build / "cli/xplanectl"), "--server", d.address, "capture", "--duration", "10ms", "--quiet"]
        clients = [subprocess.Popen(ctl + [t], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for t in targets]

        def receiving():
            return [h["state"] for c in listing(d, "captures") for h in c["hosts"]].count("receiving")

        try:
            wait_for(lambda: receiving() == len(targets), 60, "six answers of 20 MiB at once")
        finally:
            for c in clients:
                end_process(c, 20)
        wait_for(lambda: receiving() == 0, 60, "captures that are given up end")


test_captures_side_by_side.slow = True


def test_answers_that_are_too_large(run):
    """A profiler server makes the daemon hold no more than --memory-limit, however it sends what is no profile; one that
    announces more is refused before that comes."""
    limit, more_than_4 = 128 * MIB, 0xFFFFFFF0
    d = run.start("--memory-limit=128MiB", "--memory-total=256MiB", logdir=run.make_dir("logdir"))

    def attack(most, expected, **how):
        with HostileProfiler(**how) as hostile:

            def work():
                done = d.ctl("capture", hostile.address, "--duration", "10ms", "--retries", "0", "--answer-timeout", "20s")
                equal(done.returncode, 1, f"{how}: {done.stderr.decode()}")
                check(expected in done.stderr.decode(), f"{how}: {done.stderr.decode()}")

            more = growth(d, work)
            check(more < most, f"{how}: {more // MIB} MiB more in the daemon, {hostile.sent // MIB} MiB sent")

    attack(16 * MIB, "one answer may have", announced=more_than_4)
    attack(16 * MIB, "one answer may have", announced=600 * MIB)
    # Nobody reads ahead there: the rest is not received.
    attack(limit + 48 * MIB, "larger than one answer may be", announced=more_than_4, path=run.make_dir("socket") / "s")
    attack(32 * MIB, "the connection broke", announced=100 * MIB, frame=24)
    attack(32 * MIB, "failed:", endless_headers=True)
    attack(32 * MIB, "the connection broke", announced=100 * MIB, frame=24, hides=True)
    attack(32 * MIB, "failed:", endless_headers=True, hides=True)
    d.answers()


WORKER_REQUEST = b"\x0a\x06\x12\x04none"  # origin_request.tool_name, which no daemon serves


def test_fallback_that_answers_too_much(run):
    """A worker to which others' requests are forwarded makes the daemon hold no more than --memory-limit."""
    with HostileProfiler(announced=0xFFFFFFF0) as hostile:
        d = run.start("--memory-limit=128MiB", "--memory-total=256MiB", f"--xprof-worker=unix:{run.dir}/worker.sock",
                      f"--worker-dir={run.make_dir('worker')}", f"--worker-fallback={hostile.address}", logdir=run.make_dir("logdir"))

        def work():
            worker = socket.socket(socket.AF_UNIX)
            worker.settimeout(PATIENCE)
            worker.connect(f"{run.dir}/worker.sock")
            with Http2(worker) as h:
                code, text, _ = h.call("/xprof.pywrap.XprofAnalysisWorkerService/GetProfileData", WORKER_REQUEST)
                equal(code, 8, text)

        more = growth(d, work)
        check(more < 176 * MIB, f"{more // MIB} MiB more in the daemon, {hostile.sent // MIB} MiB sent")
        d.answers()


test_kills_of_captures.slow = True
test_kills_of_captures.limit = 150
test_kills_of_captures.whole_limit = 3600
