// SPDX-License-Identifier: Apache-2.0
// What is known and answered of a run, a session or a path (cli/runs/place.h), without its commands
// having to know which.
#ifndef XPL_CLI_RUNS_ANSWER_H_
#define XPL_CLI_RUNS_ANSWER_H_

#include "base/arena.h"
#include "base/buf.h"
#include "cli/args.h"
#include "cli/library/library.h"

// What a tool answers for a run.
struct xpl_run_answer {
    const void *p;
    size_t n;
    struct xpl_buf made; // of a path
    xpl_answer *got;     // of a session
};
// The answer of `tool` (NULL: the OpStats of the hosts together) with the flags' hosts and options.
// Says on stderr why there is none, and what it lacks.  Returns the exit status, of which
// xpl_is_answered says whether there is an answer, which is the caller's to free in any case.
int xpl_run_answer(const struct xpl_args *a, const char *tool, const char *run,
                   struct xpl_run_answer *ret);
void xpl_run_answer_fini(struct xpl_run_answer *r);

// What a run has: its hosts, and the tools that answer for it.
struct xpl_run_about {
    const xpl_session_info *info;
    xpl_sessions *got;      // of a session
    struct xpl_arena arena; // of a path
};
// Says on stderr why nothing is known.  Returns the exit status; *ret is the caller's to free in
// any case.
int xpl_run_about(const struct xpl_args *a, const char *run, struct xpl_run_about *ret);
void xpl_run_about_fini(struct xpl_run_about *r);

// Whether the profiles of the daemon's session are imported (their format is not XSpace): warnings
// then say what their files lost.  False if unknown.
bool xpl_run_is_imported(xpl_client *c, const char *session);

#endif
