// SPDX-License-Identifier: Apache-2.0
// One pass over the events of the host: those of a kind that matters, and when each group begins
// and ends.

#include "analysis/inference/impl.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 8192 };

// ---- groups ----

uint32_t xpl_infer_find_group(const struct xpl_inferring *k, int64_t id) {
    const uint64_t *const slot = xpl_map_get(&k->by_id, (uint64_t)id, 0);
    return slot ? (uint32_t)*slot + 1 : 0;
}

static bool put_group(struct xpl_inferring *k, int64_t id, uint32_t *ret) {
    bool is_new;
    uint64_t *const slot = xpl_map_put(k->scratch, &k->by_id, (uint64_t)id, 0, &is_new);
    if (!slot) return false;
    if (is_new) {
        if (k->v.n == UINT32_MAX - 1) return false;
        *slot = k->v.n;
        struct xpl_infer_group *const g = xpl_vec_push(k->scratch, &k->v);
        if (!g) return false;
        *g = (struct xpl_infer_group){.id = id, .known = xpl_groups_made(k->groups, id)};
    }
    *ret = (uint32_t)*slot;
    return true;
}

// Upstream takes a beginning at 0 for one that is not set yet.
static void widen(struct xpl_infer_group *g, uint64_t begin, uint64_t end) {
    if (g->begin != 0 && g->begin < begin) begin = g->begin;
    if (g->end > end) end = g->end;
    g->begin = begin;
    g->end = begin > end ? begin : end;
}

// ---- lines ----

struct line_scan {
    struct xpl_inferring *k;
    const uint8_t *kinds; // by metadata of events
    bool has_roots;
    int64_t last_id; // the group of the event before
    uint32_t last;   // its index + 1
};

static bool enter_group(struct line_scan *s, int64_t id, uint32_t *ret) {
    if (!s->last || s->last_id != id) {
        if (!put_group(s->k, id, ret)) return false;
        s->last = *ret + 1;
        s->last_id = id;
    }
    *ret = s->last - 1;
    return true;
}

static bool add_mark(struct line_scan *s, unsigned kind, const struct xpl_infer_mark *m) {
    struct xpl_infer_mark *const slot = xpl_vec_push(s->k->scratch, &s->k->marks[kind].v);
    if (slot) *slot = *m;
    return slot;
}

static bool is_own_root(const struct line_scan *s, const struct xpl_event *ev) {
    struct xpl_stat root;
    if (!s->has_roots || !xpl_stats_get(ev->stats, XPL_STAT_IS_ROOT, &root)) return false;
    const int64_t level = xpl_stat_int(&root);
    return level == -1 ||
           (level == 1 && xpl_infer_is_server_request(s->k->host->event_md[ev->md].name));
}

static bool visit(struct line_scan *s, const struct xpl_line *line, const struct xpl_event *ev,
                  const struct xpl_event_group *group) {
    const unsigned kind = s->kinds[ev->md];
    if (kind < XPL_INFER_KINDS) s->k->marks[kind].seen = true;
    if (!group->has_group) return true;
    struct xpl_infer_mark m = {
        .md = ev->md, .begin = (uint64_t)xpl_event_begin_ps(line, ev), .stats = ev->stats};
    m.end = m.begin + (uint64_t)ev->duration_ps;
    if (!enter_group(s, group->group_id, &m.group)) return false;
    widen(&s->k->v.v[m.group], m.begin, m.end);
    if (kind < XPL_INFER_KINDS && !add_mark(s, kind, &m)) return false;
    return !is_own_root(s, ev) || add_mark(s, XPL_INFER_ROOT, &m);
}

static bool visit_regions(struct line_scan *s, const struct xpl_group_cursor *groups) {
    size_t n;
    const struct xpl_region_event *const r = xpl_group_cursor_regions(groups, &n);
    for (size_t i = 0; i < n; i++) {
        uint32_t g;
        if (!enter_group(s, r[i].group_id, &g)) return false;
        widen(&s->k->v.v[g], (uint64_t)r[i].begin_ps,
              (uint64_t)r[i].begin_ps + (uint64_t)r[i].duration_ps);
    }
    return true;
}

