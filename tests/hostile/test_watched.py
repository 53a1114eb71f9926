# SPDX-License-Identifier: Apache-2.0
"""What an operator watches with: log lines, traces, metrics, health."""

import contextlib
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse

from harness import MIB, SETTINGS, Skip, check, equal, wait_for

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


def lines(d):
    """The log's lines: not splitlines, which also cuts at characters that JSON strings may have."""
    return d.stderr_path.read_bytes().decode().split("\n")[:-1]


def lines_of(d, message):
    return [line for line in map(json.loads, lines(d)) if line["msg"] == message]


def field(number, data):
    return bytes([number << 3 | 2]) + bytes([len(data)]) + data


def test_json_log_of_any_bytes(run):
    """Every line is one JSON object, whatever names clients and files have."""
    logdir = run.logdir("jax_matmul_nopy")
    for name in (b'quote"and\\slash', b"newline\nand\x01", b"broken\xff\xc3utf8", b"\xf0\x9f\x90\x8d", b"x" * 200):
        os.makedirs(os.path.join(os.fsencode(logdir), b"plugins/profile", name))
        source = logdir / "plugins/profile/jax_matmul_nopy/vm.xplane.pb"
        with open(os.path.join(os.fsencode(logdir), b"plugins/profile", name, b"h\xfe\n.xplane.pb"), "wb") as f:
            f.write(source.read_bytes()[:1000])
    d = run.start("--log-format=json", "--log=debug", logdir=logdir)
    for session in ("%FF%FE%22", "a%0Ab", "%ED%A0%80", "x" * 3000, "quote%22and%5Cslash"):
        d.get(f"/api/v1/tool?session={session}&tool=overview_page")
        d.get(f"/api/v1/tool?session=jax_matmul_nopy&tool={session}")
    with d.http2() as h:
        h.call("/xplaned.v1.AnalysisService/GetToolData", field(1, "\u2028 \x7f".encode()) + field(3, b"overview_page"))
        h.call("/xplaned.v1.AnalysisService/GetToolData", field(1, b"\xff\xfe") + field(3, b"overview_page"))
    wait_for(lambda: len(lines_of(d, "request")) >= 8, 10, "lines of the requests")
    d.stop()
    for line in lines(d):
        got = json.loads(line)
        check({"time", "level", "topic", "msg"} <= set(got), f"keys of {line}")
    check(any(line.get("cut") is True for line in lines_of(d, "request")), "a line that was cut")


def test_slow_requests(run):
    """Requests that take long are warnings, with their stages; --log request:warn keeps them alone; by SIGHUP, too."""
    config = run.dir / "xplaned.conf"
    config.write_text("slow-request = 1ms\nlog = info,request:warn\n")
    # A large profile: small ones are converted within a millisecond.
    d = run.start("--log-format=json", f"--config={config}", "--no-prefetch", logdir=run.logdir("gpu_multi_worker"))
    path = "/api/v1/tool?session=gpu_multi_worker&tool="
    for _ in range(3):
        equal(d.get(path + "overview_page").status, 200, "an answer")  # the first is computed
    wait_for(lambda: lines_of(d, "request"), 10, "a line of the slow request")
    time.sleep(0.3)
    # Answers from memory take microseconds, but a busy machine may hold one up.
    slow = [line for line in lines_of(d, "request") if line["source"] != "memory"]
    equal(len(slow), 1, f"lines: {slow}")
    equal((slow[0]["level"], slow[0]["slow"], slow[0]["tool"], slow[0]["session"]),
          ("warn", 1, "overview_page", "gpu_multi_worker"), "the line")
    check(any(key.startswith("us_") for key in slow[0]), f"stages: {slow[0]}")
    config.write_text("slow-request = 1h\nlog = info,request:warn\n")
    d.signal(1)
    wait_for(lambda: lines_of(d, "settings reloaded"), 10, "reloaded")
    equal(d.get(path + "op_profile").status, 200, "an answer")
    time.sleep(0.3)
    equal([line for line in lines_of(d, "request") if line["tool"] == "op_profile"], [], "nothing is slow any more")


def test_json_log_follows_sighup(run):
    config = run.dir / "xplaned.conf"
    config.write_text("log-format = text\n")
    d = run.start(f"--config={config}", logdir=run.logdir("jax_matmul_nopy"))
    check(d.log().splitlines()[0].startswith("20"), "text")
    config.write_text("log-format = json\n")
    d.signal(1)
    wait_for(lambda: d.log().splitlines()[-1].startswith("{"), 10, "JSON after SIGHUP")
    config.write_text("log-format = yaml\n")
    d.signal(1)
    wait_for(lambda: "bad value \\\"yaml\\\"" in d.log(), 10, "refused")


