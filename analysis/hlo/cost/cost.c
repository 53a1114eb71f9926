// SPDX-License-Identifier: Apache-2.0
// The order in which instructions are visited, and XProf's view of the sums.
#include "analysis/hlo/cost/cost.h"

#include "analysis/hlo/cost/impl.h"
#include "analysis/hlo/module/order.h"
#include "analysis/hlo/types.h"
#include "base/vec.h"

struct xpl_hlo_costs *xpl_hlo_costs_new(const struct xpl_hlo_module *m, struct xpl_arena *a) {
    struct xpl_hlo_costs *const c = xpl_arena_zalloc(a, sizeof *c);
    if (!c) return NULL;
    c->m = m;
    c->a = a;
    c->work = XPL_HLO_COST_WORK;
    c->nodes = xpl_arena_zalloc(a, m->n_instructions * sizeof *c->nodes);
    c->computations = xpl_arena_zalloc(a, m->n_computations * sizeof(struct cost_computation *));
    c->movers = xpl_arena_zalloc(a, m->n_computations * sizeof *c->movers);
    return c->nodes && c->computations && c->movers ? c : NULL;
}

void xpl_hlo_costs_of_cpu(struct xpl_hlo_costs *c) {
    c->is_cpu = true;
}

void xpl_hlo_costs_of_more_calls(struct xpl_hlo_costs *c) {
    c->more_calls = true;
}

// ---- calls ----

// Computations to look into: each once, in any order.
struct needed {
    struct xpl_hlo_costs *c;
    XPL_VEC(uint32_t) v;
    size_t next; // whose own calls are not noted yet
};

// `summed`: its sums are needed, too.
static void need_computation(struct needed *to, uint32_t computation, enum cost_extent extent,
                             bool summed) {
    struct cost_computation *const k = xpl_cost_computation_of(to->c, computation);
    const bool enough = k && k->extent >= extent && (k->is_summed || !summed);
    uint32_t *const slot = k && !enough ? xpl_vec_push(to->c->a, &to->v) : NULL;
    to->c->no_memory |= !slot && !enough;
    if (!slot) return;
    if (k->extent < extent) k->extent = (uint8_t)extent;
    k->is_summed |= summed;
    *slot = computation;
}

// A fusion visits its instructions, and sums them if all properties are needed.  The computation of
// an async op includes the code that the op starts.  All other calls need sums, also the
// computation inside a custom fusion.
static void need_called(struct needed *to, uint32_t caller, uint32_t computation, bool all) {
    struct xpl_hlo_costs *const c = to->c;
    const uint32_t op = c->m->instructions[caller].opcode;
    enum cost_extent extent = xpl_cost_extent(c, caller);
    if (all && op == XPL_HLO_FUSION) extent = COST_EXTENT_ALL;
    const uint32_t mover = extent ? xpl_cost_mover(c, caller) : UINT32_MAX;
    if (xpl_cost_stopped(c) || !extent) return;
    if (mover == UINT32_MAX)
        need_computation(to, computation, extent,
                         op == XPL_HLO_FUSION ? all : op != XPL_HLO_ASYNC_START);
    else if (xpl_cost_called(c, mover, 0) != UINT32_MAX)
        need_computation(to, xpl_cost_called(c, mover, 0), COST_EXTENT_FLOPS, true);
}

// Notes the computations that the instructions from `first` on call; `all`: all their properties
// are needed.
static void need_calls(struct needed *to, uint32_t first, uint32_t n, bool all) {
    const struct xpl_hlo_module *const m = to->c->m;
    for (size_t i = xpl_hlo_first_call(m, first); i < m->calls.n; i++) {
        const uint32_t caller = m->calls.v[i].instruction;
        if (caller >= first + n || !xpl_cost_spend(to->c, 1)) break;
        if (xpl_cost_reaches(to->c, caller))
            need_called(to, caller, m->calls.v[i].computation, all);
        if (xpl_cost_stopped(to->c)) break;
    }
}

static int by_number(const void *pa, const void *pb) {
    const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    return (a > b) - (a < b);
}

static void inspect_computation(struct xpl_hlo_costs *c, uint32_t computation) {
    const struct hlo_computation *const h = &c->m->computations[computation];
    struct cost_computation *const k = c->computations[computation];
    const bool all = k->extent == COST_EXTENT_ALL;
    for (uint32_t i = h->first; i < h->first + h->n && !xpl_cost_stopped(c); i++) {
        // Earlier visits of fusions stored too little.
        if (all && c->m->instructions[i].opcode == XPL_HLO_FUSION && c->nodes[i])
            c->nodes[i]->visited = false;
        if (xpl_cost_reaches(c, i)) xpl_cost_visit_instruction(c, i);
    }
    if (k->is_summed && !xpl_cost_stopped(c)) xpl_cost_sum(c, computation, all);
}

// In a module that was read, a computation precedes its callers: in this order, the results of
// called computations are complete.
static void visit_with_calls(struct xpl_hlo_costs *c, uint32_t index) {
    struct needed needed = {.c = c};
    need_calls(&needed, index, 1, false);
    while (needed.next < needed.v.n && !xpl_cost_stopped(c)) {
        const uint32_t k = needed.v.v[needed.next++];
        const struct hlo_computation *const h = &c->m->computations[k];
        need_calls(&needed, h->first, h->n, c->computations[k]->extent == COST_EXTENT_ALL);
    }
    xpl_sort(needed.v.v, needed.v.n, sizeof *needed.v.v, by_number);
    for (size_t i = 0; i < needed.v.n && !xpl_cost_stopped(c); i++)
        inspect_computation(c, needed.v.v[i]);
    if (!xpl_cost_stopped(c)) xpl_cost_visit_instruction(c, index);
}

