// SPDX-License-Identifier: Apache-2.0
// Reading and writing OpStats, and the tools that show ops, with every allocation failing once.
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/data_file.h"
#include "tests/fault/answers/each.h"
#include "tests/render.h"

struct answer {
    xpl_bytes_t stats;
    const struct xpl_tool *tool;
};

// Decodes, encodes again and renders; the answer goes to `out`.
static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct answer *const answer = input;
    const struct xpl_tool *const tool = answer->tool;
    static const char *const by_provenance[] = {"group_by", "provenance", NULL};
    struct xpl_opstats *s = NULL;
    xpl_status_t st = xpl_opstats_decode(answer->stats, arena, &s, err);
    CHECK_EQ(st == XPL_OK, s != NULL);
    if (st == XPL_OK) {
        st = xpl_opstats_encode(s, out, err);
        CHECK(st == XPL_OK || out->n == 0);
    }
    const char *const *const options = strcmp(tool->name, "op_profile") == 0 ? by_provenance : NULL;
    return st == XPL_OK ? render_op_stats(tool, s, options, 16 << 20, out, err) : st;
}

static void fail_each(const char *file, const char *tool_name) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf in = read_data_file(file);
    const struct answer answer = {{in.p, in.n}, named_tool(tool_name)};
    fault_each(&(struct fault_scenario){run, &answer, .least = 4});
}

int main(void) {
    fail_each("opstats/every_field.pb", "kernel_stats");
    fail_each("opstats/tree.pb", "op_profile");
    fail_each("opstats/tree.pb", "framework_op_stats");
    fail_each("opstats/tf_custom_h2p0.pb", "framework_op_stats");
    fail_each("opstats/tpu_inference_a.pb", "op_profile");
    return 0;
}
