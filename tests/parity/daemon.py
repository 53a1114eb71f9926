# SPDX-License-Identifier: Apache-2.0
"""A daemon of ours for a test, over the profiles of tests/data, and xplanectl to ask it."""
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from ports import free_port  # noqa: E402, F401
PATIENCE_S = 90
ANY_SIZE = [("grpc.max_receive_message_length", -1)]  # a Python channel takes 4 MiB unless told; traces are larger


class Daemon:
    def __init__(self, address, ctl, log):
        self.address, self.ctl, self.log = address, ctl, log

    def tool(self, tool, session, hosts=(), options=()):
        """`xplanectl tool`'s bytes, or None when it fails."""
        command = [self.ctl, "--server", self.address, "tool", tool, session]
        for host in hosts:
            command += ["--host", host]
        for key, value in options:
            command += ["--option", f"{key}={value}"]
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S)
        return done.stdout if done.returncode == 0 else None


@contextlib.contextmanager
def running(build, logdir=HERE.parent / "data" / "logdir", *options):
    """Starts xplaned on a free port of loopback; ends it by its process id."""
    build = pathlib.Path(build).resolve()
    with tempfile.TemporaryDirectory(prefix="xplaned-") as top:
        log = pathlib.Path(top) / "log"
        command = [str(build / "server" / "xplaned"), "--logdir", str(logdir), "--listen", "127.0.0.1:0", "--http", "off",
                   "--state-dir", f"{top}/state", *options]
        with open(log, "wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            yield Daemon(wait_for_address(process, log), str(build / "cli" / "xplanectl"), log)
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_address(process, log):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        found = re.search(rb"service=grpc address=(\S+)", log.read_bytes())
        if found:
            return found.group(1).decode()
        time.sleep(0.02)
    sys.exit(f"xplaned did not start: {log.read_text(errors='replace')}")


class Count:
    """Checks that go on after a failure, and the sum at the end."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, ok, why=""):
        self.passed += bool(ok)
        self.failed += not ok
        if not ok:
            print(f"FAIL {name}{': ' + str(why) if why else ''}", flush=True)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(self.failed > 0 or self.passed == 0)
