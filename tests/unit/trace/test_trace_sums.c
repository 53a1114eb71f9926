// SPDX-License-Identifier: Apache-2.0
// Sums of a trace against adding up every event, for windows, names and rows by chance.

#include "analysis/trace/sums.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/cancelled.h"
#include "tests/xspace_maker.h"

enum { EVENTS = 60000, NAMES = 7, LINES = 3, LIMIT = 1 << 28 };

static uint32_t state = 7;
static uint32_t roll(uint32_t n) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
}

static const char *const kNames[NAMES] = {"fusion.1",   "Fusion.2", "copy start", "MatMul fusion",
                                          "all-reduce", "a b c",    "x"};
static struct {
    uint64_t ts, dur;
    uint32_t name, line;
} events[EVENTS];

// Neighbours lie 1 ps to 1 ms apart, so that all levels have some; some have no length.
static struct xpl_buf make_profile(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/host:CPU");
    struct xpl_buf lines[LINES] = {mk_line(1, "a"), mk_line(2, "b"), mk_line(3, "c")};
    uint64_t at = 1000;
    for (size_t i = 0; i < EVENTS; i++) {
        uint64_t step = 1;
        // Most at one level, which so has whole pieces.
        for (uint32_t k = roll(4) ? 4 : roll(10); k > 0; k--)
            step *= 10;
        at += 1 + roll(9) * step;
        uint64_t dur = roll(4) ? 1 + roll(9) * step / (1 + roll(20)) : 0;
        if (roll(500) == 0) dur = step * 1000;
        events[i].ts = at, events[i].dur = dur;
        events[i].name = roll(NAMES), events[i].line = roll(LINES);
        mk_plain(&p, &lines[events[i].line], kNames[events[i].name], (int64_t)at, (int64_t)dur);
    }
    for (int i = 0; i < LINES; i++)
        mk_line_end(&p, &lines[i]);
    mk_plane_end(&p, &space);
    return space;
}

struct fixture {
    struct xpl_buf profile;
    struct xpl_arena arena;
    struct xpl_trace_memory memory;
    struct xpl_trace_host hosts[2];
};

static void make(struct fixture *f) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    f->profile = make_profile();
    xpl_arena_init(&f->arena, LIMIT);
    CHECK_OK(xpl_trace_memory_init(&f->memory, (xpl_bytes_t){f->profile.p, f->profile.n}, NULL,
                                   &exec, LIMIT, &f->arena, &err),
             &err);
    f->hosts[0] = (struct xpl_trace_host){.name = XPL_STR("h"), .trace = f->memory.trace};
    f->hosts[1] = f->hosts[0];
}

static struct xpl_trace_sums sum_up(const struct fixture *f, size_t hosts,
                                    const struct xpl_trace_sums_options *o,
                                    struct xpl_arena *arena) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_trace_sums s;
    CHECK_OK(xpl_trace_sum_up(f->hosts, hosts, o, &exec, arena, &s, &err), &err);
    return s;
}

static const struct xpl_trace_sum *named(const struct xpl_trace_sums *s, const char *name) {
    for (size_t i = 0; i < s->n; i++)
        if (xpl_str_eq(s->v[i].name, xpl_str_from(name))) return &s->v[i];
    return NULL;
}

// Counts and times by name of the events in [begin, end) on the lines of the mask.
static void check_window(const struct xpl_trace_sums *s, uint64_t begin, uint64_t end,
                         unsigned lines, unsigned names) {
    uint64_t count[NAMES] = {0}, total[NAMES] = {0}, all = 0;
    for (size_t i = 0; i < EVENTS; i++) {
        const uint64_t from = events[i].ts, to = from + events[i].dur;
        if (!(lines >> events[i].line & 1) || !(names >> events[i].name & 1)) continue;
        if (from >= end || (events[i].dur ? to <= begin : from < begin)) continue;
        count[events[i].name]++, all++;
        total[events[i].name] += (to < end ? to : end) - (from > begin ? from : begin);
    }
    CHECK_EQ(s->count, all);
    for (size_t i = 0; i < NAMES; i++) {
        const struct xpl_trace_sum *const got = named(s, kNames[i]);
        CHECK_EQ(got ? got->count : 0, count[i]);
        CHECK_EQ(got ? got->total_ps : 0, total[i]);
    }
    for (size_t i = 1; i < s->n; i++)
        CHECK(s->v[i - 1].total_ps >= s->v[i].total_ps);
}

