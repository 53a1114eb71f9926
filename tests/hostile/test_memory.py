# SPDX-License-Identifier: Apache-2.0
"""Memory of requests that are refused: nobody makes the daemon hold what it will not take."""

import contextlib
import gzip
import random
import struct
import threading
import time
import zlib

from harness import DATA_FRAME, HEADERS, MIB, PATIENCE, answer_url, check, in_threads, wait_for

HEALTH = "/grpc.health.v1.Health/Check"  # needs no token
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


def growth(d, work):
    """Bytes of anonymous memory that the daemon had more, at most, while work() ran."""
    before = d.rss_anon()
    d.peak = 0
    work()
    time.sleep(0.3)  # the sampler's interval
    return d.peak - before


def offer(h, stream, body):
    """Sends what is refused: the connection may end while the rest is still being sent."""
    with contextlib.suppress(ConnectionError):
        h.message(stream, body, compressed=1)


def test_compressed_request(run):
    """A request of 600 KB that would become 600 MB is refused as it is."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    body = gzip.compress(bytes(600 * MIB), 6)
    check(len(body) < MIB, "a bomb")

    def attack():
        with d.http2() as h:
            stream = h.request(HEALTH, [("grpc-encoding", "gzip")])
            offer(h, stream, body)
            got, _ = h.result(stream)
            # The status may be lost where the connection ends while the rest is being sent.
            check(got.get(b"grpc-status") == b"12" or b"closed" in got, f"UNIMPLEMENTED, {got}")
        with d.http2() as h:  # said to be compressed, but not how
            stream = h.request(HEALTH)
            offer(h, stream, body)
            got, _ = h.result(stream)
            check(got.get(b"grpc-status") != b"0", f"an error, {got}")

    def attack_otherwise():
        """By other names, as a later message of a stream, and by the encoding of the whole stream."""
        for path, headers, first in (
            (HEALTH, [("grpc-encoding", "deflate")], None), (HEALTH, [("grpc-encoding", "GZIP")], None),
            (HEALTH, [("grpc-encoding", "identity"), ("grpc-encoding", "gzip")], None),
            (HEALTH, [("content-encoding", "gzip")], None), (HEALTH, [("grpc-internal-encoding-request", "gzip")], None),
            (REFLECTION, [("grpc-encoding", "gzip")], b"\x3a\1*"), (REFLECTION, [("content-encoding", "gzip")], b"\x3a\1*"),
        ):
            with d.http2() as h:
                stream = h.request(path, headers)
                if first:
                    h.message(stream, first, end=False)
                offer(h, stream, zlib.compress(bytes(100 * MIB)) if headers[0][1] == "deflate" else body)
                got, _ = h.result(stream)
                check(got.get(b"grpc-status") != b"0", f"{path} {headers}: an error, {got}")

    for way in (attack, attack_otherwise):
        more = growth(d, way)
        check(more < 32 * MIB, f"{more // MIB} MiB for compressed requests, {way.__name__}")
    d.answers()


def test_length_prefix(run):
    """A message that is too large is refused when its length is known, not when it is there."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))

    def attack():
        for path in (HEALTH, "/xplaned.v1.SessionService/ListSessions"):
            with d.http2() as h:
                stream = h.request(path)
                h.message(stream, b"x", end=False, length=512 * MIB)
                got, _ = h.result(stream)
                check(got.get(b"grpc-status") == b"3", f"{path}: {got}")

    more = growth(d, attack)
    check(more < 32 * MIB, f"{more // MIB} MiB for a length")
    with d.http2() as h:  # not so far beyond the limit: a client that sends all of it gets the error
        stream = h.request(HEALTH)
        read = threading.Thread(target=lambda: answers.append(h.result(stream)[0]), daemon=True)
        answers = []
        read.start()
        h.message(stream, bytes(4 * MIB + 100), end=False)
        read.join(PATIENCE)
        refused = answers and (answers[0].get(b"grpc-status") == b"8" or b"reset" in answers[0])
        check(refused, f"RESOURCE_EXHAUSTED, or a reset when that comes first: {answers}")
    d.answers()


