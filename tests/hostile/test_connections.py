# SPDX-License-Identifier: Apache-2.0
"""Connections: descriptors that run out, limits, floods of HTTP/2 frames, streams that never end."""

import contextlib
import http.client
import re
import resource
import select
import signal
import socket
import ssl
import struct
import threading
import time

from harness import (
    ACK, CONTINUATION, DATA_FRAME, END_HEADERS, END_STREAM, GOAWAY, HEADERS, MIB, PATIENCE, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, Http2, Skip,
    check, descriptors, equal, hpack, hpack_int, in_threads, make_certificate, quiet_close, read_all, wait_for,
)


def few_descriptors(n):
    """A preexec function: at most n descriptors, soft and hard."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


def connect_many(port, n, timeout=2, host="127.0.0.1", source=None):
    """As many of n connections as the other side takes."""
    open_ones = []
    for _ in range(n):
        try:
            open_ones.append(socket.create_connection((host, port), timeout, source and (source, 0)))
        except OSError:
            break
    return open_ones


def exhaust(run, service, *options):
    """Takes all descriptors of a daemon by idle connections, ends them, and checks that it serves again."""
    d = run.start(*options, logdir=run.logdir("jax_matmul_nopy"), preexec=few_descriptors(300))
    with descriptors(1000):
        idle = connect_many(getattr(d, service), 400)
        idle += connect_many(d.grpc, 10)  # finds none left
        time.sleep(1)
        check(d.alive(), "the daemon lives")
        quiet_close(*idle)
    wait_for(lambda: d.fds() < 150, 20, "the daemon closes what was closed")
    d.answers()


def test_descriptors_run_out_by_grpc(run):
    exhaust(run, "grpc")


def test_descriptors_run_out_by_http(run):
    exhaust(run, "http")


def test_descriptors_are_left_for_files(run):
    """All places of gRPC and HTTP are taken, and those beyond the limit: a client that was there is answered from files."""
    d = run.start("--no-prefetch", logdir=run.logdir("jax_matmul_nopy"), preexec=few_descriptors(700))
    with descriptors(2000), d.http2() as h:
        equal(h.call(STATS, b"")[0], 0, "a client that was there")
        others = []
        for port, begin in ((d.http, HALF), (d.grpc, b"PRI * HTTP/2.0")):
            for _ in range(500):
                others.append(d.connect(port))
                with contextlib.suppress(OSError):  # ended for a later one
                    others[-1].sendall(begin)
        code, text, answer = h.call("/xplaned.v1.AnalysisService/StreamToolData", b"\x0a\x0fjax_matmul_nopy\x1a\x0doverview_page")
        check(code == 0 and answer, f"an answer that is new: {code} {text}")
        equal(d.get("/readyz").status, 200, "a probe")
        equal(d.ctl("sessions").returncode, 0, "a new client of gRPC")
        quiet_close(*others)


def test_soft_limit_is_raised(run):
    """The soft limit of descriptors is raised to the hard one."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"), preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 900)))
    check("\nprocess_max_fds 900\n" in d.get("/metrics").body.decode(), "process_max_fds is 900")


def test_tls_goes_the_same_way(run):
    """Connections of TLS are handed over as others are; exhausted descriptors do not end it either."""
    cert, key = make_certificate(run)
    d = run.start(
        f"--tls-cert={cert}", f"--tls-key={key}", logdir=run.logdir("jax_matmul_nopy"), preexec=few_descriptors(300)
    )
    with descriptors(1000):
        idle = connect_many(d.grpc, 400)
        time.sleep(1)
        quiet_close(*idle)
    wait_for(lambda: d.fds() < 150, 20, "the daemon closes what was closed")
    done = d.ctl("--tls-roots", cert, "--tls-name", "localhost", "sessions")
    equal((done.returncode, b"jax_matmul_nopy" in done.stdout), (0, True), done.stderr.decode())
    # Frames are inspected behind the decryption, too.
    got = flood_over_tls(d.grpc, cert)
    check(got < 64, f"{got} MiB of headers were taken")


