// SPDX-License-Identifier: Apache-2.0
// The view of an XSpace: fields in any order, results for broken bytes, and that size and ids of a
// hostile profile cost no more than their bytes.
#include "analysis/xplane/xspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/exec.h"
#include "tests/cancelled.h"
#include "tests/xspace_maker.h"

struct opened {
    struct xpl_arena arena;
    struct xpl_xspace *xs;
    struct xpl_error err;
    uint8_t *bytes; // exactly as long as the input
    xpl_status_t status;
};

static struct opened open_bytes(const void *p, size_t n, size_t limit) {
    struct opened o = {.bytes = malloc(n + !n)};
    struct xpl_exec exec = xpl_exec_serial();
    CHECK(o.bytes);
    if (n) memcpy(o.bytes, p, n);
    xpl_arena_init(&o.arena, limit);
    o.status = xpl_xspace_open((xpl_bytes_t){o.bytes, n}, &o.arena, &exec, &o.xs, &o.err);
    return o;
}
static struct opened open_buf(struct xpl_buf *b) {
    struct opened o = open_bytes(b->p, b->n, 1 << 26);
    xpl_buf_fini(b);
    if (o.status != XPL_OK) fprintf(stderr, "%s\n", o.err.msg);
    CHECK_OK(o.status, NULL);
    return o;
}
static void close_it(struct opened *o) {
    xpl_arena_fini(&o->arena);
    free(o->bytes);
}
static bool is(xpl_str_t s, const char *z) {
    return xpl_str_eq(s, xpl_str_from(z));
}

// ---- all there is ----

static void add_stat(struct xpl_buf *to, uint32_t field, int64_t id, uint32_t value_field,
                     uint64_t v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, id);
    mk_int(&s, value_field, (int64_t)v);
    mk_close(to, field, &s);
}

static void add_md(struct xpl_buf *plane, uint32_t field, int64_t id, const char *name) {
    struct xpl_buf entry = mk_open(), md = mk_open();
    mk_int(&entry, 1, id);
    mk_int(&md, 1, id);
    mk_text(&md, 2, name);
    mk_close(&entry, 2, &md);
    mk_close(plane, field, &entry);
}

static struct xpl_buf every_stat_event(void) {
    static const uint8_t half[8] = {0, 0, 0, 0, 0, 0, 0xe0, 0x3f}; // 0.5
    struct xpl_buf ev = mk_open(), s = mk_open();
    mk_int(&ev, 1, 7);
    mk_int(&ev, 2, 500);
    mk_int(&ev, 3, -20);
    add_stat(&ev, 4, 1, 3, UINT64_MAX); // uint
    add_stat(&ev, 4, 2, 4, (uint64_t)-5);
    mk_int(&s, 1, 3);
    mk_varint(&s, 2 << 3 | 1); // double
    xpl_buf_put(&s, half, 8);
    mk_close(&ev, 4, &s);
    s = mk_open();
    mk_int(&s, 1, 1);
    mk_text(&s, 5, "text");
    mk_close(&ev, 4, &s);
    s = mk_open();
    mk_int(&s, 1, 1);
    mk_len(&s, 6, "by\0es", 5);
    mk_close(&ev, 4, &s);
    add_stat(&ev, 4, 2, 7, 300);   // ref
    add_stat(&ev, 4, 99, 7, 98);   // ids that do not exist
    add_stat(&ev, 4, 300, 8, 123); // a value of a kind that came later
    return ev;
}

