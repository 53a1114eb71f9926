// SPDX-License-Identifier: Apache-2.0
// server/engine/pool: the bound of the queue, order, idle times, stopping, and pieces that spread
// over idle workers.
#include "server/engine/pool.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "tests/check.h"

// A job that says that it began, and waits to be let go.
struct blocker {
    sem_t began, go;
};

static void blocker_init(struct blocker *b) {
    CHECK(sem_init(&b->began, 0, 0) == 0 && sem_init(&b->go, 0, 0) == 0);
}
static void blocker_fini(struct blocker *b) {
    CHECK(sem_destroy(&b->began) == 0 && sem_destroy(&b->go) == 0);
}
static void wait_for(sem_t *s) {
    while (sem_wait(s) != 0) // a signal
        ;
}
static void block(void *arg) {
    struct blocker *const b = arg;
    CHECK_EQ(sem_post(&b->began), 0);
    wait_for(&b->go);
}

static void add_one(void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void pause_ms(long ms) {
    const struct timespec t = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&t, NULL);
}

// Waits until nothing is queued or running.
static struct xpl_pool_state wait_idle(struct xpl_pool *p) {
    struct xpl_pool_state s;
    while ((s = xpl_pool_get_state(p)).idle_since_ns == 0)
        pause_ms(1);
    return s;
}

// ---- the queue ----

static void test_bound(void) {
    enum { WORKERS = 2, QUEUED = 3 };
    XPL_AUTO(blocker_fini) struct blocker b;
    blocker_init(&b);
    atomic_int ran = 0;
    struct xpl_pool *const p = xpl_pool_new(WORKERS, QUEUED);
    CHECK(p);
    for (int i = 0; i < WORKERS; i++) {
        CHECK(xpl_pool_submit(p, block, &b));
        wait_for(&b.began); // it runs: only waiting jobs count
    }
    for (int i = 0; i < QUEUED; i++)
        CHECK(xpl_pool_submit(p, add_one, &ran));
    CHECK(!xpl_pool_submit(p, add_one, &ran)); // full
    struct xpl_pool_state s = xpl_pool_get_state(p);
    CHECK_EQ(s.workers, WORKERS);
    CHECK_EQ(s.busy, WORKERS);
    CHECK_EQ(s.queued, QUEUED);
    CHECK_EQ(s.max_queued, QUEUED);
    CHECK_EQ(s.idle_since_ns, 0);
    xpl_pool_set_limit(p, QUEUED + 1);
    CHECK(xpl_pool_submit(p, add_one, &ran));
    CHECK(!xpl_pool_submit(p, add_one, &ran));
    xpl_pool_set_limit(p, 1); // those that wait stay
    CHECK_EQ(xpl_pool_get_state(p).queued, QUEUED + 1);
    CHECK(!xpl_pool_submit(p, add_one, &ran));
    CHECK_EQ(atomic_load(&ran), 0);
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(sem_post(&b.go), 0);
    s = wait_idle(p);
    CHECK_EQ(atomic_load(&ran), QUEUED + 1); // the refused job never ran
    CHECK_EQ(s.busy, 0);
    CHECK_EQ(s.queued, 0);
    CHECK(xpl_pool_submit(p, add_one, &ran)); // there is room again
    (void)wait_idle(p);
    CHECK_EQ(atomic_load(&ran), QUEUED + 2);
    xpl_pool_free(p);
}

struct sequence {
    int next;
    struct step {
        struct sequence *of;
        int number;
    } steps[100];
};
static void check_turn(void *arg) {
    struct step *const s = arg;
    CHECK_EQ(s->of->next++, s->number);
}

// One worker: jobs run in the order in which they came; free runs queued jobs.
static void test_order_and_stop(void) {
    static struct sequence q;
    struct blocker b;
    blocker_init(&b);
    struct xpl_pool *const p = xpl_pool_new(1, 100);
    CHECK(p);
    CHECK(xpl_pool_submit(p, block, &b));
    wait_for(&b.began);
    for (int i = 0; i < 100; i++) {
        q.steps[i] = (struct step){&q, i};
        CHECK(xpl_pool_submit(p, check_turn, &q.steps[i]));
    }
    CHECK_EQ(q.next, 0);
    CHECK_EQ(sem_post(&b.go), 0);
    xpl_pool_free(p);
    CHECK_EQ(q.next, 100);
    blocker_fini(&b);
    xpl_pool_free(NULL);
}

