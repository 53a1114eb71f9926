// SPDX-License-Identifier: Apache-2.0
// Jobs: asking for them, what became of them, and who is there to do them.
//
// All statements but the last of a publication are single ones on readers' connections, which
// wait for no lock that is held for long: a job's row is the last that its transaction touches.
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "storage/hash.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_ARRAY = 64 << 20, SWEEP_S = 60 };

static enum xpl_pg_rc query_rows(struct xpl_pg_conn *c, const char *sql,
                                 const struct xpl_pg_args *a, xpl_pg_rows_fn *read, void *arg) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(c, sql, a, &r);
    if (rc == XPL_PG_OK && read) rc = read(c, r, arg);
    if (r) c->pq->clear(r);
    return rc;
}

// The commit follows the rows: the server rolls back if this process stopped waiting for them.
static enum xpl_pg_rc query_in_tx(struct xpl_pg_conn *c, const char *begin, const char *sql,
                                  const struct xpl_pg_args *a, xpl_pg_rows_fn *read, void *arg) {
    enum xpl_pg_rc rc = xpl_pg_exec(c, begin);
    if (rc == XPL_PG_OK) rc = query_rows(c, sql, a, read, arg);
    if (rc == XPL_PG_OK) return xpl_pg_exec(c, "COMMIT");
    return rc == XPL_PG_AWAY || xpl_pg_exec(c, "ROLLBACK") == XPL_PG_OK ? rc : XPL_PG_AWAY;
}

xpl_status_t xpl_pg_job_tx(struct xpl_pg_store *s, const char *begin, const char *sql,
                           const struct xpl_pg_args *a, xpl_pg_rows_fn *read, void *arg,
                           struct xpl_error *err) {
    if (atomic_load(&s->role) != XPL_STORE_WRITER)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not written by this process now",
                         s->name);
    struct xpl_pg_conn *const c = xpl_pg_reader(s);
    if (!c) XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: no connection", s->name);
    const enum xpl_pg_rc rc =
        begin ? query_in_tx(c, begin, sql, a, read, arg) : query_rows(c, sql, a, read, arg);
    const xpl_status_t st = rc == XPL_PG_OK ? XPL_OK : xpl_pg_fail(s, rc, c->why, err);
    xpl_pg_reader_done(s, c, rc);
    return st;
}

xpl_status_t xpl_pg_job_query(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                              xpl_pg_rows_fn *read, void *arg, struct xpl_error *err) {
    return xpl_pg_job_tx(s, NULL, sql, a, read, arg, err);
}

// ---- asking ----

static void put_le(struct xpl_buf *b, uint64_t v) {
    uint8_t out[8];
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (uint8_t)(v >> (8 * i));
    xpl_buf_put(b, out, sizeof out);
}

static void put_str(struct xpl_buf *b, xpl_str_t s) {
    put_le(b, s.len);
    xpl_buf_str(b, s);
}

// Of two specs with one digest one is not done by workers: whoever asks makes it by itself.
static void digest_of(struct xpl_buf *b, const struct xpl_job_spec *j, struct xpl_job_digest *ret) {
    b->n = 0;
    put_str(b, j->session);
    put_str(b, j->host);
    put_le(b, j->size_bytes);
    put_le(b, (uint64_t)j->mtime_ns);
    put_str(b, j->product);
    put_le(b, j->version);
    put_le(b, j->variant);
    const xpl_bytes_t bytes = {b->p, b->n};
    const uint64_t h[2] = {xpl_digest64(bytes, 3), xpl_digest64(bytes, 0x9e3779b97f4a7c15u)};
    for (size_t i = 0; i < XPL_JOB_DIGEST; i++)
        ret->bytes[i] = (uint8_t)(h[i / 8] >> (8 * (i % 8)));
}

static xpl_bytes_t digest_bytes(const struct xpl_job_digest *d) {
    return (xpl_bytes_t){d->bytes, sizeof d->bytes};
}

static xpl_bytes_t text_bytes(xpl_str_t s) {
    return (xpl_bytes_t){(const uint8_t *)s.ptr, s.len};
}

enum { DIGESTS, SESSIONS, HOSTS, SIZES, TIMES, PRODUCTS, VERSIONS, VARIANTS, TRACES, N_COLUMNS };

static const enum xpl_pg_array column_types[N_COLUMNS] = {
    [DIGESTS] = XPL_PG_BYTEAS, [SESSIONS] = XPL_PG_TEXTS, [HOSTS] = XPL_PG_TEXTS,
    [SIZES] = XPL_PG_INT8S,    [TIMES] = XPL_PG_INT8S,    [PRODUCTS] = XPL_PG_TEXTS,
    [VERSIONS] = XPL_PG_INT8S, [VARIANTS] = XPL_PG_INT8S, [TRACES] = XPL_PG_TEXTS,
};

