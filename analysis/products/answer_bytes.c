// SPDX-License-Identifier: Apache-2.0
#include "analysis/products/answer_bytes.h"

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/cleanup.h"

static xpl_status_t fill(const struct xpl_product_input *in, xpl_answer_bytes_fn *write,
                         struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view = xpl_arena_of(in->limit);
    struct xpl_xspace *xs;
    XPL_TRY(xpl_xspace_open(in->profile, &view, in->exec, &xs, err));
    return write(xs, in->exec, in->limit, out, err);
}

xpl_status_t xpl_answer_bytes_make(const struct xpl_product_input *in, xpl_answer_bytes_fn *write,
                                   void **ret, struct xpl_error *err) {
    struct xpl_buf *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "answer");
    xpl_buf_init(v, in->limit);
    const xpl_status_t st = fill(in, write, v, err);
    if (st == XPL_OK)
        *ret = v;
    else
        xpl_answer_bytes_free(v);
    return st;
}

size_t xpl_answer_bytes_size(const void *value) {
    const struct xpl_buf *const v = value;
    return sizeof *v + v->cap;
}

void xpl_answer_bytes_free(void *value) {
    if (value) xpl_buf_fini(value);
    xpl_sys_free(value);
}
