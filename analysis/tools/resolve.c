// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/resolve.h"

#include <stdatomic.h>
#include <string.h>
#include <zstd.h>

#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

// ---- products between their uses ----

// A product between its uses, encoded and compressed, which takes a small part of the memory.
struct shelved {
    void *frame; // NULL: nothing is there
    size_t frame_len, len;
};

enum { LEVEL = 1 };

static xpl_status_t compress(struct shelved *s, xpl_bytes_t bytes, struct xpl_error *err) {
    const size_t bound = ZSTD_compressBound(bytes.len);
    void *const frame = xpl_sys_alloc(bound), *fitting = NULL;
    const size_t n = frame ? ZSTD_compress(frame, bound, bytes.ptr, bytes.len, LEVEL) : 0;
    if (frame && !ZSTD_isError(n)) fitting = xpl_sys_alloc(n);
    if (fitting) *s = (struct shelved){memcpy(fitting, frame, n), n, bytes.len};
    xpl_sys_free(frame);
    if (!fitting) XPL_RETURN_OOM(err, "products");
    return XPL_OK;
}

// RESOURCE_EXHAUSTED.  The value stays the caller's.
static xpl_status_t shelf_put(struct shelved *s, const struct xpl_product *p, const void *value,
                              size_t limit, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(limit);
    XPL_TRY(p->encode(value, &b, err));
    return compress(s, (xpl_bytes_t){b.p, b.n}, err);
}

// *ret is the caller's; the shelved copy stays.
static xpl_status_t shelf_get(const struct shelved *s, const struct xpl_product *p, size_t limit,
                              void **ret, struct xpl_error *err) {
    uint8_t *const bytes = xpl_sys_alloc(s->len + 1);
    if (!bytes) XPL_RETURN_OOM(err, p->name);
    xpl_status_t st = XPL_INTERNAL;
    if (ZSTD_decompress(bytes, s->len, s->frame, s->frame_len) == s->len)
        st = p->decode((xpl_bytes_t){bytes, s->len}, limit, ret, err);
    else
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "%s: cannot be unpacked",
                            p->name);
    xpl_sys_free(bytes);
    return st;
}

static void shelf_drop(struct shelved *s) {
    xpl_sys_free(s->frame);
    *s = (struct shelved){0};
}

// ---- which hosts are left out ----

// Tools that combine hosts say which were idle, empty or missing.
static bool combines_hosts(const struct xpl_tool *tool) {
    return tool->needs[0] == &xpl_product_op_stats;
}

bool xpl_resolve_is_of_file(xpl_status_t why) {
    return why == XPL_DATA_LOSS || why == XPL_NOT_FOUND || why == XPL_PERMISSION_DENIED ||
           why == XPL_FAILED_PRECONDITION || why == XPL_UNAVAILABLE || why == XPL_ABORTED ||
           why == XPL_RESOURCE_EXHAUSTED;
}

// ---- the products of all hosts ----

struct running {
    const struct xpl_resolving *r;
    unsigned variants[XPL_TOOL_MAX_NEEDS];
    atomic_bool failed; // some host failed in a way that ends it all
};

static void end_all(struct running *x, struct xpl_resolved_host *h, xpl_status_t st,
                    const struct xpl_error *err) {
    h->status = st;
    h->err = *err;
    h->fatal = true;
    atomic_store(&x->failed, true);
}

// Of products that are got in turn.
static xpl_status_t get_outlines(const struct xpl_resolving *r, size_t i, struct xpl_error *err) {
    struct xpl_resolved_host *const h = &r->hosts[i];
    const struct xpl_tool_turns *const t = r->source.turns;
    for (size_t k = 0; t && r->tool->needs[k]; k++) {
        const struct xpl_product *const p = r->tool->needs[k];
        const void *value;
        xpl_status_t st = XPL_OK;
        if (!xpl_tool_takes_turns(r->tool, k) || h->products[k]) continue;
        if (p->outline) XPL_TRY(t->get(t->arg, i, k, &value, err));
        if (p->outline) st = p->outline(value, &h->outlines[k], err);
        t->release(t->arg, i, k);
        if (st != XPL_OK) return st;
    }
    return XPL_OK;
}

