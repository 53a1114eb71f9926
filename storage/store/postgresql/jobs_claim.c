// SPDX-License-Identifier: Apache-2.0
// Jobs: claiming and ending them, on the writer's connection: its session holds the locks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_ARRAY = 1 << 20, TRIES = 100 };

#define NO_POOLER          "a worker needs a connection without a pooler"
#define LOCK(function, id) "pg_" function "('jobs'::regclass::oid::int, (" id "%2147483648)::int)"

// From now on the lock is the transaction's: a job that is still there, with notes and without a
// lock, would count as lost.
#define RELEASE LOCK("try_advisory_xact_lock", "id") ", " LOCK("advisory_unlock", "id")

// ---- claiming ----

// The first job that nobody has: a session gets a lock again that it has already.  The rows are
// materialized one by one, so that only that one is locked.
static const char lock_sql[] =
    "WITH open AS MATERIALIZED (SELECT id, (cardinality(files)=1 AND "
    "attempts<>'{}')"
    "::int::bigint AS suspect FROM jobs WHERE aside_at IS NULL AND ready_at<=clock_timestamp()"
    " AND products<@$1 AND $2<>ALL(attempts) ORDER BY rank, queued_at)"
    " SELECT id, suspect FROM open WHERE " LOCK("try_advisory_lock", "id") " LIMIT 1";

// Notes that this daemon, $2, begins the job.  One that was lost since it was divided is divided
// again: in four, as each division may cost a worker.  Single files keep notes of at most $3-1
// daemons, so that one more has to be lost with that file only.  With $3 it is set aside.  The row
// is locked first: a job that ends now must be gone here, or have its rest, before it is divided.
static const char begin_sql[] =
    "WITH j AS (SELECT *, cardinality(files) AS n, (cardinality(files)+3)/4 AS k,"
    " cardinality(files)>1 AND cardinality(attempts)>n_divided AS divide,"
    " cardinality(files)=1 AND cardinality(attempts)>=$3 AS aside FROM jobs WHERE id=$1"
    " FOR UPDATE),"
    " kept AS (SELECT CASE WHEN divide AND k=1 THEN attempts[1:$3::int-1] ELSE attempts END"
    " AS notes FROM j),"
    " rest AS (INSERT INTO jobs(request, rank, session, files, products, variants, trace,"
    " attempts, n_divided, queued_at) SELECT request, rank, session, files[i*k+1:(i+1)*k],"
    " products, variants, trace, notes, cardinality(notes), queued_at"
    " FROM j, kept, generate_series(1,3) i WHERE divide AND i*k<n)"
    " UPDATE jobs SET files=CASE WHEN divide THEN j.files[1:k] ELSE j.files END,"
    " n_divided=CASE WHEN divide THEN cardinality(notes) ELSE j.n_divided END,"
    " attempts=CASE WHEN aside THEN notes ELSE notes||$2::text END,"
    " aside_at=CASE WHEN aside THEN clock_timestamp() END, owner=$2"
    " FROM j, kept WHERE jobs.id=j.id AND jobs.aside_at IS NULL"
    " RETURNING jobs.id, jobs.session, array_to_string(jobs.files,'/'),"
    " array_to_string(jobs.products,'/'), array_to_string(jobs.variants,'/'), jobs.trace,"
    " cardinality(jobs.attempts)::bigint,"
    " (extract(epoch FROM clock_timestamp()-jobs.queued_at)*1000)::bigint,"
    " (jobs.aside_at IS NOT NULL)::int::bigint";

static enum xpl_pg_rc read_products(struct xpl_pg_conn *c, const PGresult *r,
                                    struct xpl_arena *arena, struct xpl_job *j) {
    xpl_str_t names, variants, name, variant;
    size_t n = 1;
    if (!xpl_pg_read_text(c, r, 0, 3, arena, &names) ||
        !xpl_pg_read_text(c, r, 0, 4, arena, &variants))
        return XPL_PG_NOMEM;
    for (size_t i = 0; i < names.len; i++)
        n += names.ptr[i] == '/';
    if (!(j->products = xpl_arena_array(arena, n, sizeof *j->products))) return XPL_PG_NOMEM;
    while (xpl_pg_next_part(&names, &name) && xpl_pg_next_part(&variants, &variant)) {
        const char *const blank = memchr(name.ptr, ' ', name.len);
        if (!blank) return XPL_PG_OTHER;
        j->products[j->n_products++] =
            (struct xpl_job_product){.name = {name.ptr, (size_t)(blank - name.ptr)},
                                     .version = (uint32_t)strtoul(blank + 1, NULL, 10),
                                     .variant = (unsigned)strtoul(variant.ptr, NULL, 10)};
    }
    return XPL_PG_OK;
}

