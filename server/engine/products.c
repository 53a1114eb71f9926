// SPDX-License-Identifier: Apache-2.0
#include "server/engine/products.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/products/values.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/cond.h"
#include "base/log.h"
#include "server/engine/handle.h"
#include "server/engine/index_files.h"
#include "server/engine/opstats_rows.h"
#include "server/engine/writer.h"
#include "storage/sessions/identity.h"

enum { CANCEL_POLL_NS = 50000000 }; // how soon one who waits notices that he is cancelled

enum build_state {
    BUILD_MAKING,
    BUILD_PARTIAL, // one request has its answer; the rest is still to be made
    BUILD_READY,
    BUILD_FAILED,
};

// A product that is being made, or whose outcome somebody still reads, or that is not saved yet.
struct xpl_product_build {
    struct xpl_product_build *next;
    const struct xpl_product *product;
    struct xpl_fingerprint fingerprint;
    unsigned variant;
    unsigned refs;        // the maker's, one for each who waits, the saver's; under the mutex
    bool prefetch;        // made ahead of requests
    bool listed, unsaved; // unsaved: READY, and found here until its file is written
    atomic_bool others;   // somebody waits: readable without the mutex
    atomic_bool give_way; // a request wants what a prefetch is making
    enum build_state state;
    bool made;           // from the profile, not from memory or the store
    xpl_status_t status; // when READY or FAILED, as what follows
    struct xpl_error err;
    struct xpl_product_handle *handle;
};

struct xpl_product_manager {
    struct xpl_product_manager_parts parts;
    atomic_size_t limit;    // bytes
    pthread_mutex_t mu;     // protects builds and what they point to
    pthread_cond_t changed; // a build changed its state
    struct xpl_product_build *builds;
    atomic_ullong made, failed, bytes_made;
};

// ---- builds; the caller holds m->mu ----

static void build_set_state(struct xpl_product_manager *m, struct xpl_product_build *b,
                            enum build_state state) {
    assert(b->state == BUILD_MAKING || (b->state == BUILD_PARTIAL && state >= BUILD_READY));
    assert(state > b->state);
    b->state = state;
    pthread_cond_broadcast(&m->changed);
}

static bool build_is_done(const struct xpl_product_build *b) {
    return b->state >= BUILD_READY;
}

static void build_list(struct xpl_product_manager *m, struct xpl_product_build *b) {
    assert(!b->listed);
    b->next = m->builds;
    m->builds = b;
    b->listed = true;
}

static void build_unlist(struct xpl_product_manager *m, struct xpl_product_build *b) {
    struct xpl_product_build **at = &m->builds;
    while (b->listed && *at != b)
        at = &(*at)->next;
    if (b->listed) *at = b->next;
    b->listed = false;
}

static void build_unref(struct xpl_product_build *b) {
    assert(b->refs > 0);
    atomic_store(&b->others, --b->refs > 1);
    if (b->refs) return;
    if (b->handle) xpl_object_unref(&b->handle->object);
    xpl_sys_free(b);
}

static bool build_is_for(const struct xpl_product_build *b, const struct xpl_product *product,
                         unsigned variant, const struct xpl_fingerprint *fingerprint) {
    return b->product == product && b->variant == variant &&
           xpl_fingerprint_eq(&b->fingerprint, fingerprint);
}

// A build that a prefetch makes counts only with `prefetches`.
static struct xpl_product_build *build_find(struct xpl_product_manager *m,
                                            const struct xpl_product *product, unsigned variant,
                                            const struct xpl_fingerprint *fingerprint,
                                            bool prefetches) {
    struct xpl_product_build *b = m->builds;
    while (b && (!build_is_for(b, product, variant, fingerprint) || (b->prefetch && !prefetches)))
        b = b->next;
    return b;
}

// ---- memory ----

struct memory_key {
    uint64_t variant;
    const struct xpl_product *product;
    struct xpl_fingerprint fingerprint;
};

static struct memory_key memory_key(const struct xpl_product *product, unsigned variant,
                                    const struct xpl_fingerprint *fingerprint) {
    struct memory_key k;
    memset(&k, 0, sizeof k); // compared as bytes
    k.variant = variant;
    k.product = product;
    k.fingerprint = *fingerprint;
    return k;
}

static struct xpl_cache_key cache_key(const struct memory_key *k) {
    return (struct xpl_cache_key){XPL_CACHE_PRODUCT, {(const uint8_t *)k, sizeof *k}};
}

