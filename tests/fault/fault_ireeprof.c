// SPDX-License-Identifier: Apache-2.0
// Every report on a bundle with every allocation failing once.
#include "analysis/ireeprof/ireeperf/ireeperf.h"
#include "base/arena.h"
#include "tests/data_file.h"
#include "tests/iree_run.h"

static xpl_status_t run(xpl_bytes_t file, const char *report, enum xpl_iree_trace_format trace,
                        size_t *ret_bytes) {
    struct iree_run x = {.run.options = {.id = -1, .trace = trace}};
    const xpl_status_t st = iree_report(&x, file, report, XPL_IREE_JSONL);
    CHECK(st == XPL_OK || (x.err.code == st && x.err.msg[0]));
    *ret_bytes = x.out.n;
    xpl_buf_fini(&x.out);
    return st;
}

static void fail_each(xpl_bytes_t file, const char *report, enum xpl_iree_trace_format trace) {
    size_t bytes, got;
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    const int64_t live = xpl_fault_live();
    CHECK_OK(run(file, report, trace, &bytes), NULL);
    const uint64_t n = xpl_fault_count();
    CHECK(n >= 1);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        CHECK_EQ(run(file, report, trace, &got), XPL_RESOURCE_EXHAUSTED);
        CHECK_EQ(xpl_fault_live(), live);
    }
}

static xpl_status_t make(xpl_bytes_t rows) {
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of((size_t)1 << 28);
    return xpl_ireeperf_bundle(rows, NULL, &out, &err);
}

// The bundle's own rows, made a bundle again.
static void fail_rows(xpl_bytes_t file) {
    struct iree_run x = {.run.options = {.id = -1}};
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK_OK(iree_report(&x, file, "export", XPL_IREE_JSONL), &x.err);
    const xpl_bytes_t rows = {x.out.p, x.out.n};
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK_OK(make(rows), NULL);
    const uint64_t n = xpl_fault_count();
    CHECK(n >= 1);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        CHECK_EQ(make(rows), XPL_RESOURCE_EXHAUSTED);
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_buf_fini(&x.out);
}

// The bundle's records twice: two sessions that give things the same ids, of which the second
// function has another name.
static struct xpl_buf twice(const struct xpl_buf *one) {
    static const char name[] = "matmul";
    struct xpl_buf b = xpl_buf_of((size_t)1 << 28);
    xpl_buf_put(&b, one->p, one->n);
    xpl_buf_put(&b, one->p + 24, one->n - 24);
    const uint64_t length = b.n;
    memcpy(b.p + 16, &length, sizeof length);
    uint8_t *const at = memmem(b.p + one->n, one->n - 24, name, sizeof name - 1);
    CHECK(at);
    *at = 'M';
    return b;
}

static void fail_sessions(const struct xpl_buf *one) {
    static const char *const reports[] = {"sessions", "functions",  "self",
                                          "latency",  "iterations", "usage"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = twice(one);
    const xpl_bytes_t file = {b.p, b.n};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        fail_each(file, reports[i], XPL_IREE_NO_TRACE);
    for (int i = XPL_IREE_PERFETTO; i <= XPL_IREE_XSPACE; i++)
        fail_each(file, "export", (enum xpl_iree_trace_format)i);
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = read_data_file("iree/syn-everything.ireeprof");
    const xpl_bytes_t file = {b.p, b.n};
    size_t n_reports;
    const struct xpl_iree_report *const reports = xpl_iree_reports(&n_reports);
    for (size_t k = 0; k < n_reports; k++)
        fail_each(file, reports[k].name, XPL_IREE_NO_TRACE);
    fail_each(file, "export", XPL_IREE_PERFETTO);
    fail_each(file, "export", XPL_IREE_CHROME);
    fail_each(file, "export", XPL_IREE_XSPACE);
    fail_rows(file);
    fail_sessions(&b);
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    return 0;
}
