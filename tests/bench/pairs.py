#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds, instruction by instruction: what a change costs, whatever else the machine does.

usage: pairs.py OLD_BUILD NEW_BUILD [--profiles DIR] [--only restart|warm] [--pairs N] [--load RPC_LOAD]

OLD_BUILD and NEW_BUILD are release builds of two versions (meson -Dbuildtype=release -Db_lto=true).
Everything runs under valgrind's callgrind with one worker; a row of a daemon is the whole life of
one, less a daemon that was asked nothing. Prints a table in Markdown.

--only warm: one answer from memory, on one connection of gRPC and of HTTP; daemons that live equally
long and answer more or fewer requests are subtracted.  RPC_LOAD is tests/bench/rpc_load of any build.

--pairs N: no callgrind, but N alternating pairs of answers after a restart, by the time that the
daemon's log line tells; each row has the medians, and the median of the ratios with the interval
that it lies in with 95%.
"""
import argparse
import http.client
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "logdir")
PROFILES = ["accel/plugins/profile/gpu_multi_worker/gpu_multi_worker.xplane.pb",
            "accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb",
            "cpu/plugins/profile/tf_bfc_memory/vm.xplane.pb"]
TOOLS = ["overview_page", "op_profile", "framework_op_stats", "memory_profile", "trace_viewer",
         "trace_viewer@"]
WARM_REQUESTS = 200
CONNECTED_REQUESTS, CONNECTED_SECONDS = (500, 4500), 60


def instructions(text):
    found = re.search(r"Collected : (\d+)", text)
    if not found:
        sys.exit("callgrind said nothing:\n" + text[-2000:])
    return int(found.group(1))


def callgrind(args, **more):
    return subprocess.Popen(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                             *map(str, args)], stderr=subprocess.PIPE, text=True, **more)


def analyze(build, tool, profile):
    p = callgrind([build + "/cli/xplanectl", "analyze", tool, profile, "-j", "1"],
                  stdout=subprocess.DEVNULL)
    return instructions(p.communicate(timeout=600)[1])


class Daemon:
    """A daemon under callgrind, over one profile; instructions() ends it."""

    def __init__(self, build, logdir, state):
        self.build = build
        self.socket = os.path.join(state, "socket")
        self.log = open(os.path.join(state, "log"), "w+", encoding="utf-8")
        self.p = callgrind([build + "/server/xplaned", "--logdir", logdir, "--state-dir", state,
                            "--listen", "unix:" + self.socket, "--http", "off", "--workers", "1",
                            "--no-prefetch"])
        end = time.monotonic() + 120
        while not os.path.exists(self.socket):
            if time.monotonic() > end or self.p.poll() is not None:
                sys.exit("the daemon does not listen")
            time.sleep(0.1)

    def ask(self, tool, times=1):
        for _ in range(times):
            subprocess.run([self.build + "/cli/xplanectl", "--server", "unix:" + self.socket, "tool",
                            tool, "run", "-o", "/dev/null"], check=True, timeout=300)

    def instructions(self):
        time.sleep(1)
        self.p.send_signal(signal.SIGTERM)
        return instructions(self.p.communicate(timeout=300)[1])


def daemon_rows(build, profile):
    """{row: instructions}: cold, after a restart, one warm answer."""
    with tempfile.TemporaryDirectory() as work:
        logdir = os.path.join(work, "logs")
        os.makedirs(logdir + "/plugins/profile/run")
        shutil.copy(profile, logdir + "/plugins/profile/run/vm.xplane.pb")
        state = os.path.join(work, "state")

        def life(asked):
            os.makedirs(state, exist_ok=True)
            if os.path.exists(state + "/socket"):
                os.unlink(state + "/socket")
            d = Daemon(build, logdir, state)
            asked(d)
            return d.instructions()

        nothing = life(lambda d: None)
        cold = life(lambda d: d.ask("overview_page")) - nothing
        idle = life(lambda d: None)
        stored = life(lambda d: d.ask("overview_page")) - idle
        warm = life(lambda d: d.ask("overview_page", WARM_REQUESTS + 1)) - idle - stored
        return {"cold": cold, "after a restart": stored, "warm, one answer": warm // WARM_REQUESTS}


class Warm:
    """What daemons of one build execute for an answer from memory."""

    def __init__(self, build, profile, load):
        self.build, self.profile, self.load = build, profile, load

    def ask(self, protocol, addresses, times):
        if protocol == "http":
            c = http.client.HTTPConnection(addresses["http"].split("//")[-1].rstrip("/"), timeout=60)
            for _ in range(times):
                c.request("GET", "/api/v1/tool?session=run&tool=overview_page")
                r = c.getresponse()
                if not r.read() or r.status != 200:
                    sys.exit(f"HTTP {r.status}")
            return
        with tempfile.NamedTemporaryFile() as request:
            request.write(b"\x0a\x03run\x1a\x0doverview_page")
            request.flush()
            subprocess.run([self.load, addresses["grpc"], "/xplaned.v1.AnalysisService/GetToolData", request.name,
                            "--requests", str(times)], check=True, stdout=subprocess.DEVNULL, timeout=300)

    def life(self, work, protocol, times):
        """Instructions of a daemon that lives CONNECTED_SECONDS."""
        log, grind = os.path.join(work, "log"), os.path.join(work, "grind")
        with open(log, "wb") as out:
            p = subprocess.Popen(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=" + grind,
                                  self.build + "/server/xplaned", "--logdir", work + "/logs", "--state-dir", work + "/state", "--listen",
                                  "127.0.0.1:0", "--http", "127.0.0.1:0", "--workers", "1", "--no-prefetch"], stderr=out)
        addresses, end = {}, time.monotonic() + 120
        while len(addresses) < 2:
            if time.monotonic() > end or p.poll() is not None:
                sys.exit("the daemon does not listen")
            time.sleep(0.1)
            with open(log, encoding="utf-8") as f:
                addresses = dict(re.findall(r"msg=listening service=(grpc|http) address=(\S+)", f.read()))
        begin = time.monotonic()
        self.ask(protocol, addresses, times)
        left = begin + CONNECTED_SECONDS - time.monotonic()
        if left < 0:
            sys.exit(f"{times} requests took {-left:.0f} s too long")
        time.sleep(left)
        p.send_signal(signal.SIGTERM)
        p.wait(timeout=120)
        with open(grind, encoding="utf-8") as f:
            return instructions(f.read())

    def per_answer(self, protocol):
        few, many = CONNECTED_REQUESTS
        with tempfile.TemporaryDirectory() as work:
            os.makedirs(work + "/logs/plugins/profile/run")
            shutil.copy(self.profile, work + "/logs/plugins/profile/run/vm.xplane.pb")
            self.life(work, protocol, 1)  # the product is stored, and found by the others
            less, more = self.life(work, protocol, few), self.life(work, protocol, many)
        return (more - less) // (many - few)


def answer_us(build, logdir, state):
    """Microseconds of one answer of a daemon that was just started, and where it came from."""
    sock = os.path.join(state, "socket")
    if os.path.exists(sock):
        os.unlink(sock)
    with tempfile.TemporaryFile("w+") as log:
        p = subprocess.Popen([build + "/server/xplaned", "--logdir", logdir, "--state-dir", state,
                              "--listen", "unix:" + sock, "--http", "off", "--workers", "1",
                              "--no-prefetch"], stderr=log, stdout=log)
        end = time.monotonic() + 30
        while not os.path.exists(sock):
            if time.monotonic() > end or p.poll() is not None:
                sys.exit("the daemon does not listen")
            time.sleep(0.01)
        time.sleep(0.3)
        subprocess.run([build + "/cli/xplanectl", "--server", "unix:" + sock, "tool",
                        "overview_page", "run", "-o", "/dev/null"], check=True, timeout=60)
        time.sleep(0.2)
        p.send_signal(signal.SIGTERM)
        p.wait(timeout=60)
        log.seek(0)
        found = re.search(r"tool=overview_page .*source=(\w+) .* us=(\d+)", log.read())
    return int(found.group(2)), found.group(1)


def median_interval(values):
    """Median, and the 95% interval of it by ranks (binomial)."""
    v, n = sorted(values), len(values)
    below, k = 0.0, 0
    while below + math.comb(n, k) / 2 ** n <= 0.025:
        below += math.comb(n, k) / 2 ** n
        k += 1
    k = max(k - 1, 0)
    return v[n // 2], v[k], v[n - 1 - k]


def timed(old, new, profile, pairs):
    with tempfile.TemporaryDirectory() as work:
        logdir = os.path.join(work, "logs")
        os.makedirs(logdir + "/plugins/profile/run")
        shutil.copy(profile, logdir + "/plugins/profile/run/vm.xplane.pb")
        states = {}
        for build in (old, new):
            states[build] = tempfile.mkdtemp(dir=work)
            answer_us(build, logdir, states[build])  # cold: the server stores the products
        us = {old: [], new: []}
        for i in range(pairs):
            for build in (old, new) if i % 2 else (new, old):
                took, source = answer_us(build, logdir, states[build])
                if source != "store":
                    sys.exit(f"an answer after a restart came from: {source}")
                us[build].append(took)
    ratio = median_interval([n / o for o, n in zip(us[old], us[new])])
    name = os.path.basename(os.path.dirname(profile))
    print(f"| after a restart, {name} | {median_interval(us[old])[0] / 1000:.2f} ms | "
          f"{median_interval(us[new])[0] / 1000:.2f} ms | "
          f"{ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f}) |", flush=True)


def row(name, old, new):
    print(f"| {name} | {old:,} | {new:,} | {(new / old - 1) * 100:+.2f}% |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--profiles", default=DATA)
    parser.add_argument("--only", choices=["restart", "warm"])
    parser.add_argument("--load", help="tests/bench/rpc_load; NEW_BUILD's without it")
    parser.add_argument("--pairs", type=int, default=0)
    args = parser.parse_args()
    if args.pairs:
        print("| overview_page | before | after | ratio |\n| --- | --- | --- | --- |", flush=True)
        for profile in PROFILES:
            timed(args.old, args.new, os.path.join(args.profiles, profile), args.pairs)
        return
    print("| what | before | after | change |\n| --- | --- | --- | --- |", flush=True)
    for profile in PROFILES:
        path = os.path.join(args.profiles, profile)
        name = os.path.basename(os.path.dirname(path))
        if args.only == "warm":
            load = args.load or args.new + "/tests/bench/rpc_load"
            for protocol in ("grpc", "http"):
                row(f"warm answer over {protocol}, {name}", *(Warm(b, path, load).per_answer(protocol) for b in (args.old, args.new)))
            continue
        old, new = daemon_rows(args.old, path), daemon_rows(args.new, path)
        for key in old:
            row(f"daemon, {name}, {key}", old[key], new[key])
        if args.only:
            continue
        for tool in TOOLS:
            row(f"analyze {tool}, {name}", analyze(args.old, tool, path), analyze(args.new, tool, path))


if __name__ == "__main__":
    main()
