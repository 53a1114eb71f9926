// SPDX-License-Identifier: Apache-2.0
// Profiles and the files they lie in.
//
// Whoever writes what refers to a profile locks its row first (KEY SHARE); whoever removes profiles
// locks them for update and skips those that are locked.  So no row refers to what is gone.
#include <string.h>

#include "base/arena.h"
#include "storage/store/encoding.h"
#include "storage/store/postgresql/impl.h"

enum { TRIES = 4 }; // a profile may be removed between two statements

static xpl_bytes_t id_bytes(const struct xpl_profile_id *id) {
    return (xpl_bytes_t){id->bytes, sizeof id->bytes};
}

// ---- reading ----

// Whether the statement gives a row.
static bool found(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a) {
    int64_t one = 0;
    struct xpl_pg_conn *const c = xpl_pg_reader(s);
    if (!c) return false;
    const enum xpl_pg_rc rc = xpl_pg_ask(c, sql, a, &one);
    xpl_pg_reader_done(s, c, rc);
    return rc == XPL_PG_OK;
}

// A file that is looked for.
struct sought {
    uint8_t fingerprint[XPL_STORE_FINGERPRINT];
    xpl_bytes_t bytes; // of it
    int64_t at;        // its place
};

static void set_sought(struct sought *ret, const struct xpl_fingerprint *file, size_t at) {
    xpl_store_fingerprint_bytes(file, ret->fingerprint);
    ret->bytes = (xpl_bytes_t){ret->fingerprint, sizeof ret->fingerprint};
    ret->at = (int64_t)at;
}

static enum xpl_pg_rc find_files(struct xpl_pg_conn *c, const struct sought *list, size_t n_sought,
                                 size_t n, struct xpl_profile_id *ret, bool *known) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(c,
                                     "SELECT u.i, p.content_id FROM unnest($1,$2) u(f,i)"
                                     " JOIN profile_files f ON f.fingerprint=u.f"
                                     " JOIN profiles p ON p.id=f.profile_id",
                                     XPL_PG_WITH(XPL_PG_COLUMN(BYTES, list, n_sought, bytes),
                                                 XPL_PG_COLUMN(I64, list, n_sought, at)),
                                     &r);
    for (int i = 0; rc == XPL_PG_OK && i < c->pq->ntuples(r); i++) {
        const int64_t at = xpl_pg_get_i64(c, r, i, 0);
        const xpl_bytes_t id = xpl_pg_get_bytes(c, r, i, 1);
        if (at < 0 || (uint64_t)at >= n || id.len != sizeof ret->bytes) {
            rc = XPL_PG_DAMAGE;
            break;
        }
        memcpy(ret[at].bytes, id.ptr, sizeof ret->bytes);
        known[at] = true;
    }
    if (r) c->pq->clear(r);
    return rc;
}

void xpl_pg_find_files(struct xpl_store *base, const struct xpl_fingerprint *const *files, size_t n,
                       struct xpl_profile_id *ret, bool *known) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct sought *const list = xpl_sys_alloc(n * sizeof *list + 1);
    size_t n_sought = 0;
    for (size_t i = 0; list && i < n; i++)
        if (!known[i]) set_sought(&list[n_sought++], files[i], i);
    struct xpl_pg_conn *const c = n_sought ? xpl_pg_reader(s) : NULL;
    if (c) xpl_pg_reader_done(s, c, find_files(c, list, n_sought, n, ret, known));
    xpl_sys_free(list);
}

bool xpl_pg_find_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                      struct xpl_profile_id *ret) {
    bool known = false;
    xpl_pg_find_files(base, &file, 1, ret, &known);
    return known;
}

bool xpl_pg_has_size(struct xpl_store *base, uint64_t bytes) {
    return found(xpl_pg_of(base), "SELECT 1::bigint FROM profiles WHERE size_bytes=$1 LIMIT 1",
                 XPL_PG_WITH(xpl_pg_u64(bytes)));
}

bool xpl_pg_has_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                     enum xpl_rows_kind kind, uint32_t version) {
    return found(xpl_pg_of(base),
                 kind == XPL_ROWS_OPS
                     ? "SELECT 1::bigint FROM profiles WHERE content_id=$1 AND rows_version=$2"
                     : "SELECT 1::bigint FROM profiles WHERE content_id=$1 AND memory_version=$2",
                 XPL_PG_WITH(xpl_pg_bytes(id_bytes(profile)), xpl_pg_i64(version)));
}

// *ret_stopped: `each` wants no more.
static enum xpl_pg_rc list_files(struct xpl_pg_conn *c, size_t max, xpl_store_file_fn *each,
                                 void *arg, bool *ret_stopped) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc =
        xpl_pg_send(c,
                    "SELECT f.fingerprint, p.content_id FROM profile_files f JOIN profiles p"
                    " ON p.id=f.profile_id ORDER BY f.profile_id DESC LIMIT $1",
                    XPL_PG_WITH(xpl_pg_u64(max)));
    while (rc == XPL_PG_OK && !*ret_stopped && (rc = xpl_pg_next_row(c, &r)) == XPL_PG_OK) {
        const xpl_bytes_t file = xpl_pg_get_bytes(c, r, 0, 0), id = xpl_pg_get_bytes(c, r, 0, 1);
        struct xpl_profile_id profile;
        if (file.len == XPL_STORE_FINGERPRINT && id.len == sizeof profile.bytes) {
            const struct xpl_fingerprint f = xpl_store_fingerprint_from(file.ptr);
            memcpy(profile.bytes, id.ptr, sizeof profile.bytes);
            *ret_stopped = !each(arg, &f, &profile);
        } else {
            rc = XPL_PG_DAMAGE;
        }
        c->pq->clear(r);
    }
    return rc == XPL_PG_NONE ? XPL_PG_OK : rc;
}

