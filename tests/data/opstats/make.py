#!/usr/bin/env python3
"""Makes the made files of this folder anew, and asks the real XProf for the answers beside them.

    make.py        needs the python that tests/parity/setup.sh prints

every_field.pb: every field of OpStats that we keep, each with a value of its own, serialized in the one canonical way.
tree.pb: ops in every place of op_profile's tree.  kernels.pb: kernels and the ops they belong to.  pod.pb: steps of cores.
TOOL.GROUP.json beside them: what XProf 2.24.2 answers from exactly these bytes.
"""
import json
import os
import struct
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from xprof.convert import raw_to_tool_data as convert
from xprof.protobuf import op_stats_pb2, steps_db_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
# Not read by any tool we serve, so not kept.
DROPPED = {"source_stats", "flat_device_op_metrics_db", "flat_hlo_metrics_db_complete_steps_only", "flat_hlo_metrics_db",
           "estimated_flops", "estimated_bytes_accessed", "peak_sc_tera_flops_per_second", "num_sparse_core_tiles"}


class Filler:
    def __init__(self):
        self.n = 0

    def value(self, f):
        self.n += 1
        kind = f.cpp_type
        if kind == f.CPPTYPE_STRING:
            return f"{f.name} {self.n}" if f.type == f.TYPE_STRING else bytes([self.n % 256])
        if kind == f.CPPTYPE_BOOL:
            return True
        if kind == f.CPPTYPE_ENUM:
            return f.enum_type.values[1 + self.n % (len(f.enum_type.values) - 1)].number
        if kind in (f.CPPTYPE_DOUBLE, f.CPPTYPE_FLOAT):
            return self.n + 0.25
        if kind == f.CPPTYPE_UINT64:
            return 2 ** 64 - self.n
        if kind == f.CPPTYPE_UINT32:
            return 2 ** 32 - self.n
        return -self.n

    def fill(self, m, depth=0):
        for f in m.DESCRIPTOR.fields:
            if f.name in DROPPED or (f.name == "children" and depth > 3):
                continue
            if f.message_type and f.message_type.full_name == "google.protobuf.Any":
                self.breakdown(m)
            elif f.message_type and f.message_type.GetOptions().map_entry:
                self.fill_map(m, f, depth)
            elif f.is_repeated and f.message_type:
                for _ in range(2):
                    self.fill(getattr(m, f.name).add(), depth + 1)
            elif f.is_repeated:
                getattr(m, f.name).extend([self.value(f) for _ in range(3)])
            elif f.message_type:
                self.fill(getattr(m, f.name), depth + 1)
            else:
                setattr(m, f.name, self.value(f))

    def fill_map(self, m, f, depth):
        key, value = (f.message_type.fields_by_name[n] for n in ("key", "value"))
        for _ in range(3):
            k = self.value(key)
            if value.message_type:
                self.fill(getattr(m, f.name)[k], depth + 1)
            else:
                getattr(m, f.name)[k] = self.value(value)

    def breakdown(self, m):
        kinds = (steps_db_pb2.GenericStepBreakdown, steps_db_pb2.TpuStepBreakdown, steps_db_pb2.SparseCoreStepBreakdown)
        b = kinds[self.n % 3]()
        self.fill(b)
        m.step_breakdown.Pack(b)
        m.step_breakdown.value = canonical(b)


def varint(n):
    n %= 2 ** 64
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n % 0x80 | 0x80]), n >> 7
    return out + bytes([n])


def one_value(f, v):
    """(wire type, bytes) of a value without its tag; bytes with their length."""
    if f.cpp_type in (f.CPPTYPE_DOUBLE, f.CPPTYPE_FLOAT):
        return (1, struct.pack("<d", v)) if f.cpp_type == f.CPPTYPE_DOUBLE else (5, struct.pack("<f", v))
    if f.cpp_type in (f.CPPTYPE_STRING, f.CPPTYPE_MESSAGE):
        v = canonical(v) if f.cpp_type == f.CPPTYPE_MESSAGE else v.encode() if isinstance(v, str) else v
        return 2, varint(len(v)) + v
    return 0, varint(int(v))


