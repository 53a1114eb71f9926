// SPDX-License-Identifier: Apache-2.0
// Sets of instants: spans that are sorted and apart, and a place in them.
#ifndef XPL_ANALYSIS_BREAKDOWN_SPANS_H_
#define XPL_ANALYSIS_BREAKDOWN_SPANS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct xpl_arena;

struct xpl_span {
    uint64_t begin, end; // begin < end
};

struct xpl_spans {
    XPL_VEC(struct xpl_span) v;
    bool unordered; // some span was added before its predecessor
};

// False at the arena's limit.  An empty span adds nothing.
bool xpl_spans_add(struct xpl_spans *s, struct xpl_span span, struct xpl_arena *arena)
    __attribute__((warn_unused_result));
// Sorts and joins the spans; called once, after the last xpl_spans_add and before the first lookup.
// False at the arena's limit.
bool xpl_spans_finish(struct xpl_spans *s, struct xpl_arena *arena)
    __attribute__((warn_unused_result));

// A place that only moves forward; zero-initialised: the beginning.
struct xpl_span_place {
    size_t at;
};
// The first span from `at` on that ends after `t`.
size_t xpl_spans_seek(const struct xpl_spans *s, size_t at, uint64_t t);
// Whether `t` lies in the set; *next is lowered to where that changes after `t`.
static inline bool xpl_spans_at(const struct xpl_spans *s, struct xpl_span_place *p, uint64_t t,
                                uint64_t *next) {
    if (p->at < s->v.n && s->v.v[p->at].end <= t) p->at = xpl_spans_seek(s, p->at + 1, t);
    if (p->at == s->v.n) return false;
    const struct xpl_span *const span = &s->v.v[p->at];
    const bool inside = span->begin <= t;
    const uint64_t change = inside ? span->end : span->begin;
    if (change < *next) *next = change;
    return inside;
}

#endif
