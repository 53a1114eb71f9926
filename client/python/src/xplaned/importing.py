# SPDX-License-Identifier: Apache-2.0
"""Imports: files sent to the daemon as one session."""
from __future__ import annotations

import os
import pathlib
import queue
import zlib
from typing import TYPE_CHECKING, BinaryIO, Iterator, List, Optional, Sequence, Tuple, Union

from .errors import error, translated
from .v1 import session_pb2

if TYPE_CHECKING:
    from .client import Client

PathLike = Union[str, "os.PathLike[str]"]
_PIECE = 1 << 20  # bytes in a message; the daemon takes up to 3 MiB
_SUFFIXES = (*(name + packed for name in (".xplane.pb", ".ireeprof", ".pt.trace.json") for packed in ("", ".gz", ".zst", ".zstd")),
             ".ireeperf.jsonl")


def profiles(paths: Sequence[PathLike]) -> List[Tuple[pathlib.Path, str, str]]:
    """Files as given, and the profiles in directories as given: path, host's name, suffix."""
    found = []
    for path in map(pathlib.Path, paths):
        files = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES)) if path.is_dir() else [path]
        if not files:
            raise FileNotFoundError(f"{path}: no profiles in this directory")
        for file in files:
            suffix = max((s for s in _SUFFIXES if file.name.endswith(s)), key=len, default="")
            found.append((file, file.name[:len(file.name) - len(suffix)] if suffix else file.name, suffix))
    return found


def _sum_of(file: BinaryIO) -> Tuple[int, int]:
    crc = length = 0
    while piece := file.read(_PIECE):
        crc = zlib.crc32(piece, crc)
        length += len(piece)
    return crc, length


class _Upload:
    """The two sides of the call: gRPC takes requests on a thread of its own while `run` reads what the daemon answers."""

    def __init__(self, session: str, files: List[Tuple[pathlib.Path, str, str]]) -> None:
        self._session = session
        self._files = files
        self._offsets: "queue.Queue[Optional[int]]" = queue.Queue()
        self._failed: Optional[Exception] = None

    def requests(self) -> Iterator[session_pb2.ImportSessionRequest]:
        # gRPC swallows what a generator raises: `run` raises it again.
        try:
            session = self._session
            for path, host, suffix in self._files:
                with open(path, "rb") as file:
                    yield from self._file(session, file, host, suffix)
                session = ""  # only the first message names it
        except Exception as e:
            self._failed = e
            raise

    def _file(self, session: str, file: BinaryIO, host: str, suffix: str) -> Iterator[session_pb2.ImportSessionRequest]:
        crc, length = _sum_of(file)
        yield session_pb2.ImportSessionRequest(
            session=session, file=session_pb2.ImportSessionRequest.File(host=host, bytes=length, crc32=crc, suffix=suffix))
        offset = self._offsets.get()
        if offset is None:
            return
        file.seek(offset)
        while piece := file.read(_PIECE):
            yield session_pb2.ImportSessionRequest(data=piece)

    def run(self, client: "Client") -> str:
        name = ""
        try:
            with translated():
                for answer in client._sessions.ImportSession(self.requests(), **client._call(timeout=False)):
                    if answer.HasField("imported"):
                        name = answer.imported.session
                    else:
                        self._offsets.put(answer.offset)
        except Exception:
            if self._failed is not None:
                raise self._failed
            raise
        finally:
            self._offsets.put(None)
        if not name:
            raise error("UNKNOWN", "the daemon did not say what the session is called")
        return name


def upload(client: "Client", paths: Sequence[PathLike], session: str) -> str:
    """Sends the profiles; returns the session's name."""
    return _Upload(session, profiles(paths)).run(client)
