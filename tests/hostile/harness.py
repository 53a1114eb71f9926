# SPDX-License-Identifier: Apache-2.0
"""What the hostile tests share: daemons, profiles, calls over HTTP and gRPC, raw connections, waits.

A test is a function `test_NAME(run)` in a file `test_*.py`.  `run` (class Run) starts daemons on free ports of
loopback, makes directories, and ends all of it after the test, by process id.  After each test run.py also checks
that every daemon of it ended as it should, and that its memory stayed within its bound (Daemon.check_end).
"""

import contextlib
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
MIB = 1 << 20
# Bounds of the daemons that tests start; a test may give its own.
DEFAULTS = {"memory-limit": "256MiB", "memory-total": "512MiB", "answer-cache": "64MiB", "grace": "2s"}
# Resident anonymous memory stays below --memory-total and this.
MEMORY_SLACK = 128 * MIB
# What it may still have after a test, beyond the answers that it keeps and the jobs that run, and for how long it may
# have more; descriptors beyond those of its start (of the store, of results that are mapped, of watched directories).
LEFT_OVER, LEFT_SECONDS, LEFT_FDS = 64 * MIB, 60, 32
# The limit for events that are immediate on an idle machine: less than the 30 s after which the daemon ends half-open
# connections by itself.
PATIENCE = 25
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Skip(Exception):
    """The test cannot run here; the text says why."""


class Failed(AssertionError):
    pass


def check(condition, text):
    if not condition:
        raise Failed(text)


def equal(got, expected, text):
    check(got == expected, f"{text}: got {got!r}, expected {expected!r}")


def wait_for(condition, seconds, text, every=0.05):
    """Until condition() is true, and its value; fails after `seconds`, or PATIENCE where that is more."""
    seconds = max(seconds, PATIENCE)
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"after {seconds} s: {text}")
        time.sleep(every)


def size_of(text):
    number = text.rstrip("KMGiB")
    return int(number) * UNITS[text[len(number):]]


def quiet_close(*sockets):
    for s in sockets:
        with contextlib.suppress(OSError):
            s.close()