static void get_one(void *ctx, size_t i) {
    struct running *const x = ctx;
    const struct xpl_resolving *const r = x->r;
    if (atomic_load(&x->failed)) return;
    struct xpl_exec serial = xpl_exec_serial(), *exec = r->exec;
    // With many hosts the hosts are the pieces; cutting each up as well only adds hand-overs.
    if (!r->one_by_one && r->n_hosts >= 2 * (size_t)exec->width) exec = &serial;
    struct xpl_error err = {0};
    xpl_status_t st = r->source.get(r->source.arg, i, x->variants, exec, &r->hosts[i], &err);
    if (st == XPL_OK && r->hosts[i].status == XPL_OK) st = get_outlines(r, i, &err);
    if (st != XPL_OK) end_all(x, &r->hosts[i], st, &err);
}

static void unpack_one(void *ctx, size_t i) {
    struct running *const x = ctx;
    const struct xpl_resolving *const r = x->r;
    struct xpl_error err = {0};
    if (atomic_load(&x->failed) || r->hosts[i].status != XPL_OK) return;
    const xpl_status_t st = r->source.unpack(r->source.arg, i, &r->hosts[i], &err);
    if (st != XPL_OK) end_all(x, &r->hosts[i], st, &err);
}

// The failure of the first host that ended it all.
static xpl_status_t first_failure(const struct xpl_resolving *r, struct xpl_error *err) {
    for (size_t i = 0; i < r->n_hosts; i++) {
        if (!r->hosts[i].fatal) continue;
        if (err) *err = r->hosts[i].err;
        return r->hosts[i].status;
    }
    XPL_RETURN_ERROR(err, XPL_INTERNAL, "a host failed without a reason");
}

static xpl_status_t get_all(const struct xpl_resolving *r, struct xpl_error *err) {
    struct running x = {.r = r};
    for (size_t k = 0; r->tool->variant && r->tool->needs[k]; k++)
        x.variants[k] = r->tool->variant(r->options, k, r->session_has_device);
    for (size_t i = 0; r->one_by_one && i < r->n_hosts; i++)
        get_one(&x, i);
    if (!r->one_by_one) xpl_exec_run(r->exec, r->n_hosts, get_one, &x);
    if (r->source.unpack && !atomic_load(&x.failed))
        xpl_exec_run(r->exec, r->n_hosts, unpack_one, &x);
    return atomic_load(&x.failed) ? first_failure(r, err) : XPL_OK;
}

// ---- the answer ----

static xpl_status_t choose_hosts(const struct xpl_resolving *r, struct xpl_tool_host *list,
                                 struct xpl_error *err) {
    size_t shown = 0;
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct xpl_resolved_host *const h = &r->hosts[i];
        list[i] = (struct xpl_tool_host){.name = h->name,
                                         .products = h->products,
                                         .outlines = (const void *const *)h->outlines,
                                         .profile = h->profile,
                                         .path = h->path};
        if (h->status == XPL_OK) {
            shown++;
            if (h->empty && combines_hosts(r->tool))
                r->source.warn(r->source.arg, h->name, XPL_STR("the profile is empty (0 bytes)"));
        } else if (r->by_name || r->n_hosts == 1 || !xpl_resolve_is_of_file(h->status)) {
            if (err) *err = h->err;
            return h->status;
        } else {
            list[i].products = NULL;
            list[i].problem = xpl_str_from(h->err.msg);
            r->source.warn(r->source.arg, h->name, list[i].problem);
        }
    }
    if (shown) return XPL_OK;
    if (err) *err = r->hosts[0].err;
    return r->hosts[0].status;
}

static xpl_status_t render(const struct xpl_resolving *r, const struct xpl_tool_host *list,
                           struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_tool_input in = {.hosts = list,
                                      .n_hosts = r->n_hosts,
                                      .by_name = r->by_name,
                                      .turns = r->source.turns,
                                      .options = r->options,
                                      .exec = r->exec,
                                      .limit = r->limit,
                                      .warn = r->source.warn,
                                      .warn_arg = r->source.arg};
    return r->source.render ? r->source.render(r->source.arg, &in, out, err)
                            : r->tool->render(&in, out, err);
}

