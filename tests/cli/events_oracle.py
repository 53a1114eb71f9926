# SPDX-License-Identifier: Apache-2.0
"""What `events` must answer, worked out from the bytes of an XSpace by slow and simple code."""
import math
import re
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value & (1 << 64) - 1, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            value, at = data[at:at + 4], at + 4
        yield tag >> 3, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def text(value):
    return value.decode("utf-8", "surrogateescape")


def names(entries):
    found = {}
    for entry in entries:
        key, name = 0, ""
        for number, value in fields(entry):
            if number == 1:
                key = signed(value)
            if number == 2:
                name = next((text(v) for n, v in fields(value) if n == 2), "")
        found[key] = name
    return found


def stat(message, stat_names):
    """Name and value; what is 0 or empty is None."""
    name, value = stat_names.get(0, ""), None
    for number, v in fields(message):
        if number == 1:
            name = stat_names.get(signed(v), "")
        elif number == 2:
            value = struct.unpack("<d", v)[0] or None
        elif number == 3:
            value = v or None
        elif number == 4:
            value = signed(v) or None
        elif number in (5, 6):
            value = text(v) or None
        elif number == 7:
            value = stat_names.get(signed(v), "") if v else None
    return name, value


class Event:
    """offset_ps, duration_ps, name, stats; begin_ps counts from the epoch."""

    def __init__(self, message, line_ns, event_names, stat_names):
        md = self.offset_ps = self.duration_ps = 0
        self.aggregated = False
        self.stats = {}
        for number, value in fields(message):
            if number == 1:
                md = signed(value)
            elif number == 2:
                self.offset_ps, self.aggregated = signed(value), False
            elif number == 3:
                self.duration_ps = signed(value)
            elif number == 4:
                key, v = stat(value, stat_names)
                self.stats[key] = v
            elif number == 5:
                self.offset_ps, self.aggregated = 0, True
        self.name = event_names.get(md, "")
        self.begin_ps = line_ns * 1000 + self.offset_ps
        self.end_ps = self.begin_ps + self.duration_ps
        module = self.stats.get("hlo_module", self.name)
        program = self.stats.get("program_id", self.stats.get("run_id"))
        self.id = f"{module}({program}-{self.stats.get('scope_range_id', 'None')})"


def planes(xspace):
    """(name, lines); a line is a list of events."""
    for number, plane in fields(xspace):
        if number != 1:
            continue
        parts = list(fields(plane))
        event_names = names(v for n, v in parts if n == 4)
        stat_names = names(v for n, v in parts if n == 5)
        lines = []
        for n, line in parts:
            if n != 3:
                continue
            inside = list(fields(line))
            begin = next((signed(v) for k, v in inside if k == 3), 0)
            lines.append([Event(v, begin, event_names, stat_names) for k, v in inside if k == 4])
        yield next((text(v) for n, v in parts if n == 2), ""), lines


def union(intervals):
    total, until = 0, None
    for begin, end in sorted(intervals):
        if until is None or begin > until:
            total, until = total + end - begin, end
        elif end > until:
            total, until = total + end - until, end
    return total


def ejkernel(xspace, plane, prefix="jit_", match=None, min_ps=1_000_000, most=10_000):
    """{name: ps} of the first plane, in the order of the names' first events."""
    lines = next(lines for name, lines in planes(xspace) if plane.lower() in name.lower())
    events = [e for line in lines for e in line if e.duration_ps >= min_ps][:most]
    events.sort(key=lambda e: e.offset_ps)
    times = {}
    for e in events:
        if not e.id.startswith(prefix):
            continue
        end = e.offset_ps + e.duration_ps
        times[e.id] = e.duration_ps if match is None else union(
            (c.offset_ps, c.offset_ps + c.duration_ps) for c in events
            if c.id != e.id and c.offset_ps >= e.offset_ps and c.offset_ps + c.duration_ps <= end and re.search(match, c.id))
    return times


def own(xspace, plane="", prefix="", match=None, min_ps=0, by_id=False):
    """{name: row}: moment by moment, with no stack."""
    found = {}
    for name, lines in planes(xspace):
        if plane.lower() not in name.lower():
            continue
        for line in lines:
            add_line(found, [(e.begin_ps, e.end_ps, e.id if by_id else e.name) for e in line
                             if not e.aggregated and e.duration_ps >= min_ps])
    rows = {}
    for name, (times, total, own_ps) in found.items():
        if not name.startswith(prefix) or match is not None and not re.search(match, name):
            continue
        times.sort()
        mean = sum(times) / len(times)
        rows[name] = {"count": len(times), "total_ps": total, "self_ps": own_ps, "mean_ps": mean,
                      "std_ps": math.sqrt(sum((t - mean) ** 2 for t in times) / len(times)), "min_ps": times[0],
                      "p50_ps": times[math.ceil(len(times) / 2) - 1], "p99_ps": times[math.ceil(len(times) * .99 - 1e-9) - 1]}
    return rows


def add_line(found, events):
    events.sort(key=lambda e: (e[0], -e[1]))  # what ends as another does counts as inside it, too
    edges = sorted({t for begin, end, _ in events for t in (begin, end)})
    for name in {name for *_, name in events}:
        mine = [(b, e) for b, e, n in events if n == name]
        outer = [(b, e) for i, (b, e) in enumerate(mine) if not any(b < e0 and e <= e0 for _, e0 in mine[:i])]
        row = found.setdefault(name, [[], 0, 0])
        row[0] += [e - b for b, e in outer]
        row[1] += union(outer)
    for begin, end in zip(edges, edges[1:]):
        open_now = [i for i, (b, e, _) in enumerate(events) if b <= begin and e >= end]
        if open_now:
            found[events[open_now[-1]][2]][2] += end - begin
