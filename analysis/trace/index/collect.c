// SPDX-License-Identifier: Apache-2.0
// Events of all lines into records.  Lines are cut into pieces that threads read independently;
// regions that begin in one piece and end in another are completed afterwards.
#include <stdlib.h>
#include <string.h>

#include "analysis/trace/index/impl.h"
#include "base/vec.h"

enum { PIECE_EVENTS = 1 << 15, CANCEL_EVERY = 1 << 13 };

#define STEP_IN_NAMED (UINT64_C(1) << 63)

// ---- one event ----

struct reading {
    struct piece *p;
    const struct builder *b;
    const struct line_src *ls;
    const struct plane_src *ps;
    struct xpl_group_cursor *cursor;
    uint64_t line_at; // of the line's message in the profile
};

static bool is_frame_arg(xpl_str_t name, xpl_str_t value) {
    return value.len > 16 &&
           (xpl_str_eq(name, XPL_STR("long_name")) || xpl_str_eq(name, XPL_STR("hlo_text")));
}

// Reads the event's own stats, except flows and groups of grouping.
static bool scan_stats(struct reading *r, struct xpl_stats s, struct rec *rec, bool *ret_async) {
    struct xpl_stat stat;
    while (xpl_stats_next_of(&s, r->ps->scan, &stat) == XPL_WIRE_FIELD) {
        const bool number = stat.kind == XPL_VALUE_INT || stat.kind == XPL_VALUE_UINT;
        if (number && stat.md->type == XPL_STAT_FLOW) {
            rec->flags |= TRC_HAS_FLOW;
            rec->flow = trc_flow_of_stat(stat.u);
        } else if (number && stat.md->type == XPL_STAT_IS_ASYNC) {
            *ret_async = true;
        } else if ((stat.kind == XPL_VALUE_STR || stat.kind == XPL_VALUE_REF) &&
                   is_frame_arg(stat.md->name, stat.str)) {
            xpl_str_t *const slot = xpl_vec_push(&r->p->arena, &r->p->frames);
            if (!slot) return false;
            *slot = stat.str;
        }
    }
    return true;
}

static void add_flows(const struct reading *r, const struct xpl_event *ev, struct rec *rec) {
    struct xpl_flow flows[XPL_MAX_FLOWS];
    const unsigned n = xpl_flows_of_event(&r->ls->flows, ev, flows);
    if (!n) return;
    rec->flags |= TRC_HAS_FLOW;
    rec->flow = xpl_flow_value(&flows[n - 1]); // of several, the viewer shows the last
}

static bool add_step_name(struct piece *p, uint64_t at, xpl_str_t name) {
    struct named_step *const s = xpl_vec_push(&p->arena, &p->steps);
    if (!s) return false;
    *s = (struct named_step){at, name};
    return true;
}

static void apply_group(struct rec *rec, const struct xpl_event_group *g) {
    if (g->has_group) {
        rec->flags |= TRC_HAS_GROUP;
        rec->group = (uint64_t)g->shown_group_id;
    }
    if (g->has_is_eager) rec->flags |= (uint8_t)(TRC_HAS_EAGER | (g->is_eager ? TRC_EAGER : 0));
}

static void apply_md(const struct plane_src *ps, uint32_t md, struct rec *rec, bool *ret_async) {
    const uint8_t f = ps->md_flags[md];
    if (f & MD_HAS_FLOW) {
        rec->flags |= TRC_HAS_FLOW;
        rec->flow = ps->md_flow[md];
    }
    if (f & MD_HAS_GROUP) {
        rec->flags |= TRC_HAS_GROUP;
        rec->group = ps->md_group[md];
    }
    if (f & MD_ASYNC) *ret_async = true;
}

static void mark_used(const struct plane_src *ps, uint32_t md) {
    if (!__atomic_load_n(&ps->used[md], __ATOMIC_RELAXED))
        __atomic_store_n(&ps->used[md], 1, __ATOMIC_RELAXED);
}

// Appends a record to its row or to the named ones, under a step's name if it has one.
static bool put_rec(struct reading *r, struct rec *rec, bool async, xpl_str_t step) {
    struct piece *const p = r->p;
    if (step.len) rec->flags |= TRC_STEP_NAME;
    if (XPL_LIKELY(!r->ls->counter && !(async && (rec->flags & TRC_HAS_FLOW)))) {
        if (XPL_UNLIKELY(step.len) && !add_step_name(p, p->n, step)) return false;
        p->out[p->n++] = *rec;
        return true;
    }
    rec->flags |= r->ls->counter ? TRC_COUNTER : TRC_ASYNC;
    rec->track = r->ls->ps->device;
    if (r->ls->counter) rec->dur = 0, rec->flags &= (uint8_t) ~(TRC_HAS_FLOW | TRC_HAS_GROUP);
    if (step.len && !add_step_name(p, p->named.n | STEP_IN_NAMED, step)) return false;
    struct rec *const slot = xpl_vec_push(&p->arena, &p->named);
    if (!slot) return false;
    *slot = *rec;
    return true;
}

