// SPDX-License-Identifier: Apache-2.0
// Replays the trace of the compiler's heap simulator: the memory in use at each event, the lifetime
// of each buffer, and the live buffers at the peak.
#include <inttypes.h>

#include "analysis/hlo/memory/impl.h"

enum event_kind { ALLOC, FREE, SHARE_WITH };

struct event {
    uint64_t kind;
    uint32_t buffer, canonical; // that an allocation holds; UINT32_MAX: there is none
    xpl_str_t name;
};

// ---- events ----

static bool read_event(const struct memory_reader *r, xpl_bytes_t bytes, struct event *e) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    int64_t buffer = 0, canonical = 0;
    *e = (struct event){.name = {"", 0}};
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        const bool number = f.type == XPL_WIRE_VARINT;
        if (f.num == HLO_EVENT_KIND && number) e->kind = f.u;
        if (f.num == HLO_EVENT_BUFFER && number) buffer = (int64_t)f.u;
        if (f.num == HLO_EVENT_CANONICAL && number) canonical = (int64_t)f.u;
        if (f.num == HLO_EVENT_INSTRUCTION && f.type == XPL_WIRE_LEN) e->name = xpl_wire_str(&f);
    }
    e->buffer = xpl_hlo_memory_find(r, buffer);
    e->canonical = e->kind == SHARE_WITH ? xpl_hlo_memory_find(r, canonical) : UINT32_MAX;
    return res == XPL_WIRE_END;
}

struct events {
    const struct memory_reader *r;
    struct xpl_wire w;
    uint32_t ticks;
};

// The next event of a trace; END, or MALFORMED.
static enum xpl_wire_result next_event(struct events *v, struct event *ret) {
    struct xpl_field f;
    enum xpl_wire_result res;
    while ((res = xpl_wire_next(&v->w, &f)) == XPL_WIRE_FIELD)
        if (f.num == HLO_TRACE_EVENTS && f.type == XPL_WIRE_LEN)
            return read_event(v->r, f.len, ret) ? XPL_WIRE_FIELD : XPL_WIRE_MALFORMED;
    return res;
}

// ---- which trace ----

static int64_t first_buffer_id(xpl_bytes_t event) {
    struct xpl_hlo_ints v = {.w = xpl_wire_begin(event), .num = HLO_EVENT_BUFFER};
    int64_t id = 0;
    while (xpl_hlo_ints_next(&v, &id))
        ;
    return id;
}

// Counts events.  The trace is that of the allocation with its first event's buffer, whose id XProf
// cuts to 32 bits here; of several such traces the last.
static xpl_status_t scan_trace(struct memory_reader *r, uint32_t trace, struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct xpl_wire w = xpl_wire_begin(r->traces[trace]);
    struct xpl_field f;
    enum xpl_wire_result res;
    uint32_t n = 0;
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num != HLO_TRACE_EVENTS || f.type != XPL_WIRE_LEN) continue;
        if (n++ == 0) {
            const uint32_t b = xpl_hlo_memory_find(r, (int32_t)first_buffer_id(f.len));
            if (b != UINT32_MAX) m->allocations[m->buffers[b].allocation].trace = trace;
        }
        if (n == INT32_MAX) XPL_RETURN_OOM(err, "heap trace");
    }
    m->trace_events[trace] = n;
    if (res != XPL_WIRE_END) XPL_RETURN_MALFORMED(err);
    return XPL_OK;
}

