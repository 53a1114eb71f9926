#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures running programs through a daemon, tells how each host fares, and reads the overview.

    python3 -m grpc_tools.protoc -I proto --python_out=stubs --grpc_python_out=stubs proto/xplaned/v1/*.proto
    PYTHONPATH=stubs capture.py SERVER TARGET...          capture.py 127.0.0.1:50551 host1:9999 host2:9999

Needs grpcio and grpcio-tools from PyPI; `stubs` is a directory that exists.
"""
import json
import sys

import grpc
from xplaned.v1 import analysis_pb2, analysis_pb2_grpc, capture_pb2, capture_pb2_grpc


def name_of(state):
    return capture_pb2.HostState.Name(state).removeprefix("HOST_STATE_").lower()


def capture(channel, targets, duration_ms):
    """The session's name; prints a line whenever a host moves on."""
    stub = capture_pb2_grpc.CaptureServiceStub(channel)
    request = capture_pb2.CaptureRequest(targets=targets, duration_ms=duration_ms)
    known, session = {}, ""
    for progress in stub.Capture(request, timeout=600):
        session = progress.session or session
        for host in progress.hosts:
            if known.get(host.target) != host.state:
                known[host.target] = host.state
                print(f"{host.target}: {name_of(host.state)} {host.reason}".rstrip(), file=sys.stderr)
    return session


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    server, targets = sys.argv[1], sys.argv[2:]
    with grpc.insecure_channel(server) as channel:
        try:
            session = capture(channel, targets, 1000)
            overview = analysis_pb2_grpc.AnalysisServiceStub(channel).GetToolData(
                analysis_pb2.GetToolDataRequest(session=session, tool="overview_page"), timeout=60)
        except grpc.RpcError as e:
            sys.exit(f"{e.code().name}: {e.details()}")
    print(session, f"{len(json.loads(overview.data))} tables in its overview")


if __name__ == "__main__":
    main()
