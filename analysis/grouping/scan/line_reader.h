// SPDX-License-Identifier: Apache-2.0
// Reads the events of a line one after the other, each reduced to the data that a scan needs.
#ifndef XPL_ANALYSIS_GROUPING_SCAN_LINE_READER_H_
#define XPL_ANALYSIS_GROUPING_SCAN_LINE_READER_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/plan/event_stats.h"
#include "analysis/grouping/plan/plan.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/metadata.h"

// The event at *c and the mask of its stats; moves *c behind it.  False when it is malformed.
static inline bool read_raw(const struct plan *plan, struct xpl_event_cursor *c,
                            struct xpl_raw_event *raw, uint32_t *mask) {
    xpl_bytes_t message;
    const uint8_t *p = c->p;
    if (XPL_UNLIKELY(xpl_next_message(&p, c->end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD) ||
        XPL_UNLIKELY(!xpl_raw_event_head(message, c->end, raw)))
        return false;
    if (XPL_UNLIKELY(!xpl_grp_quick_mask(plan, raw, mask)) &&
        (!xpl_raw_event_read(message, c->end, raw) || !xpl_grp_stats_mask(plan, raw, mask)))
        return false;
    c->p = p;
    return true;
}

// Several threads may store at once; the load first keeps the cache line shared.
static inline void note_linked(const struct plan *plan, uint32_t md) {
    if (plan->linked && !atomic_load_explicit(&plan->linked[md], memory_order_relaxed))
        atomic_store_explicit(&plan->linked[md], 1, memory_order_relaxed);
}

// One event of a line in file order.
struct line_event {
    struct xpl_raw_event raw;
    uint64_t at;
    uint32_t mask, role;
};

// The next event at *c.  False when it is malformed; *c then stands at it.
static inline bool read_line_event(const struct plan *plan, const struct xpl_line *line,
                                   struct xpl_event_cursor *c, struct line_event *e) {
    c->p = xpl_find_message(c->p, c->end, XLINE_EVENTS);
    e->at = (uint64_t)(c->p - line->message.ptr);
    if (XPL_UNLIKELY(!read_raw(plan, c, &e->raw, &e->mask))) return false;
    const uint32_t md = xpl_event_md_at(plan->plane, e->raw.md_id);
    e->role = plan->role_of[md];
    if (XPL_UNLIKELY(e->mask & SC_LINKED) || (e->role & ROLE_LINKED)) note_linked(plan, md);
    return true;
}

#endif