// How many events of a trace are about buffers of the memory space.
static xpl_status_t count_color(struct memory_reader *r, uint32_t trace, uint32_t *ret,
                                struct xpl_error *err) {
    struct events v = {.r = r, .w = xpl_wire_begin(r->traces[trace])};
    struct event e;
    enum xpl_wire_result res;
    *ret = 0;
    while ((res = next_event(&v, &e)) == XPL_WIRE_FIELD) {
        *ret += e.buffer != UINT32_MAX && r->m->buffers[e.buffer].color == r->m->color;
        if (++v.ticks % 4096 == 0 && xpl_exec_cancelled(r->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory of an HLO module cancelled");
    }
    if (res != XPL_WIRE_END) XPL_RETURN_MALFORMED(err);
    return XPL_OK;
}

// UINT32_MAX: there is none for the memory space.
static xpl_status_t choose_trace(struct memory_reader *r, uint32_t *ret, struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    uint32_t most = 0;
    *ret = UINT32_MAX;
    for (uint32_t i = 0; i < m->n_allocations; i++) {
        const struct hlo_allocation *const a = &m->allocations[i];
        if (a->color != m->color || xpl_hlo_allocation_lasts(a) || a->trace == UINT32_MAX) continue;
        *ret = a->trace;
        return XPL_OK;
    }
    for (uint32_t i = 0; i < m->n_traces; i++) {
        uint32_t n;
        XPL_TRY(count_color(r, i, &n, err));
        if (n > most) *ret = i;
        if (n > most) most = n;
    }
    return XPL_OK;
}

// ---- the heap ----

// One time that memory of a buffer was taken, in the order of time.
struct taken {
    uint32_t buffer, prev, next; // UINT32_MAX: none
    uint32_t same;               // the last one of this buffer before
};

struct heap {
    struct memory_reader *r;
    const struct event *events;
    uint32_t n_events;
    int64_t *refs;        // by buffer
    uint32_t *canonical;  // the buffer whose memory it shares; UINT32_MAX: none
    uint32_t *shown_as;   // the buffer that took its memory over; UINT32_MAX: none
    uint32_t *last_taken; // UINT32_MAX: its memory is not taken
    struct taken *taken;
    uint32_t n_taken, oldest, newest;
    int64_t bytes, unpadded;
    int64_t peak, unpadded_peak;
    uint32_t peak_step; // UINT32_MAX: nothing was used
    uint64_t steps;
    bool notes; // writes to r->m: sizes and lives
};

static uint32_t *fill(struct xpl_arena *a, size_t n) {
    uint32_t *const v = xpl_arena_array(a, n, sizeof *v);
    if (v && n) memset(v, 0xff, n * sizeof *v);
    return v;
}

static bool begin_heap(struct heap *h) {
    const size_t n = h->r->m->n_buffers;
    struct xpl_arena *const a = h->r->arena;
    h->refs = xpl_arena_zalloc(a, n * sizeof *h->refs);
    h->canonical = fill(a, n);
    h->shown_as = fill(a, n);
    h->last_taken = fill(a, n);
    h->taken = xpl_arena_array(a, h->n_events, sizeof *h->taken);
    h->oldest = h->newest = h->peak_step = UINT32_MAX;
    return h->refs && h->canonical && h->shown_as && h->last_taken && h->taken;
}

// Whose memory a buffer has.  `not`: a buffer that may not be on the way; UINT32_MAX: any may.
static xpl_status_t find_root(struct heap *h, uint32_t buffer, uint32_t not, uint32_t *ret,
                              struct xpl_error *err) {
    for (;; buffer = h->canonical[buffer]) {
        if (buffer == not )
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                             "heap trace: buffer %" PRId64 " shares its memory with itself",
                             h->r->m->buffers[buffer].id);
        if (h->canonical[buffer] == UINT32_MAX) break;
        if (++h->steps > MEMORY_STEPS)
            XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                             "heap trace: more than %d steps to whose memory is shared",
                             MEMORY_STEPS);
    }
    *ret = buffer;
    return XPL_OK;
}

static void start_life(struct heap *h, uint32_t buffer, uint32_t step) {
    struct hlo_buffer *const b = &h->r->m->buffers[buffer];
    if (!h->notes) return;
    b->lives = true;
    b->first = step;
    b->last = h->n_events - 1;
}

static void end_life(struct heap *h, uint32_t buffer, uint32_t step) {
    struct hlo_buffer *const b = &h->r->m->buffers[buffer];
    if (h->notes && b->lives) b->last = step;
}

static xpl_status_t take_memory(struct heap *h, uint32_t buffer, uint32_t step,
                                struct xpl_error *err) {
    const struct hlo_buffer *const b = &h->r->m->buffers[buffer];
    const uint32_t at = h->n_taken++;
    h->taken[at] = (struct taken){buffer, h->newest, UINT32_MAX, h->last_taken[buffer]};
    if (h->newest != UINT32_MAX)
        h->taken[h->newest].next = at;
    else
        h->oldest = at;
    h->newest = h->last_taken[buffer] = at;
    if (__builtin_add_overflow(h->bytes, b->size, &h->bytes) ||
        __builtin_add_overflow(h->unpadded, b->unpadded, &h->unpadded))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "heap trace: more than 2^63 bytes at event %" PRIu32,
                         step);
    if (h->bytes > h->peak) {
        h->peak = h->bytes;
        h->unpadded_peak = h->unpadded;
        h->peak_step = step;
    }
    return XPL_OK;
}

static void unlink_taken(struct heap *h, uint32_t at) {
    const struct taken *const t = &h->taken[at];
    if (t->prev != UINT32_MAX)
        h->taken[t->prev].next = t->next;
    else
        h->oldest = t->next;
    if (t->next != UINT32_MAX)
        h->taken[t->next].prev = t->prev;
    else
        h->newest = t->prev;
}

