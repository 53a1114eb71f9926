// SPDX-License-Identifier: Apache-2.0
// One connection to a SQLite database of ours, with its prepared statements, for whatever schema.
// For this folder only; functions give SQLite's result codes unless they say something else.  A
// connection belongs to one thread at a time.
#ifndef XPL_STORAGE_STORE_SQLITE_DB_H_
#define XPL_STORAGE_STORE_SQLITE_DB_H_

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

enum { XPL_DB_PAGE = 8192, XPL_DB_READ_BUSY_MS = 200, XPL_DB_WRITE_BUSY_MS = 2000 };

// What a database of ours is like.  Constant; the connections refer to it.
struct xpl_db_schema {
    uint32_t application_id; // in the header of the file
    // steps[v], a list of statements that ends with NULL, brings version v to v + 1.  A step that
    // was released never changes.
    const char *const *const *steps;
    int64_t version; // number of steps
    // A table of every version that other programs' databases do not have.
    const char *own_table;
    // Pragmas: of a connection that writes; of a file that is still empty.
    const char *setup_write, *setup_empty;
    const char *const *statements; // texts, by the numbers of xpl_db_stmt
    size_t n_statements;
};

struct xpl_db {
    sqlite3 *h;
    const struct xpl_db_schema *schema;
    struct xpl_db *next; // in the pool of readers
    uint64_t epoch;      // of the store when it was opened
    sqlite3_stmt *st[];  // prepared when first used
};

enum xpl_db_mode { XPL_DB_READ, XPL_DB_READ_IMMUTABLE, XPL_DB_WRITE };

// What the header of the file says about whose it is.
enum xpl_db_kind {
    XPL_DB_EMPTY,   // no tables yet
    XPL_DB_OURS,    // of this version
    XPL_DB_OLDER,   // of an older version: migrate it
    XPL_DB_NEWER,   // of a newer xplaned, or so a damaged header says
    XPL_DB_DAMAGED, // ours by its tables, and not by its header
    XPL_DB_FOREIGN, // another program's
};

// Opens, and reads the header, so that a file that is no database fails here; changes nothing in
// the file.  On failure *ret is untouched, and errmsg (size bytes) says more than the code.
int xpl_db_open(const char *path, enum xpl_db_mode mode, const struct xpl_db_schema *schema,
                struct xpl_db **ret, char *errmsg, size_t size);
// NULL is fine.  A writer checkpoints if it is the last connection.
void xpl_db_close(struct xpl_db *db);
int xpl_db_kind(struct xpl_db *db, enum xpl_db_kind *ret);
// Whether it can be written at all: a damaged header may forbid it (SQLITE_READONLY).  Leaves
// nothing behind; before statements are prepared.
int xpl_db_try_write(struct xpl_db *db);
// Switches the file to WAL and, while it is empty, to our page size.  Only for one that is ours.
int xpl_db_make_ours(struct xpl_db *db, enum xpl_db_kind kind);
// Makes or migrates the tables to the schema's version, in one transaction.
int xpl_db_migrate(struct xpl_db *db, enum xpl_db_kind kind);

// The prepared statement, reset and without bindings; NULL with *rc set on failure.
sqlite3_stmt *xpl_db_stmt(struct xpl_db *db, unsigned id, int *rc);
// Prepares every statement: fails when the tables are not what they should be.
int xpl_db_prepare_all(struct xpl_db *db);
// Steps a statement that returns nothing, and resets it.
int xpl_db_run(sqlite3_stmt *st);
// First column of the first row as an integer; *ret is `none` when there is no row.
int xpl_db_int(sqlite3_stmt *st, int64_t none, int64_t *ret);
int xpl_db_exec(struct xpl_db *db, const char *sql);
// Whether a code says that the file is broken.
bool xpl_db_is_damage(int rc);
// What a failure means; `os` is the errno that came with it.  INTERNAL: nothing else fits.
xpl_status_t xpl_db_status(int rc, int os);
// Whether the file at the path is another one now (moved or deleted under us).
bool xpl_db_moved(struct xpl_db *db);

// Binds; text and blobs must outlive the step.  Unsigned values above 2^63-1 become NULL.
int xpl_db_bind_u64(sqlite3_stmt *st, int at, uint64_t v);
int xpl_db_bind_text(sqlite3_stmt *st, int at, xpl_str_t s);
int xpl_db_bind_blob(sqlite3_stmt *st, int at, xpl_bytes_t b);

#endif
