# SPDX-License-Identifier: Apache-2.0
"""The measurements.  Each is a function that fills a table of the report."""
import json
import math
import os
import shutil
import subprocess
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "parity"))
import tool_table
import viewer
from inputs import ACCEL, DATA, MB, REAL, note, repeat
from peers import (GET_TOOL_DATA, HOST, Failure, Logdir, Sampler, Xplaned, Xprof, XprofRs, start,
                   stop, tool_request)

MAIN_TOOLS = ["overview_page", "framework_op_stats", "memory_profile"]
MIB = 1 << 20
FAILS = "peer fails"


def median(v):
    return statistics.median(v) if v else None


class Bench:
    """What the measurements share."""

    def __init__(self, bins, work, rs, xprof, files, quick, ten_million):
        self.bins, self.work, self.rs, self.xprof = bins, work, rs, xprof
        self.tools = tool_table.pages(bins / "cli/xplanectl")
        self.files, self.quick = files, quick
        self.ten_million = ten_million  # makes the profiles of 10 million events
        self.until = math.inf  # of the current section: later rows are measured less often
        self.startup = {"xplaned": [], "xprof-rs": [], "xprof": []}

    def late(self):
        return time.monotonic() > self.until

    def rounds(self, n):
        """How many rounds of n there are time for."""
        return 1 if self.late() else n

    def xplaned(self, logdir, state_dir=None, **more):
        if state_dir is None:
            state_dir = tempfile.mkdtemp(prefix="state-", dir=self.work)
        x = Xplaned(self.bins, self.work, logdir, state_dir, **more)
        self.startup["xplaned"].append(x.startup_ms)
        return x

    def start_peer(self, kind, logdir, http=False):
        if kind == "xplaned":
            return self.xplaned(logdir, http="127.0.0.1:0" if http else "off")
        p = XprofRs(self.rs, self.work, logdir) if kind == "xprof-rs" else Xprof(self.xprof,
                                                                                 self.work, logdir)
        self.startup[kind].append(p.startup_ms)
        return p

    def cold(self, kind, file, tool, sample=False):
        """One answer of a server that has just been started and knows nothing.  With `sample`:
        (answer, memory)."""
        with Logdir(self.work, {HOST: file}) as logdir:
            server = self.start_peer(kind, logdir)
            try:
                if not sample:
                    return server.ask(tool)
                time.sleep(0.1)  # so that idle is idle
                with Sampler(self.bins, server.pid) as s:
                    answer = server.ask(tool)
                return answer, s.result
            finally:
                server.stop()
                self.forget_states()

    def forget_states(self):
        for d in Path(self.work).glob("state-*"):
            shutil.rmtree(d, ignore_errors=True)

    def walk(self, file, width, runs=7, core=None):
        args = [str(self.bins / "tests/bench/walk_floor"), str(file), str(width), str(runs)]
        if core is not None:
            args = ["taskset", "-c", str(core), *args]
        return json.loads(subprocess.run(args, capture_output=True, check=True, timeout=300).stdout)


# ---- cold answers ----


def tools_of(b, file):
    return b.tools if file.size < 200 * MB else MAIN_TOOLS


ENOUGH_MS = 4000  # time for one server's rounds of a row; slow servers get fewer requests


def _servers(b, file, tool):
    """Which servers are asked, and how often at most."""
    large, main = file.size > 200 * MB, tool in MAIN_TOOLS
    most = {"xplaned": 3 if b.quick else 5}
    if b.rs and (main or not (large or b.late())):
        most["xprof-rs"] = 3
    # XProf needs 16 times the file in memory.
    if b.xprof and file.size <= 100 * MB and (main or not (b.quick or b.late())):
        most["xprof"] = 1
    return most


def cold_of(b, file, tool):
    """{server: [Answer]}; a server that failed has None."""
    most, got = _servers(b, file, tool), {}
    for i in range(max(most.values())):
        for kind, n in most.items():  # interleaved, so that noise hits all alike
            have = got.get(kind, [])
            if i >= b.rounds(n) or have is None or sum(a.ms for a in have) > ENOUGH_MS:
                continue
            try:
                got.setdefault(kind, []).append(b.cold(kind, file.path, tool))
            except Failure as e:
                if kind == "xplaned":
                    raise
                note(f"{kind} {file.name} {tool}: {e}")
                got[kind] = None
    return got


