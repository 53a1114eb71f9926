# SPDX-License-Identifier: Apache-2.0
"""Random OpStats messages: what the conversions could yield, and some that no conversion would.

`random_opstats(rng)` gives a message and a word for its family.  Left out on purpose is what XProf answers by the order of
a hash map: equal infeed times on two cores of a step, steps whose cores disagree on the number.
"""
from xprof.protobuf import op_stats_pb2, steps_db_pb2

from random_ops import wide

MS = 10 ** 9
EVENT_TYPES = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170)
TPU_CATEGORIES = ("infeed", "outfeed", "all-reduce", "all-to-all", "all-reduce fusion", "send", "send-done", "recv", "recv-done",
                  "host send", "host send-done", "host recv", "host recv-done", "convolution", "convolution fusion",
                  "loop fusion", "output fusion", "megacore fusion", "copy", "custom-call", "while", "call", "conditional",
                  "async-done", "sparsecorev0 infeed", "sparsecorev0 outfeed", "sparsecorev0 infeed wait",
                  "sparsecorev0 infeed transform", "data formatting", "non-fusion elementwise")
HOST_CATEGORIES = ("InfeedEnqueueTuple", "InfeedEnqueue", "Dataset", "MemcpyHToD", "MatMul", "Iterator", "Enqueue", "enqueue",
                   "Read", "preprocessing", "Preprocessing", "UNKNOWN", "unknown", "Unknown", "IteratorGetNext", "IDLE", "")
HOST_NAMES = ("Iterator::Root::Prefetch::Map::TFRecord", "Iterator::TFRecord", "Iterator::Batch::Map", "Iterator::Interleave::TextLine",
              "Iterator::Model::ParallelMapV2::FixedLengthRecord", "Iterator::MemoryReaderImpl::SSTable", "Iterator::ArrayRecord",
              "Iterator::RecordIO", "Iterator::Shuffle::RecordIOx", "infeed/enqueue", "MatMul_1", "MEMCPYHtoD", "é\u2028\"\\\t<b>", "")
PROVENANCES = ("jit(f)/jit(main)/dot_general:", "jit(f)/transpose(jvp(main))/mul:", "model/layer/MatMul:MatMul", "a/b:XlaSendToHost",
               "a/b:XlaRecvFromHost", "gradients/x:Mul", "gradient_tape/y:Add", "model/Sum_1:", "f/reduce[axis=1]:", "MemcpyHToD",
               "Iterator::Map", "x", ":", "/", "a//b/c:Op", "jit(f)/while/body/closed_call/cos:", "rematted_computation/add:", "")
DEVICE_TYPES = ("TPU v4", "TPU v6 Lite", "TPU", "Nvidia GPU (Ampere)", "GPU", "AMD GPU - gfx942", "CPU", "Device", "")


