# SPDX-License-Identifier: Apache-2.0
"""Our plugin in the real TensorBoard, over HTTP."""
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402

HOSTS = "cpu/jax_4hosts"
PLACE = "/data/plugin/xplaned"


@contextlib.contextmanager
def tensorboard(place, logdir, *args):
    port, log = free_port(), place.scratch / "log-tensorboard"
    path = f"{place.build / 'server'}:{os.environ['PATH']}"
    with open(log, "wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", "127.0.0.1", "--port", str(port),
                                    "--load_fast", "false", *args], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                   env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(place.scratch / "cache")})

    def get(target, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request(method, target, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    get.address = f"127.0.0.1:{port}"
    try:
        def answers():
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(OSError):
                return get("/")[0]
        place.until("TensorBoard listens", answers)
        yield get
    finally:
        process.terminate()
        process.wait(30)


def plugin(place):
    """The tab is there; pages and their answers are the daemon's, and only TensorBoard may show them in a frame.  Pages of other sites
    get no answer."""
    with tensorboard(place, place.data) as get:
        listed = json.loads(get("/data/plugins_listing")[2])["xplaned"]
        assert listed["enabled"] and listed["tab_name"] == "xplaned", listed
        assert listed["loading_mechanism"]["module_path"].endswith(f"{PLACE}/index.js"[1:]), listed
        status, headers, body = get(f"{PLACE}/index.js")
        assert status == 200 and headers["Content-Type"].startswith("text/javascript") and b"location.replace" in body, body
        status, headers, page = get(f"{PLACE}/ui/")
        policy = headers["Content-Security-Policy"]
        assert status == 200 and b"<title>" in page and "X-Frame-Options" not in headers, (status, page[:200])
        assert "frame-ancestors 'self'" in policy and "'none'" in policy and "frame-ancestors 'none'" not in policy and "script-src 'self'" in policy
        assert get(f"{PLACE}/ui/app.js")[1]["Content-Type"].startswith("text/javascript")
        tag = get(f"{PLACE}/ui/app.js")[1]["ETag"]
        assert get(f"{PLACE}/ui/app.js", If_None_Match=tag)[0] == 304
        status, headers, body = get(f"{PLACE}/api/v1/sessions")
        assert status == 200 and HOSTS in body.decode(), body[:300]
        assert any(HOSTS in str(s) for s in json.loads(body)["sessions"])
        status, headers, body = get(f"{PLACE}/api/v1/tool?session={HOSTS.replace('/', '%2F')}&tool=findings")
        assert (status, json.loads(body)) == (200, place.client.session(HOSTS).tool("findings").json()), (status, body[:200])
        findings = f"{PLACE}/api/v1/tool?session={HOSTS.replace('/', '%2F')}&tool=findings"
        own = get.address
        for sender, expected in (({"Sec_Fetch_Site": "cross-site"}, 403), ({"Sec_Fetch_Site": "same-site", "Referer": f"http://{own}/"}, 403),
                                 ({"Referer": "http://elsewhere.example/"}, 403), ({"Origin": "null"}, 403), ({}, 403),
                                 ({"Sec_Fetch_Site": "same-origin"}, 200), ({"Referer": f"http://{own}/"}, 200)):
            assert get(findings, User_Agent="Mozilla/5.0", **sender)[0] == expected, sender
        assert get(f"{PLACE}/ui/", User_Agent="Mozilla/5.0", Sec_Fetch_Site="cross-site")[0] == 200
        for method in ("POST", "DELETE"):
            assert get(f"{PLACE}/api/v1/captures", method=method, Xplaned_Request="1")[0] == 405
        for target in ("/metrics", "/ui/../metrics", "/ui/%2e%2e/metrics", "/"):
            assert b"xplaned_" not in get(PLACE + target)[2], target
        assert get(f"{PLACE}/ui/none.js")[0] == 404
    place.until("its daemon has ended", lambda: not [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if daemon_of(p, place)])


def daemon_of(cmdline, place):
    with contextlib.suppress(OSError):
        words = cmdline.read_bytes().split(b"\0")
        return words[0].endswith(b"/xplaned") and str(place.data).encode() in words and b"--no-capture" in words and \
            int(cmdline.parent.joinpath("status").read_text().split("PPid:")[1].split()[0]) != 1


def inactive(place):
    """Without profiles there is no tab, and a daemon by itself is in no frame."""
    empty = place.scratch / "no-profiles"
    empty.mkdir()
    with tensorboard(place, empty) as get:
        assert not json.loads(get("/data/plugins_listing")[2])["xplaned"]["enabled"]
    with tensorboard(place, place.data, "--path_prefix", "/board") as get:
        assert get(f"/board{PLACE}/ui/")[0] == 200 and HOSTS in get(f"/board{PLACE}/api/v1/sessions")[2].decode()


def port(place):
    """The port is in the daemon's own line of its log, not in a name that another line has."""
    from xplaned.tensorboard import _port
    log = place.scratch / "log-port"
    log.write_text('level=warn topic=catalogue path="x service=http address=127.0.0.1:80"\n'
                   "level=info topic=daemon msg=listening service=http address=127.0.0.1:81\n")
    assert _port(log) == 81


TESTS = [plugin, inactive, port]