class Answer:
    """Of an HTTP request: status, headers (names in lower case), body."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"HTTP {self.status}, {len(self.body)} bytes: {self.body[:200]!r}"


class Daemon:
    """A daemon that listens.  Ports: `http`, `grpc`; `pid`; `log()` is what it wrote."""

    def __init__(self, run, logdir, state, options, env, preexec, file):
        self.logdir, self.state = pathlib.Path(logdir), pathlib.Path(state)
        self.run = run
        settings = {**DEFAULTS, **file}
        for option in options:
            name, equals, value = option.partition("=")
            if name.startswith("--") and equals and name[2:] in settings:
                settings[name[2:]] = value
        self.memory_total, self.answer_cache = size_of(settings["memory-total"]), size_of(settings["answer-cache"])
        self.check_memory = True  # a test that measures something else may say no
        self.expect_exit = 0  # of a daemon that was not killed
        self.peak = 0  # RssAnon, bytes, as sampled; tests set it to 0
        self.highest = 0  # since the start
        self.killed = False
        self.last_lines = []  # the end of its log, for the report of a failure
        self.stderr_path = pathlib.Path(tempfile.mkstemp(prefix="log.", dir=run.dir)[1])
        arguments = [str(run.build / "server" / "xplaned"), f"--logdir={logdir}", f"--state-dir={state}"]
        arguments += [f"--{name}={value}" for name, value in DEFAULTS.items() if name not in file]
        self.file, self.file_path = dict(file), pathlib.Path(f"{self.stderr_path}.conf")
        if file:
            self._write_file()
            arguments.append(f"--config={self.file_path}")
        given = {option.partition("=")[0] for option in options}
        arguments += [o for o in ("--listen=127.0.0.1:0", "--http=127.0.0.1:0") if o.partition("=")[0] not in given]
        arguments += [str(o) for o in options]
        # Settings of this machine stay out of the tests.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("XPLANED_")}
        environment.update(env or {})
        # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
        with open(self.stderr_path, "wb") as log:
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, preexec_fn=preexec
            )
        self.pid = self.process.pid
        self.grpc = self.http = None
        wait_for(self._listens, 30, "the daemon does not listen")
        self.first_fds = self.fds()
        self.sampling = True
        self.sampler = threading.Thread(target=self._sample, daemon=True)
        self.sampler.start()

    def _listens(self):
        if self.process.poll() is not None:
            raise Failed(f"the daemon ended with {self.process.returncode}:\n{self.log()[-2000:]}")
        services = {}
        for line in self.log().splitlines():
            if "msg=listening" in line:
                words = dict(w.partition("=")[::2] for w in line.split())
                services.setdefault(words["service"], words["address"])
            elif '"msg":"listening"' in line:
                words = json.loads(line)
                services.setdefault(words["service"], words["address"])
        wanted = 1 if any(a in ("--http=off", "--http=") for a in self.process.args) else 2
        if len([s for s in services if s.startswith(("grpc", "http"))]) < wanted:
            return False
        self.address = services["grpc"]
        if ":" in self.address and not self.address.startswith("unix:"):
            self.grpc = int(self.address.rpartition(":")[2])
        for name, address in services.items():
            if name.startswith("http"):
                self.http = int(address.rstrip("/").rpartition(":")[2])
        return True

    def _sample(self):
        while self.sampling:
            with contextlib.suppress(OSError, ValueError, KeyError):
                now = self.rss_anon()
                self.peak, self.highest = max(self.peak, now), max(self.highest, now)
            time.sleep(0.02)

    def _write_file(self):
        self.file_path.write_text("".join(f"{name} = {value}\n" for name, value in self.file.items()))

    def set(self, name, value):
        """Changes a setting of its configuration file, and has it read."""
        self.file[name] = value
        self._write_file()
        before = len(self.log())
        self.signal(signal.SIGHUP)
        wait_for(lambda: "settings reloaded" in self.log()[before:], 30, f"{name} = {value} is not taken")

    # ---- what /proc says ----

    def _status(self, key):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        raise KeyError(key)

    def rss_anon(self):
        """Resident anonymous memory, bytes."""
        return self._status("RssAnon") * 1024

    def rss(self):
        return self._status("VmRSS") * 1024

    def threads(self):
        return self._status("Threads")

    def fds(self):
        """Open descriptors."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def alive(self):
        return self.process.poll() is None

    def log(self):
        return self.stderr_path.read_text(errors="replace")

    # ---- calls ----

    def get(self, path, method="GET", headers=None, body=None, timeout=30):
        """One HTTP request on a connection of its own.  OSError or HTTPException when there is no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            r = connection.getresponse()
            return Answer(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
        finally:
            connection.close()

    def status(self):
        """The daemon's counters (GetServerStats) as a dict."""
        return self.get("/api/v1/server").json()

    def ctl(self, *arguments, timeout=60):
        """Runs xplanectl against this daemon: a CompletedProcess with bytes."""
        return subprocess.run(
            [str(self.run.build / "cli" / "xplanectl"), "--server", self.address, *map(str, arguments)],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False,
        )

    def tool(self, tool, session, *arguments, timeout=60):
        """A tool's answer over gRPC, as bytes; fails when there is none."""
        done = self.ctl("tool", tool, session, *arguments, timeout=timeout)
        check(done.returncode == 0, f"{tool} of {session}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def sessions(self):
        """Names of sessions, as GET /api/v1/sessions has them."""
        return [s["name"] for s in self.get("/api/v1/sessions").json()["sessions"]]

    def answers(self, seconds=PATIENCE):
        """Checks that somebody else is served: HTTP and gRPC answer within `seconds`."""
        began = time.monotonic()
        equal(self.get("/api/v1/tools", timeout=seconds).status, 200, "HTTP during the attack")
        left = max(0.1, seconds - (time.monotonic() - began))
        done = self.ctl("--timeout-ms", int(left * 1000), "sessions", timeout=left + 10)
        check(done.returncode == 0, f"gRPC during the attack: {done.stderr.decode(errors='replace')}")

    def connect(self, port=None, timeout=PATIENCE):
        """A TCP connection, to HTTP unless told otherwise."""
        s = socket.create_connection(("127.0.0.1", port or self.http), timeout=timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def raw(self, data, timeout=10, port=None):
        """Sends bytes, and returns all that comes until the other side closes or is silent for `timeout`."""
        with self.connect(port, timeout) as s:
            got = bytearray()
            with contextlib.suppress(OSError):
                s.sendall(data)
                while part := s.recv(1 << 16):
                    got += part
            return bytes(got)

    def http2(self, timeout=PATIENCE):
        """An HTTP/2 connection to the gRPC port, its preface sent."""
        return Http2(self.connect(self.grpc, timeout))

    # ---- end ----

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """SIGKILL, and waits for the end."""
        self.killed = True
        self.sampling = False
        self.process.kill()
        self.process.wait(20)

    def stop(self, seconds=30):
        """SIGTERM; returns the exit status."""
        self.sampling = False
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired as e:
                self.kill()
                raise Failed(f"the daemon did not stop within {seconds} s") from e
        return self.process.returncode

    def accounted(self):
        """Bytes of kept answers and running jobs; where nobody says (a token, TLS, no HTTP), all that answers may take."""
        try:
            s = self.status()["memory"]
            return s["answers_bytes"] + s["in_flight_bytes"]
        except (OSError, TypeError, KeyError, ValueError, http.client.HTTPException):
            return self.answer_cache

    def check_gives_back(self, seconds=LEFT_SECONDS):
        """When the load is over, memory and descriptors come back, sooner or later."""
        beyond, more = 0, 0

        def is_back():
            nonlocal beyond, more
            beyond, more = self.rss_anon() - self.accounted(), self.fds() - self.first_fds
            return beyond <= LEFT_OVER and more <= LEFT_FDS

        with contextlib.suppress(Failed):
            wait_for(is_back, seconds, "", every=0.2)
        check(beyond <= LEFT_OVER, f"{beyond // MIB} MiB beyond what is accounted for stay {seconds} s after the load")
        check(more <= LEFT_FDS, f"{more} descriptors more than at the start stay {seconds} s after the load")

    def check_end(self):
        """What holds for every daemon of every test: no crash, no sanitizer's report, memory within its bound, and
        memory and descriptors given back."""
        ended = self.process.poll()
        check(ended is None or self.killed or ended == self.expect_exit, f"the daemon ended with {ended}: {self.log()[-2000:]}")
        if ended is None and self.check_memory and not self.run.sanitized:
            self.check_gives_back()
        status = self.stop()
        check(self.killed or status == self.expect_exit, f"the daemon ended with {status}: {self.log()[-2000:]}")
        for word in ("AddressSanitizer", "runtime error:", "ThreadSanitizer", "Assertion"):
            check(word not in self.log(), f"{word} in the daemon's log: {self.log()[-3000:]}")
        bound = self.memory_total + MEMORY_SLACK
        if self.check_memory and not self.run.sanitized:
            check(self.highest <= bound, f"RssAnon was {self.highest // MIB} MiB, at most {bound // MIB} MiB are right")


class Run:
    """What a test gets: `build`, `short` (the form of CI), `dir` (a directory of the test's own)."""

    def __init__(self, build, short):
        self.build, self.short = pathlib.Path(build).resolve(), short
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="hostile."))
        self.daemons = []
        symbols = (self.build / "meson-info" / "intro-buildoptions.json")
        options = {o["name"]: o["value"] for o in json.loads(symbols.read_text())} if symbols.exists() else {}
        self.sanitized = options.get("b_sanitize", "none") != "none"

    def parameter(self, name, short, whole):
        """A number that the environment may set: $XPL_HOSTILE_NAME, else by the suite's form."""
        return type(whole)(os.environ.get("XPL_HOSTILE_" + name, short if self.short else whole))

    def make_dir(self, name):
        path = pathlib.Path(tempfile.mkdtemp(prefix=name + ".", dir=self.dir))
        return path

    def logdir(self, *sessions):
        """A directory with copies of the sessions of tests/data/logdir, or of these alone, by their bare names."""
        to = self.make_dir("logdir")
        for source in sorted((DATA / "logdir").glob("*/plugins/profile/*")):
            if not sessions or source.name in sessions:
                shutil.copytree(source, to / "plugins" / "profile" / source.name)
        for name in sessions:
            check((to / "plugins" / "profile" / name).is_dir(), f"tests/data/logdir has no session {name}")
        return to

    def start(self, *options, logdir=None, state=None, env=None, preexec=None, file=()):
        """A daemon with these options ("--name=value"), listening.  Without `logdir` on a copy of all profiles.  `file` has
        settings of a configuration file, which `set` changes."""
        d = Daemon(self, logdir or self.logdir(), state or self.make_dir("state"), options, env, preexec, dict(file))
        self.daemons.append(d)
        return d

    def end(self, check_all):
        """Ends and checks (or only ends) the daemons, and removes the directory."""
        failure = None
        for d in self.daemons:
            d.last_lines = d.log().splitlines()[-10:]
            try:
                if check_all:
                    d.check_end()
                else:
                    d.stop(10)
            except Exception as e:  # the others end all the same
                failure = failure or e
                with contextlib.suppress(Exception):
                    d.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
        if failure:
            raise failure


