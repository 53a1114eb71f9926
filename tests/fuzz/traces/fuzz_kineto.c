// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace: the import gives an XSpace that opens, the same for pieces of any size, or
// an error with an offset in the input.
#include <string.h>

#include "analysis/kineto/kineto.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 16 << 20 };

struct rest {
    const uint8_t *p;
    size_t n;
};

static xpl_status_t give(void *ctx, uint8_t *to, size_t room, size_t *ret_n,
                         struct xpl_error *err) {
    struct rest *const r = ctx;
    *ret_n = r->n < 7 ? r->n : 7;
    if (*ret_n > room) *ret_n = room;
    if (*ret_n) memcpy(to, r->p, *ret_n);
    r->p += *ret_n;
    r->n -= *ret_n;
    (void)err;
    return XPL_OK;
}

static xpl_status_t import(struct xpl_json_reader *r, size_t size, struct xpl_buf *out,
                           bool *partial) {
    const struct xpl_kineto_options options = {.max_bytes = LIMIT};
    struct xpl_error err = {0};
    xpl_buf_init(out, LIMIT);
    const xpl_status_t st = xpl_kineto_import(r, &options, out, partial, &err);
    CHECK(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED);
    if (st != XPL_OK) CHECK(err.msg[0]);
    if (st == XPL_DATA_LOSS) CHECK(err.offset <= size);
    return st;
}

static void check_opens(const struct xpl_buf *b) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(8 * LIMIT);
    struct xpl_xspace *xs;
    struct xpl_error err = {0};
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){b->p, b->n}, &arena, &exec, &xs, &err), &err);
    for (uint32_t p = 0; p < xs->n_planes; p++)
        for (uint32_t l = 0; l < xs->planes[p].n_lines; l++) {
            struct xpl_event_cursor c = xpl_events_of(&xs->planes[p].lines[l]);
            struct xpl_event e;
            enum xpl_wire_result r;
            int64_t last = 0;
            while ((r = xpl_events_next(&c, &e)) == XPL_WIRE_FIELD) {
                CHECK(e.offset_ps >= last && e.duration_ps >= 0 && e.md != 0);
                last = e.offset_ps;
            }
            CHECK_EQ(r, XPL_WIRE_END);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rest rest = {data, size};
    const struct xpl_json_source source = {.read = give, .ctx = &rest};
    struct xpl_json_reader r;
    struct xpl_error err = {0};
    struct xpl_buf whole, pieces;
    bool partial = false, partial_too = false;
    (void)xpl_kineto_sniff((xpl_bytes_t){data, size});
    xpl_json_reader_init(&r, (xpl_str_t){(const char *)data, size}, XPL_JSON_LENIENT);
    const xpl_status_t st = import(&r, size, &whole, &partial);
    CHECK_OK(xpl_json_reader_open(&r, &source, XPL_JSON_LENIENT, &err), &err);
    CHECK_EQ(import(&r, size, &pieces, &partial_too), st);
    CHECK_EQ(partial_too, partial);
    if (st == XPL_OK) {
        CHECK(whole.n == pieces.n && (!whole.n || memcmp(whole.p, pieces.p, whole.n) == 0));
        check_opens(&whole);
    }
    xpl_json_reader_fini(&r);
    xpl_buf_fini(&whole);
    xpl_buf_fini(&pieces);
    return 0;
}
