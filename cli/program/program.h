// SPDX-License-Identifier: Apache-2.0
// A program that runs while this one waits for it, and is told when this one is interrupted.
#ifndef XPL_CLI_PROGRAM_PROGRAM_H_
#define XPL_CLI_PROGRAM_PROGRAM_H_

#include <stdbool.h>

struct xpl_program_end {
    int exit_code;    // -1: it did not exit by itself
    int signal;       // that killed it; 0: none
    bool interrupted; // SIGINT or SIGTERM came to this process
};

// Runs argv (NULL-terminated, argv[0] is searched in PATH) to its end.  Its standard output goes to
// the descriptor `out`.  It has a separate process group, which SIGINT and SIGTERM are passed on
// to; from the second one on SIGKILL is, as a program may ignore them.  `tick`, or NULL, is called
// some times a second.  False after saying why it cannot be started.
bool xpl_program_run(const char *const *argv, int out, void (*tick)(void *arg), void *arg,
                     struct xpl_program_end *ret);

#endif