static void keep_in_memory(struct xpl_product_manager *m, struct xpl_product_handle *h) {
    const struct memory_key k = memory_key(h->product, h->variant, &h->fingerprint);
    h->object.bytes = xpl_product_handle_bytes(h);
    xpl_cache_put(m->parts.cache, cache_key(&k), &h->object);
}

static void forget_in_memory(struct xpl_product_manager *m, const struct xpl_product_handle *h) {
    const struct memory_key k = memory_key(h->product, h->variant, &h->fingerprint);
    xpl_cache_drop(m->parts.cache, cache_key(&k));
}

struct xpl_product_handle *xpl_product_lookup(struct xpl_product_manager *m,
                                              const struct xpl_product *product, unsigned variant,
                                              const struct xpl_fingerprint *fingerprint) {
    const struct memory_key k = memory_key(product, variant, fingerprint);
    struct xpl_product_handle *h =
        (struct xpl_product_handle *)xpl_cache_get(m->parts.cache, cache_key(&k));
    if (h || product->residency != XPL_RESIDENCY_FILE) return h;
    pthread_mutex_lock(&m->mu);
    const struct xpl_product_build *const b = build_find(m, product, variant, fingerprint, true);
    if (b && b->unsaved && b->handle) {
        h = b->handle;
        xpl_object_ref(&h->object);
    }
    pthread_mutex_unlock(&m->mu);
    return h;
}

// ---- store ----

bool xpl_product_profile_id(struct xpl_product_manager *m, const struct xpl_snapshot *snapshot,
                            const struct xpl_host *host, struct xpl_work_owner owner,
                            struct xpl_profile_id *ret) {
    struct xpl_opened_profile opened = {0};
    if (xpl_identity_lookup(m->parts.identity, &host->fingerprint, ret)) return true;
    if (!xpl_identity_must_hash_first(m->parts.identity, host->fingerprint.size)) return false;
    if (xpl_snapshot_open(snapshot, host, 0, &opened.source, NULL) != XPL_OK) return false;
    const bool found =
        xpl_source_is_stable(opened.source) &&
        xpl_fingerprint_eq(xpl_source_fingerprint(opened.source), &host->fingerprint) &&
        xpl_identity_hash(m->parts.identity, opened.source, owner.is_cancelled, owner.arg, ret,
                          NULL) == XPL_OK;
    xpl_opened_profile_close(&opened);
    return found;
}

// The variant's names, "a b"; "" for 0.
static xpl_str_t variant_text(const struct xpl_product *p, unsigned variant, char *buf,
                              size_t size) {
    size_t n = 0;
    buf[0] = 0;
    for (unsigned i = 0; p->variants && p->variants[i]; i++)
        if (variant & 1u << i)
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "", p->variants[i]);
    assert(n < size);
    return (xpl_str_t){buf, n};
}

enum { MAX_VARIANT_TEXT = 128 };

static struct xpl_store_key store_key(const struct xpl_product *p, unsigned variant,
                                      const struct xpl_profile_id *id, char *buf) {
    return (struct xpl_store_key){
        .kind = XPL_STORE_PRODUCT,
        .name = xpl_str_from(p->name),
        .options = variant_text(p, variant, buf, MAX_VARIANT_TEXT),
        .version = p->version,
        .profiles = id,
        .n_profiles = 1,
    };
}

bool xpl_product_is_stored(struct xpl_product_manager *m, const struct xpl_product *product,
                           unsigned variant, const struct xpl_fingerprint *fingerprint) {
    char buf[MAX_VARIANT_TEXT];
    struct xpl_profile_id id;
    if (!xpl_identity_lookup(m->parts.identity, fingerprint, &id)) return false;
    const struct xpl_store_key k = store_key(product, variant, &id, buf);
    return xpl_store_has(m->parts.store, &k);
}

static struct xpl_product_handle *read_store(struct xpl_product_manager *m,
                                             const struct xpl_product_build *b,
                                             const struct xpl_profile_id *id, bool packed) {
    char buf[MAX_VARIANT_TEXT];
    const struct xpl_store_key k = store_key(b->product, b->variant, id, buf);
    const size_t limit = atomic_load(&m->limit);
    struct xpl_store_value v;
    if (xpl_store_get(m->parts.store, &k, limit, &v, NULL) != XPL_OK) return NULL;
    xpl_sys_free(v.meta);
    return xpl_product_handle_from_bytes(b->product, b->variant, v.data, v.len, packed, limit);
}

