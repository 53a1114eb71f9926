// SPDX-License-Identifier: Apache-2.0
// Small profiles of device planes: a TPU with a SparseCore, and GPUs that run the program of
// tests/hlo_maker.h.
#ifndef XPL_TESTS_UNIT_OPSTATS_DEVICE_PROFILES_H_
#define XPL_TESTS_UNIT_OPSTATS_DEVICE_PROFILES_H_

#include "tests/hlo_maker.h"

// ---- more kinds of statistics ----

static inline void mk_stat_double(struct mk_plane *p, struct xpl_buf *owner, uint32_t field,
                                  const char *name, double v) {
    struct xpl_buf s = mk_open();
    uint8_t raw[8];
    memcpy(raw, &v, sizeof v);
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_varint(&s, 2 << 3 | 1);
    xpl_buf_put(&s, raw, sizeof raw);
    mk_close(owner, field, &s);
}
// Value `field` of XStat: 3 uint64, 4 int64.
static inline void mk_stat_number(struct mk_plane *p, struct xpl_buf *owner, uint32_t owner_field,
                                  const char *name, uint32_t field, uint64_t v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_int(&s, field, (int64_t)v);
    mk_close(owner, owner_field, &s);
}
// Value `field` of XStat: 5 text, 6 bytes.
static inline void mk_stat_text(struct mk_plane *p, struct xpl_buf *owner, uint32_t owner_field,
                                const char *name, uint32_t field, const void *v, size_t n) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_len(&s, field, v, n);
    mk_close(owner, owner_field, &s);
}
enum { MK_PLANE_STATS = 6, MK_MD_STATS = 5, MK_EVENT_STATS = 4 }; // fields that hold XStats

// ---- TPU ----

// Event metadata of an op, under a separate id (from 1000 on, out of the way of mk_event).
struct mk_op {
    int64_t id, program, symbol, flops, bytes, child;
    const char *name, *display, *category, *tf_op, *source;
};
static inline void mk_tpu_md(struct mk_plane *p, struct mk_op op) {
    struct xpl_buf md = mk_open(), entry = mk_open();
    mk_int(&md, 1, op.id);
    mk_text(&md, 2, op.name);
    if (op.display) mk_text(&md, 4, op.display);
    if (op.program) mk_stat_number(p, &md, MK_MD_STATS, "program_id", 4, (uint64_t)op.program);
    if (op.symbol) mk_stat_number(p, &md, MK_MD_STATS, "symbol_id", 4, (uint64_t)op.symbol);
    if (op.flops) mk_stat_number(p, &md, MK_MD_STATS, "flops", 4, (uint64_t)op.flops);
    if (op.bytes) mk_stat_number(p, &md, MK_MD_STATS, "bytes_accessed", 4, (uint64_t)op.bytes);
    if (op.category)
        mk_stat_text(p, &md, MK_MD_STATS, "hlo_category", 5, op.category, strlen(op.category));
    if (op.tf_op) mk_stat_text(p, &md, MK_MD_STATS, "tf_op", 5, op.tf_op, strlen(op.tf_op));
    if (op.source) mk_stat_text(p, &md, MK_MD_STATS, "source", 5, op.source, strlen(op.source));
    if (op.child) mk_int(&md, 6, op.child);
    mk_int(&entry, 1, op.id);
    mk_close(&entry, 2, &md);
    mk_close(&p->body, 4, &entry);
}
static inline struct xpl_buf mk_op_event(int64_t md, int64_t offset_ps, int64_t duration_ps) {
    struct xpl_buf ev = mk_open();
    mk_int(&ev, 1, md);
    mk_int(&ev, 2, offset_ps);
    mk_int(&ev, 3, duration_ps);
    return ev;
}
static inline void mk_op_run(struct xpl_buf *line, int64_t md, int64_t offset_ps,
                             int64_t duration_ps) {
    struct xpl_buf ev = mk_op_event(md, offset_ps, duration_ps);
    mk_event_end(line, &ev);
}

