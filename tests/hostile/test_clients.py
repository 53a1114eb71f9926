# SPDX-License-Identifier: Apache-2.0
"""Clients that are slow, rude or many: others are served, and what they held comes back."""

import contextlib
import gzip
import http.client
import queue
import random
import re
import select
import socket
import struct
import threading
import time
import urllib.parse

from harness import (DATA_FRAME, END_HEADERS, HEADERS, MIB, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, Skip, answer_url,
                     check, equal, hpack, in_threads, quiet_close, wait_for)

GET = b"GET /api/v1/tools HTTP/1.1\r\nHost: localhost\r\n"
LINGER_NONE = struct.pack("ii", 1, 0)  # close() sends RST


def descriptors_return(d, fds, seconds=15, slack=4):
    """Descriptors are as many as before the attack."""
    wait_for(lambda: d.fds() <= fds + slack, seconds, f"descriptors stay: {d.fds()}, before {fds}", every=0.2)


def closed_within(sockets, seconds):
    """How many of them the other side closed."""
    end, left = time.monotonic() + seconds, list(sockets)
    while left and time.monotonic() < end:
        ready, _, _ = select.select(left[:900], [], [], 0.2)
        for s in ready:
            with contextlib.suppress(OSError):
                if s.recv(65536):
                    continue
            left.remove(s)
    return len(sockets) - len(left)


# ---- slow ones ----


def test_slowloris(run):
    """Requests that arrive byte by byte are given up, whatever their part is."""
    d = run.start("--http-idle=1s", logdir=run.logdir("jax_matmul_nopy"))
    fds = d.fds()
    begins = [b"", b"G", GET, GET + b"X-A: ", b"POST /generate_cache HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx"]
    slow = [d.connect() for _ in range(60)]
    for i, s in enumerate(slow):
        s.sendall(begins[i % len(begins)])
    stop = threading.Event()

    def drip():
        while not stop.wait(0.1):
            for s in slow:
                with contextlib.suppress(OSError):
                    s.send(b"a")

    dripping = threading.Thread(target=drip, daemon=True)
    dripping.start()
    d.answers()
    equal(closed_within(slow, 10), len(slow), "slow connections that were closed")
    stop.set()
    dripping.join()
    quiet_close(*slow)
    descriptors_return(d, fds)


def test_clients_that_do_not_read(run):
    """Large answers that nobody reads: others are served, and memory has each answer once."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy", "tf_keras_tensorboard"))
    path = answer_url("tf_keras_tensorboard", "trace_viewer")
    size = len(d.get(path).body)
    check(size > 100_000, f"an answer of {size} bytes is large")
    before = d.rss_anon()
    deaf = []
    for _ in range(100):
        s = d.connect()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall((f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20).encode())
        deaf.append(s)
    for _ in range(5):
        d.answers()
        time.sleep(0.2)
    check(d.rss_anon() - before < 32 * MIB, f"{(d.rss_anon() - before) // MIB} MiB for answers that nobody reads")
    fds = d.fds()
    quiet_close(*deaf)
    wait_for(lambda: d.fds() <= fds - 90, 10, "closed connections are closed here, too")


test_clients_that_do_not_read.slow = True


def test_deaf_streams(run):
    """The same over gRPC, with windows that never open."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy", "tf_keras_tensorboard"))
    d.tool("trace_viewer", "tf_keras_tensorboard")
    before = d.rss_anon()
    request = b"\x0a\x14tf_keras_tensorboard\x1a\x0ctrace_viewer"
    deaf = []
    for _ in range(10):
        h = d.http2()
        for _ in range(50):
            with contextlib.suppress(OSError):
                stream = h.request("/xplaned.v1.AnalysisService/StreamToolData")
                h.message(stream, request)
        deaf.append(h)
    for _ in range(3):
        d.answers()
    check(d.rss_anon() - before < 64 * MIB, f"{(d.rss_anon() - before) // MIB} MiB for streams that nobody reads")
    for h in deaf:
        h.close()
    wait_for(lambda: d.status()["rpc"]["calls_open"] == 0, 20, "their calls end")


# ---- rude ones ----


