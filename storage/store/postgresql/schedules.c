// SPDX-License-Identifier: Apache-2.0
// Schedules of all daemons: the leases on them, and the sessions that they made.
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_ARRAY = 16 << 20 };

// ---- leases ----

struct kept {
    struct xpl_arena *arena;
    struct xpl_kept_leases leases;
};

// Captures have fence 0.
static enum xpl_pg_rc read_kept(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct kept *const k = arg;
    struct xpl_kept_leases *const l = &k->leases;
    const size_t n = (size_t)c->pq->ntuples(r);
    l->captures = xpl_arena_array(k->arena, n + 1, sizeof *l->captures);
    l->schedules = xpl_arena_array(k->arena, n + 1, sizeof *l->schedules);
    if (!l->captures || !l->schedules) return XPL_PG_NOMEM;
    for (int i = 0; i < (int)n; i++) {
        const uint64_t id = (uint64_t)xpl_pg_get_i64(c, r, i, 0);
        const int64_t fence = xpl_pg_get_i64(c, r, i, 1);
        if (fence)
            l->schedules[l->n_schedules++] = (struct xpl_schedule_claim){id, fence};
        else
            l->captures[l->n_captures++] = id;
    }
    return XPL_PG_OK;
}

// Targets of what is not ours any more, or over, run out.
static const char renew_sql[] =
    "WITH e AS (SELECT clock_timestamp()+$2::float8*interval '1 ms' AS t),"
    " c AS (UPDATE captures SET expires_at=e.t FROM e WHERE owner=$1 AND state=1 AND"
    " expires_at>'-infinity' RETURNING id),"
    " s AS (UPDATE schedules SET expires_at=e.t FROM e WHERE owner=$1 RETURNING id, fence),"
    " x AS (UPDATE capture_targets SET expires_at=e.t FROM e WHERE owner=$1 AND"
    " (capture_id IN (SELECT id FROM captures WHERE owner=$1 AND state=1 AND"
    " expires_at>'-infinity') OR schedule_id IN (SELECT id FROM schedules WHERE owner=$1)))"
    " SELECT id, 0::bigint FROM c UNION ALL SELECT id, fence FROM s";

static xpl_status_t renew(struct xpl_store *base, uint64_t lease_ms, struct xpl_arena *arena,
                          struct xpl_kept_leases *ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct kept k = {.arena = arena};
    struct xpl_pg_args a = {0};
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, (int64_t)lease_ms);
    XPL_TRY(xpl_pg_job_query(s, renew_sql, &a, read_kept, &k, err));
    *ret = k.leases;
    return XPL_OK;
}

struct view {
    struct xpl_pg_rows rows;
    bool lost;
};

// Captures that are lost come as one row with the id 0.
static enum xpl_pg_rc read_states(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct view *const v = arg;
    struct xpl_schedule_state *l;
    enum xpl_pg_rc rc = xpl_pg_rows_begin(c, r, &v->rows, sizeof *l);
    const int n = (int)v->rows.n;
    l = v->rows.v;
    v->rows.n = 0;
    for (int i = 0; rc == XPL_PG_OK && i < n; i++) {
        const uint64_t id = (uint64_t)xpl_pg_get_i64(c, r, i, 0);
        v->lost = v->lost || !id;
        if (!id) continue;
        struct xpl_schedule_state *const one = &l[v->rows.n++];
        *one = (struct xpl_schedule_state){.claim = {id, xpl_pg_get_i64(c, r, i, 1)},
                                           .is_ours = xpl_pg_get_i64(c, r, i, 2) != 0,
                                           .is_free = xpl_pg_get_i64(c, r, i, 3) != 0,
                                           .is_wanted = xpl_pg_get_i64(c, r, i, 4) != 0};
        if (!xpl_pg_read_text(c, r, i, 5, v->rows.arena, &one->daemon)) rc = XPL_PG_NOMEM;
    }
    return rc;
}

