// SPDX-License-Identifier: Apache-2.0
// Jobs: requesting them, what became of them, who is there to do them, and who works on what.
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_REQUEST = 128 << 20, SWEEP_S = 60 };

// Whether a daemon has a job's lock (jobs_claim.c).
#define XPL_PG_JOB_HELD                                                                            \
    "(id%2147483648) IN (SELECT objid::bigint FROM pg_locks WHERE locktype='advisory' AND"         \
    " classid='jobs'::regclass::oid AND objsubid=2 AND granted AND"                                \
    " database=(SELECT oid FROM pg_database WHERE datname=current_database()))"
// All leases but those on jobs, as they are and were: kind, name, owner, expires_at.
#define XPL_PG_LEASES                                                                              \
    "(SELECT 'schedule' AS kind, id::text AS name, owner, expires_at FROM schedules"               \
    " UNION ALL SELECT 'capture', id::text, owner, expires_at FROM captures WHERE state=1"         \
    " UNION ALL SELECT CASE WHEN name='catalogue' THEN name ELSE 'scanner' END,"                   \
    " replace(name,'listings:',''), owner, expires_at FROM leases)"

// ---- requests ----

static struct xpl_pg_arg digest_arg(const struct xpl_job_digest *d) {
    return xpl_pg_bytes((xpl_bytes_t){d->bytes, sizeof d->bytes});
}

// Of two that request the same at once, the second finds the first one's batches.  Neither waits
// for the other until the connection counts as lost: one may be frozen.
static xpl_status_t insert_batches(struct xpl_pg_store *s, const struct xpl_job_request *r,
                                   const xpl_str_t *products, const xpl_str_t *files,
                                   const uint64_t *begins, struct xpl_error *err) {
    char begin[200];
    uint64_t key;
    memcpy(&key, r->digest.bytes, sizeof key);
    (void)snprintf(begin, sizeof begin,
                   "BEGIN; SET LOCAL lock_timeout='1s';"
                   "SET LOCAL idle_in_transaction_session_timeout='5s';"
                   "SELECT pg_advisory_xact_lock(%lld)",
                   (long long)(key >> 1));
    return xpl_pg_change_in_tx(
        s, begin,
        "INSERT INTO jobs(request, session, trace, products, variants, files, rank)"
        " SELECT $1,$2,$3,$4,$5,($6::text[])[b:e],i FROM unnest($7,$8) WITH ORDINALITY u(b,e,i)"
        " WHERE NOT EXISTS (SELECT FROM jobs WHERE request=$1 AND aside_at IS NULL)",
        XPL_PG_WITH(digest_arg(&r->digest), xpl_pg_text(r->session), xpl_pg_text(r->traceparent),
                    xpl_pg_array(XPL_PG_TEXT, products, r->n_products, sizeof *products),
                    XPL_PG_COLUMN(U32, r->products, r->n_products, variant),
                    xpl_pg_array(XPL_PG_TEXT, files, r->n_files, sizeof *files),
                    xpl_pg_array(XPL_PG_U64, begins, r->n_batches, sizeof *begins),
                    xpl_pg_array(XPL_PG_U64, r->ends, r->n_batches, sizeof *r->ends)),
        err);
}

static xpl_status_t enqueue(struct xpl_store *base, const struct xpl_job_request *r,
                            struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MAX_REQUEST);
    const xpl_str_t *const files = xpl_pg_write_files(&arena, r->files, r->n_files);
    xpl_str_t *const products = xpl_arena_array(&arena, r->n_products, sizeof *products);
    uint64_t *const begins = xpl_arena_array(&arena, r->n_batches, sizeof *begins);
    bool ok = files && products && begins;
    for (size_t i = 0; ok && i < r->n_products; i++)
        ok =
            xpl_pg_write_product(&arena, r->products[i].name, r->products[i].version, &products[i]);
    for (size_t i = 0; ok && i < r->n_batches; i++)
        begins[i] = i ? r->ends[i - 1] + 1 : 1;
    return ok ? insert_batches(xpl_pg_of(base), r, products, files, begins, err)
              : xpl_pg_fail(xpl_pg_of(base), XPL_PG_NOMEM, "", err);
}

// ---- what became of them ----

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

