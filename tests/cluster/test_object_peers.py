#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles in an object store whose credentials, or whose objects, are those of others.

usage: test_object_peers.py XPLANECTL XPLANED FAKE_PROFILER [CLASS[.TEST]]...
"""
import os
import pathlib
import shutil
import sys
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from harness import wait_until  # noqa: E402
from test_objects import SOON, OfStub, run_tests  # noqa: E402
from token_server import TokenServer  # noqa: E402


@unittest.skipUnless(shutil.which("openssl"), "no openssl")
class Account(OfStub):
    """An account of Google, whose file has a key."""

    def setUp(self):
        super().setUp()
        del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(self.place / "account.json")
        self.addCleanup(os.environ.pop, "GOOGLE_APPLICATION_CREDENTIALS")

    def of_account(self, lasts_s=3600):
        tokens = TokenServer(self.place, lasts_s)
        self.addCleanup(tokens.end)
        self.bucket.bearers = tokens.bearers
        return tokens

    def google(self, *more, name="google"):
        return self.daemon_on("gs://bucket/logs", name, "--object-endpoint", self.bucket.endpoint, *more)

    def test_account(self):
        """The service checks what the key signed; its token reads, is renewed, and is nowhere else."""
        tokens = self.of_account(lasts_s=4)
        self.put_run("run")
        daemon = self.google("--log", "debug", *SOON)
        self.wait_listed(daemon)
        code, got, err = self.answer(daemon, "overview_page", "run")
        self.assertEqual(code, 0, err)
        self.assertEqual(got, self.answer_of_plain())
        wait_until("the token was renewed", lambda: len(tokens.bearers) >= 2)
        self.assertEqual(tokens.refused, [])
        texts = []
        for route in ("config", "metrics", "data/plugin/profile/config"):
            with urllib.request.urlopen(f"http://{daemon.http}/{route}") as answer:
                texts.append(answer.read())
        daemon.end()
        texts.append(daemon.text().encode())
        texts += [path.read_bytes() for path in (self.place / "google").rglob("*") if path.is_file()]
        lines = [line for line in tokens.key.split(b"\n") if len(line) == 64]
        self.assertGreater(len(lines), 10)
        for text in texts:
            for secret in (*lines, *(t.encode() for t in tokens.bearers), *(a.encode() for a in tokens.asked)):
                self.assertNotIn(secret, text)

    def test_refused(self):
        """A key that is another's, a file that is damaged: the log says which file, and why."""
        tokens = self.of_account()
        self.put_run("run")
        other = tokens.openssl("genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
        for name, why, more in (
                ("key", "answered 400", {"private_key": other.decode()}),
                ("half", "private_key is no key of RSA in PEM", {"private_key": tokens.key.decode()[:900]}),
                ("uri", "token_uri must be https://", {"token_uri": "http://example.org/token"})):
            tokens.write(**more)
            daemon = self.google(name=name)
            wait_until("the log says why", lambda: why in daemon.text())
            self.assertIn("credentials by Google's file: the file of GOOGLE_APPLICATION_CREDENTIALS", daemon.text())
            daemon.end()
            self.assertNotIn(tokens.key.decode().splitlines()[1], daemon.text())
        self.assertIn("invalid_grant: signature", tokens.refused)
        self.assertFalse(tokens.bearers)


if __name__ == "__main__":
    run_tests()