def test_messages_too_large(run):
    """Clients that send on and on, as far as windows let them."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))

    def send_on(connections, size):
        for h in connections:
            send_one(h, size)

    def send_one(h, size):
        stream = h.request(HEALTH)
        try:
            h.send(DATA_FRAME, 0, stream, struct.pack(">BI", 0, size))
            sent = 0
            while sent < size:
                h.send(DATA_FRAME, 0, stream, bytes(16384))
                sent += 16384
                h.sock.settimeout(0.001)
                try:
                    while got := h.frame():
                        if got[0] == HEADERS:
                            return
                except TimeoutError:
                    pass
                h.sock.settimeout(5)
        except OSError:
            pass

    def attack():
        connections = [d.http2() for _ in range(4)]
        send_on(connections, 200 * MIB)
        for h in connections:
            h.close()

    more = growth(d, attack)
    check(more < 96 * MIB, f"{more // MIB} MiB for what is refused")
    d.answers()
    wait_for(lambda: d.rss_anon() < 100 * MIB, 20, "the memory is given back")


def test_watched_daemon_rests(run):
    """Who asks for the daemon's counters several times a second, as its page does, keeps no memory from going back that
    requests before have freed."""
    d = run.start("--no-prefetch", "--answer-cache=16MiB",
                  logdir=run.logdir("tf_keras_tensorboard", "jax_4hosts", "tpu_inference_a", "tf_bfc_memory"))
    sessions = d.sessions()

    def ask(i):
        chance = random.Random(i)
        for _ in range(8):
            d.get(answer_url(chance.choice(sessions), "trace_viewer@") + f"&resolution={chance.randrange(1, 10**9)}", timeout=60)

    in_threads(8, ask)
    end = time.monotonic() + 45
    watched = d.rss_anon()
    while time.monotonic() < end and watched > 20 * MIB:
        d.status()
        time.sleep(0.2)
        watched = min(watched, d.rss_anon())
    time.sleep(8)  # without a request
    check(watched <= d.rss_anon() + 6 * MIB, f"{watched // MIB} MiB while it is watched, {d.rss_anon() // MIB} MiB while it is not")


def varint(x):
    return (bytes([x & 127 | 128]) + varint(x >> 7)) if x > 127 else bytes([x])


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def many_lines(n):
    """A profile of a plane with n lines of one event each."""
    name = field(4, b"\x08\x01" + field(2, b"\x08\x01" + field(2, b"op")))
    lines = b"".join(field(3, b"\x08" + varint(i) + field(2, b"l") + field(4, b"\x08\x01\x18" + varint(1000 + i))) for i in range(n))
    return field(1, b"\x08\x01" + field(2, b"/host:CPU") + name + lines)


def test_many_small_lines(run):
    """A profile of that many lines with an event each is answered or refused within the limits: what a line takes counts
    for the request, however little it is."""
    n = run.parameter("LINES", 100_000, 300_000)
    logdir = run.make_dir("logdir")
    session = logdir / "plugins/profile/lines"
    session.mkdir(parents=True)
    (session / "h.xplane.pb").write_bytes(many_lines(n))
    d = run.start("--no-prefetch", "--memory-limit=256MiB", "--memory-total=512MiB", logdir=logdir)
    answers = []
    more = growth(d, lambda: answers.append(d.tool("events", "lines")))
    check(f'"events":{n},'.encode() in answers[0], f"{answers[0][:200]}")
    check(more < 256 * MIB, f"{more // MIB} MiB for lines")
    # An index of them may be too much.
    more = growth(d, lambda: d.get(answer_url("lines", "trace_viewer@")))
    check(more < 512 * MIB, f"{more // MIB} MiB for an index of lines")
    d.answers()
