// SPDX-License-Identifier: Apache-2.0
#include "base/exec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "base/arena.h"

static void serial_run(struct xpl_exec *e, size_t n, xpl_exec_fn fn, void *ctx) {
    (void)e;
    for (size_t i = 0; i < n; i++)
        fn(ctx, i);
}

struct xpl_exec xpl_exec_serial(void) {
    return (struct xpl_exec){.run = serial_run, .width = 1};
}

struct xpl_exec_pool {
    struct xpl_exec exec; // first: xpl_exec_pool_get casts
    pthread_mutex_t mu;
    pthread_cond_t work, done;
    pthread_t *threads;
    unsigned started, busy;
    uint64_t round; // counts jobs, so that a thread joins each once
    bool stop;
    xpl_exec_fn fn;
    void *ctx;
    size_t n;
    atomic_size_t next;
};

static void pieces(struct xpl_exec_pool *p) {
    for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < p->n;)
        p->fn(p->ctx, i);
}

static void *thread_main(void *arg) {
    struct xpl_exec_pool *p = arg;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->mu);
    for (;;) {
        while (!p->stop && p->round == seen)
            pthread_cond_wait(&p->work, &p->mu);
        if (p->stop) break;
        seen = p->round;
        pthread_mutex_unlock(&p->mu);
        pieces(p);
        pthread_mutex_lock(&p->mu);
        if (--p->busy == 0) pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->mu);
    return NULL;
}

static void pool_run(struct xpl_exec *e, size_t n, xpl_exec_fn fn, void *ctx) {
    struct xpl_exec_pool *p = (struct xpl_exec_pool *)e;
    if (n < 2 || p->started == 0) {
        serial_run(e, n, fn, ctx);
        return;
    }
    pthread_mutex_lock(&p->mu);
    p->fn = fn, p->ctx = ctx, p->n = n;
    atomic_store(&p->next, 0);
    p->busy = p->started;
    p->round++;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mu);
    pieces(p);
    pthread_mutex_lock(&p->mu);
    while (p->busy)
        pthread_cond_wait(&p->done, &p->mu);
    pthread_mutex_unlock(&p->mu);
}

struct xpl_exec_pool *xpl_exec_pool_new(unsigned width) {
    if (width == 0) {
        const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        width = cpus > 0 ? (unsigned)cpus : 1;
    }
    struct xpl_exec_pool *p = xpl_sys_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (struct xpl_exec_pool){.exec.run = pool_run};
    p->threads = xpl_sys_alloc(sizeof *p->threads * width);
    if (!p->threads) {
        xpl_sys_free(p);
        return NULL;
    }
    pthread_mutex_init(&p->mu, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    while (p->started + 1 < width &&
           pthread_create(&p->threads[p->started], NULL, thread_main, p) == 0)
        p->started++;
    p->exec.width = p->started + 1;
    return p;
}

void xpl_exec_pool_free(struct xpl_exec_pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->mu);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mu);
    for (unsigned i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->mu);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    xpl_sys_free(p->threads);
    xpl_sys_free(p);
}

struct xpl_exec *xpl_exec_pool_get(struct xpl_exec_pool *p) {
    return &p->exec;
}
