// SPDX-License-Identifier: Apache-2.0
// Writing an XSpace with every allocation failing once: the writer says so, nothing is leaked, and
// with memory back the same bytes come out.

#include "analysis/xplane/writer.h"
#include "base/arena.h"
#include "tests/check.h"

static bool put(void *ctx, xpl_bytes_t bytes) {
    xpl_buf_put(ctx, bytes.ptr, bytes.len);
    return !((struct xpl_buf *)ctx)->failed;
}

static void emit(struct xpl_xspace_writer *w) {
    static const uint8_t large[20000];
    const struct xpl_xspace_writer_line line = {.id = 1, .name = XPL_STR("line")};
    xpl_xspace_writer_begin_plane(w, 1, XPL_STR("plane"));
    for (int i = 0; i < 200; i++) {
        xpl_xspace_writer_begin_event_md(w, i, XPL_STR("name"), XPL_STR(""));
        xpl_xspace_writer_str(w, 1, XPL_STR("stat"));
        xpl_xspace_writer_end_event_md(w);
    }
    xpl_xspace_writer_begin_line(w, &line);
    for (size_t n = 1; n < sizeof large; n *= 4) {
        xpl_xspace_writer_begin_event(w, 1, 2, 3);
        xpl_xspace_writer_bytes(w, 1, (xpl_bytes_t){large, n});
        xpl_xspace_writer_end_event(w);
    }
    xpl_xspace_writer_end_line(w);
    xpl_xspace_writer_end_plane(w);
}

static bool run(struct xpl_buf *out) {
    struct xpl_xspace_writer w;
    const struct xpl_xspace_sink sink = {put, out};
    xpl_buf_init(out, 1 << 20);
    xpl_xspace_writer_init(&w, &sink);
    emit(&w);
    if (xpl_xspace_writer_measured(&w)) emit(&w);
    return xpl_xspace_writer_fini(&w);
}

static bool run_whole(struct xpl_buf *out) {
    struct xpl_xspace_writer w;
    xpl_buf_init(out, 1 << 20);
    xpl_xspace_writer_init_whole(&w, out);
    emit(&w);
    return xpl_xspace_writer_fini(&w);
}

static void fail_each(bool (*write)(struct xpl_buf *out), uint64_t least) {
    struct xpl_buf expected, got;
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    CHECK(write(&expected));
    const uint64_t n = xpl_fault_count();
    CHECK(n > least);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        CHECK(!write(&got));
        xpl_buf_fini(&got);
        CHECK_EQ(xpl_fault_live(), live + 1); // `expected`
    }
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK(write(&got));
    CHECK_BYTES(got.p, got.n, expected.p, expected.n);
    xpl_buf_fini(&got);
    xpl_buf_fini(&expected);
}

int main(void) {
    fail_each(run, 8);
    fail_each(run_whole, 4);
    return 0;
}
