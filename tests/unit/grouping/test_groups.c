// SPDX-License-Identifier: Apache-2.0
// Grouping by nesting, links and thread pools, scenario by scenario. Expected values come from
// XProf 2.24.2 where its sources leave room.
#include "tests/cancelled.h"
#include "tests/unit/grouping/groups_fixture.h"

// ---- within a line ----

static void test_nesting(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "before", 0, 5, "");
    event(&s, "train", 10, 50, "_r=1 step_num=7");
    event(&s, "inside", 10, 50, ""); // bounds count as inside
    event(&s, "deeper", 20, 30, "");
    event(&s, "overlaps", 45, 55, ""); // closes train
    event(&s, "late", 46, 47, "");
    event(&s, "train", 60, 90, "_r=1");
    event(&s, "train", 70, 80, "_r=1"); // same level, inside: no separate group
    event(&s, "other", 75, 76, "_r=2"); // another level: its own
    event(&s, "x", 75, 76, "");
    event(&s, "async root", 85, 86, "_r=1 _a=1");
    event(&s, "x", 85, 86, ""); // in train, not in the asynchronous one
    event(&s, "async", 87, 88, "_a=1");
    event(&s, "not async", 87, 88, "_a=0");
    event(&s, "unsigned root", 100, 110, "_r=1u"); // level 0
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    // Level 2 comes first, then level 1 in the order of time, then level 0.
    expect_line(&b, 0, 0,
                "- 1*train 7 1 1 - - 2*train 2 2 0*other 0 0 3*async root 3 2 - 2 "
                "4*unsigned root 4");
    CHECK_STR(xpl_groups_name(b.groups, 1), "train 7");
    CHECK_EQ(xpl_groups_name(b.groups, 5).len, 0);
    CHECK_EQ(xpl_groups_name(b.groups, -1).len, 0);
    CHECK(!xpl_groups_empty(b.groups));
}

static void test_nothing(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "a", 0, 9, "_pt=1 _p=1");
    event(&s, "b", 10, 19, "_ct=1 _c=1");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 1, "stream");
    event(&s, "k", 0, 9, "correlation_id=1");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    CHECK(xpl_groups_empty(b.groups));
    expect_line(&b, 0, 0, "- -");
    expect_line(&b, 1, 0, "-");
    expect_steps(&b, 1, "");
}

static void test_names(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "outer", 0, 9, "graph_type='eval' iter_num=5 step_num=4");
    event(&s, "root", 1, 8, "_r=1 step_num=3");
    event(&s, "FunctionRun", 10, 19, "_r=1"); // implicit: only a number, and no step name
    event(&s, "FunctionRun", 20, 29, "_r=1 graph_type='train'");
    event(&s, "TraceContext", 30, 39, "");
    event(&s, "BatchingSessionRun", 40, 49, "_r=9"); // level 1 whatever it says
    event(&s, "ProcessBatch", 50, 59, "");           // level 2
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 0,
                "- 1*eval 5 2 3 4*TraceContext 4 5*BatchingSessionRun 5 0*ProcessBatch 0");
    CHECK_STR(xpl_groups_name(b.groups, 2), "2");
    CHECK_STR(xpl_groups_name(b.groups, 3), "train 3");
}

// Keras' TensorBoard callback records each batch: with a number as TensorFlow's annotations have
// it, or in the name. XProf does not take these for steps.
static void test_batches(void) {
    struct xpl_exec exec = xpl_exec_serial();
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "Profiled batch", 0, 9, "step_num=7");
    event(&s, "in", 1, 8, "");
    event(&s, "Profiled batch 12", 10, 19, "");
    event(&s, "train", 11, 18, "_r=1 step_num=3"); // within another step: no separate group
    event(&s, "in", 12, 13, "");
    event(&s, "train", 20, 39, "_r=1 step_num=4");
    event(&s, "Profiled batch 13", 21, 29, "");
    event(&s, "Profiled batch ", 40, 49, "");
    event(&s, "Profiled batch of 3", 50, 59, "");
    event(&s, "Profiled batches", 60, 69, "");
    end_line(&s);
    end_plane(&s);
    struct built b = build_as(&s.bytes, true, &exec);
    expect_line(&b, 0, 0, "0*Profiled batch 7 0 1*Profiled batch 12 1 1 2*train 4 2 - - -");
    close_it(&b);
    b = build_as(&s.bytes, false, &exec);
    expect_line(&b, 0, 0, "- - - 0*train 3 0 1*train 4 1 - - -");
    close_it(&b);
    xpl_buf_fini(&s.bytes);
}

