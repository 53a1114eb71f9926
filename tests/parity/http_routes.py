# SPDX-License-Identifier: Apache-2.0
"""Every HTTP route of the real XProf against ours, over one log directory: status, type, encoding, policy, body.

What may differ is named in docs/http.md; DIFFERENT below lists it.
"""
import argparse
import contextlib
import gzip
import http.client
import importlib.util
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import daemon  # noqa: E402
import tool_table  # noqa: E402
from xprof.convert import csv_writer  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "logdir"
TYPES = ("content-type", "content-security-policy", "x-content-type-options", "content-encoding", "content-disposition")

# Without their options, or for hosts without their data, XProf fails on these in its own ways; hlo_graph.py,
# counters.py and megascale.py request them as pages do.
WITH_CHOICES = {"graph_viewer", "kernel_utilization", "megascale_stats", "perf_counters"}


def make_logdir(top):
    """Sessions of one and of several hosts, below a prefix, with odd names, broken, and empty."""
    cpu, accel = DATA / "cpu/plugins/profile", DATA / "accel/plugins/profile"
    one, gpu, tpu = cpu / "jax_matmul_nopy/vm.xplane.pb", *(accel / n / f"{n}.xplane.pb" for n in ("mi300_jax_gemm", "tpu_inference_a"))
    plan = {
        "plugins/profile/2024_01_01_10_00_00": {"vm": one},
        "train/plugins/profile/run_b": {"host-1.x": one, "host-0.x": one, "Z": one},
        "train/deep/plugins/profile/gpu": {"g": gpu},
        "plugins/profile/tpu \u00e9\U0001f600\"": {"t": tpu},
        "plugins/profile/broken": {"b": None},
    }
    for run, hosts in plan.items():
        (top / run).mkdir(parents=True)
        for host, source in hosts.items():
            to = top / run / f"{host}.xplane.pb"
            shutil.copyfile(source, to) if source else to.write_bytes(b"\x0a\xff\xff")
    return list(plan)


@contextlib.contextmanager
def xprof(logdir, log):
    port = daemon.free_port()
    command = [sys.executable, "-m", "xprof.server", "--logdir", str(logdir), "--port", str(port), "--grpc_port", str(daemon.free_port())]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Reply:
    def __init__(self, port, path, method):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        c.request(method, path, headers={"Accept-Encoding": "gzip", "Xplaned-Request": "1"})
        r = c.getresponse()
        body = r.read()
        self.status, self.headers = r.status, {k.lower(): v for k, v in r.getheaders()}
        self.body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
        c.close()


def paths(runs, static, pages):
    """(method, path) of all that is asked."""
    q = urllib.parse.quote
    for prefix in ("", "/data/plugin/profile"):
        for p in ("/runs", "/version", "/config", "/", "/index.html", "/local", "/capture_profile", "/generate_cache", "/nope.js", *static):
            yield "GET", prefix + p
    yield "GET", "/data/plugin/profile/overview_page/some/run"
    for run in [*runs, "nope"]:
        yield "GET", f"/run_tools?run={q(run)}"
        yield "GET", f"/module_list?run={q(run)}"
        for tool in (*pages, "trace_viewer@", "pod_viewer", "memory_viewer", ""):
            yield "GET", f"/hosts?run={q(run)}&tag={q(tool)}"
        for tool in (*(p for p in pages if p not in WITH_CHOICES), "nope", ""):
            for host in ("", "ALL_HOSTS", "host-0.x", "vm", "zz"):
                if tool == "memory_profile" and run.endswith("run_b") and host in ("", "ALL_HOSTS"):
                    continue  # XProf closes the connection
                yield "GET", f"/data?run={q(run)}&tag={q(tool)}&host={q(host)}"
                if host == "":
                    yield "GET", f"/data_csv?run={q(run)}&tag={q(tool)}&host={q(host)}"
    yield "POST", "/generate_cache"


def same_json(a, b):
    with contextlib.suppress(ValueError):
        return json.loads(a) == json.loads(b)
    return False


