// SPDX-License-Identifier: Apache-2.0
// Pairs the ops of two runs, and their kernels: first by everything that identifies them, then by
// less and less of it, as code moves, layers get other names and compilers fuse in other ways.

#include <string.h>

#include "analysis/compare/impl.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// ---- what rows are matched by ----

enum part {
    ORIGIN = 1,    // the framework op without its "jit(main)/", which some versions of JAX add
    LEAF = 2,      // the last name of that path
    SECOND = 4,    // the category of an op, the framework op of a kernel
    SHAPE = 8,     // of an op
    SOURCE = 16,   // file and line of an op
    ONLY_PATH = 32 // only rows with a path: other names, such as "copy", say too little
};

// Each round matches what the ones before have left.
static const unsigned op_rounds[] = {
    ORIGIN | SECOND | SHAPE,                    // code moved
    ORIGIN | SECOND | ONLY_PATH,                // another batch size, another layout of tuples
    ORIGIN | ONLY_PATH,                         // fused in another way
    LEAF | SECOND | SHAPE | SOURCE | ONLY_PATH, // a renamed layer
    LEAF | SECOND | SHAPE | ONLY_PATH,          // and its code moved
};
static const unsigned kernel_rounds[] = {
    SECOND | ONLY_PATH, // another kernel for the op
    LEAF | ONLY_PATH,   // the kernel of a renamed layer's op
};

static xpl_str_t leaf_of(xpl_str_t op) {
    size_t n = op.len;
    while (n && op.ptr[n - 1] != '/')
        n--;
    return xpl_str_sub(op, n, SIZE_MAX);
}

// ---- texts by number ----

// What a row is matched by: equal texts have equal numbers, so that long ones, which many rows may
// share, are read once.
struct keys {
    uint32_t origin, leaf, second, shape, source, kernel;
    bool has_path;
};

struct texts {
    struct xpl_arena *arena;
    struct xpl_intern *names;
    struct xpl_map paths; // by number: that of the origin in the upper half, that of the leaf
};

static bool number(struct texts *t, xpl_str_t s, uint32_t *ret) {
    xpl_strid_t id;
    if (!xpl_intern_put_view(t->names, s, &id)) return false;
    *ret = id.v;
    return true;
}

// Of the path without its first "jit(main)/".
static bool number_origin(struct texts *t, xpl_str_t path, uint32_t *ret) {
    const xpl_str_t wrapper = XPL_STR("/jit(main)/");
    const size_t at = xpl_str_find(path, wrapper, 0);
    if (at == SIZE_MAX) return number(t, path, ret);
    const xpl_str_t tail = xpl_str_sub(path, at + wrapper.len, SIZE_MAX);
    char *const p = xpl_arena_alloc(t->arena, at + 1 + tail.len);
    if (!p) return false;
    memcpy(p, path.ptr, at + 1);
    memcpy(p + at + 1, tail.ptr, tail.len);
    return number(t, (xpl_str_t){p, at + 1 + tail.len}, ret);
}

static bool number_path(struct texts *t, xpl_str_t path, uint32_t *ret_origin, uint32_t *ret_leaf) {
    uint32_t id;
    bool is_new;
    if (!number(t, path, &id)) return false;
    uint64_t *const at = xpl_map_put(t->arena, &t->paths, id, 0, &is_new);
    if (!at) return false;
    if (is_new) {
        if (!number_origin(t, path, ret_origin) || !number(t, leaf_of(path), ret_leaf))
            return false;
        *at = (uint64_t)*ret_origin << 32 | *ret_leaf;
    }
    *ret_origin = (uint32_t)(*at >> 32);
    *ret_leaf = (uint32_t)*at;
    return true;
}

// The name that a path is in: of kernels the op that launched them.
static xpl_str_t path_of(const struct xpl_run_row *r, bool of_kernels) {
    return r->text[of_kernels ? XPL_RUN_KERNEL_OP : XPL_RUN_OP];
}

static bool number_row(struct texts *t, const struct xpl_run_row *r, bool of_kernels,
                       struct keys *ret) {
    *ret = (struct keys){0};
    if (!number_path(t, path_of(r, of_kernels), &ret->origin, &ret->leaf)) return false;
    ret->has_path = leaf_of(path_of(r, of_kernels)).len < path_of(r, of_kernels).len;
    ret->second = ret->origin;
    if (of_kernels) return number(t, r->text[XPL_RUN_KERNEL], &ret->kernel);
    return number(t, r->text[XPL_RUN_CATEGORY], &ret->second) &&
           number(t, r->text[XPL_RUN_SHAPE], &ret->shape) &&
           number(t, r->text[XPL_RUN_SOURCE_FILE], &ret->source);
}

// ---- rounds ----

// A row that has no partner yet.
struct candidate {
    const struct xpl_run_row *row;
    const struct keys *keys;
    size_t index; // in its list
    unsigned round;
};

