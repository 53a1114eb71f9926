// SPDX-License-Identifier: Apache-2.0
// The parts of rpc/ that need no server: scanning and decoding requests, statuses, reflection.
#include <grpc/grpc.h>

#include "proto/google/rpc/error_details.pb-c.h"
#include "proto/google/rpc/status.pb-c.h"
#include "proto/grpc/reflection/v1/reflection.pb-c.h"
#include "proto/xplaned/v1/analysis.pb-c.h"
#include "proto/xplaned/v1/server.pb-c.h"
#include "rpc/message.h"
#include "tests/server/rpc_fixture.h"

#define REQUEST (&xplaned__v1__get_tool_data_request__descriptor)

static xpl_str_t text(const struct xpl_buf *b) {
    return (xpl_str_t){(const char *)b->p, b->n};
}
static xpl_bytes_t bytes(const struct xpl_buf *b) {
    return (xpl_bytes_t){b->p, b->n};
}
static xpl_status_t scan(const char *p, size_t n) {
    // An exact block, so that a sanitizer sees one byte too many.
    uint8_t *const copy = malloc(n ? n : 1);
    CHECK(copy);
    memcpy(copy, p, n);
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_rpc_message_scan(REQUEST, (xpl_bytes_t){copy, n}, &err);
    free(copy);
    return st;
}

static void test_status_text(void) {
    char buf[8];
    CHECK_EQ(xpl_rpc_status_text(buf, sizeof buf, XPL_STR("abc")), 3);
    CHECK_STR(buf, "abc");
    CHECK_EQ(xpl_rpc_status_text(buf, sizeof buf, XPL_STR("abcdef\xc3\xa4")),
             6); // never half of it
    CHECK_EQ(xpl_rpc_status_text(buf, sizeof buf, XPL_STR("abcde\xc3\xa4")), 7);
    CHECK_EQ(xpl_rpc_status_text(buf, sizeof buf, XPL_STR("a\0b\xff")), 4);
    CHECK_STR(buf, "a?b?");
    CHECK_EQ(xpl_rpc_status_text(buf, 1, XPL_STR("abc")), 0);
}

// A request as an array of wire pieces.
static void make_request(struct xpl_buf *b) {
    xpl_buf_init(b, 1 << 20);
    xpl_rpc_put_text(b, 1, XPL_STR("run"));
    xpl_rpc_put_text(b, 2, XPL_STR("host_a"));
    xpl_rpc_put_text(b, 2, XPL_STR("host_b"));
    xpl_rpc_put_text(b, 3, XPL_STR("op_profile"));
    xpl_rpc_put_text(b, 4, XPL_STR("\n\3key\22\5value"));
    xpl_rpc_put_uint(b, 5, 1);
    CHECK(!b->failed);
}

static void test_unpack(void) {
    struct xpl_buf b;
    struct xpl_arena a;
    struct xpl_error err = {0};
    ProtobufCMessage *m = NULL;
    make_request(&b);
    xpl_arena_init(&a, 1 << 20);
    CHECK_OK(xpl_rpc_message_unpack(REQUEST, bytes(&b), &a, &m, &err), &err);
    const Xplaned__V1__GetToolDataRequest *const q = (void *)m;
    CHECK_STR(q->session, "run");
    CHECK_STR(q->tool, "op_profile");
    CHECK_EQ(q->n_hosts, 2);
    CHECK_STR(q->hosts[1], "host_b");
    CHECK_EQ(q->n_options, 1);
    CHECK_STR(q->options[0]->value, "value");
    CHECK(q->allow_large);
    struct xpl_buf again;
    xpl_buf_init(&again, 1 << 20);
    xpl_rpc_message_put(&again, m);
    CHECK_STR(text(&b), text(&again));
    xpl_buf_fini(&again);
    xpl_arena_fini(&a);
    // Every prefix is either sound or refused, never half taken.
    for (size_t n = 0; n < b.n; n++) {
        xpl_arena_init(&a, 1 << 20);
        const xpl_status_t st = scan((const char *)b.p, n);
        m = NULL;
        CHECK_EQ(xpl_rpc_message_unpack(REQUEST, (xpl_bytes_t){b.p, n}, &a, &m, NULL), st);
        CHECK_EQ(st == XPL_OK, m != NULL);
        xpl_arena_fini(&a);
    }
    // Memory runs out at any point.
    for (size_t limit = 0; limit < 8192; limit += 16) {
        xpl_arena_init(&a, limit);
        m = NULL;
        const xpl_status_t st = xpl_rpc_message_unpack(REQUEST, bytes(&b), &a, &m, NULL);
        CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
        xpl_arena_fini(&a);
    }
    xpl_buf_fini(&b);
}