def cold(b, report):
    t = report.table("cold", "Cold answers",
                     ["file", "tool", "answer", "xplaned ms", "its CPU ms", "xprof-rs ms",
                      "times (goal 3; memory_profile 2)", "xprof ms", "times (goal 20)"])
    for file in b.files:
        for tool in tools_of(b, file):
            got = cold_of(b, file, tool)
            ms = {k: median([a.ms for a in v]) if v else None for k, v in got.items()}
            ours = got["xplaned"]
            expected = {"xprof-rs": 2 if tool == "memory_profile" else 3, "xprof": 20}
            cells = [file.name, tool, report.size(ours[0].size), f"{ms['xplaned']:.1f}",
                     f"{median([a.cpu_ms for a in ours]):.0f}"]
            for kind in ("xprof-rs", "xprof"):
                if kind not in got:
                    cells += ["", ""]
                elif got[kind] is None:
                    cells += [FAILS, ""]
                else:
                    ratio = ms[kind] / ms["xplaned"]
                    cells += [f"{ms[kind]:.0f}", t.judge(ratio >= expected[kind], f"{ratio:.1f}")]
                    report.figure(f"cold: times faster than {kind}"
                                  + (", memory_profile" if tool == "memory_profile" else ""),
                                  f"at least {expected[kind]}", ratio, ratio >= expected[kind],
                                  f"{file.name}, {tool}", least=True)
            t.row(cells)


# ---- against the walk ----


def walk(b, report):
    t = report.table("walk", "Cold framework_op_stats against a walk of the same bytes",
                     ["file", "cores", "walk best ms", "cold best ms", "cold median ms",
                      "best to best (goal ≤ 2)"])
    for file in b.files:
        n = b.rounds(3 if b.quick or file.size > 200 * MB else 7)
        for cores in (1, 2):
            core = 0 if cores == 1 else None
            floor, ours = [], []
            with Logdir(b.work, {HOST: file.path}) as logdir:
                for _ in range(n):
                    floor.append(b.walk(file.path, cores, 3, core)["best_ms"])
                    server = b.xplaned(logdir, core=core)
                    try:
                        ours.append(server.ask("framework_op_stats").ms)
                    finally:
                        server.stop()
                        b.forget_states()
            ratio = min(ours) / min(floor)
            t.row([file.name, str(cores), f"{min(floor):.1f}", f"{min(ours):.1f}",
                   f"{median(ours):.1f}", t.judge(ratio <= 2, f"{ratio:.2f}")])
            report.figure(f"cold against the walk, {cores} core" + "s" * (cores > 1),
                          "at most 2 times", ratio, ratio <= 2, file.name)


# ---- after a restart ----


def _restarted(b, logdir, filled, tool, rounds):
    """Median of first answers after a restart with what is stored in `filled`."""
    ms, answer = [], None
    for _ in range(rounds):
        state = tempfile.mkdtemp(prefix="state-", dir=b.work)
        shutil.copytree(filled, state, dirs_exist_ok=True)
        server = b.xplaned(logdir, state)
        try:
            answer = server.ask(tool)
            ms.append(answer.ms)
        finally:
            server.stop()
            b.forget_states()
    return median(ms), answer


def _fill(b, logdir, tools):
    """A state directory in which the answers of these tools are stored."""
    state = tempfile.mkdtemp(prefix="filled-", dir=b.work)
    for tool in tools:  # one start each: the store then holds what a user's day leaves behind
        server = b.xplaned(logdir, state)
        try:
            server.ask(tool)
        finally:
            server.stop()
    return state


