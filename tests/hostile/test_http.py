# SPDX-License-Identifier: Apache-2.0
"""HTTP that means one thing to us and another to a browser or a proxy."""

import contextlib
import os
import re

from harness import ROOT, answer_url, check, descriptors, equal, wait_for

# Of the gRPC services: only their callers see these names.
RPC_NAMES = ("ListSessions", "GetSession", "ListTools", "ListCaptures", "ListSchedules", "StreamToolData", "GetToolData", "DeleteSession",
             "ImportSession", "CreateSchedule", "ProfileResponse")
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
                 b"Content-Length: 0\0 55\r\n", b"X: a\rContent-Length: " + n + b"\r\n", b"X: a\nContent-Length: " + n + b"\r\n",
                 b"X: a\0b\r\n", b"X: a\rb\r\n", b": x\r\n", b":\r\n", b":Content-Length: " + n + b"\r\n",
                 b":\0\r\n", b"\0: x\r\n", b"X:\r\n:\r\n", b"X: a\0\0\0\r\n", b": x\r\nX: a\r\n",
                 b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: chunked, identity\r\n", b"Host: evil.example\r\n"]
    for headers in ambiguous:
        for method in (b"GET", b"POST"):
            got = d.raw(method + b" /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + b"\r\n" + SECOND, timeout=5)
            found = statuses(got)
            # libmicrohttpd begins its own 400 twice for malformed lengths (docs/http.md).
            check(found and all(400 <= s < 500 for s in found) and b"2.24.2" not in got, f"{method} {headers!r}: {got[:200]!r}")
    got = d.raw(b"GET /runs HTTP/1.1\r\nHost: 127.0.0.1\0evil.example\r\n\r\n" + SECOND)
    equal(statuses(got), [400], "a name behind a NUL")
    for honest in (b"", b"X: a  \t \r\n", b"X:\r\n", b"X: \r\nY:a\r\n", b"X: " + b"a" * 3000 + b"\r\n"):
        got = d.raw(b"GET /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n" + honest + b"\r\n" + SECOND)
        equal(statuses(got), [200, 200], f"two honest requests, {honest[:20]}")
    with d.connect() as s:  # byte by byte, so that buffers grow and move
        for i in (b"GET /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: a\r\nY: %s\r\n" % (b"b" * 90) * 20 + b"Connection: close\r\n\r\n"):
            s.sendall(bytes([i]))
        got = b"".join(iter(lambda: s.recv(1 << 16), b""))
    equal(statuses(got), [200], "an honest request in pieces")


def post(d, path, body, headers=None, **more):
    return d.get(path, "POST", {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}, body, **more)


def test_arguments_in_a_body(run):
    """A thousand hosts by long names, in the body of a POST; no more than is allowed, and only of whom may ask."""
    logdir = run.logdir("jax_matmul_nopy")
    session = logdir / "plugins/profile/jax_matmul_nopy"
    names = [f"{i:04}-" + "n" * 55 for i in range(1000)]
    for name in names[1:]:
        os.link(session / "vm.xplane.pb", session / f"{name}.xplane.pb")
    (session / "vm.xplane.pb").rename(session / f"{names[0]}.xplane.pb")
    d = run.start("--no-prefetch", logdir=logdir)
    body = "session=jax_matmul_nopy&tool=overview_page" + "".join(f"&host={name}" for name in names)
    check(len(body) > 64 << 10, "more than a body of another kind may have")
    equal(post(d, "/api/v1/tool", body, timeout=100).status, 200, "a thousand hosts")
    two = post(d, "/api/v1/tool?session=jax_matmul_nopy&tool=kernel_stats", f"host={names[7]}&host={names[9]}")
    same = d.get(answer_url("jax_matmul_nopy", "kernel_stats") + f"&host={names[7]}&host={names[9]}")
    equal((two.status, two.body), (200, same.body), "URL and body together")
    # What a body asked is not found again under the URL.
    equal(post(d, "/api/v1/tool", "session=jax_matmul_nopy&tool=op_profile").status, 200, "all in the body")
    equal(post(d, "/api/v1/tool", "session=none&tool=op_profile").status, 404, "another body")
    equal(d.get("/api/v1/tool").status, 400, "no body")
    equal(post(d, "/api/v1/tool", "session=%FF%FE&tool=op_profile").status, 400, "no UTF-8")
    equal(post(d, "/api/v1/tool", "&".join(["a=b"] * 4097)).status, 413, "too many")
    equal(post(d, "/api/v1/tool", "a=" + "b" * (256 << 10)).status, 413, "too long")
    equal(post(d, "/api/v1/sessions", "a=b").status, 405, "a route without")
    equal(d.get("/api/v1/tool", "POST", {"Content-Type": "text/plain"}, "session=jax_matmul_nopy&tool=op_profile").status, 400, "no form")
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        equal(post(d, "/api/v1/tool", body, headers).status, 403, f"{headers}")
    for path in (b"/api/v1/tool", b"/generate_cache"):  # ended in between
        d.raw(b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 99\r\n\r\nab", 0.3)
    d.answers()


def test_half_forms(run):
    """Of bodies that never end little is kept, of all together: the oldest are ended, and others are answered."""
    d = run.start("--no-prefetch", logdir=run.logdir("jax_matmul_nopy"), file={"memory-total": "256MiB"})
    half = b"POST /api/v1/tool HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 262144\r\n\r\n" \
        b"session=jax_matmul_nopy&tool=" + b"x" * 260000
    with descriptors(2000), contextlib.ExitStack() as open_ones:
        sockets = [open_ones.enter_context(d.connect()) for _ in range(run.parameter("HALF_FORMS", 300, 900))]
        for s in sockets:
            with contextlib.suppress(OSError):  # an older one, which has been ended
                s.sendall(half)
        wait_for(lambda: d.rss_anon() < 64 << 20, 10, "bodies are not kept")
        equal(post(d, "/api/v1/tool", "session=jax_matmul_nopy&tool=op_profile").status, 200, "a whole body")
        ended = [s for s in sockets if is_ended(s)]
        check(len(ended) > len(sockets) * 2 // 3 and sockets[0] in ended and sockets[-1] not in ended, f"{len(ended)} of {len(sockets)}")
    d.answers()


def is_ended(s):
    s.setblocking(False)
    try:
        return not s.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_forms_need_the_token(run):
    """A form is refused before it is sent, so that who has no token costs no memory."""
    token = run.dir / "token"
    token.write_text("secret\n")
    d = run.start(f"--token-file={token}", logdir=run.logdir("jax_matmul_nopy"))
    got = d.raw(b"POST /api/v1/tool HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                b"Content-Length: 200000\r\n\r\n", timeout=3)
    equal(statuses(got)[:1], [401], "before the body")
    got = post(d, "/api/v1/tool", "session=jax_matmul_nopy&tool=op_profile", {"Authorization": "Bearer secret"})
    equal(got.status, 200, "with the token")


def test_many_arguments(run):
    """Answered or refused at once, whatever their number."""
    d = run.start("--http-idle=5s", logdir=run.logdir("jax_matmul_nopy"))
    for n, allowed in ((1, {200}), (458, {200}), (459, {200}), (1000, {200}), (4096, {200}), (4097, {414}), (7000, {414}), (20000, {414})):
        got = d.raw(b"GET /runs?" + b"&".join([b"a=b"] * n) + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", timeout=30)
        found = statuses(got)
        check(found and found[0] in allowed, f"{n} arguments: {got[:200]!r}")


def test_texts_of_errors(run):
    """What is wrong is said in words of the page: near matches, and no names of gRPC methods, neither in answers nor in pages."""
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    for path, near in (("session=jax_matmul_npy&tool=overview_page", "jax_matmul_nopy"), ("session=jax_matmul_nopy&tool=overview", "overview_page"),
                       ("session=jax_matmul_nopy&tool=op_profile&groupby=category", "group_by"),
                       ("session=jax_matmul_nopy&tool=op_profile&group_by=catgory", "category"),
                       ("session=jax_matmul_nopy&tool=op_profile&host=VM", "vm"), ("session=none&tool=op_profile", ""), ("tool=op_profile", ""),
                       ("session=jax_matmul_nopy", "")):
        got = d.get(f"/api/v1/tool?{path}")
        text = got.body.decode()
        check(400 <= got.status < 500 and text, f"{path}: {got}")
        check(not near or f'did you mean "{near}"?' in text.replace("\\", ""), f"{path}: {text}")
        equal([name for name in RPC_NAMES if name in text], [], f"{path}: {text}")
    for path in ("/runs", "/ui/", "/api/v1/sessions/none", "/nowhere", "/data?run=none&tag=overview_page", "/run_tools?run=none",
                 "/hosts?run=none&tag=overview_page", "/capture_profile", "/generate_cache"):
        text = d.get(path).body.decode(errors="replace")
        equal([name for name in RPC_NAMES if name in text], [], f"{path}: {text[:300]}")
    for page in sorted((ROOT / "server" / "web").rglob("*")):
        if page.suffix in (".js", ".html"):
            equal([name for name in RPC_NAMES if name in page.read_text()], [], str(page))
