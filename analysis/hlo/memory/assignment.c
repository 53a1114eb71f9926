// SPDX-License-Identifier: Apache-2.0
// Which buffers there are, and which allocation holds them.
#include <inttypes.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/memory/impl.h"
#include "base/vec.h"

static bool count_messages(struct memory_reader *r, xpl_bytes_t assignment) {
    struct xpl_wire w = xpl_wire_begin(assignment), v;
    struct xpl_field f, g;
    enum xpl_wire_result res, inner = XPL_WIRE_END;
    while (inner == XPL_WIRE_END && (res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        r->room.buffers += f.num == HLO_ASSIGNMENT_BUFFERS;
        r->room.traces += f.num == HLO_ASSIGNMENT_TRACES;
        if (f.num != HLO_ASSIGNMENT_ALLOCATIONS) continue;
        r->room.allocations++;
        v = xpl_wire_begin(f.len);
        while ((inner = xpl_wire_next(&v, &g)) == XPL_WIRE_FIELD)
            r->room.assigned += g.num == HLO_ALLOCATION_ASSIGNED && g.type == XPL_WIRE_LEN;
    }
    return inner == XPL_WIRE_END && res == XPL_WIRE_END;
}

static bool make_room(struct memory_reader *r) {
    struct xpl_hlo_memory *const m = r->m;
    if (r->room.buffers >= UINT32_MAX || r->room.allocations >= UINT32_MAX ||
        r->room.assigned >= UINT32_MAX || r->room.traces >= UINT32_MAX)
        return false;
    m->buffers = xpl_arena_array(r->arena, r->room.buffers, sizeof *m->buffers);
    m->allocations = xpl_arena_array(r->arena, r->room.allocations, sizeof *m->allocations);
    m->assigned = xpl_arena_array(r->arena, r->room.assigned, sizeof *m->assigned);
    r->traces = xpl_arena_array(r->arena, r->room.traces, sizeof *r->traces);
    return m->buffers && m->allocations && m->assigned && r->traces;
}

// ---- buffers ----

// Where a buffer is defined; of an index several times its numbers follow each other.
static bool read_location(xpl_bytes_t bytes, struct hlo_buffer *b) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    b->index = bytes;
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == HLO_LOCATION_INSTRUCTION_ID && f.type == XPL_WIRE_VARINT)
            b->instruction = (int64_t)f.u;
    return res == XPL_WIRE_END;
}

static bool read_buffer(xpl_bytes_t bytes, struct hlo_buffer *b) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    *b = (struct hlo_buffer){.allocation = UINT32_MAX, .number = -1};
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num == HLO_BUFFER_DEFINED_AT && f.type == XPL_WIRE_LEN && !read_location(f.len, b))
            return false;
        if (f.type != XPL_WIRE_VARINT) continue;
        if (f.num == HLO_BUFFER_ID) b->id = (int64_t)f.u;
        if (f.num == HLO_BUFFER_SIZE) b->size = (int64_t)f.u;
        if (f.num == HLO_BUFFER_COLOR) b->color = (int64_t)f.u;
    }
    return res == XPL_WIRE_END;
}

// Of buffers with one id the last is it.
static xpl_status_t add_buffer(struct memory_reader *r, xpl_bytes_t bytes, struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct hlo_buffer b;
    bool is_new;
    if (!read_buffer(bytes, &b) || m->n_buffers == r->room.buffers) XPL_RETURN_MALFORMED(err);
    if (b.size < 0)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "buffer assignment: buffer %" PRId64 " has %" PRId64 " bytes", b.id,
                         b.size);
    uint64_t *const at = xpl_map_put(r->arena, &r->by_id, (uint64_t)b.id, 0, &is_new);
    if (!at) XPL_RETURN_OOM(err, "buffer assignment");
    if (is_new) *at = ++m->n_buffers;
    m->buffers[*at - 1] = b;
    return XPL_OK;
}

// ---- allocations ----

static bool read_assigned(xpl_bytes_t bytes, struct hlo_assigned *a, int64_t *ret_offset) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    *a = (struct hlo_assigned){.buffer = UINT32_MAX};
    *ret_offset = 0;
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_VARINT) continue;
        if (f.num == HLO_ASSIGNED_BUFFER) a->id = (int64_t)f.u;
        if (f.num == HLO_ASSIGNED_OFFSET) *ret_offset = (int64_t)f.u;
        if (f.num == HLO_ASSIGNED_SIZE) a->size = (int64_t)f.u;
    }
    return res == XPL_WIRE_END;
}

