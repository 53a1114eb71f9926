// SPDX-License-Identifier: Apache-2.0
// Findings of two hosts, with every allocation failing once.
#include "tests/check.h"
#include "tests/unit/breakdown/findings_render.h"
#include "tests/unit/breakdown/slow_profiles.h"

int main(void) {
    struct xpl_buf spaces[] = {slow_profile("load_batch", "all-reduce.1", 3000),
                               slow_profile("backend_compile", "all-reduce.1", 1000)};
    struct xpl_buf expected, got;
    struct xpl_error err = {0};
    xpl_fault_reset();
    CHECK_OK(findings_of(spaces, 2, &expected, &err), &err);
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    CHECK_OK(findings_of(spaces, 2, &got, &err), &err);
    const uint64_t n = xpl_fault_count();
    xpl_buf_fini(&got);
    CHECK(n > 20);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        err = (struct xpl_error){0};
        const xpl_status_t st = findings_of(spaces, 2, &got, &err);
        CHECK(st == XPL_RESOURCE_EXHAUSTED || st == XPL_OK); // some are only for speed
        if (st == XPL_OK) CHECK_BYTES(got.p, got.n, expected.p, expected.n);
        xpl_buf_fini(&got);
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_buf_fini(&expected);
    xpl_buf_fini(&spaces[0]);
    xpl_buf_fini(&spaces[1]);
    return 0;
}
