// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/network.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/simulation/database.h"
#include "tests/simulation/world.h"

enum { MAX_CONNS = 1024 };

struct pg_conn {
    int fd;
    struct sim_process *process;
    struct sim_session *session;           // the server's end
    bool accepted, connected, ended, busy; // as the client sees it; ended: closed by the server
    bool closed, deaf;                     // by the client; its packets are lost
    int pid;
    int64_t told;
    uint64_t to_server_at, to_client_at; // when the last packet arrives: they keep their order
    PGresult *result;                    // that arrived
};

struct packet {
    PGconn *c;
    const struct sim_statement *st;
    PGresult *r;
};

static struct {
    PGconn *conns[MAX_CONNS];
    int n;
} net;

void sim_network_reset(void) {
    net.n = 0;
}

const void *sim_conn_of(int fd) {
    return net.conns[fd];
}

struct sim_process *sim_conn_process(const PGconn *c) {
    return c->process;
}

int64_t sim_conn_told(const PGconn *c) {
    return c->told;
}

bool sim_conn_is_readable(int fd) {
    const PGconn *const c = net.conns[fd];
    return c->result || c->ended || (c->accepted && !c->connected);
}

// When a packet arrives that is sent now.
static uint64_t arrival(const PGconn *c, uint64_t *last) {
    const uint64_t now = sim_now(), cut = c->process->cut_until;
    const uint64_t at = (cut > now ? cut : now) + sim_world_latency();
    *last = at > *last ? at : *last + 1;
    return *last;
}

static void send_packet(const struct packet *p, bool to_server, void (*arrives)(void *)) {
    PGconn *const c = p->c;
    sim_at(arrival(c, to_server ? &c->to_server_at : &c->to_client_at), arrives,
           sim_copy(p, sizeof *p));
}

// ---- packets that arrive ----

static void is_ended(void *arg) {
    PGconn *const c = ((struct packet *)arg)->c;
    c->ended = true;
    sim_wake(c, true);
}

static void is_accepted(void *arg) {
    PGconn *const c = ((struct packet *)arg)->c;
    c->accepted = true;
    sim_wake(c, true);
}

static void connects(void *arg) {
    const struct packet p = {.c = ((struct packet *)arg)->c};
    p.c->session = sim_database_connect(p.c);
    p.c->pid = p.c->session ? sim_session_number(p.c->session) : 0;
    send_packet(&p, false, p.c->session ? is_accepted : is_ended);
}

static void statement_arrives(void *arg) {
    const struct packet *const p = arg;
    if (!p->c->session || p->st->lost) return;
    sim_trace("database: process %d, session %d: %.50s", p->c->process->number,
              sim_session_number(p->c->session), p->st->sql);
    sim_database_run(p->c->session, p->st);
}

static void close_arrives(void *arg) {
    const struct packet *const p = arg;
    if (p->c->session) sim_database_close(p->c->session);
    p->c->session = NULL;
}

static void result_arrives(void *arg) {
    const struct packet *const p = arg;
    if (p->c->deaf || p->c->process->dead) return;
    p->c->result = p->r;
    p->c->busy = false;
    if (p->r->job) p->c->told = p->r->job;
    sim_wake(p->c, true);
}

void sim_conn_reply(PGconn *c, PGresult *r) {
    const struct packet p = {.c = c, .r = r};
    send_packet(&p, false, result_arrives);
}

void sim_conn_end(PGconn *c) {
    const struct packet p = {.c = c};
    c->session = NULL;
    send_packet(&p, false, is_ended);
}

static void close_conn(PGconn *c) {
    const struct packet p = {.c = c};
    if (!c->closed) send_packet(&p, true, close_arrives);
    c->closed = true;
}

void sim_network_close_all(const struct sim_process *p, bool silently) {
    for (int i = 0; i < net.n && !silently; i++)
        if (net.conns[i]->process == p) close_conn(net.conns[i]);
}

// ---- libpq ----

static PGconn *pq_connectStartParams(const char *const *keywords, const char *const *values,
                                     int n) {
    PGconn *const c = sim_alloc(sizeof *c);
    const struct packet p = {.c = c};
    (void)keywords, (void)values, (void)n;
    CHECK(net.n < MAX_CONNS);
    c->fd = net.n;
    c->process = sim_self();
    net.conns[net.n++] = c;
    send_packet(&p, true, connects);
    return c;
}

static PostgresPollingStatusType pq_connectPoll(PGconn *c) {
    c->connected = c->accepted;
    return c->ended ? PGRES_POLLING_FAILED : c->accepted ? PGRES_POLLING_OK : PGRES_POLLING_READING;
}

static ConnStatusType pq_status(const PGconn *c) {
    return c->ended ? CONNECTION_BAD : CONNECTION_OK;
}

static int pq_socket(const PGconn *c) {
    return c->fd;
}

static char *pq_errorMessage(const PGconn *c) {
    static char text[] = "the connection is lost";
    (void)c;
    return text;
}

static void pq_finish(PGconn *c) {
    close_conn(c);
}

static int pq_backendPID(const PGconn *c) {
    return c->pid;
}

static void connection_breaks(void *arg) {
    PGconn *const c = ((struct packet *)arg)->c;
    close_conn(c); // as the server notices it
    is_ended(arg);
}