static struct xpl_buf full_space(void) {
    struct xpl_buf space = mk_open(), plane = mk_open(), line = mk_open(), ev = every_stat_event();
    mk_int(&plane, 1, 42);
    mk_text(&plane, 2, "/device:TPU:3");
    mk_int(&line, 1, -9);
    mk_text(&line, 2, "XLA Ops");
    mk_int(&line, 3, -1000);
    mk_close(&line, 4, &ev);
    ev = mk_open();
    mk_int(&ev, 1, 8);
    mk_int(&ev, 3, 5);
    mk_int(&ev, 5, 12); // occurrences come after the stats' place
    mk_close(&line, 4, &ev);
    mk_int(&line, 9, 77);
    mk_text(&line, 11, "shown");
    mk_close(&plane, 3, &line);
    line = mk_open();
    mk_int(&line, 1, 3);
    mk_int(&line, 10, 4);
    mk_close(&plane, 3, &line);
    add_md(&plane, 4, 7, "a/b:MatMul");
    struct xpl_buf entry = mk_open(), md = mk_open();
    mk_int(&entry, 1, 8);
    mk_int(&md, 1, 8);
    mk_text(&md, 2, "%fusion");
    mk_text(&md, 4, "fusion");
    add_stat(&md, 5, 1, 3, 11);
    mk_int(&md, 6, 7);             // child, unpacked
    mk_len(&md, 6, "\x08\x63", 2); // packed: 8, 99
    mk_close(&entry, 2, &md);
    mk_close(&plane, 4, &entry);
    add_md(&plane, 5, 1, "flops");
    add_md(&plane, 5, 2, "program_id");
    add_md(&plane, 5, 3, "own name");
    add_md(&plane, 5, 300, "a referred text");
    add_stat(&plane, 6, 2, 4, 6);
    mk_close(&space, 1, &plane);
    mk_text(&space, 2, "an error");
    mk_text(&space, 3, "a warning");
    mk_text(&space, 3, "another");
    mk_text(&space, 4, "host");
    return space;
}

static void check_stats(const struct xpl_plane *p, const struct xpl_event *ev) {
    static const struct {
        const char *md;
        enum xpl_stat_kind kind;
        uint64_t u;
        const char *text;
    } expected[] = {
        {"flops", XPL_VALUE_UINT, UINT64_MAX, ""},
        {"program_id", XPL_VALUE_INT, (uint64_t)-5, ""},
        {"own name", XPL_VALUE_DOUBLE, UINT64_C(0x3fe0000000000000), ""},
        {"flops", XPL_VALUE_STR, 0, "text"},
        {"flops", XPL_VALUE_BYTES, 0, NULL},
        {"program_id", XPL_VALUE_REF, 300, "a referred text"},
        {"", XPL_VALUE_REF, 98, ""},
        {"a referred text", XPL_VALUE_NONE, 0, ""},
    };
    struct xpl_stats left = ev->stats;
    struct xpl_stat s;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        CHECK_EQ(xpl_stats_next(&left, &s), XPL_WIRE_FIELD);
        CHECK_STR(s.md->name, expected[i].md);
        CHECK_EQ(s.kind, expected[i].kind);
        CHECK_EQ(s.u, expected[i].u);
        CHECK(expected[i].text ? is(s.str, expected[i].text) : s.str.len == 5);
    }
    CHECK_EQ(xpl_stats_next(&left, &s), XPL_WIRE_END);
    CHECK_EQ(xpl_stats_next(&left, &s), XPL_WIRE_END);
    CHECK(xpl_stats_get(ev->stats, XPL_STAT_FLOPS, &s));
    CHECK_EQ(s.kind, XPL_VALUE_UINT);
    CHECK_EQ(xpl_stat_uint(&s), UINT64_MAX);
    CHECK_EQ(xpl_stat_int(&s), 0);
    CHECK_EQ(xpl_stat_int_or_uint(&s), UINT64_MAX);
    CHECK_REAL(xpl_stat_double(&s), 0, 0);
    CHECK(xpl_stats_get(ev->stats, XPL_STAT_PROGRAM_ID, &s));
    CHECK_EQ(xpl_stat_int(&s), -5);
    CHECK_EQ(xpl_stat_int_or_uint(&s), (uint64_t)-5);
    CHECK(xpl_stat_bool(&s));
    CHECK_EQ(xpl_stat_uint(&s), 0);
    CHECK_EQ(xpl_stat_str(&s).len, 0);
    CHECK(!xpl_stats_get(ev->stats, XPL_STAT_GROUP_ID, &s));
    struct xpl_stat several[3];
    const enum xpl_stat_type types[] = {XPL_STAT_PROGRAM_ID, XPL_STAT_GROUP_ID, XPL_STAT_FLOPS};
    CHECK_EQ(xpl_stats_find(ev->stats, types, 3, several), 5);
    CHECK_EQ(xpl_stat_int(&several[0]), -5);
    CHECK_EQ(xpl_stat_uint(&several[2]), UINT64_MAX);
    CHECK_EQ(xpl_stats_find(ev->stats, types, 0, several), 0);
    CHECK(xpl_stats_get(p->stats, XPL_STAT_PROGRAM_ID, &s));
    CHECK_EQ(xpl_stat_int(&s), 6);
}

