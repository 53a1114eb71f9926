// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world.h"

#include <string.h>

#include "server/engine/pool.h"
#include "server/engine/request.h"
#include "server/jobs/front.h"
#include "server/jobs/worker.h"
#include "storage/sessions/identity.h"
#include "storage/store/jobs.h"
#include "tests/check.h"
#include "tests/simulation/database.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/products.h"
#include "tests/simulation/tables.h"

enum { MAX_SESSIONS = 3, MAX_NODES = 100, WALL_JUMP_S = 3 * 3600 };

enum role { FRONT, WORKER };

struct node {
    struct sim_process process;
    enum role role;
    struct xpl_store *store;
    struct xpl_identity *identity;
    struct xpl_product_manager *products;
    struct xpl_pool *pool;
    struct xpl_job_worker *worker;
    bool ready, stops, ended;
};

struct file {
    uint64_t size, make_ns, there_at; // workers see it from then on
    bool kills;
};

struct ask {
    int number;
    struct node *front;
    const struct sim_toy_session *session;
};

static struct {
    enum sim_fault planted;
    struct node *nodes[MAX_NODES];
    int n_nodes, n_requests, n_waiting;
    struct file files[SIM_MAX_FILES];
    bool broken[SIM_MAX_FILES];
    int n_files;
    const struct sim_toy_session *sessions[MAX_SESSIONS];
    int n_sessions;
    uint64_t lease_ns, work_ns, until, slow_until, slow_ns, faults_until;
    unsigned threads;
    uint64_t fault_every; // 0: no faults
    int n_faults;         // left
    bool over;
} world;

bool sim_fault_is(enum sim_fault f) {
    return world.planted == f;
}

static uint64_t later(uint64_t ns) {
    return sim_now() + ns;
}

// ---- reports to the judge ----

static struct node *node_of(const struct sim_process *p) {
    return world.nodes[p->number - 1];
}

static int file_of(xpl_bytes_t text) { // "size time hN"
    const char *const at = memrchr(text.ptr, 'h', text.len);
    int ret = 0;
    for (const char *p = at + 1; p < (const char *)text.ptr + text.len; p++)
        ret = ret * 10 + (*p - '0');
    return ret;
}

struct entries {
    struct sim_entry list[8 * SIM_MAX_FILES];
    size_t n;
};

static void add_entries(struct entries *e, const struct sim_job *j) {
    uint64_t request;
    memcpy(&request, j->request.ptr, sizeof request);
    CHECK(e->n + j->files.n <= sizeof e->list / sizeof *e->list);
    for (size_t i = 0; i < j->files.n; i++)
        e->list[e->n++] = (struct sim_entry){request, file_of(j->files.list[i])};
}

static bool has_note(const struct sim_job *j, const struct sim_process *p) {
    for (size_t i = 0; i < j->n_notes; i++)
        if (j->notes[i].process == p) return true;
    return false;
}

static void judge_row(const struct sim_session *s, const struct sim_row *r) {
    struct sim_process *const p = sim_conn_process(s->c);
    const struct sim_job *const j = &r->next;
    if (s->verb == SIM_CLAIM && r->will_be && s->claimed == j->id)
        sim_judge_noted(p->number, sim_conn_told(s->c) == j->id);
    if (r->will_be && j->aside_at && !r->now.aside_at)
        sim_judge_set_aside(file_of(j->files.list[0]));
    if (s->verb == SIM_END) sim_judge_ended(p->number, r->now.id, r->will_be && has_note(j, p));
}

