// SPDX-License-Identifier: Apache-2.0
// Comparison of runs: names that compilations keep, the encoding, groups, sums and intervals.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/processor_time.h"

#define LIMIT ((size_t)1 << 24)

static void check_text(xpl_str_t got, const char *expected) {
    CHECK_EQ(got.len, strlen(expected));
    CHECK(memcmp(got.ptr, expected, got.len) == 0);
}

static void test_names(void) {
    static const struct {
        const char *framework_op, *name, *expected;
    } ops[] = {{"jit(f)/dot", "fusion.1", "jit(f)/dot"},
               {"MatMul:", "x", "MatMul"},
               {"", "%fusion.12", "fusion"},
               {"", "fusion", "fusion"},
               {"", "loop.v2", "loop.v2"},
               {"", ".7", ".7"},
               {"", "12", "12"},
               {"", "", ""}};
    static const char *const kernels[][2] = {{"loop_add_fusion_12", "loop_add_fusion"},
                                             {"wrapped_add_3", "wrapped_add"},
                                             {"gemm_128x64_32", "gemm_128x64_32"},
                                             {"fusion", "fusion"},
                                             {"fusion12", "fusion12"}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        check_text(xpl_run_op_name(xpl_str_from(ops[i].framework_op), xpl_str_from(ops[i].name)),
                   ops[i].expected);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        check_text(xpl_run_kernel_name(xpl_str_from(kernels[i][0])), kernels[i][1]);
}

static void test_shapes(void) {
    static const char *const cases[][2] = {
        {"%x.1 = f32[8,128]{1,0} fusion(f32[8] %p)", "f32[8,128]"},
        {"%x = (f32[2]{0}, (s32[], pred[]{:T(8)})) tuple(%a, %b)", "(f32[2], (s32[], pred[]))"},
        {"x = bf16[4]", "bf16[4]"},
        {"aten::relu(f32[8,128])", "(f32[8,128])"},
        {"no expression", ""},
        {"", ""}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    xpl_str_t got;
    char text[400] = "%x = ";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(xpl_run_op_shape(xpl_str_from(cases[i][0]), &arena, &got));
        check_text(got, cases[i][1]);
    }
    memset(text + 5, 'y', sizeof text - 6);
    CHECK(xpl_run_op_shape(xpl_str_from(text), &arena, &got));
    CHECK_EQ(got.len, 200);
}

static void add_row(struct xpl_run_rows *rows, struct xpl_arena *arena, const char *name,
                    uint64_t ps) {
    struct xpl_run_row *const r = xpl_vec_push(arena, rows);
    CHECK(r);
    *r = (struct xpl_run_row){.ps = ps, .count = 2};
    r->text[XPL_RUN_OP] = xpl_str_from(name);
    r->text[XPL_RUN_SHAPE] = XPL_STR("f32[2]");
}

// Steps of `base` ps and a few more, two devices; ops of half the time, one of them named twice.
static struct xpl_run_summary make_run(struct xpl_arena *arena, size_t n_steps, uint64_t base,
                                       const char *own_op) {
    struct xpl_run_summary s = {.n_hosts = 1, .n_devices = 2, .units = 2 * n_steps};
    static const char *const causes[] = {"compute", "input"};
    for (size_t i = 0; i < n_steps; i++) {
        uint64_t *const step = xpl_vec_push(arena, &s.steps);
        CHECK(step);
        *step = base + i;
    }
    for (size_t i = 0; i < 2; i++) {
        struct xpl_run_time *const t = xpl_vec_push(arena, &s.times);
        CHECK(t);
        *t = (struct xpl_run_time){xpl_str_from(causes[i]), base * n_steps};
    }
    add_row(&s.ops, arena, "dot", base * n_steps);
    add_row(&s.ops, arena, "add", 10);
    add_row(&s.ops, arena, "dot", 20);
    add_row(&s.ops, arena, own_op, 40);
    add_row(&s.kernels, arena, "k", 30);
    struct xpl_run_memory *const m = xpl_vec_push(arena, &s.memory);
    CHECK(m);
    *m = (struct xpl_run_memory){XPL_STR("GPU_0_bfc"), base, 2 * base};
    xpl_run_summary_join(&s);
    CHECK_EQ(s.ops.n, 3);
    return s;
}

static void test_codec(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf once, twice;
    struct xpl_error err = {0};
    struct xpl_run_summary *again;
    xpl_buf_init(&once, LIMIT);
    xpl_buf_init(&twice, LIMIT);
    const struct xpl_run_summary s = make_run(&arena, 300, 1000, "own");
    CHECK_OK(xpl_run_summary_encode(&s, &once, &err), &err);
    CHECK_OK(xpl_run_summary_decode((xpl_bytes_t){once.p, once.n}, &arena, &again, &err), &err);
    CHECK_EQ(again->n_devices, 2);
    CHECK_EQ(again->units, 600);
    CHECK_EQ(again->steps.n, 300);
    CHECK_EQ(again->steps.v[299], 1299);
    CHECK_EQ(again->memory.v[0].capacity_bytes, 2000);
    check_text(again->ops.v[1].text[XPL_RUN_SHAPE], "f32[2]");
    CHECK_OK(xpl_run_summary_encode(again, &twice, &err), &err);
    CHECK_BYTES(once.p, once.n, twice.p, twice.n);
    // A prefix is refused, or ends where a field does; other bytes are refused.
    size_t bad = 0;
    for (size_t n = 0; n < once.n; n++) {
        struct xpl_arena small = xpl_arena_of(LIMIT);
        bad += xpl_run_summary_decode((xpl_bytes_t){once.p, n}, &small, &again, &err) != XPL_OK;
        xpl_arena_fini(&small);
    }
    CHECK(bad > once.n * 9 / 10);
    CHECK_EQ(xpl_run_summary_decode((xpl_bytes_t){(const uint8_t *)"{}", 2}, &arena, &again, &err),
             XPL_DATA_LOSS);
}

static json_t *compare(const struct xpl_run_summary *a, const struct xpl_run_summary *b,
                       size_t n_b) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_run_group x = {0}, y = {0};
    CHECK(xpl_run_group_add(&x, a, &arena));
    for (size_t i = 0; i < n_b; i++)
        CHECK(xpl_run_group_add(&y, b, &arena));
    CHECK_OK(xpl_compare_json(&x, &y, NULL, &arena, &out, &err), &err);
    json_t *const j = json_loadb((const char *)out.p, out.n, 0, NULL);
    CHECK(j);
    return j;
}

