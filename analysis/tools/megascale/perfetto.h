// SPDX-License-Identifier: Apache-2.0
// The trace for Perfetto of megascale_stats: steps, modules, ops and marks of each TPU of a host,
// MegaScale's work for it, arrows between the two, and counters of the network.  Rule: XProf's, by
// tests/parity/megascale_perfetto.py.
#ifndef XPL_ANALYSIS_TOOLS_MEGASCALE_PERFETTO_H_
#define XPL_ANALYSIS_TOOLS_MEGASCALE_PERFETTO_H_

#include <stdbool.h>

#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_megascale_perfetto_options {
    bool group_tiny; // neighbours of less than a nanosecond become one event
    bool exact;      // as XProf: a recv-done is joined with nothing
};

// Appends perfetto.protos.Trace, compressed with gzip.  Memory up to `limit` bytes.  DATA_LOSS,
// RESOURCE_EXHAUSTED, CANCELLED.
xpl_status_t xpl_megascale_perfetto(xpl_bytes_t profile,
                                    const struct xpl_megascale_perfetto_options *options,
                                    struct xpl_exec *exec, size_t limit, struct xpl_buf *out,
                                    struct xpl_error *err) XPL_NODISCARD;

#endif
