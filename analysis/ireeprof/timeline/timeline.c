// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/timeline/timeline.h"

#include "analysis/ireeprof/timeline/impl.h"

enum { CANCEL_EVERY = 4096 };

static void init(struct xpl_iree_timeline *t, struct xpl_iree_run *run) {
#define TABLE(row, key) (struct xpl_iree_table){.row_size = sizeof(struct row), .key_size = (key)}
#define LIST(row)                                                                                  \
    (struct xpl_iree_list) {                                                                       \
        .size = sizeof(struct row)                                                                 \
    }
    *t = (struct xpl_iree_timeline){
        .run = run,
        .tracks = TABLE(xpl_iree_track, sizeof(struct xpl_iree_track_key)),
        .buffers = TABLE(xpl_iree_timeline_buffer, sizeof(struct xpl_iree_buffer_key)),
        .operations = TABLE(xpl_iree_timeline_operation, sizeof(struct xpl_iree_operation_key)),
        .functions = TABLE(xpl_iree_timeline_function, sizeof(struct xpl_iree_function_key)),
        .sets = TABLE(xpl_iree_timeline_set, sizeof(struct xpl_iree_set_key)),
        .sources = TABLE(xpl_iree_timeline_source, sizeof(struct xpl_iree_source_key)),
        .clocks = TABLE(xpl_iree_timeline_clock, sizeof(struct xpl_iree_device_key)),
        .devices = TABLE(xpl_iree_timeline_device, sizeof(struct xpl_iree_device_key)),
        .names = TABLE(xpl_iree_timeline_name, sizeof(struct xpl_iree_name_key)),
        .endpoints = TABLE(xpl_iree_endpoint, sizeof(struct xpl_iree_endpoint_key)),
        .chunks = LIST(xpl_iree_chunk_place),
        .events = LIST(xpl_iree_event),
        .slices = LIST(xpl_iree_slice),
        .counters = LIST(xpl_iree_timeline_counter),
        .flows = LIST(xpl_iree_flow)};
#undef TABLE
#undef LIST
    t->x.bare = true;
    t->members = (struct xpl_iree_rows){.member = xpl_iree_timeline_member,
                                        .fields = xpl_iree_timeline_fields};
    xpl_iree_model_init(&t->x.model);
    xpl_iree_model_by_session(&t->x.model, run->bundle);
    xpl_arena_init(&t->arena, run->limit ? run->limit : SIZE_MAX);
}

static void fini(struct xpl_iree_timeline *t) {
    struct xpl_iree_table *const tables[] = {
        &t->tracks,  &t->buffers, &t->operations, &t->functions, &t->sets,
        &t->sources, &t->clocks,  &t->endpoints,  &t->devices,   &t->names};
    struct xpl_iree_list *const lists[] = {&t->chunks, &t->events, &t->slices, &t->counters,
                                           &t->flows};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        xpl_iree_table_fini(tables[i]);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        xpl_sys_free(lists[i]->v);
    xpl_sys_free(t->memory);
    xpl_sys_free(t->memory_order);
    xpl_iree_model_fini(&t->x.model);
    xpl_arena_fini(&t->arena);
}

// ---- collecting ----

// Rows that failed are reported at the end.
static xpl_status_t check_stopped(const struct xpl_iree_timeline *t, struct xpl_error *err) {
    if (t->stopped && !t->run->rows->failed)
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "the trace is not needed any more");
    return XPL_OK;
}

static xpl_status_t describe(void *ctx, const struct xpl_iree_record *h, struct xpl_error *err) {
    struct xpl_iree_timeline *const t = ctx;
    XPL_TRY(xpl_iree_model_add(&t->x.model, t->run, h, err));
    if (!xpl_iree_timeline_describe(t, h)) XPL_RETURN_OOM(err, "timeline of the bundle");
    return check_stopped(t, err);
}

static xpl_status_t collect(void *ctx, const struct xpl_iree_record *h, struct xpl_error *err) {
    struct xpl_iree_timeline *const t = ctx;
    XPL_TRY(xpl_iree_model_follow(&t->x.model, h, err));
    if (!xpl_iree_timeline_collect(t, h)) XPL_RETURN_OOM(err, "timeline of the bundle");
    return check_stopped(t, err);
}

static uint64_t time_of(const void *ctx, size_t i, unsigned key) {
    const struct xpl_iree_event *const e = (const struct xpl_iree_event *)ctx + i;
    return key ? e->kind : xpl_iree_order_of(e->ns);
}

// Brings the events in the order of time, where they are; false on OOM.
static bool sort_events(struct xpl_iree_timeline *t) {
    struct xpl_iree_event *const v = t->events.v;
    uint32_t *const from = xpl_iree_timeline_order(t->events.n, 2, time_of, v);
    for (uint32_t i = 0; from && i < t->events.n; i++) {
        const struct xpl_iree_event first = v[i];
        uint32_t at = i;
        for (uint32_t next; (next = from[at]) != i; at = next)
            v[at] = v[next], from[at] = at;
        v[at] = first, from[at] = at;
    }
    xpl_sys_free(from);
    return from != NULL;
}

