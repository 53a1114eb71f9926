// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/span_sums.h"

#include <string.h>

#include "analysis/opstats/steps/span_list.h"
#include "base/arena.h"
#include "base/vec.h"

// ---- removing overlaps ----

// Begin or end of a span.  `key` orders what happens at one instant: ends before begins, and of
// either the higher kind first.
struct boundary {
    uint64_t time;
    uint32_t key;
};
enum { KEY_BEGIN = 32 };

// Of several spans the one with the greatest rank owns an instant. XProf's ranks are the numbers of
// the kinds. In addition ours, of a host that counts as a device: its ops run on the same cores as
// those that wait for input, so that they hide no wait.
enum { INPUT = XPL_SPAN_HOST_WAIT_INPUT / 10, LAST_COMPUTE = XPL_SPAN_DEVICE_COMPUTE_16 / 10 };
static uint32_t rank_of(uint32_t kind, bool input_first) {
    if (!input_first || kind < INPUT || kind > LAST_COMPUTE) return kind;
    return kind == INPUT ? LAST_COMPUTE : kind - 1;
}
static uint32_t kind_of(uint32_t rank, bool input_first) {
    if (!input_first || rank < INPUT || rank > LAST_COMPUTE) return rank;
    return rank == LAST_COMPUTE ? INPUT : rank + 1;
}

static uint32_t end_key(uint32_t kind, bool input_first) {
    return (uint32_t)(XPL_SPAN_TYPES - 1) - rank_of(kind, input_first);
}

static bool boundary_after(const struct boundary *a, const struct boundary *b) {
    return a->time != b->time ? a->time > b->time : a->key > b->key;
}

static struct boundary *add_boundaries(const struct xpl_span_list *l, bool input_first,
                                       struct boundary *out) {
    const uint32_t end = end_key((uint32_t)l->type / 10, input_first), begin = KEY_BEGIN + end;
    for (const struct span_block *b = l->head; b; b = b->next)
        for (uint32_t i = 0; i < b->n; i++) {
            const struct xpl_packed_span s = read_span(b, i);
            const bool instant = s.begin == s.end;
            *out++ = (struct boundary){s.begin, instant ? end : begin};
            *out++ = (struct boundary){s.end, instant ? begin : end};
        }
    return out;
}

static size_t run_end(const struct boundary *v, size_t i, size_t n) {
    for (i++; i < n && !boundary_after(&v[i - 1], &v[i]); i++) {
    }
    return i;
}

// Where each ascending run ends.
struct runs {
    XPL_VEC(size_t) ends;
};

static bool find_runs(const struct boundary *v, size_t n, struct xpl_arena *scratch,
                      struct runs *ret) {
    for (size_t i = 0; i < n;) {
        size_t *const end = xpl_vec_push(scratch, &ret->ends);
        if (!end) return false;
        *end = i = run_end(v, i, n);
    }
    return true;
}

// Merges v[from, mid) and v[mid, to) into out.
static void merge_two(const struct boundary *v, size_t from, size_t mid, size_t to,
                      struct boundary *out) {
    size_t a = from, b = mid;
    while (a < mid && b < to)
        *out++ = boundary_after(&v[a], &v[b]) ? v[b++] : v[a++];
    if (a < mid) memcpy(out, &v[a], (mid - a) * sizeof *v);
    if (b < to) memcpy(out, &v[b], (to - b) * sizeof *v);
}

// Merges neighbouring ascending runs until one is left: the lists are sorted already, or nearly.
// NULL at the arena's limit.
static const struct boundary *sort_boundaries(struct boundary *v, struct boundary *tmp, size_t n,
                                              struct xpl_arena *scratch) {
    struct runs runs = {0};
    if (!find_runs(v, n, scratch, &runs)) return NULL;
    while (runs.ends.n > 1) {
        size_t merged = 0, from = 0;
        for (size_t i = 0; i < runs.ends.n; i += 2) {
            const size_t mid = runs.ends.v[i];
            const size_t to = i + 1 < runs.ends.n ? runs.ends.v[i + 1] : mid;
            merge_two(v, from, mid, to, tmp + from);
            runs.ends.v[merged++] = from = to;
        }
        runs.ends.n = merged;
        struct boundary *const swap = v;
        v = tmp, tmp = swap;
    }
    return v;
}