static int pq_send(PGconn *c, struct sim_statement *st) {
    const struct packet p = {.c = c, .st = st};
    if (c->ended) return 0;
    c->busy = true;
    c->result = NULL;
    sim_world_statement(c->process, st, true);
    send_packet(&p, true, statement_arrives);
    if (st->lost || st->answer_lost) {
        c->deaf = !sim_fault_is(SIM_FAULT_LOST_ANSWER) || strcmp(st->sql, "COMMIT") != 0;
        if (!c->deaf) sim_conn_reply(c, sim_alloc(sizeof(PGresult)));
        sim_at(sim_now() + sim_between(1, 2 * SIM_S), connection_breaks, sim_copy(&p, sizeof p));
    }
    sim_world_statement(c->process, st, false);
    return 1;
}

static int pq_sendQuery(PGconn *c, const char *sql) {
    struct sim_statement *const st = sim_alloc(sizeof *st);
    st->sql = sim_copy(sql, strlen(sql));
    return pq_send(c, st);
}

static int pq_sendQueryParams(PGconn *c, const char *sql, int n, const Oid *types,
                              const char *const *values, const int *lens, const int *formats,
                              int format) {
    struct sim_statement *const st = sim_alloc(sizeof *st);
    (void)types, (void)formats, (void)format;
    CHECK(n <= SIM_ARGS);
    st->sql = sql; // a constant
    st->n = n;
    for (int i = 0; i < n; i++)
        if (values[i])
            st->args[i] = (xpl_bytes_t){sim_copy(values[i], (size_t)lens[i]), (size_t)lens[i]};
    return pq_send(c, st);
}

static int pq_consumeInput(PGconn *c) {
    return !c->ended;
}

static int pq_isBusy(PGconn *c) {
    return c->busy;
}

static PGresult *pq_getResult(PGconn *c) {
    PGresult *const r = c->result;
    c->result = NULL;
    return r;
}

static int pq_flush(PGconn *c) {
    (void)c;
    return 0;
}

static int pq_setnonblocking(PGconn *c, int on) {
    (void)c, (void)on;
    return 0;
}

static int pq_serverVersion(const PGconn *c) {
    (void)c;
    return 150000;
}

static ExecStatusType pq_resultStatus(const PGresult *r) {
    return r->state ? PGRES_FATAL_ERROR : r->n_columns ? PGRES_TUPLES_OK : PGRES_COMMAND_OK;
}

static char *pq_resultErrorField(const PGresult *r, int field) {
    return field == PG_DIAG_SQLSTATE ? (char *)(uintptr_t)r->state : NULL;
}

static void pq_clear(PGresult *r) {
    (void)r;
}

static int pq_ntuples(const PGresult *r) {
    return r->n_rows;
}

static int pq_nfields(const PGresult *r) {
    return r->n_columns;
}

static const xpl_bytes_t *value_at(const PGresult *r, int row, int column) {
    CHECK(row < r->n_rows && column < r->n_columns);
    return &r->values[row * r->n_columns + column];
}

static int pq_getisnull(const PGresult *r, int row, int column) {
    return !value_at(r, row, column)->ptr;
}

static char *pq_getvalue(const PGresult *r, int row, int column) {
    return (char *)(uintptr_t)value_at(r, row, column)->ptr;
}

static int pq_getlength(const PGresult *r, int row, int column) {
    return (int)value_at(r, row, column)->len;
}

static char *pq_cmdTuples(PGresult *r) {
    return r->changed;
}

static PQconninfoOption *pq_conninfoParse(const char *url, char **why) {
    static char host[] = "host", database[] = "database";
    static PQconninfoOption options[] = {{.keyword = host, .val = database}, {0}};
    (void)url, (void)why;
    return options;
}

static void pq_ignore(void) {}

static void pq_is_not_modelled(void) {
    FAIL_TEST("the simulation has no such function of libpq");
}

// ---- loading it ----

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlopen(const char *name, int flags) {
    static int library;
    (void)flags;
    CHECK(strcmp(name, "libpq.so.5") == 0);
    return &library;
}

#define FUNCTION(name)                                                                             \
    { "PQ" #name, (void (*)(void))pq_##name }

void *__wrap_dlsym(void *library, const char *name) {
    static const struct {
        const char *name;
        void (*fn)(void);
    } functions[] = {FUNCTION(connectStartParams),
                     FUNCTION(connectPoll),
                     FUNCTION(status),
                     FUNCTION(socket),
                     FUNCTION(errorMessage),
                     FUNCTION(finish),
                     FUNCTION(backendPID),
                     FUNCTION(sendQuery),
                     FUNCTION(sendQueryParams),
                     FUNCTION(consumeInput),
                     FUNCTION(isBusy),
                     FUNCTION(getResult),
                     FUNCTION(flush),
                     FUNCTION(setnonblocking),
                     FUNCTION(serverVersion),
                     FUNCTION(resultStatus),
                     FUNCTION(resultErrorField),
                     FUNCTION(clear),
                     FUNCTION(ntuples),
                     FUNCTION(nfields),
                     FUNCTION(getisnull),
                     FUNCTION(getvalue),
                     FUNCTION(getlength),
                     FUNCTION(cmdTuples),
                     FUNCTION(conninfoParse),
                     {"PQconninfoFree", pq_ignore},
                     {"PQfreemem", pq_ignore},
                     {"PQsetNoticeProcessor", pq_ignore},
                     {"PQsetErrorVerbosity", pq_ignore}};
    void (*fn)(void) = pq_is_not_modelled;
    (void)library;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0) fn = functions[i].fn;
    void *ret;
    memcpy(&ret, &fn, sizeof ret);
    return ret;
}
