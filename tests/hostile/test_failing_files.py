# SPDX-License-Identifier: Apache-2.0
"""Every call that writes a file of the daemon fails once: no room, no quota, no permission, a disk that breaks, half a write.
failing_files.c, which the daemon preloads, makes them fail."""

import errno
import mmap
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess

from harness import Failed, Skip, answer_url, check, equal, reference_answers, same_answer, wait_for
from test_captures import fake_profilers
from test_processes import small_disk

HERE = pathlib.Path(__file__).resolve().parent
WRITES, READS = 1, 2
HALF = 0  # of the bytes of a write, without an error
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EIO, HALF)
OURS = ("jax_matmul_nopy", "jax_4hosts")
TOOLS = ("overview_page", "trace_viewer@")
ALWAYS = 1 << 30


class FailingFiles:
    """What failing_files.c does to a daemon: `env` is for its start."""

    def __init__(self, run, *below):
        if run.sanitized:
            raise Skip("a sanitizer's library must come first in LD_PRELOAD")
        compiler = shutil.which(os.environ.get("CC", "cc").split()[-1])
        if compiler is None:
            raise Skip("no C compiler")
        library, path = run.dir / "failing_files.so", run.dir / "control"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", HERE / "failing_files.c", "-o", library], check=True)
        path.write_bytes(bytes(24))
        with open(path, "r+b") as f:
            self.control = mmap.mmap(f.fileno(), 24)
        self.env = {"LD_PRELOAD": str(library), "FAILING_CONTROL": str(path), "FAILING_BELOW": ":".join(map(str, below))}

    def fail(self, error, first, times=1, kinds=WRITES):
        """The call of number `first` from now on fails, and those after it, `times` in all."""
        struct.pack_into("6i", self.control, 0, kinds, error, first, times, 0, 0)

    def only_count(self, kinds=WRITES):
        self.fail(0, 0, 0, kinds)

    def counts(self):
        """(calls, how many of them failed)"""
        return struct.unpack_from("2i", self.control, 16)


def databases_are_whole(state, text):
    for path in state.glob("*.db"):
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        equal(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)], f"{text}: {path.name}")
        database.close()
    equal([p.name for p in state.glob("*.broken-*")], [], f"{text}: databases that were moved aside")


