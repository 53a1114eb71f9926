// SPDX-License-Identifier: Apache-2.0
// Profiles and the files they lie in.
//
// Whoever writes what refers to a profile locks its row first (KEY SHARE); whoever removes profiles
// locks them for update and skips those that are locked.  So no row refers to what is gone.
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "storage/store/encoding.h"
#include "storage/store/postgresql/impl.h"

// TRIES: a profile may be removed between two statements.
enum { TRIES = 4, MAX_ARRAY = 64 << 20 };

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

static const char find_file_sql[] = "SELECT p.content_id FROM profile_files f JOIN profiles p"
                                    " ON p.id=f.profile_id WHERE f.fingerprint=$1";

static enum xpl_pg_rc find_file(struct xpl_pg_conn *c, xpl_bytes_t fingerprint,
                                struct xpl_profile_id *ret) {
    PGresult *r = NULL;
    struct xpl_pg_args a = {0};
    xpl_pg_arg_bytes(&a, fingerprint);
    enum xpl_pg_rc rc = xpl_pg_query(c, find_file_sql, &a, &r);
    if (rc != XPL_PG_OK) return rc;
    if (c->pq->ntuples(r) == 0)
        rc = XPL_PG_NONE;
    else if (c->pq->getlength(r, 0, 0) != sizeof ret->bytes)
        rc = XPL_PG_DAMAGE;
    else
        memcpy(ret->bytes, c->pq->getvalue(r, 0, 0), sizeof ret->bytes);
    c->pq->clear(r);
    return rc;
}

bool xpl_pg_find_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                      struct xpl_profile_id *ret) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    uint8_t fingerprint[XPL_STORE_FINGERPRINT];
    struct xpl_profile_id id;
    struct xpl_pg_conn *const c = xpl_pg_reader(s);
    if (!c) return false;
    xpl_store_fingerprint_bytes(file, fingerprint);
    const enum xpl_pg_rc rc = find_file(c, (xpl_bytes_t){fingerprint, sizeof fingerprint}, &id);
    xpl_pg_reader_done(s, c, rc);
    if (rc == XPL_PG_OK) *ret = id;
    return rc == XPL_PG_OK;
}

static enum xpl_pg_rc read_ids(struct xpl_pg_conn *c, const PGresult *r, size_t n,
                               struct xpl_profile_id *ret, bool *known) {
    for (int i = 0; i < c->pq->ntuples(r); i++) {
        const int64_t at = xpl_pg_get_i64(c, r, i, 0);
        const xpl_bytes_t id = xpl_pg_get_bytes(c, r, i, 1);
        if (at < 0 || (uint64_t)at >= n || id.len != sizeof ret->bytes) return XPL_PG_DAMAGE;
        memcpy(ret[at].bytes, id.ptr, sizeof ret->bytes);
        known[at] = true;
    }
    return XPL_PG_OK;
}

// $1 fingerprints, $2 their places
static enum xpl_pg_rc find_files(struct xpl_pg_conn *c, const struct xpl_pg_args *a, size_t n,
                                 struct xpl_profile_id *ret, bool *known) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(c,
                                     "SELECT u.i, p.content_id FROM unnest($1,$2) u(f,i)"
                                     " JOIN profile_files f ON f.fingerprint=u.f"
                                     " JOIN profiles p ON p.id=f.profile_id",
                                     a, &r);
    if (rc == XPL_PG_OK) rc = read_ids(c, r, n, ret, known);
    if (r) c->pq->clear(r);
    return rc;
}

static size_t count_unknown(const bool *known, size_t n) {
    size_t ret = 0;
    for (size_t i = 0; i < n; i++)
        ret += !known[i];
    return ret;
}

