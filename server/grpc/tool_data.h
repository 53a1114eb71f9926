// SPDX-License-Identifier: Apache-2.0
// ToolData of xplaned.v1 as bytes.  Its field numbers, which OpStatsData shares, stand in
// tool_data.c alone.  Any thread.
#ifndef XPL_SERVER_GRPC_TOOL_DATA_H_
#define XPL_SERVER_GRPC_TOOL_DATA_H_

#include "base/buf.h"
#include "rpc/call.h"
#include "server/engine/engine.h"

// Appends all fields of an answer but its data.  `stage_us`: XPL_N_STAGES times, or NULL for none.
void xpl_svc_put_tool_data_head(struct xpl_buf *b, const struct xpl_tool_data *a,
                                enum xpl_answer_source source, const uint64_t *stage_us);
// Appends what stands before the bytes of `data`, of which there are `len` (0: nothing): they
// follow, or are sent as they lie.
void xpl_svc_put_tool_data_len(struct xpl_buf *b, size_t len);
// Sends the head, and the data in pieces, as the messages of a stream.
xpl_status_t xpl_svc_send_tool_data(struct xpl_rpc_call *c, xpl_bytes_t head,
                                    struct xpl_rpc_blob *data);

#endif
