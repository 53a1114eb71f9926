#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/causes.md. Each one is also a profile, of which time_breakdown must give the marked time to its cause.

    cause_pictures.py XPLANECTL [--write]    --write draws the pictures; without it they must be up to date
"""
import collections
import html
import json
import pathlib
import subprocess
import sys
import tempfile

PLACE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images" / "causes"
HOST, DEVICE, COPIES, COLLECTIVES = "host thread", "device", "device, copies", "device, collectives"
# A kernel at BEGIN with the time at which the host launches it; None for a row of the host.
Event = collections.namedtuple("Event", "row name begin us launch", defaults=(None,))


def kernel(name, begin, us, launch=None, row=DEVICE):
    return Event(row, name, begin, us, begin - 6 if launch is None else launch)


# All times in microseconds. The first kernel, what a picture has between, and a second kernel.
FIRST, SECOND = kernel("matmul", 10, 30), kernel("matmul", 70, 20, 70)
SMALL = [e for at in range(10, 90, 16) for e in (kernel("add", at, 4, at - 3), Event(HOST, "PjitFunction", at - 10, 16))]
PICTURES = {  # cause: (events, when the device has it)
    "compute": ([kernel("matmul", 10, 80)], [(10, 90)]),
    "overlapped_collectives": ([kernel("matmul", 10, 80), kernel("ncclAllReduce", 25, 45, row=COLLECTIVES)], [(25, 70)]),
    "exposed_collectives": ([FIRST, kernel("ncclAllReduce", 40, 30, row=COLLECTIVES), SECOND], [(40, 70)]),
    "host_copies": ([FIRST, kernel("MemcpyH2D", 40, 30, row=COPIES), SECOND], [(40, 70)]),
    "device_copies": ([FIRST, kernel("MemcpyD2D", 40, 30, row=COPIES), SECOND], [(40, 70)]),
    "callback": ([FIRST, Event(HOST, "pure_callback", 40, 30), SECOND], [(40, 70)]),
    "input": ([FIRST, Event(HOST, "load_batch", 30, 40), SECOND], [(40, 70)]),
    "checkpoint": ([FIRST, Event(HOST, "save_checkpoint", 40, 30), SECOND], [(40, 70)]),
    "compile": ([FIRST, Event(HOST, "backend_compile", 25, 45), SECOND], [(40, 70)]),
    "launch": (SMALL, [(at + 4, at + 16) for at in range(10, 74, 16)]),
    "queued": ([FIRST, kernel("matmul", 65, 25, 20)], [(40, 65)]),
    "host": ([FIRST, Event(HOST, "update_statistics", 40, 30), SECOND], [(40, 70)]),
    "unknown": ([FIRST, SECOND], [(40, 70)]),
}


# ---- as a profile ----

def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def plane(name, lines):
    """LINES: {name: [(event's name, begin, us, correlation)]}"""
    ids, body = {}, b""
    for number, (line, events) in enumerate(lines.items(), 1):
        rows = b""
        for event, begin, us, correlation in sorted(events, key=lambda e: (e[1], -e[2])):
            stat = field(4, field(1, 1) + field(4, correlation)) if correlation else b""
            rows += field(4, field(1, ids.setdefault(event, len(ids) + 1)) + field(2, begin * 10**6) + field(3, us * 10**6) + stat)
        body += field(3, field(1, number) + field(2, line) + rows)
    names = b"".join(field(4, field(1, i) + field(2, field(1, i) + field(2, n))) for n, i in ids.items())
    return field(1, field(2, name) + body + names + field(5, field(1, 1) + field(2, field(1, 1) + field(2, "correlation_id"))))


def profile(events):
    streams = {DEVICE: "Stream #1(Compute)", COPIES: "Stream #2(Memcpy)", COLLECTIVES: "Stream #3(Compute)"}
    host, device = [], {}
    for n, e in enumerate(events, 1):
        if e.launch is None:
            host.append((e.name, e.begin, e.us, 0))
        else:
            host.append(("cuLaunchKernel", e.launch, 2, n))
            device.setdefault(streams[e.row], []).append((e.name, e.begin, e.us, n))
    return plane("/host:CPU", {"python": host}) + plane("/device:GPU:0", device)


def check_cause(program, cause, events, marked):
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "host.xplane.pb"
        path.write_bytes(profile(events))
        answer = subprocess.run([program, "analyze", "time_breakdown", path], capture_output=True, check=True, timeout=60, text=True).stdout
    device = json.loads(answer)["hosts"][0]["devices"][0]
    expected = sum(b - a for a, b in marked) * 10**6
    assert device[f"{cause}_ps"] == expected, (cause, expected, {k: v for k, v in device.items() if k.endswith("_ps") and v})


# ---- as a picture ----

LEFT, SCALE, LINE, WIDTH = 130, 5.2, 26, 620


def box(x, y, width, kind, text=""):
    label = f'<text x="{x + width / 2:g}" y="{y + 13:g}" text-anchor="middle" class="in">{html.escape(text)}</text>' if text else ""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="18" rx="2" class="{kind}"/>{label}\n'


def draw(cause, events, marked):
    rows = [HOST] + [r for r in (DEVICE, COPIES, COLLECTIVES) if any(e.row == r for e in events)]
    height, at = LINE * len(rows) + 34, lambda us: LEFT + us * SCALE
    y = {row: 6 + LINE * i for i, row in enumerate(rows)}
    kinds = {HOST: "host", DEVICE: "device", COPIES: "copy", COLLECTIVES: "collective"}
    out = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{cause}">\n'
           '<style>text{font:12px system-ui,sans-serif;fill:#222}.in{fill:#fff}.paper{fill:#fff}.line{stroke:#ccc}.host{fill:#6b5b95}.launch{fill:#555}'
           '.device{fill:#3367c7}.copy{fill:#2c7a7b}.collective{fill:#9c4221}.mark{fill:#fbd38d;fill-opacity:.55}.arrow{stroke:#555}</style>\n'
           f'<rect width="{WIDTH}" height="{height}" rx="4" class="paper"/>\n')
    for a, b in marked:
        out += f'<rect x="{at(a):g}" y="2" width="{(b - a) * SCALE:g}" height="{LINE * len(rows) + 4}" class="mark"/>\n'
    for row in rows:
        out += f'<text x="8" y="{y[row] + 13}">{row}</text><line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y[row] + 20}" y2="{y[row] + 20}" class="line"/>\n'
    for e in sorted(events, key=lambda e: e.launch is not None):
        x, wide = at(e.begin), len(e.name) * 7.2 < e.us * SCALE
        out += box(x, y[e.row], e.us * SCALE, kinds[e.row], e.name if wide else "")
        if e.launch is not None:
            out += box(at(e.launch), y[HOST], 2 * SCALE, "launch")
            out += f'<line x1="{at(e.launch + 1):g}" x2="{x + 1:g}" y1="{y[HOST] + 18}" y2="{y[e.row]}" class="arrow"/>\n'
    middle = at(sum(marked[len(marked) // 2]) / 2)
    out += f'<text x="{middle:g}" y="{height - 10}" text-anchor="middle" font-weight="bold">{cause.replace("_", " ")}</text>\n'
    return out + "</svg>\n"


def main():
    program, write = sys.argv[1], "--write" in sys.argv[2:]
    for cause, (events, marked) in PICTURES.items():
        check_cause(program, cause, events, marked)
        path, picture = PLACE / f"{cause}.svg", draw(cause, events, marked)
        if write:
            path.write_text(picture, encoding="utf-8")
        assert path.exists() and path.read_text(encoding="utf-8") == picture, f"{path.name} is out of date: run {sys.argv[0]} XPLANECTL --write"
    page = (PLACE.parent.parent / "causes.md").read_text(encoding="utf-8")
    assert all(f"images/causes/{cause}.svg" in page for cause in PICTURES), "docs/causes.md lacks a picture"


if __name__ == "__main__":
    main()