// ---- between lines ----

static void test_links(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "train", 0, 100, "_r=1");
    event(&s, "p", 10, 11, "_pt=2 _p=5");
    event(&s, "p", 12, 13, "_pt=2 _p=6u");         // signedness of ids does not matter
    event(&s, "p", 14, 15, "_pt=2u _p=7");         // of types it does: this is type 0
    event(&s, "half", 16, 17, "_p=8");             // no type
    event(&s, "async", 18, 19, "_pt=2 _p=9 _a=1"); // nothing is above it
    event(&s, "train", 200, 300, "_r=1");
    event(&s, "p", 210, 211, "_pt=2 _p=5"); // a second producer: the first group wins
    event(&s, "p", 212, 213, "_pt=2 _p=20");
    end_line(&s);
    begin_line(&s, 2, "pool");
    event(&s, "c", 20, 30, "_ct=2 _c=5");
    event(&s, "in", 21, 22, "");
    event(&s, "p again", 23, 24, "_pt=3 _p=30");
    event(&s, "c", 31, 39, "_ct=2 _c=6");
    event(&s, "c", 40, 49, "_ct=2 _c=7");
    event(&s, "c", 50, 59, "_ct=0 _c=7");
    event(&s, "c", 60, 69, "_ct=0 _c=8");
    event(&s, "c", 70, 79, "_ct=2 _c=9");
    event(&s, "c", 80, 85, "_ct=2 _c=20 _a=1"); // no parent for what follows
    event(&s, "in", 81, 82, "");
    event(&s, "c", 90, 99, "_ct=2 _c=99");
    end_line(&s);
    begin_line(&s, 3, "third");
    event(&s, "c", 40, 60, "_ct=3 _c=30"); // through two lines
    event(&s, "in", 41, 42, "");
    event(&s, "c", 43, 44, "_ct=2 _c=20"); // its own parent is earlier
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 0, "0*train 0 0 0 0 0 - 1*train 1 1 1");
    expect_line(&b, 0, 1, "0 0 0 0 - 0 - - 1 - -");
    expect_line(&b, 0, 2, "0 0 0");
}

static void pid_event(struct space *s, const char *name, int64_t at, const char *stats) {
    event(s, name, at, at + 1, stats);
}

static void test_processes(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    set_pid(&s, 77);
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 100, "_r=1");
    pid_event(&s, "p", 10, "_pt=2 _p=5");
    pid_event(&s, "p", 12, "_pt=12 _p=5");        // launches belong to no process
    pid_event(&s, "p", 14, "_pt=2 _p=6 _pid=78"); // producers are the plane's
    pid_event(&s, "c", 200, "_ct=2 _c=5");
    pid_event(&s, "c", 202, "_ct=2 _c=5 _pid=78");
    pid_event(&s, "c", 204, "_ct=2 _c=6");
    pid_event(&s, "c", 206, "_ct=2 _c=6 _pid=78 _p=1"); // with an id to produce, likewise
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/host:other");
    begin_line(&s, 1, "main");
    pid_event(&s, "c", 200, "_ct=2 _c=5");
    pid_event(&s, "c", 202, "_ct=2 _c=5 _pid=77");
    pid_event(&s, "c", 204, "_ct=12 _c=5 _pid=99");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 0, "0*train 0 0 0 0 0 - 0 0");
    expect_line(&b, 1, 0, "- 0 0");
}

// 64 producers and as many consumers of one key are not linked; one less on either side are.
static void crowd(struct space *s, int producers, int consumers, int key) {
    char stats[64];
    begin_line(s, key, "main");
    event(s, "train", 0, 1000, "_r=1");
    for (int i = 0; i < producers; i++) {
        (void)snprintf(stats, sizeof stats, "_pt=2 _p=%d", key);
        event(s, "p", 1 + i, 2 + i, stats);
    }
    end_line(s);
    begin_line(s, key + 1, "pool");
    for (int i = 0; i < consumers; i++) {
        (void)snprintf(stats, sizeof stats, "_ct=2 _c=%d", key);
        event(s, "c", 2000 + i, 2001 + i, stats);
    }
    end_line(s);
}

