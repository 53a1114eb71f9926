// SPDX-License-Identifier: Apache-2.0
// Colors of nodes, by their instructions.
#include "analysis/tools/graph_viewer/impl.h"

// clang-format off
const struct graph_scheme xpl_graph_schemes[GRAPH_N_COLORS] = {
    [GRAPH_BROWN] = {"#bcaaa4", "#8c7b75", "black"},
    [GRAPH_DARK_BLUE] = {"#1565c0", "#003c8f", "white"},
    [GRAPH_DARK_GREEN] = {"#2e7d32", "#005005", "white"},
    [GRAPH_DARK_ORANGE] = {"#ffb74d", "#c88719", "black"},
    [GRAPH_DARK_RED] = {"#b71c1c", "#7f0000", "white"},
    [GRAPH_GRAY] = {"#cfd8dc", "#9ea7aa", "black"},
    [GRAPH_GREEN] = {"#c8e6c9", "#97b498", "black"},
    [GRAPH_ORANGE] = {"#ffe0b2", "#cbae82", "black"},
    [GRAPH_PURPLE] = {"#e1bee7", "#af8eb5", "black"},
    [GRAPH_WHITE] = {"white", "#9e9e9e", "black"},
    [GRAPH_YELLOW] = {"#fff9c4", "#cbc693", "black"},
    [GRAPH_DASHED] = {"white", "#757575", "#757575"},
    [GRAPH_HEAT] =
        {"#f5f5f5", "#c2c2c2", "black"},
        {"#f7d4cc", "#c2c2c2", "black"},
        {"#f8b2a3", "#c2c2c2", "black"},
        {"#f9a28f", "#c2c2c2", "black"},
        {"#fa917b", "#c2c2c2", "black"},
        {"#fb8066", "#c2c2c2", "black"},
        {"#fc7052", "#c2c2c2", "black"},
        {"#fd5f3d", "#c2c2c2", "white"},
        {"#fd4e29", "#c2c2c2", "white"},
        {"#fe3e14", "#c2c2c2", "white"},
        {"#ff2d00", "#c2c2c2", "white"},
};

static const uint8_t colors[XPL_HLO_N_OPS] = {
    [XPL_HLO_BROADCAST] = GRAPH_YELLOW, [XPL_HLO_DYNAMIC_UPDATE_SLICE] = GRAPH_YELLOW,
    [XPL_HLO_CONCATENATE] = GRAPH_GREEN, [XPL_HLO_COPY] = GRAPH_GREEN,
    [XPL_HLO_COPY_DONE] = GRAPH_GREEN, [XPL_HLO_COPY_START] = GRAPH_GREEN,
    [XPL_HLO_DYNAMIC_RESHAPE] = GRAPH_GREEN, [XPL_HLO_DYNAMIC_SLICE] = GRAPH_GREEN,
    [XPL_HLO_RESHAPE] = GRAPH_GREEN, [XPL_HLO_REVERSE] = GRAPH_GREEN,
    [XPL_HLO_TRANSPOSE] = GRAPH_GREEN,
    [XPL_HLO_CHOLESKY] = GRAPH_DARK_BLUE, [XPL_HLO_CONVOLUTION] = GRAPH_DARK_BLUE,
    [XPL_HLO_DOT] = GRAPH_DARK_BLUE, [XPL_HLO_FFT] = GRAPH_DARK_BLUE,
    [XPL_HLO_RAGGED_DOT] = GRAPH_DARK_BLUE, [XPL_HLO_SCALED_DOT] = GRAPH_DARK_BLUE,
    [XPL_HLO_TRIANGULAR_SOLVE] = GRAPH_DARK_BLUE,
    [XPL_HLO_BATCH_NORM_GRAD] = GRAPH_PURPLE, [XPL_HLO_BATCH_NORM_INFERENCE] = GRAPH_PURPLE,
    [XPL_HLO_BATCH_NORM_TRAINING] = GRAPH_PURPLE, [XPL_HLO_GATHER] = GRAPH_PURPLE,
    [XPL_HLO_REDUCE] = GRAPH_PURPLE, [XPL_HLO_REDUCE_WINDOW] = GRAPH_PURPLE,
    [XPL_HLO_SCATTER] = GRAPH_PURPLE, [XPL_HLO_SELECT_AND_SCATTER] = GRAPH_PURPLE,
    [XPL_HLO_DOMAIN] = GRAPH_GRAY, [XPL_HLO_FUSION] = GRAPH_GRAY,
    [XPL_HLO_GET_DIMENSION_SIZE] = GRAPH_GRAY, [XPL_HLO_MAP] = GRAPH_GRAY,
    [XPL_HLO_SET_DIMENSION_SIZE] = GRAPH_GRAY,
    [XPL_HLO_ALL_GATHER] = GRAPH_BROWN, [XPL_HLO_ALL_GATHER_DONE] = GRAPH_BROWN,
    [XPL_HLO_ALL_GATHER_START] = GRAPH_BROWN, [XPL_HLO_ALL_REDUCE] = GRAPH_BROWN,
    [XPL_HLO_ALL_REDUCE_DONE] = GRAPH_BROWN, [XPL_HLO_ALL_REDUCE_START] = GRAPH_BROWN,
    [XPL_HLO_ALL_TO_ALL] = GRAPH_BROWN, [XPL_HLO_COLLECTIVE_BROADCAST] = GRAPH_BROWN,
    [XPL_HLO_COLLECTIVE_PERMUTE] = GRAPH_BROWN, [XPL_HLO_COLLECTIVE_PERMUTE_DONE] = GRAPH_BROWN,
    [XPL_HLO_COLLECTIVE_PERMUTE_START] = GRAPH_BROWN, [XPL_HLO_INFEED] = GRAPH_BROWN,
    [XPL_HLO_OUTFEED] = GRAPH_BROWN, [XPL_HLO_PARTITION_ID] = GRAPH_BROWN,
    [XPL_HLO_RAGGED_ALL_TO_ALL] = GRAPH_BROWN, [XPL_HLO_RECV] = GRAPH_BROWN,
    [XPL_HLO_RECV_DONE] = GRAPH_BROWN, [XPL_HLO_REDUCE_SCATTER] = GRAPH_BROWN,
    [XPL_HLO_REPLICA_ID] = GRAPH_BROWN, [XPL_HLO_SEND] = GRAPH_BROWN,
    [XPL_HLO_SEND_DONE] = GRAPH_BROWN,
    [XPL_HLO_CALL] = GRAPH_DARK_GREEN, [XPL_HLO_CONDITIONAL] = GRAPH_DARK_GREEN,
    [XPL_HLO_CUSTOM_CALL] = GRAPH_DARK_GREEN, [XPL_HLO_WHILE] = GRAPH_DARK_GREEN,
};
// clang-format on

