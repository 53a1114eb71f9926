// SPDX-License-Identifier: Apache-2.0
// The steps of two daemons in all orders, on a server of PostgreSQL: whatever the order, each file
// of a request leaves its job once.  The simulation has many daemons, on a model of the server.
#include <pthread.h>

#include "base/clock.h"
#include "base/cond.h"
#include "storage/store/jobs.h"
#include "tests/unit/storage/pg_database.h"
#include "tests/unit/storage/store_helpers.h"

// WAIT_MS: after that a step waits for a lock that the other daemon has, which goes on.
enum { FILES = 2, MOST_STEPS = 4, LEASE_MS = 60000, WAIT_MS = 300, LONG_MS = 60000 };

enum step { CLAIM, CUT, RETURN, CONCLUDE, COMMIT, REQUEST, WITHDRAW, INSPECT };

struct script {
    size_t n;
    enum step steps[MOST_STEPS];
};
static const struct script work = {3, {CLAIM, CONCLUDE, COMMIT}},
                           cut = {4, {CLAIM, CUT, CONCLUDE, COMMIT}},
                           back = {4, {CLAIM, RETURN, CONCLUDE, COMMIT}},
                           front = {3, {REQUEST, WITHDRAW, INSPECT}};

static struct xpl_job_product product = {{"op_stats", 8}, 7, 0};
static struct xpl_job_file files[FILES] = {{{"h0", 2}, 1000, 5}, {{"h1", 2}, 1000, 5}};
static const size_t ends[FILES] = {1, 2};
static const struct xpl_job_request request = {.digest = {{1}},
                                               .session = {"run", 3},
                                               .products = &product,
                                               .files = files,
                                               .ends = ends,
                                               .n_products = 1,
                                               .n_files = FILES,
                                               .n_batches = FILES};

struct file {
    int n_made;
    const struct daemon *owner; // has its job, and was not cut off since
};

struct daemon {
    struct xpl_store *s;
    const struct xpl_job_ops *ops;
    struct xpl_arena arena;
    struct xpl_job *job;
    bool in_tx;
    struct file *state; // of each file
    pthread_t thread;   // has its transactions
    pthread_mutex_t mu; // protects the rest
    pthread_cond_t changed;
    enum step step; // that it does, while it is busy
    bool stop, busy;
};

// ---- a daemon's steps ----

static pthread_mutex_t states = PTHREAD_MUTEX_INITIALIZER;

// The files of a daemon's job get another owner; those of a third daemon must not.
static void set_owner(const struct daemon *d, const struct daemon *to) {
    pthread_mutex_lock(&states);
    for (size_t i = 0; i < d->job->n_files; i++) {
        struct file *const f = &d->state[d->job->files[i].host.ptr[1] - '0'];
        if (f->owner && f->owner != d) FAIL_TEST("two daemons have a job");
        f->owner = to;
    }
    pthread_mutex_unlock(&states);
}

static bool claim(struct daemon *d) {
    const struct xpl_store_version makes = {XPL_STORE_PRODUCT, product.name, product.version};
    const struct xpl_job_offer o = {&makes, 1, true, LEASE_MS};
    struct xpl_error e = {0};
    while (d->ops->claim(d->s, &o, &d->arena, &d->job, &e) != XPL_OK)
        pg_pause_ms(1); // until it has another connection
    if (d->job) set_owner(d, d);
    return d->job != NULL;
}

// Its session ends at the server; the next statement notices, and its end locks the job again.
static void cut_off(const struct daemon *d) {
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE"
                   " locktype='advisory' AND objsubid=2 AND objid=%lld",
                   (long long)d->job->claim.id);
    set_owner(d, NULL);
    pg_sql(database, sql);
}

static void conclude(struct daemon *d, size_t n_rest) {
    const struct xpl_job_end end = {d->job->claim, d->job->files, n_rest, 0};
    struct xpl_error e = {0};
    while (xpl_store_begin(d->s, &e) != XPL_OK)
        pg_pause_ms(1);
    d->in_tx = true;
    (void)d->ops->conclude(d->s, &end, &e); // a failure is the commit's, too
}

static void commit(struct daemon *d) {
    struct xpl_error e = {0};
    d->in_tx = false;
    if (xpl_store_commit(d->s, &e) != XPL_OK) return;
    set_owner(d, NULL);
    for (size_t i = 0; i < d->job->n_files; i++)
        d->state[d->job->files[i].host.ptr[1] - '0'].n_made++;
}

static void do_step(struct daemon *d) {
    struct xpl_job_progress p;
    struct xpl_error e = {0};
    switch (d->step) {
        case CLAIM: (void)claim(d); break;
        case CUT:
            if (d->job) cut_off(d);
            break;
        case RETURN:
            if (!d->job) break;
            conclude(d, d->job->n_files);
            d->in_tx = false;
            set_owner(d, NULL);
            CHECK_OK(xpl_store_commit(d->s, &e), &e);
            (void)claim(d);
            break;
        case CONCLUDE:
            if (d->job) conclude(d, 0);
            break;
        case COMMIT:
            if (d->in_tx) commit(d);
            break;
        case REQUEST: CHECK_OK(d->ops->enqueue(d->s, &request, &e), &e); break;
        case WITHDRAW: CHECK_OK(d->ops->withdraw(d->s, &request.digest, &e), &e); break;
        case INSPECT: CHECK_OK(d->ops->inspect(d->s, &request.digest, &d->arena, &p, &e), &e);
    }
}

