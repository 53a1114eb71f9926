# SPDX-License-Identifier: Apache-2.0
"""What the capture tests share: programs to capture, servers that misbehave, xplanectl, results."""
import atexit
import contextlib
import functools
import http.server
import importlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import grpc

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "parity"), str(ROOT / "tests")]
from ports import free_port  # noqa: E402
PATIENCE_S = 90  # for what takes a second; a busy machine may need more


@functools.lru_cache(maxsize=1)
def scratch():
    """A directory for everything that the tests write; gone at the end."""
    top = tempfile.mkdtemp(prefix="xplaned-capture-")
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    return pathlib.Path(top)


class Skip(Exception):
    pass


class Results:
    """Runs tests; one line for each, and the sum."""

    def __init__(self, chosen=()):
        self.counts, self.chosen = {"passed": 0, "failed": 0, "skipped": 0}, chosen

    def run(self, name, test, *args):
        if self.chosen and not any(c in name for c in self.chosen):
            return
        began, kind, text = time.monotonic(), "passed", ""
        try:
            test(*args)
        except Skip as e:
            kind, text = "skipped", f": {e}"
        except Exception:
            kind = "failed"
            traceback.print_exc(file=sys.stdout)
        self.counts[kind] += 1
        print(f"{kind:8} {name}{text}  [{time.monotonic() - began:.1f} s]", flush=True)

    def finish(self):
        print(", ".join(f"{n} {kind}" for kind, n in self.counts.items()), flush=True)
        sys.exit(self.counts["failed"] > 0 or self.counts["passed"] == 0)


def wait_until(what, test, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = test()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"never happened: {what}")


# ---- programs ----

def end(process, seconds=10):
    """Ends a program that a test started, by its process id."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()


class Program:
    """One that prints `word` when it can be captured, and ends when its standard input does."""

    def __init__(self, command, address, word, log, env=None):
        self.address, self.word, self.log = address, word.encode(), log
        with open(log, "wb") as errors:
            self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=env)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.said = b""

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.process.args} ended: {self.log.read_text(errors='replace')[-2000:]}")
        self.said += self.process.stdout.read() or b""
        return self.word in self.said

    def ready(self):
        wait_until("a program is ready", self.is_ready)
        return self

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        end(self.process)


class Place:
    """A scratch directory, the programs of this build, and the programs that run in it."""

    def __init__(self, build, python):
        self.build, self.python, self.top = pathlib.Path(build).resolve(), python, scratch()
        self.ctl = self.build / "cli" / "xplanectl"
        self.programs, self.made = [], 0

    def directory(self, name):
        self.made += 1
        d = self.top / f"{self.made}-{name}"
        d.mkdir()
        return d

    def start(self, command, address, word, env=None):
        self.made += 1
        program = Program(command, address, word, self.top / f"{self.made}.log", env)
        self.programs.append(program)
        return program

    def job(self, *options, script="job.py"):
        """A JAX program with a profiler server; call ready() on it."""
        port = free_port()
        env = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
        return self.start([self.python, HERE / script, port, *options], f"127.0.0.1:{port}", "ready", env)

    def fake(self, mode, size=0, extra_ms=0):
        """A profiler server of the project's own that is as good or as bad as it is told to be (fake_profiler.h)."""
        port = free_port()
        command = [self.build / "tests" / "capture" / "fake_profiler", mode, size, extra_ms, port]
        return self.start(command, f"127.0.0.1:{port}", f"127.0.0.1:{port}").ready()

    def end(self):
        for program in self.programs:
            program.end()


# ---- servers that misbehave ----

class Silent:
    """Accepts connections and never says a word."""

    def __init__(self):
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.socket, self.taken = socket.socket(), []
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", self.port))
        self.socket.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self.socket.accept()[0])

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for s in self.taken:
            s.close()


