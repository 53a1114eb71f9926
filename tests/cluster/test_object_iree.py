#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles of IREE in an object store, whose objects do not grow.

usage: test_object_iree.py XPLANECTL XPLANED FAKE_PROFILER [CLASS[.TEST]]...
"""
import os
import stat
import sys
import threading

from object_harness import OfStub, run_tests
from test_iree import BUNDLE, TOOL


class Growing(OfStub):
    def test_capture(self):
        """What a program flushes is refused once, and said; the bucket has the bundle at the end."""
        os.environ["TMPDIR"] = str(self.place)
        self.addCleanup(os.environ.pop, "TMPDIR")
        tool, until = self.place / "iree-tool", self.place / "until"
        tool.write_text(f"#!{sys.executable}\nBUNDLE = {str(BUNDLE)!r}\n{TOOL}")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        daemon = self.started()
        capture = self.start_of(daemon, "iree", "capture", "--host-names", "here", "--session", "one",
                                "--flush_interval", "10ms", "--", tool, "grows", "--device=local-sync",
                                f"--until={until}")
        late = threading.Timer(60, until.touch)  # without a message
        late.start()
        self.addCleanup(late.cancel)
        said = next((line for line in capture.stderr if "at the end" in line), "")
        self.assertIn("the daemon gets the bundle at the end: ", said)
        self.assertIn("files of a bucket do not grow", said)
        self.assertFalse(until.exists())
        self.assertEqual(self.bucket.objects, {})
        until.touch()
        rest = capture.stderr.read()
        self.assertEqual((capture.wait(60), capture.stdout.read()), (0, "one\n"), rest)
        self.assertNotIn("at the end", rest)
        self.assertEqual({key: o[0] for key, o in self.bucket.objects.items()},
                         {"logs/plugins/profile/one/here.ireeprof": BUNDLE.read_bytes()})
        self.assertEqual(self.ask_of(daemon, "iree", "summary", "one")[0], 0)


if __name__ == "__main__":
    run_tests()