bool xpl_pg_list_files(struct xpl_store *base, size_t max, xpl_store_file_fn *each, void *arg) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_conn *const c = xpl_pg_reader(s);
    bool stopped = false;
    if (!c) return false;
    const enum xpl_pg_rc rc = list_files(c, max, each, arg, &stopped);
    // With rows on their way the connection is of no use any more.
    xpl_pg_reader_done(s, c, stopped && rc == XPL_PG_OK ? XPL_PG_TOOBIG : rc);
    return rc == XPL_PG_OK;
}

// ---- writing ----

enum xpl_pg_rc xpl_pg_profile_row(struct xpl_pg_store *s, const struct xpl_profile_id *id,
                                  int64_t *ret) {
    const struct xpl_pg_args *const a = XPL_PG_WITH(xpl_pg_bytes(id_bytes(id)));
    for (int i = 0; i < TRIES; i++) {
        enum xpl_pg_rc rc = xpl_pg_ask(
            s->w, "SELECT id FROM profiles WHERE content_id=$1 FOR NO KEY UPDATE", a, ret);
        if (rc != XPL_PG_NONE) return rc;
        rc = xpl_pg_ask(s->w,
                        "INSERT INTO profiles(content_id) VALUES($1) ON CONFLICT DO NOTHING"
                        " RETURNING id",
                        a, ret);
        if (rc != XPL_PG_NONE) return rc;
    }
    return XPL_PG_BUSY;
}

static enum xpl_pg_rc add_file(struct xpl_pg_store *s, const struct xpl_fingerprint *file,
                               xpl_bytes_t fingerprint, const struct xpl_profile_id *profile) {
    int64_t row = -1;
    enum xpl_pg_rc rc = xpl_pg_profile_row(s, profile, &row);
    if (rc != XPL_PG_OK) return rc;
    rc = xpl_pg_query(s->w,
                      "UPDATE profiles SET size_bytes=$2 WHERE id=$1 AND size_bytes IS DISTINCT"
                      " FROM $2",
                      XPL_PG_WITH(xpl_pg_i64(row), xpl_pg_u64(file->size)), NULL);
    if (rc != XPL_PG_OK) return rc;
    return xpl_pg_query(s->w,
                        "INSERT INTO profile_files(fingerprint, profile_id) VALUES($1,$2) ON "
                        "CONFLICT(fingerprint) DO UPDATE SET profile_id=$2, gone_at=NULL",
                        XPL_PG_WITH(xpl_pg_bytes(fingerprint), xpl_pg_i64(row)), NULL);
}

xpl_status_t xpl_pg_put_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                             const struct xpl_profile_id *profile, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    bool own, known = false;
    struct sought one;
    struct xpl_profile_id was;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    set_sought(&one, file, 0);
    enum xpl_pg_rc rc = find_files(s->w, &one, 1, 1, &was, &known);
    if (rc == XPL_PG_OK && !(known && xpl_profile_id_eq(&was, profile)))
        rc = add_file(s, file, one.bytes, profile);
    return xpl_pg_leave(s, own, rc, err);
}

enum xpl_pg_rc xpl_pg_add_profiles(struct xpl_pg_store *s, int64_t result,
                                   const struct xpl_store_key *key) {
    const struct xpl_pg_arg ids =
        xpl_pg_array(XPL_PG_ID, key->profiles, key->n_profiles, sizeof *key->profiles);
    int64_t unlisted = 1;
    for (int i = 0; i < TRIES; i++) {
        // In the order of ids, so that two writers lock them in the same one.
        enum xpl_pg_rc rc =
            xpl_pg_query(s->w,
                         "INSERT INTO profiles(content_id) SELECT DISTINCT c FROM unnest($1) c"
                         " WHERE NOT EXISTS (SELECT 1 FROM profiles WHERE content_id=c)"
                         " ORDER BY c ON CONFLICT DO NOTHING",
                         XPL_PG_WITH(ids), NULL);
        if (rc == XPL_PG_OK)
            rc = xpl_pg_ask(s->w,
                            "WITH p AS (SELECT id FROM profiles WHERE content_id=ANY($1)"
                            " ORDER BY content_id FOR KEY SHARE),"
                            " l AS (INSERT INTO result_profiles SELECT id,$2 FROM p"
                            " ON CONFLICT DO NOTHING) SELECT (SELECT count(DISTINCT c)"
                            " FROM unnest($1) c)-(SELECT count(*) FROM p)",
                            XPL_PG_WITH(ids, xpl_pg_i64(result)), &unlisted);
        if (rc != XPL_PG_OK || !unlisted) return rc;
    }
    return XPL_PG_BUSY;
}
