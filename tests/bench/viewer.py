# SPDX-License-Identifier: Apache-2.0
"""The trace viewer and HTTP: what people wait for who look at a trace in a browser."""
import itertools
import json
import random
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from inputs import ACCEL, MB, note
from peers import HOST, Failure, Logdir, tool_query

TRACE = "trace_viewer@"
SMALL = 256 << 10  # bytes of an answer for which there is a limit in milliseconds


def trace_path(**options):
    return tool_query(TRACE, HOST, resolution=8000, **options)


def percentile(v, share):
    v = sorted(v)
    return v[min(len(v) - 1, int(len(v) * share))]


# ---- the first answer ----

ENOUGH_MS = 12000  # time for one server's rounds of a row


def _first(b, kind, file):
    """(ms, CPU ms, bytes) of the first trace_viewer@ answer of a server that knows nothing."""
    with Logdir(b.work, {HOST: file.path}) as logdir:
        server = b.start_peer(kind, logdir, http=True)
        try:
            return server.get(trace_path())
        finally:
            server.stop()
            b.forget_states()


def _first_of(b, file):
    most = {"xplaned": 3 if b.quick else 5}
    if b.rs:
        most["xprof-rs"] = 3
    # XProf needs up to 20 KB of memory and 10 us for an event: of the large ones the smallest.
    if b.xprof and file.size <= 200 * MB and not (b.quick and file.kind == "events"):
        most["xprof"] = 1
    got = {}
    for i in range(max(most.values())):
        for kind, n in most.items():
            have = got.get(kind, [])
            if i >= b.rounds(n) or have is None or sum(a.ms for a in have) > ENOUGH_MS:
                continue
            try:
                got.setdefault(kind, []).append(_first(b, kind, file))
            except Failure as e:
                if kind == "xplaned":
                    raise
                note(f"{kind} {file.name} {TRACE}: {e}")
                got[kind] = None
    return got


def trace(b, report):
    t = report.table("trace", "Cold first trace_viewer@ answer over HTTP",
                     ["file", "MB", "answer", "xplaned ms", "its CPU ms", "xprof-rs ms",
                      "its CPU ms", "times (goal 3)", "times by CPU", "xprof ms",
                      "times (goal 25)"])
    for file in [f for f in b.files if f.kind == "corpus"] + b.ten_million():
        got = _first_of(b, file)
        ms = {k: median(a.ms for a in v) for k, v in got.items() if v}
        cpu = {k: median(a.cpu_ms for a in v) for k, v in got.items() if v}
        cells = [file.name, f"{file.mb:.0f}", report.size(got["xplaned"][0].size),
                 f"{ms['xplaned']:.0f}", f"{cpu['xplaned']:.0f}"]
        for kind, expected, more in (("xprof-rs", 3, True), ("xprof", 25, False)):
            empty = [""] * (3 if more else 1)
            if kind not in ms:
                cells += ["peer fails" if kind in got else "", *empty]
                continue
            ratio = ms[kind] / ms["xplaned"]
            cells.append(f"{ms[kind]:.0f}")
            if more:
                cells.append(f"{cpu[kind]:.0f}")
            cells.append(t.judge(ratio >= expected, f"{ratio:.1f}"))
            if more:
                cells.append(f"{cpu[kind] / cpu['xplaned']:.1f}")
            report.figure(f"cold trace_viewer@: times faster than {kind}", f"at least {expected}",
                          ratio, ratio >= expected, file.name, least=True)
        t.row(cells)


# ---- zoom, search, detail ----


class Asked:
    """What one server's answers to questions of one kind took."""

    def __init__(self):
        self.ms, self.size, self.cpu_s = [], [], 0.0

    def small_ms(self):
        return [m for m, n in zip(self.ms, self.size) if n <= SMALL]


def _ask_all(wires, paths):
    """{server: Asked} after asking each its own list of paths, in turns; no path comes twice."""
    asked = {k: Asked() for k in wires}
    bodies = {k: [] for k in wires}
    for i in range(max(len(p) for p in paths.values())):
        for kind, wire in wires.items():
            if i >= len(paths[kind]):
                continue
            got = wire.get(paths[kind][i])
            asked[kind].ms.append(got.ms)
            asked[kind].size.append(got.size)
            asked[kind].cpu_s += got.cpu_ms / 1e3
            bodies[kind].append(bytes(got.body))
    return asked, bodies


