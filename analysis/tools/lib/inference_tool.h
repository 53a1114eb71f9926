// SPDX-License-Identifier: Apache-2.0
// The requests of a tool's hosts, together.
#ifndef XPL_ANALYSIS_TOOLS_LIB_INFERENCE_TOOL_H_
#define XPL_ANALYSIS_TOOLS_LIB_INFERENCE_TOOL_H_

#include "analysis/inference/combine.h"
#include "analysis/tools/tool.h"

// need: which of the tool's products are the inference statistics.  *ret lives in `arena` and
// refers to the products.
xpl_status_t xpl_inference_of_hosts(const struct xpl_tool_input *in, size_t need,
                                    struct xpl_arena *arena, struct xpl_inferences **ret,
                                    struct xpl_error *err) XPL_NODISCARD;

#endif
