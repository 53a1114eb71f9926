#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An unmodified XProf server with xplaned as its worker shows the pages that it shows with its own worker.

    aggregator.py --build BUILD [SESSION_DIR]...

Starts, for each session of several hosts (default: those of tests/data), XProf with its own worker, XProf with xplaned, and XProf with
xplaned that forwards what it does not serve (--worker-fallback) to the first one's worker; asks every page over HTTP; compares.
"""
import argparse
import contextlib
import gzip
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import typing
import urllib.error
import urllib.request

import compare
import tool_table
from daemon import free_port

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_S = 60


@contextlib.contextmanager
def process(command, log):
    """Runs a server; ends it by its process id."""
    with open(log, "wb") as out:
        p = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        yield p
    finally:
        p.terminate()
        try:
            p.wait(10)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def wait_until(what, ready):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = ready()
        if value:
            return value
        time.sleep(0.1)
    sys.exit(f"aggregator: {what} did not start")


def get(port, path):
    """The body, or None where XProf has no answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as r:
            body = r.read()
            return gzip.decompress(body) if r.headers.get("Content-Encoding") == "gzip" else body
    except urllib.error.HTTPError as e:
        if e.code == 404:
            return None
        raise


def answers(port):
    with contextlib.suppress(OSError):
        return get(port, "/data/plugin/profile/version") is not None
    return False


@contextlib.contextmanager
def xprof(top, session, name, worker=None):
    """XProf on a copy of the session; yields its HTTP and gRPC ports."""
    logdir = top / name
    run = logdir / "plugins" / "profile" / "run"
    shutil.copytree(session, run)
    port, grpc_port = free_port(), free_port()
    script = pathlib.Path(sys.executable).parent / "xprof"
    command = [str(script), "--logdir", str(logdir), "--port", str(port), "--grpc_port", str(grpc_port)]
    if worker:
        command += [f"--worker_service_address={worker}"]
    with process(command, top / f"{name}.log"):
        wait_until(name, lambda: answers(port))
        yield port, grpc_port


class Worker(typing.NamedTuple):
    address: str
    log: pathlib.Path
    process: subprocess.Popen

    def answered(self):
        """How many requests of XProf."""
        lines = self.log.read_text(errors="replace").splitlines()
        return sum("service=xprof" in line and "status=OK" in line for line in lines)


@contextlib.contextmanager
def xplaned(top, build, logdir, name, *more):
    """xplaned as a worker; yields a Worker."""
    log = top / f"{name}.log"
    command = [str(build / "server" / "xplaned"), "--logdir", str(logdir), "--state-dir", str(top / f"{name}.state"),
               "--listen", "127.0.0.1:0", "--http", "off", "--no-prefetch", *more]
    with process(command, log) as p:
        found = wait_until("xplaned", lambda: re.search(rb"service=xprof-worker address=(\S+)", log.read_bytes()))
        yield Worker(found.group(1).decode(), log, p)


def page(port, tool):
    return get(port, f"/data/plugin/profile/data?run=run&tag={tool}&host=ALL_HOSTS&use_saved_result=false")


class Count:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, ok, why=""):
        self.passed += ok
        self.failed += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {name}{': ' + why if why and not ok else ''}", flush=True)


def same(tool, expected, actual):
    """What differs and is not excused, as text."""
    if expected is None or actual is None:
        return "" if expected == actual else "only one of the two answers"
    found = compare.compare(tool, compare.parse(expected), compare.parse(actual))
    return str(found[0]) if found else ""


