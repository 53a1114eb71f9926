// SPDX-License-Identifier: Apache-2.0
// Which planes and lines of a profile are shown, under which numbers (XProf:
// convert/xplane_to_trace_container.cc), and which stats of their metadata apply to all its events.

#include "analysis/trace/index/impl.h"
#include "base/vec.h"

enum { // xla tsl/profiler/utils/trace_utils.h
    FIRST_DEVICE = 1,
    LAST_DEVICE = 500,
    FIRST_CUSTOM = 501,
    HOST_THREADS = 701,
};

// ---- metadata ----

static bool has_stat(const struct xpl_plane *p, enum xpl_stat_type type) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == type) return true;
    return false;
}

// Marks the stats that are read from events: those that are neither groups nor derived flows.
static xpl_status_t mark_scanned(struct builder *b, struct plane_src *ps, struct xpl_error *err) {
    const struct xpl_plane *const p = ps->plane;
    bool any = false;
    uint8_t *const marks = xpl_arena_zalloc(b->arena, p->n_stat_md);
    if (!marks) XPL_RETURN_OOM(err, "trace metadata");
    for (uint32_t i = 1; i < p->n_stat_md; i++) {
        const struct xpl_stat_md *const md = &p->stat_md[i];
        marks[i] = md->type == XPL_STAT_FLOW || md->type == XPL_STAT_IS_ASYNC ||
                   xpl_str_eq(md->name, XPL_STR("long_name")) ||
                   xpl_str_eq(md->name, XPL_STR("hlo_text"));
        any = any || marks[i];
    }
    ps->scan = any ? marks : NULL;
    return XPL_OK;
}

// Reads the stats of the metadata, which apply to all its events.
static void read_md_stats(struct plane_src *ps, uint32_t md) {
    struct xpl_stats s = xpl_event_md_stats(ps->plane, &ps->plane->event_md[md]);
    struct xpl_stat stat;
    while (xpl_stats_next(&s, &stat) == XPL_WIRE_FIELD) {
        if (stat.kind != XPL_VALUE_INT && stat.kind != XPL_VALUE_UINT) continue;
        if (stat.md->type == XPL_STAT_FLOW) {
            ps->md_flags[md] |= MD_HAS_FLOW;
            ps->md_flow[md] = trc_flow_of_stat(stat.u);
        } else if (stat.md->type == XPL_STAT_GROUP_ID) {
            ps->md_flags[md] |= MD_HAS_GROUP;
            ps->md_group[md] = stat.u;
        } else if (stat.md->type == XPL_STAT_IS_ASYNC) {
            ps->md_flags[md] |= MD_ASYNC;
        }
    }
}

static xpl_status_t read_metadata(struct builder *b, struct plane_src *ps, struct xpl_error *err) {
    const struct xpl_plane *const p = ps->plane;
    const bool special = has_stat(p, XPL_STAT_FLOW) || has_stat(p, XPL_STAT_IS_ASYNC) ||
                         has_stat(p, XPL_STAT_GROUP_ID);
    ps->used = xpl_arena_zalloc(b->arena, ps->n_md);
    ps->md_flags = xpl_arena_zalloc(b->arena, ps->n_md);
    if (!ps->used || !ps->md_flags) XPL_RETURN_OOM(err, "trace metadata");
    if (special) {
        ps->md_flow = xpl_arena_array(b->arena, ps->n_md, sizeof *ps->md_flow);
        ps->md_group = xpl_arena_array(b->arena, ps->n_md, sizeof *ps->md_group);
        if (!ps->md_flow || !ps->md_group) XPL_RETURN_OOM(err, "trace metadata");
    }
    for (uint32_t i = 0; i < p->n_event_md; i++) {
        const struct xpl_event_md *const md = &p->event_md[i];
        if (xpl_derived_is_internal_event(md->type)) ps->md_flags[i] = MD_INTERNAL;
        if (special && md->has_stats) read_md_stats(ps, i);
        if (b->arrived) continue;
        if (xpl_str_eq(md->name, XPL_STR("ThreadpoolListener::StartRegion"))) ps->start_md = i;
        if (xpl_str_eq(md->name, XPL_STR("ThreadpoolListener::StopRegion"))) ps->stop_md = i;
    }
    for (uint32_t i = p->n_event_md; i < ps->n_md; i++)
        if (xpl_derived_is_internal_event(trc_md(ps, i).type)) ps->md_flags[i] = MD_INTERNAL;
    ps->regions = ps->start_md && ps->stop_md;
    return mark_scanned(b, ps, err);
}

