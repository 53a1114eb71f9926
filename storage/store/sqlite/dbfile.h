// SPDX-License-Identifier: Apache-2.0
// What happens to a database as a file: the lock beside it, and the way a broken one
// goes.
#ifndef XPL_STORAGE_STORE_SQLITE_DBFILE_H_
#define XPL_STORAGE_STORE_SQLITE_DBFILE_H_

#include <stdbool.h>
#include <stddef.h>

enum xpl_dbfile_lock {
    XPL_DBFILE_MINE,
    XPL_DBFILE_OTHERS, // another process has it
    XPL_DBFILE_CANNOT  // errno says why
};
// Locks the file, which is made, for this process.  MINE: *ret_fd holds the lock until it is
// closed.
enum xpl_dbfile_lock xpl_dbfile_lock(const char *path, int *ret_fd);

// Renames the database `path`, and its log, to path.broken-<seconds since 1970>; `name` (size
// bytes) gets that.  The last `keep` broken ones stay (0: all).  False, with errno, when it cannot
// be renamed; true also when there was none.
bool xpl_dbfile_move_aside(const char *path, unsigned keep, char *name, size_t size);

#endif
