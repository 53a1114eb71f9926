// Grouping, scenario by scenario.  What is expected was observed of XProf 2.24.2 where its sources
// leave room.
#include "analysis/xplane/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/exec.h"
#include "tests/xspace_maker.h"

enum { US = 1000000 };

// ---- writing spaces ----

struct space {
    struct xpl_buf bytes, line;
    struct mk_plane plane;
};

static void begin(struct space *s) {
    s->bytes = mk_open();
}
static void begin_plane(struct space *s, const char *name) {
    mk_plane_begin(&s->plane, 1, name);
}
static void end_plane(struct space *s) {
    mk_plane_end(&s->plane, &s->bytes);
}
static void begin_line(struct space *s, int64_t id, const char *name) {
    s->line = mk_line(id, name);
    mk_int(&s->line, 3, 1000); // away from time 0, which means "none" to thread pools
}
static void end_line(struct space *s) {
    mk_line_end(&s->plane, &s->line);
}

// mk_plane keeps pointers to names, so they must stay.
static const char *keep(const char *name, size_t len) {
    static char names[64][32];
    for (int i = 0;; i++) {
        CHECK(i < 64 && len < sizeof names[0]);
        if (names[i][0] == 0) memcpy(names[i], name, len);
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0) return names[i];
    }
}

// An event with statistics given as "name=number name=number"; a number with a 'u' is unsigned, one
// in quotes is text.
static void event(struct space *s, const char *name, int64_t begin_us, int64_t end_us,
                  const char *stats) {
    struct xpl_buf ev = mk_event(&s->plane, name, begin_us * US, (end_us - begin_us) * US);
    while (*stats) {
        const size_t len = strcspn(stats, "=");
        const char *const stat = keep(stats, len);
        stats += len + 1;
        if (*stats == '\'') {
            char text[64] = {0};
            const size_t n = strcspn(++stats, "'");
            memcpy(text, stats, n);
            mk_stat_str(&s->plane, &ev, stat, text);
            stats += n + 1;
        } else {
            char *end;
            const long long v = strtoll(stats, &end, 10);
            struct xpl_buf st = mk_open();
            mk_int(&st, 1, mk_name(s->plane.stats, &s->plane.n_stats, stat));
            mk_int(&st, *end == 'u' ? 3 : 4, v);
            mk_close(&ev, 4, &st);
            stats = end + (*end == 'u');
        }
        stats += *stats == ' ';
    }
    mk_event_end(&s->line, &ev);
}

// Gives the plane the stat process_id.
static void set_pid(struct space *s, int64_t pid) {
    struct xpl_buf st = mk_open();
    mk_int(&st, 1, mk_name(s->plane.stats, &s->plane.n_stats, "process_id"));
    mk_int(&st, 4, pid);
    mk_close(&s->plane.body, 6, &st);
}

// ---- reading them back ----

struct built {
    struct xpl_arena arena;
    struct xpl_xspace *xs;
    struct xpl_groups *groups;
    uint8_t *bytes;
};

static struct built build_with(const struct xpl_buf *bytes, struct xpl_exec *exec) {
    struct built b = {.bytes = malloc(bytes->n + !bytes->n)};
    struct xpl_error err = {0};
    CHECK(b.bytes);
    memcpy(b.bytes, bytes->p, bytes->n);
    xpl_arena_init(&b.arena, 1 << 28);
    xpl_status_t st =
        xpl_xspace_open((xpl_bytes_t){b.bytes, bytes->n}, &b.arena, exec, &b.xs, &err);
    if (st == XPL_OK) st = xpl_groups_build(b.xs, &b.arena, exec, &b.groups, &err);
    if (st != XPL_OK) fprintf(stderr, "%s\n", err.msg);
    CHECK_EQ(st, XPL_OK);
    return b;
}
static struct built build(struct space *s) {
    struct xpl_exec exec = xpl_exec_serial();
    struct built b = build_with(&s->bytes, &exec);
    xpl_buf_fini(&s->bytes);
    return b;
}
static void close_it(struct built *b) {
    xpl_arena_fini(&b->arena);
    free(b->bytes);
}

// A reader that gives a cursor only the events it does not know of sees the same groups.
static void check_skimmer(struct xpl_group_cursor *skimmer, const struct xpl_line *line,
                          const struct xpl_event *ev, const struct xpl_event_group *want) {
    const struct xpl_group_quick *const q = xpl_group_cursor_quick(skimmer);
    struct xpl_event_group got = {.has_group = q->has_group, .group_id = q->group_id};
    if (xpl_group_quick_knows(q, ev->at, ev->md, (uint64_t)xpl_event_begin_ps(line, ev),
                              (uint64_t)xpl_event_end_ps(line, ev))) {
        CHECK(!want->has_step_name && !(want->has_is_eager && want->is_eager));
    } else {
        xpl_group_cursor_next(skimmer, ev, &got);
        CHECK(got.has_step_name == want->has_step_name && got.is_eager == want->is_eager);
    }
    CHECK(got.has_group == want->has_group && (!got.has_group || got.group_id == want->group_id));
}

