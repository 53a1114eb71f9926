#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a newcomer types first: no command, the beginning of a name, a log directory, files that are not profiles.

usage: test_ways.py XPLANECTL XPLANED
"""
import io
import json
import lzma
import shutil
import subprocess
import zipfile

from harness import DATA, Case, Programs, environment, main

RUNS = DATA
FOUR = RUNS / "jax_4hosts"


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("a", "b")
    return file.getvalue()


class Ways(Case):
    def put(self, name, run=FOUR):
        shutil.copytree(run, self.logdir / "plugins" / "profile" / name)

    def test_no_command(self):
        """The verdict on the newest session; without a daemon the commands."""
        code, out, err = self.ask()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("\nCommands:\n", err)
        self.daemon()
        code, out, err = self.ask()
        self.assertEqual((code, out), (0, ""))
        self.assertIn("no session yet", err)
        self.put("old")
        self.daemon()
        code, out, err = self.ask()
        self.assertEqual((code, err), (0, ""))
        self.assertIn("Session  old\n", out)
        self.assertRegex(out, r"Captured \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}; 1 session in all\n")
        verdict = json.loads(self.ask("findings", "old", "--format", "json")[1])["verdict"]["text"]
        self.assertIn(f"Verdict  {verdict}\n", out)
        self.assertIn("devices communicate and compute nothing", out)
        self.assertIn("\nNext: xplanectl summary old, ", out)

    def test_beginnings(self):
        """A session by the only beginning of its name; several are listed."""
        for name in ("night_1", "night_2", "day"):
            self.put(name)
        for name in ("y_1", "y_12", "daily"):
            shutil.copytree(FOUR, self.logdir / "gpu" / "plugins" / "profile" / name)
        self.daemon()
        for command in ("hosts", "tools", "findings", "summary"):
            self.assertEqual(self.ask(command, "da"), self.ask(command, "day"), command)
            code, out, err = self.ask(command, "night")
            self.assertEqual((code, out), (1, ""))
            self.assertIn("2 sessions begin with night, such as night_", err)
        # The name of a run below a directory, where no whole name begins so; a complete one comes before longer ones.
        self.assertEqual(self.ask("findings", "gpu/y_1"), self.ask("findings", "y_1"))
        self.assertEqual(self.ask("findings", "gpu/daily"), self.ask("findings", "dai"))
        self.assertIn("2 sessions have a last part that begins with y_, such as gpu/y_", self.ask("findings", "y_")[2])
        # A host that is missing is not a session that is.
        self.assertNotIn("begin with", self.ask("findings", "night_1", "--host", "x")[2])

    def test_sessions(self):
        for name in ("a1", "a2", "a3"):
            self.put(name)
        self.daemon()
        self.assertEqual(self.ask("label", "a2", "nightly")[0], 0)
        self.assertEqual(len(self.ask("sessions")[1].splitlines()), 4)
        self.assertEqual(len(self.ask("sessions", "--last", "2")[1].splitlines()), 3)
        code, out, err = self.ask("sessions", "--label", "nightly", "--format", "csv")
        self.assertEqual([line.split(',')[0].strip('"') for line in out.split()], ["name", "a2"])
        code, out, err = self.ask("sessions", "--label", "nosuch")
        self.assertIn("no session has the label nosuch", err)

    def test_joined(self):
        """Processes that wrote into directories of their own, with equal names."""
        for i in range(2):
            (self.place / f"rank{i}").mkdir()
            shutil.copy(FOUR / f"host-{i}.cluster.local.xplane.pb", self.place / f"rank{i}" / "vm.xplane.pb")
        code, out, err = self.ask("findings", self.place / "rank0", self.place / "rank1", "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertIn('"hosts":2,', out)
        self.assertIn('"host":"rank1_vm"', out)
        self.assertIn("Hosts    2 ", self.ask("summary", self.place / "rank0", self.place / "rank1")[1])

    def test_log_directory(self):
        self.put("one")
        self.assertEqual(self.ask("findings", self.logdir), self.ask("findings", self.logdir / "plugins/profile/one"))
        self.put("two")
        code, out, err = self.ask("findings", self.logdir)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("2 runs are below this directory; choose one, such as ", err)
        self.assertIn("/plugins/profile/two", err)

    def test_foreign_files(self):
        """What a file is that is not a profile."""
        for name, data, said in (("a.xplane.pb.xz", lzma.compress(b"abc"), "xz files are not read; decompress it (xz -d)"),
                                 ("a.zip", zipped(), "zip archives are not read; extract the profile"),
                                 ("a.html", b"<!DOCTYPE html>", "the file is not a profile of a known format"),
                                 ("a.db", b"SQLite format 3\0", "SQLite databases, such as exports of Nsight Systems, are not read")):
            file = self.place / name
            file.write_bytes(data)
            code, out, err = self.ask("summary", file)
            self.assertEqual((code, out), (1, ""), name)
            self.assertIn(said, err)

    def test_early_end_of_the_reader(self):
        """Nothing is said about a pipe that is closed, also below a parent that ignores SIGPIPE, as Python does."""
        for program in (Programs.xplanectl, Programs.xplaned):
            process = subprocess.Popen([program, "--help"], env=environment(), restore_signals=False,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"", program)
            process.stderr.close()
            process.wait(60)

    def test_start(self):
        """The log has the address of the pages; a port in use has a remedy."""
        daemon = self.daemon()
        self.assertIn(f'msg="the pages: http://{daemon.http}"', daemon.text())
        for flags in (["--listen", "127.0.0.1:0", "--http", daemon.http], ["--listen", daemon.address, "--http", "off"]):
            second = subprocess.run([Programs.xplaned, "--logdir", self.logdir, "--state-dir", self.place / "second", *flags],
                                    capture_output=True, text=True, timeout=60, check=False, env=environment())
            self.assertEqual(second.returncode, 1)
            self.assertRegex(second.stderr, "in use; .*another port")

    def test_tables(self):
        """One table of the breakdown; numbers where there are several."""
        rows = self.ask("tool", "time_breakdown", FOUR, "--format", "table")[1].splitlines()
        self.assertEqual(rows[0].split()[:4], ["HOST", "DEVICE", "WALL", "COMPUTE"])
        self.assertEqual(len(rows), 5)
        self.assertIn("\nTable 2: Steps\nSTEPNUM", self.ask("tool", "overview_page", FOUR, "--format", "table")[1])
        self.assertNotIn("Table 1", self.ask("tool", "hlo_stats", FOUR, "--format", "table")[1])


if __name__ == "__main__":
    main("xplanectl", "xplaned")
