// SPDX-License-Identifier: Apache-2.0
// The instructions that XLA's analysis reaches, and its walk of a computation.  It visits all
// instructions of a called computation.  Of code that an async op starts, it visits only the root's
// dependencies, together with the computation of the op: so they count there, each instruction
// once.
// Programs may start and call one computation after another, each the one before.  If only one op
// starts the code, as compilers write it, no walk reaches any part twice: the code is walked once
// if its sums are cached, see cost_step.
#include "analysis/hlo/cost/impl.h"
#include "analysis/hlo/module/order.h"

struct visits { // an order, NULL until it is needed
    uint32_t *v, n;
};
struct frame {
    uint32_t next, computation;
    const struct visits *visits;
    bool is_started; // the code that the next instruction starts
    bool is_told;    // call `end` after it
};

struct cost_reach {
    bool *alive;            // by instruction
    struct visits *called;  // by computation
    struct visits *started; // likewise, only from the root
    uint32_t *stamps;       // by computation: the last walk that reached it as started code
    uint8_t *starters;      // likewise: how many ops start it; 2: several, or it starts such code
    uint32_t n_ways;
    struct frame *frames; // of the current walk; a computation precedes the ops that start it
};

// ---- ways ----

static const struct visits *visits_of(struct xpl_hlo_costs *c, uint32_t computation, bool started) {
    struct visits *const to =
        started ? &c->reach->started[computation] : &c->reach->called[computation];
    const struct hlo_computation *const h = &c->m->computations[computation];
    if (!xpl_cost_spend(c, 1 + (uint64_t)h->n)) return NULL;
    if (!to->v) to->v = xpl_hlo_visit_order(c->m, h, started, c->a, &to->n);
    c->no_memory |= !to->v;
    return to->v ? to : NULL;
}

static void enter_computation(struct cost_way *w, uint32_t computation, bool started, bool told) {
    const struct visits *const visits = visits_of(w->c, computation, started);
    if (visits)
        w->c->reach->frames[w->depth++] =
            (struct frame){.visits = visits, .computation = computation, .is_told = told};
}

void xpl_cost_way_begin(struct cost_way *w, struct xpl_hlo_costs *c, uint32_t computation) {
    w->c = c;
    w->depth = 0;
    w->starts_again = false;
    w->stamp = ++c->reach->n_ways;
    enter_computation(w, computation, false, false);
}

static void leave(struct cost_way *w) {
    const struct frame *const f = &w->c->reach->frames[--w->depth];
    if (f->is_told) w->end(w->ctx, f->computation);
}

static void enter_started(struct cost_way *w, uint32_t computation) {
    const bool alone = w->c->reach->starters[computation] == 1;
    const enum cost_step step = alone ? w->step(w->ctx, computation) : COST_STEP_GO;
    if (step != COST_STEP_KNOWN)
        enter_computation(w, computation, true, step == COST_STEP_GO_AND_TELL);
}

static uint32_t started_by(const struct xpl_hlo_costs *c, uint32_t index) {
    return c->m->instructions[index].opcode == XPL_HLO_ASYNC_START ? xpl_cost_called(c, index, 0)
                                                                   : UINT32_MAX;
}

uint32_t xpl_cost_way_next(struct cost_way *w) {
    struct cost_reach *const r = w->c->reach;
    while (w->depth && !xpl_cost_stopped(w->c)) {
        struct frame *const f = &r->frames[w->depth - 1];
        if (f->next == f->visits->n) {
            leave(w);
            continue;
        }
        const uint32_t index = f->visits->v[f->next], started = started_by(w->c, index);
        if (started != UINT32_MAX && r->stamps[started] != w->stamp) {
            r->stamps[started] = w->stamp;
            f->is_started = true;
            enter_started(w, started);
            continue;
        }
        w->starts_again = started != UINT32_MAX && !f->is_started;
        f->is_started = false;
        f->next++;
        return index;
    }
    return UINT32_MAX;
}

// ---- reachable instructions ----

struct reaching {
    struct xpl_hlo_costs *c;
    bool *seen;      // by computation
    bool *started;   // likewise, by ops that start it
    uint32_t *stack; // computations to go through
    uint32_t depth;
};

static void reach_computation(struct reaching *r, uint32_t computation) {
    if (computation == UINT32_MAX || r->seen[computation]) return;
    r->seen[computation] = true;
    r->stack[r->depth++] = computation;
}

