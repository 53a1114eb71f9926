// SPDX-License-Identifier: Apache-2.0
#include "server/engine/gather.h"

#include "server/engine/answers.h"
#include "server/engine/handle.h"

// Packed products that wait in memory for their turns take so much of --memory-limit; each one
// beyond that is read from the store again.
enum { PACKED_PART = 8 };

static xpl_status_t get_in_turn(void *arg, size_t i, size_t need, const void **ret,
                                struct xpl_error *err);
static void release_in_turn(void *arg, size_t i, size_t need);

static bool is_full(const struct xpl_gathering *g) {
    return atomic_load(&g->packed_bytes) > g->ctx->limit / PACKED_PART;
}

xpl_status_t xpl_gather_init(struct xpl_gathering *g, const struct xpl_answer_parts *parts,
                             const struct xpl_request *q, const struct xpl_answer_context *ctx,
                             struct xpl_arena *arena, struct xpl_error *err) {
    *g =
        (struct xpl_gathering){.parts = parts, .q = q, .ctx = ctx, .bypass_cache = q->bypass_cache};
    g->hosts = xpl_arena_zalloc(arena, q->n_hosts * sizeof *g->hosts);
    g->results = xpl_arena_zalloc(arena, q->n_hosts * sizeof *g->results);
    g->changes = xpl_arena_zalloc(arena, q->n_hosts * sizeof *g->changes);
    if (!g->hosts || !g->results || !g->changes) XPL_RETURN_OOM(err, "hosts");
    for (size_t i = 0; i < q->n_hosts; i++)
        g->results[i].name = q->hosts[i]->name;
    g->turns = (struct xpl_tool_turns){get_in_turn, release_in_turn, g};
    g->in_turn = xpl_resolve_in_turn(q->tool, q->n_hosts);
    // With several hosts, each would stay half built until the last is.
    if (ctx->deliver && q->n_hosts == 1) g->first = q->options;
    return XPL_OK;
}

// ---- getting ----

static bool is_in_turn(const struct xpl_gathering *g, size_t need) {
    return g->in_turn && xpl_tool_takes_turns(g->q->tool, need);
}

// Product `k` of host `i`, which has not got it yet.
static xpl_status_t get_product(struct xpl_gathering *g, size_t i, size_t k, bool bypass_cache,
                                struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_gathered_host *const h = &g->hosts[i];
    struct xpl_gathered_product *const got = &h->products[k];
    const struct xpl_request *const q = g->q;
    const struct xpl_product *const p = q->tool->needs[k];
    const struct xpl_product_request r = {.product = p,
                                          .variant = got->variant,
                                          .snapshot = q->snapshot,
                                          .host = q->hosts[i],
                                          .opened = q->tool->reads_profile ? &h->opened : NULL,
                                          .first = p->is_partial ? g->first : NULL};
    const struct xpl_build_context ctx = {.exec = exec,
                                          .owner = g->ctx->owner,
                                          .bypass_cache = bypass_cache,
                                          .packed = p->residency == XPL_RESIDENCY_STORE &&
                                                    q->n_hosts >= XPL_RESOLVE_MANY,
                                          .passing = is_in_turn(g, k) && is_full(g),
                                          .changes = &g->changes[i]};
    XPL_TRY(xpl_product_get(g->parts->products, &r, &ctx, &g->times, &got->handle, err));
    if (is_in_turn(g, k)) atomic_fetch_add(&g->packed_bytes, got->handle->packed_len);
    return XPL_OK;
}

// The products that `k` uses precede it, and are in memory when `k` is made. Their errors are
// reported in their turn.
static xpl_status_t get_used(struct xpl_gathering *g, size_t i, size_t k, struct xpl_exec *exec,
                             struct xpl_error *err) {
    const size_t used = xpl_tool_need_used(g->q->tool, k);
    if (used == XPL_TOOL_MAX_NEEDS || g->hosts[i].products[used].handle) return XPL_OK;
    return get_product(g, i, used, g->bypass_cache, exec, err);
}

