// Step events of device planes, and where the groups of their ungrouped events come from.
// Counterparts: ProcessUngroupedEvents and DeriveStepEventsFromGroups (XProf derived_timeline.cc)
// for GPUs; MergeHostSteps and GroupLine (xla group_events.cc) for TPUs.
#include <inttypes.h>
#include <string.h>

#include "analysis/grouping/impl.h"

static xpl_status_t no_memory(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "device steps");
}

bool xpl_grp_is_host_plane(const struct xpl_plane *p) {
    static const char *const hosts[] = {XPL_PLANE_NAME_HOST_THREADS, XPL_PLANE_NAME_HOST_CPUS,
                                        XPL_PLANE_NAME_TF_STREAMZ,   XPL_PLANE_NAME_METADATA,
                                        XPL_PLANE_NAME_SYSCALLS,     XPL_PLANE_NAME_PYTHON_TRACER,
                                        XPL_PLANE_NAME_CUPTI_API,    XPL_PLANE_NAME_SCOPE_RANGE_ID};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (xpl_str_starts(p->name, xpl_str_from(hosts[i]))) return true;
    return false;
}

bool xpl_grp_is_device_plane(const struct xpl_plane *p) {
    return !xpl_grp_is_host_plane(p) &&
           (xpl_str_starts(p->name, XPL_STR("/device")) ||
            xpl_str_starts(p->name, XPL_STR(XPL_PLANE_NAME_TPU_NON_CORE)) ||
            xpl_str_starts(p->name, XPL_STR("/custom:")));
}

// ---- step events as they stand in the file ----

static void set_own_stats(struct xpl_step_event *s) {
    struct xpl_stat st, duration;
    if (xpl_stats_get(s->ev.stats, XPL_STAT_STEP_NAME, &st)) s->step_name = xpl_stat_str(&st);
    if (xpl_stats_get(s->ev.stats, XPL_STAT_DEVICE_OFFSET_PS, &st) &&
        xpl_stats_get(s->ev.stats, XPL_STAT_DEVICE_DURATION_PS, &duration)) {
        s->has_device_time = true;
        s->device_offset_ps = (int64_t)xpl_stat_int_or_uint(&st);
        s->device_duration_ps = (int64_t)xpl_stat_int_or_uint(&duration);
    }
    if (xpl_stats_get(s->ev.stats, XPL_STAT_STEP_IDLE_TIME_PS, &st)) {
        s->has_idle_time = true;
        s->step_idle_time_ps = xpl_stat_int_or_uint(&st);
    }
}

// All events of a line, with the groups that spreading or their own stats gave them.
static xpl_status_t read_steps(const struct xpl_groups *g, const struct xpl_line *line,
                               struct xpl_arena *temp, struct xpl_step_event *to,
                               struct xpl_error *err) {
    struct xpl_event_cursor c;
    struct xpl_group_cursor *groups;
    struct xpl_event ev;
    enum xpl_wire_result r;
    XPL_TRY(xpl_group_cursor_new(g, line, temp, &groups, err));
    xpl_grp_cursor_no_fill(groups);
    xpl_events_begin(&c, line);
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group eg;
        xpl_group_cursor_next(groups, &ev, &eg);
        *to = (struct xpl_step_event){
            .ev = ev,
            .line = line,
            .name = xpl_event_get_md(line, &ev)->name,
            .step_name = {"", 0},
            .has_group = eg.has_group,
            .group_id = eg.group_id,
            .begin_ps = xpl_event_begin_ps(line, &ev),
            .duration_ps = ev.duration_ps,
        };
        set_own_stats(to++);
    }
    if (r == XPL_WIRE_MALFORMED || c.index != c.stop) return xpl_events_error(&c, err);
    return XPL_OK;
}

static bool is_step_line(const struct xpl_line *l) {
    return xpl_str_eq(l->name, XPL_STR(XPL_LINE_STEPS)) ||
           xpl_str_eq(l->name, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS));
}

// The step lines of a space that arrived grouped, or of one that is not grouped at all.
xpl_status_t xpl_grp_raw_steps(struct xpl_groups *g, struct plane_groups *pg,
                               struct xpl_error *err) {
    const struct xpl_plane *const p = pg->plan.plane;
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (is_step_line(&p->lines[i])) n += p->lines[i].n_events;
    pg->raw_steps = true;
    if (n == 0) return XPL_OK;
    pg->steps = xpl_arena_array(g->arena, n, sizeof *pg->steps);
    if (!pg->steps) return no_memory(err);
    for (uint32_t i = 0; i < p->n_lines; i++) {
        if (!is_step_line(&p->lines[i])) continue;
        XPL_TRY(read_steps(g, &p->lines[i], g->arena, pg->steps + pg->n_steps, err));
        pg->n_steps += p->lines[i].n_events;
    }
    return XPL_OK;
}

