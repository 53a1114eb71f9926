// SPDX-License-Identifier: Apache-2.0
// Most events are plain: they only close events that do not contain them, and count as distance
// between open and later events.  So chunks are read in parallel, each reduced to its other events
// and to a summary of the plain ones before each of those.  Then, chunk by chunk and in order,
// these go through the same state as in a sequential scan.
#include "analysis/grouping/scan/scan_long.h"

#include "analysis/grouping/scan/line_reader.h"
#include "analysis/grouping/scan/order_check.h"

struct plain_run {       // a run of plain events
    uint64_t begin, end; // the least begin and the greatest end
    uint32_t n_open;     // spans that are still open at its end; 0: no events
};
struct marked_event { // an event that is not plain
    struct plain_run before;
    uint32_t mask; // and EVENT_*
    uint32_t role;
    uint64_t md_id, at, offset, duration;
    const uint8_t *stats, *end;
};
#define EVENT_TIES  0x80000000u // begins where the event before it does
#define EVENT_FIRST 0x40000000u // of its chunk

struct piece {
    const struct plan *plan;
    const struct xpl_line *line;
    uint32_t chunk;
    struct xpl_arena arena;
    XPL_VEC(struct marked_event) events;
    XPL_VEC(struct span) open; // of all runs, one after the other
    struct plain_run last;
    uint64_t first_offset, first_duration;
    struct order_check order;
    bool failed;
    struct xpl_event_cursor broken; // where a malformed event is; line is NULL when there is none
};

static void add_plain(struct piece *p, struct plain_run *q, struct span span) {
    if (q->n_open == 0 || span.begin < q->begin) q->begin = span.begin;
    if (q->n_open == 0 || span.end > q->end) q->end = span.end;
    while (q->n_open && !span_includes(p->open.v[p->open.n - 1], span))
        p->open.n--, q->n_open--;
    struct span *const top = xpl_vec_push(&p->arena, &p->open);
    if (top)
        *top = span, q->n_open++;
    else
        p->failed = true;
}

static void read_chunk(struct piece *p) {
    struct xpl_event_cursor c;
    struct plain_run q = {0};
    bool first = true;
    p->events.n = p->open.n = 0;
    p->order = (struct order_check){.duration = UINT64_MAX, .offset = 0};
    p->broken.line = NULL;
    xpl_events_begin_chunk(&c, p->line, p->chunk);
    for (; c.index != c.stop && !p->failed; c.index++, first = false) {
        struct line_event e;
        if (XPL_UNLIKELY(!read_line_event(p->plan, p->line, &c, &e))) {
            p->broken = c;
            break;
        }
        if (first) p->first_offset = e.raw.offset_ps, p->first_duration = e.raw.duration_ps;
        const bool ties = e.raw.offset_ps == p->order.offset;
        if (p->plan->has_regions) check_order(&p->order, &e.raw);
        if (XPL_LIKELY(e.mask == 0) && !(e.role & ~(uint32_t)(ROLE_KNOWN | ROLE_IMPLICIT))) {
            add_plain(p, &q, plan_span(p->plan, p->line, e.raw.offset_ps, e.raw.duration_ps));
            continue;
        }
        struct marked_event *const h = xpl_vec_push(&p->arena, &p->events);
        if (h)
            *h = (struct marked_event){.before = q,
                                       .mask = e.mask | (ties ? EVENT_TIES : 0) |
                                               (first ? EVENT_FIRST : 0),
                                       .role = e.role,
                                       .md_id = e.raw.md_id,
                                       .at = e.at,
                                       .offset = e.raw.offset_ps,
                                       .duration = e.raw.duration_ps,
                                       .stats = e.raw.stats,
                                       .end = e.raw.end};
        else
            p->failed = true;
        q = (struct plain_run){0};
    }
    p->last = q;
}

// *open: where its open spans begin; moves behind them.
static void apply_plain(struct line_state *st, const struct plain_run *q, const struct piece *p,
                        size_t *open) {
    if (q->n_open == 0) return;
    pop_until_includes(st, (struct span){q->begin, q->end});
    for (uint32_t i = 0; st->stack.n && i < q->n_open; i++)
        push_plain(st, p->open.v[*open + i]);
    *open += q->n_open;
}

