// SPDX-License-Identifier: Apache-2.0
// Records to XSpace with every allocation failing once: a clean error, nothing leaked, and with
// memory back the same XSpace as before.
#include <string.h>

#include "agent/record.h"
#include "agent/xspace_writer.h"
#include "tests/check.h"

static void put(struct xpl_buf *b, uint16_t kind, void *record, size_t size, const char *text) {
    struct xpl_record *const head = record;
    const size_t n = strlen(text), padded = (size + n + 7) & ~(size_t)7;
    static const uint8_t zeros[8];
    *head = (struct xpl_record){.kind = kind, .size = (uint32_t)padded};
    xpl_buf_put(b, record, size);
    xpl_buf_put(b, text, n);
    xpl_buf_put(b, zeros, padded - size - n);
}

static struct xpl_buf make(void) {
    struct xpl_buf b = xpl_buf_of(1 << 20);
    struct xpl_record_name n = {.id = 1, .text_len = 12};
    struct xpl_record_device d = {.text_len = 3, .memory_bytes = 1 << 30};
    struct xpl_record_clock c = {.cupti_ns = 1000, .real_ns = 5000};
    struct xpl_record_dropped lost = {.count = 3, .cause = XPL_DROP_BUFFERS};
    put(&b, XPL_RECORD_NAME, &n, sizeof n, "_Z6kernelPfi");
    put(&b, XPL_RECORD_DEVICE, &d, sizeof d, "GPU");
    put(&b, XPL_RECORD_CLOCK, &c, sizeof c, "");
    for (uint32_t i = 0; i < 400; i++) {
        const uint64_t t = 2000 + i * 100;
        struct xpl_record_kernel k = {.start_ns = t,
                                      .end_ns = t + 50,
                                      .stream = i % 60,
                                      .correlation = i + 1,
                                      .name = 1,
                                      .grid = {i, 1, 1}};
        struct xpl_record_memcpy m = {.start_ns = t, .end_ns = t + 9, .bytes = i, .copy_kind = 1};
        struct xpl_record_api a = {
            .start_ns = t, .end_ns = t + 5, .thread = i % 9, .correlation = i + 1, .domain = 1};
        struct xpl_record_memory g = {
            .time_ns = t, .address = i / 2, .bytes = 64, .operation = 1 + i % 2, .memory_kind = 3};
        struct xpl_record_marker r = {
            .time_ns = t, .id = i / 2, .flags = i % 2 ? 4 : 2, .object_kind = 2, .name = 1};
        put(&b, XPL_RECORD_KERNEL, &k, sizeof k, "");
        put(&b, XPL_RECORD_MEMCPY, &m, sizeof m, "");
        put(&b, XPL_RECORD_API, &a, sizeof a, "");
        put(&b, XPL_RECORD_MEMORY, &g, sizeof g, "");
        put(&b, XPL_RECORD_MARKER, &r, sizeof r, "");
    }
    put(&b, XPL_RECORD_DROPPED, &lost, sizeof lost, "");
    CHECK(!b.failed);
    return b;
}

static xpl_status_t run(const struct xpl_buf *records, struct xpl_buf *out) {
    const struct xpl_agent_process p = {{records->p, records->n}, XPL_STR("died")};
    struct xpl_agent_result result = {0};
    struct xpl_error err = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    xpl_buf_init(out, 1 << 24);
    const xpl_status_t st = xpl_agent_write_xspace(&p, 1, XPL_STR("host"), &a, out, &result, &err);
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    CHECK(st != XPL_OK || (result.device_events == 800 && result.dropped == 3));
    return st;
}

int main(void) {
    struct xpl_buf records = make(), expected, got;
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    CHECK_OK(run(&records, &expected), NULL);
    const uint64_t n = xpl_fault_count();
    CHECK(n > 8);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        CHECK_STATUS(run(&records, &got), XPL_RESOURCE_EXHAUSTED, NULL);
        xpl_buf_fini(&got);
        CHECK_EQ(xpl_fault_live(), live + 1); // `expected`
    }
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK_OK(run(&records, &got), NULL);
    CHECK_BYTES(got.p, got.n, expected.p, expected.n);
    xpl_buf_fini(&got);
    xpl_buf_fini(&expected);
    xpl_buf_fini(&records);
    return 0;
}
