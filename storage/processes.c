// SPDX-License-Identifier: Apache-2.0
#include "storage/processes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "storage/sessions/path.h"

// How far apart files of one session begin, if nothing is known of how long they are: ranks wait
// for each other, other processes do not.  TWINS: the same of processes of one rank, as of several
// servers of a model.
static const int64_t kSecond = 1000000000;
enum { RANKS_S = 600, OTHERS_S = 10, LEAST_RANKS_S = 60, TWINS_S = 2 };
// OPEN: sessions that the next file in time may still belong to.
enum { MAX_OPEN = 256, MAX_TWINS = 256 };

static int64_t when(const struct xpl_profile_identity *i) {
    return i->begin_ns ? i->begin_ns : i->written_ns;
}

static xpl_str_t worker_of(const struct xpl_process_file *f) {
    return (xpl_str_t){f->name, f->identity->worker_len};
}

static bool is_same_worker(const struct xpl_process_file *a, const struct xpl_process_file *b) {
    return xpl_str_eq(worker_of(a), worker_of(b));
}

static bool is_same_process(const struct xpl_process_file *a, const struct xpl_process_file *b) {
    if (a->identity->rank != b->identity->rank) return false;
    return a->identity->rank >= 0 || is_same_worker(a, b);
}

static int64_t distance(const struct xpl_profile_identity *a,
                        const struct xpl_profile_identity *b) {
    const int64_t x = when(a), y = when(b);
    return !x || !y ? 0 : x > y ? x - y : y - x;
}

static int64_t window_of(const struct xpl_profile_identity *i) {
    const int64_t least = (i->rank >= 0 ? LEAST_RANKS_S : 0) * kSecond;
    if (!i->begin_ns || i->written_ns <= i->begin_ns)
        return (i->rank >= 0 ? RANKS_S : OTHERS_S) * kSecond;
    const int64_t window = i->written_ns - i->begin_ns;
    return window > least ? window : least;
}

// Whether the two can be of one session, as far as their times say.
static bool is_near(const struct xpl_profile_identity *a, const struct xpl_profile_identity *b) {
    const int64_t x = window_of(a), y = window_of(b);
    if (!when(a) || !when(b)) return a->rank >= 0 && b->rank >= 0;
    return distance(a, b) <= (x > y ? x : y);
}

// Processes of one rank that run at the same time are of different jobs, which belong together.
static bool are_twins(const struct xpl_process_file *a, const struct xpl_process_file *b) {
    return a->identity->begin_ns && b->identity->begin_ns && a->identity->written_ns &&
           b->identity->written_ns && !is_same_worker(a, b) &&
           distance(a->identity, b->identity) <= TWINS_S * kSecond;
}

static int by_time(const void *pa, const void *pb) {
    const struct xpl_process_file *const a = *(struct xpl_process_file *const *)pa,
                                         *const b = *(struct xpl_process_file *const *)pb;
    const int64_t x = when(a->identity), y = when(b->identity);
    return x != y ? (x > y) - (x < y) : strcmp(a->name, b->name);
}

struct group {
    const struct xpl_process_file *first;
    int64_t world_size; // 0: no file says it
    uint64_t program;   // likewise
};

struct grouping {
    struct xpl_process_file **order;
    size_t *before;  // of the same group and process, plus 1; 0: none
    size_t *n_twins; // of these, up to and with this one
    struct group *groups;
    size_t n_groups;
    struct xpl_arena arena;
    struct xpl_intern *workers;
    struct xpl_map last_of; // by group and process: position in `order` plus 1
};

// The key of a file's process, for those of one group.
static bool process_of(struct grouping *g, const struct xpl_process_file *f, uint64_t *ret) {
    xpl_strid_t worker;
    *ret = (uint64_t)f->identity->rank;
    if (f->identity->rank >= 0) return true;
    if (!xpl_intern_put(g->workers, worker_of(f), &worker)) return false;
    *ret = UINT64_C(1) << 63 | worker.v;
    return true;
}

static bool may_join(const struct grouping *g, size_t group, const struct xpl_process_file *f,
                     uint64_t process) {
    const struct group *const to = &g->groups[group];
    const int64_t size = to->world_size, own = f->identity->world_size;
    const uint64_t program = f->identity->program;
    if (!is_near(to->first->identity, f->identity) || (size > 0 && own > 0 && size != own) ||
        (to->program && program && to->program != program))
        return false;
    const uint64_t *const last = xpl_map_get(&g->last_of, group, process);
    size_t at = last ? *last : 0;
    // A full group costs nothing: a directory may fill many with copies of one file.
    if (at && g->n_twins[at - 1] >= MAX_TWINS) return false;
    while (at && are_twins(g->order[at - 1], f))
        at = g->before[at - 1];
    return !at;
}