static void note_child(void *ctx, const struct xpl_event_md *child) {
    const struct xpl_event_md **next = *(const struct xpl_event_md ***)ctx;
    *next++ = child;
    *(const struct xpl_event_md ***)ctx = next;
}

static void check_metadata(const struct xpl_plane *p) {
    const struct xpl_event_md *const matmul = &p->event_md[xpl_plane_event_md(p, 7)];
    const struct xpl_event_md *const fusion = &p->event_md[xpl_plane_event_md(p, 8)];
    const struct xpl_event_md *children[4], **next = children;
    struct xpl_stat s;
    CHECK_STR(matmul->name, "a/b:MatMul");
    CHECK_EQ(matmul->type, XPL_EVENT_TF_OP_RUN);
    CHECK(!matmul->has_stats && !matmul->has_children);
    CHECK_STR(fusion->name, "%fusion");
    CHECK_STR(fusion->display_name, "fusion");
    CHECK(fusion->has_stats && fusion->has_children);
    CHECK(xpl_stats_get(xpl_event_md_stats(p, fusion), XPL_STAT_FLOPS, &s));
    CHECK_EQ(s.u, 11);
    CHECK(!xpl_stats_get(xpl_event_md_stats(p, matmul), XPL_STAT_FLOPS, &s));
    xpl_event_md_children(p, fusion, note_child, &next);
    CHECK_EQ(next - children, 3);
    CHECK(children[0] == matmul);
    CHECK(children[1] == fusion);
    CHECK(children[2] == &p->event_md[0]);
    next = children;
    xpl_event_md_children(p, matmul, note_child, &next);
    CHECK(next == children);
    CHECK_EQ(xpl_plane_event_md(p, 9), 0);
    CHECK_EQ(xpl_plane_event_md(p, -1), 0);
    CHECK_EQ(xpl_plane_stat_md(p, UINT64_MAX), 0);
    CHECK_EQ(p->event_md[0].name.len, 0);
}

static void test_full(void) {
    struct xpl_buf b = full_space();
    XPL_AUTO(close_it) struct opened o = open_buf(&b);
    const struct xpl_xspace *const xs = o.xs;
    CHECK_EQ(xs->n_planes, 1);
    CHECK_EQ(xs->n_errors, 1);
    CHECK_EQ(xs->n_warnings, 2);
    CHECK_EQ(xs->n_hostnames, 1);
    CHECK_STR(xs->errors[0], "an error");
    CHECK_STR(xs->warnings[1], "another");
    CHECK_STR(xs->hostnames[0], "host");
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR("/device:TPU:3"));
    CHECK(p == &xs->planes[0]);
    CHECK(!xpl_xspace_plane(xs, XPL_STR("/device:TPU:")));
    CHECK_EQ(p->id, 42);
    CHECK_EQ(p->kind, XPL_PLANE_TPU_CORE);
    CHECK_EQ(p->core_id, 3);
    CHECK_EQ(p->n_lines, 2);
    CHECK_EQ(p->n_event_md, 3);
    CHECK_EQ(p->n_stat_md, 5);
    const struct xpl_line *const l = &p->lines[0];
    CHECK_EQ(l->id, -9);
    CHECK_EQ(l->display_id, -9);
    CHECK_EQ(l->timestamp_ns, -1000);
    CHECK_EQ(l->duration_ps, 77);
    CHECK_STR(l->name, "XLA Ops");
    CHECK_STR(l->display_name, "shown");
    CHECK_EQ(l->n_events, 2);
    CHECK_EQ(p->lines[1].display_id, 4);
    CHECK_EQ(p->lines[1].n_events, 0);
    CHECK_EQ(p->lines[1].n_chunks, 0);
    check_metadata(p);
    struct xpl_event_cursor c = xpl_events_of(l);
    struct xpl_event ev;
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_FIELD);
    CHECK_STR(xpl_event_get_md(l, &ev)->name, "a/b:MatMul");
    CHECK_EQ(ev.index, 0);
    CHECK_EQ(ev.offset_ps, 500);
    CHECK_EQ(ev.duration_ps, -20);
    CHECK(!ev.has_occurrences);
    CHECK_EQ(xpl_event_begin_ps(l, &ev), -999500);
    CHECK_EQ(xpl_event_end_ps(l, &ev), -999520);
    check_stats(p, &ev);
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_FIELD);
    CHECK(ev.has_occurrences);
    CHECK_EQ(ev.num_occurrences, 12);
    CHECK_EQ(ev.offset_ps, 0);
    CHECK_EQ(ev.index, 1);
    CHECK_EQ(ev.duration_ps, 5);
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_END);
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_END);
}