static double number(const json_t *j, const char *path, const char *key) {
    const json_t *const o = path ? json_object_get(j, path) : j;
    CHECK(json_is_number(json_object_get(o, key)));
    return json_number_value(json_object_get(o, key));
}

// The differences of a table's rows are that of its total.
static void check_sums(const json_t *j, const char *rows, const char *total) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(j, rows)); i++)
        sum += number(json_array_get(json_object_get(j, rows), i), NULL, "difference_ps");
    CHECK(fabs(sum - number(j, total, "difference_ps")) < 1e-6);
}

static void test_differences(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    const struct xpl_run_summary a = make_run(&arena, 10, 1000, "old"),
                                 b = make_run(&arena, 20, 1100, "new");
    json_t *const j = compare(&a, &b, 2);
    CHECK_REAL(number(j, "b", "runs"), 2, 1e-9);
    CHECK_REAL(number(j, "b", "steps"), 40, 1e-9);
    CHECK_REAL(number(j, "b", "devices"), 4, 1e-9);
    CHECK_REAL(number(j, "step_time", "difference_ps"), 105, 1e-9); // 1109.5 - 1004.5
    const json_t *const ends = json_object_get(json_object_get(j, "step_time"), "interval_ps");
    CHECK(json_number_value(json_array_get(ends, 0)) > 100);
    CHECK(json_number_value(json_array_get(ends, 1)) < 110);
    CHECK_REAL(number(j, "times_total", "difference_ps"), 100, 1e-9); // 2 * base / 2 devices
    check_sums(j, "times", "times_total");
    check_sums(j, "ops", "ops_total");
    check_sums(j, "kernels", "kernels_total");
    const json_t *const ops = json_object_get(j, "ops");
    static const char *const names[] = {"dot", "old", "new", "add"}, *const states[] = {
                                                                         "both", "vanished", "new",
                                                                         "both"};
    CHECK_EQ(json_array_size(ops), 4);
    for (size_t i = 0; i < 4; i++) { // 49.5, 2, 1 and 0.25 ps
        const json_t *const o = json_array_get(ops, i);
        check_text(xpl_str_from(json_string_value(json_object_get(o, "op"))), names[i]);
        check_text(xpl_str_from(json_string_value(json_object_get(o, "state"))), states[i]);
    }
    const json_t *const memory = json_array_get(json_object_get(j, "memory"), 0);
    CHECK_REAL(number(memory, NULL, "difference_bytes"), 100, 1e-9);
    CHECK_REAL(number(memory, NULL, "difference_percent"), 10, 1e-9);
    json_decref(j);
}

