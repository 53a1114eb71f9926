// SPDX-License-Identifier: Apache-2.0
#include "analysis/breakdown/spans.h"

#include <string.h>

#include "base/arena.h"

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

// Where the spans end that come in order from `at` on.
static size_t run_end(const struct xpl_span *v, size_t at, size_t n) {
    while (++at < n && v[at - 1].begin <= v[at].begin)
        ;
    return at;
}

// Merges v[0, mid) and v[mid, end).
static void merge(const struct xpl_span *v, size_t mid, size_t end, struct xpl_span *to) {
    size_t i = 0, j = mid;
    while (i < mid && j < end)
        *to++ = v[j].begin < v[i].begin ? v[j++] : v[i++];
    memcpy(to, i < mid ? v + i : v + j, (i < mid ? mid - i : end - j) * sizeof *v);
}

// Spans of a thread come in order: each pass merges two threads.
static bool sort(struct xpl_spans *s, struct xpl_arena *arena) {
    struct xpl_span *from = s->v.v, *to = xpl_arena_array(arena, s->v.n, sizeof *to);
    if (!to) return false;
    while (run_end(from, 0, s->v.n) < s->v.n) {
        for (size_t at = 0, mid, end; at < s->v.n; at = end) {
            mid = run_end(from, at, s->v.n);
            end = mid < s->v.n ? run_end(from, mid, s->v.n) : mid;
            merge(from + at, mid - at, end - at, to + at);
        }
        struct xpl_span *const sorted = to;
        to = from;
        from = sorted;
    }
    s->v.v = from;
    s->v.cap = s->v.n;
    return true;
}

bool xpl_spans_finish(struct xpl_spans *s, struct xpl_arena *arena) {
    if (!s->unordered) return true;
    if (!sort(s, arena)) return false;
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
    return true;
}

// Most places move by few spans, some by many.
size_t xpl_spans_seek(const struct xpl_spans *s, size_t at, uint64_t t) {
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
