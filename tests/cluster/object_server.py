# SPDX-License-Identifier: Apache-2.0
"""A bucket of S3 in memory, which checks signatures and misbehaves when it is told to.

Of the interface it has what profiles need: list type 2, ranges and If-Match; objects that are written at
once or in parts, with If-None-Match, and removed.
"""
import datetime
import hashlib
import hmac
import http.server
import re
import threading
import urllib.parse
from xml.sax.saxutils import escape

EMPTY = hashlib.sha256(b"").hexdigest()


def sign(key, *parts):
    for part in parts:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-._~")


class Bucket(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, name, access, secret, token=""):
        super().__init__(("127.0.0.1", 0), Handler)
        self.name, self.access, self.secret, self.token = name, access, secret, token
        self.bearers = None  # the tokens that are good, in place of signatures
        self.lock = threading.Lock()
        self.objects = {}  # key: (bytes, ETag)
        self.uploads = {}  # ID: (key, {number: bytes})
        self.conditions = True  # it knows If-None-Match
        self.requests = []  # (kind, key, status)
        self.page = 1000
        self.faults = []  # functions of (handler, kind, key): True when it has answered
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, key, data):
        with self.lock:
            self.objects[key] = data, f'"{hashlib.md5(data).hexdigest()}-1"'

    def put_tree(self, root, prefix):
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            self.put(f"{prefix}/{path.relative_to(root)}", path.read_bytes())

    def count(self, kind, status=None):
        with self.lock:
            return sum(1 for r in self.requests if r[0] == kind and status in (None, r[2]))

    def handle_error(self, request, client_address):
        """A client that hung up."""

    def end(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", headers=(), cut=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True
        with self.server.lock:
            self.server.requests.append((self.kind, self.key, status))

    def fail(self, status, code, headers=()):
        self.answer(status, f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>of a server"
                    "</Message></Error>".encode(), headers)

    # ---- signatures ----

    def is_signed(self):
        bucket, given = self.server, self.headers.get("Authorization", "")
        if bucket.bearers is not None:
            return given.startswith("Bearer ") and given[len("Bearer "):] in bucket.bearers
        if not given.startswith("AWS4-HMAC-SHA256 "):
            return False
        fields = dict(f.strip().split("=", 1) for f in given.split(" ", 1)[1].split(","))
        access, day, region, service, last = fields["Credential"].split("/")
        names = fields["SignedHeaders"].split(";")
        path, _, query = self.path.partition("?")
        parts = sorted(tuple(p.split("=", 1)) for p in query.split("&")) if query else []
        # As the server understands them, encoded again.
        path = quote(urllib.parse.unquote(path), "/")
        query = "&".join(f"{quote(urllib.parse.unquote(k))}={quote(urllib.parse.unquote(v))}" for k, v in parts)
        headers = "".join(f"{n}:{' '.join(self.headers[n].split())}\n" for n in names)
        body = self.headers.get("x-amz-content-sha256")
        canonical = "\n".join([self.command, path, query, headers, ";".join(names), body or ""])
        stamp = self.headers["x-amz-date"]
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{day}/{region}/{service}/{last}",
                          hashlib.sha256(canonical.encode()).hexdigest()])
        key = sign(b"AWS4" + bucket.secret.encode(), day, region, service, last)
        sent = int(self.headers.get("Content-Length") or 0)
        return (access == bucket.access and body == ("UNSIGNED-PAYLOAD" if sent else EMPTY) and service == "s3" and stamp[:8] == day
                and "host" in names and "x-amz-content-sha256" in names
                and self.headers.get("x-amz-security-token", "") == bucket.token
                and (not bucket.token or "x-amz-security-token" in names)
                and hmac.compare_digest(sign(key, text).hex(), fields["Signature"]))

    # ---- requests ----

    def do_GET(self):
        self.handle_as(lambda query: "list" if query else "get")

    def do_PUT(self):
        self.handle_as(lambda query: "part" if "partNumber" in query else "put")

    def do_POST(self):
        self.handle_as(lambda query: "begin" if "uploads" in query else "complete")

    def do_DELETE(self):
        self.handle_as(lambda query: "abort" if "uploadId" in query else "delete")

    def handle_as(self, kind_of):
        path, _, query = self.path.partition("?")
        parts = urllib.parse.unquote(path).split("/", 2)
        arguments = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.kind = kind_of(arguments)
        self.key = arguments.get("prefix", "") if self.kind == "list" else parts[2]
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        for fault in list(self.server.faults):
            if fault(self, self.kind, self.key):
                return None
        if not self.is_signed():
            return self.fail(403, "SignatureDoesNotMatch")
        if parts[1] != self.server.name:
            return self.fail(404, "NoSuchBucket")
        if self.kind in ("list", "begin", "part", "complete", "abort"):
            return getattr(self, self.kind)(arguments)
        return getattr(self, self.kind)(parts[2])

    # ---- writing ----

    def is_refused(self):
        """What If-None-Match says; the caller holds the lock."""
        if self.headers.get("If-None-Match") is None:
            return None
        if not self.server.conditions:
            return 501, "NotImplemented"
        return (412, "PreconditionFailed") if self.key in self.server.objects else None

    def put(self, key):
        with self.server.lock:
            why = self.is_refused()
            etag = f'"{hashlib.md5(self.body).hexdigest()}"'
            if not why:
                self.server.objects[key] = self.body, etag
        return self.fail(*why) if why else self.answer(200, headers=[("ETag", etag)])

    def delete(self, key):
        with self.server.lock:
            self.server.objects.pop(key, None)
        return self.answer(204)

    def begin(self, arguments):
        with self.server.lock:
            name = f"upload+{len(self.server.requests)}/="
            self.server.uploads[name] = self.key, {}
        return self.answer(200, (f"<InitiateMultipartUploadResult><Key>{escape(self.key)}</Key><UploadId>{name}"
                                 "</UploadId></InitiateMultipartUploadResult>").encode())

    def part(self, arguments):
        with self.server.lock:
            key, parts = self.server.uploads.get(arguments["uploadId"], (None, None))
            if key == self.key:
                parts[int(arguments["partNumber"])] = self.body
        if key != self.key:
            return self.fail(404, "NoSuchUpload")
        return self.answer(200, headers=[("ETag", f'"{hashlib.md5(self.body).hexdigest()}"')])

    def complete(self, arguments):
        named = re.findall(rb"<Part><PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag></Part>", self.body)
        with self.server.lock:
            key, parts = self.server.uploads.get(arguments["uploadId"], (None, {}))
            why = self.is_refused()
            if key != self.key:
                why = 404, "NoSuchUpload"
            elif [(n, f'"{hashlib.md5(p).hexdigest()}"'.encode()) for n, p in sorted(parts.items())] != \
                    [(int(n), e) for n, e in named] or any(len(p) < 5 << 20 for _, p in sorted(parts.items())[:-1]):
                why = 400, "InvalidPart"
            if not why:
                data = b"".join(p for _, p in sorted(parts.items()))
                self.server.objects[key] = data, f'"{hashlib.md5(data).hexdigest()}-{len(parts)}"'
                del self.server.uploads[arguments["uploadId"]]
        return self.fail(*why) if why else self.answer(200, b"<CompleteMultipartUploadResult/>")

    def abort(self, arguments):
        with self.server.lock:
            self.server.uploads.pop(arguments["uploadId"], None)
        return self.answer(204)

    # ---- reading ----

    def list(self, arguments):
        prefix, delimiter = arguments.get("prefix", ""), arguments.get("delimiter", "")
        after, entries, folders = arguments.get("continuation-token", ""), [], set()
        with self.server.lock:
            objects = dict(self.server.objects)
        for key in sorted(k for k in objects if k.startswith(prefix)):
            below = key[len(prefix):].find(delimiter) if delimiter else -1
            name = key if below < 0 else key[:len(prefix) + below + 1]
            if below >= 0:
                folders.add(name)
            if name > after and (not entries or entries[-1] != name):
                entries.append(name)
        page, more = entries[:self.server.page], len(entries) > self.server.page
        now = datetime.datetime(2026, 1, 2, 3, 4, 5).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        body = "".join(f"<CommonPrefixes><Prefix>{escape(n)}</Prefix></CommonPrefixes>" if n in folders else
                       f"<Contents><Key>{escape(n)}</Key><LastModified>{now}</LastModified>"
                       f"<ETag>{escape(objects[n][1])}</ETag><Size>{len(objects[n][0])}</Size></Contents>"
                       for n in page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        return self.answer(200, ("<?xml version='1.0' encoding='UTF-8'?><ListBucketResult>"
                                 f"<IsTruncated>{str(more).lower()}</IsTruncated>{body}{token}"
                                 "</ListBucketResult>").encode())

    def get(self, key):
        with self.server.lock:
            data, etag = self.server.objects.get(key, (None, None))
        if data is None:
            return self.fail(404, "NoSuchKey")
        wanted = self.headers.get("If-Match")
        if wanted is not None and (wanted != etag or etag.startswith("W/")):
            return self.fail(412, "PreconditionFailed")
        wanted = self.headers.get("Range")
        if not wanted:
            return self.answer(200, data, [("ETag", etag)])
        first, last = (int(n) for n in wanted[len("bytes="):].split("-"))
        if first >= len(data):
            return self.fail(416, "InvalidRange")
        return self.answer(206, data[first:last + 1],
                           [("Content-Range", f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}"),
                            ("ETag", etag)])
