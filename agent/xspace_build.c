// SPDX-License-Identifier: Apache-2.0
#include "agent/xspace_model.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/stream.h"

enum { DEVICES = 256 }; // of a machine, and of a process

// ---- the first pass over a stream: collects facts for the second ----

static xpl_status_t add_name(struct builder *b, struct process *p,
                             const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_name n;
    xpl_str_t text;
    if (!xpl_stream_read(r, &n, sizeof n) || !xpl_stream_text(r, sizeof n, n.text_len, &text) ||
        n.id != p->names.n + 1) {
        p->malformed = true;
        return XPL_OK;
    }
    xpl_strid_t *const slot = xpl_vec_push(b->a, &p->names);
    xpl_strid_t *const plain = xpl_vec_push(b->a, &p->plain);
    if (!slot || !plain || !xpl_intern_put(b->in, text, slot)) XPL_RETURN_OOM(err, "XSpace");
    *plain = (xpl_strid_t){0};
    return XPL_OK;
}

// The plane of a GPU: the one with its UUID, or 0.
static uint32_t find_device(const struct builder *b, const struct xpl_record_device *d) {
    static const uint8_t none[16];
    if (memcmp(d->uuid, none, 16) == 0) return 0;
    for (size_t i = 0; i < b->planes.n; i++)
        if (b->planes.v[i].is_gpu && memcmp(b->planes.v[i].device.uuid, d->uuid, 16) == 0)
            return (uint32_t)i + 1;
    return 0;
}

// A new plane, numbered as the process counts when that number is free.  0 without memory.
static uint32_t add_gpu(struct builder *b, const struct xpl_record_device *d, xpl_str_t text) {
    uint32_t number = d->ordinal;
    xpl_str_t name;
    for (size_t i = 0; i < b->planes.n; i++)
        if (b->planes.v[i].is_gpu && b->planes.v[i].id == number) number++, i = SIZE_MAX;
    if (!xpl_arena_printf(b->a, &name, "/device:GPU:%u", number)) return 0;
    const uint32_t at = xpl_agent_plane(b, name);
    if (!at) return 0;
    struct plane *const q = &b->planes.v[at - 1];
    q->id = number, q->is_gpu = true, q->device = *d;
    return xpl_intern_put(b->in, text, &q->device_name) ? at : 0;
}

static xpl_status_t add_device(struct builder *b, struct process *p,
                               const struct xpl_stream_record *r, struct xpl_error *err) {
    struct xpl_record_device d;
    xpl_str_t text;
    bool is_new;
    if (!xpl_stream_read(r, &d, sizeof d) || !xpl_stream_text(r, sizeof d, d.text_len, &text) ||
        d.ordinal >= DEVICES) {
        p->malformed = true;
        return XPL_OK;
    }
    if (xpl_map_get(&p->devices, d.ordinal, 0)) return XPL_OK;
    uint32_t at = find_device(b, &d);
    if (!at && b->planes.n >= DEVICES) { // the first pass makes no others
        p->malformed = true;
        return XPL_OK;
    }
    if (!at && !(at = add_gpu(b, &d, text))) XPL_RETURN_OOM(err, "XSpace");
    uint64_t *const slot = xpl_map_put(b->a, &p->devices, d.ordinal, 0, &is_new);
    if (!slot) XPL_RETURN_OOM(err, "XSpace");
    b->planes.v[at - 1].n_processes++;
    if (!p->first_device) p->first_device = at;
    *slot = at;
    return XPL_OK;
}

static void add_clock(struct process *p, const struct xpl_stream_record *r) {
    struct xpl_record_clock c;
    if (!xpl_stream_read(r, &c, sizeof c)) {
        p->malformed = true;
        return;
    }
    p->last = (struct clock_pair){c.cupti_ns, c.real_ns};
    if (!p->first.real_ns) p->first = p->last;
}

static void note_correlation(struct process *p, uint32_t correlation) {
    if (correlation > p->correlation_max) p->correlation_max = correlation;
}

static bool note_launch(struct builder *b, struct process *p, uint32_t device,
                        uint32_t correlation) {
    const uint64_t *const plane = xpl_map_get(&p->devices, device, 0);
    bool is_new;
    note_correlation(p, correlation);
    if (!plane || !correlation) return true;
    uint64_t *const slot = xpl_map_put(b->a, &p->launches, correlation, 0, &is_new);
    if (slot) *slot = *plane;
    return slot != NULL;
}

static bool note_call(struct builder *b, struct process *p, const struct xpl_record_api *c) {
    bool is_new;
    note_correlation(p, c->correlation);
    return c->domain != 1 || xpl_map_put(b->a, &p->driver_calls, c->correlation, 0, &is_new);
}