def test_traceparent(run):
    """Taken in over HTTP and gRPC, for answers made, from memory and refused."""
    d = run.start("--log-format=json", logdir=run.logdir("jax_matmul_nopy"))
    path = "/api/v1/tool?tool=overview_page&session="
    good = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    expected = []
    for session, headers in (
        ("jax_matmul_nopy", good), ("jax_matmul_nopy", good), ("none", good), ("jax_matmul_nopy", {}),
        ("jax_matmul_nopy", {"traceparent": f"00-{TRACE.upper()}-{PARENT}-01"}),
        ("jax_matmul_nopy", {"traceparent": "x" * 300}),
    ):
        d.get(path + session, headers=headers)
        expected.append(headers is good)
    request = field(1, b"jax_matmul_nopy") + field(3, b"overview_page")
    with d.http2() as h:
        for traceparent in (good["traceparent"], good["traceparent"], good["traceparent"][:-1], None):
            sent = [("traceparent", traceparent)] if traceparent else []
            code, text, _ = h.call("/xplaned.v1.AnalysisService/GetToolData", request, sent)
            equal((code, text), (0, ""), "a call with traceparent")
            expected.append(traceparent == good["traceparent"])
    wait_for(lambda: len(lines_of(d, "request")) == len(expected), 10, "lines of the requests")
    for i, (line, traced) in enumerate(zip(lines_of(d, "request"), expected)):
        ids = (line.get("trace_id"), line.get("parent_id"))
        equal(ids, (TRACE, PARENT) if traced else (None, None), f"trace of request {i}: {line}")


# ---- /metrics, /healthz, /readyz ----


def metrics_of(d, **more):
    """{'name{labels}': value} of /metrics."""
    got = d.get("/metrics", **more)
    equal(got.status, 200, "/metrics")
    return {k: float(v) for k, _, v in (line.rpartition(" ") for line in got.body.decode().splitlines() if line[0] != "#")}


# What an operator asks for: by tool and stage, connections, streams, refusals, owners of memory, store, cache, captures.
FAMILIES = (("histogram", "xplaned_request_duration_seconds", ("tool",)), ("histogram", "xplaned_request_stage_duration_seconds", ("tool", "stage")),
            ("gauge", "xplaned_connections", ("protocol",)), ("gauge", "xplaned_streams", ("protocol",)),
            ("counter", "xplaned_refusals_total", ("protocol", "cause")), ("gauge", "xplaned_memory_bytes", ("owner",)),
            ("gauge", "xplaned_store_bytes", ()), ("counter", "xplaned_store_lookups_total", ("result",)), ("gauge", "xplaned_cache_objects", ()),
            ("counter", "xplaned_cache_evicted_total", ()), ("gauge", "xplaned_captures_running", ()), ("counter", "xplaned_captures_total", ("outcome",)))


def test_metrics_families(run):
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    equal(d.get("/api/v1/tool?session=jax_matmul_nopy&tool=kernel_stats").status, 200, "an answer")
    text = d.get("/metrics").body.decode()
    for kind, name, labels in FAMILIES:
        check(f"# TYPE {name} {kind}\n" in text, f"{name} is a {kind}")
        lines = [line for line in text.splitlines() if line.startswith((name + "{", name + " ", name + "_bucket{"))]
        check(lines, f"{name} has values")
        for line in lines:
            check(all(f'{label}="' in line for label in labels), f"{line}: labels {labels}")


