# SPDX-License-Identifier: Apache-2.0
"""What calls raise."""
from __future__ import annotations

import contextlib
import json
import re
import warnings
from typing import Any, Iterable, Iterator, Tuple

import grpc

from .show import printable


class Error(Exception):
    """A request that failed.  `code` is the status of gRPC by name ("NOT_FOUND"), `message` the daemon's sentence.

    What Python shows of it has no controls, as names of others may be in it.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {printable(message, MOST_SHOWN)}")
        self.code = code
        self.message = message

    def __reduce__(self) -> Tuple[type, Tuple[str, str]]:
        return type(self), (self.code, self.message)  # for other processes: args has one text of both


MOST_BYTES = 4 << 30  # of an answer
MOST_SHOWN = 2000  # characters of a message


class NotFound(Error):
    """There is no such session, host or program; the message has names that are near."""


class InvalidArgument(Error):
    """A wrong name of a tool or an option, a wrong value, a statement that cannot be parsed."""


class Unavailable(Error):
    """The daemon cannot be reached, or is stopping."""


# gRPC's message for an address without a daemon: the reason of its last attempt, or the name of a host that has no address.  The
# address itself is part of it since gRPC 1.5x.
_UNREACHABLE = re.compile(r"failed to connect to all addresses.*(?:: |error: )(.+)|(?:errors resolving|DNS resolution failed for) (\S+?): ", re.DOTALL)
_ADDRESS = re.compile(r"\b(?:ipv[46]:|(?=unix:))(\S+?): ")
_CLASSES = {"NOT_FOUND": NotFound, "INVALID_ARGUMENT": InvalidArgument, "UNAVAILABLE": Unavailable}


def error(code: str, message: str) -> Error:
    """The exception for a status."""
    found = _UNREACHABLE.match(message) if code == "UNAVAILABLE" else None
    if found:
        known = _ADDRESS.search(message)
        address = found[2] or (known[1] if known else "this address")
        message = f"no daemon answers at {address} ({found[1] or 'unknown host'}); start one with `xplaned --logdir DIR`, or use xplaned.start(DIR)"
    return _CLASSES.get(code, Error)(code, message)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turns what gRPC raises into `Error`."""
    try:
        yield
    except grpc.RpcError as e:
        raise error(e.code().name, e.details() or "") from e


def warn(host: str, text: str, level: int) -> None:
    """A warning of an answer, which Python prints: without controls.  `level` is that of warnings.warn, of the caller."""
    warnings.warn(printable(f"{host}: {text}" if host else text, MOST_SHOWN), stacklevel=level + 1)


def joined(pieces: Iterable[Any]) -> Tuple[Any, bytes]:
    """The first of an answer's pieces, and the data of all."""
    head, data = None, bytearray()
    with translated():
        for piece in pieces:
            head = head or piece
            data += piece.data
            if len(data) > MOST_BYTES:
                raise Error("RESOURCE_EXHAUSTED", f"the answer has more than {MOST_BYTES} bytes")
    if head is None:
        raise Error("INTERNAL", "the daemon sent no answer")
    return head, bytes(data)


def parsed(data: bytes) -> Any:
    """An answer's JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise Error("INTERNAL", f"the daemon's answer is no JSON: {e}") from e