def flood_over_tls(port, cert):
    """MiB of CONTINUATION frames that a connection takes before it is closed."""
    context = ssl.create_default_context(cafile=cert)
    context.set_alpn_protocols(["h2"])
    sent = 0
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as s:
                h = Http2(s)
                h.send(HEADERS, 0, 1, hpack([(":method", "POST")]))
                frame = Http2.bytes_of(CONTINUATION, 0, 1, hpack([("x-a", "b" * 4000)]) * 4)
                while sent < 256 * MIB:
                    s.sendall(frame * 8)
                    sent += 8 * len(frame)
    return sent // MIB


def test_connections_in_all(run):
    """Beyond the limit the one that is used least ends for a new one; the others are served, and room comes back."""
    d = run.start("--grpc-connections=40", "--http-connections=40", logdir=run.logdir("jax_matmul_nopy"))
    first = d.http2()
    equal(first.call(STATS, b"")[0], 0, "the first connection")
    with descriptors(1000):
        idle = connect_many(d.grpc, 300)
        time.sleep(0.5)
        check(d.fds() < 130, f"{d.fds()} descriptors")
        equal(first.call(STATS, b"")[0], 0, "a connection that was there")
        d.answers()
        quiet_close(*idle)
        alone = b'\nxplaned_connections{protocol="grpc"} 1\n'
        wait_for(lambda: alone in d.get("/metrics").body, 10, "the others are gone")
        watcher = d.http2()
        stream = watcher.request(WATCH)
        watcher.message(stream, b"")
        used = []
        for _ in range(38):
            used.append(d.http2())
            equal(used[-1].call(STATS, b"")[0], 0, "a call of each")
        with d.http2() as more:
            equal(more.call(STATS, b"")[0], 0, "the 41st connection is served")
        while first.sock.recv(4096):  # until its end: the oldest of those whose calls have ended
            pass
        for h in (watcher, *used):
            equal(h.call(STATS, b"")[0], 0, "the others stay")
            h.close()
        idle = connect_many(d.http, 300)
        time.sleep(0.5)
        check(d.fds() < 200, f"{d.fds()} descriptors")
        quiet_close(*idle)
    first.close()
    d.answers()


def ended(sock):
    """Whether the other side has closed or reset a connection that got no byte."""
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


HALF = b"GET /api/v1/tools HTTP/1.1\r\nHo"


def test_half_requests(run):
    """Half requests take all places of HTTP: further connections get their 503, and probes their answer, and are closed."""
    places = 1024 if not run.short else 100
    d = run.start(f"--http-connections={places}", logdir=run.logdir("jax_matmul_nopy"))
    bound = PATIENCE if run.short else 5
    fds = d.fds()
    with descriptors(3000):
        half = [d.connect() for _ in range(places + 276)]
        for s in half:
            s.sendall(HALF)
        for path, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/api/v1/tools", 503)):
            got = d.get(path, timeout=bound)
            equal((got.status, got.headers["connection"]), (status, "close"), path)
        for s in half[places:]:  # earlier ones go for later ones, the last after 2 s
            check(s.recv(1000).startswith(b"HTTP/1.1 503 "), "a half request beyond the limit gets an answer")
            equal(ended(s), True, "and is closed")
        quiet_close(*half)
        wait_for(lambda: d.get("/api/v1/tools").status == 200, bound, "there is room again")
    wait_for(lambda: d.fds() <= fds + 4, bound, "the daemon closes what was closed")


def test_half_requests_without_end(run):
    """Clients that send half requests and connect again whenever they are closed: probes are answered meanwhile."""
    d = run.start("--http-connections=40", logdir=run.logdir("jax_matmul_nopy"))
    idle = [d.connect() for _ in range(40)]
    stop = threading.Event()

    def attack():
        mine = []
        while not stop.is_set():
            with contextlib.suppress(OSError):
                mine.append(d.connect())
                mine[-1].sendall(HALF)
            if len(mine) > 100:
                mine.pop(0).close()
        quiet_close(*mine)

    attackers = [threading.Thread(target=attack, daemon=True) for _ in range(3)]
    for t in attackers:
        t.start()
    # One that is slow to send its request may lose its place, and tries again.
    for _ in range(20 if run.short else 1000):
        wait_for(lambda: d.get("/healthz").status == 200, 5, "a probe during the attack")
    stop.set()
    for t in attackers:
        t.join()
    quiet_close(*idle)
    wait_for(lambda: d.get("/api/v1/tools").status == 200, 5, "there is room again")


