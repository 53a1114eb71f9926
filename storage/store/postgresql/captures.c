// SPDX-License-Identifier: Apache-2.0
// Captures of all daemons: their beginning, their end, and what becomes of those whose daemon is
// gone.  Single statements on readers' connections, each of them a transaction.
#include "base/arena.h"
#include "base/buf.h"
#include "base/text/utf8.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_ARRAY = 64 << 20, MAX_TEXT = 64 << 10, PRUNE_EVERY = 64, REAP = 64 };

enum xpl_pg_rc xpl_pg_rows_begin(struct xpl_pg_conn *c, const PGresult *r, struct xpl_pg_rows *to,
                                 size_t size) {
    to->n = (size_t)c->pq->ntuples(r);
    to->v = xpl_arena_array(to->arena, to->n + 1, size);
    return to->v ? XPL_PG_OK : XPL_PG_NOMEM;
}

void xpl_pg_array_text(struct xpl_buf *b, xpl_str_t text) {
    struct xpl_buf clean = xpl_buf_of(MAX_TEXT);
    xpl_utf8_clean(&clean, text, MAX_TEXT);
    b->failed = b->failed || clean.failed;
    xpl_pg_array_bytes(b, (xpl_bytes_t){clean.p, clean.n});
    xpl_buf_fini(&clean);
}

enum xpl_pg_rc xpl_pg_read_number(struct xpl_pg_conn *c, const PGresult *r, void *ret) {
    if (c->pq->ntuples(r) > 0) *(int64_t *)ret = xpl_pg_get_i64(c, r, 0, 0);
    return XPL_PG_OK;
}

// ---- hosts as columns ----

enum { TARGET, HOST, STATE, CODE, REASON, BYTES, ATTEMPTS, N_COLUMNS };

static const enum xpl_pg_array column_types[N_COLUMNS] = {
    [TARGET] = XPL_PG_TEXTS,  [HOST] = XPL_PG_TEXTS,   [STATE] = XPL_PG_INT8S,
    [CODE] = XPL_PG_INT8S,    [REASON] = XPL_PG_TEXTS, [BYTES] = XPL_PG_INT8S,
    [ATTEMPTS] = XPL_PG_INT8S};

struct record { // of a capture, as parameters
    struct xpl_buf columns[N_COLUMNS], text;
    xpl_str_t session, message, made; // in `text`
    bool failed;
};

static xpl_str_t put_clean(struct xpl_buf *b, xpl_str_t text, size_t *ret_at) {
    *ret_at = b->n;
    xpl_utf8_clean(b, text, MAX_TEXT);
    return (xpl_str_t){NULL, b->n - *ret_at};
}

static void record_init(struct record *q, const struct xpl_history_capture *c) {
    size_t at[3];
    *q = (struct record){0};
    xpl_buf_init(&q->text, 4 * MAX_TEXT);
    q->session = put_clean(&q->text, c->session, &at[0]);
    q->message = put_clean(&q->text, c->message, &at[1]);
    q->made = put_clean(&q->text, c->made ? c->made->name : XPL_STR(""), &at[2]);
    q->failed = q->text.failed;
    if (!q->failed && q->text.p) { // it does not move any more
        q->session.ptr = (const char *)q->text.p + at[0];
        q->message.ptr = (const char *)q->text.p + at[1];
        q->made.ptr = (const char *)q->text.p + at[2];
    }
    for (int k = 0; k < N_COLUMNS; k++) {
        xpl_buf_init(&q->columns[k], MAX_ARRAY);
        xpl_pg_array_begin(&q->columns[k], column_types[k], c->n_hosts);
    }
    for (size_t i = 0; i < c->n_hosts; i++) {
        const struct xpl_history_host *const h = &c->hosts[i];
        xpl_pg_array_text(&q->columns[TARGET], h->target);
        xpl_pg_array_text(&q->columns[HOST], h->host);
        xpl_pg_array_i64(&q->columns[STATE], h->state);
        xpl_pg_array_i64(&q->columns[CODE], h->code);
        xpl_pg_array_text(&q->columns[REASON], h->reason);
        xpl_pg_array_i64(&q->columns[BYTES], (int64_t)h->bytes);
        xpl_pg_array_i64(&q->columns[ATTEMPTS], (int64_t)h->attempts);
    }
    for (int k = 0; k < N_COLUMNS; k++)
        q->failed = q->failed || q->columns[k].failed;
}

