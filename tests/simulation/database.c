// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/tables.h"
#include "tests/simulation/world.h"

enum { MAX_SESSIONS = 1024, MAX_LOCKS = 512 };

struct lock {
    uint64_t key;
    struct sim_session *s;
    bool of_tx; // until the transaction ends
    int n;      // how often the session has it beyond that
};

static struct {
    struct sim_session *sessions[MAX_SESSIONS];
    int n_sessions;
    struct lock locks[MAX_LOCKS];
    size_t n_locks;
    uint64_t down_until;
    int64_t jump_ns;
    bool retrying;
} db;

struct sim_tables sim_tables;

void sim_database_reset(void) {
    memset(&db, 0, sizeof db);
    db.jump_ns = 3600 * (int64_t)SIM_S; // there is a time before
    sim_tables.n_rows = 0;
    sim_statements_reset();
    sim_results_reset();
}

uint64_t sim_database_now(void) {
    return sim_now() + (uint64_t)db.jump_ns;
}

void sim_database_jump(int64_t ns) {
    db.jump_ns += ns;
}

int sim_session_number(const struct sim_session *s) {
    return s->number;
}

// ---- advisory locks ----

static struct lock *find_lock(uint64_t key) {
    for (size_t i = 0; i < db.n_locks; i++)
        if (db.locks[i].key == key) return &db.locks[i];
    return NULL;
}

bool sim_lock_is_held(uint64_t key) {
    return find_lock(key) != NULL;
}

bool sim_lock_is_ours(const struct sim_session *s, uint64_t key) {
    const struct lock *const l = find_lock(key);
    return l && l->s == s;
}

bool sim_lock_try(struct sim_session *s, uint64_t key, bool of_tx) {
    struct lock *l = find_lock(key);
    if (l && l->s != s) return false;
    CHECK(db.n_locks < MAX_LOCKS);
    if (!l) {
        l = &db.locks[db.n_locks++];
        *l = (struct lock){.key = key, .s = s};
    }
    l->of_tx |= of_tx;
    l->n += !of_tx;
    return true;
}

static void wake_waiting(void);

static void drop_free_locks(void) {
    size_t n = 0;
    for (size_t i = 0; i < db.n_locks; i++)
        if (db.locks[i].n || db.locks[i].of_tx) db.locks[n++] = db.locks[i];
    if (n < db.n_locks) wake_waiting();
    db.n_locks = n;
}

void sim_lock_release(struct sim_session *s, uint64_t key) {
    struct lock *const l = find_lock(key);
    if (l && l->s == s && l->n) l->n--;
    drop_free_locks();
}

static void release_locks(const struct sim_session *s, bool of_tx) {
    for (size_t i = 0; i < db.n_locks; i++) {
        struct lock *const l = &db.locks[i];
        if (l->s != s) continue;
        l->of_tx = false;
        if (!of_tx) l->n = 0;
    }
    drop_free_locks();
}

// ---- rows ----

const struct sim_job *sim_row_seen(const struct sim_session *s, const struct sim_row *r) {
    if (r->writer == s) return r->will_be ? &r->next : NULL;
    return r->is ? &r->now : NULL;
}

bool sim_row_lock(struct sim_session *s, struct sim_row *r) {
    if (r->writer == s) return true;
    if (r->writer) return false;
    r->writer = s;
    r->next = r->now;
    r->will_be = r->is;
    return true;
}

struct sim_row *sim_row_add(struct sim_session *s) {
    CHECK(sim_tables.n_rows < SIM_ROWS);
    struct sim_row *const r = &sim_tables.rows[sim_tables.n_rows++];
    *r = (struct sim_row){.writer = s, .will_be = true};
    r->next = (struct sim_job){.id = (int64_t)sim_tables.n_rows, .queued_at = sim_database_now()};
    return r;
}

// ---- transactions ----

