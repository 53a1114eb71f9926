// SPDX-License-Identifier: Apache-2.0
// Where in a statement SQLite's last error is.
#ifndef XPL_SQL_POSITION_H_
#define XPL_SQL_POSITION_H_

#include <sqlite3.h>

#include "base/str.h"

// The number of the character (not byte), from 1 on; 0 when it is not known.  SQLite tells it of
// columns, functions and syntax.  Of other errors it is where the word stands that the message is
// about, a missing table's name or a UNION, as far as there is but one that can be meant; and a
// statement that ends too early is wrong after its end.  To be called right after the failure; any
// thread that may use `db`.
size_t xpl_sql_error_position(sqlite3 *db, xpl_str_t statement);
// The number of the character at a byte of `statement`.
size_t xpl_sql_character_at(xpl_str_t statement, size_t byte);
// The NAME in "no such table: NAME", without its database; empty for other errors.  Valid as long
// as `message`.
xpl_str_t xpl_sql_missing_table(const char *message);
// The same of "no such column: NAME", without its table.
xpl_str_t xpl_sql_missing_column(const char *message);

#endif