// ---- GPU ----

// Events of all lines of a plane in the order of time: a heap of cursors, one per line.
struct feed {
    struct xpl_event_cursor events;
    struct xpl_group_cursor *groups;
    const struct xpl_line *line;
    uint64_t begin, duration;
    bool has_group;
    int64_t group;
    bool done;
};

struct timed_event { // what the heap yields
    uint64_t begin, duration;
    int64_t group;
    uint32_t order; // its line
    bool has_group;
};

// Begin, then duration ascending [GetSortedEvents]; then the order of the lines.
static int timed_cmp(const void *pa, const void *pb) {
    const struct timed_event *const a = pa, *const b = pb;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->duration != b->duration) return a->duration < b->duration ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

struct gpu_build {
    struct xpl_groups *g;
    struct plane_groups *pg;
    struct xpl_arena temp;
    struct feed *feeds;
    uint32_t n_feeds;
    struct timed_event *heap; // heads of the feeds; order is the feed's number while in here
    uint32_t n_heap;
    XPL_VEC(struct run) runs;
    XPL_VEC(struct xpl_step_event) steps;
    bool unsorted;
    struct xpl_error *err;
};

static xpl_status_t read_feed(struct gpu_build *b, struct feed *f, struct timed_event *ret) {
    struct xpl_event ev;
    struct xpl_event_group eg;
    const enum xpl_wire_result r = xpl_events_next(&f->events, &ev);
    f->done = r != XPL_WIRE_FIELD;
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&f->events, b->err);
    if (f->done) return XPL_OK;
    xpl_group_cursor_next(f->groups, &ev, &eg);
    *ret = (struct timed_event){.begin = (uint64_t)xpl_event_begin_ps(f->line, &ev),
                                .duration = (uint64_t)ev.duration_ps,
                                .group = eg.group_id,
                                .order = (uint32_t)(f - b->feeds),
                                .has_group = eg.has_group};
    return XPL_OK;
}

static void sift_down(struct gpu_build *b, uint32_t i) {
    const struct timed_event x = b->heap[i];
    for (uint32_t child; (child = 2 * i + 1) < b->n_heap; i = child) {
        if (child + 1 < b->n_heap && timed_cmp(&b->heap[child + 1], &b->heap[child]) < 0) child++;
        if (timed_cmp(&x, &b->heap[child]) <= 0) break;
        b->heap[i] = b->heap[child];
    }
    b->heap[i] = x;
}

static xpl_status_t begin_feeds(struct gpu_build *b) {
    const struct xpl_plane *const p = b->pg->plan.plane;
    b->n_feeds = b->n_heap = 0;
    b->feeds = xpl_arena_array(&b->temp, p->n_lines, sizeof *b->feeds);
    b->heap = xpl_arena_array(&b->temp, p->n_lines, sizeof *b->heap);
    if (!b->feeds || !b->heap) return no_memory(b->err);
    for (uint32_t i = 0; i < p->n_lines; i++) {
        if (xpl_is_derived_line_id(p->lines[i].id) || p->lines[i].n_events == 0) continue;
        struct feed *const f = &b->feeds[b->n_feeds++];
        *f = (struct feed){.line = &p->lines[i]};
        xpl_events_begin(&f->events, f->line);
        XPL_TRY(xpl_group_cursor_new(b->g, f->line, &b->temp, &f->groups, b->err));
        xpl_grp_cursor_no_fill(f->groups);
        XPL_TRY(read_feed(b, f, &b->heap[b->n_heap]));
        if (!f->done) b->n_heap++;
    }
    for (uint32_t i = b->n_heap / 2; i-- > 0;)
        sift_down(b, i);
    return XPL_OK;
}