static bool read_allocation(xpl_bytes_t bytes, struct hlo_allocation *a) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    *a = (struct hlo_allocation){.trace = UINT32_MAX};
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_VARINT) continue;
        switch (f.num) {
            case HLO_ALLOCATION_INDEX: a->index = (int64_t)f.u; break;
            case HLO_ALLOCATION_SIZE: a->size = (int64_t)f.u; break;
            case HLO_ALLOCATION_COLOR: a->color = (int64_t)f.u; break;
            case HLO_ALLOCATION_THREAD_LOCAL: a->local = f.u != 0; break;
            case HLO_ALLOCATION_PARAMETER: a->parameter = f.u != 0; break;
            case HLO_ALLOCATION_LIVE_OUT: a->live_out = f.u != 0; break;
            case HLO_ALLOCATION_TUPLE: a->tuple = f.u != 0; break;
            case HLO_ALLOCATION_CONSTANT: a->constant = f.u != 0; break;
            default: break;
        }
    }
    return res == XPL_WIRE_END;
}

// A buffer that several allocations hold is the last one's.
static xpl_status_t add_assigned(struct memory_reader *r, uint32_t allocation, xpl_bytes_t bytes,
                                 struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct hlo_assigned *const a = &m->assigned[m->n_assigned];
    int64_t offset;
    if (m->n_assigned == r->room.assigned || !read_assigned(bytes, a, &offset))
        XPL_RETURN_MALFORMED(err);
    if (offset < 0 || a->size < 0)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "buffer assignment: buffer %" PRId64 " has a negative offset or size",
                         a->id);
    m->n_assigned++;
    const uint64_t *const at = xpl_map_get(&r->by_id, (uint64_t)a->id, 0);
    if (!at) return XPL_OK;
    a->buffer = (uint32_t)(*at - 1);
    m->buffers[a->buffer].allocation = allocation;
    m->buffers[a->buffer].offset = offset;
    return XPL_OK;
}

static xpl_status_t add_allocation(struct memory_reader *r, xpl_bytes_t bytes,
                                   struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct hlo_allocation *const a = &m->allocations[m->n_allocations];
    if (m->n_allocations == r->room.allocations || !read_allocation(bytes, a))
        XPL_RETURN_MALFORMED(err);
    if (a->size < 0)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "buffer assignment: allocation %" PRId64 " has %" PRId64 " bytes",
                         a->index, a->size);
    a->first = m->n_assigned;
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == HLO_ALLOCATION_ASSIGNED && f.type == XPL_WIRE_LEN)
            XPL_TRY(add_assigned(r, m->n_allocations, f.len, err));
    a->n = m->n_assigned - a->first;
    m->n_allocations++;
    return XPL_OK;
}

static int by_index(const void *pa, const void *pb) {
    const struct hlo_allocation *const a = pa, *const b = pb;
    return (a->index > b->index) - (a->index < b->index);
}

// Puts allocations in order of their indexes, and has buffers name them by their new places.
static xpl_status_t sort_allocations(struct memory_reader *r, struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    bool sorted = true;
    for (uint32_t i = 1; i < m->n_allocations; i++)
        sorted &= m->allocations[i - 1].index < m->allocations[i].index;
    if (sorted) return XPL_OK;
    uint32_t *const places = xpl_arena_array(r->arena, m->n_allocations, sizeof *places);
    if (!places) XPL_RETURN_OOM(err, "buffer assignment");
    for (uint32_t i = 0; i < m->n_allocations; i++)
        m->allocations[i].trace = i; // its old place, for as long as this takes
    xpl_sort(m->allocations, m->n_allocations, sizeof *m->allocations, by_index);
    for (uint32_t i = 0; i < m->n_allocations; i++) {
        struct hlo_allocation *const a = &m->allocations[i];
        if (i && a[-1].index == a->index)
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                             "buffer assignment: two allocations of index %" PRId64, a->index);
        places[a->trace] = i;
        a->trace = UINT32_MAX;
    }
    for (uint32_t i = 0; i < m->n_buffers; i++)
        if (m->buffers[i].allocation != UINT32_MAX)
            m->buffers[i].allocation = places[m->buffers[i].allocation];
    return XPL_OK;
}

xpl_status_t xpl_hlo_memory_read_assignment(struct memory_reader *r, xpl_bytes_t assignment,
                                            struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct xpl_field f;
    if (!count_messages(r, assignment)) XPL_RETURN_MALFORMED(err);
    if (!make_room(r)) XPL_RETURN_OOM(err, "buffer assignment");
    struct xpl_wire w = xpl_wire_begin(assignment);
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == HLO_ASSIGNMENT_BUFFERS) XPL_TRY(add_buffer(r, f.len, err));
        if (f.num == HLO_ASSIGNMENT_TRACES && m->n_traces < r->room.traces)
            r->traces[m->n_traces++] = f.len;
    }
    w = xpl_wire_begin(assignment); // buffers may follow the allocations that hold them
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == HLO_ASSIGNMENT_ALLOCATIONS && f.type == XPL_WIRE_LEN)
            XPL_TRY(add_allocation(r, f.len, err));
    return sort_allocations(r, err);
}
