// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/device/duty.h"

#include "base/arena.h"
#include "base/vec.h"

// ---- sets of intervals ----

static bool close_last(struct xpl_duty_set *s) {
    if (!s->open) return true;
    s->open = false;
    if (!s->arena) {
        s->sum_ps += s->last.end_ps - s->last.begin_ps;
        return true;
    }
    struct xpl_duty_interval *const i = xpl_vec_push(s->arena, &s->v);
    if (i) *i = s->last;
    return i != NULL;
}

bool xpl_duty_set_add(struct xpl_duty_set *s, uint64_t begin_ps, uint64_t end_ps) {
    if (end_ps <= begin_ps) return true;
    if (s->open && begin_ps >= s->last.begin_ps && begin_ps <= s->last.end_ps) {
        if (end_ps > s->last.end_ps) s->last.end_ps = end_ps;
        return true;
    }
    s->disordered |= s->open && begin_ps < s->last.begin_ps;
    if (!close_last(s)) return false;
    s->last = (struct xpl_duty_interval){begin_ps, end_ps};
    s->open = true;
    return true;
}

static int by_begin(const void *pa, const void *pb) {
    const struct xpl_duty_interval *const a = pa, *const b = pb;
    if (a->begin_ps != b->begin_ps) return a->begin_ps < b->begin_ps ? -1 : 1;
    return (a->end_ps < b->end_ps) - (a->end_ps > b->end_ps);
}

uint64_t xpl_duty_set_length(struct xpl_duty_set *s) {
    struct xpl_duty_set sum = {.sum_ps = s->sum_ps};
    xpl_sort(s->v.v, s->v.n, sizeof *s->v.v, by_begin);
    // A set without an arena cannot fail, and `last` may stand anywhere among the others.
    bool fine = true, done = !s->open;
    for (size_t i = 0; i < s->v.n; i++) {
        if (!done && s->last.begin_ps < s->v.v[i].begin_ps) {
            fine &= xpl_duty_set_add(&sum, s->last.begin_ps, s->last.end_ps);
            done = true;
        }
        fine &= xpl_duty_set_add(&sum, s->v.v[i].begin_ps, s->v.v[i].end_ps);
    }
    if (!done) fine &= xpl_duty_set_add(&sum, s->last.begin_ps, s->last.end_ps);
    fine &= close_last(&sum);
    *s = (struct xpl_duty_set){0};
    return fine ? sum.sum_ps : 0;
}

void xpl_duty_extend(struct xpl_duty_plane *p, uint64_t begin_ps, uint64_t duration_ps) {
    const uint64_t end_ps = begin_ps + duration_ps;
    if (begin_ps == 0 && duration_ps == 0) return; // what upstream takes for no span at all
    if (!p->has_span || begin_ps < p->begin_ps) p->begin_ps = begin_ps;
    if (!p->has_span || end_ps > p->end_ps) p->end_ps = end_ps;
    p->has_span = true;
}

static bool join_set(struct xpl_duty_set *into, const struct xpl_duty_set *from) {
    for (size_t i = 0; i < from->v.n; i++)
        if (!xpl_duty_set_add(into, from->v.v[i].begin_ps, from->v.v[i].end_ps)) return false;
    into->sum_ps += from->sum_ps;
    return !from->open || xpl_duty_set_add(into, from->last.begin_ps, from->last.end_ps);
}

bool xpl_duty_plane_join(struct xpl_duty_plane *into, const struct xpl_duty_plane *from) {
    if (from->has_span) xpl_duty_extend(into, from->begin_ps, from->end_ps - from->begin_ps);
    return join_set(&into->busy, &from->busy) && join_set(&into->confident, &from->confident);
}

// ---- one line ----

struct xpl_duty_frame {
    struct xpl_duty_op op;
    uint64_t end_ps;
    uint64_t free_ps; // from here on no child has covered it
    size_t pending;   // a container's own time waits in pending[from here on]
    bool has_active_child;
};

void xpl_duty_line_begin(struct xpl_duty_line *l, struct xpl_duty_plane *plane,
                         struct xpl_arena *arena) {
    *l = (struct xpl_duty_line){.plane = plane, .arena = arena};
}

static bool count(struct xpl_duty_plane *p, const struct xpl_duty_op *op, uint64_t begin_ps,
                  uint64_t end_ps) {
    return (!op->active || xpl_duty_set_add(&p->busy, begin_ps, end_ps)) &&
           (!op->confident || xpl_duty_set_add(&p->confident, begin_ps, end_ps));
}

