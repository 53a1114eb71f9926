// SPDX-License-Identifier: Apache-2.0
// Jobs: products that daemons request from each other through a shared store.  Part of the store's
// interface, only in stores that many daemons write.
//
//   front:  enqueue ── inspect … ──► GONE: the product is stored, or this daemon makes it
//   worker: claim ── renew … ──► begin, put …, conclude, commit
//
// A claim is a lease: when it expires, the next claim gets the job, with a higher attempt.  Owner
// and attempt are the fence: `conclude` fails if another daemon has the job, and then the puts of
// the same transaction are not stored.  Leases only save work; results are right without them,
// because equal keys have equal bytes from every daemon.
//
// A file of which a job was claimed XPL_JOB_ATTEMPTS times and never concluded is set aside: it
// most likely kills its readers.  A file that lost one job is suspect: its jobs are only given to
// an otherwise idle worker, so that no other job is lost with them.
//
// Only the store's clock counts.  Threads: any; `conclude` belongs to the transaction of its
// thread.  Errors: UNAVAILABLE (away or busy), FAILED_PRECONDITION (not written by this process
// now), RESOURCE_EXHAUSTED.
#ifndef XPL_STORAGE_STORE_JOBS_H_
#define XPL_STORAGE_STORE_JOBS_H_

#include "storage/store/store.h"

struct xpl_arena;

enum {
    XPL_JOB_ATTEMPTS = 3,
    XPL_JOB_DIGEST = 16,
    XPL_JOB_MAX_CLAIM = 64,
    XPL_JOB_MAX_LISTED = 10000
};
// How long a job that was set aside stays so, before its file is tried again.
enum { XPL_JOB_ASIDE_S = 600 };

// A product of one host's file, as the requester sees that file.
struct xpl_job_spec {
    xpl_str_t session, host; // names in the catalogue
    uint64_t size_bytes;     // of the file
    int64_t mtime_ns;
    xpl_str_t product;
    uint32_t version; // of the product
    unsigned variant;
    xpl_str_t traceparent; // of the request that asked first, for the log; or empty
};

// What a job is known by: equal specs, traceparent aside, have equal digests.
struct xpl_job_digest {
    uint8_t bytes[XPL_JOB_DIGEST];
};

struct xpl_job_claim {
    struct xpl_job_digest digest;
    int64_t attempt; // from 1; the fence, together with the owner, which is this store
};

struct xpl_job {
    struct xpl_job_claim claim;
    struct xpl_job_spec spec;
    int64_t queued_ms; // since the request
};

// Which jobs a worker takes.
struct xpl_job_offer {
    const struct xpl_store_version *products; // that it makes, with their versions
    size_t n_products;
    uint64_t max_bytes; // of a file
    size_t max;         // jobs, XPL_JOB_MAX_CLAIM at most
    bool alone;         // it does nothing else: suspect jobs may be given to it
    uint64_t lease_ms;
};

enum xpl_job_state {
    XPL_JOB_GONE,      // concluded, or never asked for
    XPL_JOB_QUEUED,    // unclaimed, and not lost
    XPL_JOB_RUNNING,   // a lease is on it
    XPL_JOB_SET_ASIDE, // its file was lost XPL_JOB_ATTEMPTS times
    XPL_JOB_SUSPECT    // its file was lost less often, and it is unclaimed
};

// What daemons tell of themselves.
struct xpl_job_daemon {
    xpl_str_t name, role, version; // text for people; the role also counts
    int64_t n_jobs;                // that it works on
};

// What else daemons have leases on.
enum xpl_job_lease_kind {
    XPL_JOB_LEASE_SCHEDULE,
    XPL_JOB_LEASE_CAPTURE,
    XPL_JOB_LEASE_SCANNER,   // of a bucket
    XPL_JOB_LEASE_CATALOGUE, // the tables of sessions
    XPL_JOB_LEASE_KINDS
};

struct xpl_job_stats {
    int64_t queued, running, set_aside, workers;
    int64_t schedules;                   // also unclaimed ones
    int64_t leases[XPL_JOB_LEASE_KINDS]; // of all daemons
    int64_t held[XPL_JOB_LEASE_KINDS];   // those of this one
};

