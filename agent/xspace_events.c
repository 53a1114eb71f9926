// SPDX-License-Identifier: Apache-2.0
#include "agent/xspace_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// From the C++ runtime that gRPC brings along.
extern char *__cxa_demangle(const char *name, char *out, size_t *size, int *status);

enum { UNIFIED_LINE = 0x10000000, OVERHEAD_LINE = 0x20000000, SYNC_LINE = 0x20000001 };
enum { THREAD_OBJECT = 2, MARKER_START = 2, MARKER_END = 4, NAME_MAX_MANGLED = 4096 };

// ---- time ----

// The wall clock at a CUPTI time; between the two pairs the clocks drift evenly.
static uint64_t wall_ns(const struct process *p, uint64_t t) {
    const int64_t since = (int64_t)(t - p->first.cupti_ns);
    const int64_t span = (int64_t)(p->last.cupti_ns - p->first.cupti_ns);
    const int64_t drift = (int64_t)(p->last.real_ns - p->first.real_ns - (uint64_t)span);
    const double part = span > 0 && since > 0 ? (double)since / (double)span : 0;
    const double moved = (double)drift * (part < 1 ? part : 1);
    const int64_t by = moved > -1e15 && moved < 1e15 ? (int64_t)moved : 0;
    return p->first.real_ns + (uint64_t)since + (uint64_t)by;
}

// ---- adding ----

struct place {
    uint32_t plane, line; // + 1
};

// A record and the time that it takes, as CUPTI counts.
struct span {
    const struct xpl_stream_record *record;
    uint64_t start, end;
};

static xpl_strid_t name_of(const struct process *p, uint32_t number) {
    return number && number <= p->names.n ? p->names.v[number - 1] : (xpl_strid_t){0};
}

static bool put_name(struct builder *b, const char *name, xpl_strid_t *ret) {
    return xpl_intern_put(b->in, xpl_str_from(name), ret);
}

// Events from before the capture, and those that end before they begin, are left out, as XLA does.
static struct event *push_event(struct builder *b, const struct process *p, const struct place *at,
                                const struct span *span, xpl_strid_t name, bool *ret_skip) {
    const struct xpl_stream_record *const r = span->record;
    const uint64_t start = span->start, end = span->end;
    *ret_skip = start < p->first.cupti_ns || end < start;
    if (*ret_skip) return NULL;
    const uint32_t id = xpl_agent_event_name(b, at->plane - 1, name);
    struct event *const e = id ? xpl_vec_push(b->a, &b->events) : NULL;
    if (!e) return NULL;
    *e = (struct event){.record = r->bytes, .line = at->line - 1, .name = id, .kind = r->kind};
    e->start_ns = wall_ns(p, start);
    e->end_ns = wall_ns(p, end);
    if (e->start_ns < b->base_ns) e->start_ns = b->base_ns;
    if (e->end_ns < e->start_ns) e->end_ns = e->start_ns;
    return e;
}

// The line of a stream; {0} without memory, plane 0 when the GPU is not known.
static bool find_stream(struct builder *b, uint32_t process, uint32_t device, uint32_t stream,
                        enum line_kind kind, struct place *ret) {
    const uint64_t *const plane = xpl_map_get(&b->processes[process].devices, device, 0);
    *ret = (struct place){0};
    if (!plane) return true;
    ret->plane = (uint32_t)*plane;
    ret->line = xpl_agent_line(b, ret->plane - 1, process, stream);
    if (!ret->line) return false;
    b->lines.v[ret->line - 1].kinds |= 1u << kind;
    return true;
}

static bool find_thread(struct builder *b, uint32_t *plane, const char *name, uint32_t process,
                        uint32_t thread, struct place *ret) {
    if (!*plane) *plane = xpl_agent_plane(b, xpl_str_from(name));
    if (!*plane) return false;
    *ret = (struct place){*plane, xpl_agent_line(b, *plane - 1, process, thread)};
    return ret->line != 0;
}

static bool use_stats(struct builder *b, const struct place *at, uint32_t stats) {
    return xpl_agent_use_stats(b, at->plane - 1, stats);
}

static uint64_t correlation(const struct process *p, uint32_t id) {
    return id ? p->correlation_base + id : 0;
}

