// ToolData (proto/xplaned/v1/analysis.proto) as bytes: the one place that knows its field numbers.
// Written by hand, because the data, which are shared and large, follow the rest without a copy.
#ifndef XPL_SERVER_GRPC_TOOL_DATA_H_
#define XPL_SERVER_GRPC_TOOL_DATA_H_

#include "server/engine/answers.h"

enum { XPL_TOOL_DATA_FIELD_DATA = 15 }; // for replies in chunks

// Appends all fields but the data.  `stage_us` has XPL_N_STAGES entries; NULL: none.
void xpl_tool_data_put_fields(struct xpl_buf *b, const struct xpl_tool_data *a,
                              enum xpl_answer_source source, const uint64_t *stage_us);
// Appends tag and length of the data, unless they are empty.
void xpl_tool_data_put_data_tag(struct xpl_buf *b, const struct xpl_tool_data *a);
// The head of a reply from memory (xpl_tool_data_head_fn): both of the above.
void xpl_tool_data_put_head(const struct xpl_tool_data *a, struct xpl_buf *head);

#endif