// Whether it uses a parameter without a node.
static bool takes_parameter(struct graph *g, uint32_t i) {
    const uint32_t *const uses = graph_uses(g, i);
    for (uint32_t k = 0; k < g->m->edges[i].n_operands; k++)
        if (graph_at(g, uses[k])->opcode == XPL_HLO_PARAMETER && xpl_graph_merged(g, uses[k]) &&
            xpl_graph_bound_constant(g, uses[k]) == GRAPH_NONE)
            return true;
    return false;
}

enum graph_color xpl_graph_heat(const struct graph *g, uint32_t i) {
    struct xpl_hlo_message in, all, one;
    graph_read(g, i, &in);
    xpl_hlo_message_read(xpl_hlo_bytes(&in, HLO_INSTR_STATISTICS), &all);
    int64_t index = xpl_hlo_int(&all, 1);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&all, 2);
    for (xpl_bytes_t bytes; xpl_hlo_each_next(&e, &bytes);) {
        if (index-- != 0) continue;
        xpl_hlo_message_read(bytes, &one);
        const double v = xpl_hlo_double(&one, 2);
        if (v == 0) return GRAPH_HEAT;
        const unsigned step = v >= 90 ? 9 : v >= 10 ? (unsigned)(v / 10) : 0;
        return (enum graph_color)(GRAPH_HEAT + 1 + step);
    }
    return GRAPH_WHITE; // XProf ends when the index is beyond them
}

// An async op has the color of the instruction inside: the root of the computation that its chain
// started.
static uint32_t wrapped(const struct graph *g, uint32_t i) {
    enum { MAX_CHAIN = 64 }; // longer ones are cut
    for (unsigned n = 0; n < MAX_CHAIN; n++) {
        const uint32_t opcode = graph_at(g, i)->opcode;
        if (opcode != XPL_HLO_ASYNC_START && opcode != XPL_HLO_ASYNC_UPDATE &&
            opcode != XPL_HLO_ASYNC_DONE)
            break;
        size_t end;
        const size_t first = xpl_graph_calls(g, i, &end);
        if (first < end)
            i = g->m->computations[g->m->calls.v[first].computation].root;
        else if (g->m->edges[i].n_operands)
            i = graph_uses(g, i)[0];
        else
            break;
    }
    return i;
}

enum graph_color xpl_graph_color(struct graph *g, uint32_t i) {
    const uint32_t opcode = graph_at(g, wrapped(g, i))->opcode;
    const enum graph_color hot = xpl_graph_heat(g, i);
    if (hot != GRAPH_WHITE) return hot;
    switch (xpl_graph_shown(g, i)) {
        case GRAPH_START: return GRAPH_DARK_RED;
        case GRAPH_SOME_OPERANDS:
        case GRAPH_NO_OPERANDS:
        case GRAPH_NOT_ALL_USERS: return GRAPH_DASHED;
        case GRAPH_HIDDEN:
        case GRAPH_SHOWN: break;
    }
    if (opcode == XPL_HLO_PARAMETER || takes_parameter(g, i))
        return xpl_graph_small(g, i) ? GRAPH_ORANGE : GRAPH_DARK_ORANGE;
    if (opcode == XPL_HLO_BITCAST) return graph_fused(g, i) ? GRAPH_GREEN : GRAPH_WHITE;
    return (enum graph_color)colors[opcode];
}
