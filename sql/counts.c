// SPDX-License-Identifier: Apache-2.0
// Events by name: for count(*) GROUP BY name, without sorting ten million rows.
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "sql/tables.h"

struct counting {
    struct xpl_intern *names;
    XPL_VEC(uint64_t) n; // by number of the name
    const struct xpl_sql_plane *plane;
    size_t profile; // of the plane: another one may have the same address
    uint32_t *ids;  // of the current plane, by metadata: 1 + number; 0: none yet
    struct xpl_arena ids_arena;
};

static bool enter_plane(struct counting *c, const struct xpl_sql_scan *s) {
    if (c->plane == s->plane && c->profile == s->profile) return true;
    xpl_arena_fini(&c->ids_arena);
    xpl_arena_init_part(&c->ids_arena, s->budget);
    c->ids = xpl_arena_zalloc(&c->ids_arena, s->plane->plane->n_event_md * sizeof *c->ids);
    c->plane = s->plane;
    c->profile = s->profile;
    return c->ids != NULL;
}

static bool count_event(struct counting *c, uint32_t md, struct xpl_arena *arena) {
    uint32_t *const id = &c->ids[md];
    xpl_strid_t name;
    if (*id) {
        c->n.v[*id - 1]++;
        return true;
    }
    if (!xpl_intern_put(c->names, c->plane->names[md], &name)) return false;
    while (c->n.n <= name.v) {
        uint64_t *const slot = xpl_vec_push(arena, &c->n);
        if (!slot) return false;
        *slot = 0;
    }
    *id = name.v + 1;
    c->n.v[name.v]++;
    return true;
}

// As SQLite compares texts: by bytes.
static int by_name(const void *a, const void *b) {
    const struct xpl_sql_count *const x = a, *const y = b;
    return xpl_str_cmp(x->name, y->name);
}

static xpl_status_t count_all(struct xpl_sql_scan *s, struct counting *c,
                              struct xpl_sql_counts *ret) {
    c->names = xpl_intern_new(&ret->arena, xpl_hash_seed());
    if (!c->names) XPL_RETURN_OOM(s->err, "names of events");
    while (!s->is_over) {
        if (!enter_plane(c, s) || !count_event(c, s->event.md, &ret->arena))
            XPL_RETURN_OOM(s->err, "names of events");
        XPL_TRY(xpl_sql_scan_next(s));
    }
    ret->v = xpl_arena_array(&ret->arena, c->n.n, sizeof *ret->v);
    if (!ret->v) XPL_RETURN_OOM(s->err, "names of events");
    for (size_t i = 0; i < c->n.n; i++) {
        const xpl_strid_t id = {(uint32_t)i};
        if (c->n.v[i])
            ret->v[ret->n++] = (struct xpl_sql_count){xpl_intern_get(c->names, id), c->n.v[i]};
    }
    xpl_sort(ret->v, ret->n, sizeof *ret->v, by_name);
    return XPL_OK;
}

xpl_status_t xpl_sql_count_names(struct xpl_sql_scan *s, struct xpl_sql_counts *ret) {
    struct counting c = {0};
    xpl_arena_init_part(&c.ids_arena, s->budget);
    xpl_arena_init_part(&ret->arena, s->budget);
    const xpl_status_t st = count_all(s, &c, ret);
    xpl_arena_fini(&c.ids_arena);
    return st;
}
