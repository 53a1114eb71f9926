// SPDX-License-Identifier: Apache-2.0
// Jobs: claiming and ending them, on the writer's connection: its session holds the locks.
#include <stdio.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_FILES_BYTES = 1 << 20, TRIES = 100 };

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

static enum xpl_pg_rc read_job(struct xpl_pg_conn *c, const PGresult *r, struct xpl_arena *arena,
                               struct xpl_job *j) {
    if (!xpl_pg_read_text(c, r, 0, 1, arena, &j->session) ||
        !xpl_pg_read_text(c, r, 0, 5, arena, &j->traceparent))
        return XPL_PG_NOMEM;
    j->attempt = xpl_pg_get_i64(c, r, 0, 6);
    j->queued_ms = xpl_pg_get_i64(c, r, 0, 7);
    const enum xpl_pg_rc rc = xpl_pg_read_products(c, r, arena, j);
    return rc == XPL_PG_OK ? xpl_pg_read_files(c, r, 2, arena, &j->files, &j->n_files) : rc;
}

static enum xpl_pg_rc unlock(struct xpl_pg_store *s, int64_t id) {
    return xpl_pg_query(s->w, "SELECT " LOCK("advisory_unlock", "$1"), XPL_PG_WITH(xpl_pg_i64(id)),
                        NULL);
}

// NONE: the locked job has ended meanwhile, or was set aside now.
static enum xpl_pg_rc begin_job(struct xpl_pg_store *s, int64_t id, struct xpl_arena *arena,
                                struct xpl_job *j) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(
        s->w, begin_sql, XPL_PG_WITH(xpl_pg_i64(id), xpl_pg_owner(s), xpl_pg_i64(XPL_JOB_ATTEMPTS)),
        &r);
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

xpl_status_t xpl_pg_claim_job(struct xpl_store *base, const struct xpl_job_offer *o,
                              struct xpl_arena *arena, struct xpl_job **ret,
                              struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    xpl_str_t *const products = xpl_arena_array(arena, o->n_products, sizeof *products);
    bool own, ok = products != NULL;
    *ret = NULL;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    for (size_t i = 0; ok && i < o->n_products; i++)
        ok = xpl_pg_write_product(arena, o->products[i].name, o->products[i].version, &products[i]);
    enum xpl_pg_rc rc = ok ? prepare_session(s, o->lease_ms) : XPL_PG_NOMEM;
    if (rc == XPL_PG_OK) rc = drop_left_lock(s);
    if (rc == XPL_PG_OK)
        rc = claim_one(
            s,
            XPL_PG_WITH(xpl_pg_array(XPL_PG_TEXT, products, o->n_products, sizeof *products),
                        xpl_pg_owner(s)),
            o->alone, arena, ret);
    if (rc != XPL_PG_OK) s->lease_session = 0; // its setting is rolled back
    const xpl_status_t st = xpl_pg_leave(s, own, rc, err);
    if (st != XPL_OK) *ret = NULL;
    return st;
}

// ---- keeping and ending ----

// NONE: another daemon has the job, or has ended it.  A session that took the place of a lost one
// locks it again, but once: the end of the job unlocks it once.
static enum xpl_pg_rc keep_lock(struct xpl_pg_store *s, const struct xpl_job_claim *c) {
    int64_t held = c->session == s->session;
    const enum xpl_pg_rc rc =
        held ? XPL_PG_OK
             : xpl_pg_ask(s->w,
                          "SELECT (CASE WHEN NOT EXISTS (SELECT FROM jobs WHERE id=$1) THEN false"
                          " WHEN EXISTS (SELECT FROM pg_locks WHERE"
                          " locktype='advisory' AND pid=pg_backend_pid() AND objsubid=2 AND"
                          " classid='jobs'::regclass::oid AND objid::bigint=$1%2147483648)"
                          " THEN true ELSE " LOCK("try_advisory_lock", "$1") " END)::int::bigint",
                          XPL_PG_WITH(xpl_pg_i64(c->id)), &held);
    if (rc == XPL_PG_OK && !held)
        (void)snprintf(s->w->why, sizeof s->w->why, "the job is not ours any more");
    return rc == XPL_PG_OK && !held ? XPL_PG_NONE : rc;
}

// This daemon lives: what it is noted in and does not work on was not lost with it.
static enum xpl_pg_rc remove_notes(struct xpl_pg_store *s, const struct xpl_job_claim *c,
                                   size_t n) {
    return xpl_pg_query(s->w,
                        "UPDATE jobs SET attempts=array_remove(attempts,$1)"
                        " WHERE $1=ANY(attempts) AND id<>ALL($2)",
                        XPL_PG_WITH(xpl_pg_owner(s), XPL_PG_COLUMN(I64, c, n, id)), NULL);
}

xpl_status_t xpl_pg_renew_jobs(struct xpl_store *base, struct xpl_job_claim *c, size_t n,
                               bool *ret_kept, struct xpl_error *err) {
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

static enum xpl_pg_rc end_job(struct xpl_pg_store *s, const struct xpl_job_end *e, int64_t *ret_n) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MAX_FILES_BYTES);
    const struct xpl_pg_arg id = xpl_pg_i64(e->claim.id);
    if (!e->n_rest)
        return xpl_pg_run(s->w, "DELETE FROM jobs WHERE id=$1 RETURNING " RELEASE, XPL_PG_WITH(id),
                          ret_n);
    const xpl_str_t *const files = xpl_pg_write_files(&arena, e->rest, e->n_rest);
    if (!files) return XPL_PG_NOMEM;
    return xpl_pg_run(s->w,
                      "UPDATE jobs SET files=$3, attempts=array_remove(attempts,$2),"
                      " ready_at=clock_timestamp()+$4::float8*interval '1 ms'"
                      " WHERE id=$1 RETURNING " RELEASE,
                      XPL_PG_WITH(id, xpl_pg_owner(s),
                                  xpl_pg_array(XPL_PG_TEXT, files, e->n_rest, sizeof *files),
                                  xpl_pg_u64(e->pause_ms)),
                      ret_n);
}

xpl_status_t xpl_pg_conclude_job(struct xpl_store *base, const struct xpl_job_end *e,
                                 struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    int64_t n = 0;
    bool own;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    enum xpl_pg_rc rc = keep_lock(s, &e->claim);
    if (rc == XPL_PG_OK) rc = end_job(s, e, &n);
    if (rc == XPL_PG_OK && n == 0) {
        (void)snprintf(s->w->why, sizeof s->w->why, "the job has ended");
        rc = unlock(s, e->claim.id) == XPL_PG_OK ? XPL_PG_NONE : XPL_PG_AWAY;
    }
    return xpl_pg_leave(s, own, rc, err);
}
