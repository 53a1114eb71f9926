// SPDX-License-Identifier: Apache-2.0
// Keeping the store clean: what is gone, outdated or free.
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "storage/store/encoding.h"
#include "storage/store/postgresql/impl.h"

// SWEEP_S: how often a daemon searches for names and partitions that nobody uses.
enum { SWEEP_S = 600 };

// Whether a profile is in LOGDIR, or may be: a file of its size that nothing is remembered of may
// be a copy, or the same file on another machine.
#define IN_LOGDIR                                                                                  \
    "(EXISTS (SELECT 1 FROM profile_files f JOIN hosts h ON h.fingerprint=f.fingerprint"           \
    " WHERE f.profile_id=profiles.id) OR EXISTS (SELECT 1 FROM hosts h"                            \
    " WHERE h.size_bytes=profiles.size_bytes AND NOT EXISTS"                                       \
    " (SELECT 1 FROM profile_files f WHERE f.fingerprint=h.fingerprint)))"

static const char *const mark_sql[] = {
    "UPDATE profile_files SET gone_at=$1 WHERE gone_at IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM hosts h WHERE h.fingerprint=profile_files.fingerprint)",
    "UPDATE profile_files SET gone_at=NULL WHERE gone_at IS NOT NULL AND $1::bigint IS NOT NULL"
    " AND EXISTS (SELECT 1 FROM hosts h WHERE h.fingerprint=profile_files.fingerprint)",
    "UPDATE profiles SET gone_at=$1 WHERE gone_at IS NULL AND NOT " IN_LOGDIR,
    "UPDATE profiles SET gone_at=NULL WHERE gone_at IS NOT NULL AND $1::bigint IS NOT NULL"
    " AND " IN_LOGDIR,
};

static enum xpl_pg_rc remove_profile(struct xpl_pg_store *s, int64_t id) {
    const struct xpl_pg_args *const profile = XPL_PG_WITH(xpl_pg_i64(id));
    int64_t n = 0;
    enum xpl_pg_rc rc;
    do
        rc = xpl_pg_remove(s,
                           "SELECT r.id, r.week, r.size_bytes FROM results r JOIN result_profiles"
                           " p ON p.result_id=r.id WHERE p.profile_id=$1 LIMIT 64 FOR UPDATE OF r",
                           profile, &n);
    while (rc == XPL_PG_OK && n > 0);
    if (rc == XPL_PG_OK) rc = xpl_pg_delete_rows(s, id);
    if (rc == XPL_PG_OK)
        rc = xpl_pg_query(s->w, "DELETE FROM profile_files WHERE profile_id=$1", profile, NULL);
    if (rc == XPL_PG_OK) rc = xpl_pg_query(s->w, "DELETE FROM profiles WHERE id=$1", profile, NULL);
    return rc;
}

// Only the holder of the lease knows what LOGDIR has.
static enum xpl_pg_rc sweep_gone(struct xpl_pg_store *s, int64_t gone_s, int *budget) {
    int64_t fence = 0, id = 0;
    const int64_t now_s = xpl_pg_now_ms(s) / 1000;
    const struct xpl_pg_args *const now = XPL_PG_WITH(xpl_pg_i64(now_s)),
                                    *const before = XPL_PG_WITH(xpl_pg_i64(now_s - gone_s));
    enum xpl_pg_rc rc = xpl_pg_lease_catalogue(s, &fence);
    if (rc == XPL_PG_NONE || (rc == XPL_PG_OK && fence != s->fence)) {
        atomic_store(&s->tx.catalogue_known, false);
        return XPL_PG_OK;
    }
    for (size_t i = 0; rc == XPL_PG_OK && i < sizeof mark_sql / sizeof *mark_sql; i++)
        rc = xpl_pg_query(s->w, mark_sql[i], now, NULL);
    if (rc == XPL_PG_OK)
        rc = xpl_pg_query(s->w, "DELETE FROM profile_files WHERE gone_at<=$1", before, NULL);
    while (rc == XPL_PG_OK && *budget > 0) {
        // Locked ones are being written to: they are not gone after all.
        rc = xpl_pg_ask(s->w,
                        "SELECT id FROM profiles WHERE gone_at<=$1 LIMIT 1 FOR UPDATE SKIP LOCKED",
                        before, &id);
        if (rc == XPL_PG_NONE) return XPL_PG_OK;
        if (rc == XPL_PG_OK) rc = remove_profile(s, id);
        --*budget;
    }
    return rc;
}

