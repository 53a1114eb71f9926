// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as an HloModuleProto: graphs of its first and last computation, and of the middle
// instruction's neighbours, end, keep to their limit, and are the same twice.
#include <stdlib.h>
#include <string.h>

#include "analysis/hlo/hlo_module.h"
#include "tests/hlo_maker.h"
#include "tests/memory_viewer_fixture.h"

enum { LIMIT = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static void check(xpl_bytes_t proto, xpl_str_t node, const char *key, const char *value) {
    char name[200];
    if (node.len >= sizeof name) return;
    memcpy(name, node.ptr, node.len);
    name[node.len] = '\0';
    const char *const options[] = {"type", "graph",       "node_name", name, key,
                                   value,  "graph_width", "4",         NULL};
    struct xpl_buf a, b;
    const xpl_status_t x = ask_program_tool("graph_viewer", proto, options, LIMIT, &a, NULL);
    const xpl_status_t y = ask_program_tool("graph_viewer", proto, options, LIMIT, &b, NULL);
    require(x == y && a.n <= LIMIT && a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0));
    require(x == XPL_OK || x == XPL_DATA_LOSS || x == XPL_RESOURCE_EXHAUSTED || x == XPL_NOT_FOUND);
    xpl_buf_fini(&a);
    xpl_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf proto = mk_open();
    struct xpl_hlo_module *m = NULL;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    mk_len(&proto, 1, data, size);
    if (xpl_hlo_module_read_full((xpl_bytes_t){data, size}, &a, &m, NULL) == XPL_OK && m->valid &&
        m->n_computations && m->n_instructions) {
        const xpl_bytes_t p = {proto.p, proto.n};
        check(p, m->computations[m->n_computations - 1].name, "merge_fusion", "false");
        check(p, m->computations[0].name, "show_metadata", "true");
        check(p, m->instructions[m->n_instructions / 2].name, "merge_fusion", "true");
        check(p, m->computations[m->n_computations - 1].name, "format", "html");
        check(p, m->instructions[m->n_instructions / 2].name, "format", "html");
    }
    return 0;
}
