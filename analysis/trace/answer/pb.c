// SPDX-License-Identifier: Apache-2.0
// trace_viewer@'s answer as a TraceDataResponse, compressed with zstd: a series of columns per row
// (XProf: protobuf/trace_data_response.proto,
// convert/trace_viewer/delta_series/trace_data_to_compressed_delta_series_proto).
#include <zstd.h>

#include "analysis/trace/answer/impl.h"
#include "analysis/wire/writer.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h" // xpl_hash_seed

enum { ZSTD_LEVEL = 1 };
enum { // of the messages
    RESPONSE_COMPLETE = 1,
    RESPONSE_COUNTERS = 2,
    RESPONSE_ASYNC = 3,
    RESPONSE_METADATA = 4,
    RESPONSE_STRINGS = 5,
    RESPONSE_DETAILS = 6,
    RESPONSE_BEGIN = 7,
    RESPONSE_END = 8,
    SERIES_METADATA = 1,
    SERIES_DELTAS = 2,
    SERIES_DURATIONS = 3,
    SERIES_NAMES = 4,
    SERIES_EVENTS = 5,
    ROW_PROCESS = 1,
    ROW_THREAD = 2,
    ROW_NAME = 3,
    ROW_EVENT_STATS = 4,
    EVENT_FLOW = 1,
    EVENT_CATEGORY = 2,
    EVENT_GROUP = 3,
    EVENT_SERIAL = 4,
    EVENT_DOUBLE = 5,
    EVENT_UINT = 6,
    METADATA_PROCESSES = 1,
    PROCESS_NAME = 1, // of a thread as well, and the next two
    PROCESS_ID = 2,
    PROCESS_ORDER = 3,
    PROCESS_THREADS = 4,
    DETAIL_NAME = 1,
    DETAIL_VALUE = 2,
};

struct response {
    struct writer *w;
    struct xpl_writer out;
    struct device_line *lines;
    xpl_str_t *line_names;
    size_t n_lines;
    struct xpl_intern *strings; // numbered from 1; the empty one is 0
    uint32_t n_strings;
    uint32_t **names; // per host and string: its number + 1
    uint32_t categories[64];
};

// ---- numbers of strings, before anything is written ----

static bool number_string(struct response *r, xpl_str_t s, uint32_t *ret) {
    xpl_strid_t id;
    *ret = 0;
    if (s.len == 0) return true;
    if (!xpl_intern_put(r->strings, s, &id)) return false;
    if (id.v > r->n_strings) r->n_strings = id.v;
    *ret = id.v;
    return true;
}

static bool number_events(struct response *r, size_t host) {
    const struct shown_host *const h = &r->w->hosts[host];
    const struct xpl_trace *const t = h->host->trace;
    uint32_t *const names =
        xpl_arena_zalloc(r->w->arena, ((size_t)t->n[TRC_STRINGS] + 1) * sizeof *names);
    if (!names) return false;
    r->names[host] = names;
    for (size_t i = 0; i < h->shown.n; i++) {
        const struct trc_event *const e = &h->shown.events[i];
        const unsigned category = (unsigned)(e->flow >> 2 & 63);
        if (!names[e->name]) {
            if (!number_string(r, trc_str(t, e->name), &names[e->name])) return false;
            names[e->name]++;
        }
        if ((e->flags & TRC_HAS_FLOW) && !r->categories[category] &&
            !number_string(r, xpl_str_from(trc_category_name(category)), &r->categories[category]))
            return false;
    }
    return true;
}

// The quantity of a counter: the name of its first event's first argument.
static xpl_status_t number_quantity(struct response *r, struct shown_host *h,
                                    const struct trc_event *e, uint32_t *ret, bool *ret_any,
                                    struct xpl_error *err) {
    size_t n = 0;
    XPL_TRY(trc_event_values(r->w, h, e, &n, err));
    *ret_any = n != 0;
    *ret = 0;
    if (n && !number_string(r, h->values[0].name, ret)) XPL_RETURN_OOM(err, "trace strings");
    return XPL_OK;
}

static size_t end_of_row(const struct shown_host *h, size_t i) {
    size_t end = i;
    while (end < h->shown.n && h->shown.events[end].track == h->shown.events[i].track)
        end++;
    return end;
}