def _spans(span, n, seed):
    """Windows from a third of the trace down to a millionth, anywhere: (begin, width)."""
    chance = random.Random(seed)
    for _ in range(n):
        width = span * 10 ** chance.uniform(-6, -0.5)
        yield chance.uniform(0, span - width), width


def windows(span, n, seed):
    """Zooms into such windows."""
    return [trace_path(start_time_ms=f"{begin:.6f}", end_time_ms=f"{begin + width:.6f}")
            for begin, width in _spans(span, n, seed)]


def _events(bodies):
    """Distinct events that answers showed.  What takes no time is shown as 1 ps, by which it
    cannot be asked for."""
    found = {}
    for body in bodies:
        for e in json.loads(body)["traceEvents"]:
            if e.get("ph") == "X" and "uid" in e.get("args", {}) and e["dur"] > 1e-6:
                found[e["name"], e["ts"], e["dur"]] = e["args"]["uid"]
    return found


def _details(events, n):
    chosen = random.Random(1).sample(sorted(events.items()), min(n, len(events)))
    return [trace_path(event_name=name, start_time_ms=f"{ts / 1e3:.9f}",
                       duration_ms=f"{dur / 1e3:.9f}", unique_id=uid)
            for (name, ts, dur), uid in chosen]


def _searches(events, n):
    """Prefixes of names, each a new request."""
    names = sorted({name for name, _, _ in events})
    random.Random(2).shuffle(names)
    prefixes = dict.fromkeys(name[:k] for k in (24, 12, 6) for name in names)
    return [trace_path(search_prefix=p) for p in itertools.islice(prefixes, n)]


