// The coarsest of the thirteen levels at which each event is seen (XProf: GetEventsByLevel).  The
// events of a flow are seen together, as its first event among all tracks is; others as their row
// says.
#include <stdatomic.h>
#include <string.h>

#include "analysis/trace/impl.h"
#include "analysis/trace/visibility.h"

enum { DECIDED = TRC_LEVELS - 1 }; // levels with a resolution; what none shows is of the last

static unsigned level_of_duration(uint64_t dur) {
    unsigned level = 0;
    while (level < DECIDED && dur < trc_resolutions[level])
        level++;
    return level;
}

// ---- flows ----

struct flow_slot {
    uint64_t id;
    uint32_t at; // position of the flow + 1, 0: empty
};

struct flow_pass {
    struct builder *b;
    struct xpl_arena arena;
    struct rec **events; // of flows, in order
    size_t n_events;
    struct flow_slot *slots; // open addressing, half full at most
    uint64_t seed;
    unsigned shift;
    uint8_t (*state)[16]; // of a flow at each level; [12]: level of the flow + 1
    uint32_t n;
    struct vis_row (*rows)[DECIDED]; // of each track
};

static size_t slot_of(const struct flow_pass *f, uint64_t id) {
    const __uint128_t m = (__uint128_t)(id ^ f->seed) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(((uint64_t)m ^ (uint64_t)(m >> 64)) >> f->shift);
}

static uint8_t *flow_state(struct flow_pass *f, uint64_t id) {
    const size_t mask = ((size_t)1 << (64 - f->shift)) - 1;
    size_t i = slot_of(f, id);
    while (f->slots[i].at && f->slots[i].id != id)
        i = (i + 1) & mask;
    if (!f->slots[i].at) {
        f->slots[i] = (struct flow_slot){id, ++f->n};
        memset(f->state[f->n - 1], 0, sizeof *f->state);
    }
    return f->state[f->slots[i].at - 1];
}

static bool flow_visible(struct flow_pass *f, const struct rec *r, unsigned level, uint8_t *state) {
    struct vis_row *const row = &f->rows[r->track][level];
    const uint64_t res = trc_resolutions[level], end = r->ts + r->dur;
    if (r->flags & TRC_ASYNC) return vis_counter(row, r->ts, res);
    const uint32_t depth = vis_depth(row, r->ts);
    const bool alone = r->dur >= res || vis_apart(row, depth, r->ts, res);
    return vis_flow(row, state, alone, (r->flow & 3) == XPL_FLOW_IN, end, res);
}

// Records the event as visible: at the level that found it, and at all finer ones.
static bool flow_set(struct flow_pass *f, const struct rec *r, unsigned level) {
    struct vis_row *const row = &f->rows[r->track][level];
    if (r->flags & TRC_ASYNC) {
        row->has_counter = true, row->last_counter = r->ts;
        return true;
    }
    return vis_set(row, vis_depth(row, r->ts), r->ts + r->dur, &f->arena);
}

static void flow_force(struct flow_pass *f, const struct rec *r, unsigned level, uint8_t *state) {
    struct vis_row *const row = &f->rows[r->track][level];
    if (r->flags & TRC_ASYNC) return;
    if ((r->flow & 3) == XPL_FLOW_IN)
        *state = VIS_FLOW_NONE;
    else if (*state == VIS_FLOW_NONE)
        *state = VIS_FLOW_SHOWN;
    row->has_flow = true, row->last_flow = r->ts + r->dur;
}

static bool flow_event(struct flow_pass *f, struct rec *r) {
    uint8_t *const state = flow_state(f, r->flow >> 8);
    unsigned level = 0;
    while (level < DECIDED && !flow_visible(f, r, level, &state[level]))
        level++;
    if (level < DECIDED && !flow_set(f, r, level)) return false;
    for (unsigned i = level + 1; i < DECIDED; i++) {
        flow_force(f, r, i, &state[i]);
        if (!flow_set(f, r, i)) return false;
    }
    if (state[DECIDED] == 0) state[DECIDED] = (uint8_t)(level + 1); // its first event decides
    const unsigned own = level_of_duration(r->dur), flow = state[DECIDED] - 1U;
    r->level = (uint8_t)(own < flow ? own : flow);
    return true;
}

static bool any_flows(const struct builder *b) {
    for (size_t i = 0; i < b->tracks.n; i++)
        if (b->tracks.v[i].n_flows) return true;
    return false;
}

