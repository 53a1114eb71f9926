// SPDX-License-Identifier: Apache-2.0
#include "storage/store/postgresql/conn.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/text/utf8.h"

enum { MAX_ARGS_BYTES = 256 << 20, MAX_TEXT = 64 << 10, MAX_NAME = 4096, ID_BYTES = 16 };

// ---- waiting ----

static enum xpl_pg_rc fail(struct xpl_pg_conn *c, enum xpl_pg_rc rc, const char *why) {
    (void)snprintf(c->why, sizeof c->why, "%s", why);
    for (char *p = c->why; *p; p++)
        if (*p == '\n') *p = p[1] ? ' ' : 0;
    return rc;
}

static enum xpl_pg_rc lost(struct xpl_pg_conn *c) {
    const char *const why = c->pq->errorMessage(c->c);
    return fail(c, XPL_PG_AWAY, why && why[0] ? why : "the connection is lost");
}

static enum xpl_pg_rc wait_for(struct xpl_pg_conn *c, short events) {
    for (;;) {
        const uint64_t now = xpl_clock_ns();
        if (now >= c->until_ns) return fail(c, XPL_PG_AWAY, "no answer in time");
        struct pollfd p[2] = {{.fd = c->pq->socket(c->c), .events = events},
                              {.fd = c->wake_fd, .events = POLLIN}};
        const int n = poll(p, 2, (int)((c->until_ns - now) / 1000000u) + 1);
        if (n < 0 && errno != EINTR) return fail(c, XPL_PG_AWAY, "poll failed");
        if (n > 0 && p[1].revents) return fail(c, XPL_PG_AWAY, "the store is being closed");
        if (n > 0) return XPL_PG_OK;
    }
}

static void start_clock(struct xpl_pg_conn *c) {
    c->why[0] = 0; // what fails here may have nothing to say
    c->until_ns = xpl_clock_ns() + (uint64_t)c->timeout_ms * 1000000u;
}

static void start_statement(struct xpl_pg_conn *c) {
    if (c->n_statements) atomic_fetch_add(c->n_statements, 1);
    start_clock(c);
}

// Sends what libpq has buffered.  The server may have to be read meanwhile, or both would wait.
static enum xpl_pg_rc flush(struct xpl_pg_conn *c) {
    int n;
    while ((n = c->pq->flush(c->c)) > 0) {
        const enum xpl_pg_rc rc = wait_for(c, POLLIN | POLLOUT);
        if (rc != XPL_PG_OK) return rc;
        if (!c->pq->consumeInput(c->c)) return lost(c);
    }
    return n < 0 ? lost(c) : XPL_PG_OK;
}

// The next result, NULL after the last.
static enum xpl_pg_rc next_result(struct xpl_pg_conn *c, PGresult **ret) {
    enum xpl_pg_rc rc = flush(c);
    while (rc == XPL_PG_OK && c->pq->isBusy(c->c)) {
        rc = wait_for(c, POLLIN);
        if (rc == XPL_PG_OK && !c->pq->consumeInput(c->c)) rc = lost(c);
    }
    *ret = rc == XPL_PG_OK ? c->pq->getResult(c->c) : NULL;
    return rc;
}

// ---- what failures mean ----

// By SQLSTATE, the longest prefix first.
static const struct {
    const char *state;
    enum xpl_pg_rc rc;
} meanings[] = {
    {"57014", XPL_PG_BUSY},   {"55P03", XPL_PG_BUSY},   {"57P", XPL_PG_AWAY},
    {"08", XPL_PG_AWAY},      {"25P03", XPL_PG_AWAY},   {"40", XPL_PG_BUSY},
    {"53", XPL_PG_FULL},      {"54", XPL_PG_FULL},      {"25006", XPL_PG_READONLY},
    {"XX001", XPL_PG_DAMAGE}, {"XX002", XPL_PG_DAMAGE}, {"42501", XPL_PG_DENIED},
    {"28", XPL_PG_DENIED},    {"3D000", XPL_PG_DENIED}, {"42P07", XPL_PG_TAKEN},
    {"23505", XPL_PG_TAKEN},  {"42710", XPL_PG_TAKEN},  {"42P01", XPL_PG_SCHEMA},
    {"42703", XPL_PG_SCHEMA}, {"3F000", XPL_PG_SCHEMA}, {"42804", XPL_PG_SCHEMA},
    {"42P10", XPL_PG_SCHEMA}, {"23514", XPL_PG_SCHEMA},
};

