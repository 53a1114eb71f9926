// SPDX-License-Identifier: Apache-2.0
// Fusions: an instruction inside runs as often as its result is used.  The used share is propagated
// from the root to the parameters: an elementwise instruction passes its result's share on to its
// operands; other instructions start with the shares that they use themselves.  Equal uses through
// several elementwise paths are computed once: the instruction from which elementwise paths lead
// here identifies a use.
#include "analysis/hlo/cost/impl.h"

#include <math.h>

#include "analysis/hlo/module/order.h"

enum { SMALL_CONSTANT = 8 }; // elements: written into the code

// Instructions, by id; never changed once they are made, so that others may share them.
struct set {
    const uint32_t *v;
    uint32_t n;
};

struct inside { // a fused computation
    struct cost_visit *v;
    const struct hlo_computation *h;
    const uint32_t *order;
    struct set *uses;   // by instruction: from where it is used
    float *as_root;     // how much of it is used from other than elementwise instructions
    float *used;        // how much of it is used
    struct xpl_map gte; // (instruction, index) to the get-tuple-element
    cost_entry_vec more;
};

static struct xpl_hlo_costs *costs(const struct inside *f) {
    return f->v->c;
}
static struct cost_node *node_of(const struct inside *f, uint32_t index) {
    return costs(f)->nodes[index];
}

// ---- utilization ----

static void set_add(struct inside *f, struct set *to, const uint32_t *v, uint32_t n) {
    const struct hlo_instruction *const all = costs(f)->m->instructions;
    if (to->v == v && to->n == n) return;
    if (to->n == 0) {
        *to = (struct set){v, n};
        return;
    }
    uint32_t i = 0, k = 0, m = 0;
    uint32_t *const u = xpl_cost_spend(costs(f), (uint64_t)to->n + n)
                            ? xpl_cost_alloc(costs(f), (size_t)to->n + n, sizeof *u)
                            : NULL;
    if (!u) return;
    while (i < to->n || k < n) {
        const bool left = k == n || (i < to->n && all[to->v[i]].id <= all[v[k]].id);
        const uint32_t x = left ? to->v[i++] : v[k++];
        if (m == 0 || u[m - 1] != x) u[m++] = x;
    }
    *to = (struct set){u, m};
}

