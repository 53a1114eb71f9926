// SPDX-License-Identifier: Apache-2.0
// Derived lines, trace_viewer and exports with every allocation failing once: a clean error,
// nothing leaked, and with memory back the same output as before.

#include "analysis/tools/trace_viewer/trace_viewer.h"
#include "analysis/trace/export/export.h"
#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "tests/fault/answers/each.h"
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

struct request {
    struct xpl_buf space;
    int what;
};

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct request *const r = input;
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_xspace *xs;
    XPL_TRY(xpl_xspace_open((xpl_bytes_t){r->space.p, r->space.n}, arena, &exec, &xs, err));
    return r->what == VIEWER ? xpl_trace_json_render(xs, 30, &exec, LIMIT, out, err)
                             : export(xs, r->what, &exec, out, err);
}

static void test(struct xpl_buf space, int what) {
    fault_each(&(struct fault_scenario){run, &(struct request){space, what}, .least = 21,
                                        .may_abort = true});
    xpl_buf_fini(&space);
}

int main(void) {
    for (int what = 0; what <= VIEWER; what++) {
        test(trace_fixture(), what);
        test(tpu_fixture(), what);
    }
    return 0;
}
