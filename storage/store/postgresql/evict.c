// SPDX-License-Identifier: Apache-2.0
// Removing results and rows, and keeping the store within its limit.
//
// The limit is of bytes before compression, so the database has less.  Each daemon adds what it
// puts to a sum that it reads again with each maintenance: between two, daemons do not see what
// others put.
#include "storage/store/postgresql/impl.h"

enum { OVERHEAD = 512, ROW_BYTES = 192 };

// Chunks of one week at a time: the others' partitions are not opened.
static enum xpl_pg_rc delete_chunks(struct xpl_pg_store *s, int64_t week, int64_t id) {
    return xpl_pg_query(s->w, "DELETE FROM result_data WHERE week=$1 AND result_id=$2",
                        XPL_PG_WITH(xpl_pg_i64(week), xpl_pg_i64(id)), NULL);
}

static enum xpl_pg_rc remove_listed(struct xpl_pg_store *s, const PGresult *r, size_t n) {
    int64_t ids[PG_BATCH], bytes = 0;
    enum xpl_pg_rc rc = XPL_PG_OK;
    for (size_t i = 0; rc == XPL_PG_OK && i < n; i++) {
        ids[i] = xpl_pg_get_i64(s->w, r, (int)i, 0);
        bytes += xpl_pg_get_i64(s->w, r, (int)i, 2) + OVERHEAD;
        if (!s->pq->getisnull(r, (int)i, 1))
            rc = delete_chunks(s, xpl_pg_get_i64(s->w, r, (int)i, 1), ids[i]);
    }
    const struct xpl_pg_args *const all =
        XPL_PG_WITH(xpl_pg_array(XPL_PG_I64, ids, n, sizeof *ids));
    if (rc == XPL_PG_OK)
        rc = xpl_pg_query(s->w, "DELETE FROM result_profiles WHERE result_id=ANY($1)", all, NULL);
    if (rc == XPL_PG_OK) rc = xpl_pg_query(s->w, "DELETE FROM results WHERE id=ANY($1)", all, NULL);
    if (rc == XPL_PG_OK) s->tx_bytes -= bytes;
    return rc;
}

enum xpl_pg_rc xpl_pg_remove(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                             int64_t *ret_n) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(s->w, sql, a, &r);
    *ret_n = rc == XPL_PG_OK ? s->pq->ntuples(r) : 0;
    if (*ret_n > PG_BATCH) rc = XPL_PG_OTHER;
    if (rc == XPL_PG_OK && *ret_n) rc = remove_listed(s, r, (size_t)*ret_n);
    if (r) s->pq->clear(r);
    return rc;
}

enum xpl_pg_rc xpl_pg_delete_rows_of(struct xpl_pg_store *s, int64_t profile_id,
                                     enum xpl_rows_kind kind) {
    static const char *const ops[] = {"DELETE FROM op_rows WHERE profile_id=$1",
                                      "DELETE FROM kernel_rows WHERE profile_id=$1"},
                             *const times[] = {"DELETE FROM step_rows WHERE profile_id=$1",
                                               "DELETE FROM memory_rows WHERE profile_id=$1"};
    const char *const *const each = kind == XPL_ROWS_OPS ? ops : times;
    int64_t n = 0, rows = 0;
    enum xpl_pg_rc rc = XPL_PG_OK;
    for (size_t i = 0; rc == XPL_PG_OK && i < 2; i++) {
        rc = xpl_pg_run(s->w, each[i], XPL_PG_WITH(xpl_pg_i64(profile_id)), &n);
        rows += n;
    }
    if (rc != XPL_PG_OK) return rc;
    if (rows) atomic_store(&s->rows_deleted, true);
    s->tx_bytes -= rows * ROW_BYTES;
    return XPL_PG_OK;
}

enum xpl_pg_rc xpl_pg_delete_rows(struct xpl_pg_store *s, int64_t profile_id) {
    enum xpl_pg_rc rc = xpl_pg_delete_rows_of(s, profile_id, XPL_ROWS_OPS);
    if (rc == XPL_PG_OK) rc = xpl_pg_delete_rows_of(s, profile_id, XPL_ROWS_TIMES);
    if (rc != XPL_PG_OK) return rc;
    // Also where the rows were none: what is evicted must not be found again.
    return xpl_pg_query(s->w,
                        "UPDATE profiles SET rows_version=NULL, memory_version=NULL,"
                        " rows_at_ms=NULL, n_rows=0 WHERE id=$1 AND rows_at_ms IS NOT NULL",
                        XPL_PG_WITH(xpl_pg_i64(profile_id)), NULL);
}