@contextlib.contextmanager
def descriptors(n):
    """This process may open n descriptors; skips the test where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n:
        if hard != resource.RLIM_INFINITY and hard < n:
            raise Skip(f"needs {n} descriptors, {hard} are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def in_threads(n, work):
    """work(0) to work(n-1) in threads of their own; the first failure is raised here."""
    failures = []

    def one(i):
        try:
            work(i)
        except Exception as e:  # any failure belongs to the test
            failures.append(e)

    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


def make_certificate(run):
    """(certificate, key) for 127.0.0.1, signed by itself."""
    cert, key = run.dir / "cert.pem", run.dir / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )
    return cert, key


# ---- HTTP/2, as far as attacks need it (RFC 9113, RFC 7541) ----

DATA_FRAME, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
# RFC 7541, appendix A: as many as gRPC servers send.
STATIC = {8: (b":status", b"200"), 9: (b":status", b"204"), 10: (b":status", b"206"), 11: (b":status", b"304"),
          12: (b":status", b"400"), 13: (b":status", b"404"), 14: (b":status", b"500"), 16: (b"accept-encoding", b"gzip, deflate"),
          31: (b"content-type", b""), 54: (b"server", b"")}


def hpack_int(value, bits, first):
    """RFC 7541 5.1: an integer with a prefix of `bits` bits in an octet whose upper bits are `first`."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out = bytearray([first | most])
    value -= most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def hpack(headers):
    """Headers (pairs of bytes or str), each a literal that enters no table."""
    out = bytearray()
    for pair in headers:
        out.append(0)
        for text in pair:
            text = text.encode() if isinstance(text, str) else text
            out += hpack_int(len(text), 7, 0) + text
    return bytes(out)