// ---- broken bytes ----

static bool walk_all(const struct xpl_xspace *xs, struct xpl_error *err) {
    for (uint32_t i = 0; i < xs->n_planes; i++)
        for (uint32_t k = 0; k < xs->planes[i].n_lines; k++) {
            struct xpl_event_cursor c = xpl_events_of(&xs->planes[i].lines[k]);
            struct xpl_event ev;
            enum xpl_wire_result r;
            while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
                struct xpl_stat s;
                while (xpl_stats_next(&ev.stats, &s) == XPL_WIRE_FIELD)
                    continue;
            }
            if (r == XPL_WIRE_MALFORMED) {
                CHECK_STATUS(xpl_events_error(&c, err), XPL_DATA_LOSS, err);
                return false;
            }
        }
    return true;
}

// A prefix that ends at a field of the space is a space; every other is DATA_LOSS with an offset.
static void test_every_prefix(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = full_space();
    size_t ends[16], n_ends = 0, good = 0;
    struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){b.p, b.n});
    struct xpl_field f;
    ends[n_ends++] = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        ends[n_ends++] = (size_t)(w.p - b.p);
    for (size_t n = 0; n <= b.n; n++) {
        struct opened o = open_bytes(b.p, n, 1 << 20);
        bool whole = false;
        for (size_t i = 0; i < n_ends; i++)
            whole |= ends[i] == n;
        CHECK_EQ(o.status, whole ? XPL_OK : XPL_DATA_LOSS);
        if (whole) {
            CHECK(walk_all(o.xs, &o.err));
        } else {
            CHECK(o.xs == NULL && o.err.offset < b.n && strstr(o.err.msg, "at byte "));
        }
        good += whole;
        close_it(&o);
    }
    CHECK_EQ(good, n_ends);
}

// Every byte changed to every extreme: either DATA_LOSS or a view that can be walked.
static void test_flipped_bytes(void) {
    static const uint8_t values[] = {0, 1, 0x0b, 0x22, 0x7f, 0x80, 0xff};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = full_space();
    for (size_t i = 0; i < b.n; i++)
        for (size_t v = 0; v < sizeof values; v++) {
            const uint8_t was = b.p[i];
            b.p[i] = values[v];
            struct opened o = open_bytes(b.p, b.n, 1 << 20);
            CHECK(o.status == XPL_OK || o.status == XPL_DATA_LOSS);
            if (o.status == XPL_OK) (void)walk_all(o.xs, &o.err);
            b.p[i] = was;
            close_it(&o);
        }
}

// The framing is checked on opening; the inside of an event, when it is read.
static void test_broken_event(void) {
    struct xpl_buf space = mk_open(), plane = mk_open(), line = mk_open();
    mk_text(&plane, 2, "a plane");
    mk_text(&line, 2, "a line");
    mk_len(&line, 4, "\x08\x01", 2);
    mk_len(&line, 4, "\x08\x80", 2); // a varint that does not end
    mk_close(&plane, 3, &line);
    mk_close(&space, 1, &plane);
    XPL_AUTO(close_it) struct opened o = open_buf(&space);
    struct xpl_event_cursor c = xpl_events_of(&o.xs->planes[0].lines[0]);
    struct xpl_event ev;
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_FIELD);
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_MALFORMED);
    CHECK_STATUS(xpl_events_error(&c, &o.err), XPL_DATA_LOSS, &o.err);
    CHECK(strstr(o.err.msg, "'a plane'") && strstr(o.err.msg, "'a line'"));
    CHECK(strstr(o.err.msg, "event 1"));
    CHECK_EQ(o.bytes[o.err.offset], 0x22);
}