static void wait_change(struct daemon *d, long ms) {
    (void)xpl_cond_wait_until(&d->changed, &d->mu, xpl_clock_ns() + (uint64_t)ms * 1000000u);
}

static void *daemon_main(void *arg) {
    struct daemon *const d = arg;
    pthread_mutex_lock(&d->mu);
    while (!d->stop) {
        if (!d->busy) {
            wait_change(d, LONG_MS);
            continue;
        }
        pthread_mutex_unlock(&d->mu);
        do_step(d);
        pthread_mutex_lock(&d->mu);
        d->busy = false;
        pthread_cond_signal(&d->changed);
    }
    pthread_mutex_unlock(&d->mu);
    return NULL;
}

// ---- orders ----

// Waits for its step; false: that waits for the other daemon.
static bool is_done(struct daemon *d, long ms) {
    const uint64_t until = xpl_clock_ns() + (uint64_t)ms * 1000000u;
    pthread_mutex_lock(&d->mu);
    while (d->busy && xpl_cond_wait_until(&d->changed, &d->mu, until))
        continue;
    const bool done = !d->busy;
    pthread_mutex_unlock(&d->mu);
    return done;
}

// As it does nothing else, no step of it begins before this one has ended.
static void begin_step(struct daemon *d, enum step step) {
    CHECK(is_done(d, LONG_MS));
    pthread_mutex_lock(&d->mu);
    d->step = step;
    d->busy = true;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->mu);
    (void)is_done(d, WAIT_MS);
}

// Bit i of `order`: which of the two does the i-th step.  One that waits lets the other go first.
static void run_order(struct daemon d[2], const struct script *const scripts[2], unsigned order) {
    size_t at[2] = {0};
    for (size_t i = 0; i < scripts[0]->n + scripts[1]->n; i++) {
        size_t k = order >> i & 1;
        if (at[k] == scripts[k]->n || (!is_done(&d[k], 0) && at[!k] < scripts[!k]->n)) k = !k;
        begin_step(&d[k], scripts[k]->steps[at[k]++]);
    }
    CHECK(is_done(&d[0], LONG_MS) && is_done(&d[1], LONG_MS));
}

static void check_order(struct daemon d[3], const struct script *const scripts[2], unsigned order) {
    struct xpl_job_progress p;
    struct xpl_error e = {0};
    struct file state[FILES] = {0};
    for (size_t i = 0; i < 3; i++) {
        d[i].state = state;
        xpl_arena_init(&d[i].arena, 1 << 20);
    }
    CHECK_OK(d[2].ops->enqueue(d[2].s, &request, &e), &e);
    run_order(d, scripts, order);
    while (claim(&d[2])) { // the rest
        conclude(&d[2], 0);
        commit(&d[2]);
    }
    CHECK_OK(d[2].ops->inspect(d[2].s, &request.digest, &d[2].arena, &p, &e), &e);
    CHECK_EQ(p.n_left, 0);
    const bool again = scripts[1] == &front; // requested once more, or withdrawn
    for (size_t i = 0; i < FILES; i++)
        if (again ? state[i].n_made > 2 : state[i].n_made != 1) {
            fprintf(stderr, "order %x: file %zu left its job %d times\n", order, i,
                    state[i].n_made);
            FAIL_TEST("not once");
        }
    for (size_t i = 0; i < 3; i++)
        xpl_arena_fini(&d[i].arena);
}

static void check_orders(struct daemon d[3], const struct script *a, const struct script *b) {
    const struct script *const scripts[2] = {a, b};
    for (unsigned order = 0; order < 1u << (a->n + b->n); order++)
        if ((size_t)__builtin_popcount(order) == b->n) check_order(d, scripts, order);
}

int main(void) {
    const char *const why = pg_begin();
    struct daemon d[3] = {0};
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    make_database();
    for (size_t i = 0; i < 3; i++) {
        const struct xpl_store_options o = {.size = sizeof o, .dir = "", .url = pg_url(database)};
        struct xpl_error e = {0};
        CHECK_OK(xpl_store_open(&o, &d[i].s, &e), &e);
        while (xpl_store_role(d[i].s) != XPL_STORE_WRITER)
            pg_pause_ms(1);
        d[i].ops = xpl_store_jobs(d[i].s);
        pthread_mutex_init(&d[i].mu, NULL);
        xpl_cond_init(&d[i].changed);
        CHECK_EQ(pthread_create(&d[i].thread, NULL, daemon_main, &d[i]), 0);
    }
    check_orders(d, &work, &work);
    check_orders(d, &work, &back);
    check_orders(d, &work, &cut);
    check_orders(d, &work, &front);
    check_orders(d, &cut, &front);
    for (size_t i = 0; i < 3; i++) {
        pthread_mutex_lock(&d[i].mu);
        d[i].stop = true;
        pthread_cond_signal(&d[i].changed);
        pthread_mutex_unlock(&d[i].mu);
        CHECK_EQ(pthread_join(d[i].thread, NULL), 0);
        xpl_store_close(d[i].s);
    }
    return 0;
}