static bool add_event(struct reading *r, const struct xpl_event *ev,
                      const struct xpl_event_group *g) {
    const struct plane_src *const ps = r->ps;
    struct rec rec = {.ts = (uint64_t)xpl_event_begin_ps(r->ls->line, ev),
                      .dur = (uint64_t)ev->duration_ps,
                      .src = r->line_at + ev->at,
                      .name = ps->slot_base + ev->md};
    bool async = false;
    mark_used(ps, ev->md);
    if (ps->md_flags[ev->md]) apply_md(ps, ev->md, &rec, &async);
    if (ps->scan && !scan_stats(r, ev->stats, &rec, &async)) return false;
    if (r->ls->flows.any) add_flows(r, ev, &rec);
    apply_group(&rec, g);
    return put_rec(r, &rec, async, g->has_step_name ? g->step_name : (xpl_str_t){"", 0});
}

// ---- one event of a plane with added lines ----

// Arguments of an event of which the profile does not hold all.
static bool add_own_args(struct reading *r, const struct xpl_derived_event *ev, uint64_t at) {
    struct piece *const p = r->p;
    struct own_args *const own = xpl_vec_push(&p->arena, &p->own);
    struct xpl_derived_stats it;
    struct xpl_stat s;
    if (!own) return false;
    *own = (struct own_args){.at = at, .md = ev->md, .first = p->own_stats.n};
    xpl_derived_stats_begin(&it, r->ps->derived, ev);
    while (xpl_derived_stats_next(&it, &s)) {
        if (!trc_stat_is_arg(s.md->type) ||
            (s.md->type == XPL_STAT_STEP_NAME && ev->has_step_name) ||
            (s.md->type == XPL_STAT_IS_EAGER && ev->has_is_eager))
            continue; // the record has them
        struct xpl_stat *const slot = xpl_vec_push(&p->arena, &p->own_stats);
        if (!slot) return false;
        *slot = s;
        own->n++;
    }
    return true;
}

static bool add_derived_event(struct reading *r, const struct xpl_derived_event *ev) {
    const struct plane_src *const ps = r->ps;
    const bool recorded = ev->at != UINT64_MAX;
    const struct xpl_event_group g = {.has_group = ev->has_group,
                                      .has_is_eager = ev->has_is_eager,
                                      .is_eager = ev->is_eager,
                                      .shown_group_id = ev->group_id};
    const xpl_str_t step = ev->has_step_name ? ev->step_name : (xpl_str_t){"", 0};
    struct rec rec = {.ts = (uint64_t)ev->begin_ps,
                      .dur = (uint64_t)ev->duration_ps,
                      .src = recorded ? r->line_at + ev->at : SRC_OF_MD,
                      .name = ps->slot_base + ev->md,
                      .flags = recorded ? 0 : TRC_OWN_ARGS};
    bool async = false;
    mark_used(ps, ev->md);
    if (ps->md_flags[ev->md]) apply_md(ps, ev->md, &rec, &async);
    if (ps->scan && recorded && !scan_stats(r, ev->stats, &rec, &async)) return false;
    for (uint32_t i = 0; i < ev->n_added; i++)
        if (ev->added[i].md->type == XPL_STAT_IS_ASYNC) async = true;
    if (ev->n_flows) {
        rec.flags |= TRC_HAS_FLOW;
        rec.flow = xpl_flow_value(&ev->flows[ev->n_flows - 1]);
    }
    apply_group(&rec, &g);
    if (ev->n_added || (!recorded && step.len)) {
        const bool named = r->ls->counter || (async && (rec.flags & TRC_HAS_FLOW));
        const uint64_t at = named ? r->p->named.n | STEP_IN_NAMED : r->p->n;
        rec.flags |= TRC_OWN_ARGS;
        if (!add_own_args(r, ev, at)) return false;
    }
    return put_rec(r, &rec, async, step);
}

// ---- regions of thread pools ----

