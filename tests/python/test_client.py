# SPDX-License-Identifier: Apache-2.0
"""The Python client against a daemon of its own.  Each function is a test; run.py runs them with a `Place`."""
import concurrent.futures
import contextlib
import csv
import datetime
import gzip
import io
import json
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import unittest.mock
import warnings

import grpc
import xplaned
from xplaned.v1 import analysis_pb2, server_pb2, session_pb2

MATMUL, HOSTS, GPU = "cpu/jax_matmul_nopy", "cpu/jax_4hosts", "accel/mi300_jax_gemm"


def refused(kind, words, call, *args, **options):
    """`call` raises that error, with these words in its sentence."""
    try:
        call(*args, **options)
    except kind as e:
        assert words in str(e), e
        return e
    raise AssertionError(f"{call} did not fail")


def sessions(place):
    def listed():
        return [s["name"] for s in json.loads(place.ctl("sessions", "--format", "json"))]

    place.until("both list the same, newest first", lambda: [s.name for s in place.client.sessions()] == listed())
    names = listed()
    assert {MATMUL, HOSTS, GPU} <= set(names), names
    assert [s.name for s in place.client.sessions("accel/")] == [n for n in names if n.startswith("accel/")]
    run = place.client.session(HOSTS)
    assert run.host_count == len(run.hosts) == 4 and run.bytes == sum(h.bytes for h in run.hosts), run
    assert run.kind == "xspace" and "overview_page" in run.tools and not run.lost
    assert run.captured.tzinfo == datetime.timezone.utc and run.captured.year >= 2025, run.captured
    assert repr(run).startswith(f"<Session '{HOSTS}', 4 hosts")
    assert run.refresh() is run and run.name == HOSTS
    e = refused(xplaned.NotFound, "jax_4hosts", place.client.session, "cpu/jax_4host")
    assert e.code == "NOT_FOUND" and isinstance(e, xplaned.Error)


class _Wrong:
    """A channel to a daemon that answers each call with these messages, packed."""

    def __init__(self, *messages):
        self.messages = messages

    def unary_unary(self, *_unused, response_deserializer, **_unused_too):
        return lambda request, **options: response_deserializer(self.messages[0])

    def unary_stream(self, *_unused, response_deserializer, **_unused_too):
        return lambda request, **options: map(response_deserializer, self.messages)

    stream_unary = stream_stream = unary_stream


def wrong_daemons(place):
    del place
    refused(xplaned.Error, "more follows", xplaned.Client(_Wrong(b"\x12\x01x")).sessions)
    endless = session_pb2.ListSessionsResponse(sessions=[session_pb2.Session(name="s")], next_page_token="x").SerializeToString()
    with unittest.mock.patch("xplaned.client._MOST", 100):
        refused(xplaned.Error, "more than 100 sessions", xplaned.Client(_Wrong(endless)).sessions)
    run = session_pb2.Session(name="s")
    refused(xplaned.Error, "no answer", xplaned.Session(xplaned.Client(_Wrong()), run).tool, "overview_page")
    for text in (b"", b"[" * 100_000, b"\xff", b"{"):
        data = analysis_pb2.ToolData(content_type="application/json", data=text).SerializeToString()
        refused(xplaned.Error, "no JSON", xplaned.Session(xplaned.Client(_Wrong(data)), run).tool("overview_page").json)


def tool_answers(place):
    run = place.client.session(MATMUL)
    answer = run.tool("overview_page")
    assert answer.content_type == "application/json" and answer.json()[0]["cols"], answer.content_type
    assert answer.data == place.ctl("tool", "overview_page", MATMUL)
    assert run.tool("overview_page").source == "memory"
    assert run.tool("overview_page", cpu_as_device=False).data == place.ctl("tool", "overview_page", MATMUL, "--option",
                                                                            "cpu_as_device=false") != answer.data
    one = place.client.session(HOSTS).hosts[1].name
    assert place.client.session(HOSTS).tool("kernel_stats", one).data == place.client.session(HOSTS).tool("kernel_stats", [one]).data
    refused(xplaned.InvalidArgument, "overview_page", run.tool, "overview_pag")
    refused(xplaned.InvalidArgument, "group_by", run.tool, "op_profile", groupby="category")
    refused(xplaned.NotFound, "", run.tool, "overview_page", "nobody")


