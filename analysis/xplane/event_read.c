// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/event_read.h"

bool xpl_raw_event_slow(xpl_bytes_t message, struct xpl_raw_event *ret) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    const uint8_t *at = w.p;
    *ret = (struct xpl_raw_event){.stats = w.end, .end = w.end};
    for (; (r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD; at = w.p) {
        if (f.num == XEVENT_STATS && f.type == XPL_WIRE_LEN && ret->stats == w.end) ret->stats = at;
        if (f.type != XPL_WIRE_VARINT) continue;
        switch (f.num) {
            case XEVENT_MD_ID: ret->md_id = f.u; break;
            case XEVENT_OFFSET_PS: // a oneof: setting one clears the other
                ret->offset_ps = f.u;
                ret->occurrences = 0;
                ret->has_occurrences = false;
                break;
            case XEVENT_DURATION_PS: ret->duration_ps = f.u; break;
            case XEVENT_OCCURRENCES:
                ret->occurrences = f.u;
                ret->offset_ps = 0;
                ret->has_occurrences = true;
                break;
            default: break;
        }
    }
    return r == XPL_WIRE_END;
}

bool xpl_raw_event_at(const struct xpl_line *line, uint64_t at, struct xpl_raw_event *ret) {
    const struct xpl_wire w = xpl_wire_begin(line->message);
    if (at > line->message.len) return false;
    const uint8_t *p = w.p + at;
    xpl_bytes_t message;
    return xpl_next_message(&p, w.end, XLINE_EVENTS, &message) == XPL_WIRE_FIELD &&
           xpl_raw_event_read(message, w.end, ret);
}
