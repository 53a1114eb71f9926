# SPDX-License-Identifier: Apache-2.0
"""Programs (HLO) that go in circles, and bundles of IREE that are wrong, through every tool and command."""

import json
import os
import random
import struct
import subprocess

import wire_mutator
from harness import DATA, check, in_threads

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
