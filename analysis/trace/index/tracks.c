// SPDX-License-Identifier: Apache-2.0
// The records of each row side by side, in order of time: earlier first, of those that begin
// together the longer first (XProf: TraceEventLiteComparator).
#include <string.h>

#include "analysis/trace/index/impl.h"
#include "base/std_sort.h"
#include "base/vec.h"

// ---- gathering ----

// Lines of one row become neighbours.
static int by_row(const void *pa, const void *pb) {
    const struct line_src *const a = *(const struct line_src *const *)pa;
    const struct line_src *const b = *(const struct line_src *const *)pb;
    if (a->ps->device != b->ps->device) return a->ps->device < b->ps->device ? -1 : 1;
    if (a->resource != b->resource) return a->resource < b->resource ? -1 : 1;
    return (a > b) - (a < b);
}

static bool add_row(struct builder *b, struct line_src *const *lines, size_t n_lines) {
    size_t n = 0;
    for (size_t i = 0; i < n_lines; i++)
        n += lines[i]->n;
    if (n == 0) return true;
    struct track *const t = xpl_vec_push(b->arena, &b->tracks);
    if (!t) return false;
    *t = (struct track){.device = lines[0]->ps->device,
                        .resource = lines[0]->resource,
                        .plane = (uint32_t)(lines[0]->ps - b->planes.v),
                        .recs = lines[0]->recs,
                        .n = n};
    if (n_lines == 1) return true;
    t->recs = xpl_arena_array(b->arena, n, sizeof *t->recs);
    if (!t->recs) return false;
    struct rec *to = t->recs;
    for (size_t i = 0; i < n_lines; i++) {
        if (lines[i]->n) memcpy(to, lines[i]->recs, lines[i]->n * sizeof *to);
        to += lines[i]->n;
    }
    return true;
}

static bool add_rows(struct builder *b) {
    struct line_src **const list = xpl_arena_array(b->arena, b->lines.n, sizeof(*list));
    size_t n = 0;
    if (!list) return false;
    for (size_t i = 0; i < b->lines.n; i++)
        if (!b->lines.v[i].counter) list[n++] = &b->lines.v[i];
    xpl_sort(list, n, sizeof(*list), by_row);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n; end++)
            if (list[end]->resource != list[i]->resource ||
                list[end]->ps->device != list[i]->ps->device)
                break;
        if (!add_row(b, list + i, end - i)) return false;
    }
    return true;
}

// ---- counters and asynchronous events: a row per device and name ----

struct named_rec {
    struct rec rec; // .track: device
    uint32_t key;   // string; 0 for asynchronous events with long names, which share a row
    uint32_t plane;
    size_t at;
};

static int by_key(const void *pa, const void *pb) {
    const struct named_rec *const a = pa, *const b = pb;
    if (a->rec.track != b->rec.track) return a->rec.track < b->rec.track ? -1 : 1;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static bool gather_named(struct builder *b, struct named_rec **ret, size_t *ret_n) {
    size_t n = 0;
    for (size_t i = 0; i < b->n_pieces; i++)
        n += b->pieces[i].named.n;
    struct named_rec *const v = xpl_arena_array(b->arena, n, sizeof *v);
    if (!v) return false;
    *ret = v, *ret_n = n;
    n = 0;
    for (size_t i = 0; i < b->n_pieces; i++)
        for (size_t k = 0; k < b->pieces[i].named.n; k++) {
            const struct rec *const r = &b->pieces[i].named.v[k];
            const bool shared = (r->flags & TRC_ASYNC) && trc_is_long(b, r->name);
            v[n] = (struct named_rec){.rec = *r,
                                      .key = shared ? 0 : b->slot_string[r->name],
                                      .plane = (uint32_t)(b->pieces[i].ls->ps - b->planes.v),
                                      .at = n};
            n++;
        }
    xpl_sort(v, n, sizeof *v, by_key);
    return true;
}

static bool add_named(struct builder *b) {
    struct named_rec *v;
    size_t n;
    if (!gather_named(b, &v, &n)) return false;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n; end++)
            if (v[end].rec.track != v[i].rec.track || v[end].key != v[i].key) break;
        struct track *const t = xpl_vec_push(b->arena, &b->tracks);
        if (!t) return false;
        *t = (struct track){.device = v[i].rec.track,
                            .named = true,
                            .name = v[i].key,
                            .plane = v[i].plane,
                            .n = end - i};
        t->recs = xpl_arena_array(b->arena, t->n, sizeof *t->recs);
        if (!t->recs) return false;
        for (size_t k = i; k < end; k++)
            t->recs[k - i] = v[k].rec;
    }
    return true;
}

