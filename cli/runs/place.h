// SPDX-License-Identifier: Apache-2.0
// Where the answers about a run come from: the one rule of all commands that take a RUN.
#ifndef XPL_CLI_RUNS_PLACE_H_
#define XPL_CLI_RUNS_PLACE_H_

#include "cli/args.h"
#include "cli/library/library.h"

enum xpl_run_place { XPL_RUN_SESSION, XPL_RUN_PATH };

// A session of that name comes first.  Else a run that exists as a path, or has a '/', is a path: a
// file, or the directory of a run, which needs no daemon.  The daemon is asked once about each run
// that may be both.  One thread at a time.
enum xpl_run_place xpl_run_place(const struct xpl_args *a, const char *run);
// The paths of a run that is one: `*run`, or all arguments of a command that joins them.
const char *const *xpl_run_paths(const struct xpl_args *a, const char *const *run, size_t *ret_n);
// Makes one run of several arguments of a command that joins them: paths stay, sessions become
// "A,B" (xpl_snapshot_find_all).  With --join a directory becomes the files of its newest session.
// False, with the reason on stderr: wrong usage.  Before the command runs.
bool xpl_run_join(struct xpl_args *a);
// After NOT_FOUND: the only session of the daemon whose name begins with `run`, or NULL.  Says on
// stderr when several do.  Lives as long as the program.  One thread at a time.
const char *xpl_run_beginning(xpl_client *c, const char *run);
// After NOT_FOUND: says on stderr what a run that is no session was not, either, when it looks like
// a file.
void xpl_run_no_session(const char *run);

struct xpl_format;
// The format of the file, recognized by its content; if that fails, the one that its name promises,
// or NULL.
const struct xpl_format *xpl_run_format(const char *path);

#endif
