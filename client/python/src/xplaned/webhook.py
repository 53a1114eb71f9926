# SPDX-License-Identifier: Apache-2.0
"""xplaned-webhook: tells another service of captures that end and of labels that become slower (docs/capture.md).

It asks a daemon again and again, and posts one message for each thing that is new since it began.  A message has a stable id: who
gets one twice, because an answer was lost, can tell.
"""
from __future__ import annotations

import argparse
import hashlib
import hmac
import http.client
import json
import pathlib
import sys
import time
import urllib.error
import urllib.request
import warnings
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Set, Tuple

from .client import Client, connect
from .errors import Error, NotFound
from .show import printable

SIGNATURE = "X-Xplaned-Signature-256"  # "sha256=" and the HMAC of the body in hexadecimal digits, as GitHub signs
TRIES = 5
_TIMEOUT_S = 30
_MOST_WAIT_S = 300.0
_FOR_GOOD = ("INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED")  # errors that asking again does not mend

Event = Dict[str, Any]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    # urllib would follow a redirect with a GET; messages go to the configured address only.
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def _slack_text(text: str) -> str:
    # Between < and > Slack reads links and commands: a session called "<!channel>" would notify everyone.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Webhook:
    """An address that takes messages: JSON with all fields, or, `slack`, what Slack's incoming webhooks take."""

    def __init__(self, url: str, secret: bytes = b"", slack: bool = False, sleep: Callable[[float], None] = time.sleep) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url}: a webhook is an address of http or https")
        self._url = url
        self._secret = secret
        self._slack = slack
        self._sleep = sleep

    def send(self, event: Event) -> None:
        """Posts the event, five times at most, with growing pauses; raises the last failure, an OSError or HTTPException."""
        body = json.dumps({"text": _slack_text(event["text"])} if self._slack else event).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "xplaned-webhook"}
        if self._secret:
            headers[SIGNATURE] = "sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        for left in reversed(range(TRIES)):
            wait = 2.0 ** (TRIES - left)
            try:
                with _opener.open(urllib.request.Request(self._url, body, headers), timeout=_TIMEOUT_S):
                    return
            except urllib.error.HTTPError as e:
                e.close()
                if not left or e.code < 500 and e.code not in (408, 429):
                    raise
                told = e.headers.get("Retry-After", "")
                wait = min(float(told), _MOST_WAIT_S) if told.isdecimal() else wait
            except (OSError, http.client.HTTPException):
                if not left:
                    raise
            self._sleep(wait)


class Watcher:
    """What happened in a daemon since the first look at it."""

    def __init__(self, client: Client, labels: Sequence[str] = (), metrics: Sequence[str] = ("step_time",)) -> None:
        self._client = client
        self._labels = labels
        self._metrics = list(metrics)
        self._done: Optional[Set[int]] = None  # captures that have ended; None before the first look
        self._changes: Dict[str, Set[Tuple[str, str]]] = {}  # by label: metric and session of its regressions

    def look(self) -> Iterator[Event]:
        """The events since the last look, none at the first; raises xplaned.Error if the daemon does not answer."""
        yield from self._captures()
        for label in self._labels:
            try:
                yield from self._regressions(label)
            except NotFound:  # no session has the label yet
                self._changes.setdefault(label, set())

    def _captures(self) -> Iterator[Event]:
        ended = [c for c in reversed(self._client.captures()) if c.state != "running"]
        known, self._done = self._done, {c.id for c in ended}
        for c in ended:
            if known is None or c.id in known:
                continue
            lost = [{"target": h.target, "reason": h.reason} for h in c.hosts if h.state == "failed"]
            text = f"Capture {c.id} {'is ' if c.state in ('done', 'partial') else 'was ' if c.state != 'failed' else ''}{c.state}"
            text += f": session {c.session}" if c.session else ""
            text += f"; {len(lost)} of {len(c.hosts)} hosts lost" if lost else ""
            yield {"event": f"capture.{c.state}", "id": f"capture-{c.id}-{c.end_unix_ms}", "text": text, "capture": c.id, "session": c.session,
                   "begin_unix_ms": c.begin_unix_ms, "end_unix_ms": c.end_unix_ms, "hosts": len(c.hosts), "lost": lost, "message": c.message}

    def _regressions(self, label: str) -> Iterator[Event]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sessions that cannot be read have no value
            metrics = self._client.history(self._metrics, label=label).metrics
        found = {(name, change["session"]): (m["unit"], change) for name, m in metrics.items() for change in m["changes"] if change["regression"]}
        known = self._changes.setdefault(label, set(found))
        for (name, session), (unit, c) in found.items():
            if (name, session) in known:
                continue
            known.add((name, session))
            by = "" if c["difference_percent"] is None else f" by {abs(c['difference_percent']):.1f}%"
            text = f"{label}: {name} is worse{by} since {session}"
            text += f", most of it {c['times'][0]['cause']}" if c["times"] else ""
            yield {"event": "regression", "id": f"regression-{label}-{name}-{session}", "text": text, "label": label, "metric": name, "unit": unit,
                   "session": session, **{k: c[k] for k in ("captured_unix_ms", "before", "after", "difference_percent", "times")}}


def _report(text: str) -> None:
    print(f"xplaned-webhook: {printable(text, 1000)}", file=sys.stderr, flush=True)


def run(watcher: Watcher, webhook: Webhook, every: float, pause: Callable[[float], object] = time.sleep, rounds: Optional[int] = None) -> None:
    """Sends new events without end, or `rounds` times.  Messages that cannot be delivered are reported on standard error and dropped."""
    while rounds is None or rounds > 0:
        try:
            for event in watcher.look():
                try:
                    webhook.send(event)
                except (OSError, http.client.HTTPException) as e:
                    _report(f"{event['id']} was not delivered: {e}")
        except Error as e:
            if e.code in _FOR_GOOD:
                raise
            _report(str(e))
        rounds = rounds and rounds - 1
        pause(every)


def main(args: Optional[Sequence[str]] = None) -> int:
    """The program xplaned-webhook."""
    parser = argparse.ArgumentParser("xplaned-webhook", description="Posts a message when a capture ends, and when a label becomes slower.")
    parser.add_argument("--webhook", required=True, metavar="URL", help="where messages go")
    parser.add_argument("--secret-file", metavar="FILE", help=f"signs messages in the header {SIGNATURE}")
    parser.add_argument("--slack", action="store_true", help="messages for Slack's incoming webhooks")
    parser.add_argument("--label", action="append", default=[], help="tell of regressions of the sessions with this label; repeatable")
    parser.add_argument("--metric", action="append", help="of regressions; repeatable [step_time]")
    parser.add_argument("--every", type=float, default=10.0, metavar="SECONDS", help="time between two requests to the daemon [10]")
    parser.add_argument("--server", metavar="ADDR", help="the daemon [$XPLANED_SERVER, 127.0.0.1:50551]")
    parser.add_argument("--token-file", metavar="FILE")
    parser.add_argument("--tls-roots", metavar="FILE")
    o = parser.parse_args(args)
    try:
        webhook = Webhook(o.webhook, pathlib.Path(o.secret_file).read_bytes().strip() if o.secret_file else b"", o.slack)
        with connect(o.server, token_file=o.token_file, tls_roots=o.tls_roots) as client:
            run(Watcher(client, o.label, o.metric or ["step_time"]), webhook, o.every)
    except (Error, OSError, ValueError) as e:
        _report(str(e))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