def _questions(b, wires, span):
    """(kind of request, {server: Asked}) one after another."""
    n = 100 if b.late() else 200 if b.quick else 500
    zooms = windows(span, n, 0)
    asked, bodies = _ask_all(wires, {k: zooms for k in wires})
    yield "zoom", asked
    # Each server gets the uids of its own answer: their uids differ.
    events = {k: _events(v) for k, v in bodies.items()}
    search = _searches(events["xplaned"], n // 2)
    yield "search", _ask_all(wires, {k: search for k in wires})[0]
    yield "detail", _ask_all(wires, {k: _details(v, n) for k, v in events.items()})[0]


def _zoom_rows(b, report, t, file, wires, span):
    for what, asked in _questions(b, wires, span):
        ours = asked["xplaned"]
        small = ours.small_ms()
        cells = [file.name, what, str(len(ours.ms)), report.size(median(ours.size)),
                 f"{median(ours.ms):.2f}", f"{1e3 * ours.cpu_s / len(ours.ms):.2f}",
                 str(len(small))]
        for name, share, most in (("p50", 0.5, 2), ("p99", 0.99, 10)):
            if not small:
                cells.append("")
                continue
            v = percentile(small, share)
            cells.append(t.judge(v < most, f"{v:.2f}"))
            report.figure(f"zoom, search, detail up to 256 KB: {name}", f"under {most} ms", v,
                          v < most, f"{file.name}, {what}", unit=" ms")
        theirs = asked.get("xprof-rs")
        if theirs:
            ratio = median(theirs.ms) / median(ours.ms)
            cells += [f"{median(theirs.ms):.2f}", f"{1e3 * theirs.cpu_s / len(theirs.ms):.2f}",
                      f"{percentile(theirs.ms, 0.99):.2f}", t.judge(ratio >= 3, f"{ratio:.1f}")]
            report.figure("zoom, search, detail: times faster than xprof-rs", "at least 3", ratio,
                          ratio >= 3, f"{file.name}, {what}", least=True)
        t.row(cells + [""] * (13 - len(cells)))


# ---- restart, memory ----


def _rss(pid):
    """(resident, anonymous) MB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        kb = {k: int(v.split()[0]) for k, v in (line.split(":", 1) for line in f)
              if k in ("VmRSS", "RssAnon")}
    return kb["VmRSS"] * 1024 / MB, kb["RssAnon"] * 1024 / MB


def _idle_growth(server, before):
    time.sleep(2.5)
    after = _rss(server.pid)
    return after[0] - before[0], after[1] - before[1]


def _wait_saved(state):
    for _ in range(600):
        files = list((Path(state) / "traces").iterdir())
        if files and all(f.suffix == ".trace_index" for f in files):
            return sum(f.stat().st_size for f in files)
        time.sleep(0.1)
    raise Failure("the index is not written")


def _restarts(b, report, t, logdir, state, file, span, cells):
    first, second = [], []
    for i, path in enumerate(windows(span, b.rounds(3 if b.quick else 7), 3)):
        server = b.xplaned(logdir, state, http="127.0.0.1:0")
        try:
            before = _rss(server.pid)
            wire = server.wire()
            first.append(wire.get(path).ms)
            second.append(wire.get(windows(span, 1, 100 + i)[0]).ms)
            if i == 0:
                grown = _idle_growth(server, before)
        finally:
            server.stop()
    worst = max(first)
    report.figure("first zoom after a restart", "at most 20 ms", worst, worst <= 20, file.name,
                  unit=" ms")
    used = max(grown[0], cells[1][0])
    report.figure("memory held per idle indexed trace", "at most 64 MB", used, used <= 64,
                  file.name, unit=" MB")
    t.row([file.name, f"{cells[0] / MB:.0f}", f"{median(first):.1f}",
           t.judge(worst <= 20, f"{worst:.1f}"), f"{median(second):.1f}",
           t.judge(cells[1][0] <= 64, f"{cells[1][0]:.0f}"), f"{cells[1][1]:.0f}",
           t.judge(grown[0] <= 64, f"{grown[0]:.0f}"), f"{grown[1]:.0f}"])


def zoom(b, report):
    t = report.table("zoom", "Zoom, search and detail on an indexed trace of 10 million events",
                     ["file", "asked", "answers", "median size", "xplaned p50 ms", "CPU ms each",
                      "up to 256 KB", "p50 ms (goal < 2)", "p99 ms (goal < 10)", "xprof-rs p50 ms",
                      "CPU ms each", "p99 ms", "times (goal 3)"])
    restarts = report.table("held", "An indexed trace after a restart, and its memory while idle",
                        ["file", "index MB", "first zoom, median ms", "worst (goal ≤ 20)",
                         "second zoom ms", "held after building, MB (goal ≤ 64)", "anonymous",
                         "held after a restart and two zooms, MB (goal ≤ 64)", "anonymous"])
    for file in b.ten_million():
        state = tempfile.mkdtemp(prefix="kept-", dir=b.work)
        with Logdir(b.work, {HOST: file.path}) as logdir:
            server = b.xplaned(logdir, state, http="127.0.0.1:0")
            peer = None
            try:
                before = _rss(server.pid)
                wires = {"xplaned": server.wire()}
                answer = wires["xplaned"].get(trace_path())
                span = json.loads(bytes(answer.body))["fullTimespan"][1]
                size = _wait_saved(state)
                grown = _idle_growth(server, before)
                if b.rs:
                    peer = b.start_peer("xprof-rs", logdir)
                    wires["xprof-rs"] = peer.wire()
                    wires["xprof-rs"].get(trace_path())
                _zoom_rows(b, report, t, file, wires, span)
            finally:
                server.stop()
                if peer:
                    peer.stop()
            _restarts(b, report, restarts, logdir, state, file, span, (size, grown))
        shutil.rmtree(state, ignore_errors=True)


# ---- sums ----


def sums_path(begin, width):
    return tool_query("trace_sums", HOST, limit=20, start_time_ms=f"{begin:.6f}",
                      end_time_ms=f"{begin + width:.6f}")


def sums(b, report):
    """Marked time: counts and times by name of windows, which nobody asked for before."""
    t = report.table("sums", "Sums of a window of an indexed trace of 10 million events",
                     ["file", "windows", "p50 ms (goal ≤ 5)", "p99 ms", "CPU ms each",
                      "a third: p50 ms", "CPU ms each"])
    for file in b.ten_million():
        with Logdir(b.work, {HOST: file.path}) as logdir:
            server = b.xplaned(logdir, http="127.0.0.1:0")
            try:
                wire = server.wire()
                answer = wire.get(trace_path())
                span = json.loads(bytes(answer.body))["fullTimespan"][1]
                wire.get(sums_path(0, span))
                got = [wire.get(sums_path(begin, width))
                       for begin, width in _spans(span, 200 if b.quick else 500, 7)]
                begins = [random.Random(i).uniform(0, span * 2 / 3) for i in range(50)]
                wide = [wire.get(sums_path(x, span / 3)) for x in begins]
            finally:
                server.stop()
                b.forget_states()
        p50 = median(a.ms for a in got)
        t.row([file.name, str(len(got)), t.judge(p50 <= 5, f"{p50:.2f}"),
               f"{percentile([a.ms for a in got], 0.99):.2f}",
               f"{sum(a.cpu_ms for a in got) / len(got):.2f}",
               f"{median(a.ms for a in wide):.2f}",
               f"{sum(a.cpu_ms for a in wide) / len(wide):.2f}"])
        report.figure("sums of a window: p50", "at most 5 ms", p50, p50 <= 5, file.name, unit=" ms")


# ---- requests per second ----

PAGES = ("index.html", "styles.css", "bundle.js")


def _ui_dir(b, peer):
    """The files that xprof-rs serves, so that both send the same bytes."""
    folder = Path(tempfile.mkdtemp(prefix="ui-", dir=b.work))
    for name in PAGES:
        (folder / name).write_bytes(bytes(peer.wire().get("/" + name).body))
    return folder


def _wrk(server, path, connections, seconds):
    """(requests per second, CPU microseconds of the server for each)."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-H", "Accept-Encoding: gzip",
               f"http://127.0.0.1:{server.port}{path}"]
    cpu = server.cpu_seconds()
    out = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    cpu = server.cpu_seconds() - cpu
    rate, n = re.search(r"Requests/sec:\s*([\d.]+)", out), re.search(r"(\d+) requests in", out)
    if not rate or not n or "Non-2xx" in out or "Socket errors" in out or int(n[1]) == 0:
        raise Failure(f"wrk {path}: {out[-300:]}")
    return float(rate[1]), 1e6 * cpu / int(n[1])