// ---- on the GPU ----

static bool demangle(struct builder *b, xpl_str_t name, xpl_strid_t *ret) {
    char z[NAME_MAX_MANGLED + 1];
    int status = 0;
    if (!xpl_str_starts(name, XPL_STR("_Z")) || name.len > NAME_MAX_MANGLED)
        return xpl_intern_put(b->in, name, ret);
    memcpy(z, name.ptr, name.len);
    z[name.len] = 0;
    char *const plain = __cxa_demangle(z, NULL, NULL, &status);
    const bool ok = xpl_intern_put(b->in, plain ? xpl_str_from(plain) : name, ret);
    free(plain); // the C++ runtime's, not ours
    return ok;
}

static bool kernel_name(struct builder *b, const struct process *p, uint32_t number,
                        xpl_strid_t *ret) {
    const xpl_strid_t name = name_of(p, number);
    if (!name.v) return put_name(b, "Compute", ret);
    xpl_strid_t *const plain = &p->plain.v[number - 1];
    if (!plain->v && !demangle(b, xpl_intern_get(b->in, name), plain)) return false;
    *ret = *plain;
    return true;
}

// Computes the values that all launches of one shape share once.
static xpl_status_t find_config(struct builder *b, const struct xpl_record_kernel *k,
                                uint32_t plane, uint32_t *ret, struct xpl_error *err) {
    const struct xpl_record_device *const d = &b->planes.v[plane].device;
    const uint64_t threads = (uint64_t)k->block[0] * k->block[1] * k->block[2];
    const uint32_t block = threads <= 1 << 16 ? (uint32_t)threads : 0;
    const struct xpl_occupancy o =
        xpl_occupancy(d, block, k->registers, k->static_shared, k->dynamic_shared);
    char text[256];
    bool is_new;
    const int n =
        snprintf(text, sizeof text,
                 "regs:%u static_shared:%u dynamic_shared:%u grid:%u,%u,%u "
                 "block:%u,%u,%u occ_pct:%g",
                 k->registers, k->static_shared, k->dynamic_shared, k->grid[0], k->grid[1],
                 k->grid[2], k->block[0], k->block[1], k->block[2], o.percent);
    const uint32_t detail = xpl_agent_stat_name(b, plane, (xpl_str_t){text, (size_t)n});
    if (!detail) XPL_RETURN_OOM(err, "XSpace");
    uint64_t *const slot = xpl_map_put(b->a, &b->config_ids, plane, detail, &is_new);
    if (!slot) XPL_RETURN_OOM(err, "XSpace");
    if (is_new) {
        struct config *const c = xpl_vec_push(b->a, &b->configs);
        if (!c) XPL_RETURN_OOM(err, "XSpace");
        *c = (struct config){detail, o};
        *slot = b->configs.n;
    }
    *ret = (uint32_t)*slot;
    return XPL_OK;
}

static bool use_common(struct builder *b, const struct place *at) {
    return use_stats(b, at,
                     xpl_stat_bit(STAT_CORRELATION_ID) | xpl_stat_bit(STAT_CONTEXT_ID) |
                         xpl_stat_bit(STAT_GRAPH_ID) | xpl_stat_bit(STAT_GRAPH_NODE_ID));
}

