// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/combine/step_intersection.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"

struct alignment {
    uint32_t begin_sub, begin_chief, n;
};

// How long a host's steps last together.
static uint64_t host_duration(const struct xpl_step_spans *h) {
    uint64_t lo = UINT64_MAX, hi = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (h->v[i].duration_ps == 0) continue;
        if (h->v[i].begin_ps < lo) lo = h->v[i].begin_ps;
        if (xpl_timespan_end(h->v[i]) > hi) hi = xpl_timespan_end(h->v[i]);
    }
    return lo < hi ? hi - lo : 0;
}

// For each shift of `sub` against `chief`, how much the steps that then stand side by side overlap.
// Shift k, chief index minus subordinate index, is at sums[k + n_sub - 1].
static void similarities(const struct xpl_timespan *sub, size_t n_sub,
                         const struct xpl_timespan *chief, size_t n_chief, uint64_t *sums) {
    for (size_t s = 0, c = 0; s < n_sub && c < n_chief;) {
        if (sub[s].duration_ps == 0) {
            s++;
            continue;
        }
        if (chief[c].duration_ps == 0) {
            c++;
            continue;
        }
        const uint64_t s_end = xpl_timespan_end(sub[s]), c_end = xpl_timespan_end(chief[c]);
        const uint64_t from =
            sub[s].begin_ps > chief[c].begin_ps ? sub[s].begin_ps : chief[c].begin_ps;
        const uint64_t to = s_end < c_end ? s_end : c_end;
        if (from < to) sums[c + (n_sub - 1) - s] += to - from;
        if (s_end <= c_end) s++;
        if (c_end <= s_end) c++;
    }
}

// The same by keys: how many agree with the first step of the chief that has them.  False: none.
static bool agreements(const struct xpl_step_spans *sub, const struct xpl_map *chief,
                       uint64_t *sums) {
    bool any = false;
    for (size_t s = 0; sub->keys && s < sub->n; s++) {
        const uint64_t *const c = xpl_map_get(chief, sub->keys[s], 0);
        if (!c || !*c) continue;
        sums[*c - 1 + (sub->n - 1) - s]++;
        any = true;
    }
    return any;
}

static struct alignment align(const struct xpl_step_spans *sub, const struct xpl_step_spans *chief,
                              const struct xpl_map *keys, uint64_t *sums) {
    const size_t n_sub = sub->n, n_chief = chief->n;
    if (n_sub == 0 || n_chief == 0) return (struct alignment){0};
    memset(sums, 0, (n_sub + n_chief - 1) * sizeof *sums);
    if (!agreements(sub, keys, sums)) similarities(sub->v, n_sub, chief->v, n_chief, sums);
    // Of equally good shifts: none, then forward by least, then backward by least.
    size_t best = n_sub - 1;
    for (size_t i = n_sub; i < n_sub + n_chief - 1; i++)
        if (sums[i] > sums[best]) best = i;
    for (size_t i = n_sub - 1; i-- > 0;)
        if (sums[i] > sums[best]) best = i;
    const size_t begin_sub = best < n_sub - 1 ? n_sub - 1 - best : 0;
    const size_t begin_chief = best < n_sub - 1 ? 0 : best - (n_sub - 1);
    const size_t left_sub = n_sub - begin_sub, left_chief = n_chief - begin_chief;
    return (struct alignment){(uint32_t)begin_sub, (uint32_t)begin_chief,
                              (uint32_t)(left_sub < left_chief ? left_sub : left_chief)};
}

struct plan {
    const struct xpl_step_spans *hosts;
    size_t n;
    struct alignment *aligned;
    uint64_t *sums;
};

static bool make_plan(struct plan *p, struct xpl_arena *arena) {
    size_t most = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->hosts[i].n > most) most = p->hosts[i].n;
    p->aligned = xpl_arena_array(arena, p->n, sizeof *p->aligned);
    p->sums = xpl_arena_array(arena, most, 2 * sizeof *p->sums);
    return p->aligned && p->sums;
}

// The host that is first most often where upstream takes the first of a hash table of `n` hosts:
// the middle one of the table, which has 2^k - 1 slots.  It is never the host 0.
static size_t first_in_table(size_t n) {
    size_t slots = 3;
    while (slots - slots / 8 < n)
        slots = 2 * slots + 1;
    return slots / 2;
}

// The host whose steps last the shortest; of several that one of first_in_table, else the last.
static size_t find_chief(const struct plan *p) {
    const size_t preferred = first_in_table(p->n);
    size_t chief = 0;
    uint64_t shortest = UINT64_MAX;
    for (size_t i = 0; i < p->n; i++) {
        const uint64_t duration = host_duration(&p->hosts[i]);
        if (duration < shortest || i == 0 || (duration == shortest && chief != preferred))
            shortest = duration, chief = i;
    }
    return chief;
}

// Each key of a host to the position of its first step, plus one.
static bool list_keys(const struct xpl_step_spans *h, struct xpl_arena *arena,
                      struct xpl_map *ret) {
    for (size_t i = 0; h->keys && i < h->n; i++) {
        bool is_new;
        uint64_t *const at = xpl_map_put(arena, ret, h->keys[i], 0, &is_new);
        if (!at) return false;
        if (is_new) *at = i + 1;
    }
    return true;
}

bool xpl_step_intersect(const struct xpl_step_spans *hosts, size_t n, uint32_t max_steps,
                        struct xpl_arena *arena, struct xpl_step_intersection *ret) {
    *ret = (struct xpl_step_intersection){0};
    struct plan p = {.hosts = hosts, .n = n};
    ret->first = xpl_arena_array(arena, n, sizeof *ret->first);
    ret->n_aligned = xpl_arena_array(arena, n, sizeof *ret->n_aligned);
    ret->begin_chief = xpl_arena_array(arena, n, sizeof *ret->begin_chief);
    if (!ret->first || !ret->n_aligned || !ret->begin_chief || !make_plan(&p, arena)) return false;
    memset(ret->first, 0, n * sizeof *ret->first);
    memset(ret->n_aligned, 0, n * sizeof *ret->n_aligned);
    memset(ret->begin_chief, 0, n * sizeof *ret->begin_chief);
    if (n == 0) return true;
    const size_t chief = ret->chief = find_chief(&p);
    const size_t n_chief = hosts[chief].n;
    if (n_chief == 0) return true;
    struct xpl_map keys = {0};
    if (!list_keys(&hosts[chief], arena, &keys)) return false;
    uint32_t from = 0, to = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        struct alignment *a = &p.aligned[i];
        *a = i == chief ? (struct alignment){.n = (uint32_t)n_chief}
                        : align(&hosts[i], &hosts[chief], &keys, p.sums);
        if (a->begin_chief > from) from = a->begin_chief;
        if (a->begin_chief + a->n < to) to = a->begin_chief + a->n;
        ret->n_aligned[i] = a->n;
        ret->begin_chief[i] = a->begin_chief;
    }
    ret->empty = from > to;
    if (ret->empty) from = to = 0;
    ret->n_steps = to - from < max_steps ? to - from : max_steps;
    ret->dropped = to - from - ret->n_steps;
    for (size_t i = 0; ret->n_steps && i < n; i++)
        ret->first[i] = p.aligned[i].begin_sub + (from - p.aligned[i].begin_chief);
    return true;
}
