// SPDX-License-Identifier: Apache-2.0
// The tools of ops, kernels and cores against what XProf answers, and at their limits.
#include "tests/unit/opstats/opstats_fixture.h"

#include <stdio.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/tools/lib/op_record.h"
#include "base/status.h"
#include "tests/data_file.h"
#include "tests/processor_time.h"

enum { LIMIT = 64 << 20 };

static void answer(const char *tool, const char *group_by, const struct xpl_opstats *s,
                   struct xpl_buf *out) {
    const char *const options[] = {*group_by ? "group_by" : NULL, group_by, NULL};
    struct xpl_error err = {0};
    out->n = 0;
    CHECK_OK(render_op_stats(named_tool(tool), s, options, LIMIT, out, &err), &err);
    xpl_buf_putc(out, 0);
    CHECK(!out->failed);
    out->n--;
}

static void check_golden(const char *stats, const char *tool, const char *group_by) {
    char name[100];
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_opstats *s;
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    (void)snprintf(name, sizeof name, "opstats/%s.pb", stats);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf in = read_data_file(name);
    (void)snprintf(name, sizeof name, "opstats/%s.%s%s%s.json", stats, tool, *group_by ? "." : "",
                   group_by);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf expected = read_data_file(name);
    CHECK_OK(xpl_opstats_decode((xpl_bytes_t){in.p, in.n}, &a, &s, &err), &err);
    answer(tool, group_by, s, &out);
    if (out.n != expected.n || memcmp(out.p, expected.p, expected.n) != 0) {
        size_t at = 0;
        while (at < out.n && at < expected.n && out.p[at] == expected.p[at])
            at++;
        fprintf(stderr, "%s: differs at byte %zu: ...%.120s\n", name, at,
                (const char *)out.p + (at > 40 ? at - 40 : 0));
        CHECK(false);
    }
}

static size_t count(const char *text, const char *part) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
        n++;
    return n;
}

static xpl_str_t numbered(struct xpl_arena *a, const char *prefix, unsigned i) {
    xpl_str_t s;
    CHECK(xpl_arena_printf(a, &s, "%s%u", prefix, i));
    return s;
}

// 150 ops in one group, and 150 groups.
static void test_cut(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {0};
    for (unsigned i = 0; i < 150; i++) {
        struct xpl_op_metrics *m = add_op(&a, &s.device_op_metrics_db, "x", "same", 1000 + i);
        m->name = numbered(&a, "twin.", i);
        m->deduplicated_name = XPL_STR("twin");
        m->provenance = XPL_STR("f/g");
        m = add_op(&a, &s.device_op_metrics_db, "x", "other", 1000 + i);
        m->name = numbered(&a, "single.", i);
        m->provenance = XPL_STR("f/g");
    }
    answer("op_profile", "program", &s, &out);
    const char *const text = (const char *)out.p;
    CHECK_EQ(count(text, "\"name\":\"twin."),
             2 * (100 + 1)); // and the group called after its first
    CHECK_EQ(count(text, "\"name\":\"single."), 2 * 100);
    CHECK_EQ(count(text, "\"numChildren\":150"), 2 * 2);
    CHECK_HAS(text, "\"twin.149 and its duplicate(s)\"");
    CHECK_LACKS(text, "\"twin.49\"");
    answer("op_profile", "provenance", &s, &out);
    CHECK_EQ(count((const char *)out.p, "\"name\":\"twin."), 2 * (150 + 1));
}

// Of equal time, as C++'s partial_sort leaves them.
static void test_ties(void) {
    static const int expected[] = {8, 4, 1, 7, 5, 3, 0, 2, 6};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {0};
    for (unsigned i = 0; i < 9; i++)
        add_op(&a, &s.device_op_metrics_db, "x", "same", 1000)->name = numbered(&a, "op.", i);
    answer("op_profile", "category", &s, &out);
    const char *at = (const char *)out.p;
    for (size_t i = 0; i < 9; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "\"name\":\"op.%d\"", expected[i]);
        CHECK((at = strstr(at, name)));
    }
}

static void test_deep_names(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {0};
    char path[60001];
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 2 ? '/' : 'p';
    struct xpl_op_metrics *const m = add_op(&a, &s.device_op_metrics_db, "op", "category", 5);
    m->provenance = (xpl_str_t){path, sizeof path};
    answer("op_profile", "provenance", &s, &out);
    CHECK_EQ(count((const char *)out.p, "\"name\":\"p\""), 2 * 1999);
    CHECK_HAS((const char *)out.p, "\"name\":\"category\"");
}

