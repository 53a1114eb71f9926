// SPDX-License-Identifier: Apache-2.0
// Derived lines and the events that cursors yield: what golden cases cannot show.
#include <stdlib.h>

#include "analysis/trace/derived/derived.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/processor_time.h"
#include "tests/xspace_maker.h"

struct view {
    struct xpl_arena arena;
    struct xpl_buf bytes;
    struct xpl_xspace *xs;
    struct xpl_groups *groups;
    struct xpl_hlo_map *hlo;
    struct xpl_derived *d;
};

static void open_view(struct view *v, struct xpl_buf bytes) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    *v = (struct view){.bytes = bytes};
    xpl_arena_init(&v->arena, 64 << 20);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){bytes.p, bytes.n}, &v->arena, &exec, &v->xs, &err),
             &err);
    CHECK_OK(xpl_groups_build(v->xs, &v->arena, &exec, &v->groups, &err), &err);
    CHECK_OK(xpl_hlo_map_new(v->xs, 64 << 20, &v->hlo, &err), &err);
    CHECK_OK(xpl_derived_build(v->xs, v->groups, v->hlo, &v->arena, &exec, &v->d, &err), &err);
}

static void close_view(struct view *v) {
    xpl_hlo_map_free(v->hlo);
    xpl_arena_fini(&v->arena);
    xpl_buf_fini(&v->bytes);
}

static const struct xpl_derived_line *line_named(const struct view *v, uint32_t plane,
                                                 const char *name) {
    uint32_t n;
    const struct xpl_derived_plane *const p = &xpl_derived_planes(v->d, &n)[plane];
    CHECK(plane < n);
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (xpl_str_eq(p->lines[i].display_name, xpl_str_from(name))) return &p->lines[i];
    return NULL;
}

// Name, begin and duration of event `at` of a line, read in its pieces' order.
static bool event_is(const struct xpl_derived_line *l, uint64_t at, const char *name,
                     int64_t begin_ps, int64_t duration_ps) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n_pieces; i++) {
        struct xpl_arena a = xpl_arena_of(64 << 20);
        struct xpl_derived_cursor *c;
        struct xpl_derived_event ev;
        CHECK_OK(xpl_derived_cursor_new(l, i, &a, &c, NULL), NULL);
        while (xpl_derived_cursor_next(c, &ev) == XPL_WIRE_FIELD) {
            const struct xpl_derived_md md = xpl_derived_md_at(l->plane, ev.md);
            const xpl_str_t shown = md.display_name.len ? md.display_name : md.name;
            if (n++ != at) continue;
            const bool same = xpl_str_eq(shown, xpl_str_from(name)) && ev.begin_ps == begin_ps &&
                              ev.duration_ps == duration_ps;
            xpl_arena_fini(&a);
            return same;
        }
        xpl_arena_fini(&a);
    }
    return false;
}

static void put_kernel(struct mk_plane *p, struct xpl_buf *line, int64_t at, const char *op) {
    struct xpl_buf ev = mk_event(p, "kernel", at, 1000);
    mk_stat_str(p, &ev, "kernel_details", "regs:1");
    mk_stat_str(p, &ev, "hlo_module", "m");
    mk_stat_ref(p, &ev, "hlo_op", op);
    mk_event_end(line, &ev);
}

