// SPDX-License-Identifier: Apache-2.0
// What rpc/ reads of foreign bytes.  The first byte says which reader gets the rest.

#include "base/arena.h"
#include "base/text/utf8.h"
#include "proto/descriptors.h"
#include "proto/google/rpc/status.pb-c.h"
#include "proto/grpc/health/v1/health.pb-c.h"
#include "proto/grpc/reflection/v1/reflection.pb-c.h"
#include "proto/tensorflow/profiler_analysis.pb-c.h"
#include "proto/xplaned/v1/analysis.pb-c.h"
#include "proto/xplaned/v1/capture.pb-c.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "proto/xprof/worker_service.pb-c.h"
#include "rpc/message.h"
#include "rpc/standard/reflection.h"
#include "rpc/status.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Whatever the scan lets through, protobuf-c decodes within the arena, and packed again it decodes
// again.
static void unpack(const ProtobufCMessageDescriptor *type, xpl_bytes_t in) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a, b;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf packed = xpl_buf_of(1 << 20);
    struct xpl_error err = {0};
    ProtobufCMessage *m = NULL, *again = NULL;
    xpl_arena_init(&a, 1 << 20);
    xpl_arena_init(&b, 1 << 20);
    const xpl_status_t st = xpl_rpc_message_unpack(type, in, &a, &m, &err);
    CHECK((st == XPL_OK) == (m != NULL));
    CHECK(st == err.code);
    if (m) {
        xpl_rpc_message_put(&packed, m);
        CHECK(!packed.failed);
        const xpl_bytes_t bytes = {packed.p, packed.n};
        const xpl_status_t rc = xpl_rpc_message_unpack(type, bytes, &b, &again, NULL);
        CHECK(rc == XPL_OK || rc == XPL_RESOURCE_EXHAUSTED);
    }
}

static void reflect(xpl_bytes_t in) {
    static struct xpl_rpc_reflection *r;
    const xpl_bytes_t set = {xpl_proto_descriptors, xpl_proto_descriptors_len};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf answer = xpl_buf_of(8 << 20);
    if (!r) CHECK_EQ(xpl_rpc_reflection_new(set, NULL, 0, &r, NULL), XPL_OK);
    const xpl_status_t st = xpl_rpc_reflection_answer(r, in, &answer, NULL);
    if (st == XPL_OK) // our own answer is a message of its type, but for the request inside it
        CHECK_EQ(xpl_rpc_message_scan(&grpc__reflection__v1__server_reflection_response__descriptor,
                                      (xpl_bytes_t){answer.p, answer.n}, NULL),
                 XPL_OK);
}

static void descriptors(xpl_bytes_t in) {
    static const struct xpl_rpc_method m = {.path = "/a.A/X"};
    static const char list[] = ":\1*";
    struct xpl_rpc_reflection *r = NULL;
    struct xpl_buf answer;
    if (xpl_rpc_reflection_new(in, &m, 1, &r, NULL) != XPL_OK) return;
    xpl_buf_init(&answer, 8 << 20);
    (void)xpl_rpc_reflection_answer(r, (xpl_bytes_t){(const uint8_t *)list, 3}, &answer, NULL);
    xpl_buf_fini(&answer);
    xpl_rpc_reflection_free(r);
}

static void status(xpl_bytes_t in) {
    struct xpl_rpc_details d = {.retry_ms = -7};
    char text[64];
    if (!xpl_rpc_status_decode(in, &d)) {
        CHECK_EQ(d.retry_ms, -7); // untouched
        return;
    }
    CHECK(d.retry_ms >= -1);
    const size_t n = xpl_rpc_status_text(text, sizeof text, d.reason);
    CHECK(n < sizeof text && xpl_utf8_valid((xpl_str_t){text, n}));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const xpl_bytes_t in = {data + 1, size - 1};
    switch (data[0]) {
        case 'g': unpack(&xplaned__v1__get_tool_data_request__descriptor, in); break;
        case 'l': unpack(&xplaned__v1__list_sessions_request__descriptor, in); break;
        case 'h': unpack(&grpc__health__v1__health_list_response__descriptor, in); break;
        case 'w': unpack(&xprof__pywrap__worker_profile_data_request__descriptor, in); break;
        case 'c': unpack(&xplaned__v1__create_schedule_request__descriptor, in); break;
        case 'i': unpack(&xplaned__v1__import_session_request__descriptor, in); break;
        case 'n': unpack(&tensorflow__new_profile_session_request__descriptor, in); break;
        case 'r': unpack(&grpc__reflection__v1__server_reflection_response__descriptor, in); break;
        case 'a': unpack(&google__rpc__status__descriptor, in); break;
        case 'q': reflect(in); break;
        case 'd': descriptors(in); break;
        case 's': status(in); break;
        default: break;
    }
    return 0;
}
