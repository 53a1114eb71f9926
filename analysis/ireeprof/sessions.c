// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/sessions.h"

#include <assert.h>
#include <stddef.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// A bundle may hold a session in every two records: lookups do not walk over all of them.
struct session {
    uint64_t index; // the key
    uint64_t id;
    uint32_t name; // xpl_strid_t
    bool ended;
    uint64_t before_plus_1;     // the newest open one when it began; 0: none
    uint64_t next_alike_plus_1; // the session that began next with its id and name; 0: none
};
struct owner { // of a device: the session that described it last
    uint64_t device, session;
};
struct alike_key {
    uint64_t session_id, name; // xpl_strid_t
};
struct alike { // sessions of one id and name, in the order of their beginning
    struct alike_key key;
    uint64_t first_plus_1, last_plus_1; // all before the first have ended; 0: no more
};

void xpl_iree_sessions_init(struct xpl_iree_sessions *s) {
    *s = (struct xpl_iree_sessions){
        .rows = {.row_size = sizeof(struct session), .key_size = 8},
        .owners = {.row_size = sizeof(struct owner), .key_size = 8},
        .alikes = {.row_size = sizeof(struct alike), .key_size = sizeof(struct alike_key)}};
    xpl_arena_init(&s->arena, SIZE_MAX);
}

void xpl_iree_sessions_fini(struct xpl_iree_sessions *s) {
    xpl_iree_table_fini(&s->rows);
    xpl_iree_table_fini(&s->owners);
    xpl_iree_table_fini(&s->alikes);
    xpl_arena_fini(&s->arena);
    s->names = NULL;
}

static struct session *session_at(const struct xpl_iree_sessions *x, uint64_t index) {
    assert(index < x->rows.n);
    return xpl_iree_table_at(&x->rows, (size_t)index);
}

// The open session that began last; NULL: none.
static struct session *newest(const struct xpl_iree_sessions *x) {
    return x->newest_plus_1 ? session_at(x, x->newest_plus_1 - 1) : NULL;
}

// The open session that wrote last; NULL: none is open.
static struct session *writer(const struct xpl_iree_sessions *x) {
    struct session *const s = x->writer_plus_1 ? session_at(x, x->writer_plus_1 - 1) : NULL;
    return s && !s->ended ? s : newest(x);
}

// The open session that described a device last; NULL: none.
static struct session *owner_of(const struct xpl_iree_sessions *x, uint32_t device) {
    const uint64_t key = device;
    const struct owner *const o = xpl_iree_table_get(&x->owners, &key);
    struct session *const s = o ? session_at(x, o->session) : NULL;
    return s && !s->ended ? s : NULL;
}

// NULL on OOM.
static struct alike *alike_of(struct xpl_iree_sessions *x, const struct xpl_iree_record *r) {
    xpl_strid_t name;
    bool is_new;
    if (!x->names) x->names = xpl_intern_new(&x->arena, xpl_hash_seed());
    if (!x->names || !xpl_intern_put(x->names, r->name, &name)) return NULL;
    const struct alike_key key = {r->session_id, name.v};
    return xpl_iree_table_put(&x->alikes, &key, &is_new);
}

static bool begin(struct xpl_iree_sessions *x, const struct xpl_iree_record *r) {
    const uint64_t index = x->rows.n;
    struct alike *const alike = index < XPL_IREE_NONE ? alike_of(x, r) : NULL;
    bool is_new;
    struct session *const s = alike ? xpl_iree_table_put(&x->rows, &index, &is_new) : NULL;
    if (!s) return false;
    s->id = r->session_id;
    s->name = (uint32_t)alike->key.name;
    if (alike->last_plus_1)
        session_at(x, alike->last_plus_1 - 1)->next_alike_plus_1 = index + 1;
    else
        alike->first_plus_1 = index + 1;
    alike->last_plus_1 = index + 1;
    s->before_plus_1 = x->newest_plus_1;
    x->newest_plus_1 = x->writer_plus_1 = index + 1;
    return true;
}

// The open session that began first of those alike; NULL: none.
static struct session *first_open(const struct xpl_iree_sessions *x, struct alike *alike) {
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
static bool end(struct xpl_iree_sessions *x, const struct xpl_iree_record *r, uint32_t *ret) {
    struct alike *const alike = alike_of(x, r);
    if (!alike) return false;
    struct session *s = first_open(x, alike);
    if (!s) s = newest(x);
    if (!s) return true;
    s->ended = true;
    *ret = (uint32_t)s->index;
    while (x->newest_plus_1 && session_at(x, x->newest_plus_1 - 1)->ended)
        x->newest_plus_1 = session_at(x, x->newest_plus_1 - 1)->before_plus_1;
    return true;
}

static bool own(struct xpl_iree_sessions *x, const struct xpl_iree_record *r) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    const uint32_t session = xpl_iree_sessions_open(x, r, XPL_IREE_NONE);
    bool is_new;
    while (session != XPL_IREE_NONE && xpl_iree_item_next(&items, &item, NULL)) {
        const uint64_t device = xpl_iree_device_of(r, &item);
        struct owner *const o = xpl_iree_table_put(&x->owners, &device, &is_new);
        if (!o) return false;
        o->session = session;
        x->writer_plus_1 = session + 1;
    }
    return true;
}