static bool add_step(struct gpu_build *b, const struct timed_event *e,
                     const struct xpl_line *line) {
    struct run *const r = xpl_vec_push(&b->temp, &b->runs);
    struct xpl_step_event *const s = r ? xpl_vec_push(&b->temp, &b->steps) : NULL;
    if (!s) return false;
    *r = (struct run){e->begin, e->duration, line->index, e->group};
    *s = (struct xpl_step_event){.name = {"", 0},
                                 .step_name = xpl_groups_name(b->g, e->group),
                                 .has_group = true,
                                 .group_id = e->group,
                                 .begin_ps = (int64_t)e->begin,
                                 .duration_ps = (int64_t)e->duration};
    return true;
}

// One more event, in order: joins the last run or starts one.
static bool feed_event(struct gpu_build *b, const struct timed_event *e,
                       const struct xpl_line *line) {
    const size_t n = b->runs.n;
    if (e->has_group && (n == 0 || b->runs.v[n - 1].group != e->group)) return add_step(b, e, line);
    if (n == 0) return true; // before any group
    struct xpl_step_event *const s = &b->steps.v[n - 1];
    const uint64_t begin = (uint64_t)s->begin_ps, end = begin + (uint64_t)s->duration_ps;
    const uint64_t first = e->begin < begin ? e->begin : begin;
    const uint64_t last = e->begin + e->duration > end ? e->begin + e->duration : end;
    s->begin_ps = (int64_t)first;
    s->duration_ps = (int64_t)(last - first);
    return true;
}

static xpl_status_t merge_feeds(struct gpu_build *b) {
    uint64_t n = 0;
    while (b->n_heap && !b->unsorted) {
        struct timed_event next;
        const struct timed_event head = b->heap[0];
        struct feed *const f = &b->feeds[head.order];
        if ((n++ & 4095) == 0 && xpl_exec_cancelled(b->g->exec))
            XPL_RETURN_ERROR(b->err, XPL_CANCELLED, "cancelled");
        if (!feed_event(b, &head, f->line)) return no_memory(b->err);
        XPL_TRY(read_feed(b, f, &next));
        if (f->done) {
            b->heap[0] = b->heap[--b->n_heap];
        } else {
            b->unsorted = timed_cmp(&next, &head) < 0;
            b->heap[0] = next;
        }
        if (b->n_heap) sift_down(b, 0);
    }
    return XPL_OK;
}

// When a line is out of order, all events are sorted in memory.
static xpl_status_t sort_feeds(struct gpu_build *b) {
    size_t n = 0, at = 0;
    XPL_TRY(begin_feeds(b));
    for (uint32_t i = 0; i < b->n_feeds; i++)
        n += b->feeds[i].line->n_events;
    struct timed_event *const v = xpl_arena_array(&b->temp, n, sizeof *v);
    if (!v) return no_memory(b->err);
    for (uint32_t i = 0; i < b->n_heap; i++)
        v[at++] = b->heap[i];
    for (uint32_t i = 0; i < b->n_feeds; i++)
        while (!b->feeds[i].done && at < n) {
            XPL_TRY(read_feed(b, &b->feeds[i], &v[at]));
            at += !b->feeds[i].done;
        }
    xpl_grp_sort(v, at, sizeof *v, timed_cmp);
    b->runs.n = b->steps.n = 0;
    for (size_t i = 0; i < at; i++)
        if (!feed_event(b, &v[i], b->feeds[v[i].order].line)) return no_memory(b->err);
    return XPL_OK;
}

// A line with the id of the derived Steps line keeps its events, ahead of the derived ones, but
// gets the plane's start as its own.
static const struct xpl_line *old_steps(const struct xpl_plane *p) {
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].id == XPL_LINE_ID_STEPS) return &p->lines[i];
    return NULL;
}

static int64_t plane_start_ns(const struct xpl_plane *p) {
    int64_t start = p->n_lines ? INT64_MAX : 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].timestamp_ns < start) start = p->lines[i].timestamp_ns;
    return start;
}