def test_half_handshakes(run):
    """The same over TLS, where nothing can be said before the handshake: the connection is closed."""
    cert, key = make_certificate(run)
    d = run.start(
        f"--tls-cert={cert}", f"--tls-key={key}", f"--tls-client-ca={cert}", "--http-connections=20",
        logdir=run.logdir("jax_matmul_nopy"),
    )
    idle = [d.connect() for _ in range(20 + 200)]
    context = context_of(cert, (cert, key))
    equal(https(d, context, "/healthz"), 200, "a probe")
    equal(https(d, context), 503, "another request")
    for s in idle[20:]:
        equal(ended(s), True, "a connection beyond the limit is closed")
    quiet_close(*idle)
    wait_for(lambda: https(d, context) == 200, 5, "there is room again")


def own_address():
    """An address of this machine that is not loopback; None without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        with contextlib.suppress(OSError):
            s.connect(("192.0.2.1", 9))
            address = s.getsockname()[0]
            return None if address.startswith("127.") else address
    return None


def test_connections_per_address(run):
    """One address from elsewhere gets its share; loopback is served meanwhile."""
    address = own_address()
    if not address:
        raise Skip("this machine has no address but loopback")
    d = run.start(
        "--listen=0.0.0.0:0", "--http=0.0.0.0:0", "--insecure", "--connections-per-address=10",
        logdir=run.logdir("jax_matmul_nopy"),
    )
    for port in (d.grpc, d.http):
        idle = connect_many(port, 10, host=address)
        time.sleep(0.3)
        with socket.create_connection((address, port), PATIENCE) as more:
            equal(ended(more), True, "the 11th connection is closed")
        quiet_close(*idle)
        wait_for(lambda p=port: not_closed(address, p), 5, "there is room again")
    d.answers()


def not_closed(host, port):
    with socket.create_connection((host, port), 5) as s:
        s.settimeout(0.2)
        return not ended(s)


# ---- floods of frames ----

STATS = "/xplaned.v1.ServerService/GetServerStats"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


def flood(d, make, reads, seconds=15):
    """Sends make(connection) again and again on one connection until it is closed, for some seconds at most: what is allowed
    in a second a slow machine may hardly exceed."""
    before, end, closed = d.rss_anon(), time.monotonic() + seconds, False
    d.peak = 0
    with d.http2() as h:
        h.sock.settimeout(2)
        if reads:
            read_all(h.sock)
        try:
            while time.monotonic() < end:
                h.sock.sendall(make(h))
        except TimeoutError:  # stalled, which is not closed: the end may still come
            waits = select.poll()
            waits.register(h.sock, 0)
            closed = any(events & (select.POLLHUP | select.POLLERR) for _, events in waits.poll(seconds * 1000))
        except OSError:
            closed = True
        d.answers(20)
    time.sleep(0.3)
    return closed, (d.peak - before) // MIB


def resets(n):
    """n calls, each opened and reset."""
    block = hpack([(":method", "POST"), (":scheme", "http"), (":path", STATS), (":authority", "a"),
                   ("content-type", "application/grpc"), ("te", "trailers")])
    out = bytearray()
    for stream in range(1, 2 * n, 2):
        out += Http2.bytes_of(HEADERS, END_HEADERS, stream, block)
        out += Http2.bytes_of(RST_STREAM, 0, stream, struct.pack(">I", 8))
    return bytes(out)


RESETS = resets(6000)  # more than the 4096 that are taken at once, however slowly this test runs


def many(kind, flags=0, stream=0, payload=b""):
    frames = Http2.bytes_of(kind, flags, stream, payload) * 500
    return lambda h: frames


FLOODS = [
    ("rapid reset", lambda h: RESETS),
    ("pings", many(PING, 0, 0, b"12345678")),
    ("answers to no ping", many(PING, ACK, 0, b"12345678")),
    ("settings", many(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535))),
    ("settings that change a table", many(SETTINGS, 0, 0, struct.pack(">HIHI", 1, 0, 1, 4096))),
    ("windows", many(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))),
    ("priorities", many(PRIORITY, 0, 3, struct.pack(">IB", 0, 1))),
    ("frames of no kind", many(99, 0, 0, b"x" * 100)),
    ("goodbyes", many(GOAWAY, 0, 0, bytes(1008))),
    ("headers without an end",
     lambda h: Http2.bytes_of(HEADERS, 0, 1, hpack([("a", "b")])) + many(CONTINUATION, 0, 1, hpack([("x", "y" * 4000)]) * 4)(h)),
    ("one header without an end",
     lambda h: Http2.bytes_of(HEADERS, 0, 1, b"\0\3x-a" + hpack_int(1 << 30, 7, 0)) + many(CONTINUATION, 0, 1, b"b" * 16000)(h)),
    ("headers of nothing", lambda h: Http2.bytes_of(HEADERS, 0, 1) + many(CONTINUATION, 0, 1)(h)),
]


def test_floods(run):
    """No flood of frames makes the daemon slow or large; each ends with the connection."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    for name, make in FLOODS:
        for reads in (False, True):
            closed, more = flood(d, make, reads)
            check(closed, f"{name}: the connection is still open")
            check(more < 100, f"{name}: {more} MiB")
    wait_for(lambda: d.rss_anon() < 64 * MIB, 30, "the memory is given back")
    # gRPC ends some of them before the guard does.
    wait_for(lambda: closed_of(d, "resets of streams") == 2 and closed_of(d, "") >= 8, 10, "the log does not say what happened")


