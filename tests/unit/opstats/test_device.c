// SPDX-License-Identifier: Apache-2.0
// The device part of a conversion, whole: TPU with a SparseCore, GPUs that run an HLO program,
// profiles without devices, odd and hostile ones.  Expected numbers are XProf 2.24.2's answers for
// the same bytes.
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/convert.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/arena.h"
#include "tests/cancelled.h"
#include "tests/data_file.h"
#include "tests/unit/opstats/device_profiles.h"

struct converted {
    struct xpl_arena arena;
    struct xpl_buf bytes;
    struct xpl_opstats *s;
    xpl_status_t status;
};

static struct converted convert_as(struct xpl_buf space, bool xprof_exact, struct xpl_exec *exec,
                                   size_t limit) {
    struct converted c = {.bytes = space};
    struct xpl_error err = {0};
    const struct xpl_convert_options opt = {.xprof_exact = xprof_exact};
    struct xpl_xspace *xs;
    xpl_arena_init(&c.arena, (size_t)1 << 30);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &c.arena, exec, &xs, &err), &err);
    c.status = xpl_opstats_convert(xs, &opt, exec, &c.arena, limit, &c.s, &err);
    CHECK_EQ(c.status, err.code);
    return c;
}
static struct converted convert_on(struct xpl_buf space, struct xpl_exec *exec, size_t limit) {
    return convert_as(space, false, exec, limit);
}
static struct converted convert(struct xpl_buf space) {
    struct xpl_exec exec = xpl_exec_serial();
    const struct converted c = convert_on(space, &exec, (size_t)1 << 30);
    CHECK_OK(c.status, NULL);
    return c;
}
static void drop(struct converted *c) {
    xpl_arena_fini(&c->arena);
    xpl_buf_fini(&c->bytes);
}
static bool is(xpl_str_t s, const char *expected) {
    return xpl_str_eq(s, xpl_str_from(expected));
}
static const struct xpl_op_metrics *find(const struct xpl_op_metrics_db *db, const char *name) {
    for (size_t i = 0; db && i < db->metrics_db.n; i++)
        if (is(db->metrics_db.v[i].name, name)) return &db->metrics_db.v[i];
    fprintf(stderr, "no op %s\n", name);
    abort();
}

// ---- TPU ----

static void check_tpu_ops(const struct xpl_op_metrics_db *db) {
    CHECK_EQ(db->metrics_db.n, 5); // the nameless op is none
    const struct xpl_op_metrics *m = find(db, "fusion.1");
    CHECK_EQ(m->time_ps, 600);
    CHECK_EQ(m->self_time_ps, 600);
    CHECK_EQ(m->min_time_ps, 100);
    CHECK_EQ(m->occurrences, 6);
    CHECK_EQ(m->flops, 6000);
    CHECK_EQ(m->bytes_accessed, 384);
    CHECK_EQ(m->model_flops, 6000);
    CHECK_REAL(m->flops_v2, 6000, 0);
    CHECK_EQ(m->core_type, XPL_CORE_TENSOR);
    CHECK_STR(m->provenance, "jit(f)/add:");
    CHECK_STR(m->long_name, "%fusion.1 = f32[8] fusion(...)");
    CHECK_STR(m->source_info.file_name, "model.py");
    CHECK_EQ(m->source_info.line_number, 12);
    CHECK_EQ(m->children->metrics_db.n, 3); // one by metadata, two from the program
    const struct xpl_op_metrics *const mul = find(m->children, "mul.1");
    CHECK_STR(mul->category, "non-fusion elementwise");
    CHECK_STR(mul->provenance, "jit(f)/layer/mul:");
    CHECK_EQ(find(m->children, "add.5")->hlo_module_id, 7);
    m = find(db, "while.2");
    CHECK_EQ(m->time_ps, 1000);
    CHECK_EQ(m->self_time_ps, 340);
    m = find(db, "custom-call.4"); // with what the SparseCore did for it
    const struct xpl_op_metrics *const gather = find(m->children, "gather.6");
    CHECK_EQ(gather->time_ps, 80);
    CHECK_EQ(gather->core_type, XPL_CORE_SPARSE);
    CHECK_EQ(find(m->children, "IDLE")->time_ps, 220);
    CHECK_EQ(m->children->total_time_ps, 300);
    CHECK_EQ(m->children->total_op_time_ps, 80);
    CHECK_EQ(find(db, "IDLE")->time_ps, 510);
    CHECK_EQ(db->total_time_ps, 1600);
    CHECK_EQ(db->total_op_time_ps, 1090);
    CHECK_EQ(db->busy_time_ps, 1130);
    CHECK_EQ(db->idle_time_ps, 1170);
    CHECK_EQ(db->busy_time_high_confidence_ps, 1030);
    CHECK_EQ(db->idle_time_high_confidence_ps, 1270);
}

