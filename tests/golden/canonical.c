// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/canonical.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/golden/trace.h"

enum { MAX_COLUMNS = 64 };

struct cmp {
    char path[400]; // where we are
    char *why;      // NULL while only trying
    size_t why_size;
};

static bool fail(const struct cmp *c, const char *what) {
    if (c->why) snprintf(c->why, c->why_size, "%s: %s", c->path, what);
    return false;
}

static bool same(struct cmp *c, const struct value *a, const struct value *b);

// Adds to the path; returns its old length, to be put back.
static size_t enter(struct cmp *c, xpl_str_t key, size_t index) {
    const size_t n = strlen(c->path);
    if (key.ptr)
        snprintf(c->path + n, sizeof c->path - n, ".%.*s", XPL_STR_FMT(key));
    else
        snprintf(c->path + n, sizeof c->path - n, "[%zu]", index);
    return n;
}

static bool same_at(struct cmp *c, xpl_str_t key, size_t i, const struct value *a,
                    const struct value *b) {
    const size_t n = enter(c, key, i);
    const bool ok = same(c, a, b);
    c->path[n] = 0;
    return ok;
}

static bool close_numbers(double a, double b) {
    const double m = fmax(fabs(a), fabs(b));
    return fabs(a - b) <= fmax(1e-9 * m, 1e-12);
}

static bool same_object(struct cmp *c, const struct value *a, const struct value *b) {
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        const int order = i == a->n ? 1 : k == b->n ? -1 : xpl_str_cmp(a->keys[i], b->keys[k]);
        if (order != 0) {
            const size_t n = enter(c, order < 0 ? a->keys[i] : b->keys[k], 0);
            fail(c, order < 0 ? "missing" : "unexpected");
            c->path[n] = 0;
            return false;
        }
        if (!same_at(c, a->keys[i], 0, &a->items[i], &b->items[k])) return false;
        i++, k++;
    }
    return true;
}

static int shown(xpl_str_t s) {
    return s.len < 130 ? (int)s.len : 130;
}

static bool fail_values(const struct cmp *c, const struct value *a, const struct value *b) {
    char text[300];
    const xpl_str_t s = a->string, t = b->string;
    if (a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER)
        snprintf(text, sizeof text, "%.17g != %.17g", a->number, b->number);
    else if (a->kind == VALUE_STRING && b->kind == VALUE_STRING)
        snprintf(text, sizeof text, "\"%.*s\" != \"%.*s\"", shown(s), s.ptr, shown(t), t.ptr);
    else
        snprintf(text, sizeof text, "differs (kind %d and %d)", (int)a->kind, (int)b->kind);
    return fail(c, text);
}

static bool same(struct cmp *c, const struct value *a, const struct value *b) {
    if (!a || !b) return a == b || fail(c, a ? "missing" : "unexpected");
    if (a->kind != b->kind) return fail_values(c, a, b);
    switch (a->kind) {
        case VALUE_NULL: return true;
        case VALUE_BOOL: return a->b == b->b || fail_values(c, a, b);
        case VALUE_NUMBER: return close_numbers(a->number, b->number) || fail_values(c, a, b);
        case VALUE_STRING: return xpl_str_eq(a->string, b->string) || fail_values(c, a, b);
        case VALUE_OBJECT: return same_object(c, a, b);
        case VALUE_LIST: break;
    }
    if (a->n != b->n) return fail(c, "another number of items");
    for (size_t i = 0; i < a->n; i++)
        if (!same_at(c, (xpl_str_t){0}, i, &a->items[i], &b->items[i])) return false;
    return true;
}

// ---- rows whose order may differ ----

typedef bool (*row_fn)(struct cmp *c, const struct value *a, const struct value *b,
                       const void *ctx);

// Finds for each of n rows a separate partner; `used` has room for n.
static bool match_run(struct cmp *c, const struct value *a, const struct value *b, size_t n,
                      row_fn fn, const void *ctx, bool *used) {
    char *const why = c->why;
    memset(used, 0, n * sizeof *used);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        c->why = n == 1 ? why : NULL;
        for (; k < n; k++)
            if (!used[k] && fn(c, &a[i], &b[k], ctx)) break;
        c->why = why;
        if (k == n) return n == 1 ? false : fail(c, "no row like it among those that tie");
        used[k] = true;
    }
    return true;
}

// ---- tables ----

