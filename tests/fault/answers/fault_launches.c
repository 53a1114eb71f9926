// SPDX-License-Identifier: Apache-2.0
// Launches of two hosts, with every allocation failing once.
#include "tests/fault/answers/each.h"
#include "tests/unit/tools/launches_render.h"

static xpl_status_t run(const void *spaces, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    (void)arena;
    return launches_of(spaces, 2, "5", out, err);
}

int main(void) {
    struct xpl_buf spaces[] = {launches_profile(0), launches_profile(2)};
    fault_each(&(struct fault_scenario){run, spaces, 5, .some_only_speed = true});
    xpl_buf_fini(&spaces[0]);
    xpl_buf_fini(&spaces[1]);
    return 0;
}
