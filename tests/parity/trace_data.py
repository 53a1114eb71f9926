# SPDX-License-Identifier: Apache-2.0
"""trace_viewer@'s other form, format=pb: a TraceDataResponse in zstd, as a dict in which nothing depends on how it was written."""
import ctypes

MAGIC = b"\x28\xb5\x2f\xfd"


def decompress(data):
    z = ctypes.CDLL("libzstd.so.1")
    z.ZSTD_getFrameContentSize.restype, z.ZSTD_decompress.restype = ctypes.c_ulonglong, ctypes.c_size_t
    size = z.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(max(size, 1))
    if z.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data))) != size:
        raise ValueError("not a whole zstd frame")
    return out.raw[:size]


def series(s, strings):
    m = s.metadata
    row = {"process": m.process_id, "thread": m.thread_id, "name": strings[m.name_ref]}
    if m.HasField("event_stats_ref"):
        row["event_stats"] = strings[m.event_stats_ref]
    events, ts = [], 0
    for i, delta in enumerate(s.deltas):
        ts = (ts + delta) % 2**64
        e = s.event_metadata[i]
        events.append([ts, s.durations[i] if s.durations else None, strings[s.name_refs[i]] if s.name_refs else None, e.flow_id != 0,
                       strings[e.flow_category], e.group_id, e.counter_value_double, e.counter_value_uint64])
    return {**row, "events": sorted(events, key=repr)}


def decode(data):
    from xprof.protobuf import trace_data_response_pb2
    m = trace_data_response_pb2.TraceDataResponse.FromString(decompress(data))
    out = {k: sorted((series(s, m.interned_strings) for s in getattr(m, k)), key=repr) for k in ("complete_events", "counter_events", "async_events")}
    out["processes"] = sorted(([p.name, p.id, p.sort_index if p.HasField("sort_index") else None,
                                sorted([t.name, t.id, t.sort_index if t.HasField("sort_index") else None] for t in p.threads)]
                               for p in m.metadata.processes), key=repr)
    out["details"] = [[d.name, d.value] for d in m.details]
    out["span"] = [getattr(m, k) if m.HasField(k) else None for k in ("full_timespan_start_ps", "full_timespan_end_ps")]
    return out
