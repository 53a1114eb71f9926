// SPDX-License-Identifier: Apache-2.0
// Which groups are steps of a plane: those that have a step marker on it.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_MARKERS_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_MARKERS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/groups.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/opstats/steps/executions.h"

// Replaces an event's group by the execution in which it begins.
static inline void xpl_place_in_execution(const struct xpl_executions *e,
                                          const struct xpl_line *line, const struct xpl_event *ev,
                                          struct xpl_event_group *g) {
    size_t i = 0;
    if (!e) return;
    g->has_group = xpl_execution_at(e, (uint64_t)xpl_event_begin_ps(line, ev), &i);
    g->group_id = (int64_t)i;
}

// Finds out whether a group is one of the marked steps; events of one group follow each other.
struct xpl_marked {
    const struct xpl_steps *markers;
    int64_t group; // last asked for, when `known`
    bool known, marked;
};
// Whether the group is a marked step.
static inline bool xpl_is_marked(struct xpl_marked *m, int64_t group) {
    if (!m->known || m->group != group)
        *m = (struct xpl_marked){m->markers, group, true, xpl_steps_find(m->markers, group)};
    return m->marked;
}

#endif