static xpl_status_t inspect(struct xpl_store *base, struct xpl_arena *arena,
                            struct xpl_schedule_state **ret, size_t *ret_n, bool *ret_lost,
                            struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct view v = {.rows = {.arena = arena}};
    struct xpl_pg_args a = {0};
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    XPL_TRY(xpl_pg_job_query(
        s,
        "SELECT z.id, fence, (owner=$1)::int::bigint,"
        " (z.expires_at<clock_timestamp())::int::bigint,"
        " EXISTS(SELECT 1 FROM capture_targets t WHERE t.schedule_id=z.id AND"
        " wanted)::int::bigint, coalesce(d.name,'') FROM schedules z LEFT JOIN daemons d"
        " ON d.id=z.owner AND d.expires_at>clock_timestamp() UNION ALL SELECT 0,0,0,0,0,'' WHERE"
        " EXISTS(SELECT 1 FROM captures WHERE state=1 AND expires_at<clock_timestamp() AND"
        " owner<>$1) ORDER BY 1",
        &a, read_states, &v, err));
    *ret = v.rows.v;
    *ret_n = v.rows.n;
    *ret_lost = v.lost;
    return XPL_OK;
}

static enum xpl_pg_rc read_schedules(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct xpl_pg_rows *const to = arg;
    struct xpl_history_schedule *l;
    const enum xpl_pg_rc rc = xpl_pg_rows_begin(c, r, to, sizeof *l);
    if (rc != XPL_PG_OK) return rc;
    l = to->v;
    for (int i = 0; i < (int)to->n; i++) {
        const xpl_bytes_t request = xpl_pg_get_bytes(c, r, i, 1);
        uint8_t *const copy = xpl_arena_alloc(to->arena, request.len);
        if (!copy) return XPL_PG_NOMEM;
        if (request.len) memcpy(copy, request.ptr, request.len);
        l[i] =
            (struct xpl_history_schedule){.id = (uint64_t)xpl_pg_get_i64(c, r, i, 0),
                                          .request = {copy, request.len},
                                          .created_ms = xpl_pg_get_i64(c, r, i, 2),
                                          .next_ms = xpl_pg_get_i64(c, r, i, 3),
                                          .last_capture_id = (uint64_t)xpl_pg_get_i64(c, r, i, 4),
                                          .fence = xpl_pg_get_i64(c, r, i, 5),
                                          .done_ms = xpl_pg_get_i64(c, r, i, 6)};
    }
    return XPL_PG_OK;
}

// Turns and captures are at times of the database's clock.
static void use_our_clock(struct xpl_pg_store *s, const struct xpl_pg_rows *rows) {
    struct xpl_history_schedule *const l = rows->v;
    for (size_t i = 0; i < rows->n; i++) {
        l[i].next_ms = xpl_pg_our_ms(s, l[i].next_ms);
        l[i].done_ms = xpl_pg_our_ms(s, l[i].done_ms);
    }
}

#define COLUMNS                                                                                    \
    "s.id, request, created_ms, next_ms, last_capture_id, fence, coalesce((SELECT max(begin_ms)"   \
    " FROM captures c WHERE c.schedule_id=s.id AND state NOT IN (1,5,6)),0)"

static xpl_status_t claim(struct xpl_store *base, size_t max, uint64_t lease_ms,
                          struct xpl_arena *arena, struct xpl_history_schedule **ret, size_t *ret_n,
                          struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_rows to = {.arena = arena};
    struct xpl_pg_args a = {0};
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, (int64_t)lease_ms);
    xpl_pg_arg_i64(&a, (int64_t)max);
    XPL_TRY(xpl_pg_job_query(
        s,
        "WITH f AS (SELECT id FROM schedules WHERE expires_at<clock_timestamp()"
        " ORDER BY next_ms, id LIMIT $3 FOR UPDATE SKIP LOCKED),"
        " x AS (UPDATE captures SET expires_at='-infinity' WHERE state=1 AND"
        " schedule_id IN (SELECT id FROM f))"
        " UPDATE schedules s SET owner=$1, fence=fence+1,"
        " expires_at=clock_timestamp()+$2::float8*interval '1 ms' FROM f WHERE s.id=f.id"
        " RETURNING " COLUMNS,
        &a, read_schedules, &to, err));
    use_our_clock(s, &to);
    *ret = to.v;
    *ret_n = to.n;
    return XPL_OK;
}

static xpl_status_t give_back(struct xpl_store *base, const struct xpl_schedule_claim *c, size_t n,
                              struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf ids, fences;
    xpl_buf_init(&ids, MAX_ARRAY);
    xpl_buf_init(&fences, MAX_ARRAY);
    xpl_pg_array_begin(&ids, XPL_PG_INT8S, n);
    xpl_pg_array_begin(&fences, XPL_PG_INT8S, n);
    for (size_t i = 0; i < n; i++) {
        xpl_pg_array_i64(&ids, (int64_t)c[i].id);
        xpl_pg_array_i64(&fences, c[i].fence);
    }
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_array(&a, XPL_PG_INT8S, &ids);
    xpl_pg_arg_array(&a, XPL_PG_INT8S, &fences);
    return ids.failed || fences.failed
               ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
               : xpl_pg_job_query(s,
                                  "UPDATE schedules s SET owner='', expires_at='-infinity' FROM"
                                  " unnest($2,$3) u(i,f) WHERE s.id=u.i AND s.fence=u.f AND"
                                  " s.owner=$1",
                                  &a, NULL, NULL, err);
}

