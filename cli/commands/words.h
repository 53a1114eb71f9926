// SPDX-License-Identifier: Apache-2.0
// Text of help: lines that are filled with words, lists of values, exit statuses.
#ifndef XPL_CLI_COMMANDS_WORDS_H_
#define XPL_CLI_COMMANDS_WORDS_H_

#include <stddef.h>
#include <stdio.h>

// Lines of at most 100 columns, where words allow.
struct xpl_words {
    FILE *out;
    size_t indent, column;
};

// Begins a line with `head`, and its words at column `indent`.
struct xpl_words xpl_words_begin(FILE *out, const char *head, size_t indent);
void xpl_words_put(struct xpl_words *w, const char *text);
// The same with a capital and a full stop.
void xpl_words_put_sentence(struct xpl_words *w, const char *text);
// "a|b|c" as "a, b or c".
void xpl_words_list(const char *values, char *out, size_t size);

// What stands for RUN in a command's arguments (cli/runs/place.h).
#define XPL_RUN_MEANING                                                                            \
    "RUN is a session of the daemon or, when none has that name, a path, which needs no daemon: "  \
    "a "                                                                                           \
    "file or the directory of a run. What has a slash, or exists here, may be a path."

enum { XPL_N_EXITS = 6 };
extern const char *const xpl_exit_meanings[XPL_N_EXITS]; // "0 done"

#endif