struct columns {
    size_t n;
    bool sort[MAX_COLUMNS], position[MAX_COLUMNS], rank[MAX_COLUMNS];
    bool any_sort;
};

static struct columns find_columns(const struct value *t) {
    struct columns out = {0};
    const struct value *const cols = value_get(t, "cols");
    for (size_t i = 0; cols && i < cols->n && i < MAX_COLUMNS; i++) {
        const xpl_str_t id = value_text(value_get(&cols->items[i], "id"));
        out.n = i + 1;
        out.sort[i] =
            !xpl_str_has(id, XPL_STR("percent")) &&
            (xpl_str_has(id, XPL_STR("self_time")) || xpl_str_has(id, XPL_STR("duration_us")) ||
             xpl_str_eq(id, XPL_STR("selfTimeInMs")));
        out.rank[i] = xpl_str_eq(id, XPL_STR("rank"));
        out.position[i] = out.rank[i] || xpl_str_has(id, XPL_STR("umulative"));
        out.any_sort = out.any_sort || out.sort[i];
    }
    return out;
}

static const struct value *cell(const struct value *row, size_t i) {
    return value_at(value_get(row, "c"), i);
}

static bool same_key(const struct value *a, const struct value *b, const struct columns *cols) {
    struct cmp quiet = {0};
    for (size_t i = 0; i < cols->n; i++) {
        const struct value *const x = value_get(cell(a, i), "v"), *const y =
                                                                      value_get(cell(b, i), "v");
        if (!cols->sort[i] || (!x && !y)) continue;
        if (!x || !y) return false;
        if (x->kind == VALUE_NUMBER && y->kind == VALUE_NUMBER ? x->number != y->number
                                                               : !same(&quiet, x, y))
            return false;
    }
    return true;
}

// Rows alike but for the columns that say where in the table they stand.
static bool same_row(struct cmp *c, const struct value *a, const struct value *b, const void *ctx) {
    const struct columns *const cols = ctx;
    const struct value *const x = value_get(a, "c"), *const y = value_get(b, "c");
    if (!x || !y || x->n != y->n) return fail(c, "another number of cells");
    if (!same(c, value_get(a, "p"), value_get(b, "p"))) return false;
    for (size_t i = 0; i < x->n; i++) {
        if (i < cols->n && cols->any_sort && cols->position[i]) continue;
        if (!same_at(c, (xpl_str_t){0}, i, &x->items[i], &y->items[i])) return false;
    }
    return true;
}

// Ranks go by position; running totals count where a run of ties ends.
static bool same_positions(struct cmp *c, const struct value *a, const struct value *b,
                           const struct columns *cols, bool last) {
    const struct value *const names = value_get(a, "c");
    for (size_t i = 0; names && i < cols->n; i++) {
        if (!cols->position[i]) continue;
        const struct value *const x = cell(a, i), *const y = cell(b, i);
        if ((cols->rank[i] || last) && !same_at(c, (xpl_str_t){0}, i, x, y)) return false;
    }
    return true;
}

static bool same_rows(struct cmp *c, const struct value *a, const struct value *b,
                      const struct columns *cols) {
    const size_t n = a ? a->n : 0;
    if (n != (b ? b->n : 0)) return fail(c, "another number of rows");
    bool *const used = calloc(n + 1, sizeof *used);
    bool ok = used != NULL;
    for (size_t i = 0, run = 0; ok && i < n; i = run) {
        for (run = i + 1;
             run < n && cols->any_sort && same_key(&a->items[i], &a->items[run], cols);)
            run++;
        const size_t length = enter(c, (xpl_str_t){0}, i);
        ok = match_run(c, &a->items[i], &b->items[i], run - i, same_row, cols, used);
        for (size_t k = i; ok && cols->any_sort && k < run; k++)
            ok = same_positions(c, &a->items[k], &b->items[k], cols, k + 1 == run);
        c->path[length] = 0;
    }
    free(used);
    return ok;
}

static bool same_table(struct cmp *c, const struct value *a, const struct value *b) {
    if (!value_get(a, "cols") || !value_get(b, "cols")) return same(c, a, b);
    const struct columns cols = find_columns(a);
    for (size_t i = 0; i < a->n; i++) {
        const xpl_str_t key = a->keys[i];
        if (b->n != a->n || !xpl_str_eq(b->keys[i], key)) return fail(c, "other members");
        const size_t length = enter(c, key, 0);
        const bool ok = xpl_str_eq(key, XPL_STR("rows"))
                            ? same_rows(c, &a->items[i], &b->items[i], &cols)
                            : same(c, &a->items[i], &b->items[i]);
        c->path[length] = 0;
        if (!ok) return false;
    }
    return true;
}