void xpl_pg_find_files(struct xpl_store *base, const struct xpl_fingerprint *const *files, size_t n,
                       struct xpl_profile_id *ret, bool *known) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    const size_t n_unknown = count_unknown(known, n);
    struct xpl_buf names, places;
    struct xpl_pg_conn *const c = n_unknown ? xpl_pg_reader(s) : NULL;
    if (!c) return;
    xpl_buf_init(&names, MAX_ARRAY);
    xpl_buf_init(&places, MAX_ARRAY);
    xpl_pg_array_begin(&names, XPL_PG_BYTEAS, n_unknown);
    xpl_pg_array_begin(&places, XPL_PG_INT8S, n_unknown);
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[XPL_STORE_FINGERPRINT];
        if (known[i]) continue;
        xpl_store_fingerprint_bytes(files[i], bytes);
        xpl_pg_array_bytes(&names, (xpl_bytes_t){bytes, sizeof bytes});
        xpl_pg_array_i64(&places, (int64_t)i);
    }
    struct xpl_pg_args a = {0};
    xpl_pg_arg_array(&a, XPL_PG_BYTEAS, &names);
    xpl_pg_arg_array(&a, XPL_PG_INT8S, &places);
    xpl_pg_reader_done(
        s, c, names.failed || places.failed ? XPL_PG_OK : find_files(c, &a, n, ret, known));
    xpl_buf_fini(&names);
    xpl_buf_fini(&places);
}

bool xpl_pg_has_size(struct xpl_store *base, uint64_t bytes) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_u64(&a, bytes);
    return found(xpl_pg_of(base), "SELECT 1::bigint FROM profiles WHERE size_bytes=$1 LIMIT 1", &a);
}

bool xpl_pg_has_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                     enum xpl_rows_kind kind, uint32_t version) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_bytes(&a, id_bytes(profile));
    xpl_pg_arg_i64(&a, version);
    return found(xpl_pg_of(base),
                 kind == XPL_ROWS_OPS
                     ? "SELECT 1::bigint FROM profiles WHERE content_id=$1 AND rows_version=$2"
                     : "SELECT 1::bigint FROM profiles WHERE content_id=$1 AND memory_version=$2",
                 &a);
}

// *ret_stopped: `each` wants no more.
static enum xpl_pg_rc list_files(struct xpl_pg_conn *c, size_t max, xpl_store_file_fn *each,
                                 void *arg, bool *ret_stopped) {
    PGresult *r = NULL;
    struct xpl_pg_args a = {0};
    xpl_pg_arg_u64(&a, max);
    enum xpl_pg_rc rc =
        xpl_pg_send(c,
                    "SELECT f.fingerprint, p.content_id FROM profile_files f JOIN profiles p"
                    " ON p.id=f.profile_id ORDER BY f.profile_id DESC LIMIT $1",
                    &a);
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
    struct xpl_pg_args a = {0};
    xpl_pg_arg_bytes(&a, id_bytes(id));
    for (int i = 0; i < TRIES; i++) {
        enum xpl_pg_rc rc = xpl_pg_ask(
            s->w, "SELECT id FROM profiles WHERE content_id=$1 FOR NO KEY UPDATE", &a, ret);
        if (rc != XPL_PG_NONE) return rc;
        rc = xpl_pg_ask(s->w,
                        "INSERT INTO profiles(content_id) VALUES($1) ON CONFLICT DO NOTHING"
                        " RETURNING id",
                        &a, ret);
        if (rc != XPL_PG_NONE) return rc;
    }
    return XPL_PG_BUSY;
}

static enum xpl_pg_rc add_file(struct xpl_pg_store *s, const struct xpl_fingerprint *file,
                               xpl_bytes_t fingerprint, const struct xpl_profile_id *profile) {
    int64_t row = -1;
    enum xpl_pg_rc rc = xpl_pg_profile_row(s, profile, &row);
    if (rc != XPL_PG_OK) return rc;
    struct xpl_pg_args size = {0}, add = {0};
    xpl_pg_arg_i64(&size, row);
    xpl_pg_arg_u64(&size, file->size);
    rc = xpl_pg_query(s->w,
                      "UPDATE profiles SET size_bytes=$2 WHERE id=$1 AND size_bytes IS DISTINCT"
                      " FROM $2",
                      &size, NULL);
    if (rc != XPL_PG_OK) return rc;
    xpl_pg_arg_bytes(&add, fingerprint);
    xpl_pg_arg_i64(&add, row);
    return xpl_pg_query(s->w,
                        "INSERT INTO profile_files(fingerprint, profile_id) VALUES($1,$2) ON "
                        "CONFLICT(fingerprint) DO UPDATE SET profile_id=$2, gone_at=NULL",
                        &add, NULL);
}

