// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/trace_viewer/trace_viewer.h"

#include <inttypes.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/tools/trace_viewer/impl.h"
#include "analysis/tools/trace_viewer/json.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/std_sort.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 4096 };

// Numbers of processes (tsl trace_utils.h).
enum { PID_FIRST_DEVICE = 1, PID_HOST_THREADS = 701 };

struct resource {
    uint32_t pid, tid;
    uint64_t order; // of equal ones the last counts
    xpl_str_t name;
};
struct device {
    uint32_t pid;
    uint64_t order;
    xpl_str_t name;
};

struct viewer {
    const struct xpl_derived_plane **planes; // shown, in order
    uint32_t *pids;
    uint32_t n_planes;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    size_t limit;
    struct xpl_buf *out;
    struct xpl_error *err;
    uint8_t *chosen; // bit per event when there are too many; NULL: all
    uint64_t ordinal;
    struct xpl_viewer_writer *writer; // of the current plane
};

static xpl_status_t no_memory(struct viewer *v) {
    XPL_RETURN_OOM(v->err, "trace viewer");
}

// ---- visible lines ----

static bool is_shown_line(const struct xpl_derived_line *l) {
    return !xpl_str_eq(l->display_name, XPL_STR(XPL_LINE_XLA_ASYNC_OPS));
}

static uint32_t add_planes(struct viewer *v, const struct xpl_derived_plane *planes, uint32_t n,
                           const char *prefix) {
    uint32_t added = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!xpl_str_starts(planes[i].recorded->name, xpl_str_from(prefix))) continue;
        v->planes[v->n_planes] = &planes[i];
        v->pids[v->n_planes++] = PID_FIRST_DEVICE + (uint32_t)(uint64_t)planes[i].recorded->id;
        added++;
    }
    return added;
}

// The first plane of host threads, then the devices: GPUs, else TPUs, else custom ones.
static xpl_status_t choose_planes(struct viewer *v, const struct xpl_derived *d) {
    uint32_t n;
    const struct xpl_derived_plane *const planes = xpl_derived_planes(d, &n);
    v->planes = xpl_arena_array(v->arena, (size_t)n + 1, sizeof(struct xpl_derived_plane *));
    v->pids = xpl_arena_array(v->arena, (size_t)n + 1, sizeof *v->pids);
    if (!v->planes || !v->pids) return no_memory(v);
    for (uint32_t i = 0; i < n && v->n_planes == 0; i++)
        if (planes[i].recorded->kind == XPL_PLANE_HOST_THREADS) {
            v->planes[0] = &planes[i];
            v->pids[v->n_planes++] = PID_HOST_THREADS;
        }
    if (!add_planes(v, planes, n, XPL_PLANE_NAME_GPU_PREFIX) &&
        !add_planes(v, planes, n, XPL_PLANE_NAME_TPU_PREFIX))
        (void)add_planes(v, planes, n, XPL_PLANE_NAME_CUSTOM_PREFIX);
    return XPL_OK;
}

// ---- names of processes and threads ----

static bool device_less(const void *ctx, const void *pa, const void *pb) {
    const struct device *const a = pa, *const b = pb;
    (void)ctx;
    return a->pid != b->pid ? a->pid < b->pid : a->order < b->order;
}
static bool resource_less(const void *ctx, const void *pa, const void *pb) {
    const struct resource *const a = pa, *const b = pb;
    (void)ctx;
    if (a->pid != b->pid) return a->pid < b->pid;
    return a->tid != b->tid ? a->tid < b->tid : a->order < b->order;
}

static void put_name(struct viewer *v, const char *what, xpl_str_t name, uint32_t pid,
                     const uint32_t *tid) {
    xpl_buf_str(v->out, XPL_STR("{\"args\": {\"name\": "));
    xpl_trace_json_str(v->out, name);
    xpl_buf_printf(v->out, "}, \"name\": \"%s_name\", \"ph\": \"M\", \"pid\": %" PRIu32, what, pid);
    if (tid) xpl_buf_printf(v->out, ", \"tid\": %" PRIu32, *tid);
    xpl_buf_str(v->out, XPL_STR("},\n"));
}

static void put_sort_index(struct viewer *v, const char *what, uint32_t index, uint32_t pid,
                           const uint32_t *tid) {
    xpl_buf_printf(v->out,
                   "{\"args\": {\"sort_index\": %" PRIu32
                   "}, \"name\": \"%s_sort_index\", \"ph\": \"M\", \"pid\": %" PRIu32,
                   index, what, pid);
    if (tid) xpl_buf_printf(v->out, ", \"tid\": %" PRIu32, *tid);
    xpl_buf_str(v->out, XPL_STR("},\n"));
}

