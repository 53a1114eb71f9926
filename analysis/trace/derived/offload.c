// SPDX-License-Identifier: Apache-2.0
// Host offloading of a TensorCore: a line of copies between host and device, each from the start
// and the end of one.  Rules: XProf utils/host_offload_utils.cc.
#include "analysis/trace/derived/impl.h"

#include <inttypes.h>
#include <string.h>

enum { ID_OFFLOAD = 8 };

// "offload-<op>.<number>" from "<op>-start.<number>" or "<op>-done.<number>".
static bool offload_name(struct xpl_offload *o, xpl_str_t display, xpl_str_t *ret) {
    const char *const dot = display.len ? memrchr(display.ptr, '.', display.len) : NULL;
    const xpl_str_t id =
        dot ? xpl_str_sub(display, (size_t)(dot - display.ptr) + 1, SIZE_MAX) : XPL_STR("0");
    size_t end = xpl_str_find(display, XPL_STR("-start"), 0);
    if (end == SIZE_MAX) end = xpl_str_find(display, XPL_STR("-done"), 0);
    const xpl_str_t op = xpl_str_sub(display, 0, end);
    if (op.len > INT32_MAX || id.len > INT32_MAX) return false;
    return xpl_arena_printf(&o->p->temp, ret, "offload-%.*s.%.*s", XPL_STR_FMT(op),
                            XPL_STR_FMT(id));
}

static struct xpl_offload_queue *queue_for(struct xpl_offload *o, uint32_t md) {
    xpl_str_t name;
    uint32_t text;
    bool is_new;
    if (!offload_name(o, o->p->plane->event_md[md].display_name, &name)) return NULL;
    const struct xpl_stat s = {.kind = XPL_VALUE_STR, .str = name};
    if (!xpl_dplane_text(o->p, &s, &text)) return NULL;
    uint64_t *const slot = xpl_map_put(&o->p->temp, &o->queue_of, text, 0, &is_new);
    if (!slot) return NULL;
    if (is_new) {
        struct xpl_offload_queue *const q = xpl_vec_push(&o->p->temp, &o->queues);
        if (!q) return NULL;
        *q = (struct xpl_offload_queue){.display = xpl_dplane_nameless_md(o->p, name)};
        if (!q->display) return NULL;
        *slot = o->queues.n - 1;
    }
    return &o->queues.v[*slot];
}

enum { STARTS = 1, ENDS = 2, PARTS = 4 };

// The queue of an event's metadata, and its part in a pair, found by name once.
static struct xpl_offload_queue *queue_of(struct xpl_offload *o, uint32_t md, unsigned *ret_part) {
    bool is_new;
    uint64_t *slot = xpl_map_put(&o->p->temp, &o->queue_of, md, 1, &is_new);
    if (slot && is_new) {
        const xpl_str_t display = o->p->plane->event_md[md].display_name;
        const uint64_t part = xpl_str_has(display, XPL_STR("-start"))  ? STARTS
                              : xpl_str_has(display, XPL_STR("-done")) ? ENDS
                                                                       : 0;
        struct xpl_offload_queue *const q = queue_for(o, md);
        slot = q ? xpl_map_get(&o->queue_of, md, 1) : NULL;
        if (slot) *slot = (uint64_t)(q - o->queues.v) * PARTS + part;
    }
    if (!slot) return NULL;
    *ret_part = (unsigned)(*slot % PARTS);
    return &o->queues.v[*slot / PARTS];
}

static bool push_start(struct xpl_offload *o, struct xpl_offload_queue *q, uint32_t md,
                       uint64_t begin) {
    struct xpl_offload_start *const s = xpl_vec_push(&o->p->temp, &o->starts);
    if (!s || o->starts.n >= UINT32_MAX) return false;
    *s = (struct xpl_offload_start){.begin = begin, .md = md};
    if (q->first)
        o->starts.v[q->last - 1].next = (uint32_t)o->starts.n;
    else
        q->first = (uint32_t)o->starts.n;
    q->last = (uint32_t)o->starts.n;
    return true;
}

// The row whose last event ends first, if it has ended by then; else a new one, else the last.
static struct xpl_offload_row *row_for(struct xpl_offload *o, uint64_t begin, uint64_t end) {
    struct xpl_offload_row *best = NULL;
    uint64_t least = begin;
    for (uint32_t i = 0; i < o->n_rows; i++)
        if (o->rows[i].frontier <= least) {
            best = &o->rows[i];
            least = best->frontier;
        }
    if (best) return best;
    if (o->n_rows < XPL_OFFLOAD_MAX_ROWS) {
        xpl_str_t name;
        struct xpl_offload_row *const row = &o->rows[o->n_rows];
        if (!xpl_arena_printf(&o->p->temp, &name, "%s row %" PRIu32, XPL_LINE_HOST_OFFLOAD_OPS,
                              o->n_rows))
            return NULL;
        row->line = xpl_dline_new(o->p, XPL_LINE_ID_STEPS + ID_OFFLOAD + o->n_rows, name);
        if (!row->line) return NULL;
        row->frontier = end;
        o->n_rows++;
    }
    return &o->rows[o->n_rows - 1];
}

// Statistics of the pair: bytes from the end's metadata, shape from the start's.
static uint32_t offload_extra(struct xpl_offload *o, uint32_t start, uint32_t done) {
    const struct xpl_plane *const plane = o->p->plane;
    struct xpl_stat s;
    bool is_new;
    uint64_t *const slot = xpl_map_put(&o->p->temp, &o->extra_of, start, done, &is_new);
    if (!slot) return 0;
    if (!is_new) return (uint32_t)*slot;
    *slot = xpl_dplane_extra(o->p, XPL_EXTRA_OFFLOAD);
    if (*slot == 0) return 0;
    struct xpl_extra *const x = &o->p->extras.v[*slot];
    struct xpl_stats stats = xpl_event_md_stats(plane, &plane->event_md[done]);
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        if (s.md->type == XPL_STAT_RAW_BYTES_ACCESSED) {
            x->has_first = true;
            x->raw_bytes = xpl_stat_int(&s);
        }
    stats = xpl_event_md_stats(plane, &plane->event_md[start]);
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        if (s.md->type == XPL_STAT_SHAPE_WITH_LAYOUT) {
            x->has_second = true;
            if (!xpl_arena_str(&o->p->temp, xpl_stat_str(&s), &x->shape)) return 0;
        }
    return (uint32_t)*slot;
}

bool xpl_offload_put(struct xpl_offload *o, uint32_t md, uint64_t begin, uint64_t duration) {
    unsigned part;
    struct xpl_offload_queue *const q = queue_of(o, md, &part);
    if (!q) return false;
    if (part == STARTS) return push_start(o, q, md, begin);
    if (part != ENDS || q->first == 0) return true;
    const struct xpl_offload_start start = o->starts.v[q->first - 1];
    q->first = start.next;
    const uint64_t end = begin + duration, last = end < start.begin ? start.begin : end;
    struct xpl_offload_row *const row = row_for(o, start.begin, last);
    struct xpl_added *const a = row ? xpl_vec_push(&o->p->temp, &row->line->events) : NULL;
    const uint32_t extra = a ? offload_extra(o, start.md, md) : 0;
    if (!extra) return false;
    if (last > row->frontier) row->frontier = last;
    *a = (struct xpl_added){.begin = start.begin,
                            .duration = last - start.begin,
                            .md = q->display,
                            .extra = extra << 1};
    return true;
}