static void test_crowds(void) {
    struct space s;
    char first[8192];
    begin(&s);
    begin_plane(&s, "/host:CPU");
    crowd(&s, 64, 64, 10);
    crowd(&s, 63, 64, 20);
    crowd(&s, 64, 63, 30);
    end_plane(&s);
    XPL_AUTO(close_it) struct built b = build(&s);
    const struct xpl_plane *const p = &b.xs->planes[0];
    line_text(&b, &p->lines[1], first, sizeof first);
    CHECK_EQ(first[0], '-');
    line_text(&b, &p->lines[3], first, sizeof first);
    CHECK_EQ(first[0], '1');
    line_text(&b, &p->lines[5], first, sizeof first);
    CHECK_EQ(first[0], '2');
}

static void test_cycles(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "own parent", 0, 9, "_r=1 _pt=1 _p=1 _ct=1 _c=1"); // never starts a group
    event(&s, "ring", 10, 19, "_r=1 _pt=1 _p=2 _ct=1 _c=3");
    event(&s, "ring", 20, 29, "_r=1 _pt=1 _p=3 _ct=1 _c=2"); // each is the other's parent
    event(&s, "root", 30, 39, "_r=1");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 0, "- - - 0*root 0");
}

// The nearest ancestor names a group; plain events in between count as distance.
static void test_distance(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "far", 0, 100, "iter_num=1");
    event(&s, "plain", 1, 99, "");
    event(&s, "plain", 2, 98, "");
    event(&s, "root", 3, 97, "_r=1 _ct=2 _c=1");
    end_line(&s);
    begin_line(&s, 2, "second");
    event(&s, "near", 0, 9, "iter_num=2");
    event(&s, "p", 1, 2, "_pt=2 _p=1");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 0, "- - - 0*root 2");
}

// ---- thread pools ----

static void test_regions(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "train", 0, 100, "_r=1");
    event(&s, "ThreadpoolListener::Record", 10, 10, "_pt=15 _p=42");
    end_line(&s);
    begin_line(&s, 2, "pool");
    event(&s, "ThreadpoolListener::StartRegion", 20, 20, "_ct=15 _c=42"); // linked
    event(&s, "work", 22, 25, "");                                        // but its region is not
    event(&s, "ThreadpoolListener::StopRegion", 30, 30, "");
    end_line(&s);
    begin_line(&s, 3, "in a group");
    event(&s, "train", 0, 100, "_r=1");
    event(&s, "ThreadpoolListener::StartRegion", 20, 20, "_ct=15 _c=1");
    event(&s, "ThreadpoolListener::StopRegion", 30, 30, "");
    event(&s, "ThreadpoolListener::StopRegion", 40, 40, "");  // from the same start
    event(&s, "ThreadpoolListener::StartRegion", 50, 50, ""); // no id: no region
    event(&s, "ThreadpoolListener::StopRegion", 60, 60, "");
    end_line(&s);
    begin_line(&s, 4,
               "closes"); // a region that overlaps closes the region that does not contain it
    event(&s, "train", 0, 25, "_r=1");
    event(&s, "ThreadpoolListener::StartRegion", 20, 20, "_ct=15 _c=1");
    event(&s, "work", 22, 24, "");
    event(&s, "ThreadpoolListener::StopRegion", 30, 30, "");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 1, "0 - -");
    // The start at 20 ends with the next start; 60 belongs to no region that counts.
    expect_line(&b, 0, 2, "1*train 1 R1:40 R1:20 R1:10 1 1 1 1 1");
    expect_line(&b, 0, 3, "2*train 2 - - -");
}

// A line with regions is sorted first, which may change the nesting.
static void test_unsorted(void) {
    for (int regions = 0; regions < 2; regions++) {
        struct space s;
        begin_with_line(&s, "/host:CPU", 1, "pool");
        event(&s, "work", 22, 24, "");
        event(&s, "train", 1, 46, "_r=1");
        event(&s, "c", 23, 23, "_ct=1 _c=1");
        event(&s, "ThreadpoolListener::StartRegion", 20, 20, "_ct=15 _c=42");
        if (regions) event(&s, "ThreadpoolListener::StopRegion", 30, 30, "");
        end_line(&s);
        begin_line(&s, 2, "same begin"); // the region comes before what begins with it
        event(&s, "train", 1, 25, "_r=1");
        event(&s, "x", 20, 22, "");
        event(&s, "ThreadpoolListener::StartRegion", 20, 20, "_ct=15 _c=42");
        if (regions) event(&s, "ThreadpoolListener::StopRegion", 30, 30, "");
        struct built b = end_and_build(&s);
        expect_line(&b, 0, 0, regions ? "R0:10 0 0*train 0 0 0 0" : "- 0*train 0 0 0");
        expect_line(&b, 0, 1, regions ? "1*train 1 - - -" : "1*train 1 1 1");
        close_it(&b);
    }
}

