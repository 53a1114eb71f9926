// SPDX-License-Identifier: Apache-2.0
// The index of lines: their own fields, the framing of their events, and where every few thousandth
// event begins, so that a line can be cut into pieces.
#ifndef XPL_ANALYSIS_XPLANE_LINE_INDEX_H_
#define XPL_ANALYSIS_XPLANE_LINE_INDEX_H_

#include <stddef.h>
#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_event_chunk {
    const uint8_t *p; // at or before the field of the event
    uint64_t first;   // its index in the line
};

// Index of the first event of chunk i; UINT64_MAX if i is not a chunk.
static inline uint64_t xpl_line_chunk_first(const struct xpl_line *l, uint32_t i) {
    if (i >= l->n_chunks) return UINT64_MAX;
    return i == 0 ? 0 : l->chunks[i].first;
}

// Indexes n lines, side by side where the exec (may be NULL) has threads.  *ret_broken: where the
// first broken line in the order of the list is broken, or NULL.  RESOURCE_EXHAUSTED, CANCELLED.
xpl_status_t xpl_line_index_make(struct xpl_line *const *lines, size_t n, struct xpl_arena *arena,
                                 struct xpl_exec *exec, const uint8_t **ret_broken,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