// A session writes its records together: a record that names no device belongs to the previous
// writer.
static void note_writer(struct xpl_iree_sessions *x, const struct xpl_iree_record *r) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    uint32_t device = r->physical_device_ordinal;
    if (device == XPL_IREE_NONE && xpl_iree_item_next(&items, &item, NULL))
        device = xpl_iree_device_of(r, &item);
    const struct session *const s = device == XPL_IREE_NONE ? NULL : owner_of(x, device);
    if (s) x->writer_plus_1 = s->index + 1;
}

bool xpl_iree_sessions_follow(struct xpl_iree_sessions *x, const struct xpl_iree_record *r,
                              uint32_t *ret_ended) {
    uint32_t ended = XPL_IREE_NONE;
    bool ok = true;
    x->lately = x->has_named = false; // those of the previous record's items
    if (r->record_type == XPL_IREE_RECORD_BEGIN) ok = begin(x, r);
    if (r->record_type == XPL_IREE_RECORD_END) ok = end(x, r, &ended);
    if (r->chunk == XPL_IREE_DEVICES)
        ok = own(x, r);
    else if (r->chunk < XPL_IREE_N_CHUNK_TYPES && x->rows.n > 1)
        note_writer(x, r);
    x->lately = x->has_named = false; // the record's header may name another session
    if (ret_ended) *ret_ended = ended;
    return ok;
}

xpl_str_t xpl_iree_sessions_name(const struct xpl_iree_sessions *x, uint32_t session) {
    return xpl_intern_get(x->names, (xpl_strid_t){session_at(x, session)->name});
}

// The open session that the header names; NULL: none. A name that is not interned yet has no
// session.
static struct session *find_named(struct xpl_iree_sessions *x, const struct xpl_iree_record *r) {
    struct session *const s = writer(x);
    if (!s || (s->id == r->session_id &&
               xpl_str_eq(xpl_iree_sessions_name(x, (uint32_t)s->index), r->name)))
        return s;
    struct alike *const alike = alike_of(x, r);
    struct session *const open = alike ? first_open(x, alike) : NULL;
    return open ? open : s;
}

// Once for all items of a record, whose name may be long.
static struct session *named(struct xpl_iree_sessions *x, const struct xpl_iree_record *r) {
    if (!x->has_named) {
        const struct session *const s = find_named(x, r);
        x->has_named = true;
        x->named_plus_1 = s ? s->index + 1 : 0;
    }
    return x->named_plus_1 ? session_at(x, x->named_plus_1 - 1) : NULL;
}

uint32_t xpl_iree_sessions_open(struct xpl_iree_sessions *x, const struct xpl_iree_record *r,
                                uint32_t device) {
    if (x->lately && x->lately_device == device) return x->lately_session;
    const struct session *s = owner_of(x, device);
    if (!s) s = named(x, r);
    x->lately = true;
    x->lately_device = device;
    return x->lately_session = s ? (uint32_t)s->index : XPL_IREE_NONE;
}

uint32_t xpl_iree_sessions_of(struct xpl_iree_sessions *x, const struct xpl_iree_record *r,
                              uint32_t device) {
    const uint32_t open = xpl_iree_sessions_open(x, r, device);
    if (open != XPL_IREE_NONE) return open;
    return x->rows.n ? (uint32_t)x->rows.n - 1 : 0;
}

