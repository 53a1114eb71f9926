#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""smart_suggestion and event_time_fraction_analyzer, ours against XProf's, on random profiles of TPUs.

    suggestions.py --build BUILD [--seed N] [--count N]

Fractions are compared value by value, planes and hosts by name. Of suggestions the figures are: the words are ours (docs/differences.md,
`suggestion_text`). XProf lists hosts in the order of a hash table, and adds their fractions in it: a mean that lies between two figures may
be either. Where it says another than ours, it is asked again, up to 96 times; what it also says of itself counts as equal, and is counted.
"""
import argparse
import json
import os
import random
import re
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from ours import Ours
from protos import pb
from xprof_worker import XProf
from xspace import Plane, U

US = 1000000
WORDS = ("barrier-cores", "barrier-cores", "barrier-cores,debug_print", "barrier", "cores,x,cores", "", "1", " barrier-cores,,fusion")


def results_class():
    """tensorflow.profiler.EventTimeFractionAnalyzerResults; both of its maps have values of one form."""
    f = descriptor_pb2.FileDescriptorProto(name="xplaned_test/fractions.proto", package="xplaned_test", syntax="proto3")
    F = descriptor_pb2.FieldDescriptorProto

    def message(name, *fields):
        m = f.message_type.add(name=name)
        for number, (field, kind, repeated) in enumerate(fields, 1):
            m.field.add(name=field, number=number, label=3 if repeated else 1, type=F.TYPE_MESSAGE if isinstance(kind, str) else kind,
                        type_name="." + f.package + "." + kind if isinstance(kind, str) else None)
    message("List", ("name", F.TYPE_STRING, False), ("v", F.TYPE_FLOAT, True))
    message("ListEntry", ("key", F.TYPE_STRING, False), ("value", "List", False))
    message("Result", ("planes", "ListEntry", True), ("hosts", "ListEntry", True))
    message("ResultEntry", ("key", F.TYPE_STRING, False), ("value", "Result", False))
    message("Results", ("results", "ResultEntry", True))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(f)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("xplaned_test.Results"))


Results = results_class()


def fractions(data):
    """{word: (planes, hosts)}, each {key: (name, [fraction])}"""
    def lists(entries):
        return {e.key: (e.value.name, list(e.value.v)) for e in entries}
    return {e.key: (lists(e.value.planes), lists(e.value.hosts)) for e in Results.FromString(data).results}


def figures(data):
    """What suggestions say in numbers: {name of the rule: (mean, [(host, percent)])}"""
    return figures_of(json.loads(data))


def figures_of(report):
    out = {}
    for s in report["suggestions"]:
        text = s["suggestionText"]
        hosts = re.findall(r"<li>(?:Host )?<b>([^<]*)</b>[^<%]*<b>([0-9.]+)%</b></li>", text)
        out[s["ruleName"]] = (re.search(r"([0-9.]+)%", text).group(1), sorted(hosts))
    return out


def fill(space, r, share, steps):
    """One plane; `share` of a step is spent waiting. Now and then two have one name."""
    name = r.choice(("/device:TPU:0", "/device:TPU:0", "/device:TPU:1", "/device:TPU:12", "/device:TPU:0 SparseCore 1", "/device:TPU:x", "/host:CPU"))
    if name in (p.name for p in space.planes) and r.random() < 0.7:
        return
    p = Plane(space, name, len(space.planes) + 1, r)
    marks = r.choice(("Steps", "Steps", "Steps", "Sparse Core Steps") if "Sparse" not in name else ("Sparse Core Steps", "Steps"))
    lines = [p.line(marks, 1), p.line("XLA Modules", 2), p.line(r.choice(("XLA Ops", "XLA Ops", "Async XLA Ops", "other")), 3)]
    grouped, device, at, first = r.random() < 0.8, r.random() < 0.7, 5000, r.choice((0, 0, 3, 8, 97))
    kind = r.choice((U, U, U, U, int))
    for i in range(steps):
        length = r.choice((1000 * US, 1000 * US, 1700 * US, 333333333, r.randint(1, 10 ** 9), 9 * US, 0 if r.random() < 0.1 else 1000 * US))
        group = {"group_id": r.choice((first + i, first + i, first + i, first + i, first + i // 2, first + steps - i))} if grouped else {}
        whole = r.choice((length, length, length * 2)) if device else None
        lines[0].add(at, length, str(i), {**group, "device_offset_ps": U(at) if device else None, "device_duration_ps": kind(whole) if device else None})
        lines[1].add(at, max(0, length - 10), "jit_f(1)", {**group, "run_id": U(i), "device_duration_ps": U(max(0, length - 10))})
        for k in range(r.choice((0, 1, 1, 1, 2, 7))):
            took = r.choice((int(length * share), int(length * share), 0, 1250, 1251, r.randint(0, 10 ** 9), 1 << 62 if r.random() < 0.05 else 7))
            op = r.choice(("barrier-cores.1", "barrier-cores.1", "barrier-cores", "xbarrier-cores", "fusion.1", "debug_print"))
            lines[2].add(at + k * 10, took, op, {**(group if r.random() < 0.95 else {}), "device_duration_ps": U(took) if r.random() < 0.95 else 77})
        at += length
    for line in lines:
        line.done()


STEPS_ID = -559038737


def fill_gpu(space, r, steps, arrived):
    """A GPU whose events say how long they took on it, which no profiler of GPUs writes; groups are its own or those of launches. One that
    arrived grouped has a line of its steps."""
    p = Plane(space, r.choice(("/device:GPU:0", "/device:GPU:0", "/device:GPU:1")), len(space.planes) + 1, r)
    grouped, launched = arrived or r.random() < 0.6, r.random() < 0.7
    titles = r.choice((("Stream #1",), ("Stream #1(Compute)", "Stream #2(MemcpyH2D)"), ("XLA Ops", "Stream #9")))
    for i, title in enumerate((*titles, "Steps") if arrived else titles):
        line, at = p.line(title, r.choice((STEPS_ID, STEPS_ID, 9)) if title == "Steps" else 10 + i, r.choice((0, 0, 3))), 5000
        for k in range(steps):
            group = {"group_id": k + r.choice((0, 0, 0, 1))} if grouped else {}
            launch = {"correlation_id": k} if launched else {}
            length = r.choice((1000 * US, r.randint(1, 10 ** 9)))
            op = str(k) if title == "Steps" else r.choice(("barrier-cores.1", "barrier-cores", "fusion.1", "debug_print"))
            line.add(at, length, op, {**group, **launch, "device_duration_ps": r.choice((U, U, U, int))(length // 3) if r.random() < 0.9 else None})
            at += r.choice((1000, 1000, 1200, 500)) * US
        line.done()
    if arrived:
        p.stat_id("group_id")


def fill_host(space, r, steps, arrived):
    """The host of GPUs, with steps that launch or in groups."""
    p = Plane(space, r.choice(("/host:CPU", "/host:CPU", "/host:CPU", "/host:metadata")), len(space.planes) + 1, r)
    line, grouped = p.line("python", 1), arrived or r.random() < 0.4
    for k in range(steps):
        line.add(k * 1000 * US, 900 * US, "train", {"_r": 1, "step_num": k, **({"group_id": k} if grouped else {})})
        line.add(k * 1000 * US + 10, 100, "launch", {"correlation_id": k})
    line.done()
    if arrived:
        p.stat_id("group_id")


def profile(r, share, hostname):
    space = pb.XSpace(hostnames=r.choice(([hostname], [hostname], [hostname], [], [hostname, "other"])))
    arrived = r.random() < 0.1
    for _ in range(0 if arrived else r.choice((0, 1, 1, 1, 2, 3))):
        fill(space, r, share, r.choice((0, 1, 2, 2, 3, 4, 5, 12)))
    if arrived or r.random() < 0.3:
        steps = r.choice((0, 1, 2, 3, 4, 5))
        for add in r.sample((fill_gpu, fill_gpu, fill_host), r.choice((1, 2, 2, 3))):
            add(space, r, steps, arrived)
    return space.SerializeToString()


def session(r):
    """[bytes] of its hosts"""
    n, share = r.choice((1, 1, 2, 3, 4, 6)), r.choice((0.02, 0.09, 0.1, 0.2, 0.5))
    return [profile(r, share * r.choice((1, 1, 1, 1.01, 3)), r.choice((f"h{i}", f"h{i}", "h0"))) for i in range(n)]


def same_fractions(theirs, mine):
    theirs, mine = fractions(theirs), fractions(mine)
    return theirs == mine, sum(bool(hosts) and any(v for _, v in hosts.values()) for _, hosts in theirs.values())


def also_says(xprof, paths, mine):
    """Whether XProf, asked again, says in figures what ours says."""
    again = (xprof.ask("smart_suggestion", paths) for _ in range(96))
    return any(status == "answer" and figures(answer) == mine for status, answer in again)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=100)
    a = a.parse_args()
    r, equal, filled, suggested, stragglers, both = random.Random(a.seed), 0, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as scratch, XProf(scratch=scratch) as xprof:
        ours = Ours(a.build, scratch)
        for case in range(a.count):
            paths, hosts = [], session(r)
            for i, data in enumerate(hosts):
                paths.append(os.path.join(scratch, f"p{i}.xplane.pb"))
                with open(paths[-1], "wb") as f:
                    f.write(data)
            option = {"event_name": r.choice(WORDS)}
            theirs, mine = xprof.ask("event_time_fraction_analyzer", paths, option), ours.ask("event_time_fraction_analyzer", paths, option)
            ok, n = same_fractions(theirs[1], mine[1]) if (theirs[0], mine[0]) == ("answer", "answer") else (False, 0)
            filled += n
            t2, m2 = xprof.ask("smart_suggestion", paths), ours.ask("smart_suggestion", paths)
            said = (t2[0], m2[0]) == ("answer", "answer") and figures(t2[1])
            ok2 = said is not False and said == figures(m2[1])
            if said and not ok2:
                ok2 = also_says(xprof, paths, figures(m2[1]))
                both += ok2
            if said:
                suggested += 1
                stragglers += bool(said["BarrierCoresRule"][1])
            equal += ok and ok2
            if not ok:
                print(f"DIFFERENT case {case} {option}\n  {theirs[0]} {fractions(theirs[1] or b'')}\n  {mine[0]} {fractions(mine[1]) if mine[0] == 'answer' else mine[1]}")
            if not ok2:
                print(f"DIFFERENT case {case} smart_suggestion\n  {t2[0]} {said}\n  {m2[0]} {figures(m2[1]) if m2[0] == 'answer' else m2[1]}")
    print(f"{equal} of {a.count} equal: {filled} lists with fractions, {suggested} suggestions, {stragglers} with hosts that differ, "
          f"{both} of which XProf says both")
    sys.exit(equal != a.count or not filled or not suggested or not stragglers)


if __name__ == "__main__":
    main()
