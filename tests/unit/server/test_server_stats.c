// SPDX-License-Identifier: Apache-2.0
// The statistics of the daemon are one struct: HTTP's JSON has the members of gRPC's message, by
// name, in order and with the same values.
#include "base/cleanup.h"
#include "base/json.h"
#include "proto/xplaned/v1/server.pb-c.h"
#include "server/grpc/services.h"
#include "server/monitor/json.h"
#include "tests/check.h"

// ---- any message as JSON ----

static void put_message(struct xpl_buf *b, const ProtobufCMessage *m);

static void put_field(struct xpl_buf *b, const ProtobufCFieldDescriptor *f, const void *at) {
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *const *const m = at;
        if (!*m) FAIL_TEST(f->name);
        put_message(b, *m);
    } else if (f->type == PROTOBUF_C_TYPE_STRING) {
        const char *const *const s = at;
        xpl_json_str(b, xpl_str_from(*s), false);
    } else if (f->type == PROTOBUF_C_TYPE_BOOL) {
        xpl_buf_printf(b, "%s", *(const protobuf_c_boolean *)at ? "true" : "false");
    } else if (f->type == PROTOBUF_C_TYPE_UINT32) {
        xpl_buf_printf(b, "%u", *(const uint32_t *)at);
    } else if (f->type == PROTOBUF_C_TYPE_INT64) {
        xpl_buf_printf(b, "%lld", (long long)*(const int64_t *)at);
    } else if (f->type == PROTOBUF_C_TYPE_UINT64) {
        xpl_buf_printf(b, "%llu", (unsigned long long)*(const uint64_t *)at);
    } else {
        FAIL_TEST(f->name); // a type that these messages did not have
    }
}

static void put_message(struct xpl_buf *b, const ProtobufCMessage *m) {
    const ProtobufCMessageDescriptor *const d = m->descriptor;
    xpl_buf_putc(b, '{');
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *const f = &d->fields[i];
        const char *const at = (const char *)m + f->offset;
        xpl_buf_printf(b, "%s\"%s\":", i ? "," : "", f->name);
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            put_field(b, f, at);
            continue;
        }
        const size_t n = *(const size_t *)(const void *)((const char *)m + f->quantifier_offset);
        const char *const *const list = (const void *)at;
        xpl_buf_putc(b, '[');
        for (size_t k = 0; k < n; k++) {
            if (k) xpl_buf_putc(b, ',');
            put_field(b, f, *list + k * sizeof(void *));
        }
        xpl_buf_putc(b, ']');
    }
    xpl_buf_putc(b, '}');
}

// ---- the same statistics ----

static const struct xpl_metrics_row outcomes[] = {{"op_profile", "OK", 31, 32},
                                                  {"op_profile", "NOT_FOUND", 33, 34}};

static struct xpl_server_stats example(void) {
    struct xpl_server_stats s = {
        .version = "1.2",
        .started_unix_ns = 1700000000123456789,
        .uptime_ms = UINT64_MAX,
        .process = {.resident_bytes = 1, .anonymous_bytes = 2},
        .engine = {.from_memory = 3,
                   .from_store = 4,
                   .computed = 5,
                   .joined = 6,
                   .prefetched = 7,
                   .refused = 8,
                   .cancelled = 9,
                   .timed_out = 10,
                   .conversions = 11,
                   .conversions_failed = 12,
                   .bytes_converted = 13,
                   .in_flight_bytes = 14,
                   .memory_total = 15},
        .cache = {.bytes = 16, .limit = 17, .evicted = 18},
        .pool = {.workers = 19, .busy = 20, .queued = 21, .max_queued = 22},
        .store = {.role = XPL_STORE_WRITER, .hits = 23, .misses = 24, .puts = 25, .dropped = 26},
        .rpc = {.calls = 35, .open = 36, .cancelled = 37, .unauthenticated = 38, .refused = 39},
        .catalogue = {.sessions = 40, .hosts = 41, .bytes = 42},
        .history_replaced = true,
        .outcomes = outcomes,
        .n_outcomes = 2,
    };
    s.store.used_bytes = 27;
    s.store.limit_bytes = 28;
    s.writer.dropped = 29;
    s.writer.queued = 30;
    (void)snprintf(s.writer.error, sizeof s.writer.error, "the disk says \"no\"");
    return s;
}

static void compare(const struct xpl_server_stats *s, const char *part) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf json = xpl_buf_of(1 << 20);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf message = xpl_buf_of(1 << 20);
    const ProtobufCMessage *const m = xpl_svc_server_stats(s, &arena);
    CHECK(m);
    xpl_server_stats_put_json(&json, s);
    put_message(&message, m);
    xpl_buf_putc(&json, 0);
    xpl_buf_putc(&message, 0);
    CHECK(!json.failed && !message.failed);
    CHECK_STR((const char *)json.p, (const char *)message.p);
    if (!strstr((const char *)json.p, part)) FAIL_TEST(part);
}

static void test_same(void) {
    struct xpl_server_stats s = example();
    compare(&s, "\"requests\":{\"total\":64,\"outcomes\":[{\"tool\":\"op_profile\",\"code\":\"OK\","
                "\"count\":31,\"micros\":32},");
    compare(&s, "\"writes_dropped\":55,\"write_queue\":30,\"error\":\"the disk says \\\"no\\\"\"}");
    compare(&s, "\"read_only\":false,\"rebuilt\":false,");
    s.store.role = XPL_STORE_READER;
    s.store.rebuilds = 1;
    s.history_off = true;
    compare(&s, "\"read_only\":true,\"rebuilt\":true,");
    compare(&s, "\"history\":{\"off\":true,\"replaced\":true}}");
    s = (struct xpl_server_stats){.version = ""};
    compare(&s, "{\"version\":\"\",\"started_unix_ns\":0,\"uptime_ms\":0,\"requests\":{\"total\":0,"
                "\"outcomes\":[]},");
}

static void test_no_memory(void) {
    const struct xpl_server_stats s = example();
    struct xpl_arena arena;
    for (size_t limit = 0; limit < 64; limit += 16) {
        xpl_arena_init(&arena, limit);
        CHECK(!xpl_svc_server_stats(&s, &arena));
        xpl_arena_fini(&arena);
    }
}

int main(void) {
    test_same();
    test_no_memory();
    return 0;
}
