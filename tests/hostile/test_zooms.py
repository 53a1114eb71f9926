# SPDX-License-Identifier: Apache-2.0
"""Thousands of views of a trace on one connection, of which nobody waits for an answer."""

import collections
import http.client
import random
import struct
import threading

from harness import DATA_FRAME, END_STREAM, HEADERS, MIB, SETTINGS, WINDOW_UPDATE, answer_url, check, equal, hpack_decode

SESSION, TOOL = "jax_matmul_nopy", "trace_viewer@"
AT_ONCE = 100  # calls of gRPC


def windows(n):
    """Options of n views, most of them different."""
    chance = random.Random(n)
    out = []
    for _ in range(n):
        start = round(chance.random() * 200, 3)
        end = round(start + chance.choice((0.01, 1, 20, 400)) * chance.random() + 0.001, 3)
        out.append({"start_time_ms": str(start), "end_time_ms": str(end), "resolution": str(chance.choice((50, 500, 8000)))})
    return out


def url_of(options):
    return answer_url(SESSION, TOOL) + "".join(f"&{k}={v}" for k, v in options.items())


def one_by_one(run, logdir, views):
    """The views' answers by a daemon of its own, which is asked for one after the other."""
    d = run.start("--no-prefetch", logdir=logdir)
    c = http.client.HTTPConnection("127.0.0.1", d.http, timeout=30)
    out = []
    for options in views:
        c.request("GET", url_of(options))
        r = c.getresponse()
        out.append(r.read())
        equal(r.status, 200, f"{options}: {out[-1][:200]}")
    c.close()
    d.stop()
    check(len(set(out)) > len(out) // 10, f"{len(set(out))} answers differ")
    return out


def read_answer(f):
    """(status, body) of the next answer on an HTTP connection."""
    status = f.readline().split()
    check(len(status) > 1, "the connection was closed")
    length = None
    while (line := f.readline().strip()):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    check(length is not None, "an answer without Content-Length")
    return int(status[1]), f.read(length)


def over_http(d, views, expected):
    text = b"".join(b"GET " + url_of(v).encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" for v in views)
    with d.connect(timeout=60) as s, s.makefile("rb") as f:
        sender = threading.Thread(target=s.sendall, args=(text,), daemon=True)
        sender.start()
        for i, answer in enumerate(expected):
            status, body = read_answer(f)
            check((status, body) == (200, answer), f"view {i}, {views[i]}: HTTP {status}, {len(body)} bytes for {len(answer)}")
        sender.join()


def field(number, data):
    """A field of protobuf with bytes, whose length is below 16384."""
    n = len(data)
    return bytes([number << 3 | 2]) + (bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7])) + data


def request_of(options):
    entries = b"".join(field(4, field(1, k.encode()) + field(2, v.encode())) for k, v in options.items())
    return field(1, SESSION.encode()) + field(3, TOOL.encode()) + entries


def over_grpc(d, views, expected):
    """As many calls at once as AT_ONCE says, each answer compared when its call is over."""
    with d.http2(60) as h:
        h.send(SETTINGS, 0, 0, struct.pack(">HI", 4, 16 * MIB))  # windows of streams; that of the connection below
        h.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", 512 * MIB))
        streams, data, begun, over = {}, collections.defaultdict(bytearray), 0, 0
        while over < len(views):
            while begun < len(views) and begun - over < AT_ONCE:
                stream = h.request("/xplaned.v1.AnalysisService/GetToolData")
                h.message(stream, request_of(views[begun]))
                streams[stream] = begun
                begun += 1
            got = h.frame()
            check(got is not None, f"closed after {over} answers")
            kind, flags, stream, payload = got
            if kind == DATA_FRAME:
                data[stream] += payload
                if payload:
                    h.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload)))
            if kind in (DATA_FRAME, HEADERS) and flags & END_STREAM:
                status = dict(hpack_decode(payload)).get(b"grpc-status") if kind == HEADERS else None
                i = streams.pop(stream)
                equal(status, b"0", f"view {i}")
                check(data.pop(stream).find(expected[i]) >= 0, f"view {i}, {views[i]}: another answer")
                over += 1


def test_zooms_on_one_connection(run):
    """5,000 views over HTTP and as many over gRPC: each answer is right and in its order, memory is bounded, and others
    are served."""
    logdir = run.logdir(SESSION)
    views = windows(run.parameter("ZOOMS", 2000, 5000))
    expected = one_by_one(run, logdir, views)
    for over in (over_http, over_grpc):
        d = run.start("--answer-cache=4MiB", logdir=logdir)
        d.answers()
        before = d.rss_anon()
        d.peak = 0
        over(d, views, expected)
        check(d.peak - before < 128 * MIB, f"{over.__name__}: {(d.peak - before) // MIB} MiB for {len(views)} views")
        d.answers()


test_zooms_on_one_connection.whole_limit = 600
