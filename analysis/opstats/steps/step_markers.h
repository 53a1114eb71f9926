// SPDX-License-Identifier: Apache-2.0
// Which groups are steps of a plane: those that have a step marker on it.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_MARKERS_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_MARKERS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/steps/event_span.h"

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
