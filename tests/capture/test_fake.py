# SPDX-License-Identifier: Apache-2.0
"""Captures of fake_profiler, for what no real server does when it is wanted; test_capture.c has more, below the command line."""
from harness import report_of, sessions

SHORT = ("--duration", "200ms")
MANY_BYTES = 500_000_000


def bad_company(way):
    """A good server among servers of all bad kinds: one profile, and each other host's reason."""
    wanted = {  # mode: the outcome's code and words of its reason
        "idle": ("UNAVAILABLE", "idle"),
        "metadata": ("UNAVAILABLE", "no events"),
        "busy": (None, "another profile"),
        "die": ("UNAVAILABLE", "ended"),
        "garbage": ("DATA_LOSS", ""),
        "truncated": ("DATA_LOSS", ""),
        "nonsense": ("DATA_LOSS", "profiler server?"),
        "elsewhere": ("FAILED_PRECONDITION", "emit_xspace"),
        "unimplemented": ("UNIMPLEMENTED", "not a profiler server"),
    }
    good = way.place.fake("ok")
    bad = {mode: way.place.fake(mode) for mode in wanted}
    said = way.capture([*(b.address for b in bad.values()), good.address], *SHORT)
    assert said.code == 3, said
    session = said.out.strip()
    assert {f for f in sessions(way.logdir)[session] if not f.startswith("capture")} == {good.address.replace(":", "_") + ".xplane.pb"}
    hosts = {h["target"]: h for h in report_of(way.logdir, session)["hosts"]}
    for mode, (code, words) in wanted.items():
        h = hosts[bad[mode].address]
        assert h["state"] in ("failed", "idle") and code in (None, h["code"]) and words in h["reason"], (mode, h)
        assert h["reason"] and h["reason"] in said.err, (mode, said)
    before = sessions(way.logdir)
    said = way.capture([bad["garbage"].address, bad["busy"].address], *SHORT)
    assert said.code == 1 and not said.out and sessions(way.logdir) == before, said


def hostile_names(way):
    """A server that calls itself a path: its file lies in the session, under a plain name."""
    hostile = way.place.fake("hostile")
    said = way.capture([hostile.address], *SHORT, "--host-names", "../../../tmp/xplaned-pwned\x01<b>")
    assert said.code == 0, said
    session = said.out.strip()
    files = sessions(way.logdir)[session]
    assert len(files) == 2 and all(f.isprintable() and not set(f) & set("/<>\x01") and f[0] != "." for f in files), files
    assert "passwd" in report_of(way.logdir, session)["hosts"][0]["hostname"]
    answer = way.overview(session)
    assert answer.code == 0 and "\x01" not in answer.out, answer


def older_server(way):
    """A server without emit_xspace writes into the session itself; what it wrote is checked and taken."""
    old = way.place.fake("old")
    said = way.capture([old.address], *SHORT)
    assert said.code == 0, said
    session = said.out.strip()
    host, = report_of(way.logdir, session)["hosts"]
    assert host["shared_dir"] and host["state"] == "stored" and host["events"] > 0, host
    assert sessions(way.logdir)[session] == {host["host"] + ".xplane.pb", "capture.json"}


def large(way):
    """500 MB from one host."""
    fake = way.place.fake("ok", MANY_BYTES)
    try:
        said = way.capture([fake.address], *SHORT)
    finally:
        fake.end()
    assert said.code == 0, said
    session = said.out.strip()
    host, = report_of(way.logdir, session)["hosts"]
    path = way.directory(session) / f"{host['host']}.xplane.pb"
    assert host["bytes"] == path.stat().st_size >= MANY_BYTES, host
    path.unlink()


TESTS = (bad_company, hostile_names, older_server, large)