def large_answers(place):
    """Answers above the 4 MiB that a channel takes by itself."""
    big = max((place.client.session(n).tool("trace_viewer", hosts=place.client.session(n).hosts[0].name) for n in (MATMUL, HOSTS)),
              key=lambda a: len(a.data))
    assert big.json()["traceEvents"]
    text = place.client.session("accel/tpu_inference_a").tool("trace_viewer").data
    assert len(text) > 4 << 20, len(text)


def tables(place):
    overview = place.client.session(MATMUL).overview()
    assert len(overview) >= 6 and {c.id for c in overview[0].columns} >= {"operation", "category"}
    assert overview[0].rows[0]["operation"] and "device_duty_cycle_percent" in overview[0].properties
    kernels = place.client.session(GPU).kernels()
    assert kernels.rows and kernels.rows[0]["kernel_name"] and isinstance(kernels.rows[0]["occurrences"], (int, float))
    try:
        place.client.session(MATMUL).tool("findings").tables()
    except ValueError:
        pass
    else:
        raise AssertionError("findings has no tables")


def gpu_steps(place):
    """Steps of a GPU: each lasts until the next one begins, so that there is no time between them."""
    where = place.logdir / "accel" / "plugins" / "profile" / "apart"
    whole = shutil.copytree(place.data.parents[1] / "golden" / "cases" / "gen_gpu_tf", place.scratch / "apart")
    whole.rename(where)
    place.until("the session is there", lambda: place.client.sessions("accel/apart"))
    session = place.client.session("accel/apart")
    steps = session.steps(between=True)
    assert session.steps() == steps and all(s.step is not None for s in steps)
    shutil.rmtree(where)
    place.until("the session is gone", lambda: not place.client.sessions("accel/apart"))
    return steps


def rows(place):
    run = place.client.session(MATMUL)
    ops = run.ops()
    raw = run.tool("op_list").json()["ops"]
    assert sorted(op.name for op in ops) == sorted(op["name"] for op in raw) and ops[0].self_time_ps > 0
    times = [op.self_time_ps for op in ops]
    assert times == sorted((op["self_time_ps"] for op in raw), reverse=True), times
    assert {op.program_id for op in ops} == {int(op["program_id"] or 0) for op in raw} and ops[0]["name"] == ops[0].name
    refused(KeyError, "nam", lambda: ops[0]["nam"])
    assert ops[0].source_file and ops[0].source_line > 0
    steps = run.steps()
    assert [s.step for s in steps] == list(range(50))  # a CPU's steps last until the next one begins
    apart = gpu_steps(place)
    for s in [*steps, *apart]:
        assert sum(s.causes.values()) == s.wall_ps and "wall_ps" not in s.causes, s
    assert len(apart) == 5
    findings = place.client.session(HOSTS).findings()
    assert findings and findings[0].saving_ps > 0 and findings[0].text and findings[0].advice and findings[0].window
    assert [f.saving_percent for f in findings] == sorted((f.saving_percent for f in findings), reverse=True)
    flat = ops.to_dicts()[0]
    assert flat["name"] == ops[0].name and steps.to_dicts()[0]["compute_ps"] == steps[0].causes["compute_ps"]


def verdicts(place):
    four, idle, empty = (place.client.session(n).verdict() for n in (HOSTS, "cpu/jax_sparse_45s", "cpu/jax_empty"))
    assert (four.kind, four.hosts, four.steps, four.saving_percent) == ("exposed_collectives", 4, 20, 86.728), four
    assert four.text.startswith("Each step spends 31.9 ms of 36.8 ms on communication") and not four.reason, four
    assert abs(four.step_time_ps - place.client.compare(HOSTS, HOSTS).a["mean_step_ps"]) < 1, four
    assert (idle.kind, empty.kind, empty.reason) == ("idle_unknown", "cannot_tell", "no_device_events"), (idle, empty)
    assert "the profile does not show why" in idle.text and empty.step_time_ps is None
    found = place.client.session(HOSTS).tool("findings").json()
    assert xplaned.rows.verdict({**found, "findings": []}).kind == "ok"


