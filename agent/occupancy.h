// SPDX-License-Identifier: Apache-2.0
// Theoretical occupancy of a kernel, by the rules of CUDA's programming guide: how many blocks fit
// a multiprocessor's threads, registers, shared memory and block slots.
#ifndef XPL_AGENT_OCCUPANCY_H_
#define XPL_AGENT_OCCUPANCY_H_

#include <stdint.h>

#include "agent/record.h"

struct xpl_occupancy {
    double percent;               // 0: not known
    int32_t grid_min, block_best; // the smallest block size with the best occupancy, and its grid
};

struct xpl_occupancy xpl_occupancy(const struct xpl_record_device *d, uint32_t block,
                                   uint32_t registers, uint32_t static_shared,
                                   uint32_t dynamic_shared);

#endif