static int cmp(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int cmp_keys(const struct candidate *a, const struct candidate *b) {
    const unsigned by = a->round;
    const struct keys *const x = a->keys, *const y = b->keys;
    int c = 0;
    if (by & ORIGIN) c = cmp(x->origin, y->origin);
    if (!c && by & LEAF) c = cmp(x->leaf, y->leaf);
    if (!c && by & LEAF) c = cmp(x->kernel, y->kernel);
    if (!c && by & SECOND) c = cmp(x->second, y->second);
    if (!c && by & SHAPE) c = cmp(x->shape, y->shape);
    if (!c && by & SOURCE) c = cmp(x->source, y->source);
    if (!c && by & SOURCE) c = cmp(a->row->source_line, b->row->source_line);
    return c;
}

// Equal ones keep their order: the first of one side belongs to the first of the other.
static int by_key(const void *a, const void *b) {
    const struct candidate *const x = a, *const y = b;
    const int c = cmp_keys(x, y);
    return c ? c : cmp(x->index, y->index);
}

struct side {
    const struct xpl_run_rows *rows;
    struct keys *keys; // of each row
    struct candidate *v;
    size_t n;
    const struct xpl_run_row **partner; // of each row
};

struct matching {
    struct side a, b;
};

static bool takes_part(const struct candidate *c) {
    return !(c->round & ONLY_PATH) || c->keys->has_path;
}

// Those without a partner, in the order of their keys.
static void collect(struct side *s, unsigned round) {
    s->n = 0;
    for (size_t i = 0; i < s->rows->n; i++) {
        const struct candidate c = {&s->rows->v[i], &s->keys[i], i, round};
        if (!s->partner[i] && takes_part(&c)) s->v[s->n++] = c;
    }
    xpl_sort(s->v, s->n, sizeof *s->v, by_key);
}

static void play(struct matching *m, unsigned round) {
    collect(&m->a, round);
    collect(&m->b, round);
    for (size_t i = 0, k = 0; i < m->a.n && k < m->b.n;) {
        const struct candidate *const x = &m->a.v[i], *const y = &m->b.v[k];
        const int c = cmp_keys(x, y);
        if (c == 0) {
            m->a.partner[x->index] = y->row;
            m->b.partner[y->index] = x->row;
        }
        i += c <= 0;
        k += c >= 0;
    }
}

// Rows that are equal in everything: both lists are sorted and have nothing twice.
static void match_equal(struct matching *m) {
    for (size_t i = 0, k = 0; i < m->a.rows->n && k < m->b.rows->n;) {
        const struct xpl_run_row *const x = &m->a.rows->v[i], *const y = &m->b.rows->v[k];
        const int c = xpl_run_row_cmp(x, y);
        if (c == 0) {
            m->a.partner[i] = y;
            m->b.partner[k] = x;
        }
        i += c <= 0;
        k += c >= 0;
    }
}

static bool begin_side(struct side *s, const struct xpl_run_rows *rows, bool kernels,
                       struct texts *t) {
    *s = (struct side){.rows = rows,
                       .keys = xpl_arena_array(t->arena, rows->n, sizeof *s->keys),
                       .v = xpl_arena_array(t->arena, rows->n, sizeof *s->v),
                       .partner = xpl_arena_zalloc(t->arena, (rows->n + 1) * sizeof *s->partner)};
    if (!s->keys || !s->v || !s->partner) return false;
    for (size_t i = 0; i < rows->n; i++)
        if (!number_row(t, &rows->v[i], kernels, &s->keys[i])) return false;
    return true;
}

xpl_status_t xpl_run_rows_match(const struct xpl_run_rows *a, const struct xpl_run_rows *b,
                                bool kernels, struct xpl_arena *arena, struct xpl_run_pair **ret,
                                size_t *ret_n, struct xpl_error *err) {
    struct matching m;
    struct texts t = {.arena = arena, .names = xpl_intern_new(arena, xpl_hash_seed())};
    const unsigned *const rounds = kernels ? kernel_rounds : op_rounds;
    const size_t n_rounds = kernels ? sizeof kernel_rounds / sizeof *kernel_rounds
                                    : sizeof op_rounds / sizeof *op_rounds;
    struct xpl_run_pair *const pairs = xpl_arena_array(arena, a->n + b->n, sizeof *pairs);
    size_t n = 0, i = 0, k = 0;
    if (!pairs || !t.names || !begin_side(&m.a, a, kernels, &t) ||
        !begin_side(&m.b, b, kernels, &t))
        XPL_RETURN_OOM(err, "comparison");
    match_equal(&m);
    for (size_t r = 0; r < n_rounds; r++)
        play(&m, rounds[r]);
    while (i < a->n || k < b->n) {
        const int c = i >= a->n ? 1 : k >= b->n ? -1 : xpl_run_row_cmp(&a->v[i], &b->v[k]);
        if (c <= 0) pairs[n++] = (struct xpl_run_pair){&a->v[i], m.a.partner[i]};
        if (c >= 0 && !m.b.partner[k]) pairs[n++] = (struct xpl_run_pair){NULL, &b->v[k]};
        i += c <= 0;
        k += c >= 0;
    }
    *ret = pairs;
    *ret_n = n;
    return XPL_OK;
}