uint32_t xpl_iree_device_of(const struct xpl_iree_record *r, const struct xpl_iree_item *item) {
#define AT(record) offsetof(struct record, physical_device_ordinal)
    static const uint8_t offsets[XPL_IREE_N_CHUNK_TYPES] = {
        [XPL_IREE_DEVICES] = AT(xpl_iree_device),
        [XPL_IREE_QUEUES] = AT(xpl_iree_queue),
        [XPL_IREE_CODE_OBJECT_LOADS] = AT(xpl_iree_code_object_load),
        [XPL_IREE_COMMAND_BUFFERS] = AT(xpl_iree_command_buffer),
        [XPL_IREE_CLOCKS] = AT(xpl_iree_clock_correlation),
        [XPL_IREE_QUEUE_EVENTS] = AT(xpl_iree_queue_event),
        [XPL_IREE_QUEUE_DEVICE_EVENTS] = AT(xpl_iree_queue_device_event),
        [XPL_IREE_HOST_EVENTS] = AT(xpl_iree_host_event),
        [XPL_IREE_REGION_EVENTS] = AT(xpl_iree_region_event),
        [XPL_IREE_MEMORY_EVENTS] = AT(xpl_iree_memory_event),
        [XPL_IREE_RELATIONSHIPS] = AT(xpl_iree_relationship),
        [XPL_IREE_COUNTER_SETS] = AT(xpl_iree_counter_set),
        [XPL_IREE_COUNTERS] = AT(xpl_iree_counter),
        [XPL_IREE_COUNTER_SAMPLES] = AT(xpl_iree_counter_sample),
        [XPL_IREE_METRIC_SOURCES] = AT(xpl_iree_metric_source),
        [XPL_IREE_METRIC_SAMPLES] = AT(xpl_iree_metric_sample),
        [XPL_IREE_TRACES] = AT(xpl_iree_trace),
    };
#undef AT
    uint32_t device = r->physical_device_ordinal;
    if (offsets[r->chunk]) memcpy(&device, item->p + offsets[r->chunk], sizeof device);
    return device;
}

// ---- descriptions ----

struct xpl_iree_scope {
    struct xpl_iree_scope_key key;
    uint64_t session;
};
struct id {
    struct xpl_iree_scope_key key;
    uint32_t first, last; // sessions, in the order of the file
    uint64_t many;        // whether there are others than the first
};

void xpl_iree_scopes_fini(struct xpl_iree_scopes *s) {
    xpl_iree_table_fini(&s->ids);
    xpl_sys_free(s->v);
    *s = (struct xpl_iree_scopes){0};
}

static bool push(struct xpl_iree_scopes *s, const struct xpl_iree_scope_key *key,
                 uint32_t session) {
    if (s->n == s->cap) {
        const size_t cap = s->cap < 16 ? 16 : s->cap + s->cap / 2;
        struct xpl_iree_scope *const v = xpl_sys_realloc(s->v, cap * sizeof *v);
        if (!v) return false;
        s->v = v, s->cap = cap;
    }
    s->v[s->n++] = (struct xpl_iree_scope){*key, session};
    return true;
}

bool xpl_iree_scopes_add(struct xpl_iree_scopes *s, struct xpl_iree_scope_key key,
                         uint32_t session) {
    bool is_new;
    s->ids.row_size = sizeof(struct id);
    s->ids.key_size = sizeof key;
    struct id *const id = xpl_iree_table_put(&s->ids, &key, &is_new);
    if (!id) return false;
    if (is_new) id->first = id->last = session;
    s->sealed = false;
    if (id->last == session) return true;
    if (!id->many && !push(s, &key, id->first)) return false;
    id->last = session;
    id->many = true;
    return push(s, &key, session);
}

static int by_key(const void *pa, const void *pb) {
    const struct xpl_iree_scope *const a = pa, *const b = pb;
    if (a->key.kind != b->key.kind) return a->key.kind < b->key.kind ? -1 : 1;
    if (a->key.a != b->key.a) return a->key.a < b->key.a ? -1 : 1;
    if (a->key.b != b->key.b) return a->key.b < b->key.b ? -1 : 1;
    return (a->session > b->session) - (a->session < b->session);
}

bool xpl_iree_scopes_has(const struct xpl_iree_scopes *s, struct xpl_iree_scope_key key) {
    return s->ids.n && xpl_iree_table_get(&s->ids, &key);
}

void xpl_iree_scopes_seal(struct xpl_iree_scopes *s) {
    if (s->n && !s->sealed) xpl_sort(s->v, s->n, sizeof *s->v, by_key);
    s->sealed = true;
}

uint32_t xpl_iree_scopes_find(const struct xpl_iree_scopes *s, struct xpl_iree_scope_key key,
                              uint32_t session) {
    const struct id *const id = s->ids.n ? xpl_iree_table_get(&s->ids, &key) : NULL;
    if (!id) return session;
    if (!id->many || session == id->last) return id->last;
    assert(s->sealed);
    const struct xpl_iree_scope sought = {key, session};
    size_t lo = 0, hi = s->n; // the first behind it
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (by_key(&s->v[mid], &sought) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    // One of the same id precedes it, or the id's first one is the next.
    const struct xpl_iree_scope_key *const k = lo ? &s->v[lo - 1].key : NULL;
    const bool before = k && k->kind == key.kind && k->a == key.a && k->b == key.b;
    return (uint32_t)s->v[before ? lo - 1 : lo].session;
}
