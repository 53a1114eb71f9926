// SPDX-License-Identifier: Apache-2.0
// The command `iree`, for its row in the table of commands.
#ifndef XPL_CLI_IREE_COMMAND_H_
#define XPL_CLI_IREE_COMMAND_H_

#include "cli/args.h"

int xpl_bundle_command(const struct xpl_args *a);
// As xpl_command.report.
const char *xpl_bundle_report_name(size_t i, const char **ret_help);

#endif
