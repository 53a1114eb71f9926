// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/reports/: durations of several groups, for exact percentiles.
//
// Filled in two passes, so that nothing is allocated that is not used: the first one counts, the
// second one adds.  8 bytes for each duration.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_DURATIONS_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_DURATIONS_H_

#include <stddef.h>
#include <stdint.h>

#include "analysis/ireeprof/row.h"

// Those of one group; zero-initialised.
struct xpl_iree_durations {
    uint64_t n, filled, first; // first: its place in the array of all
    uint64_t sum;
};
// Where group i keeps its own.
typedef struct xpl_iree_durations *xpl_iree_durations_of(void *groups, size_t i);

// Gives each group its place, once all are counted.  The array is freed with xpl_sys_free; NULL on
// OOM.
uint64_t *xpl_iree_durations_new(xpl_iree_durations_of *of, void *groups, size_t n_groups);
// More than were counted are passed over.
void xpl_iree_durations_add(struct xpl_iree_durations *d, uint64_t *all, uint64_t duration);
// Sorts a group's, and writes min, avg, p50, p95, p99 and max, each name with `suffix`.
void xpl_iree_durations_write(struct xpl_iree_rows *r, const struct xpl_iree_durations *d,
                              uint64_t *all, const char *suffix);

#endif
