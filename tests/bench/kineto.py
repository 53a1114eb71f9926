#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The import of a large trace of PyTorch beside memchr over its bytes, json, orjson and HTA, in one run.

usage: kineto.py XPLANECTL TRACE [--size MB] [--rounds N] [--python PYTHON]

TRACE (.json or .json.gz) is repeated to SIZE, one copy after the other in time, with fresh ids.  The
figures are the best of the rounds: seconds of the processor, and the peak of anonymous memory.  PYTHON
is one with orjson and HolisticTraceAnalysis of PyPI; without it these rows are missing.  Prints a
table in Markdown.
"""
import argparse
import ctypes
import gzip
import json
import mmap
import os
import re
import resource
import subprocess
import tempfile
import time

NUMBERS = re.compile(rb'"(ts|correlation|External id|External Id|id)": ?"?([0-9]+)')
PEERS = {
    "json": "import json, sys; json.load(open(sys.argv[1]))",
    "orjson": "import orjson, sys; orjson.loads(open(sys.argv[1], 'rb').read())",
    "HTA": "import sys; from hta.common.trace import Trace\n"
           "t = Trace(trace_files={0: sys.argv[1]}, trace_dir='/'); t.parse_traces(use_multiprocessing=False)",
}
NOTHING = {"json": "import json", "orjson": "import orjson", "HTA": "from hta.common.trace import Trace"}


def repeat(trace, path, size):
    data = (gzip.open if trace.endswith(".gz") else open)(trace, "rb").read()
    begin = data.index(b"[", data.index(b'"traceEvents"')) + 1
    end = json.JSONDecoder(strict=False).raw_decode(data.decode("latin1"), begin - 1)[1] - 1
    found = list(NUMBERS.finditer(data, begin, end))
    times = [int(m[2]) for m in found if m[1] == b"ts"]
    step, written, k = max(times) - min(times) + 1000, 0, 0
    with open(path, "wb") as f:
        f.write(data[:begin])
        while written < size:
            at, parts = begin, [b"," if k else b""]
            for m in found:
                number = int(m[2])
                parts += [data[at:m.start(2)], b"%d" % (number + k * (step if m[1] == b"ts" else 1000000) if number else 0)]
                at = m.end(2)
            written += f.write(b"".join(parts + [data[at:end]]))
            k += 1
        f.write(data[end:])


def cost(command):
    """(seconds of the processor, peak of anonymous memory in bytes)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process, peak = subprocess.Popen(command, stdout=subprocess.DEVNULL), 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
                peak = max([peak] + [int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon")])
        except OSError:
            pass
        time.sleep(0.005)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


def scan(path):
    """Seconds of the processor that memchr takes for the whole file."""
    memchr = ctypes.CDLL(None).memchr
    memchr.restype, memchr.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE) as m:
        view = (ctypes.c_char * len(m)).from_buffer(m)
        begin = time.process_time()
        memchr(ctypes.addressof(view), 1, len(m))  # no byte of JSON: none is found
        taken = time.process_time() - begin
        del view
    return taken


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("xplanectl")
    parser.add_argument("trace")
    parser.add_argument("--size", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "rank0.json")
        repeat(args.trace, path, args.size * 10**6)
        size = os.path.getsize(path)
        rows = {"scan": [], "xplanectl": []} | ({name: [] for name in PEERS} if args.python else {})
        for _ in range(args.rounds):
            rows["scan"].append((scan(path), 0))
            # Lines are counted when the import is done: nothing else is read.
            rows["xplanectl"].append(cost([args.xplanectl, "sql", path, "SELECT count(*) FROM lines", "-j", "1"]))
            for name in PEERS if args.python else ():
                start, _ = cost([args.python, "-c", NOTHING[name]])
                seconds, peak = cost([args.python, "-c", PEERS[name], path])
                rows[name].append((seconds - start, peak))
        print(f"{size / 1e6:.0f} MB of JSON; goal of memory: {size / 4 / 2**20 + 64:.0f} MiB\n")
        print("| | processor s | MB/s | times xplanectl | anonymous MiB |\n| --- | ---: | ---: | ---: | ---: |")
        ours = min(seconds for seconds, _ in rows["xplanectl"])
        for name, costs in rows.items():
            seconds, peak = min(s for s, _ in costs), min(p for _, p in costs)
            print(f"| {name} | {seconds:.2f} | {size / 1e6 / seconds:.0f} | {seconds / ours:.2f} | {peak / 2**20:.0f} |")


if __name__ == "__main__":
    main()