def hpack_decode(block):
    """Headers of a peer whose dynamic table is of size 0.  Strings in Huffman's code stay coded, as b'?'."""
    at, out = 0, []

    def integer(bits):
        nonlocal at
        most = (1 << bits) - 1
        value = block[at] & most
        at += 1
        if value == most:
            shift = 0
            while True:
                octet = block[at]
                at += 1
                value += (octet & 127) << shift
                shift += 7
                if octet < 128:
                    break
        return value

    def string():
        nonlocal at
        coded = block[at] & 128
        n = integer(7)
        text = block[at:at + n]
        at += n
        return b"?" if coded else bytes(text)

    while at < len(block):
        first = block[at]
        if first & 0x80:
            out.append(STATIC.get(integer(7), (b"?", b"?")))
        elif first & 0xE0 == 0x20:
            integer(5)
        else:
            index = integer(6 if first & 0x40 else 4)
            name = STATIC.get(index, (b"?", b""))[0] if index else string()
            out.append((name, string()))
    return out


class Http2:
    """One connection.  Frames are written as they are asked for, right or wrong."""

    def __init__(self, sock, settings=((1, 0),)):
        self.sock = sock
        self.buffer = bytearray()
        self.next_stream = 1
        payload = b"".join(struct.pack(">HI", k, v) for k, v in settings)
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.bytes_of(SETTINGS, 0, 0, payload))

    @staticmethod
    def bytes_of(kind, flags, stream, payload=b"", length=None):
        n = len(payload) if length is None else length
        return struct.pack(">I", n)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def send(self, kind, flags, stream, payload=b"", length=None):
        self.sock.sendall(self.bytes_of(kind, flags, stream, payload, length))

    def request(self, path, headers=(), end=False, authority="127.0.0.1"):
        """HEADERS of a gRPC request; returns its stream."""
        stream = self.next_stream
        self.next_stream += 2
        base = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", authority),
                ("content-type", "application/grpc"), ("te", "trailers")]
        self.send(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, hpack(base + list(headers)))
        return stream

    def message(self, stream, data, end=True, compressed=0, length=None):
        """A gRPC message in frames of at most 16 KiB; `length` is what its prefix says."""
        data = struct.pack(">BI", compressed, len(data) if length is None else length) + data
        for at in range(0, len(data), 16384):
            last = at + 16384 >= len(data)
            self.send(DATA_FRAME, END_STREAM if end and last else 0, stream, data[at:at + 16384])

    def frame(self):
        """The next frame: kind, flags, stream, payload; None at the end of the connection."""
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            part = self.sock.recv(1 << 16)
            if not part:
                return None
            self.buffer += part
        n = int.from_bytes(self.buffer[:3], "big")
        kind, flags = self.buffer[3], self.buffer[4]
        stream = int.from_bytes(self.buffer[5:9], "big") & 0x7FFFFFFF
        payload = bytes(self.buffer[9:9 + n])
        del self.buffer[:9 + n]
        if kind == SETTINGS and not flags & ACK:
            self.send(SETTINGS, ACK, 0)
        elif kind == PING and not flags & ACK:
            self.send(PING, ACK, 0, payload)
        return kind, flags, stream, payload

    def result(self, stream):
        """Reads until the stream ends: (headers and trailers as a dict of bytes, messages' bytes).  A reset or the
        connection's end is {b"reset": code} or {b"closed": b""}."""
        headers, data = {}, bytearray()
        while True:
            try:
                got = self.frame()
            except ConnectionError:
                got = None
            if got is None or got[0] == GOAWAY and int.from_bytes(got[3][:4], "big") < stream:
                return {**headers, b"closed": b""}, bytes(data)
            kind, flags, at, payload = got
            if at != stream:
                continue
            if kind == RST_STREAM:
                return {**headers, b"reset": payload}, bytes(data)
            if kind == HEADERS:
                headers.update(hpack_decode(payload))
            elif kind == DATA_FRAME:
                data += payload
                if payload:
                    grow = struct.pack(">I", len(payload))
                    self.send(WINDOW_UPDATE, 0, 0, grow)
                    self.send(WINDOW_UPDATE, 0, stream, grow)
            if kind in (HEADERS, DATA_FRAME) and flags & END_STREAM:
                return headers, bytes(data)

    def call(self, path, data, headers=()):
        """One gRPC call: (grpc-status as int or None, message, bytes of the answers)."""
        stream = self.request(path, headers)
        self.message(stream, data)
        got, answer = self.result(stream)
        status = got.get(b"grpc-status")
        return (int(status) if status and status.isdigit() else None), got.get(b"grpc-message", b"").decode(), answer

    def close(self):
        quiet_close(self.sock)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def read_all(sock):
    """Reads in a thread what comes, so that the other side can write."""

    def run():
        with contextlib.suppress(OSError):
            while sock.recv(1 << 16):
                pass

    threading.Thread(target=run, daemon=True).start()


