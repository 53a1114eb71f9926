// SPDX-License-Identifier: Apache-2.0
// Instructions, the computations that they call, and the properties that rules set.
#include "analysis/hlo/cost/impl.h"
#include "analysis/hlo/module/order.h"

// ---- instructions ----

static xpl_bytes_t shape_bytes(const struct hlo_instruction *i) {
    struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){i->p, i->len});
    struct xpl_field f;
    xpl_bytes_t shape = {0};
    // A later shape would count, but no writer has two.
    while (!shape.ptr && xpl_hlo_next_field(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == HLO_INSTR_SHAPE && f.type == XPL_WIRE_LEN) shape = f.len;
    return shape;
}

struct cost_node *xpl_cost_node_of(struct xpl_hlo_costs *c, uint32_t index) {
    if (c->nodes[index]) return c->nodes[index];
    const uint32_t n = c->m->edges[index].n_operands;
    struct cost_node *const node =
        xpl_cost_alloc(c, 1, sizeof *node + 2 * (size_t)n * sizeof(float));
    if (!node) return NULL;
    *node = (struct cost_node){.n_operands = n};
    node->operand = (float *)(node + 1);
    node->utilization = node->operand + n;
    xpl_cost_shape_read(shape_bytes(&c->m->instructions[index]), &node->shape);
    return c->nodes[index] = node;
}

struct cost_computation *xpl_cost_computation_of(struct xpl_hlo_costs *c, uint32_t computation) {
    struct cost_computation **const at = &c->computations[computation];
    if (!*at && (*at = xpl_cost_alloc(c, 1, sizeof **at))) **at = (struct cost_computation){0};
    return *at;
}

// ---- calls ----

uint32_t xpl_cost_called(const struct xpl_hlo_costs *c, uint32_t index, uint32_t nth) {
    const struct xpl_hlo_module *const m = c->m;
    const size_t at = xpl_hlo_first_call(m, index) + nth;
    return at < m->calls.n && m->calls.v[at].instruction == index ? m->calls.v[at].computation
                                                                  : UINT32_MAX;
}

enum cost_extent xpl_cost_extent(const struct xpl_hlo_costs *c, uint32_t index) {
    switch ((int)c->m->instructions[index].opcode) {
        case XPL_HLO_WHILE:
        case XPL_HLO_CONDITIONAL:
        case XPL_HLO_ASYNC_START:
        case XPL_HLO_CALL: return COST_EXTENT_ALL;
        case XPL_HLO_FUSION:
        case XPL_HLO_REDUCE:
        case XPL_HLO_REDUCE_WINDOW:
        case XPL_HLO_SELECT_AND_SCATTER:
        case XPL_HLO_SCATTER:
        case XPL_HLO_MAP: return COST_EXTENT_FLOPS;
        default: return COST_EXTENT_NONE;
    }
}

// Many fusions may call one computation: it is searched once.
static uint32_t mover_of(struct xpl_hlo_costs *c, uint32_t computation) {
    const struct hlo_computation *const h = &c->m->computations[computation];
    uint32_t *const known = &c->movers[computation];
    if (*known == 0) {
        if (!xpl_cost_spend(c, 1 + (uint64_t)h->n)) return UINT32_MAX;
        *known = COST_NO_MOVER;
        for (uint32_t i = h->first; i < h->first + h->n && *known == COST_NO_MOVER; i++) {
            const uint32_t op = c->m->instructions[i].opcode;
            if (op == XPL_HLO_GATHER || op == XPL_HLO_SCATTER) *known = i + 1;
        }
    }
    return *known == COST_NO_MOVER ? UINT32_MAX : *known - 1;
}

uint32_t xpl_cost_mover(struct xpl_hlo_costs *c, uint32_t fusion) {
    const struct hlo_instruction *const f = &c->m->instructions[fusion];
    if (f->opcode != XPL_HLO_FUSION) return UINT32_MAX;
    const uint32_t k = xpl_cost_called(c, fusion, 0);
    const uint32_t mover = k == UINT32_MAX ? k : mover_of(c, k);
    // The fusion's message is read only where its kind matters.
    if (mover == UINT32_MAX || !xpl_cost_spend(c, 1 + f->len / COST_BYTES_PER_STEP))
        return UINT32_MAX;
    struct xpl_hlo_message in;
    xpl_hlo_message_read((xpl_bytes_t){f->p, f->len}, &in);
    const bool custom = xpl_str_eq(xpl_hlo_str(&in, HLO_INSTR_FUSION_KIND), XPL_STR("kCustom"));
    return custom ? mover : UINT32_MAX;
}

// ---- for rules ----

const struct xpl_hlo_message *xpl_cost_message(struct cost_visit *v) {
    const struct hlo_instruction *const i = &v->c->m->instructions[v->index];
    if (!v->decoded) xpl_hlo_message_read((xpl_bytes_t){i->p, i->len}, &v->in);
    v->decoded = true;
    return &v->in;
}

struct cost_shape *xpl_cost_result(const struct cost_visit *v) {
    return &v->c->nodes[v->index]->shape;
}

struct cost_shape *xpl_cost_operand(const struct cost_visit *v, uint32_t k) {
    return &v->c->nodes[v->operands[k]]->shape;
}

// A custom fusion may have fewer operands than the gather or scatter inside it: the properties of
// the others count when a call adds up its computations.
void xpl_cost_set_operand(struct cost_visit *v, uint32_t k, float bytes) {
    if (k < v->n->n_operands)
        v->n->operand[k] = bytes;
    else
        xpl_cost_push(v->c, &v->beyond, xpl_cost_key(COST_OPERAND, k, 0), bytes);
}
void xpl_cost_set_utilization(struct cost_visit *v, uint32_t k, float u) {
    if (k < v->n->n_operands)
        v->n->utilization[k] = u;
    else
        xpl_cost_push(v->c, &v->beyond, xpl_cost_key(COST_UTILIZATION, k, 0), u);
}

void xpl_cost_nothing(struct cost_visit *v) {
    v->n->bytes = v->n->output = 0;
    for (uint32_t k = 0; k < v->n->n_operands; k++)
        v->n->operand[k] = 0;
}

float xpl_cost_combiner(struct cost_visit *v, uint32_t nth, int64_t times) {
    const uint32_t k = xpl_cost_called(v->c, v->index, nth);
    return k == UINT32_MAX || !v->c->computations[k]
               ? 0
               : v->c->computations[k]->sums.flops * (float)times;
}
