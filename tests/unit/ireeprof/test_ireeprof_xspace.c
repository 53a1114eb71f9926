// SPDX-License-Identifier: Apache-2.0
// A bundle as an XSpace: planes, lines, ops, counters and flows are those of the bundle.
#include <string.h>

#include "analysis/xplane/schema.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/data_file.h"
#include "tests/iree_run.h"

struct opened {
    struct xpl_buf file;
    struct iree_run x;
    struct xpl_arena arena;
    struct xpl_xspace *space;
};

static void open_bundle(struct opened *o, const char *name) {
    struct xpl_exec serial = xpl_exec_serial();
    char path[80];
    *o = (struct opened){.x = {.run.options = {.id = -1, .trace = XPL_IREE_XSPACE}}};
    (void)snprintf(path, sizeof path, "iree/%s.ireeprof", name);
    o->file = read_data_file(path);
    CHECK_OK(iree_report(&o->x, (xpl_bytes_t){o->file.p, o->file.n}, "export", XPL_IREE_JSONL),
             &o->x.err);
    xpl_arena_init(&o->arena, (size_t)1 << 26);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){o->x.out.p, o->x.out.n}, &o->arena, &serial, &o->space,
                             &o->x.err),
             &o->x.err);
}

static void close_bundle(struct opened *o) {
    xpl_arena_fini(&o->arena);
    xpl_buf_fini(&o->x.out);
    xpl_buf_fini(&o->file);
}

struct sums {
    uint64_t events, ops, flows, counters;
    int64_t op_ps, first_ps;
};

static void add_event(struct sums *s, const struct xpl_line *line, const struct xpl_event *ev) {
    struct xpl_stats stats = ev->stats;
    struct xpl_stat v;
    const bool counter = xpl_str_eq(line->name, XPL_STR(XPL_LINE_COUNTERS));
    s->events++;
    s->counters += counter;
    if (counter) CHECK_EQ(ev->duration_ps, 0);
    while (xpl_stats_next(&stats, &v) == XPL_WIRE_FIELD) {
        if (v.md->type == XPL_STAT_FLOW) s->flows++;
        if (v.md->type != XPL_STAT_TF_OP) continue;
        s->ops++;
        s->op_ps += ev->duration_ps;
    }
}

static struct sums sum_of(const struct xpl_plane *p) {
    struct sums s = {0};
    CHECK(p);
    for (uint32_t i = 0; i < p->n_lines; i++) {
        struct xpl_event_cursor cursor = xpl_events_of(&p->lines[i]);
        struct xpl_event ev;
        int64_t last_ps = 0;
        while (xpl_events_next(&cursor, &ev) == XPL_WIRE_FIELD) {
            CHECK(ev.offset_ps >= last_ps && ev.duration_ps >= 0); // in order
            last_ps = ev.offset_ps;
            CHECK(xpl_event_get_md(&p->lines[i], &ev)->name.len);
            add_event(&s, &p->lines[i], &ev);
        }
    }
    return s;
}

// Of CPUs everything is the host's: four dispatches, whose times are those of the report.
static void test_host(void) {
    XPL_AUTO(close_bundle) struct opened o;
    open_bundle(&o, "task-mlp-all");
    CHECK_EQ(o.space->n_planes, 1);
    const struct sums s = sum_of(xpl_xspace_plane(o.space, XPL_STR("/host:CPU")));
    CHECK_EQ(s.ops, 4);
    CHECK_EQ(s.op_ps, (251719 + 43610 + 4127 + 2409) * INT64_C(1000));
    CHECK_EQ(s.counters, 3); // two allocations, one given back
    CHECK(s.flows >= 8);
}

static int64_t stat_of(const struct xpl_event *ev, enum xpl_stat_type type) {
    struct xpl_stats stats = ev->stats;
    struct xpl_stat v;
    while (xpl_stats_next(&stats, &v) == XPL_WIRE_FIELD)
        if (v.md->type == type) return xpl_stat_int(&v);
    return -1;
}

