// SPDX-License-Identifier: Apache-2.0
// The ops of a device, by kind.

#include "analysis/breakdown/events.h"
#include "analysis/breakdown/impl.h"
#include "analysis/xplane/plane_kind.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 8192 };

// Reads the lines of a device.
struct reader {
    struct xpl_breaking *k;
    struct xpl_device_time *d;
    const uint8_t *layer; // of each metadata entry
    struct xpl_roles roles;
};

static uint8_t *layers_of(const struct xpl_plane *p, struct xpl_arena *arena) {
    uint8_t *const layer = xpl_arena_array(arena, p->n_event_md, sizeof *layer);
    for (uint32_t i = 0; layer && i < p->n_event_md; i++)
        layer[i] = (uint8_t)xpl_op_layer_of(p->event_md[i].name);
    return layer;
}

static bool add_launch(struct reader *r, const struct xpl_read_event *e, uint64_t begin) {
    struct xpl_stat s;
    if (!(e->roles & XPL_ROLE_CORRELATION) || !r->k->host.launches.n ||
        !xpl_stats_get(e->ev.stats, XPL_STAT_CORRELATION_ID, &s))
        return true;
    const uint64_t *const launched = xpl_map_get(&r->k->host.launches, xpl_stat_int_or_uint(&s), 0);
    if (!launched || !*launched) return true;
    struct xpl_launch *const slot = xpl_vec_push(r->k->scratch, &r->d->launches);
    if (slot) *slot = (struct xpl_launch){begin, *launched - 1};
    return slot != NULL;
}

static enum xpl_op_layer collective_or_none(xpl_str_t op) {
    return xpl_op_is_collective(op) ? XPL_LAYER_COLLECTIVE : XPL_LAYERS;
}

// An op of XLA that communicates may run as any kernel or copy: the op decides before the kernel's
// name.
static enum xpl_op_layer layer_of(const struct reader *r, const struct xpl_read_event *e) {
    if (r->d->kind == XPL_DEVICE_GPU && xpl_roles_judge(&r->roles, e) == XPL_LAYER_COLLECTIVE)
        return XPL_LAYER_COLLECTIVE;
    return (enum xpl_op_layer)r->layer[e->ev.md];
}

struct op_line {
    const struct xpl_line *line;
    bool async; // runs at the same time as the ops: only its collectives are known
};

static xpl_status_t read_line(struct reader *r, const struct op_line *l, struct xpl_error *err) {
    struct xpl_device_time *const d = r->d;
    const uint64_t origin = xpl_breaking_origin(r->k, l->line);
    struct xpl_event_cursor cur;
    struct xpl_read_event e;
    enum xpl_wire_result got;
    xpl_events_begin(&cur, l->line);
    while ((got = xpl_roles_next(&r->roles, &cur, &e)) == XPL_WIRE_FIELD) {
        if (e.ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->k->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "time breakdown: cancelled");
        const struct xpl_span span = xpl_breaking_span(origin, &e.ev);
        xpl_breaking_count_impossible(r->k, span, &e.ev);
        if (span.begin >= span.end || (l->async && r->layer[e.ev.md] != XPL_LAYER_COLLECTIVE))
            continue;
        d->n_ops++;
        if (!xpl_spans_add(&d->layers[layer_of(r, &e)], span, r->k->scratch) ||
            (d->kind == XPL_DEVICE_GPU && !add_launch(r, &e, span.begin)))
            XPL_RETURN_OOM(err, "time breakdown");
    }
    return got == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

// Whether a line has ops: all streams of a GPU, two lines of a TPU's core.
static bool has_ops(const struct xpl_device_time *d, struct op_line *l) {
    const xpl_str_t name = l->line->name;
    if (d->kind == XPL_DEVICE_GPU) return xpl_line_is_stream(l->line);
    if (xpl_is_derived_line_id(l->line->id)) return false;
    l->async = xpl_str_eq(name, XPL_STR(XPL_LINE_XLA_ASYNC_OPS));
    return l->async || xpl_str_eq(name, XPL_STR(XPL_LINE_XLA_OPS));
}

static int by_begin(const void *a, const void *b) {
    const struct xpl_launch *const x = a, *const y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->launched > y->launched) - (x->launched < y->launched);
}

xpl_status_t xpl_breaking_read_device(struct xpl_breaking *k, struct xpl_device_time *d,
                                      struct xpl_error *err) {
    const struct xpl_plane *const p = d->plane;
    struct reader r = {.k = k, .d = d, .layer = layers_of(p, k->scratch)};
    if (!r.layer || !xpl_roles_init(&r.roles, p, collective_or_none, k->scratch))
        XPL_RETURN_OOM(err, "time breakdown");
    for (uint32_t i = 0; i < p->n_lines; i++) {
        struct op_line l = {.line = &p->lines[i]};
        if (has_ops(d, &l)) XPL_TRY(read_line(&r, &l, err));
    }
    xpl_sort(d->launches.v, d->launches.n, sizeof *d->launches.v, by_begin);
    return XPL_OK;
}
