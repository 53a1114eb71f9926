// SPDX-License-Identifier: Apache-2.0
// Runs independent pieces of work on threads.  analysis/ has no other access to threads: its caller
// passes an exec.  Results must not depend on which thread ran what, or when.
#ifndef XPL_BASE_EXEC_H_
#define XPL_BASE_EXEC_H_

#include <stdbool.h>
#include <stddef.h>

typedef void (*xpl_exec_fn)(void *ctx, size_t i);

struct xpl_exec {
    // Calls fn(ctx, i) once for each i < n, on any threads, and returns when all have returned.
    void (*run)(struct xpl_exec *e, size_t n, xpl_exec_fn fn, void *ctx);
    // True once the result is not needed (client gone, deadline passed).  May be NULL: never.
    // Callable from any thread running a piece; long loops call it every few thousand events.
    bool (*cancelled)(struct xpl_exec *e);
    unsigned width; // how many pieces run at once, at least 1: a hint for cutting work up
};

static inline void xpl_exec_run(struct xpl_exec *e, size_t n, xpl_exec_fn fn, void *ctx) {
    e->run(e, n, fn, ctx);
}
static inline bool xpl_exec_cancelled(struct xpl_exec *e) {
    return e->cancelled && e->cancelled(e);
}

// Runs everything in order on the calling thread.
struct xpl_exec xpl_exec_serial(void);

// A fixed set of threads for one caller at a time; the caller works too, so width - 1 are started.
struct xpl_exec_pool;
// width 0 means the number of processors.  Where fewer threads can be had, the pool is as wide as
// those allow: 1 without any.  NULL on OOM.
struct xpl_exec_pool *xpl_exec_pool_new(unsigned width);
// Joins the threads.  NULL is fine.
void xpl_exec_pool_free(struct xpl_exec_pool *p);
// Owned by the pool.
struct xpl_exec *xpl_exec_pool_get(struct xpl_exec_pool *p);

// Cancellation of work: the worker polls it a few times a second, on its thread.
struct xpl_cancel {
    bool (*is_cancelled)(void *arg);
    void *arg;
};
// NULL is work that is never cancelled.
static inline bool xpl_cancel_is_set(const struct xpl_cancel *c) {
    return c && c->is_cancelled(c->arg);
}

#endif