static xpl_status_t add_kernel(struct builder *b, uint32_t process,
                               const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_kernel k;
    if (!xpl_stream_read(r, &k, sizeof k)) return XPL_OK;
    const struct process *const p = &b->processes[process];
    struct place at;
    xpl_strid_t name;
    bool skip;
    if (!find_stream(b, process, k.device, k.stream, LINE_COMPUTE, &at))
        XPL_RETURN_OOM(err, "XSpace");
    if (!at.plane) return XPL_OK;
    if (!kernel_name(b, p, k.name, &name) || !use_common(b, &at) ||
        !use_stats(b, &at,
                   xpl_stat_bit(STAT_OCCUPANCY) | xpl_stat_bit(STAT_OCCUPANCY_GRID) |
                       xpl_stat_bit(STAT_OCCUPANCY_BLOCK) | xpl_stat_bit(STAT_KERNEL_DETAILS)))
        XPL_RETURN_OOM(err, "XSpace");
    struct event *const e =
        push_event(b, p, &at, &(struct span){r, k.start_ns, k.end_ns}, name, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    if (skip) return XPL_OK;
    const size_t index = b->events.n - 1;
    e->correlation = correlation(p, k.correlation);
    uint32_t config = 0;
    XPL_TRY(find_config(b, &k, at.plane - 1, &config, err));
    b->events.v[index].detail = config;
    b->result.device_events++;
    return XPL_OK;
}

static const char *memory_kind(unsigned kind) {
    static const char *const names[] = {"unknown", "pageable", "pinned",        "device",
                                        "array",   "managed",  "device_static", "managed_static"};
    return kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

static enum line_kind copy_kind(unsigned kind, const char **ret) {
    switch (kind) {
        case 1: *ret = "MemcpyH2D"; return LINE_H2D;
        case 2: *ret = "MemcpyD2H"; return LINE_D2H;
        case 8: *ret = "MemcpyD2D"; return LINE_D2D;
        case 10: *ret = "MemcpyP2P"; return LINE_P2P;
        default: *ret = "MemcpyOther"; return LINE_OTHER;
    }
}

// An event on a stream with one text that says more.
struct copy {
    struct span span;
    uint32_t correlation;
    const char *name;
    xpl_str_t text;
    enum stat detail; // the kind of the text
};

static xpl_status_t add_copy(struct builder *b, uint32_t process, const struct place *at,
                             const struct copy *c, struct xpl_error *err) {
    const struct process *const p = &b->processes[process];
    xpl_strid_t name;
    bool skip;
    if (!use_common(b, at) || !use_stats(b, at, xpl_stat_bit(c->detail)) ||
        !put_name(b, c->name, &name))
        XPL_RETURN_OOM(err, "XSpace");
    struct event *const e = push_event(b, p, at, &c->span, name, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    if (skip) return XPL_OK;
    e->correlation = correlation(p, c->correlation);
    e->detail = xpl_agent_stat_name(b, at->plane - 1, c->text);
    if (!e->detail) XPL_RETURN_OOM(err, "XSpace");
    b->result.device_events++;
    return XPL_OK;
}

static xpl_status_t add_memcpy(struct builder *b, uint32_t process,
                               const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_memcpy m;
    if (!xpl_stream_read(r, &m, sizeof m)) return XPL_OK;
    struct place at;
    char text[160];
    const char *name;
    const enum line_kind kind = copy_kind(m.copy_kind, &name);
    if (!find_stream(b, process, m.device, m.stream, kind, &at)) XPL_RETURN_OOM(err, "XSpace");
    if (!at.plane) return XPL_OK;
    const int n =
        snprintf(text, sizeof text, "kind_src:%s kind_dst:%s size:%" PRIu64 " dest:%u async:%u",
                 memory_kind(m.source_kind), memory_kind(m.destination_kind), m.bytes,
                 m.destination, m.async != 0);
    const struct copy c = {
        {r, m.start_ns, m.end_ns}, m.correlation, name, {text, (size_t)n}, STAT_MEMCPY_DETAILS};
    return add_copy(b, process, &at, &c, err);
}

static xpl_status_t add_memset(struct builder *b, uint32_t process,
                               const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_memset m;
    if (!xpl_stream_read(r, &m, sizeof m)) return XPL_OK;
    struct place at;
    char name[32], text[96];
    if (!find_stream(b, process, m.device, m.stream, LINE_MEMSET, &at))
        XPL_RETURN_OOM(err, "XSpace");
    if (!at.plane) return XPL_OK;
    snprintf(name, sizeof name, "Memset %u", m.memory_kind);
    snprintf(text, sizeof text, "kind:%s num_bytes:%" PRIu64 " async:%u",
             memory_kind(m.memory_kind), m.bytes, m.async != 0);
    const uint64_t end = m.end_ns > m.start_ns ? m.end_ns : m.start_ns + 1;
    const struct copy c = {
        {r, m.start_ns, end}, m.correlation, name, xpl_str_from(text), STAT_MEMSET_DETAILS};
    return add_copy(b, process, &at, &c, err);
}

static xpl_status_t add_graph(struct builder *b, uint32_t process,
                              const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_graph g;
    if (!xpl_stream_read(r, &g, sizeof g)) return XPL_OK;
    const struct process *const p = &b->processes[process];
    struct place at;
    char text[32];
    xpl_strid_t name;
    bool skip;
    if (!find_stream(b, process, g.device, g.stream, LINE_GRAPH, &at))
        XPL_RETURN_OOM(err, "XSpace");
    if (!at.plane) return XPL_OK;
    snprintf(text, sizeof text, "CudaGraphExec:%u", g.graph);
    if (!use_common(b, &at) || !use_stats(b, &at, xpl_stat_bit(STAT_GRAPH_EXEC_ID)) ||
        !put_name(b, text, &name))
        XPL_RETURN_OOM(err, "XSpace");
    struct event *const e =
        push_event(b, p, &at, &(struct span){r, g.start_ns, g.end_ns}, name, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    if (skip) return XPL_OK;
    e->correlation = correlation(p, g.correlation);
    b->result.device_events++;
    return XPL_OK;
}

// A counter has a separate line on the memory's source GPU or, without one, its destination.
static xpl_status_t add_unified(struct builder *b, uint32_t process,
                                const struct xpl_stream_record *r, struct xpl_error *err) {
    static const char *const names[] = {
        "<UNKNOWN>",         "UM_BYTES_TRANSFER_HTOD", "UM_BYTES_TRANSFER_DTOH",
        "UM_CPU_PAGE_FAULT", "UM_GPU_PAGE_FAULT",      "UM_THRASHING",
        "UM_THROTTLING",     "UM_REMOTE_MAP",          "UM_BYTES_TRANSFER_DTOD"};
    struct xpl_record_unified u;
    if (!xpl_stream_read(r, &u, sizeof u)) return XPL_OK;
    const struct process *const p = &b->processes[process];
    const uint32_t counter = u.counter < sizeof names / sizeof *names ? u.counter : 0;
    const uint32_t device = xpl_map_get(&p->devices, u.source, 0)
                                ? u.source
                                : (xpl_map_get(&p->devices, u.destination, 0) ? u.destination : 0);
    struct place at;
    xpl_strid_t name;
    bool skip;
    if (!find_stream(b, process, device, UNIFIED_LINE + counter, LINE_UNIFIED, &at))
        XPL_RETURN_OOM(err, "XSpace");
    if (!at.plane) return XPL_OK;
    if (!use_stats(b, &at, xpl_stat_bit(STAT_VALUE)) || !put_name(b, names[counter], &name))
        XPL_RETURN_OOM(err, "XSpace");
    const bool moment = counter == 3 || counter == 5 || counter == 7 || u.end_ns <= u.start_ns;
    const uint64_t end = moment ? u.start_ns + 1 : u.end_ns;
    const struct event *const e =
        push_event(b, p, &at, &(struct span){r, u.start_ns, end}, name, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    b->result.device_events += !skip;
    return XPL_OK;
}

// ---- on the host ----

static xpl_status_t add_call(struct builder *b, uint32_t process, const struct xpl_stream_record *r,
                             struct xpl_error *err) {
    struct xpl_record_api c;
    if (!xpl_stream_read(r, &c, sizeof c)) return XPL_OK;
    struct process *const p = &b->processes[process];
    struct place at;
    bool skip;
    xpl_strid_t name = name_of(p, c.name);
    if ((!name.v && !put_name(b, "CUDA call", &name)) ||
        !find_thread(b, &b->host_calls, "/host:CUPTI", process, c.thread, &at) ||
        !use_stats(b, &at, xpl_stat_bit(STAT_DEVICE_ID) | xpl_stat_bit(STAT_CORRELATION_ID)))
        XPL_RETURN_OOM(err, "XSpace");
    struct event *const e =
        push_event(b, p, &at, &(struct span){r, c.start_ns, c.end_ns}, name, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    if (skip) return XPL_OK;
    const uint64_t *const launch = xpl_map_get(&p->launches, c.correlation, 0);
    if (launch) e->device = (uint32_t)b->planes.v[*launch - 1].id + 1;
    // A runtime call and the driver call within it share a number: the driver's is the launch.
    if (c.domain == 1 || !xpl_map_get(&p->driver_calls, c.correlation, 0))
        e->correlation = correlation(p, c.correlation);
    b->result.host_events++;
    return XPL_OK;
}

static xpl_status_t add_sync(struct builder *b, uint32_t process, const struct xpl_stream_record *r,
                             struct xpl_error *err) {
    static const char *const names[] = {"unknown synchronization event", "cuEventSynchronize",
                                        "cuStreamWaitEvent", "cuStreamSynchronize",
                                        "cuCtxSynchronize"};
    struct xpl_record_sync s;
    if (!xpl_stream_read(r, &s, sizeof s)) return XPL_OK;
    const uint32_t type = s.type < sizeof names / sizeof *names ? s.type : 0;
    struct place at;
    xpl_strid_t name;
    bool skip;
    if (!find_thread(b, &b->host_calls, "/host:CUPTI", process, SYNC_LINE, &at) ||
        !use_stats(b, &at, xpl_stat_bit(STAT_CONTEXT_ID)) || !put_name(b, names[type], &name))
        XPL_RETURN_OOM(err, "XSpace");
    const uint64_t end = s.end_ns > s.start_ns ? s.end_ns : s.start_ns + 1;
    const struct event *const e =
        push_event(b, &b->processes[process], &at, &(struct span){r, s.start_ns, end}, name, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    b->result.host_events += !skip;
    return XPL_OK;
}

// The name of a range; each text is made once.
static bool range_name(struct builder *b, struct process *p, const struct xpl_record_marker *m,
                       xpl_strid_t *ret) {
    const xpl_strid_t name = name_of(p, m->name), domain = name_of(p, m->domain);
    bool is_new;
    uint64_t *const known = xpl_map_put(b->a, &p->ranges, domain.v, name.v, &is_new);
    if (!known) return false;
    if (is_new) {
        const xpl_str_t of = xpl_intern_get(b->in, domain), text = xpl_intern_get(b->in, name);
        xpl_str_t full;
        if (!xpl_arena_printf(b->a, &full, "NVTX:%.*s%s%.*s", XPL_STR_FMT(of), of.len ? ":" : "",
                              XPL_STR_FMT(text)) ||
            !xpl_intern_put(b->in, full, ret))
            return false;
        *known = ret->v;
    }
    ret->v = (uint32_t)*known;
    return true;
}

static xpl_status_t begin_range(struct builder *b, uint32_t process,
                                const struct xpl_stream_record *r,
                                const struct xpl_record_marker *m, struct xpl_error *err) {
    struct process *const p = &b->processes[process];
    struct place at;
    xpl_strid_t full;
    bool skip, is_new;
    if (!find_thread(b, &b->nvtx, "/host:NVTX-CUPTI", process, m->thread, &at) ||
        !range_name(b, p, m, &full))
        XPL_RETURN_OOM(err, "XSpace");
    const struct event *const e =
        push_event(b, p, &at, &(struct span){r, m->time_ns, m->time_ns}, full, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    if (skip) return XPL_OK;
    uint64_t *const slot = xpl_map_put(b->a, &p->markers, m->id, 0, &is_new);
    if (!slot) XPL_RETURN_OOM(err, "XSpace");
    *slot = b->events.n;
    b->result.host_events++;
    return XPL_OK;
}

// Ranges of threads, as XLA; other markers are points without a length.
static xpl_status_t add_marker(struct builder *b, uint32_t process,
                               const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_marker m;
    if (!xpl_stream_read(r, &m, sizeof m)) return XPL_OK;
    const struct process *const p = &b->processes[process];
    if (m.object_kind != THREAD_OBJECT) return XPL_OK;
    if (m.flags & MARKER_START) return begin_range(b, process, r, &m, err);
    uint64_t *const open = xpl_map_get(&p->markers, m.id, 0);
    if (!(m.flags & MARKER_END) || !open || !*open) return XPL_OK;
    struct event *const e = &b->events.v[*open - 1];
    const uint64_t end = wall_ns(p, m.time_ns);
    if (end > e->start_ns) e->end_ns = end;
    *open = 0;
    return XPL_OK;
}

static xpl_status_t add_overhead(struct builder *b, uint32_t process,
                                 const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_overhead h;
    if (!xpl_stream_read(r, &h, sizeof h)) return XPL_OK;
    const struct process *const p = &b->processes[process];
    const char *const text = h.overhead == 1         ? "COMPILER"
                             : h.overhead == 1 << 16 ? "BUFFER_FLUSH"
                             : h.overhead == 2 << 16 ? "INSTRUMENTATION"
                             : h.overhead == 3 << 16 ? "RESOURCE"
                                                     : "<UNKNOWN>";
    xpl_strid_t name;
    struct place at;
    bool skip;
    const bool ok = h.thread ? find_thread(b, &b->host_calls, "/host:CUPTI", process, h.thread, &at)
                             : find_stream(b, process, h.device, OVERHEAD_LINE, LINE_OVERHEAD, &at);
    if (!ok || !put_name(b, text, &name)) XPL_RETURN_OOM(err, "XSpace");
    if (!at.plane) return XPL_OK;
    const struct event *const e =
        push_event(b, p, &at, &(struct span){r, h.start_ns, h.end_ns}, name, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    return XPL_OK;
}

// Allocations of a GPU's own memory, as memory_profile reads them.
static xpl_status_t add_memory(struct builder *b, uint32_t process,
                               const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_memory m;
    if (!xpl_stream_read(r, &m, sizeof m)) return XPL_OK;
    const struct process *const p = &b->processes[process];
    const uint64_t *const gpu = xpl_map_get(&p->devices, m.device, 0);
    struct place at;
    xpl_strid_t name;
    bool skip;
    if (!gpu || (m.operation != 1 && m.operation != 2) || m.memory_kind != 3) return XPL_OK;
    const uint32_t device = (uint32_t)*gpu;
    if (!find_thread(b, &b->host_cpu, "/host:CPU", process, 0, &at) ||
        !put_name(b, m.operation == 1 ? "MemoryAllocation" : "MemoryDeallocation", &name))
        XPL_RETURN_OOM(err, "XSpace");
    if (!use_stats(b, &at,
                   xpl_stat_bit(STAT_ALLOCATOR) | xpl_stat_bit(STAT_ALLOCATED) |
                       xpl_stat_bit(STAT_AVAILABLE) | xpl_stat_bit(STAT_RESERVED) |
                       xpl_stat_bit(STAT_PEAK) | xpl_stat_bit(STAT_REQUESTED) |
                       xpl_stat_bit(STAT_ALLOCATION) | xpl_stat_bit(STAT_ADDRESS) |
                       xpl_stat_bit(STAT_FRAGMENTATION)))
        XPL_RETURN_OOM(err, "XSpace");
    struct event *const e =
        push_event(b, p, &at, &(struct span){r, m.time_ns, m.time_ns}, name, &skip);
    if (!e && !skip) XPL_RETURN_OOM(err, "XSpace");
    if (skip) return XPL_OK;
    e->device = device;
    size_t *const slot = xpl_vec_push(b->a, &b->memory);
    if (!slot) XPL_RETURN_OOM(err, "XSpace");
    *slot = b->events.n - 1;
    return XPL_OK;
}

xpl_status_t xpl_agent_add_event(struct builder *b, uint32_t process,
                                 const struct xpl_stream_record *r, struct xpl_error *err) {
    switch (r->kind) {
        case XPL_RECORD_KERNEL: return add_kernel(b, process, r, err);
        case XPL_RECORD_MEMCPY: return add_memcpy(b, process, r, err);
        case XPL_RECORD_MEMSET: return add_memset(b, process, r, err);
        case XPL_RECORD_GRAPH: return add_graph(b, process, r, err);
        case XPL_RECORD_UNIFIED: return add_unified(b, process, r, err);
        case XPL_RECORD_API: return add_call(b, process, r, err);
        case XPL_RECORD_SYNC: return add_sync(b, process, r, err);
        case XPL_RECORD_MARKER: return add_marker(b, process, r, err);
        case XPL_RECORD_OVERHEAD: return add_overhead(b, process, r, err);
        case XPL_RECORD_MEMORY: return add_memory(b, process, r, err);
        default: return XPL_OK;
    }
}
