// SPDX-License-Identifier: Apache-2.0
// Tool trace_viewer: every event of one host, for viewers that load it whole; trace_viewer/ makes
// it.
#include "analysis/tools/lib/product_answer.h"

static const struct xpl_product *const kNeeds[] = {&xpl_product_trace_viewer, NULL};

const struct xpl_tool xpl_tool_trace_viewer = {
    .name = "trace_viewer",
    .version = 2,
    .needs = kNeeds,
    .facts = XPL_FACT_EVENTS,
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_ONE,
    .shown = XPL_SHOWN_WITHOUT_STREAMING,
    .list_position = 2,
    .content_type = "application/json",
    .render = xpl_product_answer_render,
};
