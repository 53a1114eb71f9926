# SPDX-License-Identifier: Apache-2.0
"""What a capture does with real JAX programs and with what only looks like one; directly and through a daemon."""
import json
import signal
import time

import same_as_xprof
from harness import Direct, Silent, Web, report_of, free_port, is_captureable, occupy, sessions, wait_until

SHORT = ("--duration", "800ms")


def by_target(document):
    return {h["target"]: h for h in document["hosts"]}


PARTLY = 3


def name_said(said, code=0):
    """The session's name, which must be all of the standard output."""
    assert said.code == code, said
    assert said.out.count("\n") == 1 and said.out.strip(), said
    return said.out.strip()


def check_nothing_new(way, before, said):
    """A capture without a profile: exit status 1 and nothing on the disk, not even an empty directory."""
    assert said.code == 1 and not said.out.strip(), said
    assert sessions(way.logdir) == before, sessions(way.logdir)


def check_profiles(way, session, count):
    files = sessions(way.logdir)[session]
    assert len([f for f in files if f.endswith(".xplane.pb")]) == count, files
    assert len(files) == count + 1 and "capture.json" in files, files


def check_idle(host, said):
    assert host["state"] == "idle" and "host" not in host and host["reason"], host
    assert host["reason"] in said.err, said


def check_stored(way, session, host):
    path = way.directory(session) / f"{host['host']}.xplane.pb"
    assert host["state"] == "stored" and host["events"] > 0 and host["bytes"] == path.stat().st_size, host


# ---- what works ----

def one_host(way, jobs):
    """One program; the session answers at once, with the steps that the program marked."""
    said = way.capture([jobs[0].address], *SHORT)
    session = name_said(said)
    check_profiles(way, session, 1)
    document = report_of(way.logdir, session)
    host, = document["hosts"]
    check_stored(way, session, host)
    assert document["session"] == session and document["options"]["duration_ms"] == 800, document
    assert host["target"] == jobs[0].address and host["attempts"] == 1 and "reason" not in host, host
    assert host["host"] == jobs[0].address.replace(":", "_"), host
    assert jobs[0].address in said.err and "stored" in said.err, said
    answer = way.overview(session)
    assert answer.code == 0 and "tep" in answer.out, answer


def four_processes(way, jobs):
    """Four processes of one machine: one session, one file each, one start; XProf answers as we do."""
    targets = [j.address for j in jobs]
    session = name_said(way.capture(targets, *SHORT))
    check_profiles(way, session, 4)
    hosts = report_of(way.logdir, session)["hosts"]
    for h in hosts:
        check_stored(way, session, h)
    starts = [h["start_unix_ns"] for h in hosts]
    assert max(starts) - min(starts) <= 5_000_000, starts
    assert len({h["host"] for h in hosts}) == 4 and [h["target"] for h in hosts] == targets, hosts


def equal_in_xprof(way, jobs):
    """The real XProf opens a session of two hosts, and every tool answers as ours does."""
    session = name_said(way.capture([j.address for j in jobs[:2]], *SHORT))
    same_as_xprof.check(way.place.build, way.directory(session), way.place.directory("xprof"))


def names(way, jobs):
    """Names that are given; a session's name that is taken already; names that would be paths."""
    targets = [j.address for j in jobs[:2]]
    first = name_said(way.capture(targets, *SHORT, "--session", "given", "--host-names", "../../up,.hidden"))
    second = name_said(way.capture(targets[:1], *SHORT, "--session", "given"))
    assert first == "given" and second not in ("", "given") and second.startswith("given"), (first, second)
    check_profiles(way, first, 2)
    for f in sessions(way.logdir)[first]:
        assert not f.startswith(".") and "/" not in f, f
    said = way.capture(targets[:1], *SHORT, "--session", "../up")
    assert said.code != 0 and not (way.logdir / "plugins" / "up").exists(), said


def options(way, jobs):
    """Options arrive; a level that is not given is the usual one, and 0 is off."""
    said = way.capture([jobs[0].address], *SHORT, "--delay", "300ms", "--retries", "2", "--device-tracer", "0", "--advanced", "number=3",
                       "--advanced", "flag=true", "--advanced", "text=some words")
    document = report_of(way.logdir, name_said(said))
    asked, host = document["options"], document["hosts"][0]
    assert asked["delay_ms"] == 300 and asked["retries"] == 2 and asked["device_tracer_level"] == 0, asked
    assert asked["advanced"] == {"number": 3, "flag": True, "text": "some words"}, asked
    assert asked.get("host_tracer_level", 2) == 2, asked
    assert host["start_unix_ns"] - document["begin_unix_ns"] >= 299_000_000, document
    for levels, why in ((("--host-tracer", "0"), "the host tracer is off (level 0)"),
                        (("--host-tracer", "0", "--device-tracer", "0"), "leave one of them on")):
        said = way.capture([jobs[0].address], *SHORT, *levels)
        assert said.code == 1 and why in said.err, said


