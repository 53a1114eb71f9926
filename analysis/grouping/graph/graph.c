// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/graph.h"

xpl_status_t xpl_grp_no_memory(struct graph *gr) {
    XPL_RETURN_OOM(gr->err, "event groups");
}

bool xpl_grp_is_tf_data(const struct graph *gr, int64_t step) {
    size_t lo = 0, hi = gr->n_tf_data_ids;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (gr->tf_data_ids[mid] == step) return true;
        if (gr->tf_data_ids[mid] < step)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}