def field(f, v):
    kind, data = one_value(f, v)
    return varint(f.number << 3 | kind) + data


def canonical(m):
    """Fields by number, map entries by key: what no library promises."""
    out = b""
    for f, v in sorted(m.ListFields(), key=lambda x: x[0].number):
        if f.message_type and f.message_type.GetOptions().map_entry:
            key, value = (f.message_type.fields_by_name[n] for n in ("key", "value"))
            for k in sorted(v):
                entry = field(key, k) + field(value, v[k])
                out += varint(f.number << 3 | 2) + varint(len(entry)) + entry
        elif f.is_repeated and f.cpp_type not in (f.CPPTYPE_STRING, f.CPPTYPE_MESSAGE):
            packed = b"".join(one_value(f, x)[1] for x in v)
            out += varint(f.number << 3 | 2) + varint(len(packed)) + packed
        elif f.is_repeated:
            out += b"".join(field(f, x) for x in v)
        else:
            out += field(f, v)
    return out


def op(db, name, category, time_ps, **fields):
    m = db.metrics_db.add(name=name, category=category, time_ps=time_ps, num_cores=1)
    m.self_time_ps = fields.pop("self_time_ps", time_ps)
    m.occurrences = fields.pop("occurrences", 2)
    children, traffic, source = fields.pop("children", ()), fields.pop("traffic", ()), fields.pop("source", None)
    for k, v in fields.items():
        setattr(m, k, v)
    if m.flops:
        m.flops_v2, m.model_flops, m.model_flops_v2 = float(m.flops), m.flops // 2, float(m.flops // 2)
    for space, kind, n in traffic:
        m.memory_accessed_breakdown.add(memory_space=space, operation_type=kind, bytes_accessed=n)
    for child in children:
        op(m.children, **child)
    if source:
        m.source_info.file_name, m.source_info.line_number, m.source_info.stack_frame = source
    return m


def finish(db, total_ps):
    db.total_op_time_ps = sum(m.self_time_ps for m in db.metrics_db)
    db.total_time_ps = total_ps
    db.normalized_total_op_time_ps = db.total_op_time_ps * 9 // 10
    db.metrics_db.add(name="IDLE", category="IDLE", time_ps=total_ps - db.total_op_time_ps,
                      self_time_ps=total_ps - db.total_op_time_ps)


