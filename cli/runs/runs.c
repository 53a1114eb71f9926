// SPDX-License-Identifier: Apache-2.0
#include "cli/runs/runs.h"

#include <stdio.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "base/cleanup.h"
#include "cli/remote.h"
#include "cli/runs/answer.h"
#include "cli/runs/place.h"
#include "storage/sessions/catalogue.h"

// ---- what a run is ----

static bool is_path_of_bundles(const char *path) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct xpl_inputs in;
    struct xpl_error err = {0};
    xpl_arena_init(&arena, (size_t)64 << 20);
    if (xpl_inputs_from_paths(&path, 1, xpl_format_match, &arena, &in, &err) != XPL_OK ||
        in.n_hosts == 0)
        return false; // what is wrong is said by who opens it
    const struct xpl_format *const f = xpl_run_format(in.hosts[0].path);
    return f && strcmp(f->family, "iree") == 0;
}

// Whether a run, a path or a session, is of bundles of IREE.
static bool is_bundle(const struct xpl_args *a, const char *run) {
    if (xpl_run_place(a, run) == XPL_RUN_PATH) return is_path_of_bundles(run);
    xpl_client *const c = xpl_remote_open(a);
    if (!c) return false;
    const bool is = xpl_run_has_bundles(c, run);
    xpl_client_close(c);
    return is;
}

int xpl_runs_hint(const struct xpl_args *a, const char *run, int status) {
    if (status == XPL_EXIT_FAILED && is_bundle(a, run))
        xpl_say("for the time of a bundle of IREE use `xplanectl iree explain %s`", run);
    return status;
}

// ---- its summary ----

int xpl_runs_summarize(const struct xpl_args *a, const char *run, struct xpl_arena *arena,
                       const struct xpl_run_summary **ret) {
    struct xpl_run_answer answer;
    struct xpl_run_summary *s = NULL;
    struct xpl_error err = {0};
    const char *const tool = is_bundle(a, run) ? "iree_run_summary" : "run_summary";
    int status = xpl_run_answer(a, tool, run, &answer);
    if (xpl_is_answered(status) &&
        xpl_run_summary_decode((xpl_bytes_t){answer.p, answer.n}, arena, &s, &err) != XPL_OK) {
        xpl_say("%s: %s", run, err.msg);
        status = XPL_EXIT_FAILED;
    }
    if (s) *ret = s;
    xpl_run_answer_fini(&answer);
    return status;
}
