// SPDX-License-Identifier: Apache-2.0
// Tensors that the host brought into the layout of a device, or back: which shapes, and how long it
// took.
#include <string.h>

#include "analysis/inference/impl.h"
#include "base/vec.h"

static bool collect(struct xpl_inferring *k) {
    for (unsigned kind = XPL_INFER_LINEARIZE; kind <= XPL_INFER_FAST_PATH; kind++)
        for (size_t i = 0; i < k->marks[kind].v.n; i++) {
            const struct xpl_infer_mark *const m = &k->marks[kind].v.v[i];
            struct xpl_infer_group *const g = xpl_infer_group_of(k, m);
            if (!g->request && !g->batch) continue;
            struct xpl_infer_tensor *const t = xpl_vec_push(k->scratch, &k->tensors);
            if (!t || k->tensors.n >= UINT32_MAX) return false;
            *t = (struct xpl_infer_tensor){m, g->tensors};
            g->tensors = (uint32_t)k->tensors.n;
            g->n_tensors++;
        }
    return true;
}

static int by_text(const void *a, const void *b) {
    return xpl_str_cmp(*(const xpl_str_t *)a, *(const xpl_str_t *)b);
}

// Events may all refer to one long text, so that texts are bounded together.
static bool spend(struct xpl_inferring *k, size_t bytes) {
    k->tensor_bytes += bytes;
    return k->tensor_bytes <= XPL_INFER_MAX_TENSOR_TEXT;
}

// "name shape layout" of an event; false in *ret_known when it does not say them.
static bool text_of(struct xpl_inferring *k, const struct xpl_infer_mark *m, struct xpl_arena *a,
                    xpl_str_t *ret, bool *ret_known) {
    struct xpl_stat shape, layout;
    *ret_known = xpl_stats_get(m->stats, XPL_STAT_TENSOR_SHAPES, &shape) &&
                 xpl_stats_get(m->stats, XPL_STAT_TENSOR_LAYOUT, &layout);
    if (!*ret_known) return true;
    const xpl_str_t part[] = {k->host->event_md[m->md].name, xpl_stat_str(&shape),
                              xpl_stat_str(&layout)};
    XPL_VEC(char) text = {0};
    for (size_t i = 0; i < 3; i++) {
        if (!spend(k, part[i].len) || !xpl_vec_reserve(a, &text, part[i].len + 1)) return false;
        if (i) text.v[text.n++] = ' ';
        memcpy(text.v + text.n, part[i].ptr, part[i].len);
        text.n += part[i].len;
    }
    *ret = (xpl_str_t){text.v, text.n};
    return true;
}

// The pattern of a group's tensors: their texts, sorted.  0 where one of them is not known.
static bool join(struct xpl_inferring *k, const xpl_str_t *texts, size_t n, struct xpl_arena *a,
                 uint32_t *ret) {
    XPL_VEC(char) all = {0};
    xpl_strid_t id;
    for (size_t i = 0; i < n; i++) {
        if (!xpl_vec_reserve(a, &all, texts[i].len + 4)) return false;
        if (i) memcpy(all.v + all.n, "<br>", 4);
        all.n += i ? 4 : 0;
        memcpy(all.v + all.n, texts[i].ptr, texts[i].len);
        all.n += texts[i].len;
    }
    if (!xpl_intern_put(k->patterns, (xpl_str_t){all.v, all.n}, &id)) return false;
    *ret = id.v;
    if (id.v == 0 || id.v <= k->out->patterns.n) return true;
    xpl_str_t *const slot = xpl_vec_push(k->result, &k->out->patterns);
    return slot && xpl_arena_str(k->result, xpl_intern_get(k->patterns, id), slot);
}

static bool read_pattern(struct xpl_inferring *k, const struct xpl_infer_group *g,
                         struct xpl_arena *a, uint32_t *ret_pattern, uint64_t *ret_ps) {
    xpl_str_t *const texts = xpl_arena_array(a, g->n_tensors, sizeof *texts);
    size_t n = 0;
    *ret_pattern = 0;
    *ret_ps = 0;
    if (!texts) return false;
    for (uint32_t t = g->tensors; t; t = k->tensors.v[t - 1].next) {
        const struct xpl_infer_mark *const m = k->tensors.v[t - 1].mark;
        bool known;
        if (!text_of(k, m, a, &texts[n++], &known)) return false;
        if (!known) return true;
        *ret_ps += m->end - m->begin;
    }
    xpl_sort(texts, n, sizeof *texts, by_text);
    return join(k, texts, n, a, ret_pattern);
}

// Those of a group that is both belong to the request.
static bool read_group(struct xpl_inferring *k, const struct xpl_infer_group *g,
                       struct xpl_arena *a) {
    uint32_t pattern;
    uint64_t ps;
    if (!read_pattern(k, g, a, &pattern, &ps)) return false;
    if (!pattern) return true;
    if (g->request) {
        k->out->requests.v[g->request - 1].pattern = (int32_t)pattern - 1;
        k->out->requests.v[g->request - 1].tensor_ps = ps;
    } else {
        k->out->batches.v[g->batch - 1].pattern = (int32_t)pattern - 1;
        k->out->batches.v[g->batch - 1].tensor_ps = ps;
    }
    return true;
}

bool xpl_infer_read_tensors(struct xpl_inferring *k) {
    if (!collect(k)) return false;
    for (size_t i = 0; i < k->v.n; i++) {
        struct xpl_arena arena;
        if (!k->v.v[i].n_tensors) continue;
        xpl_arena_init(&arena, k->limit);
        const bool ok = read_group(k, &k->v.v[i], &arena);
        xpl_arena_fini(&arena);
        if (!ok) return false;
    }
    return true;
}
