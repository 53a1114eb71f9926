# SPDX-License-Identifier: Apache-2.0
"""GPU planes: streams of kernels and copies, launched from the host threads."""
from pools import KERNELS, LAUNCHES, MEMCPY, NCCL, ODD_NAMES, jax_op, tf_op
from xspace import U


def capabilities(r):
    kind = r.random()
    if kind < 0.15:
        return {}
    if kind < 0.7:
        major, minor = r.choice([(9, 0), (8, 0), (8, 6), (8, 9), (7, 0), (7, 5), (6, 1), (10, 0), (12, 0), (3, 5), (2, 0)])
        caps = {"device_vendor": "Nvidia", "compute_cap_major": U(major), "compute_cap_minor": U(minor)}
    else:
        caps = {"device_vendor": "AMD", **r.choice([{"gpu_device_name": "gfx942:sramecc+:xnack-"}, {"gpu_device_name": "gfx90a"},
                                                    {"compute_cap_major": U(9), "compute_cap_minor": U(4)},
                                                    {"compute_cap_major": U(9), "compute_cap_minor": U(5)}])}
    caps.update({"clock_rate": U(r.choice([1410000, 1980000, 2100000])), "core_count": U(r.choice([108, 132, 304])),
                 "memory_bandwidth": U(r.choice([1555 * 10 ** 9, 3352 * 10 ** 9])), "memory_size": U(80 * 2 ** 30)})
    for name in r.sample(sorted(caps), r.choice([0, 0, 0, 1, 2])):
        del caps[name]
    if r.random() < 0.1:
        caps["peak_teraflops_per_second"] = 989.5
    return caps


def kernel_details(r):
    words = [f"regs:{r.choice([16, 32, 255])}", f"static_shared:{r.choice([0, 4096])}", f"dynamic_shared:{r.choice([0, 49152])}",
             f"grid:{r.randint(1, 900)},{r.choice([1, 1, 8])},1", f"block:{r.choice([32, 128, 256])},1,{r.choice([1, 1, 2])}",
             f"occ_pct:{r.choice(['100', '50', '43.75', '6.25', '0'])}"]
    if r.random() < 0.15:
        words = r.sample(words, r.randint(0, len(words)))
    if r.random() < 0.05:
        words += [r.choice(["regs:abc", "grid:1,2", "occ_pct:nan", "x:y:z", "block:1,2,-3", "regs:99999999999", "occ_pct:1e3", "priority:0"])]
    return r.choice([" ", " ", "\n"]).join(words)


class KernelKind:
    """A kernel that is launched again and again with the same words."""

    def __init__(self, host, plane, number=None):
        r, s = host.r, host.s
        self.name = r.choice(KERNELS) + ("" if number is None else f"_{number}")
        if s.odd and r.random() < 0.1:
            self.name = r.choice(ODD_NAMES)
        self.details = kernel_details(r)
        self.stats = {}
        self.annotate(host, number)
        self.md = plane.event(self.name, display=r.choice([None, None, None, "pretty " + self.name]))
        self.duration = r.choice([1000, 10 ** 6, 5 * 10 ** 6]) + r.randint(0, 10 ** 6)

    def annotate(self, host, number):
        r, s = host.r, host.s
        module = r.choice(s.programs) if r.random() < (0.4 if s.tf else 0.9) else None
        if module is not None:
            if r.random() < 0.93:
                op, op_name, _ = r.choice(module.kernels)
                path = r.choice([f"{op}", f"{op}", f"{op}", f"while.1::{op}", f"call.2::fusion.9::{op}"])
                self.stats.update({"hlo_op": path, "hlo_module": module.name})
                if r.random() < 0.3:
                    self.stats["tf_op"] = op_name + ":"
            else:
                self.stats.update({"hlo_op": "no-such-op.9", "hlo_module": module.name})
            if r.random() < 0.95:
                self.stats["program_id"] = U(module.program_id) if module.program_id >= 2 ** 63 or r.random() < 0.5 else module.program_id
            if r.random() < 0.15:
                self.stats["flops"], self.stats["bytes_accessed"] = r.choice([10 ** 6, U(7)]), r.choice([10 ** 4, 0])
            if r.random() < 0.05:
                self.stats["vdd_energy_j"] = r.random()
            if r.random() < 0.1:
                self.stats["scope_range_id"] = r.randint(1, 5)
        elif r.random() < 0.85:
            if s.tf:
                name, kind = tf_op(r)
                self.stats["tf_op"] = r.choice([f"{name}:{kind}", f"{name}:{kind}", f"{name}:", name, ":", "a:b:C"])
            else:
                self.stats["tf_op"] = r.choice([jax_op(r) + ":", jax_op(r), "MemcpyHToD"])
            if number is not None and "/" in self.stats["tf_op"]:
                self.stats["tf_op"] = f"scope_{number}/" + self.stats["tf_op"]
            if r.random() < 0.1:
                self.stats["equation"] = r.choice(["ab,bc->ac", "ab->ba", "a,b,c->abc", "x"])
        if r.random() < 0.2:
            self.stats["shape"] = r.choice(["(half[8,8];half[8])", "(float[8])"])
        if r.random() < 0.5:
            self.stats["theoretical_occupancy_pct"] = r.choice([50.0, 12.5])


