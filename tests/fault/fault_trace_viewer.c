// SPDX-License-Identifier: Apache-2.0
// Derived lines, trace_viewer and exports with every allocation failing once: a clean error,
// nothing leaked, and with memory back the same output as before.

#include "analysis/tools/trace_viewer/trace_viewer.h"
#include "analysis/trace/export/export.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"
#include "tests/trace_fixture.h"

enum { LIMIT = 16 << 20, VIEWER = 2 }; // the output: an export format, or the tool's answer

static bool to_buf(void *ctx, const void *bytes, size_t n) {
    xpl_buf_put(ctx, bytes, n);
    return !((struct xpl_buf *)ctx)->failed;
}

static xpl_status_t export(const struct xpl_xspace *xs, int format, struct xpl_exec *exec,
                           struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_export e = {.format = (enum xpl_export_format)format, .sink = {to_buf, out}};
    xpl_status_t st = xpl_export_begin(&e, err);
    if (st == XPL_OK) st = xpl_export_host(&e, xs, XPL_STR("host"), exec, LIMIT, err);
    return st == XPL_OK ? xpl_export_end(&e, err) : st;
}

static xpl_status_t run(const struct xpl_buf *space, int what, struct xpl_buf *out) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_arena a;
    struct xpl_xspace *xs;
    struct xpl_error err = {0};
    xpl_arena_init(&a, LIMIT);
    xpl_buf_init(out, LIMIT);
    xpl_status_t st = xpl_xspace_open((xpl_bytes_t){space->p, space->n}, &a, &exec, &xs, &err);
    if (st == XPL_OK)
        st = what == VIEWER ? xpl_trace_json_render(xs, 30, &exec, LIMIT, out, &err)
                            : export(xs, what, &exec, out, &err);
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    xpl_arena_fini(&a);
    return st;
}

static void test(struct xpl_buf space, int what) {
    struct xpl_buf expected, got;
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    CHECK_OK(run(&space, what, &expected), NULL);
    const uint64_t n = xpl_fault_count();
    CHECK(n > 20);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        const xpl_status_t st = run(&space, what, &got);
        CHECK(st == XPL_RESOURCE_EXHAUSTED || st == XPL_ABORTED);
        xpl_buf_fini(&got);
        CHECK_EQ(xpl_fault_live(), live + 1); // `expected`
    }
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK_OK(run(&space, what, &got), NULL);
    CHECK_BYTES(got.p, got.n, expected.p, expected.n);
    xpl_buf_fini(&got);
    xpl_buf_fini(&expected);
    xpl_buf_fini(&space);
}

int main(void) {
    for (int what = 0; what <= VIEWER; what++) {
        test(trace_fixture(), what);
        test(tpu_fixture(), what);
    }
    return 0;
}
