// SPDX-License-Identifier: Apache-2.0
// Pairs the ops of two runs, and their kernels: first by everything that identifies them, then by
// less and less of it, as code moves, layers get other names and compilers fuse in other ways.

#include "analysis/compare/impl.h"
#include "base/arena.h"
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

// Cuts the first "jit(main)/" out of a path: the parts before and after it.
struct origin {
    xpl_str_t head, tail;
};

static struct origin origin_of(xpl_str_t op) {
    const xpl_str_t wrapper = XPL_STR("/jit(main)/");
    const size_t at = xpl_str_find(op, wrapper, 0);
    if (at == SIZE_MAX) return (struct origin){op, {"", 0}};
    return (struct origin){xpl_str_sub(op, 0, at + 1), xpl_str_sub(op, at + wrapper.len, SIZE_MAX)};
}

// The i-th byte of the path, -1 beyond its end.
static int byte_of(const struct origin *o, size_t i) {
    if (i < o->head.len) return (unsigned char)o->head.ptr[i];
    i -= o->head.len;
    return i < o->tail.len ? (unsigned char)o->tail.ptr[i] : -1;
}

static int cmp_origins(xpl_str_t a, xpl_str_t b) {
    const struct origin x = origin_of(a), y = origin_of(b);
    for (size_t i = 0;; i++) {
        const int p = byte_of(&x, i), q = byte_of(&y, i);
        if (p != q) return p < q ? -1 : 1;
        if (p < 0) return 0;
    }
}

static xpl_str_t leaf_of(xpl_str_t op) {
    size_t n = op.len;
    while (n && op.ptr[n - 1] != '/')
        n--;
    return xpl_str_sub(op, n, SIZE_MAX);
}

// ---- rounds ----

// A row that has no partner yet.
struct candidate {
    const struct xpl_run_row *row;
    size_t index; // in its list
    unsigned round;
    bool of_kernels;
};

// The name that a path is in: of kernels the op that launched them.
static xpl_str_t path_of(const struct candidate *c) {
    return c->row->text[c->of_kernels ? XPL_RUN_KERNEL_OP : XPL_RUN_OP];
}

static int cmp_keys(const struct candidate *a, const struct candidate *b) {
    const unsigned by = a->round;
    const struct xpl_run_row *const x = a->row, *const y = b->row;
    int c = 0;
    if (by & ORIGIN) c = cmp_origins(path_of(a), path_of(b));
    if (!c && by & LEAF) {
        c = xpl_str_cmp(leaf_of(path_of(a)), leaf_of(path_of(b)));
        if (!c && a->of_kernels) c = xpl_str_cmp(x->text[XPL_RUN_KERNEL], y->text[XPL_RUN_KERNEL]);
    }
    if (!c && by & SECOND)
        c = a->of_kernels ? cmp_origins(path_of(a), path_of(b))
                          : xpl_str_cmp(x->text[XPL_RUN_CATEGORY], y->text[XPL_RUN_CATEGORY]);
    if (!c && by & SHAPE) c = xpl_str_cmp(x->text[XPL_RUN_SHAPE], y->text[XPL_RUN_SHAPE]);
    if (!c && by & SOURCE) {
        c = xpl_str_cmp(x->text[XPL_RUN_SOURCE_FILE], y->text[XPL_RUN_SOURCE_FILE]);
        if (!c) c = (x->source_line > y->source_line) - (x->source_line < y->source_line);
    }
    return c;
}

// Equal ones keep their order: the first of one side belongs to the first of the other.
static int by_key(const void *a, const void *b) {
    const struct candidate *const x = a, *const y = b;
    const int c = cmp_keys(x, y);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

struct side {
    const struct xpl_run_rows *rows;
    struct candidate *v;
    size_t n;
    const struct xpl_run_row **partner; // of each row
};

struct matching {
    struct side a, b;
    bool kernels;
};

static bool takes_part(const struct candidate *c) {
    return !(c->round & ONLY_PATH) || xpl_str_has(path_of(c), XPL_STR("/"));
}

// Those without a partner, in the order of their keys.
static void collect(struct side *s, unsigned round, bool kernels) {
    s->n = 0;
    for (size_t i = 0; i < s->rows->n; i++) {
        const struct candidate c = {&s->rows->v[i], i, round, kernels};
        if (!s->partner[i] && takes_part(&c)) s->v[s->n++] = c;
    }
    xpl_sort(s->v, s->n, sizeof *s->v, by_key);
}

static void play(struct matching *m, unsigned round) {
    collect(&m->a, round, m->kernels);
    collect(&m->b, round, m->kernels);
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

static bool begin_side(struct side *s, const struct xpl_run_rows *rows, struct xpl_arena *arena) {
    *s = (struct side){.rows = rows,
                       .v = xpl_arena_array(arena, rows->n, sizeof *s->v),
                       .partner = xpl_arena_zalloc(arena, (rows->n + 1) * sizeof *s->partner)};
    return s->v && s->partner;
}

xpl_status_t xpl_run_rows_match(const struct xpl_run_rows *a, const struct xpl_run_rows *b,
                                bool kernels, struct xpl_arena *arena, struct xpl_run_pair **ret,
                                size_t *ret_n, struct xpl_error *err) {
    struct matching m = {.kernels = kernels};
    const unsigned *const rounds = kernels ? kernel_rounds : op_rounds;
    const size_t n_rounds = kernels ? sizeof kernel_rounds / sizeof *kernel_rounds
                                    : sizeof op_rounds / sizeof *op_rounds;
    struct xpl_run_pair *const pairs = xpl_arena_array(arena, a->n + b->n, sizeof *pairs);
    size_t n = 0, i = 0, k = 0;
    if (!pairs || !begin_side(&m.a, a, arena) || !begin_side(&m.b, b, arena))
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
