#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that knows nothing of our schemas: it learns them from the daemon itself, by server reflection.

    reflection_client.py --build BUILD

Through v1alpha with the packaged grpcio-reflection, and through v1, which has the same messages in another package.  Then every
method is called with messages made from what was learned, and every answer compared with xplanectl's.
"""
import argparse

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import daemon

TIMEOUT_S = 90
OWN = ["xplaned.v1.AnalysisService", "xplaned.v1.CaptureService", "xplaned.v1.ServerService", "xplaned.v1.SessionService",
       "tensorflow.ProfileAnalysis"]
SERVICES = OWN + ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]


def ask_v1(channel, *questions):
    """The answers of the v1 method, in order, on one stream."""
    method = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                   request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                                   response_deserializer=reflection_pb2.ServerReflectionResponse.FromString)
    return list(method(iter(questions), timeout=TIMEOUT_S))


class Caller:
    """Calls methods by name, with keyword arguments for the request's fields."""

    def __init__(self, channel, pool):
        self.channel, self.pool = channel, pool

    def method(self, service, name):
        return self.pool.FindServiceByName(service).FindMethodByName(name)

    def make(self, descriptor, fields):
        message = message_factory.GetMessageClass(descriptor)()
        for key, value in fields.items():
            if isinstance(value, list):
                getattr(message, key).extend(value)
            elif isinstance(value, dict):
                getattr(message, key).update(value)
            else:
                setattr(message, key, value)
        return message

    def call(self, service, name, /, **fields):
        m = self.method(service, name)
        path = f"/{service}/{name}"
        serialize = lambda request: request.SerializeToString()  # noqa: E731
        parse = message_factory.GetMessageClass(m.output_type).FromString
        request = self.make(m.input_type, fields)
        if m.server_streaming:
            return self.channel.unary_stream(path, serialize, parse)(request, timeout=TIMEOUT_S)
        return self.channel.unary_unary(path, serialize, parse)(request, timeout=TIMEOUT_S)


def check_learning(count, channel):
    """Both versions tell the same; returns a caller over a pool that knows only what the server said."""
    database = ProtoReflectionDescriptorDatabase(channel)
    listed = sorted(database.get_services())
    count.check("v1alpha lists the services", listed == sorted(SERVICES), listed)
    request = reflection_pb2.ServerReflectionRequest
    answers = ask_v1(channel, request(list_services="*"), *(request(file_containing_symbol=s) for s in OWN),
                     request(file_containing_symbol="no.such.Thing"), request(file_by_filename="no.proto"))
    names = sorted(s.name for s in answers[0].list_services_response.service)
    count.check("v1 lists the same", names == listed, names)
    for service, answer in zip(OWN, answers[1:]):
        files = [descriptor_pb2.FileDescriptorProto.FromString(f)
                 for f in answer.file_descriptor_response.file_descriptor_proto]
        count.check(f"v1 describes {service}", any(f"{f.package}.{s.name}" == service for f in files for s in f.service))
    for answer in answers[-2:]:
        count.check("what is not there", answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0])
    return Caller(channel, descriptor_pool.DescriptorPool(database))


def check_answers(count, d, caller):
    analysis, session_service = "xplaned.v1.AnalysisService", "xplaned.v1.SessionService"
    tools = caller.call(analysis, "ListTools").tools
    count.check("tools", len(tools) >= 6, [t.name for t in tools])
    sessions = caller.call(session_service, "ListSessions", page_size=1000).sessions
    count.check("sessions", len(sessions) > 10)
    answered = 0
    for s in sessions:
        hosts = [h.name for h in caller.call(session_service, "GetSession", session=s.name).hosts]
        for tool in tools:
            asked = hosts[:1] if tool.one_host else []
            expected = d.tool(tool.name, s.name, asked)
            try:
                got = caller.call(analysis, "GetToolData", session=s.name, tool=tool.name, hosts=asked, allow_large=True).data
                pieces = caller.call(analysis, "StreamToolData", session=s.name, tool=tool.name, hosts=asked)
                count.check(f"{tool.name} {s.name} in pieces", b"".join(p.data for p in pieces) == got)
            except grpc.RpcError as e:
                count.check(f"{tool.name} {s.name}", expected is None, f"{e.code()} {e.details()}")
                continue
            answered += 1
            count.check(f"{tool.name} {s.name}", got == expected)
    count.check("most questions have answers", answered > len(sessions) * 4, answered)
    chosen = caller.call(analysis, "GetToolData", session="accel/gpu_multi_worker", tool="op_profile",
                         options={"group_by": "category"}).data
    count.check("options", chosen == d.tool("op_profile", "accel/gpu_multi_worker", options=[("group_by", "category")]))
    count.check("op statistics", len(caller.call(analysis, "GetOpStats", session="accel/gpu_multi_worker").data) > 1000)


def check_rest(count, caller):
    stats = caller.call("xplaned.v1.ServerService", "GetServerStats")
    count.check("statistics", stats.requests.total > 0)
    stream = caller.call("xplaned.v1.SessionService", "WatchSessions", prefix="cpu/")
    first = next(stream)
    stream.cancel()
    count.check("a watch", first.session.name.startswith("cpu/"))
    captures = caller.call("xplaned.v1.CaptureService", "ListCaptures").captures
    count.check("no captures yet", len(captures) == 0, captures)
    of_old = caller.call("tensorflow.ProfileAnalysis", "EnumSessions").sessions
    count.check("sessions as TensorFlow's clients list them", len(of_old) > 10, len(of_old))
    count.check("health", caller.call("grpc.health.v1.Health", "Check", service="xplaned.v1.AnalysisService").status == 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    count = daemon.Count()
    with daemon.running(args.build) as d, grpc.insecure_channel(d.address, daemon.ANY_SIZE) as channel:
        caller = check_learning(count, channel)
        check_answers(count, d, caller)
        check_rest(count, caller)
    count.finish()


if __name__ == "__main__":
    main()
