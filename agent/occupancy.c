// SPDX-License-Identifier: Apache-2.0
#include "agent/occupancy.h"

#include <stdbool.h>
#include <stddef.h>

// Since compute capability 3.0 registers are given to a warp 256 at a time, and a multiprocessor
// gives them out in four parts.
// MAX_WARPS: of a block, twice what GPUs have; all sizes of blocks are tried for each kernel.
enum { REGISTER_UNIT = 256, PARTS = 4, REGISTERS_MAX = 255, MAX_WARPS = 64 };

struct need {
    int64_t registers, shared; // of a thread; of a block
};

static int64_t round_up(int64_t v, int64_t unit) {
    return (v + unit - 1) / unit * unit;
}

static bool is_known(const struct xpl_record_device *d) {
    const int32_t *const v[] = {&d->cores,
                                &d->major,
                                &d->threads_per_block,
                                &d->threads_per_core,
                                &d->registers_per_block,
                                &d->registers_per_core,
                                &d->warp,
                                &d->shared_per_block,
                                &d->shared_per_core,
                                &d->blocks_per_core};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        if (*v[i] <= 0) return false;
    return d->minor >= 0 && d->warp <= 1024 && d->threads_per_block <= MAX_WARPS * d->warp;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Blocks that a multiprocessor holds at once.
static int64_t blocks_at_once(const struct xpl_record_device *d, struct need n, int64_t block) {
    const int64_t warps = round_up(block, d->warp) / d->warp;
    if (block <= 0 || block > d->threads_per_block || n.registers > REGISTERS_MAX) return 0;
    int64_t blocks = least(d->blocks_per_core, d->threads_per_core / d->warp / warps);
    if (n.registers > 0) {
        const int64_t per_warp = round_up(n.registers * d->warp, REGISTER_UNIT);
        if (per_warp * round_up(warps, PARTS) > d->registers_per_block) return 0;
        const int64_t warps_fit = d->registers_per_core / PARTS / per_warp * PARTS;
        blocks = least(blocks, warps_fit / warps);
    }
    const int64_t reserved = d->shared_reserved_per_block > 0 ? d->shared_reserved_per_block : 0;
    const int64_t most =
        n.shared > d->shared_per_block ? d->shared_per_block_optin : d->shared_per_block;
    if (n.shared > most) return 0;
    const int64_t shared = round_up(n.shared + reserved, d->major >= 8 ? 128 : 256);
    return shared > 0 ? least(blocks, d->shared_per_core / shared) : blocks;
}

struct xpl_occupancy xpl_occupancy(const struct xpl_record_device *d, uint32_t block,
                                   uint32_t registers, uint32_t static_shared,
                                   uint32_t dynamic_shared) {
    struct xpl_occupancy o = {0};
    const struct need n = {registers, (int64_t)static_shared + dynamic_shared};
    if (!is_known(d)) return o;
    o.percent = (double)(blocks_at_once(d, n, block) * block) * 100 / d->threads_per_core;
    int64_t best = 0;
    for (int64_t b = d->threads_per_block; b > 0 && best < d->threads_per_core; b -= d->warp) {
        const int64_t blocks = blocks_at_once(d, n, b);
        if (blocks * b <= best) continue;
        best = blocks * b;
        o.grid_min = (int32_t)least(blocks * d->cores, INT32_MAX);
        o.block_best = (int32_t)b;
    }
    return o;
}
