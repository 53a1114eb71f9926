// SPDX-License-Identifier: Apache-2.0
// Jobs: taking them, keeping them, and being done with them.
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_ARRAY = 1 << 20 };

// The plan is the same whatever the statistics are: nested loops over indexes, in the order of
// ranks, as far as the limit.  The planner expects one row of a table that was filled a moment ago,
// and would sort all of them.
static const char claim_begin[] =
    "BEGIN; SET LOCAL jit=off; SET LOCAL enable_sort=off; SET LOCAL enable_seqscan=off;"
    "SET LOCAL enable_bitmapscan=off; SET LOCAL enable_hashjoin=off; "
    "SET LOCAL enable_mergejoin=off";

// The first of those that this worker may take decides: a suspect one is taken alone or not at
// all, which ends the worker's other jobs first; else all that are not suspect.
static const char claim_sql[] =
    "WITH head AS MATERIALIZED (SELECT digest, rank, queued_at, " XPL_PG_JOB_LOST " AS lost"
    " FROM jobs j WHERE expires_at<clock_timestamp() AND size_bytes<=$2"
    " AND (product, version) IN (SELECT p, v FROM unnest($3,$4) w(p,v))"
    " AND " XPL_PG_JOB_LOST "<$1"
    " ORDER BY rank, queued_at LIMIT $5 FOR UPDATE OF j SKIP LOCKED),"
    " first AS (SELECT digest, lost FROM head ORDER BY rank, queued_at LIMIT 1)"
    " UPDATE jobs j SET attempt=j.attempt+1, owner=$6,"
    " expires_at=clock_timestamp()+$7::float8*interval '1 ms' FROM head h, first f"
    " WHERE j.digest=h.digest AND"
    " CASE WHEN f.lost>0 THEN h.digest=f.digest AND $8>0 ELSE h.lost=0 END"
    " RETURNING j.digest, j.attempt, j.session, j.host, j.size_bytes, j.mtime_ns, j.product,"
    " j.version, j.variant,"
    " (extract(epoch FROM clock_timestamp()-j.queued_at)*1000)::bigint, j.trace";

struct taken {
    struct xpl_arena *arena;
    struct xpl_job *jobs;
    size_t n;
};

static enum xpl_pg_rc read_jobs(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct taken *const t = arg;
    t->n = (size_t)c->pq->ntuples(r);
    t->jobs = xpl_arena_array(t->arena, t->n + 1, sizeof *t->jobs);
    if (!t->jobs) return XPL_PG_NOMEM;
    for (size_t i = 0; i < t->n; i++) {
        struct xpl_job *const j = &t->jobs[i];
        const int row = (int)i;
        const xpl_bytes_t digest = xpl_pg_get_bytes(c, r, row, 0);
        *j = (struct xpl_job){.claim = {.attempt = xpl_pg_get_i64(c, r, row, 1)},
                              .spec = {.size_bytes = (uint64_t)xpl_pg_get_i64(c, r, row, 4),
                                       .mtime_ns = xpl_pg_get_i64(c, r, row, 5),
                                       .version = (uint32_t)xpl_pg_get_i64(c, r, row, 7),
                                       .variant = (unsigned)xpl_pg_get_i64(c, r, row, 8)},
                              .queued_ms = xpl_pg_get_i64(c, r, row, 9)};
        if (digest.len != sizeof j->claim.digest.bytes) return XPL_PG_OTHER;
        memcpy(j->claim.digest.bytes, digest.ptr, digest.len);
        if (!xpl_pg_read_text(c, r, row, 2, t->arena, &j->spec.session) ||
            !xpl_pg_read_text(c, r, row, 3, t->arena, &j->spec.host) ||
            !xpl_pg_read_text(c, r, row, 6, t->arena, &j->spec.product) ||
            !xpl_pg_read_text(c, r, row, 10, t->arena, &j->spec.traceparent))
            return XPL_PG_NOMEM;
    }
    return XPL_PG_OK;
}

// Jobs that are claimed and cannot be read here without memory are lost until their leases end.
static xpl_status_t claim(struct xpl_store *base, const struct xpl_job_offer *o,
                          struct xpl_arena *arena, struct xpl_job **ret, size_t *ret_n,
                          struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct taken t = {.arena = arena};
    struct xpl_pg_args a = {0};
    struct xpl_buf names, versions;
    xpl_buf_init(&names, MAX_ARRAY);
    xpl_buf_init(&versions, MAX_ARRAY);
    xpl_pg_array_begin(&names, XPL_PG_TEXTS, o->n_products);
    xpl_pg_array_begin(&versions, XPL_PG_INT8S, o->n_products);
    for (size_t i = 0; i < o->n_products; i++) {
        const xpl_str_t name = o->products[i].name;
        xpl_pg_array_bytes(&names, (xpl_bytes_t){(const uint8_t *)name.ptr, name.len});
        xpl_pg_array_i64(&versions, o->products[i].version);
    }
    xpl_pg_arg_i64(&a, XPL_JOB_ATTEMPTS);
    xpl_pg_arg_i64(&a, o->max_bytes > INT64_MAX ? INT64_MAX : (int64_t)o->max_bytes);
    xpl_pg_arg_array(&a, XPL_PG_TEXTS, &names);
    xpl_pg_arg_array(&a, XPL_PG_INT8S, &versions);
    xpl_pg_arg_i64(&a, o->max > XPL_JOB_MAX_CLAIM ? XPL_JOB_MAX_CLAIM : (int64_t)o->max);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, (int64_t)o->lease_ms);
    xpl_pg_arg_i64(&a, o->alone);
    const xpl_status_t st = names.failed || versions.failed
                                ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
                                : xpl_pg_job_tx(s, claim_begin, claim_sql, &a, read_jobs, &t, err);
    xpl_buf_fini(&names);
    xpl_buf_fini(&versions);
    if (st != XPL_OK) return st;
    *ret = t.jobs;
    *ret_n = t.n;
    return XPL_OK;
}

