// SPDX-License-Identifier: Apache-2.0
// One job, from its claim to its end.  The jobs of a conversion (../conversion.h) are not queued,
// and have no claim.
#ifndef XPL_SERVER_JOBS_JOB_H_
#define XPL_SERVER_JOBS_JOB_H_

#include <stdatomic.h>

#include "base/arena.h"
#include "server/jobs/worker.h"

struct xpl_host;

// What became of jobs since the start.
struct xpl_job_counts {
    atomic_ullong published, given_back, dropped, lost;
    atomic_ullong publish_ns; // of all that published or tried to
};

// A place for one job that is under way.  The worker's thread fills it; `lost` and `cancelled` may
// be set meanwhile, everything else belongs to the thread that does the job.
struct xpl_job_slot {
    const struct xpl_job_worker_options *parts;
    struct xpl_job_worker *worker; // NULL: a conversion's
    struct xpl_job_counts *counts;
    bool used; // under the worker's mutex
    struct xpl_arena arena;
    struct xpl_job job; // its parts are in the arena; claim.id 0: it was not queued
    // Called for a file with a product that is not stored; or NULL.  On the job's thread.
    void (*left)(void *arg, const struct xpl_job_file *file, const struct xpl_error *why);
    void *left_arg;
    // After the job: files that go back to the queue, in the arena, and products that were stored.
    struct xpl_job_file *rest;
    size_t n_rest, n_stored;
    atomic_bool lost;      // the lease is another's: the outcome will be refused
    atomic_bool cancelled; // the daemon ends
};

// Does the job: makes and publishes its products.  Files that are not done go back to the queue,
// and products that cannot be made are left to the requester.  Logs what became of it.
void xpl_job_slot_run(struct xpl_job_slot *s);
// How many of the first files are the next batch, of `n` that are left to that many threads: less
// and less toward the end, so that all threads end at once.
size_t xpl_job_next_batch(const struct xpl_job_file *files, size_t n, size_t n_threads);
// How a host's file is named in jobs.
struct xpl_job_file xpl_job_file_of(const struct xpl_host *h);
// Hands a job back that was not begun.
void xpl_job_slot_give_back(struct xpl_job_slot *s, uint64_t pause_ms);

#endif
