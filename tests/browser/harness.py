# SPDX-License-Identifier: Apache-2.0
"""What the browser tests share: the daemon, a proxy that adds a path prefix, pages that record errors, results."""

import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time
import traceback
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "logdir"
# Of IREE; sessions of these names, which are not the first of XProf's list: it shows that one's tools.
BUNDLES = ("iree/task", "iree/vk")
HOSTILE = "<img src=x onerror=window.pwned=1>"  # a session's and a host's name


class Skip(Exception):
    pass


NOBODY = 1  # a port on which nothing listens: below those that are given out
ANY_PORTS = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]


def listening(log):
    """The URL that a daemon with this log has for HTTP; None before."""
    found = re.search(r"msg=listening service=http address=(\S+)", log.read_text(encoding="utf-8"))
    return f"http://{found[1].rstrip('/')}" if found else None


def fetch(base, path, timeout=60):
    """(status, headers, body) of one GET."""
    url = urllib.parse.urlsplit(base)
    c = http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)
    try:
        c.request("GET", url.path.rstrip("/") + path)
        r = c.getresponse()
        return r.status, dict(r.getheaders()), r.read()
    finally:
        c.close()


def make_logdir(top, build):
    """Profiles of tests/data and made ones (made_profiles.c), and one whose session and host carry HTML in their
    names; one whose layers have other names, one of a host with a device and one without; bundles of IREE; a trace of PyTorch."""
    shutil.copytree(DATA, top, dirs_exist_ok=True)
    subprocess.run([pathlib.Path(build) / "tests" / "browser" / "made_profiles", top], check=True, timeout=60)
    (top / "iree").mkdir()
    for name in BUNDLES:
        bundle = shutil.copy(DATA.parent / f"{name}-mlp-all.ireeprof", top / f"{name}.ireeprof")
        os.utime(bundle, (1577836800, 1577836800))  # behind the others, which are newer
    (top / "pytorch").mkdir()
    shutil.copy(DATA.parent / "pytorch" / "train.pt.trace.json", top / "pytorch")
    # A GPU's session with layers of another name, and ops that another compilation counted otherwise.
    renamed = top / "made" / "plugins" / "profile" / "renamed"
    renamed.mkdir()
    fused = (DATA / "accel" / "plugins" / "profile" / "mi300_jax_te_fused_attn" / "mi300_jax_te_fused_attn.xplane.pb").read_bytes()
    for was, now in ((b"bsd,de->bse", b"bsd,de->bsf"), (b"gemm_fusion_dot.6", b"gemm_fusion_dot.9")):
        assert was in fused and now not in fused and len(was) == len(now)
        fused = fused.replace(was, now)
    (renamed / "host.xplane.pb").write_bytes(fused)
    mixed = top / "made" / "plugins" / "profile" / "mixed"
    mixed.mkdir()
    shutil.copy(DATA / "accel" / "plugins" / "profile" / "mi300_jax_gemm" / "mi300_jax_gemm.xplane.pb", mixed / "gpu.xplane.pb")
    shutil.copy(DATA / "cpu" / "plugins" / "profile" / "jax_matmul_nopy" / "vm.xplane.pb", mixed / "cpu.xplane.pb")
    odd = top / "cpu" / "plugins" / "profile" / HOSTILE
    odd.mkdir()
    source = DATA / "cpu" / "plugins" / "profile" / "jax_odd_names" / "vm.xplane.pb"
    shutil.copy(source, odd / f"{HOSTILE}.xplane.pb")


class Daemon:
    """xplaned from a build directory, on free ports, stopped by its process id."""

    def __init__(self, build, extra=()):
        self.build = build
        self.program = pathlib.Path(build) / "server" / "xplaned"
        self.extra = list(extra)
        self.process = None
        self.top = None

    def start(self):
        usage = subprocess.run([self.program, "--help"], capture_output=True, text=True, timeout=20)
        if "--http" not in usage.stdout:
            raise Skip("this xplaned has no HTTP gateway")
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="xplaned-browser-"))
        make_logdir(self.top / "logs", self.build)
        self.log = open(self.top / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [
                self.program,
                "--logdir",
                self.top / "logs",
                "--state-dir",
                self.top / "state",
                *ANY_PORTS,
                *self.extra,
            ],
            stdout=self.log,
            stderr=self.log,
        )
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"xplaned ended: {(self.top / 'log').read_text()[-2000:]}")
            self.base = listening(self.top / "log")
            if self.base:
                status, _, body = fetch(self.base, "/api/v1/sessions")
                if status == 200 and len(json.loads(body)["sessions"]) > 10:
                    return self.base
            time.sleep(0.1)
        raise RuntimeError("xplaned does not answer")

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.log.close()
        if self.top:
            shutil.rmtree(self.top, ignore_errors=True)


