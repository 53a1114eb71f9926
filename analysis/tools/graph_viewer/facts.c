// SPDX-License-Identifier: Apache-2.0
// Facts about instructions and computations for the rules of a graph.  Facts that cost more than a
// lookup are cached.
#include "analysis/hlo/module/order.h"
#include "analysis/hlo/module/shape.h"
#include "analysis/tools/graph_viewer/impl.h"

// Of an instruction: pairs of bits, known and true.
enum {
    SHAPE_KNOWN = 1,
    IS_SMALL = 2,
    HAS_LAYOUT = 4,
    MERGED_KNOWN = 8,
    IS_MERGED = 16,
};
// Of a computation.
enum {
    INSIDE_KNOWN = 1,
    SHOWS_INSIDE = 2,
    TRIVIAL_KNOWN = 4,
    TRIVIAL_SHIFT = 3, // a row of `trivial`, 0: none
};
enum { SHAPE_DEPTH = 100, SMALL_ELEMENTS = 4096 };

// ---- for all files ----

xpl_status_t xpl_graph_check(struct graph *g, struct xpl_error *err) {
    if (g->work > GRAPH_WORK)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "a graph of more than %d steps",
                         (int)GRAPH_WORK);
    if (xpl_exec_cancelled(g->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "graph cancelled");
    if (g->text.failed || g->scratch.failed) XPL_RETURN_OOM(err, "graph");
    return XPL_OK;
}

void xpl_graph_put_escaped(struct xpl_buf *b, xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++) {
        switch (s.ptr[i]) {
            case '<': xpl_buf_str(b, XPL_STR("&lt;")); break;
            case '>': xpl_buf_str(b, XPL_STR("&gt;")); break;
            case '"': xpl_buf_str(b, XPL_STR("&quot;")); break;
            default: xpl_buf_putc(b, s.ptr[i]);
        }
    }
}

// ---- tables ----

// Users of each instruction in the order of the program, each once.  count: how many they are.
static void note_users(struct graph *g, uint32_t *last, bool count) {
    const struct xpl_hlo_module *const m = g->m;
    for (uint32_t i = 0; i < m->n_instructions; i++)
        last[i] = GRAPH_NONE;
    for (uint32_t i = 0; i < m->n_instructions; i++) {
        const uint32_t *const uses = graph_uses(g, i);
        for (uint32_t k = 0; k < m->edges[i].n_operands; k++) {
            if (last[uses[k]] == i) continue;
            last[uses[k]] = i;
            if (count)
                g->users_at[uses[k] + 1]++;
            else
                g->users[g->users_at[uses[k]]++] = i;
        }
    }
}

static void note_callers(struct graph *g) {
    const struct xpl_hlo_module *const m = g->m;
    for (size_t k = 0; k < m->calls.n; k++) {
        struct graph_callers *const c = &g->callers[m->calls.v[k].computation];
        const uint32_t i = m->calls.v[k].instruction;
        c->any = true;
        if (graph_at(g, i)->opcode == XPL_HLO_CALL && c->n++ == 0) c->first = i;
    }
}

bool xpl_graph_facts(struct graph *g) {
    const struct xpl_hlo_module *const m = g->m;
    const size_t n = m->n_instructions;
    uint32_t *const last = xpl_arena_array(g->arena, n, sizeof *last);
    g->users_at = xpl_arena_zalloc(g->arena, (n + 1) * sizeof *g->users_at);
    g->callers = xpl_arena_zalloc(g->arena, m->n_computations * sizeof *g->callers);
    g->known = xpl_arena_zalloc(g->arena, n);
    g->c_known = xpl_arena_zalloc(g->arena, m->n_computations);
    g->node_of = xpl_arena_zalloc(g->arena, n * sizeof *g->node_of);
    g->cluster_of = xpl_arena_zalloc(g->arena, m->n_computations * sizeof *g->cluster_of);
    if (!last || !g->users_at || !g->callers || !g->known || !g->c_known || !g->node_of ||
        !g->cluster_of)
        return false;
    note_users(g, last, true);
    for (size_t i = 0; i < n; i++)
        g->users_at[i + 1] += g->users_at[i];
    g->users = xpl_arena_array(g->arena, g->users_at[n], sizeof *g->users);
    if (!g->users) return false;
    note_users(g, last, false); // moves each start to the next one's
    for (size_t i = n; i > 0; i--)
        g->users_at[i] = g->users_at[i - 1];
    g->users_at[0] = 0;
    note_callers(g);
    return true;
}

size_t xpl_graph_calls(const struct graph *g, uint32_t i, size_t *ret_end) {
    const size_t first = xpl_hlo_first_call(g->m, i);
    size_t end = first;
    while (end < g->m->calls.n && g->m->calls.v[end].instruction == i)
        end++;
    *ret_end = end;
    return first;
}

enum graph_shown xpl_graph_shown(const struct graph *g, uint32_t i) {
    const struct hlo_computation *const c = &g->m->computations[g->top];
    if (!g->shown || graph_at(g, i)->computation != g->top) return GRAPH_SHOWN;
    return (enum graph_shown)g->shown[i - c->first];
}

