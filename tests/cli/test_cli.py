#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line from outside: what it says, what it leaves.

usage: test_cli.py XPLANECTL XPLANED FAKE_PROFILER [CLASS[.TEST]]...
"""
import gzip
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from harness import DATA, PROFILE, ROOT, Case, Programs, environment, main, wait_until

RPC_NAMES = ("ListSessions", "GetSession", "ListTools", "ListCaptures", "ListSchedules",
             "StreamToolData", "GetToolData", "DeleteSession", "ProfileResponse")
BUNDLE = ROOT / "tests" / "data" / "iree" / "vk-mlp-all.ireeprof"


def wire(number, value):
    """A field of a message: an unsigned number, a text or bytes."""
    def varint(n):
        return (bytes([n & 127 | 128]) + varint(n >> 7)) if n > 127 else bytes([n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    body = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(body)) + body


def two_loops(counts):
    """An XSpace of one CPU: "train" 0 of 9 us, "eval" 0 of 5 us, "train" 1, ...; each runs one op."""
    def table(field, *names):
        return b"".join(wire(field, wire(1, i) + wire(2, wire(1, i) + wire(2, name))) for i, name in enumerate(names, 1))

    def event(metadata, begin_us, us, *stats):
        return wire(4, wire(1, metadata) + wire(2, begin_us * 10**6) + wire(3, us * 10**6) + b"".join(
            wire(4, wire(1, stat) + wire(4 if isinstance(value, int) else 5, value)) for stat, value in stats))
    begin = wire(3, 1_700_000_000 * 10**9)
    steps = b"".join(event(1 + i % 2, i * 10, 5 if i % 2 else 9, (1, 1), (2, i // 2)) for i in range(2 * counts))
    ops = b"".join(event(3, i * 10 + 1, 2, (3, "fusion.1"), (4, "jit_step"), (5, 6)) for i in range(2 * counts))
    return wire(1, wire(2, "/host:CPU") + wire(3, wire(1, 1) + wire(2, "python") + begin + steps) +
                wire(3, wire(1, 2) + wire(2, "tf_XLAEigen/2") + begin + ops) + table(4, "train", "eval", "fusion.1") +
                table(5, "_r", "step_num", "hlo_op", "hlo_module", "program_id"))


class Words(Case):
    def says(self, status, *arguments):
        code, out, err = self.ask(*arguments)
        self.assertEqual(code, status, err)
        for name in RPC_NAMES:
            self.assertNotIn(name, out + err)
        return err

    def test_findings(self):
        """A table, or the JSON that docs/cli-json.md lists; of files and of sessions the same."""
        def keys_of(section):
            text = (ROOT / "docs" / "cli-json.md").read_text().split("## findings", 1)[1].split("\n## ", 1)[0]
            text = text.split("Of `findings`:")[section].split("\n\nOf ")[0]
            return {key for line in text.splitlines() if line.startswith("| `")
                    for key in re.findall(r"`(\w+)`", line.split("|")[1])}
        four = self.logdir / "plugins" / "profile" / "four"
        shutil.copytree(PROFILE.parent.parent / "jax_4hosts", four)
        status, out, err = self.ask("findings", four, "--format", "json")
        self.assertEqual((status, err), (0, ""))
        answer = json.loads(out)
        self.assertEqual(set(answer), keys_of(0))
        self.assertGreater(len(answer["findings"]), 1)
        for f in answer["findings"]:
            self.assertEqual(set(f), keys_of(1))
            self.assertLessEqual(f["saving_percent"], f["share_percent"] + (100 if f["kind"] == "stragglers" else 1e-9))
            self.assertIn(f"| `{f['kind']}` |", (ROOT / "docs" / "findings.md").read_text())
        savings = [f["saving_percent"] for f in answer["findings"]]
        self.assertEqual(savings, sorted(savings, reverse=True))
        self.assertAlmostEqual(sum(answer["times"].values()), 100, delta=0.1)
        status, table, err = self.ask("findings", four)
        self.assertRegex(table, r"\nFindings\n  Each step [a-z].* of .*\.\n  1\. [A-Z][a-z ]+ \(could save [0-9.]+%\): ")
        self.daemon()
        self.assertEqual(self.ask("findings", "four", "--json"), (0, out, ""))
        self.assertEqual(self.ask("findings", "four"), (0, table, ""))
        summary = self.ask("summary", "four")[1]
        self.assertIn(table, summary)
        self.assertLess(summary.index("\nFindings\n"), summary.index("\nSteps\n"))
        self.assertIn("table, csv or json", self.says(2, "findings", "four", "--format", "yaml"))
        self.assertIn("taken for a session", self.says(1, "findings", "none/such"))

    def test_collectives(self):
        """Sizes and groups as the instructions say, rates as NCCL's tests count them; what is known adds up."""
        run = PROFILE.parent.parent / "jax_8dev_shardmap"
        alike, ops, *_ = json.loads(self.ask("analyze", "collectives", run)[1])
        ids = [c["id"] for c in alike["cols"]]
        rows = {row[0]: dict(zip(ids, row)) for row in ([c.get("v") for c in r["c"]] for r in alike["rows"])}
        self.assertEqual({kind: (r["size_bytes"], r["group_size"], r["groups"]) for kind, r in rows.items()},
                         {"all-gather": (262144, 4, 2), "reduce-scatter": (262144, 4, 2), "collective-permute": (65536, None, None),
                          "all-to-all": (65536, 4, 2), "all-reduce": (65536, 2, 4)})
        known = json.loads(self.ask("analyze", "op_list", run)[1])["ops"]
        for kind, factor in (("all-gather", 0.75), ("reduce-scatter", 0.75), ("all-to-all", 0.75), ("all-reduce", 1),
                             ("collective-permute", 1)):
            row, op = rows[kind], next(o for o in known if o["category"] == kind)
            self.assertAlmostEqual(row["total_time"], op["time_ps"] / 1e6)
            self.assertEqual((row["occurrences"], row["ops"]), (op["occurrences"], 1))
            self.assertAlmostEqual(row["communication_time"] + row["waiting_time"], row["total_time"])
            self.assertAlmostEqual(row["algorithm_bandwidth"], row["size_bytes"] / row["min_time"] / 1e3, places=6)
            self.assertAlmostEqual(row["bus_bandwidth"], factor * row["algorithm_bandwidth"], places=6)
        self.assertEqual(len(ops["rows"]), 5)
        table = self.ask("analyze", "collectives", run, "--table")[1]
        self.assertRegex(table, r"\nall-gather +256 KiB +4 +2 +1 +160 ")

    def test_compare_loops(self):
        """Loops of a program that count alike have steps of their own."""
        run = self.logdir / "loops.xplane.pb"
        run.write_bytes(two_loops(6))
        status, out, err = self.ask("compare", run, run, "--json")
        self.assertEqual((status, err), (0, ""))
        a = json.loads(out)["a"]
        self.assertEqual((a["steps"], a["devices"], a["mean_step_ps"]), (6, 1, 10_000_000))
        self.assertEqual([(s["name"], s["steps"]) for s in a["series"]], [("eval", 6), ("train", 6)])
        self.assertAlmostEqual(a["series"][0]["mean_step_ps"], 55e6 / 6, places=3)  # the last one ends with its annotation

    def test_compare(self):
        """Differences add up, ops match across runs, thresholds give status 4."""
        runs = PROFILE.parent.parent
        four, eight = runs / "jax_4hosts", runs / "jax_8dev_shardmap"
        status, out, err = self.ask("compare", four, eight, "--format", "json")
        self.assertEqual((status, err), (0, ""))
        both = json.loads(out)
        text = (ROOT / "docs" / "cli-json.md").read_text().split("## compare", 1)[1].split("\n## ", 1)[0]
        rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| `")}
        self.assertEqual(set(both), {key for row in rows for key in re.findall(r"`(\w+)`", row)})
        for key, row in rows.items():
            for name in re.findall(r"`(\w+)`", key):
                member = both[name][0] if isinstance(both[name], list) and both[name] else both[name]
                for inner in member or ():
                    self.assertIn(f"`{inner}`", row)
        for rows in ("times", "ops", "kernels"):
            for side in ("a_ps", "b_ps", "difference_ps"):
                self.assertAlmostEqual(sum(row[side] for row in both[rows]), both[rows + "_total"][side], delta=1)
        self.assertEqual((both["a"]["steps"], both["a"]["devices"], both["b"]["devices"]), (20, 4, 1))
        low, high = both["step_time"]["interval_ps"]
        self.assertTrue(low < both["step_time"]["difference_ps"] < high < 0)
        window = json.loads(self.ask("analyze", "time_breakdown", four)[1])["hosts"]
        self.assertAlmostEqual(sum(t["a_ps"] for t in both["times"]) / (sum(h["wall_ps"] for h in window) / 80), 1, places=6)
        for run, key in ((four, "a_ps"), (eight, "b_ps")):
            ops = json.loads(self.ask("analyze", "op_list", run)[1])["ops"]
            units = 80 if key == "a_ps" else 20
            self.assertAlmostEqual(sum(o[key] for o in both["ops"]) / (sum(o["self_time_ps"] for o in ops) / units), 1, places=6)
        for o in both["ops"]:
            self.assertEqual(o["state"], "both" if o["a_count"] and o["b_count"] else "new" if o["b_count"] else "vanished")
        self.assertIn("all-reduce", {o["op"].split(".")[0] for o in both["ops"]} | {o["category"] for o in both["ops"]})
        same = json.loads(self.ask("compare", four, f"{four},{four}", "--json")[1])
        self.assertEqual((same["b"]["steps"], same["step_time"]["difference_ps"]), (40, 0))
        self.assertTrue(all(abs(o["difference_ps"]) < 1 and o["state"] == "both" for o in same["ops"]))
        single = ("--allow-single", "--fail-if")
        status, out, err = self.ask("compare", eight, four, *single, "step_time>5%")
        self.assertEqual(status, 4)
        self.assertRegex(err, r"step_time differs by ×[0-9.]+ \(95%: ×[0-9.]+ to ×[0-9.]+\): step_time>5% is met\n")
        self.assertRegex(out, r"^Step time, slowest device  [0-9.]+ ms \(20 steps\) -> [0-9.]+ ms \(20 steps\), ×[0-9.]+, "
                         r"difference \+[0-9.]+ ms to \+[0-9.]+ ms \(95%\)\nOne run a side: .*\nMedian step  4\.[0-9]+ ms -> ")
        self.assertEqual(self.ask("compare", four, eight, *single, "exposed_collectives<-50%")[0], 4)
        # Not met, met, and not to be told from noise; the cautious fail where it is possible.
        for a, b, threshold, expected in ((eight, eight, "step_time>20%", 0), (four, four, "step_time>5%", 5),
                                          (four, four, "median_step_time>900%", 0), (eight, four, "step_time<-5%", 0),
                                          (four, eight, "step_time>-95%", 5), (four, eight, "step_time>-120%", 4),
                                          (four, f"{four},{four}", "step_time>5%", 0), (four, f"{four},{four}", "step_time>-1%", 4)):
            self.assertEqual(self.ask("compare", a, b, *single, threshold)[0], expected, (a, b, threshold))
        status, out, err = self.ask("compare", four, four, *single, "step_time>5%")
        self.assertRegex(err, r"^xplanectl: step_time differs by \+0.00% \(95%: -[0-9.]+% to \+[0-9.]+%\): step_time>5% cannot be told "
                         r"from noise; (about [0-9]+|over 100) runs a side ")
        status, out, err = self.ask("compare", four, four, "--allow-single", "--fail-if-possible", "step_time>5%")
        self.assertEqual(status, 4)
        self.assertIn("step_time>5% is possible\n", err)
        for possible in ("", "-possible"):
            status, out, err = self.ask("compare", eight, four, "--fail-if" + possible, "step_time>5%")
            self.assertEqual(status, 5)
            self.assertIn("one run a side cannot tell noise from change", err)
        self.assertIn('--fail-if-possible "x>5%", character 1: unknown metric',
                      self.says(2, "compare", four, four, "--fail-if-possible", "x>5%"))
        for bad, words in (("step_tim>5%", 'character 1: unknown metric "step_tim"; did you mean "step_time"?'),
                           ("steptime=5%", 'character 1: unknown metric "steptime"; did you mean "step_time"?'),
                           ("step_time=5%", "character 10: > or < is missing"), ("step_time", "character 10: > or < is missing"),
                           ("step_time >5%", "character 10: > or < is missing"), ("step_time>=5%", "character 11: a number is missing"),
                           ("step_time>%", "character 11: a number"), ("step_time>-%", "character 12: a number"),
                           ("step_time>-.x%", "character 13: a number"), ("step_time>5", "character 12: % is missing"),
                           ("step_time>5ms", "character 12: % is missing"), ("step_time>5.5.5%", "character 14: % is missing"),
                           ("step_time>5%x", "character 13: unexpected text after %"), ("step_time>5%,input>1%", "character 13: unexpected"),
                           ("step_time>" + "0" * 90 + "5!", "character 102: % is missing"), ("memory>5%", "\nMetrics: step_time, median_step_time, compute, "),
                           ("x" * 300 + ">5%", "unknown metric"), (">5%", "character 1: a metric is missing"), ("input>0x5%", "character 8: %"),
                           ("input>inf%", "character 7: a number"), ("input>nan%", "character 7: a number"), ("input>1e999%", "too large")):
            status, out, err = self.ask("compare", four, four, "--fail-if", bad)
            self.assertEqual((status, out), (2, ""), bad)  # before anything is read
            self.assertIn(words, err)
            self.assertLess(len(err), 400)
        self.assertIn("no input is known", self.says(1, "compare", BUNDLE, BUNDLE, "--fail-if", "input>5%"))
        self.assertIn("character 11: a number", self.says(2, "compare", four, four, "--fail-if", "step_time>x"))
        self.assertIn("character 12: %", self.says(2, "compare", four, four, "--fail-if", "step_time>5"))
        self.says(1, "compare", runs / "jax_2proc_samehost", four)
        self.assertIn("character 3: a run is missing", self.says(2, "compare", "a,,b", four))

    def test_compare_unknown(self):
        """What a side without steps, or with one, does not tell is null in JSON, and said to be not known."""
        runs = ROOT / "tests/data/logdir"
        empty, one, usual = runs / "cpu/plugins/profile/jax_empty", runs / "accel/plugins/profile/gpu_multi_worker", PROFILE.parent
        for a, b in ((empty, usual), (usual, empty), (empty, empty)):
            both = json.loads(self.ask("compare", a, b, "--json")[1])
            for side, run in ((both["a"], a), (both["b"], b)):
                keys = ("mean_step_ps", "median_step_ps", "std_step_ps")
                self.assertEqual([side[k] is None for k in keys], [run == empty] * 3)
            self.assertIsNone(both["step_time"]["difference_ps"])
            self.assertIsNone(both["step_time"]["difference_percent"])
            self.assertIsNone(both["step_time"]["noise"])
            self.assertIn("not known (0 steps)", self.ask("compare", a, b)[1])
        side = json.loads(self.ask("compare", one, usual, "--json")[1])["a"]
        self.assertEqual((side["steps"], side["mean_step_ps"], side["std_step_ps"]), (1, side["median_step_ps"], None))
        known = json.loads(self.ask("aggregate", empty, "--json")[1])
        self.assertEqual([known["runtime"][k] for k in ("samples", "mean_ps", "min_ps", "max_ps", "std_ps")], [0] + [None] * 4)
        self.assertIsNone(known["flops"]["busy_ps"])
        known = json.loads(self.ask("aggregate", one, "--json")[1])["runtime"]
        self.assertEqual((known["samples"], known["min_ps"], known["std_ps"]), (1, known["mean_ps"], None))
        self.assertRegex(self.ask("aggregate", one)[1], r"\n  standard deviation +not known\n")

    def test_compare_gpu(self):
        """Kernels and allocators of GPUs, which have no ops of XLA's here."""
        run = ROOT / "tests" / "data" / "logdir" / "accel" / "plugins" / "profile" / "gpu_multi_worker"
        other = run.parent / "mi300_jax_gemm"
        both = json.loads(self.ask("compare", run, other, "--json")[1])
        known = json.loads(self.ask("analyze", "kernel_stats", run)[1])
        ids = [c["id"] for c in known["cols"]]
        ns = sum(r["c"][ids.index("total_duration_us")]["v"] for r in known["rows"]) * 1000
        self.assertAlmostEqual(both["kernels_total"]["a_ps"] * both["a"]["devices"] / ns / 1000, 1, places=6)
        self.assertEqual({k["state"] for k in both["kernels"]}, {"new", "vanished"})
        self.assertTrue(all(m["a_peak_bytes"] > 0 for m in both["memory"] if m["state"] == "vanished"))
        table = self.ask("compare", run, other)[1]
        self.assertRegex(table, r"\nKERNEL PER STEP +OP ")
        for side, of in (("a", run), ("b", other)):  # two GPUs of the first are idle in its only step
            found = json.loads(self.ask("findings", of, "--json")[1])
            self.assertEqual((both[side]["devices"], both[side]["hosts"]), (found["devices"], found["hosts"]))
            for t in both["times"]:
                share = 100 * t[f"{side}_ps"] / both["times_total"][f"{side}_ps"]
                self.assertAlmostEqual(share, found["times"][f"{t['cause']}_percent"], places=2, msg=t["cause"])
        self.assertRegex(table, r"\nPEAK MEMORY +A +B +DIFFERENCE\n")

    def test_aggregate(self):
        """Repeats: runtimes of steps, FLOPs as op_profile has them; of files and of sessions the same."""
        runs = ROOT / "tests" / "data" / "logdir"
        four, gemm = runs / "cpu/plugins/profile/jax_4hosts", runs / "accel/plugins/profile/mi300_jax_gemm"
        status, out, err = self.ask("aggregate", four, four, "--json")
        self.assertEqual((status, err), (0, ""))
        all_runs = json.loads(out)
        text = (ROOT / "docs" / "cli-json.md").read_text().split("## aggregate", 1)[1].split("\n## ", 1)[0]
        rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| `")}
        self.assertEqual(set(all_runs), {key for row in rows for key in re.findall(r"`(\w+)`", row)})
        side = json.loads(self.ask("compare", four, four, "--json")[1])["a"]
        self.assertEqual((all_runs["runtime"]["samples"], all_runs["runtime"]["of"]), (40, "steps"))
        self.assertAlmostEqual(all_runs["runtime"]["mean_ps"], side["mean_step_ps"])
        self.assertIsNone(all_runs["flops"]["peak_flops_per_second"])
        for run in (gemm, four):
            one = json.loads(self.ask("aggregate", run, "--format", "json")[1])
            for name, members in (("runtime", one["runtime"]), ("compile", one["compile"]), ("flops", one["flops"]),
                                  ("memory", one["memory"][0] if one["memory"] else {})):
                for key in members:
                    self.assertIn(f"`{key}`", rows[f"`{name}`"])
            root = json.loads(self.ask("analyze", "op_profile", run, "--option", "group_by=category")[1])["byCategoryExcludeIdle"]["metrics"]
            steps = one["runtime"]["samples"] if one["runtime"]["of"] == "steps" else 1
            for key, theirs in (("model_flops", "rawFlops"), ("bf16_flops", "bf16Flops"), ("busy_ps", "rawTime")):
                self.assertAlmostEqual(one["flops"][key] * steps / root[theirs], 1, places=6)
        self.assertAlmostEqual(one["flops"]["model_flops_per_second"] * one["flops"]["busy_ps"] / 1e12 / one["flops"]["model_flops"], 1)
        table = self.ask("aggregate", four, four)[1]
        self.assertRegex(table, r"^Runtime of 40 steps, 2 runs\n  mean +36\.8 ms\n")
        one_step = runs / "accel/plugins/profile/gpu_multi_worker"
        self.assertTrue(self.ask("aggregate", one_step)[1].startswith("Runtime of 1 step, 1 run\n"))
        self.assertTrue(self.ask("aggregate", gemm)[1].startswith("Runtime of 6 steps, 1 run\n"))
        for run in (runs / "cpu/plugins/profile/jax_empty", ROOT / "tests/data/iree/task-mlp-all.ireeprof"):
            table = self.ask("aggregate", run, run)[1]  # nothing that took 0 ps
            self.assertTrue(table.startswith("Runtime of 2 runs: none, no step and no device's time is known\n  compile time"), table)
        self.assertIn("table, csv or json", self.says(2, "aggregate", four, "--format", "cvs"))
        self.says(1, "aggregate", four, runs / "none")
        shutil.copytree(four, self.logdir / "plugins" / "profile" / "four")
        self.daemon()
        self.assertEqual(self.ask("aggregate", "four", "four", "--json"), (0, out, ""))
        self.assertEqual(self.ask("aggregate", "four", four, "--json"), (0, out, ""))

    def test_compare_sessions(self):
        """Of sessions the daemon says what files say, over gRPC and HTTP; groups, too."""
        runs = PROFILE.parent.parent
        for name in ("jax_4hosts", "jax_8dev_shardmap"):
            shutil.copytree(runs / name, self.logdir / "plugins" / "profile" / name)
        partly = shutil.copytree(runs / "jax_8dev_shardmap", self.logdir / "plugins" / "profile" / "partly")
        (partly / "broken.xplane.pb").write_bytes(b"\x0a\xff")
        shutil.copytree(partly, self.logdir / "plugins" / "profile" / "bad2")
        shutil.copytree(partly, self.logdir / "plugins" / "profile" / "bad", ignore=shutil.ignore_patterns("[!b]*"))
        files = self.ask("compare", f"{runs}/jax_4hosts,{runs}/jax_4hosts", runs / "jax_8dev_shardmap", "--json")
        self.assertEqual(files[0], 0, files[2])
        daemon = self.daemon()
        sessions = "jax_4hosts,jax_4hosts", "jax_8dev_shardmap"
        self.assertEqual(self.ask("compare", *sessions, "--json"), files)
        self.assertEqual(self.ask("compare", sessions[0], runs / "jax_8dev_shardmap", "--json"), files)
        route = f"http://{daemon.http}/api/v1/compare?"
        with urllib.request.urlopen(route + "a=jax_4hosts&a=jax_4hosts&b=jax_8dev_shardmap") as answer:
            self.assertEqual(json.load(answer), json.loads(files[1]))
            self.assertIsNone(answer.headers["Xplaned-Warning"])
        with urllib.request.urlopen(route + "a=partly&b=jax_4hosts") as answer:
            self.assertTrue(answer.headers["Xplaned-Warning"].startswith("partly: broken: "))
        # Of several sessions in their order, whichever answers first.
        warned = re.findall(r"warning: (\w+): broken: ", self.ask("compare", "partly,jax_4hosts", "bad2,partly")[2])
        self.assertEqual(warned, ["partly", "bad2", "partly"])
        for query, code, text in (("a=jax_4hosts", 400, "no session is named as b"), ("b=jax_4hosts", 400, "no session is named as a"),
                                  ("", 400, "no session is named as a"), ("a=jax_4host&b=jax_4hosts", 404, "jax_4hosts"),
                                  ("a=bad&a=partly&b=jax_4hosts", 422, "bad: ")):
            with self.assertRaises(urllib.error.HTTPError) as failure, urllib.request.urlopen(route + query):
                pass
            self.assertEqual(failure.exception.code, code)
            self.assertIn(text, failure.exception.read().decode())
        self.assertIn("did you mean", self.says(1, "compare", "jax_4host", "jax_4hosts"))
        self.assertEqual(self.ask("compare", "jax_8dev_shardmap", "jax_4hosts", "--fail-if", "step_time>5%")[0], 5)

    def test_summary(self):
        """The slowest core's average is the overview's step time; --host and --json are meant."""
        shutil.copytree(PROFILE.parent.parent / "jax_4hosts", self.logdir / "plugins" / "profile" / "four")
        self.daemon()
        status, out, err = self.ask("summary", "four", "--json")
        self.assertEqual((status, err), (0, ""))
        all_hosts = json.loads(out)
        self.assertEqual(len(all_hosts["hosts"]), 4)
        self.assertEqual(set(all_hosts["memory"]), set(all_hosts["hosts"]))
        found = json.loads(self.ask("findings", "four", "--json")[1])["findings"]
        self.assertEqual(all_hosts["findings"], found)
        outliers = next(f["text"] for f in found if f["kind"] == "step_outliers")
        self.assertTrue(outliers.endswith("the extra time is mostly exposed collectives"), outliers)
        means = [s["mean_of_cores_ps"] for s in all_hosts["steps"]]
        slowest = [s["slowest_core_ps"] for s in all_hosts["steps"]]
        self.assertTrue(all(a >= b for a, b in zip(slowest, means)) and sum(slowest) > sum(means))
        # Numbers are the program's, as the names have them, and not those of XProf's groups.
        self.assertEqual([s["name"] for s in all_hosts["steps"]],
                         [f"train {s['step']}" for s in all_hosts["steps"]])
        self.assertRegex(self.ask("summary", "four")[1], r"\n +1  train 1 ")
        status, out, err = self.ask("tool", "overview_page", "four")
        table = next(t for t in json.loads(out) if "stepTimeMs" in [c["id"] for c in t.get("cols", [])])
        self.assertEqual(len(table["rows"]), len(means))
        hosts = json.loads(self.ask("tool", "time_breakdown", "four", "--option", "view=steps")[1])["hosts"]
        self.assertEqual(table["p"]["steptime_ms_average"], f"{max(sum(h['steps']['wall_ps']) for h in hosts) / len(means) / 1e9:.1f}")
        status, out, err = self.ask("summary", "four")
        self.assertIn(f"  {len(means)} steps, average ", out)
        self.assertRegex(out, r"\(means of the cores\); average of the slowest core [0-9.]+ ms")
        self.assertRegex(out, r"\nDevice   CPU, [1-9][0-9]* recorded threads\b")
        self.assertIn("\nDevice   CPU\n", self.ask("summary", PROFILE.parent.parent / "remote_idle_host")[1])
        host = all_hosts["hosts"][1]
        status, out, err = self.ask("summary", "four", "--host", host)
        self.assertIn(f"Hosts    1 of 4: {host}\n", out)
        one = json.loads(self.ask("summary", "four", "--host", host, "--json")[1])
        self.assertEqual((one["hosts"], list(one["memory"])), ([host], [host]))
        self.assertLess(sum(o["occurrences"] for o in one["device_ops"]),
                        sum(o["occurrences"] for o in all_hosts["device_ops"]))

    def test_summary_columns(self):
        """What Reactant's @profile prints, in the table and in JSON: launches of kernels, rates of ops, what memory holds."""
        for name, of in (("gemm", "mi300_jax_gemm"), ("bert", "gpu_multi_worker")):
            shutil.copytree(ROOT / "tests" / "data" / "logdir" / "accel" / "plugins" / "profile" / of,
                            self.logdir / "plugins" / "profile" / name)
        self.daemon()
        out = self.ask("summary", "gemm")[1]
        self.assertRegex(out, r"\ngemm_fusion_dot_general.1 .* 6\.71 TFLOP/s +73\.2 GiB/s  HBM ")
        self.assertRegex(out, r"\ngemm_fusion_dot_general_1\.kd .* 256x1x1  256x1x1 +\u2013 +0 B +\u2013  yes  ")
        held = out.split("\nGreatest allocations at the peak\n")[1]
        self.assertRegex(held, r"\nmi300_jax_gemm  GPU_0_bfc +256 MiB +2\n.* 128 MiB +2\n.* 76\.0 MiB +1\n")
        text = (ROOT / "docs" / "cli-json.md").read_text().split("## summary", 1)[1]
        answer = json.loads(self.ask("summary", "gemm", "--json")[1])
        for member in (answer, answer["device"], answer["device_ops"][0], answer["kernels"][0]):
            for key in member:
                self.assertIn(f"`{key}`", text)
        op = next(o for o in answer["device_ops"] if o["name"] == "gemm_fusion_dot_general.1")
        self.assertAlmostEqual(op["gigaflops_per_second"], 6710, delta=10)
        self.assertEqual((answer["kernels"][0]["grid"], answer["kernels"][0]["block"]), ([32, 37, 1], [256, 1, 1]))
        held = self.ask("summary", "bert")[1].split("\nGreatest allocations at the peak\n")[1]
        self.assertRegex(held, r"GPU_4_bfc +59\.6 MiB +1  replica_4/bert_span_labeler/bert_encoder_1/word_embeddings/G\u2026 +output +half +"
                               r"\[30522,1024\]")

    def test_units(self):
        for flag in ("duration", "delay", "every", "keep-age", "connect-timeout", "answer-timeout"):
            for form in ([f"--{flag}", "5"], [f"--{flag}=5"]):
                err = self.says(2, "capture", "127.0.0.1:1", *form)
                self.assertIn(f"--{flag} 5: a unit is missing; write 5s or 5ms\n", err)
        err = self.says(2, "capture", "127.0.0.1:1", "--every", "1m", "--keep-bytes", "20")
        self.assertIn("--keep-bytes 20: a unit is missing; write 20GiB or 20B\n", err)
        self.assertIn("no time", self.says(2, "capture", "127.0.0.1:1", "--duration", "soon"))
        for flag, value, bounds in (("duration", "0", "1ms to 1h"), ("duration", "61m", "1ms to 1h"),
                                    ("delay", "2h", "0 to 1h"), ("every", "10ms", "1s to 366d"),
                                    ("keep-bytes", "2000000TiB", "0 to 1048576TiB")):
            self.assertIn(f"--{flag} {value}: not from {bounds}\n",
                          self.says(2, "capture", "127.0.0.1:1", f"--{flag}", value))
        for value in ("-1", "x", "1.5", "101", "5000000000", ""):
            self.assertIn(f"--retries {value}: not a number from 0 to 100\n",
                          self.says(2, "capture", "127.0.0.1:1", f"--retries={value}"))
        # 0 needs no unit: the capture fails later, because nothing listens there.
        self.says(1, "capture", "127.0.0.1:1", "--direct", "--logdir", self.logdir, "--delay", "0")
        # A value below the smallest unit is not 0, which has another meaning.
        for flag, value, least in (("duration", "0.0004s", "1ms"), ("keep-bytes", "0.5B", "1B")):
            self.assertIn(f"--{flag} {value}: less than {least}\n",
                          self.says(2, "capture", "127.0.0.1:1", "--every", "1m", f"--{flag}", value))

    def test_help_of_a_command(self):
        whole = self.ask("--help")[1]
        code, out, err = self.ask("capture", "--help")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("Usage: xplanectl [options] capture TARGET", out)
        self.assertIn("--continuous", out)
        self.assertIn("xplanectl help options", out)
        self.assertNotIn("--tls-roots", out)
        self.assertNotIn("--continuous", self.ask("--help", "hosts")[1])
        self.assertIn("xplanectl help tool-options", self.ask("tool", "-h")[1])
        self.assertEqual(self.ask("--help", "frobnicate")[1], whole)

    def test_missing_logdir(self):
        missing = self.place / "a" / "b"
        err = self.says(1, "capture", "127.0.0.1:1", "--direct", "--logdir", missing)
        self.assertIn(f"--logdir {missing} was missing, and is made\n", err)
        self.assertTrue(missing.is_dir())
        (self.place / "file").touch()
        err = self.says(1, "capture", "127.0.0.1:1", "--direct", "--logdir", self.place / "file" / "x")
        self.assertIn("file", err)
        self.assertNotIn("is made", err)

    def test_near(self):
        self.assertIn('unknown command "sesions"; did you mean "sessions"?',
                      self.says(2, "sesions"))
        self.assertIn('"--durtion"; did you mean "--duration"?',
                      self.says(2, "capture", "127.0.0.1:1", "--durtion", "5s"))
        self.assertNotIn("did you mean", self.says(2, "frobnicate"))
        shutil.copytree(PROFILE.parent, self.logdir / "plugins" / "profile" / "my_run")
        shutil.copytree(PROFILE.parent, self.logdir / "cpu" / "plugins" / "profile" / "own_run")
        self.daemon()
        self.assertIn('no session "my_rnu"; did you mean "my_run"?',
                      self.says(1, "tool", "overview_page", "my_rnu"))
        for command in ("hosts", "summary", "tools"):
            self.assertIn('did you mean "my_run"?', self.says(1, command, "my_rnu"))
        self.assertIn('did you mean "cpu/own_run"?', self.says(1, "hosts", "cpu/own_rum"))
        self.says(0, "hosts", "own_run")
        self.assertIn('has no host "mv"', self.says(1, "tool", "op_profile", "my_run", "--host",
                                                     "mv"))
        self.assertIn('unknown tool "overview"; did you mean "overview_page"?',
                      self.says(2, "tool", "overview", "my_run"))
        self.assertIn("did you mean \"group_by\"?",
                      self.says(2, "tool", "op_profile", "my_run", "--option", "groupby=category"))
        self.assertIn("for a session, name its --logdir, too", self.says(1, "export", "chrome", "my_run"))
        self.assertIn('no session "my_rnu" in', self.says(1, "export", "chrome", "my_rnu",
                                                          "--logdir", self.logdir))
        for tool, option, near in (("op_profile", "group_by=catgory", "category"),
                                   ("op_profile", "group_by=Program", "program"),
                                   ("overview_page", "xprof_exact=ture", "true")):
            for command, run in (("tool", "my_run"), ("analyze", PROFILE)):
                self.assertIn(f'did you mean "{near}"? it takes ',
                              self.says(2, command, tool, run, "--option", option))
        self.assertIn("'many'; it takes NUMBER, a whole number of at least 0\n",
                      self.says(2, "analyze", "trace_viewer@", PROFILE, "--option", "resolution=many"))
        self.assertIn('among the files; did you mean "vm"?',
                      self.says(1, "analyze", "op_profile", PROFILE, "--host", "VM"))
        self.assertIn('did you mean "chrome"?', self.says(2, "export", "chrom", PROFILE))
        self.assertIn('did you mean "jsonl"?', self.says(2, "iree", "summary", BUNDLE, "--format", "josnl"))
        self.assertIn('did you mean "xspace"?', self.says(2, "iree", "export", BUNDLE, "--format", "xspac"))
        self.assertIn('did you mean "long"?', self.says(2, "hlo", PROFILE, "x", "--text", "lnog"))
        self.assertIn('did you mean "lines"?', self.says(2, "hlo", PROFILE, "x", "--memory", "line"))
        self.says(1, "cancel", "77")
        self.says(1, "unschedule", "77")

    def test_wrong_words(self):
        """Words too many, numbers too large, and no hint at what was given."""
        self.server = f"unix:{self.place}/none"
        for words, *command in (("Usage: xplanectl sessions\n", "sessions", "x"), ("Usage: xplanectl help [COMMAND|TOPIC]\n", "help", "sql", "x"),
                                ("ID is a number", "cancel", "9" * 30), ("ID is a number", "cancel", "--", "-1"), ("ID is a number", "unschedule", "7x"),
                                ("--other needs --memory\n", "hlo", PROFILE, "--memory", "lines"), ('did you mean "lines"?', "hlo", PROFILE, "--memory", "line")):
            self.assertIn(words, self.says(2, *command))

    def test_token(self):
        token = self.place / "token"
        token.write_text("0123456789abcdef0123456789abcdef\n")
        self.daemon("--token-file", str(token))
        hint = "--token-file FILE sends the token in FILE\n"
        self.assertIn(hint, self.says(1, "sessions"))
        self.assertNotIn(hint, self.says(0, "sessions", "--token-file", token))
        # The daemon's file, with what each token is for, is one that clients can read, too.
        token.write_text("# for graphs\n\n  0123456789abcdef0123456789abcdef read graphs\nfedcba9876543210fedcba9876543210 admin\n")
        self.assertNotIn(hint, self.says(0, "sessions", "--token-file", token))

    def test_iree(self):
        self.assertIn('unknown report "sumary"; did you mean "summary"?\nReports:',
                      self.says(2, "iree", "sumary", "x"))
        self.assertIn("Usage: ", self.says(2, "iree", "summary"))
        self.assertIn("Usage: ", self.says(2, "iree"))
        self.daemon()
        err = self.says(1, "iree", "summary", "none.ireeprof")
        self.assertIn("no file none.ireeprof exists: it was taken for a session\n", err)
        self.says(0, "import", BUNDLE, "--session", "my_run")
        listed = {}
        for command in (["sessions"], ["hosts", "my_run"]):
            rows = self.ask(*command)[1].splitlines()
            self.assertEqual(rows[0].split()[1], "KIND")
            listed[command[0]] = rows[1].split()[1]
        self.assertEqual(listed, {"sessions": "iree", "hosts": "iree"})
        # The same rows from the file, from the log directory and from the daemon.
        for words in (["summary"], ["memory", "--id", "1"], ["export", "--unfinished"]):
            texts = {self.ask("iree", words[0], *place, *words[1:])[1]
                     for place in ([BUNDLE], ["my_run", "--logdir", self.logdir], ["my_run"])}
            self.assertEqual(len(texts), 1, words)
        self.assertIn('no session "my_rnu" in',
                      self.says(1, "iree", "summary", "my_rnu", "--logdir", self.logdir))
        for place in ([BUNDLE], ["my_run"]):
            err = self.says(2, "iree", "memory", *place, "--id", "9223372036854775808")
            self.assertIn("no id: \"9223372036854775808\"", err)
            self.assertIn("command 'summary' does not support --rocm_library_path",
                          self.says(2, "iree", "summary", *place, "--rocm_library_path", "/opt"))
            self.assertIn("executable traces are not decoded",
                          self.says(1, "iree", "att", *place, "--rocm_library_path", "/opt"))
        self.assertIn("`xplanectl tools my_run` lists", self.says(1, "summary", "my_run"))

    def test_damaged_bundle(self):
        """Every command that reads it answers, says so, and ends with status 3."""
        profiles = self.logdir / "plugins" / "profile"
        for name, size in (("cut", 6000), ("whole", None)):
            (profiles / name).mkdir(parents=True)
            (profiles / name / "a.ireeprof").write_bytes(BUNDLE.read_bytes()[:size])
        self.daemon()
        for name, status in (("cut", 3), ("whole", 0)):
            path = profiles / name / "a.ireeprof"
            first = {}
            for command in (["iree", "summary", path], ["iree", "summary", name],
                            ["iree", "summary", name, "--logdir", self.logdir],
                            ["iree", "export", path, "--format", "chrome"],
                            ["iree", "export", name, "--format", "chrome"],
                            ["tool", "iree_memory", name], ["tool", "iree_memory", name], # the second from the cache
                            ["tool", "iree_summary", name, "--option", "format=text"],
                            ["analyze", "iree_memory", path], ["analyze", "iree_export", path]):
                code, out, err = self.ask(*command)
                self.assertEqual(code, status, (command, err))
                self.assertEqual("warning" in err, status == 3, (command, err))
                self.assertTrue(out)
                key = tuple(str(c) for c in command[:2])
                if key[0] != "iree" and len(command) == 3:
                    self.assertEqual(first.setdefault(key, out), out)
        # A profile of XLA with a host that is broken is answered for the others, with status 0 as before.
        (profiles / "xla").mkdir()
        shutil.copy(PROFILE, profiles / "xla" / "a.xplane.pb")
        (profiles / "xla" / "b.xplane.pb").write_bytes(b"\xff" * 100)
        (profiles / "xla" / "c.xplane.pb").symlink_to("/nonexistent")
        code, out, err = self.ask("analyze", "overview_page", profiles / "xla")
        self.assertEqual(code, 0, err)
        self.assertIn("warning: b: ", err)
        self.assertRegex(err, "warning: c: .*No such file")
        (profiles / "xla" / "c.xplane.pb").unlink()
        code, out, err = self.ask("analyze", "overview_page", profiles / "xla", "--strict")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("warning: b: ", err)
        shutil.copy(PROFILE, profiles / "xla" / "b.xplane.pb")
        self.assertEqual(self.ask("analyze", "overview_page", profiles / "xla", "--strict")[0], 0)

    def test_table(self):
        tpu = DATA.parents[2] / "accel/plugins/profile/tpu_inference_a"
        steps = DATA / "jax_4hosts"
        text = self.ask("analyze", "hlo_stats", tpu, "--table")[1].splitlines()
        self.assertEqual(text[0].split()[:3], ["RANK", "PROGRAM", "ID"])
        self.assertEqual(len(text), 18)
        self.assertNotIn("CMEM", text[0])  # no row says anything of it
        self.assertEqual(text[1].split()[:4], ["1", "12190760917235803885", "copy-done", "copy-done.4"])
        # As people read it: 77.8 s and 21.4%, of a percent here and of a fraction there.
        for tool in ("hlo_stats", "roofline_model", "framework_op_stats"):
            line = next(l for l in self.ask("analyze", tool, tpu, "--table")[1].splitlines() if "copy-done.4" in l)
            self.assertRegex(line, r" 77\.8 s +194 ms +77\.8 s +194 ms +21\.4% +21\.4% ", tool)
        self.assertIn("HBM BW (GiB/s)", text[0])
        kernels = self.ask("analyze", "kernel_stats", tpu.parent / "gpu_multi_worker", "--table")[1].splitlines()
        self.assertTrue(kernels[0].endswith("TOTAL DURATION  AVG DURATION  MIN DURATION  MAX DURATION"), kernels[0])
        self.assertRegex(kernels[1], r" 7\.91 ms +40\.8 µs +17\.4 µs +76\.8 µs$")
        roofline = self.ask("analyze", "roofline_model", tpu, "--table", "--option", "xprof_exact=true")[1]
        self.assertIn("\n\nTable 2: Diagnostics\nSEVERITY", roofline)
        none = self.ask("analyze", "hlo_stats", steps, "--table", "--option", "cpu_as_device=false")
        self.assertEqual(none[1], "no rows\n")
        counters = DATA.parents[4] / "golden/cases/counters_tpu/host.xplane.pb"
        units = self.ask("analyze", "kernel_utilization", counters, "--table")[1].splitlines()
        self.assertEqual(units[0].split(), ["DEVICE", "TYPE", "SAMPLE", "UNIT", "SHARE", "DURATION"])
        self.assertIn("MXU", units[1])
        self.assertTrue(units[1].endswith("s"), units[1])
        units = self.ask("analyze", "utilization_viewer", counters, "--table")[1]
        self.assertIn("Scalar Unit", units)
        pod = self.ask("analyze", "pod_viewer", steps, "--table")[1].splitlines()
        self.assertEqual(pod[0].split()[:4], ["STEP", "CORE", "HOST", "BOTTLENECK"])
        self.assertEqual(len(pod), 1 + 20 * 4)
        self.assertIn("has no tables", self.says(1, "analyze", "op_profile", tpu, "--table"))

    def test_hlo(self):
        self.assertIn("Usage: ", self.says(2, "hlo"))
        self.assertIn("--text is short, long, pbtxt, pb, json, dot or html", self.says(2, "hlo", PROFILE, "0", "--text", "txt"))
        self.assertIn("needs a MODULE", self.says(2, "hlo", PROFILE, "--text", "short"))
        self.assertIn("no HLO module has the program id 99", self.says(1, "hlo", PROFILE, "99"))
        rows = self.ask("hlo", PROFILE)[1].splitlines()
        self.assertEqual(rows[0].split(), ["TIME", "INSTRUCTIONS", "BYTES", "PROGRAM", "HOST"])
        modules = {m["module"]: m for m in json.loads(self.ask("hlo", PROFILE, "--json")[1])}
        self.assertEqual([r.split()[-2] for r in rows[1:]], list(modules))
        name, module = sorted(modules.items())[0]
        near = name.replace(module["program_id"], "98")
        self.assertIn(f'no HLO module "{near}"; did you mean', self.says(1, "hlo", PROFILE, near))
        # Also from the name only.
        four = PROFILE.parent.parent / "jax_4hosts"
        for given in ("jit_stp", "JIT_STEP(11)"):
            self.assertIn(f'no HLO module "{given}"; did you mean "jit_step(10)"?', self.says(1, "hlo", four, given))
        # A beginning that only one program has.
        self.assertEqual(self.ask("hlo", four, "jit_ste"), self.ask("hlo", four, "jit_step(10)"))
        shutil.copytree(PROFILE.parent, self.logdir / "plugins" / "profile" / "my_run")
        self.daemon()
        # The same from the file, from its directory and from the daemon, by name and by id.
        for text, begin in (("short", "HloModule "), ("long", "HloModule "), ("pbtxt", "hlo_module {\n"), ("json", '{"hloModule":'), ("dot", "digraph G {\n"), ("html", "<!DOCTYPE html>\n")):
            answers = {self.ask("hlo", place, key, "--text", text)[1]
                       for place in (PROFILE, PROFILE.parent, "my_run") for key in (name, module["program_id"])}
            self.assertEqual(len(answers), 1, text)
            self.assertTrue(answers.pop().startswith(begin))
        out = self.place / "module.pb"
        for place in (PROFILE, "my_run"):
            self.says(0, "hlo", place, name, "--text", "pb", "-o", out)
            self.assertEqual(out.stat().st_size, module["bytes"])
        self.assertEqual(self.ask("hlo", "my_run", "--json")[1], self.ask("hlo", PROFILE, "--json")[1])
        self.assertIn('no session "my_rnu"', self.says(1, "hlo", "my_rnu"))

    def test_hlo_times(self):
        """Programs have the self times of their ops on their host, and the longest is first."""
        for run in (DATA.parents[2] / "accel/plugins/profile/mi300_jax_attention", DATA / "jax_4hosts"):
            programs = json.loads(self.ask("hlo", run, "--json")[1])
            times = [m["self_time_ps"] for m in programs]
            self.assertEqual(times, sorted(times, reverse=True))
            self.assertGreater(times[0], 0)
            for m in programs:
                ops = json.loads(self.ask("tool", "op_list", run, "--host", m["host"])[1])["ops"]
                self.assertEqual(m["self_time_ps"], sum(op["self_time_ps"] for op in ops if op["program_id"] == m["program_id"]), m)
        # What only damaged events lack is listed, without times.
        damaged = self.place / "vm.xplane.pb"
        line = wire(3, wire(1, 7) + wire(2, b"Stream #7") + wire(4, b"\x0a\xff"))
        events = wire(1, wire(2, b"/device:GPU:0") + line + wire(4, wire(1, 1) + wire(2, wire(1, 1) + wire(2, b"kernel"))))
        damaged.write_bytes(PROFILE.read_bytes() + events)
        code, out, err = self.ask("hlo", damaged)
        self.assertEqual(code, 3, err)
        self.assertIn("vm.xplane.pb: ", err)
        self.assertEqual({r.split()[0] for r in out.splitlines()[1:]}, {"–"})

    def test_hlo_memory(self):
        """What holds a program's memory, as a table and as JSON, alone and beside another's."""
        four = PROFILE.parent.parent / "jax_4hosts" / "host-0.cluster.local.xplane.pb"
        self.assertIn("--memory is lines or ops", self.says(2, "hlo", four, "10", "--memory", "x"))
        self.assertIn("--memory is lines or ops", self.says(2, "hlo", four, "--memory", "ops"))
        self.assertIn("--memory is lines or ops", self.says(2, "hlo", four, "10", "--other", "jit_step(10)"))
        self.assertIn("--text is", self.says(2, "hlo", four, "10", "--memory", "ops", "--text", "short"))
        rows = self.ask("hlo", four, "10", "--memory", "lines")[1].splitlines()
        self.assertEqual(rows[0].split(), ["SOURCE", "BYTES", "SHARE", "BUFFERS", "LARGEST"])
        self.assertEqual(rows[1].split()[:3], ["/home/user/scripts/d_multi.py:16", "2.00", "MiB"])
        table = json.loads(self.ask("hlo", four, "jit_step(10)", "--memory", "ops", "--json")[1])
        self.assertEqual(sum(r["c"][3]["v"] for r in table["rows"]), float(table["p"]["bytes"]))
        both = json.loads(self.ask("hlo", four, "10", "--memory", "lines", "--other", "jit__normal(4)", "--json")[1])
        columns = [c["id"] for c in both["cols"]]
        change = [r["c"][columns.index("change")]["v"] for r in both["rows"]]
        self.assertEqual(sum(change), float(both["p"]["bytes"]) - float(both["p"]["other_bytes"]))
        self.assertEqual([abs(c) for c in change], sorted((abs(c) for c in change), reverse=True))
        same = json.loads(self.ask("hlo", four, "10", "--memory", "ops", "--other", "jit_step(10)", "--json")[1])
        self.assertEqual({r["c"][-2]["v"] for r in same["rows"]}, {0.0})
        self.assertEqual(json.loads(self.ask("hlo", four, "10", "--memory", "ops", "--other", "10", "--json")[1]), same)
        self.assertIn("no HLO module has the program id 9", self.says(1, "hlo", four, "10", "--memory", "ops", "--other", "9"))
        self.assertIn('no HLO module "x"', self.says(1, "hlo", four, "10", "--memory", "ops", "--other", "x"))

    def test_no_daemon(self):
        ways = {"127.0.0.1:1": "connection refused", f"unix:{self.place}/none": "no such socket"}
        for self.server, why in ways.items():
            for command in (["sessions"], ["tool", "op_profile", "x"], ["captures"], ["delete", "x"],
                            ["capture", "127.0.0.1:1"], ["import", PROFILE, "--retries", "1"]):
                text = f"no daemon answers at {self.server} ({why}): start one with `xplaned --logdir DIR`"
                # gRPC 1.51 reads errno of connect() late: what ThreadSanitizer opened may have changed it.
                err = next((e for e in (self.says(1, *command) for _ in range(3)) if text in e), "")
                self.assertIn(text, err)
                self.assertNotIn("last error", err)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.server = f"127.0.0.1:{silent.getsockname()[1]}"
            self.assertIn(f"{self.server} has not answered in 300 ms",
                          self.says(1, "sessions", "--timeout-ms", "300"))