static void check_windows(const struct fixture *f) {
    const uint64_t last = events[EVENTS - 1].ts;
    for (int i = 0; i < 300; i++) {
        struct xpl_arena arena = xpl_arena_of(LIMIT);
        const uint64_t width = 1 + last / (UINT64_C(1) << roll(40));
        const uint64_t begin = last / 1000 * roll(1000);
        const struct xpl_trace_row rows[] = {{.pid = 1701, .tid = 1}, {.pid = 1701, .tid = 3}};
        struct xpl_trace_sums_options o = {.start_time_ms = (double)begin / 1e9,
                                           .end_time_ms = (double)(begin + width) / 1e9};
        // The window in whole picoseconds, as the option has it.
        const uint64_t a = (uint64_t)(o.start_time_ms * 1e9), b = (uint64_t)(o.end_time_ms * 1e9);
        struct xpl_trace_sums s = sum_up(f, 1, &o, &arena);
        if (b) check_window(&s, a, b, 7, 127);
        o.rows = rows, o.n_rows = 2;
        s = sum_up(f, 1, &o, &arena);
        if (b) check_window(&s, a, b, 5, 127);
        o.name = XPL_STR(" fUSion ");
        s = sum_up(f, 1, &o, &arena);
        if (b) check_window(&s, a, b, 5, 1 | 2 | 8);
        xpl_arena_fini(&arena);
    }
}

static void check_backwards(const struct fixture *f) {
    const struct xpl_trace_sums_options o = {.start_time_ms = 10, .end_time_ms = 5};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_trace_sums s;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    CHECK_STATUS(xpl_trace_sum_up(f->hosts, 1, &o, &exec, &arena, &s, &err), XPL_INVALID_ARGUMENT,
                 &err);
}

static void check_whole(const struct fixture *f) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_trace_sums_options o = {.name = XPL_STR("")};
    struct xpl_trace_sums s = sum_up(f, 1, &o, &arena);
    check_window(&s, 0, UINT64_MAX, 7, 127);
    const uint64_t total = s.total_ps;
    s = sum_up(f, 2, &o, &arena); // of two hosts that are alike
    CHECK_EQ(s.count, 2 * EVENTS);
    CHECK_EQ(s.total_ps, 2 * total);
    CHECK_EQ(s.n, NAMES);
    const struct xpl_trace_row second = {.pid = 2701, .whole = true};
    o.rows = &second, o.n_rows = 1;
    s = sum_up(f, 2, &o, &arena);
    CHECK_EQ(s.count, EVENTS);
    o.name = XPL_STR("fusion mat");
    s = sum_up(f, 2, &o, &arena);
    CHECK_EQ(s.n, 1);
    CHECK_STR(s.v[0].name, "MatMul fusion");
    o.name = XPL_STR("fusion nothing");
    CHECK_EQ(sum_up(f, 2, &o, &arena).n, 0);
}

