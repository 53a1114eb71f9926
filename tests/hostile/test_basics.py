# SPDX-License-Identifier: Apache-2.0
"""The harness itself: what the other tests rely on."""

from harness import DATA, MIB, check, equal


def test_daemon_answers(run):
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    equal(d.sessions(), ["jax_matmul_nopy"], "sessions")
    check(d.tool("overview_page", "jax_matmul_nopy").startswith(b"["), "an overview")
    d.answers()
    check(d.status()["rpc"]["calls"] > 0, "counters count")
    check(0 < d.rss_anon() < 200 * MIB and d.fds() > 5 and d.threads() > 1, "figures of the process")
    equal(d.stop(), 0, "exit status")


def test_frames_of_our_own(run):
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    with d.http2() as h:
        code, text, answer = h.call("/xplaned.v1.ServerService/GetServerStats", b"")
        equal((code, text), (0, ""), "a call in frames of our own")
        check(len(answer) > 50, "an answer")
        code, text, _ = h.call("/xplaned.v1.NoService/None", b"")
        equal(code, 12, f"an unknown method ({text})")
    got = d.raw(b"GET /api/v1/tools HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    check(got.startswith(b"HTTP/1.1 200 "), "a request in bytes of our own")


def test_data_is_there(run):
    source = [p.name for p in (DATA / "logdir").glob("*/plugins/profile/*")]
    copied = [p.name for p in run.logdir().glob("plugins/profile/*")]
    equal(sorted(copied), sorted(source), "a copy of every session")
