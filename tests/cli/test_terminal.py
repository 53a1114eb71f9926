#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command on a terminal, with names and texts that would drive it.

usage: test_terminal.py XPLANECTL XPLANED FAKE_PROFILER XPLANED_AGENT [CLASS[.TEST]]...
"""
import collections
import concurrent.futures
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import termios
import tty

from harness import PATIENCE_S, ROOT, Case, Programs, environment, main
from test_cli import wire

# C0, DEL, C1, separators of lines and paragraphs, and all that changes the direction of text.
FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVIL = "\x1b]0;owned\x07\x1b[2J\x7f\x85\x9b31m\u202e\u2066\u200f\u061c\u2028\r\tevil"
LINE = "\nxplanectl: forged"  # a line of the program, as far as a reader can see
CLEAR = "\r\x1b[K"  # ours, of the line that shows progress
BUNDLE = ROOT / "tests" / "data" / "iree" / "sync-mlp-all.ireeprof"


def profile():
    """An XSpace of one TPU whose every text is hostile."""
    def table(field, *names):
        return b"".join(wire(field, wire(1, i) + wire(2, wire(1, i) + wire(2, n))) for i, n in enumerate(names, 1))

    def stat(metadata, value):
        return wire(1, metadata) + wire(4 if isinstance(value, int) else 5, value)

    def event(metadata, begin_us, us, *stats):
        return wire(4, wire(1, metadata) + wire(2, begin_us * 10**6) + wire(3, us * 10**6) +
                    b"".join(wire(4, stat(*s)) for s in stats))

    def lines(*names):
        steps = b"".join(event(1, i * 10, 9, (1, 1), (2, i), (4, f"{EVIL} step")) for i in range(3))
        ops = b"".join(event(2, i * 10 + 1, 4, (3, f"{EVIL} op"), (4, f"{EVIL} module"), (5, 6), (6, f"{EVIL} category"),
                             (7, f"{EVIL} source:1"), (8, f"{EVIL}/op:")) for i in range(3))
        return b"".join(wire(3, wire(1, i) + wire(2, n) + wire(3, 1_700_000_000 * 10**9) + events)
                        for i, (n, events) in enumerate(zip(names, (steps, ops, ops)), 1))
    text = EVIL + LINE
    names = (table(4, f"{text} train", f"{text} fusion.1") +
             table(5, "_r", "step_num", "hlo_op", "hlo_module", "program_id", "hlo_category", "source", "tf_op", "device_type_string"))
    tpu = wire(1, wire(1, 1) + wire(2, "/device:TPU:0") + wire(6, stat(9, f"{text} device type")) + names +
               lines("Steps", "XLA Ops", f"{text} line"))
    host = wire(1, wire(1, 2) + wire(2, "/host:CPU") + names + lines("python", "tf_XLAEigen/2", f"{text} thread"))
    return tpu + host + wire(2, f"{text} error") + wire(3, f"{text} warning") + wire(4, f"{text} hostname")


class Terminal:
    """A program that writes to a pseudo terminal; TERMINAL in its arguments is that one's path."""

    def __init__(self, program, *arguments):
        self.side, theirs = pty.openpty()
        self.arguments, self.got = arguments, b""
        try:
            tty.setraw(theirs, termios.TCSANOW)  # written bytes arrive unchanged
            path = os.ttyname(theirs)
            self.process = subprocess.Popen([program, *(str(a).replace("TERMINAL", path) for a in arguments)],
                                            stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                                            env=environment(PATH=f"{os.path.dirname(Programs.xplaned)}:{os.environ['PATH']}"))
        finally:
            os.close(theirs)

    def read(self):
        """Some more of it; False when the program has ended."""
        try:
            more = os.read(self.side, 65536)
        except OSError:
            return False
        self.got += more
        return bool(more)

    def end(self, case):
        """Its text without what is ours, when it has ended by itself."""
        case.addCleanup(self.process.kill)  # of one that does not end
        while self.read():
            pass
        os.close(self.side)
        code = self.process.wait(PATIENCE_S)
        text = self.got.decode().replace(CLEAR, "").replace("\r\n", "\n")
        found = FORBIDDEN.search(text)
        case.assertIsNone(found, (self.arguments, found and text[max(found.start() - 80, 0):found.end() + 80]))
        case.assertGreaterEqual(code, 0, (self.arguments, text))
        if not {"csv", "perfetto"} & set(self.arguments):  # there it is within a cell, or a message
            case.assertNotIn(LINE, text, self.arguments)
        return text


