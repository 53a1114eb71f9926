#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is wrong in a command is said alike, with one exit status, through a daemon and by path.

usage: test_wrong.py XPLANECTL XPLANED
"""
import os
import re
import shutil

from harness import DATA, Case, main, wait_until
from test_cli import wire

# Wrong whatever the run: 2. "RUN" stands for the session's name or the path; words are in the
# message.
USAGE = (
    ('unknown tool "overview_pag"; did you mean "overview_page"?', "tool overview_pag RUN"),
    ("overview_page has no option 'nosuch'", "tool overview_page RUN --option nosuch=1"),
    ('did you mean "xprof_exact"?', "findings RUN --option xprof_exat=true"),
    ("option cpu_as_device cannot be 'maybe'", "findings RUN --option cpu_as_device=maybe"),
    ("option start_time_ms cannot be 'x'", "tool trace_viewer@ RUN --option start_time_ms=x"),
    ("--format of tool is", "tool overview_page RUN --format nosuch"),
    ("--section of summary is", "summary RUN --section nosuch --format csv"),
    ("did you mean \"xprof_exact\"?", "summary RUN --option xprof_exat=true"),
    ('unknown metric "steptime"', "compare RUN RUN --fail-if steptime>5%"),
    ("character 11: a number is missing", "compare RUN RUN --fail-if step_time>x"),
    ("a run is missing", "compare RUN, RUN"),
    ("did you mean \"xprof_exact\"?", "compare RUN RUN --option xprof_exat=true"),
    ("did you mean \"xprof_exact\"?", "aggregate RUN --option xprof_exat=true"),
    ("match: character 2: missing closing parenthesis", "events RUN --match ("),
    ("by_id: character 2: missing closing parenthesis", "events RUN --by-id ("),
    ('min_duration: character 2 of "1x"', "events RUN --min-duration 1x"),
    ('max_events: "-3" is not a number', "events RUN --max-events -3"),
    ("option by cannot be 'nosuch'", "events RUN --by nosuch"),
    ("option rules cannot be 'nosuch'", "events RUN --rules nosuch"),
    ("byte 2 is not UTF-8", "events RUN --prefix j\udcff"),
    ('character 1: near "SELEC": syntax error', "sql RUN SELEC"),
    ("character 8: no such column: nme", "sql RUN SELECT\0nme\0FROM\0events"),
    ('no such table: evnts; did you mean "events"?', "sql RUN SELECT\0*\0FROM\0evnts"),
    ("regexp: character 2: missing closing parenthesis", "sql RUN SELECT\0'a'\0REGEXP\0'('"),
    (" is not UTF-8", "sql RUN SELECT\0'\udcff'"),
    ("did you mean \"long\"?", "hlo RUN x --text lnog"),
)
# Not there, or refused: 1.
FAILED = (
    ('no host "vmm"', "tool overview_page RUN --host vmm"),
    ('no host "vmm"', "summary RUN --host vmm"),
    ('no host "vmm"', "findings RUN --host vmm"),
    ('no host "vmm"', "events RUN --host vmm"),
    ('no host "vmm"', "compare RUN RUN --host vmm"),
    ('no host "vmm"', "aggregate RUN --host vmm"),
    ('no plane has "nosuch"', "events RUN --plane nosuch"),
    ('no HLO module "nosuch"', "hlo RUN nosuch"),
    ("is not allowed", "sql RUN ATTACH\0':memory:'\0AS\0x"),
)
# Without the run: 1, whatever else is right.
ABSENT = ("hosts RUN", "tools RUN", "tool overview_page RUN", "summary RUN", "findings RUN", "compare RUN RUN", "aggregate RUN",
          "events RUN", "sql RUN SELECT\0" + "1", "hlo RUN")
# Only for a daemon.
DAEMONS = (
    (2, 'label "a b", character 2:', "label RUN a\0b"), (2, 'label "a b", character 2:', "label RUN --remove a\0b"),
    (2, 'label "a b", character 2:', "history --label a\0b"), (2, "byte 1 is not UTF-8", "history --label \udcff"),
    (2, 'no session has the metric "steptime"; did you mean "step_time"?', "history --metric steptime"),
    (2, "--host is of paths", "sql RUN SELECT\0" + "1 --host vm"), (1, 'no session "my_rnu"; did you mean "my_run"?', "label my_rnu x"),
    (1, 'has the label "nosuch"', "history --label nosuch"), (1, "no capture 999", "cancel 999"), (1, "no schedule 999", "unschedule 999"))
PATHS = ((1, 'no host "vmm"', "sql RUN SELECT\0" + "1 --host vmm"),
         (1, 'among the files; did you mean "vm"?', "sql RUN SELECT\0" + "1 --host VM"),
         (2, 'unknown tool "overview_pag"', "analyze overview_pag RUN"), (2, "has no option", "analyze overview_page RUN --option nosuch=1"),
         (1, 'no host "vmm"', "analyze overview_page RUN --host vmm"))
# The file of host b is damaged: its bytes end too early, or its events are none.
DAMAGED = ("events RUN --host a --host b", "events RUN --rules ejkernel --plane gpu --prefix x --host b", "tool launches RUN --host b",
           "tool launches RUN --host b --host c", "sql RUN SELECT\0count(*)\0FROM\0events",
           "sql RUN SELECT\0*\0FROM\0stats", "sql RUN SELECT\0*\0FROM\0events\0WHERE\0start_ps>5", "sql RUN SELECT\0*\0FROM\0hlo_instructions")
RPC_WORDS = re.compile(r"\b[A-Z]+_[A-Z_]+\b|\bxplaned\.v1|INTERNAL|UNAVAILABLE|gRPC|RPC|protobuf", re.ASCII)


class Wrong(Case):
    def setUp(self):
        super().setUp()
        self.run_path = self.logdir / "plugins" / "profile" / "my_run"
        shutil.copytree(DATA / "jax_matmul_nopy", self.run_path)
        self.daemon()

    def check(self, status, words, command, run):
        given = [os.fsencode(w.replace("RUN", run).replace("\0", " ")) for w in command.split(" ")]
        process = self.start(*[os.fsdecode(w) for w in given], errors="surrogateescape")
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (status, ""), (command, run, err))
        self.assertIn(words, err, (command, run))
        self.assertIsNone(RPC_WORDS.search(err.replace(run, "")), (command, run, err))

    def test_daemon_and_path_agree(self):
        for status, table in ((2, USAGE), (1, FAILED)):
            for words, command in table:
                for run in ("my_run", str(self.run_path)):
                    self.check(status, words, command, run)

    def test_absent(self):
        for command in ABSENT:
            self.check(1, 'no session "my_rnu"; did you mean "my_run"?', command, "my_rnu")
            self.check(1, "No such file or directory", command, str(self.run_path.parent / "my_rnu"))

    def test_damaged_file(self):
        """The error names the file, also where the damage is only found while events are read."""
        whole = (DATA / "jax_matmul_nopy" / "vm.xplane.pb").read_bytes()
        line = wire(3, wire(1, 7) + wire(2, b"Stream #7") + wire(4, b"\x0a\xff"))
        events = wire(1, wire(2, b"/device:GPU:0") + line + wire(4, wire(1, 1) + wire(2, wire(1, 1) + wire(2, b"kernel"))))
        for run, damaged in (("ends", whole[:len(whole) // 2]), ("events", events)):
            path = self.logdir / "plugins" / "profile" / run
            path.mkdir()
            for host, data in (("a", whole), ("b", damaged), ("c", whole)):
                (path / f"{host}.xplane.pb").write_bytes(data)
            wait_until("it is a session", lambda: "\nc " in self.ask("hosts", run)[1])
            for command in DAMAGED:
                for given in (run, str(path)):
                    self.check(1, f"{run}/b.xplane.pb: ", command, given)
            self.check(1, f"{run}/b.xplane.pb: ", "sql RUN SELECT\0*\0FROM\0memory", str(path))  # a daemon has rows of it

    def test_one_place(self):
        for status, words, command in DAEMONS:
            self.check(status, words, command, "my_run")
        for status, words, command in PATHS:
            self.check(status, words, command, str(self.run_path))

    def test_limits_of_sql(self):
        """SQLite's limits, in words for who meets them, with a position where SQLite has one."""
        for statement, status, words in (
                ("SELECT " + "(" * 200 + "1" + ")" * 200, 2, ": it nests too deep"), ("SELECT " + "1," * 300 + "1", 2, ": more than 200 columns"),
                ("SELECT " + "1+" * 150 + "1", 2, ": an expression is too large: more than 100"),
                ("SELECT 1" + " UNION SELECT 1" * 60, 2, ": more than 50 SELECTs"), ("SELECT zeroblob(100000)", 1, ": a value has more than 64 KiB"),
                ("SELECT 1 LIMIT 'x'", 2, ": character 10: LIMIT and OFFSET take whole numbers"),
                ("SELECT " + "a" * 70000, 2, ": character 8: SQLite gives no reason")):
            for run in ("my_run", str(self.run_path)):
                code, out, err = self.ask("sql", run, statement)
                self.assertEqual((code, out), (status, ""), (statement[:30], err))
                self.assertIn("xplanectl" + words, err)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
