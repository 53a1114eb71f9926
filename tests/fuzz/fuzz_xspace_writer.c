// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes choose the fields to write; the reader must give back the same. Ids of metadata
// are declared once in a plane, as a map has them; events and statistics may use any.
#include <stdlib.h>
#include <string.h>

#include "analysis/xplane/writer.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/vec.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IDS = 64, MAX_OPS = 1 << 14 };

// ---- the script: bytes as values ----

struct script {
    const uint8_t *p, *end;
};

static unsigned next_byte(struct script *s) {
    return s->p < s->end ? *s->p++ : 0;
}

// A number of up to eight bytes, of either sign.
static uint64_t next_number(struct script *s) {
    const unsigned how = next_byte(s);
    uint64_t v = 0;
    for (unsigned i = 0; i < (how & 15) && i < 8; i++)
        v = v << 8 | next_byte(s);
    return how & 16 ? ~v : v;
}

// A text that begins with a letter, so that no plane is one that the reader changes.
static xpl_str_t next_text(struct script *s, char buf[64]) {
    const unsigned n = next_byte(s) % 64;
    for (unsigned i = 0; i < n; i++)
        buf[i] = i ? (char)next_byte(s) : 'n';
    return (xpl_str_t){buf, n};
}

// ---- the written profile ----

struct expected_stat {
    int64_t md;
    enum xpl_stat_kind kind;
    uint64_t bits;
    char text[64];
    size_t len;
};

struct expected_event {
    int64_t md, value, duration_ps;
    bool counted;
    size_t n_stats;
};

struct expected_line {
    int64_t id, timestamp_ns;
    size_t n_events; // SIZE_MAX: the script ended in it
};

struct expected_plane {
    int64_t id;
    size_t n_lines, n_own_stats;
    struct expected_stat own[8];
    bool event_ids[IDS], stat_ids[IDS]; // declared
};

struct model {
    struct xpl_arena arena;
    XPL_VEC(struct expected_stat) stats; // of events, in order
    XPL_VEC(struct expected_event) events;
    XPL_VEC(struct expected_line) lines;
    XPL_VEC(struct expected_plane) planes;
};

static void write_stat(struct xpl_xspace_writer *w, struct script *s, struct expected_stat *ret) {
    static const enum xpl_stat_kind kinds[] = {XPL_VALUE_DOUBLE, XPL_VALUE_UINT,  XPL_VALUE_INT,
                                               XPL_VALUE_STR,    XPL_VALUE_BYTES, XPL_VALUE_REF};
    *ret = (struct expected_stat){.md = next_byte(s) % IDS, .kind = kinds[next_byte(s) % 6]};
    if (ret->kind == XPL_VALUE_STR || ret->kind == XPL_VALUE_BYTES)
        ret->len = next_text(s, ret->text).len;
    else
        ret->bits = ret->kind == XPL_VALUE_REF ? next_byte(s) % IDS : next_number(s);
    double d;
    memcpy(&d, &ret->bits, sizeof d);
    switch ((int)ret->kind) {
        case XPL_VALUE_DOUBLE: xpl_xspace_writer_double(w, ret->md, d); break;
        case XPL_VALUE_UINT: xpl_xspace_writer_uint(w, ret->md, ret->bits); break;
        case XPL_VALUE_INT: xpl_xspace_writer_int(w, ret->md, (int64_t)ret->bits); break;
        case XPL_VALUE_STR:
            xpl_xspace_writer_str(w, ret->md, (xpl_str_t){ret->text, ret->len});
            break;
        case XPL_VALUE_BYTES:
            xpl_xspace_writer_bytes(w, ret->md,
                                    (xpl_bytes_t){(const uint8_t *)ret->text, ret->len});
            break;
        default: xpl_xspace_writer_ref(w, ret->md, ret->bits); break;
    }
}

static void write_event(struct xpl_xspace_writer *w, struct script *s, struct model *m) {
    struct expected_event *const e = xpl_vec_push(&m->arena, &m->events);
    CHECK(e);
    *e = (struct expected_event){.md = next_byte(s) % IDS, .counted = next_byte(s) % 4 == 0};
    e->value = (int64_t)next_number(s);
    e->duration_ps = (int64_t)next_number(s);
    if (e->counted)
        xpl_xspace_writer_begin_counted(w, e->md, e->value, e->duration_ps);
    else
        xpl_xspace_writer_begin_event(w, e->md, e->value, e->duration_ps);
    e->n_stats = next_byte(s) % 5;
    for (size_t i = 0; i < e->n_stats; i++) {
        struct expected_stat *const st = xpl_vec_push(&m->arena, &m->stats);
        CHECK(st);
        write_stat(w, s, st);
    }
    xpl_xspace_writer_end_event(w);
}

