// SPDX-License-Identifier: Apache-2.0
// The timeline as packets of Perfetto: tracks in the order of their ranks, below one root.
#include "analysis/ireeprof/timeline/impl.h"

static void begin(struct xpl_iree_sink *s) {
    (void)xpl_packet_clear(&s->packet);
}

static void put_track(struct xpl_iree_sink *s, const struct xpl_iree_track *t, uint32_t index) {
    struct xpl_buf *const b = &s->packet.body;
    (void)index;
    if (t->counter) xpl_pf_str(b, XPL_PF_TRACK_COUNTER, XPL_STR(""));
    xpl_pf_uint(b, XPL_PF_TRACK_UUID, t->uuid);
    if (t->parent_plus_1)
        xpl_pf_uint(b, XPL_PF_TRACK_PARENT, xpl_iree_track_at(s->t, t->parent_plus_1 - 1)->uuid);
    xpl_pf_str(b, XPL_PF_TRACK_NAME, t->name);
    if (t->ordered) xpl_pf_uint(b, XPL_PF_TRACK_CHILD_ORDERING, XPL_PF_EXPLICIT);
    xpl_pf_uint(b, XPL_PF_TRACK_RANK, t->rank <= INT32_MAX ? t->rank : INT32_MAX);
    (void)xpl_packet_track(&s->packet);
}

static void put_event(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns,
                      xpl_str_t name) {
    const struct xpl_iree_track *const t = xpl_iree_track_at(s->t, e->track);
    struct xpl_buf *const b = &s->packet.body;
    const uint64_t type = t->counter                        ? XPL_PF_TYPE_COUNTER
                          : e->kind == XPL_IREE_EVENT_END   ? XPL_PF_TYPE_END
                          : e->kind == XPL_IREE_EVENT_SLICE ? XPL_PF_TYPE_BEGIN
                                                            : XPL_PF_TYPE_INSTANT;
    (void)ns;
    xpl_pf_uint(b, XPL_PF_EVENT_TYPE, type);
    xpl_pf_uint(b, XPL_PF_EVENT_TRACK, t->uuid);
    if (name.len) xpl_pf_str(b, XPL_PF_EVENT_NAME, name);
}

static void put_flow(struct xpl_iree_sink *s, uint64_t id) {
    xpl_pf_fixed(&s->packet.body, XPL_PF_EVENT_FLOW, id);
}

static void put_argument(struct xpl_iree_sink *s, const struct xpl_iree_member *m) {
    struct xpl_buf *const b = &s->packet.part;
    xpl_pf_str(b, XPL_PF_ARGUMENT_NAME, xpl_str_from(m->name));
    switch (m->kind) {
        case XPL_IREE_MEMBER_U64: xpl_pf_uint(b, XPL_PF_ARGUMENT_UINT, m->u64); break;
        case XPL_IREE_MEMBER_I64:
            xpl_pf_uint(b, m->i64 < 0 ? XPL_PF_ARGUMENT_INT : XPL_PF_ARGUMENT_UINT,
                        (uint64_t)m->i64);
            break;
        case XPL_IREE_MEMBER_BOOL: xpl_pf_uint(b, XPL_PF_ARGUMENT_BOOL, m->is); break;
        case XPL_IREE_MEMBER_DOUBLE: xpl_pf_double(b, XPL_PF_ARGUMENT_DOUBLE, m->number); break;
        case XPL_IREE_MEMBER_TEXT: xpl_pf_str(b, XPL_PF_ARGUMENT_STRING, m->text); break;
        case XPL_IREE_MEMBER_NULL:
        case XPL_IREE_MEMBER_OPEN:
        case XPL_IREE_MEMBER_CLOSE: break;
    }
    xpl_pf_part(&s->packet.body, XPL_PF_EVENT_ARGUMENT, b);
}

static void put_value(struct xpl_iree_sink *s, const struct xpl_iree_member *m) {
    struct xpl_buf *const b = &s->packet.body;
    if (m->kind == XPL_IREE_MEMBER_DOUBLE)
        xpl_pf_double(b, XPL_PF_EVENT_DOUBLE_COUNTER, m->number);
    else if (m->kind == XPL_IREE_MEMBER_U64 && m->u64 > INT64_MAX)
        xpl_pf_double(b, XPL_PF_EVENT_DOUBLE_COUNTER, (double)m->u64);
    else
        xpl_pf_uint(b, XPL_PF_EVENT_COUNTER, m->u64);
}

static void end_event(struct xpl_iree_sink *s, uint64_t ns) {
    if (s->packet.body.n) (void)xpl_packet_event(&s->packet, ns);
}

static void end(struct xpl_iree_sink *s) {
    (void)s;
}

const struct xpl_iree_trace_writer xpl_iree_perfetto_writer = {
    .begin = begin,
    .track = put_track,
    .event = put_event,
    .flow = put_flow,
    .argument = put_argument,
    .value = put_value,
    .event_end = end_event,
    .end = end,
};
