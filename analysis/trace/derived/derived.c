// SPDX-License-Identifier: Apache-2.0
// Builds the view of a space: derives lines plane by plane, in parallel, then copies the remaining
// ones into memory of the right size.
#include "analysis/trace/derived/impl.h"

#include <string.h>

// ---- lines of a plane ----

struct publish {
    struct xpl_dplane *p;
    struct xpl_derived *d;
    struct xpl_arena *arena;
    struct xpl_error *err;
    const struct xpl_step_event *steps;
    size_t n_steps;
    XPL_VEC(struct xpl_derived_line) lines; // in temp memory
    XPL_VEC(struct xpl_derived_part) parts;
};

static xpl_status_t no_memory(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "derived lines");
}

static struct xpl_derived_line *push_line(struct publish *b) {
    struct xpl_derived_line *const l = xpl_vec_push(&b->p->temp, &b->lines);
    struct xpl_derived_part *const part = l ? xpl_vec_push(&b->p->temp, &b->parts) : NULL;
    if (!part) return NULL;
    *l = (struct xpl_derived_line){.n_pieces = 1};
    *part = (struct xpl_derived_part){0};
    return l;
}

// The first line with that id; an added line extends it [XPlaneBuilder].
static struct xpl_derived_line *find_line(struct publish *b, int64_t id) {
    for (size_t i = 0; i < b->lines.n; i++)
        if (b->lines.v[i].id == id) return &b->lines.v[i];
    return NULL;
}

// Added steps are named by the number of their group.
static xpl_status_t use_steps(struct publish *b, struct xpl_derived_line *l,
                              struct xpl_derived_part *part) {
    uint32_t *const md = xpl_arena_array(b->arena, b->n_steps, sizeof *md);
    if (!md) return no_memory(b->err);
    for (size_t i = 0; i < b->n_steps; i++) {
        md[i] = b->steps[i].line ? 0 : xpl_dplane_md(b->p, b->steps[i].name);
        if (!b->steps[i].line && !md[i]) return no_memory(b->err);
    }
    part->use_steps = true;
    part->steps = b->steps;
    part->n_steps = b->n_steps;
    part->step_md = md;
    l->n_events = b->n_steps;
    b->n_steps = 0;
    return XPL_OK;
}

static xpl_status_t add_recorded(struct publish *b, const struct xpl_line *line) {
    struct xpl_dplane *const p = b->p;
    const struct xpl_groups *const g = b->d->groups;
    struct xpl_derived_line *const l = push_line(b);
    if (!l) return no_memory(b->err);
    struct xpl_derived_part *const part = &b->parts.v[b->parts.n - 1];
    l->recorded = line;
    l->id = line->id;
    l->display_id = line->display_id;
    l->name = line->name;
    l->display_name = line->display_name.len ? line->display_name : line->name;
    l->timestamp_ns = line->timestamp_ns;
    l->n_events = line->n_events;
    XPL_TRY(xpl_groups_line_regions(g, line, b->arena, &part->regions, &part->n_regions, b->err));
    l->n_events += part->n_regions;
    part->sort = part->n_regions || (p->out_of_order && p->out_of_order[line->index]);
    if (part->n_regions) {
        part->region_md = xpl_dplane_md(p, XPL_STR("ThreadpoolListener::Region"));
        if (!part->region_md) return no_memory(b->err);
    }
    if (b->n_steps && xpl_groups_replaces_line(g, line)) {
        if (p->plane->kind == XPL_PLANE_GPU) l->timestamp_ns = p->start_ns;
        XPL_TRY(use_steps(b, l, part));
    } else if (!part->sort && line->n_chunks > 1 && xpl_groups_can_start_at_chunk(g, line)) {
        l->n_pieces = line->n_chunks;
    }
    return XPL_OK;
}

