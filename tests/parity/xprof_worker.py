#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real XProf in a process of its own, asked many times.

As a module: `with XProf() as x: status, data = x.ask(tool, paths, options)`; status is "answer", "none" (XProf has no
answer), "crash" or "timeout".  A process that died is replaced.  Each request gets a fresh run directory, so that no
answer comes from a cache that another request filled.
As a program it is that process: questions on standard input, one JSON line each; on standard output the size as a
little-endian int64, -1 for none, and then that many bytes.

Without worker stubs XProf answers a session of several hosts in process ("legacy" in its log); with `worker=True` it goes
through a gRPC worker in the same process, as its own server does.  The two differ: the first leaves out the first and last
of more than five steps of each host, the second does not.
"""
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from daemon import free_port

NEEDS_HOST = {"megascale_stats"}  # gives nothing without the option, which the pages always send


class XProf:
    def __init__(self, worker=False, timeout_s=120, python=sys.executable, scratch=None):
        self.worker, self.timeout_s, self.python, self.scratch = worker, timeout_s, python, scratch
        self.process, self.crashes, self.timeouts, self.asked = None, 0, 0, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", GRPC_VERBOSITY="NONE")
        args = [self.python, os.path.abspath(__file__)] + (["--worker"] if self.worker else [])
        if self.scratch:
            args += ["--scratch", self.scratch]
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)

    def close(self):
        p, self.process = self.process, None
        if p is None:
            return
        p.stdin.close()
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
        p.stdout.close()

    def restart(self):
        """A new process has other hash seeds."""
        self.close()

    def ask(self, tool, paths, options=None):
        """(status, bytes or None)"""
        self.asked += 1
        if self.process is None:
            self.start()
        options = {**({"host": "ALL_HOSTS"} if tool in NEEDS_HOST else {}), **(options or {})}
        request = json.dumps({"tool": tool, "paths": [os.path.abspath(p) for p in paths], "options": options})
        try:
            self.process.stdin.write(request.encode() + b"\n")
            self.process.stdin.flush()
            deadline = time.monotonic() + self.timeout_s
            size, = struct.unpack("<q", self._read(8, deadline))
            if size < 0:
                return "none", None
            return "answer", self._read(size, deadline)
        except TimeoutError:
            self.timeouts += 1
            self._kill()
            return "timeout", None
        except (OSError, EOFError):
            self.crashes += 1
            self._kill()
            return "crash", None

    def _kill(self):
        p, self.process = self.process, None
        p.kill()
        p.wait()
        p.stdout.close()
        try:
            p.stdin.close()
        except OSError:
            pass

    def _read(self, n, deadline):
        out = bytearray()
        fd = self.process.stdout.fileno()
        while len(out) < n:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(fd, min(n - len(out), 1 << 20))
            if not piece:
                raise EOFError
            out += piece
        return bytes(out)


def run_directory(top, paths):
    run = os.path.join(top, "plugins", "profile", "run")
    os.makedirs(run)
    out = []
    for p in paths:
        to = os.path.join(run, os.path.basename(p))
        try:
            os.link(p, to)
        except OSError:
            shutil.copy(p, to)
        out.append(to)
    return out


def answer(convert, scratch, request):
    with tempfile.TemporaryDirectory(dir=scratch) as top:
        paths = run_directory(top, request["paths"])
        params = {"use_saved_result": False, **request["options"]}
        if request["tool"].startswith("trace_viewer"):
            params["trace_viewer_options"] = {k: {"true": True, "false": False}.get(v, v) for k, v in request["options"].items()}
            params["trace_viewer_options"].setdefault("resolution", "8000")
        if request["tool"] == "graph_viewer":
            convert.xspace_to_tool_names(paths)  # writes the programs that the tool reads
            params = {"graph_viewer_options": request["options"]}
        if request["tool"] == "memory_viewer":
            convert.xspace_to_tool_names(paths)
        if request["tool"] in ("inference_profile", "event_time_fraction_analyzer"):
            # Its Python passes on no columns of the one, and does not know the other.
            from xprof.convert import _pywrap_profiler_plugin as plugin
            data, ok = plugin.xspace_to_tools_data(paths, request["tool"], params)
            return data if ok else None
        data, _ = convert.xspace_to_tool_data(paths, request["tool"], params)
        keep = request["options"].get("keep_op_stats")
        if keep:
            shutil.copy(os.path.join(os.path.dirname(paths[0]), "ALL_HOSTS.op_stats_v2.pb"), keep)
    return data.encode() if isinstance(data, str) else data


def main():
    scratch = sys.argv[sys.argv.index("--scratch") + 1] if "--scratch" in sys.argv else None
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)          # what the library prints is not an answer
    from xprof.convert import _pywrap_profiler_plugin as native
    from xprof.convert import raw_to_tool_data as convert
    if "--worker" in sys.argv:
        port = free_port()
        native.initialize_stubs(f"127.0.0.1:{port}")
        native.start_grpc_server(port, 2)
    for line in sys.stdin.buffer:
        try:
            data = answer(convert, scratch, json.loads(line))
        except Exception as e:  # XProf raises of many kinds; all mean that it has no answer
            print(e, file=sys.stderr)
            data = None
        view = memoryview(struct.pack("<q", -1) if data is None else struct.pack("<q", len(data)) + data)
        while view:
            view = view[os.write(out.fileno(), view):]
    os._exit(0)            # its threads need no farewell


if __name__ == "__main__":
    main()
