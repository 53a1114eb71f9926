// SPDX-License-Identifier: Apache-2.0
// Reads the statistics of one event that matter to grouping.
#ifndef XPL_ANALYSIS_GROUPING_PLAN_EVENT_STATS_H_
#define XPL_ANALYSIS_GROUPING_PLAN_EVENT_STATS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/plan/plan.h"
#include "analysis/xplane/event_read.h"
#include "analysis/xplane/fast_stat.h"
#include "analysis/xplane/fields.h"

// The stats of one event, by class.
struct scan_stats {
    uint32_t mask;
    uint64_t u[SC_COUNT];
    uint8_t kind[SC_COUNT];
};

// The value of a stat, 0 when it is of another kind; only where the mask has it.
static inline int64_t stats_int(const struct scan_stats *st, enum stat_class c) {
    return st->kind[c] == XPL_VALUE_INT ? (int64_t)st->u[c] : 0;
}
static inline uint64_t stats_int_or_uint(const struct scan_stats *st, enum stat_class c) {
    return st->kind[c] == XPL_VALUE_UINT || st->kind[c] == XPL_VALUE_INT ? st->u[c] : 0;
}
static inline bool stats_have(const struct scan_stats *st, uint32_t bits) {
    return (st->mask & bits) == bits;
}

// Reads the stats that have a class.  False when one is malformed.
bool xpl_grp_read_stats(const struct plan *plan, const struct xpl_raw_event *raw,
                        struct scan_stats *st);
// Whether the event says that it is asynchronous.
bool xpl_grp_is_async(const struct plan *plan, const struct xpl_raw_event *raw);
// Which classes there are.  False when a stat is malformed.
bool xpl_grp_stats_mask(const struct plan *plan, const struct xpl_raw_event *raw, uint32_t *ret);
// The same for an event written as events usually are, in one walk that also finds whether it is;
// false when it is not.
XPL_INLINE bool xpl_grp_quick_mask(const struct plan *plan, const struct xpl_raw_event *raw,
                                   uint32_t *ret) {
    const uint8_t *p = raw->stats, *const end = raw->end;
    uint32_t mask = 0;
    while (p != end) {
        struct xpl_fast_stat s;
        if (XPL_UNLIKELY(!xpl_fast_stat_head(p, end, XPL_TAG_FIELD4_LEN, &s)) ||
            XPL_UNLIKELY(s.id >= sizeof plan->by_id))
            return false;
        mask |= SC_BIT(plan->by_id[s.id]);
        p += s.len;
    }
    *ret = mask & ~SC_BIT(SC_NONE);
    return true;
}
// Stats that make a cursor read an event again when it comes by.
enum { SC_LINKED = SC_CONSUMER | SC_BIT(SC_CORRELATION) | SC_BIT(SC_IS_ASYNC) };

// Whether an event with such stats, of such a role, may be a consumer.
static inline bool xpl_grp_may_consume(uint32_t mask, uint32_t role) {
    return (mask & SC_CONSUMER) == SC_CONSUMER ||
           (role & (ROLE_QUEUE_OUT | ROLE_LAUNCHED | ROLE_TPU_EXECUTE));
}

// Whether an EagerExecute runs the ops inside it eagerly: unless it is that of a compiled function
// [EventNode::IsCompiledFunc].
bool xpl_grp_runs_eagerly(struct xpl_stats stats);

#endif