def restart(b, report):
    t = report.table("restart", "First answer after a restart",
                     ["file", "tool", "answer", "limit ms", "answer stored, ms",
                      "products stored, ms"])
    for file in [f for f in b.files if f.kind != "1000" or f.name.startswith("tpu")]:
        # A copy: links made elsewhere meanwhile would change the file's ctime.
        with Logdir(b.work, {HOST: file.path}, copy=True) as logdir:
            filled = _fill(b, logdir, b.tools)
            products = {t_: _fill(b, logdir, [t_]) for t_ in ("overview_page", "kernel_stats")}
            for tool in b.tools:
                cells, rounds = [file.name, tool], b.rounds(3 if b.quick else 5)
                stored, answer = _restarted(b, logdir, filled, tool, rounds)
                limit = 5 + 3 * answer.size / MIB
                cells += [report.size(answer.size), f"{limit:.1f}"]
                kinds = [("answer", stored, answer)]
                if tool != "memory_profile":  # its answer is all there is of its product
                    other = "kernel_stats" if tool == "overview_page" else "overview_page"
                    kinds.append(("products",
                                  *_restarted(b, logdir, products[other], tool, rounds)))
                for kind, ms, answer in kinds:
                    ok = ms <= limit and answer.source == "store"
                    wrong = "" if answer.source == "store" else f" ({answer.source})"
                    cells.append(t.judge(ok, f"{ms:.1f}{wrong}"))
                    report.figure(f"first answer after a restart, {kind} stored",
                                  "at most 5 ms + 3 ms per MiB", ms / limit, ok,
                                  f"{ms:.1f} of {limit:.1f} ms, {file.name}, {tool}",
                                  unit=" of the limit")
                t.row(cells + [""] * (6 - len(cells)))
            for d in [filled, *products.values()]:
                shutil.rmtree(d, ignore_errors=True)


# ---- warm ----

WARM_SIZES = [1 << 10, 1 << 16, 1 << 20]


def _nearest_answers(tools, server, sessions):
    """For each size the session and tool whose answer comes nearest to it."""
    found = []
    for session in sessions:
        for tool in tools:
            try:
                found.append((server.ask(tool, session).size, session, tool))
            except Failure:  # one is corrupt on purpose
                continue
    return [min(found, key=lambda f: abs(math.log(f[0] / size))) for size in WARM_SIZES]


