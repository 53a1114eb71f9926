// SPDX-License-Identifier: Apache-2.0
// Flows: arrows from an event to those that it caused, on other lines, planes or processes.
// Upstream's AddFlowsToXplane (xla tsl/profiler/utils/xplane_utils.cc) writes them as stats "flow".
#ifndef XPL_ANALYSIS_GROUPING_FLOWS_H_
#define XPL_ANALYSIS_GROUPING_FLOWS_H_

#include "analysis/grouping/groups.h"

enum xpl_flow_direction { XPL_FLOW_NONE, XPL_FLOW_IN, XPL_FLOW_OUT, XPL_FLOW_INOUT };

struct xpl_flow {
    uint64_t id;       // 56 bits; equal ids are one flow.  Salted by the host's name
    uint8_t direction; // enum xpl_flow_direction
    uint8_t category;  // enum xpl_context_type; GENERIC for unknown ones
    bool of_kernel;    // by correlation id, not by producer and consumer
};
// Direction (2 bits), category (6) and id (56) in one number.
static inline uint64_t xpl_flow_value(const struct xpl_flow *f) {
    return (uint64_t)(f->direction & 3) | (uint64_t)(f->category & 63) << 2 | f->id << 8;
}
// The value of upstream's stat "flow", which has them in another order (XFlow::ToStatValue).
static inline uint64_t xpl_flow_stat(const struct xpl_flow *f) {
    return (uint64_t)(f->direction & 3) | f->id << 2 | (uint64_t)f->category << 58;
}
enum { XPL_MAX_FLOWS = 3 };

// Reads flows of the events of one line.  A small value; any thread.
struct xpl_flow_reader {
    const struct xpl_groups *groups;
    const struct xpl_line *line;
    uint64_t salt;
    bool any;    // false: no event of the line can have flows
    bool device; // of a device plane: launches arrive here
};
// Of all flows of a space; private to grouping.
uint64_t xpl_grp_flow_salt(const struct xpl_xspace *xs);
void xpl_flow_reader_init(struct xpl_flow_reader *r, const struct xpl_groups *g,
                          const struct xpl_line *line);
// Flows of an event of that line; returns how many.
unsigned xpl_flows_of_event(const struct xpl_flow_reader *r, const struct xpl_event *ev,
                            struct xpl_flow ret[XPL_MAX_FLOWS]);

#endif
