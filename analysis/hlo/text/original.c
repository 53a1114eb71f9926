// SPDX-License-Identifier: Apache-2.0
// origin={...}: which values of the program before optimization an instruction's value holds.  The
// elements name places in a tuple; the text is the tree that they form.

#include "analysis/hlo/text/impl.h"
#include "base/vec.h"

enum { MAX_DEPTH = 64, KEPT = 8 };
struct element {
    xpl_bytes_t index; // the message that holds the shape index, as field 1
    bool has_array;
    xpl_bytes_t array;
    unsigned depth;
    int64_t path[KEPT]; // its first numbers
    size_t order;
};
struct tree {
    struct element *v;
    size_t n;
};

static struct xpl_hlo_ints numbers_of(const struct element *e) {
    struct xpl_hlo_message m;
    xpl_hlo_message_read(e->index, &m);
    return xpl_hlo_ints_begin(&m, 1);
}

// Number `level` of an element's place.
static int64_t path_at(const struct element *e, unsigned level) {
    if (level < KEPT) return e->path[level];
    struct xpl_hlo_ints v = numbers_of(e);
    int64_t x = 0;
    for (unsigned i = 0; i <= level && xpl_hlo_ints_next(&v, &x); i++)
        ;
    return x;
}

// Messages may be long: each is read once, where the numbers that are kept do not tell.
static int by_path(const void *pa, const void *pb) {
    const struct element *const a = pa, *const b = pb;
    const unsigned n = a->depth < b->depth ? a->depth : b->depth;
    for (unsigned i = 0; i < n && i < KEPT; i++)
        if (a->path[i] != b->path[i]) return a->path[i] < b->path[i] ? -1 : 1;
    struct xpl_hlo_ints v = {0}, w = {0};
    if (n > KEPT) v = numbers_of(a), w = numbers_of(b);
    int64_t x, y;
    for (unsigned i = 0; n > KEPT && i < n; i++)
        if (xpl_hlo_ints_next(&v, &x) && xpl_hlo_ints_next(&w, &y) && x != y) return x < y ? -1 : 1;
    if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static void put_leaf(struct hlo_text *t, const struct element *e) {
    TXT(t, "{");
    if (e->has_array) {
        struct xpl_hlo_message m;
        txt_read(t, e->array, &m);
        TXT(t, "\"");
        txt_str(t, xpl_hlo_str(&m, 1));
        TXT(t, "\"");
        if (xpl_hlo_ints_count(&m, 2)) {
            TXT(t, " {");
            txt_ints(t, xpl_hlo_ints_begin(&m, 2), XPL_STR(","));
            TXT(t, "}");
        }
    }
    TXT(t, "}");
}

// Places without an element show as (): a gap is as long as its number, and no tuple is so long.
enum { MAX_PLACE = 1 << 16 };

// Elements [from, to) agree in the first `level` numbers.
static void put_tree(struct hlo_text *t, const struct tree *tree, size_t from, size_t to,
                     unsigned level) {
    if (to - from == 1 && tree->v[from].depth == level) {
        put_leaf(t, &tree->v[from]);
        return;
    }
    int64_t place = 0;
    TXT(t, "(");
    while (from < to && !txt_stopped(t)) {
        const struct element *const e = &tree->v[from];
        size_t end = from + 1;
        if (e->depth <= level) { // an entry that is a leaf and has others inside: XLA refuses that
            from++;
            continue;
        }
        const int64_t at = path_at(e, level);
        while (end < to && path_at(&tree->v[end], level) == at)
            end++;
        if (at < place || at > MAX_PLACE) {
            txt_malformed(t);
            return;
        }
        for (; place < at; place++)
            txt_str(t, place ? XPL_STR(", ()") : XPL_STR("()"));
        if (place++) TXT(t, ", ");
        put_tree(t, tree, from, end, level + 1);
        from = end;
    }
    TXT(t, ")");
}

static void read_element(struct hlo_text *t, xpl_bytes_t bytes, size_t order, struct element *ret) {
    struct xpl_hlo_message m;
    txt_read(t, bytes, &m);
    *ret = (struct element){.index = bytes,
                            .has_array = xpl_hlo_has(&m, 2),
                            .array = xpl_hlo_bytes(&m, 2),
                            .order = order};
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(&m, 1);
    for (int64_t x; xpl_hlo_ints_next(&v, &x); ret->depth++) {
        if (ret->depth < KEPT) ret->path[ret->depth] = x;
        if (ret->depth == MAX_DEPTH) txt_malformed(t);
        if (txt_stopped(t)) return;
    }
}

void txt_original_value(struct hlo_text *t, xpl_bytes_t value) {
    struct xpl_hlo_message m;
    txt_read(t, value, &m);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, 1);
    struct tree tree = {0};
    for (xpl_bytes_t one; xpl_hlo_each_next(&e, &one);)
        tree.n++;
    tree.v = xpl_sys_alloc((tree.n + 1) * sizeof *tree.v);
    if (!tree.v) {
        t->no_memory = t->failed = t->cut = true;
        return;
    }
    e = xpl_hlo_each_begin(&m, 1);
    size_t n = 0;
    for (xpl_bytes_t one; n < tree.n && !txt_stopped(t) && xpl_hlo_each_next(&e, &one); n++)
        read_element(t, one, n, &tree.v[n]);
    xpl_sort(tree.v, n, sizeof *tree.v, by_path);
    TXT(t, "{");
    put_tree(t, &tree, 0, n, 0);
    const xpl_str_t hierarchy = xpl_hlo_str(&m, 3);
    if (hierarchy.len) {
        TXT(t, ",[\"");
        txt_str(t, hierarchy);
        TXT(t, "\"]");
    }
    TXT(t, "}");
    xpl_sys_free(tree.v);
}
