// SPDX-License-Identifier: Apache-2.0
// What answers of the trace index rest on: the order of records, stack frames by their texts,
// windows over lines that are out of order, and that an answer under way can be cancelled.
#include <stdlib.h>

#include "analysis/trace/answer/args.h"
#include "analysis/trace/trace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/xspace_maker.h"

enum { LIMIT = 1 << 28 };

struct made {
    struct xpl_buf profile;
    struct xpl_arena arena;
    struct xpl_trace_memory memory;
};

static void make(struct made *m, struct xpl_buf profile) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    *m = (struct made){.profile = profile};
    xpl_arena_init(&m->arena, LIMIT);
    CHECK_OK(xpl_trace_memory_init(&m->memory, (xpl_bytes_t){profile.p, profile.n}, NULL, &exec,
                                   LIMIT, &m->arena, &err),
             &err);
}

static void unmake(struct made *m) {
    xpl_trace_memory_fini(&m->memory);
    xpl_arena_fini(&m->arena);
    xpl_buf_fini(&m->profile);
}

static xpl_status_t answer(const struct made *m, const struct xpl_trace_options *o,
                           struct xpl_exec *exec, struct xpl_buf *out) {
    const struct xpl_trace_host host = {
        XPL_STR("h"), m->memory.trace, {m->profile.p, m->profile.n}};
    struct xpl_error err = {0};
    xpl_buf_init(out, LIMIT);
    const xpl_status_t st = xpl_trace_answer(&host, 1, o, exec, LIMIT, out, &err);
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    xpl_buf_putc(out, '\0');
    CHECK(!out->failed);
    return st;
}

static xpl_status_t answer_serial(const struct made *m, const struct xpl_trace_options *o,
                                  struct xpl_buf *out) {
    struct xpl_exec exec = xpl_exec_serial();
    return answer(m, o, &exec, out);
}

static struct xpl_trace_options default_options(void) {
    struct xpl_trace_options o;
    xpl_trace_options_init(&o);
    return o;
}

// Everything whose name begins so, with its arguments.
static struct xpl_trace_options search_options(const char *prefix) {
    struct xpl_trace_options o = default_options();
    o.search_prefix = xpl_str_from(prefix), o.search_metadata = true;
    return o;
}

// The answer, which must succeed; freed with xpl_buf_fini.
static struct xpl_buf answered(const struct made *m, const struct xpl_trace_options *o) {
    struct xpl_buf b;
    CHECK_OK(answer_serial(m, o, &b), NULL);
    return b;
}

// A profile of one plane with one line.
struct lone_line {
    struct mk_plane plane;
    struct xpl_buf line;
};

static void lone_line_begin(struct lone_line *l, const char *plane, const char *line) {
    mk_plane_begin(&l->plane, 3, plane);
    l->line = mk_line(7, line);
}

static struct xpl_buf lone_line_end(struct lone_line *l) {
    struct xpl_buf space = mk_open();
    mk_line_end(&l->plane, &l->line);
    mk_plane_end(&l->plane, &space);
    return space;
}

static bool contains(const struct xpl_buf *b, const char *text) {
    return strstr((const char *)b->p, text) != NULL;
}

// ---- order ----

enum { N_RECS = 3000 };
struct recorded_times {
    uint64_t ts, dur;
    int number;
};
static struct recorded_times recorded[N_RECS];

static int by_time(const void *pa, const void *pb) {
    const struct recorded_times *const a = pa, *const b = pb;
    if (a->ts != b->ts) return a->ts < b->ts ? -1 : 1;
    if (a->dur != b->dur) return a->dur > b->dur ? -1 : 1;
    return a->number - b->number;
}

static uint64_t next_random(uint64_t *s) {
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s;
}

// All last a second at least, so that all are of one level of the index and a search finds them in
// sorted order.  With `wide`, times use all 64 bits: negative ones begin at the end.
static void check_order(size_t n, bool wide, uint64_t least) {
    struct lone_line l;
    uint64_t seed = 0x7654321 + n;
    lone_line_begin(&l, "/host:CPU", "t");
    for (size_t i = 0; i < n; i++) {
        const uint64_t offset = wide ? next_random(&seed) >> next_random(&seed) % 64 : i % 300;
        const uint64_t ts = wide && i % 7 == 0 ? UINT64_MAX - offset : least + offset;
        const uint64_t dur = UINT64_C(1000000000000) + next_random(&seed) % 3;
        recorded[i] = (struct recorded_times){ts, dur, (int)i};
        struct xpl_buf ev = mk_event(&l.plane, "e", (int64_t)ts, (int64_t)dur);
        mk_stat_int(&l.plane, &ev, "number", (int64_t)i);
        mk_event_end(&l.line, &ev);
    }
    struct made m;
    make(&m, lone_line_end(&l));
    const struct xpl_trace_options o = search_options("e");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = answered(&m, &o);
    qsort(recorded, n, sizeof *recorded, by_time);
    const char *at = (const char *)b.p;
    for (size_t i = 0; i < n; i++) {
        at = strstr(at, "\"number\":");
        CHECK(at);
        at += strlen("\"number\":");
        CHECK_EQ(atoi(at), recorded[i].number);
    }
    CHECK(!strstr(at, "\"number\":"));
    unmake(&m);
}

