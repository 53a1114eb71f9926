// SPDX-License-Identifier: Apache-2.0
// Report sessions, which IREE does not have: the sessions of a bundle, separated, as sessions.h has
// it.
#include "analysis/ireeprof/clock.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/sessions.h"

struct session {
    uint64_t index; // the key
    uint64_t id, begin_record, end_record, chunks, records, dropped, devices_seen;
    uint32_t status;
    bool ended;
    int64_t first_ns, last_ns;    // of host events; first_ns INT64_MAX: none
    uint64_t first_device_plus_1; // its devices, in `devices`; 0: none
};
struct device {
    uint64_t session, device; // the key: sessions after each other may have the same one
    uint64_t next_plus_1;     // of the same session
};
struct sessions {
    struct xpl_iree_run *run;
    struct xpl_iree_sessions sessions;
    struct xpl_iree_table rows, devices;
};

static struct session *session_at(const struct sessions *x, uint64_t index) {
    return xpl_iree_table_at(&x->rows, (size_t)index);
}

static bool begin(struct sessions *x, const struct xpl_iree_record *r) {
    const uint64_t index = x->rows.n;
    bool is_new;
    struct session *const s = xpl_iree_table_put(&x->rows, &index, &is_new);
    if (!s) return false;
    s->id = r->session_id;
    s->begin_record = r->index;
    s->first_ns = INT64_MAX;
    return true;
}

static void end(struct sessions *x, const struct xpl_iree_record *r, uint32_t session) {
    struct session *const s = session_at(x, session);
    s->ended = true;
    s->end_record = r->index;
    s->status = r->session_status_code;
}

static void note_span(struct session *s, int64_t start_ns, int64_t end_ns) {
    if (!xpl_iree_host_valid(start_ns, end_ns)) return;
    if (start_ns < s->first_ns) s->first_ns = start_ns;
    if (end_ns > s->last_ns) s->last_ns = end_ns;
}

// A time of 0 is not known.
static void note_time(struct session *s, int64_t ns) {
    if (ns > 0) note_span(s, ns, ns);
}

// Times of the host; of a device's ticks a clock would have to tell.
static void note_times(struct session *s, enum xpl_iree_chunk chunk,
                       const struct xpl_iree_item *item) {
    if (chunk == XPL_IREE_HOST_EVENTS) {
        struct xpl_iree_host_event e;
        xpl_iree_copy(item, &e);
        note_span(s, e.start_host_time_ns, e.end_host_time_ns);
    } else if (chunk == XPL_IREE_QUEUE_EVENTS) {
        struct xpl_iree_queue_event e;
        xpl_iree_copy(item, &e);
        note_time(s, e.host_time_ns);
        note_time(s, e.ready_host_time_ns);
    } else if (chunk == XPL_IREE_MEMORY_EVENTS) {
        struct xpl_iree_memory_event e;
        xpl_iree_copy(item, &e);
        note_time(s, e.host_time_ns);
    } else if (chunk == XPL_IREE_REGION_EVENTS) {
        struct xpl_iree_region_event e;
        xpl_iree_copy(item, &e);
        note_span(s, e.start_host_time_ns, e.end_host_time_ns);
    }
}

static bool add_chunk(struct sessions *x, const struct xpl_iree_record *r) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    uint32_t index = XPL_IREE_NONE, first = XPL_IREE_NONE;
    bool is_new;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        const uint32_t device = xpl_iree_device_of(r, &item);
        index = xpl_iree_sessions_open(&x->sessions, r, device);
        if (index == XPL_IREE_NONE) break;
        struct session *const s = session_at(x, index);
        if (r->chunk == XPL_IREE_DEVICES) {
            const uint64_t key[] = {s->index, device};
            if (!xpl_iree_table_put(&x->devices, key, &is_new)) return false;
            s->devices_seen++;
        }
        if (first == XPL_IREE_NONE) first = index;
        s->records++;
        note_times(s, r->chunk, &item);
    }
    if (first == XPL_IREE_NONE)
        first = xpl_iree_sessions_open(&x->sessions, r, r->physical_device_ordinal);
    if (first == XPL_IREE_NONE) return true;
    struct session *const s = session_at(x, first);
    s->chunks++;
    xpl_iree_add(&s->dropped, r->dropped_record_count);
    return true;
}

