#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feeds random OpStats to the real XProf and to our tools; their answers must be equal.

    diff_tools.py --render build/tests/parity/render_opstats [--seed N] [--count K] [--start I] [--tool T]... [--keep DIR]
    diff_tools.py --render ... --case FILE [--tool T]...        one OpStats file, with all its differences

This checks the tools alone: XProf reads our bytes from its own cache (ALL_HOSTS.op_stats_v2.pb), so no profile has to yield
them, and values can be had that no profile yields.  Needs the python that setup.sh prints.  Case I of seed N is always the
same message.  XProf runs in a process of its own; its crashes are counted, not compared.  Where XProf, asked again in new
processes (other hash seeds), disagrees with itself, the case counts as unstable.  Each other difference is made small, shown
once per kind, and kept in DIR.  Exit 0 when there is none.
"""
import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
import time

import tool_table
from compare import compare, parse, signature
from xprof_worker import XProf

HERE = os.path.dirname(os.path.abspath(__file__))


class CachedXProf(XProf):
    """XProf over a session whose OpStats are given.  The profile beside them names a host and holds nothing."""

    def start(self):
        env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", GRPC_VERBOSITY="NONE")
        self.process = subprocess.Popen([self.python, os.path.abspath(__file__), "--serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)

    def ask_stats(self, tool, path, options):
        return self.ask(tool, [path], options)


def serve():
    """The process that CachedXProf talks to: as xprof_worker's, but the path is an OpStats file."""
    import json
    import struct
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from xprof.convert import raw_to_tool_data as convert
    with tempfile.TemporaryDirectory() as top:
        run = os.path.join(top, "plugins", "profile", "run")
        os.makedirs(run)
        plane = os.path.join(run, "host.xplane.pb")
        with open(plane, "wb") as f:
            f.write(b"\x22\x04host")        # XSpace.hostnames
        for line in sys.stdin.buffer:
            q = json.loads(line)
            with open(q["paths"][0], "rb") as f:
                stats = f.read()
            with open(os.path.join(run, "ALL_HOSTS.op_stats_v2.pb"), "wb") as f:
                f.write(stats)
            try:
                data, _ = convert.xspace_to_tool_data([plane], q["tool"], {"use_saved_result": True, **q["options"]})
            except Exception as e:  # of many kinds; all mean that it has no answer
                print(e, file=sys.stderr)
                data = None
            data = data.encode() if isinstance(data, str) else data
            out.write(struct.pack("<q", -1) if data is None else struct.pack("<q", len(data)) + data)
            out.flush()
    os._exit(0)


def questions(judge, tools):
    for tool in tools:
        for options in tool_table.choices(judge.xplanectl, tool):
            yield tool, options


def xplanectl_beside(render):
    """xplanectl of the build that `render` is of."""
    return os.path.join(os.path.dirname(render), "..", "..", "cli", "xplanectl")


class Judge:
    def __init__(self, xprof, render, folder):
        self.xprof, self.render, self.folder = xprof, render, folder
        self.xplanectl = xplanectl_beside(render)

    def ours(self, tool, path, options):
        env = dict(os.environ, ASAN_OPTIONS="exitcode=99", UBSAN_OPTIONS="halt_on_error=1:exitcode=99")
        p = subprocess.run([self.render, tool, path, "xprof_exact=true", "cpu_as_device=false"] + [f"{k}={v}" for k, v in options.items()],
                           capture_output=True, timeout=60, env=env)
        return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace").strip()

    def ask(self, tool, stats, options, retries=3):
        """(kind, lines, XProf's answer); kind: equal, different, unstable, xprof crash, xprof none, our crash"""
        path = os.path.join(self.folder, "stats.pb")
        with open(path, "wb") as f:
            f.write(stats)
        status, expected = self.xprof.ask_stats(tool, path, options)
        if status in ("crash", "timeout"):
            return "xprof crash", [], None
        rc, got, err = self.ours(tool, path, options)
        if rc not in (0, 1):
            return "our crash", [f": exit {rc}: {err[-3000:]}"], expected
        if status == "none":
            return "xprof none", [], None
        if rc:
            return "different", [f": we fail: {err}"], expected
        lines = compare(tool, parse(expected), parse(got))
        if not lines:
            return "equal", [], expected
        for _ in range(retries):
            self.xprof.restart()
            status, again = self.xprof.ask_stats(tool, path, options)
            if status != "answer" or compare(tool, parse(expected), parse(again)):
                return "unstable", lines, expected
        return "different", lines, expected


