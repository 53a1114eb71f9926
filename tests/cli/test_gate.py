#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`xplanectl gate`, and the scripts of deploy/action with the environment that Actions gives.

usage: test_gate.py XPLANECTL XPLANED
"""
import http.server
import json
import os
import re
import subprocess
import threading

from harness import ROOT, Case, Programs, main
from test_history import run_of

ACTION = ROOT / "deploy" / "action"
EVIL = "<img src=x>|@all `rm`\n# [a](b) *c*"


class Gate(Case):
    """Groups of runs: `old`, and `new` whose fusion takes 4 us more, all with 0.1 us between runs."""

    def make_runs(self, folder, step_us, op_us, n=3, first=0):
        for i in range(n):
            place = self.logdir / folder / "plugins" / "profile" / f"run{first + i}"
            place.mkdir(parents=True)
            (place / "h.xplane.pb").write_bytes(run_of(step_us + i % 3 / 10, op_us, 1_700_000_000 + (first + i) * 3600))
        return self.logdir / folder

    def gate(self, *arguments):
        return self.ask("gate", *arguments)

    def test_directories(self):
        """All runs of a directory, the newest of them, single runs, and what cannot be told."""
        old, new, same = self.make_runs("old", 20, 6), self.make_runs("new", 24, 10), self.make_runs("same", 20, 6)
        status, out, err = self.gate(new, "--base", old)
        self.assertEqual(status, 4, err)
        self.assertRegex(err, r"^xplanectl: step_time differs by \+19\.[0-9]+% \(95%: .*\): step_time>5% is met\n$")
        self.assertTrue(out.startswith("### Performance gate: failed\n\nstep_time differs by +19."), out)
        self.assertRegex(out, r"(?m)^\| runs \| 3 \| 3 \| \| \|$")
        self.assertRegex(out, r"(?m)^\| \*\*step time\*\* \| 20\.1 .s \| 24\.1 .s \| \+19\.[0-9]+% \| \+1[0-9.]+% to \+2[0-9.]+% \|$")
        self.assertRegex(out, r"(?m)^\| <code>fusion</code> \| 6\.00 .s \| 10\.0 .s \| \+4\.00 .s \|  \|$")
        self.assertRegex(out, r"\nNoise between the runs: a difference of [0-9.]+ .s \([0-9.]+%\) would have been seen\.\n")
        for arguments, expected in (((same, "--base", old), 0), ((new, "--base", old, "--fail-if", "step_time>30%"), 0),
                                    ((same, "--base", old, "--fail-if", "step_time>0.1%"), 5),
                                    ((same, "--base", old, "--fail-if-possible", "step_time>0.1%"), 4),
                                    ((new, "--base", old, "--fail-if", "compute>30%", "--fail-if-possible", "step_time>30%"), 4),
                                    ((same, "--base", old, "--last", "1"), 5), ((new, "--base", old, "--last", "1", "--allow-single"), 4)):
            self.assertEqual(self.gate(*arguments)[0], expected, arguments)
        runs = [new / "plugins" / "profile" / f"run{i}" for i in range(2)]
        report = json.loads(self.gate(*runs, "--base", f"{old},{same}", "--json")[1])
        self.assertEqual((report["exit_status"], report["outcome"], len(report["verdicts"])), (4, "failed", 1))
        self.assertEqual([report["comparison"][side]["runs"] for side in "ab"], [6, 2])
        text = (ROOT / "docs" / "cli-json.md").read_text().split("## gate", 1)[1].split("\n## ", 1)[0]
        self.assertEqual(set(report), set(re.findall(r"^\| `(\w+)`", text, re.M)))
        for status, text, *arguments in ((2, "the baseline is either --base or --label", new), (1, "No such file", new, "--base", "/no/such"),
                                         (2, "the baseline is either", new, "--base", old, "--label", "x"),
                                         (2, "unknown metric", new, "--base", old, "--fail-if", "x>5%"),
                                         (2, "a run is missing", new, "--base", f"{old},")):
            got, out, err = self.gate(*arguments)
            self.assertEqual((got, out), (status, ""), (arguments, err))
            self.assertIn(text, err)

    def test_label(self):
        """The baseline is the label's newest sessions, without those that are judged or that cannot be read."""
        self.make_runs(".", 20, 6, n=5)
        new = self.make_runs("new", 24, 10)
        damaged = self.logdir / "plugins" / "profile" / "run5" / "h.xplane.pb"
        damaged.parent.mkdir()
        damaged.write_bytes(b"\xff" * 100)
        daemon = self.daemon()
        for i in range(6):
            self.assertEqual(self.ask("label", f"run{i}", "main")[0], 0)
        status, out, err = self.gate(new, "--label", "main", "--last", "4")
        self.assertEqual(status, 4, err)
        self.assertIn("\n| runs | 4 | 3 | | |\n", out)
        status, out, err = self.gate("run4", "--label", "main", "--format", "json")
        self.assertEqual((status, json.loads(out)["comparison"]["a"]["runs"]), (0, 4), err)
        status, out, err = self.gate("run4", "--label", "mian")
        self.assertEqual((status, out), (1, ""))
        self.assertIn('did you mean "main"?', err)
        self.assertTrue(daemon)

    def test_names(self):
        """Names of profiles are text in the report."""
        for evil, shown in ((EVIL[:8], "&#60;img src"), ("a\u202eb\ncd", "a&#63;b&#63;cd")):
            places = [self.logdir / f"{side}{len(evil)}" for side in "ab"]
            for i, place in enumerate(places):
                place.mkdir()
                (place / "h.xplane.pb").write_bytes(run_of(20, 6 + i, 1).replace(b"fusion.1", evil.encode()))
            out = self.gate(places[1], "--base", places[0], "--allow-single")[1]
            self.assertIn(f"<code>{shown}</code>", out)
            self.assertNotIn("<img", out)

    # ---- the action ----

    def act(self, new, old, comments=None, **inputs):
        """gate.sh with the environment of Actions: its status, output, summary and outputs."""
        files = {name: self.logdir / name for name in ("summary", "output", "event.json")}
        for file in files.values():
            file.write_text("")
        files["event.json"].write_text(json.dumps({"pull_request": {"number": 7}}))
        environ = {"PATH": os.environ["PATH"], "GITHUB_STEP_SUMMARY": files["summary"], "GITHUB_OUTPUT": files["output"],
                   "GITHUB_EVENT_PATH": files["event.json"], "GITHUB_REPOSITORY": "o/r", "GITHUB_WORKFLOW": "ci",
                   "GITHUB_JOB": "gate", "GITHUB_RUN_ID": "5", "GITHUB_ACTION_PATH": ACTION, "RUNNER_TEMP": self.logdir,
                   "GITHUB_API_URL": comments or "http://127.0.0.1:1", "GATE_RUNS": f"{new}\n\n", "GATE_BASE": f"{old}\n",
                   "GATE_LAST": "10", "GATE_FAIL_IF": "step_time>5%", "GATE_TOKEN": "secret",
                   "GATE_AUTHOR": "github-actions[bot]", "GATE_JOB_INDEX": "0", "GATE_XPLANECTL": Programs.xplanectl}
        environ.update(inputs)
        run = re.search(r"run: '(.*)'", (ACTION / "action.yml").read_text()).group(1)
        done = subprocess.run(["bash", "-c", run], env={k: str(v) for k, v in environ.items()}, capture_output=True, text=True,
                              timeout=60, check=False)
        outputs = dict(line.split("=", 1) for line in files["output"].read_text().splitlines())
        return done.returncode, done.stdout, files["summary"].read_text(), outputs

    def test_action(self):
        """Status, summary, outputs and annotations; an input is never part of a command."""
        old, new, same = self.make_runs("old", 20, 6), self.make_runs("new", 24, 10), self.make_runs("same", 20, 6)
        status, out, summary, outputs = self.act(new, old)
        self.assertEqual((status, outputs["status"]), (4, "4"))
        self.assertTrue(out.startswith("::error title=Performance gate::xplanectl: step_time differs by +19."), out)
        self.assertIn("step_time>5%25 is met", out)
        self.assertTrue(summary.startswith("### Performance gate: failed\n"))
        with open(outputs["report"], encoding="utf-8") as report:
            self.assertEqual(report.read(), summary)
        self.assertEqual(self.act(same, old)[:2], (0, ""))
        self.assertEqual(self.act(same, old, runs=new, base=new)[:2], (0, ""))  # a job's own variables
        status, out, summary, _ = self.act(same, old, GATE_FAIL_IF="step_time>0.1%")
        self.assertEqual(status, 5)
        self.assertTrue(summary.startswith("### Performance gate: cannot tell\n"))
        status, out, _, outputs = self.act(same, old, GATE_FAIL_IF="step_time>0.1%", GATE_CANNOT_TELL="warn")
        self.assertEqual((status, outputs["status"]), (0, "5"))
        self.assertTrue(out.startswith("::warning title=Performance gate::"), out)
        mark = self.logdir / "mark"
        for name in ("GATE_RUNS", "GATE_BASE", "GATE_LABEL", "GATE_FAIL_IF", "GATE_LAST", "GATE_SERVER"):
            status, out, summary, _ = self.act(new, old, **{name: f"$(touch {mark})`touch {mark}`; touch {mark}"})
            self.assertTrue(status in (1, 2) or name == "GATE_SERVER", (name, status))
            self.assertFalse(mark.exists(), name)
        status, out, summary, _ = self.act(self.logdir / "none", old)
        self.assertEqual((status, summary), (1, ""))  # no report, and no older one
        inputs = set(re.findall(r"\$\{\{ inputs\.([a-z-]+) \}\}", (ACTION / "action.yml").read_text()))
        self.assertEqual(inputs, set(re.findall(r"^  ([a-z-]+):$", (ACTION / "action.yml").read_text().split("outputs:")[0], re.M)))
        script = (ACTION / "gate.sh").read_text() + (ACTION / "comment.py").read_text()
        for name in inputs:
            self.assertIn("GATE_" + name.upper().replace("-", "_"), script)

    def test_comment(self):
        """The first report is a new comment, the next one replaces it, and not another's, nor another job's; without a server the gate
        still judges."""
        mark = "<!-- xplaned gate: ci/gate/0 -->"
        comments, requests = [{"id": 10, "body": mark, "user": {"login": "somebody"}}], []

        class Api(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
                requests.append((self.command, self.path.split("?")[0], self.headers["Authorization"]))
                if self.command == "POST":
                    comments.append({"id": 10 + len(comments), "body": body["body"], "user": {"login": "github-actions[bot]"}})
                elif self.command == "PATCH":
                    comments[int(self.path.split("/")[-1]) - 10]["body"] = body["body"]
                text = json.dumps(comments if self.command == "GET" else comments[-1]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *arguments):
                pass
        old, new = self.make_runs("old", 20, 6), self.make_runs("new", 24, 10)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            api = f"http://127.0.0.1:{server.server_port}"
            self.assertEqual(self.act(new, old, api, GATE_COMMENT="true")[0], 4)
            self.assertTrue(comments[1]["body"].startswith(f"{mark}\n### Performance gate: failed"))
            self.assertEqual(self.act(old, old, api, GATE_COMMENT="true")[0], 0)
            self.assertEqual(self.act(new, old, api, GATE_COMMENT="true", GATE_JOB_INDEX="1")[0], 4)
            server.shutdown()
        self.assertEqual(requests, [(method, path, "Bearer secret") for method, path in (
            ("GET", "/repos/o/r/issues/7/comments"), ("POST", "/repos/o/r/issues/7/comments"),
            ("GET", "/repos/o/r/issues/7/comments"), ("PATCH", "/repos/o/r/issues/comments/11"),
            ("GET", "/repos/o/r/issues/7/comments"), ("POST", "/repos/o/r/issues/7/comments"))])
        self.assertEqual([c["body"].split("\n")[:2] for c in comments], [
            [mark], [mark, "### Performance gate: passed"], ["<!-- xplaned gate: ci/gate/1 -->", "### Performance gate: failed"]])
        status, out, _, _ = self.act(new, old, GATE_COMMENT="true")
        self.assertEqual(status, 4)
        self.assertIn("::warning::the report could not be written as a comment", out)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
