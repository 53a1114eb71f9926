# SPDX-License-Identifier: Apache-2.0
"""The connection to a daemon."""
from __future__ import annotations

import dataclasses
import datetime
import os
import pathlib
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import grpc

from . import importing, rows
from .capture import Capture, CaptureRecord, record
from .errors import Error, joined, parsed, translated, warn
from .session import Session
from .v1 import (analysis_pb2, analysis_pb2_grpc, capture_pb2, capture_pb2_grpc, server_pb2, server_pb2_grpc, session_pb2,
                 session_pb2_grpc)

DEFAULT_ADDRESS = "127.0.0.1:50551"
_PAGE = 500
_MOST = 1_000_000  # sessions of a list; a daemon has fewer
# Of a message; larger answers come in several.  None is compressed, and who inflates one does not know how large it becomes.
_CHANNEL_OPTIONS = [("grpc.max_receive_message_length", 1 << 30), ("grpc.compression_enabled_algorithms_bitset", 1)]


# Sessions to work on, or their names; one, or several.
Sessions = Union[str, Session, Sequence[Union[str, Session]]]


def _names(sessions: Sessions) -> List[str]:
    several = [sessions] if isinstance(sessions, (str, Session)) else sessions
    return [s.name if isinstance(s, Session) else s for s in several]


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a tool; values is empty when any text will do."""

    name: str
    default: str
    values: List[str]
    description: str


@dataclasses.dataclass(frozen=True)
class Tool:
    """A tool; one_host: it answers for one host at a time."""

    name: str
    aliases: List[str]
    content_type: str
    one_host: bool
    description: str
    options: List[Option]


@dataclasses.dataclass(frozen=True)
class Event:
    """What happened to a session: present, added, changed, removed; synced (no session) ends those that were there at first."""

    kind: str
    session: Optional[Session]


class Client:
    """A connection to a daemon, usable by any number of threads.  `connect` and `start` make one; `close`, or `with`, ends it.

    `timeout` (seconds) is for each call but captures, imports and watches.
    """

    def __init__(self, channel: grpc.Channel, *, timeout: float = 300.0, metadata: Sequence[Tuple[str, str]] = ()) -> None:
        self._channel = channel
        self._timeout = timeout
        self._metadata = tuple(metadata)
        self._analysis = analysis_pb2_grpc.AnalysisServiceStub(channel)
        self._captures = capture_pb2_grpc.CaptureServiceStub(channel)
        self._server = server_pb2_grpc.ServerServiceStub(channel)
        self._sessions = session_pb2_grpc.SessionServiceStub(channel)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; calls under way are cancelled."""
        self._channel.close()

    def _call(self, timeout: bool = True) -> Dict[str, Any]:
        return {"timeout": self._timeout if timeout else None, "metadata": self._metadata}

    def _get_session(self, name: str) -> session_pb2.Session:
        with translated():
            session: session_pb2.Session = self._sessions.GetSession(session_pb2.GetSessionRequest(session=name), **self._call())
        return session

    # ---- sessions ----

    def sessions(self, prefix: str = "") -> List[Session]:
        """All sessions whose names begin so, the newest first, with hosts and tools."""
        found: List[Session] = []
        request = session_pb2.ListSessionsRequest(prefix=prefix, page_size=_PAGE, with_hosts=True)
        with translated():
            while True:
                page = self._sessions.ListSessions(request, **self._call())
                found += [Session(self, message) for message in page.sessions]
                if not page.next_page_token:
                    return sorted(found, key=lambda s: s.captured, reverse=True)
                if not page.sessions:
                    raise Error("INTERNAL", "the daemon lists nothing, and says that more follows")
                if len(found) > _MOST:
                    raise Error("RESOURCE_EXHAUSTED", f"the daemon lists more than {_MOST} sessions")
                request.page_token = page.next_page_token

    def session(self, name: str) -> Session:
        """One session; NotFound names those that are near."""
        return Session(self, self._get_session(name))

    def watch(self, prefix: str = "", only_changes: bool = False) -> Iterator[Event]:
        """What happens to sessions from now on, without end; first one event for each that is there, unless only_changes."""
        request = session_pb2.WatchSessionsRequest(prefix=prefix, only_changes=only_changes)
        call = self._sessions.WatchSessions(request, **self._call(timeout=False))
        try:
            with translated():
                for event in call:
                    kind = session_pb2.SessionEvent.Kind.Name(event.kind)[len("KIND_"):].lower()
                    yield Event(kind, Session(self, event.session) if event.HasField("session") else None)
        finally:
            call.cancel()

    def add(self, paths: Union[importing.PathLike, Sequence[importing.PathLike]], session: str = "") -> Session:
        """Stores profiles, files or directories of them, as a session of the daemon; without a name it is the time."""
        if isinstance(paths, (str, os.PathLike)):
            paths = [paths]
        return self.session(importing.upload(self, paths, session))

    def sql(self, statement: str, sessions: Sessions = ()) -> rows.Rows[rows.Row]:
        """The rows of one SELECT over events of sessions and what is stored of all (docs/sql.md); without names, of all sessions.

        A statement that does more than read, or takes too much, is an Error with the position or the limit.
        """
        request = analysis_pb2.RunStatementRequest(
            statement=statement, sessions=_names(sessions))
        with translated():
            answer = parsed(self._analysis.RunStatement(request, **self._call()).json)
        if answer["cut"]:
            warnings.warn("there are more rows than a statement may give; add a LIMIT or a WHERE", stacklevel=2)
        return rows.Rows((rows.Row(zip(answer["columns"], row)) for row in answer["rows"]), answer["columns"])

    def compare(self, a: Sessions, b: Sessions) -> rows.Comparison:
        """Two runs, or groups of runs that count as one, beside each other: sessions or their names (docs/compare.md)."""
        request = analysis_pb2.CompareSessionsRequest(a=_names(a), b=_names(b))
        return rows.comparison(self._joint(self._analysis.CompareSessions, request))

    def history(self, metrics: Union[str, Sequence[str]] = "step_time", *, label: str = "", schedule: int = 0, directory: str = "",
                since: Optional[datetime.datetime] = None, last: int = 0) -> rows.History:
        """Metrics over the sessions of a label, a schedule or a directory, in order of time, with their changes (docs/history.md).

        last: of the newest so many, without it 100.  What could not be read of a session is a warning.
        """
        request = analysis_pb2.GetHistoryRequest(
            label=label, schedule_id=schedule, directory=directory, last=last,
            since_unix_ms=round(since.timestamp() * 1000) if since else 0, metrics=[metrics] if isinstance(metrics, str) else metrics)
        return rows.history(self._joint(self._analysis.GetHistory, request))

    # Of several sessions, in pieces; the first has the warnings.
    def _joint(self, method: Any, request: Any) -> Dict[str, Any]:
        head, data = joined(method(request, **self._call()))
        for warning in head.warnings:
            warn(warning.host, warning.text, 3)
        answer: Dict[str, Any] = parsed(data)
        return answer

    # ---- captures ----

    def capture(self, targets: Union[str, Sequence[str]], *, duration: float = 1.0, delay: float = 0.0, session: str = "",
                host_names: Sequence[str] = (), retries: int = 0, tracers: Optional[Tuple[int, int, int]] = None,
                advanced: Mapping[str, Union[str, bool, int]] = {}, detach: bool = False) -> Capture:
        """Begins to profile running programs ("HOST:PORT" of their profiler servers); see `Capture`.

        duration and delay are seconds; tracers are the levels of host, device and Python.
        """
        targets = [targets] if isinstance(targets, str) else list(targets)
        request = capture_pb2.CaptureRequest(
            targets=targets, host_names=host_names, session=session, duration_ms=round(duration * 1000),
            delay_ms=round(delay * 1000), retries=retries, detach=detach)
        if tracers is not None:
            request.tracers.host, request.tracers.device, request.tracers.python = tracers
        for name, value in advanced.items():
            entry = request.advanced[name]
            if isinstance(value, bool):
                entry.bool_value = value
            elif isinstance(value, int):
                entry.int64_value = value
            else:
                entry.string_value = value
        return Capture(self, self._captures.Capture(request, **self._call(timeout=False)))

    def captures(self, limit: int = 100) -> List[CaptureRecord]:
        """The newest entries of the daemon's history."""
        with translated():
            answer = self._captures.ListCaptures(capture_pb2.ListCapturesRequest(limit=limit), **self._call())
        return [record(c) for c in answer.captures]

    # ---- the daemon ----

    def tools(self) -> List[Tool]:
        """All tools of the daemon, with their options."""
        with translated():
            answer = self._analysis.ListTools(analysis_pb2.ListToolsRequest(), **self._call())
        return [Tool(t.name, list(t.aliases), t.content_type, t.one_host, t.description,
                     [Option(o.name, o.default_value, list(o.values), o.description) for o in t.options]) for t in answer.tools]

    def stats(self) -> server_pb2.ServerStats:
        """Counters and gauges of the daemon."""
        with translated():
            stats: server_pb2.ServerStats = self._server.GetServerStats(server_pb2.GetServerStatsRequest(), **self._call())
        return stats

    def fleet(self) -> rows.Fleet:
        """The daemons that share the daemon's database (docs/scale.md), and who works on what."""
        with translated():
            answer = self._server.GetFleet(server_pb2.GetFleetRequest(), **self._call())
        return rows.fleet(parsed(answer.json))


