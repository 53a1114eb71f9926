# SPDX-License-Identifier: Apache-2.0
"""TPU planes: TensorCores with steps, modules and nested ops, and SparseCores."""
from gpu import kernel_details
from hlo import Module
from pools import CONTAINERS, HLO_CATEGORIES, JAX_OPS, KERNELS, ODD_NAMES, SOURCES, jax_op, tf_op
from protos import pb
from xspace import U


class TpuProgram:
    """A compiled program: what each of its ops says of itself, the same on every core and host."""

    def __init__(self, r, name, program_id, odd, size, big=False):
        self.r, self.name, self.program_id, self.odd = r, name, program_id, odd
        if r.random() < 0.35:
            self.module = Module(r, name, program_id, "costed")
            self.proto = self.module.proto
        self.taken = set()
        self.style = r.choice(["{}:", "{}:", "{}", "tf"])    # how its framework names look
        self.ops = [self.op(i) for i in range(700 if big else max(2, int(r.choice([3, 8, 20, 40]) * size)))]
        self.containers = [o for o in self.ops if o["category"] in CONTAINERS]

    def op(self, i):
        r = self.r
        category = r.choice(HLO_CATEGORIES + ["loop fusion", "convolution fusion", "while", "copy", "custom-call"] * 3)
        base = category.replace(" ", "_").split(":")[0]
        name = f"{base}.{i}"
        if hasattr(self, "module") and r.random() < 0.5:
            name = r.choice(self.module.kernels)[0]
        if r.random() < 0.05:
            name = f"region_{i}.{i}"
        if self.odd and r.random() < 0.1:
            name = r.choice(ODD_NAMES)
        if name in self.taken and r.random() < 0.99:     # two ops of one name: XProf takes whichever its hash gives first
            name = f"{name or base}.{100 + i}"
        self.taken.add(name)
        stats = {"program_id": U(self.program_id) if self.program_id >= 2 ** 63 or r.random() < 0.8 else self.program_id,
                 "symbol_id": U(r.choice([i + 1, i + 1, i + 1, 10 ** 12 + i, 0 if r.random() < 0.1 else i + 1])),
                 "hlo_category": category}
        if r.random() < 0.85:
            stats["tf_op"] = "{}:{}".format(*tf_op(r)) if self.style == "tf" else self.style.format(jax_op(r))
            if r.random() < 0.05:
                stats["tf_op"] = r.choice([f"{jax_op(r)}_{i}", f"{jax_op(r)}_{i}:x", f"{r.choice(JAX_OPS)}{i}", ""])
        if r.random() < 0.8:
            stats["flops"] = U(r.choice([0, 123, 10 ** 9, 10 ** 12]))
        if r.random() < 0.5:
            stats["model_flops"] = U(r.choice([0, 100, 10 ** 9]))
        if r.random() < 0.85:
            stats["bytes_accessed"] = U(r.choice([0, 64, 10 ** 6, 3 * 10 ** 9]))
        if r.random() < 0.5:
            b = pb.MemoryAccessBreakdown()
            for _ in range(r.randint(0, 4)):
                b.memory_accessed.add(operation_type=r.choice([1, 2, 1, 2, 0]), memory_space=r.choice([0, 1, 1, 2, 3, 5]), bytes_accessed=r.choice([0, 10, 10 ** 6]))
            stats["memory_access_breakdown"] = b.SerializeToString()
        if r.random() < 0.25:
            stats["deduplicated_name"] = r.choice(["fusion.1", "dedup.2", name])
        if r.random() < 0.5:
            stats["source"] = r.choice(SOURCES)
        if r.random() < 0.3:
            stats["source_stack"] = r.choice(["a.py:1\nb.py:2", "x", ""])
        if r.random() < 0.2:
            stats["raw_bytes_accessed"] = U(7)
        if r.random() < 0.2:
            stats["shape_with_layout"] = "f32[8]{0:S(5)}"
        for key in ("program_id", "symbol_id", "hlo_category"):
            if r.random() < (0.1 if self.odd else 0.01):
                del stats[key]
        host_memory = "S(5)" if r.random() < 0.2 else ""
        long_name = f"%{name} = f32[8,128]{{1,0:T(8,128){host_memory}}} {base}(f32[8,128] %p.0)"
        display = name if r.random() < 0.95 else None
        return {"name": long_name if display else name, "display": display, "stats": stats, "category": category, "key": (self.program_id, i),
                "collective": category.startswith("all-reduce"), "children": r.random() < 0.1}


