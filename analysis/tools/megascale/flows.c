// SPDX-License-Identifier: Apache-2.0
// Arrows between the ops of a transfer and the copies on the host that carry it out: from a send to
// the first copy off the device, its done and the recv-done, from a recv to the first copy onto the
// device and its done, and from the last copies to the dones.  Events of one run and one rendezvous
// are joined first come, first served.
#include "analysis/tools/megascale/names.h"
#include "analysis/tools/megascale/trace.h"

enum purpose {
    SEND_TO_DONE,
    SEND_TO_RECV_DONE,
    SEND_TO_COPY,
    RECV_TO_DONE,
    RECV_TO_COPY,
    COPY_TO_SEND_DONE,
    COPY_TO_RECV_DONE,
};
enum { PURPOSE_BITS = 3, CANCEL_EVERY = 4096, GAP_PS = 1000 };

struct queue {
    uint64_t first, last; // unclaimed flows; 0: none
};

struct joiner {
    struct xpl_mgtrace *trace;
    struct xpl_intern *rendezvous;
    struct xpl_map of_name; // address and length of an op's long name: the rendezvous in it
    XPL_VEC(struct queue) queues;
    XPL_VEC(uint64_t) behind; // of each flow: the next in its queue
    uint64_t n_visited;
};

// One of an event's ends, with where it is joined.
struct site {
    struct joiner *j;
    struct xpl_mgtrace_device *device;
    struct xpl_mgtrace_event *event;
    xpl_strid_t rendezvous;
};

// ---- queues ----

static bool add_end(struct joiner *j, struct xpl_mgtrace_flows *to, uint64_t id, bool in) {
    struct xpl_mgtrace_flow *const f = xpl_vec_push(j->trace->arena, &j->trace->flows);
    if (!f || j->trace->flows.n >= UINT32_MAX) return false;
    *f = (struct xpl_mgtrace_flow){.id = (int64_t)id, .in = in};
    if (to->last)
        j->trace->flows.v[to->last - 1].next = (uint32_t)j->trace->flows.n;
    else
        to->first = (uint32_t)j->trace->flows.n;
    to->last = (uint32_t)j->trace->flows.n;
    return true;
}

static uint64_t new_flow(struct joiner *j) {
    uint64_t *const next = xpl_vec_push(j->trace->arena, &j->behind);
    if (next) *next = 0;
    return next ? j->behind.n : 0;
}

// NULL: out of memory.
static struct queue *queue_of(const struct site *s, enum purpose purpose) {
    struct joiner *const j = s->j;
    bool is_new;
    uint64_t *const at =
        xpl_map_put(j->trace->arena, &s->device->waiting, (uint64_t)s->event->run,
                    (uint64_t)s->rendezvous.v << PURPOSE_BITS | (uint64_t)purpose, &is_new);
    if (!at) return NULL;
    if (is_new) {
        struct queue *const q = xpl_vec_push(j->trace->arena, &j->queues);
        if (!q) return NULL;
        *q = (struct queue){0};
        *at = j->queues.n - 1;
    }
    return &j->queues.v[*at];
}

// A flow begins at the event.
static bool begin_flow(const struct site *s, enum purpose purpose) {
    const uint64_t id = new_flow(s->j);
    struct queue *const q = id ? queue_of(s, purpose) : NULL;
    if (!q) return false;
    if (q->first)
        s->j->behind.v[q->last - 1] = id;
    else
        q->first = id;
    q->last = id;
    return add_end(s->j, &s->event->flows, id, false);
}

// The flow that began first and waits ends here, if there is one.
static bool end_flow(const struct site *s, enum purpose purpose, struct xpl_mgtrace_flows *to) {
    struct queue *const q = queue_of(s, purpose);
    if (!q) return false;
    const uint64_t id = q->first;
    if (!id) return true;
    q->first = s->j->behind.v[id - 1];
    return add_end(s->j, to, id, true);
}

// ---- ops that begin a transfer ----

static bool name_op(const struct site *s, bool send) {
    // XProf does not note the purpose of a recv, so that its done is never found.
    struct xpl_map *const map = send ? &s->device->sent : &s->device->received;
    bool is_new;
    if (!send && s->j->trace->exact) return true;
    uint64_t *const at =
        xpl_map_put(s->j->trace->arena, map, (uint64_t)s->event->run,
                    (uint64_t)xpl_mgtrace_op_number(xpl_mgtrace_name(s->event)), &is_new);
    if (at) *at = s->rendezvous.v;
    return at != NULL;
}

static bool begin_transfer(const struct site *s, bool send) {
    if (!name_op(s, send)) return false;
    if (!send) return begin_flow(s, RECV_TO_DONE) && begin_flow(s, RECV_TO_COPY);
    return begin_flow(s, SEND_TO_DONE) && begin_flow(s, SEND_TO_RECV_DONE) &&
           begin_flow(s, SEND_TO_COPY);
}