class Output(Case):
    """-o: a whole file or none."""

    ANSWER = ("analyze", "trace_viewer", PROFILE)

    def setUp(self):
        super().setUp()
        self.file = self.place / "out.json"

    def entries(self):
        return sorted(p.name for p in self.place.iterdir())

    def both(self):
        yield self.ANSWER
        yield ("export", "chrome", PROFILE)

    def test_whole(self):
        for command in self.both():
            self.assertEqual(self.ask(*command, "-o", self.file), (0, "", ""))
            self.assertEqual(self.file.read_text(), self.ask(*command)[1])
            self.file.unlink()
        self.assertEqual(self.entries(), ["logs", "state"])

    def test_texts(self):
        """-o takes the text of every command that has one, and standard output gets nothing."""
        busy, good = self.fake("busy"), self.fake("ok")
        asked = [["--help"], ["--version"], ["--agents-md"], ["help", "sql"], ["tools", "--all"],
                 *([c, PROFILE] for c in ("hosts", "tools", "summary", "findings", "aggregate", "events", "hlo")),
                 ["compare", PROFILE, PROFILE], ["sql", PROFILE, "SELECT plane FROM planes"],
                 ["history", "--dir", DATA], ["completion", "bash"], ["agents", "install", "--dry-run"]]
        for command in asked:
            self.assertEqual(self.ask(*command, "-o", self.file)[:2], (0, ""), command)
            self.assertEqual(self.file.read_text(), self.ask(*command)[1], command)
            self.assertGreater(self.file.stat().st_size, 10)
            self.file.unlink()
        self.assertEqual(self.ask("compare", PROFILE, PROFILE, "--allow-single", "--fail-if", "compute>-1%", "-o",
                                  self.file)[:2], (4, ""))
        self.assertIn("TIME PER STEP", self.file.read_text())
        self.daemon()
        one = self.place / "name"
        self.assertEqual(self.ask("import", PROFILE, "--session", "one", "-o", one), (0, "", ""))
        self.assertEqual(one.read_text(), "one\n")
        self.assertEqual(self.ask("label", "one", "nightly"), (0, "", ""))
        for command in (["label", "one"], ["label"], ["sessions"], ["captures"], ["schedules"], ["history", "--label", "nightly"]):
            self.assertEqual(self.ask(*command, "-o", one), (0, "", ""), command)
            self.assertEqual(one.read_text(), self.ask(*command)[1], command)
        for form in ([], ["--format", "json"]):
            code, out, _ = self.ask("capture", busy.address, good.address, "--duration", "50ms", "-o", one, *form)
            self.assertEqual((code, out), (3, ""))
            self.assertIn(json.loads(one.read_text())["session"] if form else one.read_text().strip(), self.sessions())
        self.assertEqual(self.ask("capture", good.address, "--every", "1h", "-o", one)[:2], (0, ""))
        self.assertEqual(self.ask("unschedule", one.read_text().strip())[0], 0)

    def test_limit(self):
        """No space, as far as a process can be told so: what was there stays, nothing else does."""
        limit = (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        for command in self.both():
            for before in (None, "what was there"):
                if before:
                    self.file.write_text(before)
                code, out, err = self.ask(
                    *command, "-o", self.file,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
                self.assertEqual((code, out), (1, ""))
                self.assertIn("File too large", err)
                self.assertEqual(self.entries(), ["logs", *(["out.json"] if before else []), "state"])
                if before:
                    self.assertEqual(self.file.read_text(), before)
                    self.file.unlink()

    def test_full(self):
        for command in self.both():
            code, out, err = self.ask(*command, "-o", "/dev/full")
            self.assertEqual((code, out), (1, ""))
            self.assertIn("No space left on device", err)
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())
        with open("/dev/full", "wb") as full:
            process = subprocess.run([Programs.xplanectl, *map(str, self.ANSWER)], stdout=full,
                                     stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(process.returncode, 1)
        self.assertIn("No space left on device", process.stderr)

    def print_on_full(self, *command, environ=None):
        with open("/dev/full", "wb") as full:
            return subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60, check=False, env=environ)

    def test_full_texts(self):
        """Whatever is printed: one that cannot be written is no success, and says so once."""
        commands = json.loads(self.ask("help", "--format", "json")[1])["commands"]
        asked = [["--help"], ["--version"], ["--help-man"], ["--agents-md"], ["help"], ["help", "sql"],
                 ["help", "--format", "json"],
                 *(["completion", shell] for shell in ("bash", "zsh", "fish")),
                 *([c["name"], "--help"] for c in commands),
                 ["hosts", PROFILE], ["tools", PROFILE], ["summary", PROFILE], ["findings", PROFILE],
                 ["compare", PROFILE, PROFILE], ["aggregate", PROFILE], ["events", PROFILE],
                 *([c, PROFILE, "--format", form] for c in ("summary", "findings", "aggregate", "events") for form in ("csv", "json")),
                 *(["sql", PROFILE, "SELECT 1", "--format", form] for form in ("table", "csv", "json")),
                 ["compare", PROFILE, PROFILE, "--allow-single", "--fail-if", "compute>-1%"],
                 ["hlo", PROFILE], ["iree", "summary", BUNDLE], ["iree", "summary", BUNDLE, "--format", "jsonl"]]
        self.assertGreater(len(asked), 40)
        programs = [[Programs.xplanectl, *a] for a in asked]
        programs += [[Programs.xplaned, a] for a in ("--help", "--version", "--help-man", "--help-metrics")]
        for command in programs:
            done = self.print_on_full(*command)
            self.assertEqual(done.returncode, 1, (command, done.stderr))
            self.assertEqual(done.stderr.count("No space left on device"), 1, (command, done.stderr))

    def test_full_at_the_end_of_the_buffer(self):
        """The cause is kept where the buffer of the stream is written, and fails, before the last byte comes."""
        for n in range(4080, 4098):
            done = self.print_on_full(Programs.xplanectl, "sql", PROFILE, f"SELECT printf('%{n}d', 7) AS a", "--format", "csv")
            self.assertEqual((done.returncode, done.stderr), (1, "xplanectl: cannot write output: No space left on device\n"), n)

    def test_small_disk(self):
        """A real full disk, where one may be mounted."""
        disk = self.place / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            self.skipTest("nothing can be mounted")
        try:
            (disk / "out").write_text("before")
            for command in self.both():
                for name in ("out", "new"):
                    code, _, err = self.ask(*command, "-o", disk / name)
                    self.assertEqual(code, 1)
                    self.assertIn("No space left on device", err)
                    self.assertEqual([p.name for p in disk.iterdir()], ["out"])
                    self.assertEqual((disk / "out").read_text(), "before")
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_what_is_there(self):
        """A link stays a link, permissions stay, and what is no file is written in place."""
        real = self.place / "real.json"
        real.write_text("old")
        real.chmod(0o640)
        self.file.symlink_to("real.json")
        self.assertEqual(self.ask(*self.ANSWER, "-o", self.file)[0], 0)
        self.assertTrue(self.file.is_symlink())
        self.assertEqual(real.stat().st_mode & 0o777, 0o640)
        self.assertEqual(real.read_text(), self.ask(*self.ANSWER)[1])
        self.assertEqual(self.ask(*self.ANSWER, "-o", "/dev/null"), (0, "", ""))
        code, _, err = self.ask(*self.ANSWER, "-o", self.place)
        self.assertEqual(code, 1)
        self.assertIn("Is a directory", err)
        code, _, err = self.ask(*self.ANSWER, "-o", self.place / "none" / "x")
        self.assertEqual(code, 1)
        self.assertIn("No such file or directory", err)
        self.assertEqual(self.entries(), ["logs", "out.json", "real.json", "state"])

    def test_dangling(self):
        """A link to a file that is not there yet stays a link."""
        self.file.symlink_to("later.json")
        self.assertEqual(self.ask(*self.ANSWER, "-o", self.file)[0], 0)
        self.assertTrue(self.file.is_symlink())
        self.assertEqual((self.place / "later.json").read_text(), self.ask(*self.ANSWER)[1])

    def test_owner(self):
        """Root's answers do not take a user's file away."""
        if os.geteuid():
            self.skipTest("only root can give files away")
        self.file.write_text("old")
        self.file.chmod(0o600)
        os.chown(self.file, 12345, 23456)
        self.assertEqual(self.ask(*self.ANSWER, "-o", self.file)[0], 0)
        now = self.file.stat()
        self.assertEqual((now.st_uid, now.st_gid, now.st_mode & 0o7777), (12345, 23456, 0o600))

    def test_taken_name(self):
        """Hidden files that a killed process of the same number left stand in nobody's way."""
        def leave():
            for tail in ("", ".0"):
                with open(self.place / f".out.json.{os.getpid()}{tail}.part", "xb"):
                    pass
        self.assertEqual(self.ask(*self.ANSWER, "-o", self.file, preexec_fn=leave), (0, "", ""))
        self.assertEqual(self.file.read_text(), self.ask(*self.ANSWER)[1])

    def test_ignored_signal(self):
        """nohup: a signal that is ignored stays so while a file is written."""
        for _ in range(10):
            process = self.start("export", "chrome", PROFILE, "-o", self.file,
                                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
            while process.poll() is None:
                process.send_signal(signal.SIGHUP)
            self.assertEqual(process.returncode, 0)
            self.assertTrue(self.file.exists())

    def test_failure(self):
        """A request that fails leaves the file as it is."""
        self.file.write_text("old")
        bad = self.place / "bad.xplane.pb"
        bad.write_bytes(b"\xff" * 100)
        self.assertEqual(self.ask("export", "chrome", bad, "-o", self.file)[0], 1)
        self.assertEqual(self.file.read_text(), "old")
        self.assertEqual(self.entries(), ["bad.xplane.pb", "logs", "out.json", "state"])

    def test_nothing_before_a_profile(self):
        """What has no profile or no answer writes no byte, wherever it would have gone."""
        bad = self.place / "bad.xplane.pb"
        bad.write_bytes(b"\xff" * 100)
        none = self.place / "none.xplane.pb"
        self.daemon()
        before = sorted([*self.entries(), self.file.name])
        for command in (("export", "chrome", bad), ("export", "chrome", none),
                        ("export", "perfetto", bad), ("export", "chrome", PROFILE, "--host", "no"),
                        ("export", "chrome", "no_run", "--logdir", self.logdir),
                        ("analyze", "op_profile", bad), ("tool", "op_profile", "no_run"),
                        ("tool", "no_tool", "no_run")):
            code, out, err = self.ask(*command)
            self.assertNotEqual(code, 0)
            self.assertEqual(out, "", command)
            self.assertTrue(err)
            self.assertEqual(self.ask(*command, "-o", self.file)[1], "")
            self.assertFalse(self.file.exists())
            # Written in place, as a file in a directory of others is.
            later = self.place / "later"
            self.file.symlink_to(later)
            self.assertEqual(self.ask(*command, "-o", self.file)[1], "")
            self.assertFalse(later.exists(), command)
            self.assertEqual(self.entries(), before)
            self.file.unlink()

    def test_full_says_the_file(self):
        err = self.ask("export", "chrome", PROFILE, "-o", "/dev/full")[2]
        self.assertEqual(err, "xplanectl: cannot write /dev/full: No space left on device\n")
        with open("/dev/full", "wb") as full:
            process = subprocess.run([Programs.xplanectl, "export", "chrome", PROFILE], stdout=full,
                                     stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual((process.returncode, process.stderr),
                         (1, "xplanectl: cannot write output: No space left on device\n"))


class Captures(Case):
    def test_said_once(self):
        """Why a capture failed stands once on standard error."""
        busy, idle = self.fake("busy"), self.fake("idle")
        ways = {"daemon": [], "direct": ["--direct", "--logdir", self.logdir]}
        for way, flags in ways.items():
            self.server = None
            if way == "daemon":
                self.daemon()
            for quiet in ([], ["--quiet"]):
                for targets in ([busy], [busy, idle]):
                    code, out, err = self.ask("capture", *[t.address for t in targets], *flags,
                                              *quiet, "--duration", "50ms")
                    self.assertEqual((code, out), (1, ""))
                    self.assertEqual(err.count("another profile of this program"), 1, err)
                    self.assertEqual(err.count("idle: the program did nothing"), len(targets) - 1,
                                     err)
                    self.assertTrue(err.endswith("\nxplanectl: no profile was taken\n"), err)
            # Errors of the request itself are reported unchanged.
            code, _, err = self.ask("capture", "grpc://x:1", *flags)
            self.assertEqual(code, 2)
            self.assertEqual(err.count("write HOST:PORT"), 1, err)


    def test_lost_hosts(self):
        """A session that lacks hosts says which and why, in every listing."""
        busy, good = self.fake("busy"), self.fake("ok")
        http = f"http://{self.daemon().http}/api/v1/sessions"
        code, name, _ = self.ask("capture", busy.address, good.address, "--duration", "50ms")
        self.assertEqual(code, 3)
        name = name.strip()
        self.assertEqual(self.ask("tool", "overview_page", name)[0], 0)
        wait_until("the note is read", lambda: f"  partial (1 host lost: {busy.address})\n" in self.ask("sessions")[1])
        said = json.loads(self.ask("sessions", "--json")[1])[0]
        self.assertEqual((said["state"], said["hosts"]), ("partial", 1))
        self.assertEqual([h["target"] for h in said["lost"]], [busy.address])
        self.assertIn("another profile", said["lost"][0]["reason"])
        hosts = self.ask("hosts", name)[1].splitlines()
        self.assertRegex(hosts[2], rf"^{busy.address} +xspace +- +- +lost +.*another profile")
        hosts = json.loads(self.ask("hosts", name, "--json")[1])
        self.assertEqual([h["state"] for h in hosts][1:], ["lost"])
        with urllib.request.urlopen(http) as reply:
            listed = json.load(reply)["sessions"]
        self.assertEqual(listed[0]["lost"], said["lost"])
        # Of a few all are named, of many the first.
        note = self.logdir / "plugins" / "profile" / name / "capture_2.json"
        for n, words in ((2, "2 hosts lost: h0 and h1"), (3, "3 hosts lost: h0, h1 and h2"), (4, "4 hosts lost: h0, h1 and 2 others")):
            hosts = [{"target": busy.address, "state": "stored"}] + [{"target": f"h{i}", "state": "failed"} for i in range(n)]
            note.write_text(json.dumps({"hosts": hosts}))
            wait_until("they are named", lambda: f"  partial ({words})\n" in self.ask("sessions")[1])
        # A later capture of that host into the same session: nothing is lost any more.
        note.write_text(json.dumps({"hosts": [{"target": busy.address, "state": "stored"}]}))
        wait_until("the note is read", lambda: "partial" not in self.ask("sessions")[1])
        note.write_text("{")
        wait_until("the note is read", lambda: "partial" in self.ask("sessions")[1])

    def test_captured(self):
        """The profile's time, not that of the file's copy; else the name's, else the file's."""
        profiles = self.logdir / "plugins" / "profile"
        for run in ("says", "2026_11_22_10_20_30", "silent"):
            (profiles / run).mkdir(parents=True)
        shutil.copy(PROFILE, profiles / "says" / "a.xplane.pb")
        for run in ("2026_11_22_10_20_30", "silent"):
            (profiles / run / "a.xplane.pb").write_bytes(b"")
            os.utime(profiles / run / "a.xplane.pb", (1700000000, 1700000000))
        self.daemon()
        said = {s["name"]: s["captured_unix_ms"] for s in json.loads(self.ask("sessions", "--json")[1])}
        self.assertEqual(said["silent"], 1700000000000)
        self.assertEqual(said["2026_11_22_10_20_30"],
                         int(time.mktime((2026, 11, 22, 10, 20, 30, 0, 0, -1)) * 1000))
        # Its profile_start_time; the file is newer.
        self.assertEqual(time.gmtime(said["says"] / 1000)[:6], (2026, 11, 21, 5, 21, 16))

    def test_tracers(self):
        """A host without events: which tracer is off, or what its profiler says, not that it is idle."""
        nothing, blind = self.fake("metadata"), self.fake("blind")
        ways = {(): "the program did nothing that is traced",
                ("--host-tracer", "0"): "unless the devices are idle\n",  # the whole sentence fits
                ("--device-tracer", "0"): "the device tracer is off (level 0)",
                ("--host-tracer", "0", "--device-tracer", "0"): "leave one of them on\n"}
        for self.server in (None, self.daemon().address):
            flags = [] if self.server else ["--direct", "--logdir", self.logdir]
            for levels, why in ways.items():
                code, _, err = self.ask("capture", nothing.address, *flags, *levels)
                self.assertEqual(code, 1)
                self.assertIn(why, err)
            code, _, err = self.ask("capture", blind.address, *flags)
            self.assertEqual(code, 1)
            self.assertIn("no events: its profiler says: libcupti is not there", err)

    def test_killed(self):
        """Whoever is killed in a capture: no session is left that nothing is in."""
        hang = self.fake("hang")
        for way in ("direct", "daemon", "restart"):
            with self.subTest(way):
                self.server = None
                daemon = None if way == "direct" else self.daemon()
                flags = [] if daemon else ["--direct", "--logdir", self.logdir]
                capture = self.start("capture", hang.address, *flags)
                for line in capture.stderr:  # its output once the directory exists
                    if line == f"{hang.address}: collecting\n":
                        break
                self.assertEqual(len(self.sessions()), 1)
                (daemon.process if way == "restart" else capture).kill()
                capture.wait(60)
                if way == "restart":
                    daemon.process.wait(60)
                    daemon = self.daemon()
                wait_until("it is gone", lambda: not self.sessions())
                if daemon:
                    daemon.end()

    def test_killed_later(self):
        """What was complete stays, what was not goes; nobody waits for the cleaner."""
        hang, good = self.fake("hang"), self.fake("ok")
        capture = self.start("capture", hang.address, good.address, "--direct", "--logdir",
                             self.logdir, "--duration", "50ms")
        found = wait_until("a profile is there", lambda: list(self.logdir.rglob("*.xplane.pb")))
        part = found[0].parent / ".xplaned-0123456789abcdef.part"
        part.write_text("unfinished")
        capture.kill()
        capture.communicate(timeout=60)  # the end of both streams
        wait_until("only it is left", lambda: [p.name for p in found[0].parent.iterdir()] == [found[0].name])

    def test_killed_target(self):
        """A program that ends while it is captured."""
        self.daemon()
        self.assertEqual(self.ask("capture", self.fake("die").address)[0], 1)
        self.assertEqual(self.ask("capture", self.fake("die").address, "--direct", "--logdir",
                                  self.logdir)[0], 1)
        self.assertEqual(self.sessions(), [])


class Start(Case):
    """What a daemon says and does when it starts."""

    def refused(self, logdir):
        process = subprocess.run(
            [Programs.xplaned, "--logdir", logdir, "--state-dir", self.state, "--listen",
             "127.0.0.1:0", "--http", "off"], capture_output=True, text=True, timeout=60,
            check=False, env=environment())
        self.assertEqual(process.returncode, 1, process.stderr)
        return process.stderr

    def test_logdir(self):
        """A LOGDIR that is missing is made, and captures go there."""
        self.logdir = self.place / "a b" / "c"
        daemon = self.daemon()
        self.assertTrue(self.logdir.is_dir())
        self.assertIn(f'msg="LOGDIR was missing, and is made" path="{self.logdir}"', daemon.text())
        self.assertEqual(self.ask("capture", self.fake("ok").address, "--duration", "50ms")[0], 0)
        self.assertEqual(len(self.sessions()), 1)
        daemon.end()
        self.assertNotIn("is made", self.daemon().text()[daemon.log.stat().st_size:])

    def test_no_standard_error(self):
        """Without one, the log goes into none of the daemon's own descriptors."""
        place = self.place / "socket"
        process = subprocess.Popen(
            [Programs.xplaned, "--logdir", self.logdir, "--state-dir", self.state, "--listen",
             f"unix:{place}", "--http", "off"], stdin=subprocess.DEVNULL, env=environment(),
            preexec_fn=lambda: os.close(2))
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.kill)
        wait_until("the daemon listens", place.exists)
        two = os.readlink(f"/proc/{process.pid}/fd/2")
        process.terminate()
        self.assertEqual((process.wait(60), two), (0, "/dev/null"))

    def test_logdir_that_cannot_be(self):
        file = self.place / "file"
        file.write_text("")
        err = self.refused("/proc/xplaned/logs")
        self.assertIn("--logdir /proc/xplaned/logs is missing and cannot be made", err)
        self.assertIn("make it for this user, or name another directory", err)
        self.refused(file / "logs")
        link = self.place / "link"
        link.symlink_to(self.place / "nowhere")
        err = self.refused(link)
        self.assertIn(f"--logdir {link} is missing and cannot be made", err)
        self.assertNotIn("is made", err)
        self.refused(self.place / "none.xplane.pb")
        self.assertFalse((self.place / "none.xplane.pb").exists())
        if os.geteuid():  # root may write everywhere
            self.place.chmod(0o500)
            self.addCleanup(self.place.chmod, 0o700)
            self.assertIn("Permission denied", self.refused(self.place / "logs2"))


class Imports(Case):
    """Profiles of every format, stored as what they are."""

    def setUp(self):
        super().setUp()
        self.plain = PROFILE.read_bytes()
        self.packed = gzip.compress(self.plain, mtime=0)
        self.daemon()

    def file(self, name, contents):
        path = self.place / name
        path.write_bytes(contents)
        return path

    def files(self, session):
        return sorted(p.name for p in (self.logdir / "plugins" / "profile" / session).iterdir())

    def imports(self, session, *paths):
        self.assertEqual(self.ask("import", *paths, "--session", session),
                         (0, f"{session}\n", ""))

    def refuses(self, words, *paths, session="refused", code=1):
        status, out, err = self.ask("import", *paths, "--session", session)
        self.assertEqual((status, out), (code, ""), err)
        self.assertIn(words, err)
        self.assertNotIn("refused", self.sessions())

    def test_gzip(self):
        self.imports("plain", PROFILE)
        self.imports("gzip", self.file("vm.xplane.pb.gz", self.packed))
        self.assertEqual(self.files("gzip"), ["vm.xplane.pb.gz"])
        stored = self.logdir / "plugins" / "profile" / "gzip" / "vm.xplane.pb.gz"
        self.assertEqual(stored.read_bytes(), self.packed)
        for tool in ("op_profile", "overview_page"):
            self.assertEqual(self.ask("tool", tool, "gzip"), self.ask("tool", tool, "plain"))

    def test_zstd(self):
        if not shutil.which("zstd"):
            self.skipTest("no zstd")
        path = self.file("vm.xplane.pb", self.plain)
        for suffix in ("zst", "zstd"):
            subprocess.run(["zstd", "-q", path, "-o", f"{path}.{suffix}"], check=True)
            self.imports(suffix, f"{path}.{suffix}")
            self.assertEqual(self.files(suffix), [f"vm.xplane.pb.{suffix}"])
            self.assertEqual(self.ask("tool", "op_profile", suffix)[0], 0)

    def test_misnamed(self):
        """The content decides how a file is named: its name is a hint."""
        self.imports("a", self.file("vm.xplane.pb", self.packed))
        self.assertEqual(self.files("a"), ["vm.xplane.pb.gz"])
        self.imports("b", self.file("profile.pb", self.packed))
        self.assertEqual(self.files("b"), ["profile.pb.xplane.pb.gz"])
        self.imports("c", self.file("x.xplane.pb.gz", self.plain))
        self.assertEqual(self.files("c"), ["x.xplane.pb"])
        bundle = BUNDLE.read_bytes()
        self.imports("d", self.file("y.xplane.pb", gzip.compress(bundle)))
        self.assertEqual(self.files("d"), ["y.ireeprof.gz"])
        self.assertEqual(self.ask("tool", "op_profile", "d")[0], 0)
        self.refuses("give the HOST.xplane.pb", self.file("z.xplane.pb", b'{"highres-ticks":true,"traceEvents":[]}'))
        self.refuses('no profile\'s name ends in ".xplane.pb.bz2"',
                     self.file("x.xplane.pb.bz2", self.plain), code=2)

    def test_damaged(self):
        self.refuses("vm: ", self.file("vm.xplane.pb.gz", self.packed[:-20]))
        self.refuses("malformed", self.file("vm.xplane.pb.gz", gzip.compress(b"\xff" * 100)))
        self.refuses("", self.file("vm.xplane.pb.gz", gzip.compress(self.plain[:-3])))
        # Too large when it is whole.
        self.refuses("256", self.file("vm.xplane.pb.gz", gzip.compress(bytes(64 << 20), 9)))
        # Of several files all or none.
        self.refuses("", self.file("a.xplane.pb.gz", self.packed),
                     self.file("b.xplane.pb.gz", self.packed[:-20]))

    def test_twice(self):
        """A host has one file in a session, whatever its format."""
        self.imports("one", self.file("vm.xplane.pb.gz", self.packed))
        for name, contents in (("vm.xplane.pb", self.plain), ("vm.xplane.pb.gz", self.packed)):
            self.refuses("vm.xplane.pb.gz already", self.file(name, contents), session="one")
        self.assertEqual(self.files("one"), ["vm.xplane.pb.gz"])
        self.imports("one", self.file("other.xplane.pb", self.plain))
        self.assertEqual(self.files("one"), ["other.xplane.pb", "vm.xplane.pb.gz"])


if __name__ == "__main__":
    main("xplanectl", "xplaned", "fake")
