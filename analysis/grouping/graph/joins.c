// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/graph.h"

#include <stdatomic.h>
#include <string.h>

#include "analysis/grouping/plan/event_links.h"
#include "analysis/grouping/plan/event_stats.h"
#include "base/exec.h"

// ---- crowded keys ----

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
    struct xpl_event_cursor c = xpl_events_of(line);
    struct xpl_event ev;
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

static bool is_of_tpu(const struct graph *gr, uint32_t node) {
    size_t lo = 0, hi = gr->n_scans; // scans are in the order of nodes; some have none
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (gr->scans[mid].base <= node)
            lo = mid;
        else
            hi = mid;
    }
    return gr->scans[lo].plan->tpu;
}

static void run_count(void *ctx, size_t i) {
    struct count_job *const job = ctx;
    const struct graph *const gr = job->gr;
    if (i < gr->n_scans) {
        if (!gr->scans[i].plan->tpu) count_consumers(&gr->scans[i], &job->k);
        return;
    }
    // Those of TPU planes are all credited to grouping events, one link each.
    for (size_t k = 0; k < gr->n_consumers; k++)
        if (is_of_tpu(gr, link_node(&gr->consumers[k])))
            count_key(&job->k, link_key(&gr->consumers[k]));
}

// Drops the producers of keys that have too many producers and too many consumers.  (Producers that
// nothing of interest encloses are not stored and not counted.)
static xpl_status_t drop_crowded(struct graph *gr) {
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
    xpl_exec_run(gr->g->exec, gr->n_scans + 1, run_count, &job);
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

// ---- joins ----

// The graph needs the consumers that are nodes, and of the producers those of the same keys, by key
// and the producers first.  Returns how many that are; writes them to `to` unless it is NULL.
static size_t join_links(const struct graph *gr, struct link *to) {
    const struct link *const c = gr->consumers, *const p = gr->producers;
    size_t at = 0, next = 0;
    for (size_t i = 0, end; i < gr->n_consumers; i = end) {
        const uint64_t key = link_key(&c[i]);
        for (end = i + 1; end < gr->n_consumers && link_key(&c[end]) == key;)
            end++;
        while (next < gr->n_producers && link_key(&p[next]) < key)
            next++;
        for (; next < gr->n_producers && link_key(&p[next]) == key; next++, at++)
            if (to) to[at] = p[next];
        if (to) memcpy(to + at, c + i, (end - i) * sizeof *c);
        at += end - i;
    }
    return at;
}

// Merges `extra` into the n links before it, from the end on.
static void add_sorted(struct link *v, size_t n, const struct link *extra, size_t n_extra) {
    for (size_t to = n + n_extra; n_extra > 0;) {
        const bool from_v = n > 0 && link_less(&extra[n_extra - 1], &v[n - 1]);
        v[--to] = from_v ? v[--n] : extra[--n_extra];
    }
}

static xpl_status_t merge_links(struct graph *gr, const struct extra_links *x) {
    const size_t joined = join_links(gr, NULL), total = joined + x->v.n;
    if (total >= MAX_LINKS) XPL_RETURN_OOM(gr->err, "event groups: links");
    gr->links = xpl_arena_array(&gr->temp, total, sizeof *gr->links);
    if (!gr->links) return xpl_grp_no_memory(gr);
    join_links(gr, gr->links);
    xpl_grp_sort_links(x->v.v, x->v.n);
    add_sorted(gr->links, joined, x->v.v, x->v.n);
    gr->n_links = (uint32_t)total;
    return XPL_OK;
}

// Turns runs of equal keys into joins.
static void number_joins(struct graph *gr) {
    struct link *const v = gr->links;
    for (uint32_t i = 0, end; i < gr->n_links; i = end) {
        const uint64_t key = link_key(&v[i]);
        for (end = i + 1; end < gr->n_links && link_key(&v[end]) == key;)
            end++;
        // Producers come first; without any there is nothing to link.
        const bool linked = !link_consumes(&v[i]) && link_consumes(&v[end - 1]);
        for (uint32_t k = i; k < end; k++)
            v[k].key_lo = linked ? i : NO_JOIN;
    }
    for (uint32_t i = gr->n_links; i-- > 0;) { // each node's links in ascending order
        struct node *const n = &gr->g->nodes[link_node(&v[i])];
        if (v[i].key_lo == NO_JOIN) continue;
        v[i].key_hi = n->links;
        n->links = i + 1;
    }
}

xpl_status_t xpl_grp_make_joins(struct graph *gr, struct extra_links *extra) {
    XPL_TRY(drop_crowded(gr));
    XPL_TRY(merge_links(gr, extra));
    number_joins(gr);
    return XPL_OK;
}

// ---- labels of keys ----

// Of several producers the group that came first counts, and the first that runs eagerly or not.
void xpl_grp_make_labels(struct graph *gr) {
    struct link *const v = gr->producers;
    struct xpl_groups *const g = gr->g;
    size_t kept = 0;
    for (size_t i = 0; i < gr->n_producers; i++) {
        const uint32_t label = xpl_grp_node_label(&gr->g->nodes[link_node(&v[i])]);
        if (label == LABEL_NO_GROUP) continue;
        if (kept && link_key(&v[kept - 1]) == link_key(&v[i])) {
            uint32_t *const have = &v[kept - 1].end;
            const uint32_t flags = *have & LABEL_IN_EAGER ? *have : label;
            const uint32_t group = (label & LABEL_GROUP) < (*have & LABEL_GROUP) ? label : *have;
            *have = (flags & ~LABEL_GROUP) | (group & LABEL_GROUP);
            continue;
        }
        v[kept] = v[i];
        v[kept++].end = label;
    }
    g->labels = v;
    g->n_labels = (uint32_t)kept;
}