static xpl_status_t add_derived(struct publish *b, const struct xpl_dline *from) {
    struct xpl_derived_line *l = find_line(b, from->id);
    if (!l) {
        l = push_line(b);
        if (!l) return no_memory(b->err);
        l->id = l->display_id = from->id;
        l->display_name = from->name;
    } else if (!l->recorded->display_name.len) {
        l->display_name = from->name;
    }
    struct xpl_derived_part *const part = &b->parts.v[l - b->lines.v];
    l->name = from->name;
    l->timestamp_ns = from->timestamp_ns;
    l->n_events += from->events.n;
    l->n_pieces = 1;
    struct xpl_added *const copy = xpl_arena_array(b->arena, from->events.n, sizeof *copy);
    if (!copy) return no_memory(b->err);
    if (from->events.n) memcpy(copy, from->events.v, from->events.n * sizeof *copy);
    part->added = copy;
    part->n_added = from->events.n;
    return XPL_OK;
}

// Adds the Steps line of a GPU, when no recorded line has its id.
static xpl_status_t add_steps(struct publish *b) {
    struct xpl_derived_line *const l = push_line(b);
    if (!l) return no_memory(b->err);
    struct xpl_derived_part *const part = &b->parts.v[b->parts.n - 1];
    l->id = l->display_id = XPL_LINE_ID_STEPS;
    l->name = l->display_name = XPL_STR(XPL_LINE_STEPS);
    l->timestamp_ns = b->p->start_ns;
    return use_steps(b, l, part);
}

// Small ids that put each stream before the lines derived from it [display_id].
static bool set_display_ids(struct publish *b) {
    struct xpl_map rank = {0};
    bool is_new;
    for (size_t i = 0; i < b->p->display_order.n; i++) {
        uint64_t *const slot =
            xpl_map_put(&b->p->temp, &rank, (uint64_t)b->p->display_order.v[i], 0, &is_new);
        if (!slot) return false;
        *slot = i + 1;
    }
    for (size_t i = 0; i < b->lines.n; i++) {
        const uint64_t *const slot = xpl_map_get(&rank, (uint64_t)b->lines.v[i].id, 0);
        if (slot) b->lines.v[i].display_id = (int64_t)*slot;
    }
    return true;
}

static void drop_empty(struct publish *b) {
    size_t n = 0;
    for (size_t i = 0; i < b->lines.n; i++) {
        if (b->lines.v[i].n_events == 0 &&
            !(b->p->launches && b->lines.v[i].id == b->p->launches->id))
            continue;
        b->lines.v[n] = b->lines.v[i];
        b->parts.v[n++] = b->parts.v[i];
    }
    b->lines.n = b->parts.n = n;
}

// ---- the finished plane ----

static bool copy_str(struct xpl_arena *a, xpl_str_t *s) {
    return s->len == 0 || xpl_arena_str(a, *s, s);
}

static xpl_status_t copy_names(struct publish *b, const struct xpl_derived_names **ret) {
    const struct xpl_dplane *const p = b->p;
    const uint32_t n = p->plane->n_event_md;
    struct xpl_derived_names *const names = xpl_arena_zalloc(b->arena, sizeof *names);
    struct xpl_derived_md *const md = xpl_arena_array(b->arena, p->md.n, sizeof *md);
    struct xpl_extra *const extras = xpl_arena_array(b->arena, p->extras.n, sizeof *extras);
    xpl_str_t *const display = p->display ? xpl_arena_array(b->arena, n, sizeof *display) : NULL;
    if (!names || !md || !extras || (p->display && !display)) return no_memory(b->err);
    bool ok = true;
    for (size_t i = 0; i < p->md.n; i++) {
        md[i] = p->md.v[i];
        ok = ok && copy_str(b->arena, &md[i].name) && copy_str(b->arena, &md[i].display_name);
    }
    for (size_t i = 0; i < p->extras.n; i++) {
        extras[i] = p->extras.v[i];
        if (extras[i].kind == XPL_EXTRA_OFFLOAD && extras[i].has_second)
            ok = ok && copy_str(b->arena, &extras[i].shape);
    }
    for (uint32_t i = 0; display && i < n; i++) {
        display[i] = p->display[i];
        ok = ok && copy_str(b->arena, &display[i]);
    }
    if (!ok) return no_memory(b->err);
    names->added = md;
    names->display = display;
    names->extras = extras;
    *ret = names;
    return XPL_OK;
}

