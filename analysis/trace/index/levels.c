// SPDX-License-Identifier: Apache-2.0
// The coarsest of the thirteen levels at which each event is visible (XProf: GetEventsByLevel). For
// the events of a flow the first one of all tracks decides; for others their row does.
#include <stdatomic.h>
#include <string.h>

#include "analysis/trace/index/impl.h"
#include "analysis/trace/index/visibility.h"

enum { DECIDED = TRC_DECIDED, CANCEL_EVERY = 1 << 16 };

static unsigned level_of_duration(uint64_t dur) {
    unsigned level = 0;
    while (level < DECIDED && dur < trc_resolutions[level])
        level++;
    return level;
}

// ---- flows ----

enum {
    FLOW_LEVEL = DECIDED,    // at which its first event was seen
    FLOW_PASS = DECIDED + 1, // the last pass that visited it
    FLOW_STATES
};
struct flow {
    uint64_t id;
    uint8_t state[FLOW_STATES]; // at each level, then as above
};

struct trc_flow_pass {
    struct builder *b;
    struct xpl_arena arena;
    struct rec **events; // of flows, in order
    uint8_t *found; // per event: the level at which it is visible, or the first one not decided yet
    size_t n_events;
    struct flow *flows;
    uint32_t n;
    uint32_t *slots; // position of the flow + 1, 0: none; open addressing, four fifths full at most
    uint64_t seed;
    unsigned shift;
    struct vis_row (*rows)[DECIDED]; // of each track
};

static size_t slot_of(const struct trc_flow_pass *f, uint64_t id) {
    const __uint128_t m = (__uint128_t)(id ^ f->seed) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(((uint64_t)m ^ (uint64_t)(m >> 64)) >> f->shift);
}

static uint8_t *flow_state(struct trc_flow_pass *f, uint64_t id) {
    const size_t mask = ((size_t)1 << (64 - f->shift)) - 1;
    size_t i = slot_of(f, id);
    while (f->slots[i] && f->flows[f->slots[i] - 1].id != id)
        i = (i + 1) & mask;
    if (!f->slots[i]) {
        f->flows[f->n] = (struct flow){.id = id};
        f->slots[i] = ++f->n;
    }
    return f->flows[f->slots[i] - 1].state;
}

static bool flow_visible(struct trc_flow_pass *f, const struct rec *r, unsigned level,
                         uint8_t *state) {
    struct vis_row *const row = &f->rows[r->track][level];
    const uint64_t res = trc_resolutions[level], end = r->ts + r->dur;
    if (r->flags & TRC_ASYNC) return vis_counter(row, r->ts, res);
    const uint32_t depth = vis_depth(row, r->ts);
    const bool alone = r->dur >= res || vis_apart(row, depth, r->ts, res);
    return vis_flow(row, state, alone, (r->flow & 3) == XPL_FLOW_IN, end, res);
}

// Records the event as visible: at the level that found it, and at all finer ones.
static bool flow_set(struct trc_flow_pass *f, const struct rec *r, unsigned level) {
    struct vis_row *const row = &f->rows[r->track][level];
    if (r->flags & TRC_ASYNC) {
        row->has_counter = true, row->last_counter = r->ts;
        return true;
    }
    return vis_set(row, vis_depth(row, r->ts), r->ts + r->dur, &f->arena);
}

static void flow_force(struct trc_flow_pass *f, const struct rec *r, unsigned level,
                       uint8_t *state) {
    struct vis_row *const row = &f->rows[r->track][level];
    if (r->flags & TRC_ASYNC) return;
    if ((r->flow & 3) == XPL_FLOW_IN)
        *state = VIS_FLOW_NONE;
    else if (*state == VIS_FLOW_NONE)
        *state = VIS_FLOW_SHOWN;
    row->has_flow = true, row->last_flow = r->ts + r->dur;
}

static bool flow_event(struct trc_flow_pass *f, size_t k, unsigned first, unsigned end) {
    struct rec *const r = f->events[k];
    uint8_t *const state = flow_state(f, r->flow >> 8);
    unsigned found = f->found[k];
    for (unsigned i = first; i < end; i++) {
        if (found < i)
            flow_force(f, r, i, &state[i]);
        else if (!flow_visible(f, r, i, &state[i])) {
            found = i + 1;
            continue;
        }
        if (!flow_set(f, r, i)) return false;
    }
    f->found[k] = (uint8_t)found;
    if (state[FLOW_PASS] != end) { // its first event decides
        state[FLOW_PASS] = (uint8_t)end;
        state[FLOW_LEVEL] = (uint8_t)found;
    }
    const unsigned own = level_of_duration(r->dur);
    const unsigned level = own < state[FLOW_LEVEL] ? own : state[FLOW_LEVEL];
    r->level = (uint8_t)(level < end ? level : end);
    return true;
}