// The line's groups as text: "0 0 - 1", with "*name" after an event that has a step name and "e" or
// "c" after one known to run eagerly or not.
static void line_text(const struct built *b, const struct xpl_line *line, char *to, size_t room) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    struct xpl_group_cursor *g, *skimmer;
    struct xpl_error err = {0};
    struct xpl_arena a;
    size_t n = 0;
    xpl_arena_init(&a, 1 << 24);
    CHECK_EQ(xpl_group_cursor_new(b->groups, line, &a, &g, &err), XPL_OK);
    CHECK_EQ(xpl_group_cursor_new(b->groups, line, &a, &skimmer, &err), XPL_OK);
    xpl_events_begin(&c, line);
    to[0] = 0;
    while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
        struct xpl_event_group eg;
        size_t n_regions;
        xpl_group_cursor_next(g, &ev, &eg);
        check_skimmer(skimmer, line, &ev, &eg);
        const struct xpl_region_event *const r = xpl_group_cursor_regions(g, &n_regions);
        for (size_t i = 0; i < n_regions; i++)
            n += (size_t)snprintf(to + n, room - n, "%sR%" PRId64 ":%" PRId64, n ? " " : "",
                                  r[i].group_id, r[i].duration_ps / US);
        n += (size_t)snprintf(to + n, room - n, "%s", n ? " " : "");
        n += eg.has_group ? (size_t)snprintf(to + n, room - n, "%" PRId64, eg.group_id)
                          : (size_t)snprintf(to + n, room - n, "-");
        if (eg.has_step_name)
            n += (size_t)snprintf(to + n, room - n, "*%.*s", XPL_STR_FMT(eg.step_name));
        if (eg.has_is_eager) n += (size_t)snprintf(to + n, room - n, eg.is_eager ? "e" : "c");
        CHECK(n < room);
    }
    CHECK(xpl_group_cursor_ok(g));
    xpl_arena_fini(&a);
}

static void expect_line(const struct built *b, uint32_t plane, uint32_t line, const char *want) {
    char got[8192];
    line_text(b, &b->xs->planes[plane].lines[line], got, sizeof got);
    if (strcmp(got, want)) {
        fprintf(stderr, "plane %u line %u: '%s', wanted '%s'\n", plane, line, got, want);
        abort();
    }
}

static void expect_steps(const struct built *b, uint32_t plane, const char *want) {
    char got[8192] = "";
    size_t n_steps, n = 0;
    const struct xpl_step_event *const s =
        xpl_groups_steps(b->groups, &b->xs->planes[plane], &n_steps);
    for (size_t i = 0; i < n_steps; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%.*s[%" PRId64 "+%" PRId64 "]%.*s:%d",
                              n ? " " : "", XPL_STR_FMT(s[i].name), s[i].begin_ps / US - 1,
                              s[i].duration_ps / US, XPL_STR_FMT(s[i].step_name),
                              s[i].has_group ? (int)s[i].group_id : -1);
    if (strcmp(got, want)) {
        fprintf(stderr, "steps: '%s', wanted '%s'\n", got, want);
        abort();
    }
}

// ---- within a line ----

static void test_nesting(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "before", 0, 5, "");
    event(&s, "train", 10, 50, "_r=1 step_num=7");
    event(&s, "inside", 10, 50, ""); // bounds count as inside
    event(&s, "deeper", 20, 30, "");
    event(&s, "overlaps", 45, 55, ""); // closes train
    event(&s, "late", 46, 47, "");
    event(&s, "train", 60, 90, "_r=1");
    event(&s, "train", 70, 80, "_r=1"); // same level, inside: no group of its own
    event(&s, "other", 75, 76, "_r=2"); // another level: its own
    event(&s, "x", 75, 76, "");
    event(&s, "async root", 85, 86, "_r=1 _a=1");
    event(&s, "x", 85, 86, ""); // in train, not in the asynchronous one
    event(&s, "async", 87, 88, "_a=1");
    event(&s, "not async", 87, 88, "_a=0");
    event(&s, "unsigned root", 100, 110, "_r=1u"); // level 0
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    // Level 2 comes first, then level 1 in the order of time, then level 0.
    expect_line(&b, 0, 0,
                "- 1*train 7 1 1 - - 2*train 2 2 0*other 0 0 3*async root 3 2 - 2 "
                "4*unsigned root 4");
    CHECK(xpl_str_eq(xpl_groups_name(b.groups, 1), XPL_STR("train 7")));
    CHECK_EQ(xpl_groups_name(b.groups, 5).len, 0);
    CHECK_EQ(xpl_groups_name(b.groups, -1).len, 0);
    CHECK(!xpl_groups_empty(b.groups));
    close_it(&b);
}

