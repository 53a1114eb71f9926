# SPDX-License-Identifier: Apache-2.0
"""SeaweedFS on free ports of loopback: S3 with signatures that are checked, and a filer without.

It is weed of the environment $XPL_CLUSTER_VENV (setup.sh), or on the path.
"""
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from peers import free_port


def find_weed():
    made = pathlib.Path(os.environ.get("XPL_CLUSTER_VENV", "/nonexistent")) / "bin" / "weed"
    return str(made) if made.exists() else shutil.which("weed")


class Seaweed:
    """Its data lie in `place`, with a bucket "bucket"."""

    def __init__(self, place, access, secret):
        self.place = pathlib.Path(place)
        config = self.place / "s3.json"
        config.write_text(json.dumps({"identities": [{
            "name": "test", "credentials": [{"accessKey": access, "secretKey": secret}], "actions": ["Admin"]}]}))
        (self.place / "data").mkdir()
        # It also takes the one 10,000 above each.
        ports = {name: free_port(10000) for name in ("master", "volume", "filer", "s3")}
        self.filer, self.endpoint = (f"http://127.0.0.1:{ports[n]}" for n in ("filer", "s3"))
        self.log = open(self.place / "weed.log", "wb")
        self.process = subprocess.Popen(
            [find_weed(), "server", "-dir", self.place / "data", "-ip", "127.0.0.1", "-ip.bind", "127.0.0.1",
             "-filer", "-s3", "-s3.config", config, "-master.volumeSizeLimitMB", "64", "-volume.max", "64",
             *(f"-s3.port.{other}=0" for other in ("iceberg", "lance")),  # else on ports that are always the same
             *(f"-{n}.port={p}" for n, p in ports.items())],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self.wait("SeaweedFS listens", lambda: self.is_up(self.endpoint) and self.is_up(self.filer))

    def wait(self, what, test):
        end = time.monotonic() + 60
        while not test():
            if self.process.poll() is not None or time.monotonic() > end:
                self.end()
                raise AssertionError(f"never happened: {what}: {(self.place / 'weed.log').read_bytes()[-2000:]}")
            time.sleep(0.02)

    @staticmethod
    def is_up(url):
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def put(self, key, data):
        """By the filer, which asks for no signature."""
        url = f"{self.filer}/buckets/bucket/{urllib.parse.quote(key)}"
        request = urllib.request.Request(url, data=data, method="PUT",
                                         headers={"Content-Type": "application/octet-stream"})

        def done():
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status < 300
            except urllib.error.HTTPError:
                return False  # volumes are being made
        self.wait("an object is stored", done)

    def get(self, key):
        with urllib.request.urlopen(f"{self.filer}/buckets/bucket/{urllib.parse.quote(key)}", timeout=60) as stored:
            return stored.read()

    def end(self):
        self.process.kill()
        self.process.wait(60)
        self.log.close()
