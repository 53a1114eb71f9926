// SPDX-License-Identifier: Apache-2.0
// Our rules: line by line, then what lines have of each name together.
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "analysis/events/line.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/regex.h"
#include "base/vec.h"

enum { BUCKET_BITS = 11 };

// Lines that follow each other and have an arena in common: a profile may have any number of them,
// with an event each.
struct batch {
    size_t first, n; // of the lines
    struct xpl_arena arena;
};

struct summing {
    const struct xpl_timings_rules *rules;
    struct xpl_exec *exec;
    struct xpl_timings_line *lines;
    size_t n;
    struct batch *batches;
    size_t n_batches;
    struct xpl_arena_budget budget; // of all batches and their results
};

static void read_batch(void *ctx, size_t i) {
    struct summing *const s = ctx;
    struct batch *const b = &s->batches[i];
    for (size_t k = b->first; k < b->first + b->n; k++)
        xpl_timings_line_read(&s->lines[k], s->rules, UINT64_MAX, s->exec, &b->arena);
}

// With a maximum of each profile, what a line may have depends on those before it.
static void read_in_order(struct summing *s, bool *ret_cut) {
    const struct xpl_xspace *space = NULL;
    uint64_t left = 0;
    for (size_t i = 0, b = 0; i < s->n; i++) {
        struct xpl_timings_line *const l = &s->lines[i];
        if (i == s->batches[b].first + s->batches[b].n) b++;
        if (l->line->plane->space != space) left = s->rules->max_events;
        space = l->line->plane->space;
        xpl_timings_line_read(l, s->rules, left, s->exec, &s->batches[b].arena);
        left -= l->n_events;
        *ret_cut |= l->is_cut;
        if (l->status != XPL_OK) return;
    }
}

static xpl_status_t list_lines(struct summing *s, const struct xpl_plane *const *planes, size_t n,
                               struct xpl_arena *arena, struct xpl_error *err) {
    for (size_t p = 0; p < n; p++)
        s->n += planes[p]->n_lines;
    s->lines = xpl_arena_zalloc(arena, (s->n + 1) * sizeof *s->lines);
    if (!s->lines) XPL_RETURN_OOM(err, "lines");
    size_t at = 0;
    for (size_t p = 0; p < n; p++)
        for (uint32_t i = 0; i < planes[p]->n_lines; i++)
            s->lines[at++].line = &planes[p]->lines[i];
    return XPL_OK;
}

enum { EVENTS_OF_BATCH = 1024 };

// Which lines have an arena in common: with `batches` NULL only their number.
static size_t cut_batches(const struct summing *s, struct batch *batches) {
    size_t n = 0;
    for (size_t i = 0, first = 0, events = 0; i < s->n; i++) {
        events += (size_t)s->lines[i].line->n_events + 1;
        if (events < EVENTS_OF_BATCH && i + 1 < s->n) continue;
        if (batches) batches[n] = (struct batch){.first = first, .n = i + 1 - first};
        n++, first = i + 1, events = 0;
    }
    return n;
}

static xpl_status_t list_batches(struct summing *s, struct xpl_arena *arena,
                                 struct xpl_error *err) {
    const size_t n = cut_batches(s, NULL);
    s->batches = xpl_arena_array(arena, n, sizeof *s->batches);
    if (!s->batches) XPL_RETURN_OOM(err, "lines");
    s->n_batches = cut_batches(s, s->batches);
    for (size_t i = 0; i < n; i++)
        xpl_arena_init_part(&s->batches[i].arena, &s->budget);
    return XPL_OK;
}

// ---- one name ----

struct part {
    const struct xpl_timings_group *group;
    size_t next; // 1 + its index; 0: none
};
struct name {
    size_t first, last; // 1 + indexes of its parts
    uint64_t total, self, n, least, greatest;
};

struct merging {
    struct xpl_intern *names;
    XPL_VEC(struct name) v;
    XPL_VEC(struct part) parts;
};