// More names and tracks than a piece has sums for: its events are read.
static void check_many_names(void) {
    enum { MANY = 20000, DIFFERENT = 50, TRACKS = 60 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/host:CPU");
    static char names[DIFFERENT][16];
    for (int i = 0; i < DIFFERENT; i++)
        (void)snprintf(names[i], sizeof names[i], "name %d", i);
    for (int t = 0; t < TRACKS; t++) {
        struct xpl_buf line = mk_line(t + 1, names[t % DIFFERENT]);
        for (int i = t; i < MANY; i += TRACKS)
            mk_plain(&p, &line, names[i / TRACKS % DIFFERENT], 1000 + 1000000 * (int64_t)i, 5);
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_trace_memory memory;
    CHECK_OK(xpl_trace_memory_init(&memory, (xpl_bytes_t){space.p, space.n}, NULL, &exec, LIMIT,
                                   &arena, NULL),
             NULL);
    const struct xpl_trace_host host = {.name = XPL_STR("h"), .trace = memory.trace};
    struct xpl_trace_sums_options o = {.name = XPL_STR("")};
    struct xpl_trace_sums s;
    CHECK_OK(xpl_trace_sum_up(&host, 1, &o, &exec, &arena, &s, NULL), NULL);
    CHECK_EQ(s.count, MANY);
    CHECK_EQ(s.n, DIFFERENT);
    o.start_time_ms = 1, o.end_time_ms = 18; // events 1,000 to 17,999
    CHECK_OK(xpl_trace_sum_up(&host, 1, &o, &exec, &arena, &s, NULL), NULL);
    CHECK_EQ(s.count, 17000);
    CHECK_EQ(s.total_ps, 17000 * 5);
    xpl_trace_memory_fini(&memory);
}

// A flipped bit anywhere is noticed, or changes nothing.
static void check_damage(const struct fixture *f) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf index = xpl_buf_of(LIMIT);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &index};
    CHECK_OK(xpl_trace_build((xpl_bytes_t){f->profile.p, f->profile.n}, &exec, LIMIT, &sink, NULL),
             NULL);
    const struct xpl_trace_sums_options o = {.name = XPL_STR("")};
    uint64_t total = 0;
    size_t lost = 0;
    for (int i = 0; i < 400; i++) {
        struct xpl_arena arena = xpl_arena_of(LIMIT);
        struct xpl_trace *t;
        struct xpl_trace_sums s;
        const size_t at = (size_t)roll(1 << 24) % index.n;
        const uint8_t bit = (uint8_t)(i ? 1u << roll(8) : 0);
        index.p[at] ^= bit;
        xpl_status_t st = xpl_trace_open((xpl_bytes_t){index.p, index.n}, &arena, &t, NULL);
        if (st == XPL_OK) {
            const struct xpl_trace_host host = {.name = XPL_STR("h"), .trace = t};
            st = xpl_trace_sum_up(&host, 1, &o, &exec, &arena, &s, NULL);
        }
        if (i == 0) total = s.total_ps; // nothing is flipped yet
        CHECK(st == XPL_DATA_LOSS || (s.count == EVENTS && s.total_ps == total));
        lost += st == XPL_DATA_LOSS;
        index.p[at] ^= bit;
        xpl_arena_fini(&arena);
    }
    CHECK(lost > 20 && lost < 400);
}

static void check_cancelled(const struct fixture *f) {
    struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_trace_sums_options o = {0};
    struct xpl_trace_sums s = {.n = 77};
    exec.cancelled = always_cancelled;
    CHECK_STATUS(xpl_trace_sum_up(f->hosts, 1, &o, &exec, &arena, &s, NULL), XPL_CANCELLED, NULL);
    CHECK_EQ(s.n, 77);
    xpl_arena_fini(&arena);
    xpl_arena_init(&arena, 1 << 10);
    exec = xpl_exec_serial();
    CHECK_STATUS(xpl_trace_sum_up(f->hosts, 1, &o, &exec, &arena, &s, NULL), XPL_RESOURCE_EXHAUSTED,
                 NULL);
    xpl_arena_fini(&arena);
}

int main(void) {
    struct fixture f;
    make(&f);
    check_whole(&f);
    check_windows(&f);
    check_backwards(&f);
    check_cancelled(&f);
    check_many_names();
    check_damage(&f);
    xpl_trace_memory_fini(&f.memory);
    xpl_arena_fini(&f.arena);
    xpl_buf_fini(&f.profile);
    return 0;
}