static enum xpl_pg_rc read_job(struct xpl_pg_conn *c, const PGresult *r, struct xpl_arena *arena,
                               struct xpl_job *j) {
    if (!xpl_pg_read_text(c, r, 0, 1, arena, &j->session) ||
        !xpl_pg_read_text(c, r, 0, 5, arena, &j->traceparent))
        return XPL_PG_NOMEM;
    j->attempt = xpl_pg_get_i64(c, r, 0, 6);
    j->queued_ms = xpl_pg_get_i64(c, r, 0, 7);
    const enum xpl_pg_rc rc = read_products(c, r, arena, j);
    return rc == XPL_PG_OK ? xpl_pg_read_files(c, r, 2, arena, &j->files, &j->n_files) : rc;
}

static enum xpl_pg_rc unlock(struct xpl_pg_store *s, int64_t id) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, id);
    return xpl_pg_query(s->w, "SELECT " LOCK("advisory_unlock", "$1"), &a, NULL);
}

// NONE: the locked job has ended meanwhile, or was set aside now.
static enum xpl_pg_rc begin_job(struct xpl_pg_store *s, int64_t id, struct xpl_arena *arena,
                                struct xpl_job *j) {
    struct xpl_pg_args a = {0};
    PGresult *r = NULL;
    xpl_pg_arg_i64(&a, id);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, XPL_JOB_ATTEMPTS);
    enum xpl_pg_rc rc = xpl_pg_query(s->w, begin_sql, &a, &r);
    if (rc != XPL_PG_OK) return rc;
    *j = (struct xpl_job){.claim = {id, s->session}};
    const bool ours = s->pq->ntuples(r) == 1 && !xpl_pg_get_i64(s->w, r, 0, 8);
    rc = ours ? read_job(s->w, r, arena, j) : XPL_PG_NONE;
    s->pq->clear(r);
    return rc;
}

// A session that says nothing for as long as a lease ends, and its locks with it, also in this
// first transaction.  A pooler has process ids of its own, and sessions that are not ours.
static enum xpl_pg_rc prepare_session(struct xpl_pg_store *s, uint64_t lease_ms) {
    char sql[120];
    int64_t pid = 0;
    if (s->lease_session == s->session) return XPL_PG_OK;
    enum xpl_pg_rc rc = xpl_pg_ask(s->w, "SELECT pg_backend_pid()::bigint", NULL, &pid);
    if (rc != XPL_PG_OK) return rc;
    const bool is_pooled = pid != s->pq->backendPID(s->w->c);
    if (is_pooled && !atomic_exchange(&s->is_pooled, true))
        xpl_pg_notice(s, "%s: " NO_POOLER ", and takes no jobs", s->name);
    atomic_store(&s->is_pooled, is_pooled);
    if (is_pooled) {
        (void)snprintf(s->w->why, sizeof s->w->why, NO_POOLER);
        return XPL_PG_DENIED;
    }
    (void)snprintf(sql, sizeof sql,
                   "SET idle_session_timeout=%llu;"
                   "SET LOCAL idle_in_transaction_session_timeout=%llu",
                   (unsigned long long)lease_ms, (unsigned long long)lease_ms);
    rc = xpl_pg_exec(s->w, sql);
    s->lease_ms = lease_ms;
    s->lease_session = rc == XPL_PG_OK ? s->session : 0;
    return rc;
}

// A session's lock outlives the rollback of a claim that failed behind it.
static enum xpl_pg_rc drop_left_lock(struct xpl_pg_store *s) {
    const bool left = s->left_lock && s->left_session == s->session;
    const enum xpl_pg_rc rc = left ? unlock(s, s->left_lock) : XPL_PG_OK;
    if (rc == XPL_PG_OK) s->left_lock = 0;
    return rc;
}

