// SPDX-License-Identifier: Apache-2.0
// Connections between simulated processes and the database: a model of libpq, whose packets take
// time, are held while a link is cut, and may never come.
#ifndef XPL_TESTS_SIMULATION_NETWORK_H_
#define XPL_TESTS_SIMULATION_NETWORK_H_

#include <libpq-fe.h>

#include "base/str.h"
#include "tests/simulation/scheduler.h"

struct sim_session;

enum { SIM_ARGS = 24 };

// A statement as the server gets it.
struct sim_statement {
    const char *sql;
    int n;
    xpl_bytes_t args[SIM_ARGS];
    bool lost, answer_lost; // it, or its result: the connection ends
};

// Its result.
struct pg_result {
    const char *state; // SQLSTATE; NULL: it went well
    int n_rows, n_columns;
    int64_t n_changed;
    xpl_bytes_t *values; // ptr NULL: null
    char changed[24];    // n_changed as text
    int64_t job;         // that it gives to the client; 0: none
};

void sim_network_reset(void);
bool sim_conn_is_readable(int fd);
const void *sim_conn_of(int fd); // what its readers wait for
// The process has ended: its kernel closes its connections, unless the machine is gone, too.
void sim_network_close_all(const struct sim_process *p, bool silently);

// ---- for the server ----

void sim_conn_reply(PGconn *c, PGresult *r);
void sim_conn_end(PGconn *c); // the server closes it
struct sim_process *sim_conn_process(const PGconn *c);
int64_t sim_conn_told(const PGconn *c); // the last job that the client learnt of

#endif
