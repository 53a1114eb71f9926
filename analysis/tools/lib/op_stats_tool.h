// SPDX-License-Identifier: Apache-2.0
// What the tools that show OpStats have in common: their hosts' OpStats are combined, and the tool
// writes its answer from the combination.
#ifndef XPL_ANALYSIS_TOOLS_LIB_OP_STATS_TOOL_H_
#define XPL_ANALYSIS_TOOLS_LIB_OP_STATS_TOOL_H_

#include "analysis/opstats/opstats.h"
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"

// Appends the tool's answer.  `options` is its option struct, `scratch` is for temporaries.
typedef xpl_status_t xpl_op_stats_fn(const struct xpl_opstats *stats, const void *options,
                                     struct xpl_arena *scratch, struct xpl_buf *out,
                                     struct xpl_error *err);

// Combines the OpStats that are the hosts' products at `product` of the tool's needs, as the
// options say; *ret is the arena's.
xpl_status_t xpl_op_stats_combine(const struct xpl_tool_input *in, size_t product,
                                  struct xpl_arena *arena, struct xpl_opstats **ret,
                                  struct xpl_error *err) XPL_NODISCARD;

// A tool's render: combines the hosts' OpStats, then calls `write`.
xpl_status_t xpl_op_stats_render(const struct xpl_tool_input *in, xpl_op_stats_fn *write,
                                 struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

// Members of such a tool's row.
extern const struct xpl_product *const xpl_op_stats_needs[];
unsigned xpl_op_stats_variant(const void *options, size_t i, bool session_has_device);

#endif