def test_pings_on_full_connections(run):
    """Connections with 250 streams each, whose client sends pings and reads nothing: the guard closes them, and gRPC
    keeps no error of each ping."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    n = 8 if run.short else 16
    attackers = open_streams(d, n, 250, WATCH, b"")
    before, d.peak = d.rss_anon(), 0
    pings, bound = many(PING, 0, 0, b"12345678"), PATIENCE if run.short else 5
    end = time.monotonic() + PATIENCE

    def attack(i):
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                attackers[i].sock.sendall(pings(attackers[i]))

    flood_of_all = threading.Thread(target=in_threads, args=(n, attack), daemon=True)
    flood_of_all.start()
    while flood_of_all.is_alive():
        d.answers(bound)
        flood_of_all.join(0.05)
    closed = f'\nxplaned_connections_closed_total{{protocol="grpc",cause="useless_frames"}} {n}\n'
    wait_for(lambda: closed in d.get("/metrics").body.decode(), 10, "the guard closes all of them")
    check(d.peak - before < 40 * MIB, f"{(d.peak - before) // MIB} MiB")
    for h in attackers:
        h.close()
    d.answers()


def closed_of(d, cause):
    """Connections that the guard has closed, as the log has them."""
    found = re.findall(r"(\d+) connections? closed: ([^\n]*)", d.log())
    return sum(int(n) for n, text in found if cause in text)


def test_headers_that_abort(run):
    """Headers of wrong values, and then more than the limit (CVE-2023-1428): an error, and no abort."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    base = [(":method", "POST"), (":path", STATS), (":authority", "a"), ("content-type", "application/grpc")]
    name, value = b"x-b", b"y" * 3000
    indexed = b"\x40" + hpack_int(len(name), 7, 0) + name + hpack_int(len(value), 7, 0) + value + b"\xbe" * 10
    for wrong in (("te", "x"), (":scheme", "x"), ("grpclb_client_stats", "x")):
        rest = [h for h in ((":scheme", "http"), ("te", "trailers")) if h[0] != wrong[0]]
        for block in (hpack(base + rest + [wrong]) + indexed, hpack(base + rest) + indexed + hpack([wrong])):
            with d.http2() as h:
                while h.frame()[0] != SETTINGS:  # acknowledged, so that the limit holds
                    pass
                stream = h.next_stream
                h.send(HEADERS, END_HEADERS, stream, block)
                h.message(stream, b"")
                got, _ = h.result(stream)
                check(got.get(b"grpc-status") != b"0", f"{wrong}: {got}")
            check(d.alive(), f"{wrong}: the daemon ended")
    d.answers()