// The rank that owns the time after boundary `b`. An instant ends before it begins, so its count
// ends at 0 while its kind has become the current one and stays so until something of at least that
// kind ends: upstream does the same (PriorityTracker).
static uint32_t track(const struct boundary *b, int64_t count[XPL_SPAN_TYPES], uint32_t current) {
    const bool begins = b->key >= KEY_BEGIN;
    const uint32_t rank = XPL_SPAN_TYPES - 1 - (begins ? b->key - KEY_BEGIN : b->key);
    if (begins) {
        count[rank]++;
        return rank > current ? rank : current;
    }
    count[rank]--;
    if (rank != current || count[rank] != 0) return current;
    while (rank > 0 && current > 0)
        if (count[--current] > 0) break;
    return current;
}

// ---- spans by time ----

// Disjoint spans of one kind, ascending; `begins` has the first begin of each block.
struct indexed_list {
    uint8_t type; // / 10
    size_t n_blocks;
    const struct span_block **blocks;
};
struct xpl_span_index {
    XPL_VEC(struct indexed_list) lists;
};

static bool is_ascending(const struct xpl_span_list *l) {
    uint64_t last = 0;
    for (const struct span_block *b = l->head; b; b = b->next)
        for (uint32_t i = 0; i < b->n; i++) {
            const struct xpl_packed_span s = read_span(b, i);
            if (s.begin < last) return false;
            last = s.end;
        }
    return true;
}

