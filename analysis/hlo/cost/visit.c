// SPDX-License-Identifier: Apache-2.0
// One instruction: the defaults, and which rule changes them.
#include "analysis/hlo/cost/impl.h"

// ---- short rules ----

static enum xpl_hlo_op opcode(const struct cost_visit *v) {
    return (enum xpl_hlo_op)v->c->m->instructions[v->index].opcode;
}

static void elementwise(struct cost_visit *v) {
    const struct cost_shape *const s = xpl_cost_result(v);
    v->n->flops =
        (float)xpl_cost_times(xpl_cost_cycles(v->c, opcode(v), s->type), s->leaf_elements);
}

static void tuple(struct cost_visit *v) {
    for (uint32_t k = 0; k < v->n->n_operands; k++)
        v->n->operand[k] = 0;
    v->n->bytes = v->n->output = (float)xpl_cost_result(v)->size;
}

static void map(struct cost_visit *v) {
    v->n->flops = xpl_cost_combiner(v, 0, xpl_cost_result(v)->elements);
}

static unsigned bit_length(uint64_t x) {
    unsigned n = 0;
    for (; x; x >>= 1)
        n++;
    return n;
}

static void sort(struct cost_visit *v) {
    if (!v->n_operands) return;
    const int64_t n = xpl_cost_operand(v, 0)->elements;
    v->n->flops = n > 1 ? (float)xpl_cost_times(n, (int64_t)bit_length((uint64_t)n - 1)) : 0;
}

static void fft(struct cost_visit *v) {
    struct xpl_hlo_ints lengths = xpl_hlo_ints_begin(xpl_cost_message(v), HLO_INSTR_FFT_LENGTH);
    int64_t factor = 1;
    for (int64_t d; xpl_hlo_ints_next(&lengths, &d);)
        factor = (int64_t)((uint64_t)factor * (d > 0 ? bit_length((uint64_t)d) - 1 : 0));
    v->n->flops =
        (float)(int64_t)(8 * (uint64_t)factor * (uint64_t)xpl_cost_operand(v, 0)->elements);
}

static int64_t last_dimension(struct cost_visit *v, uint32_t operand) {
    uint32_t n;
    const int64_t *const dims = xpl_cost_dims(v->c, xpl_cost_operand(v, operand), &n);
    return n ? dims[n - 1] : 0;
}

static void cholesky(struct cost_visit *v) {
    const struct cost_shape *const a = xpl_cost_operand(v, 0);
    const float half = (float)a->size / 2.0F;
    v->n->bytes = half + half;
    v->n->output = half;
    xpl_cost_set_operand(v, 0, half);
    v->n->flops = (float)((int64_t)((uint64_t)last_dimension(v, 0) * (uint64_t)a->elements) / 3);
}

static void triangular_solve(struct cost_visit *v) {
    const struct cost_shape *const a = xpl_cost_operand(v, 0), *const b = xpl_cost_operand(v, 1);
    v->n->bytes = (float)xpl_cost_result(v)->size + (float)a->size / 2.0F + (float)b->size;
    xpl_cost_set_operand(v, 0, (float)b->size);
    v->n->flops = (float)(int64_t)(2 * (uint64_t)last_dimension(v, 0) * (uint64_t)b->elements);
}

// A call has the properties of the called computation.
static void be_sums(struct cost_visit *v, const struct cost_sums *sums) {
    v->n->is_call = true;
    v->n->more = sums;
    v->n->flops = sums->flops;
    v->n->bytes = sums->bytes;
}

// The total cost of the computations that an instruction calls.
static void calls(struct cost_visit *v) {
    const bool branches = opcode(v) == XPL_HLO_CONDITIONAL;
    struct cost_sums *sums = NULL;
    uint32_t k;
    for (uint32_t i = 0; (k = xpl_cost_called(v->c, v->index, i)) != UINT32_MAX; i++) {
        const struct cost_sums *const s = &v->c->computations[k]->sums;
        if (!sums) {
            if (!(sums = xpl_cost_alloc(v->c, 1, sizeof *sums))) return;
            *sums = *s;
        } else if (branches) {
            xpl_cost_sums_max(v->c, sums, s);
        } else {
            xpl_cost_sums_add(v->c, sums, s);
        }
    }
    if (sums) be_sums(v, sums);
}

// XLA visits the code that an async op starts as if it were next to the op, and the op itself then
// has no cost; but a reduce-scatter's flops and bytes are those of both.  Visited code is not
// visited again: a second start of it keeps its properties.
static void async_start(struct cost_visit *v) {
    if (!v->n->starts_again) {
        xpl_cost_nothing(v);
        for (uint32_t k = 0; k < v->n->n_operands; k++)
            v->n->utilization[k] = 0;
    }
    const uint32_t k = xpl_cost_called(v->c, v->index, 0);
    if (k == UINT32_MAX) return;
    const uint32_t wrapped = v->c->m->computations[k].root;
    if (v->c->m->instructions[wrapped].opcode != XPL_HLO_REDUCE_SCATTER) return;
    v->n->flops = v->c->nodes[wrapped]->flops;
    v->n->bytes = v->c->nodes[wrapped]->bytes;
}

// ---- the table ----

typedef void rule_fn(struct cost_visit *v);

