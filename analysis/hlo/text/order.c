// SPDX-License-Identifier: Apache-2.0
// In which order computations and instructions stand in the text.  Walks keep their own stacks: a
// program may be as deep as it is long.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/text/impl.h"

// ---- computations: callees before callers ----

struct call_frame {
    uint32_t computation;
    size_t next; // of the calls, in the module's list
};

// Where the calls of each computation begin in the module's list, which is in the order of
// instructions.
static size_t first_call(const struct xpl_hlo_module *m, uint32_t computation) {
    const uint32_t first = m->computations[computation].first;
    size_t lo = 0, hi = m->calls.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (m->calls.v[mid].instruction < first)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// The next computation that the frame's one calls and that is not placed; UINT32_MAX: no more.
static uint32_t next_callee(const struct xpl_hlo_module *m, struct call_frame *f,
                            const bool *placed) {
    const struct hlo_computation *const c = &m->computations[f->computation];
    while (f->next < m->calls.n && m->calls.v[f->next].instruction < c->first + c->n) {
        const uint32_t callee = m->calls.v[f->next++].computation;
        if (!placed[callee]) return callee;
    }
    return UINT32_MAX;
}

// A called computation stands before its caller in a module that was read, so that stacks end.
uint32_t *txt_computation_order(const struct xpl_hlo_module *m, struct xpl_arena *scratch,
                                uint32_t *ret_n) {
    uint32_t *const order = xpl_arena_array(scratch, m->n_computations, sizeof *order);
    struct call_frame *const stack = xpl_arena_array(scratch, m->n_computations, sizeof *stack);
    bool *const placed = xpl_arena_zalloc(scratch, m->n_computations);
    bool *const called = xpl_arena_zalloc(scratch, m->n_computations);
    if (!order || !stack || !placed || !called) return NULL;
    for (size_t i = 0; i < m->calls.n; i++)
        called[m->calls.v[i].computation] = true;
    uint32_t n = 0;
    for (uint32_t c = 0; c < m->n_computations; c++) {
        if (called[c]) continue;
        uint32_t depth = 1;
        stack[0] = (struct call_frame){c, first_call(m, c)};
        while (depth) {
            struct call_frame *const f = &stack[depth - 1];
            const uint32_t callee = next_callee(m, f, placed);
            if (callee != UINT32_MAX) {
                stack[depth++] = (struct call_frame){callee, first_call(m, callee)};
                continue;
            }
            placed[f->computation] = true;
            order[n++] = f->computation;
            depth--;
        }
    }
    *ret_n = n;
    return order;
}

// ---- instructions ----

// The schedule names each instruction of the computation at most once.
static uint32_t *read_schedule(struct hlo_text *t, const struct hlo_computation *c,
                               struct xpl_hlo_ints v, struct xpl_arena *scratch, uint32_t *ret_n) {
    uint32_t *const order = xpl_arena_array(scratch, c->n, sizeof *order);
    bool *const placed = xpl_arena_zalloc(scratch, c->n);
    if (!order || !placed) return NULL;
    uint32_t n = 0;
    for (int64_t id; xpl_hlo_ints_next(&v, &id);) {
        const uint32_t at = xpl_hlo_module_by_id(t->m, c, id);
        if (at == UINT32_MAX || placed[at - c->first]) {
            txt_malformed(t);
            break;
        }
        placed[at - c->first] = true;
        order[n++] = at;
    }
    *ret_n = n;
    return order;
}

struct frame {
    uint32_t instruction, next; // of its control predecessors, then operands
};

// What must stand before the frame's instruction and does not yet; UINT32_MAX: nothing more.  XLA
// takes control predecessors first, the last of them first.
static uint32_t next_before(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                            struct frame *f, const bool *placed) {
    const struct hlo_edges *const e = &m->edges[f->instruction];
    const uint32_t *const v = xpl_hlo_module_uses(m, f->instruction);
    while (f->next < e->n_operands + e->n_control) {
        const uint32_t k = f->next++;
        const uint32_t at =
            k < e->n_control ? v[e->n_operands + e->n_control - 1 - k] : v[k - e->n_control];
        if (!placed[at - c->first]) return at;
    }
    return UINT32_MAX;
}

// Marks what another instruction of the computation uses: the rest are where walks begin.  To be
// waited for is no use.
static void mark_used(const struct xpl_hlo_module *m, const struct hlo_computation *c, bool *used) {
    for (uint32_t i = c->first; i < c->first + c->n; i++) {
        const struct hlo_edges *const e = &m->edges[i];
        const uint32_t *const v = xpl_hlo_module_uses(m, i);
        for (uint32_t k = 0; k < e->n_operands; k++)
            used[v[k] - c->first] = true;
    }
}

// Operands stand before their users in a module that was read, so that stacks end.
static uint32_t *post_order(const struct hlo_text *t, const struct hlo_computation *c,
                            struct xpl_arena *scratch, uint32_t *ret_n) {
    uint32_t *const order = xpl_arena_array(scratch, c->n, sizeof *order);
    struct frame *const stack = xpl_arena_array(scratch, c->n, sizeof *stack);
    bool *const placed = xpl_arena_zalloc(scratch, c->n);
    bool *const used = xpl_arena_zalloc(scratch, c->n);
    if (!order || !stack || !placed || !used) return NULL;
    mark_used(t->m, c, used);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (used[i]) continue;
        uint32_t depth = 0;
        stack[depth++] = (struct frame){c->first + i, 0};
        while (depth) {
            struct frame *const f = &stack[depth - 1];
            const uint32_t before = next_before(t->m, c, f, placed);
            if (before != UINT32_MAX) {
                stack[depth++] = (struct frame){before, 0};
                continue;
            }
            placed[f->instruction - c->first] = true;
            order[n++] = f->instruction;
            depth--;
        }
    }
    *ret_n = n;
    return order;
}

uint32_t *txt_instruction_order(struct hlo_text *t, const struct hlo_computation *c,
                                const struct xpl_hlo_ints *schedule, struct xpl_arena *scratch,
                                uint32_t *ret_n) {
    if (schedule) return read_schedule(t, c, *schedule, scratch, ret_n);
    return post_order(t, c, scratch, ret_n);
}
