// SPDX-License-Identifier: Apache-2.0
// Levels of a large trace against a plain reading of the rule, and answers from half an index
// against those from the whole.
#include <stdlib.h>

#include "analysis/grouping/flows.h"
#include "analysis/trace/index/read.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/big_trace.h"

enum { LIMIT = 1 << 30, DECIDED = TRC_LEVELS - 1, MAX_FLOWS = 1 << 20 };

// ---- the rule, level by level, all rows searched from the bottom ----

struct plain_row {
    uint64_t ends[4096], last_flow, last_counter;
    size_t n;
    bool has_flow, has_counter;
};

struct plain {
    const struct big_event *v;
    struct plain_row
        *rows;            // of threads, then of asynchronous events and counters, together by name
    uint8_t *state;       // of flows: 0 nothing yet, 1 hidden, 2 shown
    unsigned *seen;       // level of each event; DECIDED: none yet
    unsigned *flow_level; // as its first event was seen
};

static size_t depth_of(const struct plain_row *r, uint64_t ts) {
    size_t d = 0;
    while (d < r->n && r->ends[d] > ts)
        d++;
    return d;
}

static void show(struct plain_row *r, const struct big_event *e) {
    const size_t d = depth_of(r, e->ts);
    CHECK(d < sizeof r->ends / sizeof *r->ends);
    r->ends[d] = e->ts + e->dur;
    r->n = d + 1;
}

static bool alone(const struct plain_row *r, const struct big_event *e, uint64_t resolution) {
    const size_t d = depth_of(r, e->ts);
    return e->dur >= resolution || d >= r->n || e->ts - r->ends[d] >= resolution;
}

static bool is_named(const struct big_event *e) {
    return e->async || e->line == BIG_COUNTERS;
}

static struct plain_row *row_of(const struct plain *p, const struct big_event *e) {
    if (!is_named(e)) return &p->rows[e->line];
    return &p->rows[BIG_LINES + e->ts % BIG_NAMES];
}

static bool counted(struct plain_row *r, uint64_t ts, uint64_t resolution) {
    const bool yes = !r->has_counter || ts - r->last_counter >= resolution;
    if (yes) r->has_counter = true, r->last_counter = ts;
    return yes;
}

// An event of a flow at one level; `before`: a coarser one shows it.
static bool flow_shown(const struct plain *p, const struct big_event *e, bool before,
                       uint64_t resolution) {
    struct plain_row *const r = row_of(p, e);
    if (e->async) {
        if (before) r->has_counter = true, r->last_counter = e->ts;
        return before || counted(r, e->ts, resolution);
    }
    uint8_t *const state = &p->state[e->flow >> 2];
    const uint64_t end = e->ts + e->dur;
    bool yes = before || alone(r, e, resolution);
    if (before) {
        if (*state == 0) *state = 2;
    } else if (*state == 0) {
        yes = yes || !r->has_flow || end - r->last_flow >= resolution;
        *state = yes ? 2 : 1;
    } else {
        yes = yes || *state == 2;
    }
    if ((e->flow & 3) == XPL_FLOW_IN) *state = 0;
    if (!yes) return false;
    r->has_flow = true, r->last_flow = end;
    show(r, e);
    return true;
}

static void clear(const struct plain *p) {
    memset(p->rows, 0, (BIG_LINES + BIG_NAMES) * sizeof *p->rows);
    memset(p->state, 0, MAX_FLOWS);
}

static unsigned level_of_duration(uint64_t dur) {
    unsigned level = 0;
    while (level < DECIDED && dur < trc_resolutions[level])
        level++;
    return level;
}

