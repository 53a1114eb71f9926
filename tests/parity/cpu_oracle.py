#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recompute the CPU's op table from a profile by brute force (docs/cpu-as-device.md).

    cpu_oracle.py XPLANE...

Prints one JSON object per file: {"host", "threads", "begin_ps", "end_ps", "total_time_ps", "op_time_ps", "idle_ps", "ops":
[{"program_id", "module", "name", "kind", "occurrences", "total_ps", "self_ps", "cores"}, ...]}, ops by program and
name. Needs the standard library only, and shares no code with the server: it decodes everything it reads and keeps it.
"""
import json
import os
import re
import sys

MASK = (1 << 64) - 1
NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>\\-]*")
TYPE = re.compile(r"[A-Z_][a-zA-Z0-9_]*")


class Broken(Exception):
    """The bytes are no protobuf message."""


def varint(buf, at):
    value = shift = 0
    while True:
        if at >= len(buf) or shift > 63:
            raise Broken()
        byte = buf[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & MASK, at
        shift += 7


def fields(buf):
    """(number, value) of each field of a message: int, or bytes for anything else."""
    at = 0
    while at < len(buf):
        tag, at = varint(buf, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(buf, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if kind == 2:
                size, at = varint(buf, at)
            if size is None or size > len(buf) - at:
                raise Broken()
            value = buf[at:at + size]
            at += size
        yield tag >> 3, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def text(value):
    return bytes(value).decode("utf-8", "surrogateescape")


def metadata(entry):
    """(id, name) of a map entry from id to a message whose name is field 2."""
    key, name = 0, ""
    for num, value in fields(entry):
        if num == 1 and isinstance(value, int):
            key = value
        elif num == 2:
            name = ""
            for inner, v in fields(value):
                if inner == 2 and not isinstance(v, int):
                    name = text(v)
    return key, name


class Plane:
    def __init__(self, buf):
        self.name, self.lines, self.events, self.stats = "", [], {}, {}
        self.raw_events = []
        for num, value in fields(buf):
            if isinstance(value, int):
                continue
            if num == 2:
                self.name = text(value)
            elif num == 3:
                self.lines.append(value)
            elif num == 4:
                self.raw_events.append(value)
                key, name = metadata(value)
                self.events[key] = name
            elif num == 5:
                key, name = metadata(value)
                self.stats[key] = name

    def stat(self, buf):
        """(name, value) of an XStat: a reference reads as the text it refers to."""
        key, value = 0, None
        for num, v in fields(buf):
            if num == 1 and isinstance(v, int):
                key = v
            elif num == 7 and isinstance(v, int):
                value = self.stats.get(v, "")
            elif num == 5 and not isinstance(v, int):
                value = text(v)
            elif num in (3, 4) and isinstance(v, int):
                value = v
            elif num in (2, 6):
                value = None
        return self.stats.get(key, ""), value


def planes(buf):
    for num, value in fields(buf):
        if num == 1 and not isinstance(value, int):
            yield Plane(value)


def module_name(proto):
    """The name of an HloProto's module; Broken where it cannot be read."""
    name = ""
    for num, value in fields(proto):
        if num == 1 and not isinstance(value, int):
            name = ""
            for inner, v in fields(value):
                if inner == 1 and not isinstance(v, int):
                    name = text(v)
    return name


def metadata_entry(plane, entry):
    """(id, whether its name gave that, program id, proto) of an entry of /host:metadata: the number in parentheses that the name
    of an entry with a proto ends with is its id, else its key.  Of several protos the first counts."""
    key, name, proto, known = 0, "", None, None
    for num, value in fields(entry):
        if num == 1 and isinstance(value, int):
            key = value
        elif num == 2:
            for inner, v in fields(value):
                if inner == 2:
                    name = text(v)
                elif inner == 5:
                    stat, number = plane.stat(v)
                    known = number if stat == "program_id" and isinstance(number, int) else known
                    if stat.lower() == "hlo proto" and proto is None:
                        proto = next((x for n, x in fields(v) if n == 6), proto)
    match = re.fullmatch(r".*\((\d+)\)", name, re.DOTALL)
    number = int(match.group(1)) & MASK if match and proto is not None else key
    return number, number != key, known, proto


