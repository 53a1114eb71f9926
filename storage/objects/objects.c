// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/objects.h"

#include <string.h>

#include "storage/hash.h"
#include "storage/objects/copies.h"

// A request that waits for the fetch of another one waits at most as long as a request may take.
static const uint64_t PATIENCE_NS = UINT64_C(300000000000);

static uint64_t hash_text(xpl_str_t s, uint64_t seed) {
    return xpl_digest64((xpl_bytes_t){(const uint8_t *)s.ptr, s.len}, seed);
}

xpl_status_t xpl_objects_init(struct xpl_objects *o, const struct xpl_objects_ops *ops,
                              xpl_str_t place, const char *cache_dir, uint64_t cache_limit,
                              struct xpl_error *err) {
    o->ops = ops;
    atomic_init(&o->refs, 1);
    o->place[0] = hash_text(place, 1);
    o->place[1] = hash_text(place, 2);
    return xpl_copies_new(cache_dir, cache_limit, PATIENCE_NS, &o->cache, err);
}

struct xpl_objects *xpl_objects_ref(struct xpl_objects *o) {
    atomic_fetch_add(&o->refs, 1);
    return o;
}

void xpl_objects_unref(struct xpl_objects *o) {
    if (!o || atomic_fetch_sub(&o->refs, 1) != 1) return;
    xpl_copies_free(o->cache);
    o->ops->free(o);
}

void xpl_objects_stop(struct xpl_objects *o, enum xpl_objects_stop what) {
    o->ops->stop(o, what);
}

// ---- counters ----

static xpl_status_t count_call(struct xpl_objects *o, enum xpl_objects_call call, xpl_status_t st) {
    atomic_fetch_add(&o->ended[call][st != XPL_OK], 1);
    return st;
}

void xpl_objects_get_stats(struct xpl_objects *o, struct xpl_objects_stats *ret) {
    *ret = (struct xpl_objects_stats){0};
    if (!o) return;
    for (size_t i = 0; i < XPL_OBJECTS_N_CALLS; i++) {
        ret->done[i] = atomic_load(&o->ended[i][0]);
        ret->failed[i] = atomic_load(&o->ended[i][1]);
    }
    ret->fetched_bytes = atomic_load(&o->fetched_bytes);
    ret->sent_bytes = atomic_load(&o->sent_bytes);
}

xpl_status_t xpl_objects_list(struct xpl_objects *o, xpl_str_t dir, struct xpl_object_list *list,
                              struct xpl_error *err) {
    list->cut = false;
    list->n_refused = 0;
    return count_call(o, XPL_OBJECTS_LIST, o->ops->list(o, dir, list, err));
}

void xpl_objects_identify(const struct xpl_objects *o, const struct xpl_stored_object *of,
                          uint64_t ret[2]) {
    for (int i = 0; i < 2; i++)
        ret[i] = hash_text(of->version, hash_text(of->path, o->place[i]));
}

// ---- listings that were wrong ----

static uint64_t stale_mark(xpl_str_t dir) {
    const uint64_t h = hash_text(dir, 3);
    return h ? h : 1; // 0 is a free place
}

static void note_stale(struct xpl_objects *o, xpl_str_t path) {
    const char *const slash = memrchr(path.ptr, '/', path.len);
    const xpl_str_t dir = slash ? xpl_str_sub(path, 0, (size_t)(slash - path.ptr)) : XPL_STR(".");
    const uint64_t mark = stale_mark(dir);
    for (size_t i = 0; i < sizeof o->stale / sizeof *o->stale; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&o->stale[i], &none, mark) || none == mark) return;
    }
    atomic_store(&o->stale[mark % (sizeof o->stale / sizeof *o->stale)], mark);
}

void xpl_objects_place(const struct xpl_objects *o, uint8_t ret[16]) {
    for (size_t i = 0; i < 16; i++)
        ret[i] = (uint8_t)(o->place[i / 8] >> (8 * (i % 8)));
}

uint64_t xpl_objects_device(const struct xpl_objects *o) {
    return o->place[0] ? o->place[0] : 1;
}

bool xpl_objects_take_stale(struct xpl_objects *o, xpl_str_t dir) {
    const uint64_t mark = stale_mark(dir);
    for (size_t i = 0; i < sizeof o->stale / sizeof *o->stale; i++) {
        uint64_t expected = mark;
        if (atomic_compare_exchange_strong(&o->stale[i], &expected, 0)) return true;
    }
    return false;
}

// ---- writing ----

xpl_status_t xpl_objects_put(struct xpl_objects *o, xpl_str_t path, int fd, uint64_t size,
                             const struct xpl_cancel *cancel, struct xpl_error *err) {
    const xpl_status_t st =
        count_call(o, XPL_OBJECTS_PUT, o->ops->put(o, path, fd, size, cancel, err));
    if (st != XPL_OK) return st;
    atomic_fetch_add(&o->sent_bytes, size);
    note_stale(o, path);
    return XPL_OK;
}

xpl_status_t xpl_objects_remove(struct xpl_objects *o, xpl_str_t path, struct xpl_error *err) {
    const xpl_status_t st = count_call(o, XPL_OBJECTS_REMOVE, o->ops->remove(o, path, err));
    if (st == XPL_OK) note_stale(o, path);
    return st;
}

// ---- local copies ----

struct fetch {
    struct xpl_objects *o;
    const struct xpl_stored_object *of;
};

static xpl_status_t fill(void *arg, int fd, struct xpl_error *err) {
    const struct fetch *const f = arg;
    const xpl_status_t st =
        count_call(f->o, XPL_OBJECTS_FETCH, f->o->ops->fetch(f->o, f->of, fd, err));
    if (st == XPL_OK) atomic_fetch_add(&f->o->fetched_bytes, f->of->size);
    return st;
}

xpl_status_t xpl_objects_get(struct xpl_objects *o, const struct xpl_stored_object *of, int *ret_fd,
                             struct xpl_error *err) {
    struct fetch f = {o, of};
    struct xpl_copy_key key = {.size = of->size};
    xpl_objects_identify(o, of, key.id);
    const xpl_status_t st = xpl_copies_get(o->cache, &key, fill, &f, ret_fd, err);
    if (st == XPL_ABORTED || st == XPL_NOT_FOUND) note_stale(o, of->path);
    return st;
}
