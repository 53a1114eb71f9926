// SPDX-License-Identifier: Apache-2.0
// Properties by key: those of whole computations, and of parts of tuples.
#include "analysis/hlo/cost/impl.h"
#include "base/vec.h"

static float find_property(const struct cost_sums *s, uint64_t key) {
    uint32_t lo = 0, hi = s->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (s->entries[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->n && s->entries[lo].key == key ? s->entries[lo].v : 0;
}

float xpl_cost_get(const struct cost_node *n, enum cost_kind kind, uint32_t operand,
                   uint32_t path) {
    if (path == 0 && !n->is_call) {
        if (kind == COST_OUTPUT) return n->output;
        if (operand >= n->n_operands) return 0;
        return kind == COST_OPERAND ? n->operand[operand] : n->utilization[operand];
    }
    return n->more ? find_property(n->more, xpl_cost_key(kind, operand, path)) : 0;
}

float xpl_cost_utilization(const struct cost_node *n, uint32_t operand) {
    return xpl_cost_get(n, COST_UTILIZATION, operand, 0);
}

static int by_key(const void *pa, const void *pb) {
    const struct cost_entry *const a = pa, *const b = pb;
    if (a->key != b->key) return a->key > b->key ? 1 : -1;
    return (a->order > b->order) - (a->order < b->order);
}

// The entries, each key once, become those of `s`.
static void keep_entries(struct cost_sums *s, cost_entry_vec *v) {
    xpl_sort(v->v, v->n, sizeof *v->v, by_key);
    s->entries = v->v;
    s->n = (uint32_t)v->n;
    s->has_entries = true;
}

void xpl_cost_note_more(struct xpl_hlo_costs *c, struct cost_node *n, cost_entry_vec *v) {
    struct cost_sums *const s = v->n ? xpl_cost_alloc(c, 1, sizeof *s) : NULL;
    if (!s) return;
    *s = (struct cost_sums){0};
    for (size_t i = 0; i < v->n; i++)
        v->v[i].order = (uint32_t)i;
    keep_entries(s, v);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (kept == 0 || s->entries[kept - 1].key != s->entries[i].key)
            s->entries[kept++] = s->entries[i];
    s->n = kept;
    n->more = s;
}

// ---- a computation ----

struct adding {
    struct xpl_hlo_costs *c;
    struct cost_sums *sums; // flops and bytes are added there
    bool entries;           // requested
    cost_entry_vec v;
    struct xpl_map index; // key to place + 1
};

static void add_property(struct adding *to, uint64_t key, float value) {
    bool is_new;
    if (value == 0 || xpl_cost_stopped(to->c)) return;
    uint64_t *const at = xpl_map_put(to->c->a, &to->index, key, 0, &is_new);
    if (!at) {
        to->c->no_memory = true;
    } else if (is_new) {
        *at = to->v.n;
        xpl_cost_push(to->c, &to->v, key, value);
    } else {
        to->v.v[*at].v += value;
    }
}

static void add_entries(struct adding *to, const struct cost_sums *s) {
    if (!s || !xpl_cost_spend(to->c, 1 + (uint64_t)s->n)) return;
    for (uint32_t i = 0; i < s->n; i++)
        add_property(to, s->entries[i].key, s->entries[i].v);
}

static void add_node(struct adding *to, const struct cost_node *n) {
    if (!xpl_cost_spend(to->c, 1 + (n->is_call ? 0 : 2 * (uint64_t)n->n_operands))) return;
    if (!n->is_call) {
        add_property(to, xpl_cost_key(COST_OUTPUT, 0, 0), n->output);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            add_property(to, xpl_cost_key(COST_OPERAND, k, 0), n->operand[k]);
            add_property(to, xpl_cost_key(COST_UTILIZATION, k, 0), n->utilization[k]);
        }
    }
    add_entries(to, n->more);
}

// Sums are rounded after each addition: the sum of some code depends on the sum before it, so it
// can be cached only if nothing precedes it.
static enum cost_step step_into(void *ctx, uint32_t computation) {
    struct adding *const to = ctx;
    const struct cost_sums *const known = to->c->computations[computation]->started;
    if (to->sums->flops != 0 || to->sums->bytes != 0 || to->v.n) return COST_STEP_GO;
    if (!known || (to->entries && !known->has_entries)) return COST_STEP_GO_AND_TELL;
    to->sums->flops = known->flops;
    to->sums->bytes = known->bytes;
    if (to->entries) add_entries(to, known);
    return COST_STEP_KNOWN;
}

static void keep_started(void *ctx, uint32_t computation) {
    struct adding *const to = ctx;
    struct xpl_hlo_costs *const c = to->c;
    const uint32_t n = (uint32_t)to->v.n;
    struct cost_sums *const s =
        xpl_cost_spend(c, 1 + (uint64_t)n) ? xpl_cost_alloc(c, 1, sizeof *s) : NULL;
    if (!s) return;
    *s = (struct cost_sums){.flops = to->sums->flops, .bytes = to->sums->bytes};
    s->has_entries = to->entries;
    s->entries = n ? xpl_cost_alloc(c, n, sizeof *s->entries) : NULL;
    if (n && !s->entries) return;
    if (n) memcpy(s->entries, to->v.v, n * sizeof *s->entries);
    s->n = n;
    c->computations[computation]->started = s;
}

void xpl_cost_sum(struct xpl_hlo_costs *c, uint32_t computation, bool entries) {
    struct cost_sums *const sums = &c->computations[computation]->sums;
    struct adding all = {.c = c, .sums = sums, .entries = entries};
    struct cost_way w = {.step = step_into, .end = keep_started, .ctx = &all};
    sums->flops = sums->bytes = 0;
    xpl_cost_way_begin(&w, c, computation);
    for (uint32_t i; (i = xpl_cost_way_next(&w)) != UINT32_MAX;) {
        const struct cost_node *const node = c->nodes[i];
        sums->flops += node->flops;
        sums->bytes += node->bytes;
        if (entries) add_node(&all, node);
    }
    if (entries && !xpl_cost_stopped(c)) keep_entries(sums, &all.v);
}

// ---- several computations ----

// The combination of two entries of one key; a key that only one side has is 0 on the other.
static float added(float a, float b) {
    return a + b;
}
static float larger(float a, float b) {
    return b != 0 && b > a ? b : a;
}

static void merge(struct xpl_hlo_costs *c, struct cost_sums *to, const struct cost_sums *b,
                  float (*op)(float, float)) {
    to->flops = op(to->flops, b->flops);
    to->bytes = op(to->bytes, b->bytes);
    const size_t n = (size_t)to->n + b->n;
    struct cost_entry *const v = xpl_cost_spend(c, 1 + n) ? xpl_cost_alloc(c, n, sizeof *v) : NULL;
    if (!v) return;
    uint32_t i = 0, k = 0, m = 0;
    while (i < to->n || k < b->n) {
        const uint64_t x = i < to->n ? to->entries[i].key : UINT64_MAX;
        const uint64_t y = k < b->n ? b->entries[k].key : UINT64_MAX;
        const float p = x <= y ? to->entries[i++].v : 0, q = y <= x ? b->entries[k++].v : 0;
        v[m++] = (struct cost_entry){.key = x < y ? x : y, .v = op(p, q)};
    }
    to->entries = v;
    to->n = m;
}

void xpl_cost_sums_add(struct xpl_hlo_costs *c, struct cost_sums *to, const struct cost_sums *b) {
    merge(c, to, b, added);
}
void xpl_cost_sums_max(struct xpl_hlo_costs *c, struct cost_sums *to, const struct cost_sums *b) {
    merge(c, to, b, larger);
}
