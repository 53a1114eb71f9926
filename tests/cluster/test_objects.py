#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles in an object store: a bucket of our own, and SeaweedFS where that is installed.

usage: test_objects.py XPLANECTL XPLANED FAKE_PROFILER [CLASS[.TEST]]...
"""
import datetime
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from object_harness import (ACCESS, ANSWERS, LOGDIR, ODD, PROFILE, SECRET, SOON, Bucket, Objects, OfStub, large, run_tests,
                            wait_until, with_host)
from seaweed import Seaweed, find_weed


class Stub(OfStub):
    def test_same_answers(self):
        """Sessions and answers are those of a directory, byte for byte; each object is read once."""
        self.bucket.put_tree(LOGDIR, "logs/deep")
        plain, objects = self.daemon_on(LOGDIR, "plain"), self.started(prefix="logs/deep")
        self.assertEqual(sorted(n.split(",")[0] for n in self.names(objects)),
                         sorted(n.split(",")[0] for n in self.names(plain)))
        self.check_same(objects, plain)
        fetched = self.bucket.count("get")
        self.assertEqual(fetched, 9)  # four hosts of one, and five of one
        self.assertEqual(self.answer(objects, "hlo_stats", "cpu/jax_4hosts")[0],
                         self.answer(plain, "hlo_stats", "cpu/jax_4hosts")[0])
        self.assertEqual(self.bucket.count("get"), fetched)
        objects.end()
        # The next daemon knows them from the listing, and requests no object.
        again = self.started(prefix="logs/deep")
        self.assertEqual(self.answer(again, "overview_page", "cpu/jax_4hosts")[1],
                         self.answer(plain, "overview_page", "cpu/jax_4hosts")[1])
        self.assertEqual(self.bucket.count("get"), fetched)
        self.assertEqual(self.bucket.count("get", 403) + self.bucket.count("list", 403), 0)

    def test_metrics(self):
        """What was asked of the bucket is counted: also what failed, here on an object that was replaced."""
        key = self.put_run("run")
        self.put_run("other")
        daemon = self.started("--object-interval", "1h", "--allow-delete")

        def counted(name):
            with urllib.request.urlopen(f"http://{daemon.http}/metrics") as answer:
                lines = answer.read().decode().splitlines()
            return next(int(line.split()[-1]) for line in lines if line.startswith(f"xplaned_object_{name} "))

        def calls(call, result):
            return counted(f'calls_total{{call="{call}",result="{result}"}}')
        self.assertEqual(calls("list", "done"), self.bucket.count("list"))
        self.assertEqual((calls("fetch", "done"), counted("fetched_bytes_total")), (0, 0))
        self.assertEqual(self.answer(daemon, "overview_page", "run")[0], 0)
        self.assertEqual((calls("fetch", "done"), calls("fetch", "failed")), (1, 0))
        self.assertEqual(counted("fetched_bytes_total"), len(self.bucket.objects[key][0]))
        self.bucket.put("logs/plugins/profile/other/vm.xplane.pb", b"another one")
        self.assertNotEqual(self.answer(daemon, "overview_page", "other")[0], 0)
        self.assertGreaterEqual(calls("fetch", "failed"), 1)
        self.assertEqual(self.ask_of(daemon, "delete", "run")[0], 0)
        self.assertEqual((calls("remove", "done"), calls("remove", "failed")), (1, 0))
        code, _, err = self.ask_of(daemon, "import", PROFILE, "--session", "sent")
        self.assertEqual(code, 0, err)
        self.assertEqual((calls("put", "done"), calls("put", "failed")), (1, 0))
        self.assertEqual(counted("sent_bytes_total"), PROFILE.stat().st_size)

    def test_odd_names(self):
        """Names of every kind are signed, listed and read; those that are no paths are left out, and said."""
        self.put_run(ODD)
        self.put_run("bad/../up")
        self.bucket.put("logs/plugins/profile/b//vm.xplane.pb", b"")
        self.bucket.put("logs/plugins/profile/", b"")  # an object that represents a directory
        daemon = self.started()
        code, _, err = self.answer(daemon, "overview_page", ODD)
        self.assertEqual(code, 0, err)
        self.assertEqual(self.bucket.count("list", 403), 0)
        self.assertIn("left out", daemon.text())

    def test_pages(self):
        """More sessions than a page of the listing has."""
        self.bucket.page = 1000
        for i in range(2500):
            self.bucket.put(f"logs/plugins/profile/run/{i:04}.xplane.pb", b"")
        self.put_run("later")
        daemon = self.started()
        code, out, err = self.ask_of(daemon, "hosts", "run", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(len(json.loads(out)), 2500)
        self.assertEqual(self.answer(daemon, "overview_page", "later")[0], 0)
        pages = [r for r in self.bucket.requests if r[:2] == ("list", "logs/plugins/profile/run/")]
        self.assertEqual(len(pages), 3)

    def test_replaced(self):
        """An object that is replaced after it was listed: an error that says so, and then the new one."""
        key = self.put_run("run", (LOGDIR / "cpu/plugins/profile/jax_empty/vm.xplane.pb").read_bytes())
        daemon = self.started("--object-interval", "1h", "--scan-interval", "50ms")
        self.bucket.put(key, PROFILE.read_bytes())
        code, _, err = self.answer(daemon, "overview_page", "run")
        if code:
            self.assertIn("changed since it was listed", err)
        plain = self.daemon_on(PROFILE.parent.parent.parent.parent, "plain")
        expected = self.answer(plain, "overview_page", "jax_matmul_nopy")[1]
        wait_until("the new object is listed", lambda: self.answer(daemon, "overview_page", "run")[1] == expected)
        self.assertGreaterEqual(self.bucket.count("get", 412), 1)
        del self.bucket.objects[key]

    def test_another_place(self):
        """Of objects with equal keys, sizes, times and ETags each bucket, prefix and endpoint has its own."""
        second = Bucket("bucket", ACCESS, SECRET)
        self.addCleanup(second.end)
        contents = [(PROFILE.parents[1] / run / "vm.xplane.pb").read_bytes()
                    for run in ("jax_matmul_nopy", "jax_empty", "jax_8dev_shardmap", "tf_keras_tensorboard")]
        size = max(map(len, contents)) + 100
        contents = [next(padded for n in range(size) if len(padded := with_host(data, size - len(data) - n)) == size)
                    for data in contents]
        expected, got = [], []
        for i, data in enumerate(contents):
            file = self.place / f"files{i}" / "plugins" / "profile" / "run" / "vm.xplane.pb"
            file.parent.mkdir(parents=True)
            file.write_bytes(data)
            expected.append(self.answer(self.daemon_on(file.parents[3], f"plain{i}"), "overview_page", "run")[1])
        self.assertEqual(len(set(expected)), 4)
        for data, server, bucket, prefix in zip(contents, (*[self.bucket] * 3, second),
                                                ("bucket", "other", "other", "other"), ("a", "a", "b", "b")):
            server.name = bucket
            server.objects = {f"{prefix}/plugins/profile/run/vm.xplane.pb": (data, '"same"')}
            for _ in range(2):  # from the fetched object, then from the store
                daemon = self.daemon_on(f"s3://{bucket}/{prefix}", "objects", "--object-endpoint", server.endpoint)
                self.wait_listed(daemon)
                code, answer, err = self.answer(daemon, "overview_page", "run")
                self.assertEqual(code, 0, err)
                daemon.end()
            got.append(answer)
        self.assertEqual(got, expected)
        self.assertEqual((self.bucket.count("get", 206), second.count("get", 206)), (3, 1))

    def call(self, daemon, method, *more):
        """A method of gRPC with an empty message, by curl: what came, and the trailers, when it has ended."""
        body, out = self.place / "empty", self.place / method.replace("/", "_")
        body.write_bytes(bytes(5))
        process = subprocess.Popen(["curl", "-sSN", "--http2-prior-knowledge", "--max-time", "20", "-D", f"{out}.head", "-H",
                                    "content-type: application/grpc", "-H", "te: trailers", "--data-binary", f"@{body}",
                                    "-o", out, f"http://{daemon.address}/{method}"], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.kill)
        return process, out

    @unittest.skipUnless(shutil.which("curl"), "no curl")
    def test_unlisted(self):
        """Before the bucket was listed nobody is told that there is no session: callers are refused, watchers wait."""
        go = threading.Event()
        self.addCleanup(go.set)
        self.put_run("run")
        self.bucket.faults.append(lambda handler, kind, key: kind == "list" and not go.wait(30))
        daemon = self.started(listed=False)
        asked, head = self.call(daemon, "tensorflow.ProfileAnalysis/EnumSessions")
        self.assertEqual(asked.wait(60), 0)
        self.assertIn("grpc-status: 14", head.with_name(head.name + ".head").read_text())
        _, events = self.call(daemon, "xplaned.v1.SessionService/WatchSessions")
        wait_until("the watch is open", lambda: events.with_name(events.name + ".head").exists())
        time.sleep(1)
        self.assertEqual(events.read_bytes() if events.exists() else b"", b"")
        go.set()
        wait_until("the watch knows all", lambda: events.exists() and events.read_bytes().endswith(b"\0\0\0\0\2\x08\5"))
        kinds, at, data = [], 0, events.read_bytes()
        while at < len(data):
            kinds.append(data[at + 6])
            at += 5 + int.from_bytes(data[at + 1:at + 5], "big")
        self.assertEqual(kinds, [1, 5])  # PRESENT, SYNCED
        self.wait_listed(daemon)
        asked, head = self.call(daemon, "tensorflow.ProfileAnalysis/EnumSessions")
        self.assertEqual(asked.wait(60), 0)
        self.assertIn(b"run", head.read_bytes())

    def test_new_and_gone(self):
        self.put_run("one")
        daemon = self.started(*SOON)
        self.assertEqual(len(self.names(daemon)), 1)
        key = self.put_run("two")
        wait_until("a new session is listed", lambda: len(self.names(daemon)) == 2)
        del self.bucket.objects[key]
        wait_until("it is gone", lambda: len(self.names(daemon)) == 1)

    def test_faults(self):
        """What passes is tried again: 503 with Retry-After, bodies that are cut, connections that end."""
        self.put_run("run")
        seen = []

        def fault(handler, kind, key):
            with self.bucket.lock:
                seen.append(kind)
                n = seen.count(kind)
            if n == 1:
                handler.fail(503, "SlowDown", [("Retry-After", "1")])
            elif n == 2:
                handler.fail(500, "InternalError")
            elif n == 3 and kind == "get":
                data, etag = self.bucket.objects[key]
                handler.answer(206, data, cut=len(data) // 2)
            elif n == 4:
                handler.close_connection = True
            else:
                return False
            return True
        self.bucket.faults.append(fault)
        begin = time.monotonic()
        daemon = self.started()
        self.assertGreaterEqual(time.monotonic() - begin, 1)  # Retry-After
        code, got, err = self.answer(daemon, "overview_page", "run")
        self.assertEqual(code, 0, err)
        self.bucket.faults.clear()
        self.assertEqual(got, self.answer(self.daemon_on(PROFILE.parents[3], "plain"), "overview_page",
                                          "jax_matmul_nopy")[1])
        self.assertEqual(self.bucket.count("get", 503), 1)

    def test_away(self):
        """A store that stays away: an error in the end, what was listed stays, and it comes back."""
        self.put_run("run")
        daemon = self.started(*SOON)
        self.bucket.faults.append(lambda handler, kind, key: handler.fail(503, "SlowDown") or True)
        code, _, err = self.answer(daemon, "overview_page", "run")
        self.assertNotEqual(code, 0)
        self.assertIn("503 SlowDown", err)
        self.assertEqual(len(self.names(daemon)), 1)
        self.bucket.faults.clear()
        self.assertEqual(self.answer(daemon, "overview_page", "run")[0], 0)

    def test_secrets(self):
        """A session's token is sent; no secret is in the log, in answers, or in the state directory."""
        os.environ["AWS_SESSION_TOKEN"] = self.bucket.token = "tOkEn/of+a=session"
        self.put_run("run")
        daemon = self.started("--log", "debug")
        self.assertEqual(self.answer(daemon, "overview_page", "run")[0], 0)
        daemon.end()
        for path in (self.place / "objects").rglob("*"):
            data = path.read_bytes() if path.is_file() else b""
            for secret in (SECRET, self.bucket.token):
                self.assertNotIn(secret.encode(), data, path)

    def test_renewed(self):
        """Keys of a service, which expire, are renewed; they are nowhere else, nor is the service's token."""
        served, header = [], "Basic sErViCe-token"

        class Service(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                good = self.headers.get("Authorization") == header
                ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=4)
                body = json.dumps({"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "Token": "tOkEn/of+a=role",
                                   "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()
                served.append(good)
                self.send_response(200 if good else 403)
                self.send_header("Content-Length", str(len(body) if good else 0))
                self.end_headers()
                self.wfile.write(body if good else b"")

            def log_message(self, *_):
                pass
        service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=service.serve_forever, daemon=True).start()
        self.addCleanup(service.server_close)
        self.addCleanup(service.shutdown)
        del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        os.environ.update(AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://127.0.0.1:{service.server_port}/keys",
                          AWS_CONTAINER_AUTHORIZATION_TOKEN=header)
        self.bucket.token = "tOkEn/of+a=role"
        self.put_run("run")
        daemon = self.started(*SOON, "--log", "debug")
        self.assertEqual(self.answer(daemon, "overview_page", "run")[0], 0)
        wait_until("keys were renewed", lambda: len(served) >= 3)
        self.assertTrue(all(served))
        self.put_run("later")
        wait_until("it is listed", lambda: len(self.names(daemon)) == 2)
        texts = []
        for route in ("config", "metrics", "data/plugin/profile/config"):
            with urllib.request.urlopen(f"http://{daemon.http}/{route}") as answer:
                texts.append(answer.read())
        daemon.end()
        texts.append(daemon.text().encode())
        texts += [path.read_bytes() for path in (self.place / "objects").rglob("*") if path.is_file()]
        for text in texts:
            for secret in (SECRET, self.bucket.token, header):
                self.assertNotIn(secret.encode(), text)

    def test_expired(self):
        """A token that the store calls expired while it is used: one more try with a newer one."""
        issued, revoked = [], set()

        class Issuer(http.server.BaseHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def do_GET(self):
                issued.append(f"token{len(issued)}")
                end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4))
                body = json.dumps({"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "Token": issued[-1],
                                   "Expiration": end}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
        issuer = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
        threading.Thread(target=issuer.serve_forever, daemon=True).start()
        self.addCleanup(issuer.server_close)
        self.addCleanup(issuer.shutdown)
        del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = f"http://127.0.0.1:{issuer.server_address[1]}/"
        tokens = []

        def fault(handler, kind, key):
            token = handler.headers.get("x-amz-security-token", "")
            handler.server.token = token  # whichever it is, the signature is checked
            if kind != "get":
                return False
            tokens.append(token)
            if len(tokens) == 1:
                time.sleep(3)  # it is due for renewal then
                revoked.add(token)
            if token in revoked:
                handler.fail(400, "ExpiredToken")
            return token in revoked
        self.bucket.faults.append(fault)
        self.put_run("run")
        daemon = self.started("--object-interval", "1h")
        code, _, err = self.answer(daemon, "overview_page", "run")
        self.assertEqual(code, 0, err)
        self.assertEqual(len(tokens), 2)
        self.assertNotEqual(tokens[0], tokens[1])

    def test_refused(self):
        """What is wrong is said at the start, and what would write says that it is not done."""
        self.put_run("run")
        self.assertIn("no bucket's name", self.refused(logdir="s3://"))
        del os.environ["AWS_ACCESS_KEY_ID"]
        self.assertIn("AWS_ACCESS_KEY_ID", self.refused())
        os.environ["AWS_ACCESS_KEY_ID"] = ACCESS
        daemon = self.started()
        for call in (("capture", "127.0.0.1:1", "--direct", "--logdir", "s3://bucket/logs"),
                     ("iree", "capture", "--mode", "queue-events", "--logdir", "s3://bucket/logs", "--", "true")):
            code, out, err = self.ask_of(daemon, *call, cwd=self.place)
            self.assertNotEqual(code, 0, call)
            self.assertIn("object store", out + err, call)
        self.assertFalse(list(self.place.rglob("s3:*")))

    def test_denied(self):
        """A bucket that cannot be listed: the log says why, and requests are told to read it."""
        self.put_run("run")
        os.environ["AWS_SECRET_ACCESS_KEY"] = "another"
        for name, why, *more in (("key", "403 SignatureDoesNotMatch"), ("anonymous", "403", "--object-anonymous")):
            daemon = self.started(*more, name=name, listed=False)
            wait_until("the log says why", lambda: why in daemon.text())
            code, _, err = self.answer(daemon, "overview_page", "run")
            self.assertNotEqual(code, 0)
            self.assertIn("the daemon's log says why", err)
        os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
        daemon = self.daemon_on("s3://other/logs", "other", "--object-endpoint", self.bucket.endpoint)
        wait_until("the log says why", lambda: "404 NoSuchBucket" in daemon.text())

    def test_other_ranges(self):
        """An answer that is not the range that was requested, or of another object, is never used."""
        key = self.put_run("run")
        data, etag = self.bucket.objects[key]
        whole = len(data)
        daemon = self.started()
        for why, status, head in (
                ("another range", 206, [("Content-Range", f"bytes 1-{whole - 1}/{whole}")]),
                ("another range", 206, [("Content-Range", "bytes 0-0")]),
                ("another range", 206, []),
                ("changed while", 206, [("Content-Range", f"bytes 0-{whole - 1}/{whole + 1}")]),
                ("changed while", 206, [("Content-Range", f"bytes 0-{whole - 1}/{whole}"), ("ETag", '"other"')]),
                ("changed while", 200, [("ETag", '"other"')])):
            def fault(handler, kind, key, status=status, head=head):
                if kind == "get":
                    handler.answer(status, data, head)
                return kind == "get"
            self.bucket.faults.append(fault)
            code, _, err = self.answer(daemon, "overview_page", "run")
            self.assertNotEqual(code, 0, head)
            self.assertIn(why, err, head)
            self.bucket.faults.clear()
        # The whole object is as good as a range that is all of it; the length may be left open.
        for status, head in ((200, [("ETag", etag)]), (206, [("Content-Range", f"bytes 0-{whole - 1}/*")])):
            run = f"good{status}"
            self.put_run(run)
            self.bucket.faults.append(lambda handler, kind, key, status=status, head=head:
                                      kind == "get" and (handler.answer(status, data, head) or True))
            daemon = self.started(name=run)
            self.assertEqual(self.answer(daemon, "overview_page", run)[1], self.answer_of_plain())
            self.bucket.faults.clear()

    def test_weak_versions(self):
        """Weak ETags, which If-Match never matches: what the answer says it is counts."""
        key = self.put_run("run")
        data, etag = self.bucket.objects[key]
        self.bucket.objects[key] = data, "W/" + etag
        daemon = self.started("--object-interval", "1h")
        self.bucket.objects[key] = data, 'W/"another"'
        code, _, err = self.answer(daemon, "overview_page", "run")
        self.assertNotEqual(code, 0)
        self.assertIn("changed while it was read", err)
        expected = self.answer_of_plain()
        wait_until("the new object is listed", lambda: self.answer(daemon, "overview_page", "run")[1] == expected)
        self.assertEqual(self.bucket.count("get", 412), 0)

    def test_endless_listings(self):
        """Listings whose pages repeat, or that have more names than pages have: they end, and it is said."""
        self.put_run("run")

        def page(n, token):
            names = "".join(f"<Contents><Key>logs/deep/wide/{i}</Key><Size>0</Size></Contents>" for i in range(n))
            return (f"<ListBucketResult><IsTruncated>true</IsTruncated>{names}"
                    f"<NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>").encode()
        pages = []

        def fault(handler, kind, key):
            if kind == "list" and key == "logs/circle/":
                pages.append(key)
                handler.answer(200, page(0, len(pages) % 3))
            elif kind == "list" and key == "logs/deep/wide/":
                handler.answer(200, page(30000, "next"))
            else:
                return False
            return True
        self.bucket.put("logs/circle/x", b"")
        self.bucket.put("logs/deep/wide/x", b"")
        self.bucket.faults.append(fault)
        daemon = self.started()
        self.assertEqual(self.answer(daemon, "overview_page", "run")[0], 0)
        self.assertIn("circle: its listing cannot be read", daemon.text())
        self.assertLess(len(pages), 20)
        self.assertIn("wide: only the first 10000 names are listed", daemon.text())
        self.assertEqual([r[1] for r in self.bucket.requests].count("logs/deep/wide/"), 1)

    def assert_unlisted(self, daemon):
        """Whoever asks for sessions is told that they are not known: an empty answer would be a wrong one."""
        for command in (["tool", "overview_page", "run"], ["sessions"], ["tools", "run"], ["label", "run", "good"],
                        ["sql", "SELECT count(*) FROM events"], ["history", "--last", "3"], ["compare", "run", "run"]):
            code, out, err = self.ask_of(daemon, *command)
            self.assertEqual((code, out), (1, ""), command)
            self.assertIn("still being listed", err, command)
        for path in ("/api/v1/sessions", "/api/v1/tools?session=run", "/api/v1/history?last=3", "/runs", "/hosts?run=run&tag=op_profile",
                     "/run_tools?run=run", "/data?run=run&tag=op_profile", "/module_list?run=run"):
            with self.assertRaises(urllib.error.HTTPError, msg=path) as refused:
                urllib.request.urlopen(f"http://{daemon.http}{path}", timeout=20)
            with refused.exception as answer:
                self.assertEqual(answer.code, 503, path)
                self.assertIn("still being listed", answer.read().decode(), path)
        for path in ("/api/v1/tools", "/version"):
            with urllib.request.urlopen(f"http://{daemon.http}{path}", timeout=20) as answer:
                self.assertEqual(answer.status, 200, path)

    def test_slow_start(self):
        """A store that says nothing at the start: the daemon is ready, answers, and ends when it is told to."""
        self.put_run("run")
        asked, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)
        self.bucket.faults.append(lambda handler, kind, key: asked.set() or go_on.wait(60) and False)
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notify.close)
        notify.bind(str(self.place / "notify"))
        notify.settimeout(20)
        os.environ["NOTIFY_SOCKET"] = str(self.place / "notify")
        self.addCleanup(os.environ.pop, "NOTIFY_SOCKET")
        for last in (False, True):
            daemon = self.started(name=f"slow{last}", listed=False)
            self.assertIn(b"READY=1", notify.recv(1000))
            self.assertTrue(asked.wait(20))
            self.assert_unlisted(daemon)
            if last:
                go_on.set()
                self.wait_listed(daemon)
                self.assertEqual(self.answer(daemon, "overview_page", "run")[0], 0)
            begin = time.monotonic()
            daemon.end(signal.SIGTERM)
            self.assertLess(time.monotonic() - begin, 15)
            self.assertIn(b"STOPPING=1", notify.recv(1000))

    def test_google(self):
        """As Google does: Accept-Encoding changes on its way, and x-goog- beside x-amz- headers is refused."""
        os.environ["AWS_SESSION_TOKEN"] = "Amazon's, which is not sent"
        self.put_run("run")
        encodings = []

        def fault(handler, kind, key):
            signed = handler.headers.get("Authorization", "").partition("SignedHeaders=")[2].partition(",")[0]
            if "accept-encoding" in signed.split(";"):
                handler.fail(403, "SignatureDoesNotMatch")
            elif any(name.lower().startswith("x-goog-") for name in handler.headers):
                handler.fail(400, "InvalidArgument")
            else:
                encodings.append((kind, handler.headers.get("Accept-Encoding")))
                return False
            return True
        self.bucket.faults.append(fault)
        daemon = self.daemon_on("gs://bucket/logs", "google", "--object-endpoint", self.bucket.endpoint)
        self.wait_listed(daemon)
        code, _, err = self.answer(daemon, "overview_page", "run")
        self.assertEqual(code, 0, err)
        # Else objects that are stored with Content-Encoding gzip are unpacked.
        self.assertIn(("get", "gzip"), encodings)

    def test_small_cache(self):
        """Copies are evicted; an object that is larger than the cache is refused by name of the setting."""
        limit = max(1 << 20, PROFILE.stat().st_size + 100)
        several = 2 * limit // PROFILE.stat().st_size + 1
        for i in range(several):
            self.put_run(f"run{i}", PROFILE.read_bytes() + b"\n\0" * i)
        self.put_run("large", bytes(limit + 1))
        daemon = self.started("--object-cache", f"{limit}B")
        for i in range(several):
            self.assertEqual(self.answer(daemon, "overview_page", f"run{i}")[0], 0)
        copies = list((self.place / "objects" / "objects").glob("*.object"))
        self.assertTrue(0 < len(copies) < several)
        self.assertLessEqual(sum(c.stat().st_size for c in copies), limit)
        code, _, err = self.answer(daemon, "overview_page", "large")
        self.assertNotEqual(code, 0)
        self.assertIn("raise --object-cache", err)

    def test_stop(self):
        """SIGTERM does not wait for a store that says nothing."""
        self.put_run("run")
        daemon = self.started(*SOON)
        silent = []
        self.bucket.faults.append(lambda handler, kind, key: silent.append(kind) or time.sleep(20) or False)
        wait_until("a listing waits", lambda: silent)
        begin = time.monotonic()
        daemon.end(signal.SIGTERM)
        self.assertLess(time.monotonic() - begin, 15)

    def test_stop_prefetch(self):
        """Nor for an object that is fetched ahead of requests."""
        self.put_run("run")
        silent = []

        def fault(handler, kind, key):
            if kind == "get":
                silent.append(key)
                time.sleep(20)
            return False
        self.bucket.faults.append(fault)
        daemon = self.started("--prefetch")
        wait_until("an object is fetched ahead", lambda: silent)
        begin = time.monotonic()
        daemon.end(signal.SIGTERM)
        self.assertLess(time.monotonic() - begin, 15)