// ---- sorting ----

struct place {
    uint64_t ts, at;
};

enum { DIGIT = 11, DIGITS = 1 << DIGIT, FEW = DIGITS / 4 };

// Sorts by time, digit by digit from the lowest; stable.  *ret is where the result is, `v` or
// `other`.
static void sort_places(struct place *v, struct place *other, size_t n, uint64_t least,
                        uint64_t most, struct place **ret) {
    for (unsigned shift = 0; shift < 64 && (most - least) >> shift; shift += DIGIT) {
        size_t first[DIGITS] = {0}, at = 0;
        for (size_t i = 0; i < n; i++)
            first[(v[i].ts - least) >> shift & (DIGITS - 1)]++;
        for (size_t d = 0; d < DIGITS; d++) {
            const size_t here = first[d];
            first[d] = at;
            at += here;
        }
        for (size_t i = 0; i < n; i++)
            other[first[(v[i].ts - least) >> shift & (DIGITS - 1)]++] = v[i];
        struct place *const t = v;
        v = other, other = t;
    }
    *ret = v;
}

// Earlier first, of those that begin together the longer.
static bool before(const void *ctx, const void *pa, const void *pb) {
    const struct rec *const recs = ctx;
    const struct place *const a = pa, *const b = pb;
    if (a->ts != b->ts) return a->ts < b->ts;
    if (recs[a->at].dur != recs[b->at].dur) return recs[a->at].dur > recs[b->at].dur;
    return a->at < b->at;
}

static void sort_ties(const struct track *t, struct place *v) {
    for (size_t i = 0, end; i < t->n; i = end) {
        for (end = i + 1; end < t->n && v[end].ts == v[i].ts; end++)
            continue;
        if (end - i > 1) xpl_std_sort(v + i, end - i, sizeof *v, before, t->recs);
    }
}

// Puts each record into its place, along the cycles of the permutation: a copy of all would be
// memory that is touched for the first time.
static void permute(struct rec *recs, struct place *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (v[i].at == i) continue;
        const struct rec first = recs[i];
        size_t to = i;
        for (size_t from; (from = v[to].at) != i; to = from) {
            recs[to] = recs[from];
            v[to].at = to;
        }
        recs[to] = first;
        v[to].at = to;
    }
}

// Stable: ties stay as they were recorded.
static bool sort_recs(struct track *t) {
    uint64_t most = 0;
    struct place *const places = xpl_sys_alloc(2 * t->n * sizeof *places), *sorted;
    if (!places) return false;
    for (size_t i = 0; i < t->n; i++) {
        places[i] = (struct place){t->recs[i].ts, i};
        if (t->recs[i].ts > most) most = t->recs[i].ts;
    }
    if (t->n < FEW) {
        xpl_std_sort(sorted = places, t->n, sizeof *places, before, t->recs);
    } else {
        sort_places(places, places + t->n, t->n, t->min_ts, most, &sorted);
        sort_ties(t, sorted);
    }
    permute(t->recs, sorted, t->n);
    xpl_sys_free(places);
    return true;
}

// Records from `first` on that are in order.
static size_t run_from(const struct track *t, size_t first) {
    size_t k = first + 1;
    while (k < t->n && !comes_before(&t->recs[k], &t->recs[k - 1]))
        k++;
    return k - first;
}

