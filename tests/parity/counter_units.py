#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of the hardware units of TPUs (analysis/tools/counters/units_*.txt) against the installed XProf.

    counter_units.py [--write]

Which counters feed a row of utilization_viewer is found out by asking: XProf gets one sample for each of the counter ids that
it knows, in which that counter alone is larger than in the others, and what moves in the answer is the counter's part.
Says which of the tables differ; --write writes them.
"""
import collections
import json
import os
import sys
import tempfile

from protos import pb
from xprof.convert import counter_extractor
from xprof_worker import XProf

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDER = os.path.join("analysis", "tools", "counters")
MODELS = {"v6e": "TPU v6 Lite", "v7x": "TPU v7x"}
BASE, MORE, AT_ONCE = 1 << 24, 1 << 20, 500


def space(device_type, samples):
    """A profile with one line for each of the samples, {counter id: value}."""
    out = pb.XSpace(hostnames=["h"])
    p = out.planes.add(id=1, name="/device:TPU:0")
    for i, name in enumerate(("device_type_string", "device_id", "counter_value", "performance_counter_id"), 1):
        p.stat_metadata[i].id, p.stat_metadata[i].name = i, name
    p.event_metadata[1].id, p.event_metadata[1].name = 1, "counter"
    p.stats.add(metadata_id=1, str_value=device_type)
    p.stats.add(metadata_id=2, int64_value=3)
    for i, sample in enumerate(samples):
        line = p.lines.add(id=i, name="program")
        for counter, value in sample.items():
            event = line.events.add(metadata_id=1)
            event.stats.add(metadata_id=3, uint64_value=value)
            event.stats.add(metadata_id=4, uint64_value=counter)
    return out.SerializeToString()


class Asked:
    def __init__(self, xprof, scratch, device_type):
        self.xprof, self.path, self.device_type = xprof, os.path.join(scratch, "h.xplane.pb"), device_type

    def rows(self, samples):
        """For each sample [(node, name, achieved, peak, unit)]."""
        with open(self.path, "wb") as f:
            f.write(space(self.device_type, samples))
        status, data = self.xprof.ask("utilization_viewer", [self.path])
        assert status == "answer", status
        out = [[] for _ in samples]
        for row in json.loads(data)["rows"]:
            _, _, sample, node, name, achieved, peak, unit = (c["v"] for c in row["c"])
            out[int(sample)].append((int(node), name, achieved, peak, unit))
        return out


def derive(asked, ids):
    """Rows in XProf's order, each as {node, name, unit, parts: {id: weight}, peak: {id: weight}, when}."""
    base = dict.fromkeys(ids, BASE)
    first = asked.rows([base])[0]
    rows = [{"node": n, "name": name, "unit": unit, "parts": {}, "peak": {}} for n, name, _, _, unit in first]
    for at in range(0, len(ids), AT_ONCE):
        some = ids[at:at + AT_ONCE]
        for i, answer in zip(some, asked.rows([{**base, i: BASE + MORE} for i in some])):
            assert len(answer) == len(first)
            for row, was, now in zip(rows, first, answer):
                for key, k in (("parts", 2), ("peak", 3)):
                    if now[k] != was[k]:
                        row[key][i] = (now[k] - was[k]) / MORE
    cycles = {i: BASE for row in rows if row["unit"] != "percent" for i in row["peak"]}
    always, idle = ([r[:2] for r in asked.rows([s])[0]] for s in ({1: 1}, cycles))
    for row in rows:
        name = (row["node"], row["name"])
        row["when"] = "ALWAYS" if name in always else "CYCLES_COUNTED" if name in idle else "TRAFFIC"
    return rows


def peak_of(row, rows):
    """(kind, factor, counter or index of a row): of what the row's peak is made."""
    if row["when"] == "TRAFFIC":
        whole, = (i for i, r in enumerate(rows) if r["unit"] == "bytes" and r["parts"] == row["peak"])
        return "WHOLE", 0, whole
    (counter, factor), = row["peak"].items()
    if row["unit"] == "bytes":
        return ("HBM" if row["name"].startswith("HBM") else "ICI"), 0, counter
    if factor < 1:
        assert (1 / factor).is_integer(), row
        return "SHARE", int(1 / factor), counter
    assert factor.is_integer(), row
    return "CYCLES", int(factor), counter


def runs_of(parts):
    """Counters of one weight at equal distances: [(first id, distance, how many, weight in halves)]."""
    out, by_weight = [], collections.defaultdict(list)
    for i, w in parts.items():
        assert (2 * w).is_integer(), w
        by_weight[int(2 * w)].append(i)
    for weight, ids in sorted(by_weight.items()):
        ids.sort()
        while ids:
            n, step = 1, ids[1] - ids[0] if len(ids) > 1 else 0
            while n < len(ids) and ids[n] - ids[n - 1] == step:
                n += 1
            out.append((ids[0], step if n > 1 else 0, n, weight))
            ids = ids[n:]
    return out


def table(model, rows):
    out = [f"# The units of {MODELS[model]}: the counters of each.  XProf 2.24.2 gave them, one counter at a time.",
           "# Written by tests/parity/counter_units.py; units.py explains the lines."]
    for row in rows:
        kind, factor, of = peak_of(row, rows)
        out.append(f"unit {row['node']} {row['unit'].upper()} {row['when']} {kind} {of} {factor} {row['name']}")
        out += [" ".join(map(str, run)) for run in runs_of(row["parts"])]
    return "\n".join(out) + "\n"


def main():
    different = 0
    with tempfile.TemporaryDirectory() as scratch, XProf(scratch=scratch) as xprof:
        for model, device_type in MODELS.items():
            ids = sorted({c["val"] for c in counter_extractor.get_all_counters(model)})
            rows = derive(Asked(xprof, scratch, device_type), ids)
            path = os.path.join(TOP, FOLDER, f"units_{model}.txt")
            text = table(model, rows)
            print(f"{device_type}: {len(ids)} counters, {len(rows)} rows, {sum(len(r['parts']) for r in rows)} parts")
            if "--write" in sys.argv:
                with open(path, "w") as f:
                    f.write(text)
            with open(path) as f:
                if f.read() != text:
                    print(f"DIFFERENT {FOLDER}/units_{model}.txt: tests/parity/counter_units.py --write")
                    different += 1
    print(f"{len(MODELS) - different} passed, {different} failed")
    sys.exit(different != 0)


if __name__ == "__main__":
    main()