static void test_broken_stat(void) {
    struct xpl_buf space = mk_open(), plane = mk_open(), line = mk_open(), ev_buf = mk_open();
    add_stat(&ev_buf, 4, 1, 4, 5);
    mk_len(&ev_buf, 4, "\x08\x01\x20", 3); // a value is missing
    add_stat(&ev_buf, 4, 1, 4, 6);
    mk_close(&line, 4, &ev_buf);
    mk_close(&plane, 3, &line);
    add_md(&plane, 5, 1, "flops");
    mk_close(&space, 1, &plane);
    XPL_AUTO(close_it) struct opened o = open_buf(&space);
    struct xpl_event_cursor c = xpl_events_of(&o.xs->planes[0].lines[0]);
    struct xpl_event ev;
    struct xpl_stat s;
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_FIELD);
    CHECK_EQ(xpl_stats_next(&ev.stats, &s), XPL_WIRE_FIELD);
    CHECK_EQ(s.i, 5);
    CHECK_EQ(xpl_stats_next(&ev.stats, &s), XPL_WIRE_END); // ends the list
    CHECK_EQ(xpl_stats_next(&ev.stats, &s), XPL_WIRE_END);
}

// ---- order and repetition ----

static void test_odd_order(void) {
    struct xpl_buf space = mk_open(), plane = mk_open(), line = mk_open(), ev_buf = mk_open();
    add_md(&plane, 5, 1, "old name");
    add_md(&plane, 4, 5, "old event");
    add_stat(&ev_buf, 4, 1, 4, 3); // stats before the other fields
    mk_int(&ev_buf, 3, 1);
    mk_int(&ev_buf, 5, 4);
    mk_int(&ev_buf, 2, 10); // the oneof's last wins
    mk_int(&ev_buf, 3, 2);
    mk_int(&ev_buf, 1, 6);
    mk_int(&ev_buf, 77, 6); // unknown
    mk_int(&ev_buf, 1, 5);
    struct xpl_buf s = mk_open(); // value before id, both twice
    mk_int(&s, 4, 1);
    mk_text(&s, 5, "x");
    mk_int(&s, 1, 2);
    mk_int(&s, 4, 9);
    mk_int(&s, 1, 1);
    mk_close(&ev_buf, 4, &s);
    mk_close(&line, 4, &ev_buf);
    mk_text(&line, 2, "first");
    mk_text(&line, 2, "last");
    mk_len(&line, 4, "", 0); // an event of nothing
    mk_int(&line, 3, 7);
    mk_close(&plane, 3, &line);
    add_md(&plane, 4, 5, "event");
    add_md(&plane, 5, 1, "flops");
    mk_text(&plane, 2, "/host:CPU");
    mk_close(&space, 1, &plane);
    XPL_AUTO(close_it) struct opened o = open_buf(&space);
    const struct xpl_plane *const p = &o.xs->planes[0];
    struct xpl_event_cursor c;
    struct xpl_event ev;
    struct xpl_stat st;
    CHECK_EQ(p->kind, XPL_PLANE_HOST_THREADS);
    CHECK_EQ(p->n_event_md, 2);
    CHECK_EQ(p->n_stat_md, 2);
    CHECK_STR(p->lines[0].name, "last");
    CHECK_EQ(p->lines[0].n_events, 2);
    xpl_events_begin(&c, &p->lines[0]);
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_FIELD);
    CHECK_STR(xpl_event_get_md(&p->lines[0], &ev)->name, "event");
    CHECK_EQ(ev.offset_ps, 10);
    CHECK_EQ(ev.duration_ps, 2);
    CHECK(!ev.has_occurrences);
    CHECK_EQ(xpl_event_begin_ps(&p->lines[0], &ev), 7010);
    CHECK_EQ(xpl_stats_next(&ev.stats, &st), XPL_WIRE_FIELD);
    CHECK_EQ(st.i, 3);
    CHECK_EQ(st.md->type, XPL_STAT_FLOPS);
    CHECK_EQ(xpl_stats_next(&ev.stats, &st), XPL_WIRE_FIELD);
    CHECK_EQ(st.i, 9);
    CHECK_EQ(st.kind, XPL_VALUE_INT);
    CHECK_EQ(st.md->type, XPL_STAT_FLOPS);
    CHECK_EQ(xpl_stats_next(&ev.stats, &st), XPL_WIRE_END);
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_FIELD);
    CHECK_EQ(ev.md, 0);
    CHECK_EQ(ev.duration_ps, 0);
    CHECK_EQ(xpl_events_next(&c, &ev), XPL_WIRE_END);
}

