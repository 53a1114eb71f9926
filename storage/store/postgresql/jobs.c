// SPDX-License-Identifier: Apache-2.0
// Jobs: requesting them, what became of them, and who is there to do them.
//
// All statements here are on readers' connections, which a pooler may have.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
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

// The same between `begin` (BEGIN and settings) and a commit that follows the rows.  Nothing is
// changed if this process stops waiting for the rows.
static xpl_status_t pg_job_tx(struct xpl_pg_store *s, const char *begin, const char *sql,
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
    return pg_job_tx(s, NULL, sql, a, read, arg, err);
}

// ---- requests ----

static xpl_bytes_t digest_bytes(const struct xpl_job_digest *d) {
    return (xpl_bytes_t){d->bytes, sizeof d->bytes};
}

static xpl_bytes_t text_bytes(xpl_str_t s) {
    return (xpl_bytes_t){(const uint8_t *)s.ptr, s.len};
}

bool xpl_pg_put_files(struct xpl_buf *ret, const struct xpl_job_file *files, size_t n) {
    struct xpl_buf text = xpl_buf_of(64 << 10);
    xpl_pg_array_begin(ret, XPL_PG_TEXTS, n);
    for (size_t i = 0; i < n; i++) {
        text.n = 0;
        xpl_buf_printf(&text, "%llu %lld %.*s", (unsigned long long)files[i].size_bytes,
                       (long long)files[i].mtime_ns, XPL_STR_FMT(files[i].host));
        xpl_pg_array_bytes(ret, (xpl_bytes_t){text.p, text.n});
    }
    const bool ok = !text.failed && !ret->failed;
    xpl_buf_fini(&text);
    return ok;
}

enum { PRODUCTS, VARIANTS, FILES, BEGINS, ENDS, N_COLUMNS };

static const enum xpl_pg_array column_types[N_COLUMNS] = {[PRODUCTS] = XPL_PG_TEXTS,
                                                          [VARIANTS] = XPL_PG_INT8S,
                                                          [FILES] = XPL_PG_TEXTS,
                                                          [BEGINS] = XPL_PG_INT8S,
                                                          [ENDS] = XPL_PG_INT8S};

void xpl_pg_put_product(struct xpl_buf *ret, xpl_str_t name, uint32_t version) {
    char text[128];
    const int n = snprintf(text, sizeof text, "%.*s %u", XPL_STR_FMT(name), version);
    xpl_pg_array_bytes(ret, text_bytes((xpl_str_t){text, (size_t)n}));
}

static bool fill_columns(struct xpl_buf columns[N_COLUMNS], const struct xpl_job_request *r) {
    bool ok = xpl_pg_put_files(&columns[FILES], r->files, r->n_files);
    xpl_pg_array_begin(&columns[PRODUCTS], XPL_PG_TEXTS, r->n_products);
    xpl_pg_array_begin(&columns[VARIANTS], XPL_PG_INT8S, r->n_products);
    for (size_t i = 0; i < r->n_products; i++) {
        xpl_pg_put_product(&columns[PRODUCTS], r->products[i].name, r->products[i].version);
        xpl_pg_array_i64(&columns[VARIANTS], r->products[i].variant);
    }
    xpl_pg_array_begin(&columns[BEGINS], XPL_PG_INT8S, r->n_batches);
    xpl_pg_array_begin(&columns[ENDS], XPL_PG_INT8S, r->n_batches);
    for (size_t i = 0; i < r->n_batches; i++) {
        xpl_pg_array_i64(&columns[BEGINS], i ? (int64_t)r->ends[i - 1] + 1 : 1);
        xpl_pg_array_i64(&columns[ENDS], (int64_t)r->ends[i]);
    }
    for (int k = 0; k < N_COLUMNS; k++)
        ok = ok && !columns[k].failed;
    return ok;
}

static xpl_status_t insert_batches(struct xpl_pg_store *s, const struct xpl_job_request *r,
                                   const struct xpl_buf columns[N_COLUMNS], struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    char begin[200];
    uint64_t key;
    memcpy(&key, r->digest.bytes, sizeof key);
    // Of two that request the same at once, the second finds the first one's batches.  Neither
    // waits for the other until the connection counts as lost: one may be frozen.
    (void)snprintf(begin, sizeof begin,
                   "BEGIN; SET LOCAL lock_timeout='1s';"
                   "SET LOCAL idle_in_transaction_session_timeout='5s';"
                   "SELECT pg_advisory_xact_lock(%lld)",
                   (long long)(key >> 1));
    xpl_pg_arg_bytes(&a, digest_bytes(&r->digest));
    xpl_pg_arg_text(&a, r->session);
    xpl_pg_arg_text(&a, r->traceparent);
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_pg_arg_array(&a, column_types[k], &columns[k]);
    return pg_job_tx(
        s, begin,
        "INSERT INTO jobs(request, session, trace, products, variants, files, rank)"
        " SELECT $1,$2,$3,$4,$5,($6::text[])[b:e],i FROM unnest($7,$8) WITH ORDINALITY u(b,e,i)"
        " WHERE NOT EXISTS (SELECT FROM jobs WHERE request=$1 AND aside_at IS NULL)",
        &a, NULL, NULL, err);
}

