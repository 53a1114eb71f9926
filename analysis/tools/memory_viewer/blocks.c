// SPDX-License-Identifier: Apache-2.0
// The picture of the heap: where its rectangles lie, and which colors they have.
#include "analysis/tools/memory_viewer/impl.h"

static bool is_shown(const struct xpl_hlo_memory *m, const struct hlo_allocation *a) {
    return a->color == m->color && !xpl_hlo_allocation_lasts(a) && a->trace != UINT32_MAX;
}

// How large the picture is, and how many rectangles it may have.
static xpl_status_t measure(const struct xpl_hlo_memory *m, struct memview_blocks *b,
                            size_t *ret_room, struct xpl_error *err) {
    *ret_room = 0;
    for (uint32_t i = 0; i < m->n_allocations; i++) {
        const struct hlo_allocation *const a = &m->allocations[i];
        if (!is_shown(m, a)) continue;
        if (__builtin_add_overflow(b->bytes, a->size, &b->bytes))
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "buffer assignment: more than 2^63 bytes");
        if (m->trace_events[a->trace] > b->steps) b->steps = m->trace_events[a->trace];
        *ret_room += 1 + (size_t)a->n;
    }
    if (b->bytes == 0) b->steps = 0;
    return XPL_OK;
}

struct painter {
    struct memview_blocks *b;
    double scale_x, scale_y;
    uint32_t n_drawn;
};

// A block that is not shown at the peak has the color of its number among the rectangles.
static void add_block(struct painter *p, struct memview_block block, int32_t number) {
    block.drawn = (block.to - block.from) * p->scale_x >= 1 && (double)block.size * p->scale_y >= 1;
    if (block.buffer != UINT32_MAX)
        block.color =
            xpl_memview_colors[(number < 0 ? p->n_drawn : (uint32_t)number) % MEMVIEW_COLORS];
    p->n_drawn += block.drawn;
    p->b->v[p->b->n++] = block;
}

static xpl_status_t add_allocation(struct painter *p, const struct xpl_hlo_memory *m, uint32_t i,
                                   int64_t offset, struct xpl_error *err) {
    const struct hlo_allocation *const a = &m->allocations[i];
    struct memview_block block = {.allocation = i,
                                  .buffer = UINT32_MAX,
                                  .offset = offset,
                                  .size = a->size,
                                  .to = p->b->steps,
                                  .color = 0xffffff};
    add_block(p, block, -1);
    for (uint32_t k = a->first; k < a->first + a->n; k++) {
        block.buffer = m->assigned[k].buffer;
        if (block.buffer == UINT32_MAX || !m->buffers[block.buffer].lives) continue;
        const struct hlo_buffer *const b = &m->buffers[block.buffer];
        if (__builtin_add_overflow(offset, b->offset, &block.offset))
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "buffer assignment: more than 2^63 bytes");
        block.size = b->size;
        block.from = b->first;
        block.to = b->last;
        add_block(p, block, b->number);
    }
    return XPL_OK;
}

xpl_status_t xpl_memview_blocks(const struct xpl_hlo_memory *m, struct xpl_arena *a,
                                struct memview_blocks *ret, struct xpl_error *err) {
    size_t room;
    int64_t offset = 0;
    *ret = (struct memview_blocks){0};
    XPL_TRY(measure(m, ret, &room, err));
    if (!ret->steps) return XPL_OK;
    ret->v = xpl_arena_array(a, room, sizeof *ret->v);
    if (!ret->v || room > UINT32_MAX) XPL_RETURN_OOM(err, "memory of an HLO module");
    struct painter p = {.b = ret,
                        .scale_x = MEMVIEW_POINTS / ret->steps,
                        .scale_y = MEMVIEW_POINTS / (double)ret->bytes};
    for (uint32_t i = 0; i < m->n_allocations; i++) {
        if (!is_shown(m, &m->allocations[i])) continue;
        XPL_TRY(add_allocation(&p, m, i, offset, err));
        offset += m->allocations[i].size;
    }
    return XPL_OK;
}

// ---- texts ----

void xpl_memview_name(const struct hlo_buffer *b, struct xpl_buf *out) {
    struct xpl_hlo_ints index = xpl_hlo_buffer_index(b);
    bool first = true;
    xpl_buf_str(out, b->op.name);
    for (int64_t k; xpl_hlo_ints_next(&index, &k); first = false)
        xpl_buf_printf(out, "%c%lld", first ? '{' : ',', (long long)k);
    if (!first) xpl_buf_putc(out, '}');
}

xpl_str_t xpl_memview_category(const struct hlo_allocation *a) {
    if (a->parameter) return XPL_STR("Parameter");
    if (a->live_out) return XPL_STR("Output");
    if (a->local) return XPL_STR("Thread-local");
    return a->constant ? XPL_STR("Constant") : XPL_STR("Temporary");
}
