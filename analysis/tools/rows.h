// SPDX-License-Identifier: Apache-2.0
// The tools, one line each, by name: XPL_TOOL_ROW(id) stands for xpl_tool_id in id.c of this
// folder.  Included by tool.c, which defines the macros, and read by meson.build.
#ifndef XPL_TOOL_ROW
#define XPL_TOOL_ROW(id)
#define XPL_HIDDEN_TOOL_ROW(id)
#endif
XPL_TOOL_ROW(framework_op_stats)
XPL_TOOL_ROW(input_pipeline_analyzer)
XPL_TOOL_ROW(kernel_stats)
XPL_TOOL_ROW(memory_profile)
XPL_TOOL_ROW(op_profile)
XPL_TOOL_ROW(overview_page)
XPL_TOOL_ROW(trace_viewer)
XPL_TOOL_ROW(trace_viewer_streaming)
// Those that no client asks for by name.
XPL_HIDDEN_TOOL_ROW(op_stats)
