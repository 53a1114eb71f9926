// SPDX-License-Identifier: Apache-2.0
#include "server/engine/gather.h"

#include <string.h>

#include "server/engine/handle.h"

// From so many hosts on they are kept packed: unpacked they are several times as large, and a
// session of hundreds would fill the memory.
enum { MANY_HOSTS = 9 };

xpl_status_t xpl_gather_init(struct xpl_gathering *g, const struct xpl_answer_parts *parts,
                             const struct xpl_request *q, const struct xpl_answer_context *ctx,
                             struct xpl_arena *arena, struct xpl_error *err) {
    *g =
        (struct xpl_gathering){.parts = parts, .q = q, .ctx = ctx, .bypass_cache = q->bypass_cache};
    g->hosts = xpl_arena_zalloc(arena, q->n_hosts * sizeof *g->hosts);
    g->results = xpl_arena_zalloc(arena, q->n_hosts * sizeof *g->results);
    if (!g->hosts || !g->results) XPL_RETURN_OOM(err, "hosts");
    for (size_t i = 0; i < q->n_hosts; i++)
        g->results[i].name = q->hosts[i]->name;
    // With several hosts, each would stay half built until the last is.
    if (ctx->deliver && q->n_hosts == 1) g->first = q->options;
    return XPL_OK;
}

// ---- getting ----

static xpl_status_t get_products(struct xpl_gathering *g, size_t i, const unsigned *variants,
                                 struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_gathered_host *const h = &g->hosts[i];
    struct xpl_resolved_host *const ret = &g->results[i];
    const struct xpl_request *const q = g->q;
    for (size_t k = 0; q->tool->needs[k]; k++) {
        const struct xpl_product *const p = q->tool->needs[k];
        const struct xpl_product_request r = {.product = p,
                                              .variant = variants[k],
                                              .snapshot = q->snapshot,
                                              .host = q->hosts[i],
                                              .opened = q->tool->reads_profile ? &h->opened : NULL,
                                              .first = p->is_partial ? g->first : NULL};
        const struct xpl_build_context ctx = {.exec = exec,
                                              .owner = g->ctx->owner,
                                              .bypass_cache = g->bypass_cache,
                                              .packed = p->residency == XPL_RESIDENCY_STORE &&
                                                        q->n_hosts >= MANY_HOSTS};
        XPL_TRY(xpl_product_get(g->parts->products, &r, &ctx, &g->times, &h->handles[k], err));
        ret->status = h->handles[k]->status;
        ret->err = h->handles[k]->err;
        if (ret->status != XPL_OK) return XPL_OK; // broken: the other products would be, too
        ret->products[k] = h->handles[k]->value;
    }
    return XPL_OK;
}

static void release_host(struct xpl_gathering *g, size_t i) {
    struct xpl_gathered_host *const h = &g->hosts[i];
    for (size_t k = 0; k < XPL_TOOL_MAX_NEEDS; k++) {
        if (h->handles[k] && h->handles[k]->build)
            xpl_product_give_up(g->parts->products, h->handles[k]);
        else if (h->handles[k])
            xpl_object_unref(&h->handles[k]->object);
        if (h->unpacked[k]) xpl_object_unref(&h->unpacked[k]->object);
    }
    g->decompressed_bytes -= xpl_opened_profile_memory(&h->opened);
    xpl_opened_profile_close(&h->opened);
    *h = (struct xpl_gathered_host){0};
    g->results[i] = (struct xpl_resolved_host){.name = g->results[i].name};
}

// Opens the profile for a tool that reads it, and gets the products of those very bytes.
static xpl_status_t get_with_profile(struct xpl_gathering *g, size_t i, const unsigned *variants,
                                     struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_gathered_host *const h = &g->hosts[i];
    xpl_status_t st = XPL_ABORTED;
    struct xpl_error last = {0};
    for (int n = 0; n < XPL_OPEN_ATTEMPTS && st == XPL_ABORTED; n++) {
        const uint64_t began = xpl_clock_ns();
        release_host(g, i);
        last = (struct xpl_error){0};
        st = xpl_opened_profile_open(g->q->snapshot, g->q->hosts[i], xpl_tool_kind(g->q->tool),
                                     g->ctx->limit, g->ctx->owner, &h->opened, &last);
        g->decompressed_bytes += xpl_opened_profile_memory(&h->opened);
        xpl_stage_add(&g->times, XPL_STAGE_OPEN, began);
        if (st == XPL_NOT_FOUND || st == XPL_PERMISSION_DENIED || st == XPL_FAILED_PRECONDITION ||
            st == XPL_DATA_LOSS) {
            g->results[i].status = st; // as broken as if its product were
            g->results[i].err = last;
            return XPL_OK;
        }
        if (g->decompressed_bytes > g->ctx->limit)
            st = xpl_error_set(&last, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                               "the hosts together are over --memory-limit; ask for fewer");
        if (st == XPL_OK) st = get_products(g, i, variants, exec, &last);
    }
    if (st != XPL_OK) *err = last;
    return st;
}