class Missing(OfStub):
    """Objects that cannot be had leave their hosts out."""
    HOSTS = "abcd"

    def setUp(self):
        super().setUp()
        run = self.place / "logs/plugins/profile/run"
        run.mkdir(parents=True)
        for host in self.HOSTS:
            data = with_host(PROFILE.read_bytes(), ord(host))
            (run / f"{host}.xplane.pb").write_bytes(data)
            self.put_run("run", data, host)

    def test_left_out(self):
        """The answer has the others, and the warning says why; when the object is there again nothing remembers it."""
        plain = self.daemon_on(self.place / "logs", "plain")
        answers = ((503, "SlowDown"), (412, "PreconditionFailed"), (403, "AccessDenied"), (404, "NoSuchKey"), ("another version", ""))
        for i, (status, code) in enumerate(answers):
            def fault(handler, kind, key, status=status, code=code):
                if kind != "get" or not key.endswith("/c.xplane.pb"):
                    return False
                if code:
                    handler.fail(status, code)
                else:
                    handler.answer(206, self.bucket.objects[key][0], [("ETag", '"another"')])
                return True
            self.bucket.faults[:] = [fault]
            daemon = self.started("--host-patience", "300ms", "--no-prefetch", name=f"missing{i}")
            for tool in ("overview_page", "framework_op_stats", "findings"):
                status_of, got, err = self.answer(daemon, tool, "run")
                self.assertEqual(status_of, 0, err)
                self.assertRegex(err, rf"c: .*{code or 'changed while it was read'}", (status, tool))
                self.assertEqual(err.count("warning"), 1, err)
            self.assertNotEqual(self.answer(daemon, "overview_page", "run", "--host", "c")[0], 0)
            self.assertEqual(self.answer(daemon, "overview_page", "run", "--strict")[0], 1)
            self.bucket.faults.clear()
            wait_until("the object is there", lambda: self.answer(daemon, "overview_page", "run")[2] == "")
            self.assertEqual(self.answer(daemon, "overview_page", "run", "--strict")[1], self.answer(plain, "overview_page", "run")[1])
            daemon.end()

    def test_patience(self):
        """A store that asks to wait longer than anybody has patience is not asked again."""
        self.bucket.faults.append(lambda handler, kind, key: kind == "get" and key.endswith("/c.xplane.pb") and
                                  (handler.fail(503, "SlowDown", [("Retry-After", "30")]) or True))
        daemon = self.started("--host-patience", "2s", "--no-prefetch")
        code, _, err = self.answer(daemon, "framework_op_stats", "run")
        self.assertEqual((code, "503 SlowDown" in err), (0, True), err)
        self.assertLess(self.bucket.count("get", 503), 5)


