# SPDX-License-Identifier: Apache-2.0
"""Object stores that send clients elsewhere, lie about lengths, never end or never begin."""

import contextlib
import socket
import threading
import urllib.parse

from harness import MIB, check, equal, wait_for

DIRECTORY = "logs/plugins/profile/run/"
LISTING = "<ListBucketResult><IsTruncated>false</IsTruncated>%s</ListBucketResult>"
OBJECT = ("<Contents><Key>" + DIRECTORY + "vm.xplane.pb</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
          "<ETag>&quot;e&quot;</ETag><Size>%d</Size></Contents>")
MOST = 64 * MIB  # that an endless answer may send


class Endpoint:
    """A server on loopback that answers each request by `answer`(connection, first line); counts its connections."""

    def __init__(self, answer):
        self.answer, self.connections, self.requests, self.sent = answer, 0, 0, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.connections += 1
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection):
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60)
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.recv(1 << 16)
                if not part:
                    return
                request += part
            self.requests += 1
            self.answer(self, connection, request.partition(b"\r\n")[0])

    def close(self):
        self.socket.close()


def answered(status, headers, body, length=None):
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}\r\nConnection: close\r\n"
    return (head + "".join(f"{k}: {v}\r\n" for k, v in headers) + "\r\n").encode() + body


def listing(line, size):
    """What is below the prefix that a request names: a directory, or in the last one an object."""
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(line.split()[1].decode()).query)
    prefix = query["prefix"][0]
    if prefix == DIRECTORY:
        return LISTING % (OBJECT % size)
    below = DIRECTORY.removeprefix(prefix).partition("/")[0]
    return LISTING % f"<CommonPrefixes><Prefix>{prefix}{below}/</Prefix></CommonPrefixes>"


def lists(size, rest):
    """Lists an object of `size` bytes; `rest` answers all other requests."""

    def answer(e, c, line):
        if b"list-type" in line:
            c.sendall(answered("200 OK", (), listing(line, size).encode()))
        else:
            rest(e, c, line)

    answer.lists = True
    return answer


def redirects(status, trap):
    def answer(_, c, line):
        c.sendall(answered(status, (("Location", f"http://{trap.address}/bucket/x"), ("Refresh", f"0; url=http://{trap.address}/")), b""))
    return answer


def endless(prefix):
    def answer(e, c, line):
        c.sendall(prefix)
        while e.sent < MOST:
            c.sendall(b"x" * 65536)
            e.sent += 65536
    return answer


def silent(_, c, line):
    c.recv(1)  # until the other side ends


def endpoints(trap):
    """(name, answer) of each wrong endpoint."""
    for status in ("301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"):
        yield f"all {status}", redirects(status, trap)
        yield f"objects {status}", lists(1000, redirects(status, trap))
    yield "short body", lists(1000, lambda e, c, line: c.sendall(answered("206 Partial Content", (("ETag", '"e"'), ("Content-Range", "bytes 0-999/1000")), b"x" * 10, 1000)))
    yield "long body", lists(1000, lambda e, c, line: c.sendall(answered("200 OK", (("ETag", '"e"'),), b"\xff" * 5000, 1000)))
    yield "huge length", lists(1 << 62, lambda e, c, line: c.sendall(answered("200 OK", (("ETag", '"e"'),), b"x", 1 << 62)))
    yield "negative length", lists(1000, lambda e, c, line: c.sendall(answered("200 OK", (("ETag", '"e"'),), b"x", -1)))
    yield "other range", lists(1000, lambda e, c, line: c.sendall(answered("206 Partial Content", (("ETag", '"e"'), ("Content-Range", "bytes 5-9/10")), b"xxxxx")))
    yield "endless headers", endless(b"HTTP/1.1 200 OK\r\nx-a: ")
    yield "endless listing", endless(b"HTTP/1.1 200 OK\r\n\r\n<ListBucketResult>")
    yield "endless object", lists(1000, endless(b'HTTP/1.1 200 OK\r\nETag: "e"\r\n\r\n'))
    yield "endless interim answers", lambda e, c, line: c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 200_000)
    yield "silent", silent
    yield "silent objects", lists(1000, silent)
    yield "no HTTP", lambda e, c, line: c.sendall(b"\0\xff" * 1000)


def test_wrong_endpoints(run):
    """The daemon answers others, within its memory, ends when it is told to, and connects to no address but the endpoint's."""
    trap = Endpoint(silent)
    for name, answer in endpoints(trap):
        endpoint = Endpoint(answer)
        try:
            d = run.start("--no-prefetch", "--object-anonymous", f"--object-endpoint=http://{endpoint.address}", "--object-interval=200ms",
                          "--memory-limit=64MiB", "--memory-total=64MiB", logdir="s3://bucket/logs")
            wait_for(lambda e=endpoint: e.requests > 0, 10, f"{name}: nothing is asked")
            equal(d.get("/api/v1/tools").status, 200, f"{name}: tools")
            if hasattr(answer, "lists"):
                wait_for(lambda d=d: is_listed(d), 10, f"{name}: the session is listed")
                with contextlib.suppress(TimeoutError):
                    got = d.get("/data?run=run&tag=overview_page&host=vm", timeout=1)
                    check(got.status >= 400, f"{name}: {got}")
            equal(d.get("/api/v1/tools").status, 200, f"{name}: tools, afterwards")
            equal(d.stop(), 0, f"{name}: exit status")
            check(endpoint.sent < MOST, f"{name}: all of {endpoint.sent} bytes were taken")
        finally:
            endpoint.close()
    trap.close()
    equal(trap.connections, 0, "connections to an address that the configuration does not name")


def is_listed(d):
    got = d.get("/api/v1/sessions")
    return got.status == 200 and bool(got.json()["sessions"])


test_wrong_endpoints.slow = True
test_wrong_endpoints.limit = 300