def gpu_planes(host, threads):
    r, s = host.r, host.s
    n = r.choice([1, 1, 1, 2, 2, 4])
    caps = capabilities(r)
    for g in range(n):
        plane = host.plane(f"/device:GPU:{g}")
        if r.random() < 0.9:
            plane.stats(caps)
        if g and r.random() < 0.2:
            continue                       # a GPU that did nothing
        Gpu(host, threads, plane, g).build()


class Gpu:
    def __init__(self, host, threads, plane, ordinal):
        self.h, self.r, self.s = host, host.r, host.s
        self.threads, self.plane, self.ordinal = threads, plane, ordinal
        r = self.r
        base = r.choice([0, 0, host.clock // 1000])
        self.compute = [plane.line(r.choice(["Stream #{}(Compute)", "Stream #{}(Kernel)", "Stream #{}", "Stream #{}(MemcpyD2D,Compute)"]).format(i), i,
                                   base) for i in self.stream_ids(r.choice([1, 1, 2, 3, 17 if r.random() < 0.1 else 1]), 13)]
        self.copies = [plane.line(f"Stream #{i}({k})", i, base) for i, k in zip(self.stream_ids(r.choice([0, 1, 2]), 20), ["MemcpyH2D", "MemcpyD2H"])]
        self.free = {}            # when each line is free
        many = 1300 if self.s.big and not ordinal else max(1, int(r.choice([1, 3, 6, 12]) * self.s.size))
        self.kinds = [KernelKind(host, plane, i if self.s.big else None) for i in range(many)]
        self.kept = 0

    def stream_ids(self, n, first):
        return [first + i * self.r.choice([1, 1, 3]) for i in range(n)] if n < 2 else [first + 3 * i for i in range(n)]

    def build(self):
        r = self.r
        for number, (b, e) in enumerate(self.threads.windows):
            count = 1500 // len(self.threads.windows) if self.s.big else max(1, int(r.choice([1, 4, 10, 25]) * self.s.size))
            for i in range(count):
                t = b + (e - b) * i // count
                self.kernel(t, (e - b) // count)
            if r.random() < 0.4:
                self.nccl(b + (e - b) // 3, (e - b) // 5)
        for l in self.compute + self.copies:
            if r.random() < 0.02:
                l.name = ""
            l.done()

    def place(self, line, t, d):
        """Streams run one thing at a time."""
        begin = max(t, self.free.get(line.l.id, 0))
        self.free[line.l.id] = begin + d + self.r.choice([0, 0, 1000])
        return begin

    def kernel(self, t, room):
        r = self.r
        if r.random() < 0.12 or not self.compute:
            return self.copy(t, room)
        kind = self.kinds[self.kept % len(self.kinds)] if self.s.big else r.choice(self.kinds)
        self.kept += 1
        line = self.compute[0] if r.random() < 0.7 else r.choice(self.compute)
        d = r.choice([kind.duration, kind.duration, r.randint(0, 2 * kind.duration), 0 if r.random() < 0.2 else 999, max(1000, room)])
        stats = {}
        correlation = self.threads.launch(t, r.choice(LAUNCHES), self.ordinal)
        if r.random() < 0.96:
            stats["correlation_id"] = correlation
        stats.update(kind.stats)
        if r.random() < 0.96:
            stats["kernel_details"] = kind.details
        if self.s.odd and r.random() < 0.05:
            stats["is_eager"] = r.choice([0, 1])
        if r.random() < 0.03:
            stats["cuda_graph_id"] = U(5)
        if r.random() < 0.02:
            stats["cuda_graph_exec_id"] = U(9)
        line.add(self.place(line, t + r.choice([2000, 10000, room // 4]), d), d, kind.md, stats)

    def copy(self, t, room):
        r = self.r
        name, details = r.choice(MEMCPY)
        line = r.choice(self.copies or self.compute)
        d = r.choice([1000, 10 ** 6, max(1, room // 2)])
        stats = {"correlation_id": self.threads.launch(t, "cuMemcpyHtoDAsync_v2", self.ordinal)}
        if details:
            stats["memcpy_details"] = details.format(n=r.choice([4, 4096, 10 ** 9]))
        line.add(self.place(line, t + 1000, d), d, name, stats)

    def nccl(self, t, d):
        r = self.r
        line = r.choice(self.compute)
        stats = {"correlation_id": self.threads.launch(t, "cudaLaunchKernel", self.ordinal), "kernel_details": kernel_details(r)}
        if r.random() < 0.5:
            stats["tf_op"] = r.choice(["HorovodAllreduce_0:HorovodAllreduce", "jit(step)/psum:", "nccl/CollectiveReduceV2:CollectiveReduceV2"])
        line.add(self.place(line, t, max(1, d)), max(1, d), r.choice(NCCL), stats)