class Prefix:
    """A proxy that serves BASE below /some/prefix/ only."""

    PATH = "/some/prefix"

    def __init__(self, base):
        backend = urllib.parse.urlsplit(base)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                status, headers, body = 404, {}, b"outside the prefix"
                if self.path.startswith(Prefix.PATH + "/"):
                    status, headers, body = fetch(f"http://{backend.netloc}", self.path[len(Prefix.PATH) :])
                self.send_response(status)
                for k, v in headers.items():
                    if k.lower() not in (
                        "connection",
                        "transfer-encoding",
                        "content-length",
                        "date",
                        "server",
                        "keep-alive",
                    ):
                        self.send_header(k, v)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}{Prefix.PATH}"

    def stop(self):
        self.server.shutdown()


class Tab:
    """One page in a context of its own; remembers what went wrong in it."""

    last = None  # the page made last

    def __init__(self, browser, base, size=(1360, 860), **context):
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **context)
        self.page = self.context.new_page()
        self.base = base
        self.errors = []
        self.page.on(
            "console", lambda m: self.errors.append(f"console: {m.text}") if m.type == "error" else None
        )
        self.page.on("pageerror", lambda e: self.errors.append(f"exception: {e}"))
        self.page.on("dialog", lambda d: (self.errors.append(f"dialog: {d.message}"), d.dismiss()))
        self.page.set_default_timeout(60000)
        Tab.last = self.page

    def open(self, place):
        self.page.goto("about:blank")  # else only the hash changes, and the old page could be taken for the new one
        self.page.goto(f"{self.base}/ui/#/{place}")
        self.ready()

    def session(self, name, page, query=""):
        self.open(f"s/{urllib.parse.quote(name, safe='')}/{page}{'?' + query if query else ''}")

    def ready(self):
        """Waits for the page's answer, and for its flame graph: that is drawn once it has a width.  Twice, for a page whose
        address has just changed is still there."""
        for _ in range(2):
            self.page.wait_for_function(
                "() => document.querySelector('main h1, main .problem') && !document.querySelector('.loading, .flame:empty')"
            )
            self.laid_out()

    def laid_out(self):
        """Waits until tables and charts are drawn for their size: they learn of it in one frame, and draw in the next."""
        self.page.evaluate("async () => { for (let n = 0; n < 3; n++) await new Promise(requestAnimationFrame); }")

    def texts(self, selector):
        return [t.strip() for t in self.page.locator(selector).all_inner_texts()]

    def hash(self):
        return self.page.evaluate("location.hash")

    def params(self):
        h = self.hash()
        return dict(urllib.parse.parse_qsl(h.split("?", 1)[1])) if "?" in h else {}

    def answer(self, tool, make):
        """From now on TOOL's answers are what make(query) gives: a JSON value, or (status, JSON value)."""

        def handle(route):
            url = urllib.parse.urlsplit(route.request.url)
            query = urllib.parse.parse_qs(url.query)
            value = make(query)
            status, value = value if isinstance(value, tuple) else (200, value)
            route.fulfill(
                status=status,
                content_type="application/json",
                body=value if isinstance(value, (str, bytes)) else json.dumps(value),
            )

        self.context.route(
            lambda url: "/api/v1/tool?" in url
            and urllib.parse.parse_qs(urllib.parse.urlsplit(url).query).get("tool") == [tool],
            handle,
        )

    def check_clean(self, allow=()):
        bad = [e for e in self.errors if not any(a in e for a in allow)]
        assert not bad, f"errors in the page: {bad[:5]}"

    def close(self):
        self.context.close()


class Results:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def add(self, kind, name, text=""):
        self.counts[kind] += 1
        print(f"{kind:8} {name}{': ' + text if text else ''}", flush=True)

    def run(self, name, fn):
        began = time.monotonic()
        try:
            fn()
            self.add("passed", name, f"{time.monotonic() - began:.1f} s")
        except Skip as e:
            self.add("skipped", name, str(e))
        except Exception:
            self.add("failed", name)
            traceback.print_exc()

    def last_line(self):
        return ", ".join(f"{self.counts[k]} {k}" for k in ("passed", "failed", "skipped"))


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    raise Skip("no chromium: deploy/setup-debian.sh test installs it")


def wait_until(what, test, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():
            return
        Tab.last.wait_for_timeout(50)  # not time.sleep: the browser's events are taken in meanwhile
    raise AssertionError(f"never happened: {what}")


def environment_path():
    return pathlib.Path(os.environ.get("XPL_BUILD", ROOT / "build"))