// The id of the profile that the build is of: of the one that is open, if there is one.
static bool build_profile_id(struct xpl_product_manager *m, const struct xpl_product_request *r,
                             const struct xpl_build_context *ctx, struct xpl_profile_id *ret) {
    bool known = false;
    if (!r->opened) return xpl_product_profile_id(m, r->snapshot, r->host, ctx->owner, ret);
    return xpl_identity_find(m->parts.identity, r->opened->source, ctx->owner.is_cancelled,
                             ctx->owner.arg, &known, ret, NULL) == XPL_OK &&
           known;
}

static struct xpl_product_handle *read_file(struct xpl_product_manager *m,
                                            const struct xpl_product_build *b,
                                            const struct xpl_profile_id *id) {
    struct xpl_source *file = NULL;
    xpl_status_t st;
    if (xpl_index_files_open(m->parts.files, id, b->product->version, &file) != XPL_OK) return NULL;
    struct xpl_product_handle *const h =
        xpl_product_handle_from_file(b->product, b->variant, file, atomic_load(&m->limit), &st);
    if (h) return h;
    xpl_source_free(file);
    if (st == XPL_DATA_LOSS) xpl_index_files_remove(m->parts.files, id, b->product->version);
    return NULL;
}

// The product that is kept outside of memory, packed where that will do; NULL when there is none.
static struct xpl_product_handle *read_kept(struct xpl_product_manager *m,
                                            const struct xpl_product_request *r,
                                            const struct xpl_product_build *b,
                                            const struct xpl_build_context *ctx,
                                            struct xpl_stage_times *times) {
    const uint64_t began = xpl_clock_ns();
    struct xpl_product_handle *h = NULL;
    struct xpl_profile_id id;
    if (b->product->residency == XPL_RESIDENCY_STORE &&
        xpl_product_profile_id(m, r->snapshot, r->host, ctx->owner, &id)) {
        h = read_store(m, b, &id, ctx->packed);
        xpl_stage_add(times, XPL_STAGE_STORE, began);
    }
    if (b->product->residency == XPL_RESIDENCY_FILE && xpl_index_files_enabled(m->parts.files) &&
        build_profile_id(m, r, ctx, &id))
        h = read_file(m, b, &id);
    if (!h) return NULL;
    h->fingerprint = b->fingerprint;
    h->from_store = true;
    h->stable = true;
    return h;
}

// Asked while the value is unpacked.  Rows that a crash lost are made when it is read so again.
static bool has_rows(const struct xpl_product_handle *h) {
    const struct xpl_op_stats_value *const v =
        h->product == &xpl_product_op_stats ? h->value : NULL;
    return v && xpl_opstats_has_rows(v->stats, h->variant);
}

static xpl_status_t op_stats_rows(const void *value, xpl_bytes_t encoded, struct xpl_arena *arena,
                                  struct xpl_rows *ret, struct xpl_error *err) {
    const struct xpl_op_stats_value *const v = value;
    return xpl_rows_from_product(v ? v->stats : NULL, encoded, arena, ret, err);
}

// Hands a product, and the rows that people query, to the store's writer.
static void write_to_store(struct xpl_product_manager *m, const struct xpl_product_request *r,
                           struct xpl_product_handle *h) {
    char buf[MAX_VARIANT_TEXT];
    const struct xpl_store_writer_key w = {
        .kind = XPL_STORE_PRODUCT,
        .name = xpl_str_from(h->product->name),
        .options = variant_text(h->product, h->variant, buf, sizeof buf),
        .version = h->product->version,
        .snapshot = r->snapshot,
        .hosts = &r->host,
        .files = &h->fingerprint,
        .n_hosts = 1};
    const struct xpl_store_writer_product p = {.owner = &h->object,
                                               .value = h->value,
                                               .encoded = {h->packed, h->packed_len},
                                               .encode = h->product->encode,
                                               .rows = h->has_rows ? op_stats_rows : NULL};
    struct xpl_profile_id id;
    if (!h->from_store)
        xpl_store_writer_put_product(m->parts.writer, &w, &p);
    else if (h->has_rows && xpl_identity_lookup(m->parts.identity, &h->fingerprint, &id) &&
             !xpl_store_has_rows(m->parts.store, &id, XPL_ROWS_VERSION))
        xpl_store_writer_put_rows(m->parts.writer, &w, &p);
}

