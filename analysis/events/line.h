// SPDX-License-Identifier: Apache-2.0
// The events of one line by name.  Private to this folder.
#ifndef XPL_ANALYSIS_EVENTS_LINE_H_
#define XPL_ANALYSIS_EVENTS_LINE_H_

#include "analysis/events/events.h"
#include "base/arena.h"

// Durations of occurrences, in their order.
struct xpl_timings_block {
    struct xpl_timings_block *next;
    uint32_t n, cap;
    uint64_t v[];
};

// The occurrences of one name on one line.
struct xpl_timings_group {
    xpl_str_t name;
    uint64_t total_ps, self_ps;
    struct xpl_timings_block *first, *last;
    uint64_t n, least, greatest; // occurrences; of their durations
    int64_t covered;             // private: where the occurrences so far end
};

// One line's; zero-initialise.
struct xpl_timings_line {
    const struct xpl_line *line;
    struct xpl_timings_group *groups;
    size_t n_groups;
    uint64_t n_events; // that were long enough
    bool is_cut;
    xpl_status_t status;
    const struct xpl_error *err; // unless it is OK; NULL: out of memory
};

// Reads at most `max` events that are long enough.  The outcome is in l->status and l->err; texts,
// groups and durations are the arena's, which has a budget.
void xpl_timings_line_read(struct xpl_timings_line *l, const struct xpl_timings_rules *rules,
                           uint64_t max, struct xpl_exec *exec, struct xpl_arena *arena);

// The k-th least of n > k numbers, k from 0.  `scratch` has room for n; v stays as it is.
uint64_t xpl_timings_nth(const uint64_t *v, size_t n, size_t k, uint64_t *scratch);

#endif