class Writes(OfStub):
    """Imports, captures and schedules, which write to the bucket."""

    def keys(self):
        with self.bucket.lock:
            return sorted(self.bucket.objects)

    def left(self):
        """Files of the local directory in which what is on its way lies."""
        return [file for at, _, files in os.walk(self.place / "objects" / "outgoing") for file in files]

    def imported(self, daemon, name, data, *more):
        file = self.place / f"{name}.xplane.pb"
        file.write_bytes(data)
        return self.ask_of(daemon, "import", file, *more)

    def test_import(self):
        """By one request, and in parts; what was imported is there at once, with the bytes that were sent."""
        daemon = self.started()
        for name, data, kinds in (("small", PROFILE.read_bytes(), {"put": 1}),
                                  ("large", large(), {"begin": 1, "part": 3, "complete": 1})):
            before = {k: self.bucket.count(k, 200) for k in kinds}
            code, out, err = self.imported(daemon, name, data, "--session", f"run_{name}")
            self.assertEqual(code, 0, err)
            key = f"logs/plugins/profile/run_{name}/{name}.xplane.pb"
            self.assertEqual(self.bucket.objects[key][0], data)
            self.assertEqual({k: self.bucket.count(k, 200) - before[k] for k in kinds}, kinds)
            self.assertEqual(self.answer(daemon, "overview_page", f"run_{name}")[0], 0)
        self.assertEqual(self.answer(daemon, "overview_page", "run_small")[1], self.answer_of_plain())
        self.assertFalse(self.bucket.uploads)
        self.assertFalse(self.left())

    def test_never_replaced(self):
        """A host that the session has is refused; so is one that comes between the check and the write."""
        key = self.put_run("run", b"")
        daemon = self.started()
        code, _, err = self.imported(daemon, "vm", PROFILE.read_bytes(), "--session", "run")
        self.assertNotEqual(code, 0)
        self.assertIn("has vm.xplane.pb already", err)
        for name, data, kind in (("small", PROFILE.read_bytes(), "put"), ("large", large(), "complete")):
            def fault(handler, kind, key, wanted=kind):
                if kind == wanted:
                    with self.bucket.lock:
                        self.bucket.objects[key] = b"of another", '"other"'
                return False
            self.bucket.faults.append(fault)
            code, _, err = self.imported(daemon, name, data, "--session", "run")
            self.assertNotEqual(code, 0)
            self.assertIn("already", err)
            self.bucket.faults.clear()
            self.assertEqual(self.bucket.objects[f"logs/plugins/profile/run/{name}.xplane.pb"][0], b"of another")
        self.assertEqual(self.bucket.objects[key][0], b"")
        self.assertFalse(self.bucket.uploads)
        self.assertFalse(self.left())

    def test_lost_answers(self):
        """An answer that is lost is no reason to say that the object is there already."""
        daemon = self.started()
        for name, data, kind in (("small", PROFILE.read_bytes(), "put"), ("large", large(), "complete")):
            lost = []

            def fault(handler, kind, key, wanted=kind, lost=lost):
                if kind != wanted or lost:
                    return False
                lost.append(key)
                handler.answer = lambda *arguments, **options: None
                if kind == "put":
                    handler.put(key)
                else:
                    handler.complete(dict(urllib.parse.parse_qsl(handler.path.partition("?")[2])))
                handler.close_connection = True
                return True
            self.bucket.faults.append(fault)
            code, _, err = self.imported(daemon, name, data, "--session", name)
            self.assertEqual(code, 0, err)
            self.assertTrue(lost)
            self.assertEqual(self.bucket.objects[f"logs/plugins/profile/{name}/{name}.xplane.pb"][0], data)
            self.bucket.faults.clear()

    def test_no_conditions(self):
        """A store that does not know If-None-Match is written to all the same."""
        self.bucket.conditions = False
        daemon = self.started()
        for name, data in (("small", PROFILE.read_bytes()), ("large", large())):
            code, _, err = self.imported(daemon, name, data, "--session", name)
            self.assertEqual(code, 0, err)
            self.assertEqual(self.bucket.objects[f"logs/plugins/profile/{name}/{name}.xplane.pb"][0], data)

    def test_fails(self):
        """A store that fails: nothing is there, no parts are left, and the import says why."""
        daemon = self.started()
        for kind, status, code in (("part", 403, "AccessDenied"), ("complete", 403, "AccessDenied"),
                                   ("complete", 200, "InternalError"), ("put", 403, "AccessDenied")):
            def fault(handler, kind, key, wanted=kind, status=status, code=code):
                if kind == wanted:
                    handler.fail(status, code)
                return kind == wanted
            self.bucket.faults.append(fault)
            data = PROFILE.read_bytes() if kind == "put" else large()
            done, _, err = self.imported(daemon, "vm", data, "--session", "run")
            self.assertNotEqual(done, 0)
            self.assertIn(code, err)
            self.bucket.faults.clear()
            self.assertEqual(self.keys(), [], kind)
            self.assertFalse(self.bucket.uploads, kind)
            self.assertFalse(self.left())

    def test_half_import(self):
        """Of an import whose second file cannot be stored the first one goes again."""
        self.put_run("run", b"", "second")
        daemon = self.started()
        files = []
        for name in ("first", "second"):
            files.append(self.place / f"{name}.xplane.pb")
            files[-1].write_bytes(PROFILE.read_bytes())
        code, _, err = self.ask_of(daemon, "import", *files, "--session", "run")
        self.assertNotEqual(code, 0)
        self.assertIn("second", err)
        self.assertEqual(self.keys(), ["logs/plugins/profile/run/second.xplane.pb"])

    def test_room(self):
        """What is on its way has a bounded room, which is said by the name of its setting."""
        daemon = self.started("--object-cache", "20MiB")
        code, _, err = self.imported(daemon, "large", large(), "--session", "run")
        self.assertNotEqual(code, 0)
        self.assertIn("--object-cache", err)
        self.assertEqual(self.keys(), [])
        self.assertFalse(self.left())
        code, _, err = self.imported(daemon, "small", PROFILE.read_bytes(), "--session", "run")
        self.assertEqual(code, 0, err)

    def test_capture(self):
        """A capture of two hosts becomes a session of the bucket, its notes included; names are not taken twice."""
        daemon = self.started()
        hosts = ",".join(self.fake("ok").address for _ in range(2))
        for session in ("mine", "mine_2"):
            code, out, err = self.ask_of(daemon, "capture", hosts, "--session", "mine", "--duration", "50ms")
            self.assertEqual(code, 0, err)
            mine = [k for k in self.keys() if k.startswith(f"logs/plugins/profile/{session}/")]
            self.assertEqual(len([k for k in mine if k.endswith(".xplane.pb")]), 2, mine)
            self.assertIn(f"logs/plugins/profile/{session}/capture.json", mine)
            self.assertEqual(self.answer(daemon, "overview_page", session)[0], 0)
        self.assertFalse(self.left())

    def test_capture_fails(self):
        """A capture whose session cannot be written fails, and leaves nothing."""
        daemon = self.started()
        self.bucket.faults.append(lambda handler, kind, key: kind == "put" and "fake_1" not in key and
                                  (handler.fail(403, "AccessDenied") or True))
        code, out, err = self.ask_of(daemon, "capture", self.fake("ok").address, "--duration", "50ms")
        self.assertNotEqual(code, 0)
        self.assertIn("403 AccessDenied", out + err)
        self.assertEqual(self.keys(), [])
        self.assertFalse(self.left())

    def test_capture_ends_early(self):
        """A capture that is cancelled while it is sent: what was begun is aborted, and nothing is seen."""
        daemon = self.started()
        waits, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def fault(handler, kind, key):
            if kind == "put":
                waits.set()
                go_on.wait(60)
            return False
        self.bucket.faults.append(fault)
        process = self.start_of(daemon, "capture", self.fake("ok").address, "--duration", "50ms")
        self.assertTrue(waits.wait(60))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        wait_until("nothing is left here", lambda: not self.left())
        go_on.set()
        self.bucket.faults.clear()
        wait_until("the daemon answers", lambda: self.ask_of(daemon, "sessions")[0] == 0)

    def test_capture_cancelled_late(self):
        """Of a capture that is cancelled when the store has its bytes nothing stays: the answer is waited for."""
        daemon = self.started()
        waits, go_on, sent = threading.Event(), threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def fault(handler, kind, key):
            if kind == "put":
                waits.set()
                go_on.wait(60)
                sent.set()
            return False
        self.bucket.faults.append(fault)
        process = self.start_of(daemon, "capture", self.fake("ok").address, "--duration", "50ms")
        self.assertTrue(waits.wait(60))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        time.sleep(1)  # the daemon knows by then; it waits for the answer some seconds
        go_on.set()
        wait_until("nothing is left here", lambda: not self.left())
        self.assertTrue(sent.wait(60))
        time.sleep(0.5)
        self.assertEqual(self.keys(), [])

    def test_ends_while_it_sends(self):
        """A daemon that ends while a capture is sent takes back what the store has of it."""
        daemon = self.started("--grace", "500ms")
        waits, go_on, stored = threading.Event(), threading.Event(), []
        self.addCleanup(go_on.set)

        def fault(handler, kind, key):
            if kind == "put" and stored:
                waits.set()
                go_on.wait(60)
            elif kind == "put":
                stored.append(key)
            return False
        self.bucket.faults.append(fault)
        hosts = ",".join(self.fake("ok").address for _ in range(2))
        self.start_of(daemon, "capture", hosts, "--duration", "50ms")
        self.assertTrue(waits.wait(60))
        self.assertEqual(self.keys(), stored)
        daemon.end(signal.SIGTERM)
        self.assertEqual(self.keys(), [])

    def test_schedule(self):
        """A schedule captures into the bucket, and its sessions are known as its own."""
        daemon = self.started()
        code, out, err = self.ask_of(daemon, "capture", self.fake("ok").address, "--every", "2s", "--duration",
                                     "50ms", "--session", "often")
        self.assertEqual(code, 0, err)
        wait_until("two turns are over", lambda: len({k.split("/")[3] for k in self.keys()}) >= 2)
        self.assertTrue(all(k.startswith("logs/plugins/profile/often_") for k in self.keys()))

    def test_delete(self):
        """What a session consists of goes, profiles last, and nothing else; half of one is deleted again."""
        key = self.put_run("run")
        for name in ("capture.json", "vm.op_stats.pb", "notes.txt", "below/vm.xplane.pb"):
            self.bucket.put(f"logs/plugins/profile/run/{name}", b"{}")
        other = self.put_run("run_2")
        kept = sorted([other, *(f"logs/plugins/profile/run/{n}" for n in ("notes.txt", "below/vm.xplane.pb"))])
        refused = self.started()
        code, _, err = self.ask_of(refused, "delete", "run")
        self.assertNotEqual(code, 0)
        self.assertIn("--allow-delete", err)
        daemon = self.started("--allow-delete", "--object-interval", "1h", name="deletes")
        self.bucket.faults.append(lambda handler, kind, key: kind == "delete" and key.endswith("xplane.pb") and
                                  (handler.fail(403, "AccessDenied") or True))
        code, _, err = self.ask_of(daemon, "delete", "run")
        self.assertNotEqual(code, 0)
        self.assertIn("403 AccessDenied", err)
        self.assertEqual(self.keys(), sorted([key, *kept]))
        self.bucket.faults.clear()
        self.assertIn("run", self.sessions_of(daemon))
        code, out, err = self.ask_of(daemon, "delete", "run")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.keys(), kept)
        self.assertNotEqual(self.answer(daemon, "overview_page", "run")[0], 0)
        self.assertEqual(self.answer(daemon, "overview_page", "run_2")[0], 0)
        code, _, err = self.ask_of(daemon, "delete", "never")
        self.assertNotEqual(code, 0)
        self.assertEqual(self.keys(), kept)

    def sessions_of(self, daemon):
        return {line.split(",")[0].strip('"') for line in self.names(daemon)}

    def test_keep(self):
        """A schedule removes its old sessions; those to which others added, or that others wrote anew, stay."""
        daemon = self.started()
        code, out, err = self.ask_of(daemon, "capture", self.fake("ok").address, "--every", "1500ms", "--duration",
                                     "50ms", "--session", "often", "--keep", "2")
        self.assertEqual(code, 0, err)
        mine = lambda: sorted({k.split("/")[3] for k in self.keys() if "/often" in k})  # noqa: E731
        wait_until("a session is there", mine)
        first = mine()[0]
        self.bucket.put(f"logs/plugins/profile/{first}/another.xplane.pb", PROFILE.read_bytes())
        wait_until("more than are kept were captured", lambda: len(
            {r[1].split("/")[3] for r in self.bucket.requests if r[0] == "put" and "/often" in r[1]}) >= 5)
        wait_until("old ones are removed", lambda: len(mine()) <= 4)
        self.assertIn(first, mine())
        self.assertIn("has profiles of others", daemon.text())
        self.assertIn("an old session was removed", daemon.text())

    def test_keep_elsewhere(self):
        """What has the name of a schedule's session in another bucket is left alone."""
        often = lambda: {k.split("/")[3] for k in self.keys() if "/often" in k}  # noqa: E731
        daemon = self.started()
        code, out, err = self.ask_of(daemon, "capture", self.fake("ok").address, "--every", "2s", "--duration",
                                     "50ms", "--session", "often", "--keep", "1")
        self.assertEqual(code, 0, err)
        # What the next daemon goes by is the record, which is made after the session's objects.
        wait_until("a session is recorded", lambda: json.loads(self.ask_of(daemon, "schedules", "--json")[1])[0]["sessions"])
        daemon.end()
        before = often()
        self.assertTrue(before)
        self.bucket.name = "other"
        daemon = self.daemon_on("s3://other/logs", "objects", "--object-endpoint", self.bucket.endpoint)
        wait_until("it is not removed", lambda: "was made under another --logdir" in daemon.text())
        wait_until("others are removed", lambda: "an old session was removed" in daemon.text())
        self.assertTrue(before & often())

    def test_killed(self):
        """What a killed daemon had on its way is removed by the next one."""
        waits = threading.Event()
        daemon = self.started()
        self.bucket.faults.append(lambda handler, kind, key: kind == "put" and (waits.set() or time.sleep(5)))
        self.start_of(daemon, "capture", self.fake("ok").address, "--duration", "50ms")
        self.assertTrue(waits.wait(60))
        self.assertTrue(self.left())
        daemon.end(signal.SIGKILL)
        self.bucket.faults.clear()
        self.started()
        self.assertFalse(self.left())