enum { QUEUED_AT_MOST = 60000 }; // each a millisecond after the other

struct late {
    struct xpl_pool *pool;
    struct blocker b;
    atomic_int ran;
    bool refused;
};
static void submit_late(void *arg) {
    struct late *const l = arg;
    block(&l->b);
    for (int i = 0; i < QUEUED_AT_MOST; i++) { // until the pool stops
        if (!xpl_pool_submit(l->pool, add_one, &l->ran)) {
            l->refused = true;
            return;
        }
        pause_ms(1);
    }
}
static void *free_pool(void *arg) {
    xpl_pool_free(arg);
    return NULL;
}

// A job that submits while the pool stops is refused; jobs accepted before that still run.
static void test_submit_while_stopping(void) {
    struct late l = {0};
    blocker_init(&l.b);
    l.pool = xpl_pool_new(1, QUEUED_AT_MOST + 2);
    CHECK(l.pool);
    CHECK(xpl_pool_submit(l.pool, submit_late, &l));
    wait_for(&l.b.began);
    CHECK(xpl_pool_submit(l.pool, add_one, &l.ran));
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, free_pool, l.pool), 0);
    CHECK_EQ(sem_post(&l.b.go), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK(l.refused);
    CHECK(atomic_load(&l.ran) >= 1);
    blocker_fini(&l.b);
}

static void test_no_queue(void) {
    atomic_int ran = 0;
    struct xpl_pool *const p = xpl_pool_new(0, 0);
    CHECK(p);
    CHECK_EQ(xpl_pool_get_state(p).workers, sysconf(_SC_NPROCESSORS_ONLN));
    CHECK(!xpl_pool_submit(p, add_one, &ran)); // nothing may wait, not even for a moment
    xpl_pool_free(p);
    CHECK_EQ(atomic_load(&ran), 0);
}

static void test_idle_time(void) {
    const uint64_t begin = xpl_clock_ns();
    XPL_AUTO(blocker_fini) struct blocker b;
    blocker_init(&b);
    struct xpl_pool *const p = xpl_pool_new(2, 10);
    CHECK(p);
    const uint64_t first = xpl_pool_get_state(p).idle_since_ns;
    CHECK(first >= begin && first <= xpl_clock_ns()); // from its beginning
    CHECK(xpl_pool_submit(p, block, &b));
    CHECK_EQ(xpl_pool_get_state(p).idle_since_ns, 0); // queued or running
    wait_for(&b.began);
    CHECK_EQ(xpl_pool_get_state(p).idle_since_ns, 0);
    CHECK_EQ(xpl_pool_get_state(p).busy, 1);
    CHECK(xpl_pool_submit(p, block, &b));
    wait_for(&b.began);
    CHECK_EQ(sem_post(&b.go), 0);
    while (xpl_pool_get_state(p).busy == 2)
        pause_ms(1);
    CHECK_EQ(xpl_pool_get_state(p).idle_since_ns, 0); // the other one still runs
    const uint64_t let_go = xpl_clock_ns();
    CHECK_EQ(sem_post(&b.go), 0);
    CHECK(wait_idle(p).idle_since_ns >= let_go);
    xpl_pool_free(p);
}

enum { SENDERS = 4, EACH = 3000 };
struct sender {
    struct xpl_pool *pool;
    atomic_int *ran;
    int taken;
};
static void *send_jobs(void *arg) {
    struct sender *const s = arg;
    for (int i = 0; i < EACH; i++)
        s->taken += xpl_pool_submit(s->pool, add_one, s->ran);
    return NULL;
}

// From many threads into a short queue: accepted jobs ran once, refused ones did not.
static void test_senders(void) {
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    atomic_int ran = 0;
    int taken = 0;
    struct xpl_pool *const p = xpl_pool_new(3, 5);
    CHECK(p);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.pool = p, .ran = &ran};
        CHECK_EQ(pthread_create(&threads[i], NULL, send_jobs, &senders[i]), 0);
    }
    for (int i = 0; i < SENDERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        taken += senders[i].taken;
    }
    xpl_pool_free(p);
    CHECK_EQ(atomic_load(&ran), taken);
    CHECK(taken > 0);
}

// ---- pieces ----

enum { PIECES = 1000 };

struct split_job {
    struct xpl_pool *pool;
    struct xpl_pool_exec exec;
    size_t n;
    atomic_int runs[PIECES];
    atomic_int total;
    bool all_ran; // when run returned
    sem_t over;
};