def tree():
    s = op_stats_pb2.OpStats()
    db = s.device_op_metrics_db
    rw = [(1, 1, 4096), (1, 2, 1024), (3, 1, 512), (2, 2, 256), (1, 0, 7)]
    fwd = "jit(f)/jit(main)/dense/dot_general:"
    first = op(db, "fusion.1", "convolution fusion", 5000000, hlo_module_id=7, provenance=fwd, deduplicated_name="fusion", flops=10 ** 9,
               traffic=rw, bytes_accessed=5895, long_name='%fusion.1 = f32[8]{0} fusion(<a>, "b")', source=("a<b>.py", 3, "f\ng"),
               normalized_time_ps=4500000, fingerprint=2 ** 63 + 1, computation_primitive_size=4,
               children=[dict(name="dot.1", category="dot", time_ps=0, flops=10 ** 8, occurrences=1),
                         dict(name="add.1", category="add", time_ps=0, flops=10 ** 9, occurrences=1,
                              children=[dict(name="inner.1", category="add", time_ps=3)])])
    d = first.layout.dimensions.add()
    d.size, d.alignment, d.semantics = 128, -8, 2
    op(db, "fusion.2", "convolution fusion", 5000000, hlo_module_id=7, provenance=fwd, deduplicated_name="fusion", flops=2 * 10 ** 9)
    op(db, "fusion.3", "convolution fusion", 6000000, hlo_module_id=7, provenance=fwd, deduplicated_name="fusion")
    twin = op(db, "copy.1", "copy", 900, hlo_module_id=7, deduplicated_name="copy", traffic=[(1, 1, 10 ** 9)])
    twin.layout.SetInParent()
    op(db, "copy.2", "copy", 900, hlo_module_id=7, deduplicated_name="copy")
    op(db, "while.1", "while", 20000000, self_time_ps=1000, hlo_module_id=7, provenance="jit(f)/while:")
    op(db, "async.1", "async-done", 3000, self_time_ps=1000, hlo_module_id=7,
       children=[dict(name="sc.1", category="sc", time_ps=2000, core_type=2)])
    op(db, "dot.9", "dot", 7777, hlo_module_id=9, provenance="/jit(g)//transpose(jvp(main))/x:y:z", occurrences=0)
    op(db, "dot.8", "dot", 7777, hlo_module_id=9, provenance="///")
    op(db, "dot.7", "dot", 1, hlo_module_id=9, provenance=":")
    op(db, "eager.1", "dot", 44, hlo_module_id=0, is_eager=True, provenance="gradients/MatMul:MatMul")
    op(db, "region_0.5", "add", 10 ** 9, hlo_module_id=7)
    finish(db, 4 * 10 ** 9)
    s.program_id_to_name_map[7] = "jit_f<>"
    s.run_environment.device_type, s.run_environment.hardware_type = "TPU v4", 3
    s.perf_env.peak_tera_flops_per_second, s.perf_env.peak_hbm_bw_giga_bytes_per_second = 275.0, 1200.0
    s.perf_env.peak_bws_giga_bytes_per_second.extend([1200.0, 9000.0, 7000.0, 20.0, 21.0, 22.0, 23.0])
    op(s.host_op_metrics_db, "Iterator::Map", "Dataset", 5555)
    op(s.host_op_metrics_db, "é\u2028<b>", "", 123)
    finish(s.host_op_metrics_db, 10 ** 6)
    return s


