// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/scan/scan.h"

void xpl_grp_init_lists(struct scan *s) {
    s->nodes = (struct seg_list){.elem = sizeof(struct node)};
    s->producers = s->consumers = s->executors = (struct seg_list){.elem = sizeof(struct link)};
    s->roots = (struct seg_list){.elem = sizeof(struct root)};
    s->launches = (struct seg_list){.elem = sizeof(struct launch)};
    s->pairs = (struct seg_list){.elem = sizeof(struct pair)};
    s->tf_data_ids = (struct seg_list){.elem = sizeof(int64_t)};
    s->has_loops = false;
}

xpl_status_t xpl_grp_scan_failed(struct scan *s, const struct xpl_event_cursor *c) {
    if (c) return xpl_events_error(c, &s->err);
    XPL_RETURN_OOM(&s->err, "event groups");
}

void xpl_grp_scan_fini(struct scan *s) {
    xpl_arena_fini(&s->nodes_arena);
    xpl_arena_fini(&s->links_arena);
}
