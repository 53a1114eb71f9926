#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long steps take, asked of every view: equal words have equal numbers.

usage: test_steps.py XPLANECTL XPLANED
"""
import collections
import json
import re
import shutil
import statistics

from harness import DATA, Case, main, wait_until

GPU = DATA.parent.parent.parent / "accel" / "plugins" / "profile" / "gpu_multi_worker"
# Hosts, steps in the profile, and the program's number of the first.
SESSIONS = {"jax_4hosts": (4, 20, 0), "jax_8dev_shardmap": (1, 20, 0), "jax_matmul_nopy": (1, 50, 0), "tf_custom_h2p0": (1, 20, 0),
            "tf_xla_jit": (1, 20, 0), "tf_keras_tensorboard": (1, 11, 4), "gpu_multi_worker": (1, 1, 0)}
# The column of `steps` that has a cause, and that of a kind of pod_viewer.
PARTS = {"compute": "compute", "overlapped_collectives": "compute", "exposed_collectives": "collective", "host_copies": "output",
         "device_copies": "other", "callback": "host", "input": "input", "checkpoint": "host", "compile": "compile", "launch": "host",
         "queued": "host", "host": "host", "unknown": "idle"}
KINDS = {"1": "compute", "2": "other", "3": "collective", "4": "host", "5": "host", "6": "input", "7": "output", "8": "compile", "9": "idle"}
UNITS = {"s": 1e12, "ms": 1e9, "µs": 1e6, "us": 1e6, "ns": 1e3}


class Steps(Case):
    def setUp(self):
        super().setUp()
        for name in SESSIONS:
            shutil.copytree(GPU if name == GPU.name else DATA / name, self.logdir / "plugins" / "profile" / name)
        self.daemon()

    def document(self, *arguments):
        status, out, err = self.ask(*arguments)
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def breakdown(self, name):
        """{step: [time on each host]}, all steps."""
        steps = {}
        for host in self.document("tool", "time_breakdown", name, "--option", "view=steps")["hosts"]:
            for number, ps in zip(host["steps"]["step"], host["steps"]["wall_ps"]):
                steps.setdefault(number, []).append(ps)
        return steps

    def overview(self, name):
        """The average, the least and the greatest step, in ms, and the names and times of the rows."""
        table = self.document("tool", "overview_page", name)[1]
        at = [c["id"] for c in table["cols"]].index("stepTimeMs")
        rows = [(r["c"][0]["v"], r["c"][at]["v"]) for r in table["rows"]]
        return [float(table["p"]["steptime_ms_" + k]) for k in ("average", "minimum", "maximum")], rows

    def database(self, name):
        """{step: [time of each core]} of the view `steps`."""
        text = f"SELECT step_num, duration_ps FROM steps WHERE session = '{name}'"
        steps = {}
        for number, ps in wait_until("rows", lambda: self.document("sql", name, text, "--format", "json")["rows"]):
            steps.setdefault(number, []).append(ps)
        return steps

    def line(self, name):
        """What is below the steps of `summary`."""
        return re.search(r"\n  (\d+) steps?, average .*\n", self.ask("summary", name)[1]).group(0)

    def printed(self, name):
        """That line's numbers, times in ps."""
        line = self.line(name)
        times = [float(v) * UNITS[u] for v, u in re.findall(r"([\d.]+) (s|ms|µs|us|ns)\b", line)]
        return int(re.search(r"\d+", line).group(0)), times

    def near(self, shown, exact):
        """What is shown has three digits at least."""
        self.assertAlmostEqual(shown / exact, 1, delta=0.006)

    def compared(self, name):
        """The sides of the run with itself, and the first line of the text."""
        both = self.document("compare", name, name, "--json")
        return both["a"], both["b"], self.ask("compare", name, name)[1].split("\n", 1)[0]

    def check(self, name):
        hosts, n, first = SESSIONS[name]
        all_steps = self.breakdown(name)
        self.assertEqual(list(all_steps), list(range(first, first + n)))
        self.assertEqual({len(v) for v in all_steps.values()}, {hosts})
        self.assertEqual(self.document("findings", name, "--json")["steps"], n)
        kept = all_steps
        mean, host = statistics.mean(statistics.mean(v) for v in kept.values()), max(zip(*kept.values()), key=sum)
        slowest = statistics.mean(host)
        # summary: as JSON, and as text
        rows = self.document("summary", name, "--json")["steps"]
        self.assertEqual([r["step"] for r in rows], list(kept))
        for r in rows:
            self.assertEqual(r["slowest_core_ps"], max(kept[r["step"]]))
            self.assertEqual(r["mean_of_cores_ps"], int(statistics.mean(kept[r["step"]])))
        count, times = self.printed(name)
        self.assertEqual(count, len(kept))
        self.near(times[0], mean)
        self.near(times[1], min(statistics.mean(v) for v in kept.values()))
        self.near(times[2], max(statistics.mean(v) for v in kept.values()))
        self.assertEqual(len(times), 3 + (hosts > 1))
        if hosts > 1:
            self.near(times[3], slowest)
        # compare counts all steps, of the slowest device
        a, b, line = self.compared(name)
        self.assertEqual(a, b)
        self.assertEqual(a["steps"], n)
        self.assertAlmostEqual(a["mean_step_ps"], slowest, delta=1)
        words = "Step time, slowest device  " if a["devices"] > 1 else "Step time  "
        self.assertRegex(line, rf"^{words}[0-9.]+ \S+ \({n} step{'s' if n > 1 else ''}\) -> ")
        # the overview page averages the slowest host; its rows are of the first host
        (average, least, greatest), rows = self.overview(name)
        self.assertAlmostEqual(average, slowest / 1e9, delta=0.051)
        self.assertAlmostEqual(least, min(host) / 1e9, delta=0.051)
        self.assertAlmostEqual(greatest, max(host) / 1e9, delta=0.051)
        self.assertEqual([int(step.split()[-1]) for step, _ in rows], list(kept))
        for step, ms in rows:
            self.assertAlmostEqual(ms, kept[int(step.split()[-1])][0] / 1e9, places=6)
        # the database, which has the devices of a host apart
        self.assertEqual({k: sorted(set(v)) for k, v in self.database(name).items()}, {k: sorted(set(v)) for k, v in kept.items()})

    def parts(self, name):
        """{part: time in ps of all steps, of the mean of each host's devices} as the columns of `steps` group the causes."""
        out = collections.Counter()
        for host in self.document("tool", "time_breakdown", name, "--option", "view=steps")["hosts"]:
            for cause, part in PARTS.items():
                out[part] += sum(host["steps"].get(cause + "_ps", []))
        return out

    def same(self, got, expected):
        """Means of devices are whole."""
        for part in set(PARTS.values()):
            self.assertAlmostEqual(got[part], expected[part], delta=1000, msg=part)

    def check_causes(self, name):
        parts, devices = self.parts(name), self.document("findings", name, "--json")["devices"]
        pod = collections.Counter()
        for step in self.document("tool", "pod_viewer", name)["podStatsSequence"]["podStatsMap"]:
            for core in step["podStatsPerCore"].values():
                for kind, us in core["stepBreakdownUs"].items():
                    pod[KINDS[kind]] += us * 1e6
        self.same(pod, parts)
        columns = ", ".join(f"total({p}_ps)" for p in sorted(set(PARTS.values())))
        text = f"SELECT {columns}, total(duration_ps), count(DISTINCT host || core_id), count(DISTINCT host) FROM steps WHERE session = '{name}'"
        *sums, whole, cores, hosts = self.document("sql", name, text, "--format", "json")["rows"][0]
        self.assertEqual(cores, devices)
        self.assertEqual(sum(sums), whole)
        self.same({p: v * hosts / cores for p, v in zip(sorted(set(PARTS.values())), sums)}, parts)
        times = self.document("aggregate", name, "--json")["times"]
        found = self.document("findings", name, "--json")["times"]
        wall = sum(t["mean_ps"] for t in times)
        for t in times:
            self.assertAlmostEqual(100 * t["mean_ps"] / wall, found[t["cause"] + "_percent"], delta=0.002)

    def test_causes(self):
        """One cause has one time: in the breakdown, the findings, pod_viewer, the database and aggregate."""
        place = self.logdir / "plugins" / "profile" / "first_compiles"
        place.mkdir()
        shutil.copy(MEASURED / "first.xplane.pb.gz", place)
        for name in [*SESSIONS, place.name]:
            wait_until("it is listed", lambda: self.ask("hosts", name)[0] == 0)
            with self.subTest(session=name):
                self.check_causes(name)
        self.assertGreater(self.parts(place.name)["compile"], 0)
        self.assertGreater(self.parts("jax_4hosts")["collective"], 0)

    def test_views(self):
        for name in SESSIONS:
            with self.subTest(session=name):
                self.check(name)

    def test_hosts_without_a_device(self):
        """Beside a host with a device and without steps those of the others are shown, as they are of them alone."""
        place = self.logdir / "plugins" / "profile" / "mixed"
        place.mkdir()
        shutil.copy(DATA.parents[4] / "golden/cases/gpu_lost_costs/host.xplane.pb", place / "gpu.xplane.pb")
        shutil.copy(DATA / "jax_matmul_nopy" / "vm.xplane.pb", place / "cpu.xplane.pb")
        wait_until("it is listed", lambda: self.ask("hosts", "mixed")[0] == 0)
        for run in ("mixed", place):
            both, alone = (self.document("summary", run, "--json", *host)["steps"] for host in ([], ["--host", "cpu"]))
            self.assertEqual(len(both), 48)
            self.assertEqual(both, alone)
            text = self.ask("summary", run)[1]
            self.assertIn("\nSteps\n  of cpu; the other hosts have no steps\n", text)
            self.assertRegex(text, "\n  48 steps, average .*; of 50 steps the first and the last are left out\n")
            text = self.ask("summary", run, "--host", "gpu")[1]
            self.assertIn("\nNot in this profile: steps (it has no step markers)", text)