static void test_nothing(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "a", 0, 9, "_pt=1 _p=1");
    event(&s, "b", 10, 19, "_ct=1 _c=1");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 1, "stream");
    event(&s, "k", 0, 9, "correlation_id=1");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    CHECK(xpl_groups_empty(b.groups));
    expect_line(&b, 0, 0, "- -");
    expect_line(&b, 1, 0, "-");
    expect_steps(&b, 1, "");
    close_it(&b);
}

static void test_names(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "outer", 0, 9, "graph_type='eval' iter_num=5 step_num=4");
    event(&s, "root", 1, 8, "_r=1 step_num=3");
    event(&s, "FunctionRun", 10, 19, "_r=1"); // implicit: a number alone, and no step name
    event(&s, "FunctionRun", 20, 29, "_r=1 graph_type='train'");
    event(&s, "TraceContext", 30, 39, "");
    event(&s, "BatchingSessionRun", 40, 49, "_r=9"); // level 1 whatever it says
    event(&s, "ProcessBatch", 50, 59, "");           // level 2
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0,
                "- 1*eval 5 2 3 4*TraceContext 4 5*BatchingSessionRun 5 0*ProcessBatch 0");
    CHECK(xpl_str_eq(xpl_groups_name(b.groups, 2), XPL_STR("2")));
    CHECK(xpl_str_eq(xpl_groups_name(b.groups, 3), XPL_STR("train 3")));
    close_it(&b);
}

// ---- between lines ----

static void test_links(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
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
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "0*train 0 0 0 0 0 - 1*train 1 1 1");
    expect_line(&b, 0, 1, "0 0 0 0 - 0 - - 1 - -");
    expect_line(&b, 0, 2, "0 0 0");
    close_it(&b);
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
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "0*train 0 0 0 0 0 - 0 0");
    expect_line(&b, 1, 0, "- 0 0");
    close_it(&b);
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
    struct built b = build(&s);
    const struct xpl_plane *const p = &b.xs->planes[0];
    line_text(&b, &p->lines[1], first, sizeof first);
    CHECK(first[0] == '-');
    line_text(&b, &p->lines[3], first, sizeof first);
    CHECK(first[0] == '1');
    line_text(&b, &p->lines[5], first, sizeof first);
    CHECK(first[0] == '2');
    close_it(&b);
}

static void test_cycles(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "own parent", 0, 9, "_r=1 _pt=1 _p=1 _ct=1 _c=1"); // never starts a group
    event(&s, "ring", 10, 19, "_r=1 _pt=1 _p=2 _ct=1 _c=3");
    event(&s, "ring", 20, 29, "_r=1 _pt=1 _p=3 _ct=1 _c=2"); // each is the other's parent
    event(&s, "root", 30, 39, "_r=1");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "- - - 0*root 0");
    close_it(&b);
}

// The nearest ancestor names a group; plain events in between count as distance.
static void test_distance(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "far", 0, 100, "iter_num=1");
    event(&s, "plain", 1, 99, "");
    event(&s, "plain", 2, 98, "");
    event(&s, "root", 3, 97, "_r=1 _ct=2 _c=1");
    end_line(&s);
    begin_line(&s, 2, "second");
    event(&s, "near", 0, 9, "iter_num=2");
    event(&s, "p", 1, 2, "_pt=2 _p=1");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "- - - 0*root 2");
    close_it(&b);
}

// ---- thread pools ----

static void test_regions(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
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
    begin_line(&s, 4, "closes"); // a region that overlaps closes what it is not inside of
    event(&s, "train", 0, 25, "_r=1");
    event(&s, "ThreadpoolListener::StartRegion", 20, 20, "_ct=15 _c=1");
    event(&s, "work", 22, 24, "");
    event(&s, "ThreadpoolListener::StopRegion", 30, 30, "");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 1, "0 - -");
    // The start at 20 ends with the next start; 60 belongs to no region that counts.
    expect_line(&b, 0, 2, "1*train 1 R1:40 R1:20 R1:10 1 1 1 1 1");
    expect_line(&b, 0, 3, "2*train 2 - - -");
    close_it(&b);
}

