// SPDX-License-Identifier: Apache-2.0
// Launches and queues of profiles of which both are known.
#include <jansson.h>
#include <string.h>

#include "analysis/tools/launches/launches.h"
#include "tests/check.h"
#include "tests/unit/tools/launches_render.h"

// Takes over the profiles.
static json_t *answer(struct xpl_buf *spaces, size_t n, const char *points) {
    struct xpl_buf out;
    struct xpl_error err = {0};
    CHECK_OK(launches_of(spaces, n, points, &out, &err), &err);
    json_t *const all = json_loadb((const char *)out.p, out.n, JSON_REJECT_DUPLICATES, NULL);
    CHECK(all && json_array_size(all) == 3);
    xpl_buf_fini(&out);
    for (size_t i = 0; i < n; i++)
        xpl_buf_fini(&spaces[i]);
    return all;
}

static json_t *cell(json_t *all, size_t table, size_t row, const char *id) {
    json_t *const t = json_array_get(all, table), *column;
    json_t *const r = json_array_get(json_object_get(t, "rows"), row);
    size_t i;
    json_array_foreach(json_object_get(t, "cols"), i, column) {
        if (strcmp(json_string_value(json_object_get(column, "id")), id) == 0)
            return json_object_get(json_array_get(json_object_get(r, "c"), i), "v");
    }
    FAIL_TEST(id);
}

static double number(json_t *all, size_t table, size_t row, const char *id) {
    return json_number_value(cell(all, table, row, id));
}

static size_t rows_of(json_t *all, size_t table) {
    return json_array_size(json_object_get(json_array_get(all, table), "rows"));
}

enum { KERNELS, STREAMS, QUEUES };

static void check_row(json_t *all, size_t table, size_t row, const char *ids,
                      const double *expected) {
    char copy[200], *rest = NULL;
    (void)snprintf(copy, sizeof copy, "%s", ids);
    for (char *id = strtok_r(copy, " ", &rest); id; id = strtok_r(NULL, " ", &rest))
        CHECK_REAL(number(all, table, row, id), *expected++, 1e-9);
}

static void test_kernels(void) {
    struct xpl_buf spaces[] = {launches_profile(0), launches_profile(2)};
    json_t *const all = answer(spaces, 2, "4");
    CHECK_EQ(rows_of(all, KERNELS), 2);
    CHECK_STR(json_string_value(cell(all, KERNELS, 0, "kernel_name")), "a");
    check_row(all, KERNELS, 0,
              "occurrences total_time avg_time min_time max_time launched avg_launch max_launch "
              "avg_delay max_delay shorter_than_launch hosts slowest_avg_time fastest_avg_time",
              (const double[]){4, 18, 4.5, 4, 6, 4, 2, 2, 9.5, 11, 0, 2, 5, 4});
    CHECK_STR(json_string_value(cell(all, KERNELS, 0, "slowest_host")), "h1");
    CHECK_STR(json_string_value(cell(all, KERNELS, 0, "fastest_host")), "h0");
    // b ends before its launch does, and waits for the slower a.
    check_row(all, KERNELS, 1, "occurrences shorter_than_launch avg_delay max_delay",
              (const double[]){2, 2, 15, 16});
    json_decref(all);
}

// From 0 to 19 us: one waits in [0, 1), two in [1, 2), three in [2, 10), two in [10, 14), one in
// [14, 18).
static void test_queue(void) {
    struct xpl_buf space = launches_profile(0);
    json_t *const all = answer(&space, 1, "2");
    CHECK_EQ(rows_of(all, STREAMS), 1);
    check_row(all, STREAMS, 0, "ops launched max_queue avg_queue",
              (const double[]){3, 3, 3, (1 + 2 + 24 + 8 + 4) / 19.0});
    CHECK_STR(json_string_value(cell(all, STREAMS, 0, "stream")), "Stream #14(Compute)");
    CHECK_EQ(rows_of(all, QUEUES), 2);
    check_row(all, QUEUES, 0, "begin_time duration min_queue avg_queue max_queue",
              (const double[]){0, 9.5, 1, (1 + 2 + 22.5) / 9.5, 3});
    check_row(all, QUEUES, 1, "begin_time duration min_queue avg_queue max_queue",
              (const double[]){9.5, 9.5, 0, (1.5 + 8 + 4) / 9.5, 3});
    json_decref(all);
}

