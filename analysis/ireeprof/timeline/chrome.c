// SPDX-License-Identifier: Apache-2.0
// The timeline in Chrome's JSON trace format: devices are processes, tracks are threads, slices
// begin and end as separate elements. Counters have no arguments: each would be a series.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/ireeprof/timeline/impl.h"
#include "base/json.h"

static struct xpl_buf *out_of(struct xpl_iree_sink *s) {
    return s->t->run->rows->out;
}

// The device that a track is of, or the root.
static uint32_t process_of(const struct xpl_iree_sink *s, uint32_t track) {
    const struct xpl_iree_track *t = xpl_iree_track_at(s->t, track);
    while (t->key.kind != XPL_IREE_TRACK_DEVICE && t->parent_plus_1) {
        track = t->parent_plus_1 - 1;
        t = xpl_iree_track_at(s->t, track);
    }
    return track;
}

static struct xpl_buf *begin_element(struct xpl_iree_sink *s, const char *ph, uint32_t track) {
    struct xpl_buf *const b = out_of(s);
    xpl_buf_str(b, s->any ? XPL_STR(",\n") : XPL_STR(""));
    s->any = true;
    xpl_buf_printf(b, "{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, ph,
                   process_of(s, track) + 1, track + 1);
    return b;
}

static void put_us(struct xpl_buf *b, uint64_t ns) {
    xpl_buf_printf(b, ",\"ts\":%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static void begin(struct xpl_iree_sink *s) {
    xpl_buf_str(out_of(s), XPL_STR("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"));
}

// Its name behind those of the tracks between it and the process.
static void put_path(struct xpl_iree_sink *s, const struct xpl_iree_track *t, uint32_t process) {
    struct xpl_buf *const b = &s->list;
    xpl_str_t parts[8];
    size_t n = 0;
    b->n = 0;
    for (; n < 8; t = xpl_iree_track_at(s->t, t->parent_plus_1 - 1)) {
        parts[n++] = t->name;
        if (!t->parent_plus_1 || t->parent_plus_1 - 1 == process) break;
    }
    while (n--) {
        xpl_buf_str(b, parts[n]);
        if (n) xpl_buf_str(b, XPL_STR(" / "));
    }
    xpl_json_str(out_of(s), (xpl_str_t){(const char *)b->p, b->n}, false);
}

static void put_metadata(struct xpl_iree_sink *s, uint32_t index, const char *what) {
    xpl_buf_printf(begin_element(s, "M", index), ",\"name\":\"%s\",\"args\":{", what);
}

static void put_track(struct xpl_iree_sink *s, const struct xpl_iree_track *t, uint32_t index) {
    const uint32_t process = process_of(s, index);
    const bool is_process = process == index;
    if (t->counter) return; // their events name them
    put_metadata(s, index, is_process ? "process_name" : "thread_name");
    xpl_buf_str(out_of(s), XPL_STR("\"name\":"));
    put_path(s, t, process);
    xpl_buf_str(out_of(s), XPL_STR("}}"));
    put_metadata(s, index, is_process ? "process_sort_index" : "thread_sort_index");
    xpl_buf_printf(out_of(s), "\"sort_index\":%" PRIu32 "}}", index);
}

static void put_event(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns,
                      xpl_str_t name) {
    const struct xpl_iree_track *const t = xpl_iree_track_at(s->t, e->track);
    // Arrows end at slices: what the queue does is one without a length.
    const bool queue = e->kind == XPL_IREE_EVENT_QUEUE || e->kind == XPL_IREE_EVENT_READY;
    const bool end = e->kind == XPL_IREE_EVENT_END, slice = e->kind == XPL_IREE_EVENT_SLICE;
    struct xpl_buf *const b = begin_element(s,
                                            t->counter ? "C"
                                            : end      ? "E"
                                            : slice    ? "B"
                                            : queue    ? "X"
                                                       : "i",
                                            e->track);
    put_us(b, ns);
    if (queue) xpl_buf_str(b, XPL_STR(",\"dur\":0"));
    if (!t->counter && !end && !slice && !queue) xpl_buf_str(b, XPL_STR(",\"s\":\"t\""));
    if (end) return;
    xpl_buf_str(b, XPL_STR(",\"name\":"));
    if (t->counter)
        put_path(s, t, process_of(s, e->track));
    else
        xpl_json_str(b, name, false);
    xpl_buf_str(b, XPL_STR(",\"args\":{"));
    s->json.comma = false;
}

// Flows follow their event, which is not ended yet: their ids wait.
static void put_flow(struct xpl_iree_sink *s, uint64_t id) {
    uint64_t *const slot = xpl_iree_list_push(&s->waiting);
    if (slot)
        *slot = id;
    else
        out_of(s)->failed = true;
}

static void put_argument(struct xpl_iree_sink *s, const struct xpl_iree_member *m) {
    const bool large = (m->kind == XPL_IREE_MEMBER_U64 && m->u64 > UINT64_C(1) << 53) ||
                       (m->kind == XPL_IREE_MEMBER_I64 &&
                        (m->i64 > INT64_C(1) << 53 || m->i64 < -(INT64_C(1) << 53)));
    char text[24];
    if (xpl_iree_track_at(s->t, s->event->track)->counter) return;
    if (large) { // no number of JavaScript
        if (m->kind == XPL_IREE_MEMBER_U64)
            (void)snprintf(text, sizeof text, "%" PRIu64, m->u64);
        else
            (void)snprintf(text, sizeof text, "%" PRId64, m->i64);
        xpl_row_text(&s->json, m->name, text);
        return;
    }
    switch (m->kind) {
        case XPL_IREE_MEMBER_U64: xpl_row_u64(&s->json, m->name, m->u64); break;
        case XPL_IREE_MEMBER_I64: xpl_row_i64(&s->json, m->name, m->i64); break;
        case XPL_IREE_MEMBER_BOOL: xpl_row_bool(&s->json, m->name, m->is); break;
        case XPL_IREE_MEMBER_DOUBLE: xpl_row_double(&s->json, m->name, m->number); break;
        case XPL_IREE_MEMBER_TEXT: xpl_row_str(&s->json, m->name, m->text); break;
        case XPL_IREE_MEMBER_NULL:
        case XPL_IREE_MEMBER_OPEN:
        case XPL_IREE_MEMBER_CLOSE: break;
    }
}

static void put_value(struct xpl_iree_sink *s, const struct xpl_iree_member *m) {
    if (m->kind == XPL_IREE_MEMBER_DOUBLE)
        xpl_row_double(&s->json, "value", m->number);
    else if (m->kind == XPL_IREE_MEMBER_U64)
        xpl_row_u64(&s->json, "value", m->u64);
    else
        xpl_row_i64(&s->json, "value", m->i64);
}

static void end_event(struct xpl_iree_sink *s, uint64_t ns) {
    struct xpl_buf *const b = out_of(s);
    xpl_buf_str(b, s->event->kind == XPL_IREE_EVENT_END ? XPL_STR("}") : XPL_STR("}}"));
    const uint64_t *const ids = s->waiting.v;
    for (size_t i = 0; i < s->waiting.n && !xpl_iree_timeline_put_stopped(s); i++) {
        bool is_new;
        if (!xpl_iree_table_put(&s->flows, &ids[i], &is_new)) b->failed = true;
        (void)begin_element(s, is_new ? "s" : "t", s->event->track);
        put_us(b, ns);
        xpl_buf_printf(b, ",\"id\":\"0x%" PRIx64 "\",\"cat\":\"flow\",\"name\":\"flow\"}", ids[i]);
        xpl_iree_rows_flush_large(s->t->run->rows);
    }
    s->waiting.n = 0;
}

static void end(struct xpl_iree_sink *s) {
    xpl_buf_str(out_of(s), XPL_STR("\n]}\n"));
}

const struct xpl_iree_trace_writer xpl_iree_chrome_writer = {
    .begin = begin,
    .track = put_track,
    .event = put_event,
    .flow = put_flow,
    .argument = put_argument,
    .value = put_value,
    .event_end = end_event,
    .end = end,
};