// A line with regions is sorted first, which may change what lies in what.
static void test_unsorted(void) {
    for (int regions = 0; regions < 2; regions++) {
        struct space s;
        begin(&s);
        begin_plane(&s, "/host:CPU");
        begin_line(&s, 1, "pool");
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
        end_line(&s);
        end_plane(&s);
        struct built b = build(&s);
        expect_line(&b, 0, 0, regions ? "R0:10 0 0*train 0 0 0 0" : "- 0*train 0 0 0");
        expect_line(&b, 0, 1, regions ? "1*train 1 - - -" : "1*train 1 1 1");
        close_it(&b);
    }
}

// Whoever needs upstream's order of a line's events gets their ranks.
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
    struct built b = build(&s);
    const struct xpl_line *const l = b.xs->planes[0].lines;
    struct xpl_error err = {0};
    uint64_t *ranks;
    CHECK(!xpl_groups_sorts_line(b.groups, &l[0])); // in order
    CHECK(!xpl_groups_sorts_line(b.groups, &l[1])); // no region without an id
    CHECK(!xpl_groups_sorts_line(b.groups, &l[2]));
    CHECK(xpl_groups_sorts_line(b.groups, &l[3])); // the longer comes first
    CHECK_EQ(xpl_groups_sorted_ranks(b.groups, &l[3], &b.arena, &ranks, &err), XPL_OK);
    CHECK(ranks[0] == 1 && ranks[1] == 2); // the region comes before its StartRegion
    CHECK(ranks[2] == 4 && ranks[3] == 3 && ranks[4] == 5);
    close_it(&b);
}

// ---- TensorFlow ----

static void test_executors(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 100, "_r=1");
    event(&s, "ExecutorState::Process", 10, 20, "id=1 iter_num=0");
    event(&s, "ExecutorState::Process", 30, 40, "id=2 iter_num=0");
    end_line(&s);
    begin_line(&s, 2, "other");
    event(&s, "ExecutorState::Process", 10, 20, "id=2 iter_num=0"); // the last one counts
    end_line(&s);
    begin_line(&s, 3, "input");
    event(&s, "IteratorGetNextOp::DoCompute", 10, 20, "id=1 iter_num=0");
    event(&s, "in", 11, 12, "");
    event(&s, "IteratorGetNextAsOptionalOp::DoCompute", 30, 40, "id=2 iter_num=0");
    event(&s, "IteratorGetNextOp::DoCompute", 50, 60, "id=1");
    event(&s, "IteratorGetNextOp::DoCompute", 70, 80, "id=1 iter_num=1");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 2, "0 0 - - -");
    close_it(&b);
}

static void test_tf_data_steps(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "InstantiatedCapturedFunction::Run", 0, 5, "id=9");
    event(&s, "FunctionRun", 10, 20, "_r=1 id=9"); // tf.data's own
    event(&s, "FunctionRun", 30, 40, "_r=1 id=8");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "- - 0");
    close_it(&b);
}

static void test_loops(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 5, "_r=1"); // loops replace other roots
    event(&s, "InstantiatedCapturedFunction::RunAsync", 6, 7, "id=3");
    event(&s, "ExecutorState::Process", 30, 39, "id=1 iter_num=1");
    event(&s, "ExecutorState::Process", 10, 19, "id=1 iter_num=0");
    event(&s, "ExecutorState::Process", 40, 49,
          "id=1 iter_num=1"); // with the first of its iteration
    event(&s, "in", 41, 42, "");
    event(&s, "ExecutorState::Process", 50, 59, "id=2 iter_num=0"); // no loop
    event(&s, "ExecutorState::Process", 60, 69, "id=3 iter_num=4"); // tf.data's
    event(&s, "ExecutorState::Process", 70, 79, "id=4 iter_num=5"); // a loop of one iteration
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "- - 1 0 1 1 - - 2");
    CHECK(xpl_str_eq(xpl_groups_name(b.groups, 2), XPL_STR("5")));
    close_it(&b);
    begin(&s); // loop ops forbid all grouping
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 5, "_r=1");
    event(&s, "WhileOp-StartBody", 1, 2, "");
    end_line(&s);
    end_plane(&s);
    b = build(&s);
    CHECK(xpl_groups_empty(b.groups));
    expect_line(&b, 0, 0, "- -");
    close_it(&b);
}

