// SPDX-License-Identifier: Apache-2.0
// Options of trace_viewer@: which event, search or window an answer shows, and in which form.
// Rules and names: XProf's convert/trace_view_options.cc.
#ifndef XPL_ANALYSIS_TRACE_OPTIONS_H_
#define XPL_ANALYSIS_TRACE_OPTIONS_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

// With event_name: that event with its arguments.  Else with search_prefix: all events whose names
// begin with it.  Else the window at the resolution.
struct xpl_trace_options {
    uint64_t resolution;               // distinguishable events per row; 0: no limit
    double start_time_ms, end_time_ms; // the window; an end of 0 is the end of the trace
    double duration_ms;                // of the event event_name
    uint64_t unique_id;                // of the event event_name
    xpl_str_t event_name, search_prefix;
    bool search_metadata, full_dma, mpmd_pipeline_view;
    bool pb; // the answer is a TraceDataResponse, compressed with zstd, instead of JSON
};
// The window of the whole trace at the resolution of XProf's page.
static inline void xpl_trace_options_init(struct xpl_trace_options *o) {
    *o = (struct xpl_trace_options){.resolution = 8000};
}

#endif
