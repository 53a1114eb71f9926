// SPDX-License-Identifier: Apache-2.0
// Stored products: in memory, in the store, in files.
#include "server/engine/products/impl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "analysis/products/values.h"
#include "base/arena.h"
#include "server/engine/handle.h"
#include "server/engine/index_files.h"
#include "server/engine/opstats_rows.h"
#include "server/engine/writer.h"
#include "storage/sessions/identity.h"

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

void xpl_product_keep_in_memory(struct xpl_product_manager *m, struct xpl_product_handle *h) {
    const struct memory_key k = memory_key(h->product, h->variant, &h->fingerprint);
    h->object.bytes = xpl_product_handle_bytes(h);
    xpl_cache_put(m->parts.cache, cache_key(&k), &h->object);
}

void xpl_product_forget_in_memory(struct xpl_product_manager *m,
                                  const struct xpl_product_handle *h) {
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
    const struct xpl_product_build *const b =
        xpl_product_build_find(m, product, variant, fingerprint, true);
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

// The variant's names, the version of the product that this one is made from, and the format's:
// "a b op_stats=17 kineto=1"; "" without any.
static xpl_str_t options_text(const struct xpl_product *p, unsigned variant,
                              const struct xpl_format *format, char *buf) {
    char version[XPL_FORMAT_VERSION_TEXT];
    const size_t size = XPL_PRODUCT_OPTIONS_TEXT;
    size_t n = 0;
    buf[0] = 0;
    for (unsigned i = 0; p->variants && p->variants[i]; i++)
        if (variant & 1u << i)
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "", p->variants[i]);
    if (p->uses)
        n += (size_t)snprintf(buf + n, size - n, "%s%s=%u", n ? " " : "", p->uses->name,
                              p->uses->version);
    if (xpl_format_version_text(format, version))
        n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "", version);
    assert(n < size);
    return (xpl_str_t){buf, n};
}

struct xpl_store_key xpl_product_store_key(const struct xpl_product *p, unsigned variant,
                                           const struct xpl_format *format,
                                           const struct xpl_profile_id *id, char *buf) {
    return (struct xpl_store_key){
        .kind = XPL_STORE_PRODUCT,
        .name = xpl_str_from(p->name),
        .options = options_text(p, variant, format, buf),
        .version = p->version,
        .profiles = id,
        .n_profiles = 1,
    };
}

bool xpl_product_is_stored(struct xpl_product_manager *m, const struct xpl_product *product,
                           unsigned variant, const struct xpl_format *format,
                           const struct xpl_fingerprint *fingerprint) {
    char buf[XPL_PRODUCT_OPTIONS_TEXT];
    struct xpl_profile_id id;
    if (!xpl_identity_lookup(m->parts.identity, fingerprint, &id)) return false;
    const struct xpl_store_key k = xpl_product_store_key(product, variant, format, &id, buf);
    return xpl_store_has(m->parts.store, &k);
}

// The known facts of the profiles of `refs`.
struct known_profiles {
    const struct xpl_fingerprint **files;
    struct xpl_profile_id *ids;
    bool *known;
};

static xpl_status_t identify_many(struct xpl_product_manager *m, const struct xpl_product_ref *refs,
                                  size_t n, struct xpl_arena *arena, struct known_profiles *ret,
                                  struct xpl_error *err) {
    ret->files = xpl_arena_array(arena, n, sizeof *ret->files);
    ret->ids = xpl_arena_array(arena, n, sizeof *ret->ids);
    ret->known = xpl_arena_array(arena, n, sizeof *ret->known);
    if (!ret->files || !ret->ids || !ret->known) XPL_RETURN_OOM(err, "products");
    for (size_t i = 0; i < n; i++) {
        ret->files[i] = refs[i].file;
        ret->known[i] = false;
    }
    xpl_identity_lookup_many(m->parts.identity, ret->files, n, ret->ids, ret->known);
    return XPL_OK;
}

xpl_status_t xpl_product_identify_files(struct xpl_product_manager *m,
                                        const struct xpl_product_ref *refs, size_t n,
                                        struct xpl_arena *arena, struct xpl_error *err) {
    struct known_profiles p;
    return identify_many(m, refs, n, arena, &p, err);
}

xpl_status_t xpl_product_find_stored(struct xpl_product_manager *m, struct xpl_product_ref *refs,
                                     size_t n, struct xpl_arena *arena, struct xpl_error *err) {
    struct known_profiles p;
    XPL_TRY(identify_many(m, refs, n, arena, &p, err));
    struct xpl_store_key *const keys = xpl_arena_array(arena, n, sizeof *keys);
    bool *const found = xpl_arena_array(arena, n, sizeof *found);
    size_t n_keys = 0;
    if (!keys || !found) XPL_RETURN_OOM(err, "products");
    for (size_t i = 0; i < n; i++) {
        char *const buf = p.known[i] ? xpl_arena_alloc(arena, XPL_PRODUCT_OPTIONS_TEXT) : NULL;
        if (p.known[i] && !buf) XPL_RETURN_OOM(err, "products");
        if (buf)
            keys[n_keys++] = xpl_product_store_key(refs[i].product, refs[i].variant, refs[i].format,
                                                   &p.ids[i], buf);
    }
    xpl_store_has_many(m->parts.store, keys, n_keys, found);
    for (size_t i = 0, k = 0; i < n; i++)
        refs[i].stored = p.known[i] && found[k++];
    return XPL_OK;
}

