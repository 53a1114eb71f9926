// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the summary of a run: it survives its encoding, and compares with itself.
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT ((size_t)64 << 20)

static void require(bool ok) {
    if (!ok) abort();
}

static void check_encoding(const struct xpl_run_summary *s, struct xpl_arena *arena) {
    struct xpl_run_summary *again;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf once, twice;
    struct xpl_error err = {0};
    xpl_buf_init(&once, LIMIT);
    xpl_buf_init(&twice, LIMIT);
    require(xpl_run_summary_encode(s, &once, &err) == XPL_OK);
    require(xpl_run_summary_decode((xpl_bytes_t){once.p, once.n}, arena, &again, &err) == XPL_OK);
    require(xpl_run_summary_encode(again, &twice, &err) == XPL_OK);
    require(once.n == twice.n && memcmp(once.p, twice.p, once.n) == 0);
}

static void check_comparison(const struct xpl_run_summary *s, struct xpl_arena *arena) {
    struct xpl_run_group a = {0}, b = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    require(xpl_run_group_add(&a, s, arena) && xpl_run_group_add(&b, s, arena) &&
            xpl_run_group_add(&b, s, arena));
    require(xpl_compare_json(&a, &b, NULL, arena, &out, &err) == XPL_OK);
    require(out.n > 2 && out.p[0] == '{' && out.p[out.n - 1] == '}');
    const struct xpl_run_summary *const twice[] = {s, s};
    require(xpl_aggregate_json(twice, 2, arena, &out, &err) == XPL_OK);
    require(out.p[out.n - 1] == '}');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_run_summary *s = NULL;
    if (xpl_run_summary_decode((xpl_bytes_t){data, size}, &arena, &s, &err) == XPL_OK) {
        check_encoding(s, &arena);
        check_comparison(s, &arena);
    } else {
        require(!s && err.code != XPL_OK);
    }
    return 0;
}
