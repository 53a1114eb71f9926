// SPDX-License-Identifier: Apache-2.0
// Reads rows of ireeperf-jsonl (schema 15), as `export` and IREE's own tool write them, by making a
// bundle of them again: what reads bundles reads these, too.
//
// Rows of one source_record_index become one record of the bundle, in the order of the rows.  What
// the form lacks is lacking: names of sessions and of devices, code objects, the bytes of
// executable traces, to which of two sessions under way a chunk belongs.  Members that were
// computed for the row are not looked at.  A row that cannot be read is left out and noted.
#ifndef XPL_ANALYSIS_IREEPROF_IREEPERF_IREEPERF_H_
#define XPL_ANALYSIS_IREEPROF_IREEPERF_IREEPERF_H_

#include <stdbool.h>

#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

enum {
    XPL_IREEPERF_LINE_MAX = 64 << 20, // bytes of a row; longer ones are left out
    // Records without rows that are made where numbers of records are skipped, at most.  Behind
    // them records are numbered one after the other.
    XPL_IREEPERF_GAPS_MAX = 4096,
};

// Whether the bytes begin as such rows do.
bool xpl_ireeperf_sniff(xpl_bytes_t file);
// Whether the first row is the schema's: DATA_LOSS when there is none, FAILED_PRECONDITION for
// another version, in the words of IREE's renderer.
xpl_status_t xpl_ireeperf_check(xpl_bytes_t file, struct xpl_error *err) XPL_NODISCARD;
// Writes the bundle to `out`, which is empty, and incomplete once it failed.  As
// xpl_ireeperf_check; CANCELLED when `exec` (may be NULL) says so; RESOURCE_EXHAUSTED when
// out->failed.
xpl_status_t xpl_ireeperf_bundle(xpl_bytes_t file, struct xpl_exec *exec, struct xpl_buf *out,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
