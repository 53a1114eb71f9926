// SPDX-License-Identifier: Apache-2.0
// The table of options, and the parser that reads by it.
#ifndef XPL_CLI_COMMANDS_FLAGS_H_
#define XPL_CLI_COMMANDS_FLAGS_H_

#include <stdbool.h>
#include <stddef.h>

#include "cli/args.h"
#include "cli/commands/command.h"

enum xpl_flag_kind {
    XPL_FLAG_SWITCH,
    XPL_FLAG_TEXT,
    XPL_FLAG_NUMBER,
    XPL_FLAG_TIME,
    XPL_FLAG_SIZE,
    XPL_FLAG_HOST,     // may be given several times
    XPL_FLAG_COUNTER,  // likewise
    XPL_FLAG_REMOVED,  // likewise
    XPL_FLAG_METRIC,   // likewise
    XPL_FLAG_OPTION,   // key=value, may be given several times
    XPL_FLAG_ADVANCED, // likewise
};

// Several rows may have one name, for commands that mean different things by it: these differ in
// words alone.
struct xpl_flag {
    const char *name;
    char letter; // "-o"; 0: none
    enum xpl_flag_kind kind;
    size_t at;     // its member of struct xpl_args; of what may be given several times nothing
    long min, max; // of NUMBER, TIME, SIZE
    const char *commands; // "capture import": which it is for; NULL: all
    const char *value;    // what stands for its value in help, "TIME"; NULL of a SWITCH
    const char *values;   // "a|b" where it takes only these
    const char *preset;   // what holds without it; NULL: nothing to say
    const char *help;     // NULL: it is not for users
};

extern const struct xpl_flag xpl_flag_rows[];
extern const size_t xpl_n_flags;

// Whether it is for that command and not for all.
bool xpl_flag_is_for(const struct xpl_flag *f, const struct xpl_command *c);
// The values that it takes, of that command, as "a|b", perhaps in `buf`; NULL: any.
enum { XPL_FLAG_VALUES = 160 };
const char *xpl_flag_values(const struct xpl_flag *f, const struct xpl_command *c,
                            char buf[XPL_FLAG_VALUES]);
// Whether all that was given is for that command, or for all.  Says on stderr what is not, and what
// may have been meant.
bool xpl_flags_check(const struct xpl_args *a, const struct xpl_command *c);
// Parses argv.  On wrong usage says so on stderr and returns false.  The caller frees with
// xpl_args_fini in both cases; pointers point into argv but for the option copies.
bool xpl_flags_parse(struct xpl_args *a, int argc, char **argv);

#endif
