// SPDX-License-Identifier: Apache-2.0
// Captures, targets and schedules of all daemons (../captures.h).  Single statements on readers'
// connections, each of them a transaction.
#include <string.h>

#include "base/arena.h"
#include "storage/store/postgresql/impl.h"

enum { PRUNE_EVERY = 64, REAP = 64 };

// ---- captures ----

#define HOST(type, member) XPL_PG_MEMBER(type, struct xpl_history_host, member)
static const struct xpl_pg_member host_members[] = {
    HOST(TEXT, target), HOST(TEXT, host), HOST(INT, state),   HOST(INT, code),
    HOST(TEXT, reason), HOST(I64, bytes), HOST(I64, attempts)};
static const struct xpl_pg_shape host_shape = XPL_PG_SHAPE(host_members, struct xpl_history_host);
#define HOST_COLUMNS "target, host, state, code, reason, bytes, attempts"

// $1 state, $2 session, $3 code, $4 message, $5 begin, $6 end, $7 duration, $8 schedule, $9 owner,
// $10 to $16 the hosts.  Returns how many there are.
static size_t put_record(struct xpl_pg_store *s, const struct xpl_history_capture *c,
                         struct xpl_pg_arg v[XPL_PG_ARGS]) {
    const struct xpl_pg_arg own[] = {xpl_pg_i64(c->state),
                                     xpl_pg_text(c->session),
                                     xpl_pg_i64(c->code),
                                     xpl_pg_text(c->message),
                                     xpl_pg_i64(xpl_pg_shared_ms(s, c->begin_ms)),
                                     xpl_pg_i64(xpl_pg_shared_ms(s, c->end_ms)),
                                     xpl_pg_u64(c->duration_ms),
                                     xpl_pg_u64(c->schedule_id),
                                     xpl_pg_owner(s)};
    size_t n = sizeof own / sizeof *own;
    memcpy(v, own, sizeof own);
    for (size_t k = 0; k < host_shape.n; k++)
        v[n++] = xpl_pg_array(host_members[k].type,
                              c->n_hosts ? (const char *)c->hosts + host_members[k].at : NULL,
                              c->n_hosts, sizeof *c->hosts);
    return n;
}

#define CAPTURE_COLUMNS                                                                            \
    "captures(state, session, code, message, begin_ms, end_ms, duration_ms, schedule_id, owner,"   \
    " expires_at)"
#define HOSTS_OF_C                                                                                 \
    " h AS (INSERT INTO capture_hosts(capture_id, seq, " HOST_COLUMNS ")"                          \
    " SELECT c.id,i-1,t,n,s,e,r,b,a FROM c, unnest($10,$11,$12,$13,$14,$15,$16)"                   \
    " WITH ORDINALITY u(t,n,s,e,r,b,a,i) ON CONFLICT(capture_id, seq) DO UPDATE SET"               \
    " target=excluded.target, host=excluded.host, state=excluded.state, code=excluded.code,"       \
    " reason=excluded.reason, bytes=excluded.bytes, attempts=excluded.attempts)"

// Now and then: the oldest go, but for those that still run.
static void prune(struct xpl_pg_store *s, uint64_t id) {
    if (id % PRUNE_EVERY || id <= XPL_HISTORY_CAPTURES) return;
    // A failure is made up for by the next call.
    (void)xpl_pg_change(s,
                        "WITH gone AS (DELETE FROM captures WHERE id<=$1 AND state<>1"
                        " RETURNING id)"
                        " DELETE FROM capture_hosts WHERE capture_id IN (SELECT id FROM gone)",
                        XPL_PG_WITH(xpl_pg_u64(id - XPL_HISTORY_CAPTURES)), NULL);
}