static void test_eager(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "EagerExecute", 0, 9, "is_func=0");
    event(&s, "a:MatMul", 1, 2, "");
    event(&s, "launch", 3, 4, "correlation_id=1");
    event(&s, "p", 5, 6, "_pt=2 _p=1");
    event(&s, "EagerExecute", 10, 19, "is_func=1");
    event(&s, "a:MatMul", 11, 12, "");
    event(&s, "launch", 13, 14, "correlation_id=2");
    event(&s, "EagerExecute", 20, 29, "");
    event(&s, "a:MatMul", 21, 22, "");
    event(&s, "a:MatMul", 30, 31, "");
    end_line(&s);
    begin_line(&s, 2, "pool");
    event(&s, "c", 50, 60, "_ct=2 _c=1");
    event(&s, "b:Add", 51, 52, "");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 1, "stream");
    event(&s, "k", 0, 9, "correlation_id=1");
    event(&s, "k", 10, 19, "correlation_id=2");
    event(&s, "k", 20, 29, "correlation_id=3");
    event(&s, "m", 30, 39, "");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "- -e - - - -c - - -c -c");
    expect_line(&b, 0, 1, "- -e");
    expect_line(&b, 1, 0, "-e -c -c -");
    close_it(&b);
}

// The events of an iteration are children of its first one, which may run eagerly.
static void test_eager_loop(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "EagerExecute", 0, 90, "is_func=0");
    event(&s, "p", 1, 2, "_pt=2 _p=1");
    end_line(&s);
    begin_line(&s, 2, "pool");
    event(&s, "ExecutorState::Process", 10, 20, "id=1 iter_num=2 _ct=2 _c=1");
    end_line(&s);
    begin_line(&s, 3, "pool");
    event(&s, "ExecutorState::Process", 10, 30, "id=1 iter_num=2");
    event(&s, "a:MatMul", 11, 12, "");
    event(&s, "ExecutorState::Process", 40, 50, "id=1 iter_num=3");
    event(&s, "a:MatMul", 41, 42, "");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 2, "0 0e 1 1c");
    close_it(&b);
}

// What a kernel says of itself is overwritten, unless nothing at all is grouped.
static void test_eager_kernels(void) {
    for (int loop_op = 0; loop_op < 2; loop_op++) {
        struct space s;
        begin(&s);
        begin_plane(&s, "/device:GPU:0");
        begin_line(&s, 1, "stream");
        event(&s, "k", 0, 9, "correlation_id=1 is_eager=1");
        event(&s, "k", 10, 19, "is_eager=1");
        event(&s, "a:Op", 20, 29, "correlation_id=2 is_eager=1");
        end_line(&s);
        end_plane(&s);
        begin_plane(&s, "/host:CPU");
        begin_line(&s, 1, "main");
        event(&s, loop_op ? "WhileOp-StartBody" : "x", 0, 1, "");
        end_line(&s);
        end_plane(&s);
        struct built b = build(&s);
        expect_line(&b, 0, 0, loop_op ? "-e -e -e" : "-c -e -c");
        close_it(&b);
    }
}

// ---- GPU ----

static void gpu_host(struct space *s) {
    begin_plane(s, "/host:CPU");
    begin_line(s, 1, "main");
    event(s, "train", 0, 50, "_r=1 step_num=0");
    event(s, "launch", 1, 2, "correlation_id=1");
    event(s, "launch", 3, 4, "correlation_id=2");
    event(s, "train", 60, 90, "_r=1 step_num=1");
    event(s, "launch", 61, 62, "correlation_id=3");
    event(s, "launch", 63, 64, "correlation_id=2"); // of equal ids the last counts
    event(s, "a:Op", 65, 66, "correlation_id=5");   // an op of TensorFlow launches nothing
    event(s, "launch", 95, 96, "correlation_id=4");
    end_line(s);
    end_plane(s);
}

static void test_gpu(void) {
    struct space s;
    begin(&s);
    gpu_host(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 10, "stream 10");
    event(&s, "first", 100, 101, "");
    event(&s, "k", 110, 120, "correlation_id=1");
    event(&s, "in", 111, 112, "");
    event(&s, "copy", 130, 131, ""); // gets the group of what came before it
    event(&s, "k", 150, 160, "correlation_id=3");
    event(&s, "k", 170, 180, "correlation_id=1"); // a third run
    end_line(&s);
    begin_line(&s, 11, "stream 11");
    event(&s, "k", 105, 106, "correlation_id=4"); // launched outside of all steps
    event(&s, "k", 125, 128, "correlation_id=2");
    event(&s, "k", 129, 149, "correlation_id=5");
    event(&s, "k", 200, 210, "correlation_id=77");
    end_line(&s);
    begin_line(&s, -559038737, "Steps"); // derived before: keeps its events
    event(&s, "old", 5, 6, "");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 1, 0, "- 0c 0 1 1c 0c");
    expect_line(&b, 1, 1, "-c 1c 1c 0c");
    expect_steps(&b, 1, "old[5+1]:-1 0[110+10]train 0:0 1[125+35]train 1:1 0[170+40]train 0:0");
    CHECK(xpl_groups_replaces_line(b.groups, &b.xs->planes[1].lines[2]));
    CHECK(!xpl_groups_replaces_line(b.groups, &b.xs->planes[1].lines[0]));
    expect_steps(&b, 0, "");
    close_it(&b);
}

