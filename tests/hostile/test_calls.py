# SPDX-License-Identifier: Apache-2.0
"""Floods of calls on one connection: more of them than the daemon answers, right and wrong ones."""

import http.client
import os
import ssl
import struct
import threading
import time

from harness import (
    ACK, DATA_FRAME, END_HEADERS, END_STREAM, HEADERS, MIB, SETTINGS, WINDOW_UPDATE, Http2, check, equal, hpack, make_certificate, read_all, wait_for,
)

STATS = "/xplaned.v1.ServerService/GetServerStats"
HEALTH = "/grpc.health.v1.Health/Check"
BATCH = 100  # calls per write


def head(path, *more):
    return hpack([(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "a"),
                  ("content-type", "application/grpc"), ("te", "trailers"), *more])


def calls_of(*frames):
    """frames: (kind, flags, payload) of each call."""

    def make(h):
        out = bytearray()
        for _ in range(BATCH):
            for kind, flags, payload in frames:
                out += Http2.bytes_of(kind, flags, h.next_stream, payload)
            h.next_stream += 2
        return bytes(out)

    return make


def message(flag=0, data=b""):
    return DATA_FRAME, END_STREAM, struct.pack(">BI", flag, len(data)) + data


OPEN = END_HEADERS
WHOLE = END_HEADERS | END_STREAM
CALLS = {
    "unknown method": calls_of((HEADERS, WHOLE, head("/nope/x"))),
    "well-formed": calls_of((HEADERS, OPEN, head(STATS)), message()),
    "flag of no kind": calls_of((HEADERS, OPEN, head(STATS)), message(0x7F)),
    "compressed": calls_of((HEADERS, OPEN, head(STATS, ("grpc-encoding", "gzip"))), message(1, b"x" * 20)),
    "window that overflows": calls_of((HEADERS, OPEN, head(STATS)), (WINDOW_UPDATE, 0, struct.pack(">I", 0x7FFFFFFF))),
    "wrong trailers": calls_of((HEADERS, OPEN, head(STATS)), (HEADERS, WHOLE, hpack([("X", "y")]))),
    "wrong timeout": calls_of((HEADERS, OPEN, head(STATS, ("grpc-timeout", "x"))), message()),
    "wrong name": calls_of((HEADERS, OPEN, head(STATS, ("a b", "c"))), message()),
    "no method": calls_of((HEADERS, WHOLE, hpack([("a", "b")]))),
    "after a stream of servers": lambda h: Http2.bytes_of(HEADERS, WHOLE, 0x7FFFFFFE, head(STATS)) + calls_of(
        (HEADERS, OPEN, head(STATS)), message())(h),
    "wrong dependency": lambda h: calls_of((HEADERS, WHOLE | 0x20, struct.pack(">IB", h.next_stream, 0) + head(STATS)))(h),
}


class Flood:
    """One connection that calls without waiting, in a thread, until it is closed."""

    def __init__(self, sock, make, acknowledge, reads=True):
        self.h = Http2(sock, ())
        sock.settimeout(20)
        if acknowledge:
            while self.h.frame()[0] != SETTINGS:  # which answers it
                pass
        self.make, self.calls, self.closed, self.running = make, 0, False, True
        if reads:
            read_all(sock)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while self.running:
                self.h.sock.sendall(self.make(self.h))
                self.calls += BATCH
        except TimeoutError:
            pass
        except OSError:
            self.closed = True

    def end(self):
        self.running = False
        self.thread.join(0.5)
        self.h.close()
        self.thread.join(5)


def taken_by_others(d):
    """Seconds for which processes other than the daemon and this one have had the whole machine."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, *more = map(int, f.readline().split()[1:9])
    with open(f"/proc/{d.pid}/stat", encoding="utf-8") as f:
        ours = sum(map(int, f.read().rpartition(")")[2].split()[11:13]))
    all_of_them = (user + nice + system + sum(more) - ours) / os.sysconf("SC_CLK_TCK")
    return (all_of_them - time.process_time()) / (os.cpu_count() or 1)


def health(d, wrap):
    """Seconds that a health check of a new connection takes, less those that other processes took."""
    began, others = time.monotonic(), taken_by_others(d)
    with Http2(wrap(d)) as h:
        equal(h.call(HEALTH, b"")[0], 0, "health during the flood")
    return time.monotonic() - began - max(0, taken_by_others(d) - others)


def median(took):
    """Of two the smaller one: this machine may be busy for a moment, but not for every check."""
    return sorted(took)[(len(took) - 1) // 2]


def attack(d, make, acknowledge, wrap, seconds):
    """(whether the connection was closed, MiB more at most, seconds of each health check meanwhile)."""
    before, end, took = d.rss_anon(), time.monotonic() + seconds, []
    d.peak = 0
    flood = Flood(wrap(d), make, acknowledge)
    try:
        while time.monotonic() < end and not flood.closed:
            took.append(health(d, wrap))
            time.sleep(0.02)
    finally:
        flood.end()
    took.append(health(d, wrap))
    return flood.closed, (d.peak - before) // MIB, took


def check_floods(d, floods, wrap, seconds):
    """Each ends with its connection, costs little, and keeps nobody else waiting.  At rest it is closed within `seconds`."""
    for name in floods:
        for acknowledge in (False, True):
            text = f"{name}, {'acknowledged' if acknowledge else 'not acknowledged'}"
            closed, more, took = attack(d, CALLS[name], acknowledge, wrap, 10 * seconds)
            check(closed, f"{text}: the connection is still open")
            check(more < 64, f"{text}: {more} MiB")
            check(median(took) < 1, f"{text}: health took {took} s")
    wait_for(lambda: "closed: too many calls at once" in d.log(), 10, "the log says what happened")
    wait_for(lambda: d.rss_anon() < 64 * MIB, 10, "the memory is given back")


def plain(d):
    return d.connect(d.grpc)


def test_floods_of_calls(run):
    """Calls of every kind, with and without an answer to the daemon's settings, which a limit of streams waits for."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    check_floods(d, CALLS, plain, run.parameter("FLOOD_SECONDS", 3, 12))
    d.answers()


