#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows while a command takes long, and what is said when no daemon runs.

usage: test_progress.py XPLANECTL XPLANED [CLASS[.TEST]]...
"""
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import threading
import time

from harness import PATIENCE_S, PROFILE, Case, Programs, environment, main

FOUR = PROFILE.parent.parent / "jax_4hosts"
CLEAR = "\r\x1b[K"


class OnTerminal:
    """xplanectl whose standard error is a terminal."""

    def __init__(self, *arguments):
        self.seen = ""
        self.side, theirs = pty.openpty()
        self.process = subprocess.Popen([Programs.xplanectl, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=theirs, env=environment())
        os.close(theirs)

    def read(self, seconds):
        if not select.select([self.side], [], [], seconds)[0]:
            return False
        try:
            got = os.read(self.side, 65536).decode()
        except OSError:  # the other side is closed
            return False
        self.seen += got
        return bool(got)

    def expect(self, pattern):
        """The first match, as soon as it is there."""
        end = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.seen)):
            if time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.read(0.1)
        return found

    def end(self):
        """Its status and standard output; all that the terminal saw is in `seen`."""
        try:
            out, _ = self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"it does not end; the terminal saw {self.seen!r}") from late
        while self.read(0.2):
            pass
        return self.process.returncode, out

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        os.close(self.side)


class Stalling:
    """A connection to a daemon that takes so many bytes, and the others when it may go on."""

    def __init__(self, server, first):
        self.go_on = threading.Event()
        host, port = server.rsplit(":", 1)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.first = first
        self.sockets = ()
        threading.Thread(target=self.serve, args=((host, int(port)),), daemon=True).start()

    def serve(self, server):
        client, _ = self.listener.accept()
        daemon = socket.create_connection(server)
        self.sockets = client, daemon
        threading.Thread(target=self.copy, args=(daemon, client), daemon=True).start()
        self.copy(client, daemon, self.first)
        self.go_on.wait(PATIENCE_S)
        self.copy(client, daemon)

    @staticmethod
    def copy(source, to, most=sys.maxsize):
        try:
            while most > 0 and (got := source.recv(min(most, 4096))):
                to.sendall(got)
                most -= len(got)
        except OSError:
            pass

    def end(self):
        self.go_on.set()
        for s in (self.listener, *self.sockets):
            s.close()


class Progress(Case):
    def on_terminal(self, *arguments):
        server = ["--server", self.server] if self.server else []
        started = OnTerminal(*server, *arguments)
        self.addCleanup(started.close)
        return started

    def test_waiting(self):
        """How long a daemon has not answered, then why; a line that is taken away."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.server = f"127.0.0.1:{silent.getsockname()[1]}"
            calls = [["tool", "op_profile", "x"], ["findings", "x"], ["summary", "x"], ["compare", "x", "y"], ["events", "x"],
                     ["sql", "x", "SELECT 1"]]
            # A line of each quarter of a second: a busy machine may leave some of them out.
            for command, started in [(c, self.on_terminal(*c, "--timeout-ms", "5000")) for c in calls]:
                first = started.expect(rf"xplanectl: {command[0]}: (\d) s")
                started.expect(rf"xplanectl: {command[0]}: [{int(first[1]) + 1}-9] s")
                self.assertEqual(started.end(), (1, b""))
                self.assertNotIn("\n", started.seen.split(" has not answered")[0])
                line = started.seen.rsplit(CLEAR, 1)[1]
                self.assertIn("has not answered", line)
                self.assertNotIn(" s\r", line)
            # No line for short work, with --quiet, or without a terminal.
            for command in (["tool", "op_profile", "x", "--timeout-ms", "50"], ["tool", "op_profile", "x", "--quiet", "--timeout-ms", "1500"]):
                started = self.on_terminal(*command)
                self.assertEqual(started.end(), (1, b""))
                self.assertNotIn(CLEAR, started.seen)
            code, out, err = self.ask("tool", "op_profile", "x", "--timeout-ms", "1500")
            self.assertEqual((code, out), (1, ""))
            self.assertNotIn("\r", err)
            self.assertNotIn(" s\n", err)

    def test_import(self):
        """How much was sent, of how much, while the connection takes nothing."""
        self.daemon()
        files = sorted(FOUR.iterdir())
        stalls = Stalling(self.server, 40_000)
        self.addCleanup(stalls.end)
        self.server = stalls.address
        started = self.on_terminal("import", *files, "--session", "x")
        said = started.expect(r"xplanectl: import: (\d+)% \(([0-9.]+) (\w+) of ([0-9.]+) (\w+)\), \d+ s")
        stalls.go_on.set()
        self.assertEqual(started.end(), (0, b"x\n"))
        size = sum(f.stat().st_size for f in files)
        unit = {"B": 1, "KiB": 1024, "MiB": 1 << 20}
        self.assertAlmostEqual(float(said[4]) * unit[said[5]] / size, 1, delta=0.01)
        self.assertAlmostEqual(float(said[2]) * unit[said[3]] / size, int(said[1]) / 100, delta=0.011)
        self.assertTrue(started.seen.endswith(CLEAR), started.seen[-80:])
        self.assertEqual(self.sessions(), ["x"])

    def test_export(self):
        """Hosts and bytes, while the output is read slowly."""
        pipe = self.place / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        started = self.on_terminal("export", "chrome", FOUR, "-o", pipe)
        started.expect(r"xplanectl: export: host 1 of 4, [0-9.]+ KiB, \d+ s")
        written = b""
        while select.select([reader], [], [], PATIENCE_S)[0] and (got := os.read(reader, 1 << 20)):
            written += got
        self.assertEqual(started.end(), (0, b""))
        self.assertEqual(written.decode(), self.ask("export", "chrome", FOUR)[1])
        self.assertTrue(started.seen.endswith(CLEAR), started.seen[-80:])


class NoDaemon(Case):
    # Arguments of each command that calls a daemon; the others need none.
    CALLS = {"sessions": [], "hosts": ["x"], "tools": ["x"], "tool": ["op_profile", "x"], "summary": ["x"], "findings": ["x"],
             "report": ["x"], "compare": ["x", "y"], "gate": ["x", "--base", "y"], "aggregate": ["x"], "events": ["x"], "sql": ["x", "SELECT 1"],
             "capture": ["127.0.0.1:1"],
             "captures": [], "cancel": ["1"], "schedules": [], "unschedule": ["1"], "import": [PROFILE, "--retries", "1"],
             "delete": ["x"], "fleet": [], "hlo": ["x"], "iree": ["summary", "x"], "label": [], "history": []}
    ALONE = {"agents", "analyze", "convert", "export", "join", "completion"}

    def test_hint(self):
        """Every command says that no daemon runs, how to start one, and what may do without."""
        commands = [c["name"] for c in json.loads(self.ask("help", "--format", "json")[1])["commands"]]
        self.assertEqual(set(commands), set(self.CALLS) | self.ALONE)
        self.server = f"unix:{self.place}/none"
        for name, arguments in self.CALLS.items():
            code, out, err = self.ask(name, *arguments)
            self.assertEqual((code, out), (1, ""), name)
            self.assertIn(f"no daemon answers at {self.server} (no such socket): start one with `xplaned --logdir DIR`", err, name)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
