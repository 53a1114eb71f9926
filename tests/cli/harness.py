# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: programs of the build, daemons, fake profiler servers."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests" / "data" / "logdir" / "cpu" / "plugins" / "profile"
PROFILE = DATA / "jax_matmul_nopy" / "vm.xplane.pb"
PATIENCE_S = 60  # for what takes a second; a busy machine may need more


class Programs:
    """Paths of the programs, set by the main program."""
    xplanectl = xplaned = fake = None


def wait_until(what, test, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = test()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"never happened: {what}")


def environment(**more):
    """Without this machine's settings, and without a daemon that may listen at the default address."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("XPLANED_")}
    return {**kept, "XPLANED_CONFIG": "/dev/null", "XPLANED_SERVER": "unix:/nonexistent/xplaned", **more}


class Daemon:
    """xplaned on free ports of loopback; its log is `log`."""

    def __init__(self, logdir, state, *more):
        self.log = pathlib.Path(state) / "log"
        self.since = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [Programs.xplaned, "--logdir", logdir, "--state-dir", state, "--listen",
                 "127.0.0.1:0", "--http", "127.0.0.1:0", "--no-prefetch", *more],
                stderr=log, stdin=subprocess.DEVNULL, env=environment())
        self.address = wait_until("the daemon listens", lambda: self._address("grpc"))
        self.http = wait_until("the daemon listens", lambda: self._address("http"))

    def _address(self, service):
        if self.process.poll() is not None:
            raise AssertionError(f"xplaned ended: {self.text()}")
        found = re.findall(rf"msg=listening service={service} address=(\S+)\n",
                           self.text()[self.since:])
        return found[-1] if found else None

    def text(self):
        return self.log.read_text()

    def end(self, number=signal.SIGTERM):
        running = self.process.poll() is None
        if running:
            self.process.send_signal(number)
        # A sanitizer's complaint is an exit status, too.
        if self.process.wait(PATIENCE_S) and running and number == signal.SIGTERM:
            raise AssertionError(f"xplaned ended with {self.process.returncode}: {self.text()}")


class Fake:
    """A profiler server that behaves as `mode` says."""

    def __init__(self, mode, *more):
        self.process = subprocess.Popen([Programs.fake, mode, *map(str, more)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().strip()

    def end(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self.process.stdin.close()
        self.process.stdout.close()


class Case(unittest.TestCase):
    limit_s = 3 * PATIENCE_S  # of one test: it fails where it hangs, before meson ends all of them

    def too_long(self, *_):
        raise AssertionError(f"the test takes more than {self.limit_s} s")

    def setUp(self):
        signal.signal(signal.SIGALRM, self.too_long)
        signal.alarm(self.limit_s)
        self.addCleanup(signal.alarm, 0)
        place = tempfile.TemporaryDirectory(prefix="xplaned-cli-")
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.logdir, self.state = self.place / "logs", self.place / "state"
        self.logdir.mkdir()
        self.state.mkdir()
        self.server = None

    def daemon(self, *more):
        daemon = Daemon(self.logdir, self.state, *more)
        self.addCleanup(daemon.end)
        self.server = daemon.address
        return daemon

    def fake(self, mode, *more):
        fake = Fake(mode, *more)
        self.addCleanup(fake.end)
        return fake

    def start(self, *arguments, **options):
        """xplanectl, started."""
        server = ["--server", self.server] if self.server else []
        process = subprocess.Popen([os.path.abspath(Programs.xplanectl), *server, *map(str, arguments)], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment(), **options)
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def ask(self, *arguments, **options):
        """xplanectl's exit status, standard output and standard error."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, err

    def sessions(self):
        profiles = self.logdir / "plugins" / "profile"
        return sorted(p.name for p in profiles.iterdir()) if profiles.exists() else []


def main(*names):
    """Runs the tests of the main program, whose first arguments are the programs of these names."""
    if len(sys.argv) <= len(names):
        sys.exit(sys.modules["__main__"].__doc__)
    for name in names:
        setattr(Programs, name, os.path.abspath(sys.argv.pop(1)))
    unittest.main(module="__main__", verbosity=2)
