// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/trace.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"

static const size_t memory_limit = (size_t)1 << 30;

static bool is_one_of(xpl_str_t key, const char *const *list) {
    for (; list && *list; list++)
        if (xpl_str_eq(key, xpl_str_from(*list))) return true;
    return false;
}

// A value as text, members by key, without those of `drop`.
static void put(struct xpl_buf *b, const struct value *v, const char *const *drop) {
    switch (v->kind) {
        case VALUE_NULL: xpl_buf_str(b, XPL_STR("null")); break;
        case VALUE_BOOL: xpl_buf_str(b, v->b ? XPL_STR("true") : XPL_STR("false")); break;
        case VALUE_NUMBER: xpl_buf_printf(b, "%.15g", v->number); break;
        case VALUE_STRING: xpl_json_str(b, v->string, false); break;
        case VALUE_LIST:
            xpl_buf_putc(b, '[');
            for (size_t i = 0; i < v->n; i++) {
                put(b, &v->items[i], NULL);
                xpl_buf_putc(b, ',');
            }
            xpl_buf_putc(b, ']');
            break;
        case VALUE_OBJECT: {
            static const char *const args[] = {"flow", "flow_id", "uid", NULL};
            xpl_buf_putc(b, '{');
            for (size_t i = 0; i < v->n; i++) {
                const bool nested = xpl_str_eq(v->keys[i], XPL_STR("args"));
                if (is_one_of(v->keys[i], drop)) continue;
                xpl_json_str(b, v->keys[i], false);
                xpl_buf_putc(b, ':');
                put(b, &v->items[i], nested && drop ? args : NULL);
                xpl_buf_putc(b, ',');
            }
            xpl_buf_putc(b, '}');
            break;
        }
    }
}

static int by_text(const void *a, const void *b) {
    return xpl_str_cmp(*(const xpl_str_t *)a, *(const xpl_str_t *)b);
}

struct texts {
    xpl_str_t *v;
    size_t n;
};

// The members of a list or object, each as text, sorted.  False when memory ran out.
static bool texts_of(struct xpl_arena *a, const struct value *list, struct texts *ret) {
    static const char *const drop[] = {"bind_id", "id", "sf", "z", NULL};
    struct xpl_buf b = xpl_buf_of(memory_limit);
    bool ok = true;
    *ret = (struct texts){.n = list ? list->n : 0};
    ret->v = xpl_arena_array(a, ret->n, sizeof *ret->v);
    for (size_t i = 0; ret->v && ok && i < ret->n; i++) {
        b.n = 0;
        put(&b, &list->items[i], drop);
        ok = !b.failed && xpl_arena_str(a, (xpl_str_t){(const char *)b.p, b.n}, &ret->v[i]);
    }
    xpl_buf_fini(&b);
    if (ret->v && ok) qsort(ret->v, ret->n, sizeof *ret->v, by_text);
    return ret->v && ok;
}

static bool same_texts(struct xpl_arena *a, const struct value *expected, const struct value *got,
                       char *why, size_t why_size) {
    struct texts x, y;
    if (!texts_of(a, expected, &x) || !texts_of(a, got, &y)) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    for (size_t i = 0; i < x.n || i < y.n; i++) {
        const int c = i == x.n ? 1 : i == y.n ? -1 : xpl_str_cmp(x.v[i], y.v[i]);
        if (c == 0) continue;
        const xpl_str_t shown = xpl_str_sub(c < 0 ? x.v[i] : y.v[i], 0, 400);
        snprintf(why, why_size, "%s: %.*s", c < 0 ? "missing" : "unexpected", XPL_STR_FMT(shown));
        return false;
    }
    return true;
}

// All but the events and the stack frames, which are numbered in no order.
static bool same_rest(struct xpl_arena *a, const struct value *expected, const struct value *got,
                      char *why, size_t why_size) {
    static const char *const drop[] = {"traceEvents", "stackFrames", NULL};
    const struct value *const sides[] = {expected, got};
    xpl_str_t texts[2] = {{"", 0}, {"", 0}};
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        struct xpl_buf b = xpl_buf_of(memory_limit);
        put(&b, sides[i], drop);
        ok = ok && !b.failed && xpl_arena_str(a, (xpl_str_t){(const char *)b.p, b.n}, &texts[i]);
        xpl_buf_fini(&b);
    }
    if (ok && xpl_str_eq(texts[0], texts[1])) return true;
    snprintf(why, why_size, "%.*s, not %.*s", XPL_STR_FMT(xpl_str_sub(texts[1], 0, 200)),
             XPL_STR_FMT(xpl_str_sub(texts[0], 0, 200)));
    return false;
}

bool trace_equal(const struct value *expected, const struct value *got, char *why,
                 size_t why_size) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(memory_limit);
    return same_rest(&a, expected, got, why, why_size) &&
           same_texts(&a, value_get(expected, "traceEvents"), value_get(got, "traceEvents"), why,
                      why_size) &&
           same_texts(&a, value_get(expected, "stackFrames"), value_get(got, "stackFrames"), why,
                      why_size);
}