// ---- planes ----

static void test_plane_kinds(void) {
    static const struct {
        const char *name;
        enum xpl_plane_kind kind;
        int64_t core;
    } rows[] = {
        {"/host:CPU", XPL_PLANE_HOST_THREADS, -1},
        {"/host:CPU 2", XPL_PLANE_OTHER, -1},
        {"/host:metadata", XPL_PLANE_METADATA, -1},
        {"/device:GPU:0", XPL_PLANE_GPU, -1},
        {"/device:CUSTOM:x", XPL_PLANE_CUSTOM, -1},
        {"/device:TPU:0", XPL_PLANE_TPU_CORE, 0},
        {"/device:TPU:007", XPL_PLANE_TPU_CORE, 7},
        {"/device:TPU:", XPL_PLANE_TPU_CORE, -1},
        {"/device:TPU:2147483647", XPL_PLANE_TPU_CORE, INT32_MAX},
        {"/device:TPU:2147483648", XPL_PLANE_TPU_CORE, -1},
        {"/device:TPU:99999999999999999999999", XPL_PLANE_TPU_CORE, -1},
        {"/device:TPU:0x", XPL_PLANE_TPU_OTHER, -1},
        {"/device:TPU:1 SparseCore 5", XPL_PLANE_SPARSE_CORE, 5},
        {"/device:TPU:1 SparseCore abC 15", XPL_PLANE_SPARSE_CORE, 15},
        {"/device:TPU:1 SparseCore", XPL_PLANE_TPU_OTHER, -1},
        {"/device:TPU:1 SparseCore ", XPL_PLANE_TPU_OTHER, -1},
        {"/device:TPU:1 SparseCore x", XPL_PLANE_TPU_OTHER, -1},
        {"/device:TPU:1 SparseCore a1 5", XPL_PLANE_TPU_OTHER, -1},
        {"/device:TPU:1 SparseCore a b 5", XPL_PLANE_TPU_OTHER, -1},
        {"/device:TPU: SparseCore 5", XPL_PLANE_TPU_OTHER, -1},
        {"/device:TPU:1 SparseCore  5", XPL_PLANE_TPU_OTHER, -1},
        {"", XPL_PLANE_OTHER, -1},
    };
    struct xpl_buf space = mk_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xpl_buf plane = mk_open();
        mk_text(&plane, 2, rows[i].name);
        mk_close(&space, 1, &plane);
    }
    XPL_AUTO(close_it) struct opened o = open_buf(&space);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (o.xs->planes[i].kind != rows[i].kind) fprintf(stderr, "'%s'\n", rows[i].name);
        CHECK_EQ(o.xs->planes[i].kind, rows[i].kind);
        CHECK_EQ(o.xs->planes[i].core_id, rows[i].core);
    }
}

// ---- HLO ids ----

static void add_module(struct xpl_buf *plane, int64_t id, const char *name, int64_t stat_id) {
    struct xpl_buf entry = mk_open(), md = mk_open();
    mk_int(&entry, 1, id);
    mk_int(&md, 1, id);
    mk_text(&md, 2, name);
    if (stat_id) add_stat(&md, 5, stat_id, 3, 1);
    mk_close(&entry, 2, &md);
    mk_close(plane, 4, &entry);
}

static struct xpl_buf module_space(const char *plane_name) {
    struct xpl_buf space = mk_open(), plane = mk_open();
    mk_text(&plane, 2, plane_name);
    add_module(&plane, 1, "jit_f(123)", 1);
    add_module(&plane, 2, "jit_g", 1);                       // no number
    add_module(&plane, 123, "in the way", 0);                // replaced
    add_module(&plane, 3, "jit_h(18446744073709551615)", 1); // fits 64 bits
    add_module(&plane, 4, "jit_i(18446744073709551616)", 1); // does not
    add_module(&plane, 5, "no proto(55)", 0);
    add_module(&plane, 6, "other stat(66)", 2);
    add_module(&plane, 77, "right already(77)", 1);
    add_module(&plane, 8, "(0009)", 1);
    add_module(&plane, 10, "line\nbreak(10101)", 1);
    add_md(&plane, 5, 1, "HLO Proto");
    add_md(&plane, 5, 2, "flops");
    mk_close(&space, 1, &plane);
    return space;
}

