#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a RUN is: a session of the daemon, or a path, for every command that takes one.

usage: test_runs.py XPLANECTL XPLANED [CLASS[.TEST]]...
"""
import json
import re
import shutil
import socket
import time

from harness import DATA, PROFILE, ROOT, Case, main

BUNDLE = ROOT / "tests/data/iree/task-mlp-all.ireeprof"
# Arguments of each command that takes a RUN, in place of RUN the run.
CALLS = {"hosts": ["RUN", "--json"], "tools": ["RUN"], "tool": ["op_profile", "RUN"], "summary": ["RUN"], "report": ["RUN"],
         "findings": ["RUN", "--json"], "compare": ["RUN", "RUN,RUN", "--json"], "aggregate": ["RUN", "RUN"],
         "gate": ["RUN", "--base", "RUN,RUN", "--json", "--fail-if", "step_time>900%"],
         "events": ["RUN", "--format", "csv"], "hlo": ["RUN", "--json"],
         "sql": ["RUN", "SELECT name, count(*) FROM events GROUP BY name ORDER BY name"], "iree": ["summary", "RUN"]}


def call(command, run):
    return [command, *[a.replace("RUN", str(run)) for a in CALLS[command]]]


class Runs(Case):
    def setUp(self):
        super().setUp()
        profiles = self.logdir / "plugins" / "profile"
        for place in (profiles / "my_run", self.logdir / "sub" / "plugins" / "profile" / "run"):
            shutil.copytree(PROFILE.parent, place)
        # The local directories with sessions' names hold another profile.
        self.here = self.place / "here"
        for name in ("my_run", "sub/run", "mine", "sub/mine"):
            shutil.copytree(DATA / "jax_8dev_shardmap", self.here / name)

    def answer(self, command, run, status=0):
        code, out, err = self.ask(*call(command, run), cwd=self.here)
        self.assertEqual(code, status, (command, run, err))
        return out, err

    def commands(self):
        return [c for c in CALLS if c != "iree"]

    def test_all(self):
        """The table says RUN of these commands, and of no others."""
        table = json.loads(self.ask("help", "--format", "json")[1])["commands"]
        self.assertEqual({c["name"] for c in table if "RUN" in c["arguments"]}, set(CALLS))
        for c in table:
            text = " ".join(self.ask(c["name"], "--help")[1].split())
            self.assertEqual("RUN is a session of the daemon or" in text, c["name"] in CALLS, c["name"])

    def split(self):
        """The session jax_4hosts, each process in a run directory of its own; returns their names."""
        names = [f"run_{i}" for i in range(4)]
        for name, file in zip(names, sorted((DATA / "jax_4hosts").glob("*.xplane.pb"))):
            (self.logdir / "plugins/profile" / name).mkdir(parents=True)
            shutil.copy(file, self.logdir / "plugins/profile" / name)
        return names

    def test_joined(self):
        """Runs of one job are one session with --join, as their files in one directory are."""
        names = self.split()
        whole = self.ask("findings", DATA / "jax_4hosts", "--json")
        self.assertEqual(whole[0], 0, whole)
        paths = [self.logdir / "plugins/profile" / n for n in names]
        self.assertEqual(self.ask("findings", *paths, "--json"), whole)
        self.assertEqual(self.ask("findings", "--join", self.logdir / "plugins", "--json"), whole)
        self.daemon("--join", "--allow-delete")
        listed = json.loads(self.ask("sessions", "--json")[1])
        self.assertEqual({s["name"] for s in listed}, {"my_run", "sub/run", "run_0+joined"})  # one is the other's copy
        self.assertEqual(self.ask("findings", "run_0+joined", "--json"), whole)
        self.assertEqual(len(json.loads(self.ask("hosts", "run_0+joined", "--json")[1])), 4)
        self.assertEqual(len(json.loads(self.ask("hosts", "run_2", "--json")[1])), 1)
        code, _, err = self.ask("delete", "run_0+joined")
        self.assertEqual((code, "joins 4 runs" in err), (1, True), err)
        self.assertEqual(self.ask("delete", "run_3")[0], 0)
        self.assertFalse(paths[3].exists())
        self.assertTrue(paths[2].exists())

    def test_several(self):
        """findings and summary take several sessions as the hosts of one."""
        names = self.split()
        self.daemon()
        for command in ("findings", "summary"):
            code, out, err = self.ask(command, *names, "--json")
            self.assertEqual(code, 0, err)
            whole = json.loads(self.ask(command, DATA / "jax_4hosts", "--json")[1])
            if command == "findings":
                self.assertEqual(json.loads(out), whole)
            else:
                self.assertEqual(json.loads(out)["findings"], whole["findings"])
        code, _, err = self.ask("findings", *names[:2], DATA / "jax_4hosts")
        self.assertEqual((code, "only paths or only sessions" in err), (2, True), err)
        code, _, err = self.ask("findings", "run_0", "nix")
        self.assertEqual((code, 'no session "run_0,nix"' in err), (1, True), err)

    def test_join(self):
        """join makes a session of links; the runs stay."""
        names = self.split()
        runs = self.logdir / "plugins/profile"
        for session, arguments in (("of_paths", [runs / n for n in names]), ("of_sessions", names)):
            code, out, err = self.ask("join", *arguments, "--logdir", self.logdir, "--session", session)
            self.assertEqual((code, out.strip()), (0, session), err)
            files = sorted((runs / session).iterdir())
            self.assertEqual(len(files), 4)
            self.assertEqual({f.stat().st_ino for f in files}, {next((runs / n).iterdir()).stat().st_ino for n in names})
            self.assertEqual(self.ask("findings", runs / session, "--json"), self.ask("findings", DATA / "jax_4hosts", "--json"))
        # A name that is taken gets a number; without --session it is the time.
        self.assertEqual(self.ask("join", *names, "--logdir", self.logdir, "--session", "of_paths")[1].strip(), "of_paths_2")
        self.assertRegex(self.ask("join", *names, "--logdir", self.logdir)[1].strip(), r"^\d{4}(_\d\d){5}$")
        # Nothing is left of one that fails.
        before = sorted(p.name for p in runs.iterdir())
        (self.here / "bad.xplane.pb").write_bytes(b"\x1f\x8b")
        self.assertEqual(self.ask("join", names[0], self.here / "bad.xplane.pb", "--logdir", self.logdir)[0], 1)
        self.assertEqual(self.ask("join", names[0], "nix", "--logdir", self.logdir)[0], 1)
        self.assertEqual(sorted(p.name for p in runs.iterdir()), before)
        self.assertEqual(self.ask("join", *names)[0], 2)

    def test_delete(self):
        """A session with another one in its directory is not deleted."""
        (self.logdir / "both").mkdir()
        shutil.copy(PROFILE, self.logdir / "both")
        shutil.copy(BUNDLE, self.logdir / "both" / "run.ireeprof")
        self.daemon("--allow-delete")
        code, _, err = self.ask("delete", "both", cwd=self.here)
        self.assertEqual(code, 1)
        self.assertIn("both/run is in its directory", err)
        self.assertEqual(len(list((self.logdir / "both").iterdir())), 2)

    def test_no_daemon(self):
        """A path needs no daemon, and what is none says so."""
        self.server = f"unix:{self.place}/none"
        for command in self.commands():
            for run in ("mine", "sub/mine", "./mine", "mine/", self.here / "mine"):
                out, err = self.answer(command, run)
                self.assertTrue(out, command)
                self.assertEqual(err, "", command)
            for run in ("none/such", "./none"):
                out, err = self.answer(command, run, 1)
                self.assertIn(f"{run}: cannot open: No such file or directory\n", err)
                self.assertEqual("no daemon answers" in err, run == "none/such", err)
            self.assertIn('; did you mean "mine"?\n', self.answer(command, "./mone", 1)[1])
        self.assertIn(f'; did you mean "{BUNDLE.name}"?\n', self.answer("iree", BUNDLE.parent / BUNDLE.name[:-1], 1)[1])
        for run in (BUNDLE, f"../{BUNDLE.name}"):
            shutil.copy(BUNDLE, self.here.parent)
            self.assertEqual(self.answer("iree", run), self.answer("iree", BUNDLE))
        for command in ("hosts", "tools"):
            kinds = self.answer(command, BUNDLE)[0]
            self.assertIn('"kind":"iree"' if command == "hosts" else "iree_summary\n", kinds)
        self.assertIn("which a profile bundle of IREE does not have; try iree_explain", self.answer("summary", BUNDLE, 1)[1])

    def test_same(self):
        """Of a path what the daemon says of the session with these files."""
        profiles = self.logdir / "plugins" / "profile"
        self.daemon()
        other = self.place / "other"  # no session has these names here
        other.mkdir()
        for command in self.commands():
            texts = [self.ask(*call(command, run), cwd=other) for run in (profiles / "my_run", "my_run")]
            if command == "hosts":  # of files nothing is stored
                texts = [(c, re.sub('"state":"[a-z]*"', "", out), err) for c, out, err in texts]
            if command == "events":
                texts = [(c, out.replace(str(profiles) + "/", ""), err) for c, out, err in texts]
            self.assertEqual(texts[0], texts[1], command)
            self.assertEqual(texts[0][0], 0, texts[0])

    def test_session_first(self):
        """An existing path is a session where one has that name; ./NAME and NAME/ are paths."""
        self.daemon()
        for command in self.commands():
            for name in ("my_run", "sub/run"):
                session, path = self.answer(command, name)[0], self.answer(command, f"./{name}")[0]
                if command != "tools":
                    self.assertNotEqual(session.replace(name, ""), path.replace(name, "").replace("./", ""), command)
                self.assertEqual(self.answer(command, f"{name}/")[0].replace(f"{name}/", ""), path.replace(f"./{name}", ""), command)
            for name in ("mine", "sub/mine"):
                self.assertEqual(self.answer(command, name)[0].replace(name, "").replace("mine", ""),
                                 self.answer(command, f"./{name}")[0].replace(f"./{name}", "").replace("mine", ""))
            # A name with a slash that is neither.
            err = self.answer(command, "sub/runn", 1)[1]
            self.assertIn('no session "sub/runn"; did you mean "sub/run"?\n', err)
            if command not in ("compare", "gate", "sql"):  # where it may be another of several
                self.assertIn("no file sub/runn exists: it was taken for a session\n", err)

    def test_part(self):
        """What a session lacks is not said to be the session."""
        self.daemon()
        for command, words in ((["events", "sub/run", "--plane", "tpu"], 'no plane has "tpu"'), (["hlo", "sub/run", "nope"], "no HLO module"),
                               (["summary", "sub/run", "--host", "nope"], 'no host "nope"')):
            code, out, err = self.ask(*command, cwd=self.here)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(words, err)
            self.assertNotIn("taken for a session", err)
            (self.here / "sub" / "run").rename(self.here / "sub" / "away")
            self.assertNotIn("taken for a session", self.ask(*command, cwd=self.here)[2])
            (self.here / "sub" / "away").rename(self.here / "sub" / "run")

    def test_bundle(self):
        """A bundle's session is called by its path without the suffix, and comes before a file of that name."""
        first, other = sorted(ROOT.glob("tests/data/iree/*-mlp-all.ireeprof"))[:2]
        shutil.copy(first, self.logdir / "model.ireeprof")
        shutil.copy(other, self.here / "model")
        self.daemon()
        self.assertEqual(self.answer("iree", "model"), self.answer("iree", first))
        self.assertEqual(self.answer("iree", "./model"), self.answer("iree", other))
        self.assertNotEqual(self.answer("iree", "model"), self.answer("iree", "./model"))

    def test_silent(self):
        """A daemon that says nothing is not waited for where there is such a path."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.server = f"127.0.0.1:{silent.getsockname()[1]}"
            begin = time.monotonic()
            out, err = self.answer("hosts", "mine")
            self.assertLess(time.monotonic() - begin, 30)
            self.assertIn("vm", out)
            self.assertIn("warning: mine is taken for a path: ", err)
            self.assertIn("has not answered in 2000 ms", err)
            # A missing path is requested as a session, which takes until the timeout.
            self.assertIn("has not answered in 2500 ms",
                          self.ask("hosts", "none/such", "--timeout-ms", "2500", cwd=self.here)[2])


if __name__ == "__main__":
    main("xplanectl", "xplaned")
