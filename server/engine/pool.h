// SPDX-License-Identifier: Apache-2.0
// The daemon's worker threads: a bounded queue of jobs, and an exec that lets a running job spread
// its pieces over workers that would otherwise idle.
#ifndef XPL_SERVER_ENGINE_POOL_H_
#define XPL_SERVER_ENGINE_POOL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/exec.h"

struct xpl_pool;

// `workers` threads (0: number of processors) and at most `max_queued` waiting jobs.  NULL when
// threads or memory cannot be had.
struct xpl_pool *xpl_pool_new(unsigned workers, size_t max_queued);
// Queues fn(arg).  False when the queue is full or the pool stops: fn never runs, and the caller
// answers RESOURCE_EXHAUSTED.  Any thread.
bool xpl_pool_submit(struct xpl_pool *p, void (*fn)(void *arg), void *arg)
    __attribute__((warn_unused_result));
// Any thread; jobs that wait already stay.
void xpl_pool_set_limit(struct xpl_pool *p, size_t max_queued);
// Runs what is queued, then joins.  No submit may come afterwards.
void xpl_pool_free(struct xpl_pool *p);

struct xpl_pool_state {
    unsigned workers, busy;
    size_t queued, max_queued;
    uint64_t idle_since_ns; // CLOCK_MONOTONIC; 0 while a job is queued or running
};
struct xpl_pool_state xpl_pool_get_state(struct xpl_pool *p);

// An exec for one running job.  Its pieces are run by the caller and by idle workers, which take
// pieces before new jobs.  `cancelled` may be NULL.  Lives as long as the job.
struct xpl_pool_exec {
    struct xpl_exec exec; // hand out &x.exec
    struct xpl_pool *pool;
    bool (*is_cancelled)(void *arg);
    void *arg;
};
void xpl_pool_exec_init(struct xpl_pool_exec *x, struct xpl_pool *p,
                        bool (*is_cancelled)(void *arg), void *arg);

#endif