static void test_hlo_ids(void) {
    struct xpl_buf b = module_space("/host:metadata");
    struct opened o = open_buf(&b);
    const struct xpl_plane *p = &o.xs->planes[0];
    static const struct {
        int64_t id;
        const char *name;
    } expected[] = {{123, "jit_f(123)"},
                    {1, ""},
                    {2, "jit_g"},
                    {3, ""},
                    {-1, "jit_h(18446744073709551615)"},
                    {4, "jit_i(18446744073709551616)"},
                    {5, "no proto(55)"},
                    {6, "other stat(66)"},
                    {77, "right already(77)"},
                    {9, "(0009)"},
                    {8, ""},
                    {10, "line\nbreak(10101)"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK_STR(p->event_md[xpl_plane_event_md(p, expected[i].id)].name, expected[i].name);
    CHECK_EQ(p->n_event_md, 10);
    CHECK_STR(p->stat_md[xpl_plane_stat_md(p, 1)].name, "Hlo Proto");
    CHECK_EQ(p->stat_md[xpl_plane_stat_md(p, 1)].type, XPL_STAT_HLO_PROTO);
    close_it(&o);
    b = module_space("/host:other"); // other planes keep theirs
    o = open_buf(&b);
    p = &o.xs->planes[0];
    CHECK_STR(p->event_md[xpl_plane_event_md(p, 1)].name, "jit_f(123)");
    CHECK_STR(p->event_md[xpl_plane_event_md(p, 123)].name, "in the way");
    CHECK_STR(p->stat_md[xpl_plane_stat_md(p, 1)].name, "HLO Proto");
    close_it(&o);
}

// ---- many and large ----

static void test_ids(void) {
    static const int64_t ids[] = {INT64_MIN, -1, 0, 1, 1000000007, INT64_MAX, 5};
    enum { N = 3000 };
    struct xpl_buf space = mk_open(), plane = mk_open();
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        add_md(&plane, 4, ids[i], "some");
    for (int64_t i = 0; i < N; i++)
        add_md(&plane, 5, i * 0x9e3779b97f4a, "sparse");
    mk_close(&space, 1, &plane);
    XPL_AUTO(close_it) struct opened o = open_buf(&space);
    const struct xpl_plane *const p = &o.xs->planes[0];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const uint32_t at = xpl_plane_event_md(p, ids[i]);
        CHECK(at != 0);
        CHECK_EQ(p->event_md[at].id, ids[i]);
    }
    CHECK_EQ(xpl_plane_event_md(p, 2), 0);
    CHECK_EQ(p->n_stat_md, N + 1);
    for (int64_t i = 0; i < N; i++) {
        const uint32_t at = xpl_plane_stat_md(p, (uint64_t)(i * 0x9e3779b97f4a));
        CHECK(at != 0);
        CHECK_EQ(p->stat_md[at].id, i * 0x9e3779b97f4a);
    }
    CHECK_EQ(xpl_plane_stat_md(p, 3), 0);
}

static void test_chunks(void) {
    enum { N = 20000 };
    struct xpl_buf space = mk_open(), plane = mk_open(), line = mk_open();
    for (int64_t i = 0; i < N; i++) {
        struct xpl_buf ev = mk_open();
        mk_int(&ev, 1, 1);
        mk_int(&ev, 2, i * 1000);
        mk_int(&ev, 3, i);
        if (i % 5000 == 4999) mk_text(&line, 2, "in between");
        if (i == 8192) { // a tag of two bytes
            xpl_buf_put(&line, "\xa2\x00", 2);
            mk_varint(&line, ev.n);
            xpl_buf_put(&line, ev.p, ev.n);
            xpl_buf_fini(&ev);
        } else {
            mk_close(&line, 4, &ev);
        }
    }
    mk_close(&plane, 3, &line);
    mk_close(&space, 1, &plane);
    XPL_AUTO(close_it) struct opened o = open_buf(&space);
    const struct xpl_line *const l = &o.xs->planes[0].lines[0];
    CHECK_EQ(l->n_events, N);
    CHECK(l->n_chunks >= 4);
    struct xpl_event_cursor c, all;
    struct xpl_event a, b;
    xpl_events_begin(&all, l);
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        xpl_events_begin_chunk(&c, l, i);
        while (xpl_events_next(&c, &a) == XPL_WIRE_FIELD) {
            CHECK_EQ(xpl_events_next(&all, &b), XPL_WIRE_FIELD);
            CHECK_EQ(a.index, n);
            CHECK_EQ(b.index, n);
            CHECK_EQ(a.at, b.at);
            CHECK_EQ(a.duration_ps, (int64_t)n);
            n++;
        }
    }
    CHECK_EQ(n, N);
    CHECK_EQ(xpl_events_next(&all, &b), XPL_WIRE_END);
}