// A daemon that reports, and a job that one works on or that is set aside.
struct xpl_job_member {
    xpl_str_t id, name, role, version;
    int64_t expires_ms; // from now
};

struct xpl_job_work {
    xpl_str_t owner; // id of the daemon
    xpl_str_t session, host, product;
    int64_t attempt, queued_ms;
    bool set_aside; // not claimable
};

// A lease and its owner.  Without an owner: an unclaimed schedule.
struct xpl_job_lease {
    xpl_str_t kind, name;
    xpl_str_t owner;    // id of the daemon
    int64_t expires_ms; // from now
};

struct xpl_job_fleet {
    struct xpl_job_stats stats;
    struct xpl_job_member *members; // by role and name; at most XPL_JOB_MAX_LISTED
    struct xpl_job_work *work;      // by session and host; at most XPL_JOB_MAX_LISTED
    struct xpl_job_lease *leases;   // by kind and name; at most XPL_JOB_MAX_LISTED
    size_t n_members, n_work, n_leases;
};

struct xpl_job_ops {
    // Requests all of these; existing jobs stay unchanged.  Positions in the list are ranks: lists
    // take turns, one job each, so that a short list does not wait for a long one.  Fills ret[n].
    xpl_status_t (*enqueue)(struct xpl_store *s, const struct xpl_job_spec *specs, size_t n,
                            struct xpl_job_digest *ret, struct xpl_error *err);
    // Takes jobs, or none (*ret_n 0).  `arena` holds them.
    xpl_status_t (*claim)(struct xpl_store *s, const struct xpl_job_offer *o,
                          struct xpl_arena *arena, struct xpl_job **ret, size_t *ret_n,
                          struct xpl_error *err);
    // The leases of these begin anew.  ret_kept[i]: the job is still ours.
    xpl_status_t (*renew)(struct xpl_store *s, const struct xpl_job_claim *c, size_t n,
                          uint64_t lease_ms, bool *ret_kept, struct xpl_error *err);
    // Removes a job that is done, or that this daemon cannot do while another may.  Within a
    // transaction: together with its puts, as its last call.  NOT_FOUND: another daemon has the
    // job, and the transaction is aborted.
    xpl_status_t (*conclude)(struct xpl_store *s, const struct xpl_job_claim *c,
                             struct xpl_error *err);
    // Hands jobs back that were not begun: the attempt does not count, and others may claim them
    // in `pause_ms`.
    xpl_status_t (*give_back)(struct xpl_store *s, const struct xpl_job_claim *c, size_t n,
                              uint64_t pause_ms, struct xpl_error *err);
    // What became of jobs.
    xpl_status_t (*inspect)(struct xpl_store *s, const struct xpl_job_digest *d, size_t n,
                            enum xpl_job_state *ret, struct xpl_error *err);
    // Withdraws jobs that no worker has claimed: the requester makes their products.
    xpl_status_t (*withdraw)(struct xpl_store *s, const struct xpl_job_digest *d, size_t n,
                             struct xpl_error *err);
    // The heartbeat of this daemon, valid for `ms`.  Periodically also removes old rows: daemons
    // that have ended, jobs set aside XPL_JOB_ASIDE_S ago, jobs unclaimed for a day. 0 ms: the
    // daemon ends.
    xpl_status_t (*report)(struct xpl_store *s, const struct xpl_job_daemon *d, uint64_t ms,
                           struct xpl_error *err);
    xpl_status_t (*get_stats)(struct xpl_store *s, struct xpl_job_stats *ret,
                              struct xpl_error *err);
    // Who is there, and who works on what.  `arena` holds it.
    xpl_status_t (*list)(struct xpl_store *s, struct xpl_arena *arena, struct xpl_job_fleet *ret,
                         struct xpl_error *err);
};

// NULL: daemons do not share this store.
static inline const struct xpl_job_ops *xpl_store_jobs(const struct xpl_store *s) {
    return s->ops->jobs;
}

#endif
