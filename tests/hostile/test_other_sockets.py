# SPDX-License-Identifier: Apache-2.0
"""The floods of frames that gRPC over TCP withstands, over TLS and over a socket of the file system."""

import socket
import ssl

from harness import MIB, PATIENCE, Http2, check, make_certificate, wait_for
from test_connections import FLOODS, flood


def floods(run, d, connect, *options, stalls=False):
    """All floods over connect(), which makes a connection; others are served meanwhile."""
    d.http2 = lambda: Http2(connect())
    others = d.ctl

    def answers(seconds):
        done = others(*options, "--timeout-ms", str(seconds * 1000), "sessions")
        check(done.returncode == 0, f"gRPC during the attack: {done.stderr!r}")

    d.answers = answers
    chosen = FLOODS if not run.short else FLOODS[::3]
    for name, make in chosen:
        for reads in (False, True):
            closed, more = flood(d, make, reads)
            # A client that reads nothing stalls when the small buffers of such a socket are full, before it has sent too much.
            check(closed or stalls and not reads, f"{name}: the connection is still open")
            check(more < 100, f"{name}: {more} MiB")
    wait_for(lambda: d.rss_anon() < 64 * MIB, 30, "the memory is given back")


def test_floods_over_tls(run):
    cert, key = make_certificate(run)
    d = run.start(f"--tls-cert={cert}", f"--tls-key={key}", logdir=run.logdir("jax_matmul_nopy"))
    context = ssl.create_default_context(cafile=cert)
    context.set_alpn_protocols(["h2"])

    def connect():
        return context.wrap_socket(socket.create_connection(("127.0.0.1", d.grpc), PATIENCE), server_hostname="localhost")

    floods(run, d, connect, "--tls-roots", cert, "--tls-name", "localhost")


def test_floods_over_unix(run):
    path = run.dir / "socket"
    d = run.start(f"--listen=unix:{path}", logdir=run.logdir("jax_matmul_nopy"))

    def connect():
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE)
        s.connect(str(path))
        return s

    floods(run, d, connect, stalls=True)


for test in (test_floods_over_tls, test_floods_over_unix):
    test.slow, test.limit, test.whole_limit = True, 240, 900
