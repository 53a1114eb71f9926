// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/reports/: what the reports summary and explain count.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_SUMMARY_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_SUMMARY_H_

#include "analysis/ireeprof/clock.h"
#include "analysis/ireeprof/reader.h"
#include "analysis/ireeprof/reports/report.h"
#include "analysis/ireeprof/table.h"

struct xpl_iree_summary_device {
    uint64_t physical_device_ordinal; // the key
    uint32_t device_records, queue_records, queues;
    struct xpl_iree_clock clock;
    uint64_t dispatches, valid;
    uint64_t min_ticks, max_ticks, total_ticks, earliest_tick, latest_tick;
    uint64_t metric_samples, metric_values, invalid_metric_samples;
};

struct xpl_iree_summary {
    uint64_t records, begins, chunks, ends, unknown_records;
    uint64_t bad_ends; // with a status that is not OK; the first of them:
    struct xpl_iree_record first_bad_end;
    uint64_t chunks_of[XPL_IREE_N_CHUNK_TYPES], records_of[XPL_IREE_N_CHUNK_TYPES];
    uint64_t unknown_chunks, truncated_chunks, dropped_records;
    uint64_t code_object_bytes, trace_bytes;
    uint64_t invalid_host, host_ns, invalid_regions, region_ns;
    uint64_t metric_values, invalid_metric_samples;
    struct xpl_iree_table devices; // struct xpl_iree_summary_device
};

void xpl_iree_summary_init(struct xpl_iree_summary *s);
void xpl_iree_summary_fini(struct xpl_iree_summary *s);
// RESOURCE_EXHAUSTED on OOM.
xpl_status_t xpl_iree_summary_add(struct xpl_iree_summary *s, const struct xpl_iree_record *r,
                                  struct xpl_error *err) XPL_NODISCARD;
// The members about sessions that did not end well; none when all did.
void xpl_iree_row_bad_end(struct xpl_iree_rows *rows, const struct xpl_iree_summary *s);

#endif