static enum xpl_pg_rc rc_of(const char *state) {
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strncmp(state, meanings[i].state, strlen(meanings[i].state)) == 0)
            return meanings[i].rc;
    return XPL_PG_OTHER;
}

// ---- connecting ----

static void ignore_notices(void *arg, const char *message) {
    (void)arg;
    (void)message;
}

// A server's text may repeat what it was told.
static void hide(char *text, const char *secret) {
    const size_t n = secret ? strlen(secret) : 0;
    for (char *p = n ? strstr(text, secret) : NULL; p; p = strstr(p + n, secret))
        memset(p, '*', n);
}

// libpq tells the SQLSTATE of a refused connection in its text alone, when that is verbose:
// "... FATAL:  53300: too many connections for role "x"\nLOCATION: ...".
static const char *find_state(const char *text) {
    enum { LEN = 5 };
    while ((text = strstr(text, ":  "))) {
        text += 3;
        if (strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == LEN && text[LEN] == ':')
            return text;
    }
    return NULL;
}

// PgBouncer has one state for all that it refuses (08P01), and its texts tell what: that its server
// is away, or one of its limits of clients (max_client_conn, max_db_client_connections,
// max_user_client_connections).
static bool is_limit_of_pooler(const char *state, const char *text) {
    static const char *const texts[] = {"no more connections allowed",
                                        "client connections exceeded"};
    bool is = false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        is |= strncmp(text, texts[i], strlen(texts[i])) == 0;
    return is && strncmp(state, "08P01", strlen("08P01")) == 0;
}

// Nobody answered, or the server did and said why not.
static enum xpl_pg_rc refused(struct xpl_pg_conn *c) {
    const char *const all = c->pq->errorMessage(c->c), *const state = all ? find_state(all) : NULL;
    if (!state) return lost(c);
    const char *const text = state + strlen("53300: ");
    (void)snprintf(c->why, sizeof c->why, "%.*s", (int)strcspn(text, "\n"), text);
    return is_limit_of_pooler(state, text) ? XPL_PG_FULL : rc_of(state);
}

static enum xpl_pg_rc poll_connect(struct xpl_pg_conn *c) {
    for (;;) {
        const PostgresPollingStatusType st = c->pq->connectPoll(c->c);
        if (st == PGRES_POLLING_OK) return XPL_PG_OK;
        if (st == PGRES_POLLING_FAILED) return refused(c);
        const enum xpl_pg_rc rc = wait_for(c, st == PGRES_POLLING_READING ? POLLIN : POLLOUT);
        if (rc != XPL_PG_OK) return rc;
    }
}

enum xpl_pg_rc xpl_pg_connect(const struct xpl_pq *pq, const struct xpl_pg_target *t,
                              unsigned timeout_ms, int wake_fd, struct xpl_pg_conn **ret) {
    struct xpl_pg_conn *const c = xpl_sys_alloc(sizeof *c);
    if (!c) return XPL_PG_NOMEM;
    *c = (struct xpl_pg_conn){.pq = pq, .wake_fd = wake_fd, .timeout_ms = timeout_ms};
    start_clock(c);
    *ret = c;
    c->c = pq->connectStartParams(t->keywords, t->values, 0);
    if (!c->c) return fail(c, XPL_PG_NOMEM, "out of memory");
    (void)pq->setNoticeProcessor(c->c, ignore_notices, NULL);
    (void)pq->setErrorVerbosity(c->c, PQERRORS_VERBOSE);
    enum xpl_pg_rc rc = pq->status(c->c) == CONNECTION_BAD ? lost(c) : poll_connect(c);
    (void)pq->setErrorVerbosity(c->c, PQERRORS_DEFAULT);
    if (rc == XPL_PG_OK && pq->setnonblocking(c->c, 1) != 0) rc = lost(c);
    hide(c->why, t->password);
    return rc;
}