// A caller that needs upstream's order of a line's events gets their ranks.
static void test_sorted_lines(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    for (int line = 0; line < 4; line++) {
        begin_line(&s, line, "pool");
        event(&s, "ThreadpoolListener::StartRegion", 10, 10, line == 1 ? "" : "_c=1");
        event(&s, "ThreadpoolListener::StopRegion", 20, 20, "");
        event(&s, "a", line == 2 ? 29 : 30, 40, "");
        event(&s, "b", 30, line == 3 ? 60 : 35, "");
        event(&s, "c", 31, 50, "");
        end_line(&s);
    }
    end_plane(&s);
    XPL_AUTO(close_it) struct built b = build(&s);
    const struct xpl_line *const l = b.xs->planes[0].lines;
    struct xpl_error err = {0};
    uint64_t *ranks;
    CHECK(!xpl_groups_sorts_line(b.groups, &l[0])); // in order
    CHECK(!xpl_groups_sorts_line(b.groups, &l[1])); // no region without an id
    CHECK(!xpl_groups_sorts_line(b.groups, &l[2]));
    CHECK(xpl_groups_sorts_line(b.groups, &l[3])); // the longer comes first
    CHECK_OK(xpl_groups_sorted_ranks(b.groups, &l[3], &b.arena, &ranks, &err), &err);
    CHECK_EQ(ranks[0], 1);
    CHECK_EQ(ranks[1], 2); // the region comes before its StartRegion
    CHECK_EQ(ranks[2], 4);
    CHECK_EQ(ranks[3], 3);
    CHECK_EQ(ranks[4], 5);
}

// ---- many events ----

static struct xpl_buf large_space(void) {
    struct space s;
    uint64_t x = 1;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    for (int line = 0; line < 3; line++) {
        begin_line(&s, line, "pool");
        for (int i = 0; i < 6000; i++) {
            const int64_t t = i * 10;
            char st[64];
            x = x * 6364136223846793005u + 1442695040888963407u;
            const int id = (int)(x >> 33) % 500;
            if (i % 50 == 0 && line == 0)
                event(&s, "train", t, t + 480, "_r=1");
            else if (i % 50 == 0)
                event(&s, "long", t, t + 490, "_ct=2 _c=3");
            else if (i % 7 == 0 && (snprintf(st, sizeof st, "_pt=2 _p=%d", id), true))
                event(&s, "p", t, t + 5, st);
            else if (i % 5 == 0 && (snprintf(st, sizeof st, "_ct=2 _c=%d", id), true))
                event(&s, "c", t, t + (i % 3 ? 5 : 40), st);
            else
                event(&s, "x", t, t + 5, "");
        }
        end_line(&s);
    }
    end_plane(&s);
    return s.bytes;
}

// Cursors that start at a chunk say the same as one over the whole line.
static void check_chunks(const struct built *b, const struct xpl_line *line) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    struct xpl_error err = {0};
    struct xpl_group_cursor *whole, *part;
    struct xpl_event_cursor c, all;
    struct xpl_event ev, same;
    CHECK(line->n_chunks > 1 && xpl_groups_can_start_at_chunk(b->groups, line));
    CHECK_OK(xpl_group_cursor_new(b->groups, line, &a, &whole, &err), &err);
    xpl_events_begin(&all, line);
    for (uint32_t i = 0; i < line->n_chunks; i++) {
        CHECK_OK(xpl_group_cursor_new_at(b->groups, line, i, &a, &part, &err), &err);
        xpl_events_begin_chunk(&c, line, i);
        while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
            struct xpl_event_group p, w;
            CHECK_EQ(xpl_events_next(&all, &same), XPL_WIRE_FIELD);
            CHECK_EQ(same.index, ev.index);
            xpl_group_cursor_next(part, &ev, &p);
            xpl_group_cursor_next(whole, &same, &w);
            CHECK_EQ(p.has_group, w.has_group);
            CHECK_EQ(p.group_id, w.group_id);
            CHECK_EQ(p.has_step_name, w.has_step_name);
        }
    }
}

