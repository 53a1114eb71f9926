// SPDX-License-Identifier: Apache-2.0
// Every report on any bytes, which may also be rows of ireeperf-jsonl, and the summary of a run.
// What must hold: a bundle is opened or refused, records lie in the bytes, every report succeeds on
// an opened bundle, two passes agree, damage has offsets in the file, a summary can be read.
#include <string.h>

#include "analysis/compare/compare.h"
#include "analysis/ireeprof/ireeperf/ireeperf.h"
#include "analysis/tools/tool.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/iree_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct xpl_iree_bundle *b) {
    struct xpl_iree_cursor c = {.bundle = b};
    struct xpl_iree_record r;
    uint64_t n = 0;
    while (xpl_iree_next(&c, &r)) {
        struct xpl_iree_items items = xpl_iree_items_of(&r);
        struct xpl_iree_item item;
        CHECK(r.index == n++ && r.offset + r.record_length <= b->bytes.len);
        while (xpl_iree_item_next(&items, &item, NULL))
            CHECK(item.p >= r.payload.ptr && item.tail.ptr >= item.p &&
                  item.tail.ptr + item.tail.len <= r.payload.ptr + r.payload.len);
    }
    CHECK_EQ(n, b->n_records);
    for (size_t i = 0; i < b->notes.n && i < XPL_IREE_NOTES_KEPT; i++)
        CHECK(b->from_rows ||
              (b->notes.kept[i].offset <= b->file_bytes && b->notes.kept[i].text[0]));
}

// An XSpace is one, with no more events than the bundle has bytes.
static void open_xspace(const struct xpl_buf *out) {
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_xspace *space;
    struct xpl_error err = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){out->n ? out->p : (const uint8_t *)"", out->n}, &arena,
                             &serial, &space, &err),
             &err);
}

// Traces are written of whatever is opened, and hold at least what begins and ends them.
static void trace(xpl_bytes_t file, enum xpl_iree_trace_format format) {
    struct iree_run x = {.run.options = {.id = -1, .trace = format}};
    const xpl_status_t st = iree_report(&x, file, "export", XPL_IREE_JSONL);
    CHECK(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_INVALID_ARGUMENT);
    if (st == XPL_OK && format == XPL_IREE_CHROME)
        CHECK(x.out.n > 40 && memcmp(x.out.p + x.out.n - 4, "\n]}\n", 4) == 0);
    if (st == XPL_OK && format == XPL_IREE_XSPACE)
        open_xspace(&x.out);
    else if (st == XPL_OK)
        CHECK(x.out.n > 20);
    xpl_buf_fini(&x.out);
}

// The export of a bundle made from rows becomes the same bundle again.
static void again(xpl_bytes_t made) {
    struct iree_run x = {.run.options = {.id = -1}}, y = x;
    struct xpl_error err = {0};
    struct xpl_buf more;
    if (iree_report(&x, made, "export", XPL_IREE_JSONL) == XPL_OK) {
        xpl_buf_init(&more, (size_t)1 << 28);
        CHECK_OK(xpl_ireeperf_bundle((xpl_bytes_t){x.out.p, x.out.n}, NULL, &more, &err), &err);
        CHECK_OK(iree_report(&y, (xpl_bytes_t){more.p, more.n}, "export", XPL_IREE_JSONL), &y.err);
        CHECK(x.out.n == y.out.n && memcmp(x.out.p, y.out.p, x.out.n) == 0);
        xpl_buf_fini(&more);
        xpl_buf_fini(&y.out);
    }
    xpl_buf_fini(&x.out);
}

// Rows are a bundle again, whatever of them can be read.
static int rows(xpl_bytes_t file) {
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of((size_t)1 << 28);
    const xpl_status_t st = xpl_ireeperf_bundle(file, NULL, &out, &err);
    CHECK(st == XPL_OK || ((st == XPL_DATA_LOSS || st == XPL_FAILED_PRECONDITION) && err.msg[0]));
    CHECK_EQ(xpl_ireeperf_check(file, NULL), st);
    if (st == XPL_OK) {
        again((xpl_bytes_t){out.p, out.n});
        LLVMFuzzerTestOneInput(out.p, out.n);
    }
    return 0;
}

// Every opened bundle has a run summary, which can be read.
static void summarize(xpl_bytes_t file) {
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("iree_run_summary"));
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_product_input made = {
        .profile = file, .exec = &serial, .limit = (size_t)1 << 28};
    struct xpl_error err = {0};
    void *value = NULL;
    if (tool->needs[0]->make(&made, &value, &err) != XPL_OK) return;
    const void *const products[] = {value};
    const struct xpl_tool_host host = {.products = products, .profile = file};
    const struct xpl_tool_input in = {
        .hosts = &host, .n_hosts = 1, .exec = &serial, .limit = (size_t)1 << 28};
    struct xpl_run_summary *s;
    struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    struct xpl_buf out = xpl_buf_of((size_t)1 << 28);
    CHECK_OK(tool->render(&in, &out, &err), &err);
    CHECK_OK(xpl_run_summary_decode((xpl_bytes_t){out.p, out.n}, &arena, &s, &err), &err);
    CHECK(s->n_hosts == 1 && s->units >= 1);
    xpl_buf_fini(&out);
    xpl_arena_fini(&arena);
    tool->needs[0]->free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t n;
    if (xpl_ireeperf_sniff((xpl_bytes_t){data, size})) return rows((xpl_bytes_t){data, size});
    trace((xpl_bytes_t){data, size}, XPL_IREE_PERFETTO);
    trace((xpl_bytes_t){data, size}, XPL_IREE_CHROME);
    trace((xpl_bytes_t){data, size}, XPL_IREE_XSPACE);
    summarize((xpl_bytes_t){data, size});
    const struct xpl_iree_report *const reports = xpl_iree_reports(&n);
    for (size_t i = 0; i < n; i++) {
        const bool json = !reports[i].ours || i % 2;
        const unsigned takes = reports[i].accepts;
        struct iree_run x = {
            .run.options = {.id = -1,
                            .dispatch_events = takes & XPL_IREE_TAKES_DISPATCH_EVENTS,
                            .counter_samples = takes & XPL_IREE_TAKES_COUNTER_SAMPLES}};
        const xpl_status_t st = iree_report(&x, (xpl_bytes_t){data, size}, reports[i].name,
                                            json ? XPL_IREE_JSONL : XPL_IREE_TEXT);
        if (st != XPL_OK)
            CHECK(x.err.msg[0] && (st == XPL_DATA_LOSS || st == XPL_INVALID_ARGUMENT));
        if (st == XPL_OK && i == 0) walk(&x.bundle);
        struct iree_run y = {.run.options = {.id = -1}};
        const xpl_status_t again =
            iree_report(&y, (xpl_bytes_t){data, size}, reports[i].name, XPL_IREE_JSONL);
        CHECK_EQ(again, st);
        if (st == XPL_OK && takes == 0 && json)
            CHECK(x.out.n == y.out.n && (!x.out.n || memcmp(x.out.p, y.out.p, x.out.n) == 0));
        xpl_buf_fini(&x.out);
        xpl_buf_fini(&y.out);
    }
    return 0;
}