static xpl_status_t begin(struct xpl_store *base, const struct xpl_history_capture *c,
                          const struct xpl_schedule_claim *claim, uint64_t lease_ms,
                          uint64_t *ret_id, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_arg v[XPL_PG_ARGS];
    int64_t id = 0;
    size_t n = put_record(s, c, v);
    v[n++] = xpl_pg_i64(claim ? claim->fence : 0);
    v[n++] = xpl_pg_u64(lease_ms);
    XPL_TRY(xpl_pg_select_number(
        s,
        "WITH s AS (SELECT id FROM schedules WHERE id=$8 AND owner=$9 AND fence=$17"
        " AND expires_at>clock_timestamp() FOR UPDATE),"
        " c AS (INSERT INTO " CAPTURE_COLUMNS " SELECT $1,$2,$3,$4,$5,$6,$7,$8,$9,"
        " clock_timestamp()+$18::float8*interval '1 ms'"
        " WHERE $17=0 OR EXISTS (SELECT 1 FROM s) RETURNING id)," HOSTS_OF_C " SELECT id FROM c",
        &(const struct xpl_pg_args){v, n}, &id, err));
    if (!id) XPL_RETURN_ERROR(err, XPL_ABORTED, "the schedule is another daemon's by now");
    *ret_id = (uint64_t)id;
    prune(s, *ret_id);
    return XPL_OK;
}

static xpl_status_t withdraw(struct xpl_store *base, uint64_t capture_id, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    return xpl_pg_change(
        s,
        "WITH c AS (DELETE FROM captures WHERE id=$1 AND owner=$2 AND state=1 RETURNING id),"
        " t AS (DELETE FROM capture_targets WHERE capture_id IN (SELECT id FROM"
        " c)) DELETE FROM capture_hosts WHERE capture_id IN (SELECT id FROM c)",
        XPL_PG_WITH(xpl_pg_u64(capture_id), xpl_pg_owner(s)), err);
}

static xpl_status_t note_session(struct xpl_store *base, uint64_t capture_id, xpl_str_t session,
                                 uint64_t ino, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    return xpl_pg_change(
        s, "UPDATE captures SET session=$2, ino=$3 WHERE id=$1 AND owner=$4 AND state=1",
        XPL_PG_WITH(xpl_pg_u64(capture_id), xpl_pg_text(session), xpl_pg_i64((int64_t)ino),
                    xpl_pg_owner(s)),
        err);
}

// A session that a schedule made, as six parameters.  Returns how many there are.
static size_t put_session(struct xpl_pg_store *s, const struct xpl_history_session *one,
                          struct xpl_pg_arg *v) {
    const struct xpl_pg_arg all[] = {xpl_pg_text(one->name),
                                     xpl_pg_i64((int64_t)one->dev),
                                     xpl_pg_i64((int64_t)one->ino),
                                     xpl_pg_u64(one->bytes),
                                     xpl_pg_i64(xpl_pg_shared_ms(s, one->made_ms)),
                                     xpl_pg_u64(one->n_hosts)};
    memcpy(v, all, sizeof all);
    return sizeof all / sizeof *all;
}
#define REPLACE_SESSION                                                                            \
    " ON CONFLICT(schedule_id, name) DO UPDATE SET dev=excluded.dev, ino=excluded.ino,"            \
    " bytes=excluded.bytes, made_ms=excluded.made_ms, hosts=excluded.hosts"

static xpl_status_t put(struct xpl_store *base, const struct xpl_history_capture *c, bool records,
                        struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    const struct xpl_history_session none = {0};
    struct xpl_pg_arg v[XPL_PG_ARGS];
    int64_t id = 0;
    size_t n = put_record(s, c, v);
    v[n++] = xpl_pg_u64(c->id);
    v[n++] = xpl_pg_i64(records);
    n += put_session(s, c->made ? c->made : &none, v + n);
    XPL_TRY(xpl_pg_select_number(
        s,
        "WITH c AS (UPDATE captures SET state=$1, session=$2, code=$3, message=$4,"
        " begin_ms=$5, end_ms=$6, duration_ms=$7, schedule_id=$8 WHERE id=$17 AND"
        " owner=$9 AND state=1 AND expires_at>'-infinity' RETURNING id)," HOSTS_OF_C
        ", m AS (INSERT INTO schedule_sessions SELECT z.id,$19,$20,$21,$22,$23,$24"
        " FROM c, schedules z WHERE z.id=$8 AND $19<>''" REPLACE_SESSION "),"
        " t AS (DELETE FROM capture_targets WHERE $18=0 AND capture_id IN (SELECT id FROM c)),"
        " k AS (UPDATE capture_targets SET capture_id=0 WHERE $18<>0 AND capture_id IN"
        " (SELECT id FROM c)) SELECT id FROM c",
        &(const struct xpl_pg_args){v, n}, &id, err));
    if (!id) XPL_RETURN_ERROR(err, XPL_ABORTED, "the lease was over: the capture is interrupted");
    return XPL_OK;
}