def end_process(process, seconds=10):
    """Ends a process that a test started: SIGTERM, then SIGKILL."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(seconds)
    return process.returncode


# ---- sessions ----


def left_of(directory):
    """What a capture or an import that was broken off has left in a session's directory, or None."""
    if not directory.is_dir():
        return None
    names = [p.name for p in directory.iterdir()]
    hidden = [n for n in names if n.startswith(".")]
    return hidden or ("nothing in it" if not [n for n in names if n.endswith(".xplane.pb")] else None)


# ---- answers ----

TOOLS = ("overview_page", "input_pipeline_analyzer", "op_profile", "framework_op_stats", "kernel_stats", "memory_profile",
         "trace_viewer", "trace_viewer@")


def answer_url(session, tool):
    """The URL of a tool's answer for a session."""
    return "/api/v1/tool?" + urllib.parse.urlencode({"session": session, "tool": tool})


def reference_answers(run, logdir, sessions=None, tools=TOOLS):
    """{(session, tool): (status, body)} of a daemon of its own, which has no state."""
    d = run.start("--no-prefetch", logdir=logdir)
    answers = {}
    for session in sessions or d.sessions():
        for tool in tools:
            got = d.get(answer_url(session, tool))
            answers[session, tool] = (got.status, got.body)
    d.stop()
    check(any(status == 200 for status, _ in answers.values()), "some answers are right")
    return answers


def same_answer(got, expected, text):
    """`got` is what a fresh daemon answers."""
    check((got.status, got.body) == expected,
          f"{text}: HTTP {got.status}, {len(got.body)} bytes; fresh is HTTP {expected[0]}, {len(expected[1])} bytes: {got.body[:200]!r}")
