// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/host_ops.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

struct xpl_open_op {
    uint64_t start_ps, children_ps;
    uint64_t inside_ps;    // since when it counts as its parent's child
    uint32_t id;           // 0: the place is free
    uint32_t outer, inner; // the next ones: places from 1; of free places `outer` is the next
};

struct xpl_due_op {
    uint64_t end_ps;
    uint32_t id, place;
    bool is_eager;
    const struct xpl_host_op *op;
};

static struct xpl_host_op_entry *entry_of(struct xpl_op_line *l, const struct xpl_host_op *op) {
    uint32_t *const recent = &l->recent[(uintptr_t)op / sizeof *op % XPL_RECENT_OPS];
    if (*recent && l->entries.v[*recent - 1].op == op) return &l->entries.v[*recent - 1];
    bool is_new;
    uint64_t *slot = xpl_map_put(l->arena, &l->entry_of, (uint64_t)(uintptr_t)op, 0, &is_new);
    if (!slot) return NULL;
    if (!*slot) {
        struct xpl_host_op_entry *e = xpl_vec_push(l->arena, &l->entries);
        if (!e) return NULL;
        *e = (struct xpl_host_op_entry){.op = op};
        *slot = l->entries.n;
    }
    *recent = (uint32_t)*slot;
    return &l->entries.v[*slot - 1];
}

// Each infeed op but the last counts, and the time from its start to the next one's.
static void note_infeed(struct xpl_op_line *l, struct xpl_timespan span) {
    if (l->last_infeed.begin_ps || l->last_infeed.duration_ps) {
        l->infeed_duration_ps += l->last_infeed.duration_ps;
        l->infeed_start_diff_ps += span.begin_ps - l->last_infeed.begin_ps;
    }
    l->last_infeed = span;
}

// Opens an op within the innermost one.  The place, from 1; 0 without memory.
static uint32_t begin_op(struct xpl_op_line *l, uint32_t id, uint64_t at) {
    uint32_t place = l->free_place;
    if (place)
        l->free_place = l->open.v[place - 1].outer;
    else if (xpl_vec_push(l->arena, &l->open))
        place = (uint32_t)l->open.n;
    if (!place) return 0;
    l->open.v[place - 1] =
        (struct xpl_open_op){.start_ps = at, .inside_ps = at, .id = id, .outer = l->innermost};
    if (l->innermost) l->open.v[l->innermost - 1].inner = place;
    l->innermost = place;
    return place;
}

static void free_place(struct xpl_op_line *l, uint32_t place) {
    struct xpl_open_op *const o = &l->open.v[place - 1];
    if (o->outer) l->open.v[o->outer - 1].inner = o->inner;
    if (o->inner)
        l->open.v[o->inner - 1].outer = o->outer;
    else
        l->innermost = o->outer;
    *o = (struct xpl_open_op){.outer = l->free_place};
    l->free_place = place;
}

// Removes the op from those that are open; false when it is not among them.  Ops opened after it
// that have not ended are lost.  Those that may cross go on as children of its parent, and their
// time so far is inside the op.  *ret_parent: NULL without one.
static bool close_op(struct xpl_op_line *l, const struct xpl_due_op *d, struct xpl_open_op *ret,
                     struct xpl_open_op **ret_parent) {
    struct xpl_open_op *const o = d->place ? &l->open.v[d->place - 1] : NULL;
    const bool is_open = o && o->id == d->id;
    while (!d->op->crosses && l->innermost && !(is_open && l->innermost == d->place))
        free_place(l, l->innermost);
    if (!is_open) return false;
    if (o->inner) {
        struct xpl_open_op *const child = &l->open.v[o->inner - 1];
        o->children_ps += d->end_ps - child->inside_ps;
        child->inside_ps = d->end_ps;
    }
    *ret = *o;
    *ret_parent = o->outer ? &l->open.v[o->outer - 1] : NULL;
    free_place(l, d->place);
    return true;
}

// Ends the op with that id; nothing when it is lost.
static bool end_op(struct xpl_op_line *l, const struct xpl_due_op *d) {
    struct xpl_open_op o, *parent;
    if (!close_op(l, d, &o, &parent)) return true;
    const uint64_t time = d->end_ps > o.start_ps ? d->end_ps - o.start_ps : 0;
    struct xpl_host_op_entry *e = entry_of(l, d->op);
    if (!e) return false;
    e->occurrences++;
    e->is_eager |= d->is_eager;
    e->time_ps += time;
    e->self_time_ps += time - o.children_ps;
    l->total_op_time_ps += time - o.children_ps;
    if (parent) parent->children_ps += d->end_ps > o.inside_ps ? d->end_ps - o.inside_ps : 0;
    if (d->op->is_infeed) note_infeed(l, (struct xpl_timespan){o.start_ps, time});
    return true;
}

