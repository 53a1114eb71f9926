// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/derived: copies between host and device, from pairs of starts and ends.
#ifndef XPL_ANALYSIS_TRACE_DERIVED_OFFLOAD_H_
#define XPL_ANALYSIS_TRACE_DERIVED_OFFLOAD_H_

#include "analysis/trace/derived/impl.h"

enum { XPL_OFFLOAD_MAX_ROWS = 41 };

struct xpl_offload_queue { // starts without an end so far, by name
    uint32_t display;      // metadata of the derived events, which have this display name
    uint32_t first, last;  // positions in starts + 1, 0: none
};
struct xpl_offload_start {
    uint64_t begin;
    uint32_t md, next; // next: position of the next of its queue + 1
};
struct xpl_offload_row {
    struct xpl_dline *line;
    uint64_t frontier; // where its last event ends
};

// State of one plane; zero but for p.
struct xpl_offload {
    struct xpl_dplane *p;
    XPL_VEC(struct xpl_offload_queue) queues;
    XPL_VEC(struct xpl_offload_start) starts;
    struct xpl_map queue_of; // by number of the name
    struct xpl_map extra_of; // by metadata of start and end
    struct xpl_offload_row rows[XPL_OFFLOAD_MAX_ROWS];
    uint32_t n_rows;
};

// Adds an event whose metadata names a start or an end, in order of time.  False when out of
// memory.
bool xpl_offload_put(struct xpl_offload *o, uint32_t md, uint64_t begin, uint64_t duration);

#endif
