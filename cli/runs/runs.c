// SPDX-License-Identifier: Apache-2.0
#include "cli/runs/runs.h"

#include <stdio.h>

#include "cli/iree/sides.h"
#include "cli/runs/answer.h"

struct xpl_run_summary *xpl_runs_summarize(const struct xpl_args *a, const char *run,
                                           struct xpl_arena *arena) {
    struct xpl_run_answer answer;
    struct xpl_run_summary *s = NULL;
    struct xpl_error err = {0};
    if (xpl_sides_is_bundle(a, run)) return xpl_sides_summary(a, run, arena);
    if (xpl_is_answered(xpl_run_answer(a, "run_summary", run, &answer)) &&
        xpl_run_summary_decode((xpl_bytes_t){answer.p, answer.n}, arena, &s, &err) != XPL_OK)
        (void)fprintf(stderr, "xplanectl: %s: %s\n", run, err.msg);
    xpl_run_answer_fini(&answer);
    return s;
}
