# SPDX-License-Identifier: Apache-2.0
"""The servers that are compared, each started for one log directory, asked over its own protocol,
and stopped by its process id."""
import atexit
import ctypes
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

GET_TOOL_DATA = "/xplaned.v1.AnalysisService/GetToolData"
ASK_LIMIT_S = 150  # longest that one answer may take before it counts as a failure
SESSION, HOST = "run", "host0"

_running = {}
_prctl = ctypes.CDLL(None, use_errno=True).prctl


class Failure(Exception):
    """A server that gave no usable answer."""


def _die_with_us():
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nothing outlives this program


def start(args, **more):
    p = subprocess.Popen([str(a) for a in args], preexec_fn=_die_with_us, **more)
    _running[p.pid] = p
    return p


def stop(p, with_signal=signal.SIGTERM):
    if p.poll() is None:
        p.send_signal(with_signal)
        try:
            p.wait(30)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
    _running.pop(p.pid, None)


@atexit.register
def _stop_all():
    for p in list(_running.values()):
        stop(p, signal.SIGKILL)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_seconds(pid):
    """CPU time of a process so far, to the nanosecond."""
    return time.clock_gettime((~pid) << 3 | 2)  # CLOCK_PROCESS_CPUTIME of that process


class Answer:
    def __init__(self, ms, size, source="", cpu_ms=None):
        self.ms, self.size, self.source, self.cpu_ms = ms, size, source, cpu_ms


class Logdir:
    """A log directory with one session, whose files are links to (or copies of) the inputs."""

    def __init__(self, work, files, copy=False):
        self.path = Path(tempfile.mkdtemp(prefix="logdir-", dir=work))
        run = self.path / "plugins" / "profile" / SESSION
        run.mkdir(parents=True)
        for name, source in files.items():
            to = run / f"{name}.xplane.pb"
            shutil.copyfile(source, to) if copy else os.link(source, to)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


# ---- xplaned ----


def _varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _text(number, s):
    s = s.encode()
    return _varint(number << 3 | 2) + _varint(len(s)) + s


def tool_request(tool, session=SESSION, options=None):
    """An encoded xplaned.v1.GetToolDataRequest."""
    out = _text(1, session) + _text(3, tool)
    for k, v in (options or {}).items():
        entry = _text(1, k) + _text(2, v)
        out += _varint(4 << 3 | 2) + _varint(len(entry)) + entry
    return out + _varint(5 << 3) + b"\x01"  # allow_large


