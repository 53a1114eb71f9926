# SPDX-License-Identifier: Apache-2.0
"""What the tests of object stores share: daemons on buckets, a bucket of our own, what is asked of both."""
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from harness import PATIENCE_S, PROFILE, ROOT, Case, Daemon, Programs, environment, wait_until  # noqa: E402
from object_server import Bucket  # noqa: E402

LOGDIR = ROOT / "tests" / "data" / "logdir"
ACCESS, SECRET = "AKIDOBJECTSTEST", "sEcReT/with+signs=and~more"
# Every byte that signatures and URLs disagree about, and letters beyond ASCII.
ODD = "run +=:@()*,%~&'!$;[]{}^` \u00e4\U0001f600"
# The answers compared between file, s3 and gs: of one host and of several, of all formats.
ANSWERS = (("overview_page", "cpu/jax_4hosts"), ("op_profile", "accel/mi300_jax_gemm"),
           ("kernel_stats", "accel/gpu_multi_worker"), ("trace_viewer", "cpu/jax_matmul_nopy"),
           ("framework_op_stats", "cpu/jax_odd_names"), ("memory_profile", "cpu/tf_bfc_memory"))
SOON = ("--object-interval", "100ms", "--scan-interval", "50ms")


def with_host(data, length):
    """The profile with one more name of a host, of that length."""
    size, n = b"", length
    while n > 127:
        size, n = size + bytes([n & 127 | 128]), n >> 7
    return data + b"\x22" + size + bytes([n]) + b"h" * length


def large():
    """A profile that is sent in three parts, the last of them short: its host has a long name."""
    return with_host(PROFILE.read_bytes(), 33 << 20)


class Objects(Case):
    limit_s = 8 * PATIENCE_S

    def setUp(self):
        super().setUp()
        for name in [n for n in os.environ if n.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET,
                          AWS_EC2_METADATA_DISABLED="true", AWS_SHARED_CREDENTIALS_FILE="")

    def daemon_on(self, logdir, name, *more):
        state = self.place / name
        state.mkdir(exist_ok=True)
        daemon = Daemon(logdir, state, *more)
        self.addCleanup(daemon.end)
        return daemon

    def wait_listed(self, daemon):
        """It is ready before it knows what is in the bucket."""
        wait_until("the bucket is listed", lambda: self.ask_of(daemon, "sessions")[0] == 0)

    def ask_of(self, daemon, *arguments, **options):
        self.server = daemon.address
        return self.ask(*arguments, **options)

    def start_of(self, daemon, *arguments):
        self.server = daemon.address
        return self.start(*arguments)

    def names(self, daemon):
        code, out, err = self.ask_of(daemon, "sessions", "--format", "csv")
        self.assertEqual(code, 0, err)
        return [line for line in out.splitlines()[1:] if line]

    def answer(self, daemon, tool, run, *more):
        file = self.place / "answer"
        code, _, err = self.ask_of(daemon, "tool", tool, run, "-o", file, *more)
        return code, file.read_bytes() if code == 0 else b"", err

    def check_same(self, daemon, plain):
        """Answers to ANSWERS are those of the daemon on a directory, byte for byte."""
        for tool, run in ANSWERS:
            expected = self.answer(plain, tool, run)
            self.assertEqual(expected[0], 0, expected)
            self.assertEqual(self.answer(daemon, tool, run)[:2], expected[:2], (tool, run))


class OfStub(Objects):
    def setUp(self):
        super().setUp()
        self.bucket = Bucket("bucket", ACCESS, SECRET)
        self.addCleanup(self.bucket.end)

    def started(self, *more, prefix="logs", name="objects", listed=True):
        daemon = self.daemon_on(f"s3://bucket/{prefix}", name, "--object-endpoint", self.bucket.endpoint, *more)
        if listed:
            self.wait_listed(daemon)
        return daemon

    def put_run(self, run, data=None, host="vm"):
        key = f"logs/plugins/profile/{run}/{host}.xplane.pb"
        self.bucket.put(key, PROFILE.read_bytes() if data is None else data)
        return key

    def refused(self, *more, logdir="s3://bucket/logs"):
        """What a daemon says that does not start."""
        state = self.place / "refused"
        state.mkdir(exist_ok=True)
        done = subprocess.run([Programs.xplaned, "--logdir", logdir, "--state-dir", state, "--listen",
                               f"unix:{state}/socket", "--http", "off", "--object-endpoint",
                               self.bucket.endpoint, *more], env=environment(), text=True,
                              stderr=subprocess.PIPE, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn(SECRET, done.stderr)
        return done.stderr

    def answer_of_plain(self):
        return self.answer(self.daemon_on(PROFILE.parents[3], "plain"), "overview_page", "jax_matmul_nopy")[1]


def run_tests():
    """Ends with 77 where all tests were skipped, which meson calls skipped."""
    Programs.xplanectl, Programs.xplaned, Programs.fake = sys.argv[1:4]
    done = unittest.main(argv=[sys.argv[0], *sys.argv[4:]], exit=False).result
    for test, why in done.skipped:
        print(f"{test}: {why}")
    all_skipped = len(done.skipped) == done.testsRun
    sys.exit(77 if all_skipped and done.wasSuccessful() else not done.wasSuccessful())
