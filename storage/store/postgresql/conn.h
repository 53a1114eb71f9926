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

// Types of ours, as a parameter has them, and some of them a column, where NULL is 0.
enum xpl_pg_type {
    XPL_PG_I64,   // int64_t, or a uint64_t up to INT64_MAX
    XPL_PG_INT,   // int, as a bigint
    XPL_PG_BOOL,  // bool, as a bigint
    XPL_PG_TEXT,  // xpl_str_t; written without NULs and invalid UTF-8, at most 64 KiB
    XPL_PG_BYTES, // xpl_bytes_t
    XPL_PG_MS,    // int64_t, only a column: a time of the database's, as one of ours
    // Only parameters:
    XPL_PG_NAME, // as TEXT, at most 4,096 bytes
    XPL_PG_U32,  // uint32_t, as a bigint
    XPL_PG_U64,  // uint64_t: NULL above INT64_MAX
    XPL_PG_FLAG, // bool, as a boolean
    XPL_PG_REAL, // double: NULL unless finite
    XPL_PG_ID,   // 16 bytes
};

enum { XPL_PG_ARGS = 24 };

// A value, or an array of those of `n` elements, `stride` bytes apart.
struct xpl_pg_arg {
    enum xpl_pg_type type;
    bool is_array, is_null;
    const void *first; // NULL: `value`
    size_t n, stride;
    union {
        uint64_t number;
        xpl_bytes_t bytes;
        xpl_str_t text;
    } value;
};

// At most XPL_PG_ARGS.  They refer to values of the caller's until the statement has run.
struct xpl_pg_args {
    const struct xpl_pg_arg *v;
    size_t n;
};
#define XPL_PG_WITH(...)                                                                           \
    (&(const struct xpl_pg_args){(const struct xpl_pg_arg[]){__VA_ARGS__},                         \
                                 sizeof((struct xpl_pg_arg[]){__VA_ARGS__}) /                      \
                                     sizeof(struct xpl_pg_arg)})

static inline struct xpl_pg_arg xpl_pg_i64(int64_t v) {
    return (struct xpl_pg_arg){.type = XPL_PG_I64, .value.number = (uint64_t)v};
}
static inline struct xpl_pg_arg xpl_pg_u64(uint64_t v) { // NULL above INT64_MAX
    return (struct xpl_pg_arg){.type = XPL_PG_U64, .value.number = v};
}
static inline struct xpl_pg_arg xpl_pg_bytes(xpl_bytes_t v) {
    return (struct xpl_pg_arg){.type = XPL_PG_BYTES, .value.bytes = v};
}
static inline struct xpl_pg_arg xpl_pg_text(xpl_str_t v) {
    return (struct xpl_pg_arg){.type = XPL_PG_TEXT, .value.text = v};
}
static inline struct xpl_pg_arg xpl_pg_name(xpl_str_t v) {
    return (struct xpl_pg_arg){.type = XPL_PG_NAME, .value.text = v};
}
static inline struct xpl_pg_arg xpl_pg_array(enum xpl_pg_type type, const void *first, size_t n,
                                             size_t stride) {
    return (struct xpl_pg_arg){
        .type = type, .is_array = true, .first = first, .n = n, .stride = stride};
}

// A member of the first `n` structs at `rows`.
#define XPL_PG_COLUMN(type, rows, n, member)                                                       \
    xpl_pg_array(XPL_PG_##type, (n) ? &(rows)->member : NULL, n, sizeof *(rows))

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

// ---- rows ----

int64_t xpl_pg_get_i64(struct xpl_pg_conn *c, const PGresult *r, int row, int column);
xpl_bytes_t xpl_pg_get_bytes(struct xpl_pg_conn *c, const PGresult *r, int row, int column);

#endif