// ---- lines ----

static xpl_status_t add_string(struct builder *b, xpl_str_t s, uint32_t *ret,
                               struct xpl_error *err) {
    xpl_strid_t id;
    if (!xpl_intern_put(b->strings, s, &id)) XPL_RETURN_OOM(err, "trace strings");
    *ret = id.v;
    return XPL_OK;
}

static xpl_status_t add_resource(struct builder *b, const struct line_src *ls, xpl_str_t name,
                                 struct xpl_error *err) {
    struct trc_resource *const r = xpl_vec_push(b->arena, &b->resources);
    if (!r) XPL_RETURN_OOM(err, "trace rows");
    r->device = ls->ps->device;
    r->id = ls->resource;
    return add_string(b, name, &r->name, err);
}

static xpl_status_t add_line(struct builder *b, struct line_src *ls, xpl_str_t name,
                             xpl_str_t display_name, struct xpl_error *err) {
    if (ls->n_events == 0 || xpl_str_starts(name, XPL_STR("counters_"))) return XPL_OK;
    ls->counter = xpl_str_eq(name, XPL_STR(XPL_LINE_COUNTERS));
    if (!ls->counter) XPL_TRY(add_resource(b, ls, display_name.len ? display_name : name, err));
    struct line_src *const slot = xpl_vec_push(b->arena, &b->lines);
    if (!slot) XPL_RETURN_OOM(err, "trace lines");
    *slot = *ls;
    return XPL_OK;
}

// The lines as recorded.
static xpl_status_t add_recorded(struct builder *b, struct plane_src *ps, struct xpl_error *err) {
    for (uint32_t i = 0; i < ps->plane->n_lines; i++) {
        const struct xpl_line *const l = &ps->plane->lines[i];
        struct line_src ls = {.line = l,
                              .ps = ps,
                              .resource = (uint32_t)(uint64_t)l->display_id,
                              .n_events = l->n_events,
                              .n_chunks = l->n_chunks};
        if (!xpl_groups_can_start_at_chunk(b->groups, l)) ls.n_chunks = 1;
        if (!b->arrived) xpl_flow_reader_init(&ls.flows, b->groups, l);
        XPL_TRY(add_line(b, &ls, l->name, l->display_name, err));
    }
    return XPL_OK;
}

// The lines as preprocessing leaves them.
static xpl_status_t add_derived(struct builder *b, struct plane_src *ps, struct xpl_error *err) {
    for (uint32_t i = 0; i < ps->derived->n_lines; i++) {
        const struct xpl_derived_line *const l = &ps->derived->lines[i];
        struct line_src ls = {.line = l->recorded,
                              .derived = l,
                              .ps = ps,
                              .resource = (uint32_t)(uint64_t)l->display_id,
                              .n_events = l->n_events,
                              .n_chunks = l->n_pieces};
        XPL_TRY(add_line(b, &ls, l->name, l->display_name, err));
    }
    return XPL_OK;
}

