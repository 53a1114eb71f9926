// SPDX-License-Identifier: Apache-2.0
// Planes, lines and events in memory -> XSpace.
#include "agent/xspace_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/xspace_model.h"
#include "analysis/xplane/writer.h"

enum { THOUSAND = 1000 }; // ps of a ns

struct emitter {
    struct xpl_xspace_writer *w;
    const struct builder *b;
    const struct plane *plane;
    uint32_t *order; // indexes of events, sorted by line and time
};

// ---- statistics ----

static void put_uint(struct emitter *m, enum stat s, uint64_t v) {
    xpl_xspace_writer_uint(m->w, m->plane->fixed[s], v);
}
static void put_int(struct emitter *m, enum stat s, int64_t v) {
    xpl_xspace_writer_int(m->w, m->plane->fixed[s], v);
}
static void put_double(struct emitter *m, enum stat s, double v) {
    xpl_xspace_writer_double(m->w, m->plane->fixed[s], v);
}
static void put_text(struct emitter *m, enum stat s, xpl_str_t v) {
    xpl_xspace_writer_str(m->w, m->plane->fixed[s], v);
}
static void put_ref(struct emitter *m, enum stat s, uint32_t v) {
    xpl_xspace_writer_ref(m->w, m->plane->fixed[s], v);
}

static void put_context(struct emitter *m, uint32_t context) {
    char text[16];
    const int n = snprintf(text, sizeof text, "$$%u", context);
    put_text(m, STAT_CONTEXT_ID, (xpl_str_t){text, (size_t)n});
}

// ---- the details of each kind of event ----

static void put_common(struct emitter *m, const struct event *e, uint32_t context, uint32_t graph,
                       uint64_t node) {
    if (e->correlation) put_uint(m, STAT_CORRELATION_ID, e->correlation);
    put_context(m, context);
    if (graph) put_uint(m, STAT_GRAPH_ID, graph);
    if (node) put_uint(m, STAT_GRAPH_NODE_ID, node);
}

static void put_kernel(struct emitter *m, const struct event *e) {
    struct xpl_record_kernel k;
    const struct config *const c = &m->b->configs.v[e->detail - 1];
    memcpy(&k, e->record, sizeof k);
    put_common(m, e, k.context, k.graph, k.graph_node);
    put_double(m, STAT_OCCUPANCY, c->occupancy.percent);
    put_int(m, STAT_OCCUPANCY_GRID, c->occupancy.grid_min);
    put_int(m, STAT_OCCUPANCY_BLOCK, c->occupancy.block_best);
    put_ref(m, STAT_KERNEL_DETAILS, c->detail);
}

static void put_memory(struct emitter *m, const struct event *e) {
    struct xpl_record_memory r;
    char name[32];
    memcpy(&r, e->record, sizeof r);
    const int n = snprintf(name, sizeof name, "cuda:%" PRId64, m->b->planes.v[e->device - 1].id);
    put_text(m, STAT_ALLOCATOR, (xpl_str_t){name, (size_t)n});
    put_int(m, STAT_RESERVED, 0);
    put_int(m, STAT_ALLOCATED, (int64_t)e->allocated);
    put_int(m, STAT_AVAILABLE, (int64_t)e->available);
    put_int(m, STAT_PEAK, (int64_t)e->peak);
    put_int(m, STAT_REQUESTED, (int64_t)e->correlation);
    put_int(m, STAT_ALLOCATION, (int64_t)e->correlation);
    put_int(m, STAT_ADDRESS, (int64_t)r.address);
    put_double(m, STAT_FRAGMENTATION, 0);
}

static void put_stats(struct emitter *m, const struct event *e) {
    switch (e->kind) {
        case XPL_RECORD_KERNEL: put_kernel(m, e); break;
        case XPL_RECORD_MEMCPY: {
            struct xpl_record_memcpy r;
            memcpy(&r, e->record, sizeof r);
            put_common(m, e, r.context, r.graph, r.graph_node);
            put_ref(m, STAT_MEMCPY_DETAILS, e->detail);
            break;
        }
        case XPL_RECORD_MEMSET: {
            struct xpl_record_memset r;
            memcpy(&r, e->record, sizeof r);
            put_common(m, e, r.context, r.graph, r.graph_node);
            put_ref(m, STAT_MEMSET_DETAILS, e->detail);
            break;
        }
        case XPL_RECORD_GRAPH: {
            struct xpl_record_graph r;
            memcpy(&r, e->record, sizeof r);
            put_common(m, e, r.context, r.graph, 0);
            put_uint(m, STAT_GRAPH_EXEC_ID, r.graph);
            break;
        }
        case XPL_RECORD_UNIFIED: {
            struct xpl_record_unified r;
            memcpy(&r, e->record, sizeof r);
            put_uint(m, STAT_VALUE, r.value);
            break;
        }
        case XPL_RECORD_API:
            if (e->device) put_uint(m, STAT_DEVICE_ID, e->device - 1);
            if (e->correlation) put_uint(m, STAT_CORRELATION_ID, e->correlation);
            break;
        case XPL_RECORD_SYNC: {
            struct xpl_record_sync r;
            memcpy(&r, e->record, sizeof r);
            put_context(m, r.context);
            break;
        }
        case XPL_RECORD_MEMORY: put_memory(m, e); break;
        default: break;
    }
}

