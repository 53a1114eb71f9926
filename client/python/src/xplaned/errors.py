# SPDX-License-Identifier: Apache-2.0
"""What calls raise."""
from __future__ import annotations

import contextlib
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


_CLASSES = {"NOT_FOUND": NotFound, "INVALID_ARGUMENT": InvalidArgument, "UNAVAILABLE": Unavailable}


def error(code: str, message: str) -> Error:
    """The exception for a status."""
    return _CLASSES.get(code, Error)(code, message)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turns what gRPC raises into `Error`."""
    try:
        yield
    except grpc.RpcError as e:
        raise error(e.code().name, e.details() or "") from e