// All that was taken of a buffer goes, however often, but its size counts once: as in XProf.
static xpl_status_t give_back(struct heap *h, uint32_t buffer, uint32_t step,
                              struct xpl_error *err) {
    const struct hlo_buffer *const b = &h->r->m->buffers[buffer];
    for (uint32_t at = h->last_taken[buffer]; at != UINT32_MAX; at = h->taken[at].same)
        unlink_taken(h, at);
    h->last_taken[buffer] = UINT32_MAX;
    h->bytes -= b->size;
    if (h->bytes < 0 || __builtin_sub_overflow(h->unpadded, b->unpadded, &h->unpadded))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "heap trace: %" PRId64 " bytes after event %" PRIu32,
                         h->bytes, step);
    if (h->shown_as[buffer] == UINT32_MAX) end_life(h, buffer, step);
    return XPL_OK;
}

// ---- events ----

static xpl_status_t do_alloc(struct heap *h, uint32_t buffer, uint32_t step,
                             struct xpl_error *err) {
    uint32_t root;
    XPL_TRY(find_root(h, buffer, UINT32_MAX, &root, err));
    h->refs[root]++;
    start_life(h, buffer, step);
    return take_memory(h, buffer, step, err);
}

static xpl_status_t do_free(struct heap *h, uint32_t buffer, uint32_t step, struct xpl_error *err) {
    uint32_t root;
    XPL_TRY(find_root(h, buffer, UINT32_MAX, &root, err));
    if (--h->refs[root] < 0)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "heap trace: buffer %" PRId64 " is freed twice",
                         h->r->m->buffers[buffer].id);
    if (h->refs[root] == 0) XPL_TRY(give_back(h, root, step, err));
    if (h->canonical[buffer] != UINT32_MAX) end_life(h, buffer, step);
    return XPL_OK;
}

// A buffer may take over memory that its owner has freed.
static xpl_status_t do_share(struct heap *h, uint32_t buffer, uint32_t with, uint32_t step,
                             struct xpl_error *err) {
    uint32_t root;
    if (with == UINT32_MAX) return XPL_OK;
    XPL_TRY(find_root(h, with, buffer, &root, err));
    h->canonical[buffer] = with;
    if (++h->refs[root] != 1) return XPL_OK;
    h->shown_as[root] = buffer;
    start_life(h, buffer, step);
    return take_memory(h, root, step, err);
}

static void note_step(struct heap *h, uint32_t step, xpl_str_t name) {
    struct xpl_hlo_memory *const m = h->r->m;
    if (!h->notes) return;
    m->heap[step] = h->bytes;
    m->unpadded_heap[step] = h->unpadded;
    m->names[step] = name;
}

static xpl_status_t run_heap(struct heap *h, uint32_t n, struct xpl_error *err) {
    for (uint32_t i = 0; i < n; i++) {
        const struct event *const e = &h->events[i];
        if (i % 4096 == 4095 && xpl_exec_cancelled(h->r->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory of an HLO module cancelled");
        note_step(h, i, e->name);
        if (e->buffer == UINT32_MAX) continue;
        switch (e->kind) {
            case ALLOC: XPL_TRY(do_alloc(h, e->buffer, i, err)); break;
            case FREE: XPL_TRY(do_free(h, e->buffer, i, err)); break;
            case SHARE_WITH: XPL_TRY(do_share(h, e->buffer, e->canonical, i, err)); break;
            default:
                XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "heap trace: an event of kind %" PRIu64,
                                 e->kind);
        }
    }
    note_step(h, n, (xpl_str_t){"", 0});
    return XPL_OK;
}

// ---- the trace ----

static xpl_status_t read_events(struct memory_reader *r, uint32_t trace, struct event **ret,
                                uint32_t *ret_n, struct xpl_error *err) {
    const uint32_t room = r->m->trace_events[trace];
    struct events v = {.r = r, .w = xpl_wire_begin(r->traces[trace])};
    struct event *const list = xpl_arena_array(r->arena, room, sizeof *list);
    uint32_t n = 0, allocation = UINT32_MAX;
    enum xpl_wire_result res = XPL_WIRE_END;
    if (!list) XPL_RETURN_OOM(err, "heap trace");
    for (; n < room && (res = next_event(&v, &list[n])) == XPL_WIRE_FIELD; n++) {
        const uint32_t b = list[n].buffer;
        if (b == UINT32_MAX) continue;
        const uint32_t of = r->m->buffers[b].allocation;
        if (allocation != UINT32_MAX && of != allocation)
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "heap trace: it is about several allocations");
        allocation = of;
    }
    if (res == XPL_WIRE_MALFORMED) XPL_RETURN_MALFORMED(err);
    if (allocation == UINT32_MAX)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "heap trace: it is about no allocation");
    *ret = list;
    *ret_n = n;
    return XPL_OK;
}

