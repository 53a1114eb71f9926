// From a profile to the bytes of its index, stage by stage.
#include "analysis/trace/impl.h"
#include "analysis/xplane/xspace.h"
#include "base/cleanup.h"

bool xpl_trace_sink_buf(void *ctx, const void *p, size_t n) {
    struct xpl_buf *const b = ctx;
    xpl_buf_put(b, p, n);
    return !b->failed;
}

static xpl_status_t build(struct builder *b, const struct xpl_trace_sink *sink,
                          struct xpl_error *err) {
    b->strings = xpl_intern_new(b->arena, xpl_hash_seed());
    if (!b->strings) XPL_FAIL_OOM(err, "trace strings");
    XPL_TRY(trc_plan(b, err));
    XPL_TRY(trc_collect(b, err));
    XPL_TRY(trc_name_slots(b, err));
    XPL_TRY(trc_make_tracks(b, err));
    XPL_TRY(trc_put_in_order(b, err));
    XPL_TRY(trc_find_levels(b, err));
    return trc_write(b, sink, err);
}

xpl_status_t xpl_trace_build(xpl_bytes_t profile, struct xpl_exec *exec, size_t limit,
                             const struct xpl_trace_sink *sink, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct xpl_xspace *xs;
    xpl_arena_init(&view, limit);
    xpl_arena_init(&arena, limit);
    struct builder b = {.arena = &arena, .exec = exec, .limit = limit};
    XPL_TRY(xpl_xspace_open(profile, &view, exec, &xs, err));
    XPL_TRY(xpl_groups_build(xs, &view, exec, &b.groups, err));
    b.xs = xs;
    const xpl_status_t st = build(&b, sink, err);
    for (size_t i = 0; i < b.n_pieces; i++)
        xpl_arena_fini(&b.pieces[i].arena);
    xpl_hlo_map_free(b.hlo);
    return st;
}

xpl_status_t xpl_trace_memory_init(struct xpl_trace_memory *m, xpl_bytes_t profile,
                                   struct xpl_exec *exec, size_t limit, struct xpl_arena *arena,
                                   struct xpl_error *err) {
    *m = (struct xpl_trace_memory){.arena = arena};
    xpl_buf_init(&m->index, limit);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &m->index};
    XPL_TRY(xpl_trace_build(profile, exec, limit, &sink, err));
    return xpl_trace_open((xpl_bytes_t){m->index.p, m->index.n}, arena, &m->trace, err);
}

void xpl_trace_memory_fini(struct xpl_trace_memory *m) {
    xpl_buf_fini(&m->index);
    *m = (struct xpl_trace_memory){0};
}
