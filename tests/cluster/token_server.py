# SPDX-License-Identifier: Apache-2.0
"""Google's token service on loopback, for one account: it checks what the account's key signed (RFC 7523)."""
import base64
import http.server
import json
import pathlib
import subprocess
import threading
import time
import urllib.parse


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class TokenServer(http.server.ThreadingHTTPServer):
    """`place` gets the account's file, account.json, and its keys; `bearers` all tokens that were given."""
    daemon_threads = True
    EMAIL, KEY_ID, SCOPE = "xplaned@project.iam.gserviceaccount.com", "0a1b2c", "devstorage.read_write"

    def __init__(self, place, lasts_s=3600):
        super().__init__(("127.0.0.1", 0), Handler)
        self.place, self.lasts_s = pathlib.Path(place), lasts_s
        self.bearers, self.refused, self.asked = set(), [], []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/token"
        self.key = self.openssl("genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
        (self.place / "public.pem").write_bytes(self.openssl("pkey", "-pubout", text=self.key))
        self.write()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @staticmethod
    def openssl(*arguments, text=None):
        return subprocess.run(["openssl", *arguments], input=text, check=True, stdout=subprocess.PIPE).stdout

    def write(self, **more):
        """The account's file, with other members where they are given."""
        (self.place / "account.json").write_text(json.dumps({
            "type": "service_account", "project_id": "project", "private_key_id": self.KEY_ID,
            "private_key": self.key.decode(), "client_email": self.EMAIL, "client_id": "1",
            "token_uri": self.url, "universe_domain": "googleapis.com", **more}))

    def why_not(self, form):
        """What is wrong with a request, or None."""
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            return "unsupported_grant_type"
        signed, _, signature = form["assertion"].rpartition(".")
        head, claims = (json.loads(decode(part)) for part in signed.split("."))
        (self.place / "signature").write_bytes(decode(signature))
        done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", self.place / "public.pem", "-signature",
                               self.place / "signature"], input=signed.encode(), stdout=subprocess.PIPE)
        now = time.time()
        if done.returncode or head != {"alg": "RS256", "typ": "JWT", "kid": self.KEY_ID}:
            return "invalid_grant: signature"
        if not (now - 60 < claims["iat"] < now + 5 and claims["exp"] == claims["iat"] + 3600):
            return "invalid_grant: times"
        good = claims["iss"] == self.EMAIL and claims["aud"] == self.url and claims["scope"].endswith(self.SCOPE)
        return None if good else "invalid_grant: claims"

    def handle_error(self, request, client_address):
        """A client that hung up."""

    def end(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    lock = threading.Lock()

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        with self.lock:
            self.server.asked.append(form.get("assertion", ""))
            why = self.server.why_not(form)
            token = f"ya29.tOkEn-{len(self.server.asked)}"
            if why:
                self.server.refused.append(why)
            else:
                self.server.bearers.add(token)
        body = json.dumps({"error": why} if why else {
            "access_token": token, "expires_in": self.server.lasts_s, "token_type": "Bearer"}).encode()
        self.send_response(400 if why else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