class Shrinker:
    """Removes list elements, map entries and fields, and rounds numbers, while the difference of the same kind remains."""

    def __init__(self, differs, limit_s):
        self.differs, self.end = differs, time.monotonic() + limit_s

    def run(self, message):
        size = None
        while size != message.ByteSize() and time.monotonic() < self.end:
            size = message.ByteSize()
            self.visit(message, message)
        return message

    def keeps(self, root):
        return time.monotonic() < self.end and self.differs(root.SerializeToString())

    def visit(self, root, m):
        for field, value in list(m.ListFields()):
            if time.monotonic() > self.end:
                return
            if not hasattr(m, field.name):
                continue
            saved = type(m)()
            saved.CopyFrom(m)
            m.ClearField(field.name)
            if self.keeps(root):
                continue
            m.CopyFrom(saved)
            value = getattr(m, field.name)
            if hasattr(value, "items"):
                self.thin_map(root, m, field)
            elif hasattr(value, "append"):
                self.thin_list(root, m, field)
            elif field.message_type is None:
                self.round(root, m, field)
            elif field.message_type.full_name == "google.protobuf.Any":
                self.thin_any(root, value)
            else:
                self.visit(root, value)

    def thin_list(self, root, m, field):
        values = getattr(m, field.name)
        step = max(1, len(values) // 2)
        while step:
            i = 0
            while i < len(values):
                old = list(values)
                kept = [v for n, v in enumerate(old) if not i <= n < i + step]
                copies = [self.copy(v) for v in old]
                kept = [self.copy(v) for v in kept]
                del values[:]
                values.extend(kept)
                if not self.keeps(root):
                    del values[:]
                    values.extend(copies)
                    i += step
            step //= 2
        if field.message_type is not None:
            for v in values:
                self.visit(root, v)

    def thin_map(self, root, m, field):
        values = getattr(m, field.name)
        by_message = field.message_type.fields_by_name["value"].message_type is not None
        for k in list(values):
            old = self.copy(values[k])
            del values[k]
            if not self.keeps(root):
                if by_message:
                    values[k].CopyFrom(old)
                    self.visit(root, values[k])
                else:
                    values[k] = old

    def thin_any(self, root, any_message):
        from xprof.protobuf import steps_db_pb2
        for name in ("GenericStepBreakdown", "TpuStepBreakdown", "SparseCoreStepBreakdown"):
            inner = getattr(steps_db_pb2, name)()
            if not any_message.Unpack(inner):
                continue
            for field, value in list(inner.ListFields()):
                saved = type(inner)()
                saved.CopyFrom(inner)
                inner.ClearField(field.name)
                any_message.Pack(inner)
                if self.keeps(root):
                    continue
                inner.CopyFrom(saved)
                if hasattr(value, "items"):
                    for k in list(getattr(inner, field.name)):
                        old = getattr(inner, field.name)[k]
                        del getattr(inner, field.name)[k]
                        any_message.Pack(inner)
                        if not self.keeps(root):
                            getattr(inner, field.name)[k] = old
                any_message.Pack(inner)

    def round(self, root, m, field):
        old = getattr(m, field.name)
        if isinstance(old, bool) or not isinstance(old, (int, float)):
            return
        for new in (1, 10 ** 9, 10 ** 12):
            if old == new or abs(old) < new:
                continue
            setattr(m, field.name, type(old)(new))
            if self.keeps(root):
                return
            setattr(m, field.name, old)

    @staticmethod
    def copy(v):
        if not hasattr(v, "CopyFrom"):
            return v
        c = type(v)()
        c.CopyFrom(v)
        return c


def shrink(judge, tool, options, stats, kind, limit_s):
    from xprof.protobuf import op_stats_pb2

    def differs(data):
        k, lines, _ = judge.ask(tool, data, options, retries=0)
        return k == kind[0] and signature(tool, lines) == kind[1] if lines else False
    return Shrinker(differs, limit_s).run(op_stats_pb2.OpStats.FromString(stats))


def rows_of(tool, answer):
    x = parse(answer or b"")
    if tool == "input_pipeline_analyzer":
        return bool(x[1]["rows"])
    if tool in ("kernel_stats", "hlo_stats"):
        return bool(x["rows"])
    return bool(x[0]["rows"]) if isinstance(x, list) else True


def one_case(judge, path, tools):
    with open(path, "rb") as f:
        stats = f.read()
    bad = 0
    for tool, options in questions(judge, tools):
        kind, lines, _ = judge.ask(tool, stats, options)
        print(f"{tool} {options or ''}: {kind}")
        for line in lines:
            print("   ", line)
        bad += kind in ("different", "our crash")
    return bad


def report(args, judge, case, tool, options, stats, kind, lines):
    print(f"case {case}: {tool} {options or ''}: {kind}")
    for line in lines[:6]:
        print("   ", line)
    sys.stdout.flush()
    if not args.keep:
        return
    os.makedirs(args.keep, exist_ok=True)
    small = shrink(judge, tool, options, stats, (kind, signature(tool, lines)), args.shrink_s)
    name = os.path.join(args.keep, f"{args.seed}-{case}-{tool}")
    with open(name + ".pb", "wb") as f:
        f.write(small.SerializeToString())
    with open(name + ".txt", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + f"\n\n{small}")
    print(f"    small: {name}.txt ({small.ByteSize()} bytes)")


def many_cases(args, judge, tools):
    from random_opstats import random_opstats
    kinds, filled, families, seen = collections.Counter(), collections.Counter(), collections.Counter(), set()
    for case in range(args.start, args.start + args.count):
        message, family = random_opstats(random.Random(f"{args.seed}/{case}"))
        families[family] += 1
        stats = message.SerializeToString(deterministic=True)
        for tool, options in questions(judge, tools):
            kind, lines, expected = judge.ask(tool, stats, options)
            kinds[kind] += 1
            if expected is not None:
                filled[tool, rows_of(tool, expected)] += 1
            what = (kind, signature(tool, lines))
            if kind in ("different", "our crash") and what not in seen:
                seen.add(what)
                report(args, judge, case, tool, options, stats, kind, lines)
    print(f"seed {args.seed}, {args.count} cases from {args.start}: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))
    print("families: " + ", ".join(f"{n} {k}" for k, n in sorted(families.items())))
    for tool in tools:
        n = filled[tool, True] + filled[tool, False]
        print(f"{tool}: {100 * filled[tool, True] // max(1, n)}% of {n} answers with rows")
    return kinds["different"] + kinds["our crash"]


def main():
    if "--serve" in sys.argv:
        return serve()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--render", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--start", type=int, default=0)
    p.add_argument("--tool", action="append")
    p.add_argument("--case")
    p.add_argument("--keep", help="folder for small versions of what differs")
    p.add_argument("--shrink-s", type=float, default=60)
    args = p.parse_args()
    tools = args.tool or tool_table.of_op_stats(xplanectl_beside(os.path.abspath(args.render)))
    with CachedXProf(timeout_s=60) as xprof, tempfile.TemporaryDirectory() as folder:
        judge = Judge(xprof, os.path.abspath(args.render), folder)
        bad = one_case(judge, args.case, tools) if args.case else many_cases(args, judge, tools)
        print(f"XProf: {xprof.asked} questions, {xprof.crashes} crashes, {xprof.timeouts} timeouts")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
