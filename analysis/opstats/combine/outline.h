// SPDX-License-Identifier: Apache-2.0
// The outline of a host's OpStats: what must be known of every host before the first is combined.
// It is a few dozen bytes a step, so that of thousands of hosts only outlines are in memory at
// once.
#ifndef XPL_ANALYSIS_OPSTATS_COMBINE_OUTLINE_H_
#define XPL_ANALYSIS_OPSTATS_COMBINE_OUTLINE_H_

#include "analysis/opstats/opstats.h"
#include "analysis/opstats/steps/timespan.h"

// Lengths of the arrays of one step: the combination makes its own at their size.
struct xpl_step_sizes {
    uint32_t cores, all_reduces, replicas;
};

struct xpl_host_outline {
    bool idle;        // no steps, and no ops but IDLE
    bool accelerated; // its device_type is that of a GPU or TPU
    size_t bytes;     // of memory that the OpStats take; 0: not known
    size_t n_steps;
    const struct xpl_timespan *spans; // of each step, all cores together (StepTimespan)
    const struct xpl_step_sizes *sizes;
    const uint64_t *keys; // of each step, equal for equal names; NULL: some step has no number
};

// Bytes that the outline of these OpStats takes.
size_t xpl_host_outline_size(const struct xpl_opstats *s);
// Writes it at `at`, which has that many bytes and is aligned to 8; it refers to nothing outside of
// them.
struct xpl_host_outline *xpl_host_outline_put(const struct xpl_opstats *s, void *at);

#endif
