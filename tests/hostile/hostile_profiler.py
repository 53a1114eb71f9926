# SPDX-License-Identifier: Apache-2.0
"""A server of gRPC that answers every call with what a client must not hold, or not believe."""

import contextlib
import os
import socket
import struct
import threading

from harness import ACK, CONTINUATION, DATA_FRAME, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, Http2, hpack, quiet_close

# :status 200, content-type application/grpc
ANSWER_HEADERS = bytes([0x88, 0x0F, 0x10, 16]) + b"application/grpc"
INITIAL_WINDOW = 4


class HostileProfiler:
    """Listens until it is closed.  Answers with a message that has `announced` bytes, and sends as much of it as HTTP/2's
    windows let it, in frames of `frame` bytes, `sent` so far; or with headers that never end (`endless_headers`).  Nothing
    comes before `go` is set, which it is unless `waits`.  One that `hides` begins with a frame of a call never made.  With
    `messages` it sends these and the status OK instead."""

    def __init__(self, announced=0, frame=16384, endless_headers=False, path=None, waits=False, hides=False, messages=None):
        self.messages, self.calls = messages, 0
        self.announced, self.frame, self.endless_headers, self.hides = announced, frame, endless_headers, hides
        self.go, self.sent = threading.Event(), 0
        if not waits:
            self.go.set()
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(os.fspath(path))
            self.listener.listen()
            self.address = f"unix:{path}"
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.go.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        quiet_close(self.listener)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                _Connection(self, self.listener.accept()[0])


class _Connection:
    def __init__(self, server, sock):
        self.server, self.sock = server, sock
        self.lock, self.changed = threading.Lock(), threading.Condition()
        self.initial, self.windows = 65535, {0: 65535}  # by stream; 0 is the connection's
        threading.Thread(target=self._read, daemon=True).start()

    def _send(self, data):
        with self.lock:
            self.sock.sendall(data)

    def _read(self):
        with contextlib.suppress(OSError), self.sock.makefile("rb") as f:
            f.read(24)
            self._send(Http2.bytes_of(SETTINGS, 0, 0))
            while len(head := f.read(9)) == 9:
                payload = f.read(int.from_bytes(head[:3], "big"))
                with self.changed:
                    self._take(head[3], head[4], int.from_bytes(head[5:], "big"), payload)
                    self.changed.notify_all()
        with self.changed:
            self.windows = {}
            self.changed.notify_all()
        quiet_close(self.sock)

    def _take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                key, value = struct.unpack_from(">HI", payload, at)
                if key == INITIAL_WINDOW:
                    for s in self.windows.keys() - {0}:
                        self.windows[s] += value - self.initial
                    self.initial = value
            self._send(Http2.bytes_of(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._send(Http2.bytes_of(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE and stream in self.windows:
            self.windows[stream] += int.from_bytes(payload, "big")
        elif kind == RST_STREAM:
            self.windows.pop(stream, None)
        elif kind == HEADERS:
            self.windows[stream] = self.initial
            threading.Thread(target=self._answer, args=(stream,), daemon=True).start()

    def _answer(self, stream):
        server = self.server
        with contextlib.suppress(OSError):
            if server.hides:
                self._send(Http2.bytes_of(DATA_FRAME, 0, stream + 98))
            self._send(Http2.bytes_of(HEADERS, 0 if server.endless_headers else END_HEADERS, stream, ANSWER_HEADERS))
            server.go.wait()
            if server.messages is not None:
                server.calls += 1
                for message in server.messages:
                    self._send(Http2.bytes_of(DATA_FRAME, 0, stream, struct.pack(">BI", 0, len(message)) + message))
                self._send(Http2.bytes_of(HEADERS, END_HEADERS | END_STREAM, stream, hpack([("grpc-status", "0")])))
                return
            if server.endless_headers:
                more = Http2.bytes_of(CONTINUATION, 0, stream, (b"\0\x08" + b"x" * 8 + b"\x64" + b"z" * 100) * 100) * 10
                while self.windows:
                    self._send(more)
                    server.sent += len(more)
            data = struct.pack(">BI", 0, server.announced)
            while room := self._room(stream, 64 * 16384):
                data += bytes(room - len(data)) if len(data) < room else b""
                part, data = data[:room], data[room:]
                self._send(b"".join(Http2.bytes_of(DATA_FRAME, 0, stream, part[at : at + server.frame])
                                    for at in range(0, room, server.frame)))
                server.sent += room

    def _room(self, stream, most):
        """Waits until the windows have room and takes it; 0 when the stream is over."""
        with self.changed:
            self.changed.wait_for(lambda: stream not in self.windows or min(self.windows[0], self.windows[stream]) > 0)
            if stream not in self.windows:
                return 0
            room = min(most, self.windows[0], self.windows[stream])
            for s in (0, stream):
                self.windows[s] -= room
            return room
