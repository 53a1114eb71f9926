// SPDX-License-Identifier: Apache-2.0
// How a product is made: open, make, verify, and again when the file changed.
#include "server/engine/products/impl.h"

#include "analysis/products/values.h"
#include "server/engine/handle.h"

struct build_owner { // decides for one build whether anyone still waits for it
    const struct xpl_build_context *ctx;
    const struct xpl_product_build *build;
};

static bool build_is_unwanted(void *arg) {
    const struct build_owner *const o = arg;
    if (atomic_load(&o->build->give_way)) return true;
    if (atomic_load(&o->build->others)) return false;
    return o->ctx->owner.is_cancelled && o->ctx->owner.is_cancelled(o->ctx->owner.arg);
}

// Whether the caller has the used products, of this very file.
static bool has_used(const struct xpl_product_request *r, const struct xpl_fingerprint *file) {
    return r->used && r->used->value && xpl_fingerprint_eq(&r->used->fingerprint, file);
}

// A product of the same file that spares work, referenced; NULL: it is not in memory.
static struct xpl_product_handle *find_used(struct xpl_product_manager *m,
                                            const struct xpl_product_request *r,
                                            const struct xpl_opened_profile *opened) {
    const struct xpl_product *const p = r->product->uses;
    const struct xpl_fingerprint *const file = xpl_source_fingerprint(opened->source);
    if (!has_used(r, file)) return p ? xpl_product_lookup(m, p, r->variant, file) : NULL;
    xpl_object_ref(&r->used->object);
    return r->used;
}

// One attempt with an open profile.  *ret may carry DATA_LOSS; ABORTED when the file changed.
static xpl_status_t make_of_opened(struct xpl_product_manager *m,
                                   const struct xpl_product_request *r,
                                   const struct xpl_opened_profile *opened, struct xpl_exec *exec,
                                   struct xpl_product_handle *h, struct xpl_error *err) {
    struct xpl_error why = {0};
    struct xpl_product_handle *const used = find_used(m, r, opened);
    const struct xpl_product_input in = {.profile = opened->bytes,
                                         .format = opened->profile.format,
                                         .variant = r->variant,
                                         .exec = exec,
                                         .limit = atomic_load(&m->limit),
                                         .known = used ? used->value : NULL,
                                         .first = r->first};
    const xpl_status_t st = r->product->make(&in, &h->value, &why);
    if (used) xpl_object_unref(&used->object);
    if (r->product == &xpl_product_imported_xspace) atomic_fetch_add(&m->imports, 1);
    XPL_TRY(xpl_product_verify_profile(m, opened, err));
    if (st != XPL_OK && st != XPL_DATA_LOSS)
        return xpl_error_set(err, st, __FILE__, __LINE__, why.offset, "%s: %s", r->host->path.ptr,
                             why.msg);
    h->status = st;
    if (st == XPL_DATA_LOSS)
        (void)xpl_error_set(&h->err, st, __FILE__, __LINE__, why.offset, "%s: %s",
                            r->host->path.ptr, why.msg);
    h->fingerprint = *xpl_source_fingerprint(opened->source);
    h->format = xpl_format_of_name(r->host->path, NULL);
    h->stable = xpl_source_is_stable(opened->source);
    if (r->product->residency == XPL_RESIDENCY_FILE) h->profile = xpl_source_ref(opened->source);
    return XPL_OK;
}

// Whether one profile is more than a request may use: then others are answered without it.
static bool is_too_large(struct xpl_product_manager *m, const struct xpl_product_request *r,
                         xpl_status_t st) {
    return st == XPL_RESOURCE_EXHAUSTED && !r->opened &&
           xpl_opened_profile_expect(r->snapshot, r->host, r->product->form) >
               atomic_load(&m->limit);
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
    h->format = xpl_format_of_name(r->host->path, NULL);
    h->stable = xpl_source_is_stable(opened->source);
    *ret = h;
    return XPL_OK;
}

// The XSpace of a file of another format: the product's bytes, next to the file's source.
static xpl_status_t open_import(struct xpl_product_manager *m, const struct xpl_product_request *r,
                                const struct xpl_build_context *ctx, struct xpl_stage_times *times,
                                struct xpl_opened_profile *o, struct xpl_error *err) {
    struct xpl_product_handle *h = NULL;
    XPL_TRY(m->get(m, r, ctx, times, &h, err));
    const struct xpl_imported_xspace_value *const v = h->status == XPL_OK ? h->value : NULL;
    const xpl_status_t st = h->status;
    if (v) {
        o->import = &h->object;
        o->import_file = h->file;
        o->bytes = v->xspace;
        return XPL_OK;
    }
    if (err) *err = h->err;
    xpl_object_unref(&h->object);
    return st;
}

