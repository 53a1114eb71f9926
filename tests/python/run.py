#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the Python client.  Usage: run.py BUILD [NAME...]

BUILD is a build directory of xplaned; this runs with a python of tests/python/setup.sh, which has the client installed.  Types and the
notebook are checked where mypy and pandas are.  The last line is "N passed, N failed, N skipped".
"""
import contextlib
import importlib
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import xplaned

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 90


sys.path.append(str(ROOT / "tests" / "cluster"))
# Modules of tests, and the package without which they are skipped.
MODULES = {"test_client": "grpc", "test_batch": "grpc", "test_webhook": "grpc", "test_mcp": "mcp", "test_evaluation": "mcp", "test_notebooks": "grpc", "test_programs": "keras", "test_tensorboard": "tensorboard"}


class Skip(Exception):
    pass


class Place:
    """A daemon over a copy of tests/data, and what tests make."""

    def __init__(self, build, scratch):
        self.build, self.scratch = pathlib.Path(build).resolve(), pathlib.Path(scratch)
        self.xplaned = self.build / "server" / "xplaned"
        self.data = ROOT / "tests" / "data" / "logdir"
        self.logdir = self.scratch / "logdir"
        shutil.copytree(self.data, self.logdir)
        self.pandas = importlib.util.find_spec("pandas") is not None
        self.client = self.address = None

    @staticmethod
    def skip(why):
        raise Skip(why)

    def state(self, name):
        return ["--state-dir", str(self.scratch / f"state-{name}")]

    @contextlib.contextmanager
    def daemon(self, *args, name="main"):
        """A daemon on a free port; gives its address."""
        log = self.scratch / f"log-{name}"
        with open(log, "wb") as out:
            process = subprocess.Popen([self.xplaned, "--logdir", self.logdir, "--listen", "127.0.0.1:0", "--http", "off",
                                        "--allow-delete", *self.state(name), *args], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            pattern = re.compile(r"service=grpc address=(\S+)")
            self.until("the daemon listens", lambda: pattern.search(log.read_text()) or process.poll() is not None)
            yield pattern.search(log.read_text()).group(1)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @contextlib.contextmanager
    def program(self, mode):
        """A profiler server that is good ("ok") or not; gives its address."""
        process = subprocess.Popen([self.build / "tests" / "capture" / "fake_profiler", mode], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.stdout.close()
            process.terminate()
            process.wait(30)

    def ctl(self, *args):
        done = subprocess.run([self.build / "cli" / "xplanectl", "--server", self.address, *args], capture_output=True, check=True,
                              timeout=PATIENCE_S)
        return done.stdout

    @staticmethod
    def until(what, test):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if test():
                return
            time.sleep(0.02)
        raise AssertionError(f"never happened: {what}")


def types(place):
    """mypy --strict finds nothing in the package, nor in a program that uses it."""
    if importlib.util.find_spec("mypy") is None:
        raise Skip("no mypy")
    user = place.scratch / "user.py"
    user.write_text("import xplaned\n\n"
                    "def slowest(client: xplaned.Client) -> list[str]:\n"
                    "    return [op.name for run in client.sessions() for op in run.ops() if op.self_time_ps > 0]\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "client" / "python" / "pyproject.toml", "--cache-dir",
                           place.scratch / "mypy", "-p", "xplaned"], cwd=place.scratch, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", place.scratch / "mypy2", user], cwd=place.scratch,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def notebook(place):
    """The cells of docs/examples/notebook.ipynb, one after the other; only its log directory is another."""
    if not place.pandas:
        raise Skip("no pandas")
    cells = json.loads((ROOT / "docs" / "examples" / "notebook.ipynb").read_text())["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    assert len(code) >= 4 and sum(text.count('xplaned.start("~/logs")') for text in code) == 1
    logdir = place.scratch / "notebook"
    shutil.copytree(place.data / "cpu/plugins/profile/jax_4hosts", logdir / "plugins/profile/run")
    names = {"__name__": "__main__"}
    for text in code:
        text = text.replace('xplaned.start("~/logs")', f"xplaned.start({str(logdir)!r}, xplaned={str(place.xplaned)!r}, "
                                                       f"args={place.state('notebook')!r})")
        exec(compile(text, "notebook.ipynb", "exec"), names)
    assert names["ops"].self_time_ps.sum() > 0 and names["client"]._process.poll() is not None


def without(package):
    def skipped(place):
        raise Skip(f"no {package}")
    skipped.__name__ = package
    return skipped


def tests():
    for module, package in MODULES.items():
        yield from [without(package)] if importlib.util.find_spec(package) is None else importlib.import_module(module).TESTS
    yield from (types, notebook)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory(prefix="xplaned-python-") as scratch:
        place = Place(sys.argv[1], scratch)
        with place.daemon() as place.address, xplaned.connect(place.address) as place.client:
            for test in tests():
                if sys.argv[2:] and not any(name in test.__name__ for name in sys.argv[2:]):
                    continue
                began, kind, text = time.monotonic(), "passed", ""
                try:
                    test(place)
                except Skip as e:
                    kind, text = "skipped", f": {e}"
                except Exception:
                    kind = "failed"
                    traceback.print_exc(file=sys.stdout)
                counts[kind] += 1
                print(f"{kind:8} {test.__name__}{text}  [{time.monotonic() - began:.1f} s]", flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in counts.items()))
    sys.exit(counts["failed"] > 0 or counts["passed"] == 0)


if __name__ == "__main__":
    main()