MEASURED = DATA.parents[3] / "steps"


class Loops(Case):
    """What a program measured with its own clock, and what each view says of its profile."""

    def document(self, *arguments):
        status, out, err = self.ask(*arguments)
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def cases(self):
        for line in (MEASURED / "measured.jsonl").read_text().splitlines():
            case = json.loads(line)
            with self.subTest(loop=case["case"]):
                yield MEASURED / (case["case"] + ".xplane.pb.gz"), case["steps"], case["wall_ms"] * 1e9

    def test_measured(self):
        """The mean is the time of the loop by its steps, in every view."""
        for path, n, wall_ps in self.cases():
            rows = self.document("summary", path, "--json")["steps"]
            self.assertEqual(len(rows), n)
            self.assertAlmostEqual(sum(r["slowest_core_ps"] for r in rows) / wall_ps, 1, delta=0.02)
            times = {r["name"]: r["slowest_core_ps"] for r in rows}
            steps = self.document("analyze", "time_breakdown", path)["hosts"][0]["devices"][0]["steps"]
            self.assertEqual({s["name"]: s["wall_ps"] for s in steps}, times)
            table = self.document("analyze", "overview_page", path)[1]
            series = {}
            for name, ps in times.items():
                series.setdefault(name.rsplit(" ", 1)[0], []).append(ps)
            most = max(series.values(), key=lambda v: (len(v), sum(v)))
            self.assertAlmostEqual(float(table["p"]["steptime_ms_average"]), sum(most) / len(most) / 1e9, delta=0.051)
            self.assertEqual("steptime_series" in table["p"], len(series) > 1)
            side = self.document("compare", path, path, "--json")["a"]
            self.assertEqual(sum(s["steps"] for s in side["series"]), n)
            self.assertAlmostEqual(sum(s["steps"] * s["mean_step_ps"] for s in side["series"]) / sum(times.values()), 1, places=6)

    def test_hosts(self):
        """Two processes wait for each other, and a busy machine slows one and the other: no view adds up the slower of each step."""
        path, wall_ps, n = MEASURED / "hosts", 86_605_000_000, 16
        table = self.document("analyze", "overview_page", path)[1]
        line = re.search(r"average of the slowest core ([\d.]+) ms", self.ask("summary", path)[1])
        means = [float(table["p"]["steptime_ms_average"]) * 1e9, self.document("compare", path, path, "--json")["a"]["mean_step_ps"],
                 self.document("findings", path, "--json")["verdict"]["step_ps"], float(line.group(1)) * 1e9]
        for mean in means:
            self.assertAlmostEqual(mean * n / wall_ps, 1, delta=0.01)
        hosts = [h["steps"]["wall_ps"] for h in self.document("analyze", "time_breakdown", path, "--option", "view=steps")["hosts"]]
        self.assertGreater(sum(map(max, *hosts)) / wall_ps, 1.05)  # such a session tells the two apart

    def test_compared(self):
        """A loop that never waits with one of more layers, and with one that fetches every fifth loss."""
        measured = {path.name.split(".")[0]: wall_ps / n for path, n, wall_ps in self.cases()}
        for other in ("never_5", "every"):
            answer = self.document("compare", *(MEASURED / (c + ".xplane.pb.gz") for c in ("never", other)), "--json")
            expected = 100 * (measured[other] / measured["never"] - 1)
            means = answer["a"]["mean_step_ps"], answer["b"]["mean_step_ps"]
            self.assertAlmostEqual(100 * (means[1] / means[0] - 1), expected, delta=4)
            # without first and last steps: of short profiles that is another mean
            self.assertAlmostEqual(answer["step_time"]["difference_percent"], expected, delta=0.1 * (100 + expected))

    def test_series(self):
        """Steps of evaluation are no outliers of training, and compare follows the training."""
        path = MEASURED / "two.xplane.pb.gz"
        side = self.document("compare", path, path, "--json")["a"]
        self.assertEqual([(s["name"], s["steps"]) for s in side["series"]], [("eval", 2), ("train", 8)])
        self.assertEqual(side["mean_step_ps"], side["series"][1]["mean_step_ps"])
        for f in self.document("findings", path, "--json")["findings"]:
            self.assertFalse(f["kind"] == "step_outliers" and any(s["name"].startswith("eval") for s in f["steps"]), f)

    def test_listed(self):
        """The text lists the longest steps, and says how many it leaves out."""
        text = self.ask("summary", DATA / "jax_matmul_nopy")[1]
        rows = self.document("summary", DATA / "jax_matmul_nopy", "--json")["steps"]
        longest = sorted(rows, key=lambda r: r["mean_of_cores_ps"])[-4:]
        listed = re.findall(r"^ *(\d+)  (step \d+) ", text.split("\nSteps\n")[1].split("\n\n")[0], re.M)
        self.assertLessEqual({(str(r["step"]), r["name"]) for r in longest}, set(listed))
        self.assertIn(f"\n  and {50 - len(listed)} more, none of them among the 4 longest\n", text)
        text = self.ask("summary", MEASURED / "two.xplane.pb.gz")[1]
        self.assertRegex(text, r"\nSERIES  STEPS  AVERAGE .*\ntrain  +8 .*\neval  +2 ")

    def test_exact(self):
        """As XProf: what the host does in the annotations."""
        path = MEASURED / "never.xplane.pb.gz"
        tables = [self.document("analyze", "overview_page", path, "--option", option)
                  for option in ("xprof_exact=true", "cpu_as_device=false")]
        self.assertEqual(*tables)
        self.assertLess(float(tables[0][1]["p"]["steptime_ms_average"]), 0.5)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