static xpl_status_t copy_plane(struct publish *b) {
    struct xpl_derived_plane *const to = &b->d->planes[b->p->plane->index];
    struct xpl_derived_line *const lines = xpl_arena_array(b->arena, b->lines.n, sizeof *lines);
    struct xpl_derived_part *const parts = xpl_arena_array(b->arena, b->parts.n, sizeof *parts);
    if (!lines || !parts) return no_memory(b->err);
    to->recorded = b->p->plane;
    to->lines = lines;
    to->n_lines = (uint32_t)b->lines.n;
    to->n_md = b->p->plane->n_event_md + (uint32_t)b->p->md.n;
    to->space = b->d;
    for (size_t i = 0; i < b->lines.n; i++) {
        lines[i] = b->lines.v[i];
        parts[i] = b->parts.v[i];
        lines[i].index = (uint32_t)i;
        lines[i].plane = to;
        lines[i].part = &parts[i];
        if (lines[i].recorded && lines[i].name.ptr == lines[i].recorded->name.ptr) continue;
        if (!copy_str(b->arena, &lines[i].name) || !copy_str(b->arena, &lines[i].display_name))
            return no_memory(b->err);
    }
    return copy_names(b, &to->names);
}

static xpl_status_t publish_plane(struct xpl_dplane *p, struct xpl_derived *d,
                                  struct xpl_arena *arena, struct xpl_error *err) {
    struct publish b = {.p = p, .d = d, .arena = arena, .err = err};
    if (!xpl_groups_steps_are_recorded(d->groups, p->plane))
        b.steps = xpl_groups_steps(d->groups, p->plane, &b.n_steps);
    for (uint32_t i = 0; i < p->plane->n_lines; i++)
        XPL_TRY(add_recorded(&b, &p->plane->lines[i]));
    if (b.n_steps && p->plane->kind == XPL_PLANE_GPU && !xpl_groups_arrived_grouped(d->groups))
        XPL_TRY(add_steps(&b));
    for (size_t i = 0; i < p->lines.n; i++)
        XPL_TRY(add_derived(&b, p->lines.v[i]));
    if (!set_display_ids(&b)) return no_memory(err);
    if (p->remove_empty) drop_empty(&b);
    return copy_plane(&b);
}

// ---- all planes ----

enum { BATCH = 64 }; // planes that are built side by side: a file may state a million

struct build {
    struct xpl_derived *d;
    struct xpl_hlo_map *hlo;
    struct xpl_exec *exec;
    struct xpl_arena *arena;
    struct xpl_scope_tree *scopes;
    struct xpl_launches *launches;
    struct xpl_dplane *planes; // of the batch
    uint32_t n_gpus;           // before the plane that is next
};

static void derive_plane(void *ctx, size_t i) {
    struct build *const b = ctx;
    struct xpl_dplane *const p = &b->planes[i];
    if (xpl_groups_arrived_grouped(b->d->groups)) return;
    if (p->plane->kind == XPL_PLANE_TPU_CORE) p->status = xpl_derive_tpu(p);
    if (p->plane->kind != XPL_PLANE_GPU) return;
    p->status = xpl_derive_gpu(p, b->scopes);
    if (p->status == XPL_OK) p->status = xpl_derive_launches(p, b->launches, p->gpu);
}

static xpl_status_t run_batch(struct build *b, uint32_t n, struct xpl_error *err) {
    xpl_exec_run(b->exec, n, derive_plane, b);
    for (uint32_t i = 0; i < n; i++)
        if (b->planes[i].status != XPL_OK) {
            if (err) *err = b->planes[i].err;
            return b->planes[i].status;
        }
    for (uint32_t i = 0; i < n; i++)
        XPL_TRY(publish_plane(&b->planes[i], b->d, b->arena, err));
    return XPL_OK;
}