static bool make_steps(struct memory_reader *r, uint32_t n) {
    struct xpl_hlo_memory *const m = r->m;
    m->heap = xpl_arena_array(r->arena, n, sizeof *m->heap);
    m->unpadded_heap = xpl_arena_array(r->arena, n, sizeof *m->unpadded_heap);
    m->names = xpl_arena_array(r->arena, n, sizeof *m->names);
    m->n_steps = n;
    return m->heap && m->unpadded_heap && m->names;
}

// Replays the trace, and again up to the peak to find the live buffers: so a new peak need not
// store them.
static xpl_status_t replay_trace(struct memory_reader *r, uint32_t trace, struct heap *ret_peak,
                                 struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct event *events = NULL;
    uint32_t n = 0;
    XPL_TRY(read_events(r, trace, &events, &n, err));
    struct heap all = {.r = r, .events = events, .n_events = n, .notes = true};
    struct heap part = {.r = r, .events = events, .n_events = n};
    if (!make_steps(r, n + 1) || !begin_heap(&all) || !begin_heap(&part))
        XPL_RETURN_OOM(err, "heap trace");
    XPL_TRY(run_heap(&all, n, err));
    if (all.peak_step != UINT32_MAX) {
        m->peak = all.peak;
        m->unpadded_peak = all.unpadded_peak;
        m->peak_step = all.peak_step;
        XPL_TRY(run_heap(&part, all.peak_step + 1, err));
    }
    *ret_peak = part;
    return XPL_OK;
}

// ---- the peak ----

// number: the next one; NULL: it is not shown.
static void hold_buffer(struct xpl_hlo_memory *m, uint32_t buffer, int32_t *number) {
    struct hlo_buffer *const b = &m->buffers[buffer];
    m->held[m->n_held++] = buffer;
    if (number && b->size >= XPL_HLO_MEMORY_SMALL) b->number = (*number)++;
}

// The largest buffer represents an allocation that lasts; UINT32_MAX: all are empty.
static uint32_t largest(const struct xpl_hlo_memory *m, const struct hlo_allocation *a) {
    uint32_t best = UINT32_MAX;
    int64_t size = 0;
    for (uint32_t i = a->first; i < a->first + a->n; i++) {
        const uint32_t b = m->assigned[i].buffer;
        if (b == UINT32_MAX || m->buffers[b].size <= size) continue;
        best = b;
        size = m->buffers[b].size;
    }
    return best;
}

static xpl_status_t hold_lasting(struct xpl_hlo_memory *m, int32_t *number, struct xpl_error *err) {
    for (uint32_t i = 0; i < m->n_allocations; i++) {
        const struct hlo_allocation *const a = &m->allocations[i];
        if (a->color != m->color || !xpl_hlo_allocation_lasts(a)) continue;
        const uint32_t b = largest(m, a);
        if (b == UINT32_MAX) continue;
        if (__builtin_add_overflow(m->lasting, m->allocations[m->buffers[b].allocation].size,
                                   &m->lasting))
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "buffer assignment: more than 2^63 bytes");
        hold_buffer(m, b, m->color == 0 ? number : NULL);
    }
    return XPL_OK;
}

static xpl_status_t find_held(struct memory_reader *r, const struct heap *peak,
                              struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    int32_t number = 0;
    m->held = xpl_arena_array(r->arena, (size_t)m->n_allocations + peak->n_taken, sizeof *m->held);
    if (!m->held) XPL_RETURN_OOM(err, "heap trace");
    XPL_TRY(hold_lasting(m, &number, err));
    m->first_shown = m->color == 0 ? 0 : m->n_held;
    for (uint32_t at = peak->n_taken ? peak->oldest : UINT32_MAX; at != UINT32_MAX;
         at = peak->taken[at].next) {
        const uint32_t b = peak->taken[at].buffer;
        hold_buffer(m, peak->shown_as[b] == UINT32_MAX ? b : peak->shown_as[b], &number);
    }
    for (uint32_t i = m->first_shown; i < m->n_held; i++) {
        const struct hlo_buffer *const b = &m->buffers[m->held[i]];
        if (b->size < XPL_HLO_MEMORY_SMALL) m->small += b->size; // 2^32 of them fit
    }
    return XPL_OK;
}

xpl_status_t xpl_hlo_memory_replay(struct memory_reader *r, struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct heap peak = {0};
    uint32_t trace;
    m->trace_events = xpl_arena_array(r->arena, m->n_traces, sizeof *m->trace_events);
    if (!m->trace_events) XPL_RETURN_OOM(err, "heap trace");
    for (uint32_t i = 0; i < m->n_traces; i++)
        XPL_TRY(scan_trace(r, i, err));
    XPL_TRY(choose_trace(r, &trace, err));
    if (trace != UINT32_MAX) XPL_TRY(replay_trace(r, trace, &peak, err));
    return find_held(r, &peak, err);
}
