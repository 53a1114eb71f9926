#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`xplanectl iree capture` from outside, with a program that takes IREE's flags as its tools do.

usage: test_iree.py XPLANECTL XPLANED [CLASS[.TEST]]...
"""
import json
import os
import pathlib
import re
import signal
import stat
import sys
import urllib.error
import urllib.request

from harness import PROFILE, ROOT, Case, main, wait_until

BUNDLE = ROOT / "tests" / "data" / "iree" / "sync-mlp-all.ireeprof"
# A tool of IREE, as far as a capture sees one.  The first argument says how it behaves.
TOOL = r'''
import os, signal, sys, time
flags = dict(a.split("=", 1) for a in sys.argv[2:] if "=" in a)
behaviour, bundle = sys.argv[1], open(BUNDLE, "rb").read()
path = flags["--device_profiling_output"]
with open(path, "wb", buffering=0) as f:
    f.write(bundle[:16] + bytes(8))
    print("the program's own words", flush=True)
    if behaviour == "refuses":
        print("x/profile.c:240: UNIMPLEMENTED; unsupported data families 0x8", file=sys.stderr)
        sys.exit(1)
    f.write(bundle[24:1500])
    if behaviour == "fails":
        sys.exit(7)
    if behaviour == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "stubborn":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if behaviour in ("waits", "stubborn"):
        print("waiting", file=sys.stderr, flush=True)
        time.sleep(300)
    at = 1500
    if behaviour == "grows":  # the more of these files there are, the more it has flushed
        while not os.path.exists(flags["--until"]):
            if os.path.exists(flags["--until"] + str(at)):
                f.write(bundle[at:at + 500])
                at += 500
            if os.path.exists(flags["--until"] + "-dies"):
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.02)
    f.write(bundle[at:])
    f.seek(16)
    f.write(bundle[16:24])
print(sorted(a for a in sys.argv if a.startswith("--device_profiling")), file=sys.stderr)
'''


def is_pending(pid, number):
    """Whether the signal was sent to the process, and has not reached it yet."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return any(int(mask, 16) >> (number - 1) & 1 for mask in re.findall(r"^(?:SigPnd|ShdPnd):\t(\w+)$", status, re.M))


