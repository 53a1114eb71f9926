// SPDX-License-Identifier: Apache-2.0
// The XSpace writer: its bytes, what the reader makes of them, and its failures.
#include "analysis/xplane/writer.h"

#include <string.h>

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"

struct out {
    struct xpl_buf b;
    size_t largest, calls, fail_at; // fail_at: the call that fails, from 1; 0: none
};

static bool put(void *ctx, xpl_bytes_t bytes) {
    struct out *const o = ctx;
    if (++o->calls == o->fail_at) return false;
    if (bytes.len > o->largest) o->largest = bytes.len;
    xpl_buf_put(&o->b, bytes.ptr, bytes.len);
    return !o->b.failed;
}

// One pass gives the same bytes.
static void check_whole(void (*emit)(struct xpl_xspace_writer *w), const struct xpl_buf *expected) {
    struct xpl_xspace_writer w;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf whole = xpl_buf_of((size_t)1 << 28);
    xpl_buf_str(&whole, XPL_STR("before"));
    xpl_xspace_writer_init_whole(&w, &whole);
    emit(&w);
    CHECK(xpl_xspace_writer_fini(&w));
    CHECK_BYTES(whole.p + 6, whole.n - 6, expected->p, expected->n);
}

static bool write_twice(void (*emit)(struct xpl_xspace_writer *w), struct out *o, size_t fail_at) {
    struct xpl_xspace_writer w;
    const struct xpl_xspace_sink sink = {put, o};
    *o = (struct out){.fail_at = fail_at};
    xpl_buf_init(&o->b, (size_t)1 << 28);
    xpl_xspace_writer_init(&w, &sink);
    emit(&w);
    CHECK_EQ(o->calls, 0);
    bool ok = xpl_xspace_writer_measured(&w);
    if (ok) emit(&w);
    const uint64_t size = xpl_xspace_writer_size(&w);
    ok = xpl_xspace_writer_fini(&w);
    CHECK(!ok || o->b.n == size);
    if (ok) check_whole(emit, &o->b);
    return ok;
}

// ---- bytes ----

static void emit_small(struct xpl_xspace_writer *w) {
    const struct xpl_xspace_writer_line line = {.id = 7, .name = XPL_STR("l"), .timestamp_ns = 300};
    xpl_xspace_writer_begin_plane(w, 1, XPL_STR("p"));
    xpl_xspace_writer_begin_line(w, &line);
    xpl_xspace_writer_begin_event(w, 1, 0, 5);
    xpl_xspace_writer_uint(w, 2, 9);
    xpl_xspace_writer_end_event(w);
    xpl_xspace_writer_end_line(w);
    xpl_xspace_writer_begin_event_md(w, 1, XPL_STR("e"), XPL_STR(""));
    xpl_xspace_writer_end_event_md(w);
    xpl_xspace_writer_stat_md(w, 2, XPL_STR("s"), XPL_STR(""));
    xpl_xspace_writer_end_plane(w);
    xpl_xspace_writer_hostname(w, XPL_STR("h"));
}

static void test_bytes(void) {
    static const char expected[] = "\x0a\x33\x08\x01\x12\x01p"
                                   "\x1a\x16\x08\x07\x12\x01l\x18\xac\x02"
                                   "\x22\x0c\x08\x01\x10\x00\x18\x05\x22\x04\x08\x02\x18\x09"
                                   "\x22\x09\x08\x01\x12\x05\x08\x01\x12\x01"
                                   "e"
                                   "\x2a\x09\x08\x02\x12\x05\x08\x02\x12\x01s"
                                   "\x22\x01h";
    struct out o;
    CHECK(write_twice(emit_small, &o, 0));
    CHECK_EQ(o.b.n, sizeof expected - 1);
    CHECK(memcmp(o.b.p, expected, o.b.n) == 0);
    xpl_buf_fini(&o.b);
}

static void emit_nothing(struct xpl_xspace_writer *w) {
    (void)w;
}

static void test_nothing(void) {
    struct out o;
    CHECK(write_twice(emit_nothing, &o, 0));
    CHECK_EQ(o.b.n, 0);
    xpl_buf_fini(&o.b);
}

