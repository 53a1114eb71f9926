#include "server/grpc/tool_data.h"

#include "base/cleanup.h"
#include "rpc/message.h"

// OpStatsData has the same.
enum {
    FIELD_CONTENT_TYPE = 1,
    FIELD_STAGES = 2,
    FIELD_SOURCE = 3,
    FIELD_WARNINGS = 4,
    FIELD_TOTAL = 5,
    STAGE_NAME = 1,
    STAGE_MICROS = 2,
    WARNING_HOST = 1,
    WARNING_TEXT = 2
};

static void put_message(struct xpl_buf *b, uint32_t field, const struct xpl_buf *message) {
    xpl_rpc_put_len(b, field, message->n);
    xpl_buf_put(b, message->p, message->n);
    if (message->failed) b->failed = true;
}

static void put_stage(struct xpl_buf *b, int stage, uint64_t us) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf one;
    xpl_buf_init(&one, 256);
    xpl_rpc_put_text(&one, STAGE_NAME, xpl_str_from(xpl_stage_names[stage]));
    xpl_rpc_put_uint(&one, STAGE_MICROS, us);
    put_message(b, FIELD_STAGES, &one);
}

static void put_warning(struct xpl_buf *b, const struct xpl_warning *w) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf one;
    xpl_buf_init(&one, (size_t)1 << 20);
    xpl_rpc_put_text(&one, WARNING_HOST, w->host);
    xpl_rpc_put_text(&one, WARNING_TEXT, w->text);
    put_message(b, FIELD_WARNINGS, &one);
}

void xpl_tool_data_put_fields(struct xpl_buf *b, const struct xpl_tool_data *a,
                              enum xpl_answer_source source, const uint64_t *stage_us) {
    xpl_rpc_put_text(b, FIELD_CONTENT_TYPE, xpl_str_from(a->content_type));
    for (int i = 0; stage_us && i < XPL_N_STAGES; i++)
        if (stage_us[i]) put_stage(b, i, stage_us[i]);
    xpl_rpc_put_uint(b, FIELD_SOURCE, source);
    for (size_t i = 0; i < a->n_warnings; i++)
        put_warning(b, &a->warnings[i]);
    xpl_rpc_put_uint(b, FIELD_TOTAL, xpl_rpc_blob_get(a->blob).len);
}

void xpl_tool_data_put_data_tag(struct xpl_buf *b, const struct xpl_tool_data *a) {
    const size_t len = xpl_rpc_blob_get(a->blob).len;
    if (len) xpl_rpc_put_len(b, XPL_TOOL_DATA_FIELD_DATA, len);
}

void xpl_tool_data_put_head(const struct xpl_tool_data *a, struct xpl_buf *head) {
    xpl_tool_data_put_fields(head, a, XPL_FROM_MEMORY, NULL);
    xpl_tool_data_put_data_tag(head, a);
}