// ---- ops under other names ----

struct op {
    const char *op, *category, *shape;
    uint64_t line, ps;
};

static void put_ops(struct xpl_run_summary *s, struct xpl_arena *arena, const struct op *ops,
                    size_t n) {
    *s = (struct xpl_run_summary){.n_devices = 1, .units = 1};
    for (size_t i = 0; i < n; i++) {
        struct xpl_run_row *const r = xpl_vec_push(arena, &s->ops);
        CHECK(r);
        *r = (struct xpl_run_row){.ps = ops[i].ps, .count = 1, .source_line = ops[i].line};
        r->text[XPL_RUN_OP] = xpl_str_from(ops[i].op);
        r->text[XPL_RUN_CATEGORY] = xpl_str_from(ops[i].category);
        r->text[XPL_RUN_SOURCE_FILE] = XPL_STR("model.py");
        r->text[XPL_RUN_SHAPE] = xpl_str_from(ops[i].shape);
    }
    xpl_run_summary_join(s);
}

// "STATE OP<FORMER NAME +DIFFERENCE" of each op that differs, in the order of the answer.
static void describe(const json_t *j, char *out, size_t size) {
    const json_t *const ops = json_object_get(j, "ops");
    size_t n = 0;
    *out = 0;
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *const o = json_array_get(ops, i);
        const char *const was = json_string_value(json_object_get(o, "a_name"));
        if (!(fabs(number(o, NULL, "difference_ps")) > 0)) continue;
        n += (size_t)snprintf(out + n, size - n, "%s %s%s%s %+g\n",
                              json_string_value(json_object_get(o, "state")),
                              json_string_value(json_object_get(o, "op")), *was ? "<" : "", was,
                              number(o, NULL, "difference_ps"));
    }
}

static void expect_ops(const struct op *a, size_t n_a, const struct op *b, size_t n_b,
                       const char *expected) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_run_summary x, y;
    char text[1000];
    put_ops(&x, &arena, a, n_a);
    put_ops(&y, &arena, b, n_b);
    json_t *const j = compare(&x, &y, 1);
    describe(j, text, sizeof text);
    check_sums(j, "ops", "ops_total");
    CHECK_STR(text, expected);
    json_decref(j);
}

#define EXPECT_OPS(a, b, expected)                                                                 \
    expect_ops(a, sizeof(a) / sizeof *(a), b, sizeof(b) / sizeof *(b), expected)