def kernels():
    s = op_stats_pb2.OpStats()
    db = s.device_op_metrics_db
    op(db, "gemm.1", "custom-call", 123456, hlo_module_id=1, provenance="jit(f)/dot_general:", flops=10 ** 9, bytes_accessed=12345)
    op(db, "gemm.2", "custom-call", 23456, hlo_module_id=1, provenance="jit(f)/dot_general:", flops=1, bytes_accessed=10 ** 9)
    op(db, "add.1", "loop fusion", 0, hlo_module_id=1, provenance="jit(f)/add:", occurrences=0)
    op(db, "m.1", "fusion", 99, hlo_module_id=1, provenance="model/MatMul:MatMul", bytes_accessed=10 ** 12)
    finish(db, 10 ** 6)
    s.run_environment.device_type, s.run_environment.hardware_type = "Nvidia GPU (Ampere)", 2
    s.perf_env.peak_tera_flops_per_second, s.perf_env.peak_hbm_bw_giga_bytes_per_second = 312.0, 1555.0
    s.perf_env.peak_bws_giga_bytes_per_second.extend([1555.0, 19000.0, 19000.0])
    for i, (name, op_name, tc) in enumerate([("h884gemm<float>", "jit(f)/dot_general", True), ("splitK", "jit(f)/dot_general", False),
                                             ("add\"q\"", "jit(f)/add", False), ("none", "", True)]):
        s.kernel_stats_db.reports.add(
            name=name, op_name=op_name, is_kernel_using_tensor_core=tc, is_op_tensor_core_eligible=i < 2, registers_per_thread=32 * i,
            static_shmem_bytes=2 ** 32 - 1 - i, dynamic_shmem_bytes=i, block_dim=[128, 1, 2 ** 32 - 1], grid_dim=[i, 2, 3],
            total_duration_ns=2 ** 40 // (i + 1), min_duration_ns=i, max_duration_ns=10 ** 15, occurrences=3 + i, occupancy_pct=66.7 * (i % 2))
    return s


def core(s, step, core_id, ms, types=None, categories=None, known=True):
    info = step.step_info_per_core[core_id]
    info.step_num, info.duration_ps = step.step_num, ms * 10 ** 9
    if types is not None or categories is not None:
        b = steps_db_pb2.GenericStepBreakdown()
        for k, n in (types or {}).items():
            b.type_ps[k] = n
        for k, n in (categories or {}).items():
            b.category_ps[k] = n
        info.step_breakdown.Pack(b)
        info.step_breakdown.value = canonical(b)
    if known:
        s.core_id_to_details[core_id].hostname = f"host<{core_id}>"


def pod():
    s = op_stats_pb2.OpStats()
    s.run_environment.device_type, s.run_environment.hardware_type = "TPU <v4>", 3
    step = s.step_db.step_sequence.add(step_num=4294967295)
    core(s, step, 1, 9, types={k: 10 ** (k // 20) + 1 for k in range(0, 180, 10)})
    core(s, step, 2, 8, types={})
    core(s, step, 3, 7)
    core(s, step, 4, 6, types={10: 5}, known=False)
    step = s.step_db.step_sequence.add(step_num=1)
    parts = {"sparsecorev0 infeed wait": 10 ** 6, "sparsecorev0 infeed transform": 10 ** 7}
    busy = {c: (i + 1) * 10 ** 8 + i for i, c in enumerate((
        "infeed", "outfeed", "all-reduce", "all-to-all", "all-gather", "all-reduce fusion", "send", "recv-done", "host send",
        "host recv-done", "megacore fusion", "async-done", "sparsecorev0 outfeed", "convolution", "new category"))}
    core(s, step, 1, 99, categories={**busy, "IDLE": 10 ** 12})
    core(s, step, 2, 1, categories=busy)  # more than the step lasts
    core(s, step, 5, 3, categories=parts)
    core(s, step, 6, 3, categories={**parts, "sparsecorev0 infeed": 10 ** 8})
    core(s, step, 7, 3, categories={**parts, "sparsecorev0 infeed": 0})
    s.step_db.use_incomplete_step = True
    s.step_db.num_steps_dropped = 3
    return s


def ask(data, tool, options):
    with tempfile.TemporaryDirectory() as top:
        run = os.path.join(top, "plugins", "profile", "run")
        os.makedirs(run)
        for name, content in (("h.xplane.pb", b"\x22\x01h"), ("ALL_HOSTS.op_stats_v2.pb", data), ("cache_version.txt", b"2.24.2")):
            with open(os.path.join(run, name), "wb") as f:
                f.write(content)
        answer, _ = convert.xspace_to_tool_data([os.path.join(run, "h.xplane.pb")], tool, {"use_saved_result": True, **options})
    return answer if isinstance(answer, bytes) else answer.encode()


def settled(answer):
    """A JSON answer with its maps by number, whose order XProf does not keep."""
    def by_number(pairs):
        return dict(sorted(pairs, key=lambda p: int(p[0])) if pairs and all(k.isdigit() for k, _ in pairs) else pairs)
    text = json.dumps(json.loads(answer, object_pairs_hook=by_number), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").encode()


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(data)


def main():
    every = op_stats_pb2.OpStats()
    Filler().fill(every)
    write("every_field.pb", canonical(every))
    for name, message in (("tree", tree()), ("kernels", kernels())):
        data = canonical(message)
        write(name + ".pb", data)
        for tool in ("framework_op_stats", "hlo_stats", "roofline_model"):
            write(f"{name}.{tool}.json", ask(data, tool, {}))
        if name == "tree":
            for by in ("program", "category", "provenance"):
                write(f"{name}.op_profile.{by}.json", ask(data, "op_profile", {"group_by": by}))
        else:
            write(name + ".kernel_stats.json", ask(data, "kernel_stats", {}))
    data = canonical(pod())
    write("pod.pb", data)
    write("pod.pod_viewer.json", settled(ask(data, "pod_viewer", {})))


if __name__ == "__main__":
    main()