void xpl_pg_disconnect(struct xpl_pg_conn *c) {
    if (!c) return;
    if (c->c) c->pq->finish(c->c);
    xpl_sys_free(c);
}

// A server that stops says so, and its connection then ends: either can be read.
bool xpl_pg_is_alive(struct xpl_pg_conn *c) {
    struct pollfd p = {.fd = c->pq->socket(c->c), .events = POLLIN};
    if (poll(&p, 1, 0) == 0) return true;
    return c->pq->consumeInput(c->c) && c->pq->status(c->c) == CONNECTION_OK && poll(&p, 1, 0) == 0;
}

// ---- parameters ----

// What the server calls the types, and arrays of them.
static const Oid oids[][2] = {
    [XPL_PG_I64] = {20, 1016},  [XPL_PG_U64] = {20, 1016},  [XPL_PG_INT] = {20, 1016},
    [XPL_PG_BOOL] = {20, 1016}, [XPL_PG_FLAG] = {16, 1000}, [XPL_PG_REAL] = {701, 1022},
    [XPL_PG_TEXT] = {25, 1009}, [XPL_PG_NAME] = {25, 1009}, [XPL_PG_BYTES] = {17, 1001},
    [XPL_PG_ID] = {17, 1001},   [XPL_PG_MS] = {20, 1016},   [XPL_PG_U32] = {20, 1016},
};

static void put_be32(struct xpl_buf *b, uint32_t v) {
    const uint32_t be = htobe32(v);
    xpl_buf_put(b, &be, sizeof be);
}

static void put_be64(struct xpl_buf *b, uint64_t v) {
    const uint64_t be = htobe64(v);
    xpl_buf_put(b, &be, sizeof be);
}

// Appends the value at `p`; false: it is NULL.
static bool put_value(struct xpl_buf *b, enum xpl_pg_type type, const void *p) {
    uint64_t number = 0;
    switch (type) {
        case XPL_PG_I64:
        case XPL_PG_MS:
        case XPL_PG_U64:
            memcpy(&number, p, sizeof number);
            if (type == XPL_PG_U64 && number > INT64_MAX) return false;
            break;
        case XPL_PG_INT: number = (uint64_t) * (const int *)p; break;
        case XPL_PG_U32: number = *(const uint32_t *)p; break;
        case XPL_PG_BOOL: number = *(const bool *)p; break;
        case XPL_PG_REAL:
            memcpy(&number, p, sizeof number);
            if (!isfinite(*(const double *)p)) return false;
            break;
        case XPL_PG_FLAG: xpl_buf_putc(b, *(const bool *)p); return true;
        case XPL_PG_TEXT: xpl_utf8_clean(b, *(const xpl_str_t *)p, MAX_TEXT); return true;
        case XPL_PG_NAME: xpl_utf8_clean(b, *(const xpl_str_t *)p, MAX_NAME); return true;
        case XPL_PG_BYTES: xpl_buf_str(b, *(const xpl_str_t *)p); return true;
        case XPL_PG_ID: xpl_buf_put(b, p, ID_BYTES); return true;
    }
    put_be64(b, number);
    return true;
}