void sim_world_commit(const struct sim_session *s) {
    static struct entries before, after;
    if (s->verb == SIM_NOTHING) return;
    bool aside = false;
    before.n = after.n = 0;
    for (size_t i = 0; i < sim_tables.n_rows; i++) {
        const struct sim_row *const r = &sim_tables.rows[i];
        if (r->writer != s) continue;
        aside |= r->will_be && r->next.aside_at;
        if (r->is && !r->now.aside_at) add_entries(&before, &r->now);
        if (r->will_be && !r->next.aside_at) add_entries(&after, &r->next);
        judge_row(s, r);
    }
    sim_judge_changed(before.list, before.n, after.list, after.n, s->verb == SIM_QUEUE,
                      aside || s->verb == SIM_END || s->verb == SIM_WITHDRAW ||
                          s->verb == SIM_SWEEP);
}

void sim_world_ends_again(const struct sim_job *j) {
    static struct entries before;
    before.n = 0;
    add_entries(&before, j);
    sim_judge_changed(before.list, before.n, NULL, 0, false, true);
}

void sim_world_acknowledged(int64_t job) {
    sim_judge_acknowledged(sim_self()->number, job);
}

void sim_world_session_ended(const struct sim_process *p) {
    for (size_t i = 0; i < sim_tables.n_rows; i++) {
        const struct sim_row *const r = &sim_tables.rows[i];
        int files[SIM_MAX_FILES];
        if (!r->is || !has_note(&r->now, p) || sim_lock_is_held((uint64_t)r->now.id)) continue;
        for (size_t k = 0; k < r->now.files.n; k++)
            files[k] = file_of(r->now.files.list[k]);
        sim_judge_lost(p->number, files, r->now.files.n);
    }
}

void sim_world_silenced(const struct sim_process *p) {
    sim_judge_silenced(p->number, sim_now());
}

static void disturb(const char *what, const struct sim_process *p, uint64_t ns, uint64_t own_ns) {
    sim_trace("process %d: %s", p ? p->number : 0, what);
    sim_judge_disturbed(p ? p->number : 0, sim_now(), later(ns), later(own_ns));
}

// ---- daemons ----

static void daemon_main(void *arg) {
    struct node *const n = arg;
    const struct xpl_store_options o = {
        .size = sizeof o, .dir = "", .url = "postgresql://host/database"};
    CHECK_OK(xpl_store_open(&o, &n->store, NULL), NULL);
    CHECK_OK(xpl_identity_new(n->store, &n->identity, NULL), NULL);
    const struct xpl_product_manager_parts parts = {.store = n->store, .identity = n->identity};
    n->products = xpl_product_manager_new(&parts, (size_t)1 << 30);
    n->pool = xpl_pool_new(world.threads, 64);
    const struct xpl_job_worker_options w = {.store = n->store,
                                             .products = n->products,
                                             .pool = n->pool,
                                             .lease_ms = world.lease_ns / SIM_MS,
                                             .role = n->role == FRONT ? "front" : "worker"};
    n->worker = xpl_job_worker_new(&w);
    n->ready = true;
    sim_wake(n, true);
}

static struct node *start(enum role role) {
    struct node *const n = sim_alloc(sizeof *n);
    CHECK(world.n_nodes < MAX_NODES);
    world.nodes[world.n_nodes++] = n;
    n->process.number = world.n_nodes;
    n->process.wall_ns = (int64_t)sim_random(WALL_JUMP_S) * (int64_t)SIM_S;
    n->role = role;
    (void)sim_spawn(&n->process, daemon_main, n);
    return n;
}

static void start_again(void *arg) {
    if (world.n_nodes < MAX_NODES - 1) (void)start(((const struct node *)arg)->role);
}

// Its place is taken by another one a moment later.
static void kill_node(struct node *n, bool silently) {
    const uint64_t pause = sim_between(100 * SIM_MS, 2 * SIM_S);
    disturb(silently ? "vanishes" : "is killed", &n->process,
            pause + 3 * SIM_S + (silently ? world.lease_ns : 0), 0);
    sim_judge_died(n->process.number);
    sim_network_close_all(&n->process, silently);
    sim_at(later(pause), start_again, n);
    sim_kill(&n->process);
}