static bool fill_columns(struct xpl_buf columns[N_COLUMNS], const struct xpl_job_spec *specs,
                         size_t n, struct xpl_job_digest *ret) {
    struct xpl_buf text;
    bool ok = true;
    xpl_buf_init(&text, MAX_ARRAY);
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_pg_array_begin(&columns[k], column_types[k], n);
    for (size_t i = 0; i < n; i++) {
        digest_of(&text, &specs[i], &ret[i]);
        xpl_pg_array_bytes(&columns[DIGESTS], digest_bytes(&ret[i]));
        xpl_pg_array_bytes(&columns[SESSIONS], text_bytes(specs[i].session));
        xpl_pg_array_bytes(&columns[HOSTS], text_bytes(specs[i].host));
        xpl_pg_array_i64(&columns[SIZES], (int64_t)specs[i].size_bytes);
        xpl_pg_array_i64(&columns[TIMES], specs[i].mtime_ns);
        xpl_pg_array_bytes(&columns[PRODUCTS], text_bytes(specs[i].product));
        xpl_pg_array_i64(&columns[VERSIONS], specs[i].version);
        xpl_pg_array_i64(&columns[VARIANTS], specs[i].variant);
        xpl_pg_array_bytes(&columns[TRACES], text_bytes(specs[i].traceparent));
    }
    ok = !text.failed;
    for (int k = 0; k < N_COLUMNS; k++)
        ok = ok && !columns[k].failed;
    xpl_buf_fini(&text);
    return ok;
}

// In the order of their digests, so that two who ask for the same wait for each other in one.
xpl_status_t xpl_pg_enqueue_jobs(struct xpl_store *base, const struct xpl_job_spec *specs, size_t n,
                                 struct xpl_job_digest *ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_buf columns[N_COLUMNS];
    struct xpl_pg_args a = {0};
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_buf_init(&columns[k], MAX_ARRAY);
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (fill_columns(columns, specs, n, ret)) {
        for (int k = 0; k < N_COLUMNS; k++)
            xpl_pg_arg_array(&a, column_types[k], &columns[k]);
        st = xpl_pg_job_query(
            s,
            "INSERT INTO jobs(digest, session, host, size_bytes, mtime_ns, product, version,"
            " variant, trace, rank) SELECT d,s,h,b,t,p,v,o,c,i"
            " FROM unnest($1,$2,$3,$4,$5,$6,$7,$8,$9)"
            " WITH ORDINALITY u(d,s,h,b,t,p,v,o,c,i) ORDER BY d ON CONFLICT DO NOTHING",
            &a, NULL, NULL, err);
    } else {
        (void)xpl_pg_fail(s, XPL_PG_NOMEM, "", err);
    }
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_buf_fini(&columns[k]);
    return st;
}

// ---- what became of them ----

struct inspection {
    enum xpl_job_state *ret;
    size_t n;
};

static enum xpl_pg_rc read_states(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct inspection *const l = arg;
    for (int i = 0; i < c->pq->ntuples(r); i++) {
        const int64_t at = xpl_pg_get_i64(c, r, i, 0), state = xpl_pg_get_i64(c, r, i, 1);
        if (at < 1 || (uint64_t)at > l->n || state < XPL_JOB_QUEUED || state > XPL_JOB_SUSPECT)
            return XPL_PG_OTHER;
        l->ret[at - 1] = (enum xpl_job_state)state;
    }
    return XPL_PG_OK;
}

// Runs a statement over digests, $1, and a number, $2.
static xpl_status_t over_digests(struct xpl_store *base, const char *sql,
                                 const struct xpl_job_digest *d, size_t n, struct inspection *to,
                                 struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    struct xpl_buf digests;
    xpl_buf_init(&digests, MAX_ARRAY);
    xpl_pg_array_begin(&digests, XPL_PG_BYTEAS, n);
    for (size_t i = 0; i < n; i++)
        xpl_pg_array_bytes(&digests, digest_bytes(&d[i]));
    xpl_pg_arg_array(&a, XPL_PG_BYTEAS, &digests);
    xpl_pg_arg_i64(&a, XPL_JOB_ATTEMPTS);
    const xpl_status_t st = digests.failed
                                ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
                                : xpl_pg_job_query(s, sql, &a, to ? read_states : NULL, to, err);
    xpl_buf_fini(&digests);
    return st;
}

xpl_status_t xpl_pg_inspect_jobs(struct xpl_store *base, const struct xpl_job_digest *d, size_t n,
                                 enum xpl_job_state *ret, struct xpl_error *err) {
    struct inspection to = {ret, n};
    for (size_t i = 0; i < n; i++)
        ret[i] = XPL_JOB_GONE;
    return over_digests(base,
                        "SELECT i, (CASE WHEN running THEN 2 WHEN lost>=$2 THEN 3 WHEN lost>0"
                        " THEN 4 ELSE 1 END)::bigint FROM (SELECT i::bigint,"
                        " expires_at>=clock_timestamp() AS running, " XPL_PG_JOB_LOST " AS lost"
                        " FROM unnest($1) WITH ORDINALITY u(d,i) JOIN jobs j ON digest=d) x",
                        d, n, &to, err);
}