static void tpu(bool sorted) {
    XPL_AUTO(drop) struct converted c = convert(mk_tpu_device(sorted));
    const struct xpl_opstats *const s = c.s;
    CHECK(s->has_device_op_metrics_db && s->has_perf_env && s->has_kernel_stats_db);
    check_tpu_ops(&s->device_op_metrics_db);
    const struct xpl_run_environment *const env = &s->run_environment;
    CHECK_EQ(env->hardware_type, XPL_HW_TPU);
    CHECK_EQ(env->device_core_count, 1);
    CHECK(env->is_training);
    CHECK_STR(env->device_type, "TPU v5");
    CHECK_STR(env->hostnames.v[0], "worker-0");
    CHECK_REAL(s->perf_env.peak_tera_flops_per_second, 200, 0);
    CHECK_REAL(s->perf_env.ridge_point, 250, 0);
    CHECK(s->perf_env.has_cmem && s->perf_env.has_megacore);
    CHECK_EQ(s->diagnostics.errors.n, 1);
    CHECK_STR(s->diagnostics.errors.v[0], "bad thing");
    CHECK_EQ(s->diagnostics.warnings.n, 1);
    CHECK_STR(s->diagnostics.warnings.v[0], "beware");
    CHECK_EQ(s->core_id_to_details.n, 1);
    const struct xpl_core_details *const core = s->core_id_to_details.v;
    CHECK_EQ(core->core_id, 3);
    CHECK_EQ(core->core_num, 1);
    CHECK_EQ(core->local_chip_id, 2);
    CHECK_EQ(core->global_chip_id, 3);
    CHECK_EQ(core->global_core_id, 4);
    CHECK_STR(core->hostname, "worker-0");
    CHECK_EQ(s->program_id_to_name_map.n, 1);
    CHECK_EQ(s->program_id_to_name_map.v[0].program_id, 7);
    CHECK_STR(s->program_id_to_name_map.v[0].name, "jit_step");
}

// Decoding steps of a server count when the program only infers.
static void serving(void) {
    struct xpl_buf space = mk_open();
    mk_tpu_plane(&space, true);
    struct mk_plane p = mk_plane(0, "/host:CPU");
    struct xpl_buf line = mk_line(1, "main");
    mk_plain(&p, &line, "WizServable::Run", 0, 10);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    XPL_AUTO(drop) struct converted c = convert(space);
    CHECK(c.s->has_disaggregated_serving_latency);
    CHECK_EQ(c.s->num_decode_steps, 1);
    CHECK_REAL(c.s->decode_step_time_us.avg, 0.002, 0);
}

// Events with kernel_details are kernels wherever they stand.
static void kernels_of_a_tpu(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/device:TPU:0");
    struct xpl_buf line = mk_line(77, "Stream #1(Kernel)");
    mk_kernel(&p, &line, (struct mk_kernel_event){"k", 0, 5999, NULL, "a/b:C", "regs:3"});
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    XPL_AUTO(drop) struct converted c = convert(space);
    CHECK_EQ(c.s->kernel_reports.n, 1);
    const struct xpl_kernel_report *const k = c.s->kernel_reports.v;
    CHECK_STR(k->name, "k");
    CHECK_STR(k->op_name, "a/b");
    CHECK_EQ(k->total_duration_ns, 5);
    CHECK_EQ(c.s->device_op_metrics_db.metrics_db.n, 1); // idle
}

