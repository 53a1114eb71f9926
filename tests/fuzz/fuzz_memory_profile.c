// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a profile, asked for its memory.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tools/memory_profile/memory_profile.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static xpl_status_t ask(const struct xpl_xspace *xs, struct xpl_buf *out) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    xpl_buf_init(out, 64 << 20);
    const xpl_status_t st = xpl_memory_profile(xs, &exec, 64 << 20, out, &err);
    require(st == XPL_OK || err.code == st);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    struct xpl_xspace *xs;
    struct xpl_error err = {0};
    if (xpl_xspace_open((xpl_bytes_t){data, size}, &a, &exec, &xs, &err) == XPL_OK) {
        struct xpl_buf once, twice;
        const xpl_status_t st = ask(xs, &once);
        require(ask(xs, &twice) == st);
        require(once.n == twice.n && (once.n == 0 || memcmp(once.p, twice.p, once.n) == 0));
        xpl_buf_fini(&twice);
        xpl_buf_fini(&once);
    }
    return 0;
}