// ---- op_profile ----

static bool same_node(struct cmp *c, const struct value *a, const struct value *b, const void *ctx);

// XProf sorts what a fusion contains by flops, everything otherwise by time; a group of fusions is
// not a fusion.
static bool is_fusion(const struct value *node) {
    const struct value *const category = value_get(value_get(node, "xla"), "category");
    const struct value *const name = value_get(node, "name");
    return value_is(category, VALUE_STRING) && xpl_str_ends(category->string, XPL_STR(" fusion")) &&
           !(value_is(name, VALUE_STRING) &&
             xpl_str_ends(name->string, XPL_STR(" and its duplicate(s)")));
}

static double sort_key(const struct value *node, bool by_flops) {
    const struct value *const metrics = value_get(node, "metrics");
    const struct value *const t = value_get(metrics, by_flops ? "rawFlops" : "rawTime");
    return value_is(t, VALUE_NUMBER) ? t->number : -1;
}

static bool same_children(struct cmp *c, const struct value *a, const struct value *b,
                          bool by_flops) {
    if (!value_is(a, VALUE_LIST) || !value_is(b, VALUE_LIST) || a->n != b->n)
        return fail(c, "another number of children");
    bool *const used = calloc(a->n + 1, sizeof *used);
    bool ok = used != NULL;
    for (size_t i = 0, run = 0; ok && i < a->n; i = run) {
        const double key = sort_key(&a->items[i], by_flops);
        for (run = i + 1; run < a->n && key == sort_key(&a->items[run], by_flops);)
            run++;
        const size_t length = enter(c, (xpl_str_t){0}, i);
        ok = match_run(c, &a->items[i], &b->items[i], run - i, same_node, NULL, used);
        c->path[length] = 0;
    }
    free(used);
    return ok;
}

static bool same_node(struct cmp *c, const struct value *a, const struct value *b,
                      const void *ctx) {
    (void)ctx;
    if (!value_is(a, VALUE_OBJECT) || !value_is(b, VALUE_OBJECT)) return same(c, a, b);
    if (a->n != b->n) return fail(c, "other members");
    for (size_t i = 0; i < a->n; i++) {
        const xpl_str_t key = a->keys[i];
        const struct value *const x = &a->items[i], *const y = &b->items[i];
        if (!xpl_str_eq(key, b->keys[i])) return fail(c, "other members");
        const size_t length = enter(c, key, 0);
        const bool ok = xpl_str_eq(key, XPL_STR("children")) ? same_children(c, x, y, is_fusion(a))
                                                             : same(c, x, y);
        c->path[length] = 0;
        if (!ok) return false;
    }
    return true;
}

static bool same_profile(struct cmp *c, const struct value *a, const struct value *b) {
    if (!value_is(a, VALUE_OBJECT) || !value_is(b, VALUE_OBJECT) || a->n != b->n)
        return fail(c, "other members");
    for (size_t i = 0; i < a->n; i++) {
        if (!xpl_str_eq(a->keys[i], b->keys[i])) return fail(c, "other members");
        const size_t length = enter(c, a->keys[i], 0);
        const bool ok = same_node(c, &a->items[i], &b->items[i], NULL);
        c->path[length] = 0;
        if (!ok) return false;
    }
    return true;
}

// ---- memory_profile ----

// int64 fields are strings in this JSON.
static long long integer(const struct value *v, long long absent) {
    if (value_is(v, VALUE_NUMBER)) return (long long)v->number;
    if (!value_is(v, VALUE_STRING)) return absent;
    return strtoll(v->string.ptr, NULL, 10);
}

