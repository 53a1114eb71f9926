# SPDX-License-Identifier: Apache-2.0
"""Much of one thing, and names that are odd: sessions, hosts of a session, labels, daemons on one state directory."""

import json
import os
import re
import shutil
import sqlite3
import struct
import urllib.parse

from harness import DATA_FRAME, MIB, WINDOW_UPDATE, answer_url, check, equal, in_threads, same_answer, reference_answers, wait_for

TOOLS = ("overview_page", "op_profile", "kernel_stats", "trace_viewer@")


def test_hosts_of_a_session(run):
    """Ten thousand hosts: the session is listed, one host is answered for, and all together or with a reason why not."""
    logdir = run.logdir("jax_sparse_45s")
    hosts = run.parameter("SESSION_HOSTS", 2000, 10_000)
    directory = logdir / "plugins/profile/many"
    directory.mkdir()
    source = next((logdir / "plugins/profile/jax_sparse_45s").glob("*.xplane.pb")).read_bytes()
    for i in range(hosts):
        (directory / f"host{i:05}.xplane.pb").write_bytes(source)
    d = run.start("--no-prefetch", "--scan-interval=50ms", logdir=logdir)
    wait_for(lambda: "many" in d.sessions(), 60, "the session is listed")
    done = d.ctl("--json", "hosts", "many")
    equal(done.returncode, 0, f"hosts: {done.stderr!r}")
    equal(len(json.loads(done.stdout)), hosts, "hosts")
    one = d.get(answer_url("many", "overview_page") + "&host=host00007", timeout=60)
    check(one.status in (200, 400), f"a host's overview: {one}")

    def ask(i):
        got = d.get(answer_url("many", TOOLS[i]), timeout=300)
        check(got.status == 200 or got.status >= 400 and got.body, f"{TOOLS[i]} of all hosts: {got}")

    in_threads(len(TOOLS), ask)
    d.answers()


test_hosts_of_a_session.slow = True
test_hosts_of_a_session.limit = 400
test_hosts_of_a_session.whole_limit = 1200

def processor_seconds(d):
    with open(f"/proc/{d.pid}/stat", encoding="utf-8") as f:
        user, system = f.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


WATCH = "/xplaned.v1.SessionService/WatchSessions"


def make_sessions(run, n):
    logdir = run.make_dir("logdir")
    for i in range(n):
        directory = logdir / f"plugins/profile/run{i:06}"
        directory.mkdir(parents=True)
        (directory / "h.xplane.pb").write_bytes(b"")
    return logdir


def test_watches_of_many_sessions(run):
    """Watches get all sessions page by page: unread ones take little memory, and others are served meanwhile."""
    n = run.parameter("WATCHED_SESSIONS", 2500, 20_000)
    d = run.start("--no-prefetch", "--scan-interval=50ms", logdir=make_sessions(run, n))
    before = d.rss_anon()
    deaf = []
    for _ in range(60):
        h = d.http2()
        h.message(h.request(WATCH), b"")
        deaf.append(h)
    with d.http2() as h:
        stream = h.request(WATCH)
        h.message(stream, b"")
        names, data = [], bytearray()
        while b"\x08\x05" not in data[-2:]:  # SYNCED
            kind, _, at, payload = h.frame()
            if kind != DATA_FRAME or at != stream:
                continue
            data += payload
            grow = struct.pack(">I", max(len(payload), 1))
            h.send(WINDOW_UPDATE, 0, 0, grow)
            h.send(WINDOW_UPDATE, 0, stream, grow)
        names = sorted(set(re.findall(rb"run\d{6}", data)))
        equal(len(names), n, "sessions of the watch that reads")
    d.answers()
    check(d.peak - before < 32 * MIB, f"{(d.peak - before) // MIB} MiB for unread watches")
    for h in deaf:
        h.close()


test_watches_of_many_sessions.slow = True
test_watches_of_many_sessions.limit = 300


