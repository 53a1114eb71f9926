// SPDX-License-Identifier: Apache-2.0
// Spaces written event by event, and their groups read back as text.
#ifndef XPL_TESTS_UNIT_GROUPING_GROUPS_FIXTURE_H_
#define XPL_TESTS_UNIT_GROUPING_GROUPS_FIXTURE_H_

#include <stdlib.h>
#include <string.h>

#include "analysis/grouping/groups.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/xspace_maker.h"

enum { US = 1000000 };

// ---- writing spaces ----

struct space {
    struct xpl_buf bytes, line;
    struct mk_plane plane;
};

static inline void begin(struct space *s) {
    s->bytes = mk_open();
}
static inline void begin_plane(struct space *s, const char *name) {
    mk_plane_begin(&s->plane, 1, name);
}
static inline void end_plane(struct space *s) {
    mk_plane_end(&s->plane, &s->bytes);
}
static inline void begin_line(struct space *s, int64_t id, const char *name) {
    s->line = mk_line(id, name);
    mk_int(&s->line, 3, 1000); // away from time 0, which means "none" to thread pools
}
static inline void end_line(struct space *s) {
    mk_line_end(&s->plane, &s->line);
}
// A space of which the first line is open.
static inline void begin_with_line(struct space *s, const char *plane, int64_t id,
                                   const char *name) {
    begin(s);
    begin_plane(s, plane);
    begin_line(s, id, name);
}

// mk_plane keeps pointers to names, so they must stay.
static inline const char *copy_name(const char *name, size_t len) {
    static char names[64][32];
    for (int i = 0;; i++) {
        CHECK(i < 64 && len < sizeof names[0]);
        if (names[i][0] == 0) memcpy(names[i], name, len);
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0) return names[i];
    }
}

// An event with statistics given as "name=number name=number"; a number with a 'u' is unsigned, one
// in quotes is text.
static inline void event(struct space *s, const char *name, int64_t begin_us, int64_t end_us,
                         const char *stats) {
    struct xpl_buf ev = mk_event(&s->plane, name, begin_us * US, (end_us - begin_us) * US);
    while (*stats) {
        const size_t len = strcspn(stats, "=");
        const char *const stat = copy_name(stats, len);
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
static inline void set_pid(struct space *s, int64_t pid) {
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

static inline struct built build_as(const struct xpl_buf *bytes, bool batches,
                                    struct xpl_exec *exec) {
    struct built b = {.bytes = malloc(bytes->n + !bytes->n)};
    const struct xpl_group_options opt = {.batches = batches};
    struct xpl_error err = {0};
    CHECK(b.bytes);
    memcpy(b.bytes, bytes->p, bytes->n);
    xpl_arena_init(&b.arena, 1 << 28);
    xpl_status_t st =
        xpl_xspace_open((xpl_bytes_t){b.bytes, bytes->n}, &b.arena, exec, &b.xs, &err);
    if (st == XPL_OK) st = xpl_groups_build_with(b.xs, &opt, &b.arena, exec, &b.groups, &err);
    if (st != XPL_OK) fprintf(stderr, "%s\n", err.msg);
    CHECK_OK(st, NULL);
    return b;
}
static inline struct built build_with(const struct xpl_buf *bytes, struct xpl_exec *exec) {
    return build_as(bytes, false, exec);
}
static inline struct built build(struct space *s) {
    struct xpl_exec exec = xpl_exec_serial();
    struct built b = build_with(&s->bytes, &exec);
    xpl_buf_fini(&s->bytes);
    return b;
}
// Ends the last line and plane first.
static inline struct built end_and_build(struct space *s) {
    end_line(s);
    end_plane(s);
    return build(s);
}
static inline void close_it(struct built *b) {
    xpl_arena_fini(&b->arena);
    free(b->bytes);
}

// A reader that gives a cursor only the events it does not know of sees the same groups.
static inline void check_skimmer(struct xpl_group_cursor *skimmer, const struct xpl_line *line,
                                 const struct xpl_event *ev,
                                 const struct xpl_event_group *expected) {
    const struct xpl_group_quick *const q = xpl_group_cursor_quick(skimmer);
    struct xpl_event_group got = {.has_group = q->has_group, .group_id = q->group_id};
    if (xpl_group_quick_knows(q, ev->at, ev->md, (uint64_t)xpl_event_begin_ps(line, ev),
                              (uint64_t)xpl_event_end_ps(line, ev))) {
        CHECK(!expected->has_step_name && !(expected->has_is_eager && expected->is_eager));
    } else {
        xpl_group_cursor_next(skimmer, ev, &got);
        CHECK_EQ(got.has_step_name, expected->has_step_name);
        CHECK_EQ(got.is_eager, expected->is_eager);
    }
    CHECK_EQ(got.has_group, expected->has_group);
    CHECK((!got.has_group || got.group_id == expected->group_id));
}

// The line's groups as text: "0 0 - 1", with "*name" after an event that has a step name and "e" or
// "c" after one known to run eagerly or not.
static inline void line_text(const struct built *b, const struct xpl_line *line, char *to,
                             size_t room) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    struct xpl_group_cursor *g, *skimmer;
    struct xpl_error err = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    size_t n = 0;
    CHECK_OK(xpl_group_cursor_new(b->groups, line, &a, &g, &err), &err);
    CHECK_OK(xpl_group_cursor_new(b->groups, line, &a, &skimmer, &err), &err);
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
}

static inline void expect_line(const struct built *b, uint32_t plane, uint32_t line,
                               const char *expected) {
    char got[8192];
    line_text(b, &b->xs->planes[plane].lines[line], got, sizeof got);
    if (strcmp(got, expected)) {
        fprintf(stderr, "plane %u line %u: '%s', expected '%s'\n", plane, line, got, expected);
        abort();
    }
}

static inline void expect_steps(const struct built *b, uint32_t plane, const char *expected) {
    char got[8192] = "";
    size_t n_steps, n = 0;
    const struct xpl_step_event *const s =
        xpl_groups_steps(b->groups, &b->xs->planes[plane], &n_steps);
    for (size_t i = 0; i < n_steps; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%.*s[%" PRId64 "+%" PRId64 "]%.*s:%d",
                              n ? " " : "", XPL_STR_FMT(s[i].name), s[i].begin_ps / US - 1,
                              s[i].duration_ps / US, XPL_STR_FMT(s[i].step_name),
                              s[i].has_group ? (int)s[i].group_id : -1);
    if (strcmp(got, expected)) {
        fprintf(stderr, "steps: '%s', expected '%s'\n", got, expected);
        abort();
    }
}

#endif
