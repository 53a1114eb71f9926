// SPDX-License-Identifier: Apache-2.0
// A limit of what SQLite may allocate for one statement: SQLite's own limit is one for the whole
// process, and its preparing of a statement asks nobody.
#ifndef XPL_SQL_HEAP_H_
#define XPL_SQL_HEAP_H_

#include <stdbool.h>
#include <stdint.h>

// Puts itself between SQLite and its allocator.  Before anything else calls SQLite; false: it was
// too late, and statements have no such limit.
bool xpl_sql_heap_install(void);
// What this thread allocates from SQLite's heap until xpl_sql_heap_end counts, less what it frees:
// beyond `limit` bytes there is none.
void xpl_sql_heap_begin(uint64_t limit);
// What happens between the two does not count.  The budget is given back to resume.
int64_t xpl_sql_heap_pause(void);
void xpl_sql_heap_resume(int64_t paused);
// Whether the limit was met.
bool xpl_sql_heap_end(void);

#endif
