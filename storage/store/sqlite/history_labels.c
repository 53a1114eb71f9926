// SPDX-License-Identifier: Apache-2.0
// Labels of sessions, in the history's database.
#include "base/arena.h"
#include "base/vec.h"
#include "storage/store/sqlite/history_impl.h"

static void put_label(sqlite3 *db, const struct xpl_history_label *l, int *rc) {
    sqlite3_stmt *st = xpl_hist_prepare(db, "INSERT OR IGNORE INTO labels VALUES(?1,?2,?3)", rc);
    xpl_hist_bind_text(st, 1, l->session, rc);
    xpl_hist_bind_text(st, 2, l->label, rc);
    xpl_hist_bind_int(st, 3, l->set_ms, rc);
    xpl_hist_run(st, rc);
}

static void remove_label(sqlite3 *db, const struct xpl_history_label *l, int *rc) {
    sqlite3_stmt *st = xpl_hist_prepare(db, "DELETE FROM labels WHERE session=?1 AND label=?2", rc);
    xpl_hist_bind_text(st, 1, l->session, rc);
    xpl_hist_bind_text(st, 2, l->label, rc);
    xpl_hist_run(st, rc);
}

xpl_status_t xpl_history_set_labels(struct xpl_history *h, const struct xpl_history_label *add,
                                    size_t n_add, const struct xpl_history_label *remove,
                                    size_t n_remove, struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    rc = xpl_hist_exec(h->conn->h, "BEGIN IMMEDIATE");
    for (size_t i = 0; rc == SQLITE_OK && i < n_add; i++)
        put_label(h->conn->h, &add[i], &rc);
    for (size_t i = 0; rc == SQLITE_OK && i < n_remove; i++)
        remove_label(h->conn->h, &remove[i], &rc);
    if (rc == SQLITE_OK) rc = xpl_hist_exec(h->conn->h, "COMMIT");
    return xpl_hist_leave(h, rc, err);
}

xpl_status_t xpl_history_labels(struct xpl_history *h, struct xpl_arena *arena,
                                struct xpl_history_label **ret, size_t *ret_n,
                                struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_label) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!xpl_hist_enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st = xpl_hist_prepare(
        h->conn->h, "SELECT session, label, set_ms FROM labels ORDER BY session, label", &rc);
    while (ok && xpl_hist_next(st, &rc)) {
        struct xpl_history_label *const l = xpl_vec_push(arena, &list);
        ok = l && xpl_hist_column(st, 0, arena, &l->session) &&
             xpl_hist_column(st, 1, arena, &l->label);
        if (ok) l->set_ms = sqlite3_column_int64(st, 2);
    }
    sqlite3_finalize(st);
    XPL_TRY(xpl_hist_leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "labels");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}