static xpl_status_t number_strings(struct response *r, struct xpl_error *err) {
    struct writer *const w = r->w;
    r->names = xpl_arena_zalloc(w->arena, (w->n + 1) * sizeof(*r->names));
    r->line_names = xpl_arena_zalloc(w->arena, (r->n_lines + 1) * sizeof *r->line_names);
    r->strings = xpl_intern_new(w->arena, xpl_hash_seed());
    if (!r->names || !r->line_names || !r->strings) XPL_RETURN_OOM(err, "trace strings");
    for (size_t i = 0; i < w->n; i++) {
        struct shown_host *const h = &w->hosts[i];
        if (!number_events(r, i)) XPL_RETURN_OOM(err, "trace strings");
        for (size_t k = 0; k < h->shown.n; k = end_of_row(h, k)) {
            bool any;
            uint32_t id;
            if (h->shown.events[k].flags & TRC_COUNTER)
                XPL_TRY(number_quantity(r, h, &h->shown.events[k], &id, &any, err));
        }
    }
    for (size_t i = 0; i < r->n_lines; i++)
        if (!trc_device_name(w, &r->lines[i], &r->line_names[i]))
            XPL_RETURN_OOM(err, "trace devices");
    return XPL_OK;
}

// ---- fields; defaults are not written ----

static void put_number(struct xpl_writer *w, uint32_t num, uint64_t v) {
    if (v) xpl_writer_varint(w, num, v);
}
static void put_text(struct xpl_writer *w, uint32_t num, xpl_str_t s) {
    if (s.len) xpl_writer_bytes(w, num, s.ptr, s.len);
}

static uint8_t *put_small(uint8_t *p, uint32_t num, uint32_t v) {
    if (!v) return p;
    *p++ = (uint8_t)(num << 3);
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static void put_event(struct response *r, const struct trc_event *e) {
    uint8_t message[4 * 6], *p = message;
    if (e->flags & TRC_HAS_FLOW) {
        p = put_small(p, EVENT_FLOW, (uint32_t)(e->flow >> 8));
        p = put_small(p, EVENT_CATEGORY, r->categories[e->flow >> 2 & 63]);
    }
    if (e->flags & TRC_HAS_GROUP) p = put_small(p, EVENT_GROUP, (uint32_t)e->group);
    p = put_small(p, EVENT_SERIAL, e->serial);
    xpl_writer_bytes(&r->out, SERIES_EVENTS, message, (size_t)(p - message));
}

static xpl_status_t put_counter(struct response *r, struct shown_host *h, const struct trc_event *e,
                                struct xpl_error *err) {
    size_t n = 0;
    XPL_TRY(trc_event_values(r->w, h, e, &n, err));
    const struct xpl_writer_mark m = xpl_writer_open(&r->out, SERIES_EVENTS);
    if (n && h->values[0].kind == TRC_ARG_DOUBLE && h->values[0].bits)
        xpl_writer_fixed64(&r->out, EVENT_DOUBLE, h->values[0].bits);
    if (n && h->values[0].kind == TRC_ARG_UINT) put_number(&r->out, EVENT_UINT, h->values[0].bits);
    xpl_writer_close(&r->out, m);
    return XPL_OK;
}

// ---- a row ----

static xpl_status_t put_row_metadata(struct response *r, size_t host, const struct trc_event *e,
                                     struct xpl_error *err) {
    struct shown_host *const h = &r->w->hosts[host];
    const struct trc_track *const t = &h->host->trace->tracks[e->track];
    uint32_t stats = 0;
    bool any = false;
    if (e->flags & TRC_COUNTER) XPL_TRY(number_quantity(r, h, e, &stats, &any, err));
    const struct xpl_writer_mark m = xpl_writer_open(&r->out, SERIES_METADATA);
    put_number(&r->out, ROW_PROCESS, trc_pid(h, t->device));
    if (!t->named) put_number(&r->out, ROW_THREAD, t->id);
    if (t->named) put_number(&r->out, ROW_NAME, r->names[host][e->name] - 1);
    if (any) xpl_writer_varint(&r->out, ROW_EVENT_STATS, stats);
    xpl_writer_close(&r->out, m);
    return XPL_OK;
}

static void put_columns(struct response *r, size_t host, const struct trc_event *v, size_t n,
                        bool names) {
    struct xpl_writer_mark m = xpl_writer_open(&r->out, SERIES_DELTAS);
    for (size_t i = 0; i < n; i++)
        xpl_writer_raw_varint(&r->out, v[i].ts - (i ? v[i - 1].ts : 0));
    xpl_writer_close(&r->out, m);
    if (v[0].flags & TRC_COUNTER) return;
    m = xpl_writer_open(&r->out, SERIES_DURATIONS);
    for (size_t i = 0; i < n; i++)
        xpl_writer_raw_varint(&r->out, v[i].dur);
    xpl_writer_close(&r->out, m);
    if (!names) return;
    m = xpl_writer_open(&r->out, SERIES_NAMES);
    for (size_t i = 0; i < n; i++)
        xpl_writer_raw_varint(&r->out, r->names[host][v[i].name] - 1);
    xpl_writer_close(&r->out, m);
}

static xpl_status_t put_row(struct response *r, size_t host, size_t begin, size_t end,
                            struct xpl_error *err) {
    struct shown_host *const h = &r->w->hosts[host];
    const struct trc_event *const v = h->shown.events + begin;
    const bool counter = v[0].flags & TRC_COUNTER;
    const bool named = h->host->trace->tracks[v[0].track].named;
    const struct xpl_writer_mark m = xpl_writer_open(&r->out, counter ? RESPONSE_COUNTERS
                                                              : named ? RESPONSE_ASYNC
                                                                      : RESPONSE_COMPLETE);
    XPL_TRY(put_row_metadata(r, host, v, err));
    put_columns(r, host, v, end - begin, !named);
    for (size_t i = 0; i < end - begin; i++) {
        XPL_TRY(trc_check_cancelled(r->w, err));
        if (counter)
            XPL_TRY(put_counter(r, h, &v[i], err));
        else
            put_event(r, &v[i]);
    }
    xpl_writer_close(&r->out, m);
    return XPL_OK;
}

// ---- the response ----

static void put_process(struct response *r, size_t line) {
    const struct device_line *const l = &r->lines[line];
    struct xpl_writer *const w = &r->out;
    const struct xpl_writer_mark m = xpl_writer_open(w, METADATA_PROCESSES);
    put_text(w, PROCESS_NAME, r->line_names[line]);
    put_number(w, PROCESS_ID, l->pid);
    if (l->has_order) xpl_writer_varint(w, PROCESS_ORDER, l->order);
    for (size_t i = 0; i < l->n_rows; i++) {
        const struct xpl_writer_mark t = xpl_writer_open(w, PROCESS_THREADS);
        put_text(w, PROCESS_NAME, trc_str(l->h->host->trace, l->rows[i].name));
        put_number(w, PROCESS_ID, l->rows[i].id);
        xpl_writer_varint(w, PROCESS_ORDER, l->rows[i].id);
        xpl_writer_close(w, t);
    }
    xpl_writer_close(w, m);
}

static void put_details(struct response *r) {
    struct trc_detail details[TRC_MAX_DETAILS];
    const size_t n = trc_details(r->w, details);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_writer_mark m = xpl_writer_open(&r->out, RESPONSE_DETAILS);
        put_text(&r->out, DETAIL_NAME, xpl_str_from(details[i].name));
        put_number(&r->out, DETAIL_VALUE, details[i].value);
        xpl_writer_close(&r->out, m);
    }
}

