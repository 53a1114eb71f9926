// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/ireeperf/: writes the records of a bundle, whose lengths are known
// only when they end.
#ifndef XPL_ANALYSIS_IREEPROF_IREEPERF_RECORDS_H_
#define XPL_ANALYSIS_IREEPROF_IREEPERF_RECORDS_H_

#include "analysis/ireeprof/reader.h"
#include "base/buf.h"

struct xpl_ireeperf_head {
    uint64_t index;
    uint16_t type; // XPL_IREE_RECORD_...; 0: unknown
    enum xpl_iree_chunk chunk;
    xpl_str_t content_type; // of chunks and records of unknown types, as it stands in the row
    uint32_t device, queue;
    uint64_t stream_id, session_id, event_id, flags, dropped;
    uint32_t status;
};
struct xpl_ireeperf_records {
    struct xpl_buf *out;
    size_t at; // of the open record in `out`; 0: none is open
    size_t payload;
    struct xpl_ireeperf_head head; // of the open one
    uint64_t next, gaps; // index behind the largest so far; how many were made without rows
    uint64_t session_id; // of the session that began last
};

// Begins a record, or goes on with the open one when it is the same.
void xpl_ireeperf_record(struct xpl_ireeperf_records *w, const struct xpl_ireeperf_head *head);
// Ends the open record, if any.
void xpl_ireeperf_record_end(struct xpl_ireeperf_records *w);

#endif
