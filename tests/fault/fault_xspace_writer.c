// SPDX-License-Identifier: Apache-2.0
// Writing an XSpace with every allocation failing once: the writer says so, nothing is leaked, and
// with memory back the same bytes come out.

#include "analysis/xplane/writer.h"
#include "tests/fault/answers/each.h"

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

// *input: whether the whole XSpace is in one buffer.
static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    struct xpl_xspace_writer w;
    const struct xpl_xspace_sink sink = {put, out};
    (void)arena;
    const bool whole = *(const bool *)input;
    if (whole)
        xpl_xspace_writer_init_whole(&w, out);
    else
        xpl_xspace_writer_init(&w, &sink);
    emit(&w);
    if (!whole && xpl_xspace_writer_measured(&w)) emit(&w);
    if (!xpl_xspace_writer_fini(&w)) XPL_RETURN_OOM(err, "XSpace");
    return XPL_OK;
}

int main(void) {
    fault_each(&(struct fault_scenario){run, &(bool){false}, .least = 9});
    fault_each(&(struct fault_scenario){run, &(bool){true}, .least = 5});
    return 0;
}
