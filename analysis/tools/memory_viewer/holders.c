// SPDX-License-Identifier: Apache-2.0
// The holders of the memory at the peak, by the source lines or the ops of the buffers, and the
// difference to another program: a table of ours.
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/memory_viewer/impl.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { OURS, OTHERS, N_SIDES };

struct holder {
    xpl_str_t key;               // tells it from others
    xpl_str_t source, op, shape; // op and shape only where rows are ops
    xpl_str_t name;              // of the largest buffer, of our program where it has any
    int64_t largest;
    int64_t bytes[N_SIDES];
    uint32_t buffers[N_SIDES];
    bool has_other; // its order is that of a change
};

struct holders {
    struct memview *v;
    bool by_op;
    struct xpl_intern *keys;
    XPL_VEC(struct holder) rows;
    int64_t sum[N_SIDES];
};

static bool copy_scratch(struct memview *v, xpl_str_t *ret) {
    return !v->scratch.failed &&
           xpl_arena_str(v->arena, (xpl_str_t){(const char *)v->scratch.p, v->scratch.n}, ret);
}

// "file:line", or the kind of the buffer in parentheses.
static bool describe_source(const struct xpl_hlo_memory *m, const struct hlo_buffer *b,
                            struct memview *v, xpl_str_t *ret) {
    struct xpl_hlo_buffer_source s;
    if (!xpl_hlo_buffer_source(m, b, v->arena, &s)) return false;
    v->scratch.n = 0;
    if (s.file.len) {
        xpl_buf_str(&v->scratch, s.file);
    } else {
        xpl_buf_putc(&v->scratch, '(');
        xpl_buf_str(&v->scratch, xpl_memview_category(&m->allocations[b->allocation]));
        xpl_buf_putc(&v->scratch, ')');
    }
    if (s.file.len && s.line > 0) xpl_buf_printf(&v->scratch, ":%" PRId32, s.line);
    return copy_scratch(v, ret);
}

static xpl_status_t describe(struct holders *h, const struct xpl_hlo_memory *m,
                             const struct hlo_buffer *b, struct holder *ret,
                             struct xpl_error *err) {
    struct memview *const v = h->v;
    *ret = (struct holder){.op = {"", 0}, .shape = {"", 0}};
    if (!describe_source(m, b, v, &ret->source)) XPL_RETURN_OOM(err, "memory of an HLO module");
    v->scratch.n = 0;
    xpl_buf_str(&v->scratch, ret->source);
    if (h->by_op) {
        ret->op = b->op.op_name.len ? b->op.op_name : b->op.opcode;
        xpl_buf_putc(&v->scratch, '\n');
        xpl_buf_str(&v->scratch, ret->op);
        xpl_buf_putc(&v->scratch, '\n');
        const size_t at = v->scratch.n;
        XPL_TRY(xpl_hlo_text_shape(b->shape, v->cache, &v->scratch, err));
        if (v->scratch.failed ||
            !xpl_arena_str(v->arena,
                           (xpl_str_t){(const char *)v->scratch.p + at, v->scratch.n - at},
                           &ret->shape))
            XPL_RETURN_OOM(err, "memory of an HLO module");
    }
    ret->key = (xpl_str_t){(const char *)v->scratch.p, v->scratch.n};
    return XPL_OK;
}

// The row of a buffer; new ones get their key kept.
static xpl_status_t find_row(struct holders *h, const struct xpl_hlo_memory *m,
                             const struct hlo_buffer *b, struct holder **ret,
                             struct xpl_error *err) {
    struct holder row;
    xpl_strid_t id;
    XPL_TRY(describe(h, m, b, &row, err));
    if (h->v->scratch.failed || !xpl_intern_put(h->keys, row.key, &id))
        XPL_RETURN_OOM(err, "memory of an HLO module");
    if (id.v > h->rows.n) {
        struct holder *const slot = xpl_vec_push(h->v->arena, &h->rows);
        if (!slot) XPL_RETURN_OOM(err, "memory of an HLO module");
        row.key = xpl_intern_get(h->keys, id);
        *slot = row;
    }
    *ret = &h->rows.v[id.v - 1];
    return XPL_OK;
}