static xpl_status_t adopt(struct xpl_store *base, const struct xpl_history_capture *c,
                          struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_arg v[XPL_PG_ARGS];
    const size_t n = put_record(s, c, v);
    return xpl_pg_change(s,
                         "WITH c AS (INSERT INTO " CAPTURE_COLUMNS
                         " SELECT $1,$2,$3,$4,$5,$6,$7,$8,$9,'-infinity' WHERE NOT EXISTS (SELECT 1"
                         " FROM captures WHERE begin_ms=$5 AND end_ms=$6 AND session=$2 AND"
                         " message=$4 AND schedule_id=$8) RETURNING id)," HOSTS_OF_C " SELECT 1",
                         &(const struct xpl_pg_args){v, n}, err);
}

#define LOST(type, member) XPL_PG_MEMBER(type, struct xpl_capture_lost, member)
static const struct xpl_pg_member lost_members[] = {
    LOST(I64, id), LOST(I64, schedule_id), LOST(MS, begin_ms), LOST(TEXT, session), LOST(I64, ino)};
static const struct xpl_pg_shape lost_shape = XPL_PG_SHAPE(lost_members, struct xpl_capture_lost);

static xpl_status_t reap(struct xpl_store *base, struct xpl_arena *arena,
                         struct xpl_capture_lost **ret, size_t *ret_n, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    return xpl_pg_select(
        s,
        "WITH l AS (SELECT id FROM captures WHERE state=1 AND expires_at<clock_timestamp() AND"
        " owner<>$1 LIMIT $5 FOR UPDATE SKIP LOCKED),"
        " c AS (UPDATE captures SET state=$2 WHERE id IN (SELECT id FROM l)"
        " RETURNING id, schedule_id, begin_ms, session, ino),"
        " h AS (UPDATE capture_hosts SET state=$3, code=$4, reason='its daemon ended, or was cut"
        " off, before the capture was over: capture again' WHERE capture_id IN"
        " (SELECT id FROM l)),"
        " t AS (DELETE FROM capture_targets WHERE expires_at<clock_timestamp() AND capture_id IN"
        " (SELECT id FROM l)) SELECT id, schedule_id, begin_ms, session, ino FROM c",
        XPL_PG_WITH(xpl_pg_owner(s), xpl_pg_i64(XPL_HISTORY_INTERRUPTED),
                    xpl_pg_i64(XPL_HISTORY_HOST_FAILED), xpl_pg_i64(XPL_ABORTED), xpl_pg_i64(REAP)),
        XPL_PG_INTO(&lost_shape, arena, ret, ret_n), err);
}

#define CAPTURE(type, member) XPL_PG_MEMBER(type, struct xpl_history_capture, member)
static const struct xpl_pg_member capture_members[] = {
    CAPTURE(I64, id),    CAPTURE(INT, state),       CAPTURE(TEXT, session),
    CAPTURE(INT, code),  CAPTURE(TEXT, message),    CAPTURE(MS, begin_ms),
    CAPTURE(MS, end_ms), CAPTURE(I64, duration_ms), CAPTURE(I64, schedule_id)};
static const struct xpl_pg_shape capture_shape =
    XPL_PG_SHAPE(capture_members, struct xpl_history_capture);

struct captures {
    struct xpl_pg_store *s;
    struct xpl_arena *arena;
    struct xpl_history_capture *list;
    size_t n;
};

// Hosts come in the order of the captures, which are there already.
static enum xpl_pg_rc read_hosts(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct captures *const to = arg;
    const int n = c->pq->ntuples(r);
    struct xpl_history_host *const hosts = xpl_arena_array(to->arena, (size_t)n + 1, sizeof *hosts);
    if (!hosts) return XPL_PG_NOMEM;
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t id = (uint64_t)xpl_pg_get_i64(c, r, i, 0);
        while (at < to->n && to->list[at].id != id)
            at++;
        if (at == to->n) return XPL_PG_OTHER;
        if (!xpl_pg_read_row(to->s, r, i, 1, &host_shape, to->arena, &hosts[i]))
            return XPL_PG_NOMEM;
        if (to->list[at].n_hosts++ == 0) to->list[at].hosts = &hosts[i];
    }
    return XPL_PG_OK;
}

