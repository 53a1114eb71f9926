// SPDX-License-Identifier: Apache-2.0
// Operands without a node, as their users' labels show them.
#include "analysis/hlo/module/shape.h"
#include "analysis/tools/graph_viewer/impl.h"

static void put_text(struct graph *g, xpl_str_t s) {
    xpl_buf_str(&g->text, s);
}

static xpl_status_t put_plain_shape(struct graph *g, uint32_t i, struct xpl_error *err) {
    return xpl_hlo_text_plain_shape(xpl_hlo_shape_of(graph_at(g, i)), g->cache, &g->text, err);
}

// ---- constants ----

struct size {
    bool tuple, empty;
    uint64_t elements; // at most MANY
};
enum { MANY = 1 << 20, FEW_ELEMENTS = 8, FEW_CHARACTERS = 64 };

static struct size size_of(const struct graph *g, uint32_t i) {
    struct xpl_hlo_shape s;
    struct size size = {.elements = 1};
    xpl_hlo_shape_read(xpl_hlo_shape_of(graph_at(g, i)), &s);
    size.tuple = s.type == HLO_TYPE_TUPLE;
    struct xpl_hlo_ints dims = s.dims;
    for (int64_t d; xpl_hlo_ints_next(&dims, &d);) {
        size.empty |= d == 0;
        size.elements = d < 0 || d > MANY ? MANY : size.elements * (uint64_t)d;
        if (size.elements > MANY) size.elements = MANY;
    }
    return size;
}

// Constant `i` in the shape of `as`: its value when that is short, else its name.
static xpl_status_t put_constant(struct graph *g, uint32_t i, uint32_t as, struct xpl_error *err) {
    const struct size shown = size_of(g, as), own = size_of(g, i);
    struct xpl_hlo_message in;
    graph_read(g, i, &in);
    if (!shown.tuple && shown.empty) {
        put_text(g, XPL_STR("{} ("));
        XPL_TRY(put_plain_shape(g, i, err));
        put_text(g, XPL_STR(")"));
        return XPL_OK;
    }
    if (!shown.tuple && own.elements <= FEW_ELEMENTS && xpl_hlo_has(&in, HLO_INSTR_LITERAL)) {
        g->scratch.n = 0;
        XPL_TRY(xpl_hlo_text_literal(xpl_hlo_bytes(&in, HLO_INSTR_LITERAL), g->cache, &g->scratch,
                                     err));
        if (g->scratch.n <= FEW_CHARACTERS) {
            XPL_TRY(put_plain_shape(g, as, err));
            put_text(g, XPL_STR(" "));
            xpl_buf_put(&g->text, g->scratch.p, g->scratch.n);
            return XPL_OK;
        }
    }
    const xpl_str_t name = graph_at(g, i)->name;
    if (!xpl_str_starts(name, XPL_STR("constant"))) put_text(g, XPL_STR("constant "));
    put_text(g, name);
    put_text(g, XPL_STR(" "));
    return put_plain_shape(g, as, err);
}

// ---- others ----

static xpl_status_t put_element(struct graph *g, uint32_t i, struct xpl_error *err) {
    struct xpl_hlo_message in;
    graph_read(g, i, &in);
    xpl_buf_printf(&g->text, "tuple-element %lld of ",
                   (long long)xpl_hlo_int(&in, HLO_INSTR_TUPLE_INDEX));
    const uint32_t of = graph_operand(g, i, 0);
    if (of != GRAPH_NONE) put_text(g, graph_at(g, of)->name);
    put_text(g, XPL_STR(" "));
    return xpl_hlo_text_shape(xpl_hlo_shape_of(graph_at(g, i)), g->cache, &g->text, err);
}

// One operand; nothing when it has a node.
static xpl_status_t put_operand(struct graph *g, uint32_t i, struct xpl_error *err) {
    const struct hlo_instruction *const in = graph_at(g, i);
    if (in->opcode == XPL_HLO_CONSTANT) return put_constant(g, i, i, err);
    if (xpl_graph_plain_broadcast(g, i)) return put_constant(g, graph_operand(g, i, 0), i, err);
    if (!xpl_graph_merged(g, i)) return XPL_OK;
    if (in->opcode == XPL_HLO_GET_TUPLE_ELEMENT) return put_element(g, i, err);
    const uint32_t bound = xpl_graph_bound_constant(g, i);
    if (bound != GRAPH_NONE) return put_constant(g, bound, bound, err);
    struct xpl_hlo_message m;
    graph_read(g, i, &m);
    xpl_buf_printf(&g->text, "Parameter %lld",
                   (long long)xpl_hlo_int(&m, HLO_INSTR_PARAMETER_NUMBER));
    return XPL_OK;
}

