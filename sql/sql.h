// SPDX-License-Identifier: Apache-2.0
// SELECT over profiles: planes, lines, events, statistics and instructions of programs as tables
// that are read directly from the profiles, in addition to the store's rows of all sessions.
// docs/sql.md has the tables.
//
// Statements are untrusted.  Each runs on a separate connection whose main database is empty and in
// memory; the store is attached read-only first, and an authorizer then refuses everything but
// reading.  Rows, bytes, time and memory have limits (xpl_sql_limits); between two checks of these,
// SQLite's own limits bound its work (guard.c).
//
// Threads: xpl_sql_run may be called by any number of threads; a cache is shared by them.
#ifndef XPL_SQL_SQL_H_
#define XPL_SQL_SQL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;

// Profiles are opened when a statement first reads them.
struct xpl_sql_profile {
    xpl_str_t session, host;
    const char *path; // of its file, for errors
    xpl_str_t key;    // of the bytes, for the cache: equal keys, equal bytes; empty: not kept
    int64_t session_mtime_ns;    // when the newest profile of its session was written
    int64_t session_captured_ns; // when its session was captured
};

struct xpl_sql_source {
    const struct xpl_sql_profile *profiles; // outlive the statement; those of a session together
    size_t n;                               // at most XPL_SQL_MAX_PROFILES
    // The bytes of profile i, good until `close` of *ret_file.  Any thread.  `exec` is cancelled at
    // the statement's deadline.
    xpl_status_t (*open)(void *arg, size_t i, struct xpl_exec *exec, void **ret_file,
                         xpl_bytes_t *ret, struct xpl_error *err);
    void (*close)(void *file); // may come after xpl_sql_run, from the cache
    // Whether the bytes are still those that were opened; called after reading.  NULL: they are.
    bool (*is_intact)(void *file);
    void *arg;
};
enum { XPL_SQL_MAX_PROFILES = 1 << 16 };

// Sessions whose metrics there are: those of files, or all of a daemon, whichever are named.
struct xpl_run_summary;
struct xpl_sql_session {
    xpl_str_t name;
    int64_t mtime_ns, captured_ns;
};
struct xpl_sql_runs {
    const struct xpl_sql_session *v; // outlive the statement
    size_t n;
    // Computes the metrics of session i (analysis/compare), in `arena`.  Called on the statement's
    // thread when the statement reaches that session; a session without metrics is left out.
    // `exec` as above.
    xpl_status_t (*summarize)(void *arg, size_t i, struct xpl_exec *exec, struct xpl_arena *arena,
                              const struct xpl_run_summary **ret, struct xpl_error *err);
    void *arg;
};

struct xpl_sql_limits {
    uint64_t rows;    // of the answer: the others are left out, and it says so
    uint64_t bytes;   // of the answer
    uint64_t memory;  // of SQLite while the statement runs
    uint64_t time_ms; // from its begin
};
// 10,000 rows, 16 MiB, 512 MiB, 30 s.
extern const struct xpl_sql_limits xpl_sql_default_limits;

struct xpl_sql_cache; // profiles that stay open between statements
// `most` of them without a statement; all together, also those in use, keep at most `limit` bytes.
struct xpl_sql_cache *xpl_sql_cache_new(size_t most, size_t limit);
// No statement may run.  NULL is fine.
void xpl_sql_cache_free(struct xpl_sql_cache *c);

struct xpl_sql_request {
    xpl_str_t statement;
    struct xpl_sql_source source;
    struct xpl_sql_runs runs;
    const char *store; // path of the store's database; NULL: without its tables
    // Called once before rows of the store are read, if the statement reads any; may wait.  NULL:
    // nothing is.
    void (*before_store)(void *arg);
    void *before_arg;
    const char *state; // path of the history's database, whose table labels is read; NULL: none
    struct xpl_sql_limits limits;
    struct xpl_sql_cache *cache; // NULL: profiles are closed at the end
    struct xpl_exec *exec;
    size_t limit; // bytes of each profile's arenas, and of what all tables of the statement keep
};

// Appends {"columns":[...],"rows":[[...],...],"cut":false} to `out`.  INVALID_ARGUMENT: the
// statement is wrong, with the position where SQLite knows it; PERMISSION_DENIED: it wants more
// than to read; RESOURCE_EXHAUSTED: memory or bytes; DEADLINE_EXCEEDED; CANCELLED; DATA_LOSS and
// others: of a profile that it read.
xpl_status_t xpl_sql_run(const struct xpl_sql_request *q, struct xpl_buf *out,
                         struct xpl_error *err) XPL_NODISCARD;

#endif