// ---- shapes ----

struct extent {
    uint64_t elements; // at most SMALL_ELEMENTS
    bool no_data;      // a token or an opaque value is in it
    bool has_layout;
};

static void measure(xpl_bytes_t shape, unsigned depth, struct extent *e) {
    struct xpl_hlo_shape s;
    xpl_hlo_shape_read(shape, &s);
    if (s.type == HLO_TYPE_TUPLE) {
        struct xpl_hlo_each parts = xpl_hlo_shape_parts(&s);
        for (xpl_bytes_t part; depth < SHAPE_DEPTH && xpl_hlo_each_next(&parts, &part);)
            measure(part, depth + 1, e);
        return;
    }
    if (s.type == HLO_TYPE_TOKEN || s.type == HLO_TYPE_OPAQUE) e->no_data = true;
    uint64_t n = 1;
    unsigned rank = 0;
    bool none = false;
    struct xpl_hlo_ints dims = s.dims;
    for (int64_t d; xpl_hlo_ints_next(&dims, &d); rank++) {
        none |= d == 0;
        n = d < 0 || d > SMALL_ELEMENTS ? SMALL_ELEMENTS : n * (uint64_t)d;
        if (n > SMALL_ELEMENTS) n = SMALL_ELEMENTS;
    }
    e->has_layout |= rank > 1;
    e->elements += none ? 0 : n;
    if (e->elements > SMALL_ELEMENTS) e->elements = SMALL_ELEMENTS;
}

static uint8_t about_shape(struct graph *g, uint32_t i) {
    if (!(g->known[i] & SHAPE_KNOWN)) {
        struct extent e = {0};
        measure(xpl_hlo_shape_of(graph_at(g, i)), 0, &e);
        g->known[i] |= (uint8_t)(SHAPE_KNOWN | (e.has_layout ? HAS_LAYOUT : 0) |
                                 (e.no_data || e.elements < SMALL_ELEMENTS ? IS_SMALL : 0));
    }
    return g->known[i];
}

bool xpl_graph_small(struct graph *g, uint32_t i) {
    return about_shape(g, i) & IS_SMALL;
}

bool xpl_graph_has_layout(struct graph *g, uint32_t i) {
    return about_shape(g, i) & HAS_LAYOUT;
}

static bool dims_are_one(const struct xpl_hlo_shape *s) {
    struct xpl_hlo_ints dims = s->dims;
    for (int64_t d; xpl_hlo_ints_next(&dims, &d);)
        if (d != 1) return false;
    return true;
}

static bool is_scalar(const struct graph *g, uint32_t i) {
    struct xpl_hlo_shape s;
    xpl_hlo_shape_read(xpl_hlo_shape_of(graph_at(g, i)), &s);
    return s.type != HLO_TYPE_TUPLE && dims_are_one(&s);
}

// ---- instructions without a node ----

bool xpl_graph_plain_broadcast(const struct graph *g, uint32_t i) {
    if (graph_at(g, i)->opcode != XPL_HLO_BROADCAST || !graph_fused(g, i)) return false;
    const uint32_t of = graph_operand(g, i, 0);
    return of != GRAPH_NONE && graph_at(g, of)->opcode == XPL_HLO_CONSTANT && is_scalar(g, of);
}

uint32_t xpl_graph_bound_constant(const struct graph *g, uint32_t i) {
    struct xpl_hlo_message in;
    if (graph_at(g, i)->opcode != XPL_HLO_PARAMETER || !graph_fused(g, i)) return GRAPH_NONE;
    graph_read(g, i, &in);
    const uint32_t fusion = g->m->computations[graph_at(g, i)->computation].fusion;
    const uint32_t bound =
        graph_operand(g, fusion, (uint64_t)xpl_hlo_int(&in, HLO_INSTR_PARAMETER_NUMBER));
    return bound != GRAPH_NONE && graph_at(g, bound)->opcode == XPL_HLO_CONSTANT ? bound
                                                                                 : GRAPH_NONE;
}

// A tuple that comes in and that more than three instructions take apart, and nothing else uses.
static bool is_taken_apart(struct graph *g, uint32_t i) {
    struct xpl_hlo_shape s;
    unsigned n = 0;
    xpl_hlo_shape_read(xpl_hlo_shape_of(graph_at(g, i)), &s);
    if (s.type != HLO_TYPE_TUPLE || graph_fused(g, i)) return false;
    for (uint32_t k = g->users_at[i]; k < g->users_at[i + 1]; k++) {
        const uint32_t user = g->users[k];
        if (xpl_graph_shown(g, user) == GRAPH_HIDDEN) continue;
        if (graph_at(g, user)->opcode != XPL_HLO_GET_TUPLE_ELEMENT) return false;
        n++;
    }
    return n > 3;
}

