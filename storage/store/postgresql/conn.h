// SPDX-License-Identifier: Apache-2.0
// Private: one connection to PostgreSQL, on which nothing takes longer than it may.
//
// Statements have no names and parameters in binary, so that a pooler between us and the server may
// give each transaction another connection.  A connection belongs to one thread at a time.
#ifndef XPL_STORAGE_STORE_POSTGRESQL_CONN_H_
#define XPL_STORAGE_STORE_POSTGRESQL_CONN_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "storage/store/postgresql/libpq.h"

// What a statement came to.
enum xpl_pg_rc {
    XPL_PG_OK,
    XPL_PG_NONE,     // no such row
    XPL_PG_AWAY,     // no connection: the server is gone, or did not answer in time
    XPL_PG_BUSY,     // a lock, a deadlock or the server's own time limit; the next try may pass
    XPL_PG_FULL,     // the server's disk, memory or connections
    XPL_PG_TOOBIG,   // for the store's limit
    XPL_PG_NOMEM,    // here
    XPL_PG_DAMAGE,   // stored data is damaged
    XPL_PG_READONLY, // a standby, or told to be read only
    XPL_PG_DENIED,   // wrong password, no such database, no right to do that
    XPL_PG_SCHEMA,   // our tables are not there, or others than expected
    XPL_PG_TAKEN,    // another process has just made the same object
    XPL_PG_OTHER,
};

enum { XPL_PG_WHY = 200 };

struct xpl_pg_conn {
    const struct xpl_pq *pq;
    PGconn *c;
    struct xpl_pg_conn *next;           // of a pool
    unsigned epoch;                     // of the pool
    int wake_fd;                        // becomes readable when the store closes; -1: none
    unsigned timeout_ms;                // of each statement
    uint64_t until_ns;                  // of the one that runs
    atomic_uint_fast64_t *n_statements; // of all connections of a store; NULL: not counted
    char why[XPL_PG_WHY];               // of the last failure; never a password
};

// Where to connect: libpq's keywords and values.
struct xpl_pg_target {
    const char *const *keywords, *const *values; // NULL ends them
    const char *password;                        // or NULL
};

// Connects; *ret is set in any case but NOMEM, for `why`.  The system's resolver resolves names
// without a time limit: do not call it on threads with waiters.
enum xpl_pg_rc xpl_pg_connect(const struct xpl_pq *pq, const struct xpl_pg_target *t,
                              unsigned timeout_ms, int wake_fd, struct xpl_pg_conn **ret);
// NULL is fine.
void xpl_pg_disconnect(struct xpl_pg_conn *c);
// Whether an idle connection is still one, as far as can be told without asking the server.
bool xpl_pg_is_alive(struct xpl_pg_conn *c);

// ---- parameters ----

enum { XPL_PG_ARGS = 24 };

struct xpl_pg_args {
    int n;
    Oid types[XPL_PG_ARGS];
    const char *values[XPL_PG_ARGS];
    int lens[XPL_PG_ARGS], formats[XPL_PG_ARGS];
    uint8_t numbers[XPL_PG_ARGS][8];
};

void xpl_pg_arg_i64(struct xpl_pg_args *a, int64_t v);
// NULL above INT64_MAX.
void xpl_pg_arg_u64(struct xpl_pg_args *a, uint64_t v);
// The bytes stay where they are until the statement has run.
void xpl_pg_arg_bytes(struct xpl_pg_args *a, xpl_bytes_t v);
void xpl_pg_arg_text(struct xpl_pg_args *a, xpl_str_t v); // without NULs, UTF-8
void xpl_pg_arg_null_bytes(struct xpl_pg_args *a);

// Arrays, as bytes of a parameter: begin, one put for each element, then the argument.
enum xpl_pg_array { XPL_PG_INT8S = 1016, XPL_PG_BYTEAS = 1001, XPL_PG_TEXTS = 1009 };
void xpl_pg_array_begin(struct xpl_buf *b, enum xpl_pg_array type, size_t n);
void xpl_pg_array_i64(struct xpl_buf *b, int64_t v);
void xpl_pg_array_bytes(struct xpl_buf *b, xpl_bytes_t v);
void xpl_pg_arg_array(struct xpl_pg_args *a, enum xpl_pg_array type, const struct xpl_buf *b);

// ---- statements ----

// Statements without parameters or rows, separated by ';'.
enum xpl_pg_rc xpl_pg_exec(struct xpl_pg_conn *c, const char *sql);
// One statement.  `ret` may be NULL; else *ret is freed by pq->clear, and NULL on failure.
enum xpl_pg_rc xpl_pg_query(struct xpl_pg_conn *c, const char *sql, const struct xpl_pg_args *a,
                            PGresult **ret);
// One statement and how many rows it wrote.
enum xpl_pg_rc xpl_pg_run(struct xpl_pg_conn *c, const char *sql, const struct xpl_pg_args *a,
                          int64_t *ret_rows);
// The first column of the first row; NONE without one.
enum xpl_pg_rc xpl_pg_ask(struct xpl_pg_conn *c, const char *sql, const struct xpl_pg_args *a,
                          int64_t *ret);
// One statement whose rows are handed out one by one, as they come.  NONE after the last one;
// whoever stops before that has to disconnect.
enum xpl_pg_rc xpl_pg_send(struct xpl_pg_conn *c, const char *sql, const struct xpl_pg_args *a);
enum xpl_pg_rc xpl_pg_next_row(struct xpl_pg_conn *c, PGresult **ret);
// COPY ... FROM STDIN (FORMAT binary): begin, data as often as needed, end.
enum xpl_pg_rc xpl_pg_copy_begin(struct xpl_pg_conn *c, const char *sql);
enum xpl_pg_rc xpl_pg_copy_data(struct xpl_pg_conn *c, xpl_bytes_t data);
enum xpl_pg_rc xpl_pg_copy_end(struct xpl_pg_conn *c);
// Gives up: the statement fails, and with it the transaction.
enum xpl_pg_rc xpl_pg_copy_cancel(struct xpl_pg_conn *c);

// ---- rows ----

int64_t xpl_pg_get_i64(struct xpl_pg_conn *c, const PGresult *r, int row, int column);
xpl_bytes_t xpl_pg_get_bytes(struct xpl_pg_conn *c, const PGresult *r, int row, int column);

#endif
