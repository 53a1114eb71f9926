// SPDX-License-Identifier: Apache-2.0
// What the daemon keeps in memory: finished answers and hosts' op statistics, by key, the least
// recently used going first when the limit in bytes is reached.
#ifndef XPL_SERVER_ENGINE_CACHE_H_
#define XPL_SERVER_ENGINE_CACHE_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

// Begins every object that the cache can hold.  Immutable once it is put, but for the count.
struct xpl_object {
    atomic_uint refs;
    size_t bytes; // what it costs to keep, without the bytes of `part`
    void (*destroy)(struct xpl_object *);
    // Another object that this one has a reference to; it has no part itself.  The cache charges
    // its bytes once, however many entries keep it.  NULL: none.
    struct xpl_object *part;
    size_t entries; // of the cache that keep it: under the cache's lock
};

static inline void xpl_object_ref(struct xpl_object *o) {
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}
// NULL is fine.
static inline void xpl_object_unref(struct xpl_object *o) {
    if (o && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1) o->destroy(o);
}

struct xpl_cache;

// What an object is, and with it what its key's bytes say: objects of one kind have one type.
enum xpl_cache_kind {
    XPL_CACHE_ANSWER,       // struct xpl_tool_data, under a request's key
    XPL_CACHE_PRODUCT,      // struct xpl_product_handle, under product, variant and fingerprint
    XPL_CACHE_GRPC_REQUEST, // what grpc/analysis.c replied to the raw request
    XPL_CACHE_HTTP_URI,     // struct xpl_http_body, under the raw URI
};

struct xpl_cache_key {
    enum xpl_cache_kind kind;
    xpl_bytes_t bytes;
};

// NULL when out of memory.
struct xpl_cache *xpl_cache_new(size_t limit);
void xpl_cache_free(struct xpl_cache *c);
// The object under `key`, referenced for the caller, or NULL.  Any thread, as all that follow; the
// lock is held for the lookup alone.
struct xpl_object *xpl_cache_get(struct xpl_cache *c, struct xpl_cache_key key);
// Keeps a reference to `o`, in place of what was there.  Does nothing, and what was there stays,
// when `o` with its key is over the limit, or without memory.
void xpl_cache_put(struct xpl_cache *c, struct xpl_cache_key key, struct xpl_object *o);
void xpl_cache_drop(struct xpl_cache *c, struct xpl_cache_key key);
void xpl_cache_set_limit(struct xpl_cache *c, size_t limit);

struct xpl_cache_stats {
    size_t bytes, limit, objects;
    uint64_t evicted;
};
struct xpl_cache_stats xpl_cache_get_stats(struct xpl_cache *c);

#endif
