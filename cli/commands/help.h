// SPDX-License-Identifier: Apache-2.0
// What the tables of commands and options say, as text, for the manual page and as JSON.
#ifndef XPL_CLI_COMMANDS_HELP_H_
#define XPL_CLI_COMMANDS_HELP_H_

#include <stdio.h>

#include "cli/commands/command.h"

struct xpl_commands {
    const struct xpl_command *rows;
    size_t n;
};

// Of all commands.
void xpl_commands_show_all(struct xpl_commands all, FILE *out);
// Of one: what it takes, its own options, those of all.
void xpl_commands_show_one(const struct xpl_command *c, FILE *out);
// The tables themselves, as one JSON document.
int xpl_commands_json(const struct xpl_args *a, struct xpl_commands all);
// For docs/man/make.py: parts of the manual page, each after a line with its name.
void xpl_commands_man(struct xpl_commands all, FILE *out);

#endif