class Capture(Case):
    def setUp(self):
        super().setUp()
        self.tool = self.place / "iree-tool"
        self.tool.write_text(f"#!{sys.executable}\nBUNDLE = {str(BUNDLE)!r}\n{TOOL}")
        self.tool.chmod(self.tool.stat().st_mode | stat.S_IXUSR)

    def capture(self, *flags, behaves="works", more=()):
        return ["iree", "capture", "--host-names", "here", *flags, "--", self.tool, behaves,
                "--device=local-sync", *more]

    def beneath(self, session):
        folder = self.logdir / "plugins" / "profile" / session
        return {p.name: p.read_bytes() for p in folder.iterdir()} if folder.exists() else None

    def wait_written(self, session, size):
        """Until so much of the bundle is shown: when it first is, it may have less."""
        file = self.logdir / "plugins" / "profile" / session / "here.ireeprof"
        wait_until(f"{size} bytes of the bundle are shown", lambda: file.exists() and file.stat().st_size == size)

    def assert_whole(self, session):
        files = self.beneath(session)
        self.assertEqual(list(files), ["here.ireeprof"])
        self.assertTrue(files["here.ireeprof"] == BUNDLE.read_bytes())

    def into_logdir(self, *flags, **options):
        return self.capture("--logdir", self.logdir, *flags, **options)

    def test_whole(self):
        code, out, err = self.ask(*self.into_logdir("--session", "one"))
        self.assertEqual((code, out), (0, "one\n"), err)
        self.assert_whole("one")
        self.assertIn("the program's own words", err)
        self.assertIn("'--device_profiling_mode=queue-events,host-execution,memory-events,"
                      "executable-metadata'", err)
        # The name is taken now, and a session without a name is called by the time.
        self.assertEqual(self.ask(*self.into_logdir("--session", "one"))[1], "one_2\n")
        self.assertRegex(self.ask(*self.into_logdir())[1], r"^20\d\d(_\d\d){5}\n$")

    def test_flags(self):
        code, _, err = self.ask(*self.into_logdir(
            "--mode", "dispatch-events,counters", "--counter", "A", "--counter=B",
            "--filter_function", "*mm*", "--filter_command_buffer=3", "--filter_command_index=0",
            "--filter_physical_device=1", "--filter_queue=2", "--flush_interval", "1s"))
        self.assertEqual(code, 0, err)
        for flag in ("mode=dispatch-events,counters", "counter=A", "counter=B", "filter_queue=2",
                     "filter_function=*mm*", "filter_command_buffer=3", "filter_command_index=0",
                     "filter_physical_device=1", "flush_interval_ms=1000"):
            self.assertIn(f"'--device_profiling_{flag}'", err)

    def test_checked_before(self):
        """What IREE would refuse, or would not understand, starts nothing."""
        for words, flags in {
                'no mode "dispach-events"; did you mean "dispatch-events"?':
                    ["--mode", "dispach-events"],
                "an empty name": ["--mode", "queue-events,"],
                "need a --counter": ["--mode", "counters"],
                "--counter needs --mode counters": ["--counter", "X"],
                "--counter: an empty name": ["--mode", "counters", "--counter", ""],
                "--filter_function: an empty": ["--filter_function", ""],
                "--filter_command_buffer 0: not a number from 1": ["--filter_command_buffer", "0"],
                "--filter_queue x: not a number": ["--filter_queue", "x"],
                "--flush_interval 0s: not from 1ms": ["--flush_interval", "0s"],
                "-o FILE is for one": ["-o", self.place / "x", "--repeat", "2"]}.items():
            code, out, err = self.ask(*self.into_logdir(*flags))
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn(words, err)
            self.assertNotIn("own words", err)
        for words, more in {"already has --device_profiling flags": ["--device_profiling_mode=queue-events"],
                            "this driver": ["--device=cuda"]}.items():
            code, out, err = self.ask("iree", "capture", "--", self.tool, "works", *more)
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn(words, err)
        self.assertEqual(self.ask("iree", "capture", "--", self.tool, "works")[0], 2)
        self.assertEqual(self.ask("iree", "capture")[0], 2)
        code, _, err = self.ask(*self.into_logdir("--session", "a/b"))
        self.assertEqual(code, 1, err)
        code, _, err = self.ask("iree", "capture", "--mode", "queue-events", "--logdir",
                                self.logdir, "--", self.place / "missing")
        self.assertEqual(code, 1, err)
        self.assertIn("No such file", err)
        self.assertEqual(self.sessions(), [])

    def test_refused(self):
        """IREE's words pass through, and nothing stays."""
        code, out, err = self.ask(*self.into_logdir("--session", "one", behaves="refuses"))
        self.assertEqual((code, out), (1, ""), err)
        self.assertIn("x/profile.c:240: UNIMPLEMENTED; unsupported data families 0x8\n", err)
        self.assertIn("nothing that could be kept", err)
        self.assertIsNone(self.beneath("one"))

    def kept(self, code, out, err, session):
        """A session with what was written until then, which reports read."""
        self.assertEqual((code, out), (3, f"{session}\n"), err)
        self.assertIn("its output until then is kept", err)
        self.assertEqual([len(b) for b in self.beneath(session).values()], [1500])
        code, out, err = self.ask("iree", "summary", session, "--logdir", self.logdir,
                                  "--format", "jsonl")
        self.assertEqual(code, 3, err)
        self.assertIn('"session_begin_records":1', out)

    def test_dies(self):
        for number, (behaves, words) in enumerate({"dies": "ended by signal 9",
                                                   "fails": "ended with status 7"}.items()):
            session = f"s{number}"
            code, out, err = self.ask(*self.into_logdir("--session", session, behaves=behaves))
            self.assertIn(words, err)
            self.kept(code, out, err, session)

    def test_interrupted(self):
        for behaves, number in {"waits": signal.SIGTERM, "stubborn": signal.SIGINT}.items():
            session = f"{behaves}-1"
            capture = self.start(*self.into_logdir("--session", session, behaves=behaves),
                                 start_new_session=True)
            self.wait_written(session, 1500)
            capture.send_signal(number)
            if behaves == "stubborn":  # a second signal ends it; two that are pending at once are one
                wait_until("the first signal has arrived", lambda: not is_pending(capture.pid, number))
                capture.send_signal(number)
            out, err = capture.communicate(timeout=60)
            self.kept(capture.returncode, out, err, session)

    def test_grows(self):
        """A log directory shows what is there so far, and then all of it."""
        until = self.place / "until"
        capture = self.start(*self.into_logdir("--session", "one", behaves="grows",
                                               more=[f"--until={until}"]))
        self.wait_written("one", 1500)
        code, out, _ = self.ask("iree", "summary", "one", "--logdir", self.logdir)
        self.assertEqual(code, 3)
        self.assertIn("session_end_records=0", out)
        until.touch()
        out, err = capture.communicate(timeout=60)
        self.assertEqual((capture.returncode, out), (0, "one\n"), err)
        self.assert_whole("one")

    def test_repeat(self):
        code, out, err = self.ask(*self.into_logdir("--session", "label", "--repeat", "3"))
        self.assertEqual((code, out), (0, "label_1\nlabel_2\nlabel_3\n"), err)
        self.assertEqual(self.sessions(), ["label_1", "label_2", "label_3"])
        # The first that fails is the last.
        code, out, err = self.ask(*self.into_logdir("--session", "bad", "--repeat", "3",
                                                    behaves="fails"))
        self.assertEqual((code, out), (3, "bad_1\n"), err)

    def test_file(self):
        path = self.place / "a.ireeprof"
        code, out, err = self.ask(*self.capture("-o", path))
        self.assertEqual((code, out), (0, ""), err)
        self.assertTrue(path.read_bytes() == BUNDLE.read_bytes())

    def test_daemon(self):
        self.daemon()
        code, out, err = self.ask(*self.capture("--session", "one"))
        self.assertEqual((code, out), (0, "one\n"), err)
        self.assert_whole("one")
        listed = wait_until("the session is listed", lambda: self.ask("sessions")[1])
        self.assertRegex(listed, r"(?m)^one +iree ")

    def grow(self, session):
        """A capture into a daemon that flushed three times: answers of the session after each."""
        os.environ["TMPDIR"] = str(self.place)
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.daemon()
        until, file = str(self.place / "until"), self.logdir / "plugins/profile" / session / "here.ireeprof"
        capture = self.start(*self.capture("--session", session, "--flush_interval", "10ms",
                                           behaves="grows", more=[f"--until={until}"]))
        answers = []
        for size in (1500, 2000, 2500):
            wait_until(f"the daemon has {size} bytes",
                       lambda n=size: file.exists() and file.stat().st_size == n)
            self.assertTrue(file.read_bytes()[24:] == BUNDLE.read_bytes()[24:size])
            answers.append(wait_until("its answer is another one", lambda: self.other(session, answers)))
            pathlib.Path(until + str(size)).touch()
        self.assertEqual(self.ask("sessions")[1].count(session), 1)
        return capture, until

    def other(self, session, answers):
        code, out, err = self.ask("iree", "cat", session, "--format", "jsonl")
        self.assertEqual(code, 3, err)
        return out if out not in answers else None

    def test_daemon_grows(self):
        """A daemon has what is flushed while the program runs, in one session."""
        capture, until = self.grow("one")
        pathlib.Path(until).touch()
        out, err = capture.communicate(timeout=60)
        self.assertEqual((capture.returncode, out), (0, "one\n"), err)
        self.assert_whole("one")
        self.assertEqual(self.ask("iree", "summary", "one")[0], 0)
        self.assertEqual(list(self.place.rglob("*.part")), [])
        # Another program's bundle does not take its place, and stays where it was written.
        code, out, err = self.ask(*self.capture("--session", "one", "--flush_interval", "10ms",
                                                behaves="fails"))
        self.assertEqual((code, out), (1, ""), err)
        self.assertIn("session one has here.ireeprof already", err)
        self.assert_whole("one")

    def test_daemon_grows_and_dies(self):
        capture, until = self.grow("one")
        # Only the capture's own: those of the daemon's imports come and go.
        wait_until("it wrote more", lambda: any(
            p.stat().st_size == 3000 for p in self.place.glob("plugins/profile/one/*.part")))
        pathlib.Path(until + "-dies").touch()
        out, err = capture.communicate(timeout=60)
        self.assertEqual((capture.returncode, out), (3, "one\n"), err)
        self.assertIn("ended by signal 9: its output until then is kept", err)
        self.assertEqual([len(b) for b in self.beneath("one").values()], [3000])

    def test_foreign(self):
        """A file that is no bundle is refused in IREE's words, by its path and by a daemon."""
        for name, data, words in (
                ("text", b"hello, this is not a profile", "invalid IREE HAL profile file magic"),
                ("short", b"IRPF", "profile file is too small for header"),
                ("none", b"", "profile file is too small for header")):
            (self.logdir / f"{name}.ireeprof").write_bytes(data)
            code, out, err = self.ask("iree", "summary", self.logdir / f"{name}.ireeprof")
            self.assertEqual((code, out), (1, ""))
            self.assertIn(f"{name}.ireeprof: {words}", err)
        self.daemon()
        for name, words in (("text", "magic"), ("short", "for header"), ("none", "for header")):
            before = self.ask("sessions")[1]
            code, out, err = self.ask("import", self.logdir / f"{name}.ireeprof", "--session", "new")
            self.assertEqual((code, out), (1, ""))
            self.assertRegex(err, f"{name}: .*profile file .*{words}")
            self.assertEqual(self.ask("sessions")[1], before)
            for ask in (("iree", "summary"), ("tool", "trace_viewer"), ("iree", "export")):
                code, out, err = self.ask(*ask, name)
                self.assertEqual((code, out), (1, ""))
                self.assertRegex(err, f"{name}.ireeprof: .*profile file .*{words}")

    def test_no_daemon(self):
        """What cannot be stored is not lost."""
        os.environ["TMPDIR"] = str(self.place)
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.server = "127.0.0.1:1"
        code, out, err = self.ask(*self.capture())
        self.assertEqual((code, out), (1, ""), err)
        left = list(self.place.rglob("here.ireeprof"))
        self.assertEqual(len(left), 1, err)
        self.assertTrue(left[0].read_bytes() == BUNDLE.read_bytes())
        self.assertIn(str(left[0]), err)


