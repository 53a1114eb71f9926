// SPDX-License-Identifier: Apache-2.0
// Text for terminals.  Names in profiles, file names and messages of other machines may contain
// control characters, which could move the cursor, type for the user, or reorder the text on
// screen. The three programs write to terminals only through these streams, which replace each
// control character but tabs and ends of lines by '?' (xpl_utf8_shown).  Other files and pipes get
// all bytes unchanged.
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
