# SPDX-License-Identifier: Apache-2.0
"""HTTP that means one thing to us and another to a browser or a proxy."""

import re

from harness import check, equal

SECOND = b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
BROWSER = b"User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"


def statuses(got):
    return [int(s) for s in re.findall(rb"HTTP/1\.1 (\d+) ", got)]


def ask(d, request, headers=b"", host=b"profiles.example:8795"):
    got = d.raw(request + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n" + headers + b"\r\n")
    found = statuses(got)
    check(len(found) == 1, f"{request!r}: {got[:300]!r}")
    return found[0]


def test_pages_of_other_sites(run):
    """What a page elsewhere can make a browser send to a name that is not loopback, over plain HTTP."""
    d = run.start("--http-host=profiles.example", logdir=run.logdir("jax_matmul_nopy"))
    capture = b"/capture_profile?service_addr=127.0.0.1:1&duration=1"
    costly = [b"/data?run=jax_matmul_nopy&tag=overview_page&host=vm", b"/api/v1/tool?session=jax_matmul_nopy&tool=overview_page",
              b"/run_tools?run=jax_matmul_nopy"]
    elsewhere = [BROWSER, BROWSER + b"Referer: http://evil.example/\r\n", BROWSER + b"Sec-Fetch-Site: cross-site\r\n",
                 BROWSER + b"Referer: http://profiles.example.evil.example:8795/\r\n",
                 BROWSER + b"Referer: http://evil.example/http://profiles.example:8795/\r\n"]
    for headers in elsewhere:
        for method in (b"GET ", b"POST "):
            body = b"Content-Length: 0\r\n" if method == b"POST " else b""
            equal(ask(d, method + capture, headers + body), 403, f"a capture for {headers!r}")
        for path in costly:
            equal(ask(d, b"GET " + path, headers), 403, f"{path!r} for {headers!r}")
    equal(d.status()["cache"]["computed"], 0, "answers that were computed")
    check("capture ended" not in d.log(), "no capture was begun")
    own = BROWSER + b"Referer: http://profiles.example:8795/\r\n"
    equal(ask(d, b"GET " + capture, own), 500, "XProf's page captures (nobody is there)")
    equal(ask(d, b"POST " + capture, b"Content-Length: 0\r\n"), 500, "a program captures")
    for path in costly:
        equal(ask(d, b"GET " + path, own), 200, f"{path!r} for our own page")
        for headers in elsewhere:
            equal(ask(d, b"GET " + path, headers), 403, f"{path!r}, known by now, for {headers!r}")


def test_frames_of_other_sites(run):
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    for path in ("/version", "/runs", "/ui/", "/api/v1/sessions", "/nowhere", "/data?run=jax_matmul_nopy&tag=overview_page&host=vm"):
        headers = d.get(path).headers
        check("frame-ancestors" in headers["content-security-policy"], f"{path}: frame-ancestors")
        check(headers["x-frame-options"] in ("DENY", "SAMEORIGIN"), f"{path}: X-Frame-Options")


def test_request_smuggling(run):
    """One request, whatever a proxy takes for the end of the first: the second is never answered."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    n = str(len(SECOND)).encode()
    ambiguous = [b"Content-Length: " + n + b"\r\nContent-Length: 0\r\n", b"Content-Length: 0\r\nContent-Length: " + n + b"\r\n",
                 b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding : chunked\r\n",
                 b"Transfer-Encoding\t: chunked\r\n", b"Transfer-Encoding\x0b: chunked\r\n", b"Transfer-Encoding:\r\n chunked\r\n",
                 b"X: y\r\n Transfer-Encoding: chunked\r\n", b"Transfer-: chunked\r\n Encoding\r\n", b"Content-Length : " + n + b"\r\n",
                 b"Content-Length: +0\r\n", b"Content-Length: 0, 0\r\n", b"Content-Length: 0x0\r\n", b"Content-Length:\r\n",
                 b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: chunked, identity\r\n", b"Host: evil.example\r\n"]
    for headers in ambiguous:
        for method in (b"GET", b"POST"):
            got = d.raw(method + b" /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + b"\r\n" + SECOND, timeout=5)
            found = statuses(got)
            # libmicrohttpd begins its own 400 twice for some malformed lengths.
            check(found and all(400 <= s < 500 for s in found) and b"2.24.2" not in got, f"{method} {headers!r}: {got[:200]!r}")
    got = d.raw(b"GET /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + SECOND)
    equal(statuses(got), [200, 200], "two honest requests")


def test_many_arguments(run):
    """Answered or refused at once, whatever their number."""
    d = run.start("--http-idle=5s", logdir=run.logdir("jax_matmul_nopy"))
    for n, allowed in ((1, {200}), (458, {200}), (459, {200}), (1000, {200}), (4096, {200}), (4097, {414}), (7000, {414}), (20000, {414})):
        got = d.raw(b"GET /runs?" + b"&".join([b"a=b"] * n) + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", timeout=3)
        found = statuses(got)
        check(found and found[0] in allowed, f"{n} arguments: {got[:200]!r}")