// On the saver's thread: from now on the file is read, or, without one, memory.
static void saved(void *manager, void *build, bool ok) {
    struct xpl_product_manager *const m = manager;
    struct xpl_product_build *const b = build;
    xpl_source_free(b->handle->profile); // nobody else looks at it
    b->handle->profile = NULL;
    if (!ok) keep_in_memory(m, b->handle);
    pthread_mutex_lock(&m->mu);
    b->unsaved = false;
    build_unlist(m, b);
    build_unref(b);
    pthread_mutex_unlock(&m->mu);
}

// Has the file written; until then the build stays listed, and the product is found there.
static void write_to_file(struct xpl_product_manager *m, struct xpl_product_build *b) {
    pthread_mutex_lock(&m->mu);
    b->refs++; // the saver's
    b->unsaved = true;
    pthread_mutex_unlock(&m->mu);
    const struct xpl_index_file_save s = {.version = b->product->version,
                                          .handle = b->handle,
                                          .done = saved,
                                          .manager = m,
                                          .build = b};
    if (!xpl_index_files_save(m->parts.files, &s)) saved(m, b, false);
}

// ---- making ----

struct build_owner { // decides for one build whether anyone still wants it
    const struct xpl_build_context *ctx;
    const struct xpl_product_build *build;
};

static bool build_is_unwanted(void *arg) {
    const struct build_owner *const o = arg;
    if (atomic_load(&o->build->give_way)) return true;
    if (atomic_load(&o->build->others)) return false;
    return o->ctx->owner.is_cancelled && o->ctx->owner.is_cancelled(o->ctx->owner.arg);
}

// One attempt with an open profile.  *ret may carry DATA_LOSS; ABORTED when the file changed.
static xpl_status_t make_of_opened(struct xpl_product_manager *m,
                                   const struct xpl_product_request *r,
                                   const struct xpl_opened_profile *opened, struct xpl_exec *exec,
                                   struct xpl_product_handle *h, struct xpl_error *err) {
    struct xpl_error why = {0};
    const struct xpl_product_input in = {.profile = opened->bytes,
                                         .variant = r->variant,
                                         .exec = exec,
                                         .limit = atomic_load(&m->limit),
                                         .first = r->first};
    const xpl_status_t st = r->product->make(&in, &h->value, &why);
    XPL_TRY(xpl_source_verify(opened->source, err));
    if (st != XPL_OK && st != XPL_DATA_LOSS)
        return xpl_error_set(err, st, __FILE__, __LINE__, why.offset, "%s: %s", r->host->path.ptr,
                             why.msg);
    h->status = st;
    if (st == XPL_DATA_LOSS)
        (void)xpl_error_set(&h->err, st, __FILE__, __LINE__, why.offset, "%s: %s",
                            r->host->path.ptr, why.msg);
    h->fingerprint = *xpl_source_fingerprint(opened->source);
    h->stable = xpl_source_is_stable(opened->source);
    if (r->product->residency == XPL_RESIDENCY_FILE) h->profile = xpl_source_ref(opened->source);
    return XPL_OK;
}

// A profile that cannot be decompressed is broken, and remembered as any other.
static xpl_status_t make_broken(const struct xpl_product_request *r,
                                const struct xpl_opened_profile *opened,
                                const struct xpl_error *why, struct xpl_product_handle **ret,
                                struct xpl_error *err) {
    struct xpl_product_handle *const h = xpl_product_handle_new(r->product, r->variant);
    if (!h) XPL_RETURN_OOM(err, r->product->name);
    h->status = why->code;
    h->err = *why;
    h->fingerprint = *xpl_source_fingerprint(opened->source);
    h->stable = xpl_source_is_stable(opened->source);
    *ret = h;
    return XPL_OK;
}

static xpl_status_t make_once(struct xpl_product_manager *m, const struct xpl_product_request *r,
                              const struct xpl_build_context *ctx, struct xpl_work_owner owner,
                              struct xpl_stage_times *times, struct xpl_product_handle **ret,
                              struct xpl_error *err) {
    struct xpl_opened_profile own = {0};
    uint64_t began = xpl_clock_ns();
    if (!r->opened) {
        struct xpl_error why = {0};
        xpl_status_t st = xpl_opened_profile_open(r->snapshot, r->host, atomic_load(&m->limit),
                                                  owner, &own, &why);
        xpl_stage_add(times, XPL_STAGE_OPEN, began);
        if (st == XPL_DATA_LOSS)
            st = make_broken(r, &own, &why, ret, err);
        else if (st != XPL_OK && err)
            *err = why;
        if (st != XPL_OK || own.bytes.ptr == NULL) {
            xpl_opened_profile_close(&own);
            return st;
        }
        began = xpl_clock_ns();
    }
    const struct xpl_opened_profile *const opened = r->opened ? r->opened : &own;
    struct xpl_product_handle *const h = xpl_product_handle_new(r->product, r->variant);
    struct xpl_guarded_exec exec;
    xpl_guarded_exec_init(&exec, ctx->exec, owner, opened->source);
    const xpl_status_t st = h ? make_of_opened(m, r, opened, &exec.exec, h, err)
                              : xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__,
                                              UINT64_MAX, "%s: out of memory", r->product->name);
    xpl_stage_add(times, XPL_STAGE_CONVERT, began);
    if (st == XPL_OK)
        *ret = h;
    else if (h)
        xpl_object_unref(&h->object);
    xpl_opened_profile_close(&own);
    return st;
}

