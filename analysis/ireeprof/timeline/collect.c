// SPDX-License-Identifier: Apache-2.0
// Events: the position of each record on the timeline. Names and arguments are read again when they
// are written.
#include "analysis/ireeprof/timeline/impl.h"

// A span becomes a slice; one without a length lasts a nanosecond, one that ends before it starts
// is none.
static bool add_slice(struct xpl_iree_timeline *t, const struct xpl_iree_slice *slice,
                      const uint64_t *stream, const struct xpl_iree_item *item) {
    if (slice->end_ns < slice->start_ns || slice->start_ns == INT64_MAX) return true;
    if (xpl_iree_track_queue(t, slice->device, slice->queue, stream) == UINT32_MAX) return false;
    struct xpl_iree_slice *const s = xpl_iree_list_push(&t->slices);
    if (!s) return false;
    *s = *slice;
    s->end_ns += s->end_ns == s->start_ns;
    s->at = (uint64_t)(item->p - t->run->bundle->bytes.ptr);
    s->chunk = (uint32_t)t->chunks.n - 1;
    s->session = t->x.model.session;
    s->variant = t->variant;
    return true;
}

static bool add_ticks(struct xpl_iree_timeline *t, enum xpl_iree_track_kind kind, uint32_t device,
                      uint32_t queue, const uint64_t *stream, const uint64_t ticks[2],
                      const struct xpl_iree_item *item) {
    struct xpl_iree_slice s = {
        .kind = (uint16_t)kind, .device = xpl_iree_device_or_first(device), .queue = queue};
    if (!xpl_iree_ticks_valid(ticks[0], ticks[1]) ||
        !xpl_iree_timeline_ns(t, s.device, ticks[0], &s.start_ns) ||
        !xpl_iree_timeline_ns(t, s.device, ticks[1], &s.end_ns))
        return true;
    return add_slice(t, &s, stream, item);
}

static bool add_dispatch(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                         const struct xpl_iree_item *item) {
    struct xpl_iree_dispatch_event e;
    xpl_iree_copy(item, &e);
    return add_ticks(t, XPL_IREE_TRACK_DISPATCH, h->physical_device_ordinal, h->queue_ordinal,
                     &h->stream_id, (uint64_t[]){e.start_tick, e.end_tick}, item);
}

static bool add_queue_device(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                             const struct xpl_iree_item *item) {
    struct xpl_iree_queue_device_event e;
    (void)h;
    xpl_iree_copy(item, &e);
    return add_ticks(t, XPL_IREE_TRACK_QUEUE_DEVICE, e.physical_device_ordinal, e.queue_ordinal,
                     &e.stream_id, (uint64_t[]){e.start_tick, e.end_tick}, item);
}

// The command operation that a host span is of begins with it.
static bool add_host(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                     const struct xpl_iree_item *item) {
    struct xpl_iree_host_event e;
    (void)h;
    xpl_iree_copy(item, &e);
    const struct xpl_iree_slice s = {.kind = XPL_IREE_TRACK_HOST,
                                     .device = xpl_iree_device_or_first(e.physical_device_ordinal),
                                     .queue = e.queue_ordinal,
                                     .start_ns = e.start_host_time_ns,
                                     .end_ns = e.end_host_time_ns};
    const uint32_t session =
        xpl_iree_model_scope(&t->x.model, XPL_IREE_SCOPE_OPERATIONS, e.command_buffer_id, 0);
    const struct xpl_iree_operation_key key = {e.command_buffer_id, e.command_index, session};
    if (s.end_ns < s.start_ns || s.start_ns == INT64_MAX) return true;
    if (!add_slice(t, &s, &e.stream_id, item)) return false;
    const struct xpl_iree_timeline_operation *const op =
        e.command_buffer_id && e.command_index != XPL_IREE_NONE
            ? xpl_iree_table_get(&t->operations, &key)
            : NULL;
    if (!op) return true;
    const uint32_t track =
        xpl_iree_track_of_queue(t, XPL_IREE_TRACK_OPERATIONS, s.device, s.queue, 0);
    struct xpl_iree_event *const o = xpl_iree_timeline_add(
        t, XPL_IREE_EVENT_OPERATION, s.start_ns, track, t->run->bundle->bytes.ptr + op->place.at);
    if (!o) return false;
    o->extra = o->chunk; // the host event's
    o->chunk = op->place.chunk;
    o->value = (uint64_t)(item->p - t->run->bundle->bytes.ptr);
    return true;
}

