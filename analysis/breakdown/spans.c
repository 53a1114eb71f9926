// SPDX-License-Identifier: Apache-2.0
#include "analysis/breakdown/spans.h"

#include <stdlib.h>

bool xpl_spans_add(struct xpl_spans *s, struct xpl_span span, struct xpl_arena *arena) {
    if (span.begin >= span.end) return true;
    struct xpl_span *const last = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
    if (last && span.begin >= last->begin && span.begin <= last->end) {
        if (span.end > last->end) last->end = span.end;
        return true;
    }
    s->unordered |= last && span.begin < last->begin;
    struct xpl_span *const slot = xpl_vec_push(arena, &s->v);
    if (slot) *slot = span;
    return slot != NULL;
}

static int by_begin(const void *a, const void *b) {
    const struct xpl_span *const x = a, *const y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

void xpl_spans_finish(struct xpl_spans *s) {
    if (!s->unordered) return;
    qsort(s->v.v, s->v.n, sizeof *s->v.v, by_begin);
    size_t n = 0;
    for (size_t i = 0; i < s->v.n; i++) {
        const struct xpl_span span = s->v.v[i];
        if (n && span.begin <= s->v.v[n - 1].end) {
            if (span.end > s->v.v[n - 1].end) s->v.v[n - 1].end = span.end;
        } else {
            s->v.v[n++] = span;
        }
    }
    s->v.n = n;
    s->unordered = false;
}

// The first span from `at` on that ends after `t`: most places move by few spans, some by many.
static size_t seek(const struct xpl_spans *s, size_t at, uint64_t t) {
    size_t step = 1, low = at;
    while (low + step <= s->v.n && s->v.v[low + step - 1].end <= t) {
        low += step;
        step *= 2;
    }
    size_t high = low + step - 1 < s->v.n ? low + step - 1 : s->v.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (s->v.v[mid].end <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool xpl_spans_at(const struct xpl_spans *s, struct xpl_span_place *p, uint64_t t, uint64_t *next) {
    p->at = seek(s, p->at, t);
    if (p->at == s->v.n) return false;
    const struct xpl_span span = s->v.v[p->at];
    const bool inside = span.begin <= t;
    const uint64_t change = inside ? span.end : span.begin;
    if (change < *next) *next = change;
    return inside;
}