static void write_line(struct xpl_xspace_writer *w, struct script *s, struct model *m) {
    char name[64], shown[64];
    struct expected_line *l = xpl_vec_push(&m->arena, &m->lines);
    CHECK(l);
    *l = (struct expected_line){.id = (int64_t)next_number(s),
                                .timestamp_ns = (int64_t)next_number(s)};
    const struct xpl_xspace_writer_line line = {.id = l->id,
                                                .name = next_text(s, name),
                                                .timestamp_ns = l->timestamp_ns,
                                                .duration_ps = (int64_t)next_number(s),
                                                .display_id = (int64_t)next_number(s),
                                                .display_name = next_text(s, shown)};
    xpl_xspace_writer_begin_line(w, &line);
    l->n_events = next_byte(s) % 32;
    for (size_t i = 0; i < l->n_events && s->p < s->end; i++)
        write_event(w, s, m);
    if (s->p == s->end) l->n_events = SIZE_MAX;
    xpl_xspace_writer_end_line(w);
}

static void write_names(struct xpl_xspace_writer *w, struct script *s, struct expected_plane *p) {
    char name[64], other[64];
    const unsigned id = next_byte(s) % IDS;
    if (next_byte(s) % 2) {
        if (p->stat_ids[id]) return;
        p->stat_ids[id] = true;
        const xpl_str_t a = next_text(s, name), b = next_text(s, other);
        xpl_xspace_writer_stat_md(w, id, a, b);
        return;
    }
    if (p->event_ids[id]) return;
    p->event_ids[id] = true;
    const xpl_str_t a = next_text(s, name), b = next_text(s, other);
    struct expected_stat ignored;
    xpl_xspace_writer_begin_event_md(w, id, a, b);
    for (unsigned i = next_byte(s) % 3; i > 0; i--)
        write_stat(w, s, &ignored);
    if (next_byte(s) % 2) xpl_xspace_writer_event_md_child(w, next_byte(s) % IDS);
    if (next_byte(s) % 2) {
        const xpl_str_t t = next_text(s, name);
        xpl_xspace_writer_event_md_bytes(w, (xpl_bytes_t){(const uint8_t *)t.ptr, t.len});
    }
    xpl_xspace_writer_end_event_md(w);
}

static void write_plane(struct xpl_xspace_writer *w, struct script *s, struct model *m) {
    char name[64];
    struct expected_plane *const p = xpl_vec_push(&m->arena, &m->planes);
    CHECK(p);
    *p = (struct expected_plane){.id = (int64_t)next_number(s)};
    xpl_xspace_writer_begin_plane(w, p->id, next_text(s, name));
    for (bool more = true; more && s->p < s->end;) {
        switch (next_byte(s) % 5) {
            case 0:
                write_line(w, s, m);
                p->n_lines++;
                break;
            case 1:
                if (p->n_own_stats < 8) write_stat(w, s, &p->own[p->n_own_stats++]);
                break;
            case 2:
            case 3: write_names(w, s, p); break;
            default: more = false; break;
        }
    }
    xpl_xspace_writer_end_plane(w);
}

static void write_all(struct xpl_xspace_writer *w, struct script s, struct model *m) {
    char text[64];
    *m = (struct model){0};
    xpl_arena_init(&m->arena, 64 << 20);
    while (s.p < s.end) {
        switch (next_byte(&s) % 6) {
            case 0: xpl_xspace_writer_error(w, next_text(&s, text)); break;
            case 1: xpl_xspace_writer_warning(w, next_text(&s, text)); break;
            case 2: xpl_xspace_writer_hostname(w, next_text(&s, text)); break;
            default: write_plane(w, &s, m); break;
        }
    }
}

// ---- reading back ----

static void check_stat(const struct xpl_stat *got, const struct expected_stat *expected,
                       const struct expected_plane *p) {
    CHECK(p->stat_ids[expected->md] ? got->md->id == expected->md : got->md->name.len == 0);
    CHECK_EQ(got->kind, expected->kind);
    if (expected->kind == XPL_VALUE_STR || expected->kind == XPL_VALUE_BYTES)
        CHECK(xpl_str_eq(got->str, (xpl_str_t){expected->text, expected->len}));
    else
        CHECK(memcmp(&got->u, &expected->bits, sizeof expected->bits) == 0);
}