static void record_fini(struct record *q) {
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_buf_fini(&q->columns[k]);
    xpl_buf_fini(&q->text);
}

// $1 state, $2 session, $3 code, $4 message, $5 begin, $6 end, $7 duration, $8 schedule, $9 owner,
// $10 to $16 the hosts.
static void put_record(struct xpl_pg_store *s, const struct record *q,
                       const struct xpl_history_capture *c, struct xpl_pg_args *a) {
    xpl_pg_arg_i64(a, c->state);
    xpl_pg_arg_text(a, q->session);
    xpl_pg_arg_i64(a, c->code);
    xpl_pg_arg_text(a, q->message);
    xpl_pg_arg_i64(a, xpl_pg_shared_ms(s, c->begin_ms));
    xpl_pg_arg_i64(a, xpl_pg_shared_ms(s, c->end_ms));
    xpl_pg_arg_i64(a, (int64_t)c->duration_ms);
    xpl_pg_arg_i64(a, (int64_t)c->schedule_id);
    xpl_pg_arg_text(a, xpl_str_from(s->owner));
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_pg_arg_array(a, column_types[k], &q->columns[k]);
}

#define HOSTS_OF_C                                                                                 \
    " h AS (INSERT INTO capture_hosts(capture_id, seq, target, host, state, code, reason, bytes,"  \
    " attempts) SELECT c.id,i-1,t,n,s,e,r,b,a FROM c, unnest($10,$11,$12,$13,$14,$15,$16)"         \
    " WITH ORDINALITY u(t,n,s,e,r,b,a,i) ON CONFLICT(capture_id, seq) DO UPDATE SET"               \
    " target=excluded.target, host=excluded.host, state=excluded.state, code=excluded.code,"       \
    " reason=excluded.reason, bytes=excluded.bytes, attempts=excluded.attempts)"

// ---- beginning ----

// Now and then: the oldest go, but for those that still run.
static void prune(struct xpl_pg_store *s, uint64_t id) {
    struct xpl_pg_args a = {0};
    if (id % PRUNE_EVERY || id <= XPL_HISTORY_CAPTURES) return;
    xpl_pg_arg_i64(&a, (int64_t)(id - XPL_HISTORY_CAPTURES));
    // What fails is done by the next.
    if (xpl_pg_job_query(s,
                         "WITH gone AS (DELETE FROM captures WHERE id<=$1 AND state<>1"
                         " RETURNING id)"
                         " DELETE FROM capture_hosts WHERE capture_id IN (SELECT id FROM gone)",
                         &a, NULL, NULL, NULL) != XPL_OK)
        return;
}

xpl_status_t xpl_pg_begin_capture(struct xpl_store *base, const struct xpl_history_capture *c,
                                  const struct xpl_schedule_claim *claim, uint64_t lease_ms,
                                  uint64_t *ret_id, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    struct record q;
    int64_t id = 0;
    record_init(&q, c);
    put_record(s, &q, c, &a);
    xpl_pg_arg_i64(&a, claim ? claim->fence : 0);
    xpl_pg_arg_i64(&a, (int64_t)lease_ms);
    const xpl_status_t st =
        q.failed ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
                 : xpl_pg_job_query(
                       s,
                       "WITH s AS (SELECT id FROM schedules WHERE id=$8 AND owner=$9 AND fence=$17"
                       " AND expires_at>clock_timestamp() FOR UPDATE),"
                       " c AS (INSERT INTO captures(state, session, code, message, begin_ms,"
                       " end_ms, duration_ms, schedule_id, owner, expires_at)"
                       " SELECT $1,$2,$3,$4,$5,$6,$7,$8,$9,"
                       " clock_timestamp()+$18::float8*interval '1 ms'"
                       " WHERE $17=0 OR EXISTS (SELECT 1 FROM s) RETURNING id)," HOSTS_OF_C
                       " SELECT id FROM c",
                       &a, xpl_pg_read_number, &id, err);
    record_fini(&q);
    if (st != XPL_OK) return st;
    if (!id) XPL_RETURN_ERROR(err, XPL_ABORTED, "the schedule is another daemon's by now");
    *ret_id = (uint64_t)id;
    prune(s, *ret_id);
    return XPL_OK;
}