// Ops that share a path of many parts: its parts are looked up once.
static void test_shared_paths(void) {
    enum { N = 40000, PARTS = 1900 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {0};
    char path[2 * PARTS - 1];
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 2 ? '/' : 'p';
    for (unsigned i = 0; i < N; i++) {
        struct xpl_op_metrics *const m = add_op(&a, &s.device_op_metrics_db, "op", "category", 5);
        m->name = XPL_STR("op");
        m->flops_v2 = 3;
        m->provenance = (xpl_str_t){path, sizeof path};
    }
    const double begin = processor_s();
    answer("op_profile", "provenance", &s, &out);
    CHECK(is_within(begin, 5));
    // Each part, and each level below the last one, has all of it, with idle time and without.
    char sums[50];
    (void)snprintf(sums, sizeof sums, "\"rawTime\":%d,\"rawFlops\"", 5 * N);
    CHECK_EQ(count((const char *)out.p, "\"name\":\"p\""), 2 * PARTS);
    CHECK(count((const char *)out.p, sums) >= 2 * PARTS);
}

static void test_long_tables(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {0};
    for (unsigned i = 0; i < 600; i++) {
        add_op(&a, &s.device_op_metrics_db, "x", "fusion", 10)->name = numbered(&a, "d", i);
        add_op(&a, &s.host_op_metrics_db, "x", "Type", 10)->name = numbered(&a, "h", i);
    }
    add_op(&a, &s.host_op_metrics_db, "IDLE", "IDLE", 20);
    answer("framework_op_stats", "", &s, &out);
    const char *const text = (const char *)out.p, *const second = strstr(text, "},{\"cols\"");
    CHECK(second);
    CHECK_EQ(count(text, "\"Device\""), 2 * 500);
    CHECK_EQ(count(text, "\"Host\""), 500 + 499); // idle time had a place among the 500
    CHECK_EQ(count(second, "\"Host\""), 499);
    CHECK_EQ(count(second, "\"IDLE\""), 0);
    CHECK_HAS(second, "{\"v\":999.0}");
    CHECK_LACKS(second, "{\"v\":1000.0}");
    CHECK_LACKS(text, "gpu_tensorcore_utilization");
}

static void test_odd_values(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {0};
    struct xpl_kernel_report *const k = add_kernel(&a, &s);
    k->name = (xpl_str_t){"a\0\xff", 3};
    k->total_duration_ns = UINT64_MAX; // of no occurrence
    k->n_grid_dim = 2;
    answer("kernel_stats", "", &s, &out);
    CHECK_HAS((const char *)out.p, "\"a\\u0000\xef\xbf\xbd\"");
    CHECK_HAS((const char *)out.p, "{\"v\":\"0,0\"}");
    struct xpl_op_metrics *const m = add_op(&a, &s.device_op_metrics_db, "op\"", "c", UINT64_MAX);
    m->flops_v2 = __builtin_nan("");
    m->model_flops_v2 = __builtin_inf();
    m->layout = (xpl_bytes_t){(const uint8_t *)"\x0a\x02\x18\x09\x0a\x7f", 6}; // ends too early
    m->has_layout = true;
    answer("op_profile", "category", &s, &out);
    CHECK_HAS((const char *)out.p, "\"rawFlops\":\"Infinity\"");
    CHECK_HAS((const char *)out.p, "{\"size\":0,\"alignment\":0,\"semantics\":\"\"}]}");
    answer("framework_op_stats", "", &s, &out);
    CHECK_HAS((const char *)out.p, "{\"v\":null}");
}

static void test_task_type(void) {
    static const struct {
        const char *name, *type, *task;
    } cases[] = {
        {"model/gradients/MatMul", "MatMul", "Training"},
        {"gradient_tape/x", "Mul", "Training"},
        {"x/gradient_tapes/y", "Mul", "Inference"},
        {"gradients", "Mul", "Inference"}, // the op itself, not a scope
        {"jit(f)/transpose(jvp(g))/mul", "mul", "Training"},
        {"jit(f)/mytranspose(x)/mul", "mul", "Inference"},
        {"jit(f)/transpose[permutation=(1, 0)]", "", "Inference"},
        {"transpose(x)", "", "Training"},
        {"transpose(x)", "no type at all", "Inference"},
    };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_opstats s = {0};
        char expected[64];
        add_op(&a, &s.host_op_metrics_db, cases[i].name, cases[i].type, 1);
        answer("framework_op_stats", "", &s, &out);
        (void)snprintf(expected, sizeof expected, "\"task_type\":\"%s\"", cases[i].task);
        CHECK_HAS((const char *)out.p, expected);
    }
}

