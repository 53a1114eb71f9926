// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as what a program's libxplaned-agent.so sent; the first byte says where a second
// program's begin.
#include <stdlib.h>
#include <string.h>

#include "agent/xspace_writer.h"
#include "analysis/wire/wire.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static xpl_status_t convert(const struct xpl_agent_process *p, struct xpl_buf *out,
                            struct xpl_agent_result *ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    xpl_buf_init(out, 64 << 20);
    return xpl_agent_write_xspace(p, 2, XPL_STR("host"), &a, out, ret, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct xpl_agent_result once, again;
    struct xpl_buf a, b;
    const size_t cut = size ? (size - 1) * data[0] / 255 : 0;
    uint8_t *const first = malloc(cut + 1), *const second = malloc(size - cut + 1);
    require(first && second);
    if (size) memcpy(first, data + 1, cut);
    if (size) memcpy(second, data + 1 + cut, size - 1 - cut);
    const struct xpl_agent_process p[2] = {{{first, cut}, {0}},
                                           {{second, size ? size - 1 - cut : 0}, {0}}};
    const xpl_status_t st = convert(p, &a, &once);
    require(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
    require(convert(p, &b, &again) == st);
    require(st != XPL_OK || (a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0)));
    struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){a.p, st == XPL_OK ? a.n : 0});
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        continue;
    require(r == XPL_WIRE_END);
    xpl_buf_fini(&b);
    xpl_buf_fini(&a);
    free(second);
    free(first);
    return 0;
}