def test_lists_of_sessions(run):
    """Clients that ask for the list of sessions at once get one list: many hosts take long, and their list is large."""
    hosts, n = 4000, 60
    logdir = make_sessions(run, 1)
    for i in range(hosts):
        (logdir / f"plugins/profile/run000000/h{i}.xplane.pb").write_bytes(b"")
    d = run.start("--no-prefetch", logdir=logdir)
    expected = d.get("/api/v1/sessions").body
    connections = [d.connect() for _ in range(n)]
    for c in connections:
        c.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        c.recv(4096)
    before = processor_seconds(d)
    equal(d.get("/api/v1/sessions").body, expected, "the list")
    one, before = processor_seconds(d) - before, processor_seconds(d)
    for c in connections:
        c.sendall(b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    for c in connections:
        got = b"".join(iter(lambda c=c: c.recv(1 << 16), b""))
        equal(got.partition(b"\r\n\r\n")[2], expected, "the list")
    many = processor_seconds(d) - before
    check(many < max(one, 0.02) * n / 3, f"{n} lists took {many} s of the processor, one {one} s")


test_lists_of_sessions.slow = True


GOOD_LABELS = ("a", "9", "a" * 64, "A.b_c-d+e=f@g:h/i", "a//", "a:b:c", "NULL", "nan", "0", "a=b=c")
BAD_LABELS = ("", " ", "-a", ".a", "/a", "a" * 65, "a b", "a\n", "a\tb", "a,b", "a'b", 'a"b', "a;b", "a%b", "a\\b", "ä", "a\u202eb", "<b>",
              "a\x1b[31m", "a" * 100_000)


def test_generated_caches(run):
    """/generate_cache of a session with many hosts takes one place in the queue."""
    logdir = run.logdir("tf_keras_tensorboard")
    session = logdir / "plugins/profile/tf_keras_tensorboard"
    (first, *_) = sorted(session.glob("*.xplane.pb"))
    for i in range(64):
        shutil.copy(first, session / f"other-{i}.xplane.pb")
    d = run.start("--no-prefetch", "--max-concurrent-requests=4", logdir=logdir)
    path = urllib.parse.quote(str(session), safe="")
    made = d.get(f"/generate_cache?session_path={path}&tools=memory_profile", method="POST")
    check(made.status == 202, f"{made.status} {made.body[:200]}")
    equal(d.status()["queue"]["refused"], 0, "requests that found no place")
    check(d.get(answer_url("tf_keras_tensorboard", "kernel_stats")).status == 200, "another client gets its answer")


def test_odd_labels(run):
    """Labels are what the manual says they may be, over gRPC, and after a restart; others are refused and leave nothing."""
    logdir, state = run.logdir("jax_matmul_nopy"), run.make_dir("state")
    d = run.start("--no-prefetch", logdir=logdir, state=state)
    for label in BAD_LABELS:
        done = d.ctl("label", "jax_matmul_nopy", "--", label)
        check(done.returncode in (1, 2) and done.stderr, f"{label[:70]!r}: status {done.returncode}")
        with d.http2() as h:
            text = label.encode()
            session, add = b"\x0a\x0fjax_matmul_nopy", b"\x12" + varint(len(text)) + text
            code, _, _ = h.call("/xplaned.v1.SessionService/LabelSession", (session + add)[:30_000])
            check(code not in (0, 2, 13, None) or not label, f"{label[:70]!r} over gRPC: status {code}")
    for label in GOOD_LABELS:
        done = d.ctl("label", "jax_matmul_nopy", label)
        equal(done.returncode, 0, f"{label!r}: {done.stderr!r}")
    for turn in range(2):
        done = d.ctl("--json", "label", "jax_matmul_nopy")
        equal(sorted(json.loads(done.stdout)["labels"]), sorted(GOOD_LABELS), f"labels, turn {turn}")
        equal(d.get("/api/v1/sessions").status, 200, "sessions")
        equal(d.stop(), 0, "exit status")
        d = run.start("--no-prefetch", logdir=logdir, state=state)


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def test_daemons_on_one_state_directory(run):
    """Four daemons on one state directory, two log directories: all answer right at once, one of them writes, no database is
    damaged, and whoever is left takes over."""
    logs = [run.logdir("jax_matmul_nopy", "jax_4hosts"), run.logdir("tpu_inference_a")]
    expected = [reference_answers(run, logdir, tools=TOOLS) for logdir in logs]
    state = run.make_dir("state")
    daemons = [run.start("--no-prefetch", "--scan-interval=50ms", logdir=logs[i % 2], state=state) for i in range(4)]

    def ask(i):
        for _ in range(3):
            for (session, tool), answer in expected[i % 2].items():
                same_answer(daemons[i].get(answer_url(session, tool)), answer, f"{tool} of {session}, daemon {i}")

    in_threads(len(daemons), ask)
    writers = [i for i, d in enumerate(daemons) if not d.status()["store"]["read_only"]]
    equal(writers, [0], "daemons that write")
    for i, d in enumerate(daemons[:-1]):
        if i % 2:
            equal(d.stop(), 0, "exit status")
        else:
            d.kill()
        ask(len(daemons) - 1)
    wait_for(lambda: not daemons[-1].status()["history"]["off"], 30, "the last one has the history")
    ask(len(daemons) - 1)
    equal(daemons[-1].stop(), 0, "exit status")
    equal([p.name for p in state.glob("*.broken-*")], [], "databases that were moved aside")
    for path in state.glob("*.db"):
        with sqlite3.connect(path) as database:
            equal(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)], path.name)
        database.close()