// Time of the frame's own, up to end_ps.
static bool own_time(struct xpl_duty_line *l, struct xpl_duty_frame *f, uint64_t end_ps) {
    const uint64_t begin_ps = f->free_ps;
    if (end_ps <= begin_ps || (!f->op.active && !f->op.confident)) return true;
    if (!f->op.container) return count(l->plane, &f->op, begin_ps, end_ps);
    if (f->has_active_child) return true;
    struct xpl_duty_interval *const i = xpl_vec_push(l->arena, &l->pending);
    if (i) *i = (struct xpl_duty_interval){begin_ps, end_ps};
    return i != NULL;
}

// Takes a child out of the frame's own time.  Children that begin before an earlier one ended are
// not searched for, as upstream does.
static bool cover(struct xpl_duty_line *l, struct xpl_duty_frame *f, uint64_t begin_ps,
                  uint64_t end_ps) {
    if (!own_time(l, f, begin_ps)) return false;
    if (end_ps > f->free_ps) f->free_ps = end_ps;
    return true;
}

static bool pop(struct xpl_duty_line *l) {
    struct xpl_duty_frame *const f = &l->stack.v[l->stack.n - 1];
    bool ok = own_time(l, f, f->end_ps);
    if (f->op.container && !f->has_active_child)
        for (size_t i = f->pending; i < l->pending.n && ok; i++)
            ok = count(l->plane, &f->op, l->pending.v[i].begin_ps, l->pending.v[i].end_ps);
    l->pending.n = f->pending;
    l->stack.n--;
    return ok;
}

bool xpl_duty_line_add(struct xpl_duty_line *l, const struct xpl_duty_op *op) {
    xpl_duty_extend(l->plane, op->begin_ps, op->duration_ps);
    const uint64_t end_ps = op->begin_ps + op->duration_ps;
    while (l->stack.n) {
        const struct xpl_duty_frame *const top = &l->stack.v[l->stack.n - 1];
        if (top->op.begin_ps <= op->begin_ps && end_ps <= top->end_ps) break;
        if (!pop(l)) return false;
    }
    if (l->stack.n) {
        struct xpl_duty_frame *const parent = &l->stack.v[l->stack.n - 1];
        parent->has_active_child |= op->active;
        if (!cover(l, parent, op->begin_ps, end_ps)) return false;
    }
    struct xpl_duty_frame *const f = xpl_vec_push(l->arena, &l->stack);
    if (!f) return false;
    *f = (struct xpl_duty_frame){
        .op = {op->begin_ps, op->duration_ps, op->active, op->confident, op->container},
        .end_ps = end_ps,
        .free_ps = op->begin_ps,
        .pending = l->pending.n};
    return true;
}

bool xpl_duty_line_end(struct xpl_duty_line *l) {
    while (l->stack.n)
        if (!pop(l)) return false;
    return true;
}

// ---- events ----

// GetEventOrMetadataStat(...) > 0, which upstream asks as an int of 32 bits.
static bool has_positive(const struct xpl_event *ev, const struct xpl_tpu_md *md,
                         enum xpl_tpu_work work) {
    struct xpl_stat s;
    return xpl_stats_get(ev->stats, xpl_tpu_work_stats[work], &s)
               ? (int32_t)xpl_stat_int_or_uint(&s) > 0
               : md->positive[work];
}

// A custom call that neither computes nor talks to other chips, for all we know.
static bool custom_call_is_off_duty(const struct xpl_tpu_md *md, const struct xpl_event *ev) {
    struct xpl_stat s;
    if (xpl_stats_get(ev->stats, XPL_STAT_HLO_CATEGORY, &s) &&
        !xpl_str_eq(xpl_stat_str(&s), XPL_STR("custom-call")))
        return false;
    return !has_positive(ev, md, XPL_TPU_FLOPS) && !has_positive(ev, md, XPL_TPU_MODEL_FLOPS) &&
           !has_positive(ev, md, XPL_TPU_USES_ICI);
}

void xpl_duty_classify(struct xpl_tpu_plane *tp, const struct xpl_line *line,
                       const struct xpl_event *ev, bool sparse, struct xpl_duty_op *ret) {
    const struct xpl_tpu_md *const md = xpl_tpu_md_get(tp, ev->md);
    bool has_category = md->has_category, off = md->off_duty, custom = md->custom_call;
    struct xpl_stat s;
    if (!has_category && xpl_stats_get(ev->stats, XPL_STAT_HLO_CATEGORY, &s)) {
        has_category = true;
        off = xpl_tpu_category_is_off_duty(xpl_stat_str(&s));
        custom = xpl_str_eq(xpl_stat_str(&s), XPL_STR("custom-call"));
    }
    off |= md->waits;
    const bool unsure = !off && custom && !sparse && custom_call_is_off_duty(md, ev);
    *ret = (struct xpl_duty_op){
        .begin_ps = (uint64_t)xpl_event_begin_ps(line, ev),
        .duration_ps = (uint64_t)ev->duration_ps,
        .active = !off,
        .confident = !off && !unsure,
        .container = sparse && !has_category,
    };
}