def events(place):
    run = place.client.session(MATMUL)
    timings = run.events(match="^ynn_fusion$")
    op, = [o for o in run.ops() if o.name == "ynn_fusion"]
    assert [t.name for t in timings] == ["ynn_fusion"] and timings[0].count == op.occurrences == 50, timings
    assert timings[0].min_ps <= timings[0].p50_ps <= timings[0].p99_ps and timings[0].total_ps == op.time_ps
    assert not run.events(prefix="nothing begins so")
    assert len(run.events(prefix="ynn", min_duration="1s")) == 0
    assert "character" in str(refused(xplaned.InvalidArgument, "match", run.events, match="("))


def sql(place):
    rows = place.client.sql("SELECT name, count(*) AS n, sum(duration_ps) AS ps FROM events WHERE name = 'ynn_fusion' GROUP BY name", MATMUL)
    op, = [o for o in place.client.session(MATMUL).ops() if o.name == "ynn_fusion"]
    assert rows == [{"name": "ynn_fusion", "n": op.occurrences, "ps": op.time_ps}], rows
    assert (rows[0].n, rows[0].name, getattr(rows[0], "nam", None)) == (op.occurrences, op.name, None)
    both = place.client.sql("SELECT DISTINCT session FROM lines ORDER BY 1", [HOSTS, MATMUL])
    assert [r["session"] for r in both] == sorted([HOSTS, MATMUL]), both
    assert refused(xplaned.Error, "", place.client.sql, "ATTACH 'x' AS y", MATMUL).code == "PERMISSION_DENIED"
    refused(xplaned.InvalidArgument, "syntax", place.client.sql, "SELEC 1", MATMUL)
    refused(xplaned.NotFound, "", place.client.sql, "SELECT 1", "no such session")


