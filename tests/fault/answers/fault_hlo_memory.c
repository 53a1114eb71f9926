// SPDX-License-Identifier: Apache-2.0
// Memory of an HLO program and all answers of memory_viewer, with every allocation failing once: a
// clean error, nothing leaked, and with memory back the same as before.

#include "tests/fault/answers/each.h"
#include "tests/memory_viewer_fixture.h"
#include "tests/wire_text.h"

enum { LIMIT = 1 << 24 };

// Allocations out of order, stack frames, a configuration, memory that is shared.
static const char program[] =
    "1:{1:\"m\" 3:{2:{1:\"a\" 2:\"add\" 35:1 3:{2:13 4:{2:11 3:[9000] 5:{1:[0]}}} 7:{15:2} "
    "43:\"{\\042used_scoped_memory_configs\\042:[{\\042memory_space\\042:\\0421\\042,"
    "\\042size\\042:\\0425\\042}]}\"}} 17:{1:\"g.py\" 3:{1:1 3:12} 4:{1:1} 4:{1:1 2:1}}} "
    "3:{1:{1:1 2:20000 3:{4:1 3:[0]} 4:1} 1:{1:2 2:30000 3:{4:1}} 1:{1:3 2:40000 3:{4:1}} "
    "3:{1:2 2:60000 8:1 9:{1:1 3:20000} 9:{1:2 2:20000 3:30000}} "
    "3:{1:1 2:40000 8:1 7:1 9:{1:3 3:40000} 9:{1:9}} "
    "4:{1:{2:1 4:\"a\"} 1:{1:2 2:2 5:1} 1:{1:1 2:1} 1:{1:1 2:2} 1:{2:2}}}";

struct view {
    xpl_bytes_t proto;
    const char *const *options;
};

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct view *const v = input;
    (void)arena;
    return ask_memory_viewer(v->proto, v->options, LIMIT, out, err);
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf proto = wt_message(program);
    static const char *const views[][7] = {
        {"memory_space", "1"},
        {"memory_space", "1", "view_memory_allocation_timeline", "true"},
        {"memory_space", "1", "view", "lines"},
        {"memory_space", "1", "view", "ops", "other", "m(1)"},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        fault_each(&(struct fault_scenario){run, &(struct view){{proto.p, proto.n}, views[i]},
                                            .least = 6});
    return 0;
}
