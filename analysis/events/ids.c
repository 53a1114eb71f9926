// SPDX-License-Identifier: Apache-2.0
// Measurements by the number in a name.
#include <math.h>

#include "analysis/events/events.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/std_sort.h"
#include "base/text/regex.h"
#include "base/vec.h"

// A number is one however many zeros begin it.
static xpl_str_t id_of(xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return s;
    while (s.len > 1 && s.ptr[0] == '0')
        s.ptr++, s.len--;
    return s;
}

// Ids are interned: the number of a text is its place in the list.
static struct xpl_timings_id *find_id(struct xpl_timings_ids *ids, xpl_str_t id,
                                      struct xpl_arena *arena) {
    xpl_strid_t at;
    if (!ids->names && !(ids->names = xpl_intern_new(arena, xpl_hash_seed()))) return NULL;
    if (!xpl_intern_put(ids->names, id, &at)) return NULL;
    for (xpl_strid_t next; (next.v = (uint32_t)ids->n) <= at.v;) {
        struct xpl_timings_id *const slot = xpl_vec_push(arena, ids);
        if (!slot) return NULL;
        *slot = (struct xpl_timings_id){.id = xpl_intern_get(ids->names, next)};
    }
    return &ids->v[at.v];
}

static bool add_time(struct xpl_timings_id *id, double ps, struct xpl_arena *arena) {
    if (id->n == id->cap) {
        const size_t cap = id->cap ? 2 * id->cap : 8;
        double *const v = xpl_arena_array(arena, cap, sizeof *v);
        if (!v) return false;
        if (id->n) memcpy(v, id->times, id->n * sizeof *v);
        id->times = v, id->cap = cap;
    }
    id->times[id->n++] = ps;
    return true;
}

enum { MOST_IDS = 10000 };

xpl_status_t xpl_timings_add_ids(const struct xpl_timings_rows *rows, bool totals,
                                 struct xpl_regex *by_id, struct xpl_arena *arena,
                                 struct xpl_timings_ids *ids, struct xpl_error *err) {
    for (size_t i = 0; i < rows->n; i++) {
        const struct xpl_timings_row *const r = &rows->v[i];
        bool found;
        xpl_str_t group;
        XPL_TRY(xpl_regex_group(by_id, r->name, &found, &group, err));
        if (!found) continue;
        struct xpl_timings_id *const id = find_id(ids, id_of(group), arena);
        if (!id || !add_time(id, totals ? (double)r->total_ps : r->mean_ps, arena))
            XPL_RETURN_OOM(err, "by_id");
        if (ids->n > MOST_IDS)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "by_id: gives more than %d ids; write a narrower expression",
                             MOST_IDS);
    }
    return XPL_OK;
}

static bool less(const void *ctx, const void *a, const void *b) {
    (void)ctx;
    return *(const double *)a < *(const double *)b;
}

struct xpl_timings_trimmed xpl_timings_trim(double *v, size_t n) {
    struct xpl_timings_trimmed t = {0};
    if (n > 2) {
        xpl_std_sort(v, n, sizeof *v, less, NULL);
        v++, n -= 2;
    }
    for (size_t i = 0; i < n; i++)
        t.mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        t.std += (v[i] - t.mean) * (v[i] - t.mean) / (double)n;
    t.std = sqrt(t.std);
    return t;
}
