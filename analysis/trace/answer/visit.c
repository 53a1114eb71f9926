// SPDX-License-Identifier: Apache-2.0
// The events of a window, one by one.
#include "analysis/trace/answer/window.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/exec.h"
#include "base/map.h"

enum { CANCEL_EVERY = 64 }; // blocks

struct track {
    uint32_t pid;
    uint8_t row; // as the visitor judged it
    bool chosen;
};

struct visit {
    const struct xpl_trace_visitor *visitor;
    struct xpl_exec *exec;
    struct trc_window w;
    uint32_t blocks;
    // Of the current host.
    const struct xpl_trace *t;
    struct track *tracks; // by number
    uint8_t *names;       // by string
};

// Names of rows by device and id; of several that share an id the last one gives the name.
static bool name_rows(const struct xpl_trace *t, struct xpl_arena *arena, struct xpl_map *ret) {
    for (uint64_t i = 0; i < t->n[TRC_RESOURCES]; i++) {
        bool is_new;
        uint64_t *const name =
            xpl_map_put(arena, ret, t->resources[i].device, t->resources[i].id, &is_new);
        if (!name) return false;
        *name = t->resources[i].name;
    }
    return true;
}

static bool judge_names(struct visit *v, struct xpl_arena *arena) {
    const struct xpl_trace *const t = v->t;
    const size_t n = (size_t)t->n[TRC_NAMES];
    xpl_str_t *const texts = xpl_arena_array(arena, n, sizeof *texts);
    uint8_t *const judged = xpl_arena_zalloc(arena, n);
    if (!texts || !judged) return false;
    for (size_t i = 0; i < n; i++)
        texts[i] = trc_str(t, t->names[i].string);
    v->visitor->judge_names(texts, n, judged);
    for (size_t i = 0; i < n; i++)
        v->names[t->names[i].string] = judged[i];
    return true;
}

static xpl_status_t begin_host(struct visit *v, const struct xpl_trace *t, uint32_t first_pid,
                               struct xpl_arena *arena, struct xpl_error *err) {
    struct xpl_map rows = {0};
    v->t = t;
    v->tracks = xpl_arena_zalloc(arena, (size_t)t->n[TRC_TRACKS] * sizeof *v->tracks);
    v->names = xpl_arena_zalloc(arena, (size_t)t->n[TRC_STRINGS]);
    if (!v->tracks || !v->names || !name_rows(t, arena, &rows)) XPL_RETURN_OOM(err, "trace events");
    for (uint64_t i = 0; i < t->n[TRC_TRACKS]; i++) {
        const struct trc_track *const track = &t->tracks[i];
        const struct trc_device *const device = &t->devices[track->device];
        struct track *const to = &v->tracks[i];
        const uint64_t *const name = xpl_map_get(&rows, track->device, track->id);
        if (track->named || !name) continue;
        to->pid = first_pid + device->id;
        to->row = v->visitor->judge_row(trc_str(t, device->name), trc_str(t, *name));
        to->chosen = trc_window_has_row(&v->w, to->pid, track->id);
    }
    if (!judge_names(v, arena)) XPL_RETURN_OOM(err, "trace events");
    return XPL_OK;
}

static xpl_status_t visit_block(struct visit *v, uint64_t block, struct xpl_error *err) {
    struct trc_view view;
    if (v->blocks++ % CANCEL_EVERY == 0 && xpl_exec_cancelled(v->exec))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace events: cancelled");
    XPL_TRY(trc_view_block(v->t, block, &view, err));
    for (uint32_t i = 0; i < view.n; i++) {
        const uint64_t name = trc_get(&view, TRC_NAME, i), track = trc_get(&view, TRC_TRACK, i);
        if (name >= v->t->n[TRC_STRINGS] || track >= v->t->n[TRC_TRACKS])
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "trace index: an event is damaged");
        const struct track *const of = &v->tracks[track];
        struct xpl_trace_visit seen = {of->pid, of->row, v->names[name], of->chosen, 0, 0};
        if (!seen.row || !seen.name ||
            !trc_window_cut(&v->w, trc_get(&view, TRC_TS, i), trc_get(&view, TRC_DUR, i),
                            &seen.begin, &seen.end) ||
            seen.begin >= seen.end)
            continue;
        if (!v->visitor->visit(v->visitor->arg, &seen)) XPL_RETURN_OOM(err, "trace events");
    }
    return XPL_OK;
}

static xpl_status_t visit_levels(struct visit *v, struct xpl_error *err) {
    for (unsigned level = 0; level < TRC_LEVELS; level++) {
        const uint64_t end = v->t->footer->level_first[level + 1];
        for (uint64_t b = trc_window_first(&v->w, v->t, level);
             b < end && !trc_window_ends(&v->w, v->t, b); b++)
            XPL_TRY(visit_block(v, b, err));
    }
    return XPL_OK;
}

xpl_status_t xpl_trace_visit(const struct xpl_trace_host *hosts, size_t n,
                             const struct xpl_trace_sums_options *o,
                             const struct xpl_trace_visitor *visitor, struct xpl_exec *exec,
                             size_t limit, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    struct visit v = {.visitor = visitor, .exec = exec};
    XPL_TRY(trc_window_init(&v.w, o, &arena, err));
    hosts = trc_align(hosts, n, &arena);
    if (!hosts) XPL_RETURN_OOM(err, "trace events");
    for (size_t i = 0; i < n; i++) {
        const uint32_t first_pid = (uint32_t)(i + 1) * TRC_DEVICES_PER_HOST;
        XPL_TRY(begin_host(&v, hosts[i].trace, first_pid, &arena, err));
        XPL_TRY(visit_levels(&v, err));
    }
    return XPL_OK;
}