xpl_status_t xpl_pg_enqueue_jobs(struct xpl_store *base, const struct xpl_job_request *r,
                                 struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_buf columns[N_COLUMNS];
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_buf_init(&columns[k], MAX_ARRAY);
    const xpl_status_t st = fill_columns(columns, r) ? insert_batches(s, r, columns, err)
                                                     : xpl_pg_fail(s, XPL_PG_NOMEM, "", err);
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_buf_fini(&columns[k]);
    return st;
}

// ---- what became of them ----

static bool read_file(xpl_str_t text, struct xpl_job_file *ret) {
    char *end;
    ret->size_bytes = strtoull(text.ptr, &end, 10);
    if (*end != ' ') return false;
    ret->mtime_ns = strtoll(end + 1, &end, 10);
    if (*end != ' ') return false;
    ret->host = (xpl_str_t){end + 1, text.len - (size_t)(end + 1 - text.ptr)};
    return true;
}

enum xpl_pg_rc xpl_pg_read_files(struct xpl_pg_conn *c, const PGresult *r, int column,
                                 struct xpl_arena *arena, struct xpl_job_file **ret,
                                 size_t *ret_n) {
    xpl_str_t all, one;
    size_t n = 1;
    *ret_n = 0;
    if (!xpl_pg_read_text(c, r, 0, column, arena, &all)) return XPL_PG_NOMEM;
    if (!all.len) return XPL_PG_OK;
    for (size_t i = 0; i < all.len; i++)
        n += all.ptr[i] == '/';
    if (!(*ret = xpl_arena_array(arena, n, sizeof **ret))) return XPL_PG_NOMEM;
    while (xpl_pg_next_part(&all, &one))
        if (!read_file(one, &(*ret)[(*ret_n)++])) return XPL_PG_OTHER;
    return XPL_PG_OK;
}

bool xpl_pg_next_part(xpl_str_t *rest, xpl_str_t *ret) {
    if (!rest->len) return false;
    const char *const slash = memchr(rest->ptr, '/', rest->len);
    ret->ptr = rest->ptr;
    ret->len = slash ? (size_t)(slash - rest->ptr) : rest->len;
    rest->ptr += ret->len + (slash != NULL);
    rest->len -= ret->len + (slash != NULL);
    return true;
}

struct inspection {
    struct xpl_arena *arena;
    struct xpl_job_progress *ret;
};

static enum xpl_pg_rc read_progress(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct inspection *const i = arg;
    if (c->pq->ntuples(r) != 1) return XPL_PG_OTHER;
    *i->ret = (struct xpl_job_progress){.n_left = xpl_pg_get_i64(c, r, 0, 0),
                                        .n_unclaimed = xpl_pg_get_i64(c, r, 0, 1)};
    return xpl_pg_read_files(c, r, 2, i->arena, &i->ret->lost, &i->ret->n_lost);
}

xpl_status_t xpl_pg_inspect_jobs(struct xpl_store *base, const struct xpl_job_digest *d,
                                 struct xpl_arena *arena, struct xpl_job_progress *ret,
                                 struct xpl_error *err) {
    struct inspection to = {arena, ret};
    struct xpl_pg_args a = {0};
    xpl_pg_arg_bytes(&a, digest_bytes(d));
    return xpl_pg_job_query(xpl_pg_of(base),
                            "SELECT count(*) FILTER (WHERE aside_at IS NULL),"
                            " count(*) FILTER (WHERE cardinality(attempts)=0),"
                            " coalesce(string_agg(array_to_string(files,'/'),'/') FILTER (WHERE"
                            " cardinality(attempts)>0 AND NOT " XPL_PG_JOB_HELD "),'')"
                            " FROM jobs WHERE request=$1",
                            &a, read_progress, &to, err);
}

xpl_status_t xpl_pg_find_aside(struct xpl_store *base, xpl_str_t session, struct xpl_arena *arena,
                               struct xpl_job_progress *ret, struct xpl_error *err) {
    struct inspection to = {arena, ret};
    struct xpl_pg_args a = {0};
    xpl_pg_arg_text(&a, session);
    return xpl_pg_job_query(xpl_pg_of(base),
                            "SELECT 0::bigint, 0::bigint,"
                            " coalesce(string_agg(array_to_string(files,'/'),'/'),'')"
                            " FROM jobs WHERE session=$1 AND aside_at IS NOT NULL",
                            &a, read_progress, &to, err);
}

xpl_status_t xpl_pg_withdraw_jobs(struct xpl_store *base, const struct xpl_job_digest *d,
                                  struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_bytes(&a, digest_bytes(d));
    return xpl_pg_job_query(xpl_pg_of(base),
                            "DELETE FROM jobs WHERE request=$1 AND cardinality(attempts)=0", &a,
                            NULL, NULL, err);
}