static void test_bound_by(void) {
    static const struct {
        enum xpl_hardware hardware;
        uint64_t space;
        int32_t kind;
        const char *bound;
    } cases[] = {
        {XPL_HW_TPU, 1, XPL_MEM_OP_READ, "HBM"},
        {XPL_HW_TPU, 2, XPL_MEM_OP_READ, "CMEM Read"},
        {XPL_HW_TPU, 2, XPL_MEM_OP_WRITE, "CMEM Write"},
        {XPL_HW_TPU, 3, XPL_MEM_OP_READ, "VMEM Read"},
        {XPL_HW_TPU, 3, XPL_MEM_OP_WRITE, "VMEM Write"},
        {XPL_HW_TPU, 3, XPL_MEM_OP_UNKNOWN, "Unknown"},
        {XPL_HW_GPU, 3, XPL_MEM_OP_READ, "Unknown"},
        {XPL_HW_GPU, 1, XPL_MEM_OP_READ, "Shm/L1"}, // its peak is made smaller than HBM's below
    };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_opstats s = {.run_environment.hardware_type = cases[i].hardware};
        char expected[64];
        for (int k = 0; k < 7; k++) {
            double *const peak = xpl_vec_push(&a, &s.perf_env.peak_bws_giga_bytes_per_second);
            CHECK(peak);
            *peak = 100 - k;
        }
        struct xpl_op_metrics *const m = add_op(&a, &s.host_op_metrics_db, "x", "X", 1000);
        struct xpl_memory_accessed *const accessed =
            xpl_vec_push(&a, &m->memory_accessed_breakdown);
        CHECK(accessed);
        *accessed = (struct xpl_memory_accessed){cases[i].kind, cases[i].space, 1000};
        answer("framework_op_stats", "", &s, &out);
        (void)snprintf(expected, sizeof expected, "{\"v\":\"%s\"}", cases[i].bound);
        CHECK_HAS((const char *)out.p, expected);
    }
}

// Ops of sparse cores, and ops in between that are not shown, as deep as OpStats can have them.
static void test_hlo_children(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {0};
    struct xpl_op_metrics *m = add_op(&a, &s.device_op_metrics_db, "top", "call", 1000);
    for (unsigned i = 0; i < XPL_OPSTATS_MAX_DEPTH + 8; i++) {
        m->children = xpl_arena_zalloc(&a, sizeof *m->children);
        CHECK(m->children);
        m = add_op(&a, m->children, "x", "sc", 10);
        m->name = numbered(&a, "sc.", i);
        m->core_type = i % 2 ? XPL_CORE_SPARSE : XPL_CORE_TENSOR;
    }
    answer("hlo_stats", "", &s, &out);
    const char *const text = (const char *)out.p;
    CHECK_EQ(count(text, "\"SparseCore\""), XPL_OPSTATS_MAX_DEPTH / 2);
    CHECK_HAS(text, "{\"v\":\"SparseCore\"},{\"v\":\"sc.0\"}"); // and its parent
    CHECK_LACKS(text, "{\"v\":\"TensorCore\"}");
    m = &s.device_op_metrics_db.metrics_db.v[0];
    m->children->metrics_db.v[0].occurrences = 0; // nothing below it, either
    answer("hlo_stats", "", &s, &out);
    CHECK_LACKS((const char *)out.p, "SparseCore");
}