static void test_threads_and_chunks(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bytes = large_space();
    static char first[1 << 20], other[1 << 20];
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(4);
    CHECK(pool);
    struct built a = build_with(&bytes, &serial);
    struct built b = build_with(&bytes, xpl_exec_pool_get(pool));
    for (uint32_t i = 0; i < 3; i++) {
        line_text(&a, &a.xs->planes[0].lines[i], first, sizeof first);
        line_text(&b, &b.xs->planes[0].lines[i], other, sizeof other);
        CHECK_STR(first, other);
        CHECK(strstr(first, "- ") && strstr(first, "1 "));
        check_chunks(&a, &a.xs->planes[0].lines[i]);
    }
    close_it(&a);
    close_it(&b);
    xpl_exec_pool_free(pool);
}

static uint64_t next_random(uint64_t *x) {
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return *x >> 33;
}

// Events of all kinds on two long lines; `wild` ones are out of order and overlap.
static struct xpl_buf random_space(uint64_t x, bool wild) {
    static const struct {
        const char *name, *before, *after; // statistics around a number
        unsigned range;                    // of the number
    } kinds[] = {{"train", "_r=", "", 3},
                 {"p", "_pt=2 _p=", "", 3000},
                 {"c", "_ct=2 _c=", "", 3000},
                 {"a:MatMul", "x=", "", 9},
                 {"async", "_a=1 _ct=2 _c=", "", 3000},
                 {"p", "_a=1 _pt=2 _p=", "", 3000},
                 {"EagerExecute", "is_func=", "", 2},
                 {"launch", "correlation_id=", "", 3000},
                 {"both", "_ct=2 _c=", " _pt=2 _p=4000", 3000}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    for (int line = 0; line < 2; line++) {
        begin_line(&s, line, "pool");
        for (int i = 0; i < 13000; i++) {
            const size_t kind = next_random(&x) % 60;
            int64_t t = 1000 + i * 3, length = (int64_t)(next_random(&x) % 6);
            char st[64];
            if (wild && next_random(&x) % 40 == 0) t -= (int64_t)(next_random(&x) % 900);
            if (next_random(&x) % 20 == 0) length = (int64_t)(next_random(&x) % 400);
            if (next_random(&x) % 900 == 0) length = 9000;
            if (kind < KINDS)
                (void)snprintf(st, sizeof st, "%s%d%s", kinds[kind].before,
                               (int)(next_random(&x) % kinds[kind].range), kinds[kind].after);
            if (wild && kind == 10)
                event(&s, "ThreadpoolListener::StartRegion", t, t, "_ct=15 _c=7");
            else if (wild && kind == 11 && i < 4)
                event(&s, "ThreadpoolListener::StopRegion", t, t, "");
            else
                event(&s, kind < KINDS ? kinds[kind].name : "x", t, t + length,
                      kind < KINDS ? st : "");
        }
        end_line(&s);
    }
    begin_line(&s, 9, "markers"); // the plane has both kinds of them
    event(&s, "ThreadpoolListener::StartRegion", 1, 1, "_ct=15 _c=7");
    event(&s, "ThreadpoolListener::StopRegion", 3, 3, "");
    end_line(&s);
    end_plane(&s);
    return s.bytes;
}

// A long line that many threads read in pieces has the groups that it has when one reads it.
static void test_pieces(void) {
    static char first[1 << 20], other[1 << 20];
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(3);
    CHECK(pool);
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct xpl_buf bytes = random_space(seed, seed % 2);
        struct built a = build_with(&bytes, &serial);
        struct built b = build_with(&bytes, xpl_exec_pool_get(pool));
        for (uint32_t i = 0; i < 3; i++) {
            CHECK(i == 2 || a.xs->planes[0].lines[i].n_chunks > 2);
            line_text(&a, &a.xs->planes[0].lines[i], first, sizeof first);
            line_text(&b, &b.xs->planes[0].lines[i], other, sizeof other);
            CHECK_STR(first, other);
        }
        CHECK(!xpl_groups_empty(a.groups));
        close_it(&a);
        close_it(&b);
        xpl_buf_fini(&bytes);
    }
    xpl_exec_pool_free(pool);
}

