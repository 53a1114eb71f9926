# SPDX-License-Identifier: Apache-2.0
"""Imports and requests of XProf's aggregators with lengths that are wrong."""

import random
import socket
import struct
import zlib

import wire_mutator
from harness import PATIENCE, Http2, check, equal
from test_odd_profiles import field

IMPORT = "/xplaned.v1.SessionService/ImportSession"
WORKER = "/xprof.pywrap.XprofAnalysisWorkerService/GetProfileData"


def import_file(d, name, claimed, parts, crc):
    """gRPC's status of an import of one file of `claimed` bytes in these parts."""
    with d.http2() as h:
        stream = h.request(IMPORT)
        file = field(1, "vm") + field(2, claimed) + wire_mutator.varint(3 << 3 | 5) + struct.pack("<I", crc) + field(4, ".xplane.pb")
        h.message(stream, field(1, name) + field(2, file), end=not parts)
        for i, part in enumerate(parts):
            h.message(stream, field(3, part), end=i == len(parts) - 1)
        status = h.result(stream)[0].get(b"grpc-status")
        return int(status) if status is not None else None


def test_lengths_of_imports(run):
    """An import whose file is longer or shorter than it says, or another one, is refused and leaves no session."""
    logdir = run.logdir("jax_sparse_45s")
    data = next((logdir / "plugins/profile/jax_sparse_45s").glob("*.xplane.pb")).read_bytes()
    n, crc, d = len(data), zlib.crc32(data), run.start("--no-prefetch", "--scan-interval=50ms", logdir=logdir)
    equal(import_file(d, "right", n, [data[:100], data[100:]], crc), 0, "a right import")
    for claimed in (0, 1, n - 1, n + 1, 2 * n, 1 << 31, 1 << 40, 1 << 63, (1 << 64) - 1):
        status = import_file(d, "wrong", claimed, [data[:100], data[100:]], crc)
        check(status not in (0, 2, 13, None), f"{claimed} bytes said, {n} sent: status {status}")
    for parts, text in (([], "nothing"), ([b""] * 100, "empty parts"), ([data, data], "the file twice"), ([data[:-1], b"\xff"], "another byte")):
        status = import_file(d, "wrong", n, parts, crc)
        check(status not in (0, 2, 13, None), f"{text}: status {status}")
    check(import_file(d, "wrong", n, [data], crc ^ 1) not in (0, 2, 13, None), "another checksum")
    equal(sorted(d.sessions()), ["jax_sparse_45s", "right"], "sessions")
    check(not (logdir / "plugins/profile/wrong").exists(), "a directory is left")
    d.answers()


def test_lengths_to_the_worker(run):
    """Requests to the listener for XProf's aggregators, damaged, and with prefixes that say other lengths."""
    logdir, path = run.logdir("jax_matmul_nopy"), run.dir / "worker"
    d = run.start("--no-prefetch", f"--xprof-worker=unix:{path}", f"--worker-dir={run.dir}/files", logdir=logdir)
    profile = next((logdir / "plugins/profile/jax_matmul_nopy").glob("*.xplane.pb"))
    good = field(1, field(1, str(profile)) + field(2, "overview_page"))

    def connect():
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE)
        s.connect(str(path))
        return Http2(s)

    with connect() as h:
        equal(h.call(WORKER, good)[0], 0, "a right request")
    chance = random.Random(run.parameter("SEED", 1, 1))
    for _ in range(run.parameter("REQUESTS", 15, 3000)):
        data = wire_mutator.mutate(good, chance)[:30_000]
        with connect() as h:
            code, text, _ = h.call(WORKER, data)
            check(code not in (2, 13, None), f"{data[:80]!r}: {code} {text}")
    for length in (0, 1, len(good) - 1, len(good) + 1, 1 << 20, 1 << 31, (1 << 32) - 1):
        with connect() as h:
            stream = h.request(WORKER)
            h.message(stream, good, length=length)
            status = h.result(stream)[0].get(b"grpc-status")
            check(status != b"0", f"{length} bytes said: status {status}")
    with connect() as h:
        equal(h.call(WORKER, good)[0], 0, "a right request afterwards")
    d.answers()


test_lengths_to_the_worker.whole_limit = 1800