static xpl_status_t finish_gpu(struct gpu_build *b) {
    struct plane_groups *const pg = b->pg;
    struct xpl_arena *const a = b->g->arena;
    const struct xpl_line *const old = old_steps(pg->plan.plane);
    const size_t n_old = old ? old->n_events : 0;
    pg->runs = xpl_arena_array(a, b->runs.n, sizeof *pg->runs);
    pg->steps = xpl_arena_array(a, n_old + b->steps.n, sizeof *pg->steps);
    if (!pg->runs || !pg->steps) return no_memory(b->err);
    if (n_old) XPL_TRY(read_steps(b->g, old, &b->temp, pg->steps, b->err));
    const int64_t start = plane_start_ns(pg->plan.plane);
    for (size_t i = 0; i < n_old; i++) {
        struct xpl_step_event *const s = &pg->steps[i];
        s->begin_ps = (int64_t)((uint64_t)start * 1000 + (uint64_t)s->ev.offset_ps);
        if (s->has_group && s->step_name.len == 0)
            s->step_name = xpl_groups_name(b->g, s->group_id);
    }
    for (size_t i = 0; i < b->steps.n; i++) {
        struct xpl_step_event *const s = &pg->steps[n_old + i];
        *s = b->steps.v[i];
        if (!xpl_arena_printf(a, &s->name, "%" PRId64, s->group_id)) return no_memory(b->err);
    }
    if (b->runs.n) memcpy(pg->runs, b->runs.v, b->runs.n * sizeof *pg->runs);
    pg->n_runs = b->runs.n;
    pg->n_steps = n_old + b->steps.n;
    return XPL_OK;
}

xpl_status_t xpl_grp_build_gpu(struct xpl_groups *g, struct plane_groups *pg,
                               struct xpl_error *err) {
    struct gpu_build b = {.g = g, .pg = pg, .err = err};
    xpl_arena_init(&b.temp, g->arena->limit);
    xpl_status_t status = begin_feeds(&b);
    if (status == XPL_OK) status = merge_feeds(&b);
    if (status == XPL_OK && b.unsorted) status = sort_feeds(&b);
    if (status == XPL_OK) status = finish_gpu(&b);
    xpl_arena_fini(&b.temp);
    return status;
}

// ---- TPU ----

static struct span device_span(const struct xpl_step_event *s) {
    const uint64_t begin = (uint64_t)(s->has_device_time ? s->device_offset_ps : s->begin_ps);
    const uint64_t length = (uint64_t)(s->has_device_time ? s->device_duration_ps : s->duration_ps);
    return (struct span){begin, begin + length};
}

// Extends a merged step by the next event of its group.
static void join_step(struct xpl_step_event *to, const struct xpl_step_event *s) {
    if (to->has_device_time) {
        const struct span a = device_span(to), b = device_span(s);
        const uint64_t begin = a.begin < b.begin ? a.begin : b.begin;
        const uint64_t end = a.end > b.end ? a.end : b.end;
        to->device_offset_ps = (int64_t)begin;
        to->device_duration_ps = (int64_t)(end - begin);
    }
    const uint64_t end = (uint64_t)s->begin_ps + (uint64_t)s->duration_ps;
    to->duration_ps = (int64_t)(end - (uint64_t)to->begin_ps);
    if (s->has_idle_time) to->step_idle_time_ps += s->step_idle_time_ps;
}

// Neighbours of one group become one step, and events without a group go, unless none has one
// [MergeHostSteps].  In place; returns how many remain.
static size_t merge_steps(struct xpl_step_event *v, size_t n) {
    size_t kept = 0;
    bool open = false, any = false;
    uint64_t idle = 0; // upstream carries it over where an event brings none
    for (size_t i = 0; i < n; i++)
        any |= v[i].has_group;
    if (!any) return n;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_step_event s = v[i];
        if (!s.has_group) {
            open = false;
            idle = 0;
        } else if (open && v[kept - 1].group_id == s.group_id) {
            join_step(&v[kept - 1], &s);
            idle = v[kept - 1].step_idle_time_ps;
        } else {
            if (s.has_idle_time) idle = s.step_idle_time_ps;
            v[kept] = s;
            v[kept].has_idle_time = true;
            v[kept++].step_idle_time_ps = idle;
            open = true;
        }
    }
    return kept;
}

static int step_cmp(const void *pa, const void *pb) {
    const struct xpl_step_event *const a = pa, *const b = pb;
    const uint64_t ba = (uint64_t)a->begin_ps, bb = (uint64_t)b->begin_ps;
    const uint64_t da = (uint64_t)a->duration_ps, db = (uint64_t)b->duration_ps;
    if (ba != bb) return ba < bb ? -1 : 1;
    if (da != db) return da > db ? -1 : 1;
    return (a->ev.index > b->ev.index) - (a->ev.index < b->ev.index);
}