static xpl_status_t add_plane(struct builder *b, const struct xpl_plane *p, uint32_t id,
                              struct xpl_error *err) {
    struct plane_src *const ps = &b->planes.v[b->planes.n];
    *ps = (struct plane_src){.plane = p, .n_md = p->n_event_md};
    if (b->derived && p->kind != XPL_PLANE_HOST_THREADS) {
        uint32_t n;
        ps->derived = &xpl_derived_planes(b->derived, &n)[p->index];
        ps->n_md = ps->derived->n_md;
    }
    // A plane without lines does not become a device.
    if ((ps->derived ? ps->derived->n_lines : p->n_lines) == 0) return XPL_OK;
    b->planes.n++;
    bool is_new;
    uint64_t *const device = xpl_map_put(b->arena, &b->device_of, id, 0, &is_new);
    if (!device) XPL_RETURN_OOM(err, "trace devices");
    if (is_new) {
        struct trc_device *const slot = xpl_vec_push(b->arena, &b->devices);
        if (!slot) XPL_RETURN_OOM(err, "trace devices");
        slot->id = id;
        *device = b->devices.n - 1;
    }
    ps->device = (uint32_t)*device;
    XPL_TRY(add_string(b, p->name, &b->devices.v[ps->device].name, err));
    XPL_TRY(read_metadata(b, ps, err));
    if (UINT32_MAX / 2 - b->n_md_slots < ps->n_md)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "trace: too many kinds of events");
    ps->slot_base = b->n_md_slots;
    b->n_md_slots += ps->n_md;
    return ps->derived ? add_derived(b, ps, err) : add_recorded(b, ps, err);
}

// ---- planes ----

static int by_name(const void *pa, const void *pb) {
    const struct xpl_plane *const a = *(const struct xpl_plane *const *)pa;
    const struct xpl_plane *const b = *(const struct xpl_plane *const *)pb;
    const int c = xpl_str_cmp(a->name, b->name);
    return c ? c : (a->index > b->index) - (a->index < b->index);
}

// Planes whose names begin so, in the order of the profile.
static size_t find_planes(const struct xpl_xspace *xs, xpl_str_t prefix,
                          const struct xpl_plane **ret) {
    size_t n = 0;
    for (uint32_t i = 0; i < xs->n_planes; i++)
        if (xpl_str_starts(xs->planes[i].name, prefix)) ret[n++] = &xs->planes[i];
    return n;
}

static xpl_status_t add_planes(struct builder *b, const struct xpl_plane **list,
                               struct xpl_error *err) {
    size_t n = find_planes(b->xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS), list);
    xpl_sort(list, n, sizeof(*list), by_name);
    for (size_t i = 0; i < n; i++)
        XPL_TRY(add_plane(b, list[i], (uint32_t)(HOST_THREADS + i), err));
    n = find_planes(b->xs, XPL_STR(XPL_PLANE_NAME_GPU_PREFIX), list);
    if (n == 0) n = find_planes(b->xs, XPL_STR(XPL_PLANE_NAME_TPU_PREFIX), list);
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = (uint32_t)(FIRST_DEVICE + (uint64_t)list[i]->id);
        XPL_TRY(add_plane(b, list[i], id > LAST_DEVICE ? FIRST_DEVICE : id, err));
    }
    n = find_planes(b->xs, XPL_STR(XPL_PLANE_NAME_CUSTOM_PREFIX), list);
    for (size_t i = 0; i < n; i++)
        XPL_TRY(add_plane(b, list[i], (uint32_t)(FIRST_CUSTOM + (uint64_t)list[i]->id), err));
    return XPL_OK;
}

xpl_status_t trc_plan(struct builder *b, struct xpl_error *err) {
    const struct xpl_plane **const list = xpl_arena_array(b->arena, b->xs->n_planes, sizeof(*list));
    if (!list || !xpl_vec_reserve(b->arena, &b->planes, b->xs->n_planes))
        XPL_RETURN_OOM(err, "trace planes");
    b->arrived = xpl_groups_arrived_grouped(b->groups);
    if (find_planes(b->xs, XPL_STR("/device:"), list)) {
        XPL_TRY(xpl_hlo_map_new(b->xs, b->limit, &b->hlo, err));
        XPL_TRY(xpl_derived_build(b->xs, b->groups, b->hlo, &b->view, b->exec, &b->derived, err));
    }
    XPL_TRY(add_planes(b, list, err));
    // Names without metadata follow.
    xpl_str_t *const region = xpl_vec_push(b->arena, &b->more_slots);
    if (!region) XPL_RETURN_OOM(err, "trace names");
    *region = XPL_STR("ThreadpoolListener::Region");
    b->region_slot = b->n_md_slots;
    return XPL_OK;
}
