#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`xplanectl label` and `xplanectl history`, and what HTTP says of both.

usage: test_history.py XPLANECTL XPLANED
"""
import contextlib
import csv
import io
import json
import re
import shutil
import sqlite3
import urllib.error
import urllib.parse
import urllib.request

from harness import PROFILE, ROOT, Case, main, wait_until
from test_cli import wire


def run_of(step_us, op_us, begin_s, steps=20):
    """An XSpace of one CPU: steps with a fusion of `op_us` and a dot of 2 us each."""
    def table(field, *names):
        return b"".join(wire(field, wire(1, i) + wire(2, wire(1, i) + wire(2, name))) for i, name in enumerate(names, 1))

    def event(metadata, begin_us, us, *stats):
        return wire(4, wire(1, metadata) + wire(2, int(begin_us * 10**6)) + wire(3, int(us * 10**6)) + b"".join(
            wire(4, wire(1, stat) + wire(4 if isinstance(value, int) else 5, value)) for stat, value in stats))
    begin, op = wire(3, begin_s * 10**9), ((4, "jit_step"), (5, 6))
    marks = b"".join(event(1, i * step_us, step_us, (1, 1), (2, i)) for i in range(steps))
    ops = b"".join(event(2, i * step_us + 1, op_us, (3, "fusion.1"), *op) +
                   event(3, i * step_us + 1 + op_us, 2, (3, "dot.2"), *op) for i in range(steps))
    return wire(1, wire(2, "/host:CPU") + wire(3, wire(1, 1) + wire(2, "python") + begin + marks) +
                wire(3, wire(1, 2) + wire(2, "tf_XLAEigen/2") + begin + ops) + table(4, "train", "fusion.1", "dot.2") +
                table(5, "_r", "step_num", "hlo_op", "hlo_module", "program_id"))


def documented_metrics():
    page = (ROOT / "docs" / "history.md").read_text().split("## Metrics", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([a-z0-9_]+)", page, re.M)


class Sessions(Case):
    """A daemon with some sessions."""

    def add_session(self, name, profile=PROFILE):
        place = self.logdir / "plugins" / "profile" / name
        place.mkdir(parents=True)
        shutil.copy(profile, place / "h.xplane.pb")

    def answer(self, *arguments):
        status, out, err = self.ask(*arguments)
        self.assertEqual(status, 0, err)
        return out

    def json(self, *arguments):
        return json.loads(self.answer(*arguments, "--format", "json"))

    def post(self, route, method="POST", **headers):
        request = urllib.request.Request(route, method=method, headers=headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def refused(self, status, text, *arguments):
        got, out, err = self.ask(*arguments)
        self.assertEqual((got, out), (status, ""), err)
        self.assertIn(text, err)


class Labels(Sessions):
    def labels(self):
        return {s["name"]: s["labels"] for s in json.loads(self.answer("sessions", "--json"))}

    def test_labels(self):
        """They are set, listed, taken away, kept over a restart, and go with their session."""
        for name in ("one", "two", "three"):
            self.add_session(name)
        daemon = self.daemon()
        self.answer("label", "one", "nightly", "v1.2")
        self.answer("label", "two", "nightly")
        self.assertEqual(self.labels(), {"one": ["nightly", "v1.2"], "two": ["nightly"], "three": []})
        self.assertEqual(self.answer("label", "one"), "nightly\nv1.2\n")
        self.assertEqual(self.json("label", "one"), {"session": "one", "labels": ["nightly", "v1.2"]})
        rows = self.json("label")
        text = (ROOT / "docs" / "cli-json.md").read_text().split("## label", 1)[1].split("\n## ", 1)[0]
        self.assertEqual({key for row in rows for key in row} | set(self.json("label", "one")),
                         set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in text.splitlines() if line[:1] == "|"))))
        self.assertEqual([(r["label"], r["sessions"], r["newest"]) for r in rows],
                         [("nightly", 2, rows[0]["newest"]), ("v1.2", 1, "one")])
        self.assertIn(rows[0]["newest"], ("one", "two"))
        self.assertGreater(rows[0]["newest_captured_unix_ms"], 0)
        self.assertEqual(self.answer("label").split(), ["LABEL", "SESSIONS", "NEWEST", "nightly", "2", rows[0]["newest"],
                                                        "v1.2", "1", "one"])
        line = next(line for line in self.answer("sessions").splitlines() if line.startswith("one"))
        self.assertTrue(line.endswith("nightly v1.2"), line)
        self.assertEqual(self.json("label", "one", "best", "--remove", "v1.2"), {"session": "one", "labels": ["best", "nightly"]})
        daemon.end()
        self.daemon()
        self.assertEqual(self.labels(), {"one": ["best", "nightly"], "two": ["nightly"], "three": []})
        shutil.rmtree(self.logdir / "plugins" / "profile" / "one")
        wait_until("its labels go", lambda: [r["label"] for r in self.json("label")] == ["nightly"])
        self.add_session("one")
        wait_until("it comes back", lambda: "one" in self.labels())
        self.assertEqual(self.labels()["one"], [])

    def test_refusals(self):
        self.add_session("one")
        self.daemon()
        for status, text, *arguments in (
                (2, 'label "a b", character 2: only letters', "one", "a b"),
                (2, "a label is empty", "one", ""),
                (2, 'label "-a", character 1', "one", "--", "-a"),
                (1, 'no label "x"', "one", "--remove", "x"),
                (1, 'did you mean "one"', "onne", "x")):
            self.refused(status, text, "label", *arguments)
        self.refused(2, "which session's label?", "label", "--remove", "x")
        self.refused(2, "is table, csv or json", "label", "--format", "xml")
        self.assertEqual(self.labels(), {"one": []})

    def test_http(self):
        """POST alone changes labels, and not from pages of other sites."""
        self.add_session("one")
        daemon = self.daemon()
        route = f"http://{daemon.http}/api/v1/label?session=one"
        self.assertEqual(self.post(route + "&add=a&add=b"), {"labels": ["a", "b"]})
        self.assertEqual(self.post(route + "&remove=a"), {"labels": ["b"]})
        sessions = self.post(f"http://{daemon.http}/api/v1/sessions", "GET")["sessions"]
        self.assertEqual([s["labels"] for s in sessions], [["b"]])
        for status, query, method, headers in (
                (405, "&add=x", "GET", {}),
                (403, "&add=x", "POST", {"Origin": "http://evil.example"}),
                (403, "&add=x", "POST", {"User-Agent": "Mozilla/5.0", "Sec-Fetch-Site": "cross-site"}),
                (400, "&add=" + urllib.parse.quote('"'), "POST", {}),
                (404, "&remove=x", "POST", {})):
            with self.assertRaises(urllib.error.HTTPError, msg=(query, headers)) as failure:
                self.post(route + query, method, **headers)
            self.assertEqual(failure.exception.code, status, (query, headers))
        self.assertEqual(self.labels(), {"one": ["b"]})


class History(Sessions):
    """Twelve hours of runs; from the eighth on the fusion takes 4 us more."""

    def make_runs(self):
        for i in range(12):
            place = self.logdir / "plugins" / "profile" / f"run{i:02}"
            place.mkdir(parents=True)
            slow = i >= 7
            (place / "h.xplane.pb").write_bytes(run_of(20 + 4 * slow + i % 3 / 10, 6 + 4 * slow, 1_700_000_000 + i * 3600))

    def test_regression(self):
        """The change, its size and the op behind it; of a directory, of sessions, over HTTP alike."""
        self.make_runs()
        here = self.json("history", "--dir", self.logdir, "--metric", "step_time", "--metric", "compute")
        daemon = self.daemon()
        self.assertEqual(self.json("history", "--metric", "step_time", "--metric", "compute"), here)
        with urllib.request.urlopen(f"http://{daemon.http}/api/v1/history?metric=step_time&metric=compute") as answer:
            self.assertEqual(json.load(answer), here)
        self.assertEqual([s["session"] for s in here["sessions"]], [f"run{i:02}" for i in range(12)])
        steps, compute = here["metrics"]
        self.assertEqual([p["value"] for p in steps["points"]],
                         [(20 + 4 * (i >= 7)) * 1e6 + i % 3 * 1e5 for i in range(12)])
        self.assertEqual([p["captured_unix_ms"] for p in steps["points"]], [1_700_000_000_000 + i * 3_600_000 for i in range(12)])
        self.assertAlmostEqual(steps["points"][7]["change_percent"], 20.5)
        self.assertAlmostEqual(steps["points"][7]["median_change_percent"], 100 * (24.1 - 20.1) / 20.1)
        for metric in (steps, compute):
            change, = metric["changes"]
            self.assertEqual((change["session"], change["sessions_before"], change["sessions_after"], change["regression"]),
                             ("run07", 7, 5, True))
            self.assertEqual([(t["cause"], t["difference_ps"]) for t in change["times"][:1]], [("compute", 4e6)])
            op, = change["ops"]
            self.assertEqual((op["op"], op["a_ps"], op["b_ps"], op["difference_ps"]), ("fusion", 6e6, 10e6, 4e6))
        self.assertEqual((compute["changes"][0]["before"], compute["changes"][0]["after"]), (8e6, 12e6))
        text = self.answer("history")
        self.assertIn("Regression of step_time: 20.1 µs -> 24.1 µs (+20.09%) since run07, means of 7 and 5 sessions", text)
        self.assertRegex(text, r"(?m)^run07 .* regression *$")
        self.assertRegex(text, r"(?m)^fusion .* 6.00 µs +10.0 µs +\+4.00 µs$")
        rows = list(csv.DictReader(io.StringIO(self.answer("history", "--metric", "op:fusion", "--format", "csv"))))
        self.assertEqual([(r["session"], float(r["value"]), r["new_level"]) for r in rows],
                         [(f"run{i:02}", 10e6 if i >= 7 else 6e6, "regression" if i == 7 else "") for i in range(12)])

    def test_noise(self):
        """One run a side is judged by the noise of the sessions with a label of A; changes of level are none."""
        self.make_runs()
        daemon = self.daemon()
        self.assertEqual(self.ask("compare", "run00", "run10", "--fail-if", "step_time>5%")[0], 5)
        for i in range(12):
            self.answer("label", f"run{i:02}", "nightly", "a")
        self.answer("label", "run11", "--remove", "a")
        both = self.json("compare", "run00", "run10")
        self.assertEqual(both["history"], {"label": "a", "sessions": 9})  # neither run00 nor run10
        self.assertEqual((both["step_time"]["noise"], both["times"][0]["noise"]), ("history", "history"))
        low, high = both["step_time"]["interval_ps"]
        self.assertTrue(3.7e6 < low < 4.1e6 < high < 4.5e6, (low, high))  # steps differ by 0.1 us between runs
        self.assertTrue(0.8 < both["step_time"]["detectable_percent"] < 3.5, both["step_time"])
        with urllib.request.urlopen(f"http://{daemon.http}/api/v1/compare?a=run00&b=run10") as answer:
            self.assertEqual(json.load(answer), both)
        # The label that B has, too.
        self.assertIn("\nNoise: between 10 sessions labelled nightly; ", self.answer("compare", "run00", "run11"))
        for b, status in (("run10", 4), ("run03", 0)):
            self.assertEqual(self.ask("compare", "run00", b, "--fail-if", "step_time>5%")[0], status)
        self.assertEqual(self.ask("compare", "run00", "run02", "--fail-if", "step_time>0.5%")[0], 5)
        # Each group has its own noise.
        three = self.json("compare", "run00,run01,run02", "run08,run09,run10")
        self.assertEqual((three["history"], three["step_time"]["noise"]), (None, "runs"))
        # The history leaves out unreadable sessions.
        place = self.logdir / "plugins" / "profile" / "broken"
        place.mkdir()
        (place / "h.xplane.pb").write_bytes(b"\x0a\xff")
        wait_until("it is there", lambda: any(s["name"] == "broken" for s in json.loads(self.answer("sessions", "--json"))))
        self.answer("label", "broken", "a")
        self.assertEqual(self.json("compare", "run00", "run10")["history"]["sessions"], 9)

    def test_without(self):
        """Sessions without a value are listed with the reason."""
        self.make_runs()
        for name, bytes_ in (("idle", run_of(20, 6, 1_700_000_500, steps=0)), ("broken", b"\x0a\xff")):
            place = self.logdir / "plugins" / "profile" / name
            place.mkdir()
            (place / "h.xplane.pb").write_bytes(bytes_)
        metric, = self.json("history", "--dir", self.logdir)["metrics"]
        reasons = {w["session"]: w["reason"] for w in metric["without"]}
        self.assertEqual(reasons, {"idle": "no device events were recorded", "broken": "cannot be read"})
        self.assertEqual(len(metric["points"]), 12)
        self.assertRegex(self.answer("history", "--dir", self.logdir), r"(?m)^idle .* no device events were recorded$")

    def test_selection(self):
        self.make_runs()
        place = self.logdir / "plugins" / "profile" / "broken"
        place.mkdir()
        (place / "h.xplane.pb").write_bytes(b"\x0a\xff")
        daemon = self.daemon()
        for i in (1, 3, 9):
            self.answer("label", f"run{i:02}", "nightly")
        sessions = [s["session"] for s in self.json("history", "--label", "nightly")["sessions"]]
        self.assertEqual(sessions, ["run01", "run03", "run09"])
        self.assertEqual([s["session"] for s in self.json("history", "--label", "nightly", "--last", "2")["sessions"]], sessions[1:])
        everything = self.json("history", "--dir", "plugins")
        self.assertEqual(len(everything["sessions"]), 13)
        self.assertEqual([s["session"] for s in everything["sessions"] if s["error"]], ["broken"])
        self.assertEqual(len(everything["metrics"][0]["points"]), 12)
        self.assertIn("warning: broken: ", self.ask("history")[2])
        self.assertEqual([s["session"] for s in self.json("history", "--since", "1h")["sessions"]], ["broken"])
        for status, text, *arguments in (
                (1, 'did you mean "nightly"', "--label", "nightl"),
                (2, 'label "a b", character 2', "--label", "a b"),
                (1, "the schedule 7 has no sessions", "--schedule", "7"),
                (1, 'no session is below the directory "elsewhere"\n', "--dir", "elsewhere"),
                (1, 'the directory "plugins/profil"; did you mean "plugins/profile"?', "--dir", "plugins/profil"),
                (1, "no session matches all conditions", "--dir", "plugins", "--label", "nightly", "--since", "1ms"),
                (2, 'did you mean "step_time"', "--metric", "step_tim"),
                (2, 'did you mean "step_time"', "--dir", self.logdir, "--metric", "step_tim"),
                (1, 'no session has the op "fusoin"; did you mean "fusion"?', "--metric", "op:fusoin"),
                (1, 'no session has the op "fusoin"; did you mean "fusion"?', "--dir", self.logdir, "--metric", "op:fusoin"),
                (1, 'no session has the kernel "fusion"', "--metric", "kernel:fusion"),
                (1, 'no session has the allocator "x"', "--metric", "step_time", "--metric", "memory:x"),
                (2, 'metric "op:", character 4: a name is missing', "--metric", "op:"),
                (2, "labels and schedules are a daemon's", "--dir", self.logdir, "--label", "nightly"),
                (2, "not a number from 1 to 1024", "--last", "5000"),
                (2, "--label: it is empty", "--label", ""),
                (2, "--dir: it is empty", "--dir", ""),
                (2, "--since 5", "--since", "5")):
            got, out, err = self.ask("history", *arguments)
            self.assertEqual((got, out), (status, ""), (arguments, err))
            self.assertIn(text, err)
        route = f"http://{daemon.http}/api/v1/history?"
        for status, query in ((404, "label=none"), (400, "last=x"), (400, "last=2000"), (400, "metric=none"), (404, "metric=op:none"),
                              (404, "schedule=9")):
            with self.assertRaises(urllib.error.HTTPError, msg=query) as failure, urllib.request.urlopen(route + query):
                pass
            self.assertEqual(failure.exception.code, status, query)
        with urllib.request.urlopen(route + "label=nightly&last=1") as answer:
            self.assertEqual([s["session"] for s in json.load(answer)["sessions"]], ["run09"])

    def test_gauges(self):
        """/metrics: the newest session of each label, also when another one becomes it."""
        self.make_runs()
        daemon = self.daemon()
        for i, label in ((1, "nightly"), (3, "nightly"), (0, "main")):
            self.answer("label", f"run{i:02}", label)

        def gauges():
            with urllib.request.urlopen(f"http://{daemon.http}/metrics") as answer:
                lines = [line for line in answer.read().decode().splitlines() if line.startswith("xplaned_label_")]
            return {name[len("xplaned_label_"):]: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

        def step(label):
            return gauges().get(f'newest_step_seconds{{label="{label}"}}')
        wait_until("steps are known", lambda: step("nightly") and step("main"))
        now = gauges()
        self.assertEqual(now['sessions{label="nightly"}'], 2)
        self.assertEqual(now['newest_captured_timestamp_seconds{label="nightly"}'], 1_700_000_000 + 3 * 3600)
        self.assertAlmostEqual(now['newest_step_seconds{label="nightly"}'], 20e-6)
        self.assertAlmostEqual(now['newest_time_seconds{label="nightly",cause="compute"}'], 8e-6)
        self.answer("label", "run08", "nightly")
        wait_until("the newest is another", lambda: abs((step("nightly") or 0) - 24.2e-6) < 1e-12)
        self.answer("label", "run00", "--remove", "main")
        self.assertNotIn('sessions{label="main"}', gauges())

    def test_gauges_of_many(self):
        """As many labels as are told: figures of sessions that are no longer the newest give way to those that are."""
        for i in range(66):
            place = self.logdir / "plugins" / "profile" / f"run{i:02}"
            place.mkdir(parents=True)
            (place / "h.xplane.pb").write_bytes(run_of(20, 6, 1_700_000_000 + i * 3600, 2))
        daemon = self.daemon("--no-prefetch")
        for run, label in [(i, i) for i in range(64)]:
            self.post(f"http://{daemon.http}/api/v1/label?session=run{run:02}&add=l{label:02}")

        def are_known():
            with urllib.request.urlopen(f"http://{daemon.http}/metrics") as answer:
                return answer.read().decode().count("\nxplaned_label_newest_step_seconds{") == 64
        wait_until("all are known", are_known)
        for run, label in ((64, 10), (65, 20)):
            self.post(f"http://{daemon.http}/api/v1/label?session=run{run:02}&add=l{label:02}")
        wait_until("all are known again", are_known)
        self.assertTrue(all(are_known() for _ in range(3)))

    def test_sql(self):
        """Views of histories say of step times what the history does."""
        self.make_runs()
        self.daemon()
        for i in (1, 3, 9):
            self.answer("label", f"run{i:02}", "nightly")
        self.assertEqual(self.json("sql", "SELECT label, session FROM labels ORDER BY session")["rows"],
                         [["nightly", f"run{i:02}"] for i in (1, 3, 9)])
        for i in (1, 3, 9):
            self.answer("tool", "overview_page", f"run{i:02}")
        query = "SELECT session, value, change_percent FROM label_history WHERE metric = 'core_step_time' ORDER BY session"
        rows = wait_until("their rows are there", lambda: (found := self.json("sql", query)["rows"])[2:] and found)
        points = self.json("history", "--label", "nightly")["metrics"][0]["points"]
        self.assertEqual([r[:2] for r in rows], [[p["session"], p["value"]] for p in points])
        for row, point in zip(rows[1:], points[1:]):
            self.assertAlmostEqual(row[2], point["change_percent"])
        for view, there in (("core_metrics", False), ("run_metrics", True)):
            metrics = self.json("sql", f"SELECT DISTINCT metric FROM {view}")["rows"]
            mine, theirs = {m.split(":")[0] for m, in metrics}, set(documented_metrics())
            self.assertEqual(bool(mine & theirs), there, "one name, two definitions")
        self.assertEqual(self.json("sql", "SELECT count(DISTINCT metric) FROM session_metrics WHERE metric IN"
                                          " ('core_step_time', 'step_time', 'op_total:fusion.1', 'op:fusion')")["rows"], [[4]])
        self.assertEqual(self.ask("sql", "SELECT * FROM captures")[0], 1)

    def test_sql_metrics(self):
        """The views have every metric of every session that `history` has, with its numbers; so has a statement over paths."""
        runs = {}
        for path in sorted((ROOT / "tests/data/logdir").glob("*/plugins/profile/*")):
            runs[path.name] = shutil.copytree(path, self.logdir / "plugins" / "profile" / path.name)
        (self.logdir / "plugins" / "profile" / "broken").mkdir()
        (self.logdir / "plugins" / "profile" / "broken" / "h.xplane.pb").write_bytes(b"\x0a\xff")
        self.assertGreater(len(runs), 10)
        self.daemon()
        query = "SELECT metric, unit, better, session, value FROM session_metrics WHERE session_captured_ns > 0"
        found = {}
        for metric, *row in self.json("sql", query)["rows"]:  # no request came before
            found.setdefault(metric, []).append(row)
        metrics = sorted(metric for metric in found if not metric.startswith(("core_", "longest_core", "op_total:", "kernel_total:")))
        kinds = {metric.split(":")[0] for metric in metrics}
        self.assertTrue({"step_time", "step_deviation", "compile_time", "model_rate", "utilization", "peak_memory", "input", "op",
                         "kernel", "memory"} <= kinds, kinds)
        self.assertTrue(set(documented_metrics()) - {"a cause"} <= kinds, kinds)
        self.refused(1, "these sessions are of ", "history")
        for some in (metrics[at:at + 50] for at in range(0, len(metrics), 50)):
            flags = [word for metric in some for word in ("--metric", metric)]
            answer = self.json("history", "--dir", "plugins", *flags)
            self.assertIn("broken", [s["session"] for s in answer["sessions"] if s["error"]])
            for metric in answer["metrics"]:
                expected = [[metric["unit"], metric["better"], p["session"], p["value"]] for p in metric["points"]]
                self.assertEqual(sorted(found[metric["metric"]]), sorted(expected), metric["metric"])
        one = "SELECT session, value FROM {} WHERE metric = 'peak_memory' ORDER BY 1"
        rows = self.json("sql", one.format("session_metrics"))["rows"]
        self.assertEqual(len(rows), sum("peak_memory" == m for m in found for _ in found[m]))
        self.assertEqual(self.json("sql", *runs.values(), one.format("session_metrics"))["rows"], rows)
        self.assertEqual(self.json("sql", one.format("run_metrics"))["rows"], rows)
        self.assertEqual(self.json("sql", "SELECT value FROM run_metrics WHERE metric = 'peak_memory'"
                                          f" AND session = '{rows[0][0]}'")["rows"], [rows[0][1:]])

    def test_sql_of_schedules(self):
        """Views of schedules say what `history --schedule` does."""
        self.make_runs()
        self.daemon().end()
        with contextlib.closing(sqlite3.connect(self.state / "state.db")) as db, db:
            db.executemany("INSERT INTO schedule_sessions(schedule_id, name, dev, ino, bytes, made_ms, hosts)"
                           " VALUES (7, ?, 1, 1, 1, 1, 1)", [(f"run{i:02}",) for i in range(1, 12)])
        self.daemon()
        metric, = self.json("history", "--schedule", "7")["metrics"]
        self.assertEqual(len(metric["points"]), 11)
        where = "WHERE schedule_id = 7 AND metric = 'step_time'"
        self.assertEqual(self.json("sql", f"SELECT session, value, median_change_percent FROM schedule_history {where}")["rows"],
                         [[p["session"], p["value"], p["median_change_percent"]] for p in metric["points"]])
        self.assertEqual(self.json("sql", f"SELECT session, sessions_before, regression FROM schedule_changes {where}")["rows"],
                         [[c["session"], c["sessions_before"], int(c["regression"])] for c in metric["changes"]])
        self.assertEqual(len(metric["changes"]), 1)
        self.refused(1, "reading the table schedule_sessions is not allowed", "sql", "SELECT * FROM schedule_sessions")

    def test_sql_reads_what_it_needs(self):
        """Sessions are converted for their metrics where a statement comes to them, and no others."""
        self.make_runs()
        self.daemon()
        self.answer("label", "run01", "nightly")
        self.answer("label", "run03", "other")
        for query, sessions in (
                ("SELECT 1 + count(*) FROM label_changes WHERE label = 'nightly'", ["run01"]),
                ("SELECT count(*) FROM label_history WHERE label = 'nightly' AND metric = 'step_time'", ["run01"]),
                ("SELECT count(*) FROM label_history", ["run01", "run03"]),
                ("SELECT count(*) FROM session_metrics WHERE session = 'run05'", ["run01", "run03", "run05"]),
                ("SELECT count(*) FROM sessions s JOIN session_metrics m ON m.session = s.name WHERE s.name = 'run07'",
                 ["run01", "run03", "run05", "run07"]),
                ("SELECT count(*) FROM run_metrics WHERE metric = 'steps'", [f"run{i:02}" for i in range(12)])):
            self.assertGreater(self.json("sql", query)["rows"][0][0], 0)
            self.assertEqual(self.json("sql", "SELECT DISTINCT session FROM steps ORDER BY 1")["rows"], [[s] for s in sessions], query)

    def test_sql_changes(self):
        """Change points, and changes against the one before and the median of all before, are those of `history`."""
        self.make_runs()
        self.daemon()
        for i in range(12):
            self.answer("label", f"run{i:02}", "nightly", *(["half"] if i < 6 else []))
        some = ("step_time", "steps", "longest_step", "compute", "busy_time", "unknown", "op:fusion", "op:dot")
        for label in ("nightly", "half"):
            values, changes = {}, {}
            for metric, *row in self.json("sql", "SELECT metric, session, session_captured_ns / 1000000, value, change_percent,"
                                                 f" median_change_percent FROM label_history WHERE label = '{label}'")["rows"]:
                values.setdefault(metric, []).append(row)
            for metric, *row in self.json("sql", "SELECT metric, session, session_captured_ns / 1000000, sessions_before,"
                                                 " sessions_after, before, after, difference_percent, regression FROM label_changes"
                                                 f" WHERE label = '{label}' ORDER BY session_captured_ns")["rows"]:
                changes.setdefault(metric, []).append(row)
            answer = self.json("history", "--label", label, *(word for metric in some for word in ("--metric", metric)))
            self.assertEqual(len(answer["metrics"]), len(some))
            for metric in answer["metrics"]:
                self.assertEqual(values[metric["metric"]], [[p["session"], p["captured_unix_ms"], p["value"], p["change_percent"],
                                                             p["median_change_percent"]] for p in metric["points"]])
                self.assertEqual(len(changes.get(metric["metric"], [])), len(metric["changes"]), metric["metric"])
                for mine, c in zip(changes.get(metric["metric"], []), metric["changes"]):
                    self.assertEqual(mine[:4] + [bool(mine[7])], [c["session"], c["captured_unix_ms"], c["sessions_before"],
                                                                  c["sessions_after"], c["regression"]])
                    for number, key in zip(mine[4:7], ("before", "after", "difference_percent")):
                        self.assertAlmostEqual(number, c[key], delta=abs(c[key]) * 1e-12)
            self.assertEqual({"step_time", "op:fusion", "core_step_time"} <= set(changes), label == "nightly")
        # The documented statements.
        page = (ROOT / "docs" / "history.md").read_text().split("## SQL", 1)[1].split("\n## ", 1)[0]
        statements = re.findall(r'xplanectl sql "([^"]+)"', page)
        history, changes, ops, places = [self.json("sql", s)["rows"] for s in statements]
        self.assertEqual([row[0] for row in history], [f"run{i:02}" for i in range(12)])
        self.assertEqual(history[7][1], 24.1e-3)
        self.assertTrue(changes and all(row[1] == "run07" and row[4] > 0 for row in changes), changes)
        self.assertEqual([op for op, _ in ops], ["op:fusion", "op:dot"])
        self.assertAlmostEqual(ops[0][1], 4)
        self.assertAlmostEqual(ops[1][1], 0)
        self.assertEqual(places, [["[8]"]])
        # By any rule of one's own: the sessions below a directory.
        rows = self.json("sql", "SELECT DISTINCT level_starts(m.value) OVER (ORDER BY m.session_captured_ns, m.session ROWS BETWEEN"
                                " UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM run_metrics m JOIN sessions s ON"
                                " s.name = m.session WHERE s.path LIKE 'plugins/%' AND m.metric = 'step_time'")["rows"]
        self.assertEqual(rows, [["[8]"]])

    def test_documented(self):
        """docs/cli-json.md has the keys, docs/history.md the metrics."""
        self.make_runs()
        text = (ROOT / "docs" / "cli-json.md").read_text().split("## history", 1)[1].split("\n## ", 1)[0]
        keys = set()

        def collect(value):
            for one in value if isinstance(value, list) else value.values():
                if isinstance(one, (dict, list)):
                    collect(one)
            if isinstance(value, dict):
                keys.update(value)
        collect(self.json("history", "--dir", self.logdir))
        for key in keys:
            self.assertIn(f"`{key}`", text)
        page = (ROOT / "docs" / "history.md").read_text()
        everything = ["step_time", "step_deviation", "longest_step", "steps", "busy_time", "compile_time", "model_rate",
                      "bf16_rate", "utilization", "peak_memory"]
        flags = [word for name in everything for word in ("--metric", name)]
        found = self.json("history", "--dir", self.logdir, *flags)["metrics"]
        for metric in found:
            self.assertRegex(page, rf"\| `{metric['metric']}` .*\| {metric['unit']} \|")


if __name__ == "__main__":
    main("xplanectl", "xplaned")
