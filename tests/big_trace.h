// SPDX-License-Identifier: Apache-2.0
// A profile of more events than the trace viewer shows at once, made from a seed: rows of all
// shapes, flows across rows, counters, asynchronous events, a row whose last events are out of
// order and one that is backwards.  No two events begin together.
#ifndef XPL_TESTS_BIG_TRACE_H_
#define XPL_TESTS_BIG_TRACE_H_

#include "tests/xspace_maker.h"

enum { BIG_EVENTS = 510000, BIG_ROWS = 6, BIG_COUNTERS = BIG_ROWS, BIG_LINES, BIG_NAMES = 4 };

struct big_event {
    uint64_t ts, dur; // ps
    uint64_t flow;    // id << 2 | direction as in XSpace, 0: none
    unsigned line;
    bool async; // a separate row, shared with all others of its name
};

static inline uint64_t big_random(uint64_t *s) {
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s;
}

// As many small numbers as large ones.
static inline uint64_t big_any_size(uint64_t *s, unsigned bits) {
    return big_random(s) >> (64 - 1 - big_random(s) % bits);
}

static inline struct big_event big_make_event(uint64_t *seed, uint64_t ts) {
    struct big_event e = {.ts = ts, .dur = big_any_size(seed, 40)};
    const unsigned line = (unsigned)(big_random(seed) % 64);
    e.line = line < BIG_LINES ? line : line % 3;
    if (e.line == BIG_COUNTERS) {
        e.dur = 0;
    } else if (big_random(seed) % 3 == 0) {
        enum { IN = 1, OUT = 2, BOTH = 3 }; // as in XSpace
        const uint64_t id = 1 + ts / 50000000 + big_random(seed) % 40;
        const unsigned kind = (unsigned)(big_random(seed) % 8);
        e.flow = id << 2 | (kind == 0 ? BOTH : kind < 4 ? IN : OUT);
        e.async = big_random(seed) % 16 == 0;
    }
    return e;
}

// Events in order of time, on the heap.
static inline struct big_event *big_events(uint64_t seed) {
    struct big_event *const v = malloc(BIG_EVENTS * sizeof *v);
    uint64_t ts = 0;
    CHECK(v);
    for (size_t i = 0; i < BIG_EVENTS; i++) {
        v[i] = big_make_event(&seed, ts);
        ts += 1 + big_any_size(&seed, 27);
    }
    return v;
}

static inline void big_put(struct mk_plane *p, struct xpl_buf *line, const struct big_event *e) {
    static const char *const names[BIG_NAMES] = {"a", "b", "a name of some length", "c"};
    struct xpl_buf ev = mk_event(p, names[e->ts % BIG_NAMES], (int64_t)e->ts, (int64_t)e->dur);
    if (e->line == BIG_COUNTERS) mk_stat_int(p, &ev, "value", (int64_t)(e->ts % 100));
    if (e->flow) mk_stat_int(p, &ev, "flow", (int64_t)e->flow);
    if (e->async) mk_stat_int(p, &ev, "_a", 1);
    mk_event_end(line, &ev);
}

// The first BIG_ROWS lines and one of counters.
static inline struct xpl_buf big_profile(const struct big_event *v) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    for (unsigned l = 0; l < BIG_LINES; l++) {
        struct xpl_buf line = mk_line(l + 1, l == BIG_COUNTERS ? "_counters_" : "thread");
        for (size_t i = 0; i < BIG_EVENTS; i++) {
            const struct big_event *const e = &v[l == 4 ? BIG_EVENTS - 1 - i : i];
            if (e->line == l && !(l == 1 && i % 1000 == 7)) big_put(&p, &line, e);
        }
        for (size_t i = BIG_EVENTS; l == 1 && i-- > 0;)
            if (v[i].line == l && i % 1000 == 7) big_put(&p, &line, &v[i]);
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    return space;
}

#endif