def module_names(space):
    """Program id to the name of its module, for every HLO program of the profile that can be read.  Of several entries with one
    id the last counts, of those whose names gave it if there are any; whether it can be read is seen later."""
    names = {}
    for plane in space:
        if plane.name != "/host:metadata":
            continue
        entries = {}
        for entry in plane.raw_events:
            number, named, known, proto = metadata_entry(plane, entry)
            if named or not entries.get(number, (False,))[0]:
                entries[number] = named, known, proto
        for number, (_, known, proto) in entries.items():
            try:
                if proto is not None:
                    names.setdefault(number if known is None else known, module_name(proto))
            except Broken:
                pass
    return names


def fnv1a(name):
    h = 0xcbf29ce484222325
    for byte in name.encode("utf-8", "surrogateescape"):
        h = (h ^ byte) * 0x100000001b3 & MASK
    return h


EXECUTORS = (2, 3)  # context types of TensorFlow's executors


def context(plane, stats, kind, number):
    """(type, id) that an event produces or consumes, or None."""
    found = {}
    for buf in stats:
        name, value = plane.stat(buf)
        if isinstance(value, int):
            found.setdefault(name, value)
    key = found.get(kind), found.get(number)
    return key if None not in key and key[0] in EXECUTORS else None


def is_input_event(name):
    return name.startswith(("Iterator::", "InstantiatedCapturedFunction::"))


def innermost(events, is_outer, is_asked):
    """(event, the last event before it that is outer and includes it) of those asked for.  Of one line: an outer event is
    forgotten when an event of either kind is not in it."""
    stack = []
    for event in events:
        outer, asked = is_outer(event), is_asked(event)
        if not outer and not asked:
            continue
        while stack and not (stack[-1][0] <= event[0] and event[1] <= stack[-1][1]):
            stack.pop()
        if asked:
            yield event, stack[-1] if stack else None
        if outer:
            stack.append(event)


def input_contexts(plane, lines):
    """Contexts of the functions that tf.data runs: begun by its work, or by such a function."""
    def has_input_name(event):
        return is_input_event(plane.events.get(event[3], ""))

    def produces(event):
        return context(plane, event[4], "_pt", "_p") is not None

    def consumes(event):
        return context(plane, event[4], "_ct", "_c") is not None
    calls, known = [], set()
    for name, events in lines:
        inputs = innermost(events, has_input_name, produces)
        callers = innermost(events, consumes, produces)
        for (event, around), (_, caller) in zip(inputs, callers):
            made = context(plane, event[4], "_pt", "_p")
            if around or has_input_name(event) or name.startswith("tf_data_"):
                known.add(made)
            elif caller:
                calls.append((context(plane, caller[4], "_ct", "_c"), made))
    before = -1
    while before != len(known):
        before = len(known)
        known |= {made for used, made in calls if used in known}
    return known


def counted(plane, md, stats, programs):
    """(program id, module, op, kind) of an event that counts, or None."""
    op = module = ""
    program = 0
    for buf in stats:
        name, value = plane.stat(buf)
        if name == "hlo_op" and isinstance(value, str) and value:
            op = value
        elif name == "hlo_module":
            module = value if isinstance(value, str) else ""
        elif name == "program_id":
            program = value if isinstance(value, int) else 0
    if op:
        if program == 0 and module:
            same = [i for i, n in programs.items() if n == module]
            program = min(same) if same else fnv1a(module)
        return program, module, op, "xla"
    name, colon, kind = plane.events.get(md, "").partition(":")
    if colon and plane.events[md].lower().startswith("iteratorgetnext"):
        return None  # waits for input
    if colon and name != "Iterator" and NAME.fullmatch(name) and TYPE.fullmatch(kind):
        return 0, "", name, "framework"
    return None