def whole_answers(place):
    """Sessions themselves stand for their names; frames without rows have columns; what an answer lacks is a warning."""
    run, four = place.client.session(MATMUL), place.client.session(HOSTS)
    assert place.client.sql("SELECT DISTINCT session FROM lines ORDER BY 1", [four, MATMUL]) == [{"session": HOSTS}, {"session": MATMUL}]
    assert place.client.compare(four, [run, MATMUL]).b["runs"] == 2
    half = place.logdir / "cpu" / "plugins" / "profile" / "half"
    half.mkdir()
    whole = place.data / "cpu" / "plugins" / "profile" / "jax_matmul_nopy" / "vm.xplane.pb"
    shutil.copy(whole, half / "a.xplane.pb")
    (half / "b.xplane.pb").write_bytes(whole.read_bytes()[:50000])
    place.until("the session is there", lambda: [s for s in place.client.sessions("cpu/half") if s.host_count == 2])
    for ask in ("findings", "ops", "steps", "events", "kernels", "overview"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            getattr(place.client.session("cpu/half"), ask)()
        assert [w.filename for w in said if "b: " in str(w.message) and "corrupt" in str(w.message)] == [__file__], (ask, said)
    shutil.rmtree(half)
    if place.pandas:
        empty = place.client.session("cpu/jax_empty")
        assert list(empty.steps().to_pandas().columns) == ["host", "device", "step", "name", "begin_ps", "wall_ps"]
        assert {"kind", "saving_percent", "text"} <= set(empty.findings().to_pandas().columns)
        assert list(empty.events().to_pandas().columns)[:2] == ["name", "count"]
        assert list(place.client.sql("SELECT name, line FROM events WHERE 0", run).to_pandas().columns) == ["name", "line"]
        apart = gpu_steps(place)
        steps = apart.to_pandas()
        assert str(steps.step.dtype).lower() == str(steps.begin_ps.dtype).lower() == "int64" and not steps.step.isna().any(), steps.dtypes
        assert list(steps.begin_ps.dropna()) == [s.begin_ps for s in apart if s.begin_ps is not None]


def comparisons(place):
    c = place.client.compare("cpu/jax_4hosts", ["cpu/jax_8dev_shardmap"])
    assert (c.a["steps"], c.b["devices"], c.a["runs"]) == (20, 1, 1)
    low, high = c.step_time["interval_ps"]
    assert low < c.step_time["difference_ps"] < high < 0
    assert abs(sum(t["difference_ps"] for t in c.times) - c.times_total["difference_ps"]) < 1
    steps = [s.wall_ps for s in place.client.session("cpu/jax_8dev_shardmap").steps() if s.step is not None]
    assert abs(c.b["mean_step_ps"] - sum(steps) / len(steps)) < 1
    assert {o["state"] for o in c.ops} <= {"both", "new", "vanished"} and c.ops.to_dicts()[0]["op"]
    twice = place.client.compare(["cpu/jax_4hosts"] * 2, "cpu/jax_4hosts")
    assert twice.a["runs"] == 2 and abs(twice.step_time["difference_ps"]) < 1e-3
    refused(xplaned.NotFound, "jax_4hosts", place.client.compare, "cpu/jax_4host", MATMUL)
    refused(xplaned.InvalidArgument, "no session is named as b", place.client.compare, MATMUL, [])


def histories(place):
    names = ["cpu/jax_4hosts", "cpu/jax_8dev_shardmap"]
    for name in names:
        assert place.client.session(name).label("nightly", "other") == ["nightly", "other"]
    assert place.client.session(names[0]).label(remove=["other"]) == ["nightly"]
    assert [s.name for s in place.client.sessions() if "nightly" in s.labels] == names
    h = place.client.history(["step_time", "steps"], label="nightly")
    assert sorted(s["session"] for s in h.sessions) == names and h.metrics["steps"]["unit"] == "count"
    points = {p["session"]: p["value"] for p in h.metrics["step_time"]["points"]}
    mean = place.client.compare(*names)
    assert abs(points[names[0]] - mean.a["mean_step_ps"]) < 1 and abs(points[names[1]] - mean.b["mean_step_ps"]) < 1
    assert len(place.client.history(label="nightly", last=1).sessions) == 1
    refused(xplaned.InvalidArgument, "character 2", place.client.session(names[0]).label, "a b")
    refused(xplaned.NotFound, "nightly", place.client.session(names[0]).label, remove=["nightli"])
    refused(xplaned.InvalidArgument, "metric", place.client.history, "stepp_time", label="nightly")


def collectives(place):
    table = place.client.session("cpu/jax_8dev_shardmap").collectives()
    row = next(r for r in table.rows if r["kind"] == "all-gather")
    assert row["size_bytes"] == 262144 and row["group_size"] == 4 and row["bus_bandwidth"] > 0, row


def frames(place):
    run = place.client.session(MATMUL)
    if place.pandas:
        frame = run.ops().to_pandas()
        assert list(frame.name) == [op.name for op in run.ops()] and frame.self_time_ps.sum() == sum(o.self_time_ps for o in run.ops())
        assert {"step", "wall_ps", "compute_ps"} <= set(run.steps().to_pandas().columns)
        table = run.overview()[0]
        assert list(table.to_pandas().columns) == [c.id for c in table.columns]
        assert len(table.to_pandas()) == len(table.rows)
    else:
        refused(ImportError, "pip install pandas", run.ops().to_pandas)


def tools(place):
    known = {t.name: t for t in place.client.tools()}
    assert known["memory_profile"].one_host and not known["op_profile"].one_host
    options = {o.name: o for o in known["op_profile"].options}
    assert "category" in options["group_by"].values and options["group_by"].default == "program"
    stats = place.client.stats()
    assert stats.catalogue.sessions >= 17 and stats.version
    assert refused(xplaned.Error, "--store postgresql://", place.client.fleet).code == "FAILED_PRECONDITION"


FLEET = {
    "queued": 3, "running": 1, "set_aside": 1, "workers": 1,
    "daemons": [{"name": "n1:7", "role": "front", "version": "0.1.0", "jobs": 0, "expires_ms": 29000},
                {"name": "n2:8", "role": "worker", "version": "0.1.0", "jobs": 1, "expires_ms": 15000}],
    "work": [{"state": "running", "daemon": "n2:8", "session": "run", "host": "h1", "files": 64, "attempt": 1, "queued_ms": 6500},
             {"state": "set_aside", "daemon": "", "session": "run", "host": "h2", "files": 64, "attempt": 3, "queued_ms": 90000}],
    "leases": [{"kind": "capture", "name": "12", "daemon": "n1:7", "expires_ms": 21000}, {"kind": "schedule", "name": "3", "daemon": "", "expires_ms": 0}]}


def fleets(place):
    """What Python, the table, JSON and CSV show of an answer of GetFleet, here of a server without a database."""
    answer = server_pb2.GetFleetResponse(json=json.dumps(FLEET).encode())
    method = grpc.unary_unary_rpc_method_handler(lambda request, context: answer, request_deserializer=server_pb2.GetFleetRequest.FromString,
                                                 response_serializer=server_pb2.GetFleetResponse.SerializeToString)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("xplaned.v1.ServerService", {"GetFleet": method}),))
    there = ["--server", f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", "fleet"]
    server.start()
    try:
        with xplaned.connect(there[1]) as client:
            got = client.fleet()
        assert (got.queued, got.running, got.set_aside, got.workers) == (3, 1, 1, 1), got
        assert [list(l) for l in (got.daemons, got.work, got.leases)] == [FLEET[s] for s in ("daemons", "work", "leases")], got
        assert json.loads(place.ctl(*there, "--format", "json")) == FLEET
        for section in ("daemons", "work", "leases"):
            text = place.ctl(*there, "--format", "csv", "--section", section).decode()
            wanted = [list(FLEET[section][0]), *([str(v) for v in row.values()] for row in FLEET[section])]
            assert list(csv.reader(io.StringIO(text))) == wanted, text
        lines = [line.split() for line in place.ctl(*there).decode().splitlines()]
        assert lines[0] == "jobs: 3 queued, 1 running, 1 set aside; 1 worker".split(), lines
        assert ["n2:8", "worker", "0.1.0", "1"] in lines and ["run", "h1", "64", "n2:8", "1", "6.5", "s"] in lines, lines
        assert ["run", "h2", "64", "set", "aside", "3", "90.0", "s"] in lines, lines
        assert "capture 12 n1:7 21.0 s".split() in lines and "schedule 3 nobody".split() in lines, lines
        file = place.scratch / "fleet"
        assert place.ctl(*there, "-o", str(file)) == b"" and file.read_bytes() == place.ctl(*there)
    finally:
        server.stop(None)


def imports(place):
    source = place.data / "cpu/plugins/profile/jax_matmul_nopy"
    run = place.client.add(source, session="python_import")
    assert run.name == "python_import" and [h.name for h in run.hosts] == ["vm"], run.hosts
    assert run.tool("op_profile").data == place.client.session(MATMUL).tool("op_profile").data
    packed = place.scratch / "packed.xplane.pb.gz"
    packed.write_bytes(gzip.compress((source / "vm.xplane.pb").read_bytes()))
    both = place.client.add([source / "vm.xplane.pb", packed], session="python_two")
    assert sorted(h.name for h in both.hosts) == ["packed", "vm"]
    refused(xplaned.Error, "python_two", place.client.add, packed, session="python_two")
    empty = place.scratch / "empty"
    empty.mkdir()
    refused(FileNotFoundError, "no profiles", place.client.add, empty)
    refused(FileNotFoundError, "gone", place.client.add, [source / "vm.xplane.pb", place.scratch / "gone"], session="python_gone")
    broken = place.scratch / "broken.xplane.pb"
    broken.write_bytes(b"\x0a\xff\xff\xff\xff")
    assert refused(xplaned.Error, "", place.client.add, broken).code == "DATA_LOSS"
    both.delete()
    refused(xplaned.NotFound, "python_two", place.client.session, "python_two")
    # Whatever format a file of the directory has.
    pytorch = pathlib.Path(__file__).resolve().parents[1] / "data/pytorch"
    trace = place.client.add(pytorch, session="python_pytorch")
    assert (trace.kind, [h.name for h in trace.hosts]) == ("kineto", ["rank 0"]), (trace.kind, trace.hosts)
    assert trace.tool("findings").json()["devices"] == 1
    # A bundle of IREE, and its rows, are what their names say.
    bundle = pathlib.Path(__file__).resolve().parents[1] / "data/iree/task-mlp-all.ireeprof"
    summary = place.ctl("iree", "summary", str(bundle), "--format", "jsonl")
    rows = place.scratch / "task-mlp-all.ireeperf.jsonl"
    rows.write_bytes(place.ctl("iree", "export", str(bundle)))
    for name, path in (("python_bundle", bundle), ("python_rows", rows)):
        run = place.client.add(path, session=name)
        assert [h.name for h in run.hosts] == ["task-mlp-all"], run.hosts
        answer = run.tool("iree_summary")
        assert answer.data.startswith(summary), answer.data
        types = [row["type"] for row in answer.json()]
        assert types == ["summary", "device_summary"] + ["warning"] * (path == rows), types
        refused(ValueError, "no tables", answer.tables)
        assert run.tool("iree_counter", filter="none").json()[0]["matched_samples"] == 0
        assert run.tool("iree_att").json()[1:] == []
        run.delete()
    # A file that is not a bundle is refused as a bundle, with IREE's message, and not read as a
    # profile.
    wrong = place.scratch / "wrong.ireeprof"
    wrong.write_bytes((source / "vm.xplane.pb").read_bytes())
    refused(xplaned.Error, "invalid IREE HAL profile file magic", place.client.add, wrong)


def watches(place):
    events = []

    def follow():
        for event in place.client.watch("python_watch"):
            events.append((event.kind, event.session and event.session.name))
            if event.kind == "removed":
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    place.until("the watch is there", lambda: ("synced", None) in events)
    run = place.client.add(place.data / "cpu/plugins/profile/jax_empty", session="python_watch")
    place.until("the session was told", lambda: ("added", "python_watch") in events)
    run.delete()
    thread.join(60)
    assert events[-1] == ("removed", "python_watch"), events


def captures(place):
    with place.program("ok") as target, place.program("die") as bad:
        with place.client.capture([target, bad], duration=0.2, session="python_capture", host_names=["good", "bad"]) as capture:
            assert {h.state for h in capture.hosts} <= {"collecting", "waiting", "receiving", "stored", "failed"}, capture.hosts
        assert capture.session.name == "python_capture" and [h.name for h in capture.session.hosts] == ["good"]
        assert capture.session.state == "partial" and bad in capture.session.lost, (bad, capture.session.lost, capture.hosts)
        states = []
        waiting = place.client.capture(target, duration=0.2)
        for hosts in waiting:
            states.append(hosts[0].state)
        assert states[-1] == "stored" and waiting.session.host_count == 1, states
        refused(xplaned.Error, "", place.client.capture(bad, duration=0.2).wait)
        newest = place.client.captures(3)
        assert [c.state for c in newest] == ["failed", "done", "partial"], newest
        assert newest[2].session == "python_capture" and newest[2].id == capture.id


def cancelled_captures(place):
    """What the block raises goes through, and nothing is stored."""
    with place.program("ok") as target:
        before = {s.name for s in place.client.sessions()}
        try:
            with place.client.capture(target, duration=30) as capture:
                raise KeyError("of the block")
        except KeyError:
            pass
        place.until("the capture has ended", lambda: place.client.captures(1)[0].state == "cancelled")
        assert {s.name for s in place.client.sessions()} == before
        refused(xplaned.Error, "has not ended", lambda: capture.session)


def secrets(place):
    """A daemon that wants a token."""
    token = place.scratch / "token"
    token.write_text("secret-of-the-test\n")
    with place.daemon("--token-file", str(token), name="token") as address:
        with xplaned.connect(address, token_file=token) as client:
            assert client.sessions()
        with xplaned.connect(address) as client:
            assert refused(xplaned.Error, "", client.sessions).code == "UNAUTHENTICATED"


def addresses(place):
    for address, reason in (("127.0.0.1:1", "refused"), ("unix:/nowhere", "No such file"), ("name.invalid:1", "unknown host")):
        e = refused(xplaned.Unavailable, "no daemon answers at ", xplaned.connect(address, timeout=20).sessions)
        assert f" at {address} (" in e.message or " at this address (" in e.message and grpc.__version__ < "1.5", e
        assert reason in e.message and "gRPC" not in e.message and "xplaned.start(DIR)" in e.message, e
    os.environ["XPLANED_SERVER"] = place.address
    try:
        with xplaned.connect() as client:
            assert client.stats().version
    finally:
        del os.environ["XPLANED_SERVER"]


def private_daemons(place):
    client = xplaned.start(place.logdir, xplaned=place.xplaned, args=place.state("private"))
    pid = client._process.pid
    assert client.session(MATMUL).ops()
    client.close()
    assert client._process.poll() == 0 and not pathlib.Path(f"/proc/{pid}").exists()
    for typo in (place.scratch / "typo", str(place.scratch / "typo")):
        try:
            xplaned.start(typo, xplaned=place.xplaned, args=place.state("typo")).close()
            raise AssertionError("a directory that is not there was served")
        except FileNotFoundError as e:
            assert e.filename == str(typo) and not pathlib.Path(typo).exists()
    # A bucket is not a directory here: the daemon reports the error.
    refused(xplaned.Unavailable, "", xplaned.start, "s3://", xplaned=place.xplaned, args=place.state("bucket"))
    refused(xplaned.Unavailable, "no-such-setting", xplaned.start, place.logdir, xplaned=place.xplaned, args=["--no-such-setting"])
    refused(xplaned.Unavailable, "nothing", xplaned.start, place.logdir, xplaned=place.scratch / "nothing")


def odd_names(place):
    """What Python prints of others' names, in warnings, errors and lines of its own, drives no terminal."""
    odd = "b\x1b]0;x\x07\u202e"
    run = place.logdir / "plugins" / "profile" / "odd"
    run.mkdir(parents=True)
    whole = place.data / "cpu" / "plugins" / "profile" / "jax_matmul_nopy" / "vm.xplane.pb"
    shutil.copy(whole, run / "a.xplane.pb")
    (run / f"{odd}.xplane.pb").write_bytes(whole.read_bytes()[:50000])
    try:
        place.until("the session is there", lambda: [s for s in place.client.sessions("odd") if s.host_count == 2])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            place.client.session("odd").findings()
            place.client.compare("odd", MATMUL)
        texts = [str(w.message) for w in said]
        assert len([t for t in texts if r"b\u{1b}]0;x\u{7}\u{202e}: " in t]) >= 2 and all(t.isprintable() for t in texts), texts
        e = refused(xplaned.Error, r"\u{1b}", place.client.session("odd").findings, odd)
        assert str(e).isprintable() and odd in e.message, e
        for made in (e, pickle.loads(pickle.dumps(e))):
            assert (made.code, made.message) == (e.code, e.message) and str(made) == str(e)
    finally:
        shutil.rmtree(run)
        place.until("the session is gone", lambda: not place.client.sessions("odd"))
    watch = xplaned.watch(place.scratch / "watched")
    watch._session = lambda: types.SimpleNamespace(name=odd, verdict=lambda: types.SimpleNamespace(text=odd))
    with contextlib.redirect_stderr(io.StringIO()) as out:
        watch._finish()
    assert out.getvalue().count(r"\u{1b}") == 2 and out.getvalue()[:-1].isprintable(), out.getvalue()


def killed_programs(place):
    """The private daemon of a program that is killed ends, too."""
    code = ("import sys, time, xplaned\n"
            "c = xplaned.start(sys.argv[1], xplaned=sys.argv[2], args=sys.argv[3:])\n"
            "print(open(f'/proc/{c._process.pid}/task/{c._process.pid}/children').read().split()[0], flush=True)\n"
            "time.sleep(600)\n")
    child = subprocess.Popen([sys.executable, "-c", code, str(place.logdir), str(place.xplaned), *place.state("killed")],
                             stdout=subprocess.PIPE, text=True)
    try:
        daemon = int(child.stdout.readline())
        assert pathlib.Path(f"/proc/{daemon}/exe").resolve() == pathlib.Path(place.xplaned).resolve()
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    place.until("the daemon ended", lambda: not pathlib.Path(f"/proc/{daemon}").exists())


def threads(place):
    """One client, eight threads."""
    failures = []

    def ask(i):
        try:
            for _ in range(5):
                assert place.client.session((MATMUL, HOSTS)[i % 2]).tool("op_profile").data
        except Exception as e:
            failures.append(e)

    running = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    began = time.monotonic()
    for t in running:
        t.start()
    for t in running:
        t.join(120)
    assert not failures and time.monotonic() - began < 120, failures


TESTS = [sessions, wrong_daemons, tool_answers, large_answers, tables, rows, verdicts, events, sql, whole_answers, comparisons, histories, collectives, frames, tools, fleets, imports,
         watches, captures, cancelled_captures, secrets, addresses, private_daemons, odd_names, killed_programs, threads]