xpl_status_t xpl_pg_withdraw_capture(struct xpl_store *base, uint64_t capture_id,
                                     struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, (int64_t)capture_id);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    return xpl_pg_job_query(
        s,
        "WITH c AS (DELETE FROM captures WHERE id=$1 AND owner=$2 AND state=1 RETURNING id),"
        " t AS (DELETE FROM capture_targets WHERE capture_id IN (SELECT id FROM"
        " c)) DELETE FROM capture_hosts WHERE capture_id IN (SELECT id FROM c)",
        &a, NULL, NULL, err);
}

xpl_status_t xpl_pg_note_session(struct xpl_store *base, uint64_t capture_id, xpl_str_t session,
                                 uint64_t ino, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, (int64_t)capture_id);
    xpl_pg_arg_text(&a, session); // a session writer made the name
    xpl_pg_arg_i64(&a, (int64_t)ino);
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    return xpl_pg_job_query(
        s, "UPDATE captures SET session=$2, ino=$3 WHERE id=$1 AND owner=$4 AND state=1", &a, NULL,
        NULL, err);
}

// ---- the end ----

// What a statement that ends a capture says when that is not ours.
static xpl_status_t check_ended(xpl_status_t st, int64_t id, struct xpl_error *err) {
    if (st == XPL_OK && !id)
        XPL_RETURN_ERROR(err, XPL_ABORTED, "the lease was over: the capture is interrupted");
    return st;
}

xpl_status_t xpl_pg_put_capture(struct xpl_store *base, const struct xpl_history_capture *c,
                                bool records, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    const struct xpl_history_session none = {0}, *const m = c->made ? c->made : &none;
    struct xpl_pg_args a = {0};
    struct record q;
    int64_t id = 0;
    record_init(&q, c);
    put_record(s, &q, c, &a);
    xpl_pg_arg_i64(&a, (int64_t)c->id);
    xpl_pg_arg_i64(&a, records);
    xpl_pg_arg_text(&a, q.made);
    xpl_pg_arg_i64(&a, (int64_t)m->dev);
    xpl_pg_arg_i64(&a, (int64_t)m->ino);
    xpl_pg_arg_i64(&a, (int64_t)m->bytes);
    xpl_pg_arg_i64(&a, xpl_pg_shared_ms(s, m->made_ms));
    xpl_pg_arg_i64(&a, (int64_t)m->n_hosts);
    const xpl_status_t st =
        q.failed
            ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
            : xpl_pg_job_query(
                  s,
                  "WITH c AS (UPDATE captures SET state=$1, session=$2, code=$3, message=$4,"
                  " begin_ms=$5, end_ms=$6, duration_ms=$7, schedule_id=$8 WHERE id=$17 AND"
                  " owner=$9 AND state=1 AND expires_at>'-infinity' RETURNING id)," HOSTS_OF_C
                  ", m AS (INSERT INTO schedule_sessions SELECT z.id,$19,$20,$21,$22,$23,$24"
                  " FROM c, schedules z WHERE z.id=$8 AND $19<>'' ON CONFLICT(schedule_id, name)"
                  " DO UPDATE SET dev=excluded.dev, ino=excluded.ino, bytes=excluded.bytes,"
                  " made_ms=excluded.made_ms, hosts=excluded.hosts),"
                  " t AS (DELETE FROM capture_targets WHERE $18=0 AND capture_id IN"
                  " (SELECT id FROM c)),"
                  " k AS (UPDATE capture_targets SET capture_id=0 WHERE $18<>0 AND capture_id IN"
                  " (SELECT id FROM c)) SELECT id FROM c",
                  &a, xpl_pg_read_number, &id, err);
    record_fini(&q);
    return check_ended(st, id, err);
}