// With an open profile the caller tries again: he has to open it anew.
static xpl_status_t make_with_retries(struct xpl_product_manager *m,
                                      const struct xpl_product_request *r,
                                      const struct xpl_build_context *ctx,
                                      struct xpl_work_owner owner, struct xpl_stage_times *times,
                                      struct xpl_product_handle **ret, struct xpl_error *err) {
    struct xpl_error last = {0};
    struct xpl_product_handle *h = NULL;
    xpl_status_t st = XPL_ABORTED;
    const int attempts = r->opened ? 1 : XPL_OPEN_ATTEMPTS;
    for (int i = 0; i < attempts && st == XPL_ABORTED; i++) {
        last = (struct xpl_error){0};
        st = make_once(m, r, ctx, owner, times, &h, &last);
    }
    if (st == XPL_OK)
        *ret = h;
    else if (err)
        *err = last;
    return st;
}

static void count_made(struct xpl_product_manager *m, const struct xpl_product_request *r,
                       xpl_status_t st, const struct xpl_product_handle *h) {
    if (r->product->residency != XPL_RESIDENCY_STORE || st == XPL_CANCELLED) return;
    atomic_fetch_add(h && h->status == XPL_OK ? &m->made : &m->failed, 1);
    if (h) atomic_fetch_add(&m->bytes_made, h->fingerprint.size);
}

static xpl_status_t make_for_build(struct xpl_product_manager *m,
                                   const struct xpl_product_request *r,
                                   const struct xpl_build_context *ctx, struct xpl_product_build *b,
                                   struct xpl_stage_times *times) {
    struct build_owner owner = {.ctx = ctx, .build = b};
    const struct xpl_work_owner work = {build_is_unwanted, &owner};
    xpl_status_t st = make_with_retries(m, r, ctx, work, times, &b->handle, &b->err);
    count_made(m, r, st, b->handle);
    if (st == XPL_NOT_FOUND || st == XPL_PERMISSION_DENIED || st == XPL_FAILED_PRECONDITION) {
        // A file that cannot be opened is left out of a combination as a broken one is.
        b->handle = xpl_product_handle_new(r->product, r->variant);
        if (b->handle) {
            b->handle->status = st;
            b->handle->err = b->err;
            b->handle->fingerprint = b->fingerprint;
            st = XPL_OK;
        }
    }
    return st;
}

// ---- one build at a time for each product ----

// Waits until b is done, or this asker gave up.  The caller holds m->mu.
static void build_wait(struct xpl_product_manager *m, struct xpl_product_build *b,
                       const struct xpl_build_context *ctx) {
    while (!build_is_done(b) &&
           !(ctx->owner.is_cancelled && ctx->owner.is_cancelled(ctx->owner.arg)))
        (void)xpl_cond_wait_until(&m->changed, &m->mu, xpl_clock_ns() + CANCEL_POLL_NS);
}

static struct xpl_product_build *build_new(const struct xpl_product_request *r,
                                           const struct xpl_fingerprint *fingerprint,
                                           bool prefetch) {
    struct xpl_product_build *const b = xpl_sys_alloc(sizeof *b);
    if (b)
        *b = (struct xpl_product_build){.product = r->product,
                                        .fingerprint = *fingerprint,
                                        .variant = r->variant,
                                        .prefetch = prefetch,
                                        .refs = 1};
    return b;
}