static rule_fn *const rules[XPL_HLO_N_OPS] = {
    [XPL_HLO_PARAMETER] = xpl_cost_nothing,
    [XPL_HLO_CONSTANT] = xpl_cost_nothing,
    [XPL_HLO_GET_TUPLE_ELEMENT] = xpl_cost_nothing,
    [XPL_HLO_BITCAST] = xpl_cost_nothing,
    [XPL_HLO_AFTER_ALL] = xpl_cost_nothing,
    [XPL_HLO_ADD_DEPENDENCY] = xpl_cost_nothing,
    [XPL_HLO_DOMAIN] = xpl_cost_nothing,
    [XPL_HLO_TUPLE] = tuple,
    [XPL_HLO_SLICE] = xpl_cost_slice,
    [XPL_HLO_DYNAMIC_SLICE] = xpl_cost_dynamic_slice,
    [XPL_HLO_DYNAMIC_UPDATE_SLICE] = xpl_cost_dynamic_update_slice,
    [XPL_HLO_TRANSPOSE] = xpl_cost_transpose,
    [XPL_HLO_CONCATENATE] = xpl_cost_concatenate,
    [XPL_HLO_GATHER] = xpl_cost_gather,
    [XPL_HLO_SCATTER] = xpl_cost_scatter,
    [XPL_HLO_DOT] = xpl_cost_dot,
    [XPL_HLO_SCALED_DOT] = xpl_cost_dot,
    [XPL_HLO_RAGGED_DOT] = xpl_cost_ragged_dot,
    [XPL_HLO_INFEED] = xpl_cost_infeed,
    [XPL_HLO_OUTFEED] = xpl_cost_outfeed,
    [XPL_HLO_ALL_REDUCE_START] = xpl_cost_all_reduce_start,
    [XPL_HLO_ALL_GATHER_START] = xpl_cost_all_gather_start,
    [XPL_HLO_CONVOLUTION] = xpl_cost_convolution,
    [XPL_HLO_CUSTOM_CALL] = xpl_cost_custom_call,
    [XPL_HLO_REDUCE] = xpl_cost_reduce,
    [XPL_HLO_REDUCE_WINDOW] = xpl_cost_reduce_window,
    [XPL_HLO_SELECT_AND_SCATTER] = xpl_cost_select_and_scatter,
    [XPL_HLO_MAP] = map,
    [XPL_HLO_SORT] = sort,
    [XPL_HLO_FFT] = fft,
    [XPL_HLO_CHOLESKY] = cholesky,
    [XPL_HLO_TRIANGULAR_SOLVE] = triangular_solve,
    [XPL_HLO_ALL_REDUCE] = xpl_cost_all_reduce,
    [XPL_HLO_ALL_GATHER] = xpl_cost_all_gather,
    [XPL_HLO_REDUCE_SCATTER] = xpl_cost_reduce_scatter,
    [XPL_HLO_FUSION] = xpl_cost_fusion,
    [XPL_HLO_WHILE] = calls,
    [XPL_HLO_CONDITIONAL] = calls,
    [XPL_HLO_CALL] = calls,
    [XPL_HLO_ASYNC_START] = async_start,
};

static rule_fn *rule_of(enum xpl_hlo_op op) {
    if (rules[op]) return rules[op];
    const uint8_t kind = xpl_hlo_opcode(op)->kind;
    const bool counts = kind == HLO_OP_ELEMENTWISE || kind == HLO_OP_BITCAST_CONVERT;
    return counts && op != XPL_HLO_RNG ? elementwise : NULL;
}

// ---- visiting ----

static bool see_operands(struct cost_visit *v) {
    for (uint32_t k = 0; k < v->n_operands; k++)
        if (!xpl_cost_node_of(v->c, v->operands[k])) return false;
    return true;
}

static void set_defaults(struct cost_visit *v) {
    struct cost_node *const n = v->n;
    n->output = n->bytes = xpl_cost_result(v)->leaf_bytes;
    for (uint32_t k = 0; k < v->n_operands; k++) {
        const float size = (float)xpl_cost_operand(v, k)->size;
        n->bytes += size;
        xpl_cost_set_operand(v, k, size);
        xpl_cost_set_utilization(v, k, 1);
    }
}

static bool begin_visit(struct xpl_hlo_costs *c, uint32_t index, struct cost_node *n,
                        struct cost_visit *v) {
    v->c = c;
    v->index = index;
    v->n = n;
    v->beyond = (cost_entry_vec){0};
    v->decoded = false;
    v->operands = xpl_hlo_module_uses(c->m, index);
    v->n_operands = v->operands ? c->m->edges[index].n_operands : 0;
    return xpl_cost_node_of(c, index) && see_operands(v);
}

// A gather or scatter inside may determine a custom fusion's cost: its rule is then the fusion's.
static void fill_in(struct xpl_hlo_costs *c, uint32_t index, struct cost_node *n) {
    const uint32_t mover = xpl_cost_mover(c, index);
    struct cost_visit v;
    if (xpl_cost_stopped(c) || !begin_visit(c, index, n, &v)) return;
    set_defaults(&v);
    if (mover != UINT32_MAX && (!xpl_cost_spend(c, 1 + (uint64_t)c->m->edges[mover].n_operands) ||
                                !begin_visit(c, mover, n, &v)))
        return;
    rule_fn *const rule = rule_of((enum xpl_hlo_op)c->m->instructions[v.index].opcode);
    if (rule) rule(&v);
    if (v.beyond.n) xpl_cost_note_more(c, n, &v.beyond);
}

void xpl_cost_visit_instruction(struct xpl_hlo_costs *c, uint32_t index) {
    struct cost_node *const n = xpl_cost_node_of(c, index);
    if (!n || n->visited || !xpl_cost_spend(c, 1 + (uint64_t)n->n_operands)) return;
    fill_in(c, index, n);
    n->visited = !xpl_cost_stopped(c);
}