def _first_token(text: str) -> str:
    """The first word of the first line that is neither empty nor a comment: the file may be the daemon's."""
    return next((words[0] for words in map(str.split, text.splitlines()) if words and not words[0].startswith("#")), "")


def connect(address: Optional[str] = None, *, timeout: float = 300.0, token_file: Optional[importing.PathLike] = None,
            tls_roots: Optional[importing.PathLike] = None, tls_cert: Optional[importing.PathLike] = None,
            tls_key: Optional[importing.PathLike] = None, tls_name: Optional[str] = None) -> Client:
    """Connects to a daemon: HOST:PORT or unix:/PATH; without one, $XPLANED_SERVER or 127.0.0.1:50551.

    The options are xplanectl's: a file with a bearer token; PEM roots to trust, which ask for TLS; a certificate and its key; the
    name in the daemon's certificate.
    """
    address = address or os.environ.get("XPLANED_SERVER") or DEFAULT_ADDRESS
    options: List[Tuple[str, Union[str, int]]] = list(_CHANNEL_OPTIONS)
    if tls_name:
        options.append(("grpc.ssl_target_name_override", tls_name))
    if tls_roots or tls_cert:
        roots, cert, key = (pathlib.Path(f).read_bytes() if f else None for f in (tls_roots, tls_cert, tls_key))
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(roots, key, cert), options)
    else:
        channel = grpc.insecure_channel(address, options)
    metadata = [("authorization", f"Bearer {_first_token(pathlib.Path(token_file).read_text())}")] if token_file else []
    return Client(channel, timeout=timeout, metadata=metadata)