static void test_order(void) {
    static const size_t sizes[] = {2, 100, 511, 512, 513, N_RECS};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_order(sizes[i], false, 5);
        check_order(sizes[i], false, UINT64_C(1) << 62); // a least far from 0
        check_order(sizes[i], true, 0);
        check_order(sizes[i], true, UINT64_C(1) << 40);
    }
}

// ---- threads ----

static struct xpl_buf index_of(xpl_bytes_t profile, struct xpl_exec *exec) {
    struct xpl_error err = {0};
    struct xpl_buf index = xpl_buf_of(LIMIT);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &index};
    CHECK_OK(xpl_trace_build(profile, exec, LIMIT, &sink, &err), &err);
    return index;
}

// The division among threads shows nowhere: lines in order and out of it, flows, counters, separate
// names.
static void test_threads(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(3, "/host:CPU");
    uint64_t seed = 99;
    for (int k = 0; k < 6; k++) {
        struct xpl_buf line = mk_line(k, k == 5 ? "_counters_" : "t");
        for (int i = 0; i < 6000; i++) {
            const int64_t at = k % 2 ? (int64_t)(next_random(&seed) % 9000000) : 1500 * (int64_t)i;
            struct xpl_buf ev = mk_event(&p, i % 3 ? "a" : "b", at, 700 + i % 5);
            if (i % 7 == 0) mk_stat_int(&p, &ev, "correlation_id", i);
            mk_stat_int(&p, &ev, "number", i);
            mk_event_end(&line, &ev);
        }
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    const xpl_bytes_t profile = {space.p, space.n};
    struct xpl_exec serial = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf expected = index_of(profile, &serial);
    for (unsigned width = 2; width <= 5; width++) {
        struct xpl_exec_pool *const pool = xpl_exec_pool_new(width);
        CHECK(pool);
        struct xpl_buf got = index_of(profile, xpl_exec_pool_get(pool));
        CHECK_EQ(got.n, expected.n);
        CHECK_BYTES(got.p, got.n, expected.p, got.n);
        xpl_buf_fini(&got);
        xpl_exec_pool_free(pool);
    }
}

// ---- stack frames ----

enum { N_FRAMES = 2000, FRAME_SIZE = 32 };

static struct xpl_buf profile_of_frames(void) {
    struct lone_line l;
    lone_line_begin(&l, "/host:CPU", "t");
    for (int i = 0; i < N_FRAMES; i++) {
        char text[FRAME_SIZE];
        CHECK(snprintf(text, sizeof text, "words of instruction %d", i % 1000) < FRAME_SIZE);
        struct xpl_buf ev = mk_event(&l.plane, "op", 1000 * (int64_t)i, 900);
        mk_stat_int(&l.plane, &ev, "number", i % 1000);
        mk_stat_str(&l.plane, &ev, i % 2 ? "long_name" : "hlo_text", text);
        mk_event_end(&l.line, &ev);
    }
    return lone_line_end(&l);
}

// Each event of a search refers to the frame that has its text.
static void test_frames(void) {
    struct made m;
    make(&m, profile_of_frames());
    const struct xpl_trace_options o = search_options("op");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = answered(&m, &o);
    const char *at = strstr((const char *)b.p, "\"traceEvents\":");
    int n = 0;
    for (; at && (at = strstr(at, "\"number\":")); n++) {
        char frame[64];
        at += strlen("\"number\":");
        const int number = atoi(at);
        at = strstr(at, ",\"sf\":");
        CHECK(at);
        at += strlen(",\"sf\":");
        CHECK(snprintf(frame, sizeof frame, "\"%d\":{\"name\":\"words of instruction %d\"}",
                       atoi(at), number) < (int)sizeof frame);
        CHECK(contains(&b, frame));
    }
    CHECK_EQ(n, N_FRAMES);
    unmake(&m);
}

// A few texts are compared with all frames, many are found in order of text.
static void test_frame_scans(void) {
    XPL_AUTO(unmake) struct made m;
    struct trc_view v;
    struct trc_value *const values = calloc(TRC_MAX_ARGS, sizeof *values);
    struct xpl_error err = {0};
    make(&m, profile_of_frames());
    const struct xpl_trace *const t = m.memory.trace;
    struct trc_frames frames = {.arena = &m.arena};
    CHECK(values);
    CHECK_EQ(t->n[TRC_FRAMES], 1000);
    CHECK_OK(trc_view_block(t, 0, &v, &err), &err);
    for (uint32_t i = 0; i < v.n; i++) {
        struct trc_event e;
        size_t n;
        CHECK_OK(trc_get_event(t, &v, i, &e, &err), &err);
        CHECK_OK(trc_read_args(t, (xpl_bytes_t){m.profile.p, m.profile.n}, &e, &frames, values, &n,
                               &err),
                 &err);
        CHECK_EQ(n, 2);
        CHECK(values[1].frame);
        CHECK_STR(trc_str(t, t->frames[values[1].frame - 1]), values[1].text);
        CHECK_EQ(frames.by_text == NULL, i < 16);
    }
    CHECK(frames.scans < 20);
    free(values);
}

// ---- giving up ----

struct cancelling {
    struct xpl_exec exec;
    int checks_left;
};

static bool cancelled_after_checks(struct xpl_exec *x) {
    return ((struct cancelling *)x)->checks_left-- <= 0;
}

// An answer can be cancelled at each check; returns the number of checks.
static int give_up(const struct made *m, const struct xpl_trace_options *o) {
    for (int n = 0;; n++) {
        struct cancelling x = {.exec = xpl_exec_serial(), .checks_left = n};
        struct xpl_buf b;
        x.exec.cancelled = cancelled_after_checks;
        const xpl_status_t st = answer(m, o, &x.exec, &b);
        xpl_buf_fini(&b);
        if (st == XPL_OK) return n;
        CHECK_STATUS(st, XPL_CANCELLED, NULL);
        CHECK(n < 1000);
    }
}

static void test_give_up(void) {
    XPL_AUTO(unmake) struct made m;
    make(&m, profile_of_frames());
    struct xpl_trace_options o = default_options();
    CHECK(give_up(&m, &o) >= 3); // while choosing, and more than once while writing
    o.pb = true;
    CHECK(give_up(&m, &o) >= 3);
    o = search_options("op");
    CHECK(give_up(&m, &o) >= 3);
    o = default_options();
    o.event_name = XPL_STR("op"), o.start_time_ms = 1e-6, o.duration_ms = 900e-9;
    CHECK(give_up(&m, &o) >= 1);
}

// ---- one event ----

// What lasts no time is shown with a picosecond, and found only without, as in XProf.
static void test_instants(void) {
    struct lone_line l;
    lone_line_begin(&l, "/host:CPU", "t");
    mk_plain(&l.plane, &l.line, "instant", 2000000, 0);
    mk_plain(&l.plane, &l.line, "short", 3000000, 1);
    XPL_AUTO(unmake) struct made m;
    make(&m, lone_line_end(&l));
    static const struct {
        const char *name;
        double start_ms, duration_ms;
        xpl_status_t expected;
    } cases[] = {{"instant", 0.002, 0, XPL_OK},
                 {"instant", 0.002, 1e-9, XPL_NOT_FOUND},
                 {"short", 0.003, 1e-9, XPL_OK},
                 {"short", 0.003, 0, XPL_NOT_FOUND},
                 {"short", 0.0030000004, 1.4e-9, XPL_OK}}; // the nearest picosecond
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_trace_options o = default_options();
        struct xpl_buf b;
        o.event_name = xpl_str_from(cases[i].name);
        o.start_time_ms = cases[i].start_ms, o.duration_ms = cases[i].duration_ms;
        CHECK_EQ(answer_serial(&m, &o, &b), cases[i].expected);
        CHECK(cases[i].expected != XPL_OK || contains(&b, "\"dur\":0.000001,"));
        xpl_buf_fini(&b);
    }
}