static void plain_flows(const struct plain *p) {
    for (unsigned level = 0; level < DECIDED; level++) {
        clear(p);
        for (size_t i = 0; i < BIG_EVENTS; i++) {
            const struct big_event *const e = &p->v[i];
            if (e->flow && flow_shown(p, e, p->seen[i] < level, trc_resolutions[level]) &&
                p->seen[i] == DECIDED)
                p->seen[i] = level;
        }
    }
    for (size_t i = 0; i < BIG_EVENTS; i++) { // a flow's first event decides for all
        const struct big_event *const e = &p->v[i];
        if (!e->flow) continue;
        unsigned *const first = &p->flow_level[e->flow >> 2];
        if (*first == 0) *first = p->seen[i] + 1;
        const unsigned own = level_of_duration(e->dur);
        p->seen[i] = own < *first - 1 ? own : *first - 1;
    }
}

static void plain_rows(const struct plain *p) {
    for (unsigned level = 0; level < DECIDED; level++) {
        clear(p);
        for (size_t i = 0; i < BIG_EVENTS; i++) {
            const struct big_event *const e = &p->v[i];
            struct plain_row *const r = row_of(p, e);
            const bool fixed = e->flow || p->seen[i] < level;
            bool yes = p->seen[i] <= level;
            if (is_named(e)) {
                if (fixed && yes) r->has_counter = true, r->last_counter = e->ts;
                if (!fixed) yes = counted(r, e->ts, trc_resolutions[level]);
            } else {
                if (!fixed) yes = alone(r, e, trc_resolutions[level]);
                if (yes) show(r, e);
            }
            if (yes && p->seen[i] == DECIDED) p->seen[i] = level;
        }
    }
}

// The level of each event.
static unsigned *plain_levels(const struct big_event *v) {
    struct plain p = {.v = v,
                      .rows = calloc(BIG_LINES + BIG_NAMES, sizeof *p.rows),
                      .state = calloc(MAX_FLOWS, 1),
                      .seen = calloc(BIG_EVENTS, sizeof *p.seen),
                      .flow_level = calloc(MAX_FLOWS, sizeof *p.flow_level)};
    CHECK(p.rows && p.state && p.seen && p.flow_level);
    CHECK(v[BIG_EVENTS - 1].ts / 50000000 + 41 < MAX_FLOWS);
    for (size_t i = 0; i < BIG_EVENTS; i++)
        p.seen[i] = DECIDED;
    plain_flows(&p);
    plain_rows(&p);
    free(p.rows);
    free(p.state);
    free(p.flow_level);
    return p.seen;
}

// ---- the index ----

static const struct big_event *find(const struct big_event *v, uint64_t ts) {
    size_t lo = 0, hi = BIG_EVENTS;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (v[mid].ts <= ts)
            lo = mid;
        else
            hi = mid;
    }
    CHECK_EQ(v[lo].ts, ts);
    return &v[lo];
}

static void check_levels(const struct xpl_trace *t, const struct big_event *v) {
    unsigned *const expected = plain_levels(v);
    size_t n = 0, at_level[TRC_LEVELS] = {0};
    for (unsigned level = 0; level < TRC_LEVELS; level++)
        for (uint64_t b = t->footer->level_first[level]; b < t->footer->level_first[level + 1];
             b++) {
            struct trc_view view;
            CHECK_OK(trc_view_block(t, b, &view, NULL), NULL);
            for (uint32_t i = 0; i < view.n; i++, n++) {
                const struct big_event *const e = find(v, trc_get(&view, TRC_TS, i));
                CHECK_EQ(expected[e - v], level);
                at_level[level]++;
            }
        }
    CHECK_EQ(n, BIG_EVENTS);
    for (unsigned level = 0; level < TRC_LEVELS; level++)
        CHECK(at_level[level] > 0); // or the levels were not tried
    free(expected);
}

static void answer(xpl_bytes_t index, xpl_bytes_t profile, const struct xpl_trace_options *o,
                   struct xpl_buf *out) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_trace *t;
    struct xpl_error err = {0};
    xpl_buf_init(out, LIMIT);
    CHECK_OK(xpl_trace_open(index, &a, &t, &err), &err);
    const struct xpl_trace_host host = {XPL_STR("h"), t, profile};
    CHECK_OK(xpl_trace_answer(&host, 1, o, &exec, LIMIT, out, &err), &err);
}