// Closes the gaps between the buckets' flow events.
static void list_flow_events(struct trc_flow_pass *f) {
    struct builder *const b = f->b;
    f->events = b->flow_events;
    for (size_t i = 0; i < b->n_buckets; i++) {
        const size_t n = b->bucket_flows[i];
        struct rec *const *const from = b->flow_events + b->bucket_first[i];
        if (n && f->events + f->n_events != from)
            memmove(f->events + f->n_events, from, n * sizeof(*from));
        f->n_events += n;
    }
}

// Lists the events of flows, and allocates the state of each flow.
static bool make_flows(struct trc_flow_pass *f) {
    list_flow_events(f);
    const size_t n = f->n_events;
    if (n > UINT32_MAX / 4) return false;
    f->shift = 60;
    while (f->shift > 1 && ((size_t)1 << (64 - f->shift)) < n + n / 4) // most have two events
        f->shift--;
    f->seed = xpl_hash_seed();
    f->found = xpl_arena_zalloc(&f->arena, n);
    f->slots = xpl_arena_zalloc(&f->arena, sizeof *f->slots << (64 - f->shift));
    f->flows = xpl_arena_array(&f->arena, n, sizeof *f->flows);
    f->rows = xpl_arena_zalloc(&f->arena, f->b->tracks.n * sizeof *f->rows);
    return f->found && f->slots && f->flows && f->rows;
}

static bool begin_flows(struct builder *b) {
    if (b->flows || !b->flow_events) return true;
    b->flows = xpl_arena_alloc(b->arena, sizeof *b->flows);
    if (!b->flows) return false;
    *b->flows = (struct trc_flow_pass){.b = b};
    xpl_arena_init(&b->flows->arena, b->limit);
    return make_flows(b->flows);
}

void trc_end_flows(struct builder *b) {
    if (b->flows) xpl_arena_fini(&b->flows->arena);
    b->flows = NULL;
}

static bool run_flows(struct trc_flow_pass *f, unsigned first, unsigned end) {
    enum { AHEAD = 8 }; // slots are all over the table: prefetch them
    for (size_t i = 0; i < f->n_events; i++) {
        if (i % CANCEL_EVERY == 0 && xpl_exec_cancelled(f->b->exec)) break;
        if (i + AHEAD < f->n_events)
            __builtin_prefetch(&f->slots[slot_of(f, f->events[i + AHEAD]->flow >> 8)]);
        if (!flow_event(f, i, first, end)) return false;
    }
    return true;
}

// ---- tracks ----

struct track_pass {
    struct builder *b;
    unsigned first, end;            // levels to find
    struct xpl_arena_budget budget; // of the rows
    atomic_bool no_memory;
};

// Visible events of a row at each level.  Levels from `same` on have shown the same events so far
// and share rows[same].
struct row_levels {
    struct vis_row rows[DECIDED];
    unsigned same, first, end;
    // Short events that begin in [hidden, hidden + hidden_for) are visible at no level; unknown
    // after a change.
    bool hidden_known;
    uint64_t hidden, hidden_for;
    struct xpl_arena arena;
};

static struct vis_row *row_at(struct row_levels *l, unsigned level) {
    return &l->rows[level < l->same ? level : l->same];
}

// Most events are visible at no level, which needs no search: an event that begins after the
// earliest end in a row's stack, but by less than the resolution, is not deeper than all that is
// visible, and not far enough from it, because that end is the farthest of those before it.
static void find_hidden(struct row_levels *l) {
    uint64_t from = 0, until = UINT64_MAX;
    for (unsigned i = l->first; i < l->end; i++) {
        const struct vis_row *const row = row_at(l, i);
        const uint64_t last = row->n ? row->ends[row->n - 1] : UINT64_MAX;
        const uint64_t apart = last + trc_resolutions[i];
        if (last > from) from = last;
        if (apart >= last && apart < until) until = apart;
    }
    l->hidden_known = true;
    l->hidden = from;
    l->hidden_for = until > from ? until - from : 0;
}