bool xpl_graph_merged(struct graph *g, uint32_t i) {
    const uint32_t opcode = graph_at(g, i)->opcode;
    if (opcode == XPL_HLO_GET_TUPLE_ELEMENT) return !graph_is_root(g, i);
    if (opcode != XPL_HLO_PARAMETER) return false;
    if (!(g->known[i] & MERGED_KNOWN)) {
        const bool merged = xpl_graph_bound_constant(g, i) != GRAPH_NONE || is_taken_apart(g, i);
        g->known[i] |= (uint8_t)(MERGED_KNOWN | (merged ? IS_MERGED : 0));
    }
    return g->known[i] & IS_MERGED;
}

// ---- computations ----

static const struct {
    uint32_t opcode;
    const char *direction; // of a comparison
    const char *word;
} trivial[] = {
    {0, NULL, NULL},
    {XPL_HLO_ADD, NULL, "add"},
    {XPL_HLO_MULTIPLY, NULL, "multiply"},
    {XPL_HLO_MINIMUM, NULL, "min"},
    {XPL_HLO_MAXIMUM, NULL, "max"},
    {XPL_HLO_XOR, NULL, "xor"},
    {XPL_HLO_AND, NULL, "and"},
    {XPL_HLO_OR, NULL, "or"},
    {XPL_HLO_COMPARE, "LE", "less-or-equal"},
    {XPL_HLO_COMPARE, "GE", "greater-or-equal"},
    {XPL_HLO_COMPARE, "GT", "greater-than"},
    {XPL_HLO_COMPARE, "LT", "less-than"},
    {XPL_HLO_COMPARE, "EQ", "equal-to"},
    {XPL_HLO_COMPARE, "NE", "not-equal-to"},
};

static uint8_t trivial_row(const struct graph *g, uint32_t root) {
    struct xpl_hlo_message in;
    graph_read(g, root, &in);
    const xpl_str_t direction = xpl_hlo_str(&in, HLO_INSTR_COMPARISON_DIRECTION);
    for (size_t k = 1; k < sizeof trivial / sizeof *trivial; k++)
        if (trivial[k].opcode == graph_at(g, root)->opcode &&
            (!trivial[k].direction || xpl_str_eq(direction, xpl_str_from(trivial[k].direction))))
            return (uint8_t)k;
    return 0;
}

static uint8_t find_trivial(const struct graph *g, uint32_t computation) {
    const struct hlo_computation *const c = &g->m->computations[computation];
    if (c->n != 3 || g->m->edges[c->root].n_operands != 2 || !is_scalar(g, c->root)) return 0;
    const uint32_t *const uses = graph_uses(g, c->root);
    int64_t numbers[2];
    for (unsigned k = 0; k < 2; k++) {
        struct xpl_hlo_message in;
        if (graph_at(g, uses[k])->opcode != XPL_HLO_PARAMETER || !is_scalar(g, uses[k])) return 0;
        graph_read(g, uses[k], &in);
        numbers[k] = xpl_hlo_int(&in, HLO_INSTR_PARAMETER_NUMBER);
    }
    return numbers[0] + numbers[1] == 1 && numbers[0] * numbers[1] == 0 ? trivial_row(g, c->root)
                                                                        : 0;
}

const char *xpl_graph_trivial(struct graph *g, uint32_t computation) {
    uint8_t *const known = &g->c_known[computation];
    if (!(*known & TRIVIAL_KNOWN))
        *known |= (uint8_t)(TRIVIAL_KNOWN | find_trivial(g, computation) << TRIVIAL_SHIFT);
    return trivial[*known >> TRIVIAL_SHIFT].word;
}

static bool find_inside(struct graph *g, uint32_t computation) {
    const struct hlo_computation *const c = &g->m->computations[computation];
    if (c->fusion != UINT32_MAX) {
        const enum graph_shown shown = xpl_graph_shown(g, c->fusion);
        if (g->merge_fusion || shown == GRAPH_HIDDEN || shown == GRAPH_NO_OPERANDS ||
            shown == GRAPH_SOME_OPERANDS)
            return false;
    } else if (xpl_graph_trivial(g, computation)) {
        return false;
    }
    if (computation != g->top || !g->shown) return c->n > 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (g->shown[i] != GRAPH_HIDDEN) return true;
    return false;
}

bool xpl_graph_shows_inside(struct graph *g, uint32_t computation) {
    uint8_t *const known = &g->c_known[computation];
    if (!(*known & INSIDE_KNOWN)) {
        const bool inside = find_inside(g, computation);
        *known |= (uint8_t)(INSIDE_KNOWN | (inside ? SHOWS_INSIDE : 0));
    }
    return *known & SHOWS_INSIDE;
}

bool xpl_graph_opened(struct graph *g, uint32_t i) {
    size_t end;
    if (graph_at(g, i)->opcode != XPL_HLO_FUSION) return false;
    const size_t first = xpl_graph_calls(g, i, &end);
    return first != end && xpl_graph_shows_inside(g, g->m->calls.v[first].computation);
}
