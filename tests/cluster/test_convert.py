#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`xplanectl convert`, on a PostgreSQL of the test's own.  Usage: test_convert.py XPLANECTL XPLANED"""
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import measure

HOSTS = 12
PATIENCE_S = 120
XPLANECTL, XPLANED = map(os.path.abspath, sys.argv[1:3])


class Convert(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
            raise unittest.SkipTest("no server of PostgreSQL in /usr/lib/postgresql")
        cls.work = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.db = measure.Database(cls.work)
        cls.addClassCleanup(cls.db.stop)

    def setUp(self):
        self.run_name = f"run{self._testMethodName[5:]}"  # the bytes of hosts have it in them
        self.logs = self.work / self.run_name
        measure.make_session(self.logs, HOSTS, name=self.run_name)

    def command(self, *more):
        return [XPLANECTL, "convert", self.run_name, "--logdir", self.logs, "--store", self.db.url, "-j", "1", *more]

    def environment(self, **more):
        return {**os.environ, "PATH": f"{os.path.dirname(XPLANED)}:{os.environ['PATH']}", "XPLANED_STATE_DIR": str(self.work / "state"), **more}

    def convert(self, *more, **env):
        done = subprocess.run([*map(str, self.command(*more))], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, env=self.environment(**env))
        return done.returncode, done.stdout, done.stderr

    def converted(self, *more, **env):
        code, out, err = self.convert("--json", *more, **env)
        self.assertIn(code, (0, 3), err)
        return code, json.loads(out)

    def damage(self, host):
        path = next(self.logs.rglob(f"*{host}.xplane.pb"))
        path.write_bytes(b"\x0a\xff\xff\xff\xff\x7f" * 9)
        os.utime(path, (1700000000, 1700000000))

    def of_each(self):
        """How many products of a host are stored, by what is stored of any."""
        return int(self.db.sql("SELECT count(DISTINCT (name, options)) FROM results WHERE kind='product'"))

    def products(self):
        """How many are stored, and when the last one was made."""
        return self.db.sql("SELECT count(*), max(made_at_ms) FROM results WHERE kind='product'")

    def answer_of_daemon(self):
        log = self.work / f"{self.run_name}.log"
        with open(log, "w", encoding="utf-8") as out:
            daemon = subprocess.Popen([XPLANED, "--logdir", self.logs, "--store", self.db.url, "--listen", "127.0.0.1:0", "--http", "off",
                                       "--no-prefetch"], stderr=out, env=self.environment())
        try:
            address = None
            while not address:
                self.assertIsNone(daemon.poll(), log.read_text())
                address = re.search(r"service=grpc address=(\S+)", log.read_text())
            return subprocess.run([XPLANECTL, "--server", address[1], "tool", "overview_page", self.run_name], capture_output=True,
                                  check=True, timeout=PATIENCE_S).stdout
        finally:
            daemon.terminate()
            daemon.wait(PATIENCE_S)

    def test_shards(self):
        """Each host is in one shard; a daemon then answers without a conversion."""
        parts = [self.converted("--shard", f"{i}/4") for i in range(4)]
        self.assertEqual([code for code, _ in parts], [0] * 4)
        self.assertEqual([p["hosts"] for _, p in parts], [3, 3, 3, 3])
        self.assertEqual(sum(p["products_made"] for _, p in parts), HOSTS * self.of_each())
        self.assertEqual(self.converted(), (0, {"hosts": HOSTS, "done": HOSTS, "products_made": 0, "left": []}))
        stored = self.products()
        directory = next(self.logs.rglob("*.xplane.pb")).parent
        self.assertEqual(self.answer_of_daemon(), subprocess.check_output([XPLANECTL, "analyze", "overview_page", directory]))
        self.assertEqual(self.products(), stored)

    def test_damaged(self):
        """A host that cannot be read is left, each time, with the reason; the others are stored."""
        self.damage("h00002")
        for again in (False, True):
            code, said = self.converted()
            self.assertEqual((code, said["hosts"], said["done"]), (3, HOSTS, HOSTS - 1))
            self.assertEqual(said["products_made"], 0 if again else (HOSTS - 1) * self.of_each())
            self.assertEqual([h["host"][-6:] for h in said["left"]], ["h00002"])
            self.assertIn("xplane.pb", said["left"][0]["why"])
        code, out, _ = self.convert()
        self.assertEqual((code, out.splitlines()[0]), (3, "11 of 12 hosts are stored; 0 products were made now"))
        self.assertRegex(out.splitlines()[-1], "h00002 +.*xplane.pb")
        code, out, _ = self.convert("--format", "csv")
        self.assertEqual((code, out.splitlines()[0]), (3, "session,host,why"))
        self.assertRegex(out, "h00002\",\".*xplane.pb")

    def test_interrupted(self):
        """What was published before the end stays; a second run makes the rest."""
        before = self.products()
        with subprocess.Popen([*map(str, self.command("--json"))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.environment(XPLANED_FAULT_JOBS="delay_ms=100")) as running:
            while running.poll() is None and self.products() == before:
                pass
            running.send_signal(signal.SIGTERM)
            out, err = running.communicate(timeout=PATIENCE_S)
        self.assertEqual(running.returncode, 3, err)
        first = json.loads(out)
        self.assertEqual(first["done"] + len(first["left"]), HOSTS)
        self.assertTrue(0 < first["products_made"] < first["done"] * 10, first)
        self.assertEqual({h["why"] for h in first["left"]}, {"not begun: ended by a signal"})
        code, second = self.converted()
        self.assertEqual((code, second["done"], second["products_made"] + first["products_made"]), (0, HOSTS, HOSTS * self.of_each()))

    def test_refused(self):
        for shard in ("4/4", "x/4", "1", "-1/2", "0/0"):
            self.assertEqual(self.convert("--shard", shard)[0], 2, shard)
        self.assertEqual(self.convert("--store", "cache.db")[0], 2)
        self.run_name = "no_such_run"
        code, out, err = self.convert()
        self.assertEqual((code, out), (1, ""))
        self.assertIn('nothing converted: no session "no_such_run"', err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