def idle_beside_busy(way, jobs, idle):
    """A program without work beside one at work: a session of one, equal in XProf."""
    said = way.capture([idle.address, jobs[0].address], *SHORT)
    session = name_said(said, PARTLY)
    check_profiles(way, session, 1)
    check_idle(by_target(report_of(way.logdir, session))[idle.address], said)
    same_as_xprof.check(way.place.build, way.directory(session), way.place.directory("xprof"))


def two_at_once(way, jobs):
    """Two captures of different programs at the same time become two sessions."""
    both = [way.start([j.address], *SHORT) for j in jobs[:2]]
    found = {name_said(p.finish()) for p in both}
    assert len(found) == 2, found
    for session in found:
        check_profiles(way, session, 1)


# ---- what does not ----

def all_sorts(way, jobs, idle):
    """A program at work, an idle one, a dead port, a web server and a socket that says nothing: a session with an account."""
    silent, web, dead = Silent(), Web(), f"127.0.0.1:{free_port()}"
    try:
        said = way.capture([silent.address, dead, idle.address, jobs[0].address, web.address], *SHORT)
    finally:
        silent.end()
        web.end()
    session = name_said(said, PARTLY)
    check_profiles(way, session, 1)
    hosts = by_target(report_of(way.logdir, session))
    check_stored(way, session, hosts[jobs[0].address])
    check_idle(hosts[idle.address], said)
    wanted = {
        dead: ("UNAVAILABLE", "refused"),
        web.address: (("UNAVAILABLE", "DEADLINE_EXCEEDED"), ("web server", "not a profiler server")),
        silent.address: ("DEADLINE_EXCEEDED", "no profiler server answered"),
    }
    for target, (code, words) in wanted.items():
        h = hosts[target]
        words = (words,) if isinstance(words, str) else words
        assert h["state"] == "failed" and h["code"] in code and any(w in h["reason"] for w in words), h
        assert h["reason"] in said.err, said
    assert way.overview(session).code == 0


def nothing_at_all(way, jobs, idle):
    """All idle, all dead: a failure that says why, and no session."""
    before, dead = sessions(way.logdir), f"127.0.0.1:{free_port()}"
    said = way.capture([idle.address], *SHORT)
    check_nothing_new(way, before, said)
    assert "idle" in said.err or "did nothing" in said.err, said
    said = way.capture([dead], *SHORT)
    check_nothing_new(way, before, said)
    assert "refused" in said.err, said
    said = way.capture([dead, idle.address], *SHORT)
    check_nothing_new(way, before, said)
    assert "refused" in said.err and dead in said.err and idle.address in said.err, said


def wrong_usage(way, jobs):
    """Targets and options that make no sense are refused before anything happens."""
    before = sessions(way.logdir)
    for targets, options in (([jobs[0].address, jobs[0].address], SHORT), (["grpc://host:1"], SHORT), (["host"], SHORT), (["host:0"], SHORT),
                             ([jobs[0].address], ("--duration", "0s")), ([jobs[0].address], ("--duration", "2 parsecs"))):
        said = way.capture(targets, *options)
        assert said.code != 0 and said.err.strip() and not said.out.strip(), said
    assert sessions(way.logdir) == before


def profiled_already(way, jobs):
    """Somebody else profiles the program: his profile is unharmed, ours fails with that reason; with retries it comes."""
    job = jobs[1]
    for ms in (4000, 20000):  # on a busy machine ours may start after a short one has ended
        before, theirs = sessions(way.logdir), occupy(job.address, ms)
        said = way.capture([job.address], *SHORT)
        if not theirs.done():
            break
    assert not theirs.done(), "their profile ended too early for this test"
    check_nothing_new(way, before, said)
    assert "another profile" in said.err, said
    session = name_said(way.capture([job.address], *SHORT, "--retries", "30"))
    host, = report_of(way.logdir, session)["hosts"]
    assert host["attempts"] > 1, host
    check_stored(way, session, host)
    assert len(theirs.result()) > 10000


def dies(way, jobs):
    """A program that is killed in the middle of its capture: the others' profiles are kept."""
    victim = way.place.job().ready()
    running = way.start([victim.address, jobs[0].address], "--duration", "6s")
    running.says(f"{victim.address}: collecting")
    time.sleep(1)
    victim.kill()
    said = running.finish()
    session = name_said(said, PARTLY)
    check_profiles(way, session, 1)
    host = by_target(report_of(way.logdir, session))[victim.address]
    assert host["state"] == "failed" and host["code"] == "UNAVAILABLE" and "ended" in host["reason"], host


def cancelled(way, jobs):
    """Interrupted in the middle: nothing is left, and the hosts are free at once."""
    before, targets = sessions(way.logdir), [j.address for j in jobs[:2]]
    running = way.start(targets, "--duration", "60s")
    running.says(*(f"{t}: collecting" for t in targets))
    time.sleep(0.5)
    running.process.send_signal(signal.SIGINT)
    said = running.finish()
    assert said.code != 0 and not said.out.strip() and said.seconds < 55, said
    for t in targets:
        wait_until(f"{t} is free again", lambda t=t: is_captureable(t))
    wait_until("nothing is left", lambda: sessions(way.logdir) == before)
    name_said(way.capture(targets, *SHORT))


