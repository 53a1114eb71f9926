# SPDX-License-Identifier: Apache-2.0
"""The plugin of TensorBoard: our pages in a frame, for the profiles below --logdir (docs/notebooks.md).

A private daemon answers.  Its pages come through TensorBoard, so that one forwarded port is enough; they may be in a frame of that
origin only, and only there.  Only GET is forwarded: pages cannot capture or change anything.  The daemon refuses what pages of other
sites ask for.
"""
from __future__ import annotations

import atexit
import http.client
import pathlib
import re
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from .errors import Error, Unavailable
from .private import PrivateClient, start

_MODULE = "export function render() { location.replace(new URL('ui/', import.meta.url)); }\n"
_REQUEST = ("Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range", "Sec-Fetch-Site", "User-Agent")
_ANSWER = ("Content-Type", "Content-Encoding", "Content-Disposition", "Content-Range", "ETag", "Last-Modified", "Cache-Control", "Vary",
           "Content-Security-Policy", "X-Content-Type-Options", "Retry-After")
_START_S = 10
_TIMEOUT_S = 310  # of a request; the daemon ends it before


class Plugin(base_plugin.TBPlugin):
    """What TensorBoard loads by the entry point `tensorboard_plugins`."""

    plugin_name = "xplaned"

    def __init__(self, context: Any) -> None:
        self._logdir: Optional[str] = context.logdir
        self._lock = threading.Lock()
        self._client: Optional[PrivateClient] = None
        self._http = ("", 0)

    def get_plugin_apps(self) -> Dict[str, Callable[..., Any]]:
        """The routes below /data/plugin/xplaned."""
        return {"/index.js": self._module, "/ui": self._forward, "/ui/*": self._forward, "/api/*": self._forward}

    def is_active(self) -> bool:
        """Whether there is a profile."""
        try:
            return bool(self._logdir) and bool(self._daemon().sessions())
        except (Error, OSError):
            return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab, which is a frame."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="xplaned", disable_reload=True)

    def _daemon(self) -> PrivateClient:
        with self._lock:
            if self._client is None:
                client = start(self._logdir or "", args=["--http", "127.0.0.1:0", "--no-capture"])
                try:
                    self._http = ("127.0.0.1", _port(pathlib.Path(client._place.name) / "log"))
                except BaseException:
                    client.close()  # the next request starts another one
                    raise
                atexit.register(client.close)
                self._client = client
            return self._client

    @wrappers.Request.application
    def _module(self, request: wrappers.Request) -> wrappers.Response:
        return wrappers.Response(_MODULE, content_type="text/javascript; charset=utf-8", headers={"X-Content-Type-Options": "nosniff"})

    @wrappers.Request.application
    def _forward(self, request: wrappers.Request) -> wrappers.Response:
        if request.method not in ("GET", "HEAD"):
            return wrappers.Response("only GET is forwarded\n", 405, content_type="text/plain", headers={"Allow": "GET, HEAD"})
        self._daemon()
        query = "?" + "".join(chr(b) if 0x20 < b < 0x7f else f"%{b:02X}" for b in request.query_string) if request.query_string else ""
        path = request.environ["PATH_INFO"].partition("/data/plugin/xplaned")[2].encode("latin-1")
        given = {name: request.headers[name] for name in _REQUEST if name in request.headers}
        if "Sec-Fetch-Site" not in given and (page := request.headers.get("Origin") or request.headers.get("Referer")):
            given["Sec-Fetch-Site"] = "same-origin" if urllib.parse.urlsplit(page).netloc == request.host else "cross-site"
        try:
            status, headers, body = self._get(request.method, _quoted(path) + query, given)
        except (OSError, http.client.HTTPException) as e:  # which the server would take for its own connection's
            return wrappers.Response(f"xplaned does not answer: {e}\n", 502, content_type="text/plain")
        return wrappers.Response(body, status, headers=headers)

    def _get(self, method: str, target: str, headers: Dict[str, str]) -> Tuple[int, List[Tuple[str, str]], Iterable[bytes]]:
        connection = http.client.HTTPConnection(*self._http, timeout=_TIMEOUT_S)
        try:
            connection.request(method, target, headers=headers)
            answer = connection.getresponse()
            kept = [(name, value) for name in _ANSWER if (value := answer.headers.get(name)) is not None]
            return answer.status, [(name, value.replace("frame-ancestors 'none'", "frame-ancestors 'self'")) for name, value in kept], [answer.read()]
        finally:
            connection.close()


def _port(log: pathlib.Path) -> int:
    """The port of HTTP, which the daemon logs about when it is ready, before or after.  Names of files in other lines are in quotes."""
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        found = re.search(r"^[^\"\n]*\bservice=http address=127\.0\.0\.1:(\d+)$", log.read_text(errors="replace"), re.MULTILINE)
        if found:
            return int(found[1])
        time.sleep(0.01)
    raise Unavailable("UNAVAILABLE", "xplaned serves no HTTP")


def _quoted(path: bytes) -> str:
    """The path as it was before the server took its escapes away."""
    return "".join(chr(b) if chr(b).isalnum() and b < 128 or b in b"/-._~@" else f"%{b:02X}" for b in path)
