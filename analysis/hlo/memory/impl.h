// SPDX-License-Identifier: Apache-2.0
// Private to analysis/hlo/memory: how a program's memory is read.
#ifndef XPL_ANALYSIS_HLO_MEMORY_IMPL_H_
#define XPL_ANALYSIS_HLO_MEMORY_IMPL_H_

#include "analysis/hlo/memory/memory.h"
#include "base/map.h"

struct memory_reader {
    struct xpl_hlo_memory *m;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct xpl_map by_id; // buffers: position + 1
    xpl_bytes_t *traces;  // HeapSimulatorTraces
    // For how many there is room: the bytes may change while they are read.
    struct {
        size_t buffers, allocations, assigned, traces;
    } room;
};

// Steps from a buffer to the one whose memory it shares, in one trace.
enum { MEMORY_STEPS = 1 << 26 };

// Reads buffers, allocations, and the buffers in each allocation.
xpl_status_t xpl_hlo_memory_read_assignment(struct memory_reader *r, xpl_bytes_t assignment,
                                            struct xpl_error *err) XPL_NODISCARD;
// Finds the instructions of the buffers that allocations hold, their shapes and sizes.
xpl_status_t xpl_hlo_memory_read_ops(struct memory_reader *r, xpl_bytes_t module,
                                     struct xpl_error *err) XPL_NODISCARD;
// Finds the traces of allocations, and replays that of the memory space.
xpl_status_t xpl_hlo_memory_replay(struct memory_reader *r, struct xpl_error *err) XPL_NODISCARD;

// A buffer that an allocation holds; UINT32_MAX: there is none.
static inline uint32_t xpl_hlo_memory_find(const struct memory_reader *r, int64_t id) {
    const uint64_t *const at = xpl_map_get(&r->by_id, (uint64_t)id, 0);
    if (!at || !*at) return UINT32_MAX;
    const uint32_t i = (uint32_t)(*at - 1);
    return r->m->buffers[i].allocation == UINT32_MAX ? UINT32_MAX : i;
}

#define XPL_RETURN_MALFORMED(err)                                                                  \
    XPL_RETURN_ERROR((err), XPL_DATA_LOSS, "malformed buffer assignment")

#endif
