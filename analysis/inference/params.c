// SPDX-License-Identifier: Apache-2.0
// How a server makes batches for each model: it says so in the second of two snapshots of its
// counters.

#include "analysis/inference/impl.h"
#include "base/vec.h"

#define PREFIX "/tensorflow/serving/batching/"

enum param { THREADS, TIMEOUT, MAX_SIZE, MAX_ENQUEUED, ALLOWED, PARAMS };
static const char *const kParams[PARAMS] = {
    [THREADS] = "num_batch_threads",   [TIMEOUT] = "batch_timeout_micros",
    [MAX_SIZE] = "max_batch_size",     [MAX_ENQUEUED] = "max_enqueued_batches",
    [ALLOWED] = "allowed_batch_sizes",
};

static size_t find_char(xpl_str_t s, char c) {
    size_t i = 0;
    while (i < s.len && s.ptr[i] != c)
        i++;
    return i;
}

static size_t find_last(xpl_str_t s, char c) {
    size_t i = s.len;
    while (i > 0 && s.ptr[i - 1] != c)
        i--;
    return i ? i - 1 : s.len;
}

// The label model_name in "name{label=value, label=value}".
static bool model_of(xpl_str_t name, xpl_str_t *ret) {
    const size_t open = find_char(name, '{'), close = find_last(name, '}');
    if (open == name.len || close == name.len || close <= open) return false;
    const char *p = name.ptr + open + 1, *const end = name.ptr + close;
    while (p <= end) {
        const char *stop = p;
        while (stop < end && !(stop[0] == ',' && stop + 1 < end && stop[1] == ' '))
            stop++;
        const xpl_str_t label = {p, (size_t)(stop - p)};
        const size_t eq = find_char(label, '=');
        const xpl_str_t value = {label.ptr + eq + 1, eq < label.len ? label.len - eq - 1 : 0};
        if (eq < label.len && find_char(value, '=') == value.len &&
            xpl_str_eq((xpl_str_t){label.ptr, eq}, XPL_STR("model_name"))) {
            *ret = value;
            return true;
        }
        p = stop + 2;
    }
    return false;
}

static bool is_number(xpl_str_t s) {
    while (s.len && s.ptr[0] == ' ')
        s.ptr++, s.len--;
    while (s.len && s.ptr[s.len - 1] == ' ')
        s.len--;
    const bool minus = s.len && s.ptr[0] == '-';
    if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+')) s.ptr++, s.len--;
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        const unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';
        if (digit > 9 || v > ((uint64_t)INT64_MAX + minus - digit) / 10) return false;
        v = v * 10 + digit;
    }
    return s.len > 0;
}

// Runs name a model with its version, "model:7"; counters without.  *ret: as counters do.
static bool counted_name(xpl_str_t model, xpl_str_t *ret) {
    const size_t colon = find_last(model, ':');
    *ret = xpl_str_sub(model, 0, colon);
    return colon == model.len ||
           is_number((xpl_str_t){model.ptr + colon + 1, model.len - colon - 1});
}

// Models that counters may name, by that name. The first of those that share one has the values
// read so far; the model of a counter is found once, so that no profile makes this quadratic.
struct named {
    xpl_str_t name;
    struct xpl_infer_model *model;
};
struct params {
    struct xpl_inferring *k;
    struct named *v;
    size_t n;
    struct xpl_map known; // by metadata of a statistic: 0: of no model, else below
};
enum { PARAM_BITS = 4 }; // known: the param, and above it the place in `v`, plus 1

static int by_name(const void *a, const void *b) {
    const struct named *const x = a, *const y = b;
    const int c = xpl_str_cmp(x->name, y->name);
    return c ? c : (x->model > y->model) - (x->model < y->model); // they are in one array
}

static bool list_models(struct params *p) {
    struct xpl_inference *const out = p->k->out;
    p->v = xpl_arena_array(p->k->scratch, out->models.n, sizeof *p->v);
    if (!p->v) return false;
    for (size_t i = 0; i < out->models.n; i++) {
        p->v[p->n].model = &out->models.v[i];
        p->n += counted_name(out->models.v[i].name, &p->v[p->n].name);
    }
    xpl_sort(p->v, p->n, sizeof *p->v, by_name);
    return true;
}

// What a statistic of that name is, as `known` has it.
static uint64_t find_param(const struct params *p, xpl_str_t name) {
    xpl_str_t model;
    if (!xpl_str_starts(name, XPL_STR(PREFIX))) return 0;
    name = xpl_str_sub(name, sizeof PREFIX - 1, SIZE_MAX);
    if (!model_of(name, &model)) return 0;
    unsigned param = 0;
    while (param < PARAMS && !xpl_str_starts(name, xpl_str_from(kParams[param])))
        param++;
    size_t low = 0, high = p->n; // the first that is not less is in [low, high]
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (xpl_str_cmp(p->v[middle].name, model) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == p->n || !xpl_str_eq(p->v[low].name, model)) return 0;
    return ((uint64_t)low + 1) << PARAM_BITS | param;
}

static void set_param(struct xpl_infer_model *m, enum param param, const struct xpl_stat *s) {
    m->has_params = true;
    switch (param) {
        case THREADS: m->batch_threads = xpl_stat_int(s); break;
        case TIMEOUT: m->timeout_us = xpl_stat_int(s); break;
        case MAX_SIZE: m->max_batch_size = xpl_stat_int(s); break;
        case MAX_ENQUEUED: m->max_enqueued = xpl_stat_int(s); break;
        case ALLOWED: m->allowed_sizes = xpl_stat_str(s); break; // copied at the end
        case PARAMS: break;
    }
}

static bool read_stat(struct params *p, const struct xpl_stat *s) {
    bool is_new;
    uint64_t *const slot =
        xpl_map_put(p->k->scratch, &p->known, (uint64_t)(uintptr_t)s->md, 0, &is_new);
    if (!slot) return false;
    if (is_new) *slot = find_param(p, s->md->name);
    if (*slot)
        set_param(p->v[(*slot >> PARAM_BITS) - 1].model,
                  (enum param)(*slot & ((1 << PARAM_BITS) - 1)), s);
    return true;
}

// What the first of a name has is all's.
static bool share_params(const struct params *p) {
    const struct xpl_infer_model *first = NULL;
    for (size_t i = 0; i < p->n; i++) {
        struct xpl_infer_model *const m = p->v[i].model;
        if (i == 0 || !xpl_str_eq(p->v[i].name, p->v[i - 1].name)) {
            first = m;
            if (!xpl_arena_str(p->k->result, m->allowed_sizes, &m->allowed_sizes)) return false;
        }
        const xpl_str_t name = m->name;
        *m = *first;
        m->name = name;
    }
    return true;
}

bool xpl_infer_read_params(struct xpl_inferring *k) {
    const struct xpl_plane *const p = xpl_xspace_plane(k->xs, XPL_STR(XPL_PLANE_NAME_TF_STREAMZ));
    struct xpl_event_cursor c;
    struct xpl_event ev;
    struct xpl_stat s;
    struct params params = {.k = k};
    if (!p || !p->n_lines || p->lines[0].n_events != 2 || !k->out->models.n) return true;
    xpl_events_begin(&c, &p->lines[0]);
    for (int i = 0; i < 2; i++)
        if (xpl_events_next(&c, &ev) != XPL_WIRE_FIELD) return true;
    if (!list_models(&params)) return false;
    while (xpl_stats_next(&ev.stats, &s) == XPL_WIRE_FIELD)
        if (!read_stat(&params, &s)) return false;
    return share_params(&params);
}
