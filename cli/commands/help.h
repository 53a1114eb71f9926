// SPDX-License-Identifier: Apache-2.0
// What the tables of commands and options say, as text, for the manual page and as JSON.
#ifndef XPL_CLI_COMMANDS_HELP_H_
#define XPL_CLI_COMMANDS_HELP_H_

#include <stdbool.h>
#include <stdio.h>

#include "base/text/near.h"
#include "cli/commands/command.h"

struct xpl_commands {
    const struct xpl_command *rows;
    size_t n;
};

// All commands in a line each, the usual options, and the topics: fits a screen of 60 lines.
void xpl_commands_show_all(struct xpl_commands all, FILE *out);
// Writes a topic, or only checks that it exists if `out` is NULL.  False: no such topic.
bool xpl_commands_show_topic(struct xpl_commands all, const char *name, FILE *out);
// Adds the names of the topics.
void xpl_commands_near_topics(struct xpl_near *near);
// Of one: arguments, its own options, examples.
void xpl_commands_show_one(const struct xpl_command *c, FILE *out);
// The tables themselves, as one JSON document.
int xpl_commands_json(const struct xpl_args *a, struct xpl_commands all);
// For docs/man/make.py: parts of the manual page, each after a line with its name.
void xpl_commands_man(struct xpl_commands all, FILE *out);

#endif