// Counts that a host's file changed; false: once too often.
static bool found_changed(struct xpl_gathering *g, size_t i) {
    return atomic_fetch_add(&g->changes[i], 1) + 1 < XPL_OPEN_ATTEMPTS;
}

// What was read of a host is of the same file, which may have been replaced meanwhile.
static xpl_status_t check_same(struct xpl_gathering *g, size_t i, size_t k,
                               const struct xpl_fingerprint *first, struct xpl_error *err) {
    if (xpl_fingerprint_eq(&g->hosts[i].products[k].fingerprint, first)) return XPL_OK;
    (void)found_changed(g, i);
    XPL_RETURN_ERROR(err, XPL_ABORTED, "%s: replaced while it was read; try again",
                     g->q->hosts[i]->path.ptr);
}

static xpl_status_t check_devices(struct xpl_gathering *g, size_t i, struct xpl_error *err) {
    static const struct xpl_fingerprint none;
    const struct xpl_fingerprint *const devices =
        g->devices_of ? &g->devices_of[g->q->hosts[i] - g->q->session->hosts] : &none;
    const bool known = g->hosts[i].products[0].got && !xpl_fingerprint_eq(devices, &none);
    return known ? check_same(g, i, 0, devices, err) : XPL_OK;
}

static xpl_status_t get_products(struct xpl_gathering *g, size_t i, const unsigned *variants,
                                 struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_gathered_host *const h = &g->hosts[i];
    struct xpl_resolved_host *const ret = &g->results[i];
    for (size_t k = 0; g->q->tool->needs[k]; k++)
        h->products[k].variant = variants[k];
    for (size_t k = 0; g->q->tool->needs[k]; k++) {
        struct xpl_gathered_product *const got = &h->products[k];
        XPL_TRY(get_used(g, i, k, exec, err));
        if (!got->handle) XPL_TRY(get_product(g, i, k, g->bypass_cache, exec, err));
        got->got = true;
        got->stable = got->handle->stable;
        got->from_store = got->handle->from_store;
        got->fingerprint = got->handle->fingerprint;
        XPL_TRY(check_same(g, i, k, &h->products[0].fingerprint, err));
        ret->status = got->handle->status;
        ret->err = got->handle->err;
        if (ret->status != XPL_OK) return XPL_OK; // broken: the other products would be, too
        ret->products[k] = got->handle->value;
    }
    return XPL_OK;
}

static void give_back(struct xpl_gathering *g, struct xpl_gathered_product *p, size_t k) {
    if (!p->handle) return;
    if (is_in_turn(g, k)) atomic_fetch_sub(&g->packed_bytes, p->handle->packed_len);
    if (p->handle->build)
        xpl_product_give_up(g->parts->products, p->handle);
    else
        xpl_object_unref(&p->handle->object);
    p->handle = NULL;
}

static void drop_unpacked(struct xpl_gathering *g, struct xpl_gathered_product *p) {
    if (!p->unpacked) return;
    atomic_fetch_sub(&g->unpacked_bytes, p->unpacked->product->size(p->unpacked->value));
    xpl_object_unref(&p->unpacked->object);
    p->unpacked = NULL;
}

static void release_host(struct xpl_gathering *g, size_t i) {
    struct xpl_gathered_host *const h = &g->hosts[i];
    for (size_t k = 0; g->q->tool->needs[k]; k++) {
        drop_unpacked(g, &h->products[k]);
        give_back(g, &h->products[k], k);
    }
    g->decompressed_bytes -= xpl_opened_profile_memory(&h->opened);
    xpl_opened_profile_close(&h->opened);
    *h = (struct xpl_gathered_host){0};
    g->results[i] = (struct xpl_resolved_host){.name = g->results[i].name};
}

// As broken as if its product were.
static xpl_status_t leave_out(struct xpl_gathering *g, size_t i, xpl_status_t st,
                              const struct xpl_error *why) {
    g->results[i].status = st;
    g->results[i].err = *why;
    return XPL_OK;
}

