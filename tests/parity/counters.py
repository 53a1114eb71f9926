#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tools of hardware counters on random profiles, ours against XProf's.

    counters.py --build BUILD [--seed N --count N] [--out DIR]

Planes of TPUs and GPUs with readings of every kind of value, with and without the ids, types and times that they should have.
The three answers must be equal value for value; what XProf says of counters of two types of TPUs in words of its own is passed
over (differences.counter_descriptions).  What differs is written to --out.
"""
import argparse
import collections
import json
import os
import random
import sys
import tempfile

import differences
from ours import Ours
from protos import pb
from xprof.convert import counter_extractor
from xprof_worker import XProf
from xspace import Plane, Ref, U

TOOLS = ("perf_counters", "utilization_viewer", "kernel_utilization")
TYPES = {"TPU v6 Lite": "v6e", "TPU v7x": "v7x"}
NAMES = ("/device:TPU:{}",) * 5 + ("/device:GPU:{}", "/device:TPU:{} SparseCore 1", "/device:TPU:x", "/device:CUSTOM:y", "/host:CPU")
LINES = ("jit_f(1)", "XLA Ops", "Steps", "XLA Modules", "<\u00e9>")


def known(device_type):
    return sorted({c["val"] for c in counter_extractor.get_all_counters(TYPES.get(device_type, "v6e"))})


def value(r):
    k = r.random()
    if k < 0.5:
        return U(r.randrange(1 << r.choice((1, 10, 20, 34, 50, 64))))
    if k < 0.7:
        return r.randrange(-5, 1 << 40)
    if k < 0.8:
        return r.choice((0.0, 1.5, 1e9, -2.0, 1e30, 3e9 + 0.5))
    return "text" if k < 0.85 else U(r.randrange(1 << 24))


def reading(r, counter):
    stats = {"counter_value": value(r) if r.random() < 0.97 else None,
             "performance_counter_id": r.choice((U, int))(counter) if r.random() < 0.97 else None}
    if r.random() < 0.1:
        stats["performance_counter_description"] = r.choice(("d", Ref("D \u00e9")))
    if r.random() < 0.1:
        stats["performance_counter_sets"] = "set"
    return stats


def add_line(r, plane, ids):
    line = plane.line(r.choice(LINES), r.choice((r.randrange(100), 1 << 33)), r.choice((0, 5)))
    share = r.random()
    few = r.random() < 0.5
    for counter in r.sample(ids, min(len(ids), r.choice((0, 1, 5, 100, 500)))) if few else [c for c in ids if r.random() < share]:
        stats, name = reading(r, counter), f"Cnt_\u00c9_{counter % 7}"
        duration = r.randrange(1 << 30) if share < 0.4 and r.random() < 0.05 else 0
        begin = line.l.timestamp_ns * 1000 + r.choice((0, 0, r.randrange(1000)))
        if r.random() < 0.05:
            line.add(begin, duration, plane.event(name, stats=stats, key=(name, str(stats))))
        else:
            line.add(begin, duration, name, stats)
    r.shuffle(line.events)
    for begin, duration, md, stats in line.events:
        event = line.l.events.add(metadata_id=md, duration_ps=duration, offset_ps=begin - line.l.timestamp_ns * 1000)
        plane.fill(event.stats, stats or {})


def profile(seed, index):
    r = random.Random(f"counters {seed} {index}")
    space = pb.XSpace(hostnames=["h"])
    for n in range(r.randrange(1, 4)):
        plane = Plane(space, r.choice(NAMES).format(n), n + 1, r)
        device_type = r.choice(tuple(TYPES) * 4 + ("TPU v5", None))
        plane.stats({"device_type_string": device_type,
                     "device_id": r.choice((n, U(n + 5), -1, 1 << 40)) if r.random() < 0.8 else None,
                     "global_chip_id": r.choice((n, U(n + 9), -1)) if r.random() < 0.5 else None})
        for _ in range(r.randrange(5)):
            add_line(r, plane, known(device_type))
    return space.SerializeToString()


def kernel_options(r):
    every = {"device_id": r.choice(("0", "1", "5", " 6 ", "+7", "07", "-1", "x", "1.0", str(1 << 40), str(1 << 64), "")), "kernel": r.choice(("", "default", "Default", "none")),
             "kernel_name": r.choice(("", "kernel", "none")), "duration_us": r.choice(("0", "5", "0.05", "1e9", " 7 ", "5x", "-5", "nan", "", ".5", "inf", "-inf", "1e400", "0x10", "1" + "0" * 400)),
             "force_duration": r.choice(("true", "false"))}
    return {k: v for k, v in every.items() if r.random() < 0.5}


def kernel_empty(tool, options, xprof, path, mine):
    """XProf takes an empty `kernel` for a text that every name has; ours passes over what is empty, and goes by `kernel_name`: as XProf
    does when it is asked without the empty one."""
    if tool != "kernel_utilization" or options.get("kernel") != "" or not options.get("kernel_name"):
        return False
    status, without = xprof.ask(tool, [path], {k: v for k, v in options.items() if k != "kernel"})
    return status == "answer" and json.loads(without) == json.loads(mine)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--out")
    a = p.parse_args()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch, XProf(scratch=scratch) as xprof:
        ours, path = Ours(a.build, scratch), os.path.join(scratch, "h.xplane.pb")
        for index in range(a.count):
            data = profile(a.seed, index)
            with open(path, "wb") as f:
                f.write(data)
            for tool, options in [(tool, {}) for tool in TOOLS] + [("kernel_utilization", kernel_options(random.Random(f"options {a.seed} {index}")))]:
                (status, theirs), (said, mine) = xprof.ask(tool, [path], options), ours.ask(tool, [path], {"xprof_exact": "true", **options})
                counts["answers"] += 1
                equal = (status, said) == ("answer", "answer") and json.loads(theirs) == json.loads(mine)
                if equal:
                    counts["with rows"] += len(mine) > 450
                    continue
                if (status, said) == ("answer", "answer") and differences.excuse(tool, theirs, mine, [path], {}):
                    counts["excused"] += 1
                    continue
                if (status, said) == ("answer", "answer") and kernel_empty(tool, options, xprof, path, mine):
                    counts["kernel_empty"] += 1
                    continue
                counts["different"] += 1
                print(f"DIFFERENT {tool}, profile {index} of seed {a.seed}: {status}, ours {said}", flush=True)
                if a.out:
                    os.makedirs(a.out, exist_ok=True)
                    for name, content in (("pb", data), ("theirs", theirs), ("ours", mine)):
                        with open(os.path.join(a.out, f"{tool} {a.seed} {index}.{name}"), "wb") as f:
                            f.write(content or b"")
    print(", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    sys.exit(counts["different"] != 0 or counts["with rows"] < a.count // 2)


if __name__ == "__main__":
    main()