// ---- GPU ----

static void gpu(void) {
    XPL_AUTO(drop) struct converted c = convert(mk_gpu_device(2));
    const struct xpl_opstats *const s = c.s;
    const struct xpl_op_metrics_db *const db = &s->device_op_metrics_db;
    CHECK_EQ(db->metrics_db.n, 5);
    const struct xpl_op_metrics *m = find(db, "fusion.1");
    CHECK_EQ(m->time_ps, 12000);
    CHECK_EQ(m->self_time_ps, 12000);
    CHECK_EQ(m->occurrences, 4);
    CHECK_STR(m->category, "loop fusion");
    CHECK_STR(m->provenance, "jit(f)/layer/add:");
    CHECK_STR(m->deduplicated_name, "fusion.0");
    CHECK_EQ(m->hlo_module_id, 7);
    CHECK_EQ(m->num_cores, 2);
    CHECK_STR(m->source_info.file_name, "model.py");
    CHECK_EQ(m->source_info.line_number, 31);
    m = find(db, "dot.2");
    CHECK_EQ(m->time_ps, 22000);
    CHECK_STR(m->category, "dot");
    CHECK_EQ(m->source_info.line_number, -1);
    m = find(db, "layer/MatMul/gemm");
    CHECK_EQ(m->time_ps, 7000);
    CHECK_STR(m->category, "MatMul");
    CHECK_EQ(m->hlo_module_id, 0);
    m = find(db, "no-such-op"); // as its events name it
    CHECK_EQ(m->time_ps, 2000);
    CHECK_STR(m->category, "no HLO");
    CHECK_EQ(m->hlo_module_id, 7);
    CHECK_EQ(find(db, "IDLE")->time_ps, 57000);
    CHECK_EQ(db->total_time_ps, 100000);
    CHECK_EQ(db->total_op_time_ps, 43000);
    CHECK_EQ(s->kernel_reports.n, 4);
    const struct xpl_kernel_report *const k = s->kernel_reports.v;
    CHECK_STR(k[0].name, "h884gemm");
    CHECK_EQ(k[0].total_duration_ns, 22);
    CHECK_EQ(k[0].occurrences, 4);
    CHECK(k[0].is_kernel_using_tensor_core && k[0].is_op_tensor_core_eligible);
    CHECK_STR(k[0].op_name, "jit(f)/transpose(jvp(layer))/dot_general");
    CHECK_STR(k[1].name, "fused_add");
    CHECK_REAL(k[1].occupancy_pct, 50, 0);
    CHECK_EQ(k[1].grid_dim[0], 8);
    CHECK_STR(k[2].name, "gemm");
    CHECK_EQ(k[2].total_duration_ns, 6);
    CHECK_STR(k[2].op_name, "layer/MatMul");
    CHECK_STR(k[3].name, "lost");
    CHECK_EQ(k[3].op_name.len, 0);
    CHECK_EQ(s->run_environment.hardware_type, XPL_HW_GPU);
    CHECK(s->run_environment.is_training);
    CHECK_STR(s->run_environment.device_type, "Nvidia GPU (Hopper)");
    CHECK_EQ(s->run_environment.device_core_count, 2);
    CHECK_EQ(s->core_id_to_details.n, 1);
    CHECK_EQ(s->core_id_to_details.v[0].core_id, 1);
    CHECK_REAL(s->perf_env.peak_tera_flops_per_second, 819.2, 0);
    CHECK_REAL(s->perf_env.ridge_point, 409.6, 0);
}