static void reach_calls(struct reaching *r, uint32_t caller) {
    const struct xpl_hlo_module *const m = r->c->m;
    if (!xpl_cost_extent(r->c, caller) || m->instructions[caller].opcode == XPL_HLO_ASYNC_START)
        return;
    const uint32_t mover = xpl_cost_mover(r->c, caller);
    if (mover != UINT32_MAX) {
        reach_computation(r, xpl_cost_called(r->c, mover, 0));
        return;
    }
    for (size_t i = xpl_hlo_first_call(m, caller); i < m->calls.n; i++) {
        if (m->calls.v[i].instruction != caller || !xpl_cost_spend(r->c, 1)) break;
        reach_computation(r, m->calls.v[i].computation);
    }
}

static enum cost_step step_into(void *ctx, uint32_t computation) {
    struct reaching *const r = ctx;
    if (r->started[computation]) return COST_STEP_KNOWN;
    r->started[computation] = true;
    return COST_STEP_GO;
}

static void go(struct reaching *r, uint32_t computation) {
    struct xpl_hlo_costs *const c = r->c;
    struct cost_way w = {.step = step_into, .ctx = r};
    xpl_cost_way_begin(&w, c, computation);
    for (uint32_t i; (i = xpl_cost_way_next(&w)) != UINT32_MAX;) {
        c->reach->alive[i] = true;
        if (w.starts_again && xpl_cost_node_of(c, i)) c->nodes[i]->starts_again = true;
        reach_calls(r, i);
    }
}

// Most computations start nothing: all of them is reached, in any order.
static void go_through(struct reaching *r, uint32_t computation) {
    const struct xpl_hlo_module *const m = r->c->m;
    const struct hlo_computation *const h = &m->computations[computation];
    const size_t first = xpl_hlo_first_call(m, h->first);
    const uint32_t end = h->first + h->n;
    bool starts = false;
    for (size_t i = first; i < m->calls.n && m->calls.v[i].instruction < end && !starts; i++)
        starts = started_by(r->c, m->calls.v[i].instruction) != UINT32_MAX;
    if (starts) {
        go(r, computation);
        return;
    }
    memset(r->c->reach->alive + h->first, true, h->n);
    uint32_t last = UINT32_MAX; // calls of one instruction follow each other
    for (size_t i = first; i < m->calls.n && m->calls.v[i].instruction < end; i++) {
        if (m->calls.v[i].instruction != last) reach_calls(r, last = m->calls.v[i].instruction);
        if (xpl_cost_stopped(r->c)) return;
    }
}

// Calls are in the order of instructions, and a computation precedes the op that starts it: all
// facts about the started code are known when the op is visited.
static void count_starters(const struct xpl_hlo_module *m, uint8_t *starters) {
    for (int twice = 0; twice < 2; twice++) {
        for (size_t i = 0; i < m->calls.n; i++) {
            const struct hlo_call *const k = &m->calls.v[i];
            const struct hlo_instruction *const op = &m->instructions[k->instruction];
            if (op->opcode != XPL_HLO_ASYNC_START) continue;
            if (!twice && starters[k->computation] < 2) starters[k->computation]++;
            if (twice && starters[k->computation] == 2) starters[op->computation] = 2;
        }
    }
}

static struct cost_reach *new_reach(struct xpl_hlo_costs *c) {
    struct xpl_arena *const a = c->a;
    const uint32_t n = c->m->n_computations;
    struct cost_reach *const r = xpl_arena_zalloc(a, sizeof *r);
    if (!r) return NULL;
    r->alive = xpl_arena_zalloc(a, c->m->n_instructions);
    r->called = xpl_arena_zalloc(a, n * sizeof *r->called);
    r->started = xpl_arena_zalloc(a, n * sizeof *r->started);
    r->stamps = xpl_arena_zalloc(a, n * sizeof *r->stamps);
    r->starters = xpl_arena_zalloc(a, n);
    r->frames = xpl_arena_array(a, n, sizeof *r->frames);
    if (r->starters) count_starters(c->m, r->starters);
    return r->alive && r->called && r->started && r->stamps && r->starters && r->frames ? r : NULL;
}

static void find_reach(struct xpl_hlo_costs *c) {
    const uint32_t n = c->m->n_computations;
    struct reaching r = {.c = c,
                         .seen = xpl_arena_zalloc(c->a, n),
                         .started = xpl_arena_zalloc(c->a, n),
                         .stack = xpl_cost_alloc(c, n, sizeof *r.stack)};
    c->reach = new_reach(c);
    c->no_memory |= !c->reach || !r.seen || !r.started;
    if (xpl_cost_stopped(c)) return;
    reach_computation(&r, c->m->entry);
    while (r.depth && !xpl_cost_stopped(c))
        go_through(&r, r.stack[--r.depth]);
}

bool xpl_cost_reaches(struct xpl_hlo_costs *c, uint32_t index) {
    if (!c->reach) find_reach(c);
    return c->reach && c->reach->alive[index];
}
