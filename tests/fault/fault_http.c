// SPDX-License-Identifier: Apache-2.0
// The HTTP gateway's own work with every allocation failing once: a URI read, a table as CSV, a
// body with its compressed form.  A clean failure or the same result, nothing leaked.
#include <string.h>

#include "base/cleanup.h"
#include "server/http/csv.h"
#include "server/http/request.h"
#include "tests/check.h"

static const char uri[] = "/x/data?run=a%20b&tag=overview_page&host=&option=1";
static const char table[] = "[{\"cols\":[{\"label\":\"a\"},{\"id\":\"b\"}],\"rows\":[{\"c\":[{"
                            "\"v\":1.5},{\"v\":\"x\"}]}]}]";

static bool read_uri(void) {
    struct xpl_http_request *r = xpl_sys_alloc(sizeof *r + sizeof uri);
    if (!r) return false;
    *r = (struct xpl_http_request){.n_uri = sizeof uri - 1};
    memcpy(r->uri, uri, sizeof uri);
    xpl_arena_init(&r->arena, 1 << 20);
    const bool ok = xpl_http_request_parse(r, "/x");
    if (ok) {
        CHECK_STR(r->path, "/data");
        CHECK_STR(xpl_http_arg(r, "run"), "a b");
    }
    xpl_arena_fini(&r->arena);
    xpl_sys_free(r);
    return ok;
}

static bool make_body(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(1 << 20);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf csv = xpl_buf_of(1 << 20);
    struct xpl_error err = {0};
    const xpl_status_t st =
        xpl_http_csv((xpl_str_t){table, sizeof table - 1}, NULL, &scratch, &csv, &err);
    CHECK(st == XPL_OK || (st == XPL_RESOURCE_EXHAUSTED && err.msg[0]));
    if (st != XPL_OK) return false;
    CHECK_BYTES(csv.p, csv.n, "\"a\",\"b\"\n\"1.5\",\"x\"\n", 18);
    const struct xpl_http_body_options o = {.type = "text/csv",
                                            .gzip = true,
                                            .validators = true,
                                            .tool = XPL_STR("tool"),
                                            .session = XPL_STR("session")};
    struct xpl_http_body *b = xpl_http_body_from_buf(&csv, &o);
    if (!b) return false;
    const bool whole = b->bytes[XPL_HTTP_GZIP] != NULL; // without it the plain form is sent
    CHECK_EQ(xpl_rpc_blob_get(b->bytes[XPL_HTTP_PLAIN]).len, 18);
    xpl_object_unref(&b->object);
    return whole;
}

static bool run(void) {
    return read_uri() && make_body();
}

int main(void) {
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    CHECK(run());
    const uint64_t n = xpl_fault_count();
    CHECK(n > 5);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        (void)run(); // a failure may cost no more than memory to spare
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK(run());
    return 0;
}