def chosen(run, count):
    """Numbers of calls with an errno each: all with every errno, or in the short form a few of them."""
    every = [(error, n) for n in range(1, count + 1) for error in ERRORS]
    wanted = run.parameter("FAILURES", 12, 1 << 20)
    return every if len(every) <= wanted else [every[i * len(every) // wanted] for i in range(wanted)]


def test_failing_writes_while_starting(run):
    """A daemon that starts ends with a reason, or answers; the next one on the same directory is as if nothing had been."""
    logdir = run.logdir("jax_matmul_nopy")
    expected = reference_answers(run, logdir, tools=TOOLS)
    top = run.make_dir("states")
    files = FailingFiles(run, top)

    def start(state, error, first, times):
        files.fail(error, first, times)
        try:
            d = run.start("--no-prefetch", logdir=logdir, state=state, env=files.env)
        except Failed as e:
            check("the daemon ended with 1:" in str(e), f"call {first}, errno {error}: {e}")
            return
        for (session, tool), answer in expected.items():
            same_answer(d.get(answer_url(session, tool)), answer, f"call {first}, errno {error}: {tool}")
        equal(d.stop(), 0, f"call {first}, errno {error}: exit status")

    start(top / "first", 0, 0, 0)
    for error, n in chosen(run, files.counts()[0]):
        for times in (1, ALWAYS):
            state = top / f"{error}_{n}_{times}"
            start(state, error, n, times)
            start(state, 0, 0, 0)
            if state.exists():
                databases_are_whole(state, f"call {n}, errno {error}, {times} times")
                check((state / "state.db").exists() and (state / "cache.db").exists(), f"call {n}, errno {error}: the databases")
                shutil.rmtree(state)


test_failing_writes_while_starting.slow = True
test_failing_writes_while_starting.whole_limit = 3600


class Scenario:
    """What a daemon does that writes: an import, answers, labels, a capture, a deletion."""

    def __init__(self, run, d, target):
        self.d, self.target, self.number = d, target, 0
        self.profile = (d.logdir / "plugins/profile/jax_matmul_nopy/vm.xplane.pb").read_bytes()
        self.file = run.dir / "host.xplane.pb"

    def step(self, done, name, text, needed):
        """A command worked, or was refused with a reason."""
        check(done.returncode in (0, 1, 3), f"{text}: {name}: status {done.returncode}: {done.stderr!r}")
        check(done.returncode == 0 or done.stderr, f"{text}: {name}: refused without a reason")
        check(done.returncode == 0 or not needed, f"{text}: {name}: {done.stderr!r}")

    def once(self, text, needed=False):
        """All of it, under names of its own; `needed`: all must work."""
        d = self.d
        self.number += 1
        imported, captured = f"import{self.number}", f"capture{self.number}"
        # An unknown field makes another profile.
        self.file.write_bytes(self.profile + b"\xc0\x3e" + bytes([self.number & 127 | 128, self.number >> 7]))
        self.step(d.ctl("import", "--session", imported, "--retries", "0", self.file), "import", text, needed)
        directory = d.logdir / "plugins/profile" / imported
        whole = [p for p in directory.glob("*.xplane.pb")]
        for p in whole:
            equal(p.read_bytes(), self.file.read_bytes(), f"{text}: an imported profile")
        session = imported if whole else "jax_matmul_nopy"
        for tool in TOOLS:
            got = d.get(answer_url(session, tool))
            check(got.status == 200 or got.status >= 400 and got.body, f"{text}: {tool}: {got}")
            check(got.status == 200 or not needed, f"{text}: {tool}: {got}")
        self.step(d.ctl("sql", session, "SELECT COUNT(*) FROM events"), "sql", text, needed)
        self.step(d.ctl("label", session, f"label{self.number}"), "label", text, needed)
        self.step(d.ctl("capture", "--duration", "10ms", "--session", captured, self.target), "capture", text, needed)
        for name in (imported, captured):
            if (d.logdir / "plugins/profile" / name).exists() or needed:
                self.step(d.ctl("delete", name), "delete", text, needed)
        check(d.alive(), f"{text}: the daemon ended with {d.process.returncode}: {d.log()[-1000:]}")


def test_failing_writes_of_requests(run):
    """Each call that writes fails, of a daemon that imports, answers, labels, captures and deletes: what it cannot do it
    refuses with a reason; then all works again, with right answers and whole databases."""
    logdir, state = run.logdir(*OURS), run.make_dir("state")
    expected = reference_answers(run, logdir, tools=TOOLS)
    files = FailingFiles(run, state, logdir)
    with fake_profilers(run, (("ok", 10_000, 0),)) as targets:
        d = run.start("--allow-delete", "--no-prefetch", "--scan-interval=50ms", logdir=logdir, state=state, env=files.env)
        scenario = Scenario(run, d, targets[0])
        scenario.once("first", needed=True)
        files.only_count()
        scenario.once("second", needed=True)
        count = files.counts()[0]
        failed = 0
        for error, n in chosen(run, count):
            text = f"call {n}, errno {error}"
            files.fail(error, n, ALWAYS if n % 4 == 0 else 1)
            scenario.once(text)
            failed += files.counts()[1] > 0
            files.only_count()
            scenario.once(f"after {text}", needed=True)
            for (session, tool), answer in expected.items():
                same_answer(d.get(answer_url(session, tool)), answer, f"after {text}: {tool} of {session}")
        check(failed > 0, "no call failed")
        wait_for(lambda: not d.status()["store"]["read_only"], 90, "results are written again")
        # What could not be deleted then is deleted now, and what broke off goes by itself.
        for name in d.sessions():
            if name not in OURS:
                scenario.step(d.ctl("delete", name), f"delete {name}", "afterwards", True)
        left = {p.name: [q.name for q in p.iterdir()] for p in (logdir / "plugins/profile").iterdir() if p.name not in OURS}
        equal(left, {}, "what is left of sessions")
        equal(d.stop(), 0, "exit status")
    databases_are_whole(state, "at the end")


test_failing_writes_of_requests.slow = True
test_failing_writes_of_requests.whole_limit = 3600


def test_stale_files(run):
    """Each call that reads profiles, their directories or the databases fails once as those of a network's file system do
    (ESTALE, EIO): an answer is right, warns of hosts that it lacks, or is refused with a reason, and right afterwards."""
    logdir, state = run.logdir(*OURS), run.make_dir("state")
    expected = reference_answers(run, logdir, tools=TOOLS)
    files = FailingFiles(run, state, logdir)
    d = run.start("--no-prefetch", "--answer-cache=0", "--scan-interval=50ms", logdir=logdir, state=state, env=files.env)
    d.check_memory = False

    def ask(text, needed):
        for (session, tool), answer in expected.items():
            got = d.get(answer_url(session, tool) + "&use_saved_result=false")
            if needed or (got.status == 200 and "xplaned-warning" not in got.headers):
                same_answer(got, answer, f"{text}: {tool} of {session}")
            elif got.status == 200:
                check("xplane.pb: " in got.headers["xplaned-warning"] and session == "jax_4hosts", f"{text}: {got.headers}")
            else:
                check(got.status >= 400 and got.body, f"{text}: {tool} of {session}: {got}")

    ask("first", True)
    files.only_count(READS)
    ask("second", True)
    count = files.counts()[0]
    check(count > 0, "nothing is read")
    failed = 0
    for i in range(min(count, run.parameter("STALE", 12, 500))):
        for error in (errno.ESTALE, errno.EIO):
            text = f"reading call {i + 1}, errno {error}"
            files.fail(error, i + 1, ALWAYS if i % 4 == 3 else 1, READS)
            ask(text, False)
            failed += files.counts()[1]
            files.only_count(READS)
            wait_for(lambda: set(d.sessions()) == set(OURS), 30, f"after {text} sessions are missing")
            ask(f"after {text}", True)
    check(failed > 0, "no call failed")


test_stale_files.whole_limit = 1800


def test_small_disk_of_everything(run):
    """Log directory and state directory on a disk of 64 MiB that has no room, or too little for some of the writes: what does
    not fit is refused with a reason, then all works again."""
    with small_disk(run, "size=64m") as disk, fake_profilers(run, (("ok", 10_000, 0),)) as targets:
        logdir, ballast = disk / "logs", disk / "ballast"
        shutil.copytree(run.logdir(*OURS), logdir)
        d = run.start("--allow-delete", "--no-prefetch", "--scan-interval=50ms", logdir=logdir, state=disk / "state")
        scenario = Scenario(run, d, targets[0])
        scenario.once("first", needed=True)
        for pages in (0, 1, 2, 5, 10, 20, 40, 80, 160):
            room = shutil.disk_usage(disk).free - pages * 4096
            with open(ballast, "wb") as f:
                os.posix_fallocate(f.fileno(), 0, room)
            scenario.once(f"{pages} pages are free")
            ballast.unlink()
            scenario.once(f"after {pages} pages were free", needed=True)
        equal(d.stop(), 0, "exit status")
        databases_are_whole(disk / "state", "at the end")


test_small_disk_of_everything.slow = True