// ---- XProf's view ----

static int64_t whole(float v) {
    if (v >= 0x1p62F) return INT64_C(1) << 62;
    return v > -0x1p62F ? (int64_t)v : 0;
}

// How many times faster the device computes with operands of that many bits.
static float speed(unsigned bits) {
    return bits == 8 ? 2 : bits == 4 ? 4 : 1;
}

static unsigned operand_bits(const struct xpl_hlo_costs *c, uint32_t operand) {
    const uint32_t type = c->nodes[operand]->shape.type;
    return type == HLO_TYPE_PRED ? 1 : xpl_hlo_element_bits(type);
}

static float device_speed(struct xpl_hlo_costs *c, uint32_t index) {
    const uint32_t *const v = xpl_hlo_module_uses(c->m, index);
    const struct hlo_edges *const e = &c->m->edges[index];
    unsigned widest = 0;
    for (uint32_t k = 0; k < e->n_operands; k++)
        if (operand_bits(c, v[k]) > widest) widest = operand_bits(c, v[k]);
    if (c->m->instructions[index].opcode != XPL_HLO_CUSTOM_CALL) return speed(widest);
    struct xpl_hlo_message in;
    xpl_hlo_message_read((xpl_bytes_t){c->m->instructions[index].p, c->m->instructions[index].len},
                         &in);
    const bool gemm = xpl_cost_is_gemm(xpl_hlo_str(&in, HLO_INSTR_CUSTOM_CALL_TARGET));
    return gemm && e->n_operands ? speed(operand_bits(c, v[0])) : 1;
}

struct traffic {
    const struct cost_node *n;
    enum cost_kind kind;
    uint32_t operand;
    int64_t bytes;
};

static void add_leaf(void *ctx, const struct cost_leaf *leaf) {
    struct traffic *const t = ctx;
    const uint32_t type = leaf->shape->type;
    if (leaf->path == UINT32_MAX || type == HLO_TYPE_TOKEN || type == HLO_TYPE_OPAQUE) return;
    if (leaf->shape->memory_space == 0)
        t->bytes =
            xpl_cost_plus(t->bytes, whole(xpl_cost_get(t->n, t->kind, t->operand, leaf->path)));
}

static void add_traffic(struct xpl_hlo_costs *c, const struct cost_shape *s, struct traffic *t) {
    // Parts of tuples have separate properties only if a node has more than the usual ones.
    if (s->type != HLO_TYPE_TUPLE || t->n->more) xpl_cost_each_leaf(c, s, false, add_leaf, t);
}

// XLA returns -1 for unknown costs, and sums may be below that.
static int64_t at_least_0(int64_t v) {
    return v > 0 ? v : 0;
}

static void answer(struct xpl_hlo_costs *c, uint32_t index, struct xpl_hlo_cost *ret) {
    const struct cost_node *const n = c->nodes[index];
    const uint32_t *const v = xpl_hlo_module_uses(c->m, index);
    const float slower = n->flops - n->flops / device_speed(c, index);
    ret->model_flops = at_least_0(whole(n->flops));
    ret->device_flops = at_least_0(whole(n->flops) - whole(slower));
    ret->bytes = at_least_0(whole(n->bytes));
    if (ret->bytes == 0) return;
    struct traffic read = {.n = n, .kind = COST_OPERAND}, written = {.n = n, .kind = COST_OUTPUT};
    for (uint32_t k = 0; k < n->n_operands; k++) {
        read.operand = k;
        add_traffic(c, &c->nodes[v[k]]->shape, &read);
    }
    add_traffic(c, &n->shape, &written);
    ret->hbm_read_bytes = at_least_0(read.bytes);
    ret->hbm_written_bytes = at_least_0(written.bytes);
}

// In the order of instructions, so that those that the budget is enough for are always the same.
static void find_all(struct xpl_hlo_costs *c) {
    struct xpl_hlo_cost *const found = xpl_arena_zalloc(c->a, c->m->n_instructions * sizeof *found);
    c->no_memory |= !found;
    for (uint32_t i = 0; i < c->m->n_instructions && !xpl_cost_stopped(c); i++) {
        if (!xpl_cost_reaches(c, i)) continue;
        if (!c->nodes[i] || !c->nodes[i]->visited) visit_with_calls(c, i);
        if (!xpl_cost_stopped(c)) answer(c, i, &found[i]);
        if (xpl_cost_stopped(c)) found[i] = (struct xpl_hlo_cost){0}; // the half of an answer
    }
    c->found = found;
}

xpl_status_t xpl_hlo_cost(struct xpl_hlo_costs *c, uint32_t index, struct xpl_exec *exec,
                          struct xpl_hlo_cost *ret, struct xpl_error *err) {
    *ret = (struct xpl_hlo_cost){0};
    c->exec = exec;
    if (!c->found && !c->no_memory && !c->cancelled) find_all(c);
    if (c->no_memory) XPL_RETURN_OOM(err, "HLO costs");
    if (c->cancelled) XPL_RETURN_ERROR(err, XPL_CANCELLED, "conversion cancelled");
    *ret = c->found[index];
    return XPL_OK;
}