// Of a GPU that the process does not use its plane may say only who made it.
static void first_is_unknown(void) {
    for (int exact = 0; exact < 2; exact++) {
        struct xpl_exec exec = xpl_exec_serial();
        struct xpl_buf space = mk_open();
        struct mk_plane p;
        mk_plane_begin(&p, 9, "/device:GPU:0");
        mk_stat_text(&p, &p.body, MK_PLANE_STATS, "device_vendor", 5, "Nvidia", 6);
        mk_plane_end(&p, &space);
        mk_gpu_plane(&space, 2, "/device:GPU:1");
        struct converted c = convert_as(space, exact, &exec, (size_t)1 << 30);
        CHECK_OK(c.status, NULL);
        CHECK_REAL(c.s->perf_env.peak_tera_flops_per_second, exact ? 0 : 819.2, 0);
        CHECK_STR(c.s->run_environment.device_type, exact ? "Nvidia GPU" : "Nvidia GPU (Hopper)");
        CHECK_EQ(c.s->run_environment.device_core_count, 2);
        drop(&c);
    }
}

// ---- odd profiles ----

static void without_devices(void) {
    struct xpl_buf space = mk_open();
    XPL_AUTO(drop) struct converted c = convert(space);
    CHECK_EQ(c.s->run_environment.hardware_type, XPL_HW_CPU_ONLY);
    CHECK_STR(c.s->run_environment.device_type, "CPU");
    CHECK(!c.s->has_perf_env);
    CHECK_STR(c.s->run_environment.hostnames.v[0], "localhost");
    CHECK_EQ(c.s->core_id_to_details.n, 1);
    CHECK(!c.s->run_environment.is_training);
    CHECK_EQ(c.s->device_op_metrics_db.metrics_db.n, 0);
}

static void many_empty_planes(const char *name) {
    struct xpl_buf space = mk_open();
    for (int i = 0; i < 200000; i++) {
        struct mk_plane p = mk_plane(i, name);
        mk_plane_end(&p, &space);
    }
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(drop) struct converted c = convert_on(space, &exec, (size_t)1 << 28);
    CHECK_OK(c.status, NULL);
}

// Times at the ends of their range, in every line, with every kind of plane.
static void extreme_times(void) {
    static const int64_t v[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_MAX - 1};
    enum { N = sizeof v / sizeof *v };
    struct xpl_buf space = mk_open();
    struct mk_plane p;
    static const char *const planes[] = {"/device:TPU:0", "/device:TPU:0 SparseCore 1"};
    static const char *const lines[] = {"XLA Ops", "XLA Modules", "Sparse Core Ops",
                                        "Sparse Core Modules", "Steps"};
    for (int k = 0; k < 2; k++) {
        mk_plane_begin(&p, k, planes[k]);
        mk_tpu_ops(&p);
        for (int l = 0; l < 5; l++) {
            struct xpl_buf line = mk_line(l, lines[l]);
            mk_int(&line, 3, INT64_MAX); // timestamp_ns
            for (int i = 0; i < N * N; i++)
                mk_op_run(&line, MK_FUSION + i % 4, v[i / N], v[i % N]);
            mk_line_end(&p, &line);
        }
        mk_plane_end(&p, &space);
    }
    struct converted c = convert(space);
    drop(&c);
    space = mk_open();
    mk_plane_begin(&p, 0, "/device:GPU:0");
    struct xpl_buf line = mk_line(1, "Stream #1");
    for (int i = 0; i < N * N; i++)
        mk_kernel(&p, &line,
                  (struct mk_kernel_event){"k", v[i / N], v[i % N], i % 2 ? "op" : NULL, "a:b",
                                           "regs:1"});
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    c = convert(space);
    drop(&c);
}

// Metadata whose children form a wide graph: every op has the next one twice as child.
static void explosive_children(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/device:TPU:0");
    enum { DEPTH = 60 };
    for (int i = 0; i < DEPTH; i++) {
        struct xpl_buf md = mk_open(), entry = mk_open();
        mk_int(&md, 1, i + 1);
        mk_text(&md, 2, "op");
        mk_stat_number(&p, &md, MK_MD_STATS, "program_id", 4, 1);
        mk_stat_number(&p, &md, MK_MD_STATS, "symbol_id", 4, 1);
        mk_int(&md, 6, i + 2);
        mk_int(&md, 6, (i + 2) % DEPTH); // and the last one the first: a cycle
        mk_int(&entry, 1, i + 1);
        mk_close(&entry, 2, &md);
        mk_close(&p.body, 4, &entry);
    }
    struct xpl_buf line = mk_line(1, "XLA Ops");
    mk_op_run(&line, 1, 0, 10);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    XPL_AUTO(drop) struct converted c = convert(space);
    CHECK(find(&c.s->device_op_metrics_db, "op")->children);
}

