// SPDX-License-Identifier: Apache-2.0
// Graphs of an HLO program in every form, with every allocation failing once: a clean error,
// nothing leaked, and with memory back the same as before.

#include "tests/fault/answers/each.h"
#include "tests/memory_viewer_fixture.h"
#include "tests/wire_text.h"

enum { LIMIT = 1 << 24 };

// A fusion and a loop's condition, a tuple's elements, a constant, a library's configuration.
static const char program[] =
    "1:{1:\"m\" "
    "3:{1:\"f\" 5:1 6:2 2:{1:\"a\" 2:\"parameter\" 35:1 3:{2:11}} "
    "2:{1:\"b\" 2:\"negate\" 35:2 36:1 3:{2:11}}} "
    "3:{1:\"c\" 5:2 6:2 2:{1:\"q\" 2:\"parameter\" 35:1 3:{2:11}} "
    "2:{1:\"r\" 2:\"copy\" 35:2 36:1 3:{2:11}}} "
    "3:{1:\"main\" 5:3 6:7 2:{1:\"p\" 2:\"parameter\" 35:1 3:{2:13 4:{2:11} 4:{2:11}}} "
    "2:{1:\"k\" 2:\"constant\" 35:2 3:{2:1} 8:{1:{2:1} 2:[1]}} "
    "2:{1:\"g\" 2:\"get-tuple-element\" 35:3 36:1 3:{2:11}} "
    "2:{1:\"fu\" 2:\"fusion\" 11:\"kLoop\" 35:4 36:3 38:1 3:{2:11}} "
    "2:{1:\"ca\" 2:\"call\" 35:5 36:4 38:2 3:{2:11} 7:{2:\"op\" 3:\"x.py\" 4:3}} "
    "2:{1:\"lt\" 2:\"custom-call\" 28:\"__cublas$lt$matmul\" 35:6 36:5 36:2 3:{2:11} "
    "43:\"{\\042gemm_backend_config\\042:{\\042alpha_real\\042:2}}\"} "
    "2:{1:\"z\" 2:\"add\" 35:7 36:6 36:4 3:{2:11}}} 4:\"\" 6:3}";

struct view {
    xpl_bytes_t proto;
    const char *const *options;
};

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct view *const v = input;
    (void)arena;
    return ask_program_tool("graph_viewer", v->proto, v->options, LIMIT, out, err);
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf proto = wt_message(program);
    static const char *const views[][11] = {
        {"type", "graph", "node_name", "main"},
        {"type", "graph", "node_name", "fu", "graph_width", "2", "show_metadata", "true"},
        {"type", "graph", "format", "html"},
        {"type", "custom_call"},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        fault_each(&(struct fault_scenario){run, &(struct view){{proto.p, proto.n}, views[i]},
                                            .least = 6});
    return 0;
}