// ---- lines and planes ----

static void put_event(struct emitter *m, const struct event *e) {
    xpl_xspace_writer_begin_event(m->w, e->name,
                                  (int64_t)((e->start_ns - m->b->base_ns) * THOUSAND),
                                  (int64_t)((e->end_ns - e->start_ns) * THOUSAND));
    put_stats(m, e);
    xpl_xspace_writer_end_event(m->w);
}

static void put_line(struct emitter *m, const struct line *l) {
    const struct xpl_xspace_writer_line line = {.id = l->id,
                                                .name = xpl_intern_get(m->b->in, l->name),
                                                .timestamp_ns = 0}; // of the profile
    xpl_xspace_writer_begin_line(m->w, &line);
    for (size_t i = 0; i < l->n; i++)
        put_event(m, &m->b->events.v[m->order[l->first + i]]);
    xpl_xspace_writer_end_line(m->w);
}

static void put_names(struct emitter *m) {
    const struct plane *const p = m->plane;
    for (size_t i = 0; i < p->events.n; i++) {
        xpl_xspace_writer_begin_event_md(m->w, (int64_t)i + 1,
                                         xpl_intern_get(m->b->in, p->events.v[i]), XPL_STR(""));
        xpl_xspace_writer_end_event_md(m->w);
    }
    for (size_t i = 0; i < p->stats.n; i++)
        xpl_xspace_writer_stat_md(m->w, (int64_t)i + 1, xpl_intern_get(m->b->in, p->stats.v[i]),
                                  XPL_STR(""));
}

static void put_device(struct emitter *m) {
    const struct xpl_record_device *const d = &m->plane->device;
    put_text(m, STAT_VENDOR, XPL_STR("Nvidia"));
    put_text(m, STAT_GPU_NAME, xpl_intern_get(m->b->in, m->plane->device_name));
    if (d->clock_khz >= 0) put_int(m, STAT_CLOCK, d->clock_khz);
    if (d->cores >= 0) put_int(m, STAT_CORES, d->cores);
    if (d->memory_clock_khz >= 0 && d->memory_bus_bits >= 0) // two bits a clock and lane
        put_uint(m, STAT_BANDWIDTH,
                 (uint64_t)2 * (uint64_t)d->memory_clock_khz * 1000 * (uint64_t)d->memory_bus_bits /
                     8);
    if (d->memory_bytes) put_uint(m, STAT_MEMORY_SIZE, d->memory_bytes);
    if (d->major >= 0) put_int(m, STAT_MAJOR, d->major);
    if (d->minor >= 0) put_int(m, STAT_MINOR, d->minor);
}

static void put_plane(struct emitter *m, size_t at) {
    const struct builder *const b = m->b;
    const struct plane *const p = m->plane = &b->planes.v[at];
    xpl_xspace_writer_begin_plane(m->w, p->id, xpl_intern_get(b->in, p->name));
    for (uint32_t i = p->first_line; i; i = b->lines.v[i - 1].next)
        put_line(m, &b->lines.v[i - 1]);
    put_names(m);
    if (p->is_gpu) put_device(m);
    xpl_xspace_writer_end_plane(m->w);
}

// When the time 0 of all lines was, as profilers of XLA say it.
static void put_start(struct emitter *m) {
    int64_t id = 0;
    for (size_t i = 0; i < m->b->planes.n; i++)
        if (m->b->planes.v[i].id >= id) id = m->b->planes.v[i].id + 1;
    xpl_xspace_writer_begin_plane(m->w, id, XPL_STR("Task Environment"));
    xpl_xspace_writer_uint(m->w, 1, m->b->base_ns);
    xpl_xspace_writer_stat_md(m->w, 1, XPL_STR("profile_start_time"), XPL_STR(""));
    xpl_xspace_writer_end_plane(m->w);
}

static void put_space(struct emitter *m, xpl_str_t hostname) {
    for (size_t i = 0; i < m->b->planes.n; i++)
        put_plane(m, i);
    if (m->b->base_ns) put_start(m);
    for (size_t i = 0; i < m->b->warnings.n; i++)
        xpl_xspace_writer_warning(m->w, xpl_intern_get(m->b->in, m->b->warnings.v[i]));
    if (hostname.len) xpl_xspace_writer_hostname(m->w, hostname);
}

// ---- names of lines, order of events ----