xpl_status_t xpl_pg_adopt_capture(struct xpl_store *base, const struct xpl_history_capture *c,
                                  struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    struct record q;
    record_init(&q, c);
    put_record(s, &q, c, &a);
    const xpl_status_t st =
        q.failed ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
                 : xpl_pg_job_query(
                       s,
                       "WITH c AS (INSERT INTO captures(state, session, code, message, begin_ms,"
                       " end_ms, duration_ms, schedule_id, owner, expires_at)"
                       " SELECT $1,$2,$3,$4,$5,$6,$7,$8,$9,'-infinity' WHERE NOT EXISTS (SELECT 1"
                       " FROM captures WHERE begin_ms=$5 AND end_ms=$6 AND session=$2 AND"
                       " message=$4 AND schedule_id=$8) RETURNING id)," HOSTS_OF_C " SELECT 1",
                       &a, NULL, NULL, err);
    record_fini(&q);
    return st;
}

static enum xpl_pg_rc read_lost(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct xpl_pg_rows *const to = arg;
    struct xpl_capture_lost *l;
    const enum xpl_pg_rc rc = xpl_pg_rows_begin(c, r, to, sizeof *l);
    if (rc != XPL_PG_OK) return rc;
    l = to->v;
    for (int i = 0; i < (int)to->n; i++) {
        l[i] = (struct xpl_capture_lost){.id = (uint64_t)xpl_pg_get_i64(c, r, i, 0),
                                         .schedule_id = (uint64_t)xpl_pg_get_i64(c, r, i, 1),
                                         .begin_ms = xpl_pg_get_i64(c, r, i, 2),
                                         .ino = (uint64_t)xpl_pg_get_i64(c, r, i, 4)};
        if (!xpl_pg_read_text(c, r, i, 3, to->arena, &l[i].session)) return XPL_PG_NOMEM;
    }
    return XPL_PG_OK;
}

xpl_status_t xpl_pg_reap_captures(struct xpl_store *base, struct xpl_arena *arena,
                                  struct xpl_capture_lost **ret, size_t *ret_n,
                                  struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_rows to = {.arena = arena};
    struct xpl_pg_args a = {0};
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, XPL_HISTORY_INTERRUPTED);
    xpl_pg_arg_i64(&a, XPL_HISTORY_HOST_FAILED);
    xpl_pg_arg_i64(&a, XPL_ABORTED);
    xpl_pg_arg_i64(&a, REAP);
    XPL_TRY(xpl_pg_job_query(
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
        &a, read_lost, &to, err));
    struct xpl_capture_lost *const lost = to.v;
    for (size_t i = 0; i < to.n; i++)
        lost[i].begin_ms = xpl_pg_our_ms(s, lost[i].begin_ms);
    *ret = to.v;
    *ret_n = to.n;
    return XPL_OK;
}

// ---- the list ----

static enum xpl_pg_rc read_captures(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct xpl_pg_rows *const to = arg;
    struct xpl_history_capture *l;
    const enum xpl_pg_rc rc = xpl_pg_rows_begin(c, r, to, sizeof *l);
    if (rc != XPL_PG_OK) return rc;
    l = to->v;
    for (int i = 0; i < (int)to->n; i++) {
        l[i] = (struct xpl_history_capture){.id = (uint64_t)xpl_pg_get_i64(c, r, i, 0),
                                            .state = (int)xpl_pg_get_i64(c, r, i, 1),
                                            .code = (int)xpl_pg_get_i64(c, r, i, 3),
                                            .begin_ms = xpl_pg_get_i64(c, r, i, 5),
                                            .end_ms = xpl_pg_get_i64(c, r, i, 6),
                                            .duration_ms = (uint64_t)xpl_pg_get_i64(c, r, i, 7),
                                            .schedule_id = (uint64_t)xpl_pg_get_i64(c, r, i, 8)};
        if (!xpl_pg_read_text(c, r, i, 2, to->arena, &l[i].session) ||
            !xpl_pg_read_text(c, r, i, 4, to->arena, &l[i].message))
            return XPL_PG_NOMEM;
    }
    return XPL_PG_OK;
}