// What the columns of flags and of the source say.
static void test_hlo_flags(void) {
    static const struct {
        const char *text, *provenance, *cells; // rematerialized, outside, autotuned
    } cases[] = {
        {"%a.remat = f32[] add()", "", "Yes No No"},
        {"%a = f32[] add(%b.remat)", "", "No No No"},
        {"%a = f32[] add()", "jit(f)/jvp(rematted_computation)/mul:", "Yes No No"},
        {"", "a/b:XlaSendToHost", "No Yes No"},
        {"", "a/b:XlaRecvFromHost", "No Yes No"},
        {"", "a/b:XlaRecvFromHost:", "No No No"},
        {"%send-done.1 = token[] send-done(x), is_host_transfer=true", "", "No Yes No"},
        {"%send-done.1 = token[] send-done(x)", "", "No No No"},
    };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_opstats s = {0};
        char expected[120];
        struct xpl_op_metrics *const m = add_op(&a, &s.device_op_metrics_db, "x", "add", 1);
        m->long_name = xpl_str_from(cases[i].text);
        m->provenance = xpl_str_from(cases[i].provenance);
        const bool remat = cases[i].cells[0] == 'Y', outside = strstr(cases[i].cells + 3, "Yes");
        (void)snprintf(expected, sizeof expected, "{\"v\":\"%s\"},{\"v\":\"%s\"},{\"v\":\"No\"}",
                       remat ? "Yes" : "No", outside ? "Yes" : "No");
        answer("hlo_stats", "", &s, &out);
        CHECK_HAS((const char *)out.p, expected);
    }
    struct xpl_opstats s = {0};
    struct xpl_op_metrics *const m = add_op(&a, &s.device_op_metrics_db, "x", "add", 1);
    m->source_info = (struct xpl_source_info){XPL_STR("<a&'b>.py"), XPL_STR("\"f\"\n"), -2};
    answer("hlo_stats", "", &s, &out);
    CHECK_HAS((const char *)out.p, "title='&quot;f&quot;\\n'>&lt;a&amp;&#39;b&gt;.py:-2</div>\"}");
    m->source_info.line_number = -1;
    answer("hlo_stats", "", &s, &out);
    CHECK_LACKS((const char *)out.p, "source-info-cell");
}

// Sums of times and bytes beyond 64 bits stay at the maximum; a subtraction below zero gives zero,
// without wrapping.
static void test_roofline_limits(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {.run_environment = {.hardware_type = XPL_HW_TPU,
                                                .device_type = XPL_STR("TPU v4"),
                                                .device_core_count = 1}};
    for (int i = 0; i < 3; i++) {
        struct xpl_op_metrics *const m =
            add_op(&a, &s.device_op_metrics_db, i ? "op" : "in", i ? "fusion" : "infeed", 1000000);
        // Without the cap the sum is 0.
        m->bytes_accessed = i == 2 ? 2 : UINT64_MAX;
        struct xpl_memory_accessed *const accessed =
            xpl_vec_push(&a, &m->memory_accessed_breakdown);
        CHECK(accessed);
        *accessed = (struct xpl_memory_accessed){XPL_MEM_OP_READ, XPL_SPACE_HBM, m->bytes_accessed};
    }
    s.device_op_metrics_db.metrics_db.v[0].time_ps = UINT64_MAX;
    s.device_op_metrics_db.metrics_db.v[1].flops_v2 = 0x1p64;
    answer("roofline_model", "", &s, &out);
    const char *const text = (const char *)out.p;
    // The program, with transfers: 2^64 bytes in 3 us, and an operational intensity of 1.
    CHECK_HAS(text, "{\"v\":5.726623061333333e+15},{\"v\":5.726623061333333e+15},{\"v\":0.0},"
                    "{\"v\":0.0},{\"v\":0.0},{\"v\":0.0},{\"v\":1.0},{\"v\":1.0},");
    // Without transfers no time is left, and no op has a share of it.
    CHECK_HAS(text, "{\"v\":\"Program\"},{\"v\":\"Program\"},{\"v\":1.0},{\"v\":0.0},{\"v\":0.0},");
    CHECK_HAS(text, "{\"v\":\"op\"},{\"v\":2.0},{\"v\":1.0},{\"v\":0.5},{\"v\":1.0},"
                    "{\"v\":0.5},{\"v\":0.0},{\"v\":0.0},");
}

