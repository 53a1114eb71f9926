// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/reports/usage.h"

#include "analysis/ireeprof/run.h"

void xpl_iree_usages_init(struct xpl_iree_usages *u, size_t row_size) {
    *u = (struct xpl_iree_usages){
        .rows = {.row_size = row_size, .key_size = sizeof(struct xpl_iree_usage_key)},
        .opens = {.row_size = sizeof(struct xpl_iree_open),
                  .key_size = sizeof(struct xpl_iree_open_key)}};
}

void xpl_iree_usages_fini(struct xpl_iree_usages *u) {
    xpl_iree_table_fini(&u->rows);
    xpl_iree_table_fini(&u->opens);
}

// A pool's reservation that did not succeed reserves nothing.  Results of up to 2 are successes;
// that of other events is XPL_IREE_NONE.
static bool is_failure(const struct xpl_iree_memory_event *e) {
    enum { LAST_SUCCESS = 2 };
    return e->result > LAST_SUCCESS && e->result != XPL_IREE_NONE;
}

static struct xpl_iree_open_key open_of(const struct xpl_iree_memory_event *e, uint32_t kind) {
    // Queues leave the pool out of some events.
    return (struct xpl_iree_open_key){e->allocation_id,
                                      kind == XPL_IREE_MEMORY_QUEUE ? 0 : e->pool_id,
                                      e->physical_device_ordinal, kind, 0};
}

// Makes room for an id that a later session opens anew: what had it stays open.
static bool leave_open(struct xpl_iree_usages *x, struct xpl_iree_open_key key, uint32_t session) {
    const struct xpl_iree_open *const at = xpl_iree_table_get(&x->opens, &key);
    struct xpl_iree_open *o;
    bool is_new;
    if (!at || at->bytes == 0 || at->session == session) return true;
    struct xpl_iree_open left = *at;
    left.key.left = ++x->n_left;
    if (!(o = xpl_iree_table_put(&x->opens, &left.key, &is_new))) return false;
    *o = left;
    o = xpl_iree_table_get(&x->opens, &key); // rows move when one is added
    o->bytes = 0;
    return true;
}

static bool open_allocation(struct xpl_iree_usages *x, struct xpl_iree_usage *u,
                            const struct xpl_iree_memory_event *e, uint32_t session) {
    const struct xpl_iree_open_key key = open_of(e, u->key.kind);
    bool is_new;
    if (!leave_open(x, key, session)) return false;
    struct xpl_iree_open *const o = xpl_iree_table_put(&x->opens, &key, &is_new);
    if (!o) return false;
    o->session = session;
    if (o->bytes == 0) o->event_id = e->event_id, o->since_ns = e->host_time_ns;
    xpl_iree_add(&o->bytes, e->length);
    xpl_iree_add(&u->bytes, e->length);
    u->opens++;
    if (u->bytes > u->peak_bytes) u->peak_bytes = u->bytes, u->peak_ns = e->host_time_ns;
    return true;
}

// An allocation from before the capture is closed without having been counted. Returns the bytes.
static uint64_t close_allocation(struct xpl_iree_usages *x, struct xpl_iree_usage *u,
                                 const struct xpl_iree_memory_event *e) {
    const struct xpl_iree_open_key key = open_of(e, u->key.kind);
    struct xpl_iree_open *const o = xpl_iree_table_get(&x->opens, &key);
    const uint64_t bytes = o && o->bytes < e->length ? o->bytes : o ? e->length : 0;
    if (!o) return 0;
    o->bytes -= bytes;
    u->bytes -= bytes < u->bytes ? bytes : u->bytes;
    return bytes;
}

bool xpl_iree_usage_of(struct xpl_iree_usages *u, const struct xpl_iree_memory_event *e,
                       struct xpl_iree_usage **ret) {
    bool is_new;
    *ret = NULL;
    if (e->type == 0 || e->type >= XPL_IREE_N_MEMORY_TYPES) return true;
    const struct xpl_iree_memory_rule *const rule = &xpl_iree_memory_rules[e->type];
    const bool counts = rule->of_allocation || (e->flags & XPL_IREE_MEMORY_RESERVATION);
    if (rule->life == 0 || !counts) return true;
    const struct xpl_iree_usage_key key = {e->physical_device_ordinal, rule->kind};
    *ret = xpl_iree_table_put(&u->rows, &key, &is_new);
    return *ret != NULL;
}

bool xpl_iree_usage_add(struct xpl_iree_usages *u, struct xpl_iree_usage *usage,
                        const struct xpl_iree_memory_event *e, uint32_t session,
                        int64_t *ret_bytes) {
    const bool opens = xpl_iree_memory_rules[e->type].life > 0;
    uint64_t bytes = e->length;
    *ret_bytes = 0;
    if (opens && is_failure(e)) {
        usage->failed++;
        xpl_iree_add(&usage->failed_bytes, e->length);
        return true;
    }
    if (opens && !open_allocation(u, usage, e, session)) return false;
    if (!opens) bytes = close_allocation(u, usage, e);
    if (bytes > INT64_MAX) bytes = INT64_MAX;
    *ret_bytes = opens ? (int64_t)bytes : -(int64_t)bytes;
    return true;
}