static bool add_part(struct merging *m, const struct xpl_timings_group *g,
                     struct xpl_arena *arena) {
    xpl_strid_t id;
    if (!xpl_intern_put(m->names, g->name, &id)) return false;
    while (m->v.n <= id.v) {
        struct name *const slot = xpl_vec_push(arena, &m->v);
        if (!slot) return false;
        *slot = (struct name){.least = UINT64_MAX};
    }
    struct part *const part = xpl_vec_push(arena, &m->parts);
    if (!part) return false;
    *part = (struct part){.group = g};
    struct name *const name = &m->v.v[id.v];
    if (name->last)
        m->parts.v[name->last - 1].next = m->parts.n;
    else
        name->first = m->parts.n;
    name->last = m->parts.n;
    name->total += g->total_ps, name->self += g->self_ps, name->n += g->n;
    if (g->least < name->least) name->least = g->least;
    if (g->greatest > name->greatest) name->greatest = g->greatest;
    return true;
}

// The least number that p percent of all are not greater than.
static size_t rank_of(uint64_t n, unsigned p) {
    const uint64_t r = n / 100 * p + (n % 100 * p + 99) / 100;
    return (size_t)(r ? r - 1 : 0);
}

// The next durations of a name: of all its parts, one after the other.
struct blocks {
    const struct merging *m;
    size_t part; // 1 + its index
    const struct xpl_timings_block *at;
};

static struct blocks blocks_begin(const struct merging *m, const struct name *name) {
    return (struct blocks){m, name->first, m->parts.v[name->first - 1].group->first};
}

static const struct xpl_timings_block *blocks_next(struct blocks *b) {
    while (!b->at && b->part) {
        b->part = b->m->parts.v[b->part - 1].next;
        b->at = b->part ? b->m->parts.v[b->part - 1].group->first : NULL;
    }
    const struct xpl_timings_block *const found = b->at;
    if (found) b->at = found->next;
    return found;
}

// Durations by their highest bits above the least: which bucket has the one of a rank, and the how
// many-th of that bucket it is.
struct buckets {
    size_t counts[1 << BUCKET_BITS];
    unsigned shift;
    uint64_t least;
};

static void buckets_init(struct buckets *b, const struct name *name) {
    const uint64_t range = name->greatest - name->least;
    unsigned bits = 1, width = 0;
    while (bits < BUCKET_BITS && name->n >> bits)
        bits++;
    if (range) width = 64 - (unsigned)__builtin_clzll(range);
    b->shift = width > bits ? width - bits : 0;
    b->least = name->least;
    memset(b->counts, 0, sizeof *b->counts << bits);
}

struct rank {
    size_t bucket, at; // of the rank
    uint64_t *v;       // what the bucket has, when that is more than one duration
    size_t n;
};

static struct rank find_rank(const struct buckets *b, size_t k) {
    struct rank r = {.at = k};
    while (r.at >= b->counts[r.bucket])
        r.at -= b->counts[r.bucket++];
    return r;
}

static uint64_t value_of(const struct rank *r, const struct buckets *b, uint64_t *scratch) {
    if (!b->shift) return b->least + r->bucket;
    return xpl_timings_nth(r->v, r->n, r->at, scratch);
}

// Their squares, and what the two buckets have.
static double second_pass(const struct merging *m, const struct name *name, double mean,
                          const struct buckets *b, struct rank *p50, struct rank *p99) {
    double squares = 0;
    struct blocks all = blocks_begin(m, name);
    for (const struct xpl_timings_block *block; (block = blocks_next(&all));)
        for (uint32_t i = 0; i < block->n; i++) {
            const uint64_t ps = block->v[i];
            const size_t bucket = (ps - b->least) >> b->shift;
            squares += ((double)ps - mean) * ((double)ps - mean);
            if (!b->shift) continue;
            if (bucket == p50->bucket) p50->v[p50->n++] = ps;
            if (bucket == p99->bucket) p99->v[p99->n++] = ps;
        }
    return squares;
}

