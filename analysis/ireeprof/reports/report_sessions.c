// SPDX-License-Identifier: Apache-2.0
// Report sessions, of our own: the sessions of a bundle told apart.  Their ids are not unique: each
// device of the HAL numbers its own, and sessions of two devices are interleaved.  A chunk is of
// the open session that has its device, where it names one, else of the one that began last.
#include <assert.h>
#include <stddef.h>

#include "analysis/ireeprof/clock.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/table.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"

// A bundle may hold a session in every two records: what is looked for is found without a walk over
// all of them.
struct session {
    uint64_t index; // the key
    uint64_t id, begin_record, end_record, chunks, records, dropped, devices_seen;
    uint32_t status;
    bool ended;
    xpl_str_t name;
    int64_t first_ns, last_ns;    // of host events; first_ns INT64_MAX: none
    uint64_t before_plus_1;       // what was the newest open one when it began; 0: none
    uint64_t next_alike_plus_1;   // the session that began next with its id and name; 0: none
    uint64_t first_device_plus_1; // its devices, in `devices`; 0: none
};
struct owner { // of a device: the session that described it last
    uint64_t device, session;
};
struct device {
    uint64_t session, device; // the key: sessions after each other may have the same one
    uint64_t next_plus_1;     // of the same session
};
struct alike_key {
    uint64_t session_id, name; // xpl_strid_t
};
struct alike { // sessions of one id and name, in the order of their beginning
    struct alike_key key;
    uint64_t first_plus_1, last_plus_1; // all before the first have ended; 0: no more
};
struct sessions {
    struct xpl_iree_run *run;
    struct xpl_iree_table rows, owners, devices, alikes;
    struct xpl_arena arena; // of `names`
    struct xpl_intern *names;
    uint64_t newest_plus_1; // the open session that began last; 0: none
};

static struct session *session_at(const struct sessions *x, uint64_t index) {
    assert(index < x->rows.n);
    return xpl_iree_table_at(&x->rows, (size_t)index);
}

// The open session that began last; NULL: none.
static struct session *newest(const struct sessions *x) {
    return x->newest_plus_1 ? session_at(x, x->newest_plus_1 - 1) : NULL;
}

// NULL on OOM.
static struct alike *alike_of(struct sessions *x, const struct xpl_iree_record *r) {
    xpl_strid_t name;
    bool is_new;
    if (!xpl_intern_put(x->names, r->name, &name)) return NULL;
    const struct alike_key key = {r->session_id, name.v};
    return xpl_iree_table_put(&x->alikes, &key, &is_new);
}

static bool begin(struct sessions *x, const struct xpl_iree_record *r) {
    const uint64_t index = x->rows.n;
    struct alike *const alike = alike_of(x, r);
    bool is_new;
    struct session *const s = alike ? xpl_iree_table_put(&x->rows, &index, &is_new) : NULL;
    if (!s) return false;
    s->id = r->session_id;
    s->name = r->name;
    s->begin_record = r->index;
    s->first_ns = INT64_MAX;
    if (alike->last_plus_1)
        session_at(x, alike->last_plus_1 - 1)->next_alike_plus_1 = index + 1;
    else
        alike->first_plus_1 = index + 1;
    alike->last_plus_1 = index + 1;
    s->before_plus_1 = x->newest_plus_1;
    x->newest_plus_1 = index + 1;
    return true;
}

// The open session that began first of those alike; NULL: none.
static struct session *first_open(const struct sessions *x, struct alike *alike) {
    while (alike->first_plus_1) {
        struct session *const s = session_at(x, alike->first_plus_1 - 1);
        if (!s->ended) return s;
        alike->first_plus_1 = s->next_alike_plus_1;
    }
    alike->last_plus_1 = 0;
    return NULL;
}

// Sessions of two devices have equal ids and names: the one that began first ends first, unless its
// end names it.
static bool end(struct sessions *x, const struct xpl_iree_record *r) {
    struct alike *const alike = alike_of(x, r);
    if (!alike) return false;
    struct session *s = first_open(x, alike);
    if (!s) s = newest(x);
    if (!s) return true;
    s->ended = true;
    s->end_record = r->index;
    s->status = r->session_status_code;
    while (x->newest_plus_1 && session_at(x, x->newest_plus_1 - 1)->ended)
        x->newest_plus_1 = session_at(x, x->newest_plus_1 - 1)->before_plus_1;
    return true;
}