static void piece(void *ctx, size_t i) {
    struct split_job *const s = ctx;
    CHECK(i < s->n);
    atomic_fetch_add(&s->runs[i], 1);
    atomic_fetch_add(&s->total, 1);
}
static void run_split_job(void *arg) {
    struct split_job *const s = arg;
    xpl_pool_exec_init(&s->exec, s->pool, NULL, NULL);
    CHECK(!xpl_exec_cancelled(&s->exec.exec));
    xpl_exec_run(&s->exec.exec, s->n, piece, s);
    s->all_ran = (size_t)atomic_load(&s->total) == s->n;
    CHECK_EQ(sem_post(&s->over), 0);
}

// Several jobs at once, each with its pieces.
static void test_pieces(void) {
    enum { JOBS = 4 };
    static const size_t counts[] = {0, 1, 2, 3, 17, PIECES};
    static struct split_job jobs[JOBS];
    struct xpl_pool *const p = xpl_pool_new(3, 100);
    CHECK(p);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int j = 0; j < JOBS; j++) {
            memset(&jobs[j], 0, sizeof jobs[j]);
            jobs[j].pool = p;
            jobs[j].n = counts[c];
            CHECK_EQ(sem_init(&jobs[j].over, 0, 0), 0);
            CHECK(xpl_pool_submit(p, run_split_job, &jobs[j]));
        }
        for (int j = 0; j < JOBS; j++) {
            wait_for(&jobs[j].over);
            CHECK(jobs[j].all_ran);
            CHECK_EQ(jobs[j].exec.exec.width, 3);
            for (size_t i = 0; i < PIECES; i++)
                CHECK_EQ(atomic_load(&jobs[j].runs[i]), i < jobs[j].n);
            (void)wait_idle(p); // its semaphore may still be in use
            CHECK_EQ(sem_destroy(&jobs[j].over), 0);
        }
    }
    xpl_pool_free(p);
}

struct meeting {
    struct xpl_pool *pool;
    pthread_barrier_t all;
    pthread_t caller;
    atomic_int met;
    sem_t over;
};
static void meet(void *ctx, size_t i) {
    struct meeting *const m = ctx;
    (void)i;
    (void)pthread_barrier_wait(&m->all);
    if (!pthread_equal(pthread_self(), m->caller)) pause_ms(1);
    atomic_fetch_add(&m->met, 1);
}
static void run_meeting(void *arg) {
    struct meeting *const m = arg;
    struct xpl_pool_exec x;
    m->caller = pthread_self();
    atomic_store(&m->met, 0);
    xpl_pool_exec_init(&x, m->pool, NULL, NULL);
    xpl_exec_run(&x.exec, 3, meet, m);
    CHECK_EQ(atomic_load(&m->met), 3); // those of slower workers too
    CHECK_EQ(sem_post(&m->over), 0);
}

// Three pieces wait for one another: idle workers did take them, or this never ends.
static void test_workers_help(void) {
    struct meeting m;
    CHECK_EQ(pthread_barrier_init(&m.all, NULL, 3), 0);
    CHECK_EQ(sem_init(&m.over, 0, 0), 0);
    m.pool = xpl_pool_new(3, 10);
    CHECK(m.pool);
    for (int i = 0; i < 20; i++) {
        CHECK(xpl_pool_submit(m.pool, run_meeting, &m));
        wait_for(&m.over);
    }
    xpl_pool_free(m.pool);
    CHECK_EQ(pthread_barrier_destroy(&m.all), 0);
    CHECK_EQ(sem_destroy(&m.over), 0);
}

struct first {
    struct xpl_pool *pool;
    struct blocker b; // holds the other worker
    atomic_int pieces, pieces_before_job;
    sem_t queued, helped;
};
static void slow_piece(void *ctx, size_t i) {
    struct first *const f = ctx;
    if (i == 0) { // the caller's: lets the other worker go and waits until it took a piece
        wait_for(&f->queued);
        CHECK_EQ(sem_post(&f->b.go), 0);
        wait_for(&f->helped);
    } else if (atomic_fetch_add(&f->pieces, 1) == 0) {
        CHECK_EQ(sem_post(&f->helped), 0);
    }
}
static void run_first(void *arg) {
    struct first *const f = arg;
    struct xpl_pool_exec x;
    xpl_pool_exec_init(&x, f->pool, NULL, NULL);
    xpl_exec_run(&x.exec, 50, slow_piece, f);
}
static void note_pieces(void *arg) {
    struct first *const f = arg;
    atomic_store(&f->pieces_before_job, atomic_load(&f->pieces));
}

