// SPDX-License-Identifier: Apache-2.0
#include "server/loop.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"

struct post {
    struct post *next;
    void (*fn)(void *);
    void *arg;
};

struct xpl_loop {
    uv_loop_t uv;
    uv_async_t wake;
    pthread_mutex_t mu;
    struct post *head, **tail; // under the mutex
    struct post *batch;        // those that run now, on the loop's thread
    bool closed;
};

static void run_batch(struct xpl_loop *l) {
    while (l->batch) {
        struct post *const it = l->batch;
        l->batch = it->next;
        it->fn(it->arg);
        xpl_sys_free(it);
    }
}

static void on_wake(uv_async_t *h) {
    struct xpl_loop *l = h->data;
    run_batch(l); // the rest of it, when one of its posts closes the loop: in order all the same
    pthread_mutex_lock(&l->mu); // uv_async_send coalesces: take everything there is
    l->batch = l->head;
    l->head = NULL, l->tail = &l->head;
    pthread_mutex_unlock(&l->mu);
    run_batch(l);
}

struct xpl_loop *xpl_loop_new(void) {
    struct xpl_loop *l = xpl_sys_alloc(sizeof *l);
    if (!l) return NULL;
    *l = (struct xpl_loop){.tail = &l->head};
    if (uv_loop_init(&l->uv) != 0) {
        xpl_sys_free(l);
        return NULL;
    }
    if (uv_async_init(&l->uv, &l->wake, on_wake) != 0) {
        uv_loop_close(&l->uv);
        xpl_sys_free(l);
        return NULL;
    }
    l->wake.data = l;
    pthread_mutex_init(&l->mu, NULL);
    return l;
}

uv_loop_t *xpl_loop_uv(struct xpl_loop *l) {
    return &l->uv;
}

bool xpl_loop_post(struct xpl_loop *l, void (*fn)(void *arg), void *arg) {
    struct post *it = xpl_sys_alloc(sizeof *it);
    if (!it) return false;
    *it = (struct post){.fn = fn, .arg = arg};
    pthread_mutex_lock(&l->mu);
    const bool open = !l->closed;
    if (open) {
        *l->tail = it;
        l->tail = &it->next;
        uv_async_send(&l->wake); // under the lock: the handle cannot be closed meanwhile
    }
    pthread_mutex_unlock(&l->mu);
    if (!open) xpl_sys_free(it);
    return open;
}

void xpl_loop_close(struct xpl_loop *l) {
    pthread_mutex_lock(&l->mu);
    l->closed = true;
    pthread_mutex_unlock(&l->mu);
    on_wake(&l->wake);
    uv_close((uv_handle_t *)&l->wake, NULL);
}

void xpl_loop_free(struct xpl_loop *l) {
    if (uv_loop_close(&l->uv) != 0) abort();
    pthread_mutex_destroy(&l->mu);
    xpl_sys_free(l);
}