static void free_outlines(const struct xpl_resolving *r) {
    for (size_t i = 0; i < r->n_hosts; i++)
        for (size_t k = 0; k < XPL_TOOL_MAX_NEEDS; k++) {
            xpl_sys_free(r->hosts[i].outlines[k]);
            r->hosts[i].outlines[k] = NULL;
        }
}

xpl_status_t xpl_resolve_from(const struct xpl_resolving *r, struct xpl_buf *out,
                              struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(r->limit);
    struct xpl_tool_host *const list = xpl_arena_zalloc(&arena, r->n_hosts * sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "hosts");
    struct xpl_error changed = {0}, why = {0};
    xpl_status_t st = get_all(r, &why);
    if (st == XPL_OK) st = choose_hosts(r, list, &why);
    if (st == XPL_OK) st = render(r, list, out, &why);
    const xpl_status_t same = r->source.verify ? r->source.verify(r->source.arg, &changed) : XPL_OK;
    if (same != XPL_OK) st = same, why = changed;
    free_outlines(r);
    if (st != XPL_OK && err) *err = why;
    return st;
}

// ---- without caches ----

struct direct {
    const struct xpl_resolve *r;
    struct xpl_resolved_host *hosts;
    void *(*owned)[XPL_TOOL_MAX_NEEDS];          // the products of each, to be freed
    struct shelved (*shelf)[XPL_TOOL_MAX_NEEDS]; // those that are got in turn, between uses
    bool in_turn;
    struct xpl_tool_turns turns;
};

static bool is_in_turn(const struct direct *d, size_t k) {
    return d->in_turn && xpl_tool_takes_turns(d->r->tool, k);
}

// Product `k` of host `i`, unless it was made; `used`: a need that it uses, or XPL_TOOL_MAX_NEEDS.
static xpl_status_t make_product(const struct direct *d, size_t i, size_t k, size_t used,
                                 const unsigned *variants, struct xpl_exec *exec,
                                 struct xpl_error *err) {
    const struct xpl_resolve *const r = d->r;
    const bool is_known = used < XPL_TOOL_MAX_NEEDS && variants[used] == variants[k];
    const struct xpl_product_input in = {
        .profile = r->hosts[i].profile,
        .variant = variants[k],
        .exec = exec,
        .limit = r->limit,
        .known = is_known ? d->owned[i][used] : NULL,
        .first = r->options,
    };
    if (d->owned[i][k]) return XPL_OK;
    XPL_TRY(r->tool->needs[k]->make(&in, &d->owned[i][k], err));
    if (!is_in_turn(d, k)) d->hosts[i].products[k] = d->owned[i][k];
    return XPL_OK;
}

static xpl_status_t get_in_turn(void *arg, size_t i, size_t k, const void **ret,
                                struct xpl_error *err) {
    const struct direct *const d = arg;
    const struct xpl_product *const p = d->r->tool->needs[k];
    if (!d->owned[i][k]) XPL_TRY(shelf_get(&d->shelf[i][k], p, d->r->limit, &d->owned[i][k], err));
    *ret = d->owned[i][k];
    return XPL_OK;
}

// One that cannot be shelved stays as it is.
static void release_in_turn(void *arg, size_t i, size_t k) {
    const struct direct *const d = arg;
    const struct xpl_product *const p = d->r->tool->needs[k];
    struct shelved *const s = &d->shelf[i][k];
    if (!s->frame && shelf_put(s, p, d->owned[i][k], d->r->limit, NULL) != XPL_OK) return;
    p->free(d->owned[i][k]);
    d->owned[i][k] = NULL;
}

static xpl_status_t make_products(const struct direct *d, size_t i, const unsigned *variants,
                                  struct xpl_exec *exec, struct xpl_error *err) {
    const struct xpl_tool *const tool = d->r->tool;
    for (size_t k = 0; tool->needs[k]; k++) {
        const size_t used = xpl_tool_need_used(tool, k);
        if (used < XPL_TOOL_MAX_NEEDS)
            XPL_TRY(make_product(d, i, used, XPL_TOOL_MAX_NEEDS, variants, exec, err));
        XPL_TRY(make_product(d, i, k, used, variants, exec, err));
    }
    return XPL_OK;
}

