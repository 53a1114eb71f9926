// SPDX-License-Identifier: Apache-2.0
// Tools whose answer is the bytes of a product of one host (XPL_RESIDENCY_NONE).
#ifndef XPL_ANALYSIS_TOOLS_LIB_PRODUCT_ANSWER_H_
#define XPL_ANALYSIS_TOOLS_LIB_PRODUCT_ANSWER_H_

#include "analysis/tools/tool.h"

// Such a tool's render: moves the bytes of its first need to `out`, which is empty.
xpl_status_t xpl_product_answer_render(const struct xpl_tool_input *in, struct xpl_buf *out,
                                       struct xpl_error *err) XPL_NODISCARD;

#endif