xpl_status_t xpl_product_open_profile(struct xpl_product_manager *m,
                                      const struct xpl_product_request *r, enum xpl_form form,
                                      const struct xpl_build_context *ctx,
                                      struct xpl_stage_times *times, struct xpl_opened_profile *ret,
                                      struct xpl_error *err) {
    const uint64_t began = xpl_clock_ns();
    struct xpl_opened_profile o = {0};
    const struct xpl_format *const f = xpl_format_of_name(r->host->path, NULL);
    const bool import = form == XPL_FORM_XSPACE && f && f->import;
    xpl_status_t st = import ? xpl_snapshot_open(r->snapshot, r->host, 0, &o.source, err)
                             : xpl_opened_profile_open(r->snapshot, r->host, atomic_load(&m->limit),
                                                       ctx->owner, &o, err);
    xpl_stage_add(times, XPL_STAGE_OPEN, began);
    if (import && st == XPL_OK) {
        const struct xpl_product_request of = {.product = &xpl_product_imported_xspace,
                                               .snapshot = r->snapshot,
                                               .host = r->host,
                                               .opened = &o};
        const struct xpl_build_context c = {.exec = ctx->exec,
                                            .owner = ctx->owner,
                                            .bypass_cache = ctx->bypass_cache,
                                            .prefetch = ctx->prefetch};
        st = open_import(m, &of, &c, times, &o, err);
    }
    if (st == XPL_OK || st == XPL_DATA_LOSS)
        *ret = o;
    else
        xpl_opened_profile_close(&o);
    return st;
}

xpl_status_t xpl_product_verify_profile(struct xpl_product_manager *m,
                                        const struct xpl_opened_profile *opened,
                                        struct xpl_error *err) {
    XPL_TRY(xpl_source_verify(opened->source, err));
    if (!opened->import_file || !xpl_source_is_truncated(opened->import_file)) return XPL_OK;
    m->report_damage(m, (const struct xpl_product_handle *)opened->import);
    XPL_RETURN_ERROR(err, XPL_ABORTED, "the XSpace of a profile was cut");
}

static xpl_status_t open_profile(struct xpl_product_manager *m, const struct xpl_product_request *r,
                                 const struct xpl_build_context *ctx, struct xpl_work_owner owner,
                                 struct xpl_stage_times *times, struct xpl_opened_profile *ret,
                                 struct xpl_error *err) {
    struct xpl_build_context c = *ctx;
    c.owner = owner;
    if (!r->opened) return xpl_product_open_profile(m, r, r->product->form, &c, times, ret, err);
    const uint64_t began = xpl_clock_ns();
    const xpl_status_t st = xpl_opened_profile_read(r->opened->source, r->host,
                                                    atomic_load(&m->limit), owner, ret, err);
    xpl_stage_add(times, XPL_STAGE_OPEN, began);
    return st;
}

static xpl_status_t make_once(struct xpl_product_manager *m, const struct xpl_product_request *r,
                              const struct xpl_build_context *ctx, struct xpl_work_owner owner,
                              struct xpl_stage_times *times, struct xpl_product_handle **ret,
                              struct xpl_error *err) {
    struct xpl_opened_profile own = {0};
    if (!r->opened || !r->opened->bytes.ptr) {
        struct xpl_error why = {0};
        xpl_status_t st = open_profile(m, r, ctx, owner, times, &own, &why);
        if (st == XPL_DATA_LOSS)
            st = make_broken(r, &own, &why, ret, err);
        else if (st != XPL_OK && err)
            *err = why;
        if (st != XPL_OK || own.bytes.ptr == NULL) {
            xpl_opened_profile_close(&own);
            return st;
        }
    }
    const uint64_t began = xpl_clock_ns();
    const struct xpl_opened_profile *const opened = own.source ? &own : r->opened;
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
xpl_status_t xpl_product_make_with_retries(struct xpl_product_manager *m,
                                           const struct xpl_product_request *r,
                                           const struct xpl_build_context *ctx,
                                           struct xpl_work_owner owner,
                                           struct xpl_stage_times *times,
                                           struct xpl_product_handle **ret, struct xpl_error *err) {
    struct xpl_error last = {0};
    struct xpl_product_handle *h = NULL;
    atomic_uint own = 0;
    atomic_uint *const changes = ctx->changes ? ctx->changes : &own;
    xpl_status_t st;
    do {
        last = (struct xpl_error){0};
        st = make_once(m, r, ctx, owner, times, &h, &last);
    } while (st == XPL_ABORTED && !r->opened &&
             atomic_fetch_add(changes, 1) + 1 < XPL_OPEN_ATTEMPTS);
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

xpl_status_t xpl_product_make_for_build(struct xpl_product_manager *m,
                                        const struct xpl_product_request *r,
                                        const struct xpl_build_context *ctx,
                                        struct xpl_product_build *b,
                                        struct xpl_stage_times *times) {
    struct build_owner owner = {.ctx = ctx, .build = b};
    const struct xpl_work_owner work = {build_is_unwanted, &owner};
    xpl_status_t st = xpl_product_make_with_retries(m, r, ctx, work, times, &b->handle, &b->err);
    count_made(m, r, st, b->handle);
    // A caller that has it open opens it anew.
    const bool may_pass = (st == XPL_ABORTED || st == XPL_UNAVAILABLE) && !r->opened;
    if (st == XPL_NOT_FOUND || st == XPL_PERMISSION_DENIED || st == XPL_FAILED_PRECONDITION ||
        may_pass || is_too_large(m, r, st)) {
        // A file that cannot be had is left out of a combination as a broken one is.
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
