// SPDX-License-Identifier: Apache-2.0
// Products that were made for others: they are stored at once, together with the end of their job.
#include "server/engine/products/impl.h"

#include "base/cleanup.h"
#include "storage/sessions/identity.h"
#include "storage/store/jobs.h"

static void source_free(struct xpl_source **s) {
    xpl_source_free(*s);
}

// The id of the bytes that the product was made from.
static xpl_status_t identify(struct xpl_product_manager *m, const struct xpl_product_request *r,
                             const struct xpl_product_handle *h, struct xpl_work_owner owner,
                             struct xpl_profile_id *ret, struct xpl_error *err) {
    XPL_AUTO(source_free) struct xpl_source *src = NULL;
    if (xpl_identity_lookup(m->parts.identity, &h->fingerprint, ret)) return XPL_OK;
    XPL_TRY(xpl_snapshot_open(r->snapshot, r->host, 0, &src, err));
    if (!xpl_fingerprint_eq(xpl_source_fingerprint(src), &h->fingerprint) ||
        !xpl_source_is_stable(src))
        XPL_RETURN_ERROR(err, XPL_ABORTED, "%s: changed since, or a moment ago", r->host->path.ptr);
    return xpl_identity_hash(m->parts.identity, src, owner.is_cancelled, owner.arg, ret, err);
}

static xpl_status_t put_encoded(struct xpl_product_manager *m, const struct xpl_product_handle *h,
                                const struct xpl_store_key *key, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bytes;
    xpl_buf_init(&bytes, XPL_STORE_MAX_RESULT);
    if (h->from_store) return XPL_OK; // it is there
    if (!h->value)
        return xpl_store_put(m->parts.store, key, (xpl_bytes_t){h->packed, h->packed_len},
                             (xpl_bytes_t){0}, err);
    XPL_TRY(h->product->encode(h->value, &bytes, err));
    return xpl_store_put(m->parts.store, key, (xpl_bytes_t){bytes.p, bytes.n}, (xpl_bytes_t){0},
                         err);
}

// The job's row is the last that is touched: who waits for it does not wait for the product.
static xpl_status_t put_all(struct xpl_product_manager *m, const struct xpl_product_handle *h,
                            const struct xpl_profile_id *id, const struct xpl_job_claim *claim,
                            struct xpl_error *err) {
    char buf[XPL_PRODUCT_OPTIONS_TEXT];
    struct xpl_store *const store = m->parts.store;
    const struct xpl_store_key key =
        xpl_product_store_key(h->product, h->variant, h->format, id, buf);
    XPL_TRY(xpl_store_put_file(store, &h->fingerprint, id, err));
    XPL_TRY(put_encoded(m, h, &key, err));
    return xpl_store_jobs(store)->conclude(store, claim, err);
}

xpl_status_t xpl_product_publish(struct xpl_product_manager *m, const struct xpl_product_request *r,
                                 struct xpl_product_handle *h, const struct xpl_job_claim *claim,
                                 struct xpl_work_owner owner, struct xpl_error *err) {
    struct xpl_profile_id id;
    if (!h->stable)
        XPL_RETURN_ERROR(err, XPL_ABORTED, "%s: written a moment ago", r->host->path.ptr);
    XPL_TRY(identify(m, r, h, owner, &id, err));
    XPL_TRY(xpl_store_begin(m->parts.store, err));
    const xpl_status_t st = put_all(m, h, &id, claim, err);
    if (st != XPL_OK) {
        xpl_store_rollback(m->parts.store);
        return st;
    }
    XPL_TRY(xpl_store_commit(m->parts.store, err));
    xpl_product_write_rows(m, r, h);
    return XPL_OK;
}