// Ops of the TPU below.
enum {
    MK_FUSION = 1000,
    MK_WHILE,
    MK_INFEED,
    MK_CUSTOM,
    MK_NAMELESS, // no symbol: counts nowhere
    MK_INNER,    // child of MK_FUSION by metadata only
    MK_MODULE,
    MK_LOOKUP, // on the SparseCore
};
static inline void mk_tpu_ops(struct mk_plane *p) {
    mk_tpu_md(p, (struct mk_op){.id = MK_FUSION,
                                .name = "%fusion.1 = f32[8] fusion(...)",
                                .display = "fusion.1",
                                .program = 7,
                                .symbol = 1,
                                .flops = 1000,
                                .bytes = 64,
                                .child = MK_INNER,
                                .category = "loop fusion",
                                .tf_op = "jit(f)/add:",
                                .source = "model.py:12"});
    mk_tpu_md(
        p, (struct mk_op){
               .id = MK_WHILE, .name = "while.2", .program = 7, .symbol = 2, .category = "while"});
    mk_tpu_md(
        p,
        (struct mk_op){
            .id = MK_INFEED, .name = "infeed.3", .program = 7, .symbol = 3, .category = "infeed"});
    mk_tpu_md(p, (struct mk_op){.id = MK_CUSTOM,
                                .name = "custom-call.4",
                                .program = 7,
                                .symbol = 4,
                                .category = "custom-call"});
    mk_tpu_md(p, (struct mk_op){.id = MK_NAMELESS, .name = "nameless", .program = 7});
    mk_tpu_md(p, (struct mk_op){.id = MK_INNER,
                                .name = "add.5",
                                .program = 7,
                                .symbol = 5,
                                .category = "non-fusion elementwise"});
    mk_tpu_md(p, (struct mk_op){.id = MK_MODULE, .name = "jit_generate(7)"});
}

// Has work done on the SparseCore.
static inline void mk_custom_call(struct mk_plane *p, struct xpl_buf *line) {
    struct xpl_buf ev = mk_op_event(MK_CUSTOM, 1500, 100);
    mk_stat_number(p, &ev, MK_EVENT_STATS, "offload_core_id", 3, 0);
    mk_stat_number(p, &ev, MK_EVENT_STATS, "tc_offload_start_id", 4, 55);
    mk_event_end(line, &ev);
}

static inline void mk_tpu_plane(struct xpl_buf *space, bool sorted) {
    struct mk_plane p = mk_plane(3, "/device:TPU:0");
    static const uint8_t details[] = {2 << 3, 0, 3 << 3, 1, 4 << 3, 2, 5 << 3, 3, 6 << 3, 4};
    mk_stat_text(&p, &p.body, MK_PLANE_STATS, "core_details", 6, details, sizeof details);
    mk_stat_text(&p, &p.body, MK_PLANE_STATS, "device_type_string", 5, "TPU v5", 6);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_teraflops_per_second", 200);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_hbm_bw_gigabytes_per_second", 800);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_cmem_rd_bw_gigabytes_per_second", 1);
    mk_stat_number(&p, &p.body, MK_PLANE_STATS, "has_megacore", 4, 1);
    mk_tpu_ops(&p);
    struct xpl_buf modules = mk_line(1, "XLA Modules"), ops = mk_line(2, "XLA Ops");
    mk_op_run(&modules, MK_MODULE, 0, 2000);
    if (!sorted) mk_custom_call(&p, &ops);
    mk_op_run(&ops, MK_WHILE, 0, 1000);
    mk_op_run(&ops, MK_FUSION, 100, 300);
    struct xpl_buf ev = mk_op_event(MK_FUSION, 500, 100); // its own clock says 200
    mk_stat_number(&p, &ev, MK_EVENT_STATS, "device_offset_ps", 3, 500);
    mk_stat_number(&p, &ev, MK_EVENT_STATS, "device_duration_ps", 3, 200);
    mk_event_end(&ops, &ev);
    mk_op_run(&ops, MK_INFEED, 800, 50);
    mk_op_run(&ops, MK_NAMELESS, 860, 10);
    ev = mk_op_event(MK_FUSION, 1200, 100);
    mk_int(&ev, 5, 4); // num_occurrences
    mk_event_end(&ops, &ev);
    if (sorted) mk_custom_call(&p, &ops);
    mk_line_end(&p, &modules);
    mk_line_end(&p, &ops);
    mk_plane_end(&p, space);
}

static inline void mk_sparse_plane(struct xpl_buf *space) {
    struct mk_plane p = mk_plane(9, "/device:TPU:0 SparseCore 0");
    mk_tpu_md(
        &p,
        (struct mk_op){
            .id = MK_LOOKUP, .name = "gather.6", .program = 7, .symbol = 6, .category = "gather"});
    mk_tpu_md(&p, (struct mk_op){.id = MK_MODULE, .name = "sparse"});
    struct xpl_buf modules = mk_line(1, "Sparse Core Modules"), ops = mk_line(2, "Sparse Core Ops");
    struct xpl_buf ev = mk_op_event(MK_MODULE, 100, 300);
    mk_stat_number(&p, &ev, MK_EVENT_STATS, "offload_core_id", 3, 0);
    mk_stat_number(&p, &ev, MK_EVENT_STATS, "tc_offload_start_id", 3, 55);
    mk_event_end(&modules, &ev);
    ev = mk_op_event(MK_LOOKUP, 150, 80);
    mk_stat_number(&p, &ev, MK_EVENT_STATS, "offload_core_id", 3, 0);
    mk_stat_number(&p, &ev, MK_EVENT_STATS, "tc_offload_start_id", 3, 55);
    mk_event_end(&ops, &ev);
    mk_line_end(&p, &modules);
    mk_line_end(&p, &ops);
    mk_plane_end(&p, space);
}

