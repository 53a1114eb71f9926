// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/foreign.h"

static const struct xpl_foreign_tool kForeign[] = {
    {.name = "megascale_stats", .hosts = XPL_HOSTS_EACH_OR_ALL},
    {.name = "smart_suggestion", .hosts = XPL_HOSTS_ALL},
};

const struct xpl_foreign_tool *xpl_foreign_tools(size_t *ret_n) {
    *ret_n = sizeof kForeign / sizeof *kForeign;
    return kForeign;
}

static const struct xpl_foreign_tool *find_foreign(xpl_str_t name) {
    for (size_t i = 0; i < sizeof kForeign / sizeof *kForeign; i++)
        if (xpl_str_eq(name, xpl_str_from(kForeign[i].name))) return &kForeign[i];
    return NULL;
}

// By name, not by alias.
static const struct xpl_tool *find_own(xpl_str_t name) {
    const struct xpl_tool *const t = xpl_tool_find(name);
    return t && xpl_str_eq(name, xpl_str_from(t->name)) ? t : NULL;
}

enum xpl_tool_hosts xpl_tool_offered_hosts(xpl_str_t name) {
    const struct xpl_tool *const t = find_own(name);
    const struct xpl_foreign_tool *const f = find_foreign(name);
    return t ? t->hosts : f ? f->hosts : XPL_HOSTS_EACH;
}

bool xpl_tool_is_worker_served(xpl_str_t name) {
    const struct xpl_tool *const t = find_own(name);
    const struct xpl_foreign_tool *const f = find_foreign(name);
    return t ? t->worker_served : f && f->worker_served;
}
