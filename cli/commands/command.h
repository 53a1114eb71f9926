// SPDX-License-Identifier: Apache-2.0
// What a row of the table of commands says.  Help, manual page, completion and the checks of
// arguments come from the rows.
#ifndef XPL_CLI_COMMANDS_COMMAND_H_
#define XPL_CLI_COMMANDS_COMMAND_H_

#include <stdbool.h>
#include <stddef.h>

struct xpl_args;

// A table of a command's answer, for --format csv.
struct xpl_section {
    const char *name; // for --section, "N" of any number; NULL: the end of a list
    const char *path; // of its rows in the document: a member; "": the document itself
    const char *keys; // "a|b.c": its columns, members of a row; NULL of "N"
};

struct xpl_command {
    const char *name;
    int (*run)(const struct xpl_args *);
    size_t min, max; // arguments after the name
    bool joins;      // several arguments are paths of one run
    // As usage has them.  SESSION, RUN, PATH, FILE, DIR, TOOL and REPORT are completed as what
    // they are, words in small letters as they stand there.
    const char *arguments;
    const char *help;    // one line
    const char *about;   // sentences; NULL: the line says all
    const char *formats; // of --format, the preset first; NULL: there is none
    const struct xpl_section *sections;
    const char *examples; // lines
    // Its REPORT of number i and a line of help; NULL: the end. NULL: it has none.
    const char *(*report)(size_t i, const char **ret_help);
};

#endif