// The events of flows, and room for what is known of each flow.
static bool find_flow_events(struct flow_pass *f) {
    struct builder *const b = f->b;
    size_t n = 0;
    for (size_t i = 0; i < b->tracks.n; i++)
        n += b->tracks.v[i].n_flows;
    if (n > UINT32_MAX / 4) return false;
    f->shift = 60;
    while (f->shift > 1 && ((size_t)1 << (64 - f->shift)) < 2 * n)
        f->shift--;
    f->seed = xpl_hash_seed();
    f->events = xpl_arena_array(&f->arena, n, sizeof(*f->events));
    f->slots = xpl_arena_zalloc(&f->arena, sizeof *f->slots << (64 - f->shift));
    f->state = xpl_arena_array(&f->arena, n, sizeof *f->state);
    f->rows = xpl_arena_zalloc(&f->arena, b->tracks.n * sizeof *f->rows);
    if (!f->events || !f->slots || !f->state || !f->rows) return false;
    for (size_t i = 0; i < b->n_events; i++)
        if (b->order[i]->flags & TRC_HAS_FLOW) f->events[f->n_events++] = b->order[i];
    return true;
}

static bool run_flows(struct flow_pass *f) {
    enum { AHEAD = 8 }; // slots are all over the table: ask for them early
    if (!find_flow_events(f)) return false;
    for (size_t i = 0; i < f->n_events; i++) {
        if (i + AHEAD < f->n_events)
            __builtin_prefetch(&f->slots[slot_of(f, f->events[i + AHEAD]->flow >> 8)]);
        if (!flow_event(f, f->events[i])) return false;
    }
    return true;
}

// ---- tracks ----

struct track_pass {
    struct builder *b;
    atomic_bool no_memory;
};

static bool set_from(struct vis_row *rows, unsigned level, uint64_t begin, uint64_t end,
                     struct xpl_arena *a) {
    for (; level < DECIDED; level++)
        if (!vis_set(&rows[level], vis_depth(&rows[level], begin), end, a)) return false;
    return true;
}

static bool row_event(struct vis_row *rows, struct rec *r, struct xpl_arena *a) {
    const uint64_t begin = r->ts, end = r->ts + r->dur;
    if (r->flags & TRC_HAS_FLOW) return set_from(rows, r->level, begin, end, a);
    const unsigned own = level_of_duration(r->dur);
    unsigned level = 0;
    for (; level < own; level++) {
        const uint32_t depth = vis_depth(&rows[level], begin);
        if (vis_apart(&rows[level], depth, begin, trc_resolutions[level])) break;
    }
    r->level = (uint8_t)level;
    return set_from(rows, level, begin, end, a);
}

static void counter_event(struct vis_row *rows, struct rec *r) {
    unsigned level = r->flags & TRC_HAS_FLOW ? r->level : 0;
    if (!(r->flags & TRC_HAS_FLOW)) {
        while (level < DECIDED && !vis_counter(&rows[level], r->ts, trc_resolutions[level]))
            level++;
        r->level = (uint8_t)level;
    }
    for (; level < DECIDED; level++)
        rows[level].has_counter = true, rows[level].last_counter = r->ts;
}

static void run_track(void *ctx, size_t i) {
    struct track_pass *const p = ctx;
    const struct track *const t = &p->b->tracks.v[i];
    struct vis_row rows[DECIDED] = {0};
    struct xpl_arena arena;
    xpl_arena_init(&arena, p->b->limit);
    bool ok = true;
    for (size_t k = 0; ok && k < t->n; k++) {
        if (t->named)
            counter_event(rows, &t->recs[k]);
        else
            ok = row_event(rows, &t->recs[k], &arena);
    }
    if (!ok) atomic_store(&p->no_memory, true);
    xpl_arena_fini(&arena);
}

xpl_status_t trc_find_levels(struct builder *b, struct xpl_error *err) {
    struct flow_pass f = {.b = b};
    struct track_pass p = {.b = b};
    xpl_arena_init(&f.arena, b->limit);
    const bool ok = !any_flows(b) || run_flows(&f);
    xpl_arena_fini(&f.arena);
    if (!ok) XPL_FAIL_OOM(err, "trace flows");
    xpl_exec_run(b->exec, b->tracks.n, run_track, &p);
    if (atomic_load(&p.no_memory)) XPL_FAIL_OOM(err, "trace levels");
    if (xpl_exec_cancelled(b->exec)) XPL_FAIL(err, XPL_CANCELLED, "trace: cancelled");
    return XPL_OK;
}