// ---- leases ----

struct kept {
    bool *ret;
    size_t n;
};

static enum xpl_pg_rc read_kept(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct kept *const k = arg;
    for (int i = 0; i < c->pq->ntuples(r); i++) {
        const int64_t at = xpl_pg_get_i64(c, r, i, 0);
        if (at < 1 || (uint64_t)at > k->n) return XPL_PG_OTHER;
        if (k->ret) k->ret[at - 1] = true;
    }
    return XPL_PG_OK;
}

// Runs a statement over claims that are still ours: $1 digests, $2 attempts, $3 owner, $4 a number.
static xpl_status_t over_claims(struct xpl_store *base, const char *sql,
                                const struct xpl_job_claim *c, size_t n, uint64_t number,
                                bool *ret_kept, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct kept k = {ret_kept, n};
    struct xpl_pg_args a = {0};
    struct xpl_buf digests, attempts;
    xpl_buf_init(&digests, MAX_ARRAY);
    xpl_buf_init(&attempts, MAX_ARRAY);
    xpl_pg_array_begin(&digests, XPL_PG_BYTEAS, n);
    xpl_pg_array_begin(&attempts, XPL_PG_INT8S, n);
    for (size_t i = 0; i < n; i++) {
        if (ret_kept) ret_kept[i] = false;
        xpl_pg_array_bytes(&digests, (xpl_bytes_t){c[i].digest.bytes, sizeof c[i].digest.bytes});
        xpl_pg_array_i64(&attempts, c[i].attempt);
    }
    xpl_pg_arg_array(&a, XPL_PG_BYTEAS, &digests);
    xpl_pg_arg_array(&a, XPL_PG_INT8S, &attempts);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, (int64_t)number);
    const xpl_status_t st = digests.failed || attempts.failed
                                ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
                                : xpl_pg_job_query(s, sql, &a, read_kept, &k, err);
    xpl_buf_fini(&digests);
    xpl_buf_fini(&attempts);
    return st;
}

static xpl_status_t renew(struct xpl_store *base, const struct xpl_job_claim *c, size_t n,
                          uint64_t lease_ms, bool *ret_kept, struct xpl_error *err) {
    return over_claims(base,
                       "UPDATE jobs j SET expires_at=clock_timestamp()+$4::float8*interval '1 ms'"
                       " FROM unnest($1,$2) WITH ORDINALITY u(d,a,i)"
                       " WHERE j.digest=u.d AND j.attempt=u.a AND j.owner=$3 RETURNING u.i::bigint",
                       c, n, lease_ms, ret_kept, err);
}

static xpl_status_t give_back(struct xpl_store *base, const struct xpl_job_claim *c, size_t n,
                              uint64_t pause_ms, struct xpl_error *err) {
    return over_claims(base,
                       "UPDATE jobs j SET attempt=attempt-1, owner='',"
                       " expires_at=clock_timestamp()+$4::float8*interval '1 ms'"
                       " FROM unnest($1,$2) WITH ORDINALITY u(d,a,i)"
                       " WHERE j.digest=u.d AND j.attempt=u.a AND j.owner=$3 RETURNING u.i::bigint",
                       c, n, pause_ms, NULL, err);
}

// ---- the end ----

static xpl_status_t conclude(struct xpl_store *base, const struct xpl_job_claim *c,
                             struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    int64_t n = 0;
    bool own;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    xpl_pg_arg_bytes(&a, (xpl_bytes_t){c->digest.bytes, sizeof c->digest.bytes});
    xpl_pg_arg_i64(&a, c->attempt);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    enum xpl_pg_rc rc =
        xpl_pg_run(s->w, "DELETE FROM jobs WHERE digest=$1 AND attempt=$2 AND owner=$3", &a, &n);
    if (rc == XPL_PG_OK && n == 0) {
        (void)snprintf(s->w->why, sizeof s->w->why, "the job is not ours any more");
        rc = XPL_PG_NONE;
    }
    return xpl_pg_leave(s, own, rc, err);
}

const struct xpl_job_ops xpl_pg_jobs = {
    .enqueue = xpl_pg_enqueue_jobs,
    .claim = claim,
    .renew = renew,
    .conclude = conclude,
    .give_back = give_back,
    .inspect = xpl_pg_inspect_jobs,
    .withdraw = xpl_pg_withdraw_jobs,
    .report = xpl_pg_report_daemon,
    .get_stats = xpl_pg_get_job_stats,
    .list = xpl_pg_list_jobs,
};
