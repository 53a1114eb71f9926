// SPDX-License-Identifier: Apache-2.0
// Metrics over sessions: values of known runs, changes of known series, the ops behind them.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/compare/series.h"
#include "base/arena.h"
#include "tests/cancelled.h"
#include "tests/check.h"

#define LIMIT ((size_t)1 << 26)

// ---- changes ----

static double uniform(uint64_t *state) { // 0 to 1; SplitMix64
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static double normal(uint64_t *state) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum - 6;
}

static void expect_changes(const double *v, size_t n, const size_t *expected, size_t n_expected) {
    size_t got[64], n_got;
    struct xpl_error err = {0};
    CHECK(n <= 64);
    CHECK_OK(xpl_series_changes(v, n, got, &n_got, &err), &err);
    CHECK_EQ(n_got, n_expected);
    for (size_t i = 0; i < n_expected; i++)
        CHECK_EQ(got[i], expected[i]);
}

static void test_known(void) {
    static const double none[] = {10, 10.1, 10, 9.9, 10, 10.1, 9.9, 10};
    static const double one[] = {10, 10.1, 10, 9.9, 12, 12.1, 12, 11.9};
    static const double two[] = {10, 10, 10, 15, 15, 15, 11, 11, 11};
    static const double outlier[] = {10, 10.2, 9.9, 30, 10.1, 9.8, 10, 10.2, 9.9, 10};
    static const double tiny[] = {1000, 1000, 1000, 1001, 1001, 1001, 1001};
    static const double zeros[8] = {0};
    static const double few[] = {1, 1, 1, 9, 9};
    expect_changes(none, 8, NULL, 0);
    expect_changes(one, 8, (const size_t[]){4}, 1);
    expect_changes(two, 9, (const size_t[]){3, 6}, 2);
    expect_changes(tiny, 7, NULL, 0);
    expect_changes(zeros, 8, NULL, 0);
    expect_changes(few, 5, NULL, 0);
    // A single value is not a level: with a neighbour it is a separate stretch at most.
    size_t got[10], n;
    CHECK_EQ(xpl_series_changes(outlier, 10, got, &n, NULL), XPL_OK);
    CHECK(n <= 2);
    for (size_t i = 0; i + 1 < n; i++)
        CHECK(got[i + 1] - got[i] >= XPL_SERIES_SEGMENT);
}

