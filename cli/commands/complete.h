// SPDX-License-Identifier: Apache-2.0
// Words that complete a command line, for the scripts of shells (scripts.c).
#ifndef XPL_CLI_COMMANDS_COMPLETE_H_
#define XPL_CLI_COMMANDS_COMPLETE_H_

#include "cli/args.h"
#include "cli/commands/help.h"

// `xplanectl __complete SHELL -- WORD...`: prints a line for each word that may stand in place of
// the last one, "WORD<tab>what it is"; "<tab>files" says that files may, too.  Of bash the only
// WORD is the line up to the cursor.  A daemon is asked for sessions and hosts, for less than a
// second; nothing is said on stderr.
int xpl_commands_complete(const struct xpl_args *a, struct xpl_commands all);

#endif