def read_line(buf):
    """(name, [(begin, end, duration, metadata, stats)]) of a line, in file order."""
    start, events, title, read = 0, [], "", []
    for num, value in fields(buf):
        if num == 3 and isinstance(value, int):
            start = value
        elif num == 2 and not isinstance(value, int):
            title = text(value)
        elif num == 4 and not isinstance(value, int):
            events.append(value)
    for event in events:
        md = offset = duration = 0
        stats = []
        for num, value in fields(event):
            if num == 4:
                stats.append(value)
            elif isinstance(value, int):
                if num == 1:
                    md = value
                elif num == 2:
                    offset = value
                elif num == 3:
                    duration = value
                elif num == 5:
                    offset = 0
        begin = start * 1000 + offset & MASK
        read.append((begin, begin + duration & MASK, duration, md, stats))
    return title, read


def line_events(plane, name, events, contexts, programs):
    """(begin, end, duration, op) of the counted events of a line, in file order."""
    def is_input(event):
        return is_input_event(plane.events.get(event[3], "")) or context(plane, event[4], "_ct", "_c") in contexts

    def op_of(event):
        return counted(plane, event[3], event[4], programs)
    if name.startswith("tf_data_"):
        return
    for event, around in innermost(events, is_input, op_of):
        if around is None and not is_input(event):
            yield *event[:3], op_of(event)


def count_line(events, ops):
    """Adds one line to ops; returns (begin, end) of what it counted, or None."""
    parent, stack = {}, []
    for i, (begin, end, _, _) in enumerate(events):
        while stack and not (events[stack[-1]][0] <= begin and end <= events[stack[-1]][1]):
            stack.pop()
        if stack:
            parent.setdefault(stack[-1], []).append(i)
        stack.append(i)
    for i, (_, _, duration, op) in enumerate(events):
        inside = sum(events[child][2] for child in parent.get(i, ()))
        row = ops.setdefault((op[0], op[2]), {"module": op[1], "kind": op[3], "occurrences": 0,
                                              "total_ps": 0, "self_ps": 0})
        row["occurrences"] += 1
        row["total_ps"] += duration
        row["self_ps"] += max(0, duration - inside)
    for key in {(op[0], op[2]) for _, _, _, op in events}:
        ops[key]["cores"] = ops[key].get("cores", 0) + 1
    return (min(e[0] for e in events), max(e[1] for e in events)) if events else None


def host(buf):
    space = list(planes(buf))
    if any(p.name.startswith(("/device:TPU:", "/device:GPU:")) for p in space):
        raise SystemExit("this profile has a device plane: nothing is counted on its CPU")
    programs, ops, spans = module_names(space), {}, []
    plane = next((p for p in space if p.name == "/host:CPU"), None)
    lines = [read_line(line) for line in plane.lines] if plane else []
    contexts = input_contexts(plane, lines) if plane else set()
    for name, events in lines:
        span = count_line(list(line_events(plane, name, events, contexts, programs)), ops)
        if span:
            spans.append(span)
    begin = min((s[0] for s in spans), default=0)
    end = max((s[1] for s in spans), default=0)
    busy = sum(row["self_ps"] for row in ops.values())
    total = max(len(spans) * (end - begin), busy)
    return {"threads": len(spans), "begin_ps": begin, "end_ps": end, "total_time_ps": total,
            "op_time_ps": busy, "idle_ps": total - busy,
            "ops": [{"program_id": k[0], "name": k[1], **row} for k, row in sorted(ops.items())]}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        with open(path, "rb") as f:
            data = f.read()
        name = os.path.basename(path).split(".xplane.pb")[0]
        json.dump({"host": name, **host(memoryview(data))}, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