// Its dimensions, then a length (-1: NULL) and a value for each element.
static void put_array(struct xpl_buf *b, const struct xpl_pg_arg *a) {
    const uint32_t head[] = {a->n ? 1 : 0, 0, oids[a->type][0], (uint32_t)a->n, 1};
    for (size_t i = 0; i < (a->n ? 5u : 3u); i++)
        put_be32(b, head[i]);
    for (size_t i = 0; i < a->n; i++) {
        const size_t at = b->n;
        put_be32(b, UINT32_MAX);
        if (!put_value(b, a->type, (const char *)a->first + i * a->stride) || b->failed) continue;
        const uint32_t be = htobe32((uint32_t)(b->n - at - sizeof be));
        memcpy(b->p + at, &be, sizeof be);
    }
}

// Parameters as libpq takes them.
struct params {
    Oid types[XPL_PG_ARGS];
    const char *values[XPL_PG_ARGS];
    int lens[XPL_PG_ARGS], formats[XPL_PG_ARGS];
    struct xpl_buf b; // has the values
};

// False: no memory.
static bool encode(const struct xpl_pg_args *args, struct params *ret) {
    bool is_null[XPL_PG_ARGS];
    size_t at[XPL_PG_ARGS + 1] = {0};
    assert(args->n <= XPL_PG_ARGS);
    xpl_buf_init(&ret->b, MAX_ARGS_BYTES);
    for (size_t i = 0; i < args->n; i++) {
        const struct xpl_pg_arg *const a = &args->v[i];
        is_null[i] = a->is_null;
        if (a->is_array)
            put_array(&ret->b, a);
        else if (!a->is_null)
            is_null[i] = !put_value(&ret->b, a->type, a->first ? a->first : &a->value);
        at[i + 1] = ret->b.n;
        ret->types[i] = oids[a->type][a->is_array];
        ret->lens[i] = (int)(at[i + 1] - at[i]);
        ret->formats[i] = 1;
    }
    for (size_t i = 0; i < args->n; i++) // the buffer moves no more; one without bytes has none
        ret->values[i] = is_null[i] ? NULL : ret->b.p ? (const char *)ret->b.p + at[i] : "";
    return !ret->b.failed;
}

// ---- what the server says ----

static enum xpl_pg_rc failed(struct xpl_pg_conn *c, const PGresult *r) {
    const char *const state = c->pq->resultErrorField(r, PG_DIAG_SQLSTATE);
    const char *const text = c->pq->resultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    if (!state || c->pq->status(c->c) == CONNECTION_BAD) return lost(c);
    return fail(c, rc_of(state), text ? text : state);
}

static enum xpl_pg_rc meaning(struct xpl_pg_conn *c, const PGresult *r) {
    const ExecStatusType st = c->pq->resultStatus(r);
    if (st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK || st == PGRES_SINGLE_TUPLE)
        return XPL_PG_OK;
    return failed(c, r);
}

// Reads results to the end and keeps the first, and the first failure.
static enum xpl_pg_rc finish(struct xpl_pg_conn *c, PGresult **ret) {
    enum xpl_pg_rc first = XPL_PG_OK;
    PGresult *r = NULL, *kept = NULL;
    for (;;) {
        const enum xpl_pg_rc rc = next_result(c, &r);
        if (rc != XPL_PG_OK) first = rc;
        if (rc != XPL_PG_OK || !r) break;
        if (first == XPL_PG_OK) first = meaning(c, r);
        if (ret && !kept)
            kept = r;
        else
            c->pq->clear(r);
    }
    if (first != XPL_PG_OK && kept) {
        c->pq->clear(kept);
        kept = NULL;
    }
    if (ret) *ret = kept;
    return first == XPL_PG_OK && ret && !kept ? lost(c) : first;
}

enum xpl_pg_rc xpl_pg_exec(struct xpl_pg_conn *c, const char *sql) {
    start_statement(c);
    return c->pq->sendQuery(c->c, sql) ? finish(c, NULL) : lost(c);
}