// Results of older versions.  Those of newer ones are another daemon's, which is newer than us.
static enum xpl_pg_rc sweep_versions(struct xpl_pg_store *s, const struct xpl_store_maintenance *m,
                                     int *budget) {
    enum xpl_pg_rc rc = XPL_PG_OK;
    for (size_t i = 0; rc == XPL_PG_OK && i<m->n_current && * budget> 0; i++) {
        const struct xpl_store_version *const v = &m->current[i];
        int64_t n = 0;
        rc = xpl_pg_remove(s,
                           "SELECT id, week, size_bytes FROM results WHERE kind=$1 AND name=$2"
                           " AND version<$3 LIMIT $4 FOR UPDATE SKIP LOCKED",
                           XPL_PG_WITH(xpl_pg_text(xpl_store_kind_name(v->kind)),
                                       xpl_pg_text(v->name), xpl_pg_i64(v->version),
                                       xpl_pg_i64(*budget)),
                           &n);
        *budget -= (int)n;
    }
    return rc;
}

static enum xpl_pg_rc sweep_names(struct xpl_pg_store *s) {
    int64_t one = 0;
    enum xpl_pg_rc rc =
        xpl_pg_ask(s->w, "SELECT 1::bigint FROM settings WHERE name='names' FOR UPDATE SKIP LOCKED",
                   NULL, &one);
    if (rc == XPL_PG_NONE) return XPL_PG_OK; // rows are being written: another time
    if (rc == XPL_PG_OK)
        rc = xpl_pg_query(
            s->w,
            "DELETE FROM names n WHERE NOT EXISTS (SELECT 1 FROM op_rows WHERE name_id=n.id)"
            " AND NOT EXISTS (SELECT 1 FROM kernel_rows WHERE name_id=n.id)"
            " AND id NOT IN (SELECT module_id FROM op_rows WHERE module_id IS NOT NULL"
            " UNION SELECT category_id FROM op_rows WHERE category_id IS NOT NULL"
            " UNION SELECT framework_op_id FROM op_rows WHERE framework_op_id IS NOT NULL"
            " UNION SELECT source_id FROM op_rows WHERE source_id IS NOT NULL"
            " UNION SELECT op_name_id FROM kernel_rows WHERE op_name_id IS NOT NULL"
            " UNION SELECT name_id FROM step_rows WHERE name_id IS NOT NULL)",
            NULL, NULL);
    if (rc == XPL_PG_OK) atomic_store(&s->rows_deleted, false);
    return rc;
}

// `old`: there are results of older versions.
static enum xpl_pg_rc sweep(struct xpl_pg_store *s, const struct xpl_store_maintenance *m, bool old,
                            int *budget) {
    enum xpl_pg_rc rc = xpl_pg_remove_damaged(s);
    if (rc == XPL_PG_OK) rc = xpl_pg_flush_touches(s);
    if (rc == XPL_PG_OK && old) rc = sweep_versions(s, m, budget);
    if (rc == XPL_PG_OK && atomic_load(&s->tx.catalogue_known))
        rc = sweep_gone(s, m->gone_s, budget);
    return rc == XPL_PG_OK ? xpl_pg_make_room(s, 0) : rc;
}

// ---- now and then ----

static enum xpl_pg_rc drop_week(struct xpl_pg_store *s, int64_t week) {
    char sql[80];
    int64_t used = 0;
    const enum xpl_pg_rc rc =
        xpl_pg_ask(s->w, "SELECT 1::bigint FROM results WHERE week=$1 LIMIT 1",
                   XPL_PG_WITH(xpl_pg_i64(week)), &used);
    if (rc != XPL_PG_NONE) return rc;
    (void)snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS result_data_%lld", (long long)week);
    return xpl_pg_exec(s->w, sql);
}

// Drops partitions of past weeks of which no result is left.  Nobody writes to one of a week that
// ended more than a week ago.
static enum xpl_pg_rc drop_weeks(struct xpl_pg_store *s) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc =
        xpl_pg_query(s->w,
                     "SELECT w FROM (SELECT substr(c.relname, 13)::bigint AS w FROM pg_inherits i"
                     " JOIN pg_class c ON c.oid=i.inhrelid WHERE i.inhparent="
                     "'result_data'::regclass AND c.relname ~ '^result_data_[0-9]{1,9}$') x"
                     " WHERE w<$1 ORDER BY w LIMIT 8",
                     XPL_PG_WITH(xpl_pg_i64(xpl_pg_this_week(s) - 1)), &r);
    if (rc != XPL_PG_OK) return rc;
    for (int i = 0; rc == XPL_PG_OK && i < s->pq->ntuples(r); i++)
        rc = drop_week(s, xpl_pg_get_i64(s->w, r, i, 0));
    s->pq->clear(r);
    return rc;
}