// ---- rows ----

// A line that is recorded out of order: a window shows its events.
static void test_rows(void) {
    struct lone_line l;
    lone_line_begin(&l, "/host:CPU", "t");
    mk_plain(&l.plane, &l.line, "last", 9000000, 1000000);
    mk_plain(&l.plane, &l.line, "first", 1000000, 1000000);
    mk_plain(&l.plane, &l.line, "middle", 5000000, 1000000);
    XPL_AUTO(unmake) struct made m;
    make(&m, lone_line_end(&l));
    struct xpl_trace_options o = default_options();
    o.start_time_ms = 0.0045, o.end_time_ms = 0.0065;
    struct xpl_buf b = answered(&m, &o);
    CHECK(contains(&b, "\"middle\"") && !contains(&b, "\"first\"") && !contains(&b, "\"last\""));
    xpl_buf_fini(&b);
    o.start_time_ms = 0, o.end_time_ms = 0;
    b = answered(&m, &o);
    const char *const first = strstr((const char *)b.p, "\"first\"");
    const char *const middle = strstr((const char *)b.p, "\"middle\"");
    const char *const last = strstr((const char *)b.p, "\"last\"");
    CHECK(first && middle && last && first < middle && middle < last);
    xpl_buf_fini(&b);
}

// ---- searches ----