def _read_varint(b, at):
    n = shift = 0
    while True:
        n |= (b[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if b[at - 1] < 0x80:
            return n, at


def read_tool_data(b):
    """(source, size of the data) of an encoded xplaned.v1.ToolData."""
    at, source, size = 0, 0, 0
    while at < len(b):
        tag, at = _read_varint(b, at)
        n, at = _read_varint(b, at)
        if tag == 3 << 3:
            source = n
        elif tag == 15 << 3 | 2:
            size = n
        at += n if tag & 7 == 2 else 0
    return ("", "memory", "store", "computed")[source], size


class Server:
    """What a running server answers to; it has `pid`, and `port` where it speaks HTTP."""

    def cpu_seconds(self):
        return cpu_seconds(self.pid)

    def wire(self):
        return Wire(self.port, self.pid)

    def get(self, path):
        return self.wire().get(path)


class Xplaned(Server):
    name = "xplaned"

    def __init__(self, bins, work, logdir, state_dir, core=None, http="off", more=()):
        self.bins, self.work = bins, work
        args = [bins / "server/xplaned", "--logdir", logdir, "--state-dir", state_dir, "--listen",
                "127.0.0.1:0", "--http", http, "--no-prefetch", *more]
        if core is not None:
            args = ["taskset", "-c", str(core), *args, "--workers", "1"]
        self.log = Path(work) / "xplaned.log"
        begin = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = start(args, stderr=log, stdout=log)
        self.address = self._wait("grpc")
        self.startup_ms = (time.monotonic() - begin) * 1e3
        self.pid = self.process.pid
        self.port = int(self._wait("http").rpartition(":")[2]) if http != "off" else None

    def _wait(self, service):
        for _ in range(5000):
            found = re.search(rf"msg=listening service={service} address=(\S+)",
                              self.log.read_text())
            if found:
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.002)
        raise Failure("xplaned does not listen: " + self.log.read_text()[-300:])

    def load(self, request, *more, path=GET_TOOL_DATA):
        file = Path(self.work) / "request"
        file.write_bytes(request)
        args = [self.bins / "tests/bench/rpc_load", self.address, path, file, *more]
        out = subprocess.run([str(a) for a in args], capture_output=True, text=True,
                             timeout=ASK_LIMIT_S)
        if out.returncode != 0 or not out.stdout:
            raise Failure(out.stderr.strip()[-300:])
        return json.loads(out.stdout)

    def ask(self, tool, session=SESSION, options=None):
        save = Path(self.work) / "answer"
        cpu = cpu_seconds(self.pid)
        try:
            got = self.load(tool_request(tool, session, options), "--once", "--save", save)
        except subprocess.TimeoutExpired as e:
            raise Failure("no answer in time") from e
        cpu = cpu_seconds(self.pid) - cpu
        source, size = read_tool_data(save.read_bytes())
        return Answer(got["max_us"] / 1e3, size, source, cpu * 1e3)

    def stop(self):
        stop(self.process)


# ---- the others ----


def tool_query(tool, host, **options):
    """The path of XProf's /data for a tool."""
    query = urllib.parse.urlencode({"run": SESSION, "tag": tool, "host": host, **options})
    return "/data/plugin/profile/data?" + query


class Wire:
    """An open connection that costs little: bytes out, bytes in, nothing decoded."""

    IDLE_S = 20  # servers close connections that are idle for longer (xplaned after 60 s)

    def __init__(self, port, pid):
        self.port, self.pid, self.buffer = port, pid, bytearray(1 << 20)
        self._connect()

    def _connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=ASK_LIMIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.used = time.monotonic()

    def get(self, path, gzip=False):
        """An Answer with a body, which holds until the next one."""
        if time.monotonic() - self.used > self.IDLE_S:
            self.socket.close()
            self._connect()
        accept = "Accept-Encoding: gzip\r\n" if gzip else ""
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{accept}\r\n".encode()
        cpu = cpu_seconds(self.pid)
        begin = time.perf_counter()
        try:
            self.socket.sendall(request)
            head, length = self._read()
        except OSError as e:
            raise Failure(type(e).__name__) from e
        ms = (time.perf_counter() - begin) * 1e3
        self.used = time.monotonic()
        cpu = cpu_seconds(self.pid) - cpu
        answer = Answer(ms, length, cpu_ms=cpu * 1e3)
        answer.body = memoryview(self.buffer)[head:head + length]
        if self.buffer[9:12] != b"200":
            raise Failure(f"{path}: {bytes(self.buffer[:head + 80])!r}")
        return answer

    def _read(self):
        """Reads one answer; (where its body begins, its length)."""
        n, head, length = 0, 0, 0
        while not head or n < head + length:
            if n == len(self.buffer) or len(self.buffer) < head + length:
                self.buffer = self.buffer[:n] + bytearray(max(2 * n, head + length) - n)
            got = self.socket.recv_into(memoryview(self.buffer)[n:])
            if not got:
                raise Failure("closed the connection")
            n += got
            if not head and (end := self.buffer.find(b"\r\n\r\n", 0, n)) >= 0:
                head = end + 4
                found = re.search(rb"content-length: *(\d+)", self.buffer[:head].lower())
                if not found:
                    raise Failure("an answer without a length")
                length = int(found[1])
        return head, length


class Http(Server):
    """A server of XProf's HTTP routes."""

    def __init__(self, args, port, log):
        begin = time.monotonic()
        with open(log, "wb") as out:
            self.process = start(args, stderr=out, stdout=out, stdin=subprocess.DEVNULL)
        self.pid, self.port, self.connection = self.process.pid, port, None
        for _ in range(30000):
            try:
                self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_LIMIT_S)
                self.connection.connect()
                break
            except OSError:
                if self.process.poll() is not None:
                    raise Failure("does not start") from None
                time.sleep(0.002)
        self.startup_ms = (time.monotonic() - begin) * 1e3

    def ask(self, tool):
        host = HOST if tool == "memory_profile" else self.all_hosts
        cpu = cpu_seconds(self.pid)
        begin = time.monotonic()
        try:
            self.connection.request("GET", tool_query(tool, host))
            r = self.connection.getresponse()
            body = r.read()
            ms = (time.monotonic() - begin) * 1e3
            cpu = cpu_seconds(self.pid) - cpu
        except (OSError, http.client.HTTPException) as e:
            raise Failure(type(e).__name__) from e
        if r.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if r.status != 200:
            raise Failure(f"HTTP {r.status}: {body[:80].decode(errors='replace')}")
        try:
            json.loads(body)
        except ValueError as e:
            raise Failure("no JSON") from e
        return Answer(ms, len(body), "computed", cpu * 1e3)

    def stop(self):
        self.connection.close()
        stop(self.process)


class XprofRs(Http):
    name, all_hosts = "xprof-rs", ""

    def __init__(self, venv, work, logdir):
        port = free_port()
        super().__init__([venv / "bin/xprof-rs", "--logdir", logdir, "--port", port], port,
                         Path(work) / "xprof-rs.log")


class Xprof(Http):
    name, all_hosts = "xprof", "ALL_HOSTS"

    def __init__(self, venv, work, logdir):
        port = free_port()
        super().__init__([venv / "bin/python", venv / "bin/xprof", "server", "--logdir", logdir,
                          "--port", port, "--grpc_port", free_port()], port,
                         Path(work) / "xprof.log")


# ---- memory ----


class Sampler:
    """Samples a process at 1 kHz while the block runs; `result` is in KiB."""

    def __init__(self, bins, pid):
        self.args = [str(bins / "tests/bench/rss_sampler"), str(pid)]

    def __enter__(self):
        self.process = start(self.args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        time.sleep(0.02)
        return self

    def __exit__(self, *_):
        time.sleep(0.3)  # writes that follow the answer belong to it
        out, _ = self.process.communicate()
        _running.pop(self.process.pid, None)
        self.result = json.loads(out) if out else None
