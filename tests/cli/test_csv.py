#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--format csv of every command that has it, against the same command's JSON.

usage: test_csv.py XPLANECTL XPLANED [CLASS[.TEST]]...
"""
import csv
import io
import json
import re
import shutil

from harness import PROFILE, ROOT, Case, main

CPU = PROFILE.parent.parent
FOUR = CPU / "jax_4hosts"
GPU = ROOT / "tests" / "data" / "logdir" / "accel" / "plugins" / "profile" / "gpu_multi_worker"
FORMULA = "=+-@\t\r"


def cell(value):
    """A value of JSON as a cell."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, str):
        return "'" + value if value[:1] and value[0] in FORMULA else value
    if isinstance(value, list):
        return " ".join(str(cell(v)) for v in value)
    return value


def member(row, key):
    if not isinstance(row, dict):
        return row
    for part in key.split("."):
        row = (row[int(part)] if row else None) if isinstance(row, list) else row[part] if row else None
    return row


class Csv(Case):
    def read(self, *command):
        """Header and rows; strictly RFC 4180."""
        status, out, err = self.ask(*command, "--format", "csv", text=False)
        self.assertEqual((status, err.decode()), (0, ""), command)
        text = out.decode()
        self.assertTrue(text.endswith("\r\n"))
        outside = re.sub(r'"(?:[^"]|"")*"', "", text)
        self.assertEqual(outside.count("\n"), outside.count("\r\n"), command)
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        for row in rows:
            self.assertEqual(len(row), len(rows[0]), command)
        for quoted in re.findall(r'(?:^|[,\n])"([^"])', text):
            self.assertNotIn(quoted, FORMULA)
        return rows[0], rows[1:]

    def no_table(self, name, *command):
        status, out, err = self.ask(*command, "--format", "csv", "--section", name)
        self.assertEqual((status, out), (1, ""), err)
        self.assertIn(f'no table "{name}"', err)

    def start(self, *arguments, text=True, **options):
        if text:
            return super().start(*arguments, **options)
        process = super().start(*arguments, **options)
        return Bytes(process)

    def equal(self, rows, expected, what):
        self.assertEqual(len(rows), len(expected), what)
        for row, values in zip(rows, expected):
            for text, value in zip(row, values):
                value = cell(value)
                if isinstance(value, (int, float)):
                    self.assertEqual(float(text), float(value), (what, row))
                else:
                    self.assertEqual(text, value, (what, row))

    def sections(self):
        """What help says, which docs/cli-json.md says, too."""
        commands = {c["name"]: c for c in json.loads(self.ask("help", "--format", "json")[1])["commands"]}
        text = (ROOT / "docs" / "cli-json.md").read_text().split("## CSV", 1)[1].split("\n## ", 1)[0]
        said = {tuple(x.strip(" `") for x in line.split("|")[1:3]): re.findall(r"`([\w.]+)`", line.split("|")[3])
                for line in text.splitlines() if line.startswith("| `")}
        known = {(name, s["name"]): s["columns"] for name, c in commands.items() for s in c["sections"] if s["columns"]}
        self.assertEqual(said, known)
        return {name: c["sections"] for name, c in commands.items() if "csv" in c["formats"]}

    def test_each(self):
        """Every command with tables: its columns and values are those of its JSON."""
        profiles = self.logdir / "plugins" / "profile"
        shutil.copytree(FOUR, profiles / "four")
        shutil.copytree(GPU, profiles / "gpu")
        shutil.copytree(PROFILE.parent, profiles / "=1+1")
        self.daemon()
        self.assertEqual(self.ask("capture", "127.0.0.1:1", "--duration", "50ms")[0], 1)
        self.assertEqual(self.ask("capture", "127.0.0.1:1", "--every", "1h")[0], 0)
        self.assertEqual(self.ask("label", "four", "nightly", "main")[0], 0)
        commands = {"sessions": [[]], "label": [[], ["four"]], "hosts": [["four"]], "tools": [["four"], ["--all"]], "summary": [["gpu"], ["four"]],
                    "findings": [["four"], [FOUR]], "compare": [["four", "gpu"], [FOUR, CPU / "jax_8dev_shardmap"]],
                    "aggregate": [["four", "four"], [GPU]], "captures": [[]], "schedules": [[]], "hlo": [["four"], [FOUR]],
                    "events": None, "sql": None, "tool": None, "analyze": None,  # below
                    "history": None,  # test_history.py
                    "convert": None,  # tests/cluster/test_convert.py
                    "fleet": None}  # tests/python
        known = self.sections()
        self.assertEqual(set(known), set(commands))
        seen = 0
        for name, calls in commands.items():
            for arguments in calls or []:
                answer = json.loads(self.ask(name, *arguments, "--json")[1])
                for section in known[name]:
                    # Of two answers that a command has, each is one table.
                    if name in ("tools", "label") and (section["name"] == "session") != (arguments == ["four"]):
                        self.no_table(section["name"], name, *arguments)
                        continue
                    more = ["--section", section["name"]] if len(known[name]) > 1 and name not in ("tools", "label") else []
                    head, rows = self.read(name, *arguments, *more)
                    self.assertEqual(head, section["columns"])
                    expected = self.rows_of(name, section["name"], answer)
                    self.equal(rows, [[member(r, key) for key in head] for r in expected], (name, section["name"]))
                    seen += len(rows) > 0
        self.assertGreater(seen, 20)
        self.assertIn("'=1+1", [row[0] for row in self.read("sessions")[1]])
        # Without --section it is the first section.
        self.assertEqual(self.read("compare", "four", "gpu"), self.read("compare", "four", "gpu", "--section", "ops"))

    def rows_of(self, command, section, answer):
        if command == "summary" and section == "memory":
            return [{"host": host, "allocator": name, "peak_bytes": int(a["profileSummary"]["peakStats"]["peakBytesInUse"]),
                     "capacity_bytes": int(a["profileSummary"]["memoryCapacity"]),
                     "heap_bytes": int(a["profileSummary"]["peakStats"]["heapAllocatedBytes"]),
                     "stack_bytes": int(a["profileSummary"]["peakStats"]["stackReservedBytes"]),
                     "fragmentation_percent": 100 * a["profileSummary"]["peakStats"]["fragmentation"]}
                    for host, m in answer["memory"].items() for name, a in (m or {}).get("memoryProfilePerAllocator", {}).items()]
        if isinstance(answer, list):
            return answer
        if isinstance(answer.get(section), list):
            return answer[section]
        return answer["tools"] if command == "tools" else [answer]

    def test_tools(self):
        """A tool's tables, by number; headers have the units that labels have."""
        answer = json.loads(self.ask("analyze", "launches", GPU)[1])
        for number, table in enumerate(answer, 1):
            head, rows = self.read("analyze", "launches", GPU, "--section", str(number))
            self.assertEqual([h.split(" (")[0] for h in head], [c["id"] for c in table["cols"]])
            self.equal(rows, [[c.get("v") for c in r["c"]] for r in table["rows"]], number)
        head, rows = self.read("analyze", "launches", GPU)
        self.assertIn("total_time (us)", head)
        self.assertEqual(len(rows), len(answer[0]["rows"]))
        head, rows = self.read("analyze", "kernel_stats", GPU)
        self.assertIn("total_duration_us", head)
        kernels = json.loads(self.ask("analyze", "kernel_stats", GPU)[1])["rows"]
        self.equal(rows, [[c.get("v") for c in r["c"]] for r in kernels], "kernel_stats")
        # A cell of 1 that means everything is not a percentage, whatever the label says.
        head, rows = self.read("analyze", "overview_page", FOUR)
        self.assertEqual(head[:2], ["selfTimePercent (fraction of 1)", "cumulativeTimePercent (fraction of 1)"])
        self.assertLessEqual(max(float(r[1]) for r in rows), 1.000001)
        self.assertIn("device_total_self_time_percent (fraction of 1)", self.read("analyze", "framework_op_stats", FOUR)[0])
        self.assertIn("total_self_time_percent (fraction of 1)", self.read("analyze", "roofline_model", FOUR)[0])
        self.assertIn("total_self_time_percent", self.read("analyze", "hlo_stats", FOUR)[0])  # 100 is all
        # Behind tables without columns: the first that has some.
        head, rows = self.read("analyze", "input_pipeline_analyzer", FOUR)
        self.assertEqual((head[0], len(rows)), ("stepnum", 20))
        head, rows = self.read("analyze", "pod_viewer", FOUR)
        self.assertEqual((head[:5], len(rows)), (["step", "core", "host", "bottleneck", "duration_us"], 80))
        head, rows = self.read("analyze", "collectives", CPU / "jax_8dev_shardmap")
        self.assertIn("bus_bandwidth (GB/s)", head)
        head, rows = self.read("hlo", FOUR / "host-0.cluster.local.xplane.pb", "10", "--memory", "ops")
        table = json.loads(self.ask("hlo", FOUR / "host-0.cluster.local.xplane.pb", "10", "--memory", "ops", "--json")[1])
        self.equal(rows, [[c.get("v") for c in r["c"]] for r in table["rows"]], "memory")

    def test_text(self):
        """Quotes, ends of lines, formulas and what is none."""
        head, rows = self.read("sql", PROFILE, "SELECT '=1+1' AS \"=x\", 'a\"b' AS q, 'c' || char(13) || char(10) AS line, '-' AS minus, "
                               "-5 AS number, 0.1 AS real, NULL AS missing, '@x', ''")
        self.assertEqual(head[:7], ["'=x", "q", "line", "minus", "number", "real", "missing"])
        self.assertEqual(rows, [["'=1+1", 'a"b', "c\r\n", "'-", "-5", "0.1", "", "'@x", ""]])

    def test_output(self):
        """-o: whole or not at all; a section that is not there."""
        file = self.place / "out.csv"
        self.assertEqual(self.ask("findings", FOUR, "--format", "csv", "-o", file), (0, "", ""))
        self.assertEqual(file.read_bytes().decode(), self.ask("findings", FOUR, "--format", "csv", text=False)[1].decode())
        file.unlink()
        for words, status, text in ((["analyze", "launches", GPU, "--format", "csv", "--section", "9"], 1, "no table of that number"),
                                    (["analyze", "op_profile", FOUR, "--format", "csv"], 1, "the answer has no tables"),
                                    (["analyze", "findings", FOUR, "--format", "csv"], 1, "the answer has no tables"),
                                    (["analyze", "findings", FOUR, "--format", "table"], 1, "--format table: the answer has no tables"),
                                    (["analyze", "launches", GPU, "--format", "csv", "--section", "x"], 2, "--section of analyze is N, not x"),
                                    (["compare", FOUR, FOUR, "--format", "csv", "--section", "step"], 2, 'did you mean "steps"?'),
                                    (["compare", FOUR, FOUR, "--section", "steps"], 2, "with --format csv"),
                                    (["hlo", FOUR, "10", "--format", "csv"], 2, "of the list, and of --memory"),
                                    (["analyze", "launches", GPU, "--table", "--format", "csv"], 2, "--table and --format csv")):
            code, out, err = self.ask(*words, "-o", file)
            self.assertEqual((code, out), (status, ""), words)
            self.assertIn(text, err)
            self.assertFalse(file.exists(), words)


class Bytes:
    """A process whose output is bytes: line ends stay what they are."""

    def __init__(self, process):
        self.process = process
        self.returncode = None

    def communicate(self, timeout):
        out, err = self.process.stdout.buffer.read(), self.process.stderr.buffer.read()
        self.returncode = self.process.wait(timeout)
        return out, err


if __name__ == "__main__":
    main("xplanectl", "xplaned")
