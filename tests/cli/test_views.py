#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time of a step and its parts, asked of every view of twenty runs: each number is that of time_breakdown.

usage: test_views.py XPLANECTL
"""
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import subprocess

from harness import DATA, ROOT, Case, Programs, environment, main

CASES = ROOT / "tests" / "golden" / "cases"
RUNS = [DATA / name for name in ("jax_matmul_nopy", "jax_8dev_shardmap", "jax_4hosts", "jax_odd_names", "jax_empty", "remote_idle_host",
                                 "tf_custom_h2p0", "tf_xla_jit", "tf_keras_tensorboard", "tf_bfc_memory")]
RUNS += [CASES / name for name in ("gen_gpu_costed", "gen_gpu_tf", "gen_tpu_steps", "gen_cpu_jax", "gpu_graph_kernels")]
RUNS += sorted((ROOT / "tests" / "data" / "steps").glob("*.gz"))
# What a device that computes, communicates or copies does; the rest is waiting.
WORK = ("compute", "overlapped_collectives", "exposed_collectives", "host_copies", "device_copies", "callback")


class Truth:
    """What time_breakdown says of a run."""

    def __init__(self, answer):
        devices = [d for host in answer["hosts"] for d in host.get("devices", [])]
        used = [d for d in devices if any(d[c + "_ps"] for c in WORK)] or devices
        self.devices = len(used)
        self.wall = sum(d["wall_ps"] for d in used)
        self.causes = [k[:-3] for d in devices[:1] for k in d if k.endswith("_ps") and k not in ("wall_ps", "begin_ps")]
        self.parts = {c: sum(d[c + "_ps"] for d in used) for c in self.causes}
        for d in devices:  # the rows of a device add up to it
            for key in ["wall"] + self.causes:
                assert sum(s[key + "_ps"] for s in d["steps"]) == d[key + "_ps"], (d["device"], key)
        steps = [{(s["name"], s["step"]): s["wall_ps"] for s in d["steps"] if s["step"] is not None and s["wall_ps"]} for d in used]
        self.steps = {k: max(of.get(k, 0) for of in steps) for of in steps for k in of}
        # Means are of the device whose steps take longest in total; a step that it lacks, of the slowest that has it.
        slowest = max(steps, key=lambda of: sum(of.values()), default={})
        self.series = {}
        for (name, number), ps in self.steps.items():
            self.series.setdefault(re.sub(r" -?\d+$", "", name), []).append(slowest.get((name, number), ps))
        # Where a program has several loops, that of the longest steps together is followed.
        self.followed = max(self.series.values(), key=sum, default=[])


class Views(Case):
    def document(self, *arguments):
        done = subprocess.run([os.path.abspath(Programs.xplanectl), *map(str, arguments)], capture_output=True, text=True,
                              env=environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def ask_all(self, run):
        """The run in each view that takes one run."""
        return run, {"truth": Truth(self.document("analyze", "time_breakdown", run)),
                     "findings": self.document("findings", run, "--json"),
                     "compare": self.document("compare", run, run, "--json"),
                     "aggregate": self.document("aggregate", run, "--json"),
                     "summary": self.document("summary", run, "--json"),
                     "overview": self.document("analyze", "overview_page", run)}

    def check_findings(self, truth, findings):
        self.assertEqual(findings["steps"], len(truth.steps))
        for cause, ps in truth.parts.items():
            share = 100 * ps / truth.wall if truth.wall else 0
            self.assertAlmostEqual(findings["times"][cause + "_percent"], share, delta=0.00051, msg=cause)

    def check_compare(self, truth, compare):
        side = compare["a"]
        self.assertEqual(side["devices"], truth.devices)
        self.assertEqual({s["name"]: s["steps"] for s in side["series"]}, {k: len(v) for k, v in truth.series.items()})
        for series in side["series"]:
            self.assertAlmostEqual(series["mean_step_ps"], statistics.fmean(truth.series[series["name"]]), delta=1)
        parts = {t["cause"]: t["a_ps"] for t in compare["times"]}
        for cause, ps in truth.parts.items():
            self.assertAlmostEqual(parts[cause], ps / (truth.devices * max(len(truth.steps), 1)), delta=1, msg=cause)

    def check_aggregate(self, truth, aggregate):
        if truth.steps:
            self.assertEqual((aggregate["runtime"]["of"], aggregate["runtime"]["samples"]), ("steps", len(truth.followed)))
            self.assertAlmostEqual(aggregate["runtime"]["mean_ps"], statistics.fmean(truth.followed), delta=1)

    def check_shown(self, truth, summary, overview):
        """Each step of the summary, and the mean of the followed ones on the overview page, in ms of one digit."""
        self.assertEqual({(s["name"], s["step"]): s["slowest_core_ps"] for s in summary["steps"]}, truth.steps)
        if truth.steps:
            average = float(overview[1]["p"]["steptime_ms_average"])
            self.assertAlmostEqual(average, statistics.fmean(truth.followed) / 1e9, delta=0.051)

    def check_history(self, truths):
        """One request for all runs, each in a session of its own."""
        sessions = self.place / "plugins" / "profile"
        for i, run in enumerate(RUNS):
            place = sessions / f"run{i:02}"
            if run.is_dir():
                shutil.copytree(run, place, ignore=lambda _, names: [n for n in names if ".xplane.pb" not in n])
            else:
                place.mkdir(parents=True)
                shutil.copy(run, place)
        causes = truths[0].causes
        options = [o for metric in ["step_time"] + causes for o in ("--metric", metric)]
        metrics = self.document("history", "--json", "--dir", self.place, "--last", "100", *options)["metrics"]
        values = {m["metric"]: {p["session"]: p["value"] for p in m["points"]} for m in metrics}
        for i, truth in enumerate(truths):
            with self.subTest(history=RUNS[i].name):
                units = truth.devices * max(len(truth.steps), 1)
                for cause, ps in truth.parts.items():
                    self.assertAlmostEqual(values[cause][f"run{i:02}"], ps / units, delta=1, msg=cause)
                if truth.steps:
                    self.assertAlmostEqual(values["step_time"][f"run{i:02}"], statistics.fmean(truth.followed), delta=1)

    def test_views(self):
        self.assertGreaterEqual(len(RUNS), 20)
        truths = []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for run, asked in pool.map(self.ask_all, RUNS):
                truths.append(asked["truth"])
                with self.subTest(run=run.name):
                    self.check_findings(asked["truth"], asked["findings"])
                    self.check_compare(asked["truth"], asked["compare"])
                    self.check_aggregate(asked["truth"], asked["aggregate"])
                    self.check_shown(asked["truth"], asked["summary"], asked["overview"])
        self.check_history(truths)


if __name__ == "__main__":
    main("xplanectl")