static void test_gpu_unsorted(void) {
    struct space s;
    begin(&s);
    gpu_host(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 10, "stream");
    event(&s, "k", 150, 160, "correlation_id=3");
    event(&s, "k", 110, 120, "correlation_id=1");
    event(&s, "copy", 170, 171, "");
    event(&s, "copy", 130, 131, "");
    end_line(&s);
    begin_line(&s, 11, "equal times"); // the shorter comes first
    event(&s, "k", 300, 310, "correlation_id=1");
    end_line(&s);
    begin_line(&s, 12, "equal times");
    event(&s, "k", 300, 305, "correlation_id=3");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 1, 0, "1c 0c 1 0");
    expect_steps(&b, 1, "0[110+21]train 0:0 1[150+155]train 1:1 0[300+10]train 0:0");
    close_it(&b);
}

// Kernels that enclose what passes a group on.
static void test_gpu_nodes(void) {
    struct space s;
    begin(&s);
    gpu_host(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 10, "stream");
    event(&s, "k", 110, 140, "correlation_id=3");
    event(&s, "k", 115, 130, "correlation_id=1");
    event(&s, "p", 120, 121, "_pt=2 _p=1");
    event(&s, "k root", 150, 160, "correlation_id=77 _r=1");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/host:other");
    begin_line(&s, 1, "main");
    event(&s, "c", 200, 210, "_ct=2 _c=1");
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 1, 0, "1c 0c 0 2*k root 2c");
    expect_line(&b, 2, 0, "0");
    close_it(&b);
}

// ---- TPU ----

static void tpu_core(struct space *s, const char *name, bool steps) {
    begin_plane(s, name);
    if (steps) {
        begin_line(s, 1, "Steps");
        event(s, "0", 0, 100, "step_idle_time_ps=10");
        event(s, "1", 110, 200, "step_idle_time_ps=5 device_offset_ps=7u device_duration_ps=9u");
        event(s, "2", 200, 300, "");
        end_line(s);
    }
    begin_line(s, 2, "XLA Modules");
    event(s, "jit_f(1)", 0, 90, "run_id=1 queue_id=0");
    event(s, "jit_f(1)", 110, 190, "run_id=2 queue_id=0");
    event(s, "jit_f(1)", 200, 290, "run_id=3 queue_id=0");
    end_line(s);
    begin_line(s, 3, "XLA Ops");
    event(s, "op", 0, 10, "");
    event(s, "op", 90, 91, "");
    event(s, "op", 101, 102, ""); // between steps
    event(s, "op", 120, 130, "");
    event(s, "op", 195, 205, "");
    event(s, "op", 250, 260, "");
    event(s, "op", 400, 410, "");
    end_line(s);
    end_plane(s);
}

// No host step: the cores count on their own, in lock step.
static void test_tpu_lock_step(void) {
    struct space s;
    begin(&s);
    tpu_core(&s, "/device:TPU:0", true);
    tpu_core(&s, "/device:TPU:1", false);
    tpu_core(&s, "/device:TPU:0 SparseCore 1", true);
    tpu_core(&s, "/device:TPU:x", true); // no core
    struct built b = build(&s);
    expect_steps(&b, 0, "0[0+100]0:0 1[110+90]1:1 2[200+100]2:2");
    expect_line(&b, 0, 1, "0 1 1"); // module 3 touches the end of step 1, which was looked at last
    expect_line(&b, 0, 2, "0 0 - 1 1 2 -");
    CHECK(xpl_groups_replaces_line(b.groups, &b.xs->planes[0].lines[0]));
    CHECK(!xpl_groups_replaces_line(b.groups, &b.xs->planes[0].lines[1]));
    expect_line(&b, 1, 0, "0 1 2");
    expect_line(&b, 1, 1, "0 0 - 1 2 2 -");
    expect_steps(&b, 1, "");
    expect_steps(&b, 2, "0[0+100]:-1 1[110+90]:-1 2[200+100]:-1"); // sparse cores do not count
    expect_line(&b, 2, 1, "- - -");
    expect_steps(&b, 3, "0[0+100]:-1 1[110+90]:-1 2[200+100]:-1");
    close_it(&b);
}