static void small_limits(void) {
    struct xpl_exec exec = xpl_exec_serial();
    for (size_t limit = 0; limit < 1 << 20; limit = limit * 2 + 512) {
        struct converted c = convert_on(mk_tpu_device(true), &exec, limit);
        CHECK(c.status == XPL_OK || c.status == XPL_RESOURCE_EXHAUSTED);
        drop(&c);
        c = convert_on(mk_gpu_device(2), &exec, limit);
        CHECK(c.status == XPL_OK || c.status == XPL_RESOURCE_EXHAUSTED);
        drop(&c);
    }
}

// The same bytes on one thread and on four.
static void same_on_all_threads(struct xpl_buf (*make)(void)) {
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(4);
    CHECK(pool);
    struct xpl_buf out[2];
    for (int i = 0; i < 2; i++) {
        struct xpl_exec serial = xpl_exec_serial();
        struct xpl_error err = {0};
        struct converted c =
            convert_on(make(), i ? xpl_exec_pool_get(pool) : &serial, (size_t)1 << 30);
        CHECK_OK(c.status, NULL);
        xpl_buf_init(&out[i], (size_t)1 << 30);
        CHECK_OK(xpl_opstats_encode(c.s, &out[i], &err), &err);
        drop(&c);
    }
    CHECK_EQ(out[0].n, out[1].n);
    CHECK_BYTES(out[0].p, out[0].n, out[1].p, out[0].n);
    xpl_buf_fini(&out[0]);
    xpl_buf_fini(&out[1]);
    xpl_exec_pool_free(pool);
}
// ---- what XProf does not know, and xprof_exact does not say ----

static const struct xpl_op_metrics *find_in(const struct xpl_op_metrics_db *db, uint64_t program,
                                            const char *begin) {
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (m->hlo_module_id == program && xpl_str_starts(m->name, xpl_str_from(begin))) return m;
    }
    fprintf(stderr, "no op %s...\n", begin);
    abort();
}

// Programs 7 and 8 have an instruction that XLA's cost analysis fails on, 9 has none.
static void lost_costs(void) {
    enum { ARRAY = 64 * 64 * 4, GEMM = 2 * 64 * 64 * 64 };
    for (int exact = 0; exact < 2; exact++) {
        struct xpl_exec exec = xpl_exec_serial();
        struct converted c =
            convert_as(read_data_file("../golden/cases/gpu_lost_costs/host.xplane.pb"), exact,
                       &exec, (size_t)1 << 30);
        CHECK_OK(c.status, NULL);
        const struct xpl_op_metrics_db *const db = &c.s->device_op_metrics_db;
        CHECK_EQ(find_in(db, 7, "exponential")->bytes_accessed, exact ? 0 : 2 * 2 * ARRAY);
        CHECK_EQ(find_in(db, 7, "custom-call")->model_flops, exact ? 0 : 2 * GEMM);
        CHECK_EQ(find_in(db, 8, "negate")->bytes_accessed, exact ? 0 : 2 * 2 * ARRAY);
        // What the events themselves say is left.
        CHECK_EQ(find_in(db, 8, "all-reduce")->bytes_accessed, exact ? 2 * 777 : 2 * 2 * ARRAY);
        CHECK_EQ(find_in(db, 9, "tanh")->bytes_accessed, 2 * 2 * ARRAY);
        CHECK_EQ(find_in(db, 9, "custom-call")->model_flops, 2 * GEMM);
        drop(&c);
    }
}