// Names that are not ASCII are found, and do not hide others.
static void test_search(void) {
    static const char *const names[] = {
        "zebra", "\xc3\xa9t\xc3\xa9", "apple", "\xe2\x82\xac 5", "Zoo", "\x7f", "\xff"};
    static const struct {
        const char *prefix, *found;
        int n;
    } cases[] = {{"z", "\"zebra\"", 1},
                 {"a", "\"apple\"", 1},
                 {"\xc3", "\"\xc3\xa9t\xc3\xa9\"", 1},
                 {"\xe2\x82\xac", " 5\"", 1},
                 {"Z", "\"Zoo\"", 1},
                 {"ze", "\"zebra\"", 1},
                 {"q", "", 0},
                 {"\x7f", "", 1}};
    struct lone_line l;
    lone_line_begin(&l, "/host:CPU", "t");
    for (int i = 0; i < 7; i++)
        mk_plain(&l.plane, &l.line, names[i], 1000 * (int64_t)i, 500);
    XPL_AUTO(unmake) struct made m;
    make(&m, lone_line_end(&l));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_trace_options o = default_options();
        char size[64];
        o.search_prefix = xpl_str_from(cases[i].prefix);
        struct xpl_buf b = answered(&m, &o);
        CHECK(snprintf(size, sizeof size, "\"returnedEventsSize\":%d,", cases[i].n) < 64);
        CHECK(contains(&b, size) && contains(&b, cases[i].found));
        xpl_buf_fini(&b);
    }
}

// ---- groups ----

// Of an event with several groups the last is shown.
static void test_groups(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p;
    for (int core = 0; core < 2; core++) {
        mk_plane_begin(&p, core + 3, core ? "/device:TPU:0" : "/host:CPU");
        struct xpl_buf line = mk_line(1, core ? "Steps" : "t");
        struct xpl_buf ev = mk_event(&p, core ? "8" : "work", 1000, 5000);
        mk_stat_int(&p, &ev, "group_id", 41);
        mk_stat_int(&p, &ev, "group_id", 42 + core);
        mk_event_end(&line, &ev);
        ev = mk_event(&p, core ? "9" : "more", 7000, 5000);
        mk_stat_int(&p, &ev, "group_id", 51 + core);
        mk_event_end(&line, &ev);
        mk_line_end(&p, &line);
        mk_plane_end(&p, &space);
    }
    struct made m;
    make(&m, space);
    const struct xpl_trace_options o = default_options();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = answered(&m, &o);
    CHECK(!contains(&b, "\"group_id\":41"));
    CHECK(contains(&b, "\"group_id\":42") && contains(&b, "\"group_id\":43"));
    CHECK(contains(&b, "\"group_id\":51") && contains(&b, "\"group_id\":52"));
    unmake(&m);
}

// ---- ties ----

// Name scopes of ops that last no time: the outer comes first, and has the lesser number.
static void test_ties(void) {
    struct lone_line l;
    lone_line_begin(&l, "/device:TPU:0", "XLA Ops");
    for (int i = 0; i < 60; i++) {
        struct xpl_buf ev = mk_event(&l.plane, i % 2 ? "copy.1" : "fusion.2", 3000 * (int64_t)i, 0);
        mk_stat_str(&l.plane, &ev, "tf_op",
                    i % 2 ? "outer1/inner1/leaf1/Op:Op" : "outer0/inner0/leaf0/Op:Op");
        mk_event_end(&l.line, &ev);
    }
    struct made m;
    make(&m, lone_line_end(&l));
    const struct xpl_trace_options o = default_options();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = answered(&m, &o);
    for (int i = 0; i < 60; i++) {
        static const char *const names[] = {"outer", "inner", "leaf"};
        int last = -1;
        for (int k = 0; k < 3; k++) {
            char begin[80];
            CHECK(snprintf(begin, sizeof begin, "\"name\":\"%s%d\",\"ts\":%g,", names[k], i % 2,
                           i * 0.003) < (int)sizeof begin);
            const char *const at = strstr((const char *)b.p, begin);
            const char *const number = at ? strstr(at, "\"uid\":") : NULL;
            CHECK(number && atoi(number + 6) > last);
            last = atoi(number + 6);
        }
    }
    unmake(&m);
}

int main(void) {
    test_order();
    test_threads();
    test_frames();
    test_frame_scans();
    test_give_up();
    test_instants();
    test_rows();
    test_search();
    test_groups();
    test_ties();
    return 0;
}