// Ops without launches, launches of nothing, clocks that disagree: no op waits for less than
// nothing.
static void test_odd(void) {
    struct slow_gpu s;
    slow_gpu_begin(&s);
    slow_kernel(&s, &s.compute, "early", 20, 10, 5); // begins before its launch does
    mk_plain(&s.gpu, &s.comm, "alone", 30 * kUs, 5 * kUs);
    struct xpl_buf ev = mk_event(&s.host, "cuLaunchKernel", 50 * kUs, 2 * kUs);
    mk_stat_int(&s.host, &ev, "correlation_id", 99);
    mk_event_end(&s.python, &ev);
    struct xpl_buf space = slow_gpu_end(&s);
    json_t *const all = answer(&space, 1, "3");
    CHECK_EQ(rows_of(all, KERNELS), 2);
    check_row(all, KERNELS, 0, "occurrences launched", (const double[]){1, 0});
    CHECK(json_is_null(cell(all, KERNELS, 0, "avg_delay")));
    check_row(all, KERNELS, 1, "launched avg_delay", (const double[]){1, 0});
    check_row(all, STREAMS, 0, "max_queue avg_queue", (const double[]){0, 0});
    CHECK(json_is_null(cell(all, STREAMS, 1, "max_queue")));
    CHECK_EQ(rows_of(all, QUEUES), 3); // of the stream with launches
    json_decref(all);
}

static void test_none(void) {
    struct xpl_buf spaces[] = {mk_open(), launches_profile(0), slow_profile("load_batch", NULL, 9)};
    json_t *const all = answer(spaces, 3, "0");
    CHECK_EQ(rows_of(all, KERNELS), 2);
    check_row(all, KERNELS, 0, "hosts", (const double[]){1});
    CHECK_EQ(rows_of(all, QUEUES), 0);
    CHECK_REAL(number(all, STREAMS, 0, "max_queue"), 3, 0);
    json_decref(all);
}

// More parts than picoseconds; a window of nothing.
static void test_parts(void) {
    struct xpl_launch_wait waits[] = {{1, 3}, {0, 2}};
    struct xpl_launch_stream s = {.waits = {waits, 2, 2}, .n_launched = 2, .window_ps = 4};
    struct xpl_queue_part parts[11];
    uint64_t ends[2];
    size_t n;
    xpl_launch_queue(&s, ends, 10, parts, &n);
    CHECK_EQ(n, 4);
    for (size_t i = 0; i < 4; i++) {
        static const uint64_t expected[] = {1, 2, 1, 0};
        CHECK_EQ(parts[i].least, expected[i]);
        CHECK_EQ(parts[i].most, expected[i]);
        CHECK_EQ(parts[i].duration_ps, 1);
    }
    CHECK_REAL(parts[4].mean, 1, 0);
    s.waits.n = s.window_ps = 0;
    xpl_launch_queue(&s, ends, 10, parts, &n);
    CHECK_EQ(n, 0);
    CHECK_EQ(parts[0].most, 0);
}

// A launch of 4 us that starts four kernels takes 1 us for each.
static void test_graph(void) {
    struct slow_gpu s;
    slow_gpu_begin(&s);
    struct xpl_buf ev = mk_event(&s.host, "cuGraphLaunch", 0, 4 * kUs);
    mk_stat_int(&s.host, &ev, "correlation_id", 1);
    mk_event_end(&s.python, &ev);
    for (int k = 0; k < 4; k++) {
        ev = mk_event(&s.gpu, "a", (10 + 3 * k) * kUs, k ? 2 * kUs : kUs / 2);
        mk_stat_int(&s.gpu, &ev, "correlation_id", 1);
        mk_event_end(&s.compute, &ev);
    }
    struct xpl_buf space = slow_gpu_end(&s);
    json_t *const all = answer(&space, 1, "4");
    CHECK_REAL(number(all, KERNELS, 0, "launched"), 4, 0);
    CHECK_REAL(number(all, KERNELS, 0, "shorter_than_launch"), 1, 0);
    // The first one begins 6 us after the launch has ended.
    CHECK_REAL(number(all, KERNELS, 0, "avg_delay"), 6, 0);
    CHECK_REAL(number(all, KERNELS, 0, "max_delay"), 6, 0);
    json_decref(all);
}

int main(void) {
    test_kernels();
    test_graph();
    test_queue();
    test_odd();
    test_none();
    test_parts();
    return 0;
}
