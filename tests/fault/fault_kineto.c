// SPDX-License-Identifier: Apache-2.0
// Importing a trace, piece by piece, with every allocation failing once.
#include <string.h>

#include "analysis/kineto/kineto.h"
#include "base/arena.h"
#include "tests/check.h"

static char text[1 << 16];

struct rest {
    const char *p;
    size_t n;
};

static xpl_status_t give(void *ctx, uint8_t *to, size_t room, size_t *ret_n,
                         struct xpl_error *err) {
    struct rest *const r = ctx;
    *ret_n = r->n < 4096 ? r->n : 4096;
    if (*ret_n > room) *ret_n = room;
    memcpy(to, r->p, *ret_n);
    r->p += *ret_n;
    r->n -= *ret_n;
    (void)err;
    return XPL_OK;
}

static xpl_status_t run(size_t len, struct xpl_buf *out) {
    const struct xpl_kineto_options options = {.max_bytes = 64 << 20};
    struct rest rest = {text, len};
    const struct xpl_json_source source = {give, &rest};
    struct xpl_json_reader r = {0};
    struct xpl_error err = {0};
    bool partial = false;
    xpl_buf_init(out, options.max_bytes);
    xpl_status_t st = xpl_json_reader_open(&r, &source, XPL_JSON_LENIENT, &err);
    if (st == XPL_OK) st = xpl_kineto_import(&r, &options, out, &partial, &err);
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    xpl_json_reader_fini(&r);
    return st;
}

// A trace with all that is kept: modules, ops, launches, kernels, memory, flows, rows out of order.
static size_t write_trace(void) {
    struct xpl_buf b;
    xpl_buf_init(&b, sizeof text);
    xpl_buf_str(&b,
                XPL_STR("{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"\\u0041"
                        "\"}],\"distributedInfo\":{\"rank\":1,\"backend\":\"nccl\"},"
                        "\"WARNING\":[\"w\"],\"host_name\":\"h\",\"traceEvents\":["));
    for (int i = 0; i < 40; i++)
        xpl_buf_printf(
            &b,
            "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s%d\\n\",\"pid\":%d,\"tid\":%d,\"ts\":%d,"
            "\"dur\":9,\"args\":{\"correlation\":%d,\"k%d\":[\"v\"],\"Bytes\":8,\"grid\":[1,1,1]}},"
            "{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"f\",\"id\":%d,\"pid\":1,\"tid\":1,"
            "\"ts\":%d}",
            i ? "," : "",
            (const char *[]){"cpu_op", "python_function", "cuda_runtime", "kernel",
                             "cpu_instant_event", "user_annotation"}[i % 6],
            (const char *[]){"op", "nn.Module: M_", "cudaLaunchKernel", "kern", "[memory]",
                             "ProfilerStep#"}[i % 6],
            i, i % 6 == 3 ? 0 : 1, i % 6 == 3 ? 7 : 1, 100 - i, i / 6, i, i, 100 - i);
    xpl_buf_str(&b, XPL_STR(",{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,"
                            "\"args\":{\"name\":\"\\u0041\"}}]}"));
    CHECK(!b.failed);
    memcpy(text, b.p, b.n);
    const size_t n = b.n;
    xpl_buf_fini(&b);
    return n;
}

int main(void) {
    const size_t len = write_trace();
    struct xpl_buf whole, out;
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    CHECK_OK(run(len, &whole), NULL);
    const uint64_t n = xpl_fault_count();
    CHECK(n >= 16);
    const int64_t with_whole = xpl_fault_live();
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        CHECK_EQ(run(len, &out), XPL_RESOURCE_EXHAUSTED);
        xpl_fault_fail_on(UINT64_MAX);
        xpl_buf_fini(&out);
        CHECK_EQ(xpl_fault_live(), with_whole);
    }
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK_OK(run(len, &out), NULL);
    CHECK(out.n == whole.n && memcmp(out.p, whole.p, out.n) == 0);
    xpl_buf_fini(&out);
    xpl_buf_fini(&whole);
    CHECK_EQ(xpl_fault_live(), live);
    return 0;
}