static xpl_status_t make_host(void *arg, size_t i, const unsigned *variants, struct xpl_exec *exec,
                              struct xpl_resolved_host *ret, struct xpl_error *err) {
    const struct direct *const d = arg;
    const struct xpl_resolve_host *const host = &d->r->hosts[i];
    struct xpl_error why = {0};
    ret->profile = host->profile;
    ret->path = host->path;
    ret->empty = host->profile.len == 0;
    ret->status = host->broken ? host->broken->code : make_products(d, i, variants, exec, &why);
    if (d->in_turn && d->r->release && host->profile.len)
        d->r->release(host->profile.ptr, host->profile.len);
    if (ret->status == XPL_OK) return XPL_OK;
    if (host->broken)
        ret->err = *host->broken;
    else
        (void)xpl_error_set(&ret->err, ret->status, __FILE__, __LINE__, why.offset, "%s: %s",
                            host->path, why.msg);
    // Without memory for a product its file may still be good.
    if (host->broken ||
        (ret->status != XPL_RESOURCE_EXHAUSTED && xpl_resolve_is_of_file(ret->status)))
        return XPL_OK;
    if (err) *err = ret->err;
    return ret->status;
}

static xpl_status_t verify_hosts(void *arg, struct xpl_error *err) {
    const struct direct *const d = arg;
    for (size_t i = 0; d->r->verify && i < d->r->n_hosts; i++)
        XPL_TRY(d->r->verify(d->r->arg, i, err));
    return XPL_OK;
}

static void warn(void *arg, xpl_str_t host, xpl_str_t text) {
    const struct direct *const d = arg;
    d->r->warn(d->r->arg, host, text);
}

static void free_products(const struct direct *d) {
    for (size_t i = 0; i < d->r->n_hosts; i++)
        for (size_t k = 0; d->r->tool->needs[k]; k++)
            d->r->tool->needs[k]->free(d->owned[i][k]);
    for (size_t i = 0; d->in_turn && i < d->r->n_hosts; i++)
        for (size_t k = 0; d->r->tool->needs[k]; k++)
            shelf_drop(&d->shelf[i][k]);
}

bool xpl_resolve_in_turn(const struct xpl_tool *tool, size_t n_hosts) {
    if (n_hosts < XPL_RESOLVE_MANY || tool->reads_profile) return false;
    for (size_t k = 0; tool->needs[k]; k++)
        if (tool->needs[k]->outline) return true;
    return false;
}

xpl_status_t xpl_resolve(const struct xpl_resolve *r, struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct direct d = {.r = r, .turns = {get_in_turn, release_in_turn, &d}};
    xpl_arena_init(&arena, r->limit);
    d.in_turn = xpl_resolve_in_turn(r->tool, r->n_hosts);
    d.hosts = xpl_arena_zalloc(&arena, r->n_hosts * sizeof *d.hosts);
    d.owned = xpl_arena_zalloc(&arena, r->n_hosts * sizeof *d.owned);
    d.shelf = xpl_arena_zalloc(&arena, r->n_hosts * sizeof *d.shelf);
    if (!d.hosts || !d.owned || !d.shelf) XPL_RETURN_OOM(err, "hosts");
    for (size_t i = 0; i < r->n_hosts; i++)
        d.hosts[i].name = r->hosts[i].name;
    const struct xpl_resolving all = {.tool = r->tool,
                                      .options = r->options,
                                      .hosts = d.hosts,
                                      .n_hosts = r->n_hosts,
                                      .by_name = r->by_name,
                                      .one_by_one = true,
                                      .session_has_device = r->session_has_device,
                                      .exec = r->exec,
                                      .limit = r->limit,
                                      .source = {.get = make_host,
                                                 .turns = d.in_turn ? &d.turns : NULL,
                                                 .verify = verify_hosts,
                                                 .warn = warn,
                                                 .arg = &d}};
    const xpl_status_t st = xpl_resolve_from(&all, out, err);
    free_products(&d);
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