class Web:
    """An ordinary web server."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


# ---- the profiler service itself, for what tests do behind the back of xplaned ----

@functools.lru_cache(maxsize=1)
def stubs():
    """Generated from the project's .proto files: a function that imports one of them by its path, and the directory.  Not those
    with an XSpace in them, whose messages the installed XProf registers, too."""
    from grpc_tools import protoc
    out = tempfile.mkdtemp(dir=scratch())
    root = ROOT / "proto"
    paths = [*sorted((root / "xplaned" / "v1").glob("*.proto")), *(root / "tensorflow" / f"profiler_{n}.proto" for n in ("options", "request"))]
    if protoc.main(["protoc", f"-I{root}", f"--python_out={out}", f"--grpc_python_out={out}", *map(str, paths)]):
        raise AssertionError("cannot generate stubs")
    sys.path.insert(0, out)
    return importlib.import_module, out


def profile(address, duration_ms, session="behind", timeout_s=60):
    """A future of ProfilerService.Profile's bytes, as any other client would call it."""
    load, _ = stubs()
    request, options = load("tensorflow.profiler_request_pb2"), load("tensorflow.profiler_options_pb2")
    channel = grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)])
    future = channel.unary_unary("/tensorflow.ProfilerService/Profile", request.ProfileRequest.SerializeToString).future(
        request.ProfileRequest(
            session_id=session, emit_xspace=True,
            opts=options.ProfileOptions(version=1, duration_ms=duration_ms, host_tracer_level=2, enable_hlo_proto=True)),
        timeout=timeout_s)
    future.add_done_callback(lambda _: channel.close())
    return future


def is_captureable(address):
    """Whether a profile can be taken from it now."""
    try:
        profile(address, 20).result()
        return True
    except grpc.RpcError:
        return False


def occupy(address, duration_ms):
    """A profile by somebody else that is certainly under way."""
    while True:
        future = profile(address, duration_ms)
        wait_until("the profile began", lambda f=future: f.done() or not is_captureable(address))
        if not future.done():
            return future


# ---- xplanectl ----

class Said:
    """What a finished xplanectl said."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __repr__(self):
        return f"exit status {self.code} after {self.seconds:.1f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err[-4000:]}"


class Running:
    """An xplanectl under way; what it says goes to files, so that it can be read meanwhile."""

    def __init__(self, command):
        self.began = time.monotonic()
        self.out, self.err = (tempfile.TemporaryFile(dir=scratch()) for _ in range(2))
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)

    @staticmethod
    def text(file):
        """All of it, without moving the place at which the program writes."""
        return os.pread(file.fileno(), 1 << 24, 0).decode(errors="replace")

    def says(self, *texts):
        """Waits for all of them on standard error."""
        def check():
            ended, said = self.process.poll() is not None, self.text(self.err)
            assert not ended or all(t in said for t in texts), f"{self.process.args} ended without {texts}: {said}"
            return all(t in said for t in texts)
        wait_until(f"{texts} on standard error", check)

    def finish(self, seconds=PATIENCE_S):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.process.args} goes on after {seconds} s: {self.text(self.err)}") from None
        said = Said(self.process.returncode, self.text(self.out), self.text(self.err), time.monotonic() - self.began)
        self.out.close()
        self.err.close()
        return said


class Ctl:
    def __init__(self, program, *common):
        self.command = [str(program), *map(str, common)]

    def start(self, *args):
        return Running([*self.command, *map(str, args)])

    def __call__(self, *args, seconds=PATIENCE_S):
        return self.start(*args).finish(seconds)


class Direct:
    """Captures without a daemon."""
    name = "direct"

    def __init__(self, place):
        self.place, self.logdir, self.ctl = place, place.directory("logdir"), Ctl(place.ctl)

    def start(self, targets, *options):
        return self.ctl.start("capture", ",".join(targets), "--direct", "--logdir", self.logdir, *options)

    def capture(self, targets, *options):
        return self.start(targets, *options).finish()

    def directory(self, session):
        return self.logdir / "plugins" / "profile" / session

    def overview(self, session):
        return self.ctl("analyze", "overview_page", self.directory(session))


class Served(Direct):
    """The same through a daemon."""
    name = "daemon"

    def __init__(self, place, *options):
        super().__init__(place)
        import daemon
        self.running = daemon.running(place.build, self.logdir, *options)
        self.daemon = self.running.__enter__()
        self.ctl = Ctl(place.ctl, "--server", self.daemon.address)

    def start(self, targets, *options):
        return self.ctl.start("capture", ",".join(targets), *options)

    def overview(self, session):
        """The summary; the session must be known already."""
        return self.ctl("summary", session)

    def end(self):
        self.running.__exit__(None, None, None)


def sessions(logdir):
    """{session: {file names}} as they are on the disk, hidden ones too."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for d in (pathlib.Path(logdir) / "plugins" / "profile").iterdir():
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                found[d.name] = {f.name for f in d.iterdir()}
    return found


def report_of(logdir, session):
    """A session's capture.json."""
    return json.loads((pathlib.Path(logdir) / "plugins" / "profile" / session / "capture.json").read_text())
