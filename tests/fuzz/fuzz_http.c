// SPDX-License-Identifier: Apache-2.0
// What the HTTP gateway itself reads of foreign bytes; HTTP's own syntax is libmicrohttpd's.  The
// first byte says which reader gets the rest.
#include <string.h>

#include "base/cleanup.h"
#include "server/http/csv.h"
#include "server/http/request.h"
#include "server/traceparent.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A URI, below a prefix: path and arguments are valid text without a NUL.
static void uri(xpl_str_t in) {
    struct xpl_http_request *r = xpl_sys_alloc(sizeof *r + in.len + 1);
    CHECK(r);
    *r = (struct xpl_http_request){0};
    for (size_t i = 0; i < in.len && in.ptr[i]; i++)
        r->uri[r->n_uri++] = in.ptr[i];
    r->uri[r->n_uri] = 0;
    xpl_arena_init(&r->arena, 1 << 20);
    if (xpl_http_request_parse(r, "/a/b")) {
        CHECK(!r->path.len || r->path.ptr[0] == '/');
        CHECK(!memchr(r->path.ptr, 0, r->path.len));
        for (size_t i = 0; i < r->n_args; i++)
            CHECK(xpl_http_arg(r, r->args[i].key.ptr).ptr);
    }
    xpl_arena_fini(&r->arena);
    xpl_sys_free(r);
}

static void range(xpl_str_t in) {
    for (uint64_t size = 0; size < 5; size++) {
        uint64_t from = 0, len = 0;
        if (xpl_http_range(in, size, &from, &len) == XPL_RANGE_OK)
            CHECK(len > 0 && from < size && len <= size - from);
    }
}

static void csv(xpl_str_t in) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1 << 20);
    struct xpl_error err = {0};
    if (xpl_http_csv(in, NULL, &arena, &out, &err) != XPL_OK) CHECK(err.msg[0]);
}

// Ids are of their length, in digits of the text.
static void trace(xpl_str_t in) {
    struct xpl_traceparent t;
    if (!xpl_traceparent_parse(in, &t)) return;
    CHECK_EQ(strspn(t.trace_id, "0123456789abcdef"), 32);
    CHECK_EQ(strspn(t.parent_id, "0123456789abcdef"), 16);
    CHECK(xpl_str_find(in, xpl_str_from(t.trace_id), 0) != SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const xpl_str_t in = {(const char *)data + 1, size - 1};
    static struct xpl_http_body body = {.etag = {"\"1\"", "\"1-g\""}};
    xpl_str_t name;
    switch (data[0]) {
        case 'u': uri(in); break;
        case 'r': range(in); break;
        case 't': trace(in); break;
        case 'c': csv(in); break;
        case 'g': (void)xpl_http_accepts_gzip(in); break;
        case 'e': (void)xpl_http_etag_listed(in, &body); break;
        case 'h':
            if (xpl_http_host_name(in, &name)) CHECK(name.len && name.len <= in.len);
            break;
        default: break;
    }
    return 0;
}
