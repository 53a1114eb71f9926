# SPDX-License-Identifier: Apache-2.0
"""Captures: profiles of running programs."""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Iterator, List, Optional

from .errors import Error, error, translated
from .v1 import capture_pb2

if TYPE_CHECKING:
    from .client import Client
    from .session import Session

# States of a host from which on it records, or will not any more.
_RECORDS = frozenset(capture_pb2.HostState.Value(f"HOST_STATE_{name}")
                     for name in ("COLLECTING", "WAITING", "RECEIVING", "STORED", "IDLE", "FAILED", "CANCELLED"))


@dataclasses.dataclass(frozen=True)
class CapturedHost:
    """One target.  state: connecting, ready, collecting, ... stored, idle, failed; reason: why it was not stored."""

    target: str
    state: str
    host: str
    bytes: int
    reason: str
    attempts: int


@dataclasses.dataclass(frozen=True)
class CaptureRecord:
    """An entry of the daemon's history.  state: running, done, partial, failed, cancelled, interrupted."""

    id: int
    state: str
    session: str
    message: str
    begin_unix_ms: int
    end_unix_ms: int
    hosts: List[CapturedHost]


class Capture:
    """A capture under way.

    `wait()` gives its session.  As a context manager, the block begins when every host records, and its end waits for the session:

        with client.capture("localhost:9999", duration=2) as capture:
            train_some_steps()
        capture.session.findings()

    Iterating gives the hosts' states whenever one changes.
    """

    def __init__(self, client: "Client", call: Any) -> None:
        self._client = client
        self._call = call
        self._outcome: Optional[capture_pb2.Capture] = None
        self._session: Optional["Session"] = None
        self.id = 0
        self.hosts: List[CapturedHost] = []

    def __iter__(self) -> Iterator[List[CapturedHost]]:
        with translated():
            for message in self._call:
                self._take(message)
                yield self.hosts

    def __enter__(self) -> "Capture":
        try:
            with translated():
                for message in self._call:
                    self._take(message)
                    if message.hosts and all(host.state in _RECORDS for host in message.hosts):
                        break
        except BaseException:
            self._call.cancel()
            raise
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.wait()
        else:
            self.cancel()

    def _take(self, message: capture_pb2.CaptureProgress) -> None:
        self.id = message.id
        self.hosts = [_host(host) for host in message.hosts]
        if message.HasField("capture"):
            self._outcome = message.capture

    def wait(self) -> "Session":
        """Waits for the end.  Error when no host could be stored; `hosts` tells of each."""
        for _ in self:
            pass
        return self.session

    def cancel(self) -> None:
        """Ends the capture; what it stored is removed."""
        self._call.cancel()

    @property
    def session(self) -> "Session":
        """The session of a capture that has ended."""
        if self._session is None:
            if self._outcome is None:
                raise Error("FAILED_PRECONDITION", "the capture has not ended")
            if not self._outcome.session:
                raise error("UNKNOWN", self._outcome.message)
            self._session = self._client.session(self._outcome.session)
        return self._session


def _host(host: capture_pb2.CapturedHost) -> CapturedHost:
    state = capture_pb2.HostState.Name(host.state)[len("HOST_STATE_"):].lower()
    return CapturedHost(host.target, state, host.host, host.bytes, host.reason, host.attempts)


def record(capture: capture_pb2.Capture) -> CaptureRecord:
    """An entry of the history."""
    state = capture_pb2.Capture.State.Name(capture.state)[len("STATE_"):].lower()
    return CaptureRecord(capture.id, state, capture.session, capture.message, capture.begin_unix_ms, capture.end_unix_ms,
                         [_host(host) for host in capture.hosts])