static xpl_status_t list(struct xpl_store *base, uint64_t before, size_t limit,
                         struct xpl_arena *arena, struct xpl_history_capture **ret, size_t *ret_n,
                         struct xpl_error *err) {
    struct captures to = {.s = xpl_pg_of(base), .arena = arena};
    const uint64_t end = before && before < INT64_MAX ? before : INT64_MAX;
    const uint64_t most = limit < XPL_CAPTURES_MAX_LISTED ? limit : XPL_CAPTURES_MAX_LISTED;
    XPL_TRY(xpl_pg_select(to.s,
                          "SELECT id, state, session, code, message, begin_ms, end_ms,"
                          " duration_ms, schedule_id FROM captures WHERE id<$1"
                          " ORDER BY id DESC LIMIT $2",
                          XPL_PG_WITH(xpl_pg_u64(end), xpl_pg_u64(most)),
                          XPL_PG_INTO(&capture_shape, arena, &to.list, &to.n), err));
    *ret = to.list;
    *ret_n = to.n;
    if (!to.n) return XPL_OK;
    return xpl_pg_read(to.s,
                       "SELECT capture_id, " HOST_COLUMNS " FROM capture_hosts"
                       " WHERE capture_id=ANY($1) ORDER BY capture_id DESC, seq",
                       XPL_PG_WITH(XPL_PG_COLUMN(I64, to.list, to.n, id)), read_hosts, &to, err);
}

// ---- targets: of all daemons one captures a program at a time ----

struct holder { // of a target
    int64_t at; // from 1
    struct xpl_target_holder is;
};
#define HOLDER(type, member) XPL_PG_MEMBER(type, struct holder, member)
static const struct xpl_pg_member holder_members[] = {
    HOLDER(I64, at), HOLDER(I64, is.capture_id), HOLDER(I64, is.schedule_id),
    HOLDER(BOOL, is.records), HOLDER(TEXT, is.daemon)};
static const struct xpl_pg_shape holder_shape = XPL_PG_SHAPE(holder_members, struct holder);

// In the order of their names, so that two daemons wait for each other in one order.  Of its
// own schedule a capture takes what that records.
static const char take_sql[] =
    "INSERT INTO capture_targets AS t SELECT k,$2,$3,$4<>0,false,$5,"
    " clock_timestamp()+$6::float8*interval '1 ms' FROM unnest($1) u(k) ORDER BY k"
    " ON CONFLICT(target) DO UPDATE SET capture_id=excluded.capture_id,"
    " schedule_id=excluded.schedule_id, records=excluded.records, wanted=false,"
    " owner=excluded.owner, expires_at=excluded.expires_at"
    " WHERE t.expires_at<clock_timestamp() OR t.capture_id=excluded.capture_id OR"
    " (t.schedule_id=excluded.schedule_id AND t.schedule_id<>0)";

// The owners of targets that others have.  A target that a schedule records is marked as wanted,
// unless another schedule wants it.
static const char holders_sql[] =
    "WITH w AS (UPDATE capture_targets SET wanted=true WHERE target=ANY($1) AND records AND"
    " NOT wanted AND $3=0 AND capture_id<>$2)"
    " SELECT i::bigint, t.capture_id, t.schedule_id, t.records::int::bigint, coalesce(d.name,'')"
    " FROM unnest($1) WITH ORDINALITY u(k,i) JOIN capture_targets t ON t.target=k"
    " LEFT JOIN daemons d ON d.id=t.owner WHERE t.capture_id<>$2";