// Best of all partitions of up to two changes, by trying them: the same cost as that found.
static double cost_of(const double *v, size_t from, size_t to) {
    double mean = 0, sum = 0;
    for (size_t i = from; i < to; i++)
        mean += v[i] / (double)(to - from);
    for (size_t i = from; i < to; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return sum;
}

static void test_best(void) {
    uint64_t state = 7;
    size_t found = 0;
    for (int turn = 0; turn < 200; turn++) {
        double v[12];
        size_t got[12], n;
        for (size_t i = 0; i < 12; i++)
            v[i] = 100 + 3 * normal(&state) + (i >= 6 ? 20 : 0);
        CHECK_EQ(xpl_series_changes(v, 12, got, &n, NULL), XPL_OK);
        if (n != 1) continue;
        found++;
        for (size_t at = XPL_SERIES_SEGMENT; at + XPL_SERIES_SEGMENT <= 12; at++)
            CHECK(cost_of(v, 0, got[0]) + cost_of(v, got[0], 12) <=
                  cost_of(v, 0, at) + cost_of(v, at, 12) + 1e-6);
    }
    CHECK(found > 150);
}

// The rates that docs/history.md states for pure noise, and for a change of four times the noise.
static void test_rates(void) {
    uint64_t state = 1;
    static const struct {
        size_t n, wrong, right; // at most and at least, of 1,000
    } cases[] = {{6, 50, 500}, {8, 50, 800}, {20, 50, 960}, {50, 50, 980}};
    for (size_t k = 0; k < 4; k++) {
        size_t wrong = 0, right = 0;
        for (int turn = 0; turn < 1000; turn++) {
            double v[50];
            size_t got[50], n, half = cases[k].n / 2;
            for (size_t i = 0; i < cases[k].n; i++)
                v[i] = 100 + normal(&state);
            CHECK_EQ(xpl_series_changes(v, cases[k].n, got, &n, NULL), XPL_OK);
            wrong += n > 0;
            for (size_t i = half; i < cases[k].n; i++)
                v[i] += 4;
            CHECK_EQ(xpl_series_changes(v, cases[k].n, got, &n, NULL), XPL_OK);
            for (size_t i = 0; i < n; i++)
                right += got[i] + 1 >= half && got[i] <= half + 1;
        }
        if (wrong > cases[k].wrong || right < cases[k].right) {
            (void)fprintf(stderr, "%zu values: %zu wrong, %zu right\n", cases[k].n, wrong, right);
            FAIL_TEST("rates");
        }
    }
}

// ---- metrics ----

static void add_row(struct xpl_run_rows *rows, struct xpl_arena *arena, const char *name,
                    const char *shape, uint64_t ps) {
    struct xpl_run_row *const r = xpl_vec_push(arena, rows);
    CHECK(r);
    *r = (struct xpl_run_row){.ps = ps, .count = 2};
    r->text[XPL_RUN_OP] = xpl_str_from(name);
    r->text[XPL_RUN_SHAPE] = xpl_str_from(shape);
}

// Ten steps of `base` ps on two devices; "slow" takes what `base` has above 1000.
static struct xpl_run_summary make_run(struct xpl_arena *arena, uint64_t base) {
    struct xpl_run_summary s = {.n_devices = 2,
                                .units = 20,
                                .busy_ps = 20 * base,
                                .model_flops = 40,
                                .bf16_flops_per_second = 300,
                                .peak_flops_per_second = 1000,
                                .compile_ps = 77};
    for (size_t i = 0; i < 10; i++) {
        uint64_t *const step = xpl_vec_push(arena, &s.steps);
        CHECK(step);
        *step = base - 1 + 2 * (i % 2);
    }
    struct xpl_run_time *const t = xpl_vec_push(arena, &s.times);
    struct xpl_run_memory *const m = xpl_vec_push(arena, &s.memory);
    CHECK(t && m);
    *t = (struct xpl_run_time){XPL_STR("compute"), 20 * base};
    *m = (struct xpl_run_memory){XPL_STR("GPU_0_bfc"), 1 << 20, 1 << 21};
    add_row(&s.ops, arena, "slow", "f32[2]", 20 * (base - 900));
    add_row(&s.ops, arena, "slow", "f32[3]", 200);
    add_row(&s.ops, arena, "same", "f32[2]", 20 * 800);
    add_row(&s.kernels, arena, "k", "", 20 * 50);
    xpl_run_summary_join(&s);
    return s;
}

static void test_metrics(void) {
    static const struct {
        const char *metric;
        double v;
        enum xpl_series_kind kind;
        bool more;
    } cases[] = {{"step_time", 1000, XPL_SERIES_PS, false},
                 {"longest_step", 1001, XPL_SERIES_PS, false},
                 {"steps", 10, XPL_SERIES_COUNT, true},
                 {"busy_time", 1000, XPL_SERIES_PS, false},
                 {"compile_time", 77, XPL_SERIES_PS, false},
                 {"model_rate", 40 / 20000.0 * 1e12, XPL_SERIES_PER_SECOND, true},
                 {"bf16_rate", 300, XPL_SERIES_PER_SECOND, true},
                 {"utilization", 30, XPL_SERIES_PERCENT, true},
                 {"peak_memory", 1 << 20, XPL_SERIES_BYTES, false},
                 {"compute", 1000, XPL_SERIES_PS, false},
                 {"op:slow", 110, XPL_SERIES_PS, false},
                 {"kernel:k", 50, XPL_SERIES_PS, false},
                 {"memory:GPU_0_bfc", 1 << 20, XPL_SERIES_BYTES, false}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_series_value v;
    const struct xpl_run_summary none = {0};
    const struct xpl_run_summary s = make_run(&arena, 1000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!xpl_series_get(&s, xpl_str_from(cases[i].metric), &v)) FAIL_TEST(cases[i].metric);
        CHECK_REAL(v.v, cases[i].v, 1e-6);
        CHECK_EQ(v.kind, cases[i].kind);
        CHECK_EQ(v.more_is_better, cases[i].more);
    }
    CHECK(xpl_series_get(&s, XPL_STR("step_deviation"), &v));
    CHECK_REAL(v.v, sqrt(10.0 / 9), 1e-9);
    static const char *const absent[] = {"",        "input",       "op:",     "op:none",
                                         "kernel:", "memory:none", "unknown", "Compute"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        CHECK(!xpl_series_get(&s, xpl_str_from(absent[i]), &v));
    for (size_t i = 0; xpl_series_name(i); i++)
        CHECK(xpl_series_get(&s, xpl_str_from(xpl_series_name(i)), &v));
    CHECK(!xpl_series_get(&none, XPL_STR("step_time"), &v));
}

// ---- the document ----

static json_t *document(const struct xpl_series_request *q, xpl_status_t expected,
                        const char *says) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    json_t *j = NULL;
    const xpl_status_t st = xpl_series_json(q, &arena, &out, &err);
    CHECK_EQ(st, expected);
    if (st == XPL_OK)
        CHECK((j = json_loadb((const char *)out.p, out.n, 0, NULL)));
    else if (!strstr(err.msg, says))
        FAIL_TEST(err.msg);
    return j;
}

static const json_t *at(const json_t *list, size_t i) {
    CHECK(i < json_array_size(list));
    return json_array_get(list, i);
}

static double number(const json_t *o, const char *key) {
    CHECK(json_is_number(json_object_get(o, key)));
    return json_number_value(json_object_get(o, key));
}

static void expect_refused(struct xpl_series_request *q, const char *metric, xpl_status_t st,
                           const char *says) {
    const xpl_str_t one = xpl_str_from(metric);
    q->metrics = &one;
    q->n_metrics = 1;
    CHECK(!document(q, st, says));
}

// Names in profiles that no run has are not found, which is not an error of usage.
static void test_names(struct xpl_series_request *q, struct xpl_run_summary *made) {
    char longest[300] = "op:";
    memset(longest + 3, 'x', sizeof longest - 4);
    expect_refused(q, "op:slwo", XPL_NOT_FOUND,
                   "no session has the op \"slwo\"; did you mean \"slow\"?");
    expect_refused(q, "kernel:slow", XPL_NOT_FOUND, "no session has the kernel \"slow\"");
    expect_refused(q, "memory:gpu_1_bfc", XPL_NOT_FOUND,
                   "no session has the allocator \"gpu_1_bfc\"; did you mean \"GPU_0_bfc\"?");
    expect_refused(q, longest, XPL_NOT_FOUND, "no session has the op \"xxx");
    expect_refused(q, "op:", XPL_INVALID_ARGUMENT,
                   "metric \"op:\", character 4: a name is missing");
    // The op is known, its time for each step is not.
    for (size_t i = 0; i < q->n_runs; i++)
        made[i].units = 0;
    const xpl_str_t known = XPL_STR("op:slow");
    q->metrics = &known;
    json_t *const j = document(q, XPL_OK, NULL);
    const json_t *const m = at(json_object_get(j, "metrics"), 0);
    CHECK_EQ(json_array_size(json_object_get(m, "points")), 0);
    json_decref(j);
}

// A sleep of the host: it is behind the change, and no op is, although ten of them took a little
// longer.
static void test_sleep(void) {
    enum { N = 8 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_series_run runs[N];
    struct xpl_run_summary made[N];
    for (size_t i = 0; i < N; i++) {
        const bool slow = i >= N / 2;
        made[i] = make_run(&arena, (slow ? 1060 : 1000) + i % 2);
        struct xpl_run_time *const host = xpl_vec_push(&arena, &made[i].times);
        CHECK(host);
        *host = (struct xpl_run_time){XPL_STR("host"), slow ? 20 * 1000 : 20 * (10 + i % 2)};
        for (size_t k = 0; k < 10; k++)
            made[i].steps.v[k] += slow ? 1000 : 0;
        runs[i] = (struct xpl_series_run){
            .session = xpl_str_from(&"abcdefgh"[i]), .captured_ms = (int64_t)i, .run = &made[i]};
    }
    const struct xpl_series_request q = {.runs = runs, .n_runs = N};
    json_t *const j = document(&q, XPL_OK, NULL);
    const json_t *const changes = json_object_get(at(json_object_get(j, "metrics"), 0), "changes"),
                        *const times = json_object_get(at(changes, 0), "times");
    CHECK_EQ(json_array_size(changes), 1);
    CHECK_EQ(json_array_size(times), 2);
    CHECK_STR(json_string_value(json_object_get(at(times, 0), "cause")), "host");
    CHECK_REAL(number(at(times, 0), "difference_ps"), 989.5, 1e-6);
    CHECK_STR(json_string_value(json_object_get(at(times, 1), "cause")), "compute");
    CHECK_EQ(json_array_size(json_object_get(at(changes, 0), "ops")), 0);
    json_decref(j);
}

// Each session without a value has the reason.
static void test_without(void) {
    static const char *const reasons[] = {
        "broken", "no device events were recorded", "the host compiled; nothing ran on a device",
        "the host compiled most of the time", "the profile has no steps, or too few"};
    enum { N = sizeof reasons / sizeof *reasons };
    struct xpl_series_run runs[N];
    struct xpl_run_summary made[N] = {{0}};
    made[2].compile_ps = 500;
    for (size_t i = 3; i < N; i++)
        made[i] = (struct xpl_run_summary){
            .n_devices = 2, .wall_ps = 1000, .busy_ps = 10, .compile_ps = i == 3 ? 300 : 200};
    for (size_t i = 0; i < N; i++)
        runs[i] = (struct xpl_series_run){.session = xpl_str_from(&"abcde"[i]),
                                          .captured_ms = (int64_t)i,
                                          .run = i ? &made[i] : NULL,
                                          .error = XPL_STR("broken")};
    const struct xpl_series_request q = {.runs = runs, .n_runs = N};
    json_t *const j = document(&q, XPL_OK, NULL);
    const json_t *const list = json_object_get(at(json_object_get(j, "metrics"), 0), "without");
    CHECK_EQ(json_array_size(list), N);
    for (size_t i = 0; i < N; i++)
        CHECK_STR(json_string_value(json_object_get(at(list, i), "reason")), reasons[i]);
    json_decref(j);
}

static void test_document(void) {
    enum { N = 9 };
    static const char *const names[N] = {"i", "b", "c", "d", "e", "f", "g", "h", "a"};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_series_run runs[N];
    struct xpl_run_summary made[N];
    // By time: a b c d (1000 ps), e that cannot be read, f g h i (1100 ps).
    for (size_t i = 0; i < N; i++) {
        const int64_t place = names[i][0] - 'a';
        made[i] = make_run(&arena, place < 4 ? 1000 : 1100);
        runs[i] = (struct xpl_series_run){
            .session = xpl_str_from(names[i]), .captured_ms = place, .run = &made[i]};
        if (place != 4) continue;
        runs[i].run = NULL;
        runs[i].error = XPL_STR("broken");
    }
    const xpl_str_t metrics[] = {XPL_STR("step_time"), XPL_STR("peak_memory"), XPL_STR("input")};
    struct xpl_series_request q = {.runs = runs, .n_runs = N, .metrics = metrics, .n_metrics = 2};
    json_t *j = document(&q, XPL_OK, NULL);
    const json_t *const sessions = json_object_get(j, "sessions");
    CHECK_EQ(json_array_size(sessions), N);
    CHECK_STR(json_string_value(json_object_get(at(sessions, 4), "error")), "broken");
    const json_t *const steps = at(json_object_get(j, "metrics"), 0),
                        *const points = json_object_get(steps, "points"),
                        *const changes = json_object_get(steps, "changes");
    CHECK_EQ(json_array_size(points), N - 1);
    CHECK_STR(json_string_value(json_object_get(at(points, 0), "session")), "a");
    CHECK(json_is_null(json_object_get(at(points, 0), "change_percent")));
    CHECK_REAL(number(at(points, 4), "change_percent"), 10, 1e-9);
    CHECK_REAL(number(at(points, 5), "change_percent"), 0, 1e-9);
    CHECK_REAL(number(at(points, 5), "median_change_percent"), 10, 1e-9);
    CHECK_EQ(json_array_size(changes), 1);
    const json_t *const c = at(changes, 0), *const ops = json_object_get(c, "ops");
    CHECK_STR(json_string_value(json_object_get(c, "session")), "f");
    CHECK_REAL(number(c, "sessions_before"), 4, 0);
    CHECK_REAL(number(c, "sessions_after"), 4, 0);
    CHECK_REAL(number(c, "difference_percent"), 10, 1e-9);
    CHECK(json_is_true(json_object_get(c, "regression")));
    const json_t *const cause = at(json_object_get(c, "times"), 0);
    CHECK_STR(json_string_value(json_object_get(cause, "cause")), "compute");
    CHECK_REAL(number(cause, "difference_ps"), 100, 1e-9);
    CHECK_EQ(json_array_size(ops), 1); // what stayed is not behind it
    CHECK_STR(json_string_value(json_object_get(at(ops, 0), "op")), "slow");
    CHECK_REAL(number(at(ops, 0), "difference_ps"), 100, 1e-9);
    CHECK_EQ(json_array_size(json_object_get(c, "kernels")), 0);
    const json_t *const memory = at(json_object_get(j, "metrics"), 1);
    CHECK_STR(json_string_value(json_object_get(memory, "unit")), "bytes");
    CHECK_EQ(json_array_size(json_object_get(memory, "changes")), 0);
    json_decref(j);
    // More is better: less is the regression, and ops that grew are reported.
    for (size_t i = 0; i < N; i++)
        if (names[i][0] > 'e') made[i].model_flops = 20;
    const xpl_str_t rate = XPL_STR("model_rate");
    q.metrics = &rate;
    q.n_metrics = 1;
    j = document(&q, XPL_OK, NULL);
    const json_t *const worse =
        at(json_object_get(at(json_object_get(j, "metrics"), 0), "changes"), 0);
    CHECK(json_is_true(json_object_get(worse, "regression")));
    CHECK(number(worse, "difference_percent") < 0);
    CHECK_EQ(json_array_size(json_object_get(worse, "ops")), 1);
    json_decref(j);
    q.metrics = &metrics[2];
    (void)document(&q, XPL_INVALID_ARGUMENT, "no session has the metric \"input\"");
    q.metrics = &(const xpl_str_t){"computer", 8};
    (void)document(&q, XPL_INVALID_ARGUMENT, "did you mean \"compute\"");
    test_names(&q, made);
    // Nothing at all is a document, too.
    q = (struct xpl_series_request){.runs = runs, .n_runs = 0};
    j = document(&q, XPL_OK, NULL);
    CHECK_EQ(json_array_size(json_object_get(j, "metrics")), 1);
    json_decref(j);
}

// What a client may have the daemon do, at most, and that it may end.
static void test_bounds(void) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_run_summary run = {.units = 1};
    struct xpl_series_run one = {.session = XPL_STR("s"), .run = &run};
    xpl_str_t metrics[XPL_SERIES_METRICS + 1];
    struct xpl_series_request q = {.runs = &one, .n_runs = 1, .metrics = metrics};
    for (size_t i = 0; i <= XPL_SERIES_METRICS; i++)
        metrics[i] = XPL_STR("step_time");
    q.n_metrics = XPL_SERIES_METRICS;
    json_decref(document(&q, XPL_OK, ""));
    q.n_metrics++;
    CHECK(!document(&q, XPL_INVALID_ARGUMENT, "65 metrics: at most 64 are followed"));
    q.n_metrics = 1;
    exec.cancelled = always_cancelled;
    q.exec = &exec;
    CHECK(!document(&q, XPL_CANCELLED, "cancelled"));
}

// Each run is compared with at most 16 others.
static void test_many_programs(void) {
    enum { RUNS = 40 };
    struct xpl_run_summary runs[RUNS] = {0};
    struct xpl_run_row rows[RUNS] = {0};
    struct xpl_series_run all[RUNS] = {0};
    static char names[RUNS][8];
    struct xpl_series_request q = {.runs = all};
    for (size_t i = 0; i < RUNS; i++) {
        (void)snprintf(names[i], sizeof names[i], "op%zu", i);
        rows[i] = (struct xpl_run_row){.text = {xpl_str_from(names[i])}, .ps = 1};
        runs[i].ops.v = &rows[i];
        runs[i].ops.n = runs[i].units = 1;
        all[i] = (struct xpl_series_run){.session = rows[i].text[0], .run = &runs[i]};
    }
    q.n_runs = 16;
    CHECK(!document(&q, XPL_FAILED_PRECONDITION, "are of 16 programs"));
    q.n_runs = RUNS;
    CHECK(!document(&q, XPL_FAILED_PRECONDITION, "are of more than 16 programs"));
}

int main(void) {
    test_known();
    test_best();
    test_rates();
    test_metrics();
    test_document();
    test_sleep();
    test_without();
    test_bounds();
    test_many_programs();
    return 0;
}
