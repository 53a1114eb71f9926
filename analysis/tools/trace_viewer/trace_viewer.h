// SPDX-License-Identifier: Apache-2.0
// Tool trace_viewer: every event of one host as Chrome's trace format, for viewers that load it
// whole (XProf's trace_viewer_processor.cc, xla's convert/xplane_to_trace_events.cc, and
// trace_events_json.py of XProf's plugin, whose layout the text has).
#ifndef XPL_ANALYSIS_TOOLS_TRACE_VIEWER_TRACE_VIEWER_H_
#define XPL_ANALYSIS_TOOLS_TRACE_VIEWER_TRACE_VIEWER_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct xpl_xspace;
struct xpl_exec;
struct xpl_buf;

// Of more events than this only the earliest are shown.
#define XPL_TRACE_VIEWER_MAX_EVENTS UINT64_C(5000000)

// Appends the answer to `out`.  Uses at most `limit` bytes of further memory for each of its parts.
// RESOURCE_EXHAUSTED at a limit, DATA_LOSS for broken events, CANCELLED.
xpl_status_t xpl_trace_json_render(const struct xpl_xspace *xs, uint64_t max_events,
                                   struct xpl_exec *exec, size_t limit, struct xpl_buf *out,
                                   struct xpl_error *err) XPL_NODISCARD;

#endif
