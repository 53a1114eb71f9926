// SPDX-License-Identifier: Apache-2.0
// Links other than those of producers and consumers: launch to kernel, executor to iterator, and
// the iterations of TensorFlow's loops.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_EXTRA_LINKS_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_EXTRA_LINKS_H_

#include <stdbool.h>

#include "analysis/grouping/graph/graph.h"
#include "base/vec.h"

struct extra_links {
    XPL_VEC(struct link) v;
};

// Finds them.  Also fills gr->loop_roots.  False when out of memory.
bool xpl_grp_find_extra_links(struct graph *gr, struct extra_links *ret);

#endif