// ---- all that there is ----

static const uint8_t message[70000] = {1, 2, 3};

static void emit_stats(struct xpl_xspace_writer *w) {
    xpl_xspace_writer_double(w, 1, -1.5);
    xpl_xspace_writer_uint(w, 2, UINT64_MAX);
    xpl_xspace_writer_int(w, 3, -1);
    xpl_xspace_writer_str(w, 4, XPL_STR("text"));
    xpl_xspace_writer_bytes(w, 5, (xpl_bytes_t){message, sizeof message});
    xpl_xspace_writer_ref(w, 6, 4);
}

static void emit_all(struct xpl_xspace_writer *w) {
    const struct xpl_xspace_writer_line line = {.id = -1,
                                                .name = XPL_STR("line"),
                                                .timestamp_ns = -5,
                                                .duration_ps = 9,
                                                .display_id = 3,
                                                .display_name = XPL_STR("shown")};
    static const char *const names[] = {"double", "uint", "int", "str", "bytes", "ref"};
    xpl_xspace_writer_error(w, XPL_STR("error"));
    xpl_xspace_writer_warning(w, XPL_STR("warning"));
    xpl_xspace_writer_begin_plane(w, -2, XPL_STR("plane"));
    emit_stats(w);
    for (int i = 0; i < 6; i++)
        xpl_xspace_writer_stat_md(w, i + 1, xpl_str_from(names[i]), XPL_STR("described"));
    xpl_xspace_writer_begin_event_md(w, INT64_MIN, XPL_STR("event"), XPL_STR("displayed"));
    emit_stats(w);
    xpl_xspace_writer_event_md_bytes(w, (xpl_bytes_t){message, sizeof message});
    xpl_xspace_writer_event_md_child(w, 12);
    xpl_xspace_writer_end_event_md(w);
    xpl_xspace_writer_begin_event_md(w, 12, XPL_STR("child"), XPL_STR(""));
    xpl_xspace_writer_end_event_md(w);
    xpl_xspace_writer_begin_line(w, &line);
    for (int i = 0; i < 3; i++) {
        xpl_xspace_writer_begin_event(w, INT64_MIN, -7, INT64_MAX);
        emit_stats(w);
        xpl_xspace_writer_end_event(w);
    }
    xpl_xspace_writer_begin_counted(w, 12, 42, 1);
    xpl_xspace_writer_end_event(w);
    xpl_xspace_writer_end_line(w);
    xpl_xspace_writer_end_plane(w);
    xpl_xspace_writer_begin_plane(w, 0, XPL_STR(""));
    xpl_xspace_writer_end_plane(w);
    xpl_xspace_writer_hostname(w, XPL_STR("host"));
}

static void check_stats(struct xpl_stats s) {
    struct xpl_stat st[6];
    for (int i = 0; i < 6; i++) {
        CHECK(xpl_stats_next(&s, &st[i]) == XPL_WIRE_FIELD);
        CHECK_EQ(st[i].md->id, i + 1);
    }
    CHECK(xpl_stats_next(&s, &st[0]) == XPL_WIRE_END);
    CHECK(st[1].kind == XPL_VALUE_UINT && st[1].u == UINT64_MAX);
    CHECK(st[2].kind == XPL_VALUE_INT && st[2].i == -1);
    CHECK(st[3].kind == XPL_VALUE_STR && xpl_str_eq(st[3].str, XPL_STR("text")));
    CHECK(st[4].kind == XPL_VALUE_BYTES && st[4].str.len == sizeof message);
    CHECK(memcmp(st[4].str.ptr, message, sizeof message) == 0);
    CHECK(st[5].kind == XPL_VALUE_REF && xpl_str_eq(st[5].str, XPL_STR("str")));
}

static int children;
static void count_child(void *ctx, const struct xpl_event_md *md) {
    (void)ctx;
    CHECK(xpl_str_eq(md->name, XPL_STR("child")));
    children++;
}