static xpl_status_t add_record(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct sessions *const x = ctx;
    uint32_t ended;
    bool ok = xpl_iree_sessions_follow(&x->sessions, r, &ended);
    if (ok && r->record_type == XPL_IREE_RECORD_BEGIN) ok = begin(x, r);
    if (ok && ended != XPL_IREE_NONE) end(x, r, ended);
    if (ok && r->record_type == XPL_IREE_RECORD_CHUNK) ok = add_chunk(x, r);
    if (!ok) XPL_RETURN_OOM(err, "sessions of the bundle");
    return XPL_OK;
}

// Chains the devices of each session, in the order in which they were described.
static void chain_devices(const struct sessions *x) {
    for (size_t i = x->devices.n; i-- > 0;) {
        struct device *const d = xpl_iree_table_at(&x->devices, i);
        struct session *const s = session_at(x, d->session);
        d->next_plus_1 = s->first_device_plus_1;
        s->first_device_plus_1 = i + 1;
    }
}

static void write_session(const struct sessions *x, const struct session *s) {
    struct xpl_iree_rows *const r = x->run->rows;
    const bool timed = s->first_ns != INT64_MAX;
    xpl_row_begin(r, "type", "session");
    xpl_row_u64(r, "index", s->index);
    xpl_row_u64(r, "session_id", s->id);
    xpl_row_str(r, "name", xpl_iree_sessions_name(&x->sessions, (uint32_t)s->index));
    xpl_row_text(r, "status",
                 s->ended ? xpl_iree_name(XPL_IREE_NAMES_STATUS, s->status) : "unfinished");
    xpl_row_u64(r, "begin_record", s->begin_record);
    if (s->ended) xpl_row_u64(r, "end_record", s->end_record);
    xpl_row_u64(r, "devices", s->devices_seen);
    xpl_row_u64(r, "chunks", s->chunks);
    xpl_row_u64(r, "records", s->records);
    xpl_row_u64(r, "dropped_records", s->dropped);
    xpl_row_i64(r, "first_host_time_ns", timed ? s->first_ns : 0);
    xpl_row_i64(r, "last_host_time_ns", timed ? s->last_ns : 0);
    xpl_row_open(r, "physical_device_ordinals", '[');
    for (uint64_t k = s->first_device_plus_1; k;) {
        const struct device *const d = xpl_iree_table_at(&x->devices, (size_t)(k - 1));
        xpl_row_u64(r, NULL, d->device);
        k = d->next_plus_1;
    }
    xpl_row_close(r, ']');
    xpl_row_end(r);
}

static xpl_status_t collect(struct sessions *x, struct xpl_error *err) {
    XPL_TRY(xpl_iree_walk(x->run, add_record, x, err));
    chain_devices(x);
    for (size_t i = 0; i < x->rows.n; i++)
        write_session(x, session_at(x, i));
    return XPL_OK;
}

xpl_status_t xpl_iree_report_sessions(struct xpl_iree_run *run, struct xpl_error *err) {
    struct sessions x = {
        .run = run,
        .rows = {.row_size = sizeof(struct session), .key_size = 8},
        .devices = {.row_size = sizeof(struct device), .key_size = 2 * sizeof(uint64_t)}};
    xpl_iree_sessions_init(&x.sessions);
    const xpl_status_t st = collect(&x, err);
    xpl_iree_sessions_fini(&x.sessions);
    xpl_iree_table_fini(&x.rows);
    xpl_iree_table_fini(&x.devices);
    return st;
}