static void put_tracks(struct viewer *v, const struct device *devices, size_t n_devices,
                       const struct resource *resources, size_t n_resources) {
    size_t r = 0;
    for (size_t i = 0; i < n_devices; i++) {
        const uint32_t pid = devices[i].pid;
        if (i + 1 < n_devices && devices[i + 1].pid == pid) continue;
        if (devices[i].name.len) put_name(v, "process", devices[i].name, pid, NULL);
        put_sort_index(v, "process", pid, pid, NULL);
        for (; r < n_resources && resources[r].pid == pid; r++) {
            const struct resource *const t = &resources[r];
            if (r + 1 < n_resources && t[1].pid == pid && t[1].tid == t->tid) continue;
            if (t->name.len) put_name(v, "thread", t->name, pid, &t->tid);
            put_sort_index(v, "thread", t->tid, pid, &t->tid);
        }
    }
}

static xpl_status_t name_tracks(struct viewer *v) {
    XPL_VEC(struct resource) resources = {0};
    struct device *const devices = xpl_arena_array(v->arena, v->n_planes, sizeof *devices);
    if (!devices) return no_memory(v);
    for (uint32_t i = 0; i < v->n_planes; i++) {
        const struct xpl_derived_plane *const p = v->planes[i];
        devices[i] = (struct device){v->pids[i], i, p->recorded->name};
        for (uint32_t k = 0; k < p->n_lines; k++) {
            struct resource *const r = xpl_vec_push(v->arena, &resources);
            if (!r) return no_memory(v);
            *r = (struct resource){v->pids[i], (uint32_t)(uint64_t)p->lines[k].display_id,
                                   resources.n, p->lines[k].display_name};
        }
    }
    xpl_std_sort(devices, v->n_planes, sizeof *devices, device_less, NULL);
    xpl_std_sort(resources.v, resources.n, sizeof *resources.v, resource_less, NULL);
    put_tracks(v, devices, v->n_planes, resources.v, resources.n);
    return XPL_OK;
}

// ---- lines ----

// Calls `fn` for every event that is shown, in order.
typedef bool (*event_fn)(void *ctx, const struct xpl_derived_event *ev,
                         const struct xpl_derived_md *md);

static xpl_status_t walk_piece(struct viewer *v, const struct xpl_derived_line *line,
                               uint32_t piece, event_fn fn, void *ctx) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(v->limit);
    struct xpl_derived_cursor *c;
    struct xpl_derived_event ev;
    enum xpl_wire_result r;
    uint64_t n = 0;
    XPL_TRY(xpl_derived_cursor_new(line, piece, &arena, &c, v->err));
    while ((r = xpl_derived_cursor_next(c, &ev)) == XPL_WIRE_FIELD) {
        const struct xpl_derived_md md = xpl_derived_md_at(line->plane, ev.md);
        if ((++n & (CANCEL_EVERY - 1)) == 0 && xpl_exec_cancelled(v->exec))
            XPL_RETURN_ERROR(v->err, XPL_CANCELLED, "cancelled");
        if (xpl_derived_is_internal_event(md.type)) continue;
        (void)xpl_derived_keep_from_zero(line->timestamp_ns, &ev.begin_ps, &ev.duration_ps);
        if (!fn(ctx, &ev, &md)) return no_memory(v);
    }
    return r == XPL_WIRE_MALFORMED ? xpl_derived_cursor_error(c, v->err) : XPL_OK;
}

static xpl_status_t walk_line(struct viewer *v, const struct xpl_derived_line *line, event_fn fn,
                              void *ctx) {
    for (uint32_t i = 0; i < line->n_pieces; i++)
        XPL_TRY(walk_piece(v, line, i, fn, ctx));
    return XPL_OK;
}

static bool write_event(void *ctx, const struct xpl_derived_event *ev,
                        const struct xpl_derived_md *md) {
    struct viewer *const v = ctx;
    const uint64_t i = v->ordinal++;
    if (v->chosen && !(v->chosen[i >> 3] >> (i & 7) & 1)) return true;
    return xpl_viewer_put_event(v->writer, ev, md) && !v->out->failed;
}

static xpl_status_t over_limit(struct viewer *v) {
    XPL_RETURN_ERROR(v->err, XPL_RESOURCE_EXHAUSTED,
                     "trace_viewer: the answer exceeds the limit of %zu bytes", v->out->max);
}