static void check_plane(const struct xpl_plane *p) {
    CHECK(p->id == -2 && xpl_str_eq(p->name, XPL_STR("plane")) && p->n_lines == 1);
    check_stats(p->stats);
    CHECK_EQ(p->n_event_md, 3);
    CHECK_EQ(p->n_stat_md, 7);
    const struct xpl_line *const l = &p->lines[0];
    CHECK(l->id == -1 && l->timestamp_ns == -5 && l->duration_ps == 9 && l->display_id == 3);
    CHECK(xpl_str_eq(l->name, XPL_STR("line")) && xpl_str_eq(l->display_name, XPL_STR("shown")));
    CHECK_EQ(l->n_events, 4);
    struct xpl_event_cursor c = xpl_events_of(l);
    struct xpl_event ev;
    for (int i = 0; i < 3; i++) {
        CHECK(xpl_events_next(&c, &ev) == XPL_WIRE_FIELD);
        CHECK(ev.offset_ps == -7 && ev.duration_ps == INT64_MAX && !ev.has_occurrences);
        CHECK_EQ(p->event_md[ev.md].id, INT64_MIN);
        check_stats(ev.stats);
    }
    const struct xpl_event_md *const md = xpl_event_get_md(l, &ev);
    CHECK(xpl_str_eq(md->name, XPL_STR("event")));
    CHECK(xpl_str_eq(md->display_name, XPL_STR("displayed")));
    CHECK(md->has_stats && md->has_children);
    check_stats(xpl_event_md_stats(p, md));
    xpl_event_md_children(p, md, count_child, NULL);
    CHECK_EQ(children, 1);
    CHECK(xpl_events_next(&c, &ev) == XPL_WIRE_FIELD);
    CHECK(ev.has_occurrences && ev.num_occurrences == 42 && ev.duration_ps == 1);
    CHECK(xpl_events_next(&c, &ev) == XPL_WIRE_END);
}

static void test_all(void) {
    struct out o;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a;
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_xspace *xs;
    CHECK(write_twice(emit_all, &o, 0));
    // In pieces: neither the whole nor a plane is kept.
    CHECK(o.calls > 5 && o.largest < 4 * sizeof message);
    xpl_arena_init(&a, 1 << 24);
    CHECK_EQ(xpl_xspace_open((xpl_bytes_t){o.b.p, o.b.n}, &a, &serial, &xs, NULL), XPL_OK);
    CHECK(xs->n_planes == 2 && xs->n_hostnames == 1 && xs->n_errors == 1 && xs->n_warnings == 1);
    CHECK(xpl_str_eq(xs->hostnames[0], XPL_STR("host")));
    check_plane(&xs->planes[0]);
    xpl_buf_fini(&o.b);
}

// ---- many events ----

static void emit_many(struct xpl_xspace_writer *w) {
    const struct xpl_xspace_writer_line line = {.id = 1};
    xpl_xspace_writer_begin_plane(w, 1, XPL_STR("p"));
    for (int l = 0; l < 200; l++) {
        xpl_xspace_writer_begin_line(w, &line);
        for (int i = 0; i < 500; i++) {
            xpl_xspace_writer_begin_event(w, i, i, i);
            xpl_xspace_writer_int(w, i, i);
            xpl_xspace_writer_end_event(w);
        }
        xpl_xspace_writer_end_line(w);
    }
    xpl_xspace_writer_end_plane(w);
}

static void test_many(void) {
    struct out o;
#if XPL_FAULTS
    xpl_fault_reset();
#endif
    CHECK(write_twice(emit_many, &o, 0));
    CHECK(o.b.n > 1000000 && o.largest <= 64 << 10);
#if XPL_FAULTS
    CHECK(xpl_fault_count() < 40); // 100,000 events; the sink's buffer, which doubles, among them
#endif
    xpl_buf_fini(&o.b);
}

// ---- failures ----

static void test_sink_fails(void) {
    struct out o;
    CHECK(write_twice(emit_many, &o, 0));
    const size_t calls = o.calls;
    xpl_buf_fini(&o.b);
    for (size_t i = 1; i <= calls; i++) {
        CHECK(!write_twice(emit_many, &o, i));
        CHECK_EQ(o.calls, i); // it is not called again
        xpl_buf_fini(&o.b);
    }
}