def one_session(count, build, session):
    tools = tool_table.for_workers(build / "cli" / "xplanectl")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        top = pathlib.Path(name)
        reference, reference_worker = stack.enter_context(xprof(top, session, "reference"))
        expected = {tool: page(reference, tool) for tool in tools}
        count.check(f"{session.name}: XProf's own worker answers", all(v is not None for v in expected.values()))
        # The aggregator's log directory does not exist before it starts: xplaned watches the parent.
        (top / "ours").mkdir()
        worker = stack.enter_context(xplaned(top, build, top, "worker", "--xprof-worker", "127.0.0.1:0", "--worker-dir", str(top / "files"),
                                             "--worker-fallback", f"127.0.0.1:{reference_worker}"))
        port, _ = stack.enter_context(xprof(top / "ours", session, "logdir", worker=worker.address))
        time.sleep(2.5)  # until the new files have been noticed for certain
        for tool in tools:
            why = same(tool, expected[tool], page(port, tool))
            count.check(f"{session.name}: {tool}", not why, why)
        asked = worker.answered()
        count.check(f"{session.name}: the worker was xplaned", asked >= len(tools), f"{asked} requests in its log")
        trace = get(port, "/data/plugin/profile/data?run=run&tag=trace_viewer@&host=ALL_HOSTS&resolution=8000")
        count.check(f"{session.name}: trace_viewer@ through the fallback", trace is not None and "source=fallback" in
                    worker.log.read_text(errors="replace"))


def many_workers(count, build, session, addresses, target):
    """Daemons behind XProf's round robin, with one directory for its files; where they have one name, also
    without one of them.  addresses: to listen on; target(addresses that are listened on): what XProf is told."""
    tools = [t for t in tool_table.for_workers(build / "cli" / "xplanectl") if t != "trace_viewer@"]
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        top = pathlib.Path(name)
        reference, _ = stack.enter_context(xprof(top, session, "reference"))
        expected = {tool: page(reference, tool) for tool in tools}
        (top / "ours").mkdir()
        workers = [stack.enter_context(xplaned(top, build, top, f"worker{i}", "--worker-dir", str(top / "files"), "--xprof-worker", address))
                   for i, address in enumerate(addresses)]
        worker = target([w.address for w in workers])
        port, _ = stack.enter_context(xprof(top / "ours", session, "logdir", worker=worker))
        time.sleep(2.5)  # until the new files have been noticed for certain

        def ask_all(when):
            for tool in tools:
                why = same(tool, expected[tool], page(port, tool))
                count.check(f"{session.name}: {tool} {when}", not why, why)

        ask_all(f"of {len(workers)} workers")
        wait_until("the log of every worker", lambda: all(w.answered() for w in workers))
        if "," in worker:
            return  # XProf gives the hosts of an address to no other test
        workers[0].process.terminate()
        workers[0].process.wait(30)
        before = workers[1].answered()
        ask_all("without one of them")
        wait_until("the log of the other", lambda: workers[1].answered() >= before + len(tools))


def has_two_addresses():
    """Whether localhost can be ::1, too; gRPC takes it to be both by itself."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as s:
        s.bind(("::1", 0))
        return True
    return False


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--build", type=pathlib.Path, required=True)
    ap.add_argument("sessions", nargs="*", type=pathlib.Path)
    args = ap.parse_args()
    data = HERE.parent / "data" / "logdir"
    sessions = args.sessions or sorted({p.parent for p in data.rglob("*.xplane.pb") if len(list(p.parent.glob("*.xplane.pb"))) > 1})
    count = Count()
    for session in sessions:
        one_session(count, args.build.resolve(), session.resolve())
    widest = max(sessions, key=lambda s: len(list(s.glob("*.xplane.pb"))))
    many_workers(count, args.build.resolve(), widest.resolve(), ["127.0.0.1:0"] * 3, ",".join)
    if has_two_addresses():
        port = free_port()
        many_workers(count, args.build.resolve(), widest.resolve(), [f"127.0.0.1:{port}", f"[::1]:{port}"], lambda _: f"dns:///localhost:{port}")
    else:
        print("no ::1 here: one name of two daemons is not tried")
    print(f"{count.passed} passed, {count.failed} failed")
    sys.exit(count.failed > 0 or count.passed == 0)


if __name__ == "__main__":
    main()
