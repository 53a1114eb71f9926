// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a profile, whose requests survive their encoding; and as such an encoding, for
// the tool that shows it.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/inference/inference.h"
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT ((size_t)64 << 20)

static void require(bool ok) {
    if (!ok) abort();
}

static struct xpl_buf encode(const struct xpl_inference *v) {
    struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    require(xpl_inference_encode(v, &out, &err) == XPL_OK);
    return out;
}

static void check_encoding(const struct xpl_inference *v) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_inference *again = NULL;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf once = encode(v);
    require(xpl_inference_decode((xpl_bytes_t){once.p, once.n}, &arena, &again, &err) == XPL_OK);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf twice = encode(again);
    require(once.n == twice.n && memcmp(once.p, twice.p, once.n) == 0);
}

// The output ends as JSON does, whatever the columns are.
static void check_tool(struct xpl_inference *v, const char *column) {
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("inference_profile"));
    const struct xpl_inference_value value = {.inference = v};
    const void *const products[] = {&value};
    const struct xpl_tool_host hosts[] = {{.name = XPL_STR("a"), .products = products},
                                          {.name = XPL_STR("b"), .products = products}};
    const struct xpl_option given[] = {
        {XPL_STR("request_column"), xpl_str_from(column)},
        {XPL_STR("batch_column"), XPL_STR("Batching efficiency")},
    };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    void *options;
    require(xpl_tool_options_parse(tool, given, 2, true, &arena, &options, &err) == XPL_OK);
    const struct xpl_tool_input in = {
        .hosts = hosts, .n_hosts = 2, .options = options, .limit = LIMIT};
    require(tool->render(&in, &out, &err) == XPL_OK);
    require(out.n > 2 && out.p[0] == '[' && out.p[out.n - 1] == ']');
}

static void check(struct xpl_inference *v) {
    check_encoding(v);
    check_tool(v, "Latency");
    check_tool(v, "Idle time");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const xpl_bytes_t bytes = {data, size};
    struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_xspace *xs;
    struct xpl_inference *v = NULL;
    if (xpl_xspace_open(bytes, &arena, &exec, &xs, &err) == XPL_OK &&
        xpl_inference_make(xs, &exec, &arena, LIMIT, &v, &err) == XPL_OK) {
        require(xpl_inference_possible(bytes) || (!v->requests.n && !v->batches.n));
        check(v);
    }
    xpl_arena_fini(&arena);
    xpl_arena_init(&arena, LIMIT);
    err = (struct xpl_error){0};
    v = NULL;
    if (xpl_inference_decode(bytes, &arena, &v, &err) == XPL_OK)
        check(v);
    else
        require(!v && err.code != XPL_OK);
    xpl_arena_fini(&arena);
    return 0;
}