static int pass;
static void emit_other(struct xpl_xspace_writer *w) {
    xpl_xspace_writer_begin_plane(w, 1, XPL_STR("p"));
    if (pass++) xpl_xspace_writer_uint(w, 1, 1);
    xpl_xspace_writer_end_plane(w);
}
static void emit_more(struct xpl_xspace_writer *w) {
    for (int i = 0; i <= pass; i++) {
        xpl_xspace_writer_begin_plane(w, 1, XPL_STR("p"));
        xpl_xspace_writer_end_plane(w);
    }
    pass++;
}
static void emit_less(struct xpl_xspace_writer *w) {
    for (int i = 0; i < 2 - pass; i++)
        xpl_xspace_writer_warning(w, XPL_STR("w"));
    pass++;
}

static void test_passes_differ(void) {
    void (*const emits[])(struct xpl_xspace_writer *) = {emit_other, emit_more, emit_less};
    for (size_t i = 0; i < sizeof emits / sizeof *emits; i++) {
        struct out o;
        pass = 0;
        CHECK(!write_twice(emits[i], &o, 0));
        xpl_buf_fini(&o.b);
    }
}

// Statistics that are put in place are those of the calls.
static void emit_same(struct xpl_xspace_writer *w, bool in_place) {
    static const int64_t mds[] = {1, 127, 128, INT64_MAX, -1};
    static const uint64_t values[] = {0, 127, 128, UINT64_MAX};
    const struct xpl_xspace_writer_line line = {.id = 1};
    const char text[XPL_XSPACE_STAT_TEXT] = "text";
    struct xpl_xspace_stat s;
    xpl_xspace_writer_begin_plane(w, 1, XPL_STR("p"));
    xpl_xspace_writer_begin_line(w, &line);
    xpl_xspace_writer_begin_event(w, 1, 2, 3);
    for (size_t i = 0; i < sizeof mds / sizeof *mds * 4; i++) {
        const int64_t md = mds[i / 4];
        const uint64_t v = values[i % 4];
        const xpl_str_t str = {text, v < sizeof text ? (size_t)v : sizeof text};
        uint8_t *p = in_place ? xpl_xspace_writer_stats_room(w, 4 * XPL_XSPACE_STAT_ROOM) : NULL;
        if (!p) {
            xpl_xspace_writer_uint(w, md, v);
            xpl_xspace_writer_int(w, md, (int64_t)v);
            xpl_xspace_writer_str(w, md, str);
            xpl_xspace_writer_ref(w, md, v);
            continue;
        }
        for (int kind = XPL_XSPACE_STAT_UINT; kind <= XPL_XSPACE_STAT_REF; kind++) {
            xpl_xspace_stat_init(&s, md, (enum xpl_xspace_stat_kind)kind);
            p = kind == XPL_XSPACE_STAT_STR ? xpl_xspace_stat_text(&s, p, str)
                                            : xpl_xspace_stat_number(&s, p, v);
        }
        xpl_xspace_writer_stats_end(w, p);
    }
    xpl_xspace_writer_end_event(w);
    xpl_xspace_writer_end_line(w);
    xpl_xspace_writer_end_plane(w);
}

static void test_stats_in_place(void) {
    struct xpl_xspace_writer w;
    struct xpl_buf out[2];
    for (int i = 0; i < 2; i++) {
        xpl_buf_init(&out[i], 1 << 20);
        xpl_xspace_writer_init_whole(&w, &out[i]);
        emit_same(&w, i);
        CHECK(xpl_xspace_writer_fini(&w));
    }
    CHECK_BYTES(out[1].p, out[1].n, out[0].p, out[0].n);
    xpl_buf_fini(&out[0]);
    xpl_buf_fini(&out[1]);
}

int main(void) {
    test_bytes();
    test_nothing();
    test_all();
    test_many();
    test_sink_fails();
    test_passes_differ();
    test_stats_in_place();
    return 0;
}
