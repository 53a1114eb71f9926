// SPDX-License-Identifier: Apache-2.0
// Small profiles of each kind of hardware, with steps, for tests of the host's side.
#ifndef XPL_TESTS_UNIT_OPSTATS_HOST_PROFILES_H_
#define XPL_TESTS_UNIT_OPSTATS_HOST_PROFILES_H_

#include "tests/xspace_maker.h"

// A CPU-only program: `steps` steps on thread "python", an XLA program's ops on a worker, among
// them a loop around two ops, and a TensorFlow op around an XLA op.  Times in ns.
enum { MK_NS = 1000 };
static inline void mk_xla(struct mk_plane *p, struct xpl_buf *line, const char *op, int64_t at,
                          int64_t ns, int64_t program) {
    struct xpl_buf ev = mk_event(p, op, at * MK_NS, ns * MK_NS);
    mk_stat_ref(p, &ev, "hlo_op", op);
    mk_stat_ref(p, &ev, "hlo_module", "jit_step");
    if (program) mk_stat_int(p, &ev, "program_id", program);
    mk_event_end(line, &ev);
}

static inline struct xpl_buf mk_cpu_profile(int steps, int filler) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/host:CPU");
    struct xpl_buf python = mk_line(1, "python"), worker = mk_line(2, "tf_XLAEigen/7");
    for (int i = 0; i < steps; i++) {
        const int64_t at = i * 1000;
        struct xpl_buf step = mk_event(&p, "step", at * MK_NS, 900 * MK_NS);
        mk_stat_int(&p, &step, "_r", 1);
        mk_stat_int(&p, &step, "step_num", i);
        mk_event_end(&python, &step);
        mk_plain(&p, &python, "dispatch", (at + 10) * MK_NS, 200 * MK_NS);
        for (int k = 0; k < filler; k++)
            mk_plain(&p, &python, k % 2 ? "inner" : "outer", (at + 20 + k % 50) * MK_NS,
                     (k % 3) * MK_NS);
        struct xpl_buf enqueue = mk_event(&p, "enqueue", (at + 250) * MK_NS, 50 * MK_NS);
        mk_stat_int(&p, &enqueue, "_pt", 5);
        mk_stat_int(&p, &enqueue, "_p", i);
        mk_event_end(&python, &enqueue);
        struct xpl_buf run = mk_event(&p, "run", (at + 300) * MK_NS, 500 * MK_NS);
        mk_stat_int(&p, &run, "_ct", 5);
        mk_stat_int(&p, &run, "_c", i);
        mk_event_end(&worker, &run);
        mk_xla(&p, &worker, "while", at + 310, 400, 6);
        mk_xla(&p, &worker, "dot", at + 320, 100, 6);
        mk_xla(&p, &worker, "add", at + 430, 30, 6);
        mk_xla(&p, &worker, "dot", at + 720, 50, 6);
        mk_plain(&p, &worker, "a/MatMul:MatMul", (at + 780) * MK_NS, 15 * MK_NS);
        mk_xla(&p, &worker, "dot", at + 785, 5, 0);
    }
    mk_line_end(&p, &python);
    mk_line_end(&p, &worker);
    mk_plane_end(&p, &space);
    return space;
}

// An event that hands a context to another, or is handed one; -1 for none.  Times in ns.
static inline void mk_linked(struct mk_plane *p, struct xpl_buf *line, const char *name, int64_t at,
                             int64_t ns, int64_t consumes, int64_t produces) {
    struct xpl_buf ev = mk_event(p, name, at * MK_NS, ns * MK_NS);
    if (consumes >= 0) mk_stat_int(p, &ev, "_ct", 2);
    if (consumes >= 0) mk_stat_int(p, &ev, "_c", consumes);
    if (produces >= 0) mk_stat_int(p, &ev, "_pt", 2);
    if (produces >= 0) mk_stat_int(p, &ev, "_p", produces);
    mk_event_end(line, &ev);
}

// Steps of 900 ns that wait 600 for an iterator of TensorFlow, as its executors write them: ops of
// the pipeline on a thread of tf.data, inside an iterator, in a function on the threads that the
// model has, too, and in a function that this one runs.
static inline struct xpl_buf mk_input_profile(int steps) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/host:CPU");
    struct xpl_buf python = mk_line(1, "python"), data = mk_line(2, "tf_data_private_threadpool/2"),
                   pool = mk_line(3, "tf_Compute/3"), other = mk_line(4, "tf_Compute/4");
    for (int i = 0; i < steps; i++) {
        const int64_t at = i * 1000;
        struct xpl_buf step = mk_event(&p, "train", at * MK_NS, 900 * MK_NS);
        mk_stat_int(&p, &step, "_r", 1);
        mk_stat_int(&p, &step, "step_num", i);
        mk_event_end(&python, &step);
        mk_plain(&p, &python, "metrics/Add:AddV2", (at + 5) * MK_NS, 10 * MK_NS);
        mk_plain(&p, &python, "IteratorGetNextOp::DoCompute", (at + 20) * MK_NS, 600 * MK_NS);
        mk_plain(&p, &python, "IteratorGetNext:IteratorGetNext", (at + 20) * MK_NS, 600 * MK_NS);
        mk_plain(&p, &python, "Iterator::Root::Map", (at + 25) * MK_NS, 500 * MK_NS);
        mk_plain(&p, &python, "batch/Concat:ConcatV2", (at + 30) * MK_NS, 20 * MK_NS);
        mk_linked(&p, &python, "InstantiatedCapturedFunction::Run", at + 60, 400, -1, -1);
        mk_linked(&p, &python, "FunctionRun", at + 70, 10, -1, 4 * i);
        mk_linked(&p, &python, "FunctionRun", at + 630, 240, -1, 4 * i + 1);
        mk_plain(&p, &data, "PyFunc:PyFunc", (at + 40) * MK_NS, 400 * MK_NS);
        mk_linked(&p, &pool, "ExecutorState::Process", at + 80, 300, 4 * i, -1);
        mk_plain(&p, &pool, "map/Mul:Mul", (at + 90) * MK_NS, 100 * MK_NS);
        mk_linked(&p, &pool, "FunctionRun", at + 200, 10, -1, 4 * i + 2);
        mk_linked(&p, &pool, "ExecutorState::Process", at + 520, 350, 4 * i + 1, -1);
        mk_plain(&p, &pool, "model/MatMul:MatMul", (at + 520) * MK_NS, 240 * MK_NS);
        mk_linked(&p, &other, "ExecutorState::Process", at + 210, 100, 4 * i + 2, -1);
        mk_plain(&p, &other, "map/while/Sub:Sub", (at + 220) * MK_NS, 50 * MK_NS);
        mk_linked(&p, &other, "ExecutorState::Process", at + 770, 100, 4 * i + 2, -1);
        mk_plain(&p, &other, "map/Late:Sub", (at + 770) * MK_NS, 100 * MK_NS);
    }
    mk_line_end(&p, &python);
    mk_line_end(&p, &data);
    mk_line_end(&p, &pool);
    mk_line_end(&p, &other);
    mk_plane_end(&p, &space);
    return space;
}

