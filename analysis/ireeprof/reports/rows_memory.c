// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/reports/rows_memory.h"

#include "analysis/ireeprof/fields.h"

void xpl_iree_put_memory_event(struct xpl_iree_rows *r, const struct xpl_iree_memory_event *e) {
    static const struct xpl_iree_field fields[] = {
        XPL_F(U64, memory_event, event_id),
        XPL_F_NAME(memory_event, type, "event_type", MEMORY),
        XPL_F_AS(U32, memory_event, type, "event_type_value"),
        XPL_F(U32, memory_event, flags),
        XPL_F(U32, memory_event, result),
        XPL_F(I64, memory_event, host_time_ns),
        XPL_F(U64, memory_event, allocation_id),
        XPL_F_CONST("host_time_domain", "iree_host_time_ns"),
        XPL_F(U64, memory_event, pool_id),
        XPL_F(U64, memory_event, backing_id),
        XPL_F(U64, memory_event, submission_id),
        XPL_F(U32, memory_event, physical_device_ordinal),
        XPL_F(U32, memory_event, queue_ordinal),
        XPL_F(U32, memory_event, frontier_entry_count),
        XPL_F(U64, memory_event, memory_type),
        XPL_F(U64, memory_event, buffer_usage),
        XPL_F(U64, memory_event, offset),
        XPL_F(U64, memory_event, length),
        XPL_F(U64, memory_event, alignment),
        XPL_F_BIT(memory_event, "externally_owned", XPL_IREE_MEMORY_EXTERNAL),
        XPL_F_BIT(memory_event, "pool_stats_available", XPL_IREE_MEMORY_POOL_STATS),
        XPL_F(U64, memory_event, pool_bytes_reserved),
        XPL_F(U64, memory_event, pool_bytes_free),
        XPL_F(U64, memory_event, pool_bytes_committed),
        XPL_F(U64, memory_event, pool_budget_limit),
        XPL_F(U32, memory_event, pool_reservation_count),
        XPL_F(U32, memory_event, pool_slab_count)};
    XPL_ROW_FIELDS(r, fields, e);
}