static xpl_status_t claim_targets(struct xpl_store *base, const struct xpl_target_taker *who,
                                  const xpl_str_t *targets, size_t n, struct xpl_arena *arena,
                                  struct xpl_target_holder *ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    const struct xpl_pg_arg names = xpl_pg_array(XPL_PG_TEXT, targets, n, sizeof *targets),
                            capture = xpl_pg_u64(who->capture_id),
                            schedule = xpl_pg_u64(who->schedule_id);
    struct holder *others;
    size_t n_others;
    memset(ret, 0, n * sizeof *ret);
    XPL_TRY(xpl_pg_change(s, take_sql,
                          XPL_PG_WITH(names, capture, schedule, xpl_pg_i64(who->records),
                                      xpl_pg_owner(s), xpl_pg_u64(who->lease_ms)),
                          err));
    XPL_TRY(xpl_pg_select(s, holders_sql, XPL_PG_WITH(names, capture, schedule),
                          XPL_PG_INTO(&holder_shape, arena, &others, &n_others), err));
    for (size_t i = 0; i < n_others; i++)
        if (others[i].at >= 1 && (uint64_t)others[i].at <= n) ret[others[i].at - 1] = others[i].is;
    return XPL_OK;
}

static xpl_status_t release_targets(struct xpl_store *base, uint64_t schedule_id,
                                    struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    return xpl_pg_change(s,
                         "DELETE FROM capture_targets WHERE schedule_id=$1 AND owner=$2 AND"
                         " capture_id=0",
                         XPL_PG_WITH(xpl_pg_u64(schedule_id), xpl_pg_owner(s)), err);
}

// ---- leases ----

static const struct xpl_pg_member claim_members[] = {
    XPL_PG_MEMBER(I64, struct xpl_schedule_claim, id),
    XPL_PG_MEMBER(I64, struct xpl_schedule_claim, fence)};
static const struct xpl_pg_shape claim_shape =
    XPL_PG_SHAPE(claim_members, struct xpl_schedule_claim);

// Targets of what is not ours any more, or over, run out.  Captures have fence 0.
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
    struct xpl_schedule_claim *all;
    size_t n;
    XPL_TRY(xpl_pg_select(s, renew_sql, XPL_PG_WITH(xpl_pg_owner(s), xpl_pg_u64(lease_ms)),
                          XPL_PG_INTO(&claim_shape, arena, &all, &n), err));
    *ret = (struct xpl_kept_leases){.captures = xpl_arena_array(arena, n, sizeof *ret->captures),
                                    .schedules = all};
    if (!ret->captures) XPL_RETURN_OOM(err, "leases");
    for (size_t i = 0; i < n; i++)
        if (all[i].fence)
            ret->schedules[ret->n_schedules++] = all[i];
        else
            ret->captures[ret->n_captures++] = all[i].id;
    return XPL_OK;
}

#define STATE(type, member) XPL_PG_MEMBER(type, struct xpl_schedule_state, member)
static const struct xpl_pg_member state_members[] = {
    STATE(I64, claim.id), STATE(I64, claim.fence), STATE(BOOL, is_ours),
    STATE(BOOL, is_free), STATE(BOOL, is_wanted),  STATE(TEXT, daemon)};
static const struct xpl_pg_shape state_shape =
    XPL_PG_SHAPE(state_members, struct xpl_schedule_state);

// Captures that are lost come first, as one row with the id 0.
static xpl_status_t inspect(struct xpl_store *base, struct xpl_arena *arena,
                            struct xpl_schedule_state **ret, size_t *ret_n, bool *ret_lost,
                            struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    XPL_TRY(xpl_pg_select(
        s,
        "SELECT z.id, fence, (owner=$1)::int::bigint,"
        " (z.expires_at<clock_timestamp())::int::bigint,"
        " EXISTS(SELECT 1 FROM capture_targets t WHERE t.schedule_id=z.id AND"
        " wanted)::int::bigint, coalesce(d.name,'') FROM schedules z LEFT JOIN daemons d"
        " ON d.id=z.owner AND d.expires_at>clock_timestamp() UNION ALL SELECT 0,0,0,0,0,'' WHERE"
        " EXISTS(SELECT 1 FROM captures WHERE state=1 AND expires_at<clock_timestamp() AND"
        " owner<>$1) ORDER BY 1",
        XPL_PG_WITH(xpl_pg_owner(s)), XPL_PG_INTO(&state_shape, arena, ret, ret_n), err));
    *ret_lost = *ret_n && !(*ret)[0].claim.id;
    *ret += *ret_lost;
    *ret_n -= *ret_lost;
    return XPL_OK;
}

