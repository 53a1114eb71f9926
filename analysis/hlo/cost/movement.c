// SPDX-License-Identifier: Apache-2.0
// Instructions that move data, and reductions.
#include "analysis/hlo/cost/impl.h"
#include "analysis/hlo/module/shape.h"

// The used share of an operand.  For an operand without elements it is infinite, or NaN, as in XLA:
// costs that depend on it then have no number of operations.
static float share(int64_t used, int64_t all) {
    return (float)((double)used / (double)all);
}

void xpl_cost_slice(struct cost_visit *v) {
    const struct cost_shape *const s = xpl_cost_result(v);
    v->n->bytes = (float)xpl_cost_times(2, s->size);
    xpl_cost_set_operand(v, 0, (float)s->size);
    xpl_cost_set_utilization(v, 0, share(s->elements, xpl_cost_operand(v, 0)->elements));
}

// A dynamic slice reads its first index, whatever it has more.
void xpl_cost_dynamic_slice(struct cost_visit *v) {
    if (v->n_operands < 2) return;
    const struct cost_shape *const s = xpl_cost_result(v), *const index = xpl_cost_operand(v, 1);
    v->n->bytes = (float)xpl_cost_plus(xpl_cost_times(2, s->size), index->size);
    xpl_cost_set_operand(v, 0, (float)s->size);
    xpl_cost_set_operand(v, 1, (float)index->size);
    xpl_cost_set_utilization(v, 0, share(s->elements, xpl_cost_operand(v, 0)->elements));
}

void xpl_cost_dynamic_update_slice(struct cost_visit *v) {
    if (v->n_operands < 3) return;
    const struct cost_shape *const s = xpl_cost_result(v), *const update = xpl_cost_operand(v, 1);
    const int64_t index = xpl_cost_operand(v, 2)->size;
    v->n->bytes = (float)xpl_cost_plus(xpl_cost_times(2, update->size), index);
    v->n->output = (float)update->size;
    xpl_cost_set_operand(v, 0, 0);
    xpl_cost_set_operand(v, 1, (float)update->size);
    xpl_cost_set_operand(v, 2, (float)index);
    xpl_cost_set_utilization(v, 0,
                             share(xpl_cost_minus(s->elements, update->elements), s->elements));
}

void xpl_cost_gather(struct cost_visit *v) {
    const struct cost_shape *const s = xpl_cost_result(v), *const indices = xpl_cost_operand(v, 1);
    v->n->bytes = (float)xpl_cost_plus(xpl_cost_times(2, s->size), indices->size);
    v->n->output = (float)s->size;
    xpl_cost_set_operand(v, 0, (float)s->size);
    xpl_cost_set_operand(v, 1, (float)indices->size);
    xpl_cost_set_utilization(v, 0, share(s->elements, xpl_cost_operand(v, 0)->elements));
}

// Operands: n that are scattered into, the indices, n updates.
void xpl_cost_scatter(struct cost_visit *v) {
    const uint32_t n = v->n_operands / 2;
    if (v->n_operands < 3 || v->n_operands % 2 == 0) return;
    int64_t updates = 0;
    for (uint32_t k = 0; k < n; k++) {
        const int64_t size = xpl_cost_operand(v, n + 1 + k)->size;
        xpl_cost_set_operand(v, k, (float)size);
        xpl_cost_set_operand(v, n + 1 + k, (float)size);
        updates = xpl_cost_plus(updates, size);
    }
    const int64_t indices = xpl_cost_operand(v, n)->size;
    xpl_cost_set_operand(v, n, (float)indices);
    v->n->bytes = (float)xpl_cost_plus(xpl_cost_times(3, updates), indices);
    v->n->output = (float)updates;
    v->n->flops = xpl_cost_combiner(v, 0, xpl_cost_operand(v, n + 1)->elements);
}

// ---- to and from the host ----

struct feed {
    struct cost_visit *v;
    enum cost_kind kind;
    int64_t bytes;
    cost_entry_vec leaves;
};

static void add_leaf(void *ctx, const struct cost_leaf *leaf) {
    struct feed *const f = ctx;
    f->bytes = xpl_cost_plus(f->bytes, leaf->shape->size);
    if (leaf->depth)
        xpl_cost_push(f->v->c, &f->leaves, xpl_cost_key(f->kind, 0, leaf->path),
                      (float)leaf->shape->size);
}

