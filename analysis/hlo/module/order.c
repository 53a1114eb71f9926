// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/module/order.h"

size_t xpl_hlo_first_call(const struct xpl_hlo_module *m, uint32_t index) {
    size_t lo = 0, hi = m->calls.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (m->calls.v[mid].instruction < index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct frame {
    uint32_t instruction, next; // of its control predecessors and operands
};

struct walk {
    const struct xpl_hlo_module *m;
    const struct hlo_computation *c;
    bool operands_first;
    uint32_t *order, n;
    struct frame *stack;
    bool *placed; // by place in the computation
};

static bool walk_begin(struct walk *w, struct xpl_arena *a) {
    w->order = xpl_arena_array(a, w->c->n, sizeof *w->order);
    w->stack = xpl_arena_array(a, w->c->n, sizeof *w->stack);
    w->placed = xpl_arena_zalloc(a, w->c->n);
    return w->order && w->stack && w->placed;
}

// The nth dependency of an instruction.  Visits begin with its operands; a post order with its
// control predecessors, the last of them first.
static uint32_t nth_before(const struct walk *w, uint32_t instruction, uint32_t nth) {
    const struct hlo_edges *const e = &w->m->edges[instruction];
    const uint32_t *const v = xpl_hlo_module_uses(w->m, instruction);
    if (w->operands_first) return v[nth];
    return nth < e->n_control ? v[e->n_operands + e->n_control - 1 - nth] : v[nth - e->n_control];
}

// The next dependency of the frame's instruction that is not placed yet; UINT32_MAX: none.
static uint32_t next_before(const struct walk *w, struct frame *f) {
    const struct hlo_edges *const e = &w->m->edges[f->instruction];
    while (f->next < e->n_operands + e->n_control) {
        const uint32_t at = nth_before(w, f->instruction, f->next++);
        if (!w->placed[at - w->c->first]) return at;
    }
    return UINT32_MAX;
}

// In a module that was read, operands precede their users, so stacks are finite.
static void walk_from(struct walk *w, uint32_t instruction) {
    uint32_t depth = 0;
    if (w->placed[instruction - w->c->first]) return;
    w->stack[depth++] = (struct frame){instruction, 0};
    while (depth) {
        struct frame *const f = &w->stack[depth - 1];
        const uint32_t before = next_before(w, f);
        if (before != UINT32_MAX) {
            w->stack[depth++] = (struct frame){before, 0};
            continue;
        }
        w->placed[f->instruction - w->c->first] = true;
        w->order[w->n++] = f->instruction;
        depth--;
    }
}

// Marks the operands of other instructions of the computation; `waited`: also control predecessors.
// Walks begin at the others.
static bool *mark_used(const struct walk *w, bool waited, struct xpl_arena *a) {
    const struct hlo_computation *const c = w->c;
    bool *const used = xpl_arena_zalloc(a, c->n);
    for (uint32_t i = c->first; used && i < c->first + c->n; i++) {
        const struct hlo_edges *const e = &w->m->edges[i];
        const uint32_t *const v = xpl_hlo_module_uses(w->m, i);
        for (uint32_t k = 0; k < e->n_operands + (waited ? e->n_control : 0); k++)
            used[v[k] - c->first] = true;
    }
    return used;
}

uint32_t *xpl_hlo_post_order(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                             struct xpl_arena *a, uint32_t *ret_n) {
    struct walk w = {.m = m, .c = c};
    const bool *const used = walk_begin(&w, a) ? mark_used(&w, false, a) : NULL;
    if (!used) return NULL;
    for (uint32_t i = 0; i < c->n; i++)
        if (!used[i]) walk_from(&w, c->first + i);
    *ret_n = w.n;
    return w.order;
}

uint32_t *xpl_hlo_visit_order(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                              bool root_alone, struct xpl_arena *a, uint32_t *ret_n) {
    struct walk w = {.m = m, .c = c, .operands_first = true};
    if (!walk_begin(&w, a)) return NULL;
    const bool *const used = root_alone ? NULL : mark_used(&w, true, a);
    if (!root_alone && !used) return NULL;
    for (uint32_t i = 0; i < c->n && used; i++)
        if (!used[i] && c->first + i != c->root) walk_from(&w, c->first + i);
    walk_from(&w, c->root);
    *ret_n = w.n;
    return w.order;
}