// ---- daemons ----

// Once a minute: reports are many.
static xpl_status_t sweep(struct xpl_pg_store *s, struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    const uint64_t now = xpl_clock_ns();
    if (now < atomic_load(&s->jobs_swept_at_ns)) return XPL_OK;
    atomic_store(&s->jobs_swept_at_ns, now + (uint64_t)SWEEP_S * 1000000000u);
    xpl_pg_arg_i64(&a, XPL_JOB_ASIDE_S);
    return xpl_pg_job_query(
        s,
        "WITH gone AS (DELETE FROM daemons WHERE id IN (SELECT id FROM daemons WHERE"
        " expires_at<clock_timestamp()-interval '1 hour' FOR UPDATE SKIP LOCKED))"
        " DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE"
        " aside_at<clock_timestamp()-$1::float8*interval '1 s' OR"
        " (queued_at<clock_timestamp()-interval '1 day' AND NOT " XPL_PG_JOB_HELD ")"
        " FOR UPDATE SKIP LOCKED)",
        &a, NULL, NULL, err);
}

xpl_status_t xpl_pg_report_daemon(struct xpl_store *base, const struct xpl_job_daemon *d,
                                  uint64_t ms, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    if (d->n_threads && atomic_load(&s->is_pooled))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%s: a worker needs a connection without a pooler", s->name);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_text(&a, d->name);
    xpl_pg_arg_text(&a, d->role);
    xpl_pg_arg_text(&a, d->version);
    xpl_pg_arg_i64(&a, d->n_jobs);
    xpl_pg_arg_u64(&a, ms);
    xpl_pg_arg_i64(&a, d->n_threads);
    XPL_TRY(xpl_pg_job_query(s,
                             "INSERT INTO daemons VALUES($1,$2,$3,$4,$5,clock_timestamp()+"
                             "$6::float8*interval '1 ms',$7) ON CONFLICT(id) DO UPDATE SET"
                             " n_jobs=$5, expires_at=excluded.expires_at",
                             &a, NULL, NULL, err));
    return sweep(s, err);
}

static enum xpl_pg_rc read_stats(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct xpl_job_stats *const ret = arg;
    enum { FIRST_LEASE = 8 };
    if (c->pq->ntuples(r) != 1) return XPL_PG_OTHER;
    *ret = (struct xpl_job_stats){
        .queued = xpl_pg_get_i64(c, r, 0, 0),
        .running = xpl_pg_get_i64(c, r, 0, 1),
        .set_aside = xpl_pg_get_i64(c, r, 0, 2),
        .workers = xpl_pg_get_i64(c, r, 0, 3),
        .peers = xpl_pg_get_i64(c, r, 0, 4),
        .threads = xpl_pg_get_i64(c, r, 0, 5),
        .oldest_ms = xpl_pg_get_i64(c, r, 0, 6),
        .schedules = xpl_pg_get_i64(c, r, 0, 7),
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
    ", (SELECT count(*) FROM held WHERE kind='" kind "' AND owner=$1)"

xpl_status_t xpl_pg_get_job_stats(struct xpl_store *base, struct xpl_job_stats *ret,
                                  struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    struct xpl_pg_store *const s = xpl_pg_of(base);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    return xpl_pg_job_query(
        s,
        "WITH held AS (SELECT * FROM " XPL_PG_LEASES " l WHERE expires_at>=clock_timestamp()),"
        // Until this daemon has reported, its version is not known: all are alike.
        " ours AS (SELECT version FROM daemons WHERE id=$1),"
        " workers AS (SELECT count(*) AS n, count(*) FILTER (WHERE alike) AS peers,"
        " coalesce(sum(n_threads) FILTER (WHERE alike),0)::bigint AS threads"
        " FROM (SELECT n_threads, version=coalesce((SELECT version FROM ours),version) AS alike"
        " FROM daemons WHERE role='worker' AND expires_at>clock_timestamp()) w)"
        " SELECT count(*) FILTER (WHERE aside_at IS NULL AND NOT held),"
        " count(*) FILTER (WHERE aside_at IS NULL AND held),"
        " count(*) FILTER (WHERE aside_at IS NOT NULL), (SELECT n FROM workers),"
        " (SELECT peers FROM workers), (SELECT threads FROM workers),"
        " coalesce(max(age) FILTER (WHERE aside_at IS NULL),0),"
        " (SELECT count(*) FROM schedules)" HELD("schedule") HELD("capture") HELD("scanner")
            HELD("catalogue") " FROM (SELECT aside_at, (extract(epoch FROM"
                              " clock_timestamp()-queued_at)*1000)::bigint AS age,"
                              " " XPL_PG_JOB_HELD " AS held FROM jobs) j",
        &a, read_stats, ret, err);
}