// A chain of links across many lines, and roots inside of roots: neither may be quadratic.
static void test_deep(void) {
    enum { LINES = 20000 };
    struct space s;
    char st[64];
    begin(&s);
    begin_plane(&s, "/host:CPU");
    for (int i = LINES; i-- > 0;) {
        begin_line(&s, i, "hop");
        (void)snprintf(st, sizeof st, "_ct=2 _c=%d", i);
        event(&s, "c", 10, 20, i ? st : "_r=1");
        (void)snprintf(st, sizeof st, "_pt=2 _p=%d", i + 1);
        event(&s, "p", 11, 12, st);
        end_line(&s);
    }
    end_plane(&s);
    XPL_AUTO(close_it) struct built b = build(&s);
    expect_line(&b, 0, 0, "0 0");
    expect_line(&b, 0, LINES - 1, "0*c 0 0");
}

static void test_failures(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bytes = large_space();
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    struct xpl_xspace *xs;
    struct xpl_groups *g = NULL;
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){bytes.p, bytes.n}, &a, &exec, &xs, &err), &err);
    exec.cancelled = always_cancelled;
    CHECK_STATUS(xpl_groups_build(xs, &a, &exec, &g, &err), XPL_CANCELLED, &err);
    CHECK(g == NULL);
    exec.cancelled = NULL;
    struct xpl_arena small; // the limit holds for temporary memory, too
    for (size_t limit = 64; limit < 1 << 16; limit *= 2) {
        xpl_arena_init(&small, limit);
        const xpl_status_t st = xpl_groups_build(xs, &small, &exec, &g, &err);
        CHECK_STATUS(st, XPL_RESOURCE_EXHAUSTED, NULL);
        xpl_arena_fini(&small);
    }
    // An event that breaks while the profile is open.
    const uint8_t was = bytes.p[bytes.n / 2];
    size_t failed = 0;
    for (size_t i = 0; i < 40; i++) {
        err = (struct xpl_error){0};
        const size_t at = bytes.n / 3 + i;
        const uint8_t old = bytes.p[at];
        bytes.p[at] = 0xff;
        xpl_arena_init(&small, 1 << 24);
        const xpl_status_t st = xpl_groups_build(xs, &small, &exec, &g, &err);
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED);
        failed += st == XPL_DATA_LOSS;
        xpl_arena_fini(&small);
        bytes.p[at] = old;
    }
    CHECK(failed > 0);
    CHECK_EQ(was, bytes.p[bytes.n / 2]);
}

// Keras' batches and jax.profiler.StepTraceAnnotation in one profile: before, around, and on
// another thread.  The outer one is the step, and a number that both have is two steps.
static void test_batches_and_annotations(void) {
    struct xpl_exec exec = xpl_exec_serial();
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "warm-up", 0, 9, "_r=1 step_num=5");
    event(&s, "in", 1, 2, "");
    event(&s, "Profiled batch", 10, 19, "step_num=5");
    event(&s, "in", 11, 12, "");
    event(&s, "epoch", 20, 49, "_r=1 step_num=1");
    event(&s, "Profiled batch 6", 21, 29, "");
    event(&s, "in", 22, 23, "");
    event(&s, "Profiled batch 7", 30, 39, "");
    end_line(&s);
    begin_line(&s, 2, "other");
    event(&s, "eval", 12, 15, "_r=1 step_num=9");
    event(&s, "in", 13, 14, "");
    end_line(&s);
    end_plane(&s);
    struct built b = build_as(&s.bytes, true, &exec);
    expect_line(&b, 0, 0, "0*warm-up 5 0 1*Profiled batch 5 1 3*epoch 1 3 3 3");
    expect_line(&b, 0, 1, "2*eval 9 2");
    close_it(&b);
    b = build_as(&s.bytes, false, &exec);
    expect_line(&b, 0, 0, "0*warm-up 5 0 - - 2*epoch 1 2 2 2");
    close_it(&b);
    xpl_buf_fini(&s.bytes);
}

int main(void) {
    test_nesting();
    test_nothing();
    test_names();
    test_batches();
    test_batches_and_annotations();
    test_links();
    test_processes();
    test_crowds();
    test_cycles();
    test_distance();
    test_regions();
    test_unsorted();
    test_sorted_lines();
    test_threads_and_chunks();
    test_pieces();
    test_deep();
    test_failures();
    return 0;
}
