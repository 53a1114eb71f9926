// SPDX-License-Identifier: Apache-2.0
// Private: what the model of the database (database.c) and its statements (statements.c, results.c)
// share.
#ifndef XPL_TESTS_SIMULATION_TABLES_H_
#define XPL_TESTS_SIMULATION_TABLES_H_

#include "tests/simulation/database.h"

enum { SIM_NOTES = 16, SIM_ROWS = 4096 };

struct sim_texts {
    xpl_bytes_t *list;
    size_t n;
};

// An attempt: a daemon that began a job.
struct sim_note {
    xpl_bytes_t owner;
    struct sim_process *process;
};

// A row of jobs.  Times are the database's.
struct sim_job {
    int64_t id, rank, n_divided;
    xpl_bytes_t request, session, trace;
    struct sim_texts files, products;
    const int64_t *variants;
    struct sim_note notes[SIM_NOTES];
    size_t n_notes;
    uint64_t ready_at, aside_at, queued_at; // aside_at 0: null
};

// As all see it, and as the transaction that writes it does.  Writing locks it.
struct sim_row {
    struct sim_job now, next;
    bool is, will_be;
    struct sim_session *writer;
};

// What a transaction did with jobs.
enum sim_verb { SIM_NOTHING, SIM_QUEUE, SIM_CLAIM, SIM_END, SIM_WITHDRAW, SIM_SWEEP };

struct sim_session {
    int number;
    PGconn *c;
    bool ended, in_tx, failed;
    bool closing;                        // the client has gone; the statement is run to its end
    const struct sim_statement *waiting; // for a lock
    uint64_t waits, active_at;           // how often it waited; when it became idle
    uint64_t idle_ms, idle_ms_before;    // idle_session_timeout, also before the transaction
    uint64_t tx_idle_ms, lock_ms, statement_ms;
    enum sim_verb verb;
    int64_t claimed; // by this transaction
};

struct sim_tables {
    struct sim_row rows[SIM_ROWS]; // by id, from 1
    size_t n_rows;
};
extern struct sim_tables sim_tables;

// ---- database.c ----

uint64_t sim_database_now(void); // its clock, ns
// The row as a session sees it; NULL: there is none.
const struct sim_job *sim_row_seen(const struct sim_session *s, const struct sim_row *r);
// Locks a row to write r->next; false: another session has it, and the statement waits.
bool sim_row_lock(struct sim_session *s, struct sim_row *r);
struct sim_row *sim_row_add(struct sim_session *s);
bool sim_lock_try(struct sim_session *s, uint64_t key, bool of_tx);
void sim_lock_release(struct sim_session *s, uint64_t key);
bool sim_lock_is_held(uint64_t key); // by any session
bool sim_lock_is_ours(const struct sim_session *s, uint64_t key);

// ---- statements.c ----

// Runs one statement; false: it waits, and is run again.  r->state: it failed.
bool sim_statement_run(struct sim_session *s, const struct sim_statement *st, PGresult *r);
void sim_statements_reset(void);

// Parameters and values as libpq has them, in binary.
int64_t sim_arg_i64(const struct sim_statement *st, int i);
bool sim_arg_bool(xpl_bytes_t b);
struct sim_texts sim_arg_texts(const struct sim_statement *st, int i);
const int64_t *sim_arg_numbers(const struct sim_statement *st, int i, size_t *ret_n);
bool sim_bytes_eq(xpl_bytes_t a, xpl_bytes_t b);
// A row more of as many columns; sets them with the next two.
int sim_result_row(PGresult *r, int n_columns);
void sim_result_i64(PGresult *r, int row, int column, int64_t v);
void sim_result_bytes(PGresult *r, int row, int column, xpl_bytes_t v);

// ---- results.c ----

// False: it is not one about profiles and results.
bool sim_result_statement(struct sim_session *s, const struct sim_statement *st, PGresult *r,
                          bool *ret_done);
void sim_results_reset(void);
void sim_results_end(struct sim_session *s, bool commit); // of a transaction

#endif
