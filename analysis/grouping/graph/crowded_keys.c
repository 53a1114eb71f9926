// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/crowded_keys.h"

#include <stdatomic.h>

#include "analysis/grouping/plan/event_links.h"
#include "analysis/grouping/plan/event_stats.h"
#include "base/exec.h"

// A join with that many producers and that many consumers links nothing [ConnectContextGroups].
enum { JOIN_LIMIT = 64 };

// How many consumers each of some keys has; counted on many threads at once.
struct key_counts {
    const uint64_t *keys; // sorted
    size_t n;
    _Atomic uint32_t *counts;
};

static void count_key(const struct key_counts *k, uint64_t key) {
    size_t lo = 0, hi = k->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (k->keys[mid] == key) {
            atomic_fetch_add_explicit(&k->counts[mid], 1, memory_order_relaxed);
            return;
        }
        if (k->keys[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
}

static void count_line(const struct scan *s, const struct xpl_line *line,
                       const struct key_counts *k) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    xpl_events_begin(&c, line);
    while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
        const struct xpl_raw_event raw = {.stats = ev.stats.p, .end = ev.stats.end};
        struct scan_stats ss;
        struct event_links links;
        if (!xpl_grp_read_stats(s->plan, &raw, &ss)) return;
        xpl_grp_event_links(s->plan, line, &ss, s->plan->role_of[ev.md], &links);
        if (links.consumer) count_key(k, links.consumer_key);
    }
}

static void count_consumers(const struct scan *s, const struct key_counts *k) {
    for (uint32_t i = 0; i < s->n_lines; i++)
        count_line(s, s->lines[i].line, k);
}

struct count_job {
    struct graph *gr;
    struct key_counts k;
};

static void run_count(void *ctx, size_t i) {
    struct count_job *const job = ctx;
    const struct scan *const s = &job->gr->scans[i];
    if (!s->plan->tpu) {
        count_consumers(s, &job->k);
        return;
    }
    // Those of TPU planes are all credited to grouping events, one link each.
    for (size_t k = 0; k < job->gr->n_consumers; k++) {
        const struct link *const l = &job->gr->consumers[k];
        if (link_node(l) - s->base < s->nodes.n) count_key(&job->k, link_key(l));
    }
}

xpl_status_t xpl_grp_drop_crowded(struct graph *gr) {
    struct link *const v = gr->producers;
    XPL_VEC(uint64_t) keys = {0};
    for (size_t i = 0, end; i < gr->n_producers; i = end) {
        for (end = i + 1; end < gr->n_producers && link_key(&v[end]) == link_key(&v[i]);)
            end++;
        if (end - i < JOIN_LIMIT) continue;
        uint64_t *const k = xpl_vec_push(&gr->temp, &keys);
        if (!k) return xpl_grp_no_memory(gr);
        *k = link_key(&v[i]);
    }
    if (keys.n == 0) return XPL_OK;
    struct count_job job = {
        gr, {keys.v, keys.n, xpl_arena_zalloc(&gr->temp, keys.n * sizeof(_Atomic uint32_t))}};
    if (!job.k.counts) return xpl_grp_no_memory(gr);
    xpl_exec_run(gr->g->exec, gr->n_scans, run_count, &job);
    size_t kept = 0, next = 0;
    for (size_t i = 0; i < gr->n_producers; i++) {
        while (next < keys.n && keys.v[next] < link_key(&v[i]))
            next++;
        const bool crowded =
            next < keys.n && keys.v[next] == link_key(&v[i]) && job.k.counts[next] >= JOIN_LIMIT;
        if (!crowded) v[kept++] = v[i];
    }
    gr->n_producers = kept;
    return XPL_OK;
}
