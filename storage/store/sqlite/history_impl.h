// SPDX-License-Identifier: Apache-2.0
// Private: what the files of the history share.  history.c has the database and the helpers below,
// history_rows.c what is written in it and read from it, history_shared.c what daemons may share
// instead.
#ifndef XPL_STORAGE_STORE_SQLITE_HISTORY_IMPL_H_
#define XPL_STORAGE_STORE_SQLITE_HISTORY_IMPL_H_

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "storage/store/captures.h"
#include "storage/store/history.h"
#include "storage/store/sqlite/db.h"

enum { NOTICES = 4, NOTICE_SIZE = 400 };

struct xpl_history {
    pthread_mutex_t mu;
    struct xpl_db *conn;                // NULL: off
    struct xpl_store *shared;           // has captures and schedules of all daemons; NULL: none
    const struct xpl_captures_ops *ops; // its functions for them
    atomic_bool on;                     // conn is set
    atomic_bool replaced;
    int lock_fd;
    char path[PATH_MAX], lock_path[PATH_MAX];
    char notices[NOTICES][NOTICE_SIZE];
    atomic_uint n_notices;
};

int xpl_hist_exec(sqlite3 *db, const char *sql);
// The statement, or NULL with *rc set; does nothing when *rc is a failure already.
sqlite3_stmt *xpl_hist_prepare(sqlite3 *db, const char *sql, int *rc);
// Steps a statement that returns nothing, and frees it.
void xpl_hist_run(sqlite3_stmt *st, int *rc);
void xpl_hist_bind_int(sqlite3_stmt *st, int at, int64_t v, int *rc);
void xpl_hist_bind_text(sqlite3_stmt *st, int at, xpl_str_t s, int *rc);
// Ids, sizes and inodes: kept as they are, also above 2^63-1.
void xpl_hist_bind_u64(sqlite3_stmt *st, int at, uint64_t v, int *rc);
int64_t xpl_hist_read_int(sqlite3 *db, const char *sql, int *rc);
// False, with the lock released, when there is no database.
bool xpl_hist_enter(struct xpl_history *h, int *rc);
// Says what `rc` means and unlocks.  A database that turned out to be broken is replaced.
xpl_status_t xpl_hist_leave(struct xpl_history *h, int rc, struct xpl_error *err);
xpl_status_t xpl_hist_fail_off(struct xpl_error *err);
// A text column, copied; false on OOM.
bool xpl_hist_column(sqlite3_stmt *st, int at, struct xpl_arena *arena, xpl_str_t *ret);
// Steps to the next row; false at the end and on failure.
bool xpl_hist_next(sqlite3_stmt *st, int *rc);

// ---- history_rows.c: what is in state.db, whoever else has some ----

xpl_status_t xpl_hist_list(struct xpl_history *h, uint64_t before, size_t limit,
                           struct xpl_arena *arena, struct xpl_history_capture **ret, size_t *ret_n,
                           struct xpl_error *err);
xpl_status_t xpl_hist_delete_capture(struct xpl_history *h, uint64_t id, struct xpl_error *err);
xpl_status_t xpl_hist_add_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                   uint64_t *ret_id, struct xpl_error *err);
xpl_status_t xpl_hist_set_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                   struct xpl_error *err);
xpl_status_t xpl_hist_delete_schedule(struct xpl_history *h, uint64_t id, struct xpl_error *err);
xpl_status_t xpl_hist_schedules(struct xpl_history *h, struct xpl_arena *arena,
                                struct xpl_history_schedule **ret, size_t *ret_n,
                                struct xpl_error *err);
xpl_status_t xpl_hist_add_session(struct xpl_history *h, uint64_t schedule_id,
                                  const struct xpl_history_session *s, struct xpl_error *err);
xpl_status_t xpl_hist_sessions(struct xpl_history *h, uint64_t schedule_id, struct xpl_arena *arena,
                               struct xpl_history_session **ret, size_t *ret_n,
                               struct xpl_error *err);
xpl_status_t xpl_hist_forget_session(struct xpl_history *h, uint64_t schedule_id, xpl_str_t name,
                                     struct xpl_error *err);

#endif
