#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memory_viewer, ours against XProf's, byte for byte.

    hlo_memory.py --build BUILD [--corpus DIR]... [--seed N --count N] [--out DIR]

Each different program of the profiles below tests/data and DIR, in the memory spaces 0, 1 and 5, then N random assignments
(hlo_memory_programs.py).  Of the JSON everything is compared as bytes, but for the order of logicalBufferSpans, which is that of
a hash table: there each entry is.  Of the timeline every rectangle is compared: its place and size, what is said of it, its color
and its label.  XProf describes it as a graph in a page, ours is a drawing.  What differs is written to --out.  Where XProf has no
answer ours may have none either; what it does not survive is not asked (tests/unit/hlo/test_hlo_memory.c has it).
"""
import argparse
import html
import os
import re
import subprocess
import sys
import tempfile

import hlo_memory_programs
import hlo_programs
from hlo_programs import Hlo, XSpace
from xprof_worker import XProf

HERE = os.path.dirname(os.path.abspath(__file__))
POINTS = 4096.0
AGAIN = 64                    # how often XProf gets the request again


def profile_of(data):
    space = XSpace(hostnames=["h"])
    plane = space.planes.add(name="/host:metadata", id=1)
    plane.stat_metadata[1].id, plane.stat_metadata[1].name = 1, "Hlo Proto"
    m = plane.event_metadata[7]
    m.id, m.name = 7, "program"
    m.stats.add(metadata_id=1, bytes_value=data)
    return space.SerializeToString()


SPANS = re.compile(rb'"logicalBufferSpans":\{((?:"-?\d+":\{[^}]*\},?)*)\},?')


def canonical(answer):
    """The answer with its spans in order of ids."""
    def sort(m):
        return b'"logicalBufferSpans":{' + b",".join(sorted(re.findall(rb'"-?\d+":\{[^}]*\}', m.group(1)))) + b"},"
    return SPANS.sub(sort, answer, count=1)


def span_twice(data, ask, ours):
    """Spans have the low 32 bits of their buffers' ids: of several buffers with the same bits any has one in XProf.  It is asked until it
    says what ours says."""
    ids = [b.id & 0xffffffff for b in Hlo.FromString(data).buffer_assignment.logical_buffers]
    if ours is None or len(set(ids)) == len(ids):
        return False
    return any(canonical(answer) == canonical(ours) for answer in (ask()[1] for _ in range(AGAIN)) if answer)


# ---- timelines ----

NODE = re.compile(r'"\d+" \[tooltip="(.*?)", pos="(-?[\d.]+),(-?[\d.]+)!", width="([\d.]+)", height="([\d.]+)", fixedsize=true, '
                  r'color="(#\w+)", fontsize=([\d.]+), label="(.*?)"\];', re.S)
RECT = re.compile(r'<g><rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="(#\w+)"/><title>(.*?)</title>'
                  r'(?:<text x="([-\d.]+)" y="([-\d.]+)" font-size="([\d.]+)">(.*?)</text>)?</g>', re.S)


def of_xprof(page):
    """[(center x, center y, width, height, color, tip, font or None, label)], in points, or None: there is nothing to see."""
    if "No memory allocation timeline available" in page:
        return None
    at = page.index("const data = `")
    out = []
    for tip, x, y, w, h, color, font, label in NODE.findall(page[at:page.index("`;", at)]):
        out.append((float(x), float(y), float(w) * 72, float(h) * 72, color[:7], tip.rstrip("\n"), float(font) if label else None, label))
    return out


def of_ours(page):
    if "<svg" not in page:
        return None
    out = []
    for x, y, w, h, color, tip, _, _, font, label in RECT.findall(page):
        x, y, w, h = float(x), float(y), float(w), float(h)
        out.append((x + w / 2, POINTS - (y + h / 2), w, h, color, html.unescape(tip).rstrip("\n"), float(font) if font else None, html.unescape(label)))
    return out


def same_label(theirs, ours):
    """XProf cuts names between bytes, also within a character; ours loses the rest of that character."""
    if theirs == ours or not theirs.endswith("..."):
        return theirs == ours
    whole = theirs[:-3].encode("utf-8", "surrogateescape").decode("utf-8", "ignore")
    return whole + "..." == ours


def different_timeline(theirs, ours):
    """What differs, or None."""
    a, b = of_xprof(theirs), of_ours(ours)
    if (a is None) != (b is None) or (a is not None and len(a) != len(b)):
        return f"{a and len(a)} rectangles, ours {b and len(b)}"
    for x, y in zip(a or [], b or []):
        near = all(abs(p - q) <= 0.011 for p, q in zip(x[:4], y[:4]))
        if not near or x[4:7] != y[4:7] or not same_label(x[7], y[7]):
            return f"{x}, ours {y}"
    return None


# ---- the comparison ----

class Comparison:
    def __init__(self, xprof, build, out):
        self.xprof, self.program, self.out = xprof, os.path.join(build, "cli", "xplanectl"), out
        self.answers = self.timelines = self.empty = self.refused = self.differ = self.span_twice = 0

    def ours(self, path, **options):
        words = [self.program, "analyze", "memory_viewer", path, *(w for k, v in options.items() for w in ("--option", f"{k}={v}"))]
        p = subprocess.run(words, capture_output=True, timeout=60)
        return p.stdout if p.returncode == 0 else None

    def note(self, label, what, data, theirs, ours):
        self.differ += 1
        print(f"{label}: {what}", flush=True)
        if self.out:
            os.makedirs(self.out, exist_ok=True)
            for name, content in (("pb", data), ("theirs", theirs), ("ours", ours)):
                with open(os.path.join(self.out, f"memory {label}.{name}".replace("/", "_")), "wb") as f:
                    f.write(content or b"")

    def json(self, label, data, path, module, space):
        def ask():
            return self.xprof.ask("memory_viewer", [path], {"module_name": module, "memory_space": str(space)})
        status, theirs = ask()
        ours = self.ours(path, module_name=module, memory_space=space)
        if status != "answer":
            self.refused += 1
            if ours is not None:
                self.note(f"{label} {space}", f"XProf has no answer ({status})", data, theirs, ours)
            return
        self.answers += 1
        if ours is not None and canonical(theirs) == canonical(ours):
            return
        if span_twice(data, ask, ours):
            self.span_twice += 1
        else:
            self.note(f"{label} {space}", "another answer", data, theirs, ours)

    def timeline(self, label, data, path, module):
        asked = {"module_name": module, "memory_space": "0", "view_memory_allocation_timeline": True}
        status, theirs = self.xprof.ask("memory_viewer", [path], asked)
        ours = self.ours(path, module_name=module, view_memory_allocation_timeline="true")
        if status != "answer":
            return
        self.timelines += 1
        theirs, page = theirs.decode("utf-8", "surrogateescape"), (ours or b"").decode("utf-8", "surrogateescape")
        self.empty += of_xprof(theirs) is None
        bad = different_timeline(theirs, page)
        if bad:
            self.note(f"{label} timeline", bad, data, theirs.encode("utf-8", "surrogateescape"), ours)

    def compare(self, label, data, spaces):
        module = f"{Hlo.FromString(data).hlo_module.name}(7)"
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "h.xplane.pb")
            with open(path, "wb") as f:
                f.write(profile_of(data))
            for space in spaces:
                self.json(label, data, path, module, space)
            self.timeline(label, data, path, module)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", required=True)
    p.add_argument("--corpus", action="append", default=[])
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--out")
    args = p.parse_args()
    with XProf() as xprof:
        c = Comparison(xprof, args.build, args.out)
        n = 0
        for n, data in enumerate(hlo_programs.of_profiles([os.path.join(HERE, "..", "data"), *args.corpus]), 1):
            c.compare(f"program {n}", data, (0, 1, 5))
        for k in range(args.count):
            data = hlo_memory_programs.program(args.seed, k).SerializeToString()
            c.compare(f"random {args.seed} {k}", data, (0, 1, 5))
    print(f"memory: {n} programs, {args.count} random ones: {c.answers} answers and {c.timelines} timelines ({c.empty} empty), "
          f"{c.refused} without an answer of XProf, {xprof.crashes} crashes; {c.span_twice} span_twice; {c.differ} differ")
    if not n or not c.answers or c.timelines <= c.empty:
        print("memory: too little was compared")
        c.differ += 1
    sys.exit(1 if c.differ else 0)


if __name__ == "__main__":
    main()
