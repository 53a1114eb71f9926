// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as an instruction: the output is JSON that reads and writes the same.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "analysis/tools/lib/kernel_metadata.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/json_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static void check(xpl_str_t text, struct xpl_arena *a) {
    struct xpl_json_value v;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf again = xpl_buf_of(16 << 20);
    require(xpl_json_value_parse(text, a, &v) == XPL_JSON_OK);
    xpl_json_value_write(&v, &again);
    require(xpl_str_eq(text, (xpl_str_t){(const char *)again.p, again.n}));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(16 << 20);
    xpl_str_t found;
    if (xpl_instruction_kernel_metadata((xpl_str_t){(const char *)data, size}, &a, &found) &&
        found.len)
        check(found, &a);
    return 0;
}
