// SPDX-License-Identifier: Apache-2.0
// Products that were made for others: they are stored at once, together with the end of their job.
#include "server/engine/products/impl.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "storage/sessions/identity.h"
#include "storage/store/jobs.h"

static void source_free(struct xpl_source **s) {
    xpl_source_free(*s);
}

xpl_status_t xpl_product_identify(struct xpl_product_manager *m, struct xpl_product_publication *p,
                                  struct xpl_work_owner owner, struct xpl_error *err) {
    const struct xpl_product_request *const r = &p->request;
    const struct xpl_product_handle *const h = p->handle;
    XPL_AUTO(source_free) struct xpl_source *src = NULL;
    if (!h->stable)
        XPL_RETURN_ERROR(err, XPL_ABORTED, "%s: written a moment ago", r->host->path.ptr);
    if (xpl_identity_recall(m->parts.identity, &h->fingerprint, &p->id)) return XPL_OK;
    XPL_TRY(xpl_snapshot_open(r->snapshot, r->host, 0, &src, err));
    if (!xpl_fingerprint_eq(xpl_source_fingerprint(src), &h->fingerprint) ||
        !xpl_source_is_stable(src))
        XPL_RETURN_ERROR(err, XPL_ABORTED, "%s: changed since, or a moment ago", r->host->path.ptr);
    return xpl_identity_hash(m->parts.identity, src, owner.is_cancelled, owner.arg, &p->id, err);
}

void xpl_product_hash_file(struct xpl_product_manager *m, struct xpl_snapshot *snapshot,
                           const struct xpl_host *host, struct xpl_work_owner owner) {
    XPL_AUTO(source_free) struct xpl_source *src = NULL;
    struct xpl_profile_id id;
    if (xpl_identity_recall(m->parts.identity, &host->fingerprint, &id) ||
        xpl_snapshot_open(snapshot, host, 0, &src, NULL) != XPL_OK || !xpl_source_is_stable(src))
        return;
    // A failure here repeats, and says why, when the product is made.
    const xpl_status_t st =
        xpl_identity_hash(m->parts.identity, src, owner.is_cancelled, owner.arg, &id, NULL);
    (void)st;
}

// What one product needs until it is stored.
struct item {
    struct xpl_buf bytes;
    char options[XPL_PRODUCT_OPTIONS_TEXT];
};

static xpl_status_t encode(const struct xpl_product_handle *h, struct xpl_buf *buf,
                           xpl_bytes_t *ret, struct xpl_error *err) {
    if (h->value) XPL_TRY(h->product->encode(h->value, buf, err));
    *ret = h->value ? (xpl_bytes_t){buf->p, buf->n} : (xpl_bytes_t){h->packed, h->packed_len};
    return XPL_OK;
}

static xpl_status_t put_items(struct xpl_product_manager *m,
                              const struct xpl_product_publication *p, size_t n, struct item *items,
                              struct xpl_job_put *puts, struct xpl_error *err) {
    for (size_t i = 0; i < n; i++) {
        const struct xpl_product_handle *const h = p[i].handle;
        puts[i] =
            (struct xpl_job_put){.file = &h->fingerprint,
                                 .key = xpl_product_store_key(h->product, h->variant, h->format,
                                                              &p[i].id, items[i].options),
                                 .is_stored = h->from_store};
        if (!h->from_store) XPL_TRY(encode(h, &items[i].bytes, &puts[i].data, err));
    }
    return xpl_store_jobs(m->parts.store)->put(m->parts.store, puts, n, err);
}

static xpl_status_t put_all(struct xpl_product_manager *m, const struct xpl_product_publication *p,
                            size_t n, struct xpl_error *err) {
    struct item *const items = xpl_sys_alloc(n * sizeof *items + 1);
    struct xpl_job_put *const puts = xpl_sys_alloc(n * sizeof *puts + 1);
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    for (size_t i = 0; items && i < n; i++)
        xpl_buf_init(&items[i].bytes, XPL_STORE_MAX_RESULT);
    if (items && puts)
        st = put_items(m, p, n, items, puts, err);
    else
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "jobs: out of memory");
    for (size_t i = 0; items && i < n; i++)
        xpl_buf_fini(&items[i].bytes);
    xpl_sys_free(items);
    xpl_sys_free(puts);
    return st;
}

// The job's row is touched last: its waiters do not wait for the products.
xpl_status_t xpl_product_publish(struct xpl_product_manager *m,
                                 const struct xpl_product_publication *p, size_t n,
                                 const struct xpl_job_end *end, struct xpl_error *err) {
    struct xpl_store *const store = m->parts.store;
    XPL_TRY(xpl_store_begin(store, err));
    xpl_status_t st = put_all(m, p, n, err);
    if (st == XPL_OK && end) st = xpl_store_jobs(store)->conclude(store, end, err);
    if (st != XPL_OK) {
        xpl_store_rollback(store);
        return st;
    }
    XPL_TRY(xpl_store_commit(store, err));
    for (size_t i = 0; i < n; i++)
        xpl_product_write_new_rows(m, &p[i].request, p[i].handle);
    return XPL_OK;
}