// Ids that other threads left in one of the tables.
static size_t take_ids(_Atomic int64_t *from, size_t n, int64_t *ret) {
    size_t taken = 0;
    for (size_t i = 0; i < n; i++) {
        if (!atomic_load_explicit(&from[i], memory_order_relaxed)) continue;
        const int64_t id = atomic_exchange(&from[i], 0);
        if (id) ret[taken++] = id;
    }
    return taken;
}

enum xpl_pg_rc xpl_pg_flush_touches(struct xpl_pg_store *s) {
    int64_t ids[PG_TOUCHES];
    const size_t n = take_ids(s->touched, PG_TOUCHES, ids);
    if (!n) return XPL_PG_OK;
    // Rows that others have locked are in use anyway.
    return xpl_pg_query(
        s->w,
        "UPDATE results SET used_at_ms=$2 WHERE id IN (SELECT id FROM results"
        " WHERE id=ANY($1) AND used_at_ms<$2 ORDER BY id"
        " FOR NO KEY UPDATE SKIP LOCKED)",
        XPL_PG_WITH(xpl_pg_array(XPL_PG_I64, ids, n, sizeof *ids), xpl_pg_i64(xpl_pg_now_ms(s))),
        NULL);
}

enum xpl_pg_rc xpl_pg_remove_damaged(struct xpl_pg_store *s) {
    int64_t ids[PG_DAMAGED], removed;
    const size_t n = take_ids(s->damaged, PG_DAMAGED, ids);
    if (!n) return XPL_PG_OK;
    return xpl_pg_remove(s,
                         "SELECT id, week, size_bytes FROM results WHERE id=ANY($1) ORDER BY id"
                         " FOR UPDATE SKIP LOCKED",
                         XPL_PG_WITH(xpl_pg_array(XPL_PG_I64, ids, n, sizeof *ids)), &removed);
}

bool xpl_pg_has_notes(const struct xpl_pg_store *s) {
    int64_t any = 0;
    for (size_t i = 0; i < PG_TOUCHES; i++)
        any |= atomic_load_explicit(&s->touched[i], memory_order_relaxed);
    for (size_t i = 0; i < PG_DAMAGED; i++)
        any |= atomic_load_explicit(&s->damaged[i], memory_order_relaxed);
    return any != 0;
}

// ---- the limit ----

// Removes the results that were not used for longest, or else the oldest rows; *ret_more false when
// there is nothing left to remove.
static enum xpl_pg_rc evict_some(struct xpl_pg_store *s, bool *ret_more) {
    int64_t n = 0, id = 0;
    enum xpl_pg_rc rc = xpl_pg_remove(s,
                                      "SELECT id, week, size_bytes FROM results WHERE id<$1"
                                      " ORDER BY used_at_ms, id LIMIT 4 FOR UPDATE SKIP LOCKED",
                                      XPL_PG_WITH(xpl_pg_i64(s->tx_first_id)), &n);
    atomic_fetch_add(&s->evicted, (uint64_t)n);
    *ret_more = n > 0;
    if (rc != XPL_PG_OK || n > 0) return rc;
    // Rows of this transaction are younger.
    rc = xpl_pg_ask(s->w,
                    "SELECT id FROM profiles WHERE rows_at_ms<$1 ORDER BY rows_at_ms, id LIMIT 1"
                    " FOR UPDATE SKIP LOCKED",
                    XPL_PG_WITH(xpl_pg_i64(xpl_pg_shared_ms(s, s->tx.began_ms))), &id);
    if (rc == XPL_PG_NONE) return XPL_PG_OK;
    *ret_more = rc == XPL_PG_OK;
    return rc == XPL_PG_OK ? xpl_pg_delete_rows(s, id) : rc;
}

static uint64_t used_now(struct xpl_pg_store *s) {
    const int64_t used = atomic_load(&s->used_bytes) + s->tx_bytes;
    return used > 0 ? (uint64_t)used : 0;
}

enum xpl_pg_rc xpl_pg_make_room(struct xpl_pg_store *s, uint64_t need) {
    const uint64_t limit = s->limit_bytes;
    if (limit == 0) return XPL_PG_OK;
    if (need > limit / 2) return XPL_PG_TOOBIG; // it would drive out everything else
    if (used_now(s) + need <= limit) return XPL_PG_OK;
    enum xpl_pg_rc rc = xpl_pg_flush_touches(s);
    // Some more than needed, so that not every put has to do it again.
    const uint64_t goal = limit - limit / 20;
    bool more = true;
    while (rc == XPL_PG_OK && more && used_now(s) + need > goal)
        rc = evict_some(s, &more);
    return rc == XPL_PG_OK && used_now(s) + need > limit ? XPL_PG_TOOBIG : rc;
}