# Where docs/http.md lets us differ: (path, what of the two replies is still compared).
def expected_body(path, theirs, ours):
    route = path.replace("/data/plugin/profile", "").split("?")[0]
    # Without the tools that we do not have; a broken profile's tools are listed and fail when requested.
    if route == "/run_tools":
        return "broken" in path or [t for t in json.loads(theirs.body) if t in json.loads(ours.body)] == json.loads(ours.body)
    if route == "/config":
        a, b = json.loads(theirs.body), json.loads(ours.body)
        return a == b and list(a) == list(b)
    if route == "/capture_profile":
        return list(json.loads(ours.body)) == ["error"]
    if theirs.status >= 400:  # the same sentence, or one with more behind it
        return ours.body.startswith(theirs.body) or theirs.body in (b"Not Found", b"Fail to read the files.")
    if route == "/data":  # tests/parity/run.py compares answers; here the bytes that are not about times
        return same_json(theirs.body, ours.body) or theirs.body[:20] == ours.body[:20]
    if route == "/data_csv":  # of equal answers; the next test has them of one answer
        return theirs.body.split(b"\n")[0] == ours.body.split(b"\n")[0]
    return theirs.body == ours.body


def compare_csv(path, port, count):
    """Our CSV is what XProf's writer makes of our answer."""
    answer, csv = Reply(port, path.replace("/data_csv", "/data"), "GET"), Reply(port, path, "GET")
    if csv.status == 200:
        count.check(f"{path[:120]} as XProf writes it", csv_writer.json_to_csv_string(answer.body) == csv.body.decode())


def compare(path, theirs, ours, count):
    name = path[:120]
    if path.startswith("/data_csv?run=nope"):  # XProf tells that apart from /data: 500
        theirs.status = 404
    if "run=broken&tag=smart_suggestion&" in path and theirs.status != 404:
        # XProf has no suggestions for a file that cannot be read; ours report the error
        # (broken_hosts).
        count.check(f"{name} is refused", ours.status == 404 and b"truncated or corrupt" in ours.body, f"{ours.status} {ours.body[:90]}")
        return
    count.check(f"{name} status", theirs.status == ours.status, f"{theirs.status} here {ours.status} {ours.body[:90]}")
    if theirs.status != ours.status:
        return
    for header in TYPES:
        a, b = theirs.headers.get(header), ours.headers.get(header)
        if theirs.body == b"Not Found":  # XProf's own server, not its plugin
            continue
        if header == "content-security-policy" and a:  # only our own pages may frame ours
            a += ";frame-ancestors 'self'"
        count.check(f"{name} {header}", a == b, f"{a} here {b}")
    count.check(f"{name} body", expected_body(path, theirs, ours), f"{theirs.body[:160]} here {ours.body[:160]}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", required=True)
    args = ap.parse_args()
    static = pathlib.Path(importlib.util.find_spec("xprof").submodule_search_locations[0]) / "static"
    files = sorted("/" + f.name for f in static.iterdir())
    count = daemon.Count()
    with tempfile.TemporaryDirectory(prefix="xplaned-http-") as top:
        top = pathlib.Path(top)
        make_logdir(top / "theirs")
        shutil.copytree(top / "theirs", top / "ours")
        with xprof(top / "theirs", top / "xprof.log") as port, \
                daemon.running(args.build, top / "ours", "--http", "127.0.0.1:0", "--ui-dir", str(static)) as d:
            ours = int(re.search(rb"service=http address=\S+:(\d+)", d.log.read_bytes()).group(1))
            runs = json.loads(Reply(port, "/runs", "GET").body)
            for method, path in paths(runs, files, tool_table.pages(pathlib.Path(args.build) / "cli" / "xplanectl")):
                try:
                    theirs = Reply(port, path, method)
                except (http.client.HTTPException, OSError):
                    continue  # it raised inside its application
                compare(path, theirs, Reply(ours, path, method), count)
                if path.startswith("/data_csv"):
                    compare_csv(path, ours, count)
    count.finish()


if __name__ == "__main__":
    main()
