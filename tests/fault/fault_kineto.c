// SPDX-License-Identifier: Apache-2.0
// Importing a trace, piece by piece, with every allocation failing once.
#include <string.h>

#include "analysis/kineto/kineto.h"
#include "tests/fault/answers/each.h"

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

static xpl_status_t run(const void *len, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct xpl_kineto_options options = {.max_bytes = 64 << 20};
    struct rest rest = {text, *(const size_t *)len};
    const struct xpl_json_source source = {.read = give, .ctx = &rest};
    struct xpl_json_reader r = {0};
    bool partial = false;
    (void)arena;
    xpl_status_t st = xpl_json_reader_open(&r, &source, XPL_JSON_LENIENT, err);
    if (st == XPL_OK) st = xpl_kineto_import(&r, &options, out, &partial, err);
    xpl_json_reader_fini(&r);
    return st;
}

// A trace with all that is kept: modules, ops, launches, kernels, memory, flows, rows out of order.
static size_t write_trace(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(sizeof text);
    xpl_buf_str(&b,
                XPL_STR("{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"\\u0041"
                        "\"}],\"distributedInfo\":{\"rank\":1,\"backend\":\"nccl\"},"
                        "\"WARNING\":[\"w\"],\"host_name\":\"h\",\"traceEvents\":["));
    for (int i = 0; i < 40; i++)
        xpl_buf_printf(
            &b,
            "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s%d\\n\",\"pid\":%d,\"tid\":%d,\"ts\":%d,"
            "\"dur\":9,\"args\":{\"correlation\":%d,\"k%d\":[\"v\"],\"Bytes\":8,\"grid\":[1,1,1],"
            "\"Input Dims\":[[2,3]],\"Input type\":[\"float\"]}},"
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
    return b.n;
}

int main(void) {
    const size_t len = write_trace();
    fault_each(&(struct fault_scenario){run, &len, .least = 16});
    return 0;
}