// A worker that becomes free takes pieces of the running job before the next job.
static void test_pieces_before_jobs(void) {
    struct first f = {0};
    blocker_init(&f.b);
    CHECK(sem_init(&f.queued, 0, 0) == 0 && sem_init(&f.helped, 0, 0) == 0);
    f.pool = xpl_pool_new(2, 10);
    CHECK(f.pool);
    CHECK(xpl_pool_submit(f.pool, block, &f.b));
    wait_for(&f.b.began);
    CHECK(xpl_pool_submit(f.pool, run_first, &f));
    CHECK(xpl_pool_submit(f.pool, note_pieces, &f));
    CHECK_EQ(sem_post(&f.queued), 0);
    xpl_pool_free(f.pool);
    CHECK_EQ(atomic_load(&f.pieces), 49);
    CHECK(atomic_load(&f.pieces_before_job) >= 48); // the caller may still be in the last one
    CHECK(sem_destroy(&f.queued) == 0 && sem_destroy(&f.helped) == 0);
    blocker_fini(&f.b);
}

struct nested {
    struct xpl_pool_exec exec;
    atomic_int total;
};
static void inner(void *ctx, size_t i) {
    (void)i;
    atomic_fetch_add(&((struct nested *)ctx)->total, 1);
}
static void outer(void *ctx, size_t i) {
    struct nested *const n = ctx;
    xpl_exec_run(&n->exec.exec, i, inner, n);
}
static void run_nested(void *arg) {
    struct nested *const n = arg;
    xpl_exec_run(&n->exec.exec, 20, outer, n);
}

static void test_nested(void) {
    struct nested n = {0};
    struct xpl_pool *const p = xpl_pool_new(3, 10);
    CHECK(p);
    xpl_pool_exec_init(&n.exec, p, NULL, NULL);
    CHECK(xpl_pool_submit(p, run_nested, &n));
    xpl_pool_free(p);
    CHECK_EQ(atomic_load(&n.total), 190);
}

static bool read_flag(void *arg) {
    return *(bool *)arg;
}

static void test_cancelled(void) {
    bool gone = false;
    struct xpl_pool_exec x;
    struct xpl_pool *const p = xpl_pool_new(1, 1);
    CHECK(p);
    xpl_pool_exec_init(&x, p, read_flag, &gone);
    CHECK(!xpl_exec_cancelled(&x.exec));
    gone = true;
    CHECK(xpl_exec_cancelled(&x.exec));
    xpl_pool_free(p);
}

// ---- failures to start ----

static void test_no_threads(void) {
    pthread_attr_t before, huge;
    CHECK_EQ(pthread_getattr_default_np(&before), 0);
    CHECK_EQ(pthread_attr_init(&huge), 0);
    CHECK_EQ(pthread_attr_setstacksize(&huge, (size_t)1 << 48), 0); // more than can be mapped
    CHECK_EQ(pthread_setattr_default_np(&huge), 0);
    CHECK(!xpl_pool_new(4, 4));
    CHECK_EQ(pthread_setattr_default_np(&before), 0);
    CHECK_EQ(pthread_attr_destroy(&huge), 0);
    CHECK_EQ(pthread_attr_destroy(&before), 0);
}

#if XPL_FAULTS
static void test_no_memory(void) {
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    CHECK(!xpl_pool_new(2, 2));
    xpl_fault_reset();
    atomic_int ran = 0;
    struct xpl_pool *const p = xpl_pool_new(2, 2);
    CHECK(p);
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    CHECK(!xpl_pool_submit(p, add_one, &ran));
    xpl_fault_reset();
    CHECK_EQ(xpl_pool_get_state(p).queued, 0);
    CHECK(xpl_pool_submit(p, add_one, &ran));
    xpl_pool_free(p);
    CHECK_EQ(atomic_load(&ran), 1);
}
#endif

int main(void) {
    alarm(60);
    test_bound();
    test_order_and_stop();
    test_submit_while_stopping();
    test_no_queue();
    test_idle_time();
    test_senders();
    test_pieces();
    test_workers_help();
    test_pieces_before_jobs();
    test_nested();
    test_cancelled();
    test_no_threads();
#if XPL_FAULTS
    test_no_memory();
#endif
    return 0;
}