// Which rows a roofline has, and what counts for the program.
static void test_roofline_rows(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_opstats s = {.run_environment = {.hardware_type = XPL_HW_TPU,
                                                .device_type = XPL_STR("TPU v4"),
                                                .device_core_count = 2},
                            .has_hlo_metrics_db_complete_steps_only = true};
    for (unsigned i = 0; i < 1200; i++)
        add_op(&a, &s.device_op_metrics_db, "op", "fusion", 3000000)->flops_v2 = 1;
    // The longest of all, and one that only its name tells: neither is there without transfers.
    add_op(&a, &s.device_op_metrics_db, "in", "sparsecorev0 infeed", 9000000);
    add_op(&a, &s.device_op_metrics_db, "outfeed", "Unknown", 8000000);
    add_op(&a, &s.device_op_metrics_db, "w", "while", 1)->flops_v2 = 1000000;
    add_op(&a, &s.device_op_metrics_db, "sc", "fusion", 1)->flops_v2 = 1000000;
    s.device_op_metrics_db.metrics_db.v[1203].core_type = XPL_CORE_SPARSE;
    add_step(&a, &s, 7); // without ops
    answer("roofline_model", "", &s, &out);
    const char *const text = (const char *)out.p;
    CHECK_EQ(count(text, "{\"v\":\"fusion\"}"), 2 * 998); // those cut off are not made up for
    CHECK_EQ(count(text, "{\"v\":\"sparsecorev0 infeed\"}"), 1);
    CHECK_EQ(count(text, "{\"v\":\"outfeed\"},{\"v\":\"outfeed\"}"), 1);
    CHECK_EQ(count(text, "{\"v\":\"Program\"},{\"v\":\"Program\"}"), 2 * 3);
    CHECK_EQ(count(text, "{\"c\":[{\"v\":\"Average\"},{\"v\":0.0}"), 2);
    CHECK_EQ(count(text, "{\"c\":[{\"v\":\"7\"},{\"v\":0.0}"), 2);
    // 1,200 flops in 3,600 us and 1 ps.
    CHECK_HAS(text, "{\"v\":3600.000002},{\"v\":3600.000002},{\"v\":0.0},{\"v\":0.0},{\"v\":0.0},"
                    "{\"v\":0.0},{\"v\":0.0},{\"v\":0.000333333333148");
}

// A CPU has no roofline in XProf; where it counts as a device, the known figures of its ops are
// shown.
static void test_roofline_of_cpu(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_opstats s = {
        .run_environment = {.hardware_type = XPL_HW_CPU_ONLY, .device_type = XPL_STR("CPU")}};
    const char *const off[] = {"cpu_as_device", "false", NULL};
    answer("roofline_model", "", &s, &out);
    CHECK_LACKS((const char *)out.p, "\"Program\"");
    add_op(&a, &s.device_op_metrics_db, "dot.1", "dot", 1000);
    answer("roofline_model", "", &s, &out);
    CHECK_HAS((const char *)out.p, "\"Program\"");
    CHECK_HAS((const char *)out.p, "\"device_type\":\"CPU\"");
    CHECK_HAS((const char *)out.p, "No step marker observed");
    out.n = 0;
    CHECK_OK(render_op_stats(named_tool("roofline_model"), &s, off, LIMIT, &out, &err), &err);
    xpl_buf_putc(&out, 0);
    CHECK_LACKS((const char *)out.p, "\"Program\"");
    CHECK_LACKS((const char *)out.p, "No step marker observed");
}

static const char *render_with(const char *tool, const struct xpl_opstats *s,
                               const char *const *options, struct xpl_buf *out) {
    struct xpl_error err = {0};
    out->n = 0;
    CHECK_OK(render_op_stats(named_tool(tool), s, options, LIMIT, out, &err), &err);
    xpl_buf_putc(out, 0);
    return (const char *)out->p;
}

// Peaks that are given for a CPU: what bounds an op, and how near it is. They count only for the
// request, and devices keep the profile's.
static void test_cpu_peaks(void) {
    static const char *const tools[] = {"roofline_model", "framework_op_stats", "hlo_stats"};
    static const char *const compute[] = {"cpu_core_gflops", "8", NULL},
                             *const both[] = {"cpu_core_gflops", "8", "cpu_core_gb_s",
                                              "1.073741824", NULL},
                             *const off[] = {"cpu_core_gflops", "8", "cpu_as_device", "false",
                                             NULL};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out, before;
    struct xpl_opstats s = {
        .run_environment = {.hardware_type = XPL_HW_CPU_ONLY, .device_type = XPL_STR("CPU")}};
    xpl_buf_init(&out, LIMIT);
    xpl_buf_init(&before, LIMIT);
    struct xpl_op_metrics *const m = add_op(&a, &s.device_op_metrics_db, "dot.1", "dot", 1000000);
    m->provenance = XPL_STR("f:Dot");
    m->flops_v2 = 4000;       // in a microsecond: 4 GFLOP/s, half of the peak
    m->bytes_accessed = 8000; // 7.45 GiB/s
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        render_with(tools[i], &s, NULL, &before);
        CHECK_HAS((const char *)before.p, "\"Unknown\"");
        CHECK_HAS(render_with(tools[i], &s, compute, &out), "{\"v\":\"Compute\"}");
        CHECK_HAS(render_with(tools[i], &s, both, &out), "{\"v\":\"HBM\"}");
        CHECK_LACKS(render_with(tools[i], &s, off, &out), "{\"v\":\"Compute\"}");
        CHECK_STR(render_with(tools[i], &s, NULL, &out), (const char *)before.p);
    }
    render_with("roofline_model", &s, compute, &out);
    CHECK_HAS((const char *)out.p, "\"peak_flop_rate\":\"8\"");
    CHECK_HAS((const char *)out.p, "{\"v\":8.0},{\"v\":0.5},{\"v\":0.5},{\"v\":0.0}");
    render_with("roofline_model", &s, both, &out);
    CHECK_HAS((const char *)out.p, "\"peak_hbm_bw\":\"1\"");
    CHECK_HAS(render_with("op_profile", &s, compute, &out), "\"uncappedFlops\":0.5");
    // Pages ask for peaks where the CPU is the device.
    CHECK_HAS(render_with("hlo_stats", &s, NULL, &out), "\"p\":{\"device_type\":\"CPU\"}");
    CHECK_LACKS(render_with("hlo_stats", &s, off, &out), "\"p\":");
    s.run_environment.hardware_type = XPL_HW_GPU;
    render_with("roofline_model", &s, both, &out);
    CHECK_HAS((const char *)out.p, "\"peak_flop_rate\":\"0\"");
    CHECK_LACKS(render_with("hlo_stats", &s, NULL, &out), "\"p\":");
}

