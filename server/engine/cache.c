// SPDX-License-Identifier: Apache-2.0
#include "server/engine/cache.h"

#include <pthread.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"

enum { BUCKETS = 4096, ENTRY_COST = 128 };

struct entry {
    struct entry *chain;         // same bucket
    struct entry *newer, *older; // by last use
    struct xpl_object *object;
    uint32_t hash;
    enum xpl_cache_kind kind;
    size_t key_len;
    uint8_t key[];
};

struct xpl_cache {
    pthread_mutex_t mu;
    size_t limit, bytes, n;
    uint64_t evicted;
    struct entry *newest, *oldest;
    struct entry *buckets[BUCKETS];
};

static uint32_t hash_of(struct xpl_cache_key key) {
    const xpl_str_t bytes = {(const char *)key.bytes.ptr, key.bytes.len};
    return xpl_hash_str(xpl_hash_seed() + (uint32_t)key.kind, bytes);
}

static bool entry_has_key(const struct entry *e, uint32_t hash, struct xpl_cache_key key) {
    return e->hash == hash && e->kind == key.kind && e->key_len == key.bytes.len &&
           memcmp(e->key, key.bytes.ptr, key.bytes.len) == 0;
}

static struct entry **find(struct xpl_cache *c, uint32_t hash, struct xpl_cache_key key) {
    struct entry **at = &c->buckets[hash % BUCKETS];
    while (*at && !entry_has_key(*at, hash, key))
        at = &(*at)->chain;
    return at;
}

static void unlink_use(struct xpl_cache *c, struct entry *e) {
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(struct xpl_cache *c, struct entry *e) {
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static size_t own_cost(const struct entry *e) {
    return e->key_len + ENTRY_COST;
}

// An entry begins to keep the object: returns the bytes that this adds.
static size_t charge(struct xpl_object *o) {
    return (o->entries++ ? 0 : o->bytes) + (o->part ? charge(o->part) : 0);
}

// An entry ends to keep the object: returns the bytes that this leaves free.
static size_t discharge(struct xpl_object *o) {
    return (--o->entries ? 0 : o->bytes) + (o->part ? discharge(o->part) : 0);
}

// Whether the limit leaves room for `e` by itself; sizes that would wrap around never fit.
static bool fits(const struct xpl_cache *c, const struct entry *e) {
    size_t bytes = 0;
    return !__builtin_add_overflow(e->object->bytes, own_cost(e), &bytes) &&
           !__builtin_add_overflow(bytes, e->object->part ? e->object->part->bytes : 0, &bytes) &&
           bytes <= c->limit;
}

// Moves *at to the list *removed.
static void remove_at(struct xpl_cache *c, struct entry **at, struct entry **removed) {
    struct entry *const e = *at;
    *at = e->chain;
    unlink_use(c, e);
    c->bytes -= own_cost(e) + discharge(e->object);
    c->n--;
    e->chain = *removed;
    *removed = e;
}

// Removes the oldest until the limit is kept.
static void evict(struct xpl_cache *c, struct entry **removed) {
    while (c->bytes > c->limit && c->oldest) {
        struct entry *const e = c->oldest;
        struct entry **at = &c->buckets[e->hash % BUCKETS];
        while (*at != e)
            at = &(*at)->chain;
        remove_at(c, at, removed);
        c->evicted++;
    }
}

// Without the lock: unmapping a large file takes milliseconds.
static void free_removed(struct entry *e) {
    while (e) {
        struct entry *const next = e->chain;
        xpl_object_unref(e->object);
        xpl_sys_free(e);
        e = next;
    }
}

struct xpl_cache *xpl_cache_new(size_t limit) {
    struct xpl_cache *c = xpl_sys_alloc(sizeof *c);
    if (!c) return NULL;
    memset(c, 0, sizeof *c);
    c->limit = limit;
    pthread_mutex_init(&c->mu, NULL);
    return c;
}

void xpl_cache_free(struct xpl_cache *c) {
    if (!c) return;
    struct entry *removed = NULL;
    c->limit = 0;
    evict(c, &removed);
    free_removed(removed);
    pthread_mutex_destroy(&c->mu);
    xpl_sys_free(c);
}

struct xpl_object *xpl_cache_get(struct xpl_cache *c, struct xpl_cache_key key) {
    const uint32_t hash = hash_of(key);
    struct xpl_object *o = NULL;
    pthread_mutex_lock(&c->mu);
    struct entry *const e = *find(c, hash, key);
    if (e) {
        o = e->object;
        xpl_object_ref(o);
        if (e != c->newest) {
            unlink_use(c, e);
            link_newest(c, e);
        }
    }
    pthread_mutex_unlock(&c->mu);
    return o;
}

void xpl_cache_put(struct xpl_cache *c, struct xpl_cache_key key, struct xpl_object *o) {
    struct entry *e = xpl_sys_alloc(sizeof *e + key.bytes.len);
    if (!e) return;
    *e = (struct entry){
        .object = o, .hash = hash_of(key), .kind = key.kind, .key_len = key.bytes.len};
    if (key.bytes.len) memcpy(e->key, key.bytes.ptr, key.bytes.len);
    struct entry *removed = NULL;
    pthread_mutex_lock(&c->mu);
    if (!fits(c, e)) {
        pthread_mutex_unlock(&c->mu);
        xpl_sys_free(e);
        return;
    }
    struct entry **at = find(c, e->hash, key);
    if (*at) remove_at(c, at, &removed);
    at = &c->buckets[e->hash % BUCKETS];
    e->chain = *at;
    *at = e;
    xpl_object_ref(o);
    link_newest(c, e);
    c->bytes += own_cost(e) + charge(o);
    c->n++;
    evict(c, &removed);
    pthread_mutex_unlock(&c->mu);
    free_removed(removed);
}

void xpl_cache_drop(struct xpl_cache *c, struct xpl_cache_key key) {
    struct entry *removed = NULL;
    pthread_mutex_lock(&c->mu);
    struct entry **at = find(c, hash_of(key), key);
    if (*at) remove_at(c, at, &removed);
    pthread_mutex_unlock(&c->mu);
    free_removed(removed);
}

void xpl_cache_set_limit(struct xpl_cache *c, size_t limit) {
    struct entry *removed = NULL;
    pthread_mutex_lock(&c->mu);
    c->limit = limit;
    evict(c, &removed);
    pthread_mutex_unlock(&c->mu);
    free_removed(removed);
}

struct xpl_cache_stats xpl_cache_get_stats(struct xpl_cache *c) {
    pthread_mutex_lock(&c->mu);
    const struct xpl_cache_stats s = {c->bytes, c->limit, c->n, c->evicted};
    pthread_mutex_unlock(&c->mu);
    return s;
}
