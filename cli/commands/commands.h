// SPDX-License-Identifier: Apache-2.0
// The table of commands.
#ifndef XPL_CLI_COMMANDS_COMMANDS_H_
#define XPL_CLI_COMMANDS_COMMANDS_H_

#include "cli/commands/command.h"

extern const struct xpl_command xpl_command_rows[];
extern const size_t xpl_n_commands;

#endif
