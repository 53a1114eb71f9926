// SPDX-License-Identifier: Apache-2.0
// Slices that overlap get separate tracks, the first free one; and the sums of queues' allocations.
#include "analysis/ireeprof/timeline/impl.h"

// Lanes by when they become free (`busy`), and by number (`idle`): binary heaps, the least first.
struct lane {
    int64_t until_ns;
    uint32_t lane;
};
struct heap {
    struct lane *v;
    size_t n;
};

static bool before(const struct lane *a, const struct lane *b) {
    return a->until_ns != b->until_ns ? a->until_ns < b->until_ns : a->lane < b->lane;
}

static void push(struct heap *h, struct lane l) {
    size_t i = h->n++;
    for (; i && before(&l, &h->v[(i - 1) / 2]); i = (i - 1) / 2)
        h->v[i] = h->v[(i - 1) / 2];
    h->v[i] = l;
}

static struct lane pop(struct heap *h) {
    const struct lane top = h->v[0], last = h->v[--h->n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < h->n; i = k) {
        if (k + 1 < h->n && before(&h->v[k + 1], &h->v[k])) k++;
        if (!before(&h->v[k], &last)) break;
        h->v[i] = h->v[k];
    }
    h->v[i] = last;
    return top;
}

// Groups, and within them by time.
enum { SLICE_KEYS = 4 };
static uint64_t slice_key(const void *ctx, size_t i, unsigned key) {
    const struct xpl_iree_slice *const s = (const struct xpl_iree_slice *)ctx + i;
    if (key < 2)
        return key ? (uint64_t)s->variant << 32 | s->queue : (uint64_t)s->kind << 32 | s->device;
    return xpl_iree_order_of(key == 2 ? s->start_ns : s->end_ns);
}

static bool add_slice(struct xpl_iree_timeline *t, const struct xpl_iree_slice *s, uint32_t lane) {
    xpl_iree_timeline_enter(t, s->session, s->device);
    const uint32_t track =
        xpl_iree_track_of_queue(t, (enum xpl_iree_track_kind)s->kind, s->device, s->queue, lane);
    const uint8_t *const at = t->run->bundle->bytes.ptr + s->at;
    struct xpl_iree_event *e =
        xpl_iree_timeline_add(t, XPL_IREE_EVENT_SLICE, s->start_ns, track, at);
    if (!e) return false;
    e->chunk = s->chunk;
    e = xpl_iree_timeline_add(t, XPL_IREE_EVENT_END, s->end_ns, track, at);
    if (e) e->chunk = s->chunk;
    return e != NULL;
}

bool xpl_iree_timeline_lanes(struct xpl_iree_timeline *t) {
    const struct xpl_iree_slice *const v = t->slices.v;
    const struct xpl_iree_slice *last = NULL;
    const size_t n = t->slices.n;
    struct heap busy = {.v = xpl_sys_alloc((n + 1) * sizeof(struct lane))};
    struct heap idle = {.v = xpl_sys_alloc((n + 1) * sizeof(struct lane))};
    uint32_t *const order = xpl_iree_timeline_order(n, SLICE_KEYS, slice_key, v);
    uint32_t lanes = 0;
    bool ok = busy.v && idle.v && order;
    for (size_t i = 0; ok && i < n; i++) {
        const struct xpl_iree_slice *const s = &v[order[i]];
        if (!last || slice_key(last, 0, 0) != slice_key(s, 0, 0) ||
            slice_key(last, 0, 1) != slice_key(s, 0, 1))
            busy.n = idle.n = lanes = 0;
        last = s;
        while (busy.n && busy.v[0].until_ns <= s->start_ns)
            push(&idle, (struct lane){0, pop(&busy).lane});
        const uint32_t lane = idle.n ? pop(&idle).lane : lanes++;
        push(&busy, (struct lane){s->end_ns, lane});
        ok = add_slice(t, s, lane);
    }
    xpl_sys_free(order);
    xpl_sys_free(busy.v);
    xpl_sys_free(idle.v);
    return ok;
}

// ---- allocations ----

struct sum_key {
    uint32_t device, queue;
    uint64_t variant; // of the device
};
struct sum {
    struct sum_key key;
    uint64_t bytes;
};
static uint64_t time_of(const void *ctx, size_t i, unsigned key) {
    (void)key;
    return xpl_iree_order_of(((const struct xpl_iree_memory_place *)ctx)[i].ns);
}

static bool add_sum(struct xpl_iree_timeline *t, struct xpl_iree_table *sums,
                    const struct xpl_iree_place *place) {
    const uint8_t *const p = t->run->bundle->bytes.ptr + place->at;
    struct xpl_iree_memory_event m;
    bool is_new;
    memcpy(&m, p, sizeof m);
    const bool opens = m.type == XPL_IREE_QUEUE_ALLOCA, closes = m.type == XPL_IREE_QUEUE_DEALLOCA;
    xpl_iree_timeline_enter(t, place->session, m.physical_device_ordinal);
    const struct sum_key key = {xpl_iree_device_or_first(m.physical_device_ordinal),
                                m.queue_ordinal, t->variant};
    if (!opens && !closes) return true;
    struct sum *const s = xpl_iree_table_put(sums, &key, &is_new);
    if (!s) return false;
    if (opens)
        xpl_iree_add(&s->bytes, m.length);
    else
        s->bytes -= m.length < s->bytes ? m.length : s->bytes;
    const uint32_t track =
        xpl_iree_track_of_queue(t, XPL_IREE_TRACK_ALLOCATED, key.device, key.queue, 0);
    struct xpl_iree_event *const e =
        xpl_iree_timeline_add(t, XPL_IREE_EVENT_ALLOCATED, m.host_time_ns, track, p);
    if (e) e->value = s->bytes, e->chunk = place->chunk;
    return e != NULL;
}

bool xpl_iree_timeline_allocated(struct xpl_iree_timeline *t) {
    struct xpl_iree_table sums = {.row_size = sizeof(struct sum),
                                  .key_size = sizeof(struct sum_key)};
    const struct xpl_iree_event *const events = t->events.v;
    t->memory = xpl_sys_alloc((t->events.n + 1) * sizeof *t->memory);
    for (size_t i = 0; t->memory && i < t->events.n; i++) // events move when others are added
        if (events[i].kind == XPL_IREE_EVENT_MEMORY)
            t->memory[t->n_memory++] = (struct xpl_iree_memory_place){
                events[i].ns, {events[i].at, events[i].chunk, events[i].session}};
    if (t->memory) t->memory_order = xpl_iree_timeline_order(t->n_memory, 1, time_of, t->memory);
    bool ok = t->memory_order != NULL;
    for (size_t i = 0; ok && i < t->n_memory; i++)
        ok = add_sum(t, &sums, &t->memory[t->memory_order[i]].place);
    xpl_iree_table_fini(&sums);
    return ok;
}