static void check_same(const struct xpl_buf *a, const struct xpl_buf *b) {
    CHECK_EQ(a->n, b->n);
    CHECK_BYTES(a->p, a->n, b->p, a->n);
}

// Half an index, its answer, then the rest of it.
static void check_part(xpl_bytes_t profile, xpl_bytes_t whole, const struct xpl_trace_options *o,
                       bool has_part) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_trace_build *t = NULL;
    struct xpl_buf part, rest, early, late;
    struct xpl_error err = {0};
    xpl_buf_init(&part, LIMIT);
    xpl_buf_init(&rest, LIMIT);
    CHECK_OK(xpl_trace_build_begin(profile, &exec, LIMIT, &t, &err), &err);
    CHECK_EQ(xpl_trace_build_has_part(t, o), has_part);
    const struct xpl_trace_sink first = {xpl_trace_sink_buf, &part};
    const struct xpl_trace_sink last = {xpl_trace_sink_buf, &rest};
    if (has_part) {
        CHECK_OK(xpl_trace_build_part(t, o, &first, &err), &err);
        answer((xpl_bytes_t){part.p, part.n}, profile, o, &early);
        answer(whole, profile, o, &late);
        CHECK(part.n < whole.len && early.n > 1000);
        check_same(&early, &late);
        xpl_buf_fini(&early);
        xpl_buf_fini(&late);
    }
    CHECK_OK(xpl_trace_build_finish(t, &exec, &last, &err), &err);
    CHECK_EQ(rest.n, whole.len);
    CHECK_BYTES(rest.p, rest.n, whole.ptr, rest.n);
    xpl_trace_build_free(t);
    xpl_buf_fini(&part);
    xpl_buf_fini(&rest);
}

static void check_parts(xpl_bytes_t profile, xpl_bytes_t whole, double end_ms) {
    static const struct {
        uint64_t resolution;
        double begin, end; // of the trace
        bool has_part;
    } requests[] = {{8000, 0, 0, true},         {3, 0, 0, true},         {100000, 0, 0, true},
                    {1000, 0.4, 0.6, true},     {500, 0.5, 0.501, true}, {0, 0, 0, false},
                    {8000, 0.3, 0.3001, false}, {8000, 2, 3, false}};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct xpl_trace_options o;
        xpl_trace_options_init(&o);
        o.resolution = requests[i].resolution;
        o.start_time_ms = requests[i].begin * end_ms, o.end_time_ms = requests[i].end * end_ms;
        check_part(profile, whole, &o, requests[i].has_part);
    }
    struct xpl_trace_options o;
    xpl_trace_options_init(&o);
    o.search_prefix = XPL_STR("a");
    check_part(profile, whole, &o, false);
    xpl_trace_options_init(&o);
    o.event_name = XPL_STR("a");
    check_part(profile, whole, &o, false);
}

int main(void) {
    struct big_event *const v = big_events(UINT64_C(0x9e3779b97f4a7c15));
    struct xpl_buf profile = big_profile(v), index;
    const xpl_bytes_t bytes = {profile.p, profile.n};
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_trace *t;
    struct xpl_error err = {0};
    xpl_buf_init(&index, LIMIT);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &index};
    CHECK_OK(xpl_trace_build(bytes, &exec, LIMIT, &sink, &err), &err);
    CHECK_OK(xpl_trace_open((xpl_bytes_t){index.p, index.n}, &a, &t, &err), &err);
    check_levels(t, v);
    check_parts(bytes, (xpl_bytes_t){index.p, index.n}, (double)v[BIG_EVENTS - 1].ts / 1e9);
    xpl_buf_fini(&index);
    xpl_buf_fini(&profile);
    free(v);
    return 0;
}
