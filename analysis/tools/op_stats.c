// SPDX-License-Identifier: Apache-2.0
// Hidden tools op_stats and worker_op_stats: the combined OpStats themselves, as XProf's message.
#include "analysis/opstats/codec/codec.h"
#include "analysis/tools/lib/op_stats_tool.h"

static xpl_status_t encode(const struct xpl_opstats *stats, const void *options,
                           struct xpl_arena *scratch, struct xpl_buf *out, struct xpl_error *err) {
    (void)options;
    (void)scratch;
    return xpl_opstats_encode(stats, out, err);
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render(in, encode, out, err);
}

// XProf's workers keep all steps.
static unsigned worker_variant(const void *options, size_t i, bool session_has_device) {
    return xpl_op_stats_variant(options, i, session_has_device) | XPL_OP_STATS_ALL_STEPS;
}

const struct xpl_tool xpl_tool_op_stats = {
    .name = "op_stats",
    .version = 2,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_STEPS,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .content_type = "application/octet-stream",
    .hidden = true,
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};

const struct xpl_tool xpl_tool_worker_op_stats = {
    .name = "worker_op_stats",
    .version = 2,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_STEPS,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .content_type = "application/octet-stream",
    .hidden = true,
    .variant = worker_variant,
    .asks_device = true,
    .render = render,
};
