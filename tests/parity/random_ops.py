# SPDX-License-Identifier: Apache-2.0
"""More ops than a table shows, and op trees at their limits: what random_opstats.py adds to some of its messages.

Times come from small sets, so that there are many ties, at the limits too.
"""
PARTS = ("jit(f)", "main", "transpose(jvp(x))", "while", "body", "gradient_tape", "gradients_2", "a:b", "", "é", "<b>", "dense")
CATEGORIES = ("convolution", "loop fusion", "output fusion", "custom-call", "copy", " fusion", "fusion", "", "data <b>é\u2028")


def metrics(x, m, name, times):
    r = x.r
    m.name, m.category = name, r.choice(CATEGORIES)
    m.time_ps = m.self_time_ps = r.choice(times)
    if r.random() < 0.1:
        m.self_time_ps = r.choice([0, m.time_ps // 2])
    m.occurrences = r.choice([0, 1, 2, 7])
    m.core_type = r.choice([0, 1, 1, 2])
    if r.random() < 0.5:
        m.flops = r.choice([0, 1000, 1000, 5000])
        m.flops_v2, m.model_flops, m.model_flops_v2 = float(m.flops), m.flops, float(m.flops)
    if r.random() < 0.3:
        for _ in range(r.randint(1, 6)):
            m.memory_accessed_breakdown.add(operation_type=r.choice([0, 1, 2]), memory_space=r.choice([0, 1, 1, 2, 3, 4, 5]),
                                            bytes_accessed=r.randrange(1 << r.randint(1, 50)))
    if r.random() < 0.1:
        m.layout.SetInParent()
        for _ in range(r.randint(0, 2)):
            m.layout.dimensions.add(size=r.randrange(-5, 100), alignment=r.randrange(9), semantics=r.choice([0, 1, 2, 3]))
    if r.random() < 0.2:
        m.fingerprint, m.computation_primitive_size = r.randrange(1 << 64), 3


def children(x, m, n, depth, times):
    for i in range(n):
        child = m.children.metrics_db.add()
        metrics(x, child, f"{m.name}.child.{i}", times)
        if depth and i < 2:
            children(x, child, x.r.choice([1, 2, n]), depth - 1, times)


def provenance(r, longest):
    return "/".join(r.choice(PARTS) for _ in range(r.randint(1, longest))) + r.choice(["", ":", ":MatMul", ":Conv2D", "/", ":a:b", "//"])


def add_ops(x, db, prefix, n, times, longest, module_ids):
    r = x.r
    groups = [f"dup{i}" for i in range(r.choice([1, 3, 40]))]
    for i in range(n):
        m = db.metrics_db.add(hlo_module_id=r.choice(module_ids))
        metrics(x, m, f"{prefix}.{i}", times)
        if r.random() < 0.6:
            m.deduplicated_name = r.choice(groups)
        if r.random() < 0.7:
            m.provenance = provenance(r, longest)
    if n and r.random() < 0.5:
        children(x, db.metrics_db[0], r.choice([3, 99, 101, 130]), r.choice([0, 0, 1]), times)


def wide(x, s):
    r = x.r
    times = r.choice([[0, 10, 10], [5], [r.randrange(1 << 40) for _ in range(20)], [1 << 53, (1 << 53) + 1, (1 << 53) + 2]])
    longest = r.choice([3, 12, 130])
    modules = [r.randrange(1 << 64) for _ in range(r.randint(1, 4))]
    add_ops(x, s.device_op_metrics_db, "wide", r.choice([0, 120, 250]) if longest == 130 else r.choice([0, 120, 520]), times, longest, modules)
    add_ops(x, s.host_op_metrics_db, "wide", r.choice([0, 505]), times, 3, [0])
    for m in modules:
        if r.random() < 0.7:
            s.program_id_to_name_map[m] = r.choice(["jit_f", "main<>", "é", ""])
    names = [m.provenance.split(":")[0] for m in s.device_op_metrics_db.metrics_db][:20] + ["", "x"]
    for i in range(r.choice([0, 0, 400])):
        s.kernel_stats_db.reports.add(
            name=f"kernel {i % 7}", op_name=r.choice(names), occurrences=r.choice([1, 3]), total_duration_ns=r.choice(times),
            static_shmem_bytes=r.choice([0, 2 ** 32 - 1]), dynamic_shmem_bytes=r.choice([0, 2]), is_kernel_using_tensor_core=r.random() < 0.5,
            block_dim=[r.randrange(1, 1025), 1, 1], grid_dim=[1, 2, r.randrange(1 << 32)], occupancy_pct=r.choice([66.7, 100.0]))