static void add_dropped(struct process *p, const struct xpl_record_dropped *d) {
    if (d->cause == XPL_DROP_BUFFERS) p->dropped += d->count;
    if (d->cause == XPL_DROP_NAMES) p->nameless += d->count;
}

static void add_hello(struct process *p, const struct xpl_stream_record *r) {
    struct xpl_record_hello h;
    if (!xpl_stream_read(r, &h, sizeof h) || !xpl_stream_text(r, sizeof h, h.text_len, &p->program))
        p->malformed = true;
    else
        p->pid = h.pid;
}

static void add_end(struct process *p, const struct xpl_stream_record *r) {
    struct xpl_record_end e;
    xpl_str_t text;
    p->ended = true;
    if (!xpl_stream_read(r, &e, sizeof e) || !xpl_stream_text(r, sizeof e, e.text_len, &text))
        p->malformed = true;
    else if (e.failed)
        p->failure = text;
}

// Collects facts for the second pass about a kind of record that becomes events.  False without
// memory.
static bool note_event(struct builder *b, struct process *p, const struct xpl_stream_record *r) {
    union {
        struct xpl_record_kernel kernel;
        struct xpl_record_memcpy memcpy;
        struct xpl_record_memset memset;
        struct xpl_record_graph graph;
        struct xpl_record_api api;
        struct xpl_record_dropped dropped;
    } u;
    const size_t size = r->kind == XPL_RECORD_KERNEL   ? sizeof u.kernel
                        : r->kind == XPL_RECORD_MEMCPY ? sizeof u.memcpy
                        : r->kind == XPL_RECORD_MEMSET ? sizeof u.memset
                        : r->kind == XPL_RECORD_GRAPH  ? sizeof u.graph
                        : r->kind == XPL_RECORD_API    ? sizeof u.api
                                                       : sizeof u.dropped;
    if (!xpl_stream_read(r, &u, size)) {
        p->malformed = true;
        return true;
    }
    switch (r->kind) {
        case XPL_RECORD_KERNEL: return note_launch(b, p, u.kernel.device, u.kernel.correlation);
        case XPL_RECORD_MEMCPY: return note_launch(b, p, u.memcpy.device, u.memcpy.correlation);
        case XPL_RECORD_MEMSET: return note_launch(b, p, u.memset.device, u.memset.correlation);
        case XPL_RECORD_GRAPH: return note_launch(b, p, u.graph.device, u.graph.correlation);
        case XPL_RECORD_API: return note_call(b, p, &u.api);
        default: add_dropped(p, &u.dropped); return true;
    }
}

static xpl_status_t scan_record(struct builder *b, struct process *p,
                                const struct xpl_stream_record *r, struct xpl_error *err) {
    switch (r->kind) {
        case XPL_RECORD_HELLO: add_hello(p, r); return XPL_OK;
        case XPL_RECORD_NAME: return add_name(b, p, r, err);
        case XPL_RECORD_DEVICE: return add_device(b, p, r, err);
        case XPL_RECORD_CLOCK: add_clock(p, r); return XPL_OK;
        case XPL_RECORD_END: add_end(p, r); return XPL_OK;
        case XPL_RECORD_DROPPED:
        case XPL_RECORD_KERNEL:
        case XPL_RECORD_MEMCPY:
        case XPL_RECORD_MEMSET:
        case XPL_RECORD_GRAPH:
        case XPL_RECORD_API: break;
        default: return XPL_OK;
    }
    if (!note_event(b, p, r)) XPL_RETURN_OOM(err, "XSpace");
    return XPL_OK;
}

// Goes through the records; both passes drop the records after a malformed one.
static xpl_status_t scan_process(struct builder *b, struct process *p, struct xpl_error *err) {
    struct xpl_stream s = {p->in->records.ptr, p->in->records.ptr + p->in->records.len};
    struct xpl_stream_record r;
    enum xpl_stream_result got = XPL_STREAM_END;
    while ((got = xpl_stream_next(&s, &r)) == XPL_STREAM_RECORD) {
        XPL_TRY(scan_record(b, p, &r, err));
        if (p->malformed) return XPL_OK;
        p->used += r.size;
    }
    if (got == XPL_STREAM_MALFORMED) p->malformed = true;
    return XPL_OK;
}