// Begins a build (*ret_mine), or waits for the one under way.  The caller gives *ret back.
// CANCELLED when this asker gave up while waiting.
static xpl_status_t claim_build(struct xpl_product_manager *m, const struct xpl_product_request *r,
                                const struct xpl_fingerprint *fingerprint,
                                const struct xpl_build_context *ctx, struct xpl_product_build **ret,
                                bool *ret_mine, struct xpl_error *err) {
    struct xpl_product_build *const mine = build_new(r, fingerprint, ctx->prefetch);
    if (!mine) XPL_RETURN_OOM(err, r->product->name);
    pthread_mutex_lock(&m->mu);
    struct xpl_product_build *b = build_find(m, r->product, r->variant, fingerprint, ctx->prefetch);
    // A prefetch runs at the lowest priority and may hardly get on: it is not waited for.
    struct xpl_product_build *const slow =
        b ? NULL : build_find(m, r->product, r->variant, fingerprint, true);
    if (slow) atomic_store(&slow->give_way, true);
    if (b && b->unsaved && ctx->bypass_cache) { // made anew beside it
        build_unlist(m, b);
        b = NULL;
    }
    *ret_mine = !b;
    if (!b) {
        build_list(m, mine);
        *ret = mine;
    } else if (!ctx->prefetch) {
        b->refs++;
        atomic_store(&b->others, true);
        build_wait(m, b, ctx);
        *ret = b;
    }
    const bool done = !b || (!ctx->prefetch && build_is_done(b));
    if (!done && !ctx->prefetch) build_unref(b);
    pthread_mutex_unlock(&m->mu);
    if (b) xpl_sys_free(mine);
    if (done) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
}

// The build has its outcome: tells all who wait, and keeps the product.
static void conclude_build(struct xpl_product_manager *m, const struct xpl_product_request *r,
                           struct xpl_product_build *b, xpl_status_t st, bool known,
                           bool for_memory) {
    struct xpl_product_handle *const h = st == XPL_OK ? b->handle : NULL;
    const bool stable = h && h->stable, valid = h && h->status == XPL_OK;
    const bool to_file = valid && stable && b->made &&
                         b->product->residency == XPL_RESIDENCY_FILE &&
                         xpl_index_files_enabled(m->parts.files);
    if (stable && for_memory && !to_file) keep_in_memory(m, h);
    if (to_file) {
        forget_in_memory(m, h); // a mapping of the file that this one replaces
        write_to_file(m, b);
    } else if (h) {
        xpl_source_free(h->profile);
        h->profile = NULL;
    }
    pthread_mutex_lock(&m->mu);
    b->status = st;
    if (!b->unsaved) build_unlist(m, b);
    build_set_state(m, b, st == XPL_OK ? BUILD_READY : BUILD_FAILED);
    pthread_mutex_unlock(&m->mu);
    if (valid && stable && !known && b->product->residency == XPL_RESIDENCY_STORE)
        write_to_store(m, r, h);
}

// Makes what `b` was begun for.
static void run_build(struct xpl_product_manager *m, const struct xpl_product_request *r,
                      const struct xpl_build_context *ctx, struct xpl_product_build *b,
                      struct xpl_stage_times *times) {
    if (!ctx->bypass_cache)
        b->handle = xpl_product_lookup(m, b->product, b->variant, &b->fingerprint);
    const bool known = b->handle != NULL;
    if (!known && !ctx->bypass_cache) b->handle = read_kept(m, r, b, ctx, times);
    b->made = !b->handle;
    const xpl_status_t st = b->made ? make_for_build(m, r, ctx, b, times) : XPL_OK;
    struct xpl_product_handle *const h = st == XPL_OK ? b->handle : NULL;
    if (h && h->value && b->product->is_partial && b->product->is_partial(h->value)) {
        h->build = b;
        pthread_mutex_lock(&m->mu);
        b->refs++; // the partial handle's
        build_set_state(m, b, BUILD_PARTIAL);
        pthread_mutex_unlock(&m->mu);
        return;
    }
    const bool valid = h && h->status == XPL_OK;
    if (valid && !known) h->has_rows = has_rows(h);
    if (valid && !known && ctx->packed) xpl_product_handle_pack(h);
    conclude_build(m, r, b, st, known, !(valid && ctx->prefetch));
}

// *at, unpacked: a new handle, in memory in its place.  False, and NULL, when it cannot be had.
static bool unpack_in_place(struct xpl_product_manager *m, struct xpl_product_handle **at) {
    struct xpl_product_handle *const old = *at;
    if (!old->packed) return true;
    struct xpl_product_handle *const h = xpl_product_handle_unpacked(old, atomic_load(&m->limit));
    if (h && h->stable) keep_in_memory(m, h);
    xpl_object_unref(&old->object);
    *at = h;
    return h != NULL;
}

