# SPDX-License-Identifier: Apache-2.0
"""What calls raise."""
from __future__ import annotations

import contextlib
import re
from typing import Iterator

import grpc


class Error(Exception):
    """A request that failed.  `code` is the status of gRPC by name ("NOT_FOUND"), `message` the daemon's sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class NotFound(Error):
    """There is no such session, host or program; the message has names that are near."""


class InvalidArgument(Error):
    """A wrong name of a tool or an option, a wrong value, a statement that cannot be parsed."""


class Unavailable(Error):
    """The daemon cannot be reached, or is stopping."""


# What gRPC says of an address without a daemon: the address, and the reason of its last attempt.
_NO_DAEMON = re.compile(r"(?:failed to connect to all addresses.*?\b(?:ipv[46]:|(?=unix:))(\S+?): .*(?:: |error: )(.+)|errors resolving (\S+?): .*)",
                        re.DOTALL)
_CLASSES = {"NOT_FOUND": NotFound, "INVALID_ARGUMENT": InvalidArgument, "UNAVAILABLE": Unavailable}


def error(code: str, message: str) -> Error:
    """The exception for a status."""
    found = _NO_DAEMON.match(message) if code == "UNAVAILABLE" else None
    if found:
        address, reason = found[1] or found[3], found[2] or "unknown host"
        message = f"no daemon answers at {address} ({reason}); start one with `xplaned --logdir DIR`, or use xplaned.start(DIR)"
    return _CLASSES.get(code, Error)(code, message)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turns what gRPC raises into `Error`."""
    try:
        yield
    except grpc.RpcError as e:
        raise error(e.code().name, e.details() or "") from e