class Random:
    def __init__(self, rng):
        self.r = rng
        self.ugly = rng.random() < 0.25     # values that no clock gives
        self.scale = rng.choice([1, 1000, MS // 1000, MS, MS, 10 * MS, 3600 * 1000 * MS])

    def chance(self, p):
        return self.r.random() < p

    def ps(self, most=None):
        r = self.r
        if self.ugly and r.random() < 0.1:
            return r.choice([0, 1, 2, 2 ** 31, 2 ** 53 + 1, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1])
        return r.choice([0, 1, r.randint(0, 10)]) if r.random() < 0.15 else r.randint(0, most or self.scale)

    def count(self):
        return self.r.choice([0, 1, 1, 2, 3, 10, self.r.randint(0, 100000), 2 ** 32 - 1 if self.ugly else 5])

    def real(self):
        r = self.r
        if self.ugly and r.random() < 0.15:
            return r.choice([-1.0, 1e-12, 1e300, 5e-324, -0.0, float("inf"), float("nan")])
        return r.choice([0.0, r.random() * 100, float(r.randint(0, 10 ** 15)), r.random() * 10 ** r.randint(-3, 15)])

    # ---- ops ----

    def op(self, m, names, categories, provenances, depth=0):
        r = self.r
        m.name = r.choice(names)
        m.category = r.choice(categories)
        if self.chance(0.6):
            m.provenance = r.choice(provenances)
        m.hlo_module_id = r.choice([0, 1, 2, 12345678901234567890])
        m.long_name = r.choice(["", f"%{m.name} = f32[8]{{0}} {m.category}(%p)", "%send-done.1 = send-done(), is_host_transfer=true",
                                "%x.remat = f32[] add()", "%x = f32[] add(%y.remat)", "y = z = w", " = "])
        m.occurrences = self.count()
        m.time_ps = self.ps()
        m.self_time_ps = m.time_ps if self.chance(0.5) else self.ps(m.time_ps)
        m.min_time_ps = self.ps(m.time_ps)
        if self.chance(0.2):
            m.normalized_time_ps = self.ps()
        if self.chance(0.3):
            m.dma_stall_ps = self.ps(m.time_ps)
        m.is_eager = self.chance(0.3)
        m.num_cores = r.choice([0, 1, 2, 8])
        m.core_type = r.choice([0, 0, 1, 2])
        m.autotuned = self.chance(0.1)
        if self.chance(0.6):
            m.flops = r.randint(0, 10 ** 13)
            m.flops_v2 = float(m.flops) if self.chance(0.8) else self.real()
            m.model_flops = m.flops if self.chance(0.7) else r.randint(0, 10 ** 13)
            m.model_flops_v2 = float(m.model_flops) if self.chance(0.8) else self.real()
        if self.chance(0.6):
            m.bytes_accessed = self.r.randint(0, 10 ** 12)
            for _ in range(r.randint(0, 4)):
                a = m.memory_accessed_breakdown.add()
                a.operation_type, a.memory_space, a.bytes_accessed = r.choice([0, 1, 2]), r.choice([0, 1, 2, 3, 4]), r.randint(0, 10 ** 12)
        if self.chance(0.3):
            m.deduplicated_name = r.choice(names)
        if self.chance(0.3):
            m.source_info.file_name, m.source_info.line_number = r.choice(["train.py", "/a<b>&\"c'.py", ""]), r.randint(-2, 999)
            m.source_info.stack_frame = r.choice(["", "train.py:1\nmain.py:2", "<&>'\"é\0"])
        if self.chance(0.1):
            m.vdd_energy_j = self.real()
        if self.chance(0.1):
            d = m.layout.dimensions.add()
            d.size, d.alignment, d.semantics = r.choice([8, 128, 0]), r.choice([8, 128, 0]), r.choice([0, 1, 2, 3])
        if depth < 2 and self.chance(0.15):
            for _ in range(r.randint(1, 4)):
                self.op(m.children.metrics_db.add(), names, categories, provenances, depth + 1)

    def ops(self, db, n, names, categories, provenances=PROVENANCES, on_host=False):
        # Within a module names are unique, as every builder keeps them; on the host there is but one module.
        seen = set()
        for _ in range(n):
            m = db.metrics_db.add()
            self.op(m, names, categories, provenances)
            if on_host:
                m.hlo_module_id = 0
            if (m.hlo_module_id, m.name) in seen:
                m.name += f".{len(seen)}"
            seen.add((m.hlo_module_id, m.name))
        total = sum(m.self_time_ps for m in db.metrics_db) % 2 ** 64
        db.total_op_time_ps = total if self.chance(0.8) else self.ps()
        db.total_time_ps = min(2 ** 64 - 1, total + self.ps()) if self.chance(0.8) else self.ps()
        if self.chance(0.7):
            m = db.metrics_db.add(name="IDLE", category="IDLE")
            m.time_ps = m.self_time_ps = (db.total_time_ps - db.total_op_time_ps) % 2 ** 64
        if self.chance(0.3):
            db.normalized_total_op_time_ps = self.ps()

    # ---- steps ----

    def generic_breakdown(self, info, categories=False):
        b = steps_db_pb2.GenericStepBreakdown()
        left = info.duration_ps
        if categories:
            for c in self.r.sample(TPU_CATEGORIES, self.r.randint(0, 6)) + (["IDLE"] if self.chance(0.6) else []):
                b.category_ps[c] = self.part(left)
                left -= min(left, b.category_ps[c])
        else:
            for t in self.r.sample(EVENT_TYPES, self.r.randint(0, 8)):
                b.type_ps[t] = self.part(left)
                left -= min(left, b.type_ps[t])
        info.step_breakdown.Pack(b)

    def part(self, left):
        """A share of a step, of a size at which something happens to the bottleneck."""
        if self.ugly and self.chance(0.1):
            return self.ps()
        return int(left * self.r.choice([0, 0.01, 0.03, 0.05, 0.06, 0.15, 0.2, 0.5, 1, self.r.random()]))

    def tpu_breakdown(self, info):
        b = steps_db_pb2.TpuStepBreakdown()
        left = info.duration_ps
        for f in b.DESCRIPTOR.fields:
            if f.name == "scv0_infeed_percent":
                b.scv0_infeed_percent = self.r.choice([0, 0, 10, 33.3, 100] + ([250, -5] if self.ugly else []))
            elif self.chance(0.4):
                v = self.part(left)
                setattr(b, f.name, v)
                left -= min(left, v)
        info.step_breakdown.Pack(b)

    def sparse_breakdown(self, info):
        b = steps_db_pb2.SparseCoreStepBreakdown()
        for f in b.DESCRIPTOR.fields:
            if self.chance(0.7):
                setattr(b, f.name, self.part(info.duration_ps))
        info.step_breakdown.Pack(b)

    def step_info(self, info, number):
        info.step_num = number
        info.begin_ps = self.ps()
        info.duration_ps = self.ps()
        if self.chance(0.7):
            info.duration_ps = max(1, self.r.randint(self.scale // 2, self.scale))
        if self.chance(0.4):
            info.step_name = self.r.choice(["train 1", "step", "é", "<b>\"x\"\n"]) + str(number)

    def steps(self, db, tpu, cores, sparse):
        r = self.r
        kinds = r.choice([("categories",), ("categories",), ("tpu",), ("categories", "tpu")]) if tpu else ("types",)
        first = r.choice([0, 1, 1000, 2 ** 31 - 1])
        for n in range(r.choice([0, 1, 1, 2, 3, 5, 12])):
            step = db.step_sequence.add(step_num=first + n)
            for core in cores + sparse:
                if self.chance(0.03):
                    continue
                info = step.step_info_per_core[core]
                self.step_info(info, first + n)
                kind = r.choice(kinds)
                if self.ugly and self.chance(0.02):
                    kind = r.choice(["none", "types", "categories", "tpu", "sparse"])
                if core in sparse:
                    kind = r.choice(["categories", "sparse"])
                if kind == "types":
                    self.generic_breakdown(info)
                elif kind == "categories":
                    self.generic_breakdown(info, True)
                elif kind == "tpu":
                    self.tpu_breakdown(info)
                elif kind == "sparse":
                    self.sparse_breakdown(info)
                if tpu and self.chance(0.1):
                    for i in range(r.randint(1, 4)):
                        begin = self.ps()
                        step.all_reduce_db_per_core[core].all_reduce_info.add(
                            id=r.randint(1, 3), start_time_ps=begin, end_time_ps=min(2 ** 64 - 1, begin + self.ps()))
        db.use_incomplete_step = self.chance(0.1)
        db.empty_intersect = self.chance(0.2)
        if self.chance(0.1):
            db.num_steps_dropped = r.randint(1, 100)

    # ---- the rest ----

    def kernels(self, db, op_names):
        r = self.r
        for i in range(r.choice([0, 1, 5, 30])):
            k = db.reports.add(name=f"{r.choice(['volta_h884gemm', 'void f<T>(int)', 'nccl', 'é'])}{i}", op_name=r.choice(op_names))
            k.registers_per_thread, k.static_shmem_bytes, k.dynamic_shmem_bytes = r.randint(0, 255), r.randint(0, 4096), r.randint(0, 99)
            k.block_dim.extend(r.randint(1, 1024) for _ in range(3))
            k.grid_dim.extend(r.randint(1, 65535) for _ in range(3))
            # XProf divides by it.
            k.occurrences = 0 if self.ugly and self.chance(0.01) else r.choice([1, 7, r.randint(1, 10 ** 6)])
            k.total_duration_ns = r.choice([0, 5, r.randint(0, 10 ** 12)])
            k.min_duration_ns, k.max_duration_ns = r.randint(0, 10 ** 6), r.randint(0, 10 ** 9)
            k.is_kernel_using_tensor_core, k.is_op_tensor_core_eligible = self.chance(0.5), self.chance(0.5)
            k.occupancy_pct = r.choice([0.0, 50.0, 33.333332])

    def environment(self, e, hardware):
        r = self.r
        e.hardware_type = hardware
        e.device_type = r.choice([d for d in DEVICE_TYPES if (("TPU" in d) == (hardware == 3)) and (("GPU" in d) == (hardware == 2))]) \
            if self.chance(0.9) else r.choice(DEVICE_TYPES)
        e.host_count, e.task_count = r.choice([0, 1, 1, 2, 8]), r.choice([0, 1, 2, 3, 16])
        e.device_core_count = r.choice([0, 1, 8, 256])
        if self.ugly and self.chance(0.2):
            e.host_count, e.task_count, e.device_core_count = r.choice([-1, 2]), r.choice([-1, 5]), -7
        if self.chance(0.3):
            e.replica_count, e.num_cores_per_replica = r.choice([-1, 0, 1, 4]), r.choice([-1, 0, 1, 2])
        e.is_training = self.chance(0.5)
        e.host_trace_level = r.choice([0, 1, 2, 3, 4000000000])
        for i in range(r.randint(0, 3)):
            e.hostnames[f"host-{i}"] = True

    def rest(self, s, hardware):
        r = self.r
        p = s.perf_env
        p.peak_tera_flops_per_second = r.choice([0, 275, 918.5])
        p.peak_hbm_bw_giga_bytes_per_second = r.choice([0, 1200.5])
        p.peak_bws_giga_bytes_per_second.extend(r.choice([0.0, 1638.5, 20000.25]) for _ in range(r.choice([0, 1, 3, 7, 9])))
        p.ridge_point = self.real()
        p.has_cmem, p.has_merged_vmem, p.has_megacore = self.chance(0.3), self.chance(0.3), self.chance(0.3)
        if self.chance(0.4):
            d = s.device_op_metrics_db
            d.precision_stats.compute_16bit_ps, d.precision_stats.compute_32bit_ps = self.ps(self.scale // r.choice([1, 9, 10, 11])), self.ps()
        if self.chance(0.6):
            d = s.device_op_metrics_db
            d.busy_time_ps, d.idle_time_ps = self.ps(), self.ps()
            d.busy_time_high_confidence_ps, d.idle_time_high_confidence_ps = self.ps(), self.ps()
        for kind in ("info", "warnings", "errors"):
            for i in range(r.choice([0, 0, 0, 1, 3])):
                getattr(s.diagnostics, kind).append(r.choice(["zz", "aa", "lost events", "é<>\"", ""]) + str(r.randint(0, 9)))
        if self.chance(0.3):
            s.performance_counter_result.matrix_unit_utilization_percent = self.real()
            s.performance_counter_result.hbm_utilization_percent = self.real()
        for i in range(r.choice([0, 0, 1, 5])):
            s.tf_function_db.tf_functions[f"fn{i}"].expensive_call_percent = r.choice([0, 20, 50])
        for i in (1, 2, 12345678901234567890):
            if self.chance(0.6):
                s.program_id_to_name_map[i] = r.choice(["jit_train", "module", "m(1)", ""])
        if self.chance(0.1):
            s.disaggregated_serving_latency.num_decode_steps = 3
            s.disaggregated_serving_latency.decode_step_time_us.avg = 12.5


def cores_of(x, s, hardware):
    r = x.r
    if hardware != 3:
        return [1] if x.chance(0.95) else [0, 1], []
    cores = sorted(r.sample(range(0, 40), r.choice([1, 1, 2, 4, 8])))
    sparse = [1000000 + c for c in cores[: r.choice([0, 0, 1, 4])]]
    if x.chance(0.3):
        cores = [1000 * r.randint(0, 3) + c for c in cores]
        cores = sorted(set(cores))
    for c in cores + sparse:
        if x.chance(0.8):
            d = s.core_id_to_details[c]
            d.hostname, d.device_ordinal = r.choice(["host-0", "host-1", ""]), r.randint(0, 7)
            d.local_chip_id, d.core_num = r.randint(0, 3), c % 2
            d.is_sparse_core = c in sparse
    return cores, sparse


def random_opstats(rng):
    x = Random(rng)
    s = op_stats_pb2.OpStats()
    hardware = rng.choice([3, 3, 3, 2, 2, 1, 0])
    x.environment(s.run_environment, hardware)
    names = [f"fusion.{i}" for i in range(12)] + ["region_1", "copy-start", "é.1", "a/b", "%dot", "jit(f)/jit(main)/dot_general",
                                                 "infeed", "while", "less-than", "atan"]
    x.ops(s.device_op_metrics_db, rng.choice([0, 1, 5, 15, 40]), names, TPU_CATEGORIES + ("", "Unknown"))
    x.ops(s.host_op_metrics_db, rng.choice([0, 1, 5, 25]), HOST_NAMES, HOST_CATEGORIES, ("", "a/b:Op"), on_host=True)
    if rng.random() < 0.3:
        s.host_op_metrics_db.total_host_infeed_enq_duration_ps = x.ps()
        s.host_op_metrics_db.total_host_infeed_enq_start_timestamp_ps_diff = x.ps()
    if rng.random() < 0.5:
        x.ops(s.hlo_metrics_db_complete_steps_only, rng.choice([0, 3]), names, TPU_CATEGORIES)
    cores, sparse = cores_of(x, s, hardware)
    x.steps(s.step_db, hardware == 3, cores, sparse)
    for step in s.step_db.step_sequence:
        if x.chance(0.2):
            step.core_id_to_replica_id_map[rng.choice(cores)] = 3
        if x.chance(0.4):
            x.ops(step.hlo_metrics_db, rng.choice([0, 3]), names, TPU_CATEGORIES + ("", "Unknown"))
    x.kernels(s.kernel_stats_db, [m.provenance.split(":")[0] for m in s.device_op_metrics_db.metrics_db] + ["", "MatMul"])
    x.rest(s, hardware)
    family = {0: "unknown", 1: "cpu", 2: "gpu", 3: "tpu"}[hardware] + (" ugly" if x.ugly else "")
    if rng.random() < 0.15:
        wide(x, s)
        family += " wide"
    return s, family
