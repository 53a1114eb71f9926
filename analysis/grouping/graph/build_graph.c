// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/build_graph.h"

#include "analysis/grouping/graph/graph.h"
#include "analysis/grouping/graph/relations.h"

static xpl_status_t build(struct graph *gr, bool make_groups) {
    struct extra_links extra = {0};
    XPL_TRY(xpl_grp_merge_scans(gr));
    if (!xpl_grp_find_extra_links(gr, &extra)) return xpl_grp_no_memory(gr);
    XPL_TRY(xpl_grp_make_joins(gr, &extra));
    XPL_TRY(xpl_grp_propagate(gr, make_groups));
    if (gr->g->relations) XPL_TRY(xpl_grp_relate_nodes(gr));
    xpl_grp_make_labels(gr);
    return XPL_OK;
}

xpl_status_t xpl_grp_build_graph(struct xpl_groups *g, struct scan *scans, size_t n_scans,
                                 bool make_groups, struct xpl_error *err) {
    struct graph gr = {.g = g, .scans = scans, .n_scans = n_scans, .err = err};
    xpl_arena_init(&gr.temp, g->arena->limit);
    const xpl_status_t status = build(&gr, make_groups);
    xpl_arena_fini(&gr.temp);
    return status;
}
