// SPDX-License-Identifier: Apache-2.0
// How long each kind of work went on in a step.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_SPAN_SUMS_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_SPAN_SUMS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/steps/event_span.h"

struct xpl_span_index;

// Who owned each instant of a step once overlaps are removed (ToNonOverlappedEvents).
struct xpl_span_sums {
    uint64_t ps[XPL_SPAN_TYPES];    // inside `within`, by type / 10
    uint64_t total[XPL_SPAN_TYPES]; // everywhere
    uint32_t present;               // bit type / 10: the kind owned a slice, maybe an empty one
};
// `scratch` is used for 64 bytes per span and not freed.
bool xpl_step_sum_spans(const struct xpl_step *st, struct xpl_timespan within,
                        struct xpl_arena *scratch, struct xpl_span_sums *ret) XPL_NODISCARD;
// For the steps of a host that stands for a device: together with what of `more` (may be NULL) lies
// inside `within`.  Waiting for input owns its instants there, also those at which ops compute.
bool xpl_step_sum_spans_cpu(const struct xpl_step *st, const struct xpl_span_index *more,
                            struct xpl_timespan within, struct xpl_arena *scratch,
                            struct xpl_span_sums *ret) XPL_NODISCARD;
// Spans that belong to no step of their own, to be found by time.  Those of `st` were added by
// xpl_step_add_union, and must last as long as the index; any thread may use that.
bool xpl_span_index_make(const struct xpl_step *st, struct xpl_arena *arena,
                         struct xpl_span_index **ret) XPL_NODISCARD;
// The same without removing overlaps: every span counts in full.
void xpl_step_sum_overlapped(const struct xpl_step *st, struct xpl_timespan within,
                             struct xpl_span_sums *ret);

#endif