// A multiplication of [8192,4096] by [4096,8192] by rocBLAS, whose cost XProf does not know.
static void older_gemms(void) {
    for (int exact = 0; exact < 2; exact++) {
        struct xpl_exec exec = xpl_exec_serial();
        struct converted c =
            convert_as(read_data_file("logdir/accel/plugins/profile/mi300_jax_gemm/"
                                      "mi300_jax_gemm.xplane.pb"),
                       exact, &exec, (size_t)1 << 30);
        CHECK_OK(c.status, NULL);
        const struct xpl_op_metrics_db *const db = &c.s->device_op_metrics_db;
        uint64_t most = 0;
        for (size_t i = 0; i < db->metrics_db.n; i++) {
            const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
            if (is(m->name, "custom-call.1") && m->model_flops / m->occurrences > most)
                most = m->model_flops / m->occurrences;
        }
        CHECK_EQ(most, exact ? 0 : UINT64_C(2) * 8192 * 8192 * 4096);
        drop(&c);
    }
}

// An op's time in units of the first event, each event lasting twice as long as the one before.
static uint64_t events_of(const struct xpl_op_metrics_db *db, uint64_t program, const char *name) {
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (m->hlo_module_id == program && is(m->name, name)) return m->time_ps / 1000000;
    }
    return 0;
}

// Kernels whose launch names no instruction: in a graph those of fusions by their names, in the
// program with that id; the rest under the launch's name.
static void graph_kernels(void) {
    for (int exact = 0; exact < 2; exact++) {
        struct xpl_exec exec = xpl_exec_serial();
        struct converted c =
            convert_as(read_data_file("../golden/cases/gpu_graph_kernels/host.xplane.pb"), exact,
                       &exec, (size_t)1 << 30);
        CHECK_OK(c.status, NULL);
        const struct xpl_op_metrics_db *const db = &c.s->device_op_metrics_db;
        CHECK_EQ(db->metrics_db.n, exact ? 2 : 9);            // with IDLE
        CHECK_EQ(events_of(db, 5, "plain"), 1 << 6 | 1 << 7); // what the events themselves name
        CHECK_EQ(events_of(db, 5, "loop_add_fusion"), exact ? 0 : 1 << 0);
        CHECK_EQ(events_of(db, 5, "loop_add_fusion.1"), exact ? 0 : 1 << 1);
        CHECK_EQ(events_of(db, 55, "loop_add_fusion.1"), exact ? 0 : 1 << 2);
        // A library's kernel, one that two fusions could have, a graph that ran as a whole, those
        // of programs that the profile has not or does not name, and one that is in no graph.
        CHECK_EQ(events_of(db, 5, "command_buffer_1"), exact ? 0 : 1 << 3 | 1 << 4 | 1 << 5);
        CHECK_EQ(events_of(db, 5, "command_buffer_2"), exact ? 0 : 1 << 8);
        CHECK_EQ(events_of(db, 777, "command_buffer_1"), exact ? 0 : 1 << 9);
        CHECK_EQ(events_of(db, 0, "command_buffer_1"), exact ? 0 : 1 << 10);
        if (!exact) {
            const struct xpl_op_metrics *const m = find_in(db, 55, "loop_add_fusion.1");
            CHECK_STR(m->provenance, "jit(other)/fusion:");
            CHECK_STR(m->category, "loop fusion");
            CHECK_EQ(m->bytes_accessed, 2 * 64 * 64 * 4);
            CHECK_STR(find_in(db, 5, "command_buffer_2")->category, "command buffer");
        }
        drop(&c);
    }
}

