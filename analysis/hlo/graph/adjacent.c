// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/graph/adjacent.h"

#include <strings.h>

#include "base/json.h"
#include "base/vec.h"

// ---- nodes by name ----

static bool is_named(xpl_str_t name, xpl_str_t wanted) {
    return name.len == wanted.len && name.len && strncasecmp(name.ptr, wanted.ptr, name.len) == 0;
}

static xpl_str_t without_percent(xpl_str_t name) {
    return name.len && name.ptr[0] == '%' ? xpl_str_sub(name, 1, SIZE_MAX) : name;
}

uint32_t xpl_hlo_find_node(const struct xpl_hlo_module *m, xpl_str_t name) {
    name = without_percent(name);
    for (uint32_t i = 0; i < m->n_instructions; i++)
        if (is_named(m->instructions[i].name, name)) return i;
    return UINT32_MAX;
}

uint32_t xpl_hlo_find_computation(const struct xpl_hlo_module *m, xpl_str_t name) {
    name = without_percent(name);
    for (uint32_t i = 0; i < m->n_computations; i++)
        if (is_named(m->computations[i].name, name)) return i;
    return UINT32_MAX;
}

// ---- neighbours ----

// The instructions of one computation that use each of its instructions, in order, each once.
struct users {
    uint32_t first;  // instruction of the computation
    uint32_t *start; // by instruction: where its users begin; one more at the end
    uint32_t *v;
};

struct edge_range { // of a list of instructions
    const uint32_t *at, *end;
};

// Walks a computation's uses.  count: how often each is used, else the users.
static void note_users(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                       struct users *u, uint32_t *last, bool count) {
    for (uint32_t i = 0; i < c->n; i++)
        last[i] = UINT32_MAX;
    for (uint32_t i = c->first; i < c->first + c->n; i++) {
        const uint32_t *const uses = xpl_hlo_module_uses(m, i);
        for (uint32_t k = 0; k < m->edges[i].n_operands; k++) {
            const uint32_t at = uses[k] - c->first;
            if (last[at] == i) continue;
            last[at] = i;
            if (count)
                u->start[at + 1]++;
            else
                u->v[u->start[at]++] = i;
        }
    }
}

static bool find_users(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                       struct xpl_arena *a, struct users *u) {
    uint32_t *const last = xpl_arena_array(a, c->n, sizeof *last);
    u->first = c->first;
    u->start = xpl_arena_zalloc(a, ((size_t)c->n + 1) * sizeof *u->start);
    if (!last || !u->start) return false;
    note_users(m, c, u, last, true);
    for (uint32_t i = 0; i < c->n; i++)
        u->start[i + 1] += u->start[i];
    u->v = xpl_arena_array(a, u->start[c->n], sizeof *u->v);
    if (!u->v) return false;
    note_users(m, c, u, last, false); // moves each start to the next one's
    for (uint32_t i = c->n; i > 0; i--)
        u->start[i] = u->start[i - 1];
    u->start[0] = 0;
    return true;
}

struct listing {
    const struct xpl_hlo_module *m;
    const struct users *users; // NULL: operands
    struct xpl_arena *scratch;
    struct xpl_exec *exec;
    struct xpl_buf *out;
    XPL_VEC(struct edge_range) stack;
};

// A part of an array, which is NULL when the program has no uses at all.
static struct edge_range part_of(const uint32_t *v, size_t from, size_t to) {
    return from == to ? (struct edge_range){v, v} : (struct edge_range){v + from, v + to};
}

static struct edge_range neighbours(const struct listing *l, uint32_t i) {
    if (!l->users) return part_of(xpl_hlo_module_uses(l->m, i), 0, l->m->edges[i].n_operands);
    const uint32_t at = i - l->users->first;
    return part_of(l->users->v, l->users->start[at], l->users->start[at + 1]);
}

static bool push_edges(struct listing *l, uint32_t i) {
    struct edge_range *const slot = xpl_vec_push(l->scratch, &l->stack);
    if (slot) *slot = neighbours(l, i);
    return slot != NULL;
}

// Uses that are looked at for one list.  A program of a million instructions has a few million in
// all; get-tuple-elements of get-tuple-elements are 2^n ways to one, which need not name anything.
enum { MAX_STEPS = 1 << 24 };

// In a module that was read, an operand precedes its user, so the stack is finite.
static xpl_status_t list(struct listing *l, uint32_t instruction, struct xpl_error *err) {
    bool first = true, ok = push_edges(l, instruction);
    for (uint32_t steps = 0; ok && l->stack.n && !l->out->failed; steps++) {
        if (steps % 4096 == 4095 && xpl_exec_cancelled(l->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "neighbours cancelled");
        if (steps == MAX_STEPS)
            XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                             "neighbours through more than %d get-tuple-elements", MAX_STEPS);
        struct edge_range *const r = &l->stack.v[l->stack.n - 1];
        if (r->at == r->end) {
            l->stack.n--;
            continue;
        }
        const uint32_t i = *r->at++;
        const xpl_str_t name = l->m->instructions[i].name;
        if (xpl_str_starts(name, XPL_STR("get-tuple-element"))) {
            ok = push_edges(l, i);
            continue;
        }
        if (!first) xpl_buf_putc(l->out, ',');
        first = false;
        xpl_json_str(l->out, name, false);
    }
    if (!ok || l->out->failed) XPL_RETURN_OOM(err, "neighbours");
    return XPL_OK;
}

xpl_status_t xpl_hlo_adjacent(const struct xpl_hlo_module *m, uint32_t instruction,
                              struct xpl_exec *exec, struct xpl_arena *scratch, struct xpl_buf *out,
                              struct xpl_error *err) {
    struct users users;
    const struct hlo_computation *const c =
        &m->computations[m->instructions[instruction].computation];
    if (!find_users(m, c, scratch, &users)) XPL_RETURN_OOM(err, "neighbours");
    struct listing l = {.m = m, .users = &users, .scratch = scratch, .exec = exec, .out = out};
    xpl_buf_str(out, XPL_STR("{\"consumer_names\":["));
    XPL_TRY(list(&l, instruction, err));
    xpl_buf_str(out, XPL_STR("],\"operand_names\":["));
    l.users = NULL;
    XPL_TRY(list(&l, instruction, err));
    xpl_buf_str(out, XPL_STR("]}"));
    if (out->failed) XPL_RETURN_OOM(err, "neighbours");
    return XPL_OK;
}
