// SPDX-License-Identifier: Apache-2.0
// XProf's tools that are not in our table, as far as XProf's pages and aggregators ask about them:
// a line of foreign.c goes when the tool gets its row.
#ifndef XPL_ANALYSIS_TOOLS_FOREIGN_H_
#define XPL_ANALYSIS_TOOLS_FOREIGN_H_

#include "analysis/tools/tool.h"

struct xpl_foreign_tool {
    const char *name;
    enum xpl_tool_hosts hosts;
    bool worker_served; // its page needs no more than OpStats, which an aggregator gets from us
};

const struct xpl_foreign_tool *xpl_foreign_tools(size_t *ret_n);

// For a tool of either table, by its name alone: what XProf's page offers; XPL_HOSTS_EACH for names
// that are in neither.
enum xpl_tool_hosts xpl_tool_offered_hosts(xpl_str_t name);
// Whether an XProf aggregator gets the OpStats for this tool from us.
bool xpl_tool_is_worker_served(xpl_str_t name);

#endif
