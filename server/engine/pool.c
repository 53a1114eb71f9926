// SPDX-License-Identifier: Apache-2.0
#include "server/engine/pool.h"

#include <pthread.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"

struct job {
    struct job *next;
    void (*fn)(void *);
    void *arg;
};

// One xpl_exec_run in progress: on the stack of the thread that called it, linked while pieces are
// left to start.
struct share {
    struct share *next;
    xpl_exec_fn fn;
    void *ctx;
    size_t n, taken, helpers; // under the pool's mutex
    pthread_cond_t done;
};

struct xpl_pool {
    pthread_mutex_t mu;
    pthread_cond_t work;
    struct job *head, **tail;
    struct share *shares;
    size_t queued, max_queued;
    unsigned n, busy;
    uint64_t idle_since_ns;
    bool stop;
    pthread_t threads[];
};

static void unlink_share(struct xpl_pool *p, struct share *s) {
    for (struct share **at = &p->shares; *at; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        return;
    }
}

// Takes pieces of `s` until none is left.  The mutex is held on entry and on return.
static void work_on(struct xpl_pool *p, struct share *s) {
    while (s->taken < s->n) {
        const size_t i = s->taken++;
        if (s->taken == s->n) unlink_share(p, s);
        pthread_mutex_unlock(&p->mu);
        s->fn(s->ctx, i);
        pthread_mutex_lock(&p->mu);
    }
}

static void *worker(void *arg) {
    struct xpl_pool *p = arg;
    pthread_mutex_lock(&p->mu);
    for (;;) {
        if (p->shares) {
            struct share *s = p->shares;
            s->helpers++;
            work_on(p, s);
            if (--s->helpers == 0) pthread_cond_signal(&s->done);
        } else if (p->head) {
            struct job *j = p->head;
            p->head = j->next;
            if (!p->head) p->tail = &p->head;
            p->queued--;
            p->busy++;
            p->idle_since_ns = 0;
            pthread_mutex_unlock(&p->mu);
            j->fn(j->arg);
            xpl_sys_free(j);
            pthread_mutex_lock(&p->mu);
            if (--p->busy == 0 && !p->queued) p->idle_since_ns = xpl_clock_ns();
        } else if (p->stop) {
            break;
        } else {
            pthread_cond_wait(&p->work, &p->mu);
        }
    }
    pthread_mutex_unlock(&p->mu);
    return NULL;
}

struct xpl_pool *xpl_pool_new(unsigned workers, size_t max_queued) {
    if (workers == 0) {
        const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        workers = cpus > 0 ? (unsigned)cpus : 1;
    }
    struct xpl_pool *p = xpl_sys_alloc(sizeof *p + workers * sizeof p->threads[0]);
    if (!p) return NULL;
    *p = (struct xpl_pool){.max_queued = max_queued, .idle_since_ns = xpl_clock_ns()};
    p->tail = &p->head;
    pthread_mutex_init(&p->mu, NULL);
    pthread_cond_init(&p->work, NULL);
    while (p->n < workers && pthread_create(&p->threads[p->n], NULL, worker, p) == 0)
        p->n++;
    if (p->n == 0) {
        xpl_pool_free(p);
        return NULL;
    }
    return p;
}

bool xpl_pool_submit(struct xpl_pool *p, void (*fn)(void *arg), void *arg) {
    struct job *j = xpl_sys_alloc(sizeof *j);
    if (!j) return false;
    *j = (struct job){.fn = fn, .arg = arg};
    pthread_mutex_lock(&p->mu);
    const bool room = !p->stop && p->queued < p->max_queued;
    if (room) {
        *p->tail = j;
        p->tail = &j->next;
        p->queued++;
        p->idle_since_ns = 0;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->mu);
    if (!room) xpl_sys_free(j);
    return room;
}

void xpl_pool_set_limit(struct xpl_pool *p, size_t max_queued) {
    pthread_mutex_lock(&p->mu);
    p->max_queued = max_queued;
    pthread_mutex_unlock(&p->mu);
}

void xpl_pool_free(struct xpl_pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->mu);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mu);
    for (unsigned i = 0; i < p->n; i++)
        pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->mu);
    pthread_cond_destroy(&p->work);
    xpl_sys_free(p);
}

struct xpl_pool_state xpl_pool_get_state(struct xpl_pool *p) {
    pthread_mutex_lock(&p->mu);
    const struct xpl_pool_state s = {p->n, p->busy, p->queued, p->max_queued, p->idle_since_ns};
    pthread_mutex_unlock(&p->mu);
    return s;
}

static void run_shared(struct xpl_exec *e, size_t n, xpl_exec_fn fn, void *ctx) {
    struct xpl_pool *p = ((struct xpl_pool_exec *)e)->pool;
    if (n < 2) {
        if (n) fn(ctx, 0);
        return;
    }
    struct share s = {.fn = fn, .ctx = ctx, .n = n};
    pthread_cond_init(&s.done, NULL);
    pthread_mutex_lock(&p->mu);
    s.next = p->shares;
    p->shares = &s;
    pthread_cond_broadcast(&p->work);
    work_on(p, &s);
    while (s.helpers)
        pthread_cond_wait(&s.done, &p->mu);
    pthread_mutex_unlock(&p->mu);
    pthread_cond_destroy(&s.done);
}

static bool ask_cancelled(struct xpl_exec *e) {
    struct xpl_pool_exec *x = (struct xpl_pool_exec *)e;
    return x->is_cancelled && x->is_cancelled(x->arg);
}

void xpl_pool_exec_init(struct xpl_pool_exec *x, struct xpl_pool *p,
                        bool (*is_cancelled)(void *arg), void *arg) {
    *x = (struct xpl_pool_exec){
        .exec = {.run = run_shared, .cancelled = ask_cancelled, .width = p->n},
        .pool = p,
        .is_cancelled = is_cancelled,
        .arg = arg,
    };
}
