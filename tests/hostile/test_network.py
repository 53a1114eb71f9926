# SPDX-License-Identifier: Apache-2.0
"""A log directory on a network's file system: files that are replaced while they are read, and attributes that come late."""

import contextlib
import pathlib
import shutil
import subprocess
import sys
import time

from harness import DATA, Skip, answer_url, check, end_process, equal, in_threads, reference_answers, same_answer, wait_for

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ("overview_page", "op_profile", "kernel_stats", "trace_viewer@")
CONTENTS = ("jax_matmul_nopy", "jax_sparse_45s", "tpu_inference_a")


@contextlib.contextmanager
def mounted(run, source):
    """(where `source` is seen through the network, the file that makes attributes late while it exists)"""
    mountpoint, late = run.make_dir("mounted"), run.dir / "late"
    process = subprocess.Popen([sys.executable, HERE / "network_files.py", source, mountpoint, late],  # pylint: disable=consider-using-with
                               stderr=subprocess.PIPE)
    try:
        wait_for(lambda: mountpoint.is_mount() or process.poll() is not None, 10, "the file system is mounted")
        if process.poll() is not None:
            raise Skip(f"FUSE file systems may not be mounted: {process.stderr.read().decode()[-200:]}")
        yield mountpoint, late
    finally:
        subprocess.run(["umount", "-l", mountpoint], stderr=subprocess.DEVNULL, check=False)
        end_process(process)


class Server:
    """The server's directory: a session of one file, which has one of CONTENTS."""

    def __init__(self, run):
        self.root = run.make_dir("server")
        self.directory = self.root / "plugins/profile/run"
        self.directory.mkdir(parents=True)
        self.profiles = {}
        for name in CONTENTS:
            source = next(p for d in sorted(DATA.glob("logdir/*/plugins/profile/*")) if d.name == name for p in sorted(d.glob("*.xplane.pb")))
            self.profiles[name] = source.read_bytes()
        self.expected = {}
        for name in CONTENTS:
            self.put(name)
            self.expected[name] = reference_answers(run, self.root, tools=TOOLS)

    def put(self, name, in_place=False):
        """The file is replaced by a new one, as writers do, or overwritten."""
        file = self.directory / "vm.xplane.pb"
        new = file if in_place else self.directory / ".new"
        new.write_bytes(self.profiles[name])
        new.rename(file)


class Client:
    """Asks a daemon for the session's answers, which may be those of any of the contents."""

    def __init__(self, d, server):
        self.d, self.server = d, server

    def ask(self, text, reuse=False):
        """Each answer is that of one of the contents, whole, or says why there is none; how many were answered."""
        answered = 0
        for tool in TOOLS:
            got = self.d.get(answer_url("run", tool) + ("" if reuse else "&use_saved_result=false"))
            if got.status == 200:
                check(any((got.status, got.body) == e["run", tool] for e in self.server.expected.values()),
                      f"{text}: {tool} is of no content: {got}")
                answered += 1
            else:
                check(got.status >= 400 and got.body, f"{text}: {tool}: {got}")
        return answered

    def becomes(self, name, text):
        """Soon answers are those of this content."""
        for tool in TOOLS:
            url, expected = answer_url("run", tool), self.server.expected[name]["run", tool]
            with contextlib.suppress(AssertionError):
                wait_for(lambda url=url, expected=expected: ((a := self.d.get(url)).status, a.body) == expected, 5, "")
            same_answer(self.d.get(url), expected, f"{text}: {tool}")

    def while_replaced(self, rounds):
        """Asks while another content takes the file's place, again and again."""
        left = [rounds]

        def replace():
            for i in range(rounds):
                self.server.put(CONTENTS[i % len(CONTENTS)])
                time.sleep(0.01)
            left[0] = 0

        def read():
            while left[0]:
                self.ask("files that change")

        in_threads(3, lambda i: replace() if i == 0 else read())
        self.server.put(CONTENTS[1])
        self.becomes(CONTENTS[1], "in the end")


def test_replaced_files(run):
    """No answer mixes the files that were in one place one after the other."""
    server = Server(run)
    d = run.start("--no-prefetch", "--answer-cache=0", logdir=server.root)
    Client(d, server).while_replaced(run.parameter("REPLACED", 100, 3000))


test_replaced_files.slow = True


def test_network_files(run):
    """While attributes are those of the file before, answers are those of a whole file, or refused with a reason; once they are
    true again, answers are those of the new file.  So it is when files are replaced all the time.  Of a file that is overwritten
    nobody can tell before its attributes are true."""
    server = Server(run)
    with mounted(run, server.root) as (logdir, late):
        d = run.start("--no-prefetch", "--answer-cache=0", "--scan-interval=50ms", logdir=logdir)
        client, rounds = Client(d, server), run.parameter("REPLACED", 100, 3000)
        for i in range(rounds // 25):
            name, in_place = CONTENTS[i % len(CONTENTS)], i % 4 == 3
            late.touch()
            server.put(name, in_place)
            if in_place:
                d.get(answer_url("run", TOOLS[0]) + "&use_saved_result=false")
            else:
                client.ask(f"{name} with the attributes of before", i % 2)
            late.unlink()
            client.becomes(name, f"{name}, round {i}")
        client.while_replaced(rounds)
        shutil.rmtree(server.directory)
        wait_for(lambda: d.sessions() == [], 10, "the session is gone")
        equal(d.stop(), 0, "exit status")


test_network_files.slow = True