static bool name_stream(struct builder *b, struct line *l) {
    static const char *const kinds[LINE_KINDS] = {
        "Compute",     "MemcpyH2D", "MemcpyD2H", "MemcpyD2D",     "MemcpyP2P",
        "MemcpyOther", "Memset",    "CudaGraph", "UnifiedMemory", "Overhead"};
    const struct process *const p = &b->processes[l->process];
    const struct plane *const plane = &b->planes.v[l->plane];
    char list[256], owner[128] = "";
    size_t n = 0;
    xpl_str_t name;
    for (unsigned i = 0; i < LINE_KINDS; i++)
        if (l->kinds & 1u << i)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? "," : "", kinds[i]);
    if (plane->n_processes > 1)
        snprintf(owner, sizeof owner, " of %.*s, pid %u",
                 (int)(p->program.len < 64 ? p->program.len : 64), p->program.ptr, p->pid);
    const bool ok = l->kinds & 1u << LINE_OVERHEAD
                        ? xpl_arena_printf(b->a, &name, "CUPTI overhead%s", owner)
                        : xpl_arena_printf(b->a, &name, "Stream #%u(%s)%s", l->stream, list, owner);
    return ok && xpl_intern_put(b->in, name, &l->name);
}

static bool name_line(struct builder *b, struct line *l) {
    const struct plane *const plane = &b->planes.v[l->plane];
    xpl_str_t name;
    bool ok;
    if (plane->is_gpu) return name_stream(b, l);
    if (l->plane + 1 == b->host_cpu)
        ok = xpl_arena_printf(b->a, &name, "CUDA memory of pid %u", b->processes[l->process].pid);
    else if (l->stream == 0x20000001)
        ok = xpl_arena_printf(b->a, &name, "Synchronization of pid %u",
                              b->processes[l->process].pid);
    else
        ok = xpl_arena_printf(b->a, &name, "Host Threads/%u%s", l->stream,
                              l->plane + 1 == b->nvtx ? "/NVTX" : "");
    return ok && xpl_intern_put(b->in, name, &l->name);
}

static int compare_events(const void *x, const void *y, void *arg) {
    const struct event *const v = arg;
    const uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    if (v[i].line != v[j].line) return v[i].line < v[j].line ? -1 : 1;
    if (v[i].start_ns != v[j].start_ns) return v[i].start_ns < v[j].start_ns ? -1 : 1;
    if (v[i].end_ns != v[j].end_ns) return v[i].end_ns > v[j].end_ns ? -1 : 1;
    return (i > j) - (i < j);
}

// Lines hold their events by time, the longer first.
static bool sort_events(struct builder *b, uint32_t **ret) {
    const size_t n = b->events.n;
    uint32_t *const order = n < UINT32_MAX ? xpl_arena_array(b->a, n + 1, sizeof *order) : NULL;
    if (!order) return false;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (n) qsort_r(order, n, sizeof *order, compare_events, b->events.v);
    for (size_t i = 0; i < n; i++) {
        struct line *const l = &b->lines.v[b->events.v[order[i]].line];
        if (!l->n++) l->first = i;
    }
    *ret = order;
    return true;
}

// GPUs need their statistics' names before anything is written.
static bool use_device_stats(struct builder *b) {
    for (uint32_t i = 0; i < b->planes.n; i++)
        for (int s = STAT_VENDOR; s < STATS && b->planes.v[i].is_gpu; s++)
            if (!xpl_agent_use_stat(b, i, (enum stat)s)) return false;
    return true;
}

static bool append(void *ctx, xpl_bytes_t bytes) {
    struct xpl_buf *const out = ctx;
    xpl_buf_put(out, bytes.ptr, bytes.len);
    return !out->failed;
}

xpl_status_t xpl_agent_write_xspace(const struct xpl_agent_process *processes, size_t n,
                                    xpl_str_t hostname, struct xpl_arena *a, struct xpl_buf *out,
                                    struct xpl_agent_result *ret, struct xpl_error *err) {
    struct builder b = {.a = a, .n_processes = n};
    struct emitter m = {.b = &b};
    struct xpl_xspace_writer w;
    const struct xpl_xspace_sink sink = {append, out};
    b.in = xpl_intern_new(a, xpl_hash_seed());
    b.processes = xpl_arena_zalloc(a, (n + 1) * sizeof *b.processes);
    if (!b.in || !b.processes) XPL_RETURN_OOM(err, "XSpace");
    for (size_t i = 0; i < n; i++)
        b.processes[i].in = &processes[i];
    XPL_TRY(xpl_agent_build(&b, err));
    bool ok = use_device_stats(&b) && sort_events(&b, &m.order);
    for (size_t i = 0; ok && i < b.lines.n; i++)
        ok = name_line(&b, &b.lines.v[i]);
    if (!ok) XPL_RETURN_OOM(err, "XSpace");
    xpl_xspace_writer_init(&w, &sink);
    m.w = &w;
    put_space(&m, hostname);
    // All of it is reserved at once.
    if (xpl_xspace_writer_measured(&w) && xpl_xspace_writer_size(&w) <= SIZE_MAX &&
        xpl_buf_room(out, (size_t)xpl_xspace_writer_size(&w)))
        put_space(&m, hostname);
    if (!xpl_xspace_writer_fini(&w))
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "XSpace: out of memory, or above %zu bytes: capture for a shorter time",
                         out->max);
    *ret = b.result;
    return XPL_OK;
}
