// SPDX-License-Identifier: Apache-2.0
// What `--role worker` does: takes jobs from the shared store (storage/store/jobs.h), makes their
// products with the daemon's manager of products, and publishes them.
//
// Daemons of other roles report in the same way, and take no jobs.
//
// One thread claims, renews and reports; the daemon's workers do the jobs.  As many are claimed as
// there are threads that wait for work, so that what dies with this process was begun.
#ifndef XPL_SERVER_JOBS_WORKER_H_
#define XPL_SERVER_JOBS_WORKER_H_

#include "server/engine/products.h"
#include "storage/store/jobs.h"

struct xpl_catalogue;
struct xpl_job_worker;
struct xpl_pool;

// Everything is borrowed and outlives it.
struct xpl_job_worker_options {
    struct xpl_store *store; // one that has jobs
    struct xpl_catalogue *catalogue;
    struct xpl_product_manager *products;
    struct xpl_pool *pool;
    uint64_t lease_ms;
    const char *role; // as it is reported; only a "worker" takes jobs
};

// For /metrics: jobs of this daemon since its start, and of all who share the store.
struct xpl_job_worker_stats {
    uint64_t claimed;                              // attempts begun
    uint64_t published, given_back, dropped, lost; // what became of them
    uint64_t queued_ms;                            // of those begun, from request to claim
    uint64_t claim_us, publish_us;                 // spent on claiming them and on publishing
    uint64_t leases;                               // held now
    bool knows_fleet;                              // else the database is away, or nobody counted
    struct xpl_job_stats fleet;                    // as of some seconds ago
};

// NULL when the thread or memory cannot be had.
struct xpl_job_worker *xpl_job_worker_new(const struct xpl_job_worker_options *o);
// Claims nothing more.  Jobs under way may finish within `grace_ms`; then they are given
// back.  ended(arg) is called on the worker's thread when that is over.  Does not wait.
void xpl_job_worker_stop(struct xpl_job_worker *w, uint64_t grace_ms, void (*ended)(void *arg),
                         void *arg);
// While this is called the worker's thread asks the database for `fleet` each 5 s; the first call
// after two minutes does not know it.  Waits for no lock that is held for long.  Any thread.
void xpl_job_worker_get_stats(struct xpl_job_worker *w, struct xpl_job_worker_stats *ret);
// Joins; without a stop before it, stops at once.  NULL is fine.
void xpl_job_worker_free(struct xpl_job_worker *w);

#endif