@unittest.skipUnless(find_weed(), "no SeaweedFS: tests/cluster/setup.sh DIR, XPL_CLUSTER_VENV=DIR")
class Real(Objects):
    def setUp(self):
        super().setUp()
        self.weed = Seaweed(self.place, ACCESS, SECRET)
        self.addCleanup(self.weed.end)
        self.put, self.endpoint = self.weed.put, self.weed.endpoint

    def test_real_server(self):
        """Signatures that a real server checks: sessions, odd names, answers of a directory."""
        for run in {"cpu/jax_empty", *(run for _, run in ANSWERS)}:
            for path in LOGDIR.glob("/plugins/profile/".join(run.split("/")) + "/*.xplane.pb"):
                self.put(f"logs/{path.relative_to(LOGDIR)}", path.read_bytes())
        self.put(f"logs/plugins/profile/{ODD}/vm.xplane.pb", PROFILE.read_bytes())
        where = ("--object-endpoint", self.endpoint)
        objects = self.daemon_on("s3://bucket/logs", "objects", *where, *SOON)
        plain = self.daemon_on(LOGDIR, "plain")
        self.wait_listed(objects)
        self.check_same(objects, plain)
        code, _, err = self.answer(objects, "overview_page", ODD)
        self.assertEqual(code, 0, err)
        # Replaced: listed again, and read anew.
        self.put("logs/cpu/plugins/profile/jax_empty/vm.xplane.pb", PROFILE.read_bytes())
        expected = self.answer(plain, "overview_page", "cpu/jax_matmul_nopy")[1]
        wait_until("the new object is answered for",
                   lambda: self.answer(objects, "overview_page", "cpu/jax_empty")[1] == expected)
        self.assertNotIn(SECRET, objects.text())


    def test_writes(self):
        """Imports by one request and in parts, and a capture: sessions that are read back; none is replaced."""
        self.put("logs/other", b"")  # makes the bucket
        objects = self.daemon_on("s3://bucket/logs", "objects", "--object-endpoint", self.endpoint)
        self.wait_listed(objects)
        expected = self.answer(self.daemon_on(PROFILE.parents[3], "plain"), "overview_page", "jax_matmul_nopy")[1]
        for name, data in (("small", PROFILE.read_bytes()), ("large", large())):
            file = self.place / f"{name}.xplane.pb"
            file.write_bytes(data)
            code, _, err = self.ask_of(objects, "import", file, "--session", name)
            self.assertEqual(code, 0, err)
            self.assertEqual(self.weed.get(f"logs/plugins/profile/{name}/{name}.xplane.pb"), data)
            code, _, err = self.ask_of(objects, "import", file, "--session", name)
            self.assertIn("already", err)
        self.assertEqual(self.answer(objects, "overview_page", "small")[1], expected)
        self.assertEqual(self.answer(objects, "overview_page", "large")[0], 0)
        code, out, err = self.ask_of(objects, "capture", self.fake("ok").address, "--duration", "50ms")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.answer(objects, "overview_page", out.strip())[0], 0)


if __name__ == "__main__":
    run_tests()