static void has_ended(void *arg) {
    struct node *const n = arg;
    n->ended = true;
    sim_wake(&n->ended, true);
}

// SIGTERM: the end of a daemon in good order.
static void stop_node(void *arg) {
    struct node *const n = arg;
    disturb("gets SIGTERM", &n->process, 4 * SIM_S, 0);
    xpl_job_worker_stop(n->worker, sim_random(1500), has_ended, n);
    while (!n->ended)
        (void)sim_wait(&n->ended, SIM_NEVER);
    xpl_job_worker_free(n->worker);
    xpl_pool_free(n->pool);
    xpl_store_close(n->store);
    sim_network_close_all(&n->process, false);
    sim_at(later(sim_between(1, SIM_S)), start_again, n);
    sim_kill(&n->process);
}

// ---- files ----

uint64_t sim_world_size(int file) {
    return world.files[file].size;
}

bool sim_world_has(int file) {
    return world.files[file].there_at <= sim_now() || node_of(sim_self())->role == FRONT;
}

bool sim_world_read(int file, bool (*is_cancelled)(void *arg), void *arg, bool *ret_cancelled) {
    struct file *const f = &world.files[file];
    const uint64_t until = later(f->make_ns);
    *ret_cancelled = false;
    while (sim_now() < until && !*ret_cancelled) {
        const uint64_t step = later(50 * SIM_MS);
        (void)sim_wait(f, step < until ? step : until);
        *ret_cancelled = is_cancelled && is_cancelled(arg);
    }
    sim_trace("process %d: has read file %d", sim_self()->number, file);
    if (f->kills) kill_node(node_of(sim_self()), false);
    return !world.broken[file];
}

// ---- what happens to packets and statements ----

uint64_t sim_world_latency(void) {
    const bool slow = sim_now() < world.slow_until;
    return sim_between(50000, slow ? world.slow_ns : 2 * SIM_MS);
}

static void thaw(void *arg) {
    ((struct sim_process *)arg)->frozen = false;
}

// Whether a worker is there beside this process.
static bool is_another_well(const struct sim_process *p) {
    for (int i = 0; i < world.n_nodes; i++) {
        const struct node *const n = world.nodes[i];
        if (n->role == WORKER && &n->process != p && n->ready && !n->stops && !n->process.dead &&
            !n->process.frozen && n->process.cut_until <= sim_now())
            return true;
    }
    return false;
}

// A silent process costs others a lease at most, and the pause until they ask again.
static void be_silent(const char *what, const struct sim_process *p, uint64_t ns) {
    const uint64_t lease = ns < world.lease_ns ? ns : world.lease_ns, own = ns + 12 * SIM_S;
    disturb(what, p, is_another_well(p) ? lease + 2 * SIM_S : own, own);
}

static void freeze(struct sim_process *p) {
    const uint64_t ns = sim_between(50 * SIM_MS, 3 * world.lease_ns);
    be_silent("freezes", p, ns);
    p->frozen = true;
    sim_at(later(ns), thaw, p);
}

static void cut(struct sim_process *p) {
    const uint64_t ns = sim_between(50 * SIM_MS, 3 * world.lease_ns);
    be_silent("is cut off", p, ns);
    p->cut_until = later(ns);
}

// Statements that change jobs are of more interest.
static bool is_of_interest(const char *sql) {
    return strncmp(sql, "SELECT", 6) != 0 && strncmp(sql, "BEGIN", 5) != 0 &&
           strncmp(sql, "WITH open", 9) != 0;
}

static bool fault_happens(const struct sim_statement *st) {
    if (!world.n_faults || sim_now() > world.faults_until ||
        !sim_one_in(world.fault_every * (is_of_interest(st->sql) ? 1 : 8)))
        return false;
    world.n_faults--;
    return true;
}

static void lose_packets(struct sim_process *p, struct sim_statement *st) {
    disturb("loses a packet", p, 4 * SIM_S, 6 * SIM_S);
    if (sim_one_in(2))
        st->lost = true;
    else
        st->answer_lost = true;
}

