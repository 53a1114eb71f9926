// SPDX-License-Identifier: Apache-2.0
// The tools, one line each, by name: XPL_TOOL_ROW(id) stands for xpl_tool_id in id.c of this
// folder.  Included by tool.c, which defines the macros, and read by meson.build.
// XPL_IREE_TOOL_ROW(name) stands for xpl_tool_iree_name in iree.c.
#ifndef XPL_TOOL_ROW
#define XPL_TOOL_ROW(id)
#define XPL_HIDDEN_TOOL_ROW(id)
#define XPL_IREE_TOOL_ROW(name)
#endif
XPL_TOOL_ROW(framework_op_stats)
XPL_TOOL_ROW(hlo_stats)
XPL_TOOL_ROW(input_pipeline_analyzer)
XPL_IREE_TOOL_ROW(att)
XPL_IREE_TOOL_ROW(cat)
XPL_IREE_TOOL_ROW(command)
XPL_IREE_TOOL_ROW(counter)
XPL_IREE_TOOL_ROW(dispatch)
XPL_IREE_TOOL_ROW(executable)
XPL_IREE_TOOL_ROW(explain)
XPL_IREE_TOOL_ROW(export)
XPL_IREE_TOOL_ROW(functions)
XPL_IREE_TOOL_ROW(latency)
XPL_IREE_TOOL_ROW(memory)
XPL_IREE_TOOL_ROW(queue)
XPL_IREE_TOOL_ROW(sessions)
XPL_IREE_TOOL_ROW(statistics)
XPL_IREE_TOOL_ROW(summary)
XPL_IREE_TOOL_ROW(usage)
XPL_TOOL_ROW(kernel_stats)
XPL_TOOL_ROW(memory_profile)
XPL_TOOL_ROW(op_profile)
XPL_TOOL_ROW(overview_page)
XPL_TOOL_ROW(pod_viewer)
XPL_TOOL_ROW(roofline_model)
XPL_TOOL_ROW(trace_sums)
XPL_TOOL_ROW(trace_viewer)
XPL_TOOL_ROW(trace_viewer_streaming)
// Those that no client asks for by name.
XPL_HIDDEN_TOOL_ROW(op_stats)