// A bitcast that only gives its operand another name: its use is its operand's.  It makes a fusion
// no elementwise one, all the same.
static bool keeps_dimensions(const struct inside *f, uint32_t at) {
    const uint32_t *const operand = xpl_hlo_module_uses(costs(f)->m, at);
    const xpl_bytes_t a = node_of(f, at)->shape.bytes;
    if (!operand || !xpl_cost_spend_shape(costs(f), &node_of(f, at)->shape)) return false;
    const xpl_bytes_t b = node_of(f, *operand)->shape.bytes;
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool is_elementwise(const struct inside *f, uint32_t at) {
    const enum xpl_hlo_op op = (enum xpl_hlo_op)costs(f)->m->instructions[at].opcode;
    const uint8_t kind = xpl_hlo_opcode(op)->kind;
    return kind == HLO_OP_ELEMENTWISE || kind == HLO_OP_BITCAST_CONVERT || op == XPL_HLO_COPY ||
           op == XPL_HLO_COPY_START || op == XPL_HLO_COPY_DONE || node_of(f, at)->elementwise;
}

static bool are_elementwise(const struct inside *f) {
    for (uint32_t i = f->h->first; i < f->h->first + f->h->n; i++)
        if (costs(f)->m->instructions[i].opcode != XPL_HLO_PARAMETER && !is_elementwise(f, i))
            return false;
    return true;
}

// Of whole elements, at least.
static float round_up(float used, int64_t elements) {
    const double whole = ceil((double)(used * (float)elements));
    return elements == 0 ? 0 : (float)(whole / (double)elements);
}

static void use_operands(struct inside *f, uint32_t at) {
    const struct xpl_hlo_module *const m = costs(f)->m;
    const uint32_t *const operands = xpl_hlo_module_uses(m, at);
    const struct set *const own = &f->uses[at - f->h->first];
    const uint32_t op = m->instructions[at].opcode;
    const bool through = op == XPL_HLO_TUPLE || op == XPL_HLO_GET_TUPLE_ELEMENT ||
                         is_elementwise(f, at) ||
                         (op == XPL_HLO_BITCAST && keeps_dimensions(f, at));
    for (uint32_t k = 0; k < m->edges[at].n_operands && !xpl_cost_stopped(costs(f)); k++) {
        const uint32_t to = operands[k] - f->h->first;
        if (through) {
            set_add(f, &f->uses[to], own->v, own->n);
            continue;
        }
        const float used = f->used[at - f->h->first] * xpl_cost_utilization(node_of(f, at), k);
        set_add(f, &f->uses[to], &operands[k], 1);
        f->as_root[to] += round_up(used, node_of(f, operands[k])->shape.leaf_elements);
    }
}

static void use_all(struct inside *f) {
    const uint32_t root = f->h->root - f->h->first;
    f->as_root[root] = 1;
    f->uses[root] = (struct set){&f->h->root, 1};
    f->v->n->flops = 0;
    for (uint32_t i = f->h->n; i-- > 0 && !xpl_cost_stopped(costs(f));) {
        const uint32_t at = f->order[i], own = at - f->h->first;
        const struct set *const uses = &f->uses[own];
        if (!xpl_cost_spend(costs(f), 1 + (uint64_t)uses->n)) return;
        for (uint32_t k = 0; k < uses->n; k++)
            f->used[own] += f->as_root[uses->v[k] - f->h->first];
        f->v->n->flops += f->used[own] * node_of(f, at)->flops;
        use_operands(f, at);
    }
}

// ---- output ----

// A dynamic-update-slice that makes an output writes only the update, and does not read the updated
// operand.
static bool note_update(struct inside *f, uint32_t at, int64_t *ret) {
    const struct xpl_hlo_module *const m = costs(f)->m;
    if (m->instructions[at].opcode != XPL_HLO_DYNAMIC_UPDATE_SLICE) return false;
    const uint32_t *const operands = xpl_hlo_module_uses(m, at);
    if (!operands || m->edges[at].n_operands < 2) return false;
    *ret = node_of(f, operands[1])->shape.size;
    node_of(f, at)->utilization[0] = 0;
    return true;
}

static void write_leaf(void *ctx, const struct cost_leaf *leaf) {
    struct inside *const f = ctx;
    const struct xpl_hlo_module *const m = costs(f)->m;
    const uint32_t root = f->h->root;
    int64_t size = leaf->shape->size;
    if (!xpl_cost_is_array(leaf->shape)) return;
    if (leaf->depth == 0) {
        (void)note_update(f, root, &size);
    } else if (leaf->depth == 1 && m->instructions[root].opcode == XPL_HLO_TUPLE &&
               leaf->index[0] < m->edges[root].n_operands) {
        (void)note_update(f, xpl_hlo_module_uses(m, root)[leaf->index[0]], &size);
    }
    f->v->n->bytes += (float)size;
    f->v->n->output += (float)size;
    if (leaf->depth)
        xpl_cost_push(costs(f), &f->more, xpl_cost_key(COST_OUTPUT, 0, leaf->path), (float)size);
}

// ---- parameters ----

// NaN counts as once.
static float at_most_once(float used) {
    return used < 1 ? used : 1;
}

static int64_t read_bytes(const struct inside *f, uint32_t at) {
    const float bytes = (float)node_of(f, at)->shape.size * at_most_once(f->used[at - f->h->first]);
    return xpl_cost_truncated(roundf(bytes));
}

struct parameter {
    struct inside *f;
    uint32_t at, number;
    int64_t bytes;
};

static void read_leaf(void *ctx, const struct cost_leaf *leaf) {
    struct parameter *const p = ctx;
    uint32_t at = p->at;
    for (uint32_t i = 0; i < leaf->depth; i++) {
        const uint64_t *const next = xpl_map_get(&p->f->gte, at, leaf->index[i]);
        if (next) at = (uint32_t)*next;
    }
    const int64_t bytes = read_bytes(p->f, at);
    p->bytes = xpl_cost_plus(p->bytes, bytes);
    xpl_cost_push(costs(p->f), &p->f->more, xpl_cost_key(COST_OPERAND, p->number, leaf->path),
                  (float)bytes);
}

// Messages inside are read for each fusion that calls the computation.
static bool spend_message(struct xpl_hlo_costs *c, uint32_t index) {
    return xpl_cost_spend(c, 1 + c->m->instructions[index].len / COST_BYTES_PER_STEP);
}

// Finds the get-tuple-elements and the parts that they take; the first of several.
static void find_parts(struct inside *f) {
    struct xpl_hlo_costs *const c = costs(f);
    const struct xpl_hlo_module *const m = c->m;
    for (uint32_t i = f->h->first; i < f->h->first + f->h->n; i++) {
        if (m->instructions[i].opcode != XPL_HLO_GET_TUPLE_ELEMENT) continue;
        const uint32_t *const whole = xpl_hlo_module_uses(m, i);
        struct xpl_hlo_message in;
        bool is_new;
        if (!whole) continue;
        if (!spend_message(c, i)) return;
        xpl_hlo_message_read((xpl_bytes_t){m->instructions[i].p, m->instructions[i].len}, &in);
        uint64_t *const at = xpl_map_put(
            c->a, &f->gte, *whole, (uint64_t)xpl_hlo_int(&in, HLO_INSTR_TUPLE_INDEX), &is_new);
        if (at && is_new) *at = i;
        c->no_memory |= !at;
    }
}

static void read_parameter(struct inside *f, uint32_t at) {
    const struct hlo_instruction *const in = &costs(f)->m->instructions[at];
    struct xpl_hlo_message msg;
    if (!spend_message(costs(f), at)) return;
    xpl_hlo_message_read((xpl_bytes_t){in->p, in->len}, &msg);
    struct parameter p = {.f = f, .at = at};
    p.number = (uint32_t)xpl_hlo_int(&msg, HLO_INSTR_PARAMETER_NUMBER);
    if (p.number >= f->v->n->n_operands) return;
    if (node_of(f, at)->shape.type == HLO_TYPE_TUPLE)
        xpl_cost_each_leaf(costs(f), &node_of(f, at)->shape, true, read_leaf, &p);
    else
        p.bytes = read_bytes(f, at);
    xpl_cost_set_operand(f->v, p.number, (float)p.bytes);
    xpl_cost_set_utilization(f->v, p.number, f->used[at - f->h->first]);
}

static void read_inputs(struct inside *f) {
    const struct hlo_instruction *const all = costs(f)->m->instructions;
    bool has_tuple = false;
    for (uint32_t i = f->h->first; i < f->h->first + f->h->n; i++) {
        const struct cost_shape *const s = &node_of(f, i)->shape;
        has_tuple |= all[i].opcode == XPL_HLO_PARAMETER && s->type == HLO_TYPE_TUPLE;
        if (all[i].opcode == XPL_HLO_CONSTANT && s->elements > SMALL_CONSTANT)
            f->v->n->bytes += (float)s->size * at_most_once(f->used[i - f->h->first]);
    }
    if (has_tuple) find_parts(f);
    for (uint32_t k = 0; k < f->v->n->n_operands; k++)
        f->v->n->operand[k] = 0;
    for (uint32_t i = f->h->first; i < f->h->first + f->h->n; i++)
        if (all[i].opcode == XPL_HLO_PARAMETER && !xpl_cost_stopped(costs(f))) read_parameter(f, i);
    for (uint32_t k = 0; k < f->v->n->n_operands; k++)
        f->v->n->bytes += f->v->n->operand[k];
}

// Keys that only the inside sets stay, as in XLA.
static void keep_inside(struct inside *f, const struct cost_sums *sums) {
    for (uint32_t i = 0; i < sums->n && xpl_cost_spend(costs(f), 1); i++) {
        const struct cost_entry *const e = &sums->entries[i];
        const bool beyond = (e->key >> 32 & 0x3fffffff) >= f->v->n->n_operands;
        if ((uint32_t)e->key != 0 || (beyond && e->key >> 62 != COST_OUTPUT))
            xpl_cost_push(costs(f), &f->more, e->key, e->v);
    }
}

// Many fusions may call one computation: its order is made once.
static const uint32_t *order_of(struct xpl_hlo_costs *c, uint32_t computation) {
    struct cost_computation *const k = c->computations[computation];
    uint32_t n;
    if (!k->order) k->order = xpl_hlo_post_order(c->m, &c->m->computations[computation], c->a, &n);
    c->no_memory |= !k->order;
    return k->order;
}

void xpl_cost_fusion(struct cost_visit *v) {
    struct xpl_hlo_costs *const c = v->c;
    const uint32_t k = xpl_cost_called(c, v->index, 0);
    if (k == UINT32_MAX || !c->computations[k]) return;
    struct inside f = {.v = v, .h = &c->m->computations[k]};
    f.order = order_of(c, k);
    f.uses = xpl_cost_alloc(c, f.h->n, sizeof *f.uses);
    f.as_root = xpl_cost_alloc(c, f.h->n, 2 * sizeof *f.as_root);
    if (!f.order || !f.uses || !f.as_root) return;
    memset(f.uses, 0, f.h->n * sizeof *f.uses);
    memset(f.as_root, 0, f.h->n * 2 * sizeof *f.as_root);
    f.used = f.as_root + f.h->n;
    v->n->elementwise = are_elementwise(&f);
    v->n->bytes = v->n->output = 0;
    xpl_cost_each_leaf(c, xpl_cost_result(v), true, write_leaf, &f);
    use_all(&f);
    if (!xpl_cost_stopped(c)) read_inputs(&f);
    keep_inside(&f, &c->computations[k]->sums);
    xpl_cost_note_more(c, v->n, &f.more);
}