struct at {
    size_t line, event, stat; // in the model
};

static void check_line(const struct xpl_line *l, const struct expected_plane *p,
                       const struct model *m, struct at *at) {
    const struct expected_line *const expected = &m->lines.v[at->line++];
    struct xpl_event_cursor c;
    struct xpl_event ev;
    CHECK(l->id == expected->id && l->timestamp_ns == expected->timestamp_ns);
    CHECK(expected->n_events == SIZE_MAX || l->n_events == expected->n_events);
    xpl_events_begin(&c, l);
    for (uint64_t i = 0; i < l->n_events; i++) {
        CHECK(xpl_events_next(&c, &ev) == XPL_WIRE_FIELD && at->event < m->events.n);
        const struct expected_event *const e = &m->events.v[at->event++];
        CHECK(p->event_ids[e->md] ? l->plane->event_md[ev.md].id == e->md : ev.md == 0);
        CHECK(ev.has_occurrences == e->counted && ev.duration_ps == e->duration_ps);
        CHECK((e->counted ? ev.num_occurrences : ev.offset_ps) == e->value);
        struct xpl_stat s;
        for (size_t k = 0; k < e->n_stats; k++) {
            CHECK(xpl_stats_next(&ev.stats, &s) == XPL_WIRE_FIELD);
            check_stat(&s, &m->stats.v[at->stat++], p);
        }
        CHECK(xpl_stats_next(&ev.stats, &s) == XPL_WIRE_END);
    }
    CHECK(xpl_events_next(&c, &ev) == XPL_WIRE_END);
}

static void check_all(const struct xpl_xspace *xs, const struct model *m) {
    struct at at = {0};
    CHECK_EQ(xs->n_planes, m->planes.n);
    for (size_t i = 0; i < m->planes.n; i++) {
        const struct expected_plane *const expected = &m->planes.v[i];
        const struct xpl_plane *const p = &xs->planes[i];
        CHECK(p->id == expected->id && p->n_lines == expected->n_lines);
        for (uint32_t k = 0; k < p->n_lines; k++)
            check_line(&p->lines[k], expected, m, &at);
        struct xpl_stats own = p->stats;
        struct xpl_stat s;
        for (size_t k = 0; k < expected->n_own_stats; k++) {
            CHECK(xpl_stats_next(&own, &s) == XPL_WIRE_FIELD);
            check_stat(&s, &expected->own[k], expected);
        }
        CHECK(xpl_stats_next(&own, &s) == XPL_WIRE_END);
    }
    CHECK(at.line == m->lines.n && at.event == m->events.n && at.stat == m->stats.n);
}

static bool put(void *ctx, xpl_bytes_t bytes) {
    xpl_buf_put(ctx, bytes.ptr, bytes.len);
    return !((struct xpl_buf *)ctx)->failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct script script = {data, data + (size < MAX_OPS ? size : MAX_OPS)};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    struct xpl_xspace_writer w;
    struct model m;
    const struct xpl_xspace_sink sink = {put, &out};
    xpl_buf_init(&out, 16 << 20);
    xpl_xspace_writer_init(&w, &sink);
    write_all(&w, script, &m);
    xpl_arena_fini(&m.arena);
    CHECK(xpl_xspace_writer_measured(&w));
    write_all(&w, script, &m);
    CHECK_EQ(xpl_xspace_writer_size(&w), out.n + w.n_out);
    CHECK(xpl_xspace_writer_fini(&w));
    xpl_arena_fini(&m.arena);
    struct xpl_buf whole; // in one pass
    xpl_buf_init(&whole, 16 << 20);
    xpl_xspace_writer_init_whole(&w, &whole);
    write_all(&w, script, &m);
    CHECK(xpl_xspace_writer_fini(&w));
    CHECK(whole.n == out.n && (!out.n || memcmp(whole.p, out.p, out.n) == 0));
    xpl_buf_fini(&whole);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    struct xpl_error err = {0};
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_xspace *xs;
    uint8_t *const exact = malloc(out.n + !out.n);
    CHECK(exact);
    if (out.n) memcpy(exact, out.p, out.n);
    CHECK_EQ(xpl_xspace_open((xpl_bytes_t){exact, out.n}, &a, &serial, &xs, &err), XPL_OK);
    check_all(xs, &m);
    free(exact);
    xpl_arena_fini(&m.arena);
    return 0;
}
