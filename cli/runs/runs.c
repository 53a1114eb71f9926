// SPDX-License-Identifier: Apache-2.0
#include "cli/runs/runs.h"

#include "cli/runs/answer.h"

int xpl_runs_summarize(const struct xpl_args *a, const char *run, struct xpl_arena *arena,
                       const struct xpl_run_summary **ret) {
    struct xpl_run_answer answer;
    struct xpl_run_summary *s = NULL;
    struct xpl_error err = {0};
    int status = xpl_run_answer(a, "run_summary", run, &answer);
    if (xpl_is_answered(status) &&
        xpl_run_summary_decode((xpl_bytes_t){answer.p, answer.n}, arena, &s, &err) != XPL_OK) {
        xpl_say("%s: %s", run, err.msg);
        status = XPL_EXIT_FAILED;
    }
    if (s) *ret = s;
    xpl_run_answer_fini(&answer);
    return status;
}