// ---- schedules ----

static xpl_status_t add_schedule(struct xpl_store *base, const struct xpl_history_schedule *one,
                                 uint64_t lease_ms, uint64_t *ret_id, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    int64_t id = 0;
    xpl_pg_arg_bytes(&a, one->request);
    xpl_pg_arg_i64(&a, one->created_ms);
    xpl_pg_arg_i64(&a, xpl_pg_shared_ms(s, one->next_ms));
    xpl_pg_arg_text(&a, lease_ms ? xpl_str_from(s->owner) : XPL_STR(""));
    xpl_pg_arg_i64(&a, (int64_t)lease_ms);
    XPL_TRY(xpl_pg_job_query(s,
                             "INSERT INTO schedules(request, created_ms, next_ms, last_capture_id,"
                             " owner, fence, expires_at) VALUES($1,$2,$3,0,$4,($5>0)::int,"
                             "CASE WHEN $5>0 THEN clock_timestamp()+$5::float8*interval '1 ms'"
                             " ELSE '-infinity' END) RETURNING id",
                             &a, xpl_pg_read_number, &id, err));
    *ret_id = (uint64_t)id;
    return XPL_OK;
}

static void put_session_args(struct xpl_pg_store *s, struct xpl_pg_args *a,
                             const struct xpl_history_session *one) {
    xpl_pg_arg_text(a, one->name); // session writers make these names
    xpl_pg_arg_i64(a, (int64_t)one->dev);
    xpl_pg_arg_i64(a, (int64_t)one->ino);
    xpl_pg_arg_i64(a, (int64_t)one->bytes);
    xpl_pg_arg_i64(a, xpl_pg_shared_ms(s, one->made_ms));
    xpl_pg_arg_i64(a, (int64_t)one->n_hosts);
}

static xpl_status_t add_session(struct xpl_store *base, uint64_t schedule_id,
                                const struct xpl_history_session *one, struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, (int64_t)schedule_id);
    put_session_args(xpl_pg_of(base), &a, one);
    return xpl_pg_job_query(xpl_pg_of(base),
                            "INSERT INTO schedule_sessions SELECT id,$2,$3,$4,$5,$6,$7 FROM"
                            " schedules WHERE id=$1 ON CONFLICT(schedule_id, name) DO UPDATE SET"
                            " dev=$3, ino=$4, bytes=$5, made_ms=$6, hosts=$7",
                            &a, NULL, NULL, err);
}

// Two daemons do not make equal ones in the same millisecond.
static xpl_status_t adopt_schedule(struct xpl_store *base, const struct xpl_history_schedule *one,
                                   const struct xpl_history_session *sessions, size_t n,
                                   struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    int64_t id = 0;
    uint64_t added = 0;
    xpl_pg_arg_bytes(&a, one->request);
    xpl_pg_arg_i64(&a, one->created_ms);
    XPL_TRY(xpl_pg_job_query(s, "SELECT id FROM schedules WHERE request=$1 AND created_ms=$2", &a,
                             xpl_pg_read_number, &id, err));
    if (!id) {
        XPL_TRY(add_schedule(base, one, 0, &added, err));
        id = (int64_t)added;
    }
    for (size_t i = 0; i < n; i++)
        XPL_TRY(add_session(base, (uint64_t)id, &sessions[i], err));
    return XPL_OK;
}

static xpl_status_t set_schedule(struct xpl_store *base, const struct xpl_history_schedule *one,
                                 struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    int64_t id = 0;
    xpl_pg_arg_i64(&a, (int64_t)one->id);
    xpl_pg_arg_i64(&a, xpl_pg_shared_ms(s, one->next_ms));
    xpl_pg_arg_i64(&a, (int64_t)one->last_capture_id);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, one->fence);
    XPL_TRY(xpl_pg_job_query(s,
                             "UPDATE schedules SET next_ms=$2, last_capture_id=$3 WHERE id=$1 AND"
                             " owner=$4 AND fence=$5 RETURNING id",
                             &a, xpl_pg_read_number, &id, err));
    if (!id) XPL_RETURN_ERROR(err, XPL_ABORTED, "the schedule is another daemon's by now");
    return XPL_OK;
}