static xpl_status_t apply_event(struct line_state *st, struct order_check *order, uint64_t previous,
                                const struct marked_event *h) {
    const struct line_event e = {.raw = {.md_id = h->md_id,
                                         .offset_ps = h->offset,
                                         .duration_ps = h->duration,
                                         .stats = h->stats,
                                         .end = h->end},
                                 .at = h->at,
                                 .role = h->role};
    if (st->plan->has_regions && (h->role & (ROLE_START_REGION | ROLE_STOP_REGION))) {
        const bool ties = h->mask & EVENT_FIRST ? h->offset == previous : h->mask & EVENT_TIES;
        xpl_grp_pass_marker(st, order, &e, ties ? h->offset : ~h->offset);
    }
    xpl_grp_process_event(st, &e.raw, h->at, h->mask & ~(EVENT_TIES | EVENT_FIRST), h->role);
    return st->failed ? xpl_grp_scan_failed(st->s, NULL) : XPL_OK;
}

static xpl_status_t apply_chunk(struct line_state *st, struct order_check *order,
                                const struct piece *p, struct xpl_exec *exec) {
    size_t open = 0;
    const uint64_t previous = order->offset;
    if (p->failed) return xpl_grp_scan_failed(st->s, NULL);
    XPL_TRY(xpl_grp_begin_chunk(st, p->chunk, exec));
    check_order(order, &(struct xpl_raw_event){.offset_ps = p->first_offset,
                                               .duration_ps = p->first_duration});
    for (size_t i = 0; i < p->events.n; i++) {
        const struct marked_event *const h = &p->events.v[i];
        apply_plain(st, &h->before, p, &open);
        XPL_TRY(apply_event(st, order, previous, h));
    }
    apply_plain(st, &p->last, p, &open);
    order->unsorted |= p->order.unsorted;
    order->offset = p->order.offset;
    order->duration = p->order.duration;
    if (p->broken.line) return xpl_grp_scan_failed(st->s, &p->broken);
    return st->failed ? xpl_grp_scan_failed(st->s, NULL) : XPL_OK;
}

enum { MAX_WAVE = 16 };
struct wide {
    struct line_state *st;
    struct xpl_exec *exec;
    struct order_check order;
    struct piece *read, *apply; // chunks that are read now, and those that were before
    uint32_t n_read, n_apply;
    xpl_status_t status;
};

static void run_wide(void *ctx, size_t i) {
    struct wide *const w = ctx;
    if (i > 0) {
        read_chunk(&w->read[i - 1]);
        return;
    }
    for (uint32_t k = 0; k < w->n_apply && w->status == XPL_OK; k++)
        w->status = apply_chunk(w->st, &w->order, &w->apply[k], w->exec);
}

// As scan_in_order, and finds the same.
xpl_status_t xpl_grp_scan_long(struct line_state *st, struct xpl_exec *exec, bool *ret_unsorted) {
    const uint32_t width = exec->width < MAX_WAVE ? exec->width : MAX_WAVE;
    struct piece *const pieces = xpl_arena_zalloc(&st->scratch, 2 * width * sizeof *pieces);
    if (!pieces) return xpl_grp_scan_failed(st->s, NULL);
    struct wide w = {st, exec, {.duration = UINT64_MAX}, pieces, pieces + width, 0, 0, XPL_OK};
    for (uint32_t i = 0; i < 2 * width; i++) {
        pieces[i].plan = st->plan, pieces[i].line = st->line;
        xpl_arena_init(&pieces[i].arena, st->scratch.limit);
    }
    for (uint32_t chunk = 0; w.status == XPL_OK;) {
        for (w.n_read = 0; w.n_read < width && chunk < st->line->n_chunks; w.n_read++)
            w.read[w.n_read].chunk = chunk++;
        if (w.n_read + w.n_apply == 0) break;
        xpl_exec_run(exec, 1 + w.n_read, run_wide, &w);
        struct piece *const done = w.read;
        w.read = w.apply, w.apply = done;
        w.n_apply = w.n_read;
    }
    for (uint32_t i = 0; i < 2 * width; i++)
        xpl_arena_fini(&pieces[i].arena);
    *ret_unsorted = w.order.has_regions && w.order.unsorted;
    return w.status;
}