static bool is_hidden(struct row_levels *l, uint64_t begin) {
    if (!l->hidden_known) find_hidden(l);
    return begin - l->hidden < l->hidden_for;
}

static bool copy_row(struct vis_row *to, const struct vis_row *from, struct xpl_arena *a) {
    *to = *from;
    to->cap = 0, to->ends = NULL;
    while (to->cap < from->n) { // grows from nothing, by doubling
        to->n = 0;
        if (!vis_grow(to, a)) return false;
    }
    to->n = from->n;
    if (to->n) memcpy(to->ends, from->ends, to->n * sizeof *to->ends);
    return true;
}

// Records that the event is visible at `level` and all finer ones that this pass decides, and at no
// coarser one.
static bool set_from(struct row_levels *l, unsigned level, uint64_t begin, uint64_t end) {
    l->hidden_known = false;
    if (level >= l->end) return true;
    for (; l->same < level; l->same++) // the levels differ from here on
        if (!copy_row(&l->rows[l->same + 1], &l->rows[l->same], &l->arena)) return false;
    for (; level < l->end && level <= l->same; level++) {
        struct vis_row *const row = &l->rows[level];
        if (!vis_set(row, vis_depth(row, begin), end, &l->arena)) return false;
    }
    return true;
}

static bool row_event(struct row_levels *l, struct rec *r) {
    const uint64_t begin = r->ts, end = r->ts + r->dur;
    if (r->level < l->first) return set_from(l, l->first, begin, end);
    if (r->flags & TRC_HAS_FLOW) return set_from(l, r->level, begin, end);
    const bool is_short = r->dur < trc_resolutions[l->end - 1];
    if (is_short && XPL_LIKELY(is_hidden(l, begin))) {
        r->level = (uint8_t)l->end;
        return true;
    }
    const unsigned last = is_short ? l->end : level_of_duration(r->dur);
    unsigned level = l->first;
    uint32_t depth = 0;
    for (; level < last; level++) {
        struct vis_row *const row = row_at(l, level);
        if (level <= l->same) depth = vis_depth(row, begin);
        if (vis_apart(row, depth, begin, trc_resolutions[level])) break;
    }
    r->level = (uint8_t)level;
    return set_from(l, level, begin, end);
}

static void counter_event(struct vis_row *rows, struct rec *r, unsigned first, unsigned end) {
    unsigned level = r->level < first ? first : r->level;
    if (!(r->flags & TRC_HAS_FLOW) && r->level >= first) {
        level = first;
        while (level < end && !vis_counter(&rows[level], r->ts, trc_resolutions[level]))
            level++;
        r->level = (uint8_t)level;
    }
    for (; level < end; level++)
        rows[level].has_counter = true, rows[level].last_counter = r->ts;
}

static void run_track(void *ctx, size_t i) {
    struct track_pass *const p = ctx;
    const struct track *const t = &p->b->tracks.v[i];
    struct row_levels l = {.same = p->first, .first = p->first, .end = p->end};
    xpl_arena_init_part(&l.arena, &p->budget);
    bool ok = true;
    for (size_t k = 0; ok && k < t->n; k++) {
        if (k % CANCEL_EVERY == 0 && xpl_exec_cancelled(p->b->exec)) break;
        if (t->named)
            counter_event(l.rows, &t->recs[k], p->first, p->end);
        else
            ok = row_event(&l, &t->recs[k]);
    }
    if (!ok) atomic_store(&p->no_memory, true);
    xpl_arena_fini(&l.arena);
}

xpl_status_t trc_find_levels(struct builder *b, unsigned end, struct xpl_error *err) {
    struct track_pass p = {.b = b, .first = b->n_levels, .end = end < DECIDED ? end : DECIDED};
    if (p.first >= p.end) return XPL_OK;
    if (!begin_flows(b) || (b->flows && !run_flows(b->flows, p.first, p.end)))
        XPL_RETURN_OOM(err, "trace flows");
    xpl_arena_budget_init(&p.budget, b->limit);
    xpl_exec_run(b->exec, b->tracks.n, run_track, &p);
    if (atomic_load(&p.no_memory)) XPL_RETURN_OOM(err, "trace levels");
    if (xpl_exec_cancelled(b->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace: cancelled");
    b->n_levels = p.end;
    if (b->n_levels == DECIDED) trc_end_flows(b);
    return XPL_OK;
}
