#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`xplanectl sql` against SQLite's ordinary tables of the same rows, and against what is hostile.

usage: test_sql.py XPLANECTL XPLANED
"""
import csv
import io
import json
import os
import pathlib
import shutil
import socket
import sqlite3
import time
import urllib.error
import urllib.parse
import urllib.request

import events_oracle as oracle
from harness import ROOT, Case, main, wait_until
from test_events import REAL, random_profile

QUERIES = [
    "SELECT count(*) FROM events",
    "SELECT name, count(*) FROM events GROUP BY name",
    "SELECT name, count(*) FROM events WHERE plane = '/device:GPU:0' GROUP BY name",
    "SELECT plane, name, count(*) FROM events WHERE name = 'jit_f' GROUP BY plane, name ORDER BY 1",
    "SELECT name, count(*) FROM events GROUP BY name ORDER BY name DESC",
    "SELECT DISTINCT name FROM events ORDER BY name",
    "SELECT plane, line, name, start_ps, duration_ps, end_ps FROM events ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT plane, name, start_ps FROM events WHERE start_ps BETWEEN 3000000 AND 9000000 ORDER BY 1, 2, 3",
    "SELECT plane, name, start_ps FROM events WHERE start_ps > 3000000 AND start_ps < 9000000.5 ORDER BY 1, 2, 3",
    "SELECT name, start_ps FROM events WHERE end_ps >= 8000000 AND start_ps <= 8000000 ORDER BY 1, 2",
    "SELECT plane, sum(duration_ps) FROM events WHERE name IN ('copy', 'fusion.1') GROUP BY plane ORDER BY 1",
    "SELECT name FROM events WHERE name = 5 OR plane = 7 OR start_ps = '400000' OR start_ps > 'x' ORDER BY 1",
    "SELECT e.plane, s.name, s.value, s.inherited FROM events e JOIN stats s USING (event_id) ORDER BY 1, 2, 3",
    "SELECT a.name, b.name FROM events a JOIN events b ON b.plane = a.plane AND b.line = a.line AND b.start_ps > a.start_ps"
    " AND b.end_ps < a.end_ps ORDER BY 1, 2",
    "SELECT event, name, count(*) FROM stats WHERE name = 'program_id' GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT plane, lines FROM planes ORDER BY 1",
    "SELECT plane, line, line_id, timestamp_ns, events FROM lines ORDER BY 1, 2, 3, 4, 5",
    "SELECT count(*) FROM events WHERE name LIKE 'JIT%'",
    "SELECT count(*) FROM events WHERE plane = '/DEVICE:gpu:0' COLLATE NOCASE",
    "SELECT e.host, count(*) FROM lines l LEFT JOIN events e ON e.line = l.line AND e.plane = l.plane GROUP BY 1",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
]


def ordinary(xspace):
    """The same rows in tables of SQLite's own."""
    db = sqlite3.connect(":memory:")
    db.executescript("CREATE TABLE planes(session TEXT, host TEXT, plane TEXT, plane_id INTEGER, lines INTEGER);"
                     "CREATE TABLE lines(session TEXT, host TEXT, plane TEXT, line TEXT, line_id INTEGER, display_name TEXT,"
                     " timestamp_ns INTEGER, events INTEGER);"
                     "CREATE TABLE events(session TEXT, host TEXT, plane TEXT, line TEXT, name TEXT, start_ps INTEGER,"
                     " duration_ps INTEGER, end_ps INTEGER, event_id INTEGER);"
                     "CREATE TABLE stats(session TEXT, host TEXT, plane TEXT, line TEXT, event TEXT, event_id INTEGER, name TEXT,"
                     " value, inherited INTEGER)")
    everything = [(name, plane) for number, plane in oracle.fields(xspace) if number == 1
                  for name in [next((oracle.text(v) for n, v in oracle.fields(plane) if n == 2), "")]]
    begins = [dict((n, v) for n, v in oracle.fields(line) if n in (1, 2, 3)) | {"n": sum(n == 4 for n, _ in oracle.fields(line))}
              for _, plane in everything for number, line in oracle.fields(plane) if number == 3]
    base = min((b.get(3, 0) for b in begins if b["n"]), default=0)
    ids = 0
    for name, plane in everything:
        lines = [line for number, line in oracle.fields(plane) if number == 3]
        db.execute("INSERT INTO planes VALUES ('random', 'random', ?, 0, ?)", (name, len(lines)))
        parsed = next(found for _, found in oracle.planes(b"\x0a" + length(plane) + plane))
        for line, events in zip(lines, parsed):
            head = dict((n, v) for n, v in oracle.fields(line) if n in (1, 2, 3))
            title = oracle.text(head.get(2, b""))
            db.execute("INSERT INTO lines VALUES ('random', 'random', ?, ?, ?, '', ?, ?)",
                       (name, title, head.get(1, 0), head.get(3, 0), len(events)))
            shift = (head.get(3, 0) - base) * 1000
            messages = [v for n, v in oracle.fields(line) if n == 4]
            stat_names = oracle.names(v for n, v in oracle.fields(plane) if n == 5)
            for e, message in zip(events, messages):
                ids += 1
                start = None if e.aggregated else shift + e.offset_ps
                db.execute("INSERT INTO events VALUES ('random', 'random', ?, ?, ?, ?, ?, ?, ?)",
                           (name, title, e.name, start, e.duration_ps, None if start is None else start + e.duration_ps, ids))
                for number, stat in oracle.fields(message):
                    if number == 4:
                        db.execute("INSERT INTO stats VALUES ('random', 'random', ?, ?, ?, ?, ?, ?, 0)",
                                   (name, title, e.name, ids, *plain(stat, stat_names)))
    return db