// Allocations and their ends with the bytes in use after each, as XLA's allocators report them: of
// a pool's reservations and of a queue two are opened, and the larger one is closed.
static void test_allocators(void) {
    XPL_AUTO(close_bundle) struct opened o;
    open_bundle(&o, "task-mlp-all");
    const struct xpl_plane *const p = xpl_xspace_plane(o.space, XPL_STR("/host:CPU"));
    static const int64_t in_use[] = {2560, 2560, 100864, 100864, 2560, 2560};
    size_t n = 0, closed = 0;
    for (uint32_t i = 0; i < p->n_lines; i++) {
        struct xpl_event_cursor cursor;
        struct xpl_event ev;
        if (!xpl_str_eq(p->lines[i].name, XPL_STR("allocators"))) continue;
        xpl_events_begin(&cursor, &p->lines[i]);
        for (; xpl_events_next(&cursor, &ev) == XPL_WIRE_FIELD; n++) {
            const enum xpl_event_type type = p->event_md[ev.md].type;
            CHECK(type == XPL_EVENT_MEMORY_ALLOCATION || type == XPL_EVENT_MEMORY_DEALLOCATION);
            closed += type == XPL_EVENT_MEMORY_DEALLOCATION;
            CHECK(n < sizeof in_use / sizeof *in_use);
            CHECK_EQ(stat_of(&ev, XPL_STAT_BYTES_ALLOCATED), in_use[n]);
            CHECK_EQ(stat_of(&ev, XPL_STAT_PEAK_BYTES_IN_USE), n < 2 ? 2560 : 100864);
            CHECK_EQ(stat_of(&ev, XPL_STAT_ALLOCATION_BYTES), n < 2 ? 2560 : 98304);
        }
    }
    CHECK(n == sizeof in_use / sizeof *in_use && closed == 2);
}

// Events timed by a device are on a separate plane.
static void test_device(void) {
    XPL_AUTO(close_bundle) struct opened o;
    open_bundle(&o, "vk-mlp-all");
    CHECK_EQ(o.space->n_planes, 2);
    const struct sums host = sum_of(xpl_xspace_plane(o.space, XPL_STR("/host:CPU")));
    const struct sums device = sum_of(xpl_xspace_plane(o.space, XPL_STR("/device:GPU:0")));
    CHECK_EQ(host.ops, 0);
    CHECK_EQ(device.ops, 4);
    CHECK_EQ(device.events, 5); // and the execution
    CHECK(device.flows == 1 && host.flows >= 2);
}

// Everything that the format knows: counters of devices, names that are odd.
static void test_everything(void) {
    XPL_AUTO(close_bundle) struct opened o;
    open_bundle(&o, "syn-everything");
    uint64_t counters = 0;
    for (uint32_t i = 0; i < o.space->n_planes; i++)
        counters += sum_of(&o.space->planes[i]).counters;
    CHECK(o.space->n_planes >= 2 && counters >= 4);
}

// A bundle of many events with few names: its host events again and again.
static struct xpl_buf repeat(const struct xpl_buf *file, int times) {
    struct xpl_iree_bundle bundle;
    struct xpl_iree_record r;
    struct xpl_buf out = xpl_buf_of((size_t)1 << 26);
    CHECK_OK(xpl_iree_open((xpl_bytes_t){file->p, file->n}, false, &bundle, NULL), NULL);
    struct xpl_iree_cursor c = {.bundle = &bundle};
    xpl_buf_put(&out, file->p, bundle.header.header_length);
    memset(out.p + 16, 0, 8); // its length is not known any more
    while (xpl_iree_next(&c, &r))
        for (int i = 0; i < (r.chunk == XPL_IREE_HOST_EVENTS ? times : 1); i++)
            xpl_buf_put(&out, file->p + r.offset, (size_t)r.record_length);
    CHECK(!out.failed);
    return out;
}

// The events count for the limit of memory, too, with what their order takes.
static void test_limit(void) {
    enum { TIMES = 500, PER_EVENT = 64 }; // bytes, at least
    XPL_AUTO(xpl_buf_fini) struct xpl_buf file = read_data_file("iree/task-mlp-all.ireeprof");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf many = repeat(&file, TIMES);
    for (int roomy = 0; roomy < 2; roomy++) {
        struct iree_run x = {.run = {.options = {.id = -1, .trace = XPL_IREE_XSPACE}}};
        x.run.limit = roomy ? (size_t)1 << 24 : TIMES * 3 * PER_EVENT; // 3: dispatches
        const xpl_status_t st =
            iree_report(&x, (xpl_bytes_t){many.p, many.n}, "export", XPL_IREE_JSONL);
        CHECK_EQ(st, roomy ? XPL_OK : XPL_RESOURCE_EXHAUSTED);
        xpl_buf_fini(&x.out);
    }
}

int main(void) {
    test_limit();
    test_host();
    test_allocators();
    test_device();
    test_everything();
    return 0;
}