// A CPU as the device: costs as on a GPU, but that an operation is one, and none of what only
// contains other ops.
static struct xpl_buf cpu_profile(void) {
    static const char *const names[] = {"neg", "tanh", "loop"};
    static const char *const opcodes[] = {"negate", "tanh", "call"};
    struct xpl_buf space = mk_open(), m = mk_module("jit_f", 2);
    struct xpl_buf inner = mk_computation("inner", 1, 1), main = mk_computation("main", 2, 12);
    mk_hlo_instr(&inner, (struct mk_instr){.id = 1, .name = "q", .opcode = "parameter"});
    mk_computation_end(&m, &inner);
    mk_hlo_instr(&main, (struct mk_instr){.id = 9, .name = "p", .opcode = "parameter"});
    for (int i = 0; i < 3; i++)
        mk_hlo_instr(&main, (struct mk_instr){.id = 10 + i,
                                              .name = names[i],
                                              .opcode = opcodes[i],
                                              .operands = {9},
                                              .called = i == 2 ? 1 : 0});
    mk_computation_end(&m, &main);
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf line = mk_line(1, "tf_XLATfrt/0");
    for (int i = 0; i < 6; i++) {
        struct xpl_buf ev = mk_event(&p, "op", i * 1000, 500);
        mk_stat_str(&p, &ev, "hlo_op", names[i % 3]);
        mk_stat_int(&p, &ev, "program_id", 7);
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    p = mk_metadata_plane();
    mk_program(&p.body, 7, &m);
    mk_plane_end(&p, &space);
    return space;
}

static void costs_of_a_cpu(void) {
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_convert_options opt = {.cpu_as_device = true};
    XPL_AUTO(drop) struct converted c = {.bytes = cpu_profile()};
    struct xpl_xspace *xs;
    xpl_arena_init(&c.arena, (size_t)1 << 30);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){c.bytes.p, c.bytes.n}, &c.arena, &exec, &xs, NULL),
             NULL);
    CHECK_OK(xpl_opstats_convert(xs, &opt, &exec, &c.arena, (size_t)1 << 30, &c.s, NULL), NULL);
    static const char *const names[] = {"neg", "tanh", "loop"};
    for (int i = 0; i < 3; i++) {
        const struct xpl_op_metrics *const m = find(&c.s->device_op_metrics_db, names[i]);
        CHECK_EQ(m->occurrences, 2);
        CHECK_EQ(m->flops, i < 2 ? 2 : 0);
        CHECK_EQ(m->model_flops, i < 2 ? 2 : 0);
        CHECK_REAL(m->flops_v2, i < 2 ? 2 : 0, 0);
        CHECK_EQ(m->bytes_accessed, i < 2 ? 2 * 8 : 0);
        CHECK_EQ(m->memory_accessed_breakdown.n, i < 2 ? 2 : 0); // read and written
        for (size_t k = 0; k < m->memory_accessed_breakdown.n; k++)
            CHECK_EQ(m->memory_accessed_breakdown.v[k].bytes_accessed, 2 * 4);
    }
}

static struct xpl_buf many_gpus(void) {
    return mk_gpu_device(70);
}
static struct xpl_buf many_tpus(void) {
    struct xpl_buf space = mk_open();
    for (int i = 0; i < 70; i++)
        mk_tpu_plane(&space, i % 2);
    mk_sparse_plane(&space);
    return space;
}
static struct xpl_buf real_gpu(void) {
    return read_data_file("logdir/accel/plugins/profile/mi300_jax_gemm/mi300_jax_gemm.xplane.pb");
}

static void cancelled(void) {
    struct xpl_exec exec = xpl_exec_serial();
    exec.cancelled = always_cancelled;
    struct xpl_buf file =
        read_data_file("logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb");
    XPL_AUTO(drop) struct converted c = {.bytes = file};
    struct xpl_error err = {0};
    const struct xpl_convert_options opt = {0};
    struct xpl_xspace *xs;
    xpl_arena_init(&c.arena, (size_t)1 << 30);
    const xpl_status_t st =
        xpl_xspace_open((xpl_bytes_t){file.p, file.n}, &c.arena, &exec, &xs, &err);
    if (st == XPL_OK)
        CHECK_STATUS(xpl_opstats_convert(xs, &opt, &exec, &c.arena, (size_t)1 << 30, &c.s, &err),
                     XPL_CANCELLED, &err);
}

int main(void) {
    tpu(true);
    tpu(false);
    serving();
    kernels_of_a_tpu();
    gpu();
    without_devices();
    many_empty_planes("/device:TPU:0");
    many_empty_planes("/device:TPU:0 SparseCore 1");
    many_empty_planes("/device:GPU:0");
    extreme_times();
    explosive_children();
    small_limits();
    lost_costs();
    older_gemms();
    first_is_unknown();
    graph_kernels();
    costs_of_a_cpu();
    same_on_all_threads(many_gpus);
    same_on_all_threads(many_tpus);
    same_on_all_threads(real_gpu);
    cancelled();
    return 0;
}
