// SPDX-License-Identifier: Apache-2.0
// SQLite's temporary files, in memory.  Without files SQLite sorts all rows at once and looks at no
// clock meanwhile; with them it sorts a few MiB at a time, and merges those row by row.  On a disk
// they would have no limit: here they count as the statement's memory (sql/heap.h).
#ifndef XPL_SQL_SCRATCH_H_
#define XPL_SQL_SCRATCH_H_

// Registers the file system once.  Its name, for sqlite3_open_v2; NULL: SQLite has no memory.
// Files with a name are those of the system.  Any thread.
const char *xpl_sql_scratch_name(void);

#endif
