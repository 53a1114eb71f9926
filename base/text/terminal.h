// SPDX-License-Identifier: Apache-2.0
// Text for terminals.  Names in profiles, names of files and messages of other machines may hold
// control characters, which could move the cursor, type for the user, or reorder what is shown.
// Output of the three programs reaches a terminal only through these streams, which write '?' in
// place of each (xpl_utf8_shown), but for tabs and ends of lines.  Other files and pipes get all
// bytes as they are.
#ifndef XPL_BASE_TEXT_TERMINAL_H_
#define XPL_BASE_TEXT_TERMINAL_H_

#include <stdio.h>

#include "base/str.h"

// Filters stdout and stderr where they are terminals.  Early in main(), before anything is printed
// and before other threads run.
void xpl_terminal_guard(void);
// A stream that writes to `fd` and closes it, filtered when that is a terminal.  NULL with errno
// set: `fd` stays open.
FILE *xpl_terminal_open(int fd);
// Writes foreign text into a line of `out`: at most `max` characters, '?' for control characters,
// ends of lines among them.
void xpl_terminal_text(xpl_str_t s, size_t max, FILE *out);
// Clears the line of the terminal that stderr is, past the filter.
void xpl_terminal_clear_line(void);

#endif