// Diagnostics have no time: they stand where the trace begins, but not below 0.
static void place_diagnostics(struct xpl_iree_timeline *t) {
    struct xpl_iree_event *const events = t->events.v;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < t->events.n; i++)
        if (events[i].kind != XPL_IREE_EVENT_DIAGNOSTIC && events[i].ns < first)
            first = events[i].ns;
    for (size_t i = 0; i < t->events.n; i++)
        if (events[i].kind == XPL_IREE_EVENT_DIAGNOSTIC)
            events[i].ns = first == INT64_MAX || first < 0 ? 0 : first;
}

static xpl_status_t collect_all(struct xpl_iree_timeline *t, struct xpl_error *err) {
    if (xpl_iree_track_root(t) == UINT32_MAX || xpl_iree_track_diagnostics(t) == UINT32_MAX)
        XPL_RETURN_OOM(err, "timeline of the bundle");
    XPL_TRY(xpl_iree_walk_in_place(t->run, describe, t, err));
    xpl_iree_model_pass(&t->x.model);
    if (!xpl_iree_timeline_described(t)) XPL_RETURN_OOM(err, "timeline of the bundle");
    t->chunks.n = 0; // collecting counts them again
    XPL_TRY(xpl_iree_walk_in_place(t->run, collect, t, err));
    if (!xpl_iree_timeline_warn(t) || !xpl_iree_timeline_lanes(t) ||
        !xpl_iree_timeline_allocated(t))
        XPL_RETURN_OOM(err, "timeline of the bundle");
    place_diagnostics(t);
    // An XSpace is by lines.
    if (t->run->options.trace != XPL_IREE_XSPACE && !sort_events(t))
        XPL_RETURN_OOM(err, "timeline of the bundle");
    return XPL_OK;
}

// ---- writing ----

static xpl_status_t write_all(struct xpl_iree_sink *s, struct xpl_error *err) {
    struct xpl_iree_timeline *const t = s->t;
    const struct xpl_iree_event *const events = t->events.v;
    const int64_t base = t->events.n && events[0].ns < 0 ? events[0].ns : 0;
    s->writer->begin(s);
    for (uint32_t i = 0; i < t->tracks.n; i++)
        s->writer->track(s, xpl_iree_track_at(t, i), i);
    for (size_t i = 0; i < t->events.n && !t->run->rows->failed; i++) {
        xpl_iree_timeline_put(s, &events[i], (uint64_t)events[i].ns - (uint64_t)base);
        xpl_iree_rows_flush_large(t->run->rows);
        if (i % CANCEL_EVERY == 0 && xpl_iree_stopped(t->run) && !t->run->rows->failed)
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "the trace is not needed any more");
        XPL_TRY(check_stopped(t, err));
    }
    s->writer->end(s);
    if (s->list.failed) XPL_RETURN_OOM(err, "timeline of the bundle");
    return XPL_OK;
}

static xpl_status_t write_trace(struct xpl_iree_timeline *t, struct xpl_error *err) {
    struct xpl_buf *const out = t->run->rows->out;
    const bool chrome = t->run->options.trace == XPL_IREE_CHROME;
    struct xpl_iree_run members = *t->run; // the writer counts missing names
    struct xpl_iree_sink s = {.t = t,
                              .writer =
                                  chrome ? &xpl_iree_chrome_writer : &xpl_iree_perfetto_writer,
                              .json = {.format = XPL_IREE_JSONL, .out = out},
                              .flows = {.row_size = sizeof(uint64_t), .key_size = sizeof(uint64_t)},
                              .waiting = {.size = sizeof(uint64_t)}};
    t->members.member_ctx = &s;
    members.rows = &t->members;
    t->x.run = &members;
    xpl_buf_init(&s.list, (size_t)1 << 30);
    xpl_packet_init(&s.packet, out, 1001, (size_t)1 << 32);
    const bool xspace = t->run->options.trace == XPL_IREE_XSPACE;
    const xpl_status_t st = xspace ? xpl_iree_xspace_write(&s, err) : write_all(&s, err);
    memcpy(t->run->missing, members.missing, sizeof members.missing);
    xpl_packet_fini(&s.packet);
    xpl_iree_table_fini(&s.flows);
    xpl_sys_free(s.waiting.v);
    xpl_buf_fini(&s.list);
    return st;
}

xpl_status_t xpl_iree_timeline_write(struct xpl_iree_run *run, struct xpl_error *err) {
    struct xpl_iree_timeline t;
    init(&t, run);
    t.x.run = run;
    xpl_status_t st = collect_all(&t, err);
    if (st == XPL_OK) st = write_trace(&t, err);
    fini(&t);
    return st;
}