def test_resets(run):
    """Connections that are reset at every moment of a request."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    fds = d.fds()
    whole = f"GET {answer_url('jax_matmul_nopy', 'trace_viewer')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    chance = random.Random(1)
    for i in range(run.parameter("RESETS", 400, 20000)):
        s = d.connect(d.grpc if i % 4 == 3 else None)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
        with contextlib.suppress(OSError):
            if i % 4 == 3:
                s.sendall((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))[:chance.randrange(33)])
            else:
                s.sendall(whole[:chance.randrange(len(whole) + 1)])
            if i % 3 == 0:
                s.settimeout(0.02)
                s.recv(chance.randrange(1, 5000)) if i % 12 == 0 else None
        s.close()
    d.answers()
    descriptors_return(d, fds)


def test_half_closed(run):
    """A client that sends its end and then reads still gets its answer."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    fds = d.fds()
    for tool in ("overview_page", "trace_viewer"):  # computed, then from memory
        for _ in range(2):
            with d.connect() as s:
                s.sendall(f"GET {answer_url('jax_matmul_nopy', tool)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                s.shutdown(socket.SHUT_WR)
                got = b""
                with contextlib.suppress(OSError):
                    while part := s.recv(1 << 16):
                        got += part
                check(not got or got.startswith(b"HTTP/1.1 200"), f"half closed: {got[:80]}")
    d.answers()
    descriptors_return(d, fds)


def test_clients_that_leave(run):
    """A client's end is noticed also where it comes together with bytes that are no request."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    fds = d.fds()
    rests = (b"", b"\0\1\2 nothing", GET, GET + b"Content-Length: 10\r\n\r\nabc",
             b"POST /generate_cache HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
    for i in range(run.parameter("LEAVES", 600, 70000)):
        with d.connect(d.grpc if i % 6 == 5 else None) as s:
            if i % 6 == 5:
                s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[:i % 25])
            else:
                s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                check(s.recv(1000), "an answer")
                s.sendall(rests[i % 6])
    descriptors_return(d, fds)


def test_pipelines(run):
    """10,000 requests on one connection, of which nobody waits for an answer; all are answered in order."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    n = 10000
    with d.connect(timeout=30) as s:
        sender = threading.Thread(target=s.sendall, args=((GET + b"\r\n") * n,), daemon=True)
        sender.start()
        d.answers()
        got = b""
        count = 0
        while count < n:
            part = s.recv(1 << 20)
            check(part, f"closed after {count} answers")
            got += part
            count += got.count(b"HTTP/1.1 200")
            got = got[-11:] if b"HTTP/1.1 200" not in got[-11:] else b""
        sender.join()
    d.answers()


def test_http2_floods(run):
    """PING, SETTINGS, empty DATA, WINDOW_UPDATE and streams that are reset at once: each connection is ended or
    served, and others are served."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    before, fds = d.rss_anon(), d.fds()
    n = run.parameter("FLOOD", 20000, 1_000_000)
    headers = hpack([(":method", "POST"), (":scheme", "http"), (":path", "/xplaned.v1.SessionService/ListSessions"),
                     (":authority", "x"), ("content-type", "application/grpc"), ("te", "trailers")])

    def flood(i):
        with d.http2() as h, contextlib.suppress(OSError):
            h.sock.settimeout(20)
            frames = (lambda k: h.bytes_of(PING, 0, 0, bytes(8)), lambda k: h.bytes_of(SETTINGS, 0, 0),
                      lambda k: h.bytes_of(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
                      lambda k: h.bytes_of(DATA_FRAME, 0, 1),
                      lambda k: h.bytes_of(HEADERS, END_HEADERS, 2 * k + 1, headers) + h.bytes_of(RST_STREAM, 0, 2 * k + 1, bytes(4)))[i]
            if i == 3:
                h.send(HEADERS, END_HEADERS, 1, headers)
            for k in range(0, n, 100):
                h.sock.sendall(b"".join(frames(j) for j in range(k, k + 100)))

    attack = threading.Thread(target=in_threads, args=(5, flood), daemon=True)
    attack.start()
    while attack.is_alive():
        d.answers()
        attack.join(0.2)
    d.answers()
    descriptors_return(d, fds)
    wait_for(lambda: d.rss_anon() - before < 64 * MIB, 60, "64 MiB stay after floods")


# ---- HTTP's words ----

HOSTS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:8795", "127.0.0.1@evil.example",
         "[::ffff:10.0.0.1]", "10.0.0.1", "169.254.169.254", "[fe80::1]", "0x7f000001", "2130706433", "0177.0.0.1", "127.1",
         "localhost:", "localhost:x", "localhost:99999999", "local host", "localhost,evil.example", "", "[::1", "::1", "[]",
         "localhost/", "LOCALHOST.evil", "xn--localhost", "l\u00f6calhost")
GOOD_HOSTS = ("localhost", "LocalHost:1", "localhost.", "127.0.0.1", "127.0.0.1:80", "127.9.9.9", "[::1]", "[::1]:8795", "a.localhost")
ORIGINS = ("null", "http://evil.example", "https://localhost.evil.example", "http://localhost@evil.example", "file://",
           "chrome-extension://abc", "", "localhost", "http://", "http://[::1", "javascript:alert(1)", "http://localhost:1 http://x")


def test_hosts_and_origins(run):
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))

    def status(*lines):
        text = "\r\n".join(("GET /api/v1/tools HTTP/1.1", *lines, "Connection: close", "", "")).encode("utf-8")
        return int((d.raw(text).split(b" ") + [b"0", b"0"])[1] or 0)

    for host in GOOD_HOSTS:
        equal(status(f"Host: {host}"), 200, f"Host: {host}")
    for host in HOSTS:
        got = status(f"Host: {host}")
        check(got in (400, 403) or host == "localhost:" and got == 200 or host.startswith("localhost:9") and got == 200, f"Host {host!r}: {got}")
    for origin in ORIGINS:
        got = status("Host: localhost", f"Origin: {origin}")
        check(got in (400, 403), f"Origin {origin!r}: {got}")
    equal(status("Host: localhost:81", "Origin: http://localhost:81"), 200, "the own origin")
    check(status() in (400, 403), "no Host")
    check(status("Host: localhost", "Host: evil.example") in (200, 400, 403), "two Hosts")
    check(d.raw(b"GET http://evil.example/api/v1/tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[9:12] in (b"400", b"403", b"404"), "an absolute URI")
    d.answers()


def test_odd_requests(run):
    """Bytes that are hardly HTTP get an answer or a closed connection, within seconds."""
    d = run.start("--http-idle=500ms", logdir=run.logdir("jax_matmul_nopy"))
    fds = d.fds()
    chance = random.Random(2)
    odd = [b"", b"\r\n" * 1000, b"GET", b"GET /", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
           b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
           b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100000 + b"\r\n\r\n", b"GET /%00%ff%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
           b"\x00" * 5000, b"HEAD / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-" + b"9" * 3000 + b"\r\n\r\n",
           b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    base = GET + b"Accept-Encoding: gzip\r\nRange: bytes=0-5\r\nIf-None-Match: \"x\"\r\n\r\n"
    for _ in range(run.parameter("ODD", 160, 20000)):
        data = bytearray(base)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data))
            data[at:at + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(3)))
        odd.append(bytes(data))

    def send(i):
        for data in odd[i::16]:
            s = d.connect(timeout=10)
            with contextlib.suppress(OSError):
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                got = b""
                while part := s.recv(65536):
                    got += part
                check(not got or got.startswith(b"HTTP/1."), f"{data[:60]!r} got {got[:60]!r}")
            s.close()

    in_threads(16, send)
    d.answers()
    descriptors_return(d, fds)


# ---- bombs ----


def test_gzip_bombs(run):
    """Bodies, messages and profiles that grow a thousandfold: refused, without the memory for them."""
    logdir = run.logdir("jax_matmul_nopy")
    bomb = gzip.compress(bytes(300 * MIB), 9)
    for name, data in (("bomb", bomb), ("nested", gzip.compress(bomb)), ("many", gzip.compress(b"") * 20000),
                       ("cut", bomb[:len(bomb) // 2]), ("odd", bomb[:1000] + b"\xff" * 1000 + bomb[2000:])):
        (logdir / "plugins/profile" / name).mkdir()
        (logdir / "plugins/profile" / name / "h.xplane.pb.gz").write_bytes(data)
    d = run.start("--no-prefetch", logdir=logdir)
    before = d.rss_anon()
    for name in ("bomb", "nested", "many", "cut", "odd"):
        for tool in ("overview_page", "trace_viewer@"):
            got = d.get(answer_url(name, tool))
            check(got.status in (200, 422, 503) and (got.status != 200 or name == "many"), f"{name}: {got}")
    # As a body of HTTP, and as a compressed message of gRPC, also without the token.
    body = gzip.compress(bytes(64 * MIB))
    got = d.get("/generate_cache", method="POST", headers={"Content-Encoding": "gzip", "Origin": "x"}, body=body)
    check(400 <= got.status < 500, f"a body: {got}")
    for _ in range(5):
        with d.http2() as h, contextlib.suppress(OSError):
            stream = h.request("/xplaned.v1.AnalysisService/GetToolData", [("grpc-encoding", "gzip")])
            h.message(stream, body, compressed=1)
            headers, _ = h.result(stream)
            check(headers.get(b"grpc-status") != b"0", "a compressed message")
    d.answers()
    check(d.peak < before + 300 * MIB, f"{(d.peak - before) // MIB} MiB at the most")


# ---- many ----


test_gzip_bombs.slow = True


def test_cold_requests(run):
    """3,000 different requests that were never asked, from 48 clients: each is answered or told to come back, and
    the next one is answered."""
    d = run.start("--max-concurrent-requests=64", logdir=run.logdir())
    n = 3000
    sessions = d.sessions()
    urls = queue.SimpleQueue()
    for i in range(n):
        session = sessions[i % len(sessions)]
        urls.put("/api/v1/tool?" + urllib.parse.urlencode(
            {"session": session, "tool": "trace_viewer@", "resolution": 100 + i, "start_time_ms": i % 7, "end_time_ms": 10 + i}
            if i % 3 else {"session": session, "tool": ("op_profile", "memory_profile", "framework_op_stats", "kernel_stats")[i // 3 % 4], "x": i}))
    seen = {}
    lock = threading.Lock()

    def ask(unused):
        c = http.client.HTTPConnection("127.0.0.1", d.http, timeout=60)
        while True:
            try:
                url = urls.get_nowait()
            except queue.Empty:
                break
            c.request("GET", url)
            r = c.getresponse()
            r.read()
            check(r.status != 503 or r.getheader("Retry-After"), "when to come back")
            with lock:
                seen[r.status] = seen.get(r.status, 0) + 1
        c.close()

    in_threads(48, ask)
    equal(sum(seen.values()), n, "answers")
    check(set(seen) <= {200, 400, 404, 422, 503} and seen.get(200, 0) > n / 10, f"statuses {seen}")
    d.answers()
    equal(d.get(answer_url(sessions[0], "overview_page")).status, 200, "the next request")


test_cold_requests.slow = True
test_cold_requests.limit = 180


def open_connections(d):
    """Those over HTTP, with the one that asks."""
    return int(re.search(rb'^xplaned_connections{protocol="http"} (\d+)', d.get("/metrics").body, re.M)[1])


def test_clients_that_never_end(run):
    """Deaf clients are dropped in the end (whole suite: it takes more than a minute)."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy", "tf_keras_tensorboard"))
    path = answer_url("tf_keras_tensorboard", "trace_viewer")
    d.get(path)
    deaf = []
    for _ in range(20):
        s = d.connect()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall((f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20).encode())
        deaf.append(s)
    wait_for(lambda: open_connections(d) > len(deaf), 20, "all are connected")
    # A minute, and 3 MB at 32 KB/s, for the second reply of each: the kernel may take all of the first one.
    wait_for(lambda: open_connections(d) <= 1, 240, "deaf clients are dropped", every=1)
    quiet_close(*deaf)


test_clients_that_never_end.whole_only = True
test_clients_that_never_end.whole_limit = 300
