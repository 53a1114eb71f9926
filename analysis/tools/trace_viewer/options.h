// SPDX-License-Identifier: Apache-2.0
// Options of trace_viewer@, also those of the one request that a trace_index may be made for.
#ifndef XPL_ANALYSIS_TOOLS_TRACE_VIEWER_OPTIONS_H_
#define XPL_ANALYSIS_TOOLS_TRACE_VIEWER_OPTIONS_H_

#include "analysis/tools/tool.h"
#include "analysis/trace/trace.h"

struct xpl_trace_viewer_options {
    struct xpl_common_options common;
    struct xpl_trace_options trace; // except `pb`, which follows from `format`
    int format;
};
enum { XPL_TRACE_FORMAT_JSON, XPL_TRACE_FORMAT_PB };

#endif
