// SPDX-License-Identifier: Apache-2.0
// Which steps several hosts have in common.  Every host's steps are shifted against those of a
// chief, the host whose steps span the shortest time, so that they overlap the most; the range that
// all then share is kept.  Rules: XProf's utils/step_intersection.cc.
// Where both have keys, the shift under which most keys agree counts instead: clocks of hosts
// differ.
#ifndef XPL_ANALYSIS_OPSTATS_COMBINE_STEP_INTERSECTION_H_
#define XPL_ANALYSIS_OPSTATS_COMBINE_STEP_INTERSECTION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/opstats/steps/timespan.h"

struct xpl_arena;

// The steps of one host, in their order.
struct xpl_step_spans {
    const struct xpl_timespan *v;
    size_t n;
    const uint64_t *keys; // of each step; NULL: none
};

struct xpl_step_intersection {
    uint32_t n_steps; // how many steps all hosts have in common
    uint32_t dropped; // how many more there were beyond max_steps
    bool empty;       // hosts have steps, but none in common
    size_t chief;     // index into `hosts`; meaningless without hosts
    uint32_t *first;  // per host: index of its first common step
    // Per host: which of the chief's steps its own lie beside.
    uint32_t *begin_chief, *n_aligned;
};

// Aligns the steps of n hosts, in that order; of hosts that span equally long the first is the
// chief.
// A host without steps leaves nothing in common (and `empty` false), as upstream.  Arrays of `*ret`
// live in `arena`.  Time grows with the number of steps of all hosts, plus the chief's once per
// host.  False at the arena's limit.
bool xpl_step_intersect(const struct xpl_step_spans *hosts, size_t n, uint32_t max_steps,
                        struct xpl_arena *arena, struct xpl_step_intersection *ret)
    __attribute__((warn_unused_result));

#endif
