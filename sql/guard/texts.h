// SPDX-License-Identifier: Apache-2.0
// LIKE, GLOB, instr, replace and the trims of statements.  The time of a call grows with the
// product of two lengths, and SQLite's own look at no clock.  Private to this folder.
#ifndef XPL_SQL_TEXTS_H_
#define XPL_SQL_TEXTS_H_

#include <sqlite3.h>
#include <stddef.h>

#include "base/exec.h"

struct xpl_sql_texts {
    struct xpl_exec *exec; // a call ends when it is cancelled
    size_t unseen;         // bytes compared since the last look at it
};

// Declares them in place of SQLite's, with the same answers.  `t` outlives the connection.
int xpl_sql_texts_declare(struct xpl_sql_texts *t, sqlite3 *db);

#endif
