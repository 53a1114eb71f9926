// SPDX-License-Identifier: Apache-2.0
// The manager of products: lookups, and builds that waiters share.
#include "server/engine/products/impl.h"

#include <assert.h>

#include "analysis/products/values.h"
#include "base/cond.h"
#include "base/log.h"
#include "server/engine/handle.h"
#include "server/engine/index_files.h"
#include "storage/sessions/identity.h"

enum { CANCEL_POLL_NS = 50000000 }; // how soon a waiter notices its cancellation

// ---- one build at a time for each product ----

// Waits until b is done, or this asker gave up.
static void build_wait(struct xpl_product_manager *m, struct xpl_product_build *b,
                       const struct xpl_build_context *ctx) {
    xpl_assert_held(&m->mu);
    while (!xpl_product_build_is_done(b) &&
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
                                        .format = xpl_format_of_name(r->host->path, NULL),
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
    struct xpl_product_build *b =
        xpl_product_build_find(m, r->product, r->variant, fingerprint, ctx->prefetch);
    // A prefetch runs at the lowest priority and may hardly get on: it is not waited for.
    struct xpl_product_build *const slow =
        b ? NULL : xpl_product_build_find(m, r->product, r->variant, fingerprint, true);
    if (slow) atomic_store(&slow->give_way, true);
    if (b && b->unsaved && ctx->bypass_cache) { // made anew separately
        xpl_product_build_unlist(m, b);
        b = NULL;
    }
    *ret_mine = !b;
    if (!b) {
        xpl_product_build_list(m, mine);
        *ret = mine;
    } else if (!ctx->prefetch) {
        b->refs++;
        atomic_store(&b->others, true);
        build_wait(m, b, ctx);
        *ret = b;
    }
    const bool done = !b || (!ctx->prefetch && xpl_product_build_is_done(b));
    if (!done && !ctx->prefetch) xpl_product_build_unref(b);
    pthread_mutex_unlock(&m->mu);
    if (b) xpl_sys_free(mine);
    if (done) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
}

// The build has its outcome: wakes all waiters, and keeps the product. `known`: the store has it,
// or another thread stores it.
static void conclude_build(struct xpl_product_manager *m, const struct xpl_product_request *r,
                           struct xpl_product_build *b, xpl_status_t st, bool known,
                           bool for_memory) {
    struct xpl_product_handle *const h = st == XPL_OK ? b->handle : NULL;
    const bool stable = h && h->stable, valid = h && h->status == XPL_OK;
    const bool to_file = valid && stable && b->made &&
                         b->product->residency == XPL_RESIDENCY_FILE &&
                         xpl_index_files_enabled(m->parts.files);
    if (stable && for_memory && !to_file) xpl_product_keep_in_memory(m, h);
    if (to_file) {
        xpl_product_forget_in_memory(m, h); // a mapping of the file that this one replaces
        xpl_product_write_to_file(m, b);
    } else if (h) {
        xpl_source_free(h->profile);
        h->profile = NULL;
    }
    pthread_mutex_lock(&m->mu);
    b->status = st;
    if (!b->unsaved) xpl_product_build_unlist(m, b);
    xpl_product_build_set_state(m, b, st == XPL_OK ? BUILD_READY : BUILD_FAILED);
    pthread_mutex_unlock(&m->mu);
    if (valid && stable && !known && b->product->residency == XPL_RESIDENCY_STORE)
        xpl_product_write_to_store(m, r, h);
}

// The product in memory, unless the file from which its bytes are mapped was truncated: then it is
// dropped.
static struct xpl_product_handle *lookup_intact(struct xpl_product_manager *m,
                                                const struct xpl_product *product, unsigned variant,
                                                const struct xpl_fingerprint *fingerprint) {
    struct xpl_product_handle *const h = xpl_product_lookup(m, product, variant, fingerprint);
    if (!h || !xpl_product_is_truncated(h)) return h;
    xpl_product_report_damage(m, h);
    xpl_object_unref(&h->object);
    return NULL;
}

// Makes what `b` was begun for.
static void run_build(struct xpl_product_manager *m, const struct xpl_product_request *r,
                      const struct xpl_build_context *ctx, struct xpl_product_build *b,
                      struct xpl_stage_times *times) {
    if (!ctx->bypass_cache) b->handle = lookup_intact(m, b->product, b->variant, &b->fingerprint);
    const bool known = b->handle != NULL;
    if (!known && !ctx->bypass_cache && !ctx->published)
        b->handle = xpl_product_read_kept(m, r, b, ctx, times);
    b->made = !b->handle;
    const xpl_status_t st = b->made ? xpl_product_make_for_build(m, r, ctx, b, times) : XPL_OK;
    struct xpl_product_handle *const h = st == XPL_OK ? b->handle : NULL;
    if (h && h->value && b->product->is_partial && b->product->is_partial(h->value)) {
        h->build = b;
        pthread_mutex_lock(&m->mu);
        b->refs++; // the partial handle's
        xpl_product_build_set_state(m, b, BUILD_PARTIAL);
        pthread_mutex_unlock(&m->mu);
        return;
    }
    const bool valid = h && h->status == XPL_OK;
    if (valid && !known) h->has_rows = xpl_product_has_rows(h);
    if (valid && !known && ctx->packed) xpl_product_handle_pack(h);
    conclude_build(m, r, b, st, known || ctx->published,
                   !(valid && (ctx->prefetch || ctx->passing)));
}

// *at, unpacked: a new handle, in memory in its place.  On failure NULL.
static xpl_status_t unpack_in_place(struct xpl_product_manager *m, struct xpl_product_handle **at,
                                    const char *path, struct xpl_error *err) {
    struct xpl_product_handle *const old = *at;
    if (!old->packed) return XPL_OK;
    struct xpl_product_handle *h = NULL;
    struct xpl_error why = {0};
    const xpl_status_t st = xpl_product_handle_unpack(old, atomic_load(&m->limit), &h, &why);
    if (st == XPL_OK && h->stable) xpl_product_keep_in_memory(m, h);
    xpl_object_unref(&old->object);
    *at = h;
    if (st != XPL_OK) XPL_RETURN_ERROR(err, st, "%s: %s", path, why.msg);
    return XPL_OK;
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
    const uint64_t began = xpl_clock_ns();
    XPL_TRY(claim_build(m, r, fingerprint, ctx, &b, &mine, err));
    if (mine)
        run_build(m, r, ctx, b, times);
    else
        xpl_stage_add(times, XPL_STAGE_CONVERT, began); // another request's conversion
    pthread_mutex_lock(&m->mu);
    const bool partial = mine && b->state == BUILD_PARTIAL;
    const bool ours = mine || (b->status != XPL_CANCELLED && (b->made || !ctx->bypass_cache));
    const xpl_status_t st = partial ? XPL_OK : b->status;
    // Its maker has tried often enough; of an open profile it tried once.
    if (!mine && st == XPL_ABORTED && ctx->changes && !r->opened)
        atomic_store(ctx->changes, XPL_OPEN_ATTEMPTS);
    if (ours && st == XPL_OK) {
        xpl_object_ref(&b->handle->object);
        *ret = b->handle;
    } else if (ours && err) {
        *err = b->err;
    }
    xpl_product_build_unref(b);
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
        c.bypass_cache ? NULL : lookup_intact(m, r->product, r->variant, &fingerprint);
    // Packed bytes that cannot be used are as good as none.
    if (h && !c.packed && unpack_in_place(m, &h, "", NULL) != XPL_OK) c.bypass_cache = true;
    while (!h)
        XPL_TRY(get_from_build(m, r, &fingerprint, &c, times, &h, err));
    if (!c.packed) XPL_TRY(unpack_in_place(m, &h, r->host->path.ptr, err));
    *ret = h;
    return XPL_OK;
}

xpl_status_t xpl_product_make(struct xpl_product_manager *m, const struct xpl_product_request *r,
                              const struct xpl_build_context *ctx, struct xpl_stage_times *times,
                              struct xpl_made_product *ret, struct xpl_error *err) {
    assert(r->product->residency == XPL_RESIDENCY_NONE);
    struct xpl_product_handle *h = NULL;
    XPL_TRY(xpl_product_make_with_retries(m, r, ctx, ctx->owner, times, &h, err));
    const xpl_status_t st = h->status;
    if (st == XPL_OK) {
        *ret = (struct xpl_made_product){h->value, h->fingerprint, h->stable};
        h->value = NULL;
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
    if (st == XPL_OK) st = xpl_product_verify_profile(m, opened, &err);
    if (st != XPL_OK && st != XPL_CANCELLED && st != XPL_ABORTED)
        xpl_log(XPL_LOG_WARN, "products", "a %s could not be finished: %s", h->product->name,
                err.msg);
    h->build = NULL;
    // Waiters make it themselves: the failure was in work for later requests.
    conclude_build(m, NULL, b, st == XPL_OK ? st : XPL_CANCELLED, false, true);
    pthread_mutex_lock(&m->mu);
    xpl_product_build_unref(b);
    pthread_mutex_unlock(&m->mu);
    xpl_object_unref(&h->object);
}

void xpl_product_give_up(struct xpl_product_manager *m, struct xpl_product_handle *h) {
    struct xpl_product_build *const b = h->build;
    assert(b && b->state == BUILD_PARTIAL);
    h->build = NULL;
    pthread_mutex_lock(&m->mu);
    b->status = XPL_CANCELLED; // waiters make it themselves
    xpl_product_build_unlist(m, b);
    xpl_product_build_set_state(m, b, BUILD_FAILED);
    xpl_product_build_unref(b);
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
    // Otherwise another thread noticed it before, and the file is another.
    if (h->file && (!now || now == h)) {
        xpl_product_forget_in_memory(m, h);
        struct xpl_profile_id id;
        const struct xpl_index_file_key key = {&id, h->product, h->variant, h->format};
        if (xpl_identity_lookup(m->parts.identity, &h->fingerprint, &id))
            xpl_index_files_remove(m->parts.files, &key);
    }
    if (now) xpl_object_unref(&now->object);
}

bool xpl_product_is_running(struct xpl_product_manager *m, const struct xpl_product *product,
                            const struct xpl_fingerprint *fingerprint) {
    pthread_mutex_lock(&m->mu);
    const struct xpl_product_build *b = m->builds;
    while (b && (b->product != product || xpl_product_build_is_done(b) ||
                 !xpl_fingerprint_eq(&b->fingerprint, fingerprint)))
        b = b->next;
    pthread_mutex_unlock(&m->mu);
    return b != NULL;
}

// Host `i` of the session.
static xpl_status_t host_has_device(struct xpl_product_manager *m,
                                    const struct xpl_product_request *r, size_t i,
                                    const struct xpl_build_context *ctx,
                                    struct xpl_stage_times *times, struct xpl_session_devices *ret,
                                    struct xpl_error *err) {
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_build_context own = {
        .exec = &serial, .owner = ctx->owner, .prefetch = ctx->prefetch};
    struct xpl_product_handle *p = NULL;
    XPL_TRY(xpl_product_get(m, r, &own, times, &p, err));
    const struct xpl_devices_value *const v = p->value;
    const xpl_status_t st = p->status;
    // A file that cannot be had now may have a device.
    const bool open = st == XPL_UNAVAILABLE || st == XPL_ABORTED || st == XPL_RESOURCE_EXHAUSTED;
    ret->any = v && v->accelerator;
    if (open && err) *err = p->err;
    if (ret->files && !open) ret->files[i] = p->fingerprint;
    xpl_object_unref(&p->object);
    return open ? st : XPL_OK;
}

xpl_status_t
xpl_product_session_has_device(struct xpl_product_manager *m, struct xpl_snapshot *snapshot,
                               const struct xpl_session *s, const struct xpl_build_context *ctx,
                               struct xpl_stage_times *times, struct xpl_session_devices *ret,
                               struct xpl_error *err) {
    xpl_status_t first = XPL_OK;
    ret->any = false;
    for (size_t i = 0; i < s->n_hosts && !ret->any; i++) {
        const struct xpl_product_request r = {
            .product = &xpl_product_devices, .snapshot = snapshot, .host = &s->hosts[i]};
        struct xpl_error why = {0};
        const xpl_status_t st = host_has_device(m, &r, i, ctx, times, ret, &why);
        if (st != XPL_OK && first == XPL_OK) {
            first = st;
            if (err) *err = why;
        }
        if (st == XPL_CANCELLED) return st;
    }
    return ret->any ? XPL_OK : first;
}

struct xpl_product_stats xpl_product_get_stats(struct xpl_product_manager *m) {
    return (struct xpl_product_stats){.conversions = atomic_load(&m->made),
                                      .imports = atomic_load(&m->imports),
                                      .conversions_failed = atomic_load(&m->failed),
                                      .bytes_converted = atomic_load(&m->bytes_made)};
}

struct xpl_product_manager *xpl_product_manager_new(const struct xpl_product_manager_parts *parts,
                                                    size_t memory_limit) {
    struct xpl_product_manager *const m = xpl_sys_alloc(sizeof *m);
    if (!m) return NULL;
    *m = (struct xpl_product_manager){
        .parts = *parts, .get = xpl_product_get, .report_damage = xpl_product_report_damage};
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
