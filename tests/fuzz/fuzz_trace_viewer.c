// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a profile, asked for all its events and exported.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tools/trace_viewer/trace_viewer.h"
#include "analysis/trace/export/export.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 64 << 20 };

static void require(bool ok) {
    if (!ok) abort();
}

static xpl_status_t ask(const struct xpl_xspace *xs, struct xpl_buf *out) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    xpl_buf_init(out, LIMIT);
    const xpl_status_t st = xpl_trace_json_render(xs, 50, &exec, LIMIT, out, &err);
    require(st == XPL_OK || err.code == st);
    return st;
}

static bool count(void *ctx, const void *bytes, size_t n) {
    (void)bytes;
    *(uint64_t *)ctx += n;
    return *(const uint64_t *)ctx < LIMIT;
}

static void export(const struct xpl_xspace *xs, enum xpl_export_format format) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    uint64_t n = 0;
    struct xpl_export e = {.format = format, .sink = {count, &n}};
    const xpl_status_t st = xpl_export_host(&e, xs, XPL_STR("h"), &exec, LIMIT, &err);
    require(st == XPL_OK || err.code == st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_xspace *xs;
    struct xpl_error err = {0};
    if (xpl_xspace_open((xpl_bytes_t){data, size}, &a, &exec, &xs, &err) == XPL_OK) {
        struct xpl_buf once, twice;
        const xpl_status_t st = ask(xs, &once);
        require(ask(xs, &twice) == st);
        require(once.n == twice.n && (once.n == 0 || memcmp(once.p, twice.p, once.n) == 0));
        xpl_buf_fini(&twice);
        xpl_buf_fini(&once);
        export(xs, XPL_EXPORT_PERFETTO);
        export(xs, XPL_EXPORT_CHROME);
    }
    return 0;
}
