// SPDX-License-Identifier: Apache-2.0
// XProf has nothing like it (openxla/xprof issues 2544 and 3070): docs/differences.md,
// graph_kernels.
#include "analysis/opstats/device/gpu_graph.h"

#define NONE UINT32_MAX

static xpl_status_t out_of_memory(struct gpu_plane *g) {
    XPL_RETURN_OOM(&g->piece.error, "GPU op metrics");
}

// *ret: of the fusion that the kernel is named after; NONE where there is none.
static xpl_status_t add_fusion(struct gpu_plane *g, uint32_t unknown, xpl_str_t kernel,
                               uint64_t *ret) {
    struct xla_op op = g->xla_ops.v[unknown];
    xpl_strid_t id;
    *ret = NONE;
    XPL_TRY(xpl_hlo_map_find_kernel(g->c->hlo, op.program_id, kernel, &op.instruction, &op.found,
                                    &g->piece.error));
    if (!op.found) return XPL_OK;
    struct xla_op *const slot = xpl_vec_push(&g->arena, &g->xla_ops);
    if (!slot || !xpl_hlo_tf_op_name(&op.instruction, &g->arena, &op.framework) ||
        !xpl_intern_put(g->strings, op.instruction.name, &id))
        return out_of_memory(g);
    op.innermost = id.v;
    *slot = op;
    *ret = g->xla_ops.n - 1;
    return XPL_OK;
}

// The rest of a graph, whatever its kernels: one op for each launch's name.
static xpl_status_t put_rest(struct gpu_plane *g, uint32_t unknown, uint64_t *ret) {
    bool is_new;
    uint64_t *const at = xpl_map_put(&g->arena, &g->graph_rest, unknown, 0, &is_new);
    if (!at) return out_of_memory(g);
    if (is_new) {
        struct xla_op op = g->xla_ops.v[unknown];
        op.is_graph = true;
        struct xla_op *const slot = xpl_vec_push(&g->arena, &g->xla_ops);
        if (!slot) return out_of_memory(g);
        *slot = op;
        *at = g->xla_ops.n - 1;
    }
    *ret = *at;
    return XPL_OK;
}

xpl_status_t xpl_gpu_graph_op(struct gpu_plane *g, uint32_t md, xpl_str_t kernel,
                              uint32_t *ret_op) {
    const uint32_t unknown = *ret_op;
    bool is_new;
    uint64_t *const at = xpl_map_put(&g->arena, &g->graph_index, unknown, md, &is_new);
    if (!at) return out_of_memory(g);
    if (is_new) {
        XPL_TRY(add_fusion(g, unknown, kernel, at));
        if (*at == NONE) XPL_TRY(put_rest(g, unknown, at));
    }
    *ret_op = (uint32_t)*at;
    return XPL_OK;
}

void xpl_gpu_graph_describe(struct xpl_op_metrics *m) {
    m->category = XPL_STR("command buffer");
    m->has_source_info = true;
    m->source_info.line_number = -1;
}
