// SPDX-License-Identifier: Apache-2.0
// Which instructions are near one of their computation.  Those of other computations are shown
// whenever their caller is, so that only one computation needs a search.
#include "analysis/tools/graph_viewer/impl.h"

enum { MAX_USERS = 16 }; // with more, users are not followed

// A breadth-first search.  As in XLA an instruction can come out of the queue again, at the same
// distance or one more; the last time decides whether its users count as left out.
struct search {
    struct graph *g;
    const struct hlo_computation *c;
    uint8_t *state;          // enum graph_shown
    uint32_t *pushed[2];     // by parity of the distance: the last at which it was queued, plus 1
    XPL_VEC(uint64_t) queue; // instruction of the computation, distance
    bool failed;
};

static void push_instruction(struct search *s, uint32_t i, uint32_t distance) {
    uint32_t *const pushed = &s->pushed[distance & 1][i - s->c->first];
    if (*pushed == distance + 1) return;
    *pushed = distance + 1;
    uint64_t *const slot = xpl_vec_push(s->g->arena, &s->queue);
    if (slot)
        *slot = (uint64_t)distance << 32 | i;
    else
        s->failed = true;
}

static void push_operands(struct search *s, uint32_t i, uint32_t distance) {
    const struct graph *const g = s->g;
    const uint32_t opcode = graph_at(g, i)->opcode;
    if (opcode == XPL_HLO_TUPLE && i != g->start) return;
    const uint32_t *const uses = graph_uses(g, i);
    for (uint32_t k = 0; k < g->m->edges[i].n_operands; k++) {
        if (s->state[uses[k] - s->c->first] != GRAPH_HIDDEN) continue;
        const bool free =
            opcode == XPL_HLO_BITCAST || graph_at(g, uses[k])->opcode == XPL_HLO_BITCAST;
        push_instruction(s, uses[k], distance + !free);
    }
}

static void visit(struct search *s, uint32_t i, uint32_t distance) {
    const struct graph *const g = s->g;
    uint8_t *const state = &s->state[i - s->c->first];
    *state = GRAPH_SHOWN;
    if (distance == g->width) return;
    push_operands(s, i, distance);
    if (graph_at(g, i)->opcode == XPL_HLO_CONSTANT) return;
    const uint32_t first = g->users_at[i], end = g->users_at[i + 1];
    if (end - first > MAX_USERS) {
        *state = GRAPH_NOT_ALL_USERS;
        return;
    }
    for (uint32_t k = first; k < end; k++)
        if (s->state[g->users[k] - s->c->first] == GRAPH_HIDDEN)
            push_instruction(s, g->users[k], distance + 1);
}

// ---- hidden neighbours ----

static bool counts_as_shown(const struct search *s, uint32_t i) {
    return s->state[i - s->c->first] != GRAPH_HIDDEN ||
           graph_at(s->g, i)->opcode == XPL_HLO_CONSTANT;
}

static enum graph_shown state_among(const struct search *s, uint32_t i, enum graph_shown state) {
    const struct graph *const g = s->g;
    const uint32_t *const uses = graph_uses(g, i);
    const uint32_t n = g->m->edges[i].n_operands;
    uint32_t there = 0;
    for (uint32_t k = 0; k < n; k++)
        there += counts_as_shown(s, uses[k]);
    if (n && there < n) return there ? GRAPH_SOME_OPERANDS : GRAPH_NO_OPERANDS;
    if (state != GRAPH_NOT_ALL_USERS) return state;
    for (uint32_t k = g->users_at[i]; k < g->users_at[i + 1]; k++)
        if (!counts_as_shown(s, g->users[k])) return state;
    return GRAPH_SHOWN;
}

xpl_status_t xpl_graph_filter(struct graph *g, struct xpl_error *err) {
    const struct hlo_computation *const c = &g->m->computations[g->top];
    struct search s = {.g = g, .c = c};
    s.state = xpl_arena_zalloc(g->arena, c->n);
    for (unsigned k = 0; k < 2; k++)
        s.pushed[k] = xpl_arena_zalloc(g->arena, c->n * sizeof *s.pushed[k]);
    if (!s.state || !s.pushed[0] || !s.pushed[1]) XPL_RETURN_OOM(err, "graph");
    push_instruction(&s, g->start, 0);
    for (size_t k = 0; k < s.queue.n && !s.failed; k++) {
        const uint32_t i = (uint32_t)s.queue.v[k];
        visit(&s, i, (uint32_t)(s.queue.v[k] >> 32));
        if (!graph_spend(g, 1 + g->m->edges[i].n_operands) || k % 1024 == 1023)
            XPL_TRY(xpl_graph_check(g, err));
    }
    if (s.failed) XPL_RETURN_OOM(err, "graph");
    // Decides by the instructions found, not by the hidden neighbours of others.
    for (uint32_t i = c->first; i < c->first + c->n; i++) {
        uint8_t *const state = &s.state[i - c->first];
        if (*state != GRAPH_HIDDEN)
            *state = (uint8_t)state_among(&s, i, (enum graph_shown) * state);
    }
    s.state[g->start - c->first] = GRAPH_START;
    g->shown = s.state;
    return XPL_OK;
}
