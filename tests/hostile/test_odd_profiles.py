# SPDX-License-Identifier: Apache-2.0
"""Programs (HLO) that go in circles, bundles of IREE that are wrong, and odd traces of PyTorch, through every tool and command."""

import gzip
import json
import os
import random
import struct
import subprocess

import wire_mutator
from harness import DATA, answer_url, check, equal, in_threads, wait_for

SECONDS = 20  # for an answer; most take milliseconds


def field(number, value):
    """A field of a message: a number, or bytes or text."""
    if isinstance(value, int):
        return wire_mutator.varint(number << 3) + wire_mutator.varint(value)
    value = value.encode() if isinstance(value, str) else value
    return wire_mutator.varint(number << 3 | 2) + wire_mutator.varint(len(value)) + value


def op(number, name, opcode, operands=(), called=()):
    """An HloInstructionProto."""
    out = field(1, name) + field(2, opcode) + field(3, field(2, 11)) + field(7, field(2, f"jit(f)/{name}")) + field(35, number)
    out += b"".join(field(36, n) for n in operands) + b"".join(field(38, n) for n in called)
    return out + (field(11, "kLoop") if opcode == "fusion" else b"")


def computation(number, root, *ops):
    return field(3, field(1, f"computation{number}") + b"".join(field(2, i) for i in ops) + field(5, number) + field(6, root))


def chain(n):
    """Computations that call each other, the last one the first."""
    return b"".join(computation(i, i, op(i, f"call.{i}", "fusion", (), (i % n + 1,))) for i in range(1, n + 1))


PROGRAMS = {
    "itself": computation(1, 1, op(1, "add.1", "add", (1, 1))),
    "ring": computation(1, 3, op(1, "add.1", "add", (3,)), op(2, "mul.2", "multiply", (1,)), op(3, "neg.3", "negate", (2,))),
    "calls_itself": computation(1, 1, op(1, "fusion.1", "fusion", (), (1,))),
    "while_of_itself": computation(1, 1, op(1, "while.1", "while", (1,), (1, 1))),
    "call_ring": chain(3),
    "long_call_ring": chain(20_000),
    "async_ring": computation(1, 2, op(1, "s.1", "async-start", (2,), (1,)), op(2, "d.2", "async-done", (1,))),
    "same_ids": computation(1, 1, op(1, "a", "add", (1,)), op(1, "a", "fusion", (1,), (1,))) * 2,
    "no_such_ids": computation(1, 99, op(1, "a", "add", (7, 8)), op(2, "f", "fusion", (9,), (77,))),
    "wide": computation(1, 2, op(1, "a", "parameter"), op(2, "b", "tuple", (1,) * 50_000)),
    "fans": b"".join(computation(i, i, op(i, f"f.{i}", "fusion", (), (i + 1, i + 1))) for i in range(1, 60)),
    "nothing": b"",
}


def metadata_plane(programs):
    """Plane "/host:metadata" of an XSpace with these programs."""
    plane = field(1, 99) + field(2, "/host:metadata")
    for i, (name, program) in enumerate(programs.items(), 1):
        module = field(1, name) + field(2, "main") + program + field(4, b"") + field(5, i) + field(6, 1)
        entry = field(1, i) + field(2, f"{name}({i})") + field(5, field(1, 1) + field(6, field(1, module)))
        plane += field(4, field(1, i) + field(2, entry))
    return field(1, plane + field(5, field(1, 1) + field(2, field(1, 1) + field(2, "Hlo Proto"))))


def device_plane(programs):
    """A device whose ops are those of the programs."""
    stats = field(5, field(1, 1) + field(2, field(1, 1) + field(2, "hlo_op"))) + field(5, field(1, 2) + field(2, field(1, 2) + field(2, "program_id")))
    plane, events = field(1, 1) + field(2, "/device:GPU:0") + stats, b""
    for i in range(1, len(programs) + 1):
        plane += field(4, field(1, i) + field(2, field(1, i) + field(2, f"kernel{i}")))
        events += field(4, field(1, i) + field(2, i * 1000) + field(3, 900) + field(4, field(1, 1) + field(5, "add.1")) + field(4, field(1, 2) + field(3, i)))
    return field(1, plane + field(3, field(1, 1) + field(2, "Stream #1") + events))