static int by_begin(const void *pa, const void *pb) {
    const struct xpl_packed_span *a = pa, *b = pb;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

// The same spans in order and merged: for lines whose events are not.
static bool sort_list(const struct xpl_span_list *l, struct xpl_arena *arena,
                      struct xpl_span_list *ret) {
    size_t n = 0, k = 0;
    for (const struct span_block *b = l->head; b; b = b->next)
        n += b->n;
    struct xpl_packed_span *v = xpl_arena_array(arena, n, sizeof *v);
    if (!v) return false;
    for (const struct span_block *b = l->head; b; b = b->next)
        for (uint32_t i = 0; i < b->n; i++)
            v[k++] = read_span(b, i);
    xpl_sort(v, n, sizeof *v, by_begin);
    *ret = (struct xpl_span_list){.type = l->type};
    for (size_t i = 0; i < n; i++) {
        for (; i + 1 < n && v[i + 1].begin <= v[i].end; i++) {
            v[i + 1].begin = v[i].begin;
            if (v[i].end > v[i + 1].end) v[i + 1].end = v[i].end;
        }
        if (!xpl_span_list_push(ret, v[i], arena)) return false;
    }
    return true;
}

bool xpl_span_index_make(const struct xpl_step *st, struct xpl_arena *arena,
                         struct xpl_span_index **ret) {
    struct xpl_span_index *index = xpl_arena_zalloc(arena, sizeof *index);
    if (!index) return false;
    for (const struct xpl_span_list *l = st->spans; l; l = l->next) {
        struct xpl_span_list sorted = *l;
        struct indexed_list *slot = xpl_vec_push(arena, &index->lists);
        if (!slot || (!is_ascending(l) && !sort_list(l, arena, &sorted))) return false;
        *slot = (struct indexed_list){.type = (uint8_t)(l->type / 10)};
        for (const struct span_block *b = sorted.head; b; b = b->next)
            slot->n_blocks++;
        slot->blocks = xpl_arena_array(arena, slot->n_blocks, sizeof *slot->blocks);
        if (!slot->blocks) return false;
        size_t i = 0;
        for (const struct span_block *b = sorted.head; b; b = b->next)
            slot->blocks[i++] = b;
    }
    *ret = index;
    return true;
}

// Boundaries of what of the list lies inside [begin, end]; only counted where `out` is NULL.
static size_t add_overlap(const struct indexed_list *l, uint64_t begin, uint64_t end,
                          struct boundary *out) {
    size_t lo = 0, hi = l->n_blocks, n = 0;
    while (hi - lo > 1) { // the last block that begins before
        const size_t mid = lo + (hi - lo) / 2;
        if (read_span(l->blocks[mid], 0).begin <= begin)
            lo = mid;
        else
            hi = mid;
    }
    const uint32_t key = end_key(l->type, true);
    for (; lo < l->n_blocks; lo++)
        for (uint32_t i = 0; i < l->blocks[lo]->n; i++) {
            const struct xpl_packed_span s = read_span(l->blocks[lo], i);
            if (s.begin >= end) return n;
            if (s.end <= begin) continue;
            if (out) {
                out[n] = (struct boundary){s.begin > begin ? s.begin : begin, KEY_BEGIN + key};
                out[n + 1] = (struct boundary){s.end < end ? s.end : end, key};
            }
            n += 2;
        }
    return n;
}

static size_t add_overlaps(const struct xpl_span_index *more, struct xpl_timespan within,
                           struct boundary *out) {
    size_t n = 0;
    for (size_t i = 0; more && within.duration_ps && i < more->lists.n; i++)
        n += add_overlap(&more->lists.v[i], within.begin_ps, xpl_timespan_end(within),
                         out ? out + n : NULL);
    return n;
}

static void add_time(struct xpl_span_sums *sums, uint32_t kind, struct xpl_timespan within,
                     uint64_t from, uint64_t to) {
    sums->present |= 1u << kind;
    sums->ps[kind] += xpl_timespan_overlap(within, from, to);
    sums->total[kind] += to - from;
}

static bool sum_spans(const struct xpl_step *st, const struct xpl_span_index *more,
                      bool input_first, struct xpl_timespan within, struct xpl_arena *scratch,
                      struct xpl_span_sums *ret) {
    *ret = (struct xpl_span_sums){0};
    size_t n = add_overlaps(more, within, NULL);
    for (const struct xpl_span_list *l = st->spans; l; l = l->next)
        for (const struct span_block *b = l->head; b; b = b->next)
            n += 2u * b->n;
    if (n == 0) return true;
    struct boundary *v = xpl_arena_array(scratch, n, sizeof *v);
    struct boundary *tmp = xpl_arena_array(scratch, n, sizeof *tmp);
    if (!v || !tmp) return false;
    struct boundary *end = v;
    for (const struct xpl_span_list *l = st->spans; l; l = l->next)
        end = add_boundaries(l, input_first, end);
    add_overlaps(more, within, end);
    const struct boundary *const sorted = sort_boundaries(v, tmp, n, scratch);
    if (!sorted) return false;
    int64_t count[XPL_SPAN_TYPES] = {0};
    uint32_t current = track(&sorted[0], count, 0);
    uint64_t from = sorted[0].time;
    for (size_t i = 1; i + 1 < n; i++) {
        const uint32_t next = track(&sorted[i], count, current);
        if (next == current) continue;
        add_time(ret, kind_of(current, input_first), within, from, sorted[i].time);
        current = next;
        from = sorted[i].time;
    }
    add_time(ret, kind_of(current, input_first), within, from, sorted[n - 1].time);
    return true;
}

bool xpl_step_sum_spans(const struct xpl_step *st, struct xpl_timespan within,
                        struct xpl_arena *scratch, struct xpl_span_sums *ret) {
    return sum_spans(st, NULL, false, within, scratch, ret);
}

bool xpl_step_sum_spans_cpu(const struct xpl_step *st, const struct xpl_span_index *more,
                            struct xpl_timespan within, struct xpl_arena *scratch,
                            struct xpl_span_sums *ret) {
    return sum_spans(st, more, true, within, scratch, ret);
}

void xpl_step_sum_overlapped(const struct xpl_step *st, struct xpl_timespan within,
                             struct xpl_span_sums *ret) {
    *ret = (struct xpl_span_sums){0};
    for (const struct xpl_span_list *l = st->spans; l; l = l->next)
        for (const struct span_block *b = l->head; b; b = b->next)
            for (uint32_t i = 0; i < b->n; i++) {
                const uint32_t type = (uint32_t)l->type / 10;
                const struct xpl_packed_span s = read_span(b, i);
                ret->present |= 1u << type;
                ret->ps[type] += xpl_timespan_overlap(within, s.begin, s.end);
                ret->total[type] += s.end - s.begin;
            }
}
