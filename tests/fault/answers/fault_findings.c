// SPDX-License-Identifier: Apache-2.0
// Findings of two hosts, with every allocation failing once.
#include "tests/fault/answers/each.h"
#include "tests/unit/breakdown/findings_render.h"
#include "tests/unit/breakdown/slow_profiles.h"

static xpl_status_t run(const void *spaces, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    (void)arena;
    return findings_of(spaces, 2, out, err);
}

int main(void) {
    struct xpl_buf spaces[] = {slow_profile("load_batch", "all-reduce.1", 3000),
                               slow_profile("backend_compile", "all-reduce.1", 1000)};
    fault_each(&(struct fault_scenario){run, spaces, 21, .some_only_speed = true});
    xpl_buf_fini(&spaces[0]);
    xpl_buf_fini(&spaces[1]);
    return 0;
}