# ---- streams without an end ----


def open_streams(d, connections, streams, path, message=None, settings=((1, 0),)):
    """Opens streams that wait, as far as the daemon lets; returns the connections."""
    all_of_them = []
    for _ in range(connections):
        h = Http2(d.connect(d.grpc), settings)
        all_of_them.append(h)
        with contextlib.suppress(OSError):
            for _ in range(streams):
                stream = h.request(path)
                if message is not None:
                    h.message(stream, message)
    return all_of_them


def is_served(d):
    return d.ctl("--timeout-ms", 8000, "sessions", timeout=60).returncode == 0


def test_half_open_streams(run):
    """Requests whose messages never come: their number is bounded, and so is what they cost."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    for path in (STATS, "/grpc.health.v1.Health/Check"):
        with descriptors(1000):
            before = d.rss_anon()
            d.peak = 0
            attackers = open_streams(d, 150, 250, path)
            time.sleep(1)
            check(d.peak - before < 200 * MIB, f"{(d.peak - before) // MIB} MiB")
            d.answers(20)
            for h in attackers:
                h.close()
    wait_for(lambda: d.rss_anon() < 64 * MIB, 30, "the memory is given back")


def test_idle_streams(run):
    """4,500 idle reflection streams, which need no token, leave room for who has one."""
    token = run.dir / "token"
    token.write_text("secret\n")
    d = run.start(f"--token-file={token}", logdir=run.logdir("jax_matmul_nopy"))
    attackers = open_streams(d, 18, 250, REFLECTION)
    time.sleep(0.5)
    done = d.ctl("--token-file", token, "--timeout-ms", PATIENCE * 1000, "sessions", timeout=60)
    equal(done.returncode, 0, f"with the token: {done.stderr.decode()}")
    with d.http2() as h:
        equal(h.call("/grpc.health.v1.Health/Check", b"")[0], 0, "health")
    # Of the idle streams the oldest goes for a new one.
    def reflects():
        with d.http2() as h:
            stream = h.request(REFLECTION)
            h.message(stream, b"\x3a\1*")
            got, data = h.result(stream)
            return got.get(b"grpc-status") == b"0" and b"ServerReflection" in data

    wait_for(reflects, 10, "a new reflection stream")
    for h in attackers:
        h.close()


WATCH = "/grpc.health.v1.Health/Watch"


def begins_watch(d, headers=()):
    """Whether a watch of health gets its first message."""
    with d.http2() as h:
        stream = h.request(WATCH, headers)
        h.message(stream, b"")
        while got := h.frame():
            if got[2] == stream and got[0] == DATA_FRAME:
                return got[3][-2:] == b"\x08\x01"
            if got[2] == stream and got[1] & END_STREAM:
                return False
    return False


def test_idle_watches(run):
    """750 watches of health, which need no token: probes without one get through, and so do all who have it."""
    token = run.dir / "token"
    token.write_text("secret\n")
    d = run.start(f"--token-file={token}", logdir=run.logdir("jax_matmul_nopy"))
    attackers = open_streams(d, 3, 250, WATCH, b"")
    check(begins_watch(d, [("authorization", "Bearer secret")]), "a watch with the token, at once")
    equal(d.ctl("--token-file", token, "--timeout-ms", PATIENCE * 1000, "sessions", timeout=60).returncode, 0, "with the token")
    wait_for(lambda: begins_watch(d), 10, "a watch without the token")
    with d.http2() as h:
        wait_for(lambda: h.call("/grpc.health.v1.Health/Check", b"")[0] == 0, 10, "a probe without the token")
    for h in attackers:
        h.close()


def test_half_open_calls_come_and_go(run):
    """Calls without a token that never send their message, 5,000 at any moment and none for long: who has it is served."""
    token = run.dir / "token"
    token.write_text("secret\n")
    d = run.start(f"--token-file={token}", logdir=run.logdir("jax_matmul_nopy"))
    end = time.monotonic() + (4 if run.short else 30)
    refused = 0
    while time.monotonic() < end:
        attackers = open_streams(d, 20, 250, "/grpc.health.v1.Health/Check")
        done = d.ctl("--token-file", token, "--timeout-ms", PATIENCE * 1000, "sessions", timeout=60)
        refused += done.returncode != 0
        for h in attackers:
            h.close()
    equal(refused, 0, "callers with the token that were refused")


test_half_open_calls_come_and_go.slow = True


def test_answers_that_nobody_reads(run):
    """10,000 calls of clients with a window of 0 do not keep the others out."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    attackers = open_streams(d, 40, 250, STATS, b"", ((4, 0),))
    wait_for(lambda: is_served(d), 8, "somebody else is served")
    for h in attackers:
        h.close()
    d.answers()