static xpl_status_t inspect(struct xpl_store *base, const struct xpl_job_digest *d,
                            struct xpl_arena *arena, struct xpl_job_progress *ret,
                            struct xpl_error *err) {
    struct inspection to = {arena, ret};
    return xpl_pg_read(xpl_pg_of(base),
                       "SELECT count(*) FILTER (WHERE aside_at IS NULL),"
                       " count(*) FILTER (WHERE cardinality(attempts)=0),"
                       " coalesce(string_agg(array_to_string(files,'/'),'/') FILTER (WHERE"
                       " cardinality(attempts)>0 AND NOT " XPL_PG_JOB_HELD "),'')"
                       " FROM jobs WHERE request=$1",
                       XPL_PG_WITH(digest_arg(d)), read_progress, &to, err);
}

static xpl_status_t find_aside(struct xpl_store *base, xpl_str_t session, struct xpl_arena *arena,
                               struct xpl_job_progress *ret, struct xpl_error *err) {
    struct inspection to = {arena, ret};
    return xpl_pg_read(xpl_pg_of(base),
                       "SELECT 0::bigint, 0::bigint,"
                       " coalesce(string_agg(array_to_string(files,'/'),'/'),'')"
                       " FROM jobs WHERE session=$1 AND aside_at IS NOT NULL",
                       XPL_PG_WITH(xpl_pg_text(session)), read_progress, &to, err);
}

static xpl_status_t withdraw(struct xpl_store *base, const struct xpl_job_digest *d,
                             struct xpl_error *err) {
    return xpl_pg_change(xpl_pg_of(base),
                         "DELETE FROM jobs WHERE request=$1 AND cardinality(attempts)=0",
                         XPL_PG_WITH(digest_arg(d)), err);
}

// ---- daemons ----

// Once a minute: reports are many.
static xpl_status_t sweep(struct xpl_pg_store *s, struct xpl_error *err) {
    const uint64_t now = xpl_clock_ns();
    if (now < atomic_load(&s->jobs_swept_at_ns)) return XPL_OK;
    atomic_store(&s->jobs_swept_at_ns, now + (uint64_t)SWEEP_S * 1000000000u);
    return xpl_pg_change(
        s,
        "WITH gone AS (DELETE FROM daemons WHERE id IN (SELECT id FROM daemons WHERE"
        " expires_at<clock_timestamp()-interval '1 hour' FOR UPDATE SKIP LOCKED))"
        " DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE"
        " aside_at<clock_timestamp()-$1::float8*interval '1 s' OR"
        " (queued_at<clock_timestamp()-interval '1 day' AND NOT " XPL_PG_JOB_HELD ")"
        " FOR UPDATE SKIP LOCKED)",
        XPL_PG_WITH(xpl_pg_i64(XPL_JOB_ASIDE_S)), err);
}

static xpl_status_t report(struct xpl_store *base, const struct xpl_job_daemon *d, uint64_t ms,
                           struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    if (d->n_threads && atomic_load(&s->is_pooled))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%s: a worker needs a connection without a pooler", s->name);
    XPL_TRY(xpl_pg_change(s,
                          "INSERT INTO daemons VALUES($1,$2,$3,$4,$5,clock_timestamp()+"
                          "$6::float8*interval '1 ms',$7) ON CONFLICT(id) DO UPDATE SET"
                          " n_jobs=$5, expires_at=excluded.expires_at",
                          XPL_PG_WITH(xpl_pg_owner(s), xpl_pg_text(d->name), xpl_pg_text(d->role),
                                      xpl_pg_text(d->version), xpl_pg_i64(d->n_jobs),
                                      xpl_pg_u64(ms), xpl_pg_i64(d->n_threads)),
                          err));
    return sweep(s, err);
}

#define STAT(member) XPL_PG_MEMBER(I64, struct xpl_job_stats, member)
#define LEASES(kind) STAT(leases[kind]), STAT(held[kind])
static const struct xpl_pg_member stat_members[] = {STAT(queued),
                                                    STAT(running),
                                                    STAT(set_aside),
                                                    STAT(workers),
                                                    STAT(peers),
                                                    STAT(threads),
                                                    STAT(oldest_ms),
                                                    STAT(schedules),
                                                    LEASES(XPL_JOB_LEASE_SCHEDULE),
                                                    LEASES(XPL_JOB_LEASE_CAPTURE),
                                                    LEASES(XPL_JOB_LEASE_SCANNER),
                                                    LEASES(XPL_JOB_LEASE_CATALOGUE)};
static const struct xpl_pg_shape stat_shape = XPL_PG_SHAPE(stat_members, struct xpl_job_stats);

