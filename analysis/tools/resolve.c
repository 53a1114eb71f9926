// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/resolve.h"

#include "analysis/products/values.h"
#include "base/arena.h"
#include "base/cleanup.h"

// ---- which hosts are left out ----

// Tools that combine hosts say which were idle, empty or missing.
static bool combines_hosts(const struct xpl_tool *tool) {
    return tool->needs[0] == &xpl_product_op_stats;
}

static bool may_leave_out(const struct xpl_tool *tool, xpl_status_t why) {
    const bool cannot_be_opened =
        why == XPL_NOT_FOUND || why == XPL_PERMISSION_DENIED || why == XPL_FAILED_PRECONDITION;
    return why == XPL_DATA_LOSS || (combines_hosts(tool) && cannot_be_opened);
}

xpl_status_t xpl_tool_choose_hosts(const struct xpl_tool *tool,
                                   const struct xpl_host_outcome *outcomes, size_t n, bool by_name,
                                   struct xpl_tool_host *hosts, xpl_host_warn_fn *warn, void *arg,
                                   struct xpl_error *err) {
    size_t shown = 0;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_host_outcome *const o = &outcomes[i];
        if (o->status == XPL_OK) {
            shown++;
            if (o->empty && combines_hosts(tool))
                warn(arg, hosts[i].name, XPL_STR("the profile is empty (0 bytes)"));
        } else if (by_name || n == 1 || !may_leave_out(tool, o->status)) {
            if (err) *err = *o->err;
            return o->status;
        } else {
            hosts[i].products = NULL;
            hosts[i].problem = xpl_str_from(o->err->msg);
            warn(arg, hosts[i].name, hosts[i].problem);
        }
    }
    if (shown) return XPL_OK;
    if (err) *err = *outcomes[0].err;
    return outcomes[0].status;
}

// ---- products ----

struct host {
    const void *products[XPL_TOOL_MAX_NEEDS];
    void *owned[XPL_TOOL_MAX_NEEDS]; // the same
    struct xpl_error err;
};

struct resolving {
    const struct xpl_resolve *r;
    struct host *hosts;
    struct xpl_host_outcome *outcomes;
    struct xpl_tool_host *list;
};

static xpl_status_t make_products(const struct xpl_resolve *r, size_t i, struct host *h,
                                  struct xpl_error *err) {
    for (size_t k = 0; r->tool->needs[k]; k++) {
        const struct xpl_product_input in = {
            .profile = r->hosts[i].profile,
            .variant =
                r->tool->variant ? r->tool->variant(r->options, k, r->session_has_device) : 0,
            .exec = r->exec,
            .limit = r->limit,
            .first = r->options,
        };
        XPL_TRY(r->tool->needs[k]->make(&in, &h->owned[k], err));
        h->products[k] = h->owned[k];
    }
    return XPL_OK;
}

// The outcome of one host is recorded; fails where nothing can come of the answer any more.
static xpl_status_t make_host(struct resolving *x, size_t i, struct xpl_error *err) {
    const struct xpl_resolve *const r = x->r;
    struct host *const h = &x->hosts[i];
    const struct xpl_error *const broken = r->hosts[i].broken;
    struct xpl_error why = {0};
    const xpl_status_t st = broken ? broken->code : make_products(r, i, h, &why);
    if (r->verify) XPL_TRY(r->verify(r->arg, i, err));
    x->outcomes[i] = (struct xpl_host_outcome){st, &h->err, r->hosts[i].profile.len == 0};
    x->list[i] = (struct xpl_tool_host){
        .name = r->hosts[i].name, .products = h->products, .profile = r->hosts[i].profile};
    if (st == XPL_OK) return XPL_OK;
    if (broken)
        h->err = *broken;
    else
        (void)xpl_error_set(&h->err, st, __FILE__, __LINE__, why.offset, "%s: %s", r->hosts[i].path,
                            why.msg);
    if (may_leave_out(r->tool, st)) return XPL_OK;
    if (err) *err = h->err;
    return st;
}

static xpl_status_t answer(struct resolving *x, struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_resolve *const r = x->r;
    for (size_t i = 0; i < r->n_hosts; i++)
        XPL_TRY(make_host(x, i, err));
    XPL_TRY(xpl_tool_choose_hosts(r->tool, x->outcomes, r->n_hosts, r->by_name, x->list, r->warn,
                                  r->arg, err));
    const struct xpl_tool_input in = {.hosts = x->list,
                                      .n_hosts = r->n_hosts,
                                      .options = r->options,
                                      .exec = r->exec,
                                      .limit = r->limit};
    return r->tool->render(&in, out, err);
}

static void free_products(const struct resolving *x) {
    for (size_t i = 0; i < x->r->n_hosts; i++)
        for (size_t k = 0; x->r->tool->needs[k]; k++)
            x->r->tool->needs[k]->free(x->hosts[i].owned[k]);
}

xpl_status_t xpl_resolve(const struct xpl_resolve *r, struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct resolving x = {.r = r};
    xpl_arena_init(&arena, r->limit);
    x.hosts = xpl_arena_zalloc(&arena, r->n_hosts * sizeof *x.hosts);
    x.outcomes = xpl_arena_zalloc(&arena, r->n_hosts * sizeof *x.outcomes);
    x.list = xpl_arena_zalloc(&arena, r->n_hosts * sizeof *x.list);
    if (!x.hosts || !x.outcomes || !x.list) XPL_RETURN_OOM(err, "hosts");
    const xpl_status_t st = answer(&x, out, err);
    free_products(&x);
    return st;
}

xpl_status_t xpl_resolve_has_device(xpl_bytes_t profile, bool *ret, struct xpl_error *err) {
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_product_input in = {.profile = profile, .exec = &serial, .limit = 1 << 20};
    void *value;
    XPL_TRY(xpl_product_devices.make(&in, &value, err));
    *ret = ((const struct xpl_devices_value *)value)->accelerator;
    xpl_product_devices.free(value);
    return XPL_OK;
}