// Counts only the result, at all levels of its nesting.
void xpl_cost_infeed(struct cost_visit *v) {
    struct feed f = {.v = v, .kind = COST_OUTPUT};
    xpl_cost_each_leaf(v->c, xpl_cost_result(v), true, add_leaf, &f);
    v->n->bytes = (float)f.bytes;
    xpl_cost_note_more(v->c, v->n, &f.leaves);
}

// Counts the first operand.
void xpl_cost_outfeed(struct cost_visit *v) {
    struct feed f = {.v = v, .kind = COST_OPERAND};
    xpl_cost_each_leaf(v->c, xpl_cost_operand(v, 0), true, add_leaf, &f);
    v->n->bytes = (float)f.bytes;
    xpl_cost_note_more(v->c, v->n, &f.leaves);
}

// ---- transposes ----

static struct xpl_hlo_ints memory_order(const struct cost_shape *s,
                                        struct xpl_hlo_message *layout) {
    struct xpl_hlo_shape shape;
    xpl_hlo_shape_read(s->bytes, &shape);
    xpl_hlo_message_read(shape.layout, layout);
    return xpl_hlo_ints_begin(layout, HLO_LAYOUT_MINOR_TO_MAJOR);
}

// One that leaves all elements where they are, as XLA tells it by the order of dimensions, costs
// nothing.
void xpl_cost_transpose(struct cost_visit *v) {
    const struct cost_shape *const s = xpl_cost_result(v), *const o = xpl_cost_operand(v, 0);
    struct xpl_hlo_message from_layout, to_layout;
    struct xpl_hlo_ints from = memory_order(o, &from_layout), to = memory_order(s, &to_layout);
    struct xpl_hlo_ints permutation = xpl_hlo_ints_begin(xpl_cost_message(v), HLO_INSTR_DIMENSIONS);
    const size_t rank = xpl_hlo_ints_count(xpl_cost_message(v), HLO_INSTR_DIMENSIONS);
    int64_t *const source = xpl_cost_alloc(v->c, rank, sizeof *source);
    int64_t n = 0;
    if (!source || !xpl_cost_spend_shape(v->c, o) || !xpl_cost_spend_shape(v->c, s)) return;
    while ((size_t)n < rank && xpl_hlo_ints_next(&permutation, &source[n]))
        n++;
    for (int64_t a, b; xpl_hlo_ints_next(&to, &b);)
        if (b < 0 || b >= n || !xpl_hlo_ints_next(&from, &a) || source[b] != a) return;
    xpl_cost_nothing(v);
}

// Threads of a warp that read of different operands take both ways, which is when the rows of the
// first operand do not end at a warp.
void xpl_cost_concatenate(struct cost_visit *v) {
    enum { ONE_WAY = 6, BOTH_WAYS = 400, WARP = 32 };
    struct xpl_hlo_ints dimensions = xpl_hlo_ints_begin(xpl_cost_message(v), HLO_INSTR_DIMENSIONS);
    int64_t d = 0, cost = ONE_WAY;
    uint32_t n = 0;
    const bool known = xpl_hlo_ints_next(&dimensions, &d) && d > 0 && v->n_operands;
    if (v->c->is_cpu) return; // it computes nothing
    const int64_t *const dims = known ? xpl_cost_dims(v->c, xpl_cost_operand(v, 0), &n) : NULL;
    if (dims && d < n && dims[d] % WARP != 0) cost = BOTH_WAYS;
    v->n->flops = (float)xpl_cost_times(cost, xpl_cost_result(v)->leaf_elements);
}

// ---- reductions ----

// Operands: the arrays to reduce, then as many initial values, each of which every element of the
// result uses once.
void xpl_cost_reduce(struct cost_visit *v) {
    const uint32_t n = v->n_operands / 2;
    if (n == 0) return;
    struct cost_shape out;
    xpl_cost_shape_first(xpl_cost_result(v), &out);
    v->n->flops =
        xpl_cost_combiner(v, 0, xpl_cost_minus(xpl_cost_operand(v, 0)->elements, out.elements));
    int64_t bytes = xpl_cost_result(v)->leaf_size;
    v->n->output = (float)bytes;
    for (uint32_t k = 0; k < n; k++)
        bytes = xpl_cost_truncated((float)bytes + (float)xpl_cost_operand(v, k)->size);
    for (uint32_t k = n; k < 2 * n; k++) {
        const int64_t begin = xpl_cost_times(out.elements, xpl_cost_operand(v, k)->size);
        xpl_cost_set_operand(v, k, (float)begin);
        xpl_cost_set_utilization(v, k, (float)out.elements);
        bytes = xpl_cost_plus(bytes, begin);
    }
    v->n->bytes = (float)bytes;
}