static xpl_status_t add_side(struct holders *h, const struct xpl_hlo_memory *m, unsigned side,
                             struct xpl_error *err) {
    struct memview *const v = h->v;
    for (uint32_t i = 0; i < m->n_held; i++) {
        const struct hlo_buffer *const b = &m->buffers[m->held[i]];
        struct holder *row = NULL;
        if (i % 4096 == 4095 && xpl_exec_cancelled(v->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory of an HLO module cancelled");
        XPL_TRY(find_row(h, m, b, &row, err));
        if (__builtin_add_overflow(h->sum[side], b->size, &h->sum[side]))
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "buffer assignment: more than 2^63 bytes");
        row->bytes[side] += b->size; // of the sum
        row->buffers[side]++;
        if ((side == OTHERS && row->buffers[OURS]) || (row->name.ptr && b->size <= row->largest))
            continue;
        row->largest = b->size;
        v->scratch.n = 0;
        xpl_memview_name(b, &v->scratch);
        if (!copy_scratch(v, &row->name)) XPL_RETURN_OOM(err, "memory of an HLO module");
    }
    return XPL_OK;
}

// The largest change first, otherwise the largest holder.
static int most_first(const void *pa, const void *pb) {
    const struct holder *const a = pa, *const b = pb;
    const int64_t x = a->has_other ? llabs(a->bytes[OURS] - a->bytes[OTHERS]) : a->bytes[OURS];
    const int64_t y = b->has_other ? llabs(b->bytes[OURS] - b->bytes[OTHERS]) : b->bytes[OURS];
    if (x != y) return x < y ? 1 : -1;
    if (a->bytes[OURS] != b->bytes[OURS]) return a->bytes[OURS] < b->bytes[OURS] ? 1 : -1;
    return xpl_str_cmp(a->key, b->key);
}

enum { OF_OPS = 1, OF_TWO = 2 }; // columns
const struct xpl_column xpl_holder_columns[] = {
    XPL_TEXTS("source", "Source"),
    XPL_COLUMN("op", "string", "Op", NULL, OF_OPS),
    XPL_COLUMN("shape", "string", "Shape", NULL, OF_OPS),
    XPL_NUMBERS("bytes", "Bytes", "bytes"),
    XPL_NUMBERS("share", "Share %", "%"),
    XPL_NUMBERS("buffers", "Buffers", NULL),
    XPL_COLUMN("other_bytes", "number", "Bytes of the other", "bytes", OF_TWO),
    XPL_COLUMN("other_buffers", "number", "Buffers of the other", NULL, OF_TWO),
    XPL_COLUMN("change", "number", "Bytes more than the other", "bytes", OF_TWO),
    XPL_TEXTS("largest", "Largest"),
    {0},
};

static xpl_status_t put_table(const struct holders *h, const struct xpl_hlo_memory *other,
                              struct xpl_error *err) {
    struct memview *const v = h->v;
    struct xpl_gviz g;
    struct xpl_gviz_props p;
    xpl_gviz_begin(&g, v->out, xpl_holder_columns, (h->by_op ? OF_OPS : 0) | (other ? OF_TWO : 0));
    xpl_gviz_props_init(&p, v->arena);
    xpl_gviz_prop(&p, "module", v->m->module);
    xpl_gviz_prop_printf(&p, "bytes", "%" PRId64, h->sum[OURS]);
    if (other) xpl_gviz_prop(&p, "other_module", other->module);
    if (other) xpl_gviz_prop_printf(&p, "other_bytes", "%" PRId64, h->sum[OTHERS]);
    xpl_gviz_put_props(&g, &p);
    for (size_t i = 0; i < h->rows.n; i++) {
        const struct holder *const r = &h->rows.v[i];
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, r->source);
        if (h->by_op) xpl_gviz_text(&g, r->op);
        if (h->by_op) xpl_gviz_text(&g, r->shape);
        xpl_gviz_number(&g, (double)r->bytes[OURS]);
        xpl_gviz_number(&g,
                        h->sum[OURS] ? 100.0 * (double)r->bytes[OURS] / (double)h->sum[OURS] : 0);
        xpl_gviz_number(&g, r->buffers[OURS]);
        if (other) xpl_gviz_number(&g, (double)r->bytes[OTHERS]);
        if (other) xpl_gviz_number(&g, r->buffers[OTHERS]);
        if (other) xpl_gviz_number(&g, (double)(r->bytes[OURS] - r->bytes[OTHERS]));
        xpl_gviz_text(&g, r->name);
    }
    xpl_gviz_end(&g);
    if (v->out->failed || p.failed) XPL_RETURN_OOM(err, "memory of an HLO module");
    return XPL_OK;
}

xpl_status_t xpl_memview_holders(struct memview *v, const struct xpl_hlo_memory *other, bool by_op,
                                 struct xpl_error *err) {
    struct holders h = {.v = v, .by_op = by_op, .keys = xpl_intern_new(v->arena, xpl_hash_seed())};
    if (!h.keys) XPL_RETURN_OOM(err, "memory of an HLO module");
    XPL_TRY(add_side(&h, v->m, OURS, err));
    if (other) XPL_TRY(add_side(&h, other, OTHERS, err));
    for (size_t i = 0; i < h.rows.n; i++)
        h.rows.v[i].has_other = other != NULL;
    xpl_sort(h.rows.v, h.rows.n, sizeof *h.rows.v, most_first);
    return put_table(&h, other, err);
}
