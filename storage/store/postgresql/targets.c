// SPDX-License-Identifier: Apache-2.0
// Targets: of all daemons one captures a program at a time.
#include "base/arena.h"
#include "base/buf.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_ARRAY = 8 << 20 };

struct holders {
    struct xpl_arena *arena;
    struct xpl_target_holder *ret;
    size_t n;
};

static enum xpl_pg_rc read_holders(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct holders *const h = arg;
    for (int i = 0; i < c->pq->ntuples(r); i++) {
        const int64_t at = xpl_pg_get_i64(c, r, i, 0);
        if (at < 1 || (uint64_t)at > h->n) return XPL_PG_OTHER;
        struct xpl_target_holder *const one = &h->ret[at - 1];
        *one = (struct xpl_target_holder){.capture_id = (uint64_t)xpl_pg_get_i64(c, r, i, 1),
                                          .schedule_id = (uint64_t)xpl_pg_get_i64(c, r, i, 2),
                                          .records = xpl_pg_get_i64(c, r, i, 3) != 0};
        if (!xpl_pg_read_text(c, r, i, 4, h->arena, &one->daemon)) return XPL_PG_NOMEM;
    }
    return XPL_PG_OK;
}

// In the order of their names, so that two who take the same wait for each other in one.  Of its
// own schedule a capture takes what that records.
static const char take_sql[] =
    "INSERT INTO capture_targets AS t SELECT k,$2,$3,$4<>0,false,$5,"
    " clock_timestamp()+$6::float8*interval '1 ms' FROM unnest($1) u(k) ORDER BY k"
    " ON CONFLICT(target) DO UPDATE SET capture_id=excluded.capture_id,"
    " schedule_id=excluded.schedule_id, records=excluded.records, wanted=false,"
    " owner=excluded.owner, expires_at=excluded.expires_at"
    " WHERE t.expires_at<clock_timestamp() OR t.capture_id=excluded.capture_id OR"
    " (t.schedule_id=excluded.schedule_id AND t.schedule_id<>0)";

// Who has the others.  Its schedule learns that somebody wants them, unless that is a schedule.
static const char holders_sql[] =
    "WITH w AS (UPDATE capture_targets SET wanted=true WHERE target=ANY($1) AND records AND"
    " NOT wanted AND $3=0 AND capture_id<>$2)"
    " SELECT i::bigint, t.capture_id, t.schedule_id, t.records::int::bigint, coalesce(d.name,'')"
    " FROM unnest($1) WITH ORDINALITY u(k,i) JOIN capture_targets t ON t.target=k"
    " LEFT JOIN daemons d ON d.id=t.owner WHERE t.capture_id<>$2";

static xpl_status_t take_and_ask(struct xpl_pg_store *s, const struct xpl_target_taker *who,
                                 const struct xpl_buf *targets, struct holders *to,
                                 struct xpl_error *err) {
    struct xpl_pg_args a = {0}, of_holders = {0};
    xpl_pg_arg_array(&a, XPL_PG_TEXTS, targets);
    xpl_pg_arg_i64(&a, (int64_t)who->capture_id);
    xpl_pg_arg_i64(&a, (int64_t)who->schedule_id);
    xpl_pg_arg_i64(&a, who->records);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, (int64_t)who->lease_ms);
    XPL_TRY(xpl_pg_job_query(s, take_sql, &a, NULL, NULL, err));
    xpl_pg_arg_array(&of_holders, XPL_PG_TEXTS, targets);
    xpl_pg_arg_i64(&of_holders, (int64_t)who->capture_id);
    xpl_pg_arg_i64(&of_holders, (int64_t)who->schedule_id);
    return xpl_pg_job_query(s, holders_sql, &of_holders, read_holders, to, err);
}

xpl_status_t xpl_pg_take_targets(struct xpl_store *base, const struct xpl_target_taker *who,
                                 const xpl_str_t *targets, size_t n, struct xpl_arena *arena,
                                 struct xpl_target_holder *ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct holders to = {arena, ret, n};
    struct xpl_buf names = xpl_buf_of(MAX_ARRAY);
    xpl_pg_array_begin(&names, XPL_PG_TEXTS, n);
    for (size_t i = 0; i < n; i++) {
        ret[i] = (struct xpl_target_holder){0};
        xpl_pg_array_text(&names, targets[i]);
    }
    const xpl_status_t st = names.failed ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
                                         : take_and_ask(s, who, &names, &to, err);
    xpl_buf_fini(&names);
    return st;
}

xpl_status_t xpl_pg_release_targets(struct xpl_store *base, uint64_t schedule_id,
                                    struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, (int64_t)schedule_id);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    return xpl_pg_job_query(s,
                            "DELETE FROM capture_targets WHERE schedule_id=$1 AND owner=$2 AND"
                            " capture_id=0",
                            &a, NULL, NULL, err);
}