def ctl(run, *arguments):
    """Runs a command that needs no daemon: it must answer or refuse in time."""
    text = " ".join(map(str, arguments))
    try:
        done = subprocess.run([run.build / "cli/xplanectl", *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        check(False, f"{text}: no answer in {SECONDS} s")
    check(done.returncode in (0, 1, 2, 3), f"{text}: status {done.returncode}: {done.stderr[-500:]!r}")
    check(done.returncode == 0 or done.stderr, f"{text}: refused without a reason")
    return done


def tools(run, of_bundles):
    """(name, options) of the tools for bundles of IREE, or of the others, with each value of an option that is a choice."""
    for tool in json.loads(ctl(run, "tools", "--all", "--json").stdout)["tools"]:
        if ("iree_bundle" in tool["needs"]) != of_bundles:
            continue
        yield tool["name"], ()
        for option in tool["options"]:
            for value in option["values"].split("|") if "|" in option["values"] and not option["common"] else ():
                if not value.isupper():
                    yield tool["name"], ("--option", f"{option['key']}={value}")


def ask_all(run, commands):
    """All commands, by as many threads as there are processors; how many were answered."""
    answered, processors = [], os.cpu_count() or 1

    def some(i):
        for command in commands[i::processors]:
            answered.append(ctl(run, *command).returncode in (0, 3))

    in_threads(processors, some)
    return sum(answered)


def test_circular_programs(run):
    path = run.dir / "host.xplane.pb"
    path.write_bytes(metadata_plane(PROGRAMS) + device_plane(PROGRAMS))
    commands = [("analyze", tool, path, *options) for tool, options in tools(run, False)]
    for i, name in enumerate(PROGRAMS, 1):
        module = f"{name}({i})"
        commands += [("hlo", path, module, "--text", form) for form in ("short", "long", "pbtxt", "pb", "json", "dot", "html")]
        commands += [("hlo", path, module, "--memory", by) for by in ("lines", "ops")]
        for node in ("add.1", "fusion.1", "call.1"):
            commands += [("analyze", "graph_viewer", path, "--option", f"module_name={module}", "--option", f"node_name={node}", "--option", f"type={type}")
                         for type in ("graph", "adj_nodes", "custom_call")]
        commands += [("analyze", "memory_viewer", path, "--option", f"module_name={module}", "--option", f"view={view}") for view in ("xprof", "lines", "ops")]
    commands += [("sql", path, f"SELECT * FROM {table} LIMIT 100") for table in ("events", "stats")]
    commands += [("summary", path), ("findings", path), ("export", "perfetto", path, "-o", run.dir / "out"), ("export", "chrome", path, "-o", run.dir / "out2")]
    answered = ask_all(run, commands)
    check(answered > len(commands) // 4, f"{answered} of {len(commands)} commands are answered")


def damaged_bundle(data, chance):
    """A bundle with wrong lengths, numbers and cuts."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20))):
        at = chance.randrange(0, len(data) - 8, chance.choice((1, 4, 8)))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at:at + 4] = struct.pack("<I", chance.choice((0, 1, 1 << 31, (1 << 32) - 1, len(data), len(data) - at)))
        elif kind == 2:
            data[at:at + 8] = struct.pack("<Q", chance.choice((0, 1 << 63, (1 << 64) - 1, len(data), 1 << 40)))
        elif len(data) > 200:
            del data[chance.randrange(100, len(data)):]
    return bytes(data)


def test_wrong_bundles(run):
    chance = random.Random(run.parameter("SEED", 1, 1))
    sources = [p.read_bytes() for p in sorted((DATA / "iree").glob("*.ireeprof"))]
    every, commands = list(tools(run, True)), []
    for i in range(run.parameter("BUNDLES", 4, 300)):
        path = run.dir / f"bundle{i}.ireeprof"
        path.write_bytes(damaged_bundle(chance.choice(sources), chance))
        commands += [("analyze", tool, path, *options) for tool, options in every]
    answered = ask_all(run, commands)
    check(answered > 0, f"{answered} of {len(commands)} commands are answered")


test_wrong_bundles.whole_limit = 3600


def event(**keys):
    """An event of PyTorch's profiler."""
    return json.dumps({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1, **keys})


def launch(i, **keys):
    return event(cat="cuda_runtime", name="cudaLaunchKernel", ts=i + 0.5, args={"correlation": i}, **keys)


def kernel(i, device=0, **args):
    return event(cat="kernel", name="k", pid=device, tid=7, ts=i + 1, args={"device": device, "correlation": i, **args})


def step(i):
    return event(cat="user_annotation", name=f"ProfilerStep#{i}", ts=i)


def module(i, name="A", long=1):
    return event(cat="python_function", name=f"nn.Module: {name * long}_{i}", ts=1 + i / 1000, dur=1e6 - i / 500)


def trace(*events, head=""):
    return ('{"schemaVersion": 1,' + head + '"traceEvents": [\n' + ",\n".join(events) + "\n]}").encode()


def odd_traces(n):
    """(name, bytes) of traces whose numbers, names and order are what nobody writes; `n` events or so each."""
    numbers = ("1e308", "-1e308", "1" + "0" * 400, "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e-400", "NaN",
               "-Infinity", "0.0000000000001", "[]", "{}", '"5"', "null", "true", "", "00", "1" * 70)
    texts = ("", "\0", "\x1b]0;x\x07", "\u202e", "\ud800", "\udc00\ud800", "\\", '"', "/" * 300, "a" * 70_000, "\x9b31m", "%n%s", "<script>")
    for i, key in enumerate(("ts", "dur", "pid", "tid", "id", "name", "ph", "cat")):
        yield f"numbers{i}", trace(event(), *('{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"%s":%s}' % (key, v) for v in numbers))
    for i, key in enumerate(("correlation", "External id", "device", "stream", "grid", "block", "est. achieved occupancy %", "Bytes", "Addr")):
        yield f"args{i}", trace(event(), *('{"ph":"X","cat":"%s","name":"k","ts":1,"dur":2,"args":{"%s":%s}}' % (cat, key, v)
                                           for v in numbers for cat in ("kernel", "cpu_instant_event", "cuda_runtime")))
    yield "texts", trace(*(event(name=t, cat=c, pid=t, tid=t, args={t: t}) for t in texts for c in ("cpu_op", "kernel", t)),
                         *(event(ph="M", name="thread_name", tid=t, args={"name": t}) for t in texts))
    yield "deep", trace(event(args={"a": 0}).replace("0}", "[" * 60 + "]" * 60 + "}"), *(event(args={"a": 0}).replace("0}", c * k + "}") for c in "[{" for k in (64, 65, n)))
    yield "same_keys", trace(event(), "{" + '"ts":1,"name":"a","args":{"a":1,"a":2},' * n + '"ph":"X"}', head='"traceEvents":[' + event() + '],"a":1,"a":[],' * 3)
    yield "threads", trace(*(event(tid=i, ts=i) for i in range(n)))
    yield "zeros", trace(*(event(tid="0" * 65536 + str(i), ts=i) for i in range(n // 200)))
    yield "devices", trace(*(kernel(i, i) for i in range(n)), *(step(i) for i in range(n)))
    yield "values", trace(*(kernel(i, i % 300, v=f"{i:0300}") for i in range(n)))
    yield "modules", trace(*(module(i, "m", 100) for i in range(n)), launch(2000), kernel(2000))
    yield "crossing", trace(*(event(ts=i, dur=1e6 + i) for i in range(n)), *(launch(i) for i in range(n)))
    yield "backwards", trace(*(event(ts=n - i, dur=1e6 + i) for i in range(n)))
    yield "flows", trace(*(event(ph="sft"[i % 3], cat="fwdbwd", id=i % 7) for i in range(3 * n)), *(event() for _ in range(n)))
    yield "keys", trace(event(args={f"k{i}": i for i in range(n)}), *(event(args={f"k{i}_{j}": f"v{i}_{j}" for j in range(200)}) for i in range(n // 200)))
    yield "memory", trace(*(event(cat="cpu_instant_event", ph="i", name="[memory]", ts=i, args={
        "Total Allocated": 1 << 62, "Bytes": (-1) ** i << 62, "Addr": i, "Device Type": i, "Device Id": -i}) for i in range(n)))
    yield "begins", trace(*(event(ph="BBE"[i % 3], cat=("cpu_op", "kernel", "", "cpu_instant_event")[i % 4], tid=i % 5, ts=i,
                                  args={f"a{i % 300}": "x" * (i % 2000)}) for i in range(3 * n)))
    yield "many_ends", trace(event(ph="B", args={"a": "x" * 70_000}), *(event(ph="E", args={f"e{i}": "y" * 60_000}) for i in range(n // 20)))
    yield "npu", trace(*(event(cat="", name=("AscendCL@a", "Add")[i % 2], pid=i % 2, ts=str(i), args={
        "connection_id": i // 2, **({"Task Type": ("AI_CORE", "EVENT_WAIT", "MEMCPY_ASYNC", "")[i // 2 % 4]} if i % 2 else {})}) for i in range(n)))
    yield "utf16", trace(event()).decode().encode("utf-16")
    yield "two_traces", trace(event(), kernel(1)) * n
    yield "counters", trace(*(event(ph="C", name=f"c{i}", ts=i, args={f"x{i}": i}) for i in range(n)))
    yield "no_end", b'{"schemaVersion":1,"traceEvents":[' + event().encode() + b',{"ph":"X","name":"' + b'"x' * (500 * n)
    yield "brackets", b'{"schemaVersion":1,"traceEvents":[' + event().encode() + b"," + b"[" * (1000 * n)
    yield "damaged", b'{"schemaVersion":1,"traceEvents":[' + event().encode() + b',\n{"ph":"X","a":[[' * (50 * n)
    yield "blanks", trace(event()).replace(b",", b" " * 1000 * n + b",")
    yield "array", ("[" + ",".join([event()] * n)).encode()


def test_odd_traces(run):
    """Traces of PyTorch's profiler through every tool, or in the short form through some; and in a daemon, which ends in the middle."""
    n = run.parameter("TRACE_EVENTS", 1000, 50_000)
    every = [t for t, options in tools(run, False) if not options]
    logdir, commands = run.make_dir("traces"), []
    for i, (name, data) in enumerate(odd_traces(n)):
        directory = logdir / "plugins/profile" / name
        directory.mkdir(parents=True)
        path = directory / ("h.pt.trace.json.gz" if i % 2 else "h.pt.trace.json")
        path.write_bytes(gzip.compress(data, 1) if i % 2 else data)
        commands += [("analyze", tool, path) for tool in (every[i % len(every):][:1] if run.short else every)]
        commands += [("summary", path)] + ([] if run.short else [("findings", path), ("export", "chrome", path, "-o", run.dir / name)])
    answered = ask_all(run, commands)
    check(answered > len(commands) // 4, f"{answered} of {len(commands)} commands are answered")
    d = run.start("--no-prefetch", "--scan-interval=50ms", logdir=logdir)
    names = sorted(d.sessions())

    def ask(i):
        for session in names[i::4]:
            got = d.get(answer_url(session, "overview_page"), timeout=60)
            check(got.status == 200 or got.status >= 400 and got.body, f"{session}: {got}")

    in_threads(4, ask)
    d.answers()
    d.check_gives_back()
    d = run.start("--no-prefetch", logdir=logdir)
    in_flight = d.connect()
    in_flight.sendall(b"".join(f"GET {answer_url(s, 'overview_page')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for s in names))
    wait_for(lambda: d.fds() > d.first_fds, 10, "the request is under way")
    equal(d.stop(15), 0, "exit status")


test_odd_traces.slow = True
test_odd_traces.limit = 300
test_odd_traces.whole_limit = 7200