class Compare(Case):
    """Two bundles, by functions and their geometry."""

    DATA = ROOT / "tests" / "data" / "iree"

    def compare(self, *runs):
        code, out, err = self.ask("compare", *runs, "--format", "json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_cut(self):
        data = (self.DATA / "task-mlp-all.ireeprof").read_bytes()
        cut = self.place / "cut.ireeprof"
        for size, status in ((len(data), 0), (len(data) - 200, 3)):
            cut.write_bytes(data[:size])
            code, out, err = self.ask("analyze", "trace_viewer", cut)
            self.assertEqual(code, status, err)
            self.assertIn("mlp_dispatch_0", out)
            self.assertEqual(re.search("cut: offset [0-9]+: profile record extends past file end", err) is None,
                             status == 0, err)
        # The same through a daemon, for tools of bundles and for others.
        (self.logdir / "cut.ireeprof").write_bytes(data[:-200])
        (self.logdir / "whole.ireeprof").write_bytes(data)
        self.daemon()
        for tool in ("iree_summary", "trace_viewer", "op_profile"):
            for session, status in (("cut", 3), ("whole", 0)):
                code, out, err = self.ask("tool", tool, session)
                self.assertEqual(code, status, err)
                self.assertEqual("bytes at the end are lost" in err, status == 3)

    def test_partly(self):
        """Whatever is asked of a bundle that is cut: an answer, where it is cut, and status 3."""
        data = (self.DATA / "task-mlp-all.ireeprof").read_bytes()
        cut, whole, other = (self.place / f"{name}.ireeprof" for name in ("cut", "whole", "other"))
        for path in (cut, whole, other):
            path.write_bytes(data[:-200] if path is cut else data)
            (self.logdir / path.name).write_bytes(path.read_bytes())
        self.daemon()
        for a, b, status in ((cut, whole, 3), (whole, cut, 3), (whole, other, 0)):
            asked = [("compare", a, b), ("compare", a.stem, b.stem), ("compare", a.stem, b),
                     ("events", a, b), ("events", a.stem, b.stem),
                     ("aggregate", a, b), ("aggregate", a.stem, b.stem),
                     ("export", "chrome", a, b), ("sql", a, b, "SELECT count(*) FROM events x, events y"),
                     ("sql", a, b, "SELECT count(*) FROM run_metrics")]
            for command in asked:
                code, out, err = self.ask(*command)
                self.assertEqual(code, status, (command, err))
                self.assertTrue(out, command)
                self.assertEqual(err.count("bytes at the end are lost"), status == 3, (command, err))

    def test_rows_of_damaged(self):
        """Exported rows keep what their bundle lost."""
        data = (self.DATA / "task-mlp-all.ireeprof").read_bytes()
        cut, rows = self.place / "cut.ireeprof", self.place / "cut.ireeperf.jsonl"
        cut.write_bytes(data[:-200])
        code, out, err = self.ask("iree", "export", cut)
        self.assertEqual(code, 3, err)
        rows.write_text(out)
        said = re.search("offset [0-9]+: profile record extends past file end", err)[0]
        for command in (("iree", "summary"), ("analyze", "trace_sums")):
            code, out, err = self.ask(*command, rows)
            self.assertEqual(code, 3, err)
            self.assertIn(said, err)

    def test_what_there_is(self):
        """What a bundle has no answer to names the report that has one; tables without rows are left out."""
        task = self.DATA / "task-mlp-all.ireeprof"
        (self.logdir / "task.ireeprof").write_bytes(task.read_bytes())
        self.daemon()
        for command in ("summary", "findings"):
            for run in (str(task), "task"):
                code, out, err = self.ask(command, run)
                self.assertEqual((code, out), (1, ""), err)
                self.assertIn("which a profile bundle of IREE does not have; try iree_explain", err)
            code, out, err = self.ask(command, "none")
            self.assertEqual(code, 1, err)
            self.assertNotIn("iree", err)
        self.assertIn(": summary needs steps", self.ask("summary", task)[2])
        code, out, err = self.ask("compare", task, task)
        self.assertEqual(code, 0, err)
        self.assertIn("OP PER STEP", out)
        self.assertNotIn("TIME PER STEP", out)

    def test_no_rows(self):
        """A text without rows is told of; rows for programs are not."""
        task = self.DATA / "task-mlp-all.ireeprof"
        (self.logdir / "task.ireeprof").write_bytes(task.read_bytes())
        self.daemon()
        for run in (task, "task"):
            words = "xplanectl: no rows: the bundle has nothing that att reports\n"
            self.assertEqual(self.ask("iree", "att", run), (0, "", words))
            self.assertEqual(self.ask("iree", "att", run, "--format", "jsonl"), (0, "", ""))
            self.assertEqual(self.ask("iree", "att", run, "--quiet"), (0, "", ""))
            self.assertEqual(self.ask("iree", "usage", run)[2], "")
            for report, option, value in (("functions", "--filter", "none"), ("att", "--id", "7")):
                words = f"xplanectl: no rows: nothing that {report} reports matches\n"
                self.assertEqual(self.ask("iree", report, run, option, value), (0, "", words))

    def test_mixed(self):
        """What is left out of a session of XSpaces is no damage of the bundle that it is compared with."""
        folder = self.logdir / "plugins" / "profile" / "xspace"
        folder.mkdir(parents=True)
        self.assertEqual(self.ask("iree", "export", self.DATA / "task-mlp-all.ireeprof", "--format", "xspace",
                                  "-o", folder / "good.xplane.pb")[0], 0)
        (folder / "bad.xplane.pb").write_bytes(b"\x0a\xff\xff\xff")
        data = (self.DATA / "task-mlp-all.ireeprof").read_bytes()
        (self.logdir / "whole.ireeprof").write_bytes(data)
        (self.logdir / "cut.ireeprof").write_bytes(data[:-200])
        self.daemon()
        for run, status in (("whole", 0), ("cut", 3)):
            for a, b in ((run, "xspace"), ("xspace", run), (self.logdir / f"{run}.ireeprof", folder)):
                code, out, err = self.ask("compare", a, b)
                self.assertEqual(code, status, err)
                self.assertIn("corrupt profile", err)

    def test_names_at_odds(self):
        """Metadata at odds with the rest is damage, for tools of XSpaces as for reports."""
        data = (self.DATA / "task-mlp-all.ireeprof").read_bytes()
        at = data.index(b"mlp_dispatch_0") - 64  # a function, which names its executable
        odd = data[:at + 8] + (99).to_bytes(8, "little") + data[at + 16:]
        for folder in (self.place, self.logdir):
            (folder / "odd.ireeprof").write_bytes(odd)
        self.daemon()
        for command in (("analyze", "trace_viewer", self.place / "odd.ireeprof"),
                        ("tool", "trace_viewer", "odd"), ("tool", "iree_functions", "odd")):
            code, out, err = self.ask(*command)
            self.assertEqual(code, 3, (command, err))
            self.assertIn("1 executable function references missing executable metadata", err)
        rows = self.ask("iree", "export", self.place / "odd.ireeprof")[1]
        self.assertIn("references missing executable metadata", rows.splitlines()[-1])
        self.assertEqual(self.ask("iree", "export", "odd")[1], rows)

    def test_memory_profile(self):
        """XProf's timeline of memory has the peaks of the report usage."""
        for name in ("task", "vk", "sync"):
            bundle = self.DATA / f"{name}-mlp-all.ireeprof"
            code, out, err = self.ask("analyze", "memory_profile", bundle)
            self.assertEqual(code, 0, err)
            peaks = {name: int(a["profileSummary"]["peakBytesUsageLifetime"])
                     for name, a in json.loads(out)["memoryProfilePerAllocator"].items()}
            code, out, err = self.ask("iree", "usage", bundle, "--format", "jsonl")
            self.assertEqual(code, 0, err)
            rows = [json.loads(line) for line in out.splitlines()]
            self.assertEqual(peaks, {f"device {r['physical_device_ordinal']} {r['kind']}": r["peak_bytes"]
                                     for r in rows if r["type"] == "memory_usage"})
            self.assertIn(100864, peaks.values())

    def test_paths(self):
        task, sync = self.DATA / "task-mlp-all.ireeprof", self.DATA / "sync-mlp-all.ireeprof"
        answer = self.compare(task, sync)
        ops = {o["op"]: o for o in answer["ops"]}
        self.assertEqual(len(ops), 4)
        first = ops["mlp_dispatch_0_matmul_64x256x784_f32"]
        self.assertEqual((first["state"], first["shape"], first["a_ps"]),
                         ("both", "16x1x1 of 1x1x1", 251719000.0))
        self.assertEqual(first["difference_ps"], first["b_ps"] - first["a_ps"])
        self.assertEqual(answer["a"]["steps"], 0)  # nothing repeats
        # Of one file nothing differs; several count as one run.
        same = self.compare(task, f"{task},{task}")
        self.assertEqual([o["difference_ps"] for o in same["ops"]], [0.0] * 4)
        code, out, err = self.ask("compare", task, sync)
        self.assertEqual(code, 0, err)
        self.assertIn("16x1x1 of 1x1x1", out)

    def test_sessions(self):
        for name in ("task", "vk"):
            folder = self.logdir / "plugins" / "profile" / name
            folder.mkdir(parents=True)
            (folder / "h.ireeprof").write_bytes(
                (self.DATA / f"{name}-mlp-all.ireeprof").read_bytes())
        daemon = self.daemon()
        answer = self.compare("task", "vk")
        self.assertEqual(answer, self.compare(*(self.DATA / f"{n}-mlp-all.ireeprof" for n in ("task", "vk"))))
        with urllib.request.urlopen(f"http://{daemon.http}/api/v1/compare?a=task&b=vk", timeout=60) as got:
            self.assertEqual(answer, json.load(got))
        ops = answer["ops"]
        # The same functions, in other geometries, timed by other clocks: none is common.
        self.assertEqual({o["state"] for o in ops}, {"vanished", "new"})
        self.assertEqual(len(ops), 8)

    def test_history(self):
        """A daemon's history has bundles beside sessions of XLA, as that of a directory."""
        for name, data in (("task", self.DATA / "task-mlp-all.ireeprof"),
                           ("vk", self.DATA / "vk-mlp-all.ireeprof"), ("xla", PROFILE)):
            folder = self.logdir / "plugins" / "profile" / name
            folder.mkdir(parents=True)
            (folder / f"h{''.join(data.suffixes)}").write_bytes(data.read_bytes())
        asked = ["history", "--format", "json", "--metric", "step_time",
                 "--metric", "op:mlp_dispatch_0_matmul_64x256x784_f32"]
        here = json.loads(self.ask(*asked, "--dir", self.logdir)[1])
        self.daemon()
        self.assertIn("sessions are of 2 programs", self.ask(*asked)[2])
        code, out, err = self.ask(*asked, "--dir", "plugins")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out), here)
        self.assertEqual(sorted(s["session"] for s in here["sessions"]), ["task", "vk", "xla"])
        self.assertEqual(len(here["metrics"][0]["points"]), 1)
        self.assertIn(251719000.0, [p["value"] for p in here["metrics"][1]["points"]])

    def test_session_of_several(self):
        """Bundles of one session are added up; what one of them lacks stands beside the answer."""
        task, sync = ((self.DATA / f"{n}-mlp-all.ireeprof").read_bytes() for n in ("task", "sync"))
        for session, files in (("both", (task, sync)), ("cut", (task[:-200],))):
            folder = self.logdir / "plugins" / "profile" / session
            folder.mkdir(parents=True)
            for i, data in enumerate(files):
                (folder / f"h{i}.ireeprof").write_bytes(data)
        daemon = self.daemon()
        one = self.compare(*(self.DATA / f"{n}-mlp-all.ireeprof" for n in ("task", "sync")))
        both = self.compare("both", "both,both")
        self.assertEqual((both["a"]["hosts"], both["a"]["runs"]), (2, 1))
        self.assertEqual({o["op"]: o["a_ps"] for o in both["ops"]},
                         {o["op"]: o["a_ps"] + o["b_ps"] for o in one["ops"]})
        with urllib.request.urlopen(f"http://{daemon.http}/api/v1/compare?a=cut&b=cut", timeout=60) as got:
            self.assertIn("bytes at the end are lost", " ".join(got.headers.get_all("Xplaned-Warning", [])))
            self.assertEqual(len(json.load(got)["ops"]), 4)


if __name__ == "__main__":
    main("xplanectl", "xplaned")