// Each in a transaction of its own: what cannot be had now is tried again in ten minutes.
static void sweep_rarely(struct xpl_pg_store *s) {
    static enum xpl_pg_rc (*const each[])(struct xpl_pg_store * s) = {sweep_names, drop_weeks};
    const uint64_t now = xpl_clock_ns();
    if (now < atomic_load(&s->swept_at_ns)) return;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        if (each[i] == sweep_names && !atomic_load(&s->rows_deleted)) continue;
        if (xpl_tx_begin(&s->tx.base, NULL) != XPL_OK) return;
        (void)xpl_pg_leave(s, true, each[i](s), NULL);
    }
    atomic_store(&s->swept_at_ns, now + (uint64_t)SWEEP_S * 1000000000u);
}

// ---- whether there is something to do ----

struct found {
    int64_t used, version; // of the tables
    bool old, taken;
};
static const struct xpl_pg_member found_members[] = {
    XPL_PG_MEMBER(I64, struct found, used), XPL_PG_MEMBER(BOOL, struct found, old),
    XPL_PG_MEMBER(BOOL, struct found, taken), XPL_PG_MEMBER(I64, struct found, version)};
static const struct xpl_pg_shape found_shape = XPL_PG_SHAPE(found_members, struct found);

static xpl_status_t ask_versions(struct xpl_pg_store *s, const struct xpl_store_version *current,
                                 const xpl_str_t *kinds, size_t n, struct found *ret) {
    return xpl_pg_select(
        s,
        "SELECT " XPL_PG_USED ", EXISTS (SELECT 1 FROM unnest($1,$2,$3) AS v(kind, name, version),"
        " LATERAL (SELECT 1 FROM results r WHERE r.kind=v.kind AND r.name=v.name AND"
        " r.version<v.version LIMIT 1) o)::int::bigint,"
        " EXISTS (SELECT 1 FROM leases WHERE name='catalogue' AND owner<>$4 AND"
        " expires_at>=clock_timestamp())::int::bigint, (SELECT version FROM xplaned_schema)",
        XPL_PG_WITH(xpl_pg_array(XPL_PG_TEXT, kinds, n, sizeof *kinds),
                    XPL_PG_COLUMN(TEXT, current, n, name), XPL_PG_COLUMN(U32, current, n, version),
                    xpl_pg_owner(s)),
        XPL_PG_INTO(&found_shape, NULL, ret, NULL), NULL);
}

// A round mostly finds nothing to do: one statement says so, in place of some seventy.  False: it
// could not be asked.
static bool inspect(struct xpl_pg_store *s, const struct xpl_store_maintenance *m,
                    struct found *ret) {
    const size_t n = m->n_current;
    xpl_str_t *const kinds = xpl_sys_alloc(n * sizeof *kinds + 1);
    for (size_t i = 0; kinds && i < n; i++)
        kinds[i] = xpl_store_kind_name(m->current[i].kind);
    const bool ok = kinds && ask_versions(s, m->current, kinds, n, ret) == XPL_OK;
    xpl_sys_free(kinds);
    if (ok && ret->taken) xpl_pg_leave_catalogue(s);
    return ok;
}

// What the holder of the lease searches for was not looked for.
static bool is_clean(struct xpl_pg_store *s, const struct found *f) {
    if (xpl_pg_is_newer(f->version) || f->old || atomic_load(&s->tx.catalogue_known) ||
        xpl_pg_has_notes(s) || (s->limit_bytes && (uint64_t)f->used > s->limit_bytes))
        return false;
    atomic_store(&s->used_bytes, f->used); // what others have put counts
    return true;
}

xpl_status_t xpl_pg_maintain(struct xpl_store *base, const struct xpl_store_maintenance *m,
                             bool *ret_more, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct found found = {0};
    int budget = PG_BATCH;
    if (ret_more) *ret_more = false;
    if (!inspect(s, m, &found)) found.old = true; // there may be
    if (is_clean(s, &found)) {
        sweep_rarely(s);
        return XPL_OK;
    }
    XPL_TRY(xpl_tx_begin(base, err)); // without a writer nothing is dropped
    // A newer daemon migrated the tables while this one was connected: from now on it only reads.
    const bool newer = xpl_pg_is_newer(found.version);
    if (newer) (void)snprintf(s->w->why, sizeof s->w->why, "a newer xplaned migrated its tables");
    enum xpl_pg_rc rc = newer ? XPL_PG_AWAY : xpl_pg_read_used(s, s->w); // others' count, too
    if (rc == XPL_PG_OK) rc = sweep(s, m, found.old, &budget);
    XPL_TRY(xpl_pg_leave(s, true, rc, err));
    sweep_rarely(s);
    if (ret_more) *ret_more = budget <= 0;
    return XPL_OK;
}