// The host's launches group modules, and through them the steps that enclose them.
static void test_tpu_host_steps(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    set_pid(&s, 5);
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 50, "_r=1 step_num=10");
    event(&s, "DoEnqueueProgram", 1, 2, "device_ordinal=0 queue_id=0 run_id=134217729"); // 27 bits
    event(&s, "DoEnqueueProgram", 3, 4, "device_ordinal=0 queue_id=0 run_id=2");
    event(&s, "DoEnqueueProgram", 5, 6, "device_ordinal=1 queue_id=0 run_id=3");
    event(&s, "EnqueueRequestLocked", 7, 8, "request_id=4 queue_addr=5");
    end_line(&s);
    begin_line(&s, 2, "callbacks");
    event(&s, "CompleteCallbacks", 60, 70, "device_ordinal=0 queue_id=0 run_id=1 core_type=0");
    event(&s, "in", 61, 62, "");
    event(&s, "TransferH2DRequest", 80, 81, "request_id=4 queue_addr=5");
    event(&s, "TransferH2DRequest", 82, 83, "request_id=4");
    end_line(&s);
    end_plane(&s);
    tpu_core(&s, "/device:TPU:0", true);
    struct built b = build(&s);
    expect_line(&b, 0, 1, "0 0 0 -");
    // Steps 0 and 1 merge; step 2 has no group and goes.
    expect_steps(&b, 1, "0[0+200]train 10:0");
    size_t n;
    const struct xpl_step_event *const step = xpl_groups_steps(b.groups, &b.xs->planes[1], &n);
    CHECK(step->has_idle_time && step->step_idle_time_ps == 15 && !step->has_device_time);
    CHECK(step->line == &b.xs->planes[1].lines[0] && step->ev.index == 0);
    expect_line(&b, 1, 1, "0 0 0"); // the third touches the merged step
    expect_line(&b, 1, 2, "0 0 0 0 0 - -");
    close_it(&b);
}

static void test_tpu_merge(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 10, "_r=1 step_num=4");
    event(&s, "p", 1, 2, "_pt=2 _p=1");
    event(&s, "train", 20, 30, "_r=1 step_num=5");
    event(&s, "p", 21, 22, "_pt=2 _p=2");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:TPU:0");
    begin_line(&s, 1, "Steps");
    event(&s, "a", 0, 10, "_ct=2 _c=1 device_offset_ps=100 device_duration_ps=10");
    event(&s, "b", 20, 30, "_ct=2 _c=1 device_offset_ps=90u device_duration_ps=40u");
    event(&s, "gone", 40, 50, "");
    event(&s, "c", 60, 70, "_ct=2 _c=1 step_idle_time_ps=3"); // not a neighbour any more
    event(&s, "d", 80, 90, "_ct=2 _c=2 step_name='own'");
    end_line(&s);
    begin_line(&s, 3, "XLA Ops");          // credits its links to the step around it
    event(&s, "op", 62, 63, "_ct=2 _c=2"); // the step has the earlier group already
    event(&s, "op", 95, 96, "_ct=2 _c=1"); // in no step
    end_line(&s);
    end_plane(&s);
    struct built b = build(&s);
    expect_steps(&b, 1, "a[0+30]train 4:0 c[60+10]train 4:0 d[80+10]own:1");
    size_t n;
    const struct xpl_step_event *const v = xpl_groups_steps(b.groups, &b.xs->planes[1], &n);
    CHECK(v[0].has_device_time && v[0].device_offset_ps == 90 && v[0].device_duration_ps == 40);
    CHECK(v[0].step_idle_time_ps == 0 && v[1].step_idle_time_ps == 3);
    CHECK(v[2].step_idle_time_ps == 3); // carried over, as upstream does
    expect_line(&b, 1, 1, "0 -");
    close_it(&b);
}

// ---- profiles that bring groups ----

