// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "analysis/breakdown/breakdown.h"
#include "base/arena.h"

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

uint32_t xpl_time_step_at(const struct xpl_time_breakdown *b, uint64_t t) {
    size_t low = 0, high = b->steps.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (b->steps.v[mid].end_ps <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low < b->steps.n && b->steps.v[low].begin_ps <= t ? (uint32_t)low : XPL_BETWEEN_STEPS;
}

// What the device does itself. Copies from and to the host may be the host's, while it is idle.
static uint64_t own_work_ps(const struct xpl_time_sums *s) {
    return s->ps[XPL_TIME_COMPUTE] + s->ps[XPL_TIME_OVERLAPPED] + s->ps[XPL_TIME_COLLECTIVES] +
           s->ps[XPL_TIME_DEVICE_COPIES] + s->ps[XPL_TIME_HOST_COPIES];
}

uint64_t xpl_time_most_work_ps(const struct xpl_time_breakdown *b) {
    uint64_t most_ps = 0;
    size_t row = 0;
    for (size_t d = 0; d < b->devices.n; d++) {
        struct xpl_time_sums sums;
        xpl_time_sum_device(b, d, &row, &sums);
        if (own_work_ps(&sums) > most_ps) most_ps = own_work_ps(&sums);
    }
    return most_ps;
}

bool xpl_time_is_used(const struct xpl_time_sums *s, uint64_t most_work_ps) {
    enum { LEAST_PART = 100 };
    if (most_work_ps) return own_work_ps(s) >= most_work_ps / LEAST_PART;
    return s->ps[XPL_TIME_CALLBACK];
}

const bool *xpl_time_used_devices(const struct xpl_time_breakdown *b, struct xpl_arena *arena) {
    bool *const used = xpl_arena_array(arena, b->devices.n, sizeof *used), any = false;
    const uint64_t most_ps = xpl_time_most_work_ps(b);
    size_t row = 0;
    for (size_t d = 0; used && d < b->devices.n; d++) {
        struct xpl_time_sums sums;
        xpl_time_sum_device(b, d, &row, &sums);
        any |= used[d] = xpl_time_is_used(&sums, most_ps);
    }
    if (used && !any) memset(used, true, b->devices.n * sizeof *used);
    return used;
}
