// SPDX-License-Identifier: Apache-2.0
// The tools of this build, by their table: without a daemon.
#ifndef XPL_CLI_TOOL_LIST_H_
#define XPL_CLI_TOOL_LIST_H_

#include <stdio.h>

#include "cli/args.h"

// `xplanectl tools --all`: every tool with its options; with --json all that the table says.
int xpl_list_tools(const struct xpl_args *a);
// For the manual page: the same in its markup.
void xpl_man_tools(FILE *out);
// For --help: the tools and the options that each has besides those that all have.
void xpl_help_tools(FILE *out);

#endif