def test_metrics_count(run):
    d = run.start(logdir=run.logdir("jax_matmul_nopy"))
    tool = '{tool="kernel_stats"'
    before = metrics_of(d)
    check(f'xplaned_requests_total{tool},code="OK"}}' not in before, "no request yet")
    for _ in range(3):
        d.get("/api/v1/tool?session=jax_matmul_nopy&tool=kernel_stats")
    d.get("/api/v1/tool?session=none&tool=kernel_stats")
    d.get("/api/v1/tools", headers={"Host": "evil.example"})
    d.get("/api/v1/tools", headers={"Origin": "http://evil.example"})
    d.get("/api/v1/tools", method="PUT")
    d.get("/api/v1/tools", method="POST", headers={"Content-Length": "70000"})
    with d.http2() as h:
        h.call("/no.such/Method", b"")
    idle = [d.connect() for _ in range(5)]
    wait_for(lambda: metrics_of(d)['xplaned_connections{protocol="http"}'] >= 6, 10, "idle connections are counted")
    after = metrics_of(d)
    for s in idle:
        s.close()
    equal(after[f'xplaned_requests_total{tool},code="OK"}}'], 3, "requests")
    equal(after[f'xplaned_requests_total{tool},code="NOT_FOUND"}}'], 1, "requests that failed")
    equal(after[f"xplaned_request_duration_seconds_count{tool}}}"], 4, "durations")
    equal(after[f'xplaned_request_stage_duration_seconds_count{tool},stage="render"}}'], 1, "rendered once")
    equal(after['xplaned_answers_total{source="memory"}'] - before['xplaned_answers_total{source="memory"}'], 2, "warm")
    for cause in ("host", "origin", "method", "body"):
        equal(after[f'xplaned_refusals_total{{protocol="http",cause="{cause}"}}'], 1, f"refused for {cause}")
    equal(after['xplaned_refusals_total{protocol="grpc",cause="method"}'], 1, "an unknown method")
    calls = {k: v for k, v in after.items() if k.startswith("xplaned_calls_total{")}
    equal(calls['xplaned_calls_total{protocol="grpc",method="*",code="UNIMPLEMENTED"}'], 1, "calls by method")
    equal(calls['xplaned_calls_total{protocol="http",method="other",code="405"}'], 1, "PUT")
    equal(calls['xplaned_calls_total{protocol="http",method="POST",code="413"}'], 1, "a long body")
    http = sum(v for k, v in calls.items() if 'protocol="http"' in k)
    # The one that asks for the metrics has no answer yet.
    equal(http + 1, after['xplaned_calls_begun_total{protocol="http"}'], "each has a status")
    check(abs(after["process_open_fds"] - d.fds()) <= 10, f"descriptors: {after['process_open_fds']}, {d.fds()}")
    check(abs(after['xplaned_memory_bytes{owner="anonymous"}'] - d.rss_anon()) < 4 * MIB, "memory")
    equal(after["xplaned_sessions"], 1, "sessions")
    wait_for(lambda: metrics_of(d)['xplaned_connections{protocol="http"}'] == 1, 10, "closed connections are not counted")


def grpc_figures(d):
    """{what follows protocol="grpc": value} of the metrics of connections."""
    start = ("xplaned_connections", "xplaned_refusals_total", "xplaned_calls_ended_total")
    return {k.replace('protocol="grpc"', "").replace(",cause=", ""): v for k, v in metrics_of(d).items()
            if k.startswith(start) and 'protocol="grpc"' in k}


def test_metrics_of_grpc_connections(run):
    """How many there are, and each cause for which one is refused or closed."""
    d = run.start("--grpc-connections=20", logdir=run.logdir("jax_matmul_nopy"))
    before = grpc_figures(d)
    equal(before["xplaned_connections{}"], 0, "none yet")
    equal(set(before.values()), {0.0}, f"nothing happened yet: {before}")
    idle = [d.connect(d.grpc) for _ in range(8)]
    wait_for(lambda: grpc_figures(d)["xplaned_connections{}"] == 8, 10, "open connections")
    more = [d.connect(d.grpc) for _ in range(15)]
    wait_for(lambda: grpc_figures(d)['xplaned_refusals_total{"connections"}'] == 3, 10, "refused ones")
    equal(grpc_figures(d)["xplaned_connections_accepted_total{}"], 23, "those that were let in, 3 of them for a while")
    equal(grpc_figures(d)["xplaned_connections{}"], 20, "open connections at the limit")
    for s in idle + more:
        s.close()
    wait_for(lambda: grpc_figures(d)["xplaned_connections{}"] == 0, 10, "closed connections")
    with d.connect(d.grpc) as s:
        s.sendall(b"GET / HTTP/1.1\r\n\r\n")
        s.recv(1)
    with d.http2() as h:
        with contextlib.suppress(OSError):
            for _ in range(1000):
                h.send(SETTINGS, 0, 0)
        # Closed here before the daemon has read them, it would be reset: the daemon would not have
        # seen many settings.
        wait_for(lambda: grpc_figures(d)['xplaned_connections_closed_total{"settings"}'] == 1, 10, "many settings")
    wait_for(lambda: grpc_figures(d)['xplaned_connections_closed_total{"preface"}'] == 1, 10, "no HTTP/2")


def test_metrics_of_unix_connections(run):
    """Those of a unix socket are counted and limited, too."""
    path = run.dir / "socket"
    d = run.start(f"--listen=unix:{path}", "--grpc-connections=5", logdir=run.logdir("jax_matmul_nopy"))
    idle = []
    for _ in range(8):
        idle.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        idle[-1].connect(str(path))
    wait_for(lambda: grpc_figures(d)['xplaned_refusals_total{"connections"}'] == 3, 10, "refused ones")
    equal(grpc_figures(d)["xplaned_connections{}"], 5, "open ones")
    for s in idle:
        s.close()
    # gRPC closes its side on a separate thread; until then the connection counts.
    wait_for(lambda: grpc_figures(d)["xplaned_connections{}"] == 0, 10, "closed ones")
    d.answers()


