// SPDX-License-Identifier: Apache-2.0
#include "analysis/breakdown/breakdown.h"

void xpl_time_sum_device(const struct xpl_time_breakdown *b, size_t d, size_t *row,
                         struct xpl_time_sums *ret) {
    *ret = (struct xpl_time_sums){0};
    for (; *row < b->rows.n && b->rows.v[*row].device == d; ++*row) {
        const struct xpl_time_row *const r = &b->rows.v[*row];
        ret->wall_ps += r->wall_ps;
        for (size_t c = 0; c < XPL_TIME_CAUSES; c++)
            ret->ps[c] += r->ps[c];
    }
}

bool xpl_time_is_used(const struct xpl_time_sums *s) {
    for (size_t c = 0; c < XPL_TIME_INPUT; c++)
        if (s->ps[c]) return true;
    return false;
}
