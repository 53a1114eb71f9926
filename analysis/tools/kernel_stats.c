// SPDX-License-Identifier: Apache-2.0
// kernel_stats: one table of GPU kernels, longest total first (XProf:
// xplane_to_kernel_stats_db.cc). The reports arrive sorted and cut to their number; several hosts'
// stand one after another as the combination left them.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/opstats/opstats.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/lib/op_stats_tool.h"

static const struct xpl_column kColumns[] = {
    XPL_NUMBERS("rank", "Rank", NULL),
    XPL_TEXTS("kernel_name", "Kernel Name"),
    XPL_NUMBERS("registers_per_thread", "Registers per thread", NULL),
    XPL_NUMBERS("shmem_bytes", "Shared Mem bytes", "bytes"),
    XPL_TEXTS("block_dim", "Block dim"),
    XPL_TEXTS("grid_dim", "Grid dim"),
    XPL_NUMBERS("occupancy_pct", "Theoretical Occupancy %", "%"),
    XPL_TRUTHS("is_op_tensor_core_eligible", "Op is TensorCore eligible"),
    XPL_TRUTHS("is_kernel_using_tensor_core", "Kernel uses TensorCore"),
    XPL_TEXTS("op_name", "Op Name"),
    XPL_NUMBERS("occurrences", "Occurrences", NULL),
    XPL_NUMBERS("total_duration_us", "Total Duration (\u03bcs)", "us"),
    XPL_NUMBERS("avg_duration_us", "Avg Duration (\u03bcs)", "us"),
    XPL_NUMBERS("min_duration_us", "Min Duration (\u03bcs)", "us"),
    XPL_NUMBERS("max_duration_us", "Max Duration (\u03bcs)", "us"),
    {0},
};

static void put_dim(struct xpl_gviz *g, const uint32_t *dim, uint8_t n) {
    char text[40];
    size_t len = 0;
    for (uint8_t i = 0; i < n && i < 3; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%" PRIu32, i ? "," : "", dim[i]);
    xpl_gviz_text(g, (xpl_str_t){text, len});
}

static void put_microseconds(struct xpl_gviz *g, uint64_t ns) {
    xpl_gviz_number(g, (double)ns / 1e3);
}

static void put_row(struct xpl_gviz *g, const struct xpl_kernel_report *k, uint32_t rank) {
    xpl_gviz_row(g);
    xpl_gviz_number(g, rank);
    xpl_gviz_text(g, k->name);
    xpl_gviz_number(g, k->registers_per_thread);
    xpl_gviz_number(g, k->static_shmem_bytes + k->dynamic_shmem_bytes);
    put_dim(g, k->block_dim, k->n_block_dim);
    put_dim(g, k->grid_dim, k->n_grid_dim);
    xpl_gviz_number(g, (double)k->occupancy_pct);
    xpl_gviz_bool(g, k->is_op_tensor_core_eligible);
    xpl_gviz_bool(g, k->is_kernel_using_tensor_core);
    xpl_gviz_text(g, k->op_name);
    xpl_gviz_number(g, k->occurrences);
    put_microseconds(g, k->total_duration_ns);
    // Whole nanoseconds, as XProf divides.
    put_microseconds(g, k->occurrences ? k->total_duration_ns / k->occurrences : 0);
    put_microseconds(g, k->min_duration_ns);
    put_microseconds(g, k->max_duration_ns);
}

static xpl_status_t write_answer(const struct xpl_opstats *s, const void *options,
                                 struct xpl_arena *scratch, struct xpl_buf *out,
                                 struct xpl_error *err) {
    (void)options;
    (void)scratch;
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kColumns, 0);
    for (size_t i = 0; i < s->kernel_reports.n; i++)
        put_row(&g, &s->kernel_reports.v[i], (uint32_t)(i + 1));
    xpl_gviz_end(&g);
    if (out->failed) XPL_RETURN_OOM(err, "kernel_stats");
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render(in, write_answer, out, err);
}

const struct xpl_tool xpl_tool_kernel_stats = {
    .name = "kernel_stats",
    .version = 1,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_KERNELS,
    .ignores = XPL_IGNORES_CPU_AS_DEVICE, // where the CPU counts as one, no host has kernels
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 7,
    .content_type = "application/json",
    .columns = {kColumns},
    .worker_served = true,
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