static enum xpl_pg_rc send_params(struct xpl_pg_conn *c, const char *sql,
                                  const struct xpl_pg_args *a) {
    const struct xpl_pg_args none = {0}, *const args = a ? a : &none;
    struct params p;
    start_statement(c);
    enum xpl_pg_rc rc = XPL_PG_OK;
    if (!encode(args, &p))
        rc = fail(c, XPL_PG_NOMEM, "out of memory");
    else if (!c->pq->sendQueryParams(c->c, sql, (int)args->n, p.types, p.values, p.lens, p.formats,
                                     1))
        rc = lost(c);
    xpl_buf_fini(&p.b);
    return rc;
}

enum xpl_pg_rc xpl_pg_query(struct xpl_pg_conn *c, const char *sql, const struct xpl_pg_args *a,
                            PGresult **ret) {
    if (ret) *ret = NULL;
    const enum xpl_pg_rc rc = send_params(c, sql, a);
    return rc == XPL_PG_OK ? finish(c, ret) : rc;
}

enum xpl_pg_rc xpl_pg_run(struct xpl_pg_conn *c, const char *sql, const struct xpl_pg_args *a,
                          int64_t *ret_rows) {
    PGresult *r = NULL;
    const enum xpl_pg_rc rc = xpl_pg_query(c, sql, a, &r);
    if (rc != XPL_PG_OK) return rc;
    if (ret_rows) *ret_rows = strtoll(c->pq->cmdTuples(r), NULL, 10);
    c->pq->clear(r);
    return XPL_PG_OK;
}

enum xpl_pg_rc xpl_pg_ask(struct xpl_pg_conn *c, const char *sql, const struct xpl_pg_args *a,
                          int64_t *ret) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(c, sql, a, &r);
    if (rc != XPL_PG_OK) return rc;
    if (c->pq->ntuples(r) > 0 && c->pq->nfields(r) > 0)
        *ret = xpl_pg_get_i64(c, r, 0, 0);
    else
        rc = XPL_PG_NONE;
    c->pq->clear(r);
    return rc;
}

enum xpl_pg_rc xpl_pg_send(struct xpl_pg_conn *c, const char *sql, const struct xpl_pg_args *a) {
    const enum xpl_pg_rc rc = send_params(c, sql, a);
    if (rc != XPL_PG_OK) return rc;
    return c->pq->setSingleRowMode(c->c) ? flush(c) : lost(c);
}

enum xpl_pg_rc xpl_pg_next_row(struct xpl_pg_conn *c, PGresult **ret) {
    PGresult *r = NULL;
    start_clock(c);
    enum xpl_pg_rc rc = next_result(c, &r);
    if (rc == XPL_PG_OK && !r) return XPL_PG_NONE;
    if (rc == XPL_PG_OK) rc = meaning(c, r);
    if (rc == XPL_PG_OK && c->pq->resultStatus(r) == PGRES_SINGLE_TUPLE) {
        *ret = r;
        return XPL_PG_OK;
    }
    c->pq->clear(r);
    const enum xpl_pg_rc end = rc == XPL_PG_AWAY ? rc : finish(c, NULL);
    return rc != XPL_PG_OK ? rc : end == XPL_PG_OK ? XPL_PG_NONE : end;
}

// ---- rows ----

int64_t xpl_pg_get_i64(struct xpl_pg_conn *c, const PGresult *r, int row, int column) {
    uint64_t be = 0;
    if (c->pq->getlength(r, row, column) != (int)sizeof be) return 0;
    memcpy(&be, c->pq->getvalue(r, row, column), sizeof be);
    return (int64_t)be64toh(be);
}

xpl_bytes_t xpl_pg_get_bytes(struct xpl_pg_conn *c, const PGresult *r, int row, int column) {
    return (xpl_bytes_t){(const uint8_t *)c->pq->getvalue(r, row, column),
                         (size_t)c->pq->getlength(r, row, column)};
}