// A StartRegion: remembers begin and group of its region.
static void start_region(struct reading *r, const struct xpl_event *ev) {
    struct piece *const p = r->p;
    struct xpl_stat stat;
    if (!xpl_stats_get(ev->stats, XPL_STAT_CONSUMER_ID, &stat)) return;
    size_t n = 0;
    const struct xpl_region_event *const list = xpl_group_cursor_regions(r->cursor, &n);
    p->has_start = true;
    p->start = (uint64_t)xpl_event_begin_ps(r->ls->line, ev);
    p->start_grouped = n != 0;
    p->start_group = n ? (uint64_t)list[0].group_id : 0;
}

static struct rec region_rec(const struct builder *b, uint64_t begin, uint64_t end, bool grouped,
                             uint64_t group) {
    return (struct rec){.ts = begin,
                        .dur = end - begin,
                        .name = b->region_slot,
                        .group = group,
                        .flags = (uint8_t)(TRC_OWN_ARGS | (grouped ? TRC_HAS_GROUP : 0))};
}

static bool stop_region(struct reading *r, const struct xpl_event *ev) {
    struct piece *const p = r->p;
    const uint64_t end = (uint64_t)xpl_event_begin_ps(r->ls->line, ev);
    if (!p->has_start) {
        uint64_t *const slot = xpl_vec_push(&p->arena, &p->stops);
        if (slot) *slot = end;
        return slot != NULL;
    }
    if (p->start == 0) return true; // upstream ignores a start at time 0
    if (!r->ls->counter)            // counters have no rows
        p->regions[p->n_regions++] =
            region_rec(r->b, p->start, end, p->start_grouped, p->start_group);
    return true;
}

static int by_begin(const void *pa, const void *pb) {
    const struct xpl_region_event *const a = pa, *const b = pb;
    if (a->begin_ps != b->begin_ps) return a->begin_ps < b->begin_ps ? -1 : 1;
    return (a->duration_ps > b->duration_ps) - (a->duration_ps < b->duration_ps);
}

// Regions of a line out of order are all known before its first event.
static bool copy_regions(struct reading *r, struct line_src *ls) {
    const struct xpl_region_event *const list = xpl_group_cursor_regions(r->cursor, &ls->n_regions);
    if (!ls->n_regions) return true;
    ls->regions = xpl_arena_array(&r->p->arena, ls->n_regions, sizeof *ls->regions);
    if (!ls->regions) return false;
    memcpy(ls->regions, list, ls->n_regions * sizeof *list);
    xpl_sort(ls->regions, ls->n_regions, sizeof *ls->regions, by_begin);
    return true;
}

// ---- one piece ----