static xpl_status_t delete_schedule(struct xpl_store *base, uint64_t id, struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, (int64_t)id);
    return xpl_pg_job_query(xpl_pg_of(base),
                            "WITH gone AS (DELETE FROM schedule_sessions WHERE schedule_id=$1)"
                            " DELETE FROM schedules WHERE id=$1",
                            &a, NULL, NULL, err);
}

static xpl_status_t schedules(struct xpl_store *base, struct xpl_arena *arena,
                              struct xpl_history_schedule **ret, size_t *ret_n,
                              struct xpl_error *err) {
    struct xpl_pg_rows to = {.arena = arena};
    struct xpl_pg_store *const s = xpl_pg_of(base);
    XPL_TRY(xpl_pg_job_query(s, "SELECT " COLUMNS " FROM schedules s ORDER BY s.id", NULL,
                             read_schedules, &to, err));
    use_our_clock(s, &to);
    *ret = to.v;
    *ret_n = to.n;
    return XPL_OK;
}

// ---- sessions that they made ----

static enum xpl_pg_rc read_sessions(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct xpl_pg_rows *const to = arg;
    struct xpl_history_session *l;
    const enum xpl_pg_rc rc = xpl_pg_rows_begin(c, r, to, sizeof *l);
    if (rc != XPL_PG_OK) return rc;
    l = to->v;
    for (int i = 0; i < (int)to->n; i++) {
        l[i] = (struct xpl_history_session){.dev = (uint64_t)xpl_pg_get_i64(c, r, i, 1),
                                            .ino = (uint64_t)xpl_pg_get_i64(c, r, i, 2),
                                            .bytes = (uint64_t)xpl_pg_get_i64(c, r, i, 3),
                                            .made_ms = xpl_pg_get_i64(c, r, i, 4),
                                            .n_hosts = (uint64_t)xpl_pg_get_i64(c, r, i, 5)};
        if (!xpl_pg_read_text(c, r, i, 0, to->arena, &l[i].name)) return XPL_PG_NOMEM;
    }
    return XPL_PG_OK;
}

static xpl_status_t sessions(struct xpl_store *base, uint64_t schedule_id, struct xpl_arena *arena,
                             struct xpl_history_session **ret, size_t *ret_n,
                             struct xpl_error *err) {
    struct xpl_pg_rows to = {.arena = arena};
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, (int64_t)schedule_id);
    XPL_TRY(xpl_pg_job_query(xpl_pg_of(base),
                             "SELECT name, dev, ino, bytes, made_ms, hosts FROM schedule_sessions"
                             " WHERE schedule_id=$1 ORDER BY made_ms, name COLLATE \"C\"",
                             &a, read_sessions, &to, err));
    struct xpl_history_session *const l = to.v;
    for (size_t i = 0; i < to.n; i++)
        l[i].made_ms = xpl_pg_our_ms(xpl_pg_of(base), l[i].made_ms);
    *ret = to.v;
    *ret_n = to.n;
    return XPL_OK;
}

static xpl_status_t forget_session(struct xpl_store *base, uint64_t schedule_id, xpl_str_t name,
                                   struct xpl_error *err) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, (int64_t)schedule_id);
    xpl_pg_arg_text(&a, name);
    return xpl_pg_job_query(xpl_pg_of(base),
                            "DELETE FROM schedule_sessions WHERE schedule_id=$1 AND name=$2", &a,
                            NULL, NULL, err);
}

const struct xpl_captures_ops xpl_pg_captures = {
    .begin = xpl_pg_begin_capture,
    .withdraw = xpl_pg_withdraw_capture,
    .note_session = xpl_pg_note_session,
    .put = xpl_pg_put_capture,
    .adopt = xpl_pg_adopt_capture,
    .list = xpl_pg_list_captures,
    .claim_targets = xpl_pg_take_targets,
    .release_targets = xpl_pg_release_targets,
    .reap = xpl_pg_reap_captures,
    .renew = renew,
    .inspect = inspect,
    .claim = claim,
    .give_back = give_back,
    .add_schedule = add_schedule,
    .adopt_schedule = adopt_schedule,
    .set_schedule = set_schedule,
    .delete_schedule = delete_schedule,
    .schedules = schedules,
    .add_session = add_session,
    .sessions = sessions,
    .forget_session = forget_session,
};