static void test_matching(void) {
    static const struct op before[] = {
        {"jit(f)/jit(main)/Dense_0/dot_general", "dot", "f32[8,8]", 10, 100},
        {"jit(f)/jit(main)/Dense_1/dot_general", "dot", "f32[8,8]", 20, 200},
        {"jit(f)/jit(main)/add", "non-fusion elementwise", "f32[8]", 30, 30},
        {"jit(f)/jit(main)/mul", "non-fusion elementwise", "f32[8]", 31, 40},
        {"copy", "data formatting", "f32[4]", 0, 7}};
    // Lines above were inserted, and the layer is twice as slow.
    static const struct op moved[] = {
        {"jit(f)/jit(main)/Dense_0/dot_general", "dot", "f32[8,8]", 15, 200},
        {"jit(f)/jit(main)/Dense_1/dot_general", "dot", "f32[8,8]", 25, 200},
        {"jit(f)/jit(main)/add", "non-fusion elementwise", "f32[8]", 35, 30},
        {"jit(f)/jit(main)/mul", "non-fusion elementwise", "f32[8]", 36, 40},
        {"copy", "data formatting", "f32[4]", 0, 7}};
    EXPECT_OPS(before, moved, "both jit(f)/jit(main)/Dense_0/dot_general +100\n");
    // A version of JAX that writes no "jit(main)".
    static const struct op version[] = {{"jit(f)/Dense_0/dot_general", "dot", "f32[8,8]", 10, 100},
                                        {"jit(f)/Dense_1/dot_general", "dot", "f32[8,8]", 20, 230},
                                        {"jit(f)/add", "loop fusion", "f32[8]", 30, 30},
                                        {"jit(f)/mul", "loop fusion", "f32[8]", 31, 40},
                                        {"copy", "data formatting", "f32[4]", 0, 7}};
    EXPECT_OPS(before, version,
               "both jit(f)/Dense_1/dot_general<jit(f)/jit(main)/Dense_1/dot_general +30\n");
    // One fusion in place of two ops: it has the name of its root.
    static const struct op fused[] = {
        {"jit(f)/jit(main)/Dense_0/dot_general", "dot", "f32[8,8]", 10, 100},
        {"jit(f)/jit(main)/Dense_1/dot_general", "dot", "f32[8,8]", 20, 200},
        {"jit(f)/jit(main)/mul", "loop fusion", "f32[8]", 31, 45},
        {"copy", "data formatting", "f32[4]", 0, 7}};
    EXPECT_OPS(before, fused, "vanished jit(f)/jit(main)/add -30\nboth jit(f)/jit(main)/mul +5\n");
    // Renamed layers, in another order of names; the second one grew.
    static const struct op renamed[] = {
        {"jit(f)/jit(main)/out/dot_general", "dot", "f32[8,8]", 20, 260},
        {"jit(f)/jit(main)/hidden/dot_general", "dot", "f32[8,8]", 10, 100},
        {"jit(f)/jit(main)/add", "non-fusion elementwise", "f32[8]", 30, 30},
        {"jit(f)/jit(main)/mul", "non-fusion elementwise", "f32[8]", 31, 40},
        {"copy", "data formatting", "f32[4]", 0, 7}};
    EXPECT_OPS(before, renamed,
               "both jit(f)/jit(main)/out/dot_general<jit(f)/jit(main)/Dense_1/dot_general +60\n");
    // A copy of another shape is another copy, and a layer more is a new one.
    static const struct op grown[] = {
        {"jit(f)/jit(main)/Dense_0/dot_general", "dot", "f32[8,8]", 10, 100},
        {"jit(f)/jit(main)/Dense_1/dot_general", "dot", "f32[8,8]", 20, 200},
        {"jit(f)/jit(main)/Dense_2/dot_general", "dot", "f32[8,8]", 20, 90},
        {"jit(f)/jit(main)/add", "non-fusion elementwise", "f32[8]", 30, 30},
        {"jit(f)/jit(main)/mul", "non-fusion elementwise", "f32[8]", 31, 40},
        {"copy", "data formatting", "f32[5]", 0, 8}};
    EXPECT_OPS(before, grown,
               "new jit(f)/jit(main)/Dense_2/dot_general +90\nnew copy +8\nvanished copy -7\n");
}

