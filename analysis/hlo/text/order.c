// SPDX-License-Identifier: Apache-2.0
// The order of computations and instructions in the text.  Walks keep their own stacks: a program
// may be as deep as it is long.
#include "analysis/hlo/module/order.h"
#include "analysis/hlo/text/impl.h"

// ---- computations: callees before callers ----

struct call_frame {
    uint32_t computation;
    size_t next; // of the calls, in the module's list
};

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

// In a module that was read, a called computation precedes its caller, so stacks are finite.
uint32_t *txt_computation_order(const struct xpl_hlo_module *m, struct xpl_arena *scratch,
                                uint32_t *ret_n) {
    uint32_t *const order = xpl_arena_array(scratch, m->n_computations, sizeof *order);
    struct call_frame *const stack = xpl_arena_array(scratch, m->n_computations, sizeof *stack);
    bool *const placed = xpl_arena_zalloc(scratch, m->n_computations);
    bool *const called = xpl_arena_zalloc(scratch, m->n_computations);
    size_t *const first = xpl_arena_array(scratch, m->n_computations, sizeof *first); // calls
    if (!order || !stack || !placed || !called || !first) return NULL;
    for (size_t i = 0; i < m->calls.n; i++)
        called[m->calls.v[i].computation] = true;
    for (size_t c = 0, at = 0; c < m->n_computations; c++) {
        while (at < m->calls.n && m->calls.v[at].instruction < m->computations[c].first)
            at++;
        first[c] = at;
    }
    uint32_t n = 0;
    for (uint32_t c = 0; c < m->n_computations; c++) {
        if (called[c]) continue;
        uint32_t depth = 1;
        stack[0] = (struct call_frame){c, first[c]};
        while (depth) {
            struct call_frame *const f = &stack[depth - 1];
            const uint32_t callee = next_callee(m, f, placed);
            if (callee != UINT32_MAX) {
                stack[depth++] = (struct call_frame){callee, first[callee]};
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

uint32_t *txt_instruction_order(struct hlo_text *t, const struct hlo_computation *c,
                                const struct xpl_hlo_ints *schedule, struct xpl_arena *scratch,
                                uint32_t *ret_n) {
    if (schedule) return read_schedule(t, c, *schedule, scratch, ret_n);
    return xpl_hlo_post_order(t->m, c, scratch, ret_n);
}
