// SPDX-License-Identifier: Apache-2.0
// memory_profile with every allocation failing once: a clean error, nothing leaked, and with memory
// back the same answer as before.
#include <string.h>

#include "analysis/tools/memory_profile/memory_profile.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"
#include "tests/fault/answers/each.h"
#include "tests/unit/tools/memory_fixture.h"

static struct xpl_buf make(void) {
    struct xpl_buf line = new_line(1);
    for (unsigned i = 0; i < 300; i++) {
        struct xpl_buf e = new_event(i % 4 == 3 ? EV_FREE : EV_ALLOC, 1000 - i);
        put_text_stat(&e, ST_NAME, i % 2 ? "one" : "two");
        put_int_stat(&e, ST_USED, i % 50);
        put_int_stat(&e, ST_BYTES, i);
        put_int_stat(&e, ST_ADDRESS, i);
        put_text_stat(&e, ST_OP, "op");
        if (i % 3 == 0) put_int_stat(&e, ST_STEP, i / 30);
        put_child(&line, 4, &e);
    }
    return memory_space(&line, 1);
}

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct xpl_buf *const space = input;
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_xspace *xs;
    XPL_TRY(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, &exec, &xs, err));
    return xpl_memory_profile(xs, &exec, 16 << 20, out, err);
}

int main(void) {
    struct xpl_buf space = make();
    fault_each(&(struct fault_scenario){run, &space, .least = 21});
    xpl_buf_fini(&space);
    CHECK_EQ(xpl_fault_live(), 0);
    return 0;
}