static bool measure(const struct merging *m, const struct name *name, struct xpl_arena *scratch,
                    struct xpl_timings_row *row) {
    struct buckets b;
    double sum = 0;
    struct blocks all = blocks_begin(m, name);
    buckets_init(&b, name);
    for (const struct xpl_timings_block *block; (block = blocks_next(&all));)
        for (uint32_t i = 0; i < block->n; i++) {
            sum += (double)block->v[i];
            b.counts[(block->v[i] - b.least) >> b.shift]++;
        }
    struct rank p50 = find_rank(&b, rank_of(name->n, 50)),
                p99 = find_rank(&b, rank_of(name->n, 99));
    const size_t n50 = b.shift ? b.counts[p50.bucket] : 0, n99 = b.shift ? b.counts[p99.bucket] : 0;
    p50.v = xpl_arena_array(scratch, n50, sizeof *p50.v);
    p99.v = xpl_arena_array(scratch, n99, sizeof *p99.v);
    uint64_t *const room = xpl_arena_array(scratch, n50 > n99 ? n50 : n99, sizeof *room);
    if (!p50.v || !p99.v || !room) return false;
    row->min_ps = name->least;
    row->mean_ps = sum / (double)name->n;
    row->std_ps = sqrt(second_pass(m, name, row->mean_ps, &b, &p50, &p99) / (double)name->n);
    row->p50_ps = value_of(&p50, &b, room);
    row->p99_ps = value_of(&p99, &b, room);
    return true;
}

// ---- all names ----

static int greater_first(const void *a, const void *b) {
    const struct xpl_timings_row *const x = a, *const y = b;
    if (x->total_ps != y->total_ps) return x->total_ps > y->total_ps ? -1 : 1;
    return xpl_str_cmp(x->name, y->name);
}

static xpl_status_t is_wanted(const struct xpl_timings_rules *rules, xpl_str_t name, bool *ret,
                              struct xpl_error *err) {
    *ret = xpl_str_starts(name, rules->prefix);
    return *ret && rules->match ? xpl_regex_search(rules->match, name, ret, err) : XPL_OK;
}

static xpl_status_t merge(const struct summing *s, struct merging *m, struct xpl_arena *scratch,
                          struct xpl_error *err) {
    m->names = xpl_intern_new(scratch, xpl_hash_seed());
    if (!m->names) XPL_RETURN_OOM(err, "names of events");
    for (size_t i = 0; i < s->n; i++)
        for (size_t g = 0; g < s->lines[i].n_groups; g++)
            if (s->lines[i].groups[g].n && !add_part(m, &s->lines[i].groups[g], scratch))
                XPL_RETURN_OOM(err, "names of events");
    return XPL_OK;
}

struct measuring {
    struct summing *s;
    const struct merging *m;
    const struct name **names; // of the rows
    struct xpl_timings_row *rows;
    atomic_bool out_of_memory;
};

static void measure_one(void *ctx, size_t i) {
    struct measuring *const x = ctx;
    struct xpl_arena scratch;
    if (xpl_exec_cancelled(x->s->exec)) return;
    xpl_arena_init_part(&scratch, &x->s->budget);
    if (!measure(x->m, x->names[i], &scratch, &x->rows[i])) atomic_store(&x->out_of_memory, true);
    xpl_arena_fini(&scratch);
}