static bool same_allocation(struct cmp *c, const struct value *a, const struct value *b,
                            const struct value *snaps_a, const struct value *snaps_b) {
    static const char *const alike[] = {"requestedBytes", "allocationBytes", "tfOpName",
                                        "regionType",     "dataType",        "tensorShape"};
    const long long i = integer(value_get(a, "snapshotIndex"), 0),
                    k = integer(value_get(b, "snapshotIndex"), 0);
    if (!same(c, value_get(a, "numOccurrences"), value_get(b, "numOccurrences"))) return false;
    const struct value *const x = i < 0 ? NULL : value_at(snaps_a, (size_t)i);
    const struct value *const y = k < 0 ? NULL : value_at(snaps_b, (size_t)k);
    if (!x || !y)
        return !x && !y ? same(c, value_get(a, "specialIndex"), value_get(b, "specialIndex"))
                        : fail(c, "refers to no snapshot");
    if (integer(value_get(a, "numOccurrences"), 1) <= 1) return same(c, x, y);
    for (size_t f = 0; f < sizeof alike / sizeof *alike; f++)
        if (!same(c, value_get(value_get(x, "activityMetadata"), alike[f]),
                  value_get(value_get(y, "activityMetadata"), alike[f])))
            return false;
    return true;
}

static bool same_allocations(struct cmp *c, const struct value *a, const struct value *b) {
    const struct value *const x = value_get(a, "activeAllocations"), *const y = value_get(
                                                                         b, "activeAllocations");
    const struct value *const s = value_get(a, "memoryProfileSnapshots"),
                              *const t = value_get(b, "memoryProfileSnapshots");
    if (!value_is(x, VALUE_LIST) || !value_is(y, VALUE_LIST) || x->n != y->n)
        return fail(c, "another number of allocations");
    if (!value_is(s, VALUE_LIST) || !value_is(t, VALUE_LIST) || s->n != t->n)
        return fail(c, "another number of snapshots");
    for (size_t i = 0; i < x->n; i++) {
        const size_t length = enter(c, (xpl_str_t){0}, i);
        const bool ok = same_allocation(c, &x->items[i], &y->items[i], s, t);
        c->path[length] = 0;
        if (!ok) return false;
    }
    return true;
}

static bool same_allocator(struct cmp *c, const struct value *a, const struct value *b) {
    if (!value_is(a, VALUE_OBJECT) || !value_is(b, VALUE_OBJECT) || a->n != b->n)
        return fail(c, "other members");
    for (size_t i = 0; i < a->n; i++) {
        if (!xpl_str_eq(a->keys[i], b->keys[i])) return fail(c, "other members");
        if (xpl_str_eq(a->keys[i], XPL_STR("activeAllocations")) ||
            xpl_str_eq(a->keys[i], XPL_STR("memoryProfileSnapshots")))
            continue;
        if (!same_at(c, a->keys[i], 0, &a->items[i], &b->items[i])) return false;
    }
    return same_allocations(c, a, b);
}

static bool same_memory(struct cmp *c, const struct value *a, const struct value *b) {
    static const char per[] = "memoryProfilePerAllocator";
    const struct value *const x = value_get(a, per), *const y = value_get(b, per);
    if (!value_is(x, VALUE_OBJECT) || !value_is(y, VALUE_OBJECT)) return same(c, a, b);
    if (a->n != b->n || x->n != y->n) return fail(c, "other members");
    for (size_t i = 0; i < a->n; i++) {
        if (!xpl_str_eq(a->keys[i], b->keys[i])) return fail(c, "other members");
        if (&a->items[i] != x && !same_at(c, a->keys[i], 0, &a->items[i], &b->items[i]))
            return false;
    }
    for (size_t i = 0; i < x->n; i++) {
        const size_t length = enter(c, x->keys[i], 0);
        const bool ok = xpl_str_eq(x->keys[i], y->keys[i])
                            ? same_allocator(c, &x->items[i], &y->items[i])
                            : fail(c, "another allocator");
        c->path[length] = 0;
        if (!ok) return false;
    }
    return true;
}

bool canonical_equal(const char *tool, const struct value *expected, const struct value *got,
                     char *why, size_t why_size) {
    struct cmp c = {.why = why, .why_size = why_size};
    if (strcmp(tool, "op_profile") == 0) return same_profile(&c, expected, got);
    if (strcmp(tool, "memory_profile") == 0) return same_memory(&c, expected, got);
    if (strncmp(tool, "trace_viewer", 12) == 0) return trace_equal(expected, got, why, why_size);
    if (expected->kind != VALUE_LIST || got->kind != VALUE_LIST)
        return same_table(&c, expected, got);
    if (expected->n != got->n) return fail(&c, "another number of tables");
    for (size_t i = 0; i < expected->n; i++) {
        const size_t length = enter(&c, (xpl_str_t){0}, i);
        const bool ok = same_table(&c, &expected->items[i], &got->items[i]);
        c.path[length] = 0;
        if (!ok) return false;
    }
    return true;
}