def length(message):
    n, out = len(message), b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def plain(stat, stat_names):
    """As `oracle.stat`, with what is 0 or empty."""
    name, value = stat_names.get(0, ""), None
    for number, v in oracle.fields(stat):
        if number == 1:
            name = stat_names.get(v, "")
        else:
            value = {3: lambda: v, 4: lambda: oracle.signed(v), 5: lambda: oracle.text(v), 7: lambda: stat_names.get(v, "")}[number]()
    return name, value


class Sql(Case):
    def sql(self, statement, *runs, status=0):
        code, out, err = self.ask("sql", *runs, statement, "--json")
        self.assertEqual(code, status, err)
        return json.loads(out)

    def test_random(self):
        for seed in range(12):
            data, path = random_profile(seed), self.place / "random.xplane.pb"
            path.write_bytes(data)
            db = ordinary(data)
            for query in QUERIES:
                with self.subTest(seed=seed, query=query):
                    expected = [list(row) for row in db.execute(query)]
                    self.assertEqual(self.sql(query, path)["rows"], expected)

    def test_forms(self):
        """Columns as docs/sql.md lists them; table and CSV; several runs."""
        text = (ROOT / "docs" / "sql.md").read_text()
        for table in ("planes", "lines", "events", "stats", "hlo_instructions", "memory", "run_metrics"):
            section = text.split(f"\n### `{table}`", 1)[1].split("\n#", 1)[0]
            listed = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
            self.assertEqual(self.sql(f"SELECT * FROM {table} LIMIT 0", REAL[0])["columns"], listed, table)
        out = self.ask("sql", *REAL, "SELECT host, count(*) AS n FROM events GROUP BY host ORDER BY host", "--format", "csv")[1]
        rows = {r["host"]: int(r["n"]) for r in csv.DictReader(io.StringIO(out))}
        self.assertEqual(rows, {p.name.split(".")[0]: sum(len(line) for _, lines in oracle.planes(p.read_bytes()) for line in lines)
                                for p in REAL})
        out = self.ask("sql", REAL[0], "SELECT 'a' AS word, 7 AS number, NULL AS missing, x'00ff' AS bytes")[1]
        self.assertEqual(out.split(), ["word", "number", "missing", "bytes", "a", "7", "00ff"])

    def test_daemon(self):
        """Sessions beside the store's rows, by gRPC and HTTP; nothing of the store but what is meant for people."""
        run = self.logdir / "plugins" / "profile" / "gpu"
        shutil.copytree(REAL[1].parent, run)
        query = "SELECT name, count(*) AS n, sum(duration_ps) FROM events WHERE plane = '/device:GPU:0' GROUP BY name"
        expected = self.sql(query, run)
        http = self.daemon().http
        self.assertEqual(self.sql(query, "gpu"), expected)
        self.assertEqual(self.sql(query), expected)
        answer = urllib.request.urlopen(f"http://{http}/api/v1/sql?" + urllib.parse.urlencode({"q": query, "session": "gpu"}))
        self.assertEqual(json.load(answer), expected)
        self.assertEqual(self.ask("summary", "gpu")[0], 0)
        kernels = wait_until("rows are stored", lambda: self.sql("SELECT sum(occurrences) FROM kernels")["rows"][0][0])
        self.assertGreater(kernels, 0)
        joined = self.sql("SELECT count(*) FROM kernels k JOIN events e USING (session, host, name)", "gpu")["rows"][0][0]
        self.assertGreater(joined, 0)
        for statement in ("SELECT * FROM settings", "SELECT data FROM result_data", "SELECT * FROM results", "DELETE FROM op_rows",
                          "UPDATE names SET text = ''", "PRAGMA journal_mode = DELETE", "ATTACH 'x' AS y", "VACUUM"):
            status, out, err = self.ask("sql", statement)
            self.assertEqual((status, out), (1, ""), statement)
            self.assertIn("a statement reads tables", err)
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://{http}/api/v1/sql?" + urllib.parse.urlencode({"q": statement}))
            self.assertEqual(refused.exception.code, 403)
            self.assertIn("a statement reads tables", refused.exception.read().decode())
        self.assertIn("did you mean", self.ask("sql", "gpv", "SELECT 1")[2])
        rows = self.sql("WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 20000) SELECT i FROM r")
        self.assertEqual((len(rows["rows"]), rows["cut"]), (10000, True))

    def test_instructions(self):
        """All that the programs have, and of what ran the same as the store's rows say."""
        columns = ("module, name, category, framework_op, source, occurrences, time_ps, self_time_ps, flops, bytes_accessed,"
                   " gflops_per_s, gib_per_s, flops_per_byte, session_captured_ns")
        runs = {}
        for path in sorted((ROOT / "tests/data/logdir").glob("*/plugins/profile/*")):
            if path.name in ("mi300_jax_gemm", "tpu_inference_a", "tf_xla_jit", "jax_8dev_shardmap"):
                runs[path.name] = shutil.copytree(path, self.logdir / "plugins" / "profile" / path.name)
        self.assertEqual(len(runs), 4)
        self.daemon()
        for name, path in runs.items():
            with self.subTest(run=name):
                programs = json.loads(self.ask("hlo", path, "--json")[1])
                counted = self.sql("SELECT host, program_id, count(*) FROM hlo_instructions WHERE opcode IS NOT NULL GROUP BY 1, 2",
                                   path)["rows"]
                self.assertEqual({(host, str(i)): n for host, i, n in counted},
                                 {(p["host"], p["program_id"]): p["instructions"] for p in programs})
                query = f"SELECT {columns} FROM {{}} WHERE session = '{name}' AND occurrences > 0 ORDER BY {columns}"
                measured = self.sql(query.format("hlo_instructions"), path)["rows"]
                self.assertTrue(measured)
                self.assertEqual(self.sql(query.format("hlo_instructions"), name)["rows"], measured)
                self.assertEqual(self.ask("summary", name)[0], 0)
                stored = wait_until("rows are stored", lambda: self.sql(query.format("main.hlo_instructions"), name)["rows"])
                self.assertEqual([[cell if cell != "" else None for cell in row] for row in stored], measured)

    def test_memory(self):
        """Allocators' peaks and capacities, of paths and of the daemon's sessions, as memory_profile has them."""
        runs, expected = {}, []
        for path in sorted((ROOT / "tests/data/logdir").glob("*/plugins/profile/*")):
            if path.name in ("gpu_multi_worker", "mi300_jax_gemm", "tf_bfc_memory", "jax_4hosts"):
                runs[path.name] = shutil.copytree(path, self.logdir / "plugins" / "profile" / path.name)
        self.assertEqual(len(runs), 4)
        for name, path in runs.items():
            for host in sorted(p.name.split(".xplane")[0] for p in path.iterdir()):
                status, out, err = self.ask("analyze", "memory_profile", path / f"{host}.xplane.pb")
                self.assertEqual(status, 0, err)
                for allocator, found in json.loads(out)["memoryProfilePerAllocator"].items():
                    of = found["profileSummary"]
                    peak = max(int(of["peakBytesUsageLifetime"]), int(of["peakStats"]["peakBytesInUse"]))
                    expected.append([name, host, allocator, peak, int(of["memoryCapacity"])])
        expected.sort()
        self.assertEqual(len({row[0] for row in expected}), 3)
        query = "SELECT session, host, name, peak_bytes, capacity_bytes FROM memory ORDER BY 1, 2, 3"
        self.assertEqual(self.sql(query, *runs.values())["rows"], expected)
        one = f"SELECT peak_bytes FROM memory WHERE session = '{expected[0][0]}' AND name = '{expected[0][2]}'"
        self.assertEqual(self.sql(one, *runs.values())["rows"], [expected[0][3:4]])
        self.daemon()
        self.assertEqual(self.sql(query)["rows"], [])  # rows appear after a request for a tool
        for name in runs:
            self.assertEqual(self.ask("findings", name)[0], 0)
        self.assertEqual(self.sql(query)["rows"], expected)
        self.assertEqual(self.sql(one)["rows"], [expected[0][3:4]])
        times = "SELECT DISTINCT session, session_mtime_ns > 0, session_captured_ns > 0 FROM memory ORDER BY 1"
        self.assertEqual(self.sql(times)["rows"], [[name, 1, 1] for name in sorted({row[0] for row in expected})])

    def test_broken_run(self):
        """A run without metrics is left out, and told of once, however often a join comes to it."""
        whole, broken = self.logdir / "whole", self.logdir / "broken"
        for path, data in ((whole, pathlib.Path(REAL[0]).read_bytes()), (broken, b"\x0a\xff")):
            path.mkdir()
            (path / "h.xplane.pb").write_bytes(data)
        status, out, err = self.ask("sql", broken, whole, "SELECT DISTINCT a.session FROM (SELECT value FROM json_each('[1, 2, 3]'))"
                                    " CROSS JOIN run_metrics a ON a.metric = 'steps'", "--format", "json")
        self.assertEqual((status, json.loads(out)["rows"]), (0, [["whole"]]), err)
        self.assertEqual(err.count("broken/h.xplane.pb"), 1, err)

    def test_not_known(self):
        """What a profile does not say is NULL, and no 0: the shortest run of host ops, the module of idle time."""
        for path in sorted((ROOT / "tests/data/logdir").glob("*/plugins/profile/*")):
            if path.name in ("tpu_inference_a", "tf_xla_jit", "mi300_jax_gemm", "jax_4hosts"):
                shutil.copytree(path, self.logdir / "plugins" / "profile" / path.name)
        self.daemon()
        for name in ("tpu_inference_a", "tf_xla_jit", "mi300_jax_gemm", "jax_4hosts"):
            with self.subTest(run=name):
                self.assertEqual(self.ask("summary", name)[0], 0)
                query = ("SELECT count(*), sum(min_time_ps > 0), sum(min_time_ps = 0), sum(name = 'IDLE'),"
                         f" sum(name = 'IDLE' AND (module IS NOT NULL OR min_time_ps IS NOT NULL)) FROM ops_with_idle WHERE session = '{name}'")
                n, known, zero, idle, wrong = wait_until("rows", lambda: next((r for r in self.sql(query)["rows"] if r[0]), None))
                self.assertEqual((zero or 0, wrong), (0, 0))
                self.assertGreater(idle, 0)
                self.assertEqual(self.sql(f"SELECT count(*) AS n FROM ops WHERE session = '{name}'")["rows"], [[n - idle]])
                self.assertEqual(bool(known), name != "mi300_jax_gemm")  # XProf keeps none of GPUs

    def test_gone(self):
        """A statement ends when its client has gone: others may run again."""
        host, port = self.daemon().http.rsplit(":", 1)
        endless = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
        request = f"GET /api/v1/sql?{urllib.parse.urlencode({'q': endless})} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        full = [socket.create_connection((host, int(port))) for _ in range(os.cpu_count() + 2)]
        for s in full:
            s.sendall(request)
        wait_until("as many run as may", lambda: self.ask("sql", "SELECT 1")[0] == 1)
        begin = time.monotonic()
        for s in full:
            s.close()
        wait_until("they ended", lambda: self.ask("sql", "SELECT 1")[0] == 0)
        self.assertLess(time.monotonic() - begin, 20)

    def test_refused(self):
        """What is more than reading, or more than one statement; where an error is."""
        for statement, status, words in (
                ("ATTACH ':memory:' AS x", 1, "a statement reads tables"), ("PRAGMA user_version", 1, "a statement reads tables"),
                ("PRAGMA query_only = 0", 1, "a statement reads tables"), ("DETACH main", 1, "a statement reads tables"),
                ("CREATE TABLE t(x)", 1, "a statement reads tables"), ("CREATE TEMP TABLE t(x)", 1, "a statement reads tables"),
                ("CREATE VIRTUAL TABLE t USING fts5(x)", 1, "a statement reads tables"), ("DROP TABLE events", 1, ""),
                ("INSERT INTO events(name) VALUES ('x')", 1, "a statement reads tables"), ("DELETE FROM events", 1, "a statement reads tables"),
                ("BEGIN", 1, "a statement reads tables"), ("VACUUM INTO '/tmp/x'", 1, "a statement reads tables"), ("REINDEX", 1, "a statement reads tables"),
                ("SAVEPOINT a", 1, "a statement reads tables"), ("ANALYZE", 1, "a statement reads tables"),
                ("SELECT * FROM sqlite_master", 1, "sqlite_master"), ("SELECT * FROM pragma_database_list", 1, "a statement reads tables"),
                ("SELECT * FROM dbstat", 1, "a statement reads tables"), ("SELECT load_extension('/x')", 1, "load_extension"),
                ("SELECT 1; DELETE FROM events", 2, "character 10: one statement"), ("", 2, "character 1: a statement is missing"), (" -- nothing", 2, "a statement is missing"),
                ("SELECT nme FROM events", 2, 'character 8: no such column: nme; did you mean "name"?'),
                ("SELECT e.strat_ps FROM events e", 2, 'no such column: e.strat_ps; did you mean "start_ps"?'),
                ("SELECT strat_ps FROM planes", 2, "no such column: strat_ps\n"), ("SELEC 1", 2, "character 1:"),
                ("SELECT", 2, "character 7: incomplete input"), ("SELECT (1", 2, "character 10: incomplete input"),
                # Characters, not bytes; a table is found by its name, not in texts or comments.
                ("SELECT 'é', nme FROM events", 2, "character 13: no such column: nme"), ("SELECT 'é'; SELECT 2", 2, "character 12: one statement"),
                ("SELECT 1 FROM evnts", 2, 'character 15: no such table: evnts; did you mean "events"?'),
                ("SELECT 'evnts' /* evnts */ --evnts\nFROM EVNTS", 2, "character 41: no such table: EVNTS"),
                ("SELECT 'a''evnts' FROM main.evnts", 2, "character 29: no such table: main.evnts"),
                ("SELECT evnts.name FROM evnts, events", 2, "character 24: no such table: evnts"), ("SELECT 1 FROM \"é x\"", 2, " no such table: é x\n"),
                ("SELECT 1 FROM nowhere", 2, "character 15: no such table: nowhere\n"),
                ("SELECT name FROM events WHERE name REGEXP 'a('", 2, "regexp: character 3: missing closing parenthesis")):
            code, out, err = self.ask("sql", REAL[0], statement)
            self.assertEqual((code, out), (status, ""), (statement, err))
            self.assertIn(words, err)
        self.assertEqual(self.ask("sql", REAL[0], "SELECT 1", "--format", "yaml")[0], 2)
        self.assertEqual(self.ask("sql", REAL[0], "none", "SELECT 1")[0], 2)

    def test_endless(self):
        """What takes forever ends when its time is over; what takes all memory, at its limit."""
        for statement in ("WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
                          "SELECT count(*) FROM events a, events b, events c, events d",
                          "SELECT count(*) FROM run_metrics a, run_metrics b, run_metrics c, run_metrics d, run_metrics e, run_metrics f, run_metrics g",
                          "SELECT count(*) FROM stats a, stats b, stats c WHERE a.name = 'none' OR c.value = 3.25"):
            begin = time.monotonic()
            code, out, err = self.ask("sql", REAL[0], statement, "--timeout-ms", "300")
            self.assertEqual((code, out), (1, ""))
            self.assertIn("xplanectl: the statement took more than 300 ms", err)
            self.assertLess(time.monotonic() - begin, 30)
        for statement in ("SELECT zeroblob(1000000000)", "SELECT replace(hex(zeroblob(30000)), '0', '0000')",
                          "SELECT group_concat(a.name || b.name) FROM events a, events b"):
            code, out, err = self.ask("sql", REAL[0], statement)
            self.assertEqual((code, out), (1, ""), statement)
            self.assertIn("more", err)
        for statement, words in (("SELECT " + "(" * 2000 + "1" + ")" * 2000, ""), ("SELECT " + "1+" * 5000 + "1", "too large"),
                                 ("SELECT 1" + " UNION SELECT 1" * 1000, "more than 50 SELECTs"), ("SELECT '" + "x" * 99990 + "'", "")):
            code, out, err = self.ask("sql", REAL[0], statement)
            self.assertNotIn(code, (0, -6, -11), statement[:40])
            self.assertIn(words, err)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
