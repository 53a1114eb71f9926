// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/group_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/grouping/graph/ancestors.h"
#include "analysis/xplane/metadata.h"

struct context {
    uint32_t wanted;                         // flags that are still searched for
    uint32_t graph_type, iter_num, step_num; // nodes + 1
};

static bool note_context(struct graph *gr, uint32_t node, void *ctx) {
    struct context *const c = ctx;
    const uint32_t have = gr->g->nodes[node].flags & c->wanted;
    if (have & NODE_GRAPH_TYPE) c->graph_type = node + 1;
    if (have & NODE_ITER_NUM) c->iter_num = node + 1;
    if (have & NODE_STEP_NUM) c->step_num = node + 1;
    c->wanted &= ~have;
    return c->wanted == 0;
}

static xpl_str_t event_name(const struct xpl_groups *g, uint32_t node) {
    const struct line_groups *lg;
    struct xpl_raw_event raw;
    if (!xpl_grp_node_event(g, node, &lg, &raw)) return (xpl_str_t){"", 0};
    const struct xpl_plane *const p = lg->line->plane;
    return p->event_md[xpl_event_md_at(p, raw.md_id)].name;
}

// "<graph type or event name> <iteration, step or group number>" [EventNode::GetGroupName].
bool xpl_grp_make_name(struct graph *gr, uint32_t root, xpl_str_t *ret) {
    const struct xpl_groups *const g = gr->g;
    struct context c = {.wanted =
                            gr->ctx_flags & (NODE_GRAPH_TYPE | NODE_ITER_NUM | NODE_STEP_NUM)};
    struct xpl_stat stat;
    xpl_str_t text = {"", 0};
    int64_t number = g->nodes[root].group;
    if (c.wanted && !xpl_grp_search(gr, root, note_context, &c)) return false;
    if (c.graph_type && xpl_grp_node_stat(g, c.graph_type - 1, XPL_STAT_GRAPH_TYPE, &stat))
        text = xpl_stat_str(&stat);
    else if (!(g->nodes[root].flags & NODE_IMPLICIT))
        text = event_name(g, root);
    if (c.iter_num && xpl_grp_node_stat(g, c.iter_num - 1, XPL_STAT_ITER_NUM, &stat))
        number = xpl_stat_int(&stat);
    else if (c.step_num && xpl_grp_node_stat(g, c.step_num - 1, XPL_STAT_STEP_NUM, &stat))
        number = xpl_stat_int(&stat);
    // A name that includes the number needs no further one.
    else if (g->batches && !c.graph_type && xpl_grp_batch_name(text) == XPL_BATCH_NUMBERED)
        return xpl_arena_str(g->arena, text, ret);
    const bool titled = c.graph_type || !(g->nodes[root].flags & NODE_IMPLICIT);
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%s%" PRId64, titled ? " " : "", number);
    char *const p = n < 0 ? NULL : xpl_arena_alloc(g->arena, text.len + (size_t)n);
    if (!p) return false;
    if (text.len) memcpy(p, text.ptr, text.len);
    memcpy(p + text.len, digits, (size_t)n);
    *ret = (xpl_str_t){p, text.len + (size_t)n};
    return true;
}