// A stream comes before its derived lines; neighbours join, a change of module or op splits.
static void test_gpu(void) {
    XPL_AUTO(close_view) struct view v;
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf space = mk_open();
    struct xpl_buf line = mk_line(7, "Stream");
    put_kernel(&p, &line, 1000, "a");
    put_kernel(&p, &line, 3000, "a");
    put_kernel(&p, &line, 9000, "b");
    mk_line_end(&p, &line);
    line = mk_line(8, "Empty");
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    open_view(&v, space);
    const struct xpl_derived_line *const stream = line_named(&v, 0, "Stream");
    const struct xpl_derived_line *const ops = line_named(&v, 0, "XLA Ops - from #7");
    const struct xpl_derived_line *const modules = line_named(&v, 0, "XLA Modules - from #7");
    CHECK(stream && ops && modules);
    CHECK(!line_named(&v, 0, "Empty") && !line_named(&v, 0, "Framework Ops - from #7"));
    CHECK_EQ(stream->display_id, 1);
    CHECK_EQ(modules->display_id, 4);
    CHECK_EQ(ops->display_id, 5);
    CHECK_EQ(ops->n_events, 2);
    CHECK(event_is(ops, 0, "a", 1000, 3000));
    CHECK(event_is(ops, 1, "b", 9000, 1000));
    CHECK_EQ(modules->n_events, 1);
    CHECK(event_is(modules, 0, "m", 1000, 9000));
}

// What arrives grouped stays as it is.
static void test_grouped(void) {
    XPL_AUTO(close_view) struct view v;
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf space = mk_open();
    struct xpl_buf line = mk_line(7, "Stream"), ev = mk_event(&p, "kernel", 5, 6);
    mk_stat_str(&p, &ev, "kernel_details", "regs:1");
    mk_stat_str(&p, &ev, "hlo_module", "m");
    mk_stat_int(&p, &ev, "group_id", 3);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    line = mk_line(8, "Empty");
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    open_view(&v, space);
    uint32_t n;
    CHECK_EQ(xpl_derived_planes(v.d, &n)[0].n_lines, 2);
    CHECK(event_is(line_named(&v, 0, "Stream"), 0, "kernel", 5, 6));
}

// Pieces of a long line are the line; the sorted cursor yields it by time.
static void test_pieces(void) {
    enum { N = 40000 };
    struct view v;
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf space = mk_open();
    struct xpl_buf line = mk_line(1, "thread");
    for (int64_t i = 0; i < N; i++)
        mk_plain(&p, &line, "e", (N - i) * 100, 50);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    open_view(&v, space);
    const struct xpl_derived_line *const l = line_named(&v, 0, "thread");
    CHECK(l);
    CHECK_EQ(l->n_events, N);
    CHECK(event_is(l, 0, "e", N * 100, 50));
    CHECK(event_is(l, N - 1, "e", 100, 50));
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    struct xpl_derived_cursor *c;
    struct xpl_derived_event ev;
    CHECK_OK(xpl_derived_cursor_new_sorted(l, &a, &c, NULL), NULL);
    int64_t n = 0;
    while (xpl_derived_cursor_next(c, &ev) == XPL_WIRE_FIELD)
        CHECK_EQ(ev.begin_ps, ++n * 100);
    CHECK_EQ(n, N);
    close_view(&v);
}

// A limit ends in RESOURCE_EXHAUSTED, not in a partial view.
static void test_limit(void) {
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_buf line = mk_line(7, "Stream");
    for (int64_t i = 0; i < 20000; i++)
        put_kernel(&p, &line, i * 2000, i % 2 ? "a" : "b");
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena big, small;
    struct xpl_xspace *xs;
    struct xpl_groups *groups;
    struct xpl_hlo_map *hlo;
    struct xpl_derived *d = NULL;
    struct xpl_error err = {0};
    xpl_arena_init(&big, 64 << 20);
    xpl_arena_init(&small, 256 << 10);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &big, &exec, &xs, &err), &err);
    CHECK_OK(xpl_groups_build(xs, &big, &exec, &groups, &err), &err);
    CHECK_OK(xpl_hlo_map_new(xs, 1 << 20, &hlo, &err), &err);
    CHECK_STATUS(xpl_derived_build(xs, groups, hlo, &small, &exec, &d, &err),
                 XPL_RESOURCE_EXHAUSTED, &err);
    CHECK(d == NULL);
    CHECK_STATUS(err.code, XPL_RESOURCE_EXHAUSTED, &err);
    xpl_hlo_map_free(hlo);
}

