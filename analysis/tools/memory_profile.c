// SPDX-License-Identifier: Apache-2.0
// Tool memory_profile: what a host's allocators did; memory_profile/ makes it.
#include "analysis/tools/lib/product_answer.h"

static const struct xpl_product *const kNeeds[] = {&xpl_product_memory_profile, NULL};

const struct xpl_tool xpl_tool_memory_profile = {
    .name = "memory_profile",
    .version = 1,
    .needs = kNeeds,
    .facts = XPL_FACT_MEMORY,
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_ONE,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 8,
    .content_type = "application/json",
    .render = xpl_product_answer_render,
};