class Hostile(Case):
    """Profiles and bundles with hostile names and texts."""

    def setUp(self):
        super().setUp()
        self.run = f"{EVIL} run{LINE}"
        self.path = self.logdir / "plugins" / "profile" / self.run
        self.path.mkdir(parents=True)
        for host in ("one", "two"):
            (self.path / f"{EVIL}{LINE} {host}.xplane.pb").write_bytes(profile())
        self.file = self.path / f"{EVIL}{LINE} one.xplane.pb"
        self.bad = self.place / f"{EVIL}{LINE} bad.xplane.pb"
        self.bad.write_bytes(profile()[:-10])
        shutil.copy(BUNDLE, self.logdir / f"{EVIL} bundle.ireeprof")
        self.bundle = self.place / f"{EVIL}{LINE} bundle.ireeprof"
        self.bundle.write_bytes(BUNDLE.read_bytes()[:5000])


class Commands(Hostile):
    def setUp(self):
        super().setUp()
        self.target = self.fake("hostile").address
        self.daemon("--allow-delete")
        self.seen = collections.defaultdict(list)

    def calls(self):
        """Arguments of every command, by its name."""
        run, path, file, bad = self.run, str(self.path), str(self.file), str(self.bad)
        runs = [[run], [path], [bad], [EVIL]]
        return {
            "sessions": [[]], "label": [[], [run], [run, f"{EVIL} label"], [EVIL, "x"]], "fleet": [[]],
            "convert": [[run], [run, "--logdir", str(self.logdir), "--store", "postgresql://x@127.0.0.1:1/x", "--shard", f"evil{EVIL}"]],
            "hosts": runs, "tools": [*runs, ["--all"]], "tool": [["op_profile", r[0]] for r in runs] + [[EVIL, run]],
            "summary": runs, "findings": runs, "report": [*runs, [run, "--base", EVIL]], "compare": [[r[0], run] for r in runs] + [[run, run, "--fail-if", EVIL]],
            "gate": [[r[0], "--base", run] for r in runs] + [[run, "--base", EVIL], [path, "--base", path, "--label", EVIL], [run, "--label", EVIL]],
            "history": [[], ["--label", EVIL], ["--dir", EVIL], ["--metric", EVIL]], "aggregate": runs, "events": [*runs, [run, path]],
            "sql": [[run, f'SELECT name AS "{EVIL}", host, plane, line FROM events'], [path, "SELECT * FROM events"],
                    [run, f"SELECT {EVIL}"], [EVIL, "SELECT 1"]],
            "analyze": [["op_profile", path], ["overview_page", file], ["op_profile", bad], [EVIL, path]],
            "capture": [[self.target, "--duration", "50ms"], [f"127.0.0.1:1{EVIL}"], [f"{EVIL}:1"], [self.target, "--session", EVIL],
                        [self.target, "--duration", "50ms", "--direct", "--logdir", str(self.place / EVIL)]],
            "captures": [[]], "cancel": [[EVIL], ["999"]], "schedules": [[]], "unschedule": [[EVIL], ["999"]],
            "import": [[file, "--session", EVIL], [path], [str(self.place / EVIL)]], "delete": [[EVIL]],
            "join": [[path, file], [EVIL, path, "--logdir", path]],
            "export": [["chrome", path], ["perfetto", file], ["chrome", path, "-o", "TERMINAL"], ["chrome", bad], [EVIL, path]],
            "hlo": [*runs, [run, EVIL]],
            "iree": [["summary", str(self.bundle)], ["explain", str(self.bundle)], ["summary", EVIL], [EVIL, str(self.bundle)],
                     ["capture", "--mode", "all", "--", EVIL]],
            "agents": [["install", EVIL, "--dry-run"], [EVIL]], "completion": [["bash"], [EVIL]], "help": [[], ["summary"], [EVIL]],
            "__complete": [["zsh", f"summary {EVIL}"], ["zsh", "summary", "x"], ["bash", "xplanectl hosts "]],
        }

    def forms(self, row):
        formats = row.get("formats") or [None]
        return [[] if f is None else ["--format", f] for f in formats]

    def all_calls(self, table):
        calls, rows = self.calls(), {c["name"]: c for c in table}
        # A new command has a line in calls().
        self.assertEqual(set(calls), set(rows) | {"help", "__complete"})
        return [[name, *a, *form] for name, lines in calls.items() for a in lines for form in self.forms(rows.get(name, {}))]

    def test_all(self):
        """No command in any of its formats writes a control character; what it quotes is there."""
        table = json.loads(self.ask("help", "--format", "json")[1])["commands"]
        calls = self.all_calls(table)
        def show(call):
            self.seen[call[0]].append(Terminal(Programs.xplanectl, "--server", self.server, *call).end(self))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for _ in pool.map(show, calls):
                pass
        for name, texts in self.seen.items():
            text = "".join(texts)
            self.assertTrue(text, name)
            # What these show is ours, or was checked before a daemon took it.
            if name not in ("fleet", "captures", "cancel", "schedules", "unschedule", "__complete"):
                self.assertIn("evil", text, name)

    def test_no_daemon(self):
        """Names of files and of a server, of which a message says why they cannot be used."""
        for call in (["sessions"], ["summary", str(self.place / EVIL)], ["sessions", "--token-file", EVIL], [EVIL],
                     ["sessions", f"--{EVIL}"], ["sessions", "--format", EVIL], ["tool", "op_profile", "x", "-o", f"/none/{EVIL}"]):
            text = Terminal(Programs.xplanectl, *call, "--server", f"unix:/none/{EVIL}").end(self)
            self.assertIn("evil", text, call)


