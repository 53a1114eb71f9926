// SPDX-License-Identifier: Apache-2.0
// Who is there, who works on what, and who has which lease, for people.
#include "base/arena.h"
#include "storage/store/postgresql/impl.h"

struct listing {
    struct xpl_arena *arena;
    struct xpl_job_fleet *ret;
};

static enum xpl_pg_rc read_members(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct listing *const l = arg;
    const size_t n = (size_t)c->pq->ntuples(r);
    struct xpl_job_member *const list = xpl_arena_array(l->arena, n + 1, sizeof *list);
    if (!list) return XPL_PG_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct xpl_job_member *const m = &list[i];
        if (!xpl_pg_read_text(c, r, (int)i, 0, l->arena, &m->id) ||
            !xpl_pg_read_text(c, r, (int)i, 1, l->arena, &m->name) ||
            !xpl_pg_read_text(c, r, (int)i, 2, l->arena, &m->role) ||
            !xpl_pg_read_text(c, r, (int)i, 3, l->arena, &m->version))
            return XPL_PG_NOMEM;
        m->expires_ms = xpl_pg_get_i64(c, r, (int)i, 4);
    }
    l->ret->members = list;
    l->ret->n_members = n;
    return XPL_PG_OK;
}

static enum xpl_pg_rc read_work(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct listing *const l = arg;
    const size_t n = (size_t)c->pq->ntuples(r);
    struct xpl_job_work *const list = xpl_arena_array(l->arena, n + 1, sizeof *list);
    if (!list) return XPL_PG_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct xpl_job_work *const w = &list[i];
        if (!xpl_pg_read_text(c, r, (int)i, 0, l->arena, &w->owner) ||
            !xpl_pg_read_text(c, r, (int)i, 1, l->arena, &w->session) ||
            !xpl_pg_read_text(c, r, (int)i, 2, l->arena, &w->host))
            return XPL_PG_NOMEM;
        w->n_files = xpl_pg_get_i64(c, r, (int)i, 3);
        w->attempt = xpl_pg_get_i64(c, r, (int)i, 4);
        w->queued_ms = xpl_pg_get_i64(c, r, (int)i, 5);
        w->set_aside = xpl_pg_get_i64(c, r, (int)i, 6) != 0;
    }
    l->ret->work = list;
    l->ret->n_work = n;
    return XPL_PG_OK;
}

static enum xpl_pg_rc read_leases(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct listing *const l = arg;
    const size_t n = (size_t)c->pq->ntuples(r);
    struct xpl_job_lease *const list = xpl_arena_array(l->arena, n + 1, sizeof *list);
    if (!list) return XPL_PG_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (!xpl_pg_read_text(c, r, (int)i, 0, l->arena, &list[i].kind) ||
            !xpl_pg_read_text(c, r, (int)i, 1, l->arena, &list[i].name) ||
            !xpl_pg_read_text(c, r, (int)i, 2, l->arena, &list[i].owner))
            return XPL_PG_NOMEM;
        list[i].expires_ms = xpl_pg_get_i64(c, r, (int)i, 3);
    }
    l->ret->leases = list;
    l->ret->n_leases = n;
    return XPL_PG_OK;
}

// A lease that is over has no owner, and of those only schedules' are of interest.
static xpl_status_t list_leases(struct xpl_pg_store *s, struct listing *l, struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, XPL_JOB_MAX_LISTED);
    return xpl_pg_job_query(
        s,
        "SELECT kind, name, CASE WHEN held THEN owner ELSE '' END, CASE WHEN held THEN"
        " (extract(epoch FROM expires_at-clock_timestamp())*1000)::bigint ELSE 0 END"
        " FROM (SELECT *, expires_at>clock_timestamp() AS held FROM " XPL_PG_LEASES " a) l"
        " WHERE held OR kind='schedule' ORDER BY kind, length(name), name LIMIT $1",
        &a, read_leases, l, err);
}

xpl_status_t xpl_pg_list_jobs(struct xpl_store *base, struct xpl_arena *arena,
                              struct xpl_job_fleet *ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct listing l = {arena, ret};
    struct xpl_pg_args members = {0}, work = {0};
    *ret = (struct xpl_job_fleet){0};
    XPL_TRY(xpl_pg_get_job_stats(base, &ret->stats, err));
    XPL_TRY(list_leases(s, &l, err));
    xpl_pg_arg_i64(&members, XPL_JOB_MAX_LISTED);
    XPL_TRY(xpl_pg_job_query(s,
                             "SELECT id, name, role, version,"
                             " (extract(epoch FROM expires_at-clock_timestamp())*1000)::bigint"
                             " FROM daemons WHERE expires_at>clock_timestamp()"
                             " ORDER BY role, name, id LIMIT $1",
                             &members, read_members, &l, err));
    xpl_pg_arg_i64(&work, XPL_JOB_MAX_LISTED);
    return xpl_pg_job_query(s,
                            "SELECT owner, session, substring(files[1] FROM '^\\S+ \\S+ (.*)'),"
                            " cardinality(files)::bigint, cardinality(attempts)::bigint,"
                            " (extract(epoch FROM clock_timestamp()-queued_at)*1000)::bigint,"
                            " (aside_at IS NOT NULL)::int::bigint FROM jobs"
                            " WHERE aside_at IS NOT NULL OR " XPL_PG_JOB_HELD
                            " ORDER BY session, 3 LIMIT $1",
                            &work, read_work, &l, err);
}