// Another kernel for the same op is that op's.
static void test_kernels(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_run_summary sides[2] = {{.units = 1}, {.units = 1}};
    static const char *const kernels[] = {"ampere_gemm_128x64", "nvjet_tst_128x64"};
    for (size_t i = 0; i < 2; i++) {
        add_row(&sides[i].kernels, &arena, kernels[i], 100 + 10 * i);
        sides[i].kernels.v[0].text[XPL_RUN_KERNEL_OP] = XPL_STR("jit(f)/dot_general");
    }
    json_t *const j = compare(&sides[0], &sides[1], 1);
    const json_t *const k = json_array_get(json_object_get(j, "kernels"), 0);
    CHECK_EQ(json_array_size(json_object_get(j, "kernels")), 1);
    CHECK_STR(json_string_value(json_object_get(k, "kernel")), kernels[1]);
    CHECK_STR(json_string_value(json_object_get(k, "a_name")), kernels[0]);
    CHECK_REAL(number(k, NULL, "difference_ps"), 10, 1e-9);
    json_decref(j);
}

// Too few steps have no interval; runs without anything compare, too.
static void test_little(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    const struct xpl_run_summary none = {0};
    const struct xpl_run_summary few = make_run(&arena, 4, 1000, "old");
    json_t *j = compare(&few, &few, 1);
    CHECK(json_is_null(json_object_get(json_object_get(j, "step_time"), "interval_ps")));
    CHECK_REAL(number(j, "step_time", "difference_percent"), 0, 1e-9);
    json_decref(j);
    j = compare(&few, &none, 1);
    CHECK(json_is_null(json_object_get(json_object_get(j, "step_time"), "difference_percent")));
    CHECK_REAL(number(j, "ops_total", "b_ps"), 0, 1e-9);
    CHECK_REAL(number(j, "ops_total", "difference_percent"), -100, 1e-9);
    json_decref(j);
}

// Two repeats, one of them without steps: its wall time is one sample more.
static void test_aggregate(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_run_summary a = make_run(&arena, 4, 1000, "own"), b = {.n_devices = 2};
    const struct xpl_run_summary *const runs[] = {&a, &b};
    a.compile_ps = 70;
    a.n_compiles = 2;
    a.busy_ps = 1000000;
    a.model_flops = 2000;
    a.bf16_flops = 1000;
    a.bf16_flops_per_second = 2000000000;
    a.peak_flops_per_second = 1000000000;
    b.wall_ps = 4000;
    b.compile_ps = 30;
    b.n_compiles = 1;
    CHECK_OK(xpl_aggregate_json(runs, 2, &arena, &out, &err), &err);
    json_t *const j = json_loadb((const char *)out.p, out.n, 0, NULL);
    CHECK(j);
    CHECK_REAL(number(j, "runtime", "samples"), 5, 1e-9);
    CHECK_REAL(number(j, "runtime", "mean_ps"), (1000 + 1001 + 1002 + 1003 + 2000) / 5.0, 1e-9);
    CHECK_REAL(number(j, "runtime", "min_ps"), 1000, 1e-9);
    CHECK_REAL(number(j, "runtime", "std_ps"), 446.544174746, 1e-6);
    CHECK_REAL(number(j, "compile", "total_ps"), 100, 1e-9);
    CHECK_REAL(number(j, "compile", "count"), 3, 1e-9);
    CHECK_REAL(number(j, "flops", "model_flops"), 400, 1e-9);
    CHECK_REAL(number(j, "flops", "model_flops_per_second"), 2e9, 1e-3);
    CHECK_REAL(number(j, "flops", "utilization_percent"), 100, 1e-9);
    CHECK_REAL(number(j, "flops", "uncapped_utilization_percent"), 200, 1e-6);
    CHECK(json_is_integer(
        json_object_get(json_array_get(json_object_get(j, "memory"), 0), "peak_bytes")));
    json_decref(j);
    out.n = 0;
    b.wall_ps = 0; // as of a bundle: how long it took is not known
    CHECK_OK(xpl_aggregate_json(&runs[1], 1, &arena, &out, &err), &err);
    json_t *const none = json_loadb((const char *)out.p, out.n, 0, NULL);
    CHECK(none);
    CHECK_REAL(number(none, "runtime", "samples"), 0, 0);
    json_decref(none);
}