// The source of a fusion's parameter, when that is a part of a tuple.
static xpl_status_t put_fused_parameter(struct graph *g, uint32_t i, struct xpl_error *err) {
    struct xpl_hlo_message in;
    if (graph_at(g, i)->opcode != XPL_HLO_PARAMETER || !graph_fused(g, i)) return XPL_OK;
    graph_read(g, i, &in);
    const uint32_t of = graph_operand(g, g->m->computations[graph_at(g, i)->computation].fusion,
                                      (uint64_t)xpl_hlo_int(&in, HLO_INSTR_PARAMETER_NUMBER));
    if (of == GRAPH_NONE || graph_at(g, of)->opcode != XPL_HLO_GET_TUPLE_ELEMENT) return XPL_OK;
    put_text(g, XPL_STR("<br/>"));
    return put_element(g, of, err);
}

xpl_status_t xpl_graph_put_operands(struct graph *g, uint32_t i, struct xpl_error *err) {
    enum { MOST = 32 };
    const uint32_t n = g->m->edges[i].n_operands;
    const uint32_t *const uses = graph_uses(g, i);
    for (uint32_t k = 0, said = 0; k < n; k++) {
        const size_t before = g->text.n;
        if (n > 1)
            xpl_buf_printf(&g->text, "<br/><b>operand %u</b> = ", k);
        else
            put_text(g, XPL_STR("<br/><b>operand</b> = "));
        const size_t begin = g->text.n;
        XPL_TRY(put_operand(g, uses[k], err));
        if (g->text.n == begin && !g->text.failed) {
            g->text.n = before;
            continue;
        }
        if (++said == MOST && k + 1 < n) {
            put_text(g, XPL_STR("<br/>..."));
            break;
        }
    }
    return put_fused_parameter(g, i, err);
}

// ---- arguments of calls ----

// Follows an argument to its origin, through calls, bitcasts, copies and tuples.  `path`: elements
// of tuples that are still to be taken.
static uint32_t find_origin(struct graph *g, uint32_t i) {
    XPL_VEC(uint64_t) path = {0};
    while (graph_spend(g, 1)) {
        const uint32_t opcode = graph_at(g, i)->opcode;
        struct xpl_hlo_message in;
        uint32_t next = GRAPH_NONE;
        size_t end;
        if (opcode == XPL_HLO_BITCAST || opcode == XPL_HLO_COPY) {
            next = graph_operand(g, i, 0);
        } else if (opcode == XPL_HLO_CALL) {
            const size_t first = xpl_graph_calls(g, i, &end);
            if (first != end) next = g->m->computations[g->m->calls.v[first].computation].root;
        } else if (opcode == XPL_HLO_GET_TUPLE_ELEMENT) {
            uint64_t *const slot = xpl_vec_push(g->arena, &path);
            if (!slot) return i;
            graph_read(g, i, &in);
            *slot = (uint64_t)xpl_hlo_int(&in, HLO_INSTR_TUPLE_INDEX);
            next = graph_operand(g, i, 0);
        } else if (opcode == XPL_HLO_TUPLE && path.n) {
            next = graph_operand(g, i, path.v[--path.n]);
        }
        if (next == GRAPH_NONE) return i;
        i = next;
    }
    return i;
}

void xpl_graph_put_origin(struct graph *g, uint32_t i) {
    const struct graph_callers *const by = &g->callers[graph_at(g, i)->computation];
    struct xpl_hlo_message in;
    if (by->n != 1) return;
    graph_read(g, i, &in);
    const uint32_t of =
        graph_operand(g, by->first, (uint64_t)xpl_hlo_int(&in, HLO_INSTR_PARAMETER_NUMBER));
    if (of == GRAPH_NONE) return;
    const uint32_t origin = find_origin(g, of);
    const uint32_t c = graph_at(g, origin)->computation;
    put_text(g, XPL_STR("<br/><i>from "));
    xpl_graph_put_escaped(&g->text, graph_at(g, origin)->name);
    put_text(g, XPL_STR(" in "));
    if (c == g->m->entry)
        put_text(g, XPL_STR("the ENTRY computation"));
    else
        xpl_graph_put_escaped(&g->text, g->m->computations[c].name);
    put_text(g, XPL_STR("</i>"));
}