test_answers_that_nobody_reads.slow = True


test_floods.slow = True
test_floods.limit = 200
test_half_open_streams.slow = True
test_half_open_streams.limit = 200


# ---- TLS, and what a reload takes over ----


def https(d, context, path="/api/v1/tools"):
    """Status of a GET over TLS; None when there is no connection."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        c = http.client.HTTPSConnection("127.0.0.1", d.http, timeout=10, context=context)
        try:
            c.request("GET", path)
            return c.getresponse().status
        finally:
            c.close()
    return None


def context_of(cert, client=None, most=None):
    context = ssl.create_default_context(cafile=cert)
    if client:
        context.load_cert_chain(*client)
    if most:
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = most
    return context


def test_client_certificates_on_loopback(run):
    """With --tls-client-ca HTTP asks for a certificate on loopback, too, and speaks no TLS before 1.2."""
    cert, key = make_certificate(run)
    d = run.start(
        f"--tls-cert={cert}", f"--tls-key={key}", f"--tls-client-ca={cert}", logdir=run.logdir("jax_matmul_nopy")
    )
    check(b"200 OK" not in d.raw(b"GET /api/v1/tools HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 3), "an answer without TLS")
    equal(https(d, context_of(cert)), 403, "without a certificate")
    equal(https(d, context_of(cert, (cert, key))), 200, "with a certificate")
    equal(https(d, context_of(cert, (cert, key), ssl.TLSVersion.TLSv1_2)), 200, "TLS 1.2")
    for old in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        equal(https(d, context_of(cert, (cert, key), old)), None, str(old))


def reload(d):
    """What the daemon says about a SIGHUP."""
    before = len(d.log())
    d.signal(signal.SIGHUP)

    def said():
        lines = [line for line in d.log()[before:].splitlines() if "reloaded" in line or "restart" in line]
        return lines[0] if lines else None

    return wait_for(said, 10, "nothing is said about SIGHUP")


def shown(d):
    """The certificate that HTTPS shows, in DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", d.http), 10) as plain:
        with context.wrap_socket(plain) as s:
            return s.getpeercert(True)


def requests_begun(d, context):
    """Requests of HTTP until now, with this one."""
    c = http.client.HTTPSConnection("127.0.0.1", d.http, timeout=PATIENCE, context=context)
    with contextlib.closing(c):
        c.request("GET", "/metrics")
        return int(re.search(rb'^xplaned_calls_begun_total{protocol="http"} (\d+)', c.getresponse().read(), re.M)[1])


def der_of(cert):
    return ssl.PEM_cert_to_DER_cert(cert.read_text())