static void test_many(void) {
    enum { N = 200000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open(), plane = mk_open();
    for (int i = 0; i < N; i++)
        mk_len(&space, 1, "", 0);
    for (int i = 0; i < N; i++)
        mk_len(&plane, 3, "", 0);
    mk_close(&space, 1, &plane);
    struct opened o = open_bytes(space.p, space.n, (size_t)1 << 30);
    CHECK_OK(o.status, NULL);
    CHECK_EQ(o.xs->n_planes, N + 1);
    CHECK_EQ(o.xs->planes[N].n_lines, N);
    CHECK(o.arena.reserved < 100u << 20);
    close_it(&o);
    o = open_bytes(space.p, space.n, 1 << 20); // and a limit is a limit
    CHECK_STATUS(o.status, XPL_RESOURCE_EXHAUSTED, NULL);
    close_it(&o);
}

static void test_cancelled(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = full_space();
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_xspace *xs = NULL;
    exec.cancelled = always_cancelled;
    CHECK_STATUS(xpl_xspace_open((xpl_bytes_t){b.p, b.n}, &a, &exec, &xs, NULL), XPL_CANCELLED,
                 NULL);
    CHECK(xs == NULL);
}

// Times count from the profile's start, in files that have absolute ones as well.
static void test_start(void) {
    static const int64_t start = INT64_C(1798502400000000000), us[] = {3};
    static const struct {
        int64_t said, line, counts_from;
    } all[] = {{start, start + 5000, 5000}, {start, 7000, 7000}, {0, start, start},
               {-1, start, start},          {start, 0, 0},       {INT64_MIN, -5, -5},
               {5000, 7000, 7000}}; // since boot
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct xpl_buf space = mk_thread(all[i].line, us, 1);
        mk_start(&space, all[i].said);
        struct opened o = open_bytes(space.p, space.n, 1 << 20);
        CHECK_EQ(o.status, XPL_OK);
        const struct xpl_line *const l = &o.xs->planes[0].lines[0];
        CHECK_EQ(l->timestamp_ns, all[i].counts_from);
        CHECK_EQ(l->absolute_ns, all[i].line);
        CHECK_EQ(o.xs->start_ns, all[i].said == start ? start : 0);
        close_it(&o);
        xpl_buf_fini(&space);
    }
}

// Lines without events may have any time, and keep it.
static void test_start_of_empty_lines(void) {
    static const int64_t start = INT64_C(1798502400000000000), us[] = {3};
    static const int64_t times[] = {0, 7000, start - 1, start, start + 5000, -5};
    struct xpl_buf space = mk_thread(start, us, 1);
    struct mk_plane p;
    mk_plane_begin(&p, 2, "/device:GPU:0");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct xpl_buf line = mk_line((int64_t)i, "empty");
        mk_int(&line, 3, times[i]);
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    mk_start(&space, start);
    struct opened o = open_bytes(space.p, space.n, 1 << 20);
    CHECK_OK(o.status, NULL);
    CHECK_EQ(o.xs->planes[1].n_lines, sizeof times / sizeof *times);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const struct xpl_line *const l = &o.xs->planes[1].lines[i];
        CHECK_EQ(l->absolute_ns, times[i]);
        CHECK_EQ(l->timestamp_ns, times[i] > start ? times[i] - start : 0);
    }
    close_it(&o);
    xpl_buf_fini(&space);
}

int main(void) {
    test_start();
    test_start_of_empty_lines();
    test_full();
    test_every_prefix();
    test_flipped_bytes();
    test_broken_event();
    test_broken_stat();
    test_odd_order();
    test_plane_kinds();
    test_hlo_ids();
    test_ids();
    test_chunks();
    test_many();
    test_cancelled();
    return 0;
}