// Planes that arrive grouped: every one has statistic group_id.
static inline void mk_grouped(struct mk_plane *p, struct xpl_buf *line, const char *name,
                              int64_t at, int64_t ps, int64_t group) {
    struct xpl_buf ev = mk_event(p, name, at, ps);
    mk_stat_int(p, &ev, "group_id", group);
    mk_stat_int(p, &ev, "correlation_id", 7);
    mk_stat_str(p, &ev, "memcpy_details", "kind:0\nnum_bytes:64");
    mk_event_end(line, &ev);
}

static inline struct xpl_buf mk_gpu_profile(int steps) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(3, "/device:GPU:0");
    struct xpl_buf marks = mk_line(-559038737, "Steps"), compute = mk_line(14, "Stream #14"),
                   copies = mk_line(15, "Stream #15");
    for (int i = 0; i < steps; i++) {
        mk_grouped(&p, &marks, "step", i * 1000, 1000, i);
        mk_grouped(&p, &compute, "gemm", i * 1000 + 100, 300, i);
        mk_grouped(&p, &compute, "gemm_fp16", i * 1000 + 350, 200, i);
        mk_grouped(&p, &compute, "ncclAllReduce", i * 1000 + 600, 100, i);
        mk_grouped(&p, &copies, "MemcpyHtoD", i * 1000, 200, i);
        mk_grouped(&p, &copies, "MemcpyDtoH", i * 1000 + 900, 50, i);
    }
    mk_line_end(&p, &marks);
    mk_line_end(&p, &compute);
    mk_line_end(&p, &copies);
    mk_plane_end(&p, &space);
    return space;
}

static inline void mk_tpu_op(struct mk_plane *p, struct xpl_buf *line, const char *name, int64_t at,
                             int64_t ps, int64_t group) {
    struct xpl_buf ev = mk_event(p, name, at, ps);
    mk_stat_int(p, &ev, "group_id", group);
    mk_stat_int(p, &ev, "all_reduce_unique_id", 9);
    mk_event_end(line, &ev);
}

static inline struct xpl_buf mk_tpu_profile(int steps, int cores) {
    struct xpl_buf space = mk_open();
    struct mk_plane p;
    for (int core = 0; core < cores; core++) {
        char name[32];
        snprintf(name, sizeof name, "/device:TPU:%d", core);
        mk_plane_begin(&p, 4 + core, name);
        struct xpl_buf marks = mk_line(1, "Steps"), ops = mk_line(2, "XLA Ops");
        for (int i = 0; i < steps; i++) {
            mk_tpu_op(&p, &marks, "step", i * 1000, 1000, i);
            mk_tpu_op(&p, &ops, "fusion", i * 1000 + 100, 500, i);
            mk_tpu_op(&p, &ops, "all-reduce", i * 1000 + 200, 100, i);
        }
        mk_line_end(&p, &marks);
        mk_line_end(&p, &ops);
        mk_plane_end(&p, &space);
    }
    mk_plane_begin(&p, 0, "/host:CPU");
    struct xpl_buf line = mk_line(1, "main");
    for (int i = 0; i < steps; i++)
        mk_grouped(&p, &line, "IteratorGetNext", i * 1000, 100, i);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

// Appends a SparseCore that is at work for 3 ps in every 10, in file order or not, with its own
// `marks` steps.
static inline void mk_sparse_core(struct xpl_buf *space, int64_t id, int marks, int ops,
                                  bool ordered) {
    struct mk_plane p = mk_plane(id, "/device:TPU:0 SparseCore 0");
    mk_name(p.stats, &p.n_stats, "group_id");
    struct xpl_buf steps = mk_line(1, "Sparse Core Steps"), line = mk_line(2, "Sparse Core Ops");
    for (int i = 0; i < marks; i++)
        mk_grouped(&p, &steps, "step", i * 1000, 800, i);
    for (int i = 0; i < ops; i++) {
        const int k = ordered ? i : (int)(i * INT64_C(1237) % ops);
        struct xpl_buf ev = mk_event(&p, "gather", k * 10, 3);
        mk_stat_str(&p, &ev, "hlo_category", "gather");
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &steps);
    mk_line_end(&p, &line);
    mk_plane_end(&p, space);
}

#endif
