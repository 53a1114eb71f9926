// SPDX-License-Identifier: Apache-2.0
// Memory in use, of the report usage and of the view of a bundle as an XSpace: event by event, for
// each device and kind of allocation.  What was opened before the capture is not counted, nor are
// allocations that failed.  Ids of allocations go on from one session to the next, or begin anew:
// an id that a later session opens while it is open is another one, and what had it stays open.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_USAGE_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_USAGE_H_

#include "analysis/ireeprof/reports/memory.h"

struct xpl_iree_usage_key {
    uint32_t physical_device_ordinal, kind; // enum xpl_iree_memory_kind
};
struct xpl_iree_usage {
    struct xpl_iree_usage_key key;
    uint64_t bytes, peak_bytes, opens, failed, failed_bytes;
    int64_t peak_ns; // iree_host_time_ns
};
struct xpl_iree_open_key {
    uint64_t allocation_id, pool_id;
    uint32_t physical_device_ordinal, kind;
    // 0, or, where a later session opened the id anew, which of those that stay open it is.
    uint64_t left;
};
struct xpl_iree_open {
    struct xpl_iree_open_key key;
    uint64_t bytes, event_id, session;
    int64_t since_ns;
};
struct xpl_iree_usages {
    struct xpl_iree_table rows;  // they begin with struct xpl_iree_usage
    struct xpl_iree_table opens; // struct xpl_iree_open
    uint64_t n_left;
};

// row_size: of struct xpl_iree_usage and what the caller keeps behind it.
void xpl_iree_usages_init(struct xpl_iree_usages *u, size_t row_size);
void xpl_iree_usages_fini(struct xpl_iree_usages *u);
// The usage that an event is of; *ret is NULL when it neither opens nor closes an allocation.
// False on OOM.
bool xpl_iree_usage_of(struct xpl_iree_usages *u, const struct xpl_iree_memory_event *e,
                       struct xpl_iree_usage **ret);
// Adds the event of a session to its usage; *ret_bytes are those that it opened (above 0) or
// closed.  False on OOM.
bool xpl_iree_usage_add(struct xpl_iree_usages *u, struct xpl_iree_usage *usage,
                        const struct xpl_iree_memory_event *e, uint32_t session,
                        int64_t *ret_bytes);

#endif