// One round: the product of a build, another's or our own.  *ret stays NULL when the outcome is not
// for this asker: its makers gave up, or it is not new enough.
static xpl_status_t get_from_build(struct xpl_product_manager *m,
                                   const struct xpl_product_request *r,
                                   const struct xpl_fingerprint *fingerprint,
                                   const struct xpl_build_context *ctx,
                                   struct xpl_stage_times *times, struct xpl_product_handle **ret,
                                   struct xpl_error *err) {
    struct xpl_product_build *b = NULL;
    bool mine;
    XPL_TRY(claim_build(m, r, fingerprint, ctx, &b, &mine, err));
    if (mine) run_build(m, r, ctx, b, times);
    pthread_mutex_lock(&m->mu);
    const bool partial = mine && b->state == BUILD_PARTIAL;
    const bool ours = mine || (b->status != XPL_CANCELLED && (b->made || !ctx->bypass_cache));
    const xpl_status_t st = partial ? XPL_OK : b->status;
    if (ours && st == XPL_OK) {
        xpl_object_ref(&b->handle->object);
        *ret = b->handle;
    } else if (ours && err) {
        *err = b->err;
    }
    build_unref(b);
    pthread_mutex_unlock(&m->mu);
    return ours ? st : XPL_OK;
}

xpl_status_t xpl_product_get(struct xpl_product_manager *m, const struct xpl_product_request *r,
                             const struct xpl_build_context *ctx, struct xpl_stage_times *times,
                             struct xpl_product_handle **ret, struct xpl_error *err) {
    assert(r->product->residency != XPL_RESIDENCY_NONE);
    const struct xpl_fingerprint fingerprint =
        r->opened ? *xpl_source_fingerprint(r->opened->source) : r->host->fingerprint;
    struct xpl_build_context c = *ctx;
    struct xpl_product_handle *h =
        c.bypass_cache ? NULL : xpl_product_lookup(m, r->product, r->variant, &fingerprint);
    // Packed bytes that cannot be used are as good as none.
    if (h && !c.packed && !unpack_in_place(m, &h)) c.bypass_cache = true;
    while (!h)
        XPL_TRY(get_from_build(m, r, &fingerprint, &c, times, &h, err));
    if (!c.packed && !unpack_in_place(m, &h))
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%s: no memory for its %s (--memory-limit)",
                         r->host->path.ptr, r->product->name);
    *ret = h;
    return XPL_OK;
}

xpl_status_t xpl_product_make(struct xpl_product_manager *m, const struct xpl_product_request *r,
                              const struct xpl_build_context *ctx, struct xpl_stage_times *times,
                              void **ret, struct xpl_fingerprint *ret_fingerprint, bool *ret_stable,
                              struct xpl_error *err) {
    assert(r->product->residency == XPL_RESIDENCY_NONE);
    struct xpl_product_handle *h = NULL;
    XPL_TRY(make_with_retries(m, r, ctx, ctx->owner, times, &h, err));
    const xpl_status_t st = h->status;
    if (st == XPL_OK) {
        *ret = h->value;
        h->value = NULL;
        *ret_fingerprint = h->fingerprint;
        *ret_stable = h->stable;
    } else if (err) {
        *err = h->err;
    }
    xpl_object_unref(&h->object);
    return st;
}

// ---- partial products ----

void xpl_product_finish(struct xpl_product_manager *m, struct xpl_product_handle *h,
                        const struct xpl_opened_profile *opened,
                        const struct xpl_build_context *ctx) {
    struct xpl_product_build *const b = h->build;
    assert(b && b->state == BUILD_PARTIAL && b->handle == h);
    struct xpl_guarded_exec exec;
    xpl_guarded_exec_init(&exec, ctx->exec, ctx->owner, opened->source);
    struct xpl_error err = {0};
    xpl_status_t st = h->product->finish(h->value, &exec.exec, &err);
    if (st == XPL_OK) st = xpl_source_verify(opened->source, &err);
    if (st != XPL_OK && st != XPL_CANCELLED && st != XPL_ABORTED)
        xpl_log(XPL_LOG_WARN, "products", "a %s could not be finished: %s", h->product->name,
                err.msg);
    h->build = NULL;
    // Those who wait make it themselves: what failed here was work for later requests.
    conclude_build(m, NULL, b, st == XPL_OK ? st : XPL_CANCELLED, false, true);
    pthread_mutex_lock(&m->mu);
    build_unref(b);
    pthread_mutex_unlock(&m->mu);
    xpl_object_unref(&h->object);
}