// Steps of 200,000 names: each name compared with all would take a minute.
static void test_many_series(void) {
    enum { SERIES = 200000 };
    struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    struct xpl_run_summary run = {.units = 1};
    struct xpl_run_group g = {0};
    char name[16];
    for (size_t i = 0; i < SERIES; i++) {
        struct xpl_run_series *const s = xpl_vec_push(&arena, &run.series);
        CHECK(s);
        (void)snprintf(name, sizeof name, "step %zu", i);
        *s = (struct xpl_run_series){.n_steps = 1, .ps = i};
        CHECK(xpl_arena_str(&arena, xpl_str_from(name), &s->name));
    }
    CHECK(xpl_run_group_add(&g, &run, &arena) && xpl_run_group_add(&g, &run, &arena));
    CHECK_EQ(g.all.series.n, SERIES);
    for (size_t i = 0; i < SERIES; i++) {
        CHECK(xpl_str_eq(g.all.series.v[i].name, run.series.v[i].name));
        CHECK_EQ(g.all.series.v[i].n_steps, 2);
        CHECK_EQ(g.all.series.v[i].ps, 2 * i);
    }
    xpl_arena_fini(&arena);
}

// Ops that share a long path, of other shapes on each side: each text is read once.
static void test_long_paths(void) {
    enum { N = 60000, PATH = 4096 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of((size_t)1 << 28);
    struct xpl_run_group sides[2] = {{0}, {0}};
    struct xpl_error err = {0};
    const xpl_str_t wrapped = XPL_STR("/jit(main)/add");
    static char path[PATH];
    char shape[20];
    for (size_t i = 0; i < PATH; i++)
        path[i] = i % 2 ? '/' : 'p';
    memcpy(path + PATH - wrapped.len, wrapped.ptr, wrapped.len);
    for (int k = 0; k < 2; k++) {
        struct xpl_run_summary *const s = xpl_arena_zalloc(&arena, sizeof *s);
        CHECK(s);
        s->units = 1;
        for (int i = 0; i < N; i++) {
            add_row(&s->ops, &arena, "", 1);
            struct xpl_run_row *const r = &s->ops.v[i];
            (void)snprintf(shape, sizeof shape, "f32[%d]", 2 * i + k);
            r->text[XPL_RUN_OP] = (xpl_str_t){path, sizeof path};
            CHECK(xpl_arena_str(&arena, xpl_str_from(shape), &r->text[XPL_RUN_SHAPE]));
        }
        CHECK(xpl_run_group_add(&sides[k], s, &arena));
    }
    const double begin = processor_s();
    CHECK_OK(xpl_compare_json(&sides[0], &sides[1], NULL, &arena, &out, &err), &err);
    CHECK(is_within(begin, 4));
    xpl_buf_putc(&out, 0);
    CHECK(!strstr((const char *)out.p, "\"state\":\"vanished\""));
}

int main(void) {
    test_aggregate();
    test_names();
    test_shapes();
    test_codec();
    test_differences();
    test_matching();
    test_kernels();
    test_little();
    test_many_series();
    test_long_paths();
    return 0;
}