// Adds the next file in time to the group that it is nearest to, or to a new one.
static bool place(struct grouping *g, size_t at) {
    struct xpl_process_file *const f = g->order[at];
    size_t best = g->n_groups;
    uint64_t process;
    if (!process_of(g, f, &process)) return false;
    for (size_t i = g->n_groups > MAX_OPEN ? g->n_groups - MAX_OPEN : 0; i < g->n_groups; i++) {
        const bool is_nearer =
            best == g->n_groups || distance(g->groups[i].first->identity, f->identity) <
                                       distance(g->groups[best].first->identity, f->identity);
        if (is_nearer && may_join(g, i, f, process)) best = i;
    }
    uint64_t *const last = xpl_map_put(&g->arena, &g->last_of, best, process, NULL);
    if (!last) return false;
    if (best == g->n_groups) g->groups[g->n_groups++] = (struct group){.first = f};
    if (f->identity->world_size > 0) g->groups[best].world_size = f->identity->world_size;
    if (f->identity->program) g->groups[best].program = f->identity->program;
    g->before[at] = *last;
    g->n_twins[at] = *last ? g->n_twins[*last - 1] + 1 : 1;
    *last = at + 1;
    f->group = (uint32_t)best;
    return true;
}

// Files of one process side by side, those of one group first.
static int by_process(const void *pa, const void *pb) {
    const struct xpl_process_file *const a = *(struct xpl_process_file *const *)pa,
                                         *const b = *(struct xpl_process_file *const *)pb;
    const int64_t x = a->identity->rank, y = b->identity->rank;
    if (x != y) return (x > y) - (x < y);
    const int c = x < 0 ? xpl_str_cmp(worker_of(a), worker_of(b)) : 0;
    return c ? c : (a->group > b->group) - (a->group < b->group);
}

// Notes which files the rank, or the worker, does not tell from others.
static void compare_all(struct grouping *g, size_t n) {
    qsort(g->order, n, sizeof(struct xpl_process_file *), by_process);
    for (size_t i = 0; i < n; i++)
        g->order[i]->is_alone = g->order[i]->identity->rank < 0;
    for (size_t i = 1; i < n; i++) {
        struct xpl_process_file *const a = g->order[i - 1], *const b = g->order[i];
        if (!is_same_process(a, b)) continue;
        a->is_alone = b->is_alone = false;
        if (a->group == b->group) a->is_twin = b->is_twin = true;
    }
}

static bool group_all(struct grouping *g, struct xpl_process_file *v, size_t n, size_t known) {
    g->order = xpl_arena_array(&g->arena, known, sizeof(struct xpl_process_file *));
    g->before = xpl_arena_array(&g->arena, known, sizeof *g->before);
    g->n_twins = xpl_arena_array(&g->arena, known, sizeof *g->n_twins);
    g->groups = xpl_arena_array(&g->arena, known, sizeof *g->groups);
    g->workers = xpl_intern_new(&g->arena, xpl_hash_seed());
    bool ok = g->order && g->before && g->n_twins && g->groups && g->workers;
    for (size_t i = 0, k = 0; ok && i < n; i++)
        if (v[i].identity) g->order[k++] = &v[i];
    if (ok) qsort(g->order, known, sizeof(struct xpl_process_file *), by_time);
    for (size_t i = 0; ok && i < known; i++)
        ok = place(g, i);
    if (ok) compare_all(g, known);
    return ok;
}

size_t xpl_processes_group(struct xpl_process_file *v, size_t n) {
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        v[i].group = 0;
        v[i].is_twin = v[i].is_alone = false;
        known += v[i].identity != NULL;
    }
    if (known < 2) return 1;
    struct grouping g = {0};
    xpl_arena_init(&g.arena, SIZE_MAX / 2);
    const bool ok = group_all(&g, v, n, known);
    for (size_t i = 0; !ok && i < n; i++)
        v[i].group = 0;
    xpl_arena_fini(&g.arena);
    return ok ? g.n_groups : 0;
}

// ---- names ----

static int digits_of(int64_t v) {
    int n = 1;
    while (v >= 10)
        v /= 10, n++;
    return n;
}

struct xpl_process_group xpl_processes_of_group(const struct xpl_process_file *v, size_t n,
                                                uint32_t group) {
    struct xpl_process_group g = {.world_size = -1, .width = 1};
    bool twins = false;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_profile_identity *const id = v[i].identity;
        if (!id || v[i].group != group || id->rank < 0) continue;
        const int width = digits_of(id->rank);
        g.n_ranks++;
        twins |= v[i].is_twin;
        if (id->world_size > g.world_size) g.world_size = id->world_size;
        if (width > g.width) g.width = width;
    }
    if (g.world_size > 0 && digits_of(g.world_size) > g.width) g.width = digits_of(g.world_size);
    if (twins) g.n_ranks = 0; // of several jobs, which the ranks do not tell apart
    return g;
}

bool xpl_process_host(const struct xpl_process_file *f, const struct xpl_process_group *g,
                      xpl_str_t stem, struct xpl_arena *arena, xpl_str_t *ret) {
    if (f->identity && f->identity->rank >= 0 && !f->is_twin)
        return xpl_arena_printf(arena, ret, "rank %0*" PRId64, g->width, f->identity->rank);
    const size_t len = f->identity ? f->identity->worker_len : 0;
    return xpl_name_escape(arena, len && len < stem.len ? xpl_str_sub(stem, 0, len) : stem, ret);
}