static void test_scan(void) {
    CHECK_OK(scan("", 0), NULL);
    CHECK_OK(scan("\n\3run", 5), NULL);
    CHECK_STATUS(scan("\n\4run", 5), XPL_INVALID_ARGUMENT, NULL);  // longer than the message
    CHECK_STATUS(scan("\n\3r\0n", 5), XPL_INVALID_ARGUMENT, NULL); // protobuf-c would cut it
    CHECK_STATUS(scan("\n\3r\xffn", 5), XPL_INVALID_ARGUMENT, NULL);
    CHECK_OK(scan("\x7a\3r\xffn", 5), NULL);                   // an unknown field may hold anything
    CHECK_STATUS(scan("\0\1", 2), XPL_INVALID_ARGUMENT, NULL); // field 0
    CHECK_STATUS(scan("\x0b\x0c", 2), XPL_INVALID_ARGUMENT, NULL); // a group
    CHECK_STATUS(scan("\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\1x", 12), XPL_INVALID_ARGUMENT, NULL);
    CHECK_STATUS(scan("(\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 12), XPL_INVALID_ARGUMENT,
                 NULL);
    CHECK_STATUS(scan("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1x", 11), XPL_INVALID_ARGUMENT, NULL);
    CHECK_STATUS(scan("\x22\4\n\2k\xff", 6), XPL_INVALID_ARGUMENT, NULL); // text inside a map entry
    struct xpl_buf b;
    xpl_buf_init(&b, 4 << 20);
    for (int i = 0; i <= XPL_RPC_MAX_ELEMENTS; i++)
        xpl_rpc_put_len(&b, 2, 0);
    CHECK_STATUS(scan((char *)b.p, b.n), XPL_RESOURCE_EXHAUSTED, NULL);
    CHECK_OK(scan((char *)b.p, b.n - 2), NULL);
    xpl_buf_fini(&b);
}

// A message type that contains itself, as a schema might one day.
static const ProtobufCMessageDescriptor deep;
static const ProtobufCFieldDescriptor deep_field = {.name = "in",
                                                    .id = 1,
                                                    .label = PROTOBUF_C_LABEL_NONE,
                                                    .type = PROTOBUF_C_TYPE_MESSAGE,
                                                    .descriptor = &deep};
static const ProtobufCIntRange deep_ranges[2] = {{1, 0}, {0, 1}};
static const ProtobufCMessageDescriptor deep = {.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                                .name = "deep",
                                                .n_fields = 1,
                                                .fields = &deep_field,
                                                .n_field_ranges = 1,
                                                .field_ranges = deep_ranges};

static void test_nesting(void) {
    uint8_t bomb[2 * 60];
    for (size_t levels = 1; levels <= 60; levels++) {
        for (size_t i = 0; i < levels; i++) {
            bomb[2 * i] = 1 << 3 | 2;
            bomb[2 * i + 1] = (uint8_t)(2 * (levels - i - 1));
        }
        const xpl_status_t expected = levels < XPL_RPC_MAX_DEPTH ? XPL_OK : XPL_INVALID_ARGUMENT;
        CHECK_EQ(xpl_rpc_message_scan(&deep, (xpl_bytes_t){bomb, 2 * levels}, NULL), expected);
    }
}

// What we encode by hand, protobuf-c reads back.
static void test_status(void) {
    const xpl_str_t pairs[2][2] = {{XPL_STR("file"), XPL_STR("a.xplane.pb")},
                                   {XPL_STR("offset"), XPL_STR("\xff\x01")}};
    const struct xpl_rpc_failure f = {.code = XPL_DATA_LOSS,
                                      .message = XPL_STR("br\xc3oken"),
                                      .retry_ms = 61500,
                                      .reason = "BROKEN_FILE",
                                      .n_metadata = 2,
                                      .metadata = pairs};
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 20);
    xpl_rpc_status_encode(&b, &f);
    CHECK(!b.failed);
    Google__Rpc__Status *const s = google__rpc__status__unpack(NULL, b.n, b.p);
    CHECK(s);
    CHECK_EQ(s->code, 15);
    CHECK_STR(s->message, "br?oken");
    CHECK_EQ(s->n_details, 2);
    CHECK_STR(s->details[0]->type_url, "type.googleapis.com/google.rpc.ErrorInfo");
    Google__Rpc__ErrorInfo *const i =
        google__rpc__error_info__unpack(NULL, s->details[0]->value.len, s->details[0]->value.data);
    CHECK(i);
    CHECK_STR(i->reason, "BROKEN_FILE");
    CHECK_STR(i->domain, "xplaned");
    CHECK_EQ(i->n_metadata, 2);
    CHECK_STR(i->metadata[0]->value, "a.xplane.pb");
    CHECK_STR(i->metadata[1]->value, "?\x01");
    Google__Rpc__RetryInfo *const r =
        google__rpc__retry_info__unpack(NULL, s->details[1]->value.len, s->details[1]->value.data);
    CHECK(r);
    CHECK_EQ(r->retry_delay->seconds, 61);
    CHECK_EQ(r->retry_delay->nanos, 500000000);
    google__rpc__retry_info__free_unpacked(r, NULL);
    google__rpc__error_info__free_unpacked(i, NULL);
    google__rpc__status__free_unpacked(s, NULL);
    struct xpl_rpc_details d;
    CHECK(xpl_rpc_status_decode(bytes(&b), &d));
    CHECK_EQ(d.retry_ms, 61500);
    CHECK_STR(d.reason, "BROKEN_FILE");
    for (size_t n = 0; n < b.n; n++)
        (void)xpl_rpc_status_decode((xpl_bytes_t){b.p, n}, &d);
    CHECK(!xpl_rpc_status_decode((xpl_bytes_t){b.p, b.n - 1}, &d));
    xpl_buf_fini(&b);
}

