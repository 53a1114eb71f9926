// SPDX-License-Identifier: Apache-2.0
// Spans of one kind of work in a step, packed.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_SPAN_LIST_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_SPAN_LIST_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/steps/timespan.h"
#include "base/arena.h"

struct xpl_packed_span {
    uint64_t begin, end;
};

// Spans of a list, in blocks that double up to a limit: most lists are short, some are very long.
// A block keeps 8 bytes per span where times are close together: begin after `base` and duration in
// `unit` ps, which is 1000 as long as all are whole nanoseconds, as clocks mostly give them.  What
// does not fit begins a block of its own kind.
struct span_block {
    struct span_block *next;
    uint64_t base;
    uint32_t n, cap;
    uint32_t unit; // 0: wide, begin and end in full
    uint64_t v[];  // narrow: begin << 32 | duration, in units
};

struct xpl_span_list {
    struct xpl_span_list *next;
    enum xpl_span_type type;
    struct span_block *head, *tail;
    // The last span that is longer than an instant, and where it is stored; NULL when there is
    // none.
    struct span_block *open_block;
    uint32_t open_at;
    struct xpl_packed_span open;
};

// Adds a span at the end.  False at the arena's limit.
bool xpl_span_list_push(struct xpl_span_list *l, struct xpl_packed_span s, struct xpl_arena *arena);
// True when a span changes nothing, or only lengthens the open one, which is done then: its kind
// goes on anyway there.  Only for the lowest kind, under which nothing can show through at the
// seams, and where only sums matter.
bool xpl_span_list_absorb(struct xpl_span_list *l, struct xpl_packed_span s);

static inline struct xpl_packed_span read_span(const struct span_block *b, uint32_t at) {
    if (b->unit == 0) return (struct xpl_packed_span){b->v[2 * at], b->v[2 * at + 1]};
    const uint64_t begin = b->base + (b->v[at] >> 32) * b->unit;
    return (struct xpl_packed_span){begin, begin + (b->v[at] & UINT32_MAX) * b->unit};
}

#endif
