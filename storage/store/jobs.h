// SPDX-License-Identifier: Apache-2.0
// Jobs: products that daemons request from each other through a shared store.  Part of the store's
// interface, only in stores that many daemons write.
//
//   front:  enqueue ── inspect … ──► nothing left: the products are stored, or this daemon makes
//   them worker: claim ── renew … ──► begin, put …, conclude, commit
//
// A job is a batch: some products of some files of one session.  A request for a session is several
// of them, which share the digest of the request.
//
// A claim is a lock of the store's session: it ends with the connection, however that ends.  The
// store ends the connection of a daemon that is silent for `lease_ms`.  Only the owner of the lock
// can conclude, or a daemon that gets it again; otherwise puts of the transaction are not stored.
//
// A daemon that began a job is noted in it until it ends the job in an orderly way or, after it
// lost its connection, reports again.  A job with such notes is suspect: the next claim divides it,
// and a single file is only given to an otherwise idle worker.  It is set aside when
// XPL_JOB_ATTEMPTS daemons are noted, the last of which worked on this file only.
//
// Only the store's clock counts.  Threads: any; `conclude` belongs to the transaction of its
// thread.  Errors: UNAVAILABLE (away or busy), FAILED_PRECONDITION (not written by this process
// now, or connected by a pooler), RESOURCE_EXHAUSTED.
#ifndef XPL_STORAGE_STORE_JOBS_H_
#define XPL_STORAGE_STORE_JOBS_H_

#include "storage/store/store.h"

struct xpl_arena;

enum {
    XPL_JOB_ATTEMPTS = 3,
    XPL_JOB_DIGEST = 16,
    XPL_JOB_MAX_FILES = 64, // of a batch
    XPL_JOB_MAX_CLAIMS = 64,
    XPL_JOB_MAX_LISTED = 10000
};
// How long a file stays set aside before it is tried again.
enum { XPL_JOB_ASIDE_S = 600 };

// The file of a host, as the requester sees it.
struct xpl_job_file {
    xpl_str_t host; // without a slash
    uint64_t size_bytes;
    int64_t mtime_ns;
};

struct xpl_job_product {
    xpl_str_t name; // without a slash or blank
    uint32_t version;
    unsigned variant;
};

// The digest of a request: equal requests, traceparent aside, have equal digests.
struct xpl_job_digest {
    uint8_t bytes[XPL_JOB_DIGEST];
};

struct xpl_job_request {
    struct xpl_job_digest digest;
    xpl_str_t session;
    const struct xpl_job_product *products;
    const struct xpl_job_file *files;
    const size_t *ends; // files[ends[i - 1]] to files[ends[i] - 1] are one batch
    size_t n_products, n_files, n_batches;
    xpl_str_t traceparent; // for the log; or empty
};

struct xpl_job_claim {
    int64_t id;
    uint64_t session; // that has the lock
};

// The end of a job.  Others may claim the rest of it in `pause_ms`.
struct xpl_job_end {
    struct xpl_job_claim claim;
    const struct xpl_job_file *rest; // without files the job is removed
    size_t n_rest;
    uint64_t pause_ms;
};

// A product of a file; key.profiles[0] is the id of its bytes.
struct xpl_job_put {
    const struct xpl_fingerprint *file;
    struct xpl_store_key key;
    xpl_bytes_t data;
    bool is_stored; // only the file is put
};

struct xpl_job {
    struct xpl_job_claim claim;
    xpl_str_t session, traceparent;
    struct xpl_job_product *products;
    struct xpl_job_file *files;
    size_t n_products, n_files;
    int64_t attempt;   // how many daemons are noted, with this one
    int64_t queued_ms; // since the request
};

// Which jobs a worker takes.
struct xpl_job_offer {
    const struct xpl_store_version *products; // that it makes, with their versions
    size_t n_products;
    bool alone; // it does nothing else: a suspect file may be given to it
    uint64_t lease_ms;
};

// What became of a request.
struct xpl_job_progress {
    int64_t n_left;            // batches that have not ended
    int64_t n_unclaimed;       // of these: never begun
    struct xpl_job_file *lost; // files of suspect batches, and those set aside
    size_t n_lost;
};

// What daemons tell of themselves.
struct xpl_job_daemon {
    xpl_str_t name, role, version; // text for people; the role also counts
    int64_t n_jobs;                // that it works on
    int64_t n_threads;             // for jobs
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
    int64_t queued, running, set_aside;  // jobs
    int64_t workers;                     // of all versions
    int64_t peers, threads;              // workers of this daemon's version, and their threads
    int64_t oldest_ms;                   // since the request of the oldest job; 0: none
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
    xpl_str_t owner;         // id of the daemon
    xpl_str_t session, host; // the first one's
    int64_t n_files, attempt, queued_ms;
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
    // Requests these batches, unless an equal request has not ended.  Positions in the list are
    // ranks: requests take turns, so that a short one does not wait for a long one.
    xpl_status_t (*enqueue)(struct xpl_store *s, const struct xpl_job_request *r,
                            struct xpl_error *err);
    // Takes a job, or none (*ret NULL).  `arena` holds it.
    xpl_status_t (*claim)(struct xpl_store *s, const struct xpl_job_offer *o,
                          struct xpl_arena *arena, struct xpl_job **ret, struct xpl_error *err);
    // Tells the store that this daemon lives.  ret_kept[i]: the job is still ours.
    xpl_status_t (*renew)(struct xpl_store *s, struct xpl_job_claim *c, size_t n, bool *ret_kept,
                          struct xpl_error *err);
    // Puts the products of many files, those of one file in a row, as xpl_store_put_file and
    // xpl_store_put do one.  Within a transaction.
    xpl_status_t (*put)(struct xpl_store *s, const struct xpl_job_put *puts, size_t n,
                        struct xpl_error *err);
    // Ends a job in an orderly way: no attempt is noted.  Within a transaction: together with its
    // puts, as its last call.  NOT_FOUND: another daemon has the job, or it has ended, and the
    // transaction is aborted.
    xpl_status_t (*conclude)(struct xpl_store *s, const struct xpl_job_end *e,
                             struct xpl_error *err);
    // What became of a request.  `arena` holds it.
    xpl_status_t (*inspect)(struct xpl_store *s, const struct xpl_job_digest *d,
                            struct xpl_arena *arena, struct xpl_job_progress *ret,
                            struct xpl_error *err);
    // Which files of a session are set aside: ret->lost.
    xpl_status_t (*find_aside)(struct xpl_store *s, xpl_str_t session, struct xpl_arena *arena,
                               struct xpl_job_progress *ret, struct xpl_error *err);
    // Withdraws the batches of a request that were never begun: the requester makes their products.
    xpl_status_t (*withdraw)(struct xpl_store *s, const struct xpl_job_digest *d,
                             struct xpl_error *err);
    // The heartbeat of this daemon, valid for `ms`.  Periodically also removes old rows: daemons
    // that have ended, files set aside XPL_JOB_ASIDE_S ago, jobs a day old.  0 ms: the daemon ends.
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