static void end_tx(struct sim_session *s, bool commit) {
    if (commit) sim_world_commit(s);
    for (size_t i = 0; i < sim_tables.n_rows; i++) {
        struct sim_row *const r = &sim_tables.rows[i];
        if (r->writer != s) continue;
        if (commit) {
            r->now = r->next;
            r->is = r->will_be;
        }
        r->writer = NULL;
    }
    sim_results_end(s, commit);
    release_locks(s, true);
    if (s->in_tx && !commit) s->idle_ms = s->idle_ms_before;
    s->in_tx = s->failed = false;
    s->tx_idle_ms = s->lock_ms = s->statement_ms = 0;
    s->verb = SIM_NOTHING;
    s->claimed = 0;
    wake_waiting();
}

static void end_session(struct sim_session *s) {
    if (s->ended) return;
    const bool commits = sim_fault_is(SIM_FAULT_LATE_CLAIM) && s->claimed && !s->failed;
    end_tx(s, commits);
    s->ended = true;
    s->waiting = NULL;
    release_locks(s, false);
    sim_world_session_ended(sim_conn_process(s->c));
    wake_waiting();
}

// ---- time limits ----

struct timer {
    struct sim_session *s;
    uint64_t at; // active_at, or waits
};

static uint64_t idle_limit(const struct sim_session *s) {
    if (!s->in_tx) return s->idle_ms / (sim_fault_is(SIM_FAULT_HEALTHY_ENDED) ? 6 : 1);
    return sim_fault_is(SIM_FAULT_FREEZE) ? 0 : s->tx_idle_ms;
}

static void silence_is_over(void *arg) {
    const struct timer *const t = arg;
    struct sim_session *const s = t->s;
    if (s->ended || s->waiting || s->active_at != t->at) return;
    PGconn *const c = s->c;
    sim_world_silenced(sim_conn_process(c));
    end_session(s);
    sim_conn_end(c);
}

static void become_idle(struct sim_session *s) {
    const struct timer t = {s, sim_now()};
    const uint64_t limit = idle_limit(s);
    s->active_at = t.at;
    if (limit) sim_at(t.at + limit * SIM_MS, silence_is_over, sim_copy(&t, sizeof t));
}

// ---- running statements ----

static void fail_statement(PGresult *r, const char *state) {
    *r = (struct pg_result){.state = state};
}

static void finish_statement(struct sim_session *s, PGresult *r) {
    s->waiting = NULL;
    if (r->state && s->in_tx) s->failed = true;
    if (!s->in_tx) end_tx(s, !r->state);
    if (s->closing) {
        end_session(s);
        return;
    }
    (void)snprintf(r->changed, sizeof r->changed, "%lld", (long long)r->n_changed);
    sim_conn_reply(s->c, r);
    become_idle(s);
}

static void lock_is_too_late(void *arg) {
    const struct timer *const t = arg;
    PGresult *const r = sim_alloc(sizeof *r);
    if (t->s->ended || !t->s->waiting || t->s->waits != t->at) return;
    fail_statement(r, "55P03");
    finish_statement(t->s, r);
}

static void wait_for_lock(struct sim_session *s, const struct sim_statement *st) {
    const uint64_t limit = s->lock_ms ? s->lock_ms : s->statement_ms;
    const struct timer t = {s, ++s->waits};
    s->waiting = st;
    if (limit) sim_at(sim_now() + limit * SIM_MS, lock_is_too_late, sim_copy(&t, sizeof t));
}

static bool can_commit(const struct sim_session *s) {
    return !s->in_tx || !s->failed;
}