test_floods_of_calls.slow = True


def test_floods_of_calls_with_a_token(run):
    """Calls that are refused cost as little."""
    token = run.dir / "token"
    token.write_text("secret\n")
    d = run.start(f"--token-file={token}", logdir=run.logdir("jax_matmul_nopy"))
    check_floods(d, ("unknown method", "well-formed", "wrong trailers"), plain, run.parameter("FLOOD_SECONDS", 3, 12))


test_floods_of_calls_with_a_token.slow = True


def test_floods_of_calls_over_tls(run):
    """What the daemon answers passes the guard before it is encrypted."""
    cert, key = make_certificate(run)
    d = run.start(f"--tls-cert={cert}", f"--tls-key={key}", logdir=run.logdir("jax_matmul_nopy"))
    context = ssl.create_default_context(cafile=cert)
    context.set_alpn_protocols(["h2"])

    def wrap(d):
        return context.wrap_socket(d.connect(d.grpc), server_hostname="localhost")

    seconds = run.parameter("FLOOD_SECONDS", 3, 12)
    floods = ("unknown method", "well-formed", "wrong trailers", "window that overflows")
    ended = 0
    for name in floods:
        for acknowledge in (False, True):
            # A Python client's encryption may be slower than the daemon: then it stays open.
            closed, more, took = attack(d, CALLS[name], acknowledge, wrap, seconds)
            check(more < 64, f"{name}: {more} MiB")
            check(median(took) < 1, f"{name}: health took {took} s")
            ended += closed
    check(ended > 0, "some connections are closed")


def test_floods_that_come_again(run):
    """Who is closed and connects again, 6 times at once: the memory of one, and little more."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    end = time.monotonic() + run.parameter("FLOOD_SECONDS", 3, 12)
    before, took, makes = d.rss_anon(), [], list(CALLS.values())
    d.peak = 0
    floods, n = [], 0
    while time.monotonic() < end or n <= 6:  # until one was closed and came again
        for _ in range(6 - len(floods)):
            floods.append(Flood(plain(d), makes[n % len(makes)], False))
            n += 1
        took.append(health(d, plain))
        for f in [f for f in floods if f.closed]:
            f.end()
            floods.remove(f)
    for f in floods:
        f.end()
    more = (d.peak - before) // MIB
    check(more < 200, f"{more} MiB of {n} connections")
    check(median(took) < 1, f"health took {took} s")
    d.answers()
    wait_for(lambda: d.rss_anon() < 64 * MIB, 20, "the memory is given back")


def test_good_clients(run):
    """256 calls at any time, as many as the daemon lets, until 20,000 were answered: nobody is closed."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    with d.http2() as h:
        while h.frame()[0] != SETTINGS:
            pass
        opened = over = 0
        total = run.parameter("CALLS", 20000, 500000)
        while over < total:
            out = bytearray()
            while opened - over < 256 and opened < total:
                # Head and message apart, as some clients send them.
                out += Http2.bytes_of(HEADERS, OPEN, h.next_stream, head(HEALTH))
                out += Http2.bytes_of(DATA_FRAME, END_STREAM, h.next_stream, bytes(5))
                h.next_stream += 2
                opened += 1
            h.sock.sendall(out)
            got = h.frame()
            check(got is not None, f"the connection was closed after {over} calls")
            over += got[0] == HEADERS and bool(got[1] & END_STREAM)
            if got[0] == DATA_FRAME:
                h.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", max(1, len(got[3]))))
    check("closed: " not in d.log(), d.log()[-500:])


test_good_clients.slow = True