#define SCHEDULE(type, member) XPL_PG_MEMBER(type, struct xpl_history_schedule, member)
static const struct xpl_pg_member schedule_members[] = {
    SCHEDULE(I64, id),     SCHEDULE(BYTES, request),       SCHEDULE(I64, created_ms),
    SCHEDULE(MS, next_ms), SCHEDULE(I64, last_capture_id), SCHEDULE(I64, fence),
    SCHEDULE(MS, done_ms)};
static const struct xpl_pg_shape schedule_shape =
    XPL_PG_SHAPE(schedule_members, struct xpl_history_schedule);
#define SCHEDULE_COLUMNS                                                                           \
    "s.id, request, created_ms, next_ms, last_capture_id, fence, coalesce((SELECT max(begin_ms)"   \
    " FROM captures c WHERE c.schedule_id=s.id AND state NOT IN (1,5,6)),0)"

static xpl_status_t claim(struct xpl_store *base, size_t max, uint64_t lease_ms,
                          struct xpl_arena *arena, struct xpl_history_schedule **ret, size_t *ret_n,
                          struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    return xpl_pg_select(
        s,
        "WITH f AS (SELECT id FROM schedules WHERE expires_at<clock_timestamp()"
        " ORDER BY next_ms, id LIMIT $3 FOR UPDATE SKIP LOCKED),"
        " x AS (UPDATE captures SET expires_at='-infinity' WHERE state=1 AND"
        " schedule_id IN (SELECT id FROM f))"
        " UPDATE schedules s SET owner=$1, fence=fence+1,"
        " expires_at=clock_timestamp()+$2::float8*interval '1 ms' FROM f WHERE s.id=f.id"
        " RETURNING " SCHEDULE_COLUMNS,
        XPL_PG_WITH(xpl_pg_owner(s), xpl_pg_u64(lease_ms), xpl_pg_u64(max)),
        XPL_PG_INTO(&schedule_shape, arena, ret, ret_n), err);
}

static xpl_status_t give_back(struct xpl_store *base, const struct xpl_schedule_claim *c, size_t n,
                              struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    return xpl_pg_change(
        s,
        "UPDATE schedules s SET owner='', expires_at='-infinity' FROM"
        " unnest($2,$3) u(i,f) WHERE s.id=u.i AND s.fence=u.f AND s.owner=$1",
        XPL_PG_WITH(xpl_pg_owner(s), XPL_PG_COLUMN(I64, c, n, id), XPL_PG_COLUMN(I64, c, n, fence)),
        err);
}

// ---- schedules ----

static xpl_status_t add_schedule(struct xpl_store *base, const struct xpl_history_schedule *one,
                                 uint64_t lease_ms, uint64_t *ret_id, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    int64_t id = 0;
    XPL_TRY(xpl_pg_select_number(
        s,
        "INSERT INTO schedules(request, created_ms, next_ms, last_capture_id, owner, fence,"
        " expires_at) VALUES($1,$2,$3,0,$4,($5>0)::int,CASE WHEN $5>0 THEN"
        " clock_timestamp()+$5::float8*interval '1 ms' ELSE '-infinity' END) RETURNING id",
        XPL_PG_WITH(xpl_pg_bytes(one->request), xpl_pg_i64(one->created_ms),
                    xpl_pg_i64(xpl_pg_shared_ms(s, one->next_ms)),
                    lease_ms ? xpl_pg_owner(s) : xpl_pg_text(XPL_STR("")), xpl_pg_u64(lease_ms)),
        &id, err));
    *ret_id = (uint64_t)id;
    return XPL_OK;
}

static xpl_status_t add_session(struct xpl_store *base, uint64_t schedule_id,
                                const struct xpl_history_session *one, struct xpl_error *err) {
    struct xpl_pg_arg v[XPL_PG_ARGS] = {xpl_pg_u64(schedule_id)};
    const size_t n = 1 + put_session(xpl_pg_of(base), one, v + 1);
    return xpl_pg_change(xpl_pg_of(base),
                         "INSERT INTO schedule_sessions SELECT id,$2,$3,$4,$5,$6,$7 FROM"
                         " schedules WHERE id=$1" REPLACE_SESSION,
                         &(const struct xpl_pg_args){v, n}, err);
}