// However long the parts, the status stays below what clients accept.
static void test_long_status(void) {
    static char much[100000];
    memset(much, '%', sizeof much);
    const xpl_str_t m = {much, sizeof much};
    const xpl_str_t pairs[9][2] = {{m, m}, {m, m}, {m, m}, {m, m}, {m, m}, {m, m}, {m, m}, {m, m}};
    const struct xpl_rpc_failure f = {.code = XPL_ABORTED,
                                      .message = m,
                                      .retry_ms = INT64_MAX,
                                      .reason = "R",
                                      .n_metadata = 9,
                                      .metadata = pairs};
    struct xpl_buf b;
    struct xpl_rpc_details d;
    xpl_buf_init(&b, 1 << 20);
    xpl_rpc_status_encode(&b, &f);
    CHECK(!b.failed && b.n > 1500);
    CHECK(XPL_RPC_MAX_MESSAGE * 3 + b.n * 4 / 3 < 8000);
    CHECK(xpl_rpc_status_decode(bytes(&b), &d));
    CHECK_EQ(d.retry_ms, -1); // an absurd delay says nothing
    CHECK_STR(d.reason, "R");
    xpl_buf_fini(&b);
}

static atomic_int released;
static void on_release(void *arg) {
    atomic_store(&released, *(int *)arg);
}
static void test_blob(void) {
    static const uint8_t data[3] = {1, 2, 3};
    int mark = 7;
    struct xpl_rpc_blob *const b = xpl_rpc_blob_wrap(data, 3, on_release, &mark);
    CHECK(b);
    CHECK(xpl_rpc_blob_get(b).ptr == data);
    CHECK_EQ(xpl_rpc_blob_get(b).len, 3);
    CHECK(xpl_rpc_blob_ref(b) == b);
    xpl_rpc_blob_unref(b);
    CHECK_EQ(atomic_load(&released), 0);
    xpl_rpc_blob_unref(b);
    CHECK_EQ(atomic_load(&released), 7);
    struct xpl_rpc_blob *const c = xpl_rpc_blob_copy((xpl_bytes_t){data, 3});
    CHECK(c && xpl_rpc_blob_get(c).ptr != data);
    CHECK_BYTES(xpl_rpc_blob_get(c).ptr, 3, data, 3);
    xpl_rpc_blob_unref(c);
    struct xpl_rpc_blob *const e = xpl_rpc_blob_copy((xpl_bytes_t){0});
    CHECK(e);
    CHECK_EQ(xpl_rpc_blob_get(e).len, 0);
    xpl_rpc_blob_unref(e);
    xpl_rpc_blob_unref(NULL);
}

static Grpc__Reflection__V1__ServerReflectionResponse *ask(const struct xpl_rpc_reflection *r,
                                                           uint32_t field, const char *request) {
    struct xpl_buf q, a;
    struct xpl_error err = {0};
    xpl_buf_init(&q, 1 << 20);
    xpl_buf_init(&a, 1 << 20);
    xpl_rpc_put_text(&q, 1, XPL_STR("host"));
    if (field) xpl_rpc_put_text(&q, field, xpl_str_from(request));
    CHECK_OK(xpl_rpc_reflection_answer(r, bytes(&q), &a, &err), &err);
    Grpc__Reflection__V1__ServerReflectionResponse *const m =
        grpc__reflection__v1__server_reflection_response__unpack(NULL, a.n, a.p);
    CHECK(m);
    CHECK_STR(m->valid_host, "host");
    CHECK_STR(m->original_request->host, "host");
    xpl_buf_fini(&q);
    xpl_buf_fini(&a);
    return m;
}
static void forget(Grpc__Reflection__V1__ServerReflectionResponse *m) {
    grpc__reflection__v1__server_reflection_response__free_unpacked(m, NULL);
}

