// SPDX-License-Identifier: Apache-2.0
// The length of a stream's queue over time.

#include "analysis/tools/launches/launches.h"
#include "base/vec.h"

static int by_from(const void *a, const void *b) {
    const struct xpl_launch_wait *const x = a, *const y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static int by_value(const void *a, const void *b) {
    const uint64_t *const x = a, *const y = b;
    return (*x > *y) - (*x < *y);
}

static void begin_parts(uint64_t window, size_t n, struct xpl_queue_part *ret, size_t *ret_n) {
    const uint64_t width = n ? window / n + (window % n != 0) : 0;
    *ret_n = 0;
    for (uint64_t at = 0; n && at < window; at += width) {
        const uint64_t left = window - at;
        ret[(*ret_n)++] =
            (struct xpl_queue_part){at, left < width ? left : width, UINT64_MAX, 0, 0};
        if (left <= width) break;
    }
    ret[*ret_n] = (struct xpl_queue_part){0, window, UINT64_MAX, 0, 0};
}

// `mean` is the integral until all is added.
static void add_to(struct xpl_queue_part *p, uint64_t length, uint64_t duration) {
    p->mean += (double)length * (double)duration;
    if (length > p->most) p->most = length;
    if (length < p->least) p->least = length;
}

struct sweep {
    struct xpl_queue_part *parts;
    size_t n, at; // parts[at] is the first that is not over
};

// The queue has this length from `from` to `to`.
static void add(struct sweep *s, uint64_t length, uint64_t from, uint64_t to) {
    if (from >= to) return;
    add_to(&s->parts[s->n], length, to - from);
    while (s->at < s->n && from < to) {
        struct xpl_queue_part *const p = &s->parts[s->at];
        const uint64_t end = p->begin_ps + p->duration_ps, until = to < end ? to : end;
        add_to(p, length, until - from);
        from = until;
        if (until == end) s->at++;
    }
}

void xpl_launch_queue(struct xpl_launch_stream *s, uint64_t *ends, size_t n,
                      struct xpl_queue_part *ret, size_t *ret_n) {
    const struct xpl_launch_wait *const v = s->waits.v;
    const size_t n_waits = s->waits.n;
    begin_parts(s->window_ps, n, ret, ret_n);
    for (size_t i = 0; i < n_waits; i++)
        ends[i] = v[i].to;
    if (n_waits) {
        xpl_sort(s->waits.v, n_waits, sizeof *s->waits.v, by_from);
        xpl_sort(ends, n_waits, sizeof *ends, by_value);
    }
    struct sweep sweep = {.parts = ret, .n = *ret_n};
    uint64_t length = 0, now = 0;
    // Of what changes at one instant the end comes first: nothing lasts no time.
    for (size_t begun = 0, ended = 0; ended < n_waits;) {
        const bool ends_next = begun == n_waits || ends[ended] <= v[begun].from;
        const uint64_t at = ends_next ? ends[ended++] : v[begun++].from;
        add(&sweep, length, now, at);
        now = at;
        length = ends_next ? length - 1 : length + 1;
    }
    add(&sweep, 0, now, s->window_ps);
    for (size_t i = 0; i <= *ret_n; i++) {
        ret[i].mean = ret[i].duration_ps ? ret[i].mean / (double)ret[i].duration_ps : 0;
        if (ret[i].least == UINT64_MAX) ret[i].least = 0;
    }
}