// Opens the profile for a tool that reads it, and gets the products of those very bytes.
static xpl_status_t get_with_profile(struct xpl_gathering *g, size_t i, const unsigned *variants,
                                     struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_gathered_host *const h = &g->hosts[i];
    const struct xpl_product_request r = {.snapshot = g->q->snapshot, .host = g->q->hosts[i]};
    const struct xpl_build_context ctx = {
        .exec = exec, .owner = g->ctx->owner, .bypass_cache = g->bypass_cache};
    struct xpl_error last;
    xpl_status_t st;
    do {
        release_host(g, i);
        last = (struct xpl_error){0};
        st = xpl_product_open_profile(g->parts->products, &r, xpl_tool_form(g->q->tool), &ctx,
                                      &g->times, &h->opened, &last);
        g->decompressed_bytes += xpl_opened_profile_memory(&h->opened);
        if (st == XPL_NOT_FOUND || st == XPL_PERMISSION_DENIED || st == XPL_FAILED_PRECONDITION ||
            st == XPL_DATA_LOSS || st == XPL_UNAVAILABLE)
            return leave_out(g, i, st, &last);
        if (g->decompressed_bytes > g->ctx->limit)
            st = xpl_error_set(&last, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                               "the hosts together exceed --memory-limit; request fewer");
        if (st == XPL_OK) st = get_products(g, i, variants, exec, &last);
    } while (st == XPL_ABORTED && found_changed(g, i));
    if (st == XPL_ABORTED) {
        release_host(g, i);
        return leave_out(g, i, st, &last);
    }
    if (st != XPL_OK) *err = last;
    return st;
}

xpl_status_t xpl_gather_host(struct xpl_gathering *g, size_t i, const unsigned *variants,
                             struct xpl_exec *exec, struct xpl_resolved_host *ret,
                             struct xpl_error *err) {
    const struct xpl_gathered_host *const h = &g->hosts[i];
    if (g->aside && g->aside[i]) {
        ret->status = g->front->explain_aside(g->q->hosts[i]->path.ptr, &ret->err);
        return XPL_OK;
    }
    XPL_TRY(g->q->tool->reads_profile ? get_with_profile(g, i, variants, exec, err)
                                      : get_products(g, i, variants, exec, err));
    XPL_TRY(check_devices(g, i, err));
    ret->profile = h->opened.bytes;
    ret->path = g->q->hosts[i]->path.ptr;
    ret->empty = h->products[0].got && h->products[0].fingerprint.size == 0;
    return XPL_OK;
}

static xpl_status_t unpack(struct xpl_gathering *g, struct xpl_gathered_product *p,
                           struct xpl_error *err) {
    XPL_TRY(xpl_product_handle_unpack(p->handle, g->ctx->limit, &p->unpacked, err));
    const size_t used = p->handle->product->size(p->unpacked->value);
    if (atomic_fetch_add(&g->unpacked_bytes, used) + used > g->ctx->limit)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the hosts together exceed --memory-limit; request fewer");
    return XPL_OK;
}

xpl_status_t xpl_gather_unpack(struct xpl_gathering *g, size_t i, struct xpl_resolved_host *host,
                               struct xpl_error *err) {
    for (size_t k = 0; g->q->tool->needs[k]; k++) {
        struct xpl_gathered_product *const p = &g->hosts[i].products[k];
        if (!p->handle || !p->handle->packed || is_in_turn(g, k)) continue;
        XPL_TRY(unpack(g, p, err));
        host->products[k] = p->unpacked->value;
    }
    return XPL_OK;
}

// ---- in turn ----

const struct xpl_tool_turns *xpl_gather_turns(const struct xpl_gathering *g) {
    return g->in_turn ? &g->turns : NULL;
}

// Gets an evicted product again. It must be the same: the outline describes it.
static xpl_status_t get_again(struct xpl_gathering *g, size_t i, size_t need,
                              struct xpl_error *err) {
    struct xpl_gathered_product *const p = &g->hosts[i].products[need];
    struct xpl_exec serial = xpl_exec_serial();
    XPL_TRY(get_product(g, i, need, false, &serial, err));
    if (p->handle->status == XPL_OK && xpl_fingerprint_eq(&p->handle->fingerprint, &p->fingerprint))
        return XPL_OK;
    give_back(g, p, need);
    (void)found_changed(g, i);
    XPL_RETURN_ERROR(err, XPL_ABORTED, "%s: changed since", g->q->hosts[i]->path.ptr);
}

