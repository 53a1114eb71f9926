// SPDX-License-Identifier: Apache-2.0
// One order over all tracks.  Time is cut into ranges of about as many events each; of every track
// a range is one stretch, so threads merge stretches of their ranges independently.
#include <stdatomic.h>
#include <string.h>

#include "analysis/trace/index/impl.h"
#include "base/vec.h"

enum { BUCKET_EVENTS = 1 << 14, SAMPLE = 1 << 8, MAX_SERIAL = 256 };

struct ordering {
    struct builder *b;
    uint64_t *bounds; // begins of ranges; the first is 0
    size_t n;
    atomic_bool no_memory;
};

static int by_value(const void *pa, const void *pb) {
    const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return (a > b) - (a < b);
}

// Begins of ranges, from a sample of times.
static bool choose_bounds(struct ordering *o) {
    struct builder *const b = o->b;
    const size_t n_ranges = (size_t)(b->n_events / BUCKET_EVENTS) + 1;
    size_t n = 0;
    uint64_t *const sample =
        xpl_arena_array(b->arena, (size_t)(b->n_events / SAMPLE) + b->tracks.n, sizeof *sample);
    o->bounds = xpl_arena_array(b->arena, n_ranges, sizeof *o->bounds);
    if (!sample || !o->bounds) return false;
    for (size_t i = 0; i < b->tracks.n; i++)
        for (size_t k = SAMPLE / 2; k < b->tracks.v[i].n; k += SAMPLE)
            sample[n++] = b->tracks.v[i].recs[k].ts;
    xpl_sort(sample, n, sizeof *sample, by_value);
    o->bounds[o->n++] = 0;
    for (size_t i = 1; n && i < n_ranges; i++) {
        const uint64_t at = sample[(size_t)((__uint128_t)n * i / n_ranges)];
        if (at > o->bounds[o->n - 1]) o->bounds[o->n++] = at;
    }
    return true;
}

// First event of the track at or after `ts`.
static size_t first_at(const struct track *t, uint64_t ts) {
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->recs[mid].ts < ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void count_before(void *ctx, size_t i) {
    struct ordering *const o = ctx;
    size_t n = 0;
    if (xpl_exec_cancelled(o->b->exec)) return;
    for (size_t k = 0; k < o->b->tracks.n; k++)
        n += first_at(&o->b->tracks.v[k], o->bounds[i]);
    o->b->bucket_first[i] = n;
}

// ---- merging ----

static void merge(struct rec *const *a, size_t n, struct rec *const *b, size_t m, struct rec **to) {
    while (n && m) {
        if (comes_before(*b, *a)) // a tie goes to the first: its track comes first
            *to++ = *b++, m--;
        else
            *to++ = *a++, n--;
    }
    if (n) memcpy(to, a, n * sizeof(*to));
    if (m) memcpy(to + n, b, m * sizeof(*to));
}

// Merges adjacent stretches of `v`; ends[i] is the end of stretch i.
static void merge_all(struct rec **v, struct rec **other, size_t *ends, size_t n_ends) {
    struct rec **from = v, **to = other;
    const size_t n = n_ends ? ends[n_ends - 1] : 0;
    while (n_ends > 1) {
        size_t out = 0, begin = 0;
        for (size_t i = 0; i < n_ends; i += 2) {
            const size_t mid = ends[i], end = i + 1 < n_ends ? ends[i + 1] : mid;
            merge(from + begin, mid - begin, from + mid, end - mid, to + begin);
            ends[out++] = begin = end;
        }
        n_ends = out;
        struct rec **const t = from;
        from = to, to = t;
    }
    if (from != v && n) memcpy(v, from, n * sizeof(*v));
}

static void number_serials(struct rec *const *v, size_t n) {
    uint64_t last = UINT64_MAX;
    uint16_t serial = 0;
    for (size_t i = 0; i < n; i++) {
        serial = v[i]->ts != last ? 0 : serial < MAX_SERIAL ? (uint16_t)(serial + 1) : serial;
        last = v[i]->ts;
        v[i]->serial = serial;
    }
}

static size_t list_flows(struct rec *const *v, size_t n, struct rec **to) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i]->flags & TRC_HAS_FLOW) to[found++] = v[i];
    return found;
}

static void order_bucket(void *ctx, size_t i) {
    struct ordering *const o = ctx;
    struct builder *const b = o->b;
    struct rec **const v = b->order + b->bucket_first[i];
    const size_t n = b->bucket_first[i + 1] - b->bucket_first[i];
    if (n == 0 || xpl_exec_cancelled(b->exec)) return;
    const size_t most = b->tracks.n < n ? b->tracks.n : n;
    struct rec **const other = xpl_sys_alloc(n * sizeof(*other) + most * sizeof(size_t));
    if (!other) {
        atomic_store(&o->no_memory, true);
        return;
    }
    size_t *const ends = (size_t *)(void *)(other + n);
    size_t n_ends = 0, at = 0;
    for (size_t k = 0; k < b->tracks.n; k++) {
        const struct track *const t = &b->tracks.v[k];
        const size_t first = first_at(t, o->bounds[i]);
        const size_t end = i + 1 < o->n ? first_at(t, o->bounds[i + 1]) : t->n;
        if (first == end) continue;
        for (size_t r = first; r < end; r++)
            v[at++] = &t->recs[r];
        ends[n_ends++] = at;
    }
    merge_all(v, other, ends, n_ends);
    number_serials(v, n);
    if (b->flow_events) b->bucket_flows[i] = list_flows(v, n, b->flow_events + b->bucket_first[i]);
    xpl_sys_free(other);
}

static bool any_flows(const struct builder *b) {
    for (size_t i = 0; i < b->tracks.n; i++)
        if (b->tracks.v[i].n_flows) return true;
    return false;
}

static bool make_room_for_flows(struct builder *b) {
    if (!any_flows(b)) return true;
    b->flow_events = xpl_arena_array(b->arena, b->n_events, sizeof(*b->flow_events));
    b->bucket_flows = xpl_arena_zalloc(b->arena, b->n_buckets * sizeof *b->bucket_flows);
    return b->flow_events && b->bucket_flows;
}

xpl_status_t trc_put_in_order(struct builder *b, struct xpl_error *err) {
    struct ordering o = {.b = b};
    b->order = xpl_arena_array(b->arena, b->n_events, sizeof(*b->order));
    if (!b->order || !choose_bounds(&o)) XPL_RETURN_OOM(err, "trace order");
    b->bucket_first = xpl_arena_array(b->arena, o.n + 1, sizeof *b->bucket_first);
    if (!b->bucket_first) XPL_RETURN_OOM(err, "trace order");
    b->n_buckets = o.n;
    b->bucket_first[o.n] = b->n_events;
    if (!make_room_for_flows(b)) XPL_RETURN_OOM(err, "trace flows");
    xpl_exec_run(b->exec, o.n, count_before, &o);
    if (xpl_exec_cancelled(b->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace: cancelled");
    xpl_exec_run(b->exec, o.n, order_bucket, &o);
    if (atomic_load(&o.no_memory)) XPL_RETURN_OOM(err, "trace order");
    if (xpl_exec_cancelled(b->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace: cancelled");
    return XPL_OK;
}
