# SPDX-License-Identifier: Apache-2.0
"""Changes of a trace of PyTorch's profiler that leave its meaning as it was.

Each takes the JSON value, which it changes, and a random.Random.
"""
import copy
import gzip
import json
import random

import relations
import views

LARGEST = 3 << 20  # compressed
NO_VIEWS = ("sql stats", "tool smart_suggestion")  # the second one's words name a process


def order_of_events(trace, rnd):
    """Events; those of one row that begin and end alike keep their order, as do counters."""
    events = trace["traceEvents"]
    runs = {}
    for i, e in enumerate(events):
        alike = (e.get("pid"), e.get("tid"), str(e.get("ts")), str(e.get("dur"))) if e.get("ph") == "X" else e.get("ph")
        runs.setdefault(str(alike), []).append(i)
    runs = list(runs.values())
    rnd.shuffle(runs)
    trace["traceEvents"] = [events[i] for run in runs for i in run]


def process_ids(trace, rnd):
    """The number of the program's process; a device is its own."""
    new = rnd.randrange(100_000, 900_000)
    of_host = {e.get("pid") for e in trace["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "Operator")}
    old = {p: new + i for i, p in enumerate(sorted(p for p in of_host if isinstance(p, int) and p > 99))}
    for e in trace["traceEvents"]:
        if type(e.get("pid")) is int and e["pid"] in old:
            e["pid"] = old[e["pid"]]


def base_time(trace, rnd):
    """What the times of events count from."""
    if "baseTimeNanoseconds" in trace:
        trace["baseTimeNanoseconds"] += rnd.randrange(1, 10**6) * 10**9


def unknown_members(trace, rnd):
    trace["ofALaterVersion"] = {"a": [1, 2]}
    for e in trace["traceEvents"][::3]:
        e["later"] = True


CHANGES = [order_of_events, process_ids, base_time, unknown_members]


def read(path):
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return json.loads(data, parse_float=Decimal_text)


class Decimal_text(float):
    """A number that is written as it was: microseconds with three decimals after 1970 are more than a double holds."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __repr__(self):
        return self.text

    def __deepcopy__(self, memo):
        return self


def write(trace, path):
    path.write_text("".join(json.JSONEncoder().iterencode(trace)))


def same_answers(path, trace, change, base, asked, out, seed):
    new = copy.deepcopy(trace)
    change(new, random.Random(seed))
    folder = out / change.__name__
    folder.mkdir(parents=True, exist_ok=True)
    write(new, folder / path.name.removesuffix(".gz"))
    got = asked.all(list(base), [folder / path.name.removesuffix(".gz")])
    # Rows without a number get one as they come, and searches list ties in that order.
    unlike = ("tid", "sort_index") if change is order_of_events else ()
    for view in base:
        if view == "tool trace_search" and unlike:
            continue
        expected, answer = (views.clear(x[view], unlike if "trace" in view else ()) for x in (base, got))
        for line in views.differences(view, expected, answer, change is not base_time):
            yield f"{view}: {line}"


def run(asked, results, out, rnd, folders):
    paths = [p for folder in folders for p in sorted(folder.rglob("*.json*")) if ".trace.json" in p.name or p.name.endswith("trace.json.gz")]
    for path in paths:
        name = f"{path.parent.name}/{path.name}"
        if results.only not in f"{name}: changes" and not any(results.only in f"{name}: {c.__name__}" for c in CHANGES):
            continue
        if path.stat().st_size > LARGEST:
            results.skip(name, "a large file")
            continue
        trace = read(path)
        write(trace, out / path.name.removesuffix(".gz"))
        base = asked.all([v for v in asked.names(False) if v not in NO_VIEWS], [out / path.name.removesuffix(".gz")])
        for change in CHANGES:
            results.check(f"{name}: {change.__name__}", same_answers(path, trace, change, base, asked, out, rnd.random()))
        results.check(f"{name}: compare_itself", relations.no_difference(asked.ask("compare", [path, path])))