xpl_status_t xpl_pg_put_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                             const struct xpl_profile_id *profile, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    bool own;
    uint8_t bytes[XPL_STORE_FINGERPRINT];
    const xpl_bytes_t fingerprint = {bytes, sizeof bytes};
    struct xpl_profile_id was;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    xpl_store_fingerprint_bytes(file, bytes);
    enum xpl_pg_rc rc = find_file(s->w, fingerprint, &was);
    if (rc == XPL_PG_NONE || (rc == XPL_PG_OK && !xpl_profile_id_eq(&was, profile)))
        rc = add_file(s, file, fingerprint, profile);
    return xpl_pg_leave(s, own, rc, err);
}

static int compare_ids(const void *a, const void *b) {
    return memcmp(a, b, sizeof(struct xpl_profile_id));
}

// The distinct ids in order, so that two writers lock them in the same one.
static bool distinct_ids(const struct xpl_store_key *key, struct xpl_buf *ret, size_t *ret_n) {
    size_t n = 0;
    struct xpl_profile_id *const ids = xpl_sys_alloc(key->n_profiles * sizeof *ids + 1);
    if (!ids) return false;
    for (size_t i = 0; i < key->n_profiles; i++)
        ids[i] = key->profiles[i];
    if (key->n_profiles) qsort(ids, key->n_profiles, sizeof *ids, compare_ids);
    for (size_t i = 0; i < key->n_profiles; i++)
        if (i == 0 || !xpl_profile_id_eq(&ids[i], &ids[i - 1])) ids[n++] = ids[i];
    xpl_pg_array_begin(ret, XPL_PG_BYTEAS, n);
    for (size_t i = 0; i < n; i++)
        xpl_pg_array_bytes(ret, id_bytes(&ids[i]));
    xpl_sys_free(ids);
    *ret_n = n;
    return !ret->failed;
}

// Gives a row to each profile that has none, and lists them all.
static enum xpl_pg_rc list_profiles(struct xpl_pg_store *s, int64_t result,
                                    const struct xpl_buf *ids, int64_t n) {
    struct xpl_pg_args make = {0}, list = {0};
    int64_t listed = 0, total = 0;
    xpl_pg_arg_array(&make, XPL_PG_BYTEAS, ids);
    xpl_pg_arg_array(&list, XPL_PG_BYTEAS, ids);
    xpl_pg_arg_i64(&list, result);
    for (int i = 0; i < TRIES; i++) {
        enum xpl_pg_rc rc =
            xpl_pg_query(s->w,
                         "INSERT INTO profiles(content_id) SELECT c FROM unnest($1) c"
                         " WHERE NOT EXISTS (SELECT 1 FROM profiles WHERE content_id=c)"
                         " ORDER BY c ON CONFLICT DO NOTHING",
                         &make, NULL);
        if (rc == XPL_PG_OK)
            rc = xpl_pg_run(s->w,
                            "WITH p AS (SELECT id FROM profiles WHERE content_id=ANY($1)"
                            " ORDER BY content_id FOR KEY SHARE)"
                            " INSERT INTO result_profiles SELECT id,$2 FROM p"
                            " ON CONFLICT DO NOTHING",
                            &list, &listed);
        total += listed; // what an earlier round listed is not listed again
        if (rc != XPL_PG_OK || total == n) return rc;
    }
    return XPL_PG_BUSY;
}

enum xpl_pg_rc xpl_pg_add_profiles(struct xpl_pg_store *s, int64_t result,
                                   const struct xpl_store_key *key) {
    struct xpl_buf ids = xpl_buf_of((size_t)64 << 20);
    size_t n = 0;
    const enum xpl_pg_rc rc =
        distinct_ids(key, &ids, &n) ? list_profiles(s, result, &ids, (int64_t)n) : XPL_PG_NOMEM;
    xpl_buf_fini(&ids);
    return rc;
}