// The device that a typed record names; XPL_IREE_NONE: no member says so.
static uint32_t device_of(const struct xpl_iree_record *r, const struct xpl_iree_item *item) {
    static const uint8_t offsets[XPL_IREE_N_CHUNK_TYPES] = {
        [XPL_IREE_DEVICES] = offsetof(struct xpl_iree_device, physical_device_ordinal),
        [XPL_IREE_QUEUES] = offsetof(struct xpl_iree_queue, physical_device_ordinal),
        [XPL_IREE_COMMAND_BUFFERS] =
            offsetof(struct xpl_iree_command_buffer, physical_device_ordinal),
        [XPL_IREE_CLOCKS] = offsetof(struct xpl_iree_clock_correlation, physical_device_ordinal),
        [XPL_IREE_QUEUE_EVENTS] = offsetof(struct xpl_iree_queue_event, physical_device_ordinal),
        [XPL_IREE_QUEUE_DEVICE_EVENTS] =
            offsetof(struct xpl_iree_queue_device_event, physical_device_ordinal),
        [XPL_IREE_HOST_EVENTS] = offsetof(struct xpl_iree_host_event, physical_device_ordinal),
        [XPL_IREE_REGION_EVENTS] = offsetof(struct xpl_iree_region_event, physical_device_ordinal),
        [XPL_IREE_MEMORY_EVENTS] = offsetof(struct xpl_iree_memory_event, physical_device_ordinal),
    };
    uint32_t device = r->physical_device_ordinal;
    if (offsets[r->chunk]) memcpy(&device, item->p + offsets[r->chunk], sizeof device);
    return device;
}

static struct session *session_of(const struct sessions *x, uint32_t device) {
    const uint64_t key = device;
    const struct owner *const o = xpl_iree_table_get(&x->owners, &key);
    struct session *const s = o ? session_at(x, o->session) : NULL;
    return s && !s->ended ? s : newest(x);
}

static void note_span(struct session *s, const struct xpl_iree_item *item) {
    struct xpl_iree_host_event e;
    xpl_iree_copy(item, &e);
    if (!xpl_iree_host_valid(e.start_host_time_ns, e.end_host_time_ns)) return;
    if (e.start_host_time_ns < s->first_ns) s->first_ns = e.start_host_time_ns;
    if (e.end_host_time_ns > s->last_ns) s->last_ns = e.end_host_time_ns;
}

static bool add_chunk(struct sessions *x, const struct xpl_iree_record *r) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    struct session *s = newest(x), *first = NULL;
    bool is_new;
    while (s && xpl_iree_item_next(&items, &item, NULL)) {
        const uint64_t device = device_of(r, &item);
        if (r->chunk == XPL_IREE_DEVICES) {
            const uint64_t key[] = {s->index, device};
            struct owner *const o = xpl_iree_table_put(&x->owners, &device, &is_new);
            if (!o || !xpl_iree_table_put(&x->devices, key, &is_new)) return false;
            o->session = s->index;
            s->devices_seen++;
        }
        s = session_of(x, (uint32_t)device);
        if (!first) first = s;
        s->records++;
        if (r->chunk == XPL_IREE_HOST_EVENTS) note_span(s, &item);
    }
    if (!first) first = session_of(x, r->physical_device_ordinal);
    if (!first) return true;
    first->chunks++;
    xpl_iree_add(&first->dropped, r->dropped_record_count);
    return true;
}

static xpl_status_t add_record(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct sessions *const x = ctx;
    bool ok = true;
    if (r->record_type == XPL_IREE_RECORD_BEGIN) ok = begin(x, r);
    if (r->record_type == XPL_IREE_RECORD_END) ok = end(x, r);
    if (r->record_type == XPL_IREE_RECORD_CHUNK) ok = add_chunk(x, r);
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
    xpl_row_str(r, "name", s->name);
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
    x->names = xpl_intern_new(&x->arena, xpl_hash_seed());
    if (!x->names) XPL_RETURN_OOM(err, "sessions of the bundle");
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
        .owners = {.row_size = sizeof(struct owner), .key_size = 8},
        .devices = {.row_size = sizeof(struct device), .key_size = 2 * sizeof(uint64_t)},
        .alikes = {.row_size = sizeof(struct alike), .key_size = sizeof(struct alike_key)}};
    xpl_arena_init(&x.arena, SIZE_MAX);
    const xpl_status_t st = collect(&x, err);
    xpl_iree_table_fini(&x.rows);
    xpl_iree_table_fini(&x.owners);
    xpl_iree_table_fini(&x.devices);
    xpl_iree_table_fini(&x.alikes);
    xpl_arena_fini(&x.arena);
    return st;
}