def twice_the_same(way, jobs):
    """A program that is being captured: a second capture says so, and has the others."""
    busy, other = jobs[0].address, jobs[1].address
    for duration in ("6s", "30s"):  # on a busy machine both may start after a short one has ended
        first = way.start([busy], "--duration", duration)
        first.says(f"{busy}: collecting")
        alone, both = way.capture([busy], *SHORT), way.capture([busy, other], *SHORT)
        meanwhile = first.process.poll() is None
        name_said(first.finish())
        if meanwhile:
            break
    assert meanwhile, "the first capture ended too early for this test"
    assert alone.code == 1 and not alone.out and busy in alone.err, alone
    check_profiles(way, name_said(both, PARTLY), 1)
    # Without a daemon the program itself reports it; a daemon names which of its captures holds the
    # host.
    for said in (alone, both):
        assert busy in said.err and ("another profile" in said.err or "is being captured by capture " in said.err), said


# ---- only with a daemon ----

def imports(way, jobs):
    """A profile taken elsewhere, a whole session, and files that are no profiles."""
    elsewhere = way.place.directory("elsewhere")
    from_jax = elsewhere / "from_jax.xplane.pb"
    direct = Direct(way.place)
    taken = name_said(direct.capture([j.address for j in jobs[:2]], *SHORT))
    one, two = sorted(direct.directory(taken).glob("*.xplane.pb"))
    from_jax.write_bytes(one.read_bytes())
    said = way.ctl("import", from_jax, "--session", "imported")
    assert name_said(said) == "imported", said
    assert (way.directory("imported") / from_jax.name).read_bytes() == one.read_bytes()
    assert way.overview("imported").code == 0
    said = way.ctl("import", direct.directory(taken), "--session", "whole")
    assert name_said(said) == "whole", said
    assert {one.name, two.name} <= sessions(way.logdir)["whole"]
    before = sessions(way.logdir)
    (elsewhere / "truncated.xplane.pb").write_bytes(one.read_bytes()[:-7])
    said = way.ctl("import", elsewhere, "--session", "truncated")
    assert said.code == 1 and "truncated" in said.err and sessions(way.logdir) == before, (said, sessions(way.logdir))


def again_and_again(way, jobs):
    """A schedule makes sessions, removes the oldest of its own and nobody else's, and ends when it is told to."""
    name_said(way.capture([jobs[0].address], *SHORT, "--session", "not-of-a-schedule"))
    said = way.ctl("capture", jobs[0].address, "--duration", "200ms", "--session", "often", "--every", "2s", "--keep", "2")
    number = name_said(said)

    def often():
        return {s for s in sessions(way.logdir) if s.startswith("often")}
    seen = set()

    def enough():
        seen.update(often())
        return len(seen) >= 4
    wait_until("four captures of the schedule", enough)
    wait_until("only two are kept", lambda: len(often()) <= 2)
    schedule, = json.loads(way.ctl("schedules", "--json").out)
    assert str(schedule["id"]) == number and schedule["targets"] == [jobs[0].address], schedule
    assert way.ctl("unschedule", number).code == 0
    assert json.loads(way.ctl("schedules", "--json").out) == []
    captures = json.loads(way.ctl("captures", "--json").out)
    assert [c for c in captures if str(c["schedule_id"]) == number and c["state"] == "done"], captures
    assert often() and "not-of-a-schedule" in sessions(way.logdir)


def handed_over(way, jobs):
    """A program that a continuous schedule records: a capture gets it at once, and the schedule goes on later."""
    target = jobs[0].address
    number = name_said(way.ctl("capture", target, "--every", "1h", "--continuous"))

    def starts():
        """The captures of the schedule that stored nothing: that began or ended its recording."""
        captures = json.loads(way.ctl("captures", "--json").out)
        return sum(str(c["schedule_id"]) == number and c["state"] == "done" and not c["session"] for c in captures)
    try:
        wait_until("it is recorded", lambda: starts() == 1)
        said = way.capture([target], *SHORT)
        assert f"schedule {number} records it all the time, and hands it over" in said.err, said
        check_profiles(way, name_said(said), 1)
        schedule, = json.loads(way.ctl("schedules", "--json").out)
        assert schedule["sessions"] == 1, schedule  # recorded up to then
        wait_until("it is recorded again", lambda: starts() == 3)
    finally:
        way.ctl("unschedule", number)
    wait_until("it is free", lambda: is_captureable(target))


WITH_JOBS = (one_host, four_processes, equal_in_xprof, names, options, two_at_once, wrong_usage, profiled_already, dies, cancelled, twice_the_same)
WITH_IDLE = (idle_beside_busy, all_sorts, nothing_at_all)
WITH_DAEMON = (imports, again_and_again, handed_over)
