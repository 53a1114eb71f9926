# SPDX-License-Identifier: Apache-2.0
"""What xplaned-webhook sends: captures of a daemon, regressions of a label, signed, for Slack, again after failures."""
import contextlib
import hashlib
import hmac
import http.server
import io
import json
import pathlib
import socket
import threading
import types
import urllib.error

import xplaned
from xplaned import webhook


@contextlib.contextmanager
def receiver(*answers):
    """A server that answers with these (status, headers), then 200; gives its address and the list of (headers, body) that it got."""
    got, left = [], list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
            status, headers = left.pop(0) if left else (200, {})
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def webhook_captures(place):
    """Of captures only those that ended since the first look, the oldest first, each once."""
    with place.program("ok") as good, place.program("die") as bad, receiver() as (url, got):
        place.client.capture(good, duration=0.2, session="hook_before").wait()
        watcher = webhook.Watcher(place.client)
        assert list(watcher.look()) == []
        place.client.capture([good, bad], duration=0.2, session="hook_partial", host_names=["good", "bad"]).wait()
        place.client.capture(good, duration=0.2, session="hook_done").wait()
        webhook.run(watcher, webhook.Webhook(url, b"secret"), 0, pause=lambda s: None, rounds=2)
        events = [json.loads(body) for _, body in got]
        assert [(e["event"], e["session"]) for e in events] == [("capture.partial", "hook_partial"), ("capture.done", "hook_done")], events
        assert events[0]["hosts"] == 2 and [x["target"] for x in events[0]["lost"]] == [bad] and events[0]["lost"][0]["reason"], events[0]
        assert "1 of 2 hosts lost" in events[0]["text"] and events[1]["lost"] == []
        for headers, body in got:
            assert headers[webhook.SIGNATURE] == "sha256=" + hmac.new(b"secret", body, hashlib.sha256).hexdigest()


def webhook_regressions(place):
    """A regression after the first look is reported once, an improvement never; a label may have no sessions."""
    def change(session, worse):
        return {"session": session, "regression": worse, "captured_unix_ms": 5, "before": 10.0, "after": 12.0 if worse else 8.0,
                "difference_percent": 20.0 if worse else -20.0, "times": [{"cause": "input"}] if worse else []}

    changes = [change("first", True)]
    metrics = {"step_time": {"unit": "ps", "changes": changes}}

    def history(names, label):
        assert names == ["step_time"]
        if label != "nightly":
            raise xplaned.NotFound("NOT_FOUND", "no session has the label")
        return types.SimpleNamespace(metrics=metrics)

    client = types.SimpleNamespace(captures=lambda: [], history=history)
    watcher = webhook.Watcher(client, ["unused", "nightly"])
    assert list(watcher.look()) == []
    changes += [change("better", False), change("worse", True)]
    with receiver() as (url, got):
        webhook.run(watcher, webhook.Webhook(url, slack=True), 0, pause=lambda s: None, rounds=2)
        assert [json.loads(body) for _, body in got] == [{"text": "nightly: step_time is worse by 20.0% since worse, most of it input"}]
        assert webhook.SIGNATURE not in got[0][0]


def webhook_tries_again(place):
    """After an answer that may be better next time, as often and as late as told; not after others, nor where a redirect leads."""
    pauses = []
    event = {"event": "capture.done", "id": "capture-1-2", "text": "x"}
    with receiver((503, {}), (429, {"Retry-After": "7"}), (429, {"Retry-After": "99999"})) as (url, got):
        webhook.Webhook(url, sleep=pauses.append).send(event)
        assert pauses == [2.0, 7.0, 300.0] and len(got) == 4, (pauses, got)
        assert {body for _, body in got} == {json.dumps(event).encode()}
    for status, tries in ((500, webhook.TRIES), (404, 1), (302, 1)):
        with receiver() as (other, elsewhere), receiver(*[(status, {"Location": other})] * tries) as (url, got):
            try:
                webhook.Webhook(url, sleep=pauses.append).send(event)
                raise AssertionError("it was taken")
            except urllib.error.HTTPError as e:
                assert e.code == status and len(got) == tries and not elsewhere, (e, got)
    listener = socket.create_server(("127.0.0.1", 0))

    def garbage():
        with listener.accept()[0] as s:
            s.recv(65536)
            s.sendall(b"no answer of HTTP\r\n\r\n")

    thread = threading.Thread(target=garbage)
    thread.start()
    before = len(pauses)
    with listener:
        try:
            webhook.Webhook(f"http://127.0.0.1:{listener.getsockname()[1]}/", sleep=lambda s: (pauses.append(s), listener.close())).send(event)
            raise AssertionError("it was taken")
        except OSError:
            assert len(pauses) == before + 4
    thread.join()
    before = len(pauses)
    try:
        webhook.Webhook(url, sleep=pauses.append).send(event)  # the server has ended
        raise AssertionError("it was taken")
    except OSError:
        assert pauses[before:] == [2.0, 4.0, 8.0, 16.0]


def webhook_program(place):
    """A wrong address or secret ends the program before its first request."""
    secret = pathlib.Path(place.scratch) / "secret"
    secret.write_text("s\n")
    assert webhook.main(["--webhook", "file:///etc/passwd", "--secret-file", str(secret)]) == 1
    assert webhook.main(["--webhook", "http://127.0.0.1:1/", "--secret-file", str(secret) + "x"]) == 1


def webhook_shows_no_escapes(place):
    """Texts of the daemon and of the messages' receiver cannot drive the terminal."""
    class Watcher:
        def look(self):
            yield {"event": "capture.done", "id": "\x1b[2Jid", "text": "x"}

    class Refusing:
        def send(self, event):
            raise OSError("HTTP Error 400: \x1b]0;owned\x07\x9b2J\u202e")

    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        webhook.run(Watcher(), Refusing(), 0, pause=lambda s: None, rounds=1)
    assert said.getvalue().rstrip("\n").isprintable() and "owned" in said.getvalue(), said.getvalue()


def webhook_of_slack_notifies_nobody(place):
    """A session's name is text for Slack, and no command."""
    sent = []

    class Opener:
        def open(self, request, timeout):
            sent.append(json.loads(request.data)["text"])
            return contextlib.nullcontext()

    opener, webhook._opener = webhook._opener, Opener()
    try:
        webhook.Webhook("http://127.0.0.1:1/", slack=True).send({"event": "capture.done", "id": "1", "text": "session <!channel> & <http://x|y>"})
    finally:
        webhook._opener = opener
    assert sent == ["session &lt;!channel&gt; &amp; &lt;http://x|y&gt;"], sent


TESTS = [webhook_captures, webhook_regressions, webhook_tries_again, webhook_program, webhook_shows_no_escapes,
         webhook_of_slack_notifies_nobody]