// NONE: there are no jobs, or a worker that does other things ends these first.
static enum xpl_pg_rc lock_job(struct xpl_pg_store *s, const struct xpl_pg_args *offer, bool alone,
                               int64_t *ret) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(s->w, lock_sql, offer, &r);
    if (rc != XPL_PG_OK) return rc;
    const bool any = s->pq->ntuples(r) > 0;
    const bool later = any && xpl_pg_get_i64(s->w, r, 0, 1) && !alone;
    *ret = any ? xpl_pg_get_i64(s->w, r, 0, 0) : 0;
    s->pq->clear(r);
    if (later) rc = unlock(s, *ret);
    return rc == XPL_PG_OK && (!any || later) ? XPL_PG_NONE : rc;
}

static enum xpl_pg_rc claim_one(struct xpl_pg_store *s, const struct xpl_pg_args *offer, bool alone,
                                struct xpl_arena *arena, struct xpl_job **ret) {
    struct xpl_job *const j = xpl_arena_alloc(arena, sizeof *j);
    if (!j) return XPL_PG_NOMEM;
    for (int i = 0; i < TRIES; i++) {
        int64_t id = 0;
        enum xpl_pg_rc rc = lock_job(s, offer, alone, &id);
        if (rc != XPL_PG_OK) return rc == XPL_PG_NONE ? XPL_PG_OK : rc;
        s->left_lock = id;
        s->left_session = s->session;
        rc = begin_job(s, id, arena, j);
        if (rc == XPL_PG_OK) {
            s->left_lock = 0;
            *ret = j;
        }
        if (rc != XPL_PG_NONE) return rc;
        if ((rc = drop_left_lock(s)) != XPL_PG_OK) return rc;
    }
    return XPL_PG_OK;
}

static xpl_status_t claim(struct xpl_store *base, const struct xpl_job_offer *o,
                          struct xpl_arena *arena, struct xpl_job **ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    struct xpl_buf products;
    bool own;
    *ret = NULL;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    xpl_buf_init(&products, MAX_ARRAY);
    xpl_pg_array_begin(&products, XPL_PG_TEXTS, o->n_products);
    for (size_t i = 0; i < o->n_products; i++)
        xpl_pg_put_product(&products, o->products[i].name, o->products[i].version);
    xpl_pg_arg_array(&a, XPL_PG_TEXTS, &products);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    enum xpl_pg_rc rc = products.failed ? XPL_PG_NOMEM : prepare_session(s, o->lease_ms);
    if (rc == XPL_PG_OK) rc = drop_left_lock(s);
    if (rc == XPL_PG_OK) rc = claim_one(s, &a, o->alone, arena, ret);
    if (rc != XPL_PG_OK) s->lease_session = 0; // its setting is rolled back
    xpl_buf_fini(&products);
    const xpl_status_t st = xpl_pg_leave(s, own, rc, err);
    if (st != XPL_OK) *ret = NULL;
    return st;
}

// ---- keeping and ending ----

// NONE: another daemon has the job, or has ended it.  A session that took the place of a lost one
// locks it again, but once: the end of the job unlocks it once.
static enum xpl_pg_rc keep_lock(struct xpl_pg_store *s, const struct xpl_job_claim *c) {
    struct xpl_pg_args a = {0};
    int64_t held = c->session == s->session;
    xpl_pg_arg_i64(&a, c->id);
    const enum xpl_pg_rc rc =
        held ? XPL_PG_OK
             : xpl_pg_ask(s->w,
                          "SELECT (CASE WHEN NOT EXISTS (SELECT FROM jobs WHERE id=$1) THEN false"
                          " WHEN EXISTS (SELECT FROM pg_locks WHERE"
                          " locktype='advisory' AND pid=pg_backend_pid() AND objsubid=2 AND"
                          " classid='jobs'::regclass::oid AND objid::bigint=$1%2147483648)"
                          " THEN true ELSE " LOCK("try_advisory_lock", "$1") " END)::int::bigint",
                          &a, &held);
    if (rc == XPL_PG_OK && !held)
        (void)snprintf(s->w->why, sizeof s->w->why, "the job is not ours any more");
    return rc == XPL_PG_OK && !held ? XPL_PG_NONE : rc;
}