xpl_status_t xpl_pg_withdraw_jobs(struct xpl_store *base, const struct xpl_job_digest *d, size_t n,
                                  struct xpl_error *err) {
    return over_digests(base,
                        "DELETE FROM jobs WHERE digest IN (SELECT digest FROM jobs WHERE"
                        " digest=ANY($1) AND attempt=0 AND attempt<$2 AND"
                        " expires_at<clock_timestamp() FOR UPDATE SKIP LOCKED)",
                        d, n, NULL, err);
}

// ---- who is there ----

// Once a minute: reports are many.
static xpl_status_t sweep(struct xpl_pg_store *s, struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    const uint64_t now = xpl_clock_ns();
    if (now < atomic_load(&s->jobs_swept_at_ns)) return XPL_OK;
    atomic_store(&s->jobs_swept_at_ns, now + (uint64_t)SWEEP_S * 1000000000u);
    xpl_pg_arg_i64(&a, XPL_JOB_ATTEMPTS);
    xpl_pg_arg_i64(&a, XPL_JOB_ASIDE_S);
    return xpl_pg_job_query(
        s,
        "WITH gone AS (DELETE FROM daemons WHERE id IN (SELECT id FROM daemons WHERE"
        " expires_at<clock_timestamp()-interval '1 hour' FOR UPDATE SKIP LOCKED))"
        " DELETE FROM jobs WHERE digest IN (SELECT digest FROM jobs WHERE"
        " (attempt>=$1 AND expires_at<clock_timestamp()-$2::float8*interval '1 s') OR"
        " (expires_at<clock_timestamp() AND queued_at<clock_timestamp()-interval '1 day')"
        " FOR UPDATE SKIP LOCKED)",
        &a, NULL, NULL, err);
}

xpl_status_t xpl_pg_report_daemon(struct xpl_store *base, const struct xpl_job_daemon *d,
                                  uint64_t ms, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_text(&a, d->name);
    xpl_pg_arg_text(&a, d->role);
    xpl_pg_arg_text(&a, d->version);
    xpl_pg_arg_i64(&a, d->n_jobs);
    xpl_pg_arg_u64(&a, ms);
    XPL_TRY(xpl_pg_job_query(s,
                             "INSERT INTO daemons VALUES($1,$2,$3,$4,$5,clock_timestamp()+"
                             "$6::float8*interval '1 ms') ON CONFLICT(id) DO UPDATE SET"
                             " n_jobs=$5, expires_at=excluded.expires_at",
                             &a, NULL, NULL, err));
    return sweep(s, err);
}

static enum xpl_pg_rc read_stats(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct xpl_job_stats *const ret = arg;
    enum { FIRST_LEASE = 5 };
    if (c->pq->ntuples(r) != 1) return XPL_PG_OTHER;
    *ret = (struct xpl_job_stats){
        .queued = xpl_pg_get_i64(c, r, 0, 0),
        .running = xpl_pg_get_i64(c, r, 0, 1),
        .set_aside = xpl_pg_get_i64(c, r, 0, 2),
        .workers = xpl_pg_get_i64(c, r, 0, 3),
        .schedules = xpl_pg_get_i64(c, r, 0, 4),
    };
    for (int i = 0; i < XPL_JOB_LEASE_KINDS; i++) {
        ret->leases[i] = xpl_pg_get_i64(c, r, 0, FIRST_LEASE + 2 * i);
        ret->held[i] = xpl_pg_get_i64(c, r, 0, FIRST_LEASE + 2 * i + 1);
    }
    return XPL_PG_OK;
}

// In the order of enum xpl_job_lease_kind: of all, and of this daemon.
#define HELD(kind)                                                                                 \
    ", (SELECT count(*) FROM held WHERE kind='" kind "')"                                          \
    ", (SELECT count(*) FROM held WHERE kind='" kind "' AND owner=$2)"

xpl_status_t xpl_pg_get_job_stats(struct xpl_store *base, struct xpl_job_stats *ret,
                                  struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    struct xpl_pg_store *const s = xpl_pg_of(base);
    xpl_pg_arg_i64(&a, XPL_JOB_ATTEMPTS);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    return xpl_pg_job_query(
        s,
        // What was given back for a while has no owner.
        "WITH held AS (SELECT * FROM " XPL_PG_LEASES " l WHERE expires_at>=clock_timestamp())"
        " SELECT"
        " count(*) FILTER (WHERE (expires_at<clock_timestamp() OR owner='') AND attempt<$1),"
        " count(*) FILTER (WHERE expires_at>=clock_timestamp() AND owner<>''),"
        " count(*) FILTER (WHERE expires_at<clock_timestamp() AND attempt>=$1),"
        " (SELECT count(*) FROM daemons WHERE role='worker' AND expires_at>clock_timestamp()),"
        " (SELECT count(*) FROM schedules)" HELD("schedule") HELD("capture") HELD("scanner")
            HELD("catalogue") " FROM jobs",
        &a, read_stats, ret, err);
}
