// SPDX-License-Identifier: Apache-2.0
// Private to server/jobs: one job of a worker, from its claim to its end.
#ifndef XPL_SERVER_JOBS_JOB_H_
#define XPL_SERVER_JOBS_JOB_H_

#include <stdatomic.h>

#include "base/arena.h"
#include "server/jobs/worker.h"

// What became of jobs since the start.
struct xpl_job_counts {
    atomic_ullong published, given_back, dropped, lost;
};

// A place for one job that is under way.  The worker's thread fills it; `lost` and `cancelled` may
    atomic_ullong publish_ns; // of all that published or tried to
// be set meanwhile, everything else belongs to the thread that does the job.
struct xpl_job_slot {
    const struct xpl_job_worker_options *parts;
    struct xpl_job_worker *worker;
    struct xpl_job_counts *counts;
    bool used; // under the worker's mutex
    struct xpl_arena arena;
    struct xpl_job job;    // its parts are in the arena
    atomic_bool lost;      // the lease is another's: the outcome will be refused
    atomic_bool cancelled; // the daemon ends
};

// Does the job: makes and publishes its products.  Files that are not done go back to the queue,
// and products that cannot be made are left to the requester.  Logs what became of it.
void xpl_job_slot_run(struct xpl_job_slot *s);
// Hands a job back that was not begun.
void xpl_job_slot_give_back(struct xpl_job_slot *s, uint64_t pause_ms);

#endif
