// SPDX-License-Identifier: Apache-2.0
#include "sql/memory.h"

#include "analysis/breakdown/breakdown.h"
#include "analysis/opstats/opstats.h"
#include "base/cleanup.h"

static bool copy(const struct xpl_time_breakdown *b, struct xpl_sql_memory *ret) {
    ret->v = xpl_arena_array(&ret->arena, b->memory.n, sizeof *ret->v);
    for (size_t i = 0; ret->v && i < b->memory.n; i++) {
        const struct xpl_time_memory *const m = &b->memory.v[i];
        struct xpl_sql_allocator *const a = &ret->v[ret->n++];
        *a = (struct xpl_sql_allocator){.peak_bytes = m->peak_bytes,
                                        .capacity_bytes = m->capacity_bytes};
        if (!xpl_arena_str(&ret->arena, m->name, &a->name)) return false;
    }
    return ret->v;
}

static xpl_status_t read_all(const struct xpl_xspace *xs, struct xpl_exec *exec, size_t limit,
                             struct xpl_sql_memory *ret, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    // Allocators have nothing to do with steps: none are made.
    const struct xpl_step_db none = {.has_all_steps = true};
    const struct xpl_time_breakdown_options options = {.known = &none};
    struct xpl_time_breakdown *b;
    XPL_TRY(xpl_time_breakdown_make(xs, &options, exec, &arena, limit, &b, err));
    if (!copy(b, ret)) XPL_RETURN_OOM(err, "memory");
    return XPL_OK;
}

xpl_status_t xpl_sql_memory_read(const struct xpl_xspace *xs, struct xpl_exec *exec, size_t limit,
                                 struct xpl_sql_memory *ret, struct xpl_error *err) {
    const xpl_status_t st = read_all(xs, exec, limit, ret, err);
    if (st != XPL_OK) *ret = (struct xpl_sql_memory){.arena = ret->arena};
    return st;
}