xpl_status_t xpl_gather_host(struct xpl_gathering *g, size_t i, const unsigned *variants,
                             struct xpl_exec *exec, struct xpl_resolved_host *ret,
                             struct xpl_error *err) {
    const struct xpl_gathered_host *const h = &g->hosts[i];
    XPL_TRY(g->q->tool->reads_profile ? get_with_profile(g, i, variants, exec, err)
                                      : get_products(g, i, variants, exec, err));
    ret->profile = h->opened.bytes;
    ret->empty = h->handles[0] && h->handles[0]->fingerprint.size == 0;
    return XPL_OK;
}

xpl_status_t xpl_gather_unpack(struct xpl_gathering *g, size_t i, struct xpl_resolved_host *host,
                               struct xpl_error *err) {
    struct xpl_gathered_host *const h = &g->hosts[i];
    for (size_t k = 0; k < XPL_TOOL_MAX_NEEDS; k++) {
        const struct xpl_product_handle *const packed = h->handles[k];
        if (!packed || !packed->packed) continue;
        XPL_TRY(xpl_product_handle_unpack(packed, g->ctx->limit, &h->unpacked[k], err));
        const size_t used = packed->product->size(h->unpacked[k]->value);
        if (atomic_fetch_add(&g->unpacked_bytes, used) + used > g->ctx->limit)
            XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                             "the hosts together are over --memory-limit; ask for fewer");
        host->products[k] = h->unpacked[k]->value;
    }
    return XPL_OK;
}

// ---- what became of it ----

xpl_status_t xpl_gather_verify(const struct xpl_gathering *g, struct xpl_error *err) {
    for (size_t i = 0; i < g->q->n_hosts; i++) {
        const struct xpl_gathered_host *const h = &g->hosts[i];
        for (size_t k = 0; k < XPL_TOOL_MAX_NEEDS; k++)
            if (h->handles[k] && xpl_product_is_truncated(h->handles[k]))
                XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "its %s was cut",
                                 h->handles[k]->product->name);
        if (h->opened.source) XPL_TRY(xpl_source_verify(h->opened.source, err));
    }
    return XPL_OK;
}

// A host whose profile could not be decompressed: whether that is known of the file that the
// request's snapshot saw.
static bool broken_is_current(const struct xpl_gathering *g, size_t i) {
    const struct xpl_source *const source = g->hosts[i].opened.source;
    return source && xpl_source_is_stable(source) &&
           xpl_fingerprint_eq(xpl_source_fingerprint(source), &g->q->hosts[i]->fingerprint);
}

bool xpl_gather_is_current(const struct xpl_gathering *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++)
        for (size_t k = 0; g->q->tool->needs[k]; k++) {
            const struct xpl_product_handle *const p = g->hosts[i].handles[k];
            if (!p && g->results[i].status != XPL_OK && (k > 0 || broken_is_current(g, i))) break;
            if (!p || !p->stable ||
                !xpl_fingerprint_eq(&p->fingerprint, &g->q->hosts[i]->fingerprint))
                return false;
        }
    return true;
}

bool xpl_gather_is_from_store(const struct xpl_gathering *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++)
        for (size_t k = 0; g->q->tool->needs[k]; k++)
            if (!g->hosts[i].handles[k] || !g->hosts[i].handles[k]->from_store) return false;
    return true;
}

bool xpl_gather_left_out(const struct xpl_gathering *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++)
        if (g->results[i].status != XPL_OK) return true;
    return false;
}

bool xpl_gather_report_damage(struct xpl_gathering *g) {
    bool any = false;
    for (size_t i = 0; i < g->q->n_hosts; i++)
        for (size_t k = 0; k < XPL_TOOL_MAX_NEEDS; k++) {
            const struct xpl_product_handle *const p = g->hosts[i].handles[k];
            if (!p || !p->file) continue;
            xpl_product_report_damage(g->parts->products, p);
            any = true;
        }
    return any;
}

bool xpl_gather_take_partial(struct xpl_gathering *g, struct xpl_product_handle **ret,
                             struct xpl_opened_profile *ret_opened) {
    struct xpl_gathered_host *const h = &g->hosts[0];
    for (size_t k = 0; g->first && k < XPL_TOOL_MAX_NEEDS; k++) {
        if (!h->handles[k] || !h->handles[k]->build) continue;
        *ret = h->handles[k];
        *ret_opened = h->opened;
        g->decompressed_bytes -= xpl_opened_profile_memory(&h->opened);
        h->handles[k] = NULL;
        h->opened = (struct xpl_opened_profile){0};
        return true;
    }
    return false;
}

void xpl_gather_release(struct xpl_gathering *g) {
    atomic_store(&g->unpacked_bytes, 0);
    for (size_t i = 0; i < g->q->n_hosts; i++)
        release_host(g, i);
}