def tpu_planes(host, threads):
    r, s = host.r, host.s
    cores = r.choice([1, 1, 2, 2, 4])
    shape = {"cores": cores, "ids": r.choice(["plain", "plain", "shifted"]),
             "stats": r.random() < 0.9, "details": r.random() < 0.75, "sparse": r.choice([0, 0, 0, 1, 2]),
             "steps": s.has_steps and host.kind != "nosteps" and r.random() < 0.9, "modules": r.random() < 0.93,
             "device_time": r.random() < 0.4, "linked": r.random() < 0.6, "kernels": r.random() < 0.15}
    for c in range(cores):
        Core(host, threads, c, shape).build()
    if r.random() < 0.1:
        host.plane(f"/device:TPU:0 {r.choice(['Misc', 'SparseCore x'])}")


def plane_stats(r, core):
    out = {"device_type_string": r.choice(["TPU v4", "TPU v5 Lite", "TPU v6 Lite", "TPU7x"]), "peak_teraflops_per_second": 918.0,
           "peak_hbm_bw_gigabytes_per_second": 1638.4, "peak_sram_rd_bw_gigabytes_per_second": 23296.0, "peak_sram_wr_bw_gigabytes_per_second": 16128.0,
           "peak_cmem_rd_bw_gigabytes_per_second": r.choice([0.0, 9000.0]), "peak_cmem_wr_bw_gigabytes_per_second": 0.0,
           "peak_vmem_rd_bw_gigabytes_per_second": r.choice([0.0, 20000.0]), "peak_vmem_wr_bw_gigabytes_per_second": 10000.0,
           "has_megacore": r.choice([0, 1]), "has_merged_vmem": r.choice([0, 1])}
    for name in r.sample(sorted(out), r.choice([0, 0, 1, 3])):
        del out[name]
    return out


