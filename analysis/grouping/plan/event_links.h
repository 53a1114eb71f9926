// SPDX-License-Identifier: Apache-2.0
// Links of an event to events of other lines: its products and inputs, after the rewriting that
// XProf's PreprocessXPlane does (xla/tsl/profiler/utils/preprocess_xplane.{h,cc}).
#ifndef XPL_ANALYSIS_GROUPING_PLAN_EVENT_LINKS_H_
#define XPL_ANALYSIS_GROUPING_PLAN_EVENT_LINKS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/plan/event_stats.h"
#include "analysis/grouping/plan/plan.h"

struct event_links {
    bool producer, consumer;
    uint64_t producer_key, consumer_key;
};
// Links of an event after the rewriting that upstream's PreprocessXPlane does.
void xpl_grp_event_links(const struct plan *plan, const struct xpl_line *line,
                         const struct scan_stats *st, uint32_t role, struct event_links *ret);
// The same before keys are made of them: flows are drawn from these.
struct event_ends {
    bool produces, consumes;
    uint32_t producer_type, consumer_type; // as written, known or not
    uint64_t producer_id, consumer_id;
};
void xpl_grp_event_ends(const struct plan *plan, const struct xpl_line *line,
                        const struct scan_stats *st, uint32_t role, struct event_ends *ret);
// Key of an executor's step and iteration.
uint64_t xpl_grp_executor_key(uint64_t step, uint64_t iteration);
// Key of a join that has only that node as its child.
uint64_t xpl_grp_pair_key(uint32_t node);

#endif