// Rates that no device has.
static void test_doubt(void) {
    static const struct {
        const char *name, *text;
        double tera, flop_rate, bandwidth; // of the device in TFLOP/s; GFLOP/s and GiB/s of the op
        enum xpl_hardware hardware;
        bool doubted;
    } cases[] = {
        {"copy-start.3", "", 100, 0, 10, XPL_HW_TPU, true},
        {"copy-start-fusion", "", 100, 0, 10, XPL_HW_TPU, false},
        {"fusion", "", 100, 199000, 900, XPL_HW_TPU, false},
        {"fusion", "", 100, 201000, 900, XPL_HW_TPU, true},
        {"fusion", "", 100, 10, 8e8, XPL_HW_TPU, true},
        {"dot.1", "%dot.1 = f32[8] dot(f32[8] %a)", 0, 190, 10, XPL_HW_CPU_ONLY, false},
        {"dot.1", "%dot.1 = f32[8] dot(f32[8] %a)", 0, 1080, 10, XPL_HW_CPU_ONLY, true},
        {"dot.1", "%dot.1 = f32[8] dot(bf16[8] %a)", 0, 1080, 10, XPL_HW_CPU_ONLY, false},
        {"copy.1", "", 0, 0, 1200, XPL_HW_CPU_ONLY, true},
        {"gemm", "", 0, 1e9, 1e9, XPL_HW_GPU, false}, // of which nothing is known
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double peaks[] = {1000};
        struct xpl_perf_env env = {.peak_tera_flops_per_second = cases[i].tera};
        if (cases[i].tera > 0)
            env.peak_bws_giga_bytes_per_second.v = peaks, env.peak_bws_giga_bytes_per_second.n = 1;
        const struct xpl_op_metrics m = {.name = xpl_str_from(cases[i].name),
                                         .long_name = xpl_str_from(cases[i].text)};
        const struct xpl_op_record r = {.flop_rate = cases[i].flop_rate,
                                        .bandwidth = cases[i].bandwidth};
        CHECK_EQ(xpl_op_record_doubt(&m, &env, cases[i].hardware, &r) != NULL, cases[i].doubted);
    }
}

int main(void) {
    test_doubt();
    check_golden("tree", "op_profile", "program");
    check_golden("tree", "op_profile", "category");
    check_golden("tree", "op_profile", "provenance");
    check_golden("tree", "framework_op_stats", "");
    check_golden("tree", "hlo_stats", "");
    check_golden("tree", "roofline_model", "");
    check_golden("kernels", "framework_op_stats", "");
    check_golden("kernels", "hlo_stats", "");
    check_golden("kernels", "roofline_model", "");
    check_golden("kernels", "kernel_stats", "");
    check_golden("pod", "pod_viewer", "");
    test_cut();
    test_ties();
    test_deep_names();
    test_shared_paths();
    test_long_tables();
    test_odd_values();
    test_task_type();
    test_bound_by();
    test_hlo_children();
    test_hlo_flags();
    test_roofline_limits();
    test_roofline_rows();
    test_roofline_of_cpu();
    test_cpu_peaks();
    return 0;
}