// This daemon lives: what it is noted in and does not work on was not lost with it.
static enum xpl_pg_rc remove_notes(struct xpl_pg_store *s, const struct xpl_job_claim *c,
                                   size_t n) {
    struct xpl_pg_args a = {0};
    struct xpl_buf ids = xpl_buf_of(MAX_ARRAY);
    xpl_pg_array_begin(&ids, XPL_PG_INT8S, n);
    for (size_t i = 0; i < n; i++)
        xpl_pg_array_i64(&ids, c[i].id);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_array(&a, XPL_PG_INT8S, &ids);
    const enum xpl_pg_rc rc =
        ids.failed ? XPL_PG_NOMEM
                   : xpl_pg_query(s->w,
                                  "UPDATE jobs SET attempts=array_remove(attempts,$1)"
                                  " WHERE $1=ANY(attempts) AND id<>ALL($2)",
                                  &a, NULL);
    xpl_buf_fini(&ids);
    return rc;
}

static xpl_status_t renew(struct xpl_store *base, struct xpl_job_claim *c, size_t n, bool *ret_kept,
                          struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    enum xpl_pg_rc rc = XPL_PG_OK;
    bool own;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    // A session that is new, of a worker that has no thread free to claim with.
    if (s->lease_ms) rc = prepare_session(s, s->lease_ms);
    for (size_t i = 0; i < n && rc == XPL_PG_OK; i++) {
        rc = keep_lock(s, &c[i]);
        ret_kept[i] = rc == XPL_PG_OK;
        if (ret_kept[i]) c[i].session = s->session;
        if (rc == XPL_PG_NONE) rc = XPL_PG_OK;
    }
    if (rc == XPL_PG_OK) rc = remove_notes(s, c, n);
    if (rc != XPL_PG_OK) s->lease_session = 0; // as in claim
    return xpl_pg_leave(s, own, rc, err);
}

static xpl_status_t conclude(struct xpl_store *base, const struct xpl_job_end *e,
                             struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    struct xpl_buf files;
    int64_t n = 0;
    bool own;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    xpl_buf_init(&files, MAX_ARRAY);
    xpl_pg_arg_i64(&a, e->claim.id);
    enum xpl_pg_rc rc = keep_lock(s, &e->claim);
    if (rc == XPL_PG_OK && !xpl_pg_put_files(&files, e->rest, e->n_rest)) rc = XPL_PG_NOMEM;
    if (e->n_rest) {
        xpl_pg_arg_text(&a, xpl_str_from(s->owner));
        xpl_pg_arg_array(&a, XPL_PG_TEXTS, &files);
        xpl_pg_arg_u64(&a, e->pause_ms);
    }
    if (rc == XPL_PG_OK)
        rc = xpl_pg_run(s->w,
                        e->n_rest ? "UPDATE jobs SET files=$3, attempts=array_remove(attempts,$2),"
                                    " ready_at=clock_timestamp()+$4::float8*interval '1 ms'"
                                    " WHERE id=$1 RETURNING " RELEASE
                                  : "DELETE FROM jobs WHERE id=$1 RETURNING " RELEASE,
                        &a, &n);
    xpl_buf_fini(&files);
    if (rc == XPL_PG_OK && n == 0) {
        (void)snprintf(s->w->why, sizeof s->w->why, "the job has ended");
        rc = unlock(s, e->claim.id) == XPL_PG_OK ? XPL_PG_NONE : XPL_PG_AWAY;
    }
    return xpl_pg_leave(s, own, rc, err);
}

const struct xpl_job_ops xpl_pg_jobs = {
    .enqueue = xpl_pg_enqueue_jobs,
    .claim = claim,
    .renew = renew,
    .put = xpl_pg_put_jobs,
    .conclude = conclude,
    .inspect = xpl_pg_inspect_jobs,
    .find_aside = xpl_pg_find_aside,
    .withdraw = xpl_pg_withdraw_jobs,
    .report = xpl_pg_report_daemon,
    .get_stats = xpl_pg_get_job_stats,
    .list = xpl_pg_list_jobs,
};
