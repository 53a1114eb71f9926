# SPDX-License-Identifier: Apache-2.0
"""A daemon of one's own, which ends with this process."""
from __future__ import annotations

import errno
import importlib.util
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Any, Optional, Sequence

from .client import Client, connect
from .errors import Unavailable
from .importing import PathLike

# Ends the daemon when its standard input does, which is when the process that holds the other end is gone, however it went.
_WRAPPER = """exec 3<&0
"$@" 3<&- </dev/null & daemon=$!
{ read -r _ <&3; kill "$daemon"; } 2>/dev/null & reader=$!
wait "$daemon"; status=$?
kill "$reader" 2>/dev/null
exit "$status"
"""
_STOP_S = 15
_BUCKETS = ("s3://", "gs://")


def program() -> str:
    """xplaned: of the wheel that this package came with, or of $PATH."""
    spec = importlib.util.find_spec("xplaned_programs")
    if spec and spec.submodule_search_locations:
        inside = pathlib.Path(spec.submodule_search_locations[0]) / "bin" / "xplaned"
        if inside.exists():
            return str(inside)
    found = shutil.which("xplaned")
    if not found:
        raise FileNotFoundError("no program xplaned on PATH, and the wheel with the programs is not installed")
    return found


class PrivateClient(Client):
    """A client whose daemon is its own: `close` ends it."""

    def __init__(self, channel: Any, *, timeout: float, process: "subprocess.Popen[bytes]", place: Any) -> None:
        super().__init__(channel, timeout=timeout)
        self._process = process
        self._place = place

    def close(self) -> None:
        """Closes the connection and ends the daemon."""
        super().close()
        _stop(self._process)
        self._place.cleanup()


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_until_ready(process: "subprocess.Popen[bytes]", notices: socket.socket, log: pathlib.Path, timeout: float) -> None:
    """Waits for READY=1, as systemd does."""
    end = time.monotonic() + timeout
    notices.settimeout(0.1)
    while time.monotonic() < end:
        try:
            if b"READY=1" in notices.recv(4096).split(b"\n"):
                return
        except socket.timeout:
            pass
        if process.poll() is not None:
            break
    said = " ".join(log.read_text(errors="replace").split("\n")[-4:]).strip()
    raise Unavailable("UNAVAILABLE", "xplaned did not start" + (f": {said}" if said else ""))


def start(logdir: PathLike, *, args: Sequence[str] = (), timeout: float = 300.0, start_timeout: float = 60.0,
          xplaned: Optional[PathLike] = None) -> PrivateClient:
    """Starts a daemon over a directory of profiles, for this process alone, and connects to it.

    It listens on a socket in a private directory, serves no HTTP, and ends with `close`, `with`, or this process.  args are further
    settings of xplaned.  What it makes is kept in the user's cache as by any other daemon.  A directory that is not there is a
    FileNotFoundError: a daemon that is given one makes it, and has no sessions then.
    """
    profiles = os.path.expanduser(os.fspath(logdir))
    if not profiles.startswith(_BUCKETS) and not os.path.exists(profiles):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), profiles)
    place = tempfile.TemporaryDirectory(prefix="xplaned-")
    top = pathlib.Path(place.name)
    log = top / "log"
    command = [str(xplaned) if xplaned else program(), "--logdir", profiles, "--listen", f"unix:{top}/socket",
               "--http", "off", *args]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices, open(log, "wb") as out:
            notices.bind(str(top / "notices"))
            process = subprocess.Popen(["/bin/sh", "-c", _WRAPPER, "sh", *command], stdin=subprocess.PIPE, stdout=out, stderr=out,
                                       env={**os.environ, "NOTIFY_SOCKET": str(top / "notices")})
            try:
                _wait_until_ready(process, notices, log, start_timeout)
            except BaseException:
                _stop(process)
                raise
    except BaseException:
        place.cleanup()
        raise
    client = connect(f"unix:{top}/socket", timeout=timeout)
    return PrivateClient(client._channel, timeout=timeout, process=process, place=place)