static bool add_queue(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                      const struct xpl_iree_item *item) {
    struct xpl_iree_queue_event e;
    (void)h;
    xpl_iree_copy(item, &e);
    const uint32_t device = xpl_iree_device_or_first(e.physical_device_ordinal);
    if (xpl_iree_track_queue(t, device, e.queue_ordinal, &e.stream_id) == UINT32_MAX) return false;
    const uint32_t track =
        xpl_iree_track_of_queue(t, XPL_IREE_TRACK_QUEUE_EVENTS, device, e.queue_ordinal, 0);
    if (!xpl_iree_timeline_add(t, XPL_IREE_EVENT_QUEUE, e.host_time_ns, track, item->p))
        return false;
    return e.ready_host_time_ns <= 0 || e.ready_host_time_ns == e.host_time_ns ||
           xpl_iree_timeline_add(t, XPL_IREE_EVENT_READY, e.ready_host_time_ns, track, item->p);
}

static bool add_memory(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                       const struct xpl_iree_item *item) {
    struct xpl_iree_memory_event e;
    (void)h;
    xpl_iree_copy(item, &e);
    const uint32_t device = xpl_iree_device_or_first(e.physical_device_ordinal);
    const uint32_t track =
        xpl_iree_track_of_queue(t, XPL_IREE_TRACK_MEMORY, device, e.queue_ordinal, 0);
    return xpl_iree_timeline_add(t, XPL_IREE_EVENT_MEMORY, e.host_time_ns, track, item->p) != NULL;
}

static bool add_clock(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                      const struct xpl_iree_item *item) {
    struct xpl_iree_clock_correlation s;
    (void)h;
    xpl_iree_copy(item, &s);
    const uint32_t device = xpl_iree_device_or_first(s.physical_device_ordinal);
    const int64_t ns = xpl_iree_midpoint(s.host_time_begin_ns, s.host_time_end_ns);
    return xpl_iree_timeline_add(t, XPL_IREE_EVENT_CLOCK, ns,
                                 xpl_iree_track_device(t, device, NULL), item->p) != NULL;
}

static bool add_metrics(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                        const struct xpl_iree_item *item) {
    (void)h;
    return xpl_iree_timeline_metrics(t, item);
}

static void enter(struct xpl_iree_timeline *t, const struct xpl_iree_record *h, uint32_t device) {
    xpl_iree_timeline_enter(t, xpl_iree_sessions_of(&t->x.model.sessions, h, device), device);
}

bool xpl_iree_timeline_collect(struct xpl_iree_timeline *t, const struct xpl_iree_record *h) {
    static bool (*const adds[XPL_IREE_N_CHUNK_TYPES])(
        struct xpl_iree_timeline *, const struct xpl_iree_record *,
        const struct xpl_iree_item *) = {[XPL_IREE_DISPATCH_EVENTS] = add_dispatch,
                                         [XPL_IREE_QUEUE_DEVICE_EVENTS] = add_queue_device,
                                         [XPL_IREE_HOST_EVENTS] = add_host,
                                         [XPL_IREE_QUEUE_EVENTS] = add_queue,
                                         [XPL_IREE_MEMORY_EVENTS] = add_memory,
                                         [XPL_IREE_CLOCKS] = add_clock,
                                         [XPL_IREE_COUNTER_SAMPLES] = xpl_iree_timeline_sample,
                                         [XPL_IREE_METRIC_SAMPLES] = add_metrics};
    struct xpl_iree_items items = xpl_iree_items_of(h);
    struct xpl_iree_item item;
    t->chunks.n++; // they were counted when they were described
    for (uint32_t i = 0; i < XPL_IREE_N_DIAGNOSTICS; i++) {
        if (!xpl_iree_export_diagnostic(NULL, h, (enum xpl_iree_diagnostic)i)) continue;
        struct xpl_iree_event *const e = xpl_iree_timeline_add(t, XPL_IREE_EVENT_DIAGNOSTIC, 0,
                                                               xpl_iree_track_diagnostics(t), NULL);
        if (!e) return false;
        e->extra = i;
    }
    if (h->chunk >= XPL_IREE_N_CHUNK_TYPES || !adds[h->chunk]) return true;
    while (!xpl_iree_timeline_stopped(t) && xpl_iree_item_next(&items, &item, NULL)) {
        if (t->x.model.by_session) enter(t, h, xpl_iree_device_of(h, &item));
        if (!adds[h->chunk](t, h, &item)) return false;
    }
    return true;
}

bool xpl_iree_timeline_warn(struct xpl_iree_timeline *t) {
    struct xpl_iree_run whole = {.bundle = t->run->bundle, .damage = t->run->damage};
    char text[320];
    if (!xpl_iree_is_partial(&whole)) return true;
    for (uint32_t i = 0; xpl_iree_warning(&whole, i, text, sizeof text); i++) {
        struct xpl_iree_event *const e = xpl_iree_timeline_add(t, XPL_IREE_EVENT_DIAGNOSTIC, 0,
                                                               xpl_iree_track_diagnostics(t), NULL);
        if (!e) return false;
        e->extra = XPL_IREE_N_DIAGNOSTICS + i;
    }
    return true;
}