class Core:
    def __init__(self, host, threads, index, shape):
        self.h, self.r, self.s, self.threads = host, host.r, host.s, threads
        self.index, self.shape = index, shape
        r = self.r
        pid = {"plain": index + 2, "shifted": 8 * index + 2}[shape["ids"]]
        self.plane = host.plane(f"/device:TPU:{index}", pid=pid)
        if shape["stats"]:
            self.plane.stats(plane_stats(r, index))
        if shape["details"] and r.random() < 0.95:
            self.plane.stats({"core_details": self.details(False)})
        base = r.choice([0, 0, host.clock // 1000])
        names = ["Steps", "XLA Modules", "XLA Ops"]
        if not shape["steps"]:
            names.remove("Steps")
            if r.random() < 0.2:
                names.append("Steps")
        if not shape["modules"]:
            names.remove("XLA Modules")
        if r.random() < 0.3:
            names.append("Async XLA Ops")
        if r.random() < 0.1:
            r.shuffle(names)
        self.lines = {n: self.plane.line(n, i + 1, base) for i, n in enumerate(names)}
        if shape["kernels"]:
            self.kernels = self.plane.line("Stream #1(Kernel)", 77, base)
        self.jitter = r.choice([0, 0, 1000, 10 ** 6])
        self.sparse = [Sparse(self, i, base) for i in range(shape["sparse"])] if index < 2 else []
        self.run_id = r.choice([1, 100, 2 ** 27 + 5])
        self.offload = 0
        self.reduce_id = 0

    def details(self, sparse, num=0):
        r = self.r
        return pb.CoreDetails(device_ordinal=self.index, core_num=num, local_chip_id=self.index // 2, global_chip_id=self.h.index * 4 + self.index // 2,
                              global_core_id=self.h.index * 8 + self.index, hostname=r.choice(["", "", "elsewhere"]), is_sparse_core=sparse).SerializeToString()

    def build(self):
        r = self.r
        for number, b, e in self.h.steps:
            if r.random() < 0.03:
                continue
            b += r.randint(0, self.jitter)
            self.step(number, b, max(b + 1000, e))
        for line in list(self.lines.values()):
            line.done(self.overlap if self.s.odd and line.name == "XLA Ops" and r.random() < 0.2 else None)
        if self.shape["kernels"]:
            self.kernels.done()
        for sc in self.sparse:
            sc.done()

    def overlap(self, events):
        if len(events) > 4:
            i = self.r.randrange(len(events) - 1)
            b, d, md, st = events[i]
            events[i] = (b, d + d // 3, md, st)

    def device(self, b, d):
        """device_offset_ps and device_duration_ps, slightly different from the event's own times."""
        if not self.shape["device_time"]:
            return {}
        return {"device_offset_ps": U(b + 3), "device_duration_ps": U(d)}

    def step(self, number, b, e):
        r = self.r
        if "Steps" in self.lines and self.shape["steps"]:
            stats = self.device(b, e - b)
            if r.random() < 0.3:
                stats["step_idle_time_ps"] = r.choice([0, 1000, U(5)])
            if r.random() < 0.05:
                stats["group_id"] = number
            parts = 2 if r.random() < 0.1 and self.shape["linked"] else 1
            for i in range(parts):
                pb_, pe = b + (e - b) * i // parts, b + (e - b) * (i + 1) // parts
                self.lines["Steps"].add(pb_, pe - pb_, str(number), stats)
        if self.shape["kernels"]:      # no TPU writes these, but the kernel table would show them
            for i in range(r.randint(0, 3)):
                self.kernels.add(b + i * 1000, r.choice([999, 5000]), r.choice(KERNELS), {"kernel_details": kernel_details(r), "tf_op": jax_op(r)})
        modules = r.choice([1, 1, 1, 2, 3])
        for i in range(modules):
            mb = b + (e - b) * i // modules + r.choice([0, 0, 500])
            me = b + (e - b) * (i + 1) // modules - r.choice([0, 0, 1000, (e - b) // 10 // modules])
            if me > mb:
                self.module(r.choice(self.s.programs), mb, me)

    def module(self, program, b, e):
        r = self.r
        self.run_id += 1
        stats = {"run_id": U(self.run_id & (2 ** 27 - 1)), "queue_id": U(1 + self.index), "program_id": U(program.program_id)}
        if not self.shape["linked"]:
            del stats[r.choice(["run_id", "queue_id"])]
        if r.random() < 0.1:
            stats["core_type"] = r.choice([0, 0, 1])
        if "XLA Modules" in self.lines:
            self.lines["XLA Modules"].add(b, e - b, f"{program.name}({program.program_id})", {**stats, **(self.device(b, e - b) if r.random() < 0.5 else {})})
        if self.shape["linked"] and self.threads.windows:
            host_stats = {"run_id": self.run_id, "queue_id": U(1 + self.index), "device_ordinal": self.index}
            if r.random() < 0.1:
                host_stats["core_type"] = 0
            lead = r.choice([1000, 10 ** 6, (e - b) // 4])
            t = max(0, b - lead if r.random() < 0.3 else b + 10)
            self.threads.main.add(t, r.choice([100, 5000]), "DoEnqueueProgram", host_stats)
            if r.random() < 0.3:
                self.threads.launcher.add(e, 100, "CompleteCallbacks", host_stats)
            if r.random() < 0.3:
                q = {"request_id": self.run_id, "queue_addr": U(4096)}
                self.threads.main.add(t + 1, 50, "EnqueueRequestLocked", q)
                self.threads.launcher.add(t + 60, 500, r.choice(["RunProgramRequest", "HostCallbackRequest", "TransferH2DRequest", "CustomWait"]), q)
        self.ops(program, b, e, 0)

    def ops(self, program, b, e, depth):
        r = self.r
        n = r.choice([1, 2, 4, 8]) if depth else max(1, int(r.choice([1, 4, 10, 20]) * self.s.size)) * (10 if self.s.big else 1)
        t, room = b + r.choice([0, 0, 100]), max(1, (e - b) // n)
        for _ in range(n):
            d = r.choice([room, room // 2, room - 1 if room > 1 else 1, 0 if r.random() < 0.2 else room // 3])
            if t + d > e:
                break
            o = r.choice(program.ops)
            self.op_event(program, o, t, d)
            if (o["category"] in CONTAINERS or r.random() < 0.05) and depth < 3 and d > 100:
                self.ops(program, t, t + d, depth + 1)
            t += max(d, 1) + r.choice([0, 0, room // 10])
            if t >= e:
                break

    def metadata(self, o):
        plane = self.plane
        children = ()
        if o["children"]:
            children = [plane.event(f"%child = f32[] add({i})", display=f"child.{i}", key=("child", i), stats={
                "program_id": o["stats"].get("program_id"), "symbol_id": U(900 + i), "hlo_category": "add", "flops": U(5)}) for i in range(2)]
        return plane.event(o["name"], display=o["display"], stats=o["stats"], key=o["key"], children=children)

    def op_event(self, program, o, b, d):
        r = self.r
        stats = self.device(b, d)
        for name, chance, value in (("self_duration_ps", 0.05, U(d // 2)), ("min_duration_ps", 0.1, U(d // 3)), ("dma_stall_duration_ps", 0.1, U(d // 5)),
                                    ("Time Scale Multiplier", 0.1, r.choice([1.0, 0.5, 1.25])), ("vdd_energy_j", 0.05, r.random()), ("run_id", 0.3, U(self.run_id))):
            if r.random() < chance:
                stats[name] = value
        if o["collective"] or r.random() < 0.01:
            self.reduce_id += 1
            stats["all_reduce_id"], stats["all_reduce_unique_id"] = U(3), U(r.choice([self.reduce_id, 7]))
        if self.sparse and r.random() < 0.1:
            self.offload += 1
            sc = r.choice(self.sparse)
            key = {"offload_core_id": U(sc.number), "tc_offload_start_id": r.choice([self.offload, 1])}
            stats.update(key)
            sc.module(program, b, max(d, 10), key)
        if o["category"] == "async-start" and "Async XLA Ops" in self.lines:
            self.lines["Async XLA Ops"].add(b, d * 3, self.metadata(o), {"_a": 1})
        self.lines["XLA Ops"].add(b, d, self.metadata(o), stats)


class Sparse:
    def __init__(self, core, index, base):
        self.core, self.r, self.number = core, core.r, index
        r = self.r
        name = f"/device:TPU:{core.index} SparseCore{r.choice([' ', ' ', ' Tile '])}{index}"
        self.plane = core.h.plane(name, pid=r.choice([20, 200]) + core.index * 4 + index)
        if core.shape["details"] and r.random() < 0.8:
            self.plane.stats({"core_details": core.details(True, index)})
        self.steps = self.plane.line("Sparse Core Steps", 1, base) if r.random() < 0.6 else None
        self.modules = self.plane.line("Sparse Core Modules", 2, base)
        self.ops = self.plane.line("Sparse Core Ops", 3, base)
        self.free = 0

    def module(self, program, b, d, key):
        r = self.r
        b = max(b, self.free)
        self.free = b + d + 1
        stats = dict(key)
        if r.random() < 0.2:
            stats["tc_offload_start_id"] = U(key["tc_offload_start_id"])
        self.modules.add(b, d, f"{program.name}({program.program_id})", {**stats, "run_id": U(self.core.run_id & (2 ** 27 - 1)), "queue_id": U(1)})
        t = b
        for _ in range(r.randint(0, 4)):
            n = d // 5
            o = r.choice(program.ops)
            md = self.plane.event(o["name"], display=o["display"], stats=o["stats"], key=o["key"])
            self.ops.add(t, n, md, {})
            if r.random() < 0.3 and n > 10:
                self.ops.add(t + 1, n // 2, md, {})
            t += n + r.choice([0, 1])

    def done(self):
        if self.steps is not None:
            for number, b, e in self.core.h.steps:
                self.steps.add(b, e - b, str(number), {})
            self.steps.done()
        self.modules.done()
        self.ops.done()
