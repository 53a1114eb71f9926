// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/host_ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

struct xpl_open_op {
    uint64_t start_ps, children_ps;
    uint64_t inside_ps; // since when it counts as its parent's child
    uint32_t id;
};

struct xpl_due_op {
    uint64_t end_ps;
    uint32_t id;
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

static bool begin_op(struct xpl_op_line *l, uint32_t id, const struct xpl_host_op *op,
                     uint64_t at) {
    enum { MOST_OPEN = 512 }; // that may cross: each end searches them
    if (op->crosses && l->open.n >= MOST_OPEN) return true;
    struct xpl_open_op *o = xpl_vec_push(l->arena, &l->open);
    if (!o) return false;
    *o = (struct xpl_open_op){.start_ps = at, .inside_ps = at, .id = id};
    return true;
}

// Removes the op with that id from those that are open; false when it is not among them.  Ops
// opened after it that have not ended are lost.  Those that may cross go on as children of its
// parent, and their time so far is inside the op.  *ret_parent: NULL without one.
static bool close_op(struct xpl_op_line *l, const struct xpl_due_op *d, struct xpl_open_op *ret,
                     struct xpl_open_op **ret_parent) {
    size_t i = l->open.n;
    while (i && l->open.v[i - 1].id != d->id)
        i--;
    if (!i || !d->op->crosses) l->open.n = i;
    if (!i) return false;
    *ret = l->open.v[i - 1];
    *ret_parent = i > 1 ? &l->open.v[i - 2] : NULL;
    if (i < l->open.n) {
        struct xpl_open_op *const child = &l->open.v[i];
        ret->children_ps += d->end_ps - child->inside_ps;
        child->inside_ps = d->end_ps;
        memmove(child - 1, child, (l->open.n - i) * sizeof *child);
    }
    l->open.n--;
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
    return end_until(l, begin) && begin_op(l, id, op, begin) &&
           push_due(l, (struct xpl_due_op){end, id, is_eager, op});
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
    if (!v || n > UINT32_MAX) return false;
    for (size_t i = 0; i < n; i++) {
        v[2 * i] = (struct activity){events[i].span.begin_ps, 2 * i};
        v[2 * i + 1] = (struct activity){xpl_timespan_end(events[i].span), 2 * i + 1};
    }
    qsort(v, 2 * n, sizeof *v, by_time);
    for (size_t k = 0; k < 2 * n; k++) {
        const struct xpl_op_event *e = &events[v[k].seq / 2];
        const uint32_t id = (uint32_t)(v[k].seq / 2);
        const struct xpl_due_op d = {v[k].at, id, e->is_eager, e->op};
        if (!(v[k].seq % 2 ? end_op(l, &d) : begin_op(l, id, e->op, v[k].at))) return false;
    }
    set_total(l, v[2 * n - 1].at - v[0].at);
    return true;
}