static xpl_status_t measure_rows(struct measuring *x, size_t n, struct xpl_error *err) {
    xpl_exec_run(x->s->exec, n, measure_one, x);
    if (atomic_load(&x->out_of_memory)) XPL_RETURN_OOM(err, "times of events");
    if (xpl_exec_cancelled(x->s->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    return XPL_OK;
}

static xpl_status_t make_rows(struct summing *s, struct xpl_arena *arena,
                              struct xpl_timings_rows *ret, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    xpl_arena_init_part(&scratch, &s->budget);
    struct merging m = {0};
    XPL_TRY(merge(s, &m, &scratch, err));
    struct measuring x = {.s = s, .m = &m};
    x.names = xpl_arena_array(&scratch, m.v.n, sizeof *x.names);
    ret->v = x.rows = xpl_arena_array(arena, m.v.n, sizeof *ret->v);
    if (!ret->v || !x.names) XPL_RETURN_OOM(err, "rows of events");
    for (size_t i = 0; i < m.v.n; i++) {
        const struct name *const name = &m.v.v[i];
        const xpl_strid_t id = {(uint32_t)i};
        bool wanted = name->n > 0;
        if (i % 256 == 0 && xpl_exec_cancelled(s->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        if (wanted) XPL_TRY(is_wanted(s->rules, xpl_intern_get(m.names, id), &wanted, err));
        if (!wanted) continue;
        x.names[ret->n] = name;
        struct xpl_timings_row *const row = &ret->v[ret->n++];
        *row = (struct xpl_timings_row){
            .count = name->n, .total_ps = name->total, .self_ps = name->self};
        if (!xpl_arena_str(arena, xpl_intern_get(m.names, id), &row->name))
            XPL_RETURN_OOM(err, "rows of events");
    }
    XPL_TRY(measure_rows(&x, ret->n, err));
    xpl_sort(ret->v, ret->n, sizeof *ret->v, greater_first);
    return XPL_OK;
}

static xpl_status_t name_planes(const struct xpl_plane *const *planes, size_t n,
                                struct xpl_arena *arena, struct xpl_timings_rows *ret,
                                struct xpl_error *err) {
    XPL_VEC(xpl_str_t) list = {0};
    struct xpl_intern *const names = xpl_intern_new(arena, xpl_hash_seed());
    if (!names) XPL_RETURN_OOM(err, "planes");
    for (size_t i = 0; i < n; i++) {
        xpl_strid_t id;
        if (!xpl_intern_put(names, planes[i]->name, &id)) XPL_RETURN_OOM(err, "planes");
        if (id.v != list.n + 1) continue; // known, or without a name
        xpl_str_t *const slot = xpl_vec_push(arena, &list);
        if (!slot) XPL_RETURN_OOM(err, "planes");
        *slot = xpl_intern_get(names, id);
    }
    ret->planes = list.v, ret->n_planes = list.n;
    return XPL_OK;
}

// Each damaged profile once, with the error of its first such line.
static xpl_status_t list_broken(const struct summing *s, struct xpl_arena *arena,
                                struct xpl_timings_rows *ret, struct xpl_error *err) {
    XPL_VEC(struct xpl_timings_broken) list = {0};
    for (size_t i = 0; i < s->n; i++) {
        const struct xpl_timings_line *const l = &s->lines[i];
        const struct xpl_xspace *const space = l->line->plane->space;
        if (l->status != XPL_DATA_LOSS || (list.n && list.v[list.n - 1].space == space)) continue;
        struct xpl_timings_broken *const slot = xpl_vec_push(arena, &list);
        if (!slot) XPL_RETURN_OOM(err, "damaged profiles");
        *slot = (struct xpl_timings_broken){space, *l->err};
    }
    ret->broken = list.v, ret->n_broken = list.n;
    return XPL_OK;
}

// The first failure of a line.
static xpl_status_t failure_of(const struct summing *s, struct xpl_error *err) {
    for (size_t i = 0; i < s->n; i++) {
        if (s->lines[i].status == XPL_OK) continue;
        if (!s->lines[i].err) XPL_RETURN_OOM(err, "lines");
        if (err) *err = *s->lines[i].err;
        return s->lines[i].status;
    }
    return XPL_OK;
}

xpl_status_t xpl_timings_sum_up(const struct xpl_xspace *const *spaces, size_t n,
                                const struct xpl_timings_rules *rules, struct xpl_exec *exec,
                                struct xpl_arena *arena, struct xpl_timings_rows *ret,
                                struct xpl_error *err) {
    const struct xpl_plane **planes = NULL;
    size_t n_planes = 0;
    struct summing s = {.rules = rules, .exec = exec};
    xpl_arena_budget_init(&s.budget, arena->limit);
    *ret = (struct xpl_timings_rows){0};
    XPL_TRY(xpl_timings_planes(spaces, n, rules->plane, arena, &planes, &n_planes, err));
    XPL_TRY(name_planes(planes, n_planes, arena, ret, err));
    XPL_TRY(list_lines(&s, planes, n_planes, arena, err));
    XPL_TRY(list_batches(&s, arena, err));
    if (rules->max_events == UINT64_MAX)
        xpl_exec_run(exec, s.n_batches, read_batch, &s);
    else
        read_in_order(&s, &ret->is_cut);
    for (size_t i = 0; i < s.n; i++)
        ret->n_events += s.lines[i].n_events;
    xpl_status_t st = list_broken(&s, arena, ret, err);
    if (st == XPL_OK) st = failure_of(&s, err);
    if (st != XPL_DATA_LOSS) ret->n_broken = 0;
    if (st == XPL_OK) st = make_rows(&s, arena, ret, err);
    for (size_t i = 0; i < s.n_batches; i++)
        xpl_arena_fini(&s.batches[i].arena);
    return st;
}