def test_https_certificate_is_renewed(run):
    """By SIGHUP, and without it: new connections get the new certificate and are checked by the new CA; a request
    under way is answered, and a pair that does not fit is not taken."""
    cert, key = make_certificate(run)
    d = run.start(
        f"--tls-cert={cert}", f"--tls-key={key}", f"--tls-client-ca={cert}", logdir=run.logdir("jax_matmul_nopy")
    )
    first, first_pair = der_of(cert), (run.dir / "first.pem", run.dir / "first.key")
    for source, to in zip((cert, key), first_pair):
        to.write_bytes(source.read_bytes())
    equal(shown(d), first, "the certificate of the start")
    old = http.client.HTTPSConnection("127.0.0.1", d.http, timeout=10, context=context_of(cert, first_pair))
    old.request("GET", "/api/v1/tools")
    equal(old.getresponse().read()[:1], b"{", "an answer")
    half = http.client.HTTPSConnection("127.0.0.1", d.http, timeout=10, context=context_of(cert, first_pair))
    half.putrequest("POST", "/api/v1/tools")
    half.putheader("Content-Length", "4")
    before, polls = requests_begun(d, context_of(cert, first_pair)), 0
    half.endheaders(b"ab")

    def is_under_way():  # beside those that ask for it
        nonlocal polls
        polls += 1
        return requests_begun(d, context_of(cert, first_pair)) > before + polls

    wait_for(is_under_way, 10, "a request with half of its body")
    make_certificate(run)
    check("settings reloaded" in reload(d), "SIGHUP takes it")
    second = der_of(cert)
    equal(shown(d), second, "the certificate after SIGHUP")
    equal(https(d, context_of(cert, first_pair)), 403, "a client certificate of the old CA")
    equal(https(d, context_of(cert, (cert, key))), 200, "a client certificate of the new CA")
    half.send(b"cd")
    check(half.getresponse().status < 500, "a request under way is answered")
    old.sock.settimeout(10)
    equal(old.sock.recv(1), b"", "an idle connection of the old certificate is closed")
    old.close()
    half.close()
    good = key.read_text()
    make_certificate(run)
    third, third_key = der_of(cert), key.read_text()
    key.write_text(good)
    wait_for(lambda: "HTTPS keeps its certificate" in d.log(), 20, "a pair that does not fit")
    equal(shown(d), second, "the certificate of before")
    key.write_text(third_key)
    wait_for(lambda: shown(d) == third, 20, "a pair that fits is taken without SIGHUP")
    fds = d.fds()
    for _ in range(6):
        make_certificate(run)
        check("settings reloaded" in reload(d), "again")
        equal(shown(d), der_of(cert), "again")
        wait_for(lambda: d.fds() <= fds, 10, "nothing is left of the one before")


test_https_certificate_is_renewed.slow = True
test_https_certificate_is_renewed.limit = 120


def test_reload_says_what_it_took(run):
    """A token that changed is taken; settings and certificates that cannot be are named."""
    cert, key = make_certificate(run)
    token, other, config = run.dir / "token", run.dir / "other", run.dir / "conf"
    token.write_text("first\n")
    other.write_text("second\n")
    config.write_text(f"token-file = {token}\n")
    logdir = run.logdir("jax_matmul_nopy")
    d = run.start(f"--config={config}", f"--tls-cert={cert}", f"--tls-key={key}", f"--tls-client-ca={cert}", logdir=logdir)
    check("settings reloaded" in reload(d), "nothing changed")
    token.write_text("third\n")
    check("settings reloaded" in reload(d), "the token is taken")
    trusted = ("--tls-roots", cert, "--tls-name", "localhost", "--tls-cert", cert, "--tls-key", key)
    equal(d.ctl(*trusted, "--token-file", token, "sessions").returncode, 0, "the new token")
    config.write_text(f"token-file = {other}\n")
    said = reload(d)
    check("restart" in said and "--token-file" in said and "settings reloaded" not in said, said)
    equal(d.ctl(*trusted, "--token-file", other, "sessions").returncode != 0, True, "the other file is not in use")
    config.write_text(f"token-file = {token}\n")
    make_certificate(run)  # another one, at the same place
    check("settings reloaded" in reload(d), "the certificate is taken")
    equal(d.ctl(*trusted, "--token-file", token, "sessions").returncode, 0, "gRPC uses the new certificate")
    equal(https(d, context_of(cert, (cert, key))), 401, "HTTPS, too: without a token")
    good = key.read_text()
    make_certificate(run)
    key.write_text(good)  # of the one before
    said = reload(d)
    check("not reloaded" in said and "--tls-key" in said, said)