static xpl_status_t read_piece(struct reading *r, struct xpl_error *err) {
    struct piece *const p = r->p;
    struct line_src *const ls = p->ls;
    struct xpl_event_cursor c, stop;
    struct xpl_event ev;
    struct xpl_event_group g = {0};
    enum xpl_wire_result got;
    xpl_events_begin_chunk(&c, ls->line, p->chunk);
    if (p->end_chunk < ls->n_chunks)
        xpl_events_begin_chunk(&stop, ls->line, p->end_chunk), c.stop = stop.index;
    else
        c.stop = ls->line->n_events;
    XPL_TRY(xpl_group_cursor_new_at(r->b->groups, ls->line, p->chunk, &p->arena, &r->cursor, err));
    for (uint64_t n = 0; (got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD; n++) {
        xpl_group_cursor_next(r->cursor, &ev, &g);
        bool ok = true;
        if (XPL_UNLIKELY(r->ps->regions)) {
            if (ev.index == 0) ok = copy_regions(r, ls);
            if (ev.md == r->ps->start_md) start_region(r, &ev);
            if (ev.md == r->ps->stop_md) ok = ok && stop_region(r, &ev);
        }
        if (XPL_LIKELY(!(r->ps->md_flags[ev.md] & MD_INTERNAL))) ok = ok && add_event(r, &ev, &g);
        if (XPL_UNLIKELY(!ok)) XPL_RETURN_OOM(err, "trace events");
        if (n % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->b->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace: cancelled");
    }
    if (got == XPL_WIRE_MALFORMED) return xpl_events_error(&c, err);
    if (!xpl_group_cursor_ok(r->cursor)) XPL_RETURN_OOM(err, "event groups");
    return XPL_OK;
}

static xpl_status_t read_derived(struct reading *r, uint32_t chunk, struct xpl_error *err) {
    struct xpl_derived_cursor *c;
    struct xpl_derived_event ev;
    enum xpl_wire_result got;
    XPL_TRY(xpl_derived_cursor_new(r->ls->derived, chunk, &r->p->arena, &c, err));
    for (uint64_t n = 0; (got = xpl_derived_cursor_next(c, &ev)) == XPL_WIRE_FIELD; n++) {
        if (r->p->n == r->p->cap && !r->ls->counter)
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                             "trace: a line has more events than its header states");
        if (r->ps->md_flags[ev.md] & MD_INTERNAL) continue;
        if (!add_derived_event(r, &ev)) XPL_RETURN_OOM(err, "trace events");
        if (n % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->b->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace: cancelled");
    }
    return got == XPL_WIRE_MALFORMED ? xpl_derived_cursor_error(c, err) : XPL_OK;
}

static void run_piece(void *ctx, size_t i) {
    struct builder *const b = ctx;
    struct piece *const p = &b->pieces[i];
    struct reading r = {.p = p, .b = b, .ls = p->ls, .ps = p->ls->ps};
    if (xpl_exec_cancelled(b->exec)) {
        p->status = xpl_error_set(&p->err, XPL_CANCELLED, __FILE__, __LINE__, UINT64_MAX,
                                  "trace: cancelled");
        return;
    }
    xpl_sys_populate(p->out, p->cap * sizeof *p->out);
    if (p->ls->line) r.line_at = (uint64_t)(p->ls->line->message.ptr - b->xs->bytes.ptr);
    if (!p->ls->derived) p->status = read_piece(&r, &p->err);
    for (uint32_t c = p->chunk; p->ls->derived && c < p->end_chunk && p->status == XPL_OK; c++)
        p->status = read_derived(&r, c, &p->err);
}

// ---- all pieces ----

static uint32_t pieces_of(const struct builder *b, const struct line_src *ls) {
    uint64_t n = ls->n_events / PIECE_EVENTS + 1;
    const uint64_t most = (uint64_t)b->exec->width * 8;
    if (n > most) n = most;
    if (n > ls->n_chunks) n = ls->n_chunks;
    return b->exec->width == 1 || n == 0 ? 1 : (uint32_t)n;
}

// Events of the line before a chunk.  Of a line that can be cut these are the recorded ones.
static uint64_t first_of_chunk(const struct line_src *ls, uint32_t chunk) {
    struct xpl_event_cursor c;
    if (chunk == 0) return 0;
    if (chunk >= ls->n_chunks) return ls->n_events;
    xpl_events_begin_chunk(&c, ls->line, chunk);
    return c.index;
}

static xpl_status_t cut_line(struct builder *b, struct line_src *ls, struct xpl_error *err) {
    // An event may end a region, which needs a record as well, after those of all events; the
    // number of events of a derived line includes them already.
    const uint64_t share = ls->counter ? 0 : 1;
    const uint64_t room = ls->ps->regions && !ls->derived ? 2 * share : share;
    ls->recs = xpl_arena_array(b->arena, ls->n_events * room, sizeof *ls->recs);
    if (!ls->recs) XPL_RETURN_OOM(err, "trace events");
    for (uint32_t i = 0; i < ls->n_pieces; i++) {
        struct piece *const p = &b->pieces[ls->first_piece + i];
        xpl_arena_init_part(&p->arena, &b->pieces_budget);
        p->ls = ls;
        p->chunk = (uint32_t)((uint64_t)ls->n_chunks * i / ls->n_pieces);
        p->end_chunk = (uint32_t)((uint64_t)ls->n_chunks * (i + 1) / ls->n_pieces);
        const uint64_t first = first_of_chunk(ls, p->chunk);
        const uint64_t end = first_of_chunk(ls, p->end_chunk);
        p->out = ls->recs + first * share;
        p->cap = (end - first) * share;
        if (room == 2) p->regions = p->out + ls->n_events;
    }
    return XPL_OK;
}

static xpl_status_t cut_lines(struct builder *b, struct xpl_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < b->lines.n; i++) {
        struct line_src *const ls = &b->lines.v[i];
        ls->first_piece = (uint32_t)n;
        ls->n_pieces = pieces_of(b, ls);
        n += ls->n_pieces;
    }
    xpl_arena_budget_init(&b->pieces_budget, b->limit);
    b->pieces = xpl_arena_zalloc(b->arena, n * sizeof *b->pieces);
    if (!b->pieces) XPL_RETURN_OOM(err, "trace pieces");
    b->n_pieces = n;
    for (size_t i = 0; i < b->lines.n; i++)
        XPL_TRY(cut_line(b, &b->lines.v[i], err));
    return XPL_OK;
}

// ---- afterwards ----

static void give_region_group(const struct line_src *ls, struct rec *rec) {
    const struct xpl_region_event key = {.begin_ps = (int64_t)rec->ts,
                                         .duration_ps = (int64_t)rec->dur};
    const struct xpl_region_event *const r =
        bsearch(&key, ls->regions, ls->n_regions, sizeof key, by_begin);
    if (!r) return;
    rec->group = (uint64_t)r->group_id;
    rec->flags |= TRC_HAS_GROUP;
}

// The records of a line side by side: events that are not shown left gaps.
static void close_gaps(const struct builder *b, struct line_src *ls) {
    for (uint32_t i = 0; i < ls->n_pieces; i++) {
        const struct piece *const p = &b->pieces[ls->first_piece + i];
        if (p->n && ls->recs + ls->n != p->out)
            memmove(ls->recs + ls->n, p->out, p->n * sizeof *ls->recs);
        ls->n += p->n;
    }
}

// Regions behind the events of their line; those first that began in an earlier piece.
static void add_regions(const struct builder *b, struct line_src *ls) {
    const struct piece *from = NULL; // that holds the start
    const size_t first = ls->n;
    for (uint32_t i = 0; i < ls->n_pieces; i++) {
        const struct piece *const p = &b->pieces[ls->first_piece + i];
        const size_t early = from && from->start ? p->stops.n : 0;
        struct rec *const to = ls->recs + ls->n;
        if (p->n_regions) memmove(to + early, p->regions, p->n_regions * sizeof *to);
        for (size_t k = 0; k < early; k++)
            to[k] =
                region_rec(b, from->start, p->stops.v[k], from->start_grouped, from->start_group);
        ls->n += early + p->n_regions;
        if (p->has_start) from = p;
    }
    for (size_t k = first; ls->n_regions && k < ls->n; k++)
        give_region_group(ls, &ls->recs[k]);
}

static void finish_line(void *ctx, size_t i) {
    const struct builder *const b = ctx;
    struct line_src *const ls = &b->lines.v[i];
    close_gaps(b, ls);
    if (!ls->counter) add_regions(b, ls);
}

// A slot for the name of a step.
static bool step_slot(struct builder *b, xpl_str_t name, uint32_t *ret) {
    xpl_strid_t id;
    bool added;
    if (!xpl_intern_put_view(b->strings, name, &id)) return false;
    uint64_t *const slot = xpl_map_put(b->arena, &b->step_slots, id.v, 0, &added);
    if (!slot) return false;
    if (added) {
        xpl_str_t *const s = xpl_vec_push(b->arena, &b->more_slots);
        if (!s) return false;
        *s = xpl_intern_get(b->strings, id);
        *slot = b->n_md_slots + b->more_slots.n - 1;
    }
    *ret = (uint32_t)*slot;
    return true;
}

static bool name_steps(struct builder *b, struct piece *p) {
    for (size_t i = 0; i < p->steps.n; i++) {
        const struct named_step *const s = &p->steps.v[i];
        struct rec *const rec =
            s->at & STEP_IN_NAMED ? &p->named.v[s->at & ~STEP_IN_NAMED] : &p->out[s->at];
        if (!step_slot(b, s->name, &rec->name)) return false;
    }
    return true;
}

static bool write_own_args(struct builder *b, struct piece *p) {
    for (size_t i = 0; i < p->own.n; i++) {
        const struct own_args *const o = &p->own.v[i];
        struct rec *const rec =
            o->at & STEP_IN_NAMED ? &p->named.v[o->at & ~STEP_IN_NAMED] : &p->out[o->at];
        const struct xpl_derived_md md = trc_md(p->ls->ps, o->md);
        const size_t first = b->args.n;
        if (md.display_name.len && !trc_put_long_name(b, md.name)) return false;
        for (uint32_t k = 0; k < o->n; k++)
            if (!trc_put_stat(b, &p->own_stats.v[o->first + k])) return false;
        rec->src = trc_end_args(b, first);
    }
    return true;
}

xpl_status_t trc_collect(struct builder *b, struct xpl_error *err) {
    XPL_TRY(cut_lines(b, err));
    xpl_exec_run(b->exec, b->n_pieces, run_piece, b);
    for (size_t i = 0; i < b->n_pieces; i++) {
        if (b->pieces[i].status != XPL_OK) {
            if (err) *err = b->pieces[i].err;
            return b->pieces[i].status;
        }
        if (!name_steps(b, &b->pieces[i]) || !write_own_args(b, &b->pieces[i]))
            XPL_RETURN_OOM(err, "trace steps");
    }
    xpl_exec_run(b->exec, b->lines.n, finish_line, b);
    return XPL_OK;
}