static xpl_status_t get_in_turn(void *arg, size_t i, size_t need, const void **ret,
                                struct xpl_error *err) {
    struct xpl_gathering *const g = arg;
    struct xpl_gathered_product *const p = &g->hosts[i].products[need];
    if (!p->handle) XPL_TRY(get_again(g, i, need, err));
    if (p->handle->packed) XPL_TRY(unpack(g, p, err));
    *ret = p->unpacked ? p->unpacked->value : p->handle->value;
    return XPL_OK;
}

// What the store does not have yet stays: getting it again would be making it again.
static bool can_be_read_again(const struct xpl_gathering *g, const struct xpl_gathered_product *p) {
    const struct xpl_product_handle *const h = p->handle;
    return !g->bypass_cache &&
           (h->from_store || xpl_product_is_stored(g->parts->products, h->product, h->variant,
                                                   h->format, &h->fingerprint));
}

static void release_in_turn(void *arg, size_t i, size_t need) {
    struct xpl_gathering *const g = arg;
    struct xpl_gathered_product *const p = &g->hosts[i].products[need];
    drop_unpacked(g, p);
    if (is_full(g) && can_be_read_again(g, p)) give_back(g, p, need);
}

// ---- what became of it ----

xpl_status_t xpl_gather_verify(struct xpl_gathering *g, struct xpl_error *err) {
    for (size_t i = 0; i < g->q->n_hosts; i++) {
        const struct xpl_gathered_host *const h = &g->hosts[i];
        for (size_t k = 0; g->q->tool->needs[k]; k++) {
            const struct xpl_product_handle *const p = h->products[k].handle;
            if (p && xpl_product_is_truncated(p))
                XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "its %s was cut", p->product->name);
        }
        if (!h->opened.source) continue;
        const xpl_status_t st = xpl_product_verify_profile(g->parts->products, &h->opened, err);
        if (st == XPL_ABORTED) (void)found_changed(g, i);
        if (st != XPL_OK) return st;
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
            const struct xpl_gathered_product *const p = &g->hosts[i].products[k];
            if (!p->got && g->results[i].status != XPL_OK && (k > 0 || broken_is_current(g, i)))
                break;
            if (!p->got || !p->stable ||
                !xpl_fingerprint_eq(&p->fingerprint, &g->q->hosts[i]->fingerprint))
                return false;
        }
    return true;
}

bool xpl_gather_may_retry(const struct xpl_gathering *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++)
        if (atomic_load(&g->changes[i]) >= XPL_OPEN_ATTEMPTS) return false;
    return true;
}

bool xpl_gather_is_from_store(const struct xpl_gathering *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++)
        for (size_t k = 0; g->q->tool->needs[k]; k++)
            if (!g->hosts[i].products[k].got || !g->hosts[i].products[k].from_store) return false;
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
        for (size_t k = 0; g->q->tool->needs[k]; k++) {
            const struct xpl_product_handle *const p = g->hosts[i].products[k].handle;
            if (!p || !p->file) continue;
            xpl_product_report_damage(g->parts->products, p);
            any = true;
        }
    return any;
}

bool xpl_gather_take_partial(struct xpl_gathering *g, struct xpl_product_handle **ret,
                             struct xpl_opened_profile *ret_opened) {
    struct xpl_gathered_host *const h = &g->hosts[0];
    for (size_t k = 0; g->first && g->q->tool->needs[k]; k++) {
        if (!h->products[k].handle || !h->products[k].handle->build) continue;
        *ret = h->products[k].handle;
        *ret_opened = h->opened;
        g->decompressed_bytes -= xpl_opened_profile_memory(&h->opened);
        h->products[k].handle = NULL;
        h->opened = (struct xpl_opened_profile){0};
        return true;
    }
    return false;
}

void xpl_gather_release(struct xpl_gathering *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++)
        release_host(g, i);
}