static xpl_status_t put_response(struct response *r, struct xpl_error *err) {
    struct xpl_writer *const w = &r->out;
    uint64_t min, max;
    for (size_t i = 0; i < r->w->n; i++)
        for (size_t k = 0, end; k < r->w->hosts[i].shown.n; k = end) {
            end = end_of_row(&r->w->hosts[i], k);
            XPL_TRY(put_row(r, i, k, end, err));
        }
    const struct xpl_writer_mark m = xpl_writer_open(w, RESPONSE_METADATA);
    for (size_t i = 0; i < r->n_lines; i++)
        put_process(r, i);
    xpl_writer_close(w, m);
    for (uint32_t i = 0; i <= r->n_strings; i++) {
        const xpl_str_t s = i ? xpl_intern_get(r->strings, (xpl_strid_t){i}) : (xpl_str_t){"", 0};
        xpl_writer_bytes(w, RESPONSE_STRINGS, s.ptr, s.len);
    }
    put_details(r);
    if (trc_full_span(r->w, &min, &max)) {
        xpl_writer_varint(w, RESPONSE_BEGIN, min);
        xpl_writer_varint(w, RESPONSE_END, max);
    }
    return XPL_OK;
}

static xpl_status_t compress(const struct xpl_buf *in, struct xpl_buf *out, struct xpl_error *err) {
    const size_t room = ZSTD_compressBound(in->n);
    ZSTD_CCtx *const z = ZSTD_createCCtx();
    if (!z) XPL_RETURN_OOM(err, "zstd");
    size_t n = 0;
    if (xpl_buf_room(out, room)) // else the buffer has failed
        n = ZSTD_compressCCtx(z, out->p + out->n, room, in->p, in->n, ZSTD_LEVEL);
    ZSTD_freeCCtx(z);
    if (ZSTD_isError(n)) XPL_RETURN_OOM(err, "zstd");
    out->n += n;
    return XPL_OK;
}

xpl_status_t trc_put_pb(struct writer *w, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf plain;
    struct response r = {.w = w};
    xpl_buf_init(&plain, w->out->max);
    XPL_TRY(trc_device_lines(w, &r.lines, &r.n_lines, err));
    XPL_TRY(number_strings(&r, err));
    xpl_writer_init(&r.out, &plain);
    xpl_status_t st = put_response(&r, err);
    const bool measured = st == XPL_OK && xpl_writer_measured(&r.out);
    if (measured) st = put_response(&r, err);
    const bool ok = xpl_writer_fini(&r.out);
    XPL_TRY(st);
    if (!measured || !ok)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "trace_viewer@: the answer exceeds the limit");
    return compress(&plain, w->out, err);
}