void sim_world_statement(struct sim_process *p, struct sim_statement *st, bool before) {
    enum { KILL, VANISH, FREEZE, CUT, LOSE, KINDS };
    if (!fault_happens(st)) return;
    switch (sim_random(KINDS)) {
        case KILL: kill_node(node_of(p), false); break;
        case VANISH: kill_node(node_of(p), true); break;
        case FREEZE: freeze(p); break;
        case CUT: cut(p); break;
        default:
            if (before) lose_packets(p, st);
    }
    if (p->frozen) sim_yield();
}

// ---- what happens by the clock ----

static void restart_database(void *arg) {
    const uint64_t ns = sim_between(10 * SIM_MS, 4 * SIM_S);
    (void)arg;
    disturb("the database restarts", NULL, ns + 6 * SIM_S, 0);
    sim_database_restart(ns);
}

static void slow_down(void *arg) {
    const uint64_t ns = sim_between(SIM_S, 8 * SIM_S);
    (void)arg;
    world.slow_ns = sim_between(20 * SIM_MS, 4 * SIM_S);
    world.slow_until = later(ns);
    disturb("the network is slow", NULL, ns + 20 * SIM_S, 0);
}

static void jump_clocks(void *arg) {
    (void)arg;
    for (int i = 0; i < world.n_nodes; i++)
        world.nodes[i]->process.wall_ns =
            ((int64_t)sim_random(2 * WALL_JUMP_S) - WALL_JUMP_S) * (int64_t)SIM_S;
    disturb("clocks jump", NULL, 2 * SIM_S, 0);
    const int64_t ns = (int64_t)sim_between(SIM_MS, 3600 * SIM_S);
    sim_database_jump(sim_random(2) ? ns : -ns / 3600);
}

static void stop_one(void *arg) {
    struct node *const n = world.nodes[sim_random((uint64_t)world.n_nodes)];
    (void)arg;
    if (n->process.dead || n->role != WORKER || !n->ready || n->stops) return;
    n->stops = true;
    (void)sim_spawn(&n->process, stop_node, n);
}

static void plan_events(void) {
    static void (*const events[])(void *) = {restart_database, slow_down, jump_clocks, stop_one};
    const uint64_t n = world.fault_every ? sim_random(4) : 0;
    for (uint64_t i = 0; i < n; i++)
        sim_at(later(sim_random(world.faults_until - sim_now())),
               events[sim_random(sizeof events / sizeof *events)], NULL);
}

// ---- requests ----

static void ask(void *arg) {
    const struct ask *const a = arg;
    struct node *const n = a->front;
    const struct sim_toy_session *const se = a->session;
    const struct xpl_request q = {.session = &se->session,
                                  .hosts = se->hosts,
                                  .n_hosts = se->session.n_hosts,
                                  .tool = &sim_products_tool};
    const unsigned variants[2] = {0, 0};
    const struct xpl_front_request f = {.store = n->store,
                                        .products = n->products,
                                        .q = &q,
                                        .variants = variants,
                                        .limit = 16 << 20};
    bool aside[SIM_MAX_FILES] = {0};
    enum sim_answer answers[SIM_MAX_FILES];
    sim_judge_asked(a->number, n->process.number, sim_now(), se->files, q.n_hosts, world.work_ns);
    sim_trace("process %d: request %d for %s, %zu files", n->process.number, a->number,
              se->session.name.ptr, q.n_hosts);
    CHECK_OK(xpl_job_front.wait(&f, aside, NULL), NULL);
    for (size_t i = 0; i < q.n_hosts; i++)
        answers[i] = aside[i] ? SIM_ANSWER_LEFT_OUT
                              : sim_products_answer(n->store, q.hosts[i], se->files[i]);
    sim_trace("process %d: request %d is answered", n->process.number, a->number);
    sim_judge_answered(a->number, sim_now(), answers);
}