// Two daemons do not make equal ones in the same millisecond.
static xpl_status_t adopt_schedule(struct xpl_store *base, const struct xpl_history_schedule *one,
                                   const struct xpl_history_session *sessions, size_t n,
                                   struct xpl_error *err) {
    int64_t found = 0;
    XPL_TRY(xpl_pg_select_number(
        xpl_pg_of(base), "SELECT id FROM schedules WHERE request=$1 AND created_ms=$2",
        XPL_PG_WITH(xpl_pg_bytes(one->request), xpl_pg_i64(one->created_ms)), &found, err));
    uint64_t id = (uint64_t)found;
    if (!id) XPL_TRY(add_schedule(base, one, 0, &id, err));
    for (size_t i = 0; i < n; i++)
        XPL_TRY(add_session(base, id, &sessions[i], err));
    return XPL_OK;
}

static xpl_status_t set_schedule(struct xpl_store *base, const struct xpl_history_schedule *one,
                                 struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    int64_t id = 0;
    XPL_TRY(xpl_pg_select_number(
        s,
        "UPDATE schedules SET next_ms=$2, last_capture_id=$3 WHERE id=$1 AND owner=$4 AND fence=$5"
        " RETURNING id",
        XPL_PG_WITH(xpl_pg_u64(one->id), xpl_pg_i64(xpl_pg_shared_ms(s, one->next_ms)),
                    xpl_pg_u64(one->last_capture_id), xpl_pg_owner(s), xpl_pg_i64(one->fence)),
        &id, err));
    if (!id) XPL_RETURN_ERROR(err, XPL_ABORTED, "the schedule is another daemon's by now");
    return XPL_OK;
}

static xpl_status_t delete_schedule(struct xpl_store *base, uint64_t id, struct xpl_error *err) {
    return xpl_pg_change(xpl_pg_of(base),
                         "WITH gone AS (DELETE FROM schedule_sessions WHERE schedule_id=$1)"
                         " DELETE FROM schedules WHERE id=$1",
                         XPL_PG_WITH(xpl_pg_u64(id)), err);
}

static xpl_status_t schedules(struct xpl_store *base, struct xpl_arena *arena,
                              struct xpl_history_schedule **ret, size_t *ret_n,
                              struct xpl_error *err) {
    return xpl_pg_select(xpl_pg_of(base),
                         "SELECT " SCHEDULE_COLUMNS " FROM schedules s ORDER BY s.id", NULL,
                         XPL_PG_INTO(&schedule_shape, arena, ret, ret_n), err);
}

#define SESSION(type, member) XPL_PG_MEMBER(type, struct xpl_history_session, member)
static const struct xpl_pg_member session_members[] = {SESSION(TEXT, name),  SESSION(I64, dev),
                                                       SESSION(I64, ino),    SESSION(I64, bytes),
                                                       SESSION(MS, made_ms), SESSION(I64, n_hosts)};
static const struct xpl_pg_shape session_shape =
    XPL_PG_SHAPE(session_members, struct xpl_history_session);

static xpl_status_t sessions(struct xpl_store *base, uint64_t schedule_id, struct xpl_arena *arena,
                             struct xpl_history_session **ret, size_t *ret_n,
                             struct xpl_error *err) {
    return xpl_pg_select(xpl_pg_of(base),
                         "SELECT name, dev, ino, bytes, made_ms, hosts FROM schedule_sessions"
                         " WHERE schedule_id=$1 ORDER BY made_ms, name COLLATE \"C\"",
                         XPL_PG_WITH(xpl_pg_u64(schedule_id)),
                         XPL_PG_INTO(&session_shape, arena, ret, ret_n), err);
}

static xpl_status_t forget_session(struct xpl_store *base, uint64_t schedule_id, xpl_str_t name,
                                   struct xpl_error *err) {
    return xpl_pg_change(xpl_pg_of(base),
                         "DELETE FROM schedule_sessions WHERE schedule_id=$1 AND name=$2",
                         XPL_PG_WITH(xpl_pg_u64(schedule_id), xpl_pg_text(name)), err);
}

const struct xpl_captures_ops xpl_pg_captures = {
    .begin = begin,
    .withdraw = withdraw,
    .note_session = note_session,
    .put = put,
    .adopt = adopt,
    .list = list,
    .claim_targets = claim_targets,
    .release_targets = release_targets,
    .reap = reap,
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