// Of all, and of this daemon.
#define HELD(kind)                                                                                 \
    ", (SELECT count(*) FROM held WHERE kind='" kind "')"                                          \
    ", (SELECT count(*) FROM held WHERE kind='" kind "' AND owner=$1)"

static xpl_status_t get_stats(struct xpl_store *base, struct xpl_job_stats *ret,
                              struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    return xpl_pg_select(
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
        XPL_PG_WITH(xpl_pg_owner(s)), XPL_PG_INTO(&stat_shape, NULL, ret, NULL), err);
}

// ---- for people ----

#define MEMBER(type, member) XPL_PG_MEMBER(type, struct xpl_job_member, member)
static const struct xpl_pg_member member_members[] = {MEMBER(TEXT, id), MEMBER(TEXT, name),
                                                      MEMBER(TEXT, role), MEMBER(TEXT, version),
                                                      MEMBER(I64, expires_ms)};
static const struct xpl_pg_shape member_shape = XPL_PG_SHAPE(member_members, struct xpl_job_member);
#define WORK(type, member) XPL_PG_MEMBER(type, struct xpl_job_work, member)
static const struct xpl_pg_member work_members[] = {
    WORK(TEXT, owner),  WORK(TEXT, session),  WORK(TEXT, host),     WORK(I64, n_files),
    WORK(I64, attempt), WORK(I64, queued_ms), WORK(BOOL, set_aside)};
static const struct xpl_pg_shape work_shape = XPL_PG_SHAPE(work_members, struct xpl_job_work);
#define LEASE(type, member) XPL_PG_MEMBER(type, struct xpl_job_lease, member)
static const struct xpl_pg_member lease_members[] = {LEASE(TEXT, kind), LEASE(TEXT, name),
                                                     LEASE(TEXT, owner), LEASE(I64, expires_ms)};
static const struct xpl_pg_shape lease_shape = XPL_PG_SHAPE(lease_members, struct xpl_job_lease);

// A lease that is over has no owner, and of those only schedules' are of interest.
static xpl_status_t list(struct xpl_store *base, struct xpl_arena *arena, struct xpl_job_fleet *ret,
                         struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    const struct xpl_pg_args *const most = XPL_PG_WITH(xpl_pg_i64(XPL_JOB_MAX_LISTED));
    XPL_TRY(get_stats(base, &ret->stats, err));
    XPL_TRY(xpl_pg_select(
        s,
        "SELECT kind, name, CASE WHEN held THEN owner ELSE '' END, CASE WHEN held THEN"
        " (extract(epoch FROM expires_at-clock_timestamp())*1000)::bigint ELSE 0 END"
        " FROM (SELECT *, expires_at>clock_timestamp() AS held FROM " XPL_PG_LEASES " a) l"
        " WHERE held OR kind='schedule' ORDER BY kind, length(name), name LIMIT $1",
        most, XPL_PG_INTO(&lease_shape, arena, &ret->leases, &ret->n_leases), err));
    XPL_TRY(xpl_pg_select(s,
                          "SELECT id, name, role, version,"
                          " (extract(epoch FROM expires_at-clock_timestamp())*1000)::bigint"
                          " FROM daemons WHERE expires_at>clock_timestamp()"
                          " ORDER BY role, name, id LIMIT $1",
                          most, XPL_PG_INTO(&member_shape, arena, &ret->members, &ret->n_members),
                          err));
    return xpl_pg_select(s,
                         "SELECT owner, session, substring(files[1] FROM '^\\S+ \\S+ (.*)'),"
                         " cardinality(files)::bigint, cardinality(attempts)::bigint,"
                         " (extract(epoch FROM clock_timestamp()-queued_at)*1000)::bigint,"
                         " (aside_at IS NOT NULL)::int::bigint FROM jobs"
                         " WHERE aside_at IS NOT NULL OR " XPL_PG_JOB_HELD
                         " ORDER BY session, 3 LIMIT $1",
                         most, XPL_PG_INTO(&work_shape, arena, &ret->work, &ret->n_work), err);
}

const struct xpl_job_ops xpl_pg_jobs = {
    .enqueue = enqueue,
    .claim = xpl_pg_claim_job,
    .renew = xpl_pg_renew_jobs,
    .put = xpl_pg_put_jobs,
    .conclude = xpl_pg_conclude_job,
    .inspect = inspect,
    .find_aside = find_aside,
    .withdraw = withdraw,
    .report = report,
    .get_stats = get_stats,
    .list = list,
};
