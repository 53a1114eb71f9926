// SPDX-License-Identifier: Apache-2.0
// A limit on SQLite's allocations for one statement: SQLite's own limit is one for the whole
// process.  Allocations also end a statement past its deadline: SQLite has no other way to stop
// while it prepares a statement, or between the calls of functions of one row.
#ifndef XPL_SQL_HEAP_H_
#define XPL_SQL_HEAP_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/exec.h"

// Puts itself between SQLite and its allocator.  Before anything else calls SQLite; false: it was
// too late, and statements have no such limit.
bool xpl_sql_heap_install(void);
// Begins to count this thread's allocations from SQLite's heap, less its frees, until
// xpl_sql_heap_end: beyond `limit` bytes, and once `exec` is cancelled, allocations fail.  `exec`
// outlives the end.
void xpl_sql_heap_begin(uint64_t limit, struct xpl_exec *exec);
// Allocations between the two do not count.  xpl_sql_heap_pause returns the budget to resume with.
int64_t xpl_sql_heap_pause(void);
void xpl_sql_heap_resume(int64_t paused);
// Whether the limit was met.
bool xpl_sql_heap_end(void);

#endif