static inline struct xpl_buf mk_tpu_device(bool sorted) {
    struct xpl_buf space = mk_open();
    mk_tpu_plane(&space, sorted);
    mk_sparse_plane(&space);
    struct mk_plane p = mk_metadata_plane();
    struct xpl_buf m = mk_training_module("jit_step");
    mk_program(&p.body, 7, &m);
    mk_plane_end(&p, &space);
    mk_text(&space, 2, "bad thing");
    mk_text(&space, 2, "bad thing");
    mk_text(&space, 3, "beware");
    mk_text(&space, 4, "worker-0");
    return space;
}

// ---- GPU ----

struct mk_kernel_event {
    const char *name;
    int64_t at_ps, duration_ps;
    const char *hlo_op, *tf_op, *details; // NULL: none
};

static inline void mk_kernel(struct mk_plane *p, struct xpl_buf *line, struct mk_kernel_event k) {
    struct xpl_buf ev = mk_event(p, k.name, k.at_ps, k.duration_ps);
    if (k.hlo_op) {
        mk_stat_ref(p, &ev, "hlo_op", k.hlo_op);
        mk_stat_int(p, &ev, "program_id", 7);
    }
    if (k.tf_op) mk_stat_str(p, &ev, "tf_op", k.tf_op);
    if (k.details) mk_stat_ref(p, &ev, "kernel_details", k.details);
    mk_event_end(line, &ev);
}

static inline void mk_gpu_plane(struct xpl_buf *space, int64_t id, const char *name) {
    struct mk_plane p = mk_plane(id, name);
    mk_stat_text(&p, &p.body, MK_PLANE_STATS, "device_vendor", 5, "Nvidia", 6);
    mk_stat_number(&p, &p.body, MK_PLANE_STATS, "compute_cap_major", 3, 9);
    mk_stat_number(&p, &p.body, MK_PLANE_STATS, "clock_rate", 3, 2000000);
    mk_stat_number(&p, &p.body, MK_PLANE_STATS, "core_count", 3, 100);
    mk_stat_number(&p, &p.body, MK_PLANE_STATS, "memory_bandwidth", 3, 2000000000000);
    struct xpl_buf stream = mk_line(14, "Stream #14(Kernel)");
    const char *const wide = "regs:64 grid:8,1,1 block:128,1,1 occ_pct:50";
    mk_kernel(&p, &stream,
              (struct mk_kernel_event){"fused_add", 1000, 4000, "fusion.1", NULL, wide});
    mk_kernel(&p, &stream,
              (struct mk_kernel_event){"fused_add", 6000, 2000, "fusion.1", NULL, wide});
    mk_kernel(&p, &stream,
              (struct mk_kernel_event){"h884gemm", 9000, 5000, "while.3::dot.2", NULL, "regs:32"});
    mk_kernel(&p, &stream,
              (struct mk_kernel_event){"h884gemm", 14000, 6000, "while.3::dot.2", NULL, "regs:32"});
    mk_kernel(
        &p, &stream,
        (struct mk_kernel_event){"gemm", 30000, 3500, NULL, "layer/MatMul:MatMul", "regs:16"});
    mk_kernel(&p, &stream, (struct mk_kernel_event){"lost", 40000, 1000, "no-such-op", NULL, wide});
    mk_kernel(&p, &stream, (struct mk_kernel_event){"MemcpyH2D", 50000, 1000, NULL, NULL, NULL});
    mk_line_end(&p, &stream);
    mk_plane_end(&p, space);
}

static inline struct xpl_buf mk_gpu_device(int gpus) {
    struct xpl_buf space = mk_open();
    for (int i = 0; i < gpus; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "/device:GPU:%d", i);
        mk_gpu_plane(&space, i + 2, name);
    }
    struct mk_plane p = mk_metadata_plane();
    struct xpl_buf m = mk_training_module("jit_step");
    mk_program(&p.body, 7, &m);
    mk_plane_end(&p, &space);
    mk_text(&space, 4, "gpu-0");
    return space;
}

#endif
