// SPDX-License-Identifier: Apache-2.0
// Members of the rows of ireeperf-jsonl that are a record's, by chunk type, for who writes and who
// reads them.  A list with `split` is written in two: what stands between is no record's member.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_EXPORT_EXPORT_FIELDS_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_EXPORT_EXPORT_FIELDS_H_

#include <assert.h>

#include "analysis/ireeprof/fields.h"

struct xpl_iree_export_row {
    const char *record_type; // NULL: such chunks are no rows
    const struct xpl_iree_field *fields;
    size_t n, split; // 0: not split
    size_t last;     // that many of them stand behind everything else
};
extern const struct xpl_iree_export_row xpl_iree_export_rows[XPL_IREE_N_CHUNK_TYPES];

// Writes `n` members of the record of a chunk, from the one at `first` on.
static inline void xpl_iree_row_members(struct xpl_iree_rows *r, enum xpl_iree_chunk chunk,
                                        size_t first, size_t n, const void *record) {
    assert(first + n <= xpl_iree_export_rows[chunk].n);
    xpl_row_fields(r, xpl_iree_export_rows[chunk].fields + first, n, record);
}

#endif
