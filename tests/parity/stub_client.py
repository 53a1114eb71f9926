#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client made of nothing but stubs that grpc_tools generates from our .proto files, in one process with XProf's own.

    stub_client.py --build BUILD

Asks a daemon over tests/data for everything there is: sessions, tools, every answer of every host and of all together, whole and in
pieces, op statistics, watches, statistics, health, and errors with their details.  Answers are the bytes that xplanectl prints.
"""
import argparse
import glob
import os
import sys
import tempfile

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
# First on purpose: our stubs must not collide with these.
from xprof.protobuf import memory_profile_pb2, op_stats_pb2, overview_page_pb2  # noqa: F401

import daemon

TIMEOUT_S = 90
PIECE = 256 * 1024


def stubs(out):
    """Our own services as Python modules: session, analysis and server, each with its _grpc."""
    from grpc_tools import protoc
    root = str(daemon.HERE.parent.parent / "proto")
    paths = sorted(glob.glob(os.path.join(root, "xplaned", "v1", "*.proto")))
    if protoc.main(["protoc", f"-I{root}", f"--python_out={out}", f"--grpc_python_out={out}", *paths]):
        sys.exit("stub_client: cannot generate stubs")
    sys.path.insert(0, out)
    import xplaned.v1.analysis_pb2 as analysis, xplaned.v1.analysis_pb2_grpc as analysis_grpc
    import xplaned.v1.server_pb2 as server, xplaned.v1.server_pb2_grpc as server_grpc
    import xplaned.v1.session_pb2 as session, xplaned.v1.session_pb2_grpc as session_grpc
    return session, session_grpc, analysis, analysis_grpc, server, server_grpc


class Client:
    def __init__(self, d, count, modules):
        self.d, self.count = d, count
        self.session, session_grpc, self.analysis, analysis_grpc, self.server, server_grpc = modules
        self.channel = grpc.insecure_channel(d.address, daemon.ANY_SIZE)
        self.sessions = session_grpc.SessionServiceStub(self.channel)
        self.answers = analysis_grpc.AnalysisServiceStub(self.channel)
        self.about = server_grpc.ServerServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def fails(self, name, code, call):
        """The RpcError, after checking its code; None when there was none."""
        try:
            call()
        except grpc.RpcError as e:
            self.count.check(name, e.code() == code and e.details(), f"{e.code()} {e.details()}")
            return e
        self.count.check(name, False, "no error")
        return None

    # ---- sessions ----

    def list_all(self):
        found, token = [], ""
        while True:
            page = self.sessions.ListSessions(
                self.session.ListSessionsRequest(page_size=5, page_token=token, with_hosts=True), timeout=TIMEOUT_S)
            self.count.check("a page is no longer than asked", len(page.sessions) <= 5)
            found += page.sessions
            token = page.next_page_token
            if not token:
                return found

    def check_sessions(self):
        found = self.list_all()
        names = [s.name for s in found]
        self.count.check("sessions are ordered, each once", names == sorted(set(names)) and len(names) > 10, names)
        for s in found:
            one = self.sessions.GetSession(self.session.GetSessionRequest(session=s.name), timeout=TIMEOUT_S)
            self.count.check(f"{s.name}: hosts", [h.name for h in one.hosts] == [h.name for h in s.hosts] and one.hosts)
            self.count.check(f"{s.name}: sizes", one.bytes == sum(h.bytes for h in one.hosts) and one.host_count == len(one.hosts))
        some = self.sessions.ListSessions(self.session.ListSessionsRequest(prefix="cpu/"), timeout=TIMEOUT_S)
        self.count.check("a prefix", 0 < len(some.sessions) < len(found) and all(s.name.startswith("cpu/") for s in some.sessions))
        self.fails("an unknown session", grpc.StatusCode.NOT_FOUND,
                   lambda: self.sessions.GetSession(self.session.GetSessionRequest(session="nowhere"), timeout=TIMEOUT_S))
        return found

    def check_watch(self, names):
        stream = self.sessions.WatchSessions(self.session.WatchSessionsRequest(), timeout=TIMEOUT_S)
        seen = []
        for event in stream:
            if event.kind == self.session.SessionEvent.KIND_SYNCED:
                break
            if event.kind == self.session.SessionEvent.KIND_PRESENT:
                seen.append(event.session.name)
        stream.cancel()
        self.count.check("a watch begins with what is there", sorted(seen) == names, seen)

    # ---- answers ----

    def check_answer(self, tool, session, hosts):
        name = f"{tool} {session} {','.join(hosts) or 'all'}"
        request = self.analysis.GetToolDataRequest(session=session, tool=tool, hosts=hosts, allow_large=True)
        expected = self.d.tool(tool, session, hosts)
        try:
            got = self.answers.GetToolData(request, timeout=TIMEOUT_S)
        except grpc.RpcError as e:
            self.count.check(name, expected is None, f"{e.code()} {e.details()}")
            return None
        self.count.check(name, got.data == expected and got.total_bytes == len(got.data))
        self.count.check(f"{name}: header", got.content_type and got.source in (
            self.analysis.ToolData.MEMORY, self.analysis.ToolData.STORE, self.analysis.ToolData.COMPUTED))
        pieces = list(self.answers.StreamToolData(request, timeout=TIMEOUT_S))
        self.count.check(f"{name}: in pieces", b"".join(p.data for p in pieces) == got.data
                         and all(len(p.data) <= PIECE for p in pieces) and pieces[0].content_type == got.content_type
                         and not any(p.content_type for p in pieces[1:]) and pieces[0].total_bytes == got.total_bytes)
        return got

    def check_op_stats(self, session):
        request = self.analysis.GetOpStatsRequest(session=session, allow_large=True)
        try:
            got = self.answers.GetOpStats(request, timeout=TIMEOUT_S)
        except grpc.RpcError as e:
            self.count.check(f"op stats {session}", e.code() == grpc.StatusCode.DATA_LOSS, e.details())
            return
        stats = op_stats_pb2.OpStats.FromString(got.data)  # XProf's own class
        self.count.check(f"op stats {session}", stats.HasField("run_environment") and got.total_bytes == len(got.data))

    def check_answers(self, sessions):
        tools = self.answers.ListTools(self.analysis.ListToolsRequest(), timeout=TIMEOUT_S).tools
        self.count.check("six tools", len(tools) >= 6 and all(t.content_type for t in tools), [t.name for t in tools])
        one_host = {t.name: t.one_host for t in tools}
        filled = 0
        for s in sessions:
            self.check_op_stats(s.name)
            hosts = [h.name for h in s.hosts]
            for tool in one_host:
                asked = [[h] for h in hosts]
                if not one_host[tool]:
                    asked += [[], hosts] if len(hosts) > 1 else [[]]
                filled += sum(bool(self.check_answer(tool, s.name, a)) for a in asked)
        self.count.check("most questions have answers", filled > len(sessions) * 4, filled)

    def check_errors(self, sessions):
        ask = self.answers.GetToolData
        request = self.analysis.GetToolDataRequest
        name = sessions[0].name
        self.fails("an unknown session", grpc.StatusCode.NOT_FOUND,
                   lambda: ask(request(session="no", tool="op_profile"), timeout=TIMEOUT_S))
        self.fails("an unknown host", grpc.StatusCode.NOT_FOUND,
                   lambda: ask(request(session=name, tool="op_profile", hosts=["no"]), timeout=TIMEOUT_S))
        self.fails("a path for a name", grpc.StatusCode.NOT_FOUND,
                   lambda: ask(request(session="../../../etc", tool="op_profile"), timeout=TIMEOUT_S))
        e = self.fails("an unknown tool", grpc.StatusCode.INVALID_ARGUMENT,
                       lambda: ask(request(session=name, tool="no"), timeout=TIMEOUT_S))
        self.count.check("the message lists the tools", e and "op_profile" in e.details())
        self.fails("an unknown option", grpc.StatusCode.INVALID_ARGUMENT,
                   lambda: ask(request(session=name, tool="op_profile", options={"no": "1"}), timeout=TIMEOUT_S))
        several = next(s for s in sessions if len(s.hosts) > 1)
        e = self.fails("one tool, one host", grpc.StatusCode.INVALID_ARGUMENT,
                       lambda: ask(request(session=several.name, tool="memory_profile"), timeout=TIMEOUT_S))
        self.count.check("the message names the hosts", e and several.hosts[1].name in e.details())
        e = self.fails("a broken profile", grpc.StatusCode.DATA_LOSS,
                       lambda: ask(request(session="cpu/jax_2proc_samehost", tool="overview_page"), timeout=TIMEOUT_S))
        status = rpc_status.from_call(e) if e else None
        info = error_details_pb2.ErrorInfo()
        self.count.check("its details", status is not None and status.message == e.details()
                         and any(d.Unpack(info) for d in status.details) and info.domain == "xplaned")

    # ---- the rest ----

    def check_server(self):
        stats = self.about.GetServerStats(self.server.GetServerStatsRequest(), timeout=TIMEOUT_S)
        self.count.check("statistics", stats.version and stats.requests.total > 0 and stats.rpc.calls > 0
                         and stats.cache.from_memory > 0 and stats.cache.computed > 0)
        serving = health_pb2.HealthCheckResponse.SERVING
        for service in ["", "xplaned.v1.AnalysisService", "xplaned.v1.SessionService", "xplaned.v1.ServerService"]:
            got = self.health.Check(health_pb2.HealthCheckRequest(service=service), timeout=TIMEOUT_S)
            self.count.check(f"health of '{service}'", got.status == serving)
        every = self.health.List(health_pb2.HealthListRequest(), timeout=TIMEOUT_S)
        self.count.check("health of all", all(s.status == serving for s in every.statuses.values()) and "" in every.statuses)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    count = daemon.Count()
    with tempfile.TemporaryDirectory() as out, daemon.running(args.build) as d:
        client = Client(d, count, stubs(out))
        sessions = client.check_sessions()
        client.check_watch([s.name for s in sessions])
        client.check_answers(sessions)
        client.check_errors(sessions)
        client.check_server()
    count.finish()


if __name__ == "__main__":
    main()
