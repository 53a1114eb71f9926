// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/answer/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

// Picoseconds; negative or too large values saturate.
static uint64_t to_ps(double ms) {
    const double ps = ms * 1e9;
    return ps >= 18446744073709551615.0 ? UINT64_MAX : ps > 0 ? (uint64_t)ps : 0;
}

// Whole processes before their rows.
static int by_number(const void *pa, const void *pb) {
    const struct xpl_trace_row *const a = pa, *const b = pb;
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    if (a->whole != b->whole) return a->whole ? -1 : 1;
    return a->whole || a->tid == b->tid ? 0 : a->tid < b->tid ? -1 : 1;
}

xpl_status_t trc_window_init(struct trc_window *w, const struct xpl_trace_sums_options *o,
                             struct xpl_arena *arena, struct xpl_error *err) {
    // A request may have as many rows as a trace.
    struct xpl_trace_row *const rows = xpl_arena_array(arena, o->n_rows, sizeof *rows);
    w->all = o->start_time_ms == 0 && o->end_time_ms == 0;
    w->begin = to_ps(o->start_time_ms);
    w->end = o->end_time_ms == 0 ? UINT64_MAX : to_ps(o->end_time_ms);
    if (w->end < w->begin)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "the window ends before it begins");
    if (!rows) XPL_RETURN_OOM(err, "trace rows");
    if (o->n_rows) memcpy(rows, o->rows, o->n_rows * sizeof *rows);
    xpl_sort(rows, o->n_rows, sizeof *rows, by_number);
    w->rows = rows;
    w->n_rows = o->n_rows;
    return XPL_OK;
}

bool trc_window_has_row(const struct trc_window *w, uint32_t pid, uint32_t tid) {
    const struct xpl_trace_row keys[] = {{.pid = pid, .whole = true}, {.pid = pid, .tid = tid}};
    if (w->n_rows == 0) return true;
    for (int i = 0; i < 2; i++)
        if (bsearch(&keys[i], w->rows, w->n_rows, sizeof *w->rows, by_number)) return true;
    return false;
}

bool trc_window_cut(const struct trc_window *w, uint64_t ts, uint64_t dur, uint64_t *ret_begin,
                    uint64_t *ret_end) {
    const uint64_t ends = w->all ? ts + dur : trc_plus(ts, dur);
    if (!w->all && (ts >= w->end || (dur ? ends <= w->begin : ts < w->begin))) return false;
    *ret_begin = w->all || ts > w->begin ? ts : w->begin;
    *ret_end = w->all || ends < w->end ? ends : w->end;
    return true;
}

uint64_t trc_window_first(const struct trc_window *w, const struct xpl_trace *t, unsigned level) {
    // An event of a row that is first visible at a level is shorter than the resolution of the
    // level before, so that those which begin earlier do not reach into the window.
    const uint64_t reach = level ? trc_resolutions[level - 1] : UINT64_MAX;
    return trc_find_block(t, level, w->all || w->begin < reach ? 0 : w->begin - reach);
}