static bool read_host(struct xpl_pg_conn *c, const PGresult *r, int row, struct xpl_arena *arena,
                      struct xpl_history_host *h) {
    *h = (struct xpl_history_host){.state = (int)xpl_pg_get_i64(c, r, row, 3),
                                   .code = (int)xpl_pg_get_i64(c, r, row, 4),
                                   .bytes = (uint64_t)xpl_pg_get_i64(c, r, row, 6),
                                   .attempts = (uint64_t)xpl_pg_get_i64(c, r, row, 7)};
    return xpl_pg_read_text(c, r, row, 1, arena, &h->target) &&
           xpl_pg_read_text(c, r, row, 2, arena, &h->host) &&
           xpl_pg_read_text(c, r, row, 5, arena, &h->reason);
}

// Hosts come in the order of the captures, which are there already.
static enum xpl_pg_rc read_hosts(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct xpl_pg_rows *const to = arg;
    struct xpl_history_capture *const captures = to->v;
    const size_t n = (size_t)c->pq->ntuples(r);
    struct xpl_history_host *const hosts = xpl_arena_array(to->arena, n + 1, sizeof *hosts);
    if (!hosts) return XPL_PG_NOMEM;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t id = (uint64_t)xpl_pg_get_i64(c, r, (int)i, 0);
        while (at < to->n && captures[at].id != id)
            at++;
        if (at == to->n) return XPL_PG_OTHER;
        if (!read_host(c, r, (int)i, to->arena, &hosts[i])) return XPL_PG_NOMEM;
        if (captures[at].n_hosts++ == 0) captures[at].hosts = &hosts[i];
    }
    return XPL_PG_OK;
}

xpl_status_t xpl_pg_list_captures(struct xpl_store *base, uint64_t before, size_t limit,
                                  struct xpl_arena *arena, struct xpl_history_capture **ret,
                                  size_t *ret_n, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_rows to = {.arena = arena};
    struct xpl_pg_args a = {0}, hosts = {0};
    struct xpl_buf ids;
    xpl_pg_arg_i64(&a, before && before < INT64_MAX ? (int64_t)before : INT64_MAX);
    xpl_pg_arg_i64(&a, limit < XPL_CAPTURES_MAX_LISTED ? (int64_t)limit : XPL_CAPTURES_MAX_LISTED);
    XPL_TRY(xpl_pg_job_query(s,
                             "SELECT id, state, session, code, message, begin_ms, end_ms,"
                             " duration_ms, schedule_id FROM captures WHERE id<$1"
                             " ORDER BY id DESC LIMIT $2",
                             &a, read_captures, &to, err));
    struct xpl_history_capture *const l = to.v;
    for (size_t i = 0; i < to.n; i++) {
        l[i].begin_ms = xpl_pg_our_ms(s, l[i].begin_ms);
        l[i].end_ms = xpl_pg_our_ms(s, l[i].end_ms);
    }
    *ret = to.v;
    *ret_n = to.n;
    if (!to.n) return XPL_OK;
    xpl_buf_init(&ids, MAX_ARRAY);
    xpl_pg_array_begin(&ids, XPL_PG_INT8S, to.n);
    for (size_t i = 0; i < to.n; i++)
        xpl_pg_array_i64(&ids, (int64_t)(*ret)[i].id);
    xpl_pg_arg_array(&hosts, XPL_PG_INT8S, &ids);
    const xpl_status_t st =
        ids.failed ? xpl_pg_fail(s, XPL_PG_NOMEM, "", err)
                   : xpl_pg_job_query(s,
                                      "SELECT capture_id, target, host, state, code, reason, bytes,"
                                      " attempts FROM capture_hosts WHERE capture_id=ANY($1)"
                                      " ORDER BY capture_id DESC, seq",
                                      &hosts, read_hosts, &to, err);
    xpl_buf_fini(&ids);
    return st;
}
