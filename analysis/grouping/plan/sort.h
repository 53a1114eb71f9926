// SPDX-License-Identifier: Apache-2.0
// Sorting in place.
#ifndef XPL_ANALYSIS_GROUPING_PLAN_SORT_H_
#define XPL_ANALYSIS_GROUPING_PLAN_SORT_H_

#include <stddef.h>

// Sorts n elements of `size` bytes each in place, without further memory; not stable.
void xpl_grp_sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *));

#endif