// Many events may have one long name, in the profile: it is searched once.
static bool find_rendezvous(struct site *s, xpl_str_t long_name) {
    bool is_new;
    uint64_t *const id = xpl_map_put(s->j->trace->arena, &s->j->of_name,
                                     (uint64_t)(uintptr_t)long_name.ptr, long_name.len, &is_new);
    if (!id) return false;
    s->rendezvous.v = (uint32_t)*id;
    if (!is_new) return true;
    if (!xpl_intern_put(s->j->rendezvous, xpl_mgtrace_attribute(long_name), &s->rendezvous))
        return false;
    *id = s->rendezvous.v;
    return true;
}

static xpl_status_t visit_start(struct site *s, struct xpl_error *err) {
    const enum xpl_mgtrace_op op = xpl_mgtrace_op_of(xpl_mgtrace_name(s->event));
    const struct xpl_event_md *const md = xpl_mgtrace_md(s->event);
    xpl_str_t long_name = md->name;
    if (op != XPL_MGTRACE_OP_SEND && op != XPL_MGTRACE_OP_RECV) return XPL_OK;
    if (!md->display_name.len) {
        struct xpl_stat stat;
        bool said;
        XPL_TRY(xpl_mgtrace_find(s->event, XPL_STR("long_name"), XPL_VALUE_STR, &stat, &said, err));
        long_name = said ? stat.str : XPL_STR("");
    }
    if (!find_rendezvous(s, long_name)) XPL_RETURN_OOM(err, "megascale");
    if (s->rendezvous.v && !begin_transfer(s, op == XPL_MGTRACE_OP_SEND))
        XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

// ---- copies ----

// The statistic is that number, or `counted` where the event has none.
static xpl_status_t says(const struct xpl_mgtrace_event *e, xpl_str_t name, int64_t number,
                         bool counted, bool *ret, struct xpl_error *err) {
    struct xpl_stat s;
    bool said;
    XPL_TRY(xpl_mgtrace_find(e, name, XPL_VALUE_INT, &s, &said, err));
    *ret = said ? s.i == number : counted;
    return XPL_OK;
}

// The last copy onto the device is shown a little shorter: Perfetto takes an arrow from its very
// end for one from the graph that ends with it.
static bool end_copy(const struct site *s, bool down) {
    struct xpl_mgtrace_event *const e = s->event;
    if (!down) e->duration_ps = e->duration_ps > GAP_PS ? e->duration_ps - GAP_PS : 0;
    return begin_flow(s, down ? COPY_TO_SEND_DONE : COPY_TO_RECV_DONE);
}

static xpl_status_t visit_copy(struct site *s, struct xpl_error *err) {
    const xpl_str_t name = xpl_mgtrace_name(s->event);
    const bool down = xpl_str_starts(name, XPL_STR("DeviceToHost "));
    const xpl_str_t rest = xpl_str_sub(name, sizeof "DeviceToHost" - 1, SIZE_MAX);
    const bool starts = xpl_str_eq(rest, XPL_STR(" START"));
    struct xpl_mgtrace_graph graph;
    struct xpl_stat key;
    bool counts;
    if (!down && !xpl_str_starts(name, XPL_STR("HostToDevice "))) return XPL_OK;
    if (!starts && !xpl_str_eq(rest, XPL_STR(" END"))) return XPL_OK;
    XPL_TRY(xpl_mgtrace_find(s->event, XPL_STR("graph_key"), XPL_VALUE_STR, &key, &counts, err));
    if (!counts || !xpl_mgtrace_graph_in(key.str, &graph)) return XPL_OK;
    if (starts)
        XPL_TRY(says(s->event, XPL_STR("action_index"), 0, false, &counts, err));
    else
        XPL_TRY(
            says(s->event, XPL_STR("is_last_instance"), 1, s->event->last_of > 0, &counts, err));
    if (!counts) return XPL_OK;
    if (!xpl_intern_put_view(s->j->rendezvous, graph.rendezvous, &s->rendezvous) ||
        !(starts ? end_flow(s, down ? SEND_TO_COPY : RECV_TO_COPY, &s->event->flows)
                 : end_copy(s, down)))
        XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

// ---- ops that end a transfer ----

// A copy may end after the op that waits for it began, which Perfetto cannot show: its arrow leads
// to an instant behind the op, and so does one from the op.
static bool end_recv(const struct site *s, struct xpl_mgtrace_track *track) {
    struct xpl_mgtrace_end *const e = xpl_vec_push(s->j->trace->arena, &track->ends);
    if (!e) return false;
    *e = (struct xpl_mgtrace_end){.event = (size_t)(s->event - track->v.v)};
    if (!end_flow(s, SEND_TO_RECV_DONE, &s->event->flows) ||
        !end_flow(s, RECV_TO_DONE, &s->event->flows))
        return false;
    const uint64_t id = new_flow(s->j);
    return id && add_end(s->j, &s->event->flows, id, false) && add_end(s->j, &e->flows, id, true) &&
           end_flow(s, COPY_TO_RECV_DONE, &e->flows);
}

static bool visit_done(struct site *s, struct xpl_mgtrace_track *track) {
    const xpl_str_t name = xpl_mgtrace_name(s->event);
    const enum xpl_mgtrace_op op = xpl_mgtrace_op_of(name);
    if (op != XPL_MGTRACE_OP_SEND_DONE && op != XPL_MGTRACE_OP_RECV_DONE) return true;
    const bool send = op == XPL_MGTRACE_OP_SEND_DONE;
    const uint64_t *const at =
        xpl_map_get(send ? &s->device->sent : &s->device->received, (uint64_t)s->event->run,
                    (uint64_t)xpl_mgtrace_op_number(name));
    if (!at) return true;
    s->rendezvous.v = (uint32_t)*at;
    if (!send) return end_recv(s, track);
    return end_flow(s, SEND_TO_DONE, &s->event->flows) &&
           end_flow(s, COPY_TO_SEND_DONE, &s->event->flows);
}

// ---- all ----

enum pass { STARTS, COPIES, DONES };

static xpl_status_t visit_track(struct joiner *j, struct xpl_mgtrace_device *d,
                                struct xpl_mgtrace_track *track, enum pass pass,
                                struct xpl_error *err) {
    for (size_t i = 0; i < track->v.n; i++) {
        struct site s = {.j = j, .device = d, .event = &track->v.v[i]};
        if (j->n_visited++ % CANCEL_EVERY == 0) XPL_TRY(xpl_mgtrace_cancelled(j->trace, err));
        if (s.event->run == -1) continue;
        switch (pass) {
            case STARTS: XPL_TRY(visit_start(&s, err)); break;
            case COPIES: XPL_TRY(visit_copy(&s, err)); break;
            case DONES:
                if (!visit_done(&s, track)) XPL_RETURN_OOM(err, "megascale");
                break;
        }
    }
    return XPL_OK;
}

static xpl_status_t visit_all(struct joiner *j, enum pass pass, struct xpl_error *err) {
    for (size_t i = 0; i < j->trace->devices.n; i++) {
        struct xpl_mgtrace_device *const d = &j->trace->devices.v[i];
        for (size_t k = 0; pass == COPIES && k < d->host_tracks.n; k++)
            XPL_TRY(visit_track(j, d, &d->host_tracks.v[k], pass, err));
        for (size_t k = 0; pass != COPIES && k < d->tracks.n; k++)
            if (d->tracks.v[k].kind == XPL_MGTRACE_OPS)
                XPL_TRY(visit_track(j, d, &d->tracks.v[k], pass, err));
    }
    return XPL_OK;
}

// The first event of a sorted track, behind `at`, that does not begin before a time.
static size_t first_from(const struct xpl_mgtrace_track *t, size_t at, int64_t ps) {
    size_t low = at + 1, high = t->v.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->v.v[middle].begin_ps < ps)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Marks, in each execution of a graph, the last copy onto the device that ends in it, and the last
// off the device.
static bool mark_last(struct xpl_mgtrace *t, struct xpl_mgtrace_track *track) {
    static const char *const names[] = {"HostToDevice END", "DeviceToHost END"};
    const size_t n = track->v.n;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        size_t *const last = xpl_arena_array(t->arena, n + 1, sizeof *last); // before each, + 1
        struct xpl_mgtrace_graph graph;
        if (!last) return false;
        last[0] = 0;
        for (size_t i = 0; i < n; i++)
            last[i + 1] = xpl_str_eq(xpl_mgtrace_name(&track->v.v[i]), xpl_str_from(names[k]))
                              ? i + 1
                              : last[i];
        for (size_t i = 0; i < n; i++) {
            if (!xpl_mgtrace_is_graph(xpl_mgtrace_name(&track->v.v[i]), &graph)) continue;
            const size_t at = last[first_from(track, i, xpl_mgtrace_end_ps(&track->v.v[i]))];
            if (at > i + 1) track->v.v[at - 1].last_of++;
        }
    }
    return true;
}

xpl_status_t xpl_mgtrace_join(struct xpl_mgtrace *t, struct xpl_error *err) {
    struct joiner j = {.trace = t, .rendezvous = xpl_intern_new(t->arena, xpl_hash_seed())};
    if (!j.rendezvous) XPL_RETURN_OOM(err, "megascale");
    for (size_t i = 0; i < t->devices.n; i++)
        for (size_t k = 0; k < t->devices.v[i].host_tracks.n; k++)
            if (!mark_last(t, &t->devices.v[i].host_tracks.v[k])) XPL_RETURN_OOM(err, "megascale");
    XPL_TRY(visit_all(&j, STARTS, err));
    XPL_TRY(visit_all(&j, COPIES, err));
    return visit_all(&j, DONES, err);
}