class Servers(Hostile):
    def test_log(self):
        """The daemon's own log, in both formats, of sessions and requests with such names."""
        for form in ("text", "json"):
            daemon = Terminal(Programs.xplaned, "--logdir", self.logdir, "--state-dir", self.state, "--listen", "127.0.0.1:0", "--http",
                              "127.0.0.1:0", "--log", "debug", "--log-format", form)
            self.addCleanup(daemon.process.kill)  # also of one that does not listen
            while not (address := re.search(rb"service\W+grpc\W+address\W+([0-9.:]+)", daemon.got)):
                self.assertTrue(daemon.read(), daemon.got)
            self.server = address[1].decode()
            self.assertEqual(self.ask("summary", self.run)[0], 0)
            self.assertEqual(self.ask("summary", EVIL)[0], 1)
            daemon.process.send_signal(signal.SIGTERM)
            self.assertIn("evil", daemon.end(self))

    def test_usage(self):
        """What the daemon and the agent refuse to start with."""
        config = self.place / f"{EVIL} config"
        config.write_text(f"{EVIL} = 1\n")
        for call in ([f"--{EVIL}"], ["--config", config], ["--logdir", config], ["--logdir", "/dev/null/" + EVIL]):
            self.assertIn("evil", Terminal(Programs.xplaned, *call).end(self), call)
        for call in ([f"--{EVIL}"], ["--directory", "/dev/null/" + EVIL]):
            self.assertIn("evil", Terminal(Programs.agent, *call).end(self), call)


if __name__ == "__main__":
    main("xplanectl", "xplaned", "fake", "agent")
