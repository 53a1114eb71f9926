// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/module/shape.h"
#include "analysis/hlo/cost/impl.h"
#include "analysis/hlo/types.h"

// Whole bytes for each element, unless the layout says how many bits one takes.
static int64_t array_size(int64_t elements, uint32_t type, int64_t element_bits) {
    if (element_bits > 0) return xpl_cost_plus(xpl_cost_times(elements, element_bits), 7) / 8;
    return xpl_cost_times(elements, (int64_t)(xpl_hlo_element_bits(type) + 7) / 8);
}

static void read_array(const struct xpl_hlo_shape *s, struct cost_shape *ret) {
    struct xpl_hlo_ints dims = s->dims;
    int64_t element_bits = 0;
    ret->elements = 1;
    for (int64_t d; xpl_hlo_ints_next(&dims, &d);)
        ret->elements = xpl_cost_times(ret->elements, d);
    struct xpl_wire w = xpl_wire_begin(s->layout);
    struct xpl_field f;
    while (s->has_layout && xpl_hlo_next_field(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_VARINT) continue;
        if (f.num == HLO_LAYOUT_ELEMENT_BITS) element_bits = (int64_t)f.u;
        if (f.num == HLO_LAYOUT_MEMORY_SPACE) ret->memory_space = f.u;
    }
    ret->size = ret->leaf_size = array_size(ret->elements, ret->type, element_bits);
    ret->leaf_elements = ret->elements;
}

// Shapes nest as deep as the message says: an explicit depth ends a hostile one.  Bytes of arrays
// are added to *bytes_so_far.
static void read_shape(xpl_bytes_t bytes, unsigned depth, float *bytes_so_far,
                       struct cost_shape *ret) {
    struct xpl_hlo_shape s;
    xpl_hlo_shape_read(bytes, &s);
    *ret = (struct cost_shape){.bytes = bytes, .type = s.type < UINT32_MAX ? (uint32_t)s.type : 0};
    if (s.type == HLO_TYPE_TOKEN || s.type == HLO_TYPE_OPAQUE) {
        ret->leaf_elements = 1;
    } else if (s.type != HLO_TYPE_TUPLE) {
        read_array(&s, ret);
        *bytes_so_far += (float)ret->size;
    } else {
        struct xpl_hlo_each parts = xpl_hlo_shape_parts(&s);
        xpl_bytes_t part;
        ret->n_parts = s.n_parts;
        ret->size = 8 * (int64_t)s.n_parts;
        while (depth < COST_DEPTH && xpl_hlo_each_next(&parts, &part)) {
            struct cost_shape p;
            read_shape(part, depth + 1, bytes_so_far, &p);
            ret->leaf_size = xpl_cost_plus(ret->leaf_size, p.leaf_size);
            ret->leaf_elements = xpl_cost_plus(ret->leaf_elements, p.leaf_elements);
        }
    }
}

void xpl_cost_shape_read(xpl_bytes_t bytes, struct cost_shape *ret) {
    float leaf_bytes = 0;
    read_shape(bytes, 0, &leaf_bytes, ret);
    ret->leaf_bytes = leaf_bytes;
}

void xpl_cost_shape_part(const struct cost_shape *s, uint32_t k, struct cost_shape *ret) {
    struct xpl_hlo_shape shape;
    xpl_bytes_t part = {0};
    *ret = (struct cost_shape){0};
    if (k >= s->n_parts) return;
    xpl_hlo_shape_read(s->bytes, &shape);
    struct xpl_hlo_each parts = xpl_hlo_shape_parts(&shape);
    for (uint32_t i = 0; xpl_hlo_each_next(&parts, &part); i++)
        if (i == k) {
            xpl_cost_shape_read(part, ret);
            return;
        }
}

void xpl_cost_shape_first(const struct cost_shape *s, struct cost_shape *ret) {
    if (s->n_parts)
        xpl_cost_shape_part(s, 0, ret);
    else
        *ret = *s;
}

bool xpl_cost_spend_shape(struct xpl_hlo_costs *c, const struct cost_shape *s) {
    return xpl_cost_spend(c, 1 + s->bytes.len / COST_BYTES_PER_STEP);
}

static void read_dims(struct xpl_hlo_costs *c, struct cost_shape *s) {
    struct xpl_hlo_shape shape;
    xpl_hlo_shape_read(s->bytes, &shape);
    struct xpl_hlo_ints dims = shape.dims;
    uint32_t n = 0;
    for (int64_t d; xpl_hlo_ints_next(&dims, &d);)
        n++;
    int64_t *const v = xpl_cost_alloc(c, n, sizeof *v);
    dims = shape.dims;
    for (uint32_t i = 0; v && i < n; i++)
        if (!xpl_hlo_ints_next(&dims, &v[i])) v[i] = 0;
    s->dims = v;
    s->n_dims = v ? n : 0;
}

const int64_t *xpl_cost_dims(struct xpl_hlo_costs *c, struct cost_shape *s, uint32_t *ret_n) {
    if (!s->dims && xpl_cost_spend_shape(c, s)) read_dims(c, s);
    *ret_n = s->n_dims;
    return s->dims;
}

// ---- leaves ----

struct leaf_walk {
    struct xpl_hlo_costs *c;
    bool make;
    cost_leaf_fn *fn;
    void *ctx;
    uint32_t index[COST_DEPTH];
};

static void walk_leaves(struct leaf_walk *w, const struct cost_shape *s, uint32_t depth,
                        uint32_t path) {
    if (!xpl_cost_spend_shape(w->c, s)) return;
    if (s->type != HLO_TYPE_TUPLE) {
        w->fn(w->ctx, &(struct cost_leaf){s, w->index, depth, path});
        return;
    }
    struct xpl_hlo_shape shape;
    xpl_bytes_t part;
    xpl_hlo_shape_read(s->bytes, &shape);
    struct xpl_hlo_each parts = xpl_hlo_shape_parts(&shape);
    for (uint32_t i = 0; depth < COST_DEPTH && xpl_hlo_each_next(&parts, &part); i++) {
        struct cost_shape p;
        xpl_cost_shape_read(part, &p);
        w->index[depth] = i;
        walk_leaves(w, &p, depth + 1,
                    path == UINT32_MAX ? path : xpl_cost_path(w->c, path, i, w->make));
    }
}

void xpl_cost_each_leaf(struct xpl_hlo_costs *c, const struct cost_shape *s, bool make,
                        cost_leaf_fn *fn, void *ctx) {
    struct leaf_walk w = {.c = c, .make = make, .fn = fn, .ctx = ctx};
    walk_leaves(&w, s, 0, 0);
}