static void sort_tail(const struct track *t, size_t m, struct place *places, struct rec *to) {
    const size_t n = t->n - m;
    for (size_t i = 0; i < n; i++)
        places[i] = (struct place){t->recs[m + i].ts, m + i};
    xpl_std_sort(places, n, sizeof *places, before, t->recs);
    for (size_t i = 0; i < n; i++)
        to[i] = t->recs[places[i].at];
}

// Merges the records after the first m into those, which are in order.
static bool merge_tail(struct track *t, size_t m, bool tail_sorted) {
    const size_t tail = t->n - m;
    struct rec *const copy =
        xpl_sys_alloc(tail * (sizeof *copy + (tail_sorted ? 0 : sizeof(struct place))));
    if (!copy) return false;
    if (tail_sorted)
        memcpy(copy, t->recs + m, tail * sizeof *copy);
    else
        sort_tail(t, m, (struct place *)(void *)(copy + tail), copy);
    for (size_t left = tail, to = t->n; left;) // from the end; of a tie the first stays first
        t->recs[--to] =
            m && comes_before(&copy[left - 1], &t->recs[m - 1]) ? t->recs[--m] : copy[--left];
    xpl_sys_free(copy);
    return true;
}

static void sort_track(void *ctx, size_t i) {
    enum { SMALL_PART = 8 };
    struct builder *const b = ctx;
    struct track *const t = &b->tracks.v[i];
    size_t in_order = 0; // so many from the beginning
    t->min_ts = UINT64_MAX;
    for (size_t k = 0; k < t->n; k++) {
        struct rec *const r = &t->recs[k];
        const uint64_t end = r->ts + r->dur;
        // Upstream ignores a begin or an end that is too large to be a time, each separately.
        if (r->ts < t->min_ts) t->min_ts = r->ts;
        if (end <= INT64_MAX && (!t->has_max || end > t->max_ts))
            t->has_max = true, t->max_ts = end;
        t->n_flows += (r->flags & TRC_HAS_FLOW) != 0;
        r->track = (uint32_t)i;
        if (in_order == k && (k == 0 || !comes_before(r, r - 1))) in_order++;
    }
    if (in_order == t->n) return;
    const bool two_runs = run_from(t, in_order) == t->n - in_order; // events, then regions
    if (two_runs || t->n - in_order < t->n / SMALL_PART)
        t->failed = !merge_tail(t, in_order, two_runs);
    else
        t->failed = !sort_recs(t);
}

// Order of tracks, and so of events that begin and end together.
static int by_place(const void *pa, const void *pb, void *ctx) {
    const struct builder *const b = ctx;
    const struct track *const a = pa, *const c = pb;
    const uint32_t da = b->devices.v[a->device].id, dc = b->devices.v[c->device].id;
    if (da != dc) return da < dc ? -1 : 1;
    if (a->named != c->named) return a->named ? 1 : -1;
    if (a->resource != c->resource) return a->resource < c->resource ? -1 : 1;
    return xpl_str_cmp(xpl_intern_get(b->strings, (xpl_strid_t){a->name}),
                       xpl_intern_get(b->strings, (xpl_strid_t){c->name}));
}

static void find_span(struct builder *b) {
    for (size_t i = 0; i < b->tracks.n; i++) {
        const struct track *const t = &b->tracks.v[i];
        b->n_events += t->n;
        if (t->min_ts <= INT64_MAX && (!b->has_min || t->min_ts < b->min_ts))
            b->has_min = true, b->min_ts = t->min_ts;
        if (t->has_max && (!b->has_max || t->max_ts > b->max_ts))
            b->has_max = true, b->max_ts = t->max_ts;
    }
}

xpl_status_t trc_make_tracks(struct builder *b, struct xpl_error *err) {
    if (!add_rows(b) || !add_named(b)) XPL_RETURN_OOM(err, "trace rows");
    xpl_sort_r(b->tracks.v, b->tracks.n, sizeof *b->tracks.v, by_place, b);
    xpl_exec_run(b->exec, b->tracks.n, sort_track, b);
    for (size_t i = 0; i < b->tracks.n; i++)
        if (b->tracks.v[i].failed) XPL_RETURN_OOM(err, "trace order");
    find_span(b);
    return XPL_OK;
}
