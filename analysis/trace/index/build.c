// SPDX-License-Identifier: Apache-2.0
// From a profile to the bytes of its index, stage by stage.
#include "analysis/trace/index/impl.h"
#include "analysis/trace/index/read.h"
#include "analysis/xplane/xspace.h"

enum { MOST_LEVELS_OF_PART = 8 }; // more levels cost as much as the whole

bool xpl_trace_sink_buf(void *ctx, const void *p, size_t n) {
    struct xpl_buf *const b = ctx;
    xpl_buf_put(b, p, n);
    return !b->failed;
}

// ---- in two steps ----

struct xpl_trace_build {
    struct builder b;
};

// Frees the data that only the reading of the profile needs.
static void free_profile_state(struct builder *b) {
    for (size_t i = 0; i < b->n_pieces; i++)
        xpl_arena_fini(&b->pieces[i].arena);
    b->n_pieces = 0;
    xpl_hlo_map_free(b->hlo);
    b->hlo = NULL;
    xpl_arena_fini(&b->view);
}

static xpl_status_t read_profile(struct builder *b, xpl_bytes_t profile, struct xpl_error *err) {
    XPL_TRY(xpl_xspace_open(profile, &b->view, b->exec, &b->xs, err));
    // XProf shows hosts whose lines count from their own begin as they are.
    b->start_ns = b->xs->was_absolute ? b->xs->start_ns : 0;
    XPL_TRY(xpl_groups_build(b->xs, &b->view, b->exec, &b->groups, err));
    b->strings = xpl_intern_new(b->arena, xpl_hash_seed());
    if (!b->strings) XPL_RETURN_OOM(err, "trace strings");
    XPL_TRY(trc_plan(b, err));
    XPL_TRY(trc_collect(b, err));
    XPL_TRY(trc_name_slots(b, err));
    XPL_TRY(trc_make_tracks(b, err));
    return trc_put_in_order(b, err);
}

xpl_status_t xpl_trace_build_begin(xpl_bytes_t profile, struct xpl_exec *exec, size_t limit,
                                   struct xpl_trace_build **ret, struct xpl_error *err) {
    struct xpl_trace_build *const t = xpl_sys_alloc(sizeof *t);
    if (!t) XPL_RETURN_OOM(err, "trace index");
    struct builder *const b = &t->b;
    *b = (struct builder){.exec = exec, .limit = limit};
    b->arena = &b->own;
    xpl_arena_init(&b->view, limit);
    xpl_arena_init(&b->own, limit);
    const xpl_status_t st = read_profile(b, profile, err);
    free_profile_state(b);
    if (st == XPL_OK)
        *ret = t;
    else
        xpl_trace_build_free(t);
    return st;
}

static unsigned levels_of(const struct builder *b, const struct xpl_trace_options *o) {
    const struct trc_footer f = {.n_events = b->n_events,
                                 .has_min = b->has_min,
                                 .has_max = b->has_max,
                                 .min_ts = b->min_ts,
                                 .max_ts = b->max_ts};
    return trc_levels_shown(&f, o);
}

bool xpl_trace_build_has_part(const struct xpl_trace_build *t, const struct xpl_trace_options *o) {
    // Beside hosts that began earlier, the window is another one of this host.
    if (t->b.start_ns && (o->start_time_ms != 0 || o->end_time_ms != 0)) return false;
    return levels_of(&t->b, o) <= MOST_LEVELS_OF_PART;
}

xpl_status_t xpl_trace_build_part(struct xpl_trace_build *t, const struct xpl_trace_options *o,
                                  const struct xpl_trace_sink *sink, struct xpl_error *err) {
    XPL_TRY(trc_find_levels(&t->b, levels_of(&t->b, o), err));
    return trc_write(&t->b, sink, err);
}

xpl_status_t xpl_trace_build_finish(struct xpl_trace_build *t, struct xpl_exec *exec,
                                    const struct xpl_trace_sink *sink, struct xpl_error *err) {
    t->b.exec = exec;
    XPL_TRY(trc_find_levels(&t->b, TRC_DECIDED, err));
    return trc_write(&t->b, sink, err);
}

void xpl_trace_build_free(struct xpl_trace_build *t) {
    if (!t) return;
    trc_end_flows(&t->b);
    xpl_arena_fini(&t->b.own);
    xpl_sys_free(t);
}

// ---- at once ----

xpl_status_t xpl_trace_build(xpl_bytes_t profile, struct xpl_exec *exec, size_t limit,
                             const struct xpl_trace_sink *sink, struct xpl_error *err) {
    struct xpl_trace_build *t = NULL;
    XPL_TRY(xpl_trace_build_begin(profile, exec, limit, &t, err));
    const xpl_status_t st = xpl_trace_build_finish(t, exec, sink, err);
    xpl_trace_build_free(t);
    return st;
}

xpl_status_t xpl_trace_memory_init(struct xpl_trace_memory *m, xpl_bytes_t profile,
                                   const struct xpl_trace_options *o, struct xpl_exec *exec,
                                   size_t limit, struct xpl_arena *arena, struct xpl_error *err) {
    struct xpl_trace_build *t = NULL;
    *m = (struct xpl_trace_memory){.arena = arena};
    xpl_buf_init(&m->index, limit);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &m->index};
    XPL_TRY(xpl_trace_build_begin(profile, exec, limit, &t, err));
    const xpl_status_t st = o && xpl_trace_build_has_part(t, o)
                                ? xpl_trace_build_part(t, o, &sink, err)
                                : xpl_trace_build_finish(t, exec, &sink, err);
    xpl_trace_build_free(t);
    if (st != XPL_OK) return st;
    return xpl_trace_open((xpl_bytes_t){m->index.p, m->index.n}, arena, &m->trace, err);
}

void xpl_trace_memory_fini(struct xpl_trace_memory *m) {
    xpl_buf_fini(&m->index);
    *m = (struct xpl_trace_memory){0};
}