def test_metrics_format(run):
    """promtool (Debian's prometheus) finds nothing to say, and the values of a histogram only grow."""
    promtool = shutil.which("promtool")
    d = run.start(logdir=run.logdir("jax_matmul_nopy", "tpu_inference_a"))
    for session in ("jax_matmul_nopy", "tpu_inference_a", "none"):
        for tool in ("overview_page", "op_profile", "kernel_stats", "framework_op_stats", "memory_profile", 'no"such'):
            d.get("/api/v1/tool?" + urllib.parse.urlencode({"session": session, "tool": tool}))
    text = d.get("/metrics")
    equal(text.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8", "type")
    check(b'tool="other"' in text.body, "a tool that does not exist")
    last, series = 0.0, None
    for line in text.body.decode().splitlines():
        name, _, value = line.rpartition(" ")
        if "_bucket{" not in name:
            continue
        of = name.partition(",le=")[0]
        check(of != series or float(value) >= last, f"buckets of {of}")
        series, last = of, float(value)
    equal(gzip.decompress(d.get("/metrics", headers={"Accept-Encoding": "gzip"}).body)[:6], b"# HELP", "compressed")
    equal(d.get("/metrics", method="HEAD").body, b"", "HEAD")
    equal(d.get("/metrics", method="POST").status, 405, "POST")
    if not promtool:
        raise Skip("promtool is not installed")
    done = subprocess.run([promtool, "check", "metrics"], input=text.body, capture_output=True, timeout=60, check=False)
    equal((done.returncode, done.stdout + done.stderr), (0, b""), "promtool")


def test_who_may_read_metrics(run):
    token = run.dir / "token"
    token.write_text("secret\n")
    address = other_address()
    d = run.start(f"--token-file={token}", "--http=0.0.0.0:0", "--insecure", logdir=run.logdir("jax_matmul_nopy"))
    bearer = {"Authorization": "Bearer secret"}
    equal(d.get("/api/v1/tools").status, 401, "any other route")
    equal(d.get("/metrics").status, 200, "from this machine")
    for header in ("Forwarded", "X-Forwarded-For", "Via"):
        equal(d.get("/metrics", headers={header: "x"}).status, 401, f"through a proxy that sends {header}")
        equal(d.get("/metrics", headers={header: "x", **bearer}).status, 200, "with the token")
    for path in ("/metrics/", "//metrics", "/%6detrics", "/metricsx", "/data/plugin/profile/metrics"):
        equal(d.get(path).status, 401, f"{path} is not the route")
    for path in ("/healthz", "/readyz?verbose"):
        equal(d.get(path).status, 200, path)
        equal(d.get(path, headers={"Host": "any.example", "Origin": "http://any.example"}).status, 200, f"{path} of any host")
        equal(d.get(path, method="POST").status, 405, f"POST {path}")
        equal(d.get(path, method="DELETE").status, 405, f"DELETE {path}")
    equal(d.get("/metrics", headers={"Host": "any.example"}).status, 403, "/metrics of any host")
    if not address:
        raise Skip("this machine has no address but loopback")
    with socket.create_connection((address, d.http), timeout=10) as s:
        s.sendall(f"GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        check(s.recv(100).startswith(b"HTTP/1.1 401"), "from another address")
    with socket.create_connection((address, d.http), timeout=10) as s:
        s.sendall(f"GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        check(s.recv(100).startswith(b"HTTP/1.1 200"), "health from another address")


def other_address():
    """One of this machine that is not loopback; None without.  Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = s.getsockname()[0]
    return None if address.startswith("127.") or address == "0.0.0.0" else address


def test_probes_when_full(run):
    """What monitoring asks for, and nothing else, is answered when all connections are taken."""
    d = run.start("--http-connections=20", logdir=run.logdir("jax_matmul_nopy"))
    idle = [d.connect() for _ in range(20)]
    wait_for(lambda: d.get("/api/v1/tools").status == 503, 10, "connections are at their limit")
    for path in ("/healthz", "/readyz", "/metrics"):
        equal(d.get(path).status, 200, path)
    for s in idle:
        s.close()
    wait_for(lambda: d.get("/api/v1/tools").status == 200, 10, "there is room again")
    check(metrics_of(d)['xplaned_refusals_total{protocol="http",cause="connections"}'] >= 1, "refusals are counted")


def test_not_ready_while_stopping(run):
    d = run.start("--grace=5s", "--workers=1", logdir=run.logdir("jax_matmul_nopy"))
    with d.connect() as s:
        request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        s.sendall(request)
        check(s.recv(1000).startswith(b"HTTP/1.1 200"), "ready")
        s.sendall(request[:20])  # a request under way keeps the connection
        time.sleep(0.2)
        d.signal(signal.SIGTERM)
        wait_for(lambda: "msg=stopping" in d.log(), 10, "stopping")
        with contextlib.suppress(ConnectionError):
            s.sendall(request[20:])
            got = s.recv(1000)
            check(not got or got.startswith(b"HTTP/1.1 503"), f"not ready: {got[:100]}")
