// SPDX-License-Identifier: Apache-2.0
// Events of a plane, with what a breakdown asks of their statistics: the ids of these tell of most
// events that none matters, and nothing else is decoded then.
#ifndef XPL_ANALYSIS_BREAKDOWN_EVENTS_H_
#define XPL_ANALYSIS_BREAKDOWN_EVENTS_H_

#include "analysis/breakdown/names.h"
#include "analysis/xplane/event_read.h"
#include "analysis/xplane/metadata.h"

struct xpl_arena;

// Statistics that an event has.
enum {
    XPL_ROLE_HLO_OP = 1 << 0,
    XPL_ROLE_CORRELATION = 1 << 1,
    XPL_ROLE_STEP_NUM = 1 << 2,
    XPL_ROLE_CONSUMER = 1 << 3,
    XPL_ROLE_PROGRAM = 1 << 4,
    XPL_ROLE_ALL = (1 << 5) - 1
};

struct xpl_roles {
    const struct xpl_plane *plane;
    uint8_t *of; // XPL_ROLE_..., by position of a statistic's metadata
    // What `judge` says of a name that the value of an hlo_op refers to, plus 1, by position.
    uint8_t *judged;
    enum xpl_op_layer (*judge)(xpl_str_t op);
};
// In `arena`; false at its limit.
bool xpl_roles_init(struct xpl_roles *r, const struct xpl_plane *plane,
                    enum xpl_op_layer (*judge)(xpl_str_t op), struct xpl_arena *arena)
    __attribute__((warn_unused_result));

struct xpl_read_event {
    struct xpl_event ev;
    unsigned roles; // of statistics that it may have
    // The values of the first hlo_op and program_id, behind their ids; NULL: not known.
    const uint8_t *hlo_op, *hlo_op_end, *program, *program_end;
};

// What `judge` says of the event's hlo_op; XPL_LAYERS where it has none, or an empty one.
enum xpl_op_layer xpl_roles_judge(const struct xpl_roles *r, const struct xpl_read_event *e);

// The program id of the event; 0 where it has none.
uint64_t xpl_roles_program(const struct xpl_read_event *e);

// False for statistics that are not written as usual.
XPL_INLINE bool xpl_roles_find(const struct xpl_roles *r, const uint8_t *p, const uint8_t *end,
                               struct xpl_read_event *ret) {
    struct xpl_fast_stat s;
    ret->roles = 0;
    ret->hlo_op = ret->program = NULL;
    for (; p != end; p += s.len) {
        if (XPL_UNLIKELY(!xpl_fast_stat_head(p, end, XPL_TAG_FIELD4_LEN, &s))) return false;
        const unsigned role = r->of[xpl_stat_md_at(r->plane, s.id)];
        const unsigned first = role & ~ret->roles;
        if (first & XPL_ROLE_HLO_OP) ret->hlo_op = s.value, ret->hlo_op_end = p + s.len;
        if (first & XPL_ROLE_PROGRAM) ret->program = s.value, ret->program_end = p + s.len;
        ret->roles |= role;
    }
    return true;
}

// As xpl_events_next.
XPL_INLINE enum xpl_wire_result
xpl_roles_next(const struct xpl_roles *r, struct xpl_event_cursor *c, struct xpl_read_event *ret) {
    if (XPL_UNLIKELY(c->index == c->stop)) return XPL_WIRE_END;
    const uint8_t *p = c->p;
    xpl_bytes_t message;
    struct xpl_raw_event raw;
    if (XPL_UNLIKELY(xpl_next_message(&p, c->end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD) ||
        XPL_UNLIKELY(!xpl_raw_event_head(message, c->end, &raw)) ||
        XPL_UNLIKELY(!xpl_roles_find(r, raw.stats, raw.end, ret))) {
        ret->roles = XPL_ROLE_ALL;
        ret->hlo_op = ret->program = NULL;
        return xpl_events_next(c, &ret->ev);
    }
    ret->ev.md = xpl_event_md_at(r->plane, raw.md_id);
    ret->ev.offset_ps = (int64_t)raw.offset_ps;
    ret->ev.duration_ps = (int64_t)raw.duration_ps;
    ret->ev.has_occurrences = false;
    ret->ev.stats.plane = r->plane;
    ret->ev.stats.p = raw.stats;
    ret->ev.stats.end = raw.end;
    ret->ev.stats.field = XEVENT_STATS;
    ret->ev.index = c->index++;
    c->p = p;
    return XPL_WIRE_FIELD;
}

#endif