static void test_own_groups(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU"); // not grouped: a device plane knows no groups
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 50, "_r=1 group_id=9");
    event(&s, "x", 60, 61, "group_id=8 step_name='mine' is_eager=1");
    event(&s, "y", 70, 71, "");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:GPU:0");
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "0*train 0 8*minee -");
    close_it(&b);
    begin(&s); // grouped: left as it is
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 50, "_r=1 group_id=9");
    event(&s, "x", 1, 2, "");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:TPU:0");
    begin_line(&s, 1, "Steps");
    event(&s, "1", 0, 50, "group_id=3 step_name='three'");
    event(&s, "2", 50, 60, "");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "Task Environment"); // neither host nor device
    end_plane(&s);
    b = build(&s);
    expect_line(&b, 0, 0, "9 -");
    expect_steps(&b, 1, "1[0+50]three:3 2[50+10]:-1");
    CHECK(xpl_groups_replaces_line(b.groups, &b.xs->planes[1].lines[0]));
    close_it(&b);
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
    struct xpl_arena a;
    struct xpl_error err = {0};
    struct xpl_group_cursor *whole, *part;
    struct xpl_event_cursor c, all;
    struct xpl_event ev, same;
    xpl_arena_init(&a, 1 << 24);
    CHECK(line->n_chunks > 1 && xpl_groups_can_start_at_chunk(b->groups, line));
    CHECK_EQ(xpl_group_cursor_new(b->groups, line, &a, &whole, &err), XPL_OK);
    xpl_events_begin(&all, line);
    for (uint32_t i = 0; i < line->n_chunks; i++) {
        CHECK_EQ(xpl_group_cursor_new_at(b->groups, line, i, &a, &part, &err), XPL_OK);
        xpl_events_begin_chunk(&c, line, i);
        while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
            struct xpl_event_group p, w;
            CHECK(xpl_events_next(&all, &same) == XPL_WIRE_FIELD && same.index == ev.index);
            xpl_group_cursor_next(part, &ev, &p);
            xpl_group_cursor_next(whole, &same, &w);
            CHECK(p.has_group == w.has_group && p.group_id == w.group_id);
            CHECK(p.has_step_name == w.has_step_name);
        }
    }
    xpl_arena_fini(&a);
}

static void test_threads_and_chunks(void) {
    struct xpl_buf bytes = large_space();
    static char first[1 << 20], other[1 << 20];
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(4);
    CHECK(pool);
    struct built a = build_with(&bytes, &serial);
    struct built b = build_with(&bytes, xpl_exec_pool_get(pool));
    for (uint32_t i = 0; i < 3; i++) {
        line_text(&a, &a.xs->planes[0].lines[i], first, sizeof first);
        line_text(&b, &b.xs->planes[0].lines[i], other, sizeof other);
        CHECK(strcmp(first, other) == 0);
        CHECK(strstr(first, "- ") && strstr(first, "1 "));
        check_chunks(&a, &a.xs->planes[0].lines[i]);
    }
    close_it(&a);
    close_it(&b);
    xpl_exec_pool_free(pool);
    xpl_buf_fini(&bytes);
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
            CHECK(strcmp(first, other) == 0);
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
    struct built b = build(&s);
    expect_line(&b, 0, 0, "0 0");
    expect_line(&b, 0, LINES - 1, "0*c 0 0");
    close_it(&b);
}

static bool always(struct xpl_exec *e) {
    (void)e;
    return true;
}

static void test_failures(void) {
    struct xpl_buf bytes = large_space();
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_arena a;
    struct xpl_xspace *xs;
    struct xpl_groups *g = NULL;
    xpl_arena_init(&a, 1 << 24);
    CHECK_EQ(xpl_xspace_open((xpl_bytes_t){bytes.p, bytes.n}, &a, &exec, &xs, &err), XPL_OK);
    exec.cancelled = always;
    CHECK_EQ(xpl_groups_build(xs, &a, &exec, &g, &err), XPL_CANCELLED);
    CHECK(g == NULL);
    exec.cancelled = NULL;
    struct xpl_arena small; // the limit holds for what is temporary, too
    for (size_t limit = 64; limit < 1 << 16; limit *= 2) {
        xpl_arena_init(&small, limit);
        const xpl_status_t st = xpl_groups_build(xs, &small, &exec, &g, &err);
        CHECK(st == XPL_RESOURCE_EXHAUSTED);
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
    CHECK(failed > 0 && was == bytes.p[bytes.n / 2]);
    xpl_arena_fini(&a);
    xpl_buf_fini(&bytes);
}

int main(void) {
    test_nesting();
    test_nothing();
    test_names();
    test_links();
    test_processes();
    test_crowds();
    test_cycles();
    test_distance();
    test_regions();
    test_unsorted();
    test_sorted_lines();
    test_executors();
    test_tf_data_steps();
    test_loops();
    test_eager();
    test_eager_loop();
    test_eager_kernels();
    test_gpu();
    test_gpu_unsorted();
    test_gpu_nodes();
    test_tpu_lock_step();
    test_tpu_host_steps();
    test_tpu_merge();
    test_own_groups();
    test_threads_and_chunks();
    test_pieces();
    test_deep();
    test_failures();
    return 0;
}