static void check_files(const struct xpl_rpc_reflection *r, uint32_t field, const char *request,
                        size_t expected) {
    Grpc__Reflection__V1__ServerReflectionResponse *const m = ask(r, field, request);
    if (expected == 0) {
        CHECK_EQ(m->message_response_case,
                 GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE);
        CHECK_EQ(m->error_response->error_code, field ? XPL_NOT_FOUND : XPL_INVALID_ARGUMENT);
    } else {
        CHECK_EQ(m->file_descriptor_response->n_file_descriptor_proto, expected);
        CHECK(m->file_descriptor_response->file_descriptor_proto[0].len > 20);
    }
    forget(m);
}

static void test_reflection(void) {
    const struct xpl_rpc_method methods[] = {{.path = "/xplaned.v1.AnalysisService/GetToolData"},
                                             {.path = "/xplaned.v1.AnalysisService/StreamToolData"},
                                             {.path = "/no.such.Service/Method"}};
    struct xpl_rpc_reflection *r = NULL;
    struct xpl_error err = {0};
    const xpl_bytes_t set = {xpl_proto_descriptors, xpl_proto_descriptors_len};
    CHECK_OK(xpl_rpc_reflection_new(set, methods, 3, &r, &err), &err);
    Grpc__Reflection__V1__ServerReflectionResponse *m = ask(r, 7, "*");
    CHECK_EQ(m->list_services_response->n_service, 3); // only what the server has, and itself
    CHECK_STR(m->list_services_response->service[0]->name, "xplaned.v1.AnalysisService");
    forget(m);
    check_files(r, 3, "xplaned/v1/analysis.proto", 1);
    check_files(r, 3, "nothing.proto", 0);
    static const char *const symbols[] = {"xplaned.v1.AnalysisService",
                                          "xplaned.v1.AnalysisService.GetToolData",
                                          "xplaned.v1.ToolData",
                                          "xplaned.v1.ToolData.data",
                                          "xplaned.v1.ToolData.Stage.micros",
                                          "xplaned.v1.ToolData.Source",
                                          "xplaned.v1.ToolData.COMPUTED",
                                          "xplaned.v1.STATE_STORED",
                                          ".xplaned.v1.ServerStats",
                                          "xprof.pywrap.ProfileDataRequest"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        check_files(r, 4, symbols[i], 1);
    check_files(r, 4, "xplaned.v1", 0);
    check_files(r, 4, "xplaned.v1.ToolData.Source.COMPUTED", 0);
    check_files(r, 6, "xplaned.v1.NoMessage", 0);
    check_files(r, 0, "", 0);
    m = ask(r, 6, "xplaned.v1.ToolData");
    CHECK_STR(m->all_extension_numbers_response->base_type_name, "xplaned.v1.ToolData");
    CHECK_EQ(m->all_extension_numbers_response->n_extension_number, 0);
    forget(m);
    struct xpl_buf a;
    xpl_buf_init(&a, 1 << 20);
    CHECK_STATUS(xpl_rpc_reflection_answer(r, text_bytes("\x3a\x09"), &a, &err),
                 XPL_INVALID_ARGUMENT, &err);
    xpl_buf_fini(&a);
    xpl_rpc_reflection_free(r);
    // A set that is cut off anywhere is refused or indexed in part, and never read beyond.
    for (size_t n = 0; n < set.len; n += 97) {
        uint8_t *const cut = malloc(n ? n : 1);
        CHECK(cut);
        memcpy(cut, set.ptr, n);
        r = NULL;
        if (xpl_rpc_reflection_new((xpl_bytes_t){cut, n}, methods, 3, &r, NULL) == XPL_OK)
            forget(ask(r, 7, "*"));
        xpl_rpc_reflection_free(r);
        free(cut);
    }
}

int main(void) {
    alarm(100);
    grpc_init();
    test_status_text();
    test_unpack();
    test_scan();
    test_nesting();
    test_status();
    test_long_status();
    test_blob();
    test_reflection();
    grpc_shutdown_blocking();
    return 0;
}
