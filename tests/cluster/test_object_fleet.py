#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Daemons that share a database and a bucket: which of them lists it.

usage: test_object_fleet.py XPLANECTL XPLANED FAKE_PROFILER [CLASS[.TEST]]...
"""
import glob
import os
import pathlib
import signal
import time
import unittest

from measure import Database
from object_harness import PROFILE, OfStub, run_tests, wait_until


@unittest.skipUnless(glob.glob("/usr/lib/postgresql/*/bin/initdb"), "no server of PostgreSQL in /usr/lib/postgresql")
class Fleet(OfStub):
    def test_workers_list_seldom(self):
        """A worker lists the bucket once; what a front asks for later it finds all the same."""
        database = Database(self.place)
        self.addCleanup(database.stop)
        shared = ("--store", database.url, "--object-interval", "500ms")
        self.put_run("old")
        worker = self.started("--role", "worker", *shared, name="worker", listed=False)
        wait_until("the worker knows the bucket", lambda: 'msg="1 session"' in worker.text())
        lists = self.bucket.count("list")
        time.sleep(3)
        self.assertEqual(self.bucket.count("list"), lists)
        front = self.started("--role", "front", *shared, name="front")
        for run in ("new", "newer"):
            self.put_run(run)
            wait_until("it is listed", lambda run=run: any(
                n.split(",")[0].strip('"') == run for n in self.names(front)))
            code, got, err = self.answer(front, "overview_page", run)
            self.assertEqual(code, 0, err)
            self.assertEqual(got, self.answer_of_plain())
        self.assertIn("msg=published", worker.text())

    def keys_of(self, kind):
        with self.bucket.lock:
            return [r[1] for r in self.bucket.requests if r[0] == kind]

    def knows(self, daemon, run):
        return any(n.split(",")[0].strip('"') == run for n in self.names(daemon))

    def test_scanner(self):
        """Of two daemons one lists; the other learns what is new, and lists when that one is killed."""
        database = Database(self.place)
        self.addCleanup(database.stop)
        shared = ("--store", database.url, "--object-interval", "500ms", "--scan-interval", "100ms")
        self.put_run("old")
        first = self.started(*shared, name="first")
        scanners = []

        def fault(handler, kind, key):
            if kind == "list":
                scanners.append(handler.client_address[1])
            return False
        self.bucket.faults.append(fault)
        before = len(self.keys_of("list"))
        second = self.started(*shared, name="second")
        self.assertTrue(self.knows(second, "old"))
        time.sleep(3)
        # Connections are one daemon's: those of the second are not among them.
        self.assertEqual(set(scanners) & self.ports_of(second), set())
        self.assertGreater(len(self.keys_of("list")), before)
        for run in ("new", "newer"):
            self.put_run(run)
            wait_until("the second one knows it", lambda run=run: self.knows(second, run))
            code, got, err = self.answer(second, "overview_page", run)
            self.assertEqual(code, 0, err)
            self.assertEqual(got, self.answer_of_plain() if run == "new" else got)
        self.assertEqual(set(scanners) & self.ports_of(second), set())
        first.end(signal.SIGKILL)
        begin = time.monotonic()
        self.put_run("last")
        wait_until("the second one lists", lambda: self.knows(second, "last"))
        self.assertLess(time.monotonic() - begin, 55)  # its lease of 30 s, and patience
        third = self.started(*shared, name="third")
        self.assertTrue(self.knows(third, "last"))
        self.assertEqual(set(scanners) & self.ports_of(third), set())
        # Without the database each lists by itself.
        database.stop()
        self.put_run("alone")
        for daemon in (second, third):
            wait_until("it lists by itself", lambda daemon=daemon: self.knows(daemon, "alone"))

    def test_one_worker_fetches_an_object(self):
        """Two workers fetch each profile once, whatever products it has; a front seeks a device in each."""
        database = Database(self.place)
        self.addCleanup(database.stop)
        hosts = [f"h{i:05d}" for i in range(96)]
        for host in hosts:
            self.put_run("run", PROFILE.read_bytes() + b"\x22\x06" + host.encode(), host)
        workers = [self.started("--role", "worker", "--store", database.url, name=name, listed=False)
                   for name in ("worker", "other")]
        front = self.started("--role", "front", "--store", database.url, name="front")
        wait_until("the workers report",
                   lambda: database.sql("SELECT count(*) FROM daemons WHERE role='worker'") == "2")
        fetches = []

        def fault(handler, kind, key):
            if kind == "get" and key.endswith(".xplane.pb"):
                fetches.append((handler.client_address[1], key))
            return False
        self.bucket.faults.append(fault)
        code, _, err = self.answer(front, "overview_page", "run")
        self.assertEqual(code, 0, err)
        self.assertTrue(all("msg=published" in worker.text() for worker in workers))
        of_front = self.ports_of(front)
        of_workers = [key for port, key in fetches if port not in of_front]
        self.assertEqual(len(set(of_workers)), len(hosts))
        self.assertLessEqual(len(of_workers), 1.05 * len(hosts))
        self.assertLessEqual(len(fetches) - len(of_workers), len(hosts))

    def ports_of(self, daemon):
        """Of connections that the daemon has to the bucket."""
        port = self.bucket.server_address[1]
        inodes = {os.readlink(fd).strip("socket:[]") for fd in glob.glob(f"/proc/{daemon.process.pid}/fd/*")
                  if os.path.islink(fd) and os.readlink(fd).startswith("socket:")}
        lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {int(f[1].split(":")[1], 16) for f in lines
                if f[9] in inodes and int(f[2].split(":")[1], 16) == port}


if __name__ == "__main__":
    run_tests()
