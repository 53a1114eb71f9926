// SPDX-License-Identifier: Apache-2.0
// The state of the scan of one line: the stack of open events, and their conversion to nodes.  One
// thread.
#ifndef XPL_ANALYSIS_GROUPING_SCAN_LINE_STATE_H_
#define XPL_ANALYSIS_GROUPING_SCAN_LINE_STATE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/grouping/plan/event_links.h"
#include "analysis/grouping/plan/event_stats.h"
#include "analysis/grouping/plan/span.h"
#include "analysis/grouping/scan/scan.h"
#include "base/exec.h"
#include "base/vec.h"

// The stack holds the events that may matter.  An event that only could join a group, or only has
// parts of a group's name, is pending: it becomes a node when an event inside it starts or passes
// on a group.  Cursors read the others again when they reach them, so most events that are linked
// to another line are never stored: they are leaves, and have the group of their producer.
struct open_event {
    struct span span;
    uint64_t at;
    size_t plain;   // how many plain events were open below it
    uint32_t scope; // node + 1; while pending, of the enclosing node
    uint32_t gap;   // plain events between it and the entry below
    bool pending;
};

struct line_state {
    struct scan *s;
    const struct plan *plan;
    struct line_groups *lg;
    const struct xpl_line *line; // lg->line
    struct xpl_arena scratch;
    XPL_VEC(struct open_event) stack;
    size_t n_resolved;          // the first so many of the stack are not pending
    XPL_VEC(struct span) plain; // open plain events inside of entries: they count as distance
    const struct xpl_event_watch *watch; // NULL: no events are shown
    uint32_t plain_roles;                // an event with only these roles, and no stats, is plain
    bool kernel_host, kernel_device;
    bool none_pending; // nothing stays pending
    bool failed;       // out of memory, or the bytes changed
};

// Begins the scan of a line; st->scratch is the caller's to free.
void xpl_grp_begin_line(struct line_state *st, struct scan *s, struct line_groups *lg);
// Adds to a list of the scan; st->failed when out of memory.
void xpl_grp_push_link(struct line_state *st, struct seg_list *l, uint64_t key, uint32_t end);
void xpl_grp_push_pair(struct line_state *st, struct pair pair);
// Adds a node; returns its number + 1.  st->failed when out of memory.
uint32_t xpl_grp_new_node(struct line_state *st, uint64_t at, uint32_t parent, uint32_t gap,
                          uint32_t flags);
// NODE_* for the stats and the role of an event.
uint32_t xpl_grp_node_flags(const struct scan_stats *ss, uint32_t role);
// NODE_* of an EagerExecute: whether its contents run eagerly.
uint32_t xpl_grp_eager_flags(const struct line_state *st, const struct xpl_raw_event *raw);
// An event that is not plain.  Returns the scope it is in: itself when it becomes a node.
uint32_t xpl_grp_process_event(struct line_state *st, const struct xpl_raw_event *raw, uint64_t at,
                               uint32_t mask, uint32_t role);
// Begins a chunk of the line: stores the open events, and checks whether the work was cancelled.
xpl_status_t xpl_grp_begin_chunk(struct line_state *st, uint32_t chunk, struct xpl_exec *exec)
    XPL_NODISCARD;

// Closes the events that do not contain the span.
static inline void pop_until_includes(struct line_state *st, struct span span) {
    while (st->stack.n) {
        const struct open_event *const top = &st->stack.v[st->stack.n - 1];
        while (st->plain.n > top->plain && !span_includes(st->plain.v[st->plain.n - 1], span))
            st->plain.n--;
        if (st->plain.n > top->plain || span_includes(top->span, span)) return;
        st->stack.n--;
    }
}

static void push_plain(struct line_state *st, struct span span) {
    struct span *const top = xpl_vec_push(&st->scratch, &st->plain);
    if (top)
        *top = span;
    else
        st->failed = true;
}

static uint32_t top_scope(const struct line_state *st) {
    return st->stack.n ? st->stack.v[st->stack.n - 1].scope : 0;
}

// Puts one event on the stack, or only closes events that do not enclose it.  Returns its scope.
static inline uint32_t visit(struct line_state *st, const struct xpl_raw_event *raw, uint64_t at,
                             uint32_t mask, uint32_t role) {
    if (XPL_UNLIKELY(mask != 0) || (role & ~st->plain_roles))
        return xpl_grp_process_event(st, raw, at, mask, role);
    if (st->stack.n) {
        const struct span span = plan_span(st->plan, st->line, raw->offset_ps, raw->duration_ps);
        pop_until_includes(st, span);
        if (st->stack.n) push_plain(st, span);
    }
    return top_scope(st);
}

#endif