static xpl_status_t scan_line(struct line_scan *s, const struct xpl_line *line, bool host,
                              struct xpl_error *err) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    struct xpl_group_cursor *groups;
    enum xpl_wire_result r;
    XPL_TRY(xpl_group_cursor_new(s->k->groups, line, s->k->scratch, &groups, err));
    xpl_group_cursor_relate(groups);
    xpl_events_begin(&c, line);
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group group;
        xpl_group_cursor_next(groups, &ev, &group);
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(s->k->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "inference: cancelled");
        if (host && (!visit_regions(s, groups) || !visit(s, line, &ev, &group)))
            XPL_RETURN_OOM(err, "inference");
    }
    if (r != XPL_WIRE_END) return xpl_events_error(&c, err);
    if (!xpl_group_cursor_ok(groups)) XPL_RETURN_OOM(err, "inference");
    return XPL_OK;
}

static const uint8_t *read_kinds(const struct xpl_inferring *k, const struct xpl_plane *p) {
    uint8_t *const kinds = xpl_arena_alloc(k->scratch, p->n_event_md + 1);
    for (uint32_t i = 0; kinds && i < p->n_event_md; i++)
        kinds[i] = (uint8_t)xpl_infer_kind_of(p->event_md[i].type);
    return kinds;
}

static bool has_stat(const struct xpl_plane *p, enum xpl_stat_type type) {
    for (uint32_t i = 0; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == type) return true;
    return false;
}

static bool is_device(const struct xpl_plane *p) {
    return p->kind == XPL_PLANE_GPU || p->kind == XPL_PLANE_TPU_CORE ||
           p->kind == XPL_PLANE_SPARSE_CORE || p->kind == XPL_PLANE_TPU_OTHER;
}

// Events of other planes are of no interest, but may relate groups.
xpl_status_t xpl_infer_collect(struct xpl_inferring *k, struct xpl_error *err) {
    struct line_scan s = {.k = k, .kinds = read_kinds(k, k->host)};
    if (!s.kinds) XPL_RETURN_OOM(err, "inference");
    s.has_roots = has_stat(k->host, XPL_STAT_IS_ROOT);
    for (uint32_t i = 0; i < k->xs->n_planes; i++) {
        const struct xpl_plane *const p = &k->xs->planes[i];
        if (is_device(p)) continue;
        if (p != k->host && !has_stat(p, XPL_STAT_CONSUMER_ID)) continue;
        for (uint32_t l = 0; l < p->n_lines; l++)
            XPL_TRY(scan_line(&s, &p->lines[l], p == k->host, err));
    }
    return XPL_OK;
}

// ---- relations ----

static int by_id(const void *a, const void *b) {
    const struct xpl_group_relation *const x = a, *const y = b;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    return (x->child > y->child) - (x->child < y->child);
}

static bool count_relations(struct xpl_inferring *k) {
    for (size_t i = 0; i < k->relations.v.n; i++) {
        uint32_t parent, child;
        if (!put_group(k, k->relations.v.v[i].parent, &parent) ||
            !put_group(k, k->relations.v.v[i].child, &child))
            return false;
        k->v.v[parent].n_children++;
        k->v.v[child].n_parents++;
    }
    uint32_t down = 0, up = 0;
    for (size_t i = 0; i < k->v.n; i++) {
        struct xpl_infer_group *const g = &k->v.v[i];
        g->first_child = down, g->first_parent = up;
        down += g->n_children, up += g->n_parents;
        g->n_children = g->n_parents = 0;
    }
    return true;
}

bool xpl_infer_relate(struct xpl_inferring *k) {
    const size_t n = k->relations.v.n;
    uint32_t *const children = xpl_arena_array(k->scratch, n + 1, sizeof *children);
    uint32_t *const parents = xpl_arena_array(k->scratch, n + 1, sizeof *parents);
    if (n >= UINT32_MAX || !children || !parents) return false;
    xpl_sort(k->relations.v.v, n, sizeof *k->relations.v.v, by_id);
    if (!count_relations(k)) return false;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_group_relation *const r = &k->relations.v.v[i];
        const uint32_t parent = xpl_infer_find_group(k, r->parent) - 1;
        const uint32_t child = xpl_infer_find_group(k, r->child) - 1;
        struct xpl_infer_group *const p = &k->v.v[parent], *const c = &k->v.v[child];
        children[p->first_child + p->n_children++] = child;
        parents[c->first_parent + c->n_parents++] = parent;
    }
    k->children = children, k->parents = parents;
    return true;
}