static struct xpl_product_handle *read_store(struct xpl_product_manager *m,
                                             const struct xpl_product_build *b,
                                             const struct xpl_profile_id *id, bool packed) {
    char buf[XPL_PRODUCT_OPTIONS_TEXT];
    const struct xpl_store_key k =
        xpl_product_store_key(b->product, b->variant, b->format, id, buf);
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
    const struct xpl_index_file_key key = {id, b->product, b->variant, b->format};
    if (xpl_index_files_open(m->parts.files, &key, &file) != XPL_OK) return NULL;
    struct xpl_product_handle *const h =
        xpl_product_handle_from_file(b->product, b->variant, file, atomic_load(&m->limit), &st);
    if (h) return h;
    xpl_source_free(file);
    if (st == XPL_DATA_LOSS) xpl_index_files_remove(m->parts.files, &key);
    return NULL;
}

// The product that is kept outside of memory, packed where that will do; NULL when there is none.
struct xpl_product_handle *xpl_product_read_kept(struct xpl_product_manager *m,
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
    h->format = b->format;
    h->from_store = true;
    h->stable = true;
    return h;
}

static bool is_breakdown(const struct xpl_product_handle *h) {
    return h->product == &xpl_product_time_breakdown;
}

// Asked while the value is unpacked.  Rows that a crash lost are made when it is read so again.
bool xpl_product_has_rows(const struct xpl_product_handle *h) {
    if (is_breakdown(h)) return true;
    const struct xpl_op_stats_value *const v =
        h->product == &xpl_product_op_stats ? h->value : NULL;
    return v && xpl_opstats_has_rows(v->stats, h->variant);
}

static xpl_status_t op_stats_rows(const void *value, xpl_bytes_t encoded, struct xpl_arena *arena,
                                  struct xpl_rows *ret, struct xpl_error *err) {
    const struct xpl_op_stats_value *const v = value;
    return xpl_rows_from_product(v ? v->stats : NULL, encoded, arena, ret, err);
}

static xpl_status_t breakdown_rows(const void *value, xpl_bytes_t encoded, struct xpl_arena *arena,
                                   struct xpl_rows *ret, struct xpl_error *err) {
    const struct xpl_time_breakdown_value *const v = value;
    return xpl_rows_from_breakdown(v ? v->breakdown : NULL, encoded, arena, ret, err);
}

static struct xpl_store_writer_key writer_key(const struct xpl_product_request *r,
                                              const struct xpl_product_handle *h, char *buf) {
    return (struct xpl_store_writer_key){.kind = XPL_STORE_PRODUCT,
                                         .name = xpl_str_from(h->product->name),
                                         .options =
                                             options_text(h->product, h->variant, h->format, buf),
                                         .version = h->product->version,
                                         .snapshot = r->snapshot,
                                         .hosts = &r->host,
                                         .files = &h->fingerprint,
                                         .n_hosts = 1};
}

static struct xpl_store_writer_product writer_product(struct xpl_product_handle *h) {
    return (struct xpl_store_writer_product){.owner = &h->object,
                                             .value = h->value,
                                             .encoded = {h->packed, h->packed_len},
                                             .encode = h->product->encode,
                                             .rows = !h->has_rows      ? NULL
                                                     : is_breakdown(h) ? breakdown_rows
                                                                       : op_stats_rows};
}

void xpl_product_write_new_rows(struct xpl_product_manager *m, const struct xpl_product_request *r,
                                struct xpl_product_handle *h) {
    char buf[XPL_PRODUCT_OPTIONS_TEXT];
    const struct xpl_store_writer_key w = writer_key(r, h, buf);
    const struct xpl_store_writer_product p = writer_product(h);
    if (h->has_rows) xpl_store_writer_put_rows(m->parts.writer, &w, &p);
}

// Hands the rows that people query of a stored product to the store's writer, if they are missing.
static void product_write_rows(struct xpl_product_manager *m, const struct xpl_product_request *r,
                               struct xpl_product_handle *h) {
    struct xpl_profile_id id;
    const enum xpl_rows_kind kind = is_breakdown(h) ? XPL_ROWS_TIMES : XPL_ROWS_OPS;
    if (h->has_rows && xpl_identity_lookup(m->parts.identity, &h->fingerprint, &id) &&
        !xpl_store_has_rows(m->parts.store, &id, kind, XPL_ROWS_VERSION))
        xpl_product_write_new_rows(m, r, h);
}

void xpl_product_write_to_store(struct xpl_product_manager *m, const struct xpl_product_request *r,
                                struct xpl_product_handle *h) {
    char buf[XPL_PRODUCT_OPTIONS_TEXT];
    const struct xpl_store_writer_key w = writer_key(r, h, buf);
    const struct xpl_store_writer_product p = writer_product(h);
    if (h->from_store)
        product_write_rows(m, r, h);
    else
        xpl_store_writer_put_product(m->parts.writer, &w, &p);
}

// On the saver's thread: from now on the file is read, or, without one, memory.
static void saved(void *manager, void *build, bool ok) {
    struct xpl_product_manager *const m = manager;
    struct xpl_product_build *const b = build;
    xpl_source_free(b->handle->profile); // it has no other user
    b->handle->profile = NULL;
    if (!ok) xpl_product_keep_in_memory(m, b->handle);
    pthread_mutex_lock(&m->mu);
    b->unsaved = false;
    xpl_product_build_unlist(m, b);
    xpl_product_build_unref(b);
    pthread_mutex_unlock(&m->mu);
}

// Has the file written; until then the build stays listed, and the product is found there.
void xpl_product_write_to_file(struct xpl_product_manager *m, struct xpl_product_build *b) {
    pthread_mutex_lock(&m->mu);
    b->refs++; // the saver's
    b->unsaved = true;
    pthread_mutex_unlock(&m->mu);
    const struct xpl_index_file_save s = {
        .handle = b->handle, .done = saved, .manager = m, .build = b};
    if (!xpl_index_files_save(m->parts.files, &s)) saved(m, b, false);
}
