// SPDX-License-Identifier: Apache-2.0
// Sorts links by key.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_LINK_SORT_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_LINK_SORT_H_

#include <stdbool.h>
#include <stddef.h>

#include "analysis/grouping/scan/node.h"

// By key; of equal keys producers come first, then by node.
static inline bool link_less(const struct link *a, const struct link *b) {
    const uint64_t ka = link_key(a), kb = link_key(b);
    return ka != kb ? ka < kb : a->end < b->end;
}

// In place.
void xpl_grp_sort_links(struct link *v, size_t n);

#endif
