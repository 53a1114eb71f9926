// SPDX-License-Identifier: Apache-2.0
// The runs below a directory, without a daemon.
#ifndef XPL_CLI_RUNS_DIRECTORY_H_
#define XPL_CLI_RUNS_DIRECTORY_H_

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct xpl_arena;

struct xpl_run_below {
    xpl_str_t name;   // relative to the directory, as sessions are named
    const char *path; // of its directory, which can be read
    int64_t captured_ms;
};
// The newest `most` runs captured since `since_ms`, the newest first, in `arena`.  Says on stderr,
// after `flag`, why there are none.  Returns the exit status.
int xpl_runs_below(const char *flag, const char *dir, int64_t since_ms, size_t most,
                   struct xpl_arena *arena, struct xpl_run_below **ret, size_t *ret_n);

#endif
