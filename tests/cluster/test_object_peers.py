#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles in an object store whose credentials, or whose objects, are those of others.

usage: test_object_peers.py XPLANECTL XPLANED FAKE_PROFILER [CLASS[.TEST]]...
"""
import os
import shutil
import unittest
import urllib.request

from object_harness import LOGDIR, ODD, PROFILE, SOON, Objects, OfStub, run_tests, wait_until
from peers import MOTO, FakeGcs, Moto, find_fake_gcs
from token_server import TokenServer


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
                ("half", "private_key is not an RSA key of at least", {"private_key": tokens.key.decode()[:900]}),
                ("uri", "token_uri must be https://", {"token_uri": "http://example.org/token"})):
            tokens.write(**more)
            daemon = self.google(name=name)
            wait_until("the log says why", lambda: why in daemon.text())
            self.assertIn("credentials by Google's file: the file of GOOGLE_APPLICATION_CREDENTIALS", daemon.text())
            daemon.end()
            self.assertNotIn(tokens.key.decode().splitlines()[1], daemon.text())
        self.assertIn("invalid_grant: signature", tokens.refused)
        self.assertFalse(tokens.bearers)


@unittest.skipUnless(MOTO.exists(), "no moto: tests/cluster/setup.sh DIR, XPL_CLUSTER_VENV=DIR")
class Amazon(OfStub):
    """Keys that moto's services of Amazon give."""

    def setUp(self):
        super().setUp()
        self.moto = Moto(self.place)
        self.addCleanup(self.moto.end)
        del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]

    def read_run(self, endpoint):
        daemon = self.daemon_on("s3://bucket/logs", "objects", "--object-endpoint", endpoint)
        self.wait_listed(daemon)
        code, got, err = self.answer(daemon, "overview_page", "run")
        self.assertEqual(code, 0, err)
        self.assertEqual(got, self.answer_of_plain())

    def test_web_identity(self):
        """A role's keys of STS, for the token of a file; and moto's own bucket."""
        (self.place / "identity").write_text("eyJ0eXAi.of.a+cluster/==\n")
        os.environ.update(AWS_WEB_IDENTITY_TOKEN_FILE=str(self.place / "identity"),
                          AWS_ROLE_ARN="arn:aws:iam::123456789012:role/reads", AWS_ENDPOINT_URL_STS=self.moto.endpoint)
        for name in ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL_STS"):
            self.addCleanup(os.environ.pop, name)
        self.moto.put("logs/plugins/profile/run/vm.xplane.pb", PROFILE.read_bytes())
        self.read_run(self.moto.endpoint)
        log = self.moto.log.read_text()
        self.assertEqual(log.count('"POST / HTTP/1.1" 200'), 1)

    def test_instance(self):
        """An instance's keys of its metadata, asked by version 2; a bucket that checks what they sign."""
        os.environ.update(AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=self.moto.endpoint)
        self.addCleanup(os.environ.pop, "AWS_EC2_METADATA_SERVICE_ENDPOINT")
        self.bucket.access, self.bucket.secret, self.bucket.token = "test-key", "test-secret-key", "test-session-token"
        self.put_run("run")
        self.read_run(self.bucket.endpoint)
        self.assertEqual(self.bucket.count("list", 403) + self.bucket.count("get", 403), 0)
        log = self.moto.log.read_text()
        self.assertEqual(log.count('"PUT /latest/api/token HTTP/1.1" 200'), 1)


@unittest.skipUnless(find_fake_gcs(), "no fake-gcs-server: tests/cluster/setup.sh DIR, XPL_CLUSTER_VENV=DIR")
class Google(Objects):
    """A bucket of fake-gcs-server, which checks neither tokens nor conditions."""

    def setUp(self):
        super().setUp()
        self.gcs = FakeGcs(self.place)
        self.addCleanup(self.gcs.end)

    def test_same_answers(self):
        """Sessions, hosts and answers of gs:// are those of a directory, byte for byte; odd names are read."""
        self.gcs.put_tree(LOGDIR, "logs/deep")
        self.gcs.put(f"logs/deep/plugins/profile/{ODD}/vm.xplane.pb", PROFILE.read_bytes())
        google = self.daemon_on("gs://bucket/logs/deep", "google", "--object-endpoint", self.gcs.endpoint,
                                "--object-anonymous", *SOON)
        plain = self.daemon_on(LOGDIR, "plain")
        self.wait_listed(google)
        self.check_same(google, plain)
        code, got, err = self.answer(google, "overview_page", ODD)
        self.assertEqual(code, 0, err)
        self.assertEqual(got, self.answer(plain, "overview_page", "cpu/jax_matmul_nopy")[1])
        # Replaced: listed again, and read anew.
        self.gcs.put("logs/deep/cpu/plugins/profile/jax_empty/vm.xplane.pb", PROFILE.read_bytes())
        wait_until("the new object is answered for",
                   lambda: self.answer(google, "overview_page", "cpu/jax_empty")[1] == got)


if __name__ == "__main__":
    run_tests()