// What the groups of other lines' events are taken from.
static xpl_status_t fill_spans(struct xpl_groups *g, struct plane_groups *pg,
                               const struct xpl_step_event *v, size_t n, struct xpl_error *err) {
    pg->spans = xpl_arena_array(g->arena, n, sizeof *pg->spans);
    if (!pg->spans) return no_memory(err);
    pg->sane_spans = true;
    for (size_t i = 0; i < n; i++) {
        const uint64_t begin = (uint64_t)v[i].begin_ps;
        const struct span span = {begin, begin + (uint64_t)v[i].duration_ps};
        pg->spans[i] = (struct group_span){.span = span,
                                           .group = v[i].group_id,
                                           .after = v[i].group_id,
                                           .has_group = v[i].has_group,
                                           .has_after = v[i].has_group};
        pg->sane_spans &= span.begin <= span.end;
        pg->any_group |= v[i].has_group;
    }
    pg->n_spans = n;
    return XPL_OK;
}

// Modules that stand for steps are a line as any other: each looks for the one that it overlaps,
// and where one begins the moment another ends, that is the other [GroupLine, GetOverlappingEvent].
static xpl_status_t spread_spans(struct xpl_groups *g, struct plane_groups *pg,
                                 struct xpl_error *err) {
    struct group_span *const v = pg->spans;
    uint64_t steps = 0;
    for (size_t i = 0, current = 0; i < pg->n_spans; i++) { // current: + 1
        if (!current || !span_overlaps(v[current - 1].span, v[i].span)) {
            size_t k = current;
            for (; k < pg->n_spans && v[k].span.begin <= v[i].span.end &&
                   v[k].span.end < v[i].span.begin;
                 k++)
                if ((++steps & 0xffff) == 0 && xpl_exec_cancelled(g->exec))
                    XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
            if (k == pg->n_spans || v[k].span.begin > v[i].span.end) continue;
            current = k + 1;
            if (!span_overlaps(v[k].span, v[i].span)) continue;
        }
        if (!v[current - 1].has_after) continue;
        v[i].has_shown = true;
        v[i].shown = v[current - 1].after;
        if (v[i].has_group) continue;
        v[i].has_after = true;
        v[i].after = v[i].shown;
    }
    return XPL_OK;
}

static xpl_status_t build_module_spans(struct xpl_groups *g, struct plane_groups *pg,
                                       const struct xpl_line *line, struct xpl_arena *temp,
                                       struct xpl_error *err) {
    struct xpl_step_event *const v = xpl_arena_array(temp, line->n_events, sizeof *v);
    if (!v) return no_memory(err);
    XPL_TRY(read_steps(g, line, temp, v, err));
    XPL_TRY(fill_spans(g, pg, v, line->n_events, err));
    pg->span_line = line;
    return spread_spans(g, pg, err);
}

static xpl_status_t build_steps(struct xpl_groups *g, struct plane_groups *pg,
                                const struct xpl_line *line, bool grouping, struct xpl_arena *temp,
                                struct xpl_error *err) {
    size_t n = line->n_events;
    struct xpl_step_event *const v = xpl_arena_array(g->arena, n, sizeof *v);
    if (!v) return no_memory(err);
    XPL_TRY(read_steps(g, line, temp, v, err));
    n = merge_steps(v, n);
    if (grouping) XPL_TRY(fill_spans(g, pg, v, n, err));
    for (size_t i = 0; i < n; i++)
        if (v[i].has_group && v[i].step_name.len == 0)
            v[i].step_name = xpl_groups_name(g, v[i].group_id);
    // GenerateDerivedTimeLines sorts the planes of TensorCores in the end.
    if (pg->plan.plane->kind == XPL_PLANE_TPU_CORE) xpl_grp_sort(v, n, sizeof *v, step_cmp);
    pg->steps = v;
    pg->n_steps = n;
    pg->step_line = line;
    return XPL_OK;
}

xpl_status_t xpl_grp_build_tpu(struct xpl_groups *g, struct plane_groups *pg,
                               struct xpl_error *err) {
    const struct xpl_line *steps;
    const struct xpl_line *const grouping = xpl_grp_tpu_line(pg->plan.plane, &steps);
    struct xpl_arena temp;
    xpl_status_t status = XPL_OK;
    if (!grouping) return XPL_OK;
    xpl_arena_init(&temp, g->arena->limit);
    if (steps && steps->n_events) status = build_steps(g, pg, steps, grouping == steps, &temp, err);
    if (status == XPL_OK && grouping != steps)
        status = build_module_spans(g, pg, grouping, &temp, err);
    xpl_arena_fini(&temp);
    return status;
}