// A statistic of an unsigned number: correlation ids are read only from such.
static void put_uint(struct mk_plane *p, struct xpl_buf *ev, const char *name, uint64_t v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_int(&s, 3, (int64_t)v);
    mk_close(ev, 4, &s);
}

static struct xpl_flow flow_of(const struct xpl_derived_line *l, uint64_t at, uint32_t *ret_n) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_derived_cursor *c;
    struct xpl_derived_event ev = {0};
    CHECK_OK(xpl_derived_cursor_new(l, 0, &a, &c, NULL), NULL);
    for (uint64_t i = 0; i <= at; i++)
        CHECK_EQ(xpl_derived_cursor_next(c, &ev), XPL_WIRE_FIELD);
    *ret_n = ev.n_flows;
    return ev.flows[0];
}

// Launch and kernel, producer and consumer share a flow; others do not.
static void test_flows(void) {
    XPL_AUTO(close_view) struct view v;
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf space = mk_open(), line, ev;
    line = mk_line(7, "Stream");
    for (uint64_t i = 0; i < 2; i++) {
        ev = mk_event(&p, "kernel", (int64_t)i * 100, 10);
        put_uint(&p, &ev, "correlation_id", 40 + i);
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    mk_plane_begin(&p, 2, "/host:CPU");
    line = mk_line(8, "thread");
    ev = mk_event(&p, "launch", 0, 10);
    put_uint(&p, &ev, "correlation_id", 40);
    mk_event_end(&line, &ev);
    ev = mk_event(&p, "produce", 20, 10);
    mk_stat_int(&p, &ev, "_pt", 14);
    mk_stat_int(&p, &ev, "_p", 3);
    mk_event_end(&line, &ev);
    ev = mk_event(&p, "consume", 40, 10);
    mk_stat_int(&p, &ev, "_ct", 14);
    mk_stat_int(&p, &ev, "_c", 3);
    mk_event_end(&line, &ev);
    mk_plain(&p, &line, "alone", 60, 10);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    open_view(&v, space);
    const struct xpl_derived_line *const stream = line_named(&v, 0, "Stream");
    const struct xpl_derived_line *const thread = line_named(&v, 1, "thread");
    uint32_t n;
    const struct xpl_flow in = flow_of(stream, 0, &n), out = flow_of(thread, 0, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(in.id, out.id);
    CHECK(in.id != flow_of(stream, 1, &n).id);
    CHECK_EQ(in.direction, XPL_FLOW_IN);
    CHECK_EQ(out.direction, XPL_FLOW_OUT);
    CHECK_EQ(in.category, XPL_CONTEXT_GPU_LAUNCH);
    CHECK(in.of_kernel);
    const struct xpl_flow from = flow_of(thread, 1, &n), to = flow_of(thread, 2, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(from.id, to.id);
    CHECK_EQ(from.category, XPL_CONTEXT_PJRT_LIBRARY_CALL);
    CHECK_EQ(from.direction, XPL_FLOW_OUT);
    CHECK_EQ(to.direction, XPL_FLOW_IN);
    CHECK_EQ(xpl_flow_stat(&from) >> 58, XPL_CONTEXT_PJRT_LIBRARY_CALL);
    CHECK_EQ((xpl_flow_stat(&from) >> 2) & ((UINT64_C(1) << 56) - 1), from.id);
    (void)flow_of(thread, 3, &n);
    CHECK_EQ(n, 0);
}

// A GPU's own line of steps stays as it was recorded, also beside a TPU (docs/differences.md,
// gpu_recorded_steps).
static void test_gpu_steps(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf steps = mk_line(5, "Steps"), stream = mk_line(16, "Stream #16(Compute)");
    for (int i = 0; i < 3; i++) {
        struct xpl_buf step = mk_event(&p, "7", i * 10000, 9000);
        mk_stat_int(&p, &step, "group_id", i / 2);
        mk_event_end(&steps, &step);
        mk_plain(&p, &stream, "a_kernel", i * 10000 + 1000, 5000);
    }
    mk_line_end(&p, &steps);
    mk_line_end(&p, &stream);
    mk_plane_end(&p, &space);
    mk_plane_begin(&p, 2, "/device:TPU:0");
    struct xpl_buf ops = mk_line(1, "XLA Ops");
    mk_plain(&p, &ops, "op.1", 0, 8000);
    mk_line_end(&p, &ops);
    mk_plane_end(&p, &space);
    XPL_AUTO(close_view) struct view v;
    open_view(&v, space);
    const struct xpl_derived_line *const l = line_named(&v, 0, "Steps");
    CHECK(l);
    CHECK_EQ(l->n_events, 3); // XProf makes one of the first two
    for (int i = 0; i < 3; i++)
        CHECK(event_is(l, (uint64_t)i, "7", i * 10000, 9000));
}

// An op with a long path, of many events: only so many levels of it are shown.
static void test_long_path(void) {
    enum { LEVELS = 300000, COUNT = 2000 };
    XPL_AUTO(close_view) struct view v;
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf space = mk_open(), line = mk_line(7, "Stream");
    char *const path = malloc(3 * LEVELS + 2);
    CHECK(path);
    for (size_t i = 0; i < LEVELS; i++)
        memcpy(path + 3 * i, "a::", 3);
    memcpy(path + (size_t)3 * LEVELS, "b", 2);
    for (int i = 0; i < COUNT; i++)
        put_kernel(&p, &line, 2000 * (int64_t)i, path);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    const double begin = processor_s();
    open_view(&v, space);
    const struct xpl_derived_line *const ops = line_named(&v, 0, "XLA Ops - from #7");
    CHECK(ops && ops->n_events < 1000);
    CHECK(is_within(begin, 2));
    free(path);
}

// A text is cut, but no character of it.
static void test_long_text(void) {
    enum { LONGEST = 16384 };
    static char text[LONGEST + 8];
    XPL_AUTO(close_view) struct view v;
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf space = mk_open(), line = mk_line(7, "Stream");
    memset(text, 'a', LONGEST - 1);
    memcpy(text + LONGEST - 1, "éb", sizeof "éb");
    put_kernel(&p, &line, 1000, text);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    open_view(&v, space);
    text[LONGEST - 1] = 0;
    CHECK(event_is(line_named(&v, 0, "XLA Ops - from #7"), 0, text, 1000, 1000));
}

// Many GPUs share one large tree of scopes.
static void test_many_scopes(void) {
    enum { SCOPES = 100000, GPUS = 5000 };
    XPL_AUTO(close_view) struct view v;
    struct mk_plane p;
    struct xpl_buf space = mk_open();
    mk_plane_begin(&p, 0, "/host:__ScopeRangeCallStack__");
    for (int64_t i = 1; i <= SCOPES; i++) {
        struct xpl_buf edge = mk_open();
        mk_int(&edge, 1, i);
        mk_int(&edge, 4, i / 2 + 1);
        mk_close(&p.body, 6, &edge);
    }
    mk_plane_end(&p, &space);
    for (int i = 0; i < GPUS; i++) {
        mk_plane_begin(&p, 1 + i, "/device:GPU:0");
        struct xpl_buf line = mk_line(7, "Stream");
        put_kernel(&p, &line, 1000, "a");
        mk_line_end(&p, &line);
        mk_plane_end(&p, &space);
    }
    const double begin = processor_s();
    open_view(&v, space);
    CHECK(is_within(begin, 2));
}

int main(void) {
    test_flows();
    test_gpu();
    test_grouped();
    test_pieces();
    test_limit();
    test_gpu_steps();
    test_long_path();
    test_long_text();
    test_many_scopes();
    return 0;
}