def _http_row(b, report, t, servers, what, path, connections):
    got = {k: [] for k in servers}
    # One connection is two processes that wake each other: where they run decides, so ask often.
    rounds = 3 if b.quick else 7 if connections == 1 else 4
    for _ in range(b.rounds(rounds)):
        for kind, server in servers.items():
            got[kind].append(_wrk(server, path, connections, 1))
    ours, theirs = got["xplaned"], got["xprof-rs"]
    ratio = median(a[0] / c[0] for a, c in zip(ours, theirs))
    sizes = [servers[k].sizes[path] for k in ("xplaned", "xprof-rs")]
    t.row([what, str(connections), *(report.size(n) for n in sizes),
           f"{median(a[0] for a in ours):.0f}", f"{median(a[1] for a in ours):.0f}",
           f"{median(c[0] for c in theirs):.0f}", f"{median(c[1] for c in theirs):.0f}",
           t.judge(ratio >= 1, f"{ratio:.2f}")])
    report.figure("HTTP: requests per second against xprof-rs", "at least as many", ratio,
                  ratio >= 1, f"{what}, {connections} connections", least=True)


def http(b, report):
    if not shutil.which("wrk"):
        raise Failure("wrk is not installed (Debian: apt-get install wrk)")
    if not b.rs:
        raise Failure("there is no xprof-rs to compare with")
    t = report.table("http", "Static files and cached answers over HTTP (wrk, one thread, gzip)",
                     ["what", "connections", "xplaned sends", "xprof-rs sends", "xplaned req/s",
                      "CPU us each", "xprof-rs req/s", "CPU us each", "ratio (goal ≥ 1)"])
    file = ACCEL / "gpu_multi_worker/gpu_multi_worker.xplane.pb"
    with Logdir(b.work, {HOST: file}) as logdir:
        peer = b.start_peer("xprof-rs", logdir)
        server = b.xplaned(logdir, http="127.0.0.1:0", more=("--ui-dir", _ui_dir(b, peer)))
        servers = {"xplaned": server, "xprof-rs": peer}
        wanted = {name: "/" + name for name in PAGES}
        wanted |= {tool: tool_query(tool, HOST)
                   for tool in ("overview_page", "framework_op_stats", TRACE)}
        try:
            for s in servers.values():
                s.sizes = {p: s.wire().get(p, gzip=True).size for p in wanted.values()}
            for (what, path), n in itertools.product(wanted.items(), (1, 64)):
                _http_row(b, report, t, servers, what, path, n)
        finally:
            server.stop()
            peer.stop()
            b.forget_states()