// The part of a text of several statements.
static bool run_part(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    unsigned long long number = 0;
    const char *const sql = st->sql;
    if (strcmp(sql, "COMMIT") == 0 || strcmp(sql, "ROLLBACK") == 0) {
        end_tx(s, sql[0] == 'C' && can_commit(s));
    } else if (!can_commit(s)) {
        r->state = "25P02";
    } else if (strcmp(sql, "BEGIN") == 0) {
        s->in_tx = true;
        s->idle_ms_before = s->idle_ms;
    } else if (sscanf(sql, "SET LOCAL lock_timeout='%llus'", &number) == 1) {
        s->lock_ms = number * 1000;
    } else if (sscanf(sql, "SET LOCAL statement_timeout='%llus'", &number) == 1) {
        s->statement_ms = number * 1000;
    } else if (sscanf(sql, "SET LOCAL idle_in_transaction_session_timeout='%llus'", &number) == 1) {
        s->tx_idle_ms = number * 1000;
    } else if (sscanf(sql, "SET LOCAL idle_in_transaction_session_timeout=%llu", &number) == 1) {
        s->tx_idle_ms = number;
    } else if (sscanf(sql, "SET idle_session_timeout=%llu", &number) == 1) {
        s->idle_ms = number;
    } else if (sscanf(sql, "SELECT pg_advisory_xact_lock(%llu)", &number) == 1) {
        return sim_lock_try(s, number | UINT64_C(1) << 63, true);
    } else if (strncmp(sql, "SET LOCAL synchronous_commit", 28) != 0) {
        return sim_statement_run(s, st, r);
    }
    return true;
}

// Text without parameters may be several statements, of which only the last one may wait.
static bool run_text(struct sim_session *s, const struct sim_statement *st, PGresult *r) {
    char *at = sim_copy(st->sql, strlen(st->sql));
    bool done = true;
    for (char *end = at; end && done && !r->state; at = end) {
        struct sim_statement part = *st;
        end = strchr(at, ';');
        if (end) *end++ = 0;
        part.sql = at + strspn(at, " ");
        if (*part.sql) done = run_part(s, &part, r);
        if (!end) break;
    }
    return done;
}

static void run_statement(struct sim_session *s, const struct sim_statement *st) {
    PGresult *const r = sim_alloc(sizeof *r);
    if (st->n ? sim_statement_run(s, st, r) : run_text(s, st, r))
        finish_statement(s, r);
    else if (s->waiting != st)
        wait_for_lock(s, st);
}

void sim_database_run(struct sim_session *s, const struct sim_statement *st) {
    if (s->ended) return;
    s->active_at = SIM_NEVER;
    if (s->failed && st->n) {
        PGresult *const r = sim_alloc(sizeof *r);
        fail_statement(r, "25P02");
        finish_statement(s, r);
    } else {
        run_statement(s, st);
    }
}

// Those that wait try again, in any order.
static void retry_waiting(void *arg) {
    const int first = db.n_sessions ? (int)sim_random((uint64_t)db.n_sessions) : 0;
    (void)arg;
    db.retrying = false;
    for (int i = 0; i < db.n_sessions; i++) {
        struct sim_session *const s = db.sessions[(first + i) % db.n_sessions];
        if (!s->ended && s->waiting) run_statement(s, s->waiting);
    }
}

static void wake_waiting(void) {
    bool any = false;
    for (int i = 0; i < db.n_sessions && !db.retrying; i++)
        any |= db.sessions[i]->waiting != NULL;
    if (any) sim_at(sim_now(), retry_waiting, NULL);
    db.retrying |= any;
}

// ---- sessions ----

struct sim_session *sim_database_connect(PGconn *c) {
    if (sim_now() < db.down_until) return NULL;
    CHECK(db.n_sessions < MAX_SESSIONS);
    struct sim_session *const s = sim_alloc(sizeof *s);
    s->number = db.n_sessions + 1;
    s->c = c;
    s->active_at = sim_now();
    db.sessions[db.n_sessions++] = s;
    return s;
}

void sim_database_close(struct sim_session *s) {
    if (s->waiting)
        s->closing = true;
    else
        end_session(s);
}

void sim_database_restart(uint64_t ns) {
    db.down_until = sim_now() + ns;
    for (int i = 0; i < db.n_sessions; i++) {
        struct sim_session *const s = db.sessions[i];
        if (s->ended) continue;
        end_session(s);
        sim_conn_end(s->c);
    }
}