class Bare:
    """tests/bench/bare_server.c with answers of one size."""

    def __init__(self, b, size):
        self.process = start([b.bins / "tests/bench/bare_server", "127.0.0.1:0", GET_TOOL_DATA,
                              size], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = "127.0.0.1:" + self.process.stdout.readline().split()[1]
        self.bins, self.work = b.bins, b.work

    load = Xplaned.load

    def stop(self):
        self.process.stdin.close()
        stop(self.process)


def _warm_pair(b, server, bare, request, inflight):
    """What rpc_load says of both, round by round."""
    rounds, seconds = (3, "0.6") if b.quick else (5, "1.0")
    ours, theirs = [], []
    for _ in range(b.rounds(rounds)):
        for who, to in ((bare, theirs), (server, ours)):
            to.append(who.load(request, "--inflight", inflight, "--seconds", seconds, "--warm",
                               "0.2"))
    return ours, theirs


def warm(b, report):
    t = report.table("warm", "Warm answers over gRPC against a bare C-core server",
                     ["answer", "in flight", "xplaned p50 us", "bare p50 us", "ratio (goal ≤ 1.3)",
                      "xplaned p99 us", "bare p99 us", "ratio (goal ≤ 1.5)", "xplaned req/s",
                      "bare req/s", "share (goal at 64: 80 %)"])
    files = {p.parent.name: p for p in DATA.glob("*/plugins/profile/*/*.xplane.pb")
             if len(list(p.parent.glob("*.pb"))) == 1}
    with Logdir(b.work, {}) as logdir:
        for name, path in files.items():
            run_dir = logdir / "plugins/profile" / name
            run_dir.mkdir()
            os.link(path, run_dir / f"{HOST}.xplane.pb")
        for mb in (4, 5, 6):  # one of these has a memory_profile of a MiB
            name = f"tpu-{mb}"
            (logdir / "plugins/profile" / name).mkdir()
            repeat(b.bins, REAL["tpu"][0], logdir / f"plugins/profile/{name}/{HOST}.xplane.pb",
                   mb * MB)
            files[name] = None
        server = b.xplaned(logdir)
        try:
            for _, session, tool in _nearest_answers(b.tools, server, files):
                _warm_size(b, report, t, server, session, tool)
        finally:
            server.stop()
            b.forget_states()


def _compare(pairs, key):
    """Medians of both and of the ratio, which noise that lasts for a round leaves alone."""
    ours, theirs = ([x[key] for x in v] for v in pairs)
    return median(ours), median(theirs), median([x / y for x, y in zip(ours, theirs)])


def _warm_size(b, report, t, server, session, tool):
    request = tool_request(tool, session)
    size = server.load(request, "--once")["answer_bytes"]
    bare = Bare(b, size)
    try:
        for inflight in (1, 8, 64):
            pairs = _warm_pair(b, server, bare, request, inflight)
            cells = [report.size(size), str(inflight)]
            for key, most in (("p50_us", 1.3), ("p99_us", 1.5)):
                our, their, r = _compare(pairs, key)
                text = f"{r:.2f}"
                if inflight == 1:
                    text = t.judge(r <= most, text)
                    report.figure(f"warm {key[:3]} against the bare server", f"at most {most} times",
                                  r, r <= most, report.size(size))
                cells += [f"{our:.0f}", f"{their:.0f}", text]
            our, their, r = _compare(pairs, "rps")
            text = f"{100 * r:.0f} %"
            if inflight == 64:
                text = t.judge(r >= 0.8, text)
                report.figure("requests per second at 64 in flight", "at least 0.8 of the bare server",
                              r, r >= 0.8, report.size(size), least=True)
            t.row(cells + [f"{our:.0f}", f"{their:.0f}", text])
    finally:
        bare.stop()


# ---- memory ----


def memory(b, report):
    t = report.table("memory", "Peak memory of a cold answer (1 kHz samples)",
                     ["file", "tool", "anonymous MiB", "limit MiB", "resident MiB",
                      "xprof-rs resident MiB", "share (goal ≤ 50 %)", "xprof resident MiB"])
    for file in b.files:
        for tool in tools_of(b, file):
            peers = tool in ("framework_op_stats", "memory_profile") and not (
                b.late() or (b.quick and file.kind == "60"))
            answer, m = b.cold("xplaned", file.path, tool, sample=True)
            anon = (m["peak_anon_kb"] - m["first_anon_kb"]) / 1024
            limit = 8 + 0.15 * file.size / MIB + 3 * answer.size / MIB
            resident = m["peak_rss_kb"] / 1024
            report.figure("anonymous memory of a cold answer", "at most 8 MiB + 15 % + 3 answers",
                          anon / limit, anon <= limit,
                          f"{anon:.0f} of {limit:.0f} MiB, {file.name}, {tool}",
                          unit=" of the limit")
            cells = [file.name, tool, t.judge(anon <= limit, f"{anon:.1f}"), f"{limit:.1f}",
                     f"{resident:.0f}", "", "", ""]
            if peers and b.rs:
                cells[5:7] = _peer_memory(b, report, t, "xprof-rs", file, tool, resident)
            if peers and b.xprof and file.size <= 100 * MB:
                cells[7] = _peer_memory(b, report, t, "xprof", file, tool, None)[0]
            t.row(cells)


def _peer_memory(b, report, t, kind, file, tool, ours):
    try:
        _, m = b.cold(kind, file.path, tool, sample=True)
    except Failure as e:
        note(f"{kind} {file.name} {tool}: {e}")
        return [FAILS, ""]
    theirs = m["peak_rss_kb"] / 1024
    if ours is None:
        return [f"{theirs:.0f}", ""]
    share = ours / theirs
    report.figure("peak resident against xprof-rs", "at most 0.5 times", share, share <= 0.5,
                  f"{file.name}, {tool}")
    return [f"{theirs:.0f}", t.judge(share <= 0.5, f"{100 * share:.0f} %")]


# ---- growth ----


def _best_cold(b, files, tool, rounds):
    best = [math.inf] * len(files)
    for _ in range(rounds):
        for i, f in enumerate(files):
            best[i] = min(best[i], b.cold("xplaned", f, tool).ms)
    return best


def doubled(b, report):
    t = report.table("doubled", "Twice the file",
                     ["file", "MB", "twice MB", "ms", "twice ms", "ratio (goal ≤ 2.1)"])
    for file in [f for f in b.files if f.kind != "1000"]:
        twice = Path(b.work) / "twice.pb"
        # From the same real profile: repeating a repeated profile would duplicate ids.
        source = REAL[file.name.split()[0]][0] if file.kind == "60" else file.path
        repeat(b.bins, source, twice, 2 * file.size)
        one, two = _best_cold(b, [file.path, twice], "framework_op_stats",
                              b.rounds(3 if b.quick else 5))
        factor = twice.stat().st_size / file.size
        ratio = (two / one) / (factor / 2)
        t.row([file.name, f"{file.mb:.0f}", f"{twice.stat().st_size / MB:.0f}", f"{one:.1f}",
               f"{two:.1f}", t.judge(ratio <= 2.1, f"{ratio:.2f}")])
        report.figure("twice the file", "at most 2.1 times the time", ratio, ratio <= 2.1,
                      file.name)
        twice.unlink()


def hosts(b, report):
    t = report.table("hosts", "256 hosts of 3 MB in one session",
                     ["profile", "MB", "cold overview_page s (goal ≤ 10)",
                      "after that framework_op_stats s",
                      "peak anonymous MiB"])
    one = Path(b.work) / "host.pb"
    for name in ["nvidia"] if b.quick else ["nvidia", "tpu", "tf-cpu"]:
        size = REAL[name][0].stat().st_size
        if size < 2.9 * MB:
            repeat(b.bins, REAL[name][0], one, 3 * MB)
        else:
            shutil.copyfile(REAL[name][0], one)
        # Copies, not links: each host is read.
        with Logdir(b.work, {f"host{i:03}": one for i in range(256)}, copy=True) as logdir:
            server = b.xplaned(logdir)
            try:
                with Sampler(b.bins, server.pid) as s:
                    first = server.ask("overview_page").ms / 1e3
                    second = server.ask("framework_op_stats").ms / 1e3
            finally:
                server.stop()
                b.forget_states()
        anon = (s.result["peak_anon_kb"] - s.result["first_anon_kb"]) / 1024
        t.row([REAL[name][1], f"{256 * one.stat().st_size / MB:.0f}",
               t.judge(first <= 10, f"{first:.2f}"), f"{second:.2f}", f"{anon:.0f}"])
        report.figure("256 hosts of 3 MB combined", "at most 10 s", first, first <= 10, name,
                      unit=" s")
        one.unlink()


def idle(b, report):
    t = report.table("idle", "Idle", ["when", "resident MB (goal ≤ 20)", "anonymous MB"])
    server = b.xplaned(DATA)

    def sample(when, most):
        with open(f"/proc/{server.pid}/status", encoding="ascii") as f:
            kb = {k: int(v.split()[0]) for k, v in (line.split(":", 1) for line in f)
                  if k in ("VmRSS", "RssAnon")}
        rss = kb["VmRSS"] * 1024 / MB
        t.row([when, t.judge(rss <= most, f"{rss:.1f}") if most else f"{rss:.1f}",
               f"{kb['RssAnon'] * 1024 / MB:.1f}"])
        return rss

    try:
        time.sleep(1.5)
        rss = sample("started, with the sessions of tests/data", 20)
        report.figure("idle daemon", "at most 20 MB", rss, rss <= 20, "resident", unit=" MB")
        for run in sorted(p.name for p in ACCEL.iterdir()):
            server.ask("overview_page", f"accel/{run}")
        time.sleep(2.5)
        sample("after an overview_page of each accelerator session", None)
    finally:
        server.stop()
        b.forget_states()


def startup(b, report):
    t = report.table("startup", "Start-up, from exec to listening", ["server", "starts", "median ms"])
    for kind, v in b.startup.items():
        if v:
            t.row([kind, str(len(v)), f"{median(v):.0f}"])


# With the share of the time that each may take before it does less.
ALL = {cold: 0.29, walk: 0.09, restart: 0.09, warm: 0.09, memory: 0.11, doubled: 0.03, hosts: 0.03,
       idle: 0, viewer.trace: 0.16, viewer.zoom: 0.07, viewer.sums: 0.03, viewer.http: 0.06, startup: 0}