static xpl_status_t write_plane(struct viewer *v, const struct xpl_derived_plane *plane,
                                uint32_t pid) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena texts = xpl_arena_of(v->limit);
    struct xpl_viewer_writer w;
    xpl_status_t status = XPL_OK;
    v->writer = &w;
    if (!xpl_viewer_writer_init(&w, plane, &texts, v->out, v->limit)) status = no_memory(v);
    for (uint32_t i = 0; i < plane->n_lines && status == XPL_OK; i++) {
        if (!is_shown_line(&plane->lines[i])) continue;
        xpl_viewer_begin_line(&w, &plane->lines[i], pid);
        status = walk_line(v, &plane->lines[i], write_event, v);
        if (v->out->failed) status = over_limit(v);
    }
    v->writer = NULL;
    xpl_viewer_writer_fini(&w);
    return status;
}

// ---- too many events ----

struct stamp {
    uint64_t begin;
    uint64_t ordinal;
};
struct stamps {
    struct stamp *v;
    uint64_t n, cap;
};

static bool stamp_less(const void *ctx, const void *pa, const void *pb) {
    (void)ctx;
    return ((const struct stamp *)pa)->begin < ((const struct stamp *)pb)->begin;
}

static bool add_stamp(void *ctx, const struct xpl_derived_event *ev,
                      const struct xpl_derived_md *md) {
    struct stamps *const s = ctx;
    (void)md;
    if (s->n == s->cap) return false; // the file has changed since
    s->v[s->n] = (struct stamp){(uint64_t)ev->begin_ps, s->n};
    s->n++;
    return true;
}

// Chooses the earliest events; of several at the time of the last of these, those that XProf's
// std::partial_sort selects.
static xpl_status_t choose_events(struct viewer *v, uint64_t total, uint64_t max_events) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena temp = xpl_arena_of(v->limit);
    struct stamps s = {.v = xpl_arena_array(&temp, total, sizeof *s.v), .cap = total};
    if (!s.v) return no_memory(v);
    for (uint32_t p = 0; p < v->n_planes; p++)
        for (uint32_t i = 0; i < v->planes[p]->n_lines; i++)
            if (is_shown_line(&v->planes[p]->lines[i]))
                XPL_TRY(walk_line(v, &v->planes[p]->lines[i], add_stamp, &s));
    if (s.n <= max_events) return XPL_OK;
    xpl_std_heap_select(s.v, max_events, s.n, sizeof *s.v, stamp_less, NULL);
    v->chosen = xpl_arena_zalloc(v->arena, (s.n + 7) / 8);
    if (!v->chosen) return no_memory(v);
    for (uint64_t i = 0; i < max_events; i++)
        v->chosen[s.v[i].ordinal >> 3] |= (uint8_t)(1u << (s.v[i].ordinal & 7));
    return XPL_OK;
}

static uint64_t count_events(const struct viewer *v) {
    uint64_t n = 0;
    for (uint32_t p = 0; p < v->n_planes; p++)
        for (uint32_t i = 0; i < v->planes[p]->n_lines; i++)
            if (is_shown_line(&v->planes[p]->lines[i])) n += v->planes[p]->lines[i].n_events;
    return n;
}

// ---- all ----

static xpl_status_t write_answer(struct viewer *v, const struct xpl_derived *d,
                                 uint64_t max_events) {
    XPL_TRY(choose_planes(v, d));
    const uint64_t total = count_events(v);
    if (total > max_events) XPL_TRY(choose_events(v, total, max_events));
    xpl_buf_str(v->out,
                XPL_STR("{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\n"
                        "\"traceEvents\":[\n"));
    XPL_TRY(name_tracks(v));
    for (uint32_t i = 0; i < v->n_planes; i++)
        XPL_TRY(write_plane(v, v->planes[i], v->pids[i]));
    xpl_buf_str(v->out, XPL_STR("{}]}\n"));
    return v->out->failed ? over_limit(v) : XPL_OK;
}

static void free_map(struct xpl_hlo_map **m) {
    xpl_hlo_map_free(*m);
}

xpl_status_t xpl_trace_json_render(const struct xpl_xspace *xs, uint64_t max_events,
                                   struct xpl_exec *exec, size_t limit, struct xpl_buf *out,
                                   struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    XPL_AUTO(free_map) struct xpl_hlo_map *hlo = NULL;
    struct xpl_groups *groups;
    struct xpl_derived *derived;
    XPL_TRY(xpl_groups_build(xs, &arena, exec, &groups, err));
    XPL_TRY(xpl_hlo_map_new(xs, limit, &hlo, err));
    XPL_TRY(xpl_derived_build(xs, groups, hlo, &arena, exec, &derived, err));
    struct viewer v = {.arena = &arena, .exec = exec, .limit = limit, .out = out, .err = err};
    return write_answer(&v, derived, max_events);
}