void xpl_product_give_up(struct xpl_product_manager *m, struct xpl_product_handle *h) {
    struct xpl_product_build *const b = h->build;
    assert(b && b->state == BUILD_PARTIAL);
    h->build = NULL;
    pthread_mutex_lock(&m->mu);
    b->status = XPL_CANCELLED; // those who wait make it themselves
    build_unlist(m, b);
    build_set_state(m, b, BUILD_FAILED);
    build_unref(b);
    pthread_mutex_unlock(&m->mu);
    xpl_object_unref(&h->object);
}

// ---- the rest ----

bool xpl_product_is_truncated(const struct xpl_product_handle *h) {
    return h->file && xpl_source_is_truncated(h->file);
}

void xpl_product_report_damage(struct xpl_product_manager *m, const struct xpl_product_handle *h) {
    struct xpl_product_handle *const now =
        xpl_product_lookup(m, h->product, h->variant, &h->fingerprint);
    // Else somebody found it out before, and the file is another.
    if (h->file && (!now || now == h)) {
        forget_in_memory(m, h);
        struct xpl_profile_id id;
        if (xpl_identity_lookup(m->parts.identity, &h->fingerprint, &id))
            xpl_index_files_remove(m->parts.files, &id, h->product->version);
    }
    if (now) xpl_object_unref(&now->object);
}

bool xpl_product_is_running(struct xpl_product_manager *m, const struct xpl_product *product,
                            const struct xpl_fingerprint *fingerprint) {
    pthread_mutex_lock(&m->mu);
    const struct xpl_product_build *b = m->builds;
    while (b && (b->product != product || build_is_done(b) ||
                 !xpl_fingerprint_eq(&b->fingerprint, fingerprint)))
        b = b->next;
    pthread_mutex_unlock(&m->mu);
    return b != NULL;
}

static xpl_status_t host_has_device(struct xpl_product_manager *m, struct xpl_snapshot *snapshot,
                                    const struct xpl_host *h, const struct xpl_build_context *ctx,
                                    bool *ret, struct xpl_error *err) {
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_build_context own = {
        .exec = &serial, .owner = ctx->owner, .prefetch = ctx->prefetch};
    const struct xpl_product_request r = {
        .product = &xpl_product_devices, .snapshot = snapshot, .host = h};
    struct xpl_stage_times times = {0};
    struct xpl_product_handle *p = NULL;
    XPL_TRY(xpl_product_get(m, &r, &own, &times, &p, err));
    const struct xpl_devices_value *const v = p->value;
    *ret = v && v->accelerator;
    xpl_object_unref(&p->object);
    return XPL_OK;
}

xpl_status_t xpl_product_session_has_device(struct xpl_product_manager *m,
                                            struct xpl_snapshot *snapshot,
                                            const struct xpl_session *s,
                                            const struct xpl_build_context *ctx, bool *ret,
                                            struct xpl_error *err) {
    xpl_status_t first = XPL_OK;
    *ret = false;
    for (size_t i = 0; i < s->n_hosts && !*ret; i++) {
        struct xpl_error why = {0};
        const xpl_status_t st = host_has_device(m, snapshot, &s->hosts[i], ctx, ret, &why);
        if (st != XPL_OK && first == XPL_OK) {
            first = st;
            if (err) *err = why;
        }
        if (st == XPL_CANCELLED) return st;
    }
    return *ret ? XPL_OK : first;
}

struct xpl_product_stats xpl_product_get_stats(struct xpl_product_manager *m) {
    return (struct xpl_product_stats){.conversions = atomic_load(&m->made),
                                      .conversions_failed = atomic_load(&m->failed),
                                      .bytes_converted = atomic_load(&m->bytes_made)};
}

struct xpl_product_manager *xpl_product_manager_new(const struct xpl_product_manager_parts *parts,
                                                    size_t memory_limit) {
    struct xpl_product_manager *const m = xpl_sys_alloc(sizeof *m);
    if (!m) return NULL;
    *m = (struct xpl_product_manager){.parts = *parts};
    xpl_product_manager_set_limit(m, memory_limit);
    pthread_mutex_init(&m->mu, NULL);
    xpl_cond_init(&m->changed);
    return m;
}

void xpl_product_manager_set_limit(struct xpl_product_manager *m, size_t memory_limit) {
    atomic_store(&m->limit, memory_limit);
}

void xpl_product_manager_free(struct xpl_product_manager *m) {
    if (!m) return;
    xpl_index_files_drain(m->parts.files);
    assert(!m->builds);
    pthread_mutex_destroy(&m->mu);
    pthread_cond_destroy(&m->changed);
    xpl_sys_free(m);
}