static void request_comes(void *arg) {
    struct node *fronts[MAX_NODES];
    size_t n = 0;
    for (int i = 0; i < world.n_nodes; i++)
        if (world.nodes[i]->role == FRONT && world.nodes[i]->ready && !world.nodes[i]->process.dead)
            fronts[n++] = world.nodes[i];
    if (!n) { // none is there yet
        sim_at(later(100 * SIM_MS), request_comes, arg);
        return;
    }
    const struct ask a = {world.n_requests++, fronts[sim_random(n)],
                          world.sessions[sim_random((uint64_t)world.n_sessions)]};
    world.n_waiting--;
    (void)sim_spawn(&a.front->process, ask, sim_copy(&a, sizeof a));
}

// ---- a run ----

static bool is_quiet(void) {
    for (size_t i = 0; i < sim_tables.n_rows; i++) {
        const struct sim_row *const r = &sim_tables.rows[i];
        if (r->writer || (r->is && !r->now.aside_at)) return false;
    }
    return !world.n_waiting && sim_judge_is_idle();
}

static void check_end(void *arg) {
    world.over = sim_judge_verdict() || is_quiet() || sim_now() > world.until;
    sim_at(later(100 * SIM_MS), check_end, arg);
}

static bool is_over(void) {
    return world.over;
}

static void make_files(void) {
    world.n_sessions = 1 + (int)sim_random(MAX_SESSIONS);
    for (int i = 0; i < world.n_sessions; i++) {
        const int first = world.n_files;
        const size_t n = 1 + (size_t)sim_between(0, SIM_MAX_FILES / MAX_SESSIONS - 1);
        const uint64_t make_ns = sim_between(SIM_MS, 100 * SIM_MS);
        world.n_files += (int)n;
        for (int f = first; f < world.n_files; f++) {
            const uint64_t size = 1000 + sim_random(240); // some are copies of others
            world.files[f] = (struct file){
                .size = size, .make_ns = make_ns, .kills = world.fault_every && size % 60 == 0};
            if (sim_one_in(30)) world.files[f].there_at = later(sim_random(3 * SIM_S));
            world.broken[f] = size % 30 == 1;
            world.work_ns += 2 * make_ns;
        }
        world.sessions[i] = sim_products_session(i, first, n);
    }
}

static void plan(void) {
    static const uint64_t every[] = {0, 10, 40, 40, 150};
    const int n_workers = 1 + (int)sim_random(3), n_fronts = 1 + (int)sim_random(2);
    world.fault_every = every[sim_random(sizeof every / sizeof *every)];
    world.n_faults = world.fault_every ? 1 + (int)sim_random(5) : 0;
    world.faults_until = later(10 * SIM_S);
    world.until = later(300 * SIM_S);
    world.lease_ns = SIM_S + sim_between(0, 4 * SIM_S);
    world.threads = 1 + (unsigned)sim_random(2);
    make_files();
    sim_judge_reset(world.lease_ns, world.broken);
    disturb("start", NULL, 4 * SIM_S, 0);
    for (int i = 0; i < n_fronts + n_workers; i++)
        (void)start(i < n_fronts ? FRONT : WORKER);
    world.n_waiting = 1 + (int)sim_random(5);
    for (int i = 0; i < world.n_waiting; i++)
        sim_at(later(sim_between(SIM_MS, 5 * SIM_S)), request_comes, NULL);
    plan_events();
    sim_at(later(SIM_S), check_end, NULL);
}

const char *sim_world_run(uint64_t seed, enum sim_fault planted) {
    memset(&world, 0, sizeof world);
    world.planted = planted;
    sim_reset(seed);
    sim_network_reset();
    sim_database_reset();
    sim_products_reset();
    plan();
    sim_run(is_over);
    sim_judge_finish(sim_now());
    return sim_judge_verdict();
}