static xpl_status_t build_batch(struct build *b, uint32_t first, uint32_t n,
                                struct xpl_error *err) {
    struct xpl_arena_budget budget; // of all planes of the batch
    xpl_arena_budget_init(&budget, b->arena->limit);
    for (uint32_t i = 0; i < n; i++) {
        const struct xpl_plane *const plane = &b->d->xs->planes[first + i];
        b->planes[i] = (struct xpl_dplane){.space = b->d,
                                           .plane = plane,
                                           .hlo = b->hlo,
                                           .exec = b->exec,
                                           .start_ns = xpl_dplane_start_ns(plane),
                                           .gpu = b->n_gpus};
        b->n_gpus += plane->kind == XPL_PLANE_GPU;
        xpl_arena_init_part(&b->planes[i].temp, &budget);
    }
    const xpl_status_t status = run_batch(b, n, err);
    for (uint32_t i = 0; i < n; i++)
        xpl_arena_fini(&b->planes[i].temp);
    return status;
}

static xpl_status_t build(struct build *b, struct xpl_arena *temp, struct xpl_error *err) {
    const struct xpl_xspace *const xs = b->d->xs;
    uint32_t n_gpus = 0;
    for (uint32_t i = 0; i < xs->n_planes; i++)
        n_gpus += xs->planes[i].kind == XPL_PLANE_GPU;
    XPL_TRY(xpl_scope_tree_new(xs, temp, &b->scopes, err));
    XPL_TRY(xpl_find_launches(b->d, n_gpus, temp, b->exec, &b->launches, err));
    b->d->planes = xpl_arena_zalloc(b->arena, xs->n_planes * sizeof *b->d->planes);
    b->planes = xpl_arena_array(temp, BATCH, sizeof *b->planes);
    if (!b->d->planes || !b->planes) return no_memory(err);
    b->d->n_planes = xs->n_planes;
    for (uint32_t i = 0; i < xs->n_planes; i += BATCH) {
        const uint32_t left = xs->n_planes - i;
        if (xpl_exec_cancelled(b->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        XPL_TRY(build_batch(b, i, left < BATCH ? left : BATCH, err));
    }
    return XPL_OK;
}

// Where TensorFlow's loop ops occur, upstream does not mark eager ops [CheckLoopOp].
static bool has_loops(const struct xpl_xspace *xs) {
    for (uint32_t i = 0; i < xs->n_planes; i++)
        for (uint32_t k = 1; k < xs->planes[i].n_event_md; k++) {
            const enum xpl_event_type t = xs->planes[i].event_md[k].type;
            if (t == XPL_EVENT_WHILE_OP_EVAL_COND || t == XPL_EVENT_WHILE_OP_START_BODY ||
                t == XPL_EVENT_FOR_OP || t == XPL_EVENT_PARALLEL_FOR_OP ||
                t == XPL_EVENT_FOREVER_OP)
                return true;
        }
    return false;
}

xpl_status_t xpl_derived_build(const struct xpl_xspace *xs, const struct xpl_groups *groups,
                               struct xpl_hlo_map *hlo, struct xpl_arena *arena,
                               struct xpl_exec *exec, struct xpl_derived **ret,
                               struct xpl_error *err) {
    struct xpl_derived *const d = xpl_arena_zalloc(arena, sizeof *d);
    struct xpl_arena temp;
    if (!d) return no_memory(err);
    d->xs = xs;
    d->groups = groups;
    d->eager = !xpl_groups_arrived_grouped(groups) && !has_loops(xs);
    struct build b = {.d = d, .hlo = hlo, .exec = exec, .arena = arena};
    xpl_arena_init(&temp, arena->limit);
    const xpl_status_t status = build(&b, &temp, err);
    xpl_arena_fini(&temp);
    if (status == XPL_OK) *ret = d;
    return status;
}

const struct xpl_derived_plane *xpl_derived_planes(const struct xpl_derived *d, uint32_t *ret_n) {
    *ret_n = d->n_planes;
    return d->planes;
}

struct xpl_derived_md xpl_derived_md_at(const struct xpl_derived_plane *p, uint32_t md) {
    const uint32_t n = p->recorded->n_event_md;
    if (md >= n) return p->names->added[md - n];
    const struct xpl_event_md *const m = &p->recorded->event_md[md];
    const bool given = p->names->display && p->names->display[md].len;
    return (struct xpl_derived_md){.name = m->name,
                                   .display_name = given ? p->names->display[md] : m->display_name,
                                   .type = m->type,
                                   .recorded = m};
}
