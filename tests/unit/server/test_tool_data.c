// SPDX-License-Identifier: Apache-2.0
// ToolData by hand against protobuf-c: the same fields, with and without stages, warnings and data.
#include "server/grpc/tool_data.h"

#include <string.h>

#include "base/cleanup.h"
#include "proto/xplaned/v1/analysis.pb-c.h"
#include "rpc/message.h"
#include "tests/check.h"

static const char *const texts[] = {"", "{\"rows\": []}"};

static struct xpl_rpc_blob *blob_of(const char *text) {
    struct xpl_rpc_blob *const b =
        xpl_rpc_blob_copy((xpl_bytes_t){(const uint8_t *)text, strlen(text)});
    CHECK(b);
    return b;
}

// The message that a client reads: head, length, data.
static Xplaned__V1__ToolData *decode(const struct xpl_tool_data *a, const uint64_t *stage_us,
                                     enum xpl_answer_source source, struct xpl_arena *arena) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 16);
    const xpl_bytes_t data = xpl_rpc_blob_get(a->blob);
    xpl_svc_put_tool_data_head(&b, a, source, stage_us);
    xpl_svc_put_tool_data_len(&b, data.len);
    xpl_buf_put(&b, data.ptr, data.len);
    CHECK(!b.failed);
    ProtobufCMessage *m = NULL;
    uint8_t *const copy = xpl_arena_alloc(arena, b.n);
    CHECK(copy);
    memcpy(copy, b.p, b.n);
    CHECK_EQ(xpl_rpc_message_unpack(&xplaned__v1__tool_data__descriptor, (xpl_bytes_t){copy, b.n},
                                    arena, &m, NULL),
             XPL_OK);
    return (Xplaned__V1__ToolData *)m;
}

static void check_fields(const char *text, const uint64_t *stage_us, size_t n_stages,
                         enum xpl_answer_source source) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    const struct xpl_warning warnings[] = {{XPL_STR("vm"), XPL_STR("broken")},
                                           {XPL_STR(""), XPL_STR("\xc3\xa9, dropped")}};
    struct xpl_tool_data a = {.content_type = "application/json",
                              .blob = blob_of(text),
                              .warnings = warnings,
                              .n_warnings = n_stages % 3};
    const Xplaned__V1__ToolData *const m = decode(&a, stage_us, source, &arena);
    CHECK(strcmp(m->content_type, "application/json") == 0);
    CHECK_EQ(m->source, source);
    CHECK_EQ(m->total_bytes, strlen(text));
    CHECK_EQ(m->data.len, strlen(text));
    CHECK(!m->data.len || memcmp(m->data.data, text, m->data.len) == 0);
    CHECK_EQ(m->n_warnings, a.n_warnings);
    for (size_t i = 0; i < a.n_warnings; i++) {
        CHECK(xpl_str_eq(xpl_str_from(m->warnings[i]->host), warnings[i].host));
        CHECK(xpl_str_eq(xpl_str_from(m->warnings[i]->text), warnings[i].text));
    }
    CHECK_EQ(m->n_stages, n_stages);
    for (size_t i = 0, k = 0; stage_us && i < XPL_N_STAGES; i++) {
        if (!stage_us[i]) continue; // left out
        CHECK(strcmp(m->stages[k]->name, xpl_stage_names[i]) == 0);
        CHECK_EQ(m->stages[k]->micros, stage_us[i]);
        k++;
    }
    xpl_rpc_blob_unref(a.blob);
}

// A buffer that is too small says so, and nothing else happens.
static void check_limit(void) {
    struct xpl_tool_data a = {.content_type = "application/json", .blob = blob_of("x")};
    for (size_t max = 0; max < 20; max++) {
        XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(max);
        xpl_svc_put_tool_data_head(&b, &a, XPL_COMPUTED, NULL);
        CHECK(b.failed && b.n <= max);
    }
    xpl_rpc_blob_unref(a.blob);
}

int main(void) {
    uint64_t one[XPL_N_STAGES] = {0}, all[XPL_N_STAGES];
    one[XPL_STAGE_CONVERT] = 300;
    for (size_t i = 0; i < XPL_N_STAGES; i++)
        all[i] = ((uint64_t)1 << 40) + i;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_fields(texts[i], NULL, 0, XPL_FROM_MEMORY);
        check_fields(texts[i], one, 1, XPL_FROM_STORE);
        check_fields(texts[i], all, XPL_N_STAGES, XPL_COMPUTED);
    }
    check_limit();
    return 0;
}