// ---- ends that are due ----

static bool due_before(const struct xpl_due_op *a, const struct xpl_due_op *b) {
    return a->end_ps != b->end_ps ? a->end_ps < b->end_ps : a->id < b->id;
}

static bool push_due(struct xpl_op_line *l, struct xpl_due_op d) {
    if (!xpl_vec_push(l->arena, &l->due)) return false;
    size_t i = l->due.n - 1;
    for (; i && due_before(&d, &l->due.v[(i - 1) / 2]); i = (i - 1) / 2)
        l->due.v[i] = l->due.v[(i - 1) / 2];
    l->due.v[i] = d;
    return true;
}

static struct xpl_due_op pop_due(struct xpl_op_line *l) {
    struct xpl_due_op *v = l->due.v;
    const struct xpl_due_op first = v[0], last = v[--l->due.n];
    const size_t n = l->due.n;
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && due_before(&v[c + 1], &v[c])) c++;
        if (!due_before(&v[c], &last)) break;
        v[i] = v[c];
    }
    v[i] = last;
    return first;
}

static bool end_until(struct xpl_op_line *l, uint64_t at) {
    while (l->due.n && l->due.v[0].end_ps <= at) {
        const struct xpl_due_op d = pop_due(l);
        if (!end_op(l, &d)) return false;
    }
    return true;
}

bool xpl_op_line_add(struct xpl_op_line *l, const struct xpl_host_op *op, struct xpl_timespan span,
                     bool is_eager) {
    const uint64_t begin = span.begin_ps, end = xpl_timespan_end(span);
    if (l->out_of_order) return true;
    if (begin < l->last_begin_ps || end < begin) {
        l->out_of_order = true;
        return true;
    }
    if (!l->last_id) l->first_ps = begin;
    l->last_begin_ps = begin;
    if (end > l->last_ps) l->last_ps = end;
    const uint32_t id = ++l->last_id;
    const uint32_t place = end_until(l, begin) ? begin_op(l, id, begin) : 0;
    return place && push_due(l, (struct xpl_due_op){end, id, place, is_eager, op});
}

static void set_total(struct xpl_op_line *l, uint64_t total) {
    l->total_time_ps = total > l->total_op_time_ps ? total : l->total_op_time_ps;
}

bool xpl_op_line_finish(struct xpl_op_line *l) {
    if (l->out_of_order || !l->last_id) return true;
    if (!end_until(l, UINT64_MAX)) return false;
    set_total(l, l->last_ps - l->first_ps);
    return true;
}

// ---- lines out of order ----

// Begin or end of events[index]; `seq` is the order in which upstream writes them down.
struct activity {
    uint64_t at;
    size_t seq;
};

static int by_time(const void *pa, const void *pb) {
    const struct activity *a = pa, *b = pb;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

bool xpl_op_line_sort(struct xpl_op_line *l, const struct xpl_op_event *events, size_t n) {
    *l = (struct xpl_op_line){.arena = l->arena, .out_of_order = true};
    if (n == 0) return true;
    struct activity *v = xpl_arena_array(l->arena, n, 2 * sizeof *v);
    uint32_t *const places = xpl_arena_zalloc(l->arena, n * sizeof *places);
    if (!v || !places || n >= UINT32_MAX) return false;
    for (size_t i = 0; i < n; i++) {
        v[2 * i] = (struct activity){events[i].span.begin_ps, 2 * i};
        v[2 * i + 1] = (struct activity){xpl_timespan_end(events[i].span), 2 * i + 1};
    }
    xpl_sort(v, 2 * n, sizeof *v, by_time);
    for (size_t k = 0; k < 2 * n; k++) {
        const size_t i = v[k].seq / 2;
        const struct xpl_op_event *const e = &events[i];
        const uint32_t id = (uint32_t)i + 1;
        if (v[k].seq % 2) {
            const struct xpl_due_op d = {v[k].at, id, places[i], e->is_eager, e->op};
            if (!end_op(l, &d)) return false;
        } else if (!(places[i] = begin_op(l, id, v[k].at))) {
            return false;
        }
    }
    set_total(l, v[2 * n - 1].at - v[0].at);
    return true;
}
