// SPDX-License-Identifier: Apache-2.0
#include "analysis/products/arena_value.h"

#include <string.h>

#include "analysis/xplane/xspace.h"
#include "base/cleanup.h"

static struct xpl_arena_value *value_new(const struct xpl_arena_value_kind *kind, size_t limit) {
    struct xpl_arena_value *const v = xpl_sys_alloc(kind->size);
    if (!v) return NULL;
    memset(v, 0, kind->size);
    v->size = kind->size;
    xpl_arena_init(&v->arena, limit);
    return v;
}

// Hands a filled value out, or frees it.
static xpl_status_t finish(xpl_status_t st, struct xpl_arena_value *v, void **ret) {
    if (st == XPL_OK)
        *ret = v;
    else
        xpl_arena_value_free(v);
    return st;
}

static xpl_status_t fill(const struct xpl_arena_value_kind *kind,
                         const struct xpl_product_input *in, void *value, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view = xpl_arena_of(in->limit);
    struct xpl_xspace *xs;
    XPL_TRY(xpl_xspace_open(in->profile, &view, in->exec, &xs, err));
    return kind->fill(xs, in, value, err);
}

xpl_status_t xpl_arena_value_make(const struct xpl_arena_value_kind *kind,
                                  const struct xpl_product_input *in, void **ret,
                                  struct xpl_error *err) {
    struct xpl_arena_value *const v = value_new(kind, in->limit);
    if (!v) XPL_RETURN_OOM(err, kind->what);
    return finish(fill(kind, in, v, err), v, ret);
}

xpl_status_t xpl_arena_value_decode(const struct xpl_arena_value_kind *kind, xpl_bytes_t bytes,
                                    size_t limit, void **ret, struct xpl_error *err) {
    struct xpl_arena_value *const v = value_new(kind, limit);
    if (!v) XPL_RETURN_OOM(err, kind->what);
    return finish(kind->read(bytes, v, err), v, ret);
}

size_t xpl_arena_value_size(const void *value) {
    const struct xpl_arena_value *const v = value;
    return v->size + v->arena.reserved;
}

void xpl_arena_value_free(void *value) {
    struct xpl_arena_value *const v = value;
    if (!v) return;
    xpl_arena_fini(&v->arena);
    xpl_sys_free(v);
}
