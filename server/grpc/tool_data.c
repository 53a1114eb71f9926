// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/tool_data.h"

#include "base/cleanup.h"
#include "rpc/message.h"

enum { CONTENT_TYPE = 1, STAGES = 2, SOURCE = 3, WARNINGS = 4, TOTAL_BYTES = 5, DATA = 15 };
enum { STAGE_NAME = 1, STAGE_MICROS = 2 };
enum { WARNING_HOST = 1, WARNING_TEXT = 2 };
enum { CHUNK = 256 << 10 }; // of a stream's data

// Appends a message as `field`.
static void put_message(struct xpl_buf *b, uint32_t field, const struct xpl_buf *message) {
    b->failed = b->failed || message->failed;
    xpl_rpc_put_len(b, field, message->n);
    xpl_buf_put(b, message->p, message->n);
}

static void put_warnings(struct xpl_buf *b, const struct xpl_tool_data *a) {
    for (size_t i = 0; i < a->n_warnings; i++) {
        XPL_AUTO(xpl_buf_fini) struct xpl_buf one = xpl_buf_of(b->max);
        xpl_rpc_put_text(&one, WARNING_HOST, a->warnings[i].host);
        xpl_rpc_put_text(&one, WARNING_TEXT, a->warnings[i].text);
        put_message(b, WARNINGS, &one);
    }
}

static void put_stages(struct xpl_buf *b, const uint64_t *stage_us) {
    for (int i = 0; i < XPL_N_STAGES; i++) {
        if (!stage_us[i]) continue;
        XPL_AUTO(xpl_buf_fini) struct xpl_buf one = xpl_buf_of(256);
        xpl_rpc_put_text(&one, STAGE_NAME, xpl_str_from(xpl_stage_names[i]));
        xpl_rpc_put_uint(&one, STAGE_MICROS, stage_us[i]);
        put_message(b, STAGES, &one);
    }
}

void xpl_svc_put_tool_data_head(struct xpl_buf *b, const struct xpl_tool_data *a,
                                enum xpl_answer_source source, const uint64_t *stage_us) {
    xpl_rpc_put_text(b, CONTENT_TYPE, xpl_str_from(a->content_type));
    if (stage_us) put_stages(b, stage_us);
    xpl_rpc_put_uint(b, SOURCE, source);
    put_warnings(b, a);
    xpl_rpc_put_uint(b, TOTAL_BYTES, xpl_rpc_blob_get(a->blob).len);
}

void xpl_svc_put_tool_data_len(struct xpl_buf *b, size_t len) {
    if (len) xpl_rpc_put_len(b, DATA, len);
}

xpl_status_t xpl_svc_send_tool_data(struct xpl_rpc_call *c, xpl_bytes_t head,
                                    struct xpl_rpc_blob *data) {
    return xpl_rpc_send_chunks(c, head, DATA, data, CHUNK);
}