static xpl_status_t add_process(struct builder *b, uint32_t at, struct xpl_error *err) {
    const struct process *const p = &b->processes[at];
    struct xpl_stream s = {p->in->records.ptr, p->in->records.ptr + p->used};
    struct xpl_stream_record r;
    if (!p->first.real_ns) return XPL_OK; // nothing was recorded
    while (xpl_stream_next(&s, &r) == XPL_STREAM_RECORD)
        XPL_TRY(xpl_agent_add_event(b, at, &r, err));
    return XPL_OK;
}

// ---- warnings for the reader ----

static xpl_status_t warn(struct builder *b, struct xpl_error *err, const struct process *p,
                         const char *what, uint64_t count) {
    xpl_str_t text;
    xpl_strid_t *const slot = xpl_vec_push(b->a, &b->warnings);
    const bool ok = count ? xpl_arena_printf(b->a, &text, "%.*s (pid %u): %" PRIu64 " %s",
                                             XPL_STR_FMT(p->program), p->pid, count, what)
                          : xpl_arena_printf(b->a, &text, "%.*s (pid %u): %s",
                                             XPL_STR_FMT(p->program), p->pid, what);
    if (!slot || !ok || !xpl_intern_put(b->in, text, slot)) XPL_RETURN_OOM(err, "XSpace");
    return XPL_OK;
}

static xpl_status_t warn_of(struct builder *b, const struct process *p, struct xpl_error *err) {
    xpl_str_t text;
    b->result.dropped += p->dropped;
    if (p->dropped)
        XPL_TRY(warn(b, err, p,
                     "GPU events dropped, because all buffers were full: capture for a shorter "
                     "time or raise --buffers",
                     p->dropped));
    if (p->nameless)
        XPL_TRY(warn(b, err, p, "events have no name: too many different ones", p->nameless));
    if (p->malformed)
        XPL_TRY(warn(b, err, p, "sent invalid records; later records are left out", 0));
    const xpl_str_t notes[] = {p->failure, p->in->note};
    for (size_t i = 0; i < 2; i++) {
        if (!notes[i].len) continue;
        if (!xpl_arena_printf(b->a, &text, "%.*s", XPL_STR_FMT(notes[i])))
            XPL_RETURN_OOM(err, "XSpace");
        XPL_TRY(warn(b, err, p, text.ptr, 0));
    }
    return XPL_OK;
}

static int compare_memory(const void *x, const void *y) {
    const struct event *const a = *(struct event *const *)x, *const b = *(struct event *const *)y;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
    return (a > b) - (a < b);
}

static xpl_status_t follow_memory(struct builder *b, struct xpl_error *err) {
    struct event **const e = xpl_arena_array(b->a, b->memory.n + 1, sizeof *e);
    bool is_new;
    if (!e) XPL_RETURN_OOM(err, "XSpace");
    for (size_t i = 0; i < b->memory.n; i++)
        e[i] = &b->events.v[b->memory.v[i]];
    if (b->memory.n) qsort(e, b->memory.n, sizeof *e, compare_memory);
    for (size_t i = 0; i < b->memory.n; i++) {
        struct xpl_record_memory m;
        memcpy(&m, e[i]->record, sizeof m);
        struct plane *const p = &b->planes.v[e[i]->device - 1];
        uint64_t *const live =
            xpl_map_put(b->a, &b->live, (uint64_t)e[i]->device, m.address, &is_new);
        if (!live) XPL_RETURN_OOM(err, "XSpace");
        const bool release = m.operation == 2;
        const uint64_t bytes = release && !is_new && *live ? *live : m.bytes;
        *live = release ? 0 : bytes;
        p->allocated = release ? p->allocated - (bytes < p->allocated ? bytes : p->allocated)
                               : p->allocated + bytes;
        if (p->allocated > p->peak) p->peak = p->allocated;
        const uint64_t size = p->device.memory_bytes;
        e[i]->allocated = p->allocated;
        e[i]->peak = p->peak;
        e[i]->available = size > p->allocated ? size - p->allocated : 0;
        e[i]->correlation = bytes; // of this allocation
    }
    return XPL_OK;
}

xpl_status_t xpl_agent_build(struct builder *b, struct xpl_error *err) {
    uint64_t correlations = 0;
    for (size_t i = 0; i < b->n_processes; i++) {
        struct process *const p = &b->processes[i];
        XPL_TRY(scan_process(b, p, err));
        p->correlation_base = correlations;
        correlations += p->correlation_max;
        if (p->first.real_ns && (!b->base_ns || p->first.real_ns < b->base_ns))
            b->base_ns = p->first.real_ns;
    }
    for (size_t i = 0; i < b->n_processes; i++) {
        XPL_TRY(add_process(b, (uint32_t)i, err));
        XPL_TRY(warn_of(b, &b->processes[i], err));
    }
    return follow_memory(b, err);
}
