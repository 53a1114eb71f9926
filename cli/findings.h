// SPDX-License-Identifier: Apache-2.0
// Findings as a table for a person.
#ifndef XPL_CLI_FINDINGS_H_
#define XPL_CLI_FINDINGS_H_

#include "cli/args.h"
#include "client/xplaned.h"

// Prints those of a session, as part of its summary; says on stderr when there are none to be had.
// Returns the exit status.
int xpl_findings_print_session(const struct xpl_args *a, xpl_client *c, const char *session);

#endif
