// SPDX-License-Identifier: Apache-2.0
// `--role convert`: makes and stores the products of a part of the hosts of some sessions, by the
// jobs of a worker (job.h) without a queue, and lists the hosts that are left.
#ifndef XPL_SERVER_CONVERSION_H_
#define XPL_SERVER_CONVERSION_H_

#include "server/jobs/worker.h"

struct xpl_buf;
struct xpl_cancel;

// Everything is borrowed.
struct xpl_conversion_request {
    const char *const *runs; // names of sessions
    size_t n_runs;
    uint64_t shard, n_shards;        // hosts `shard`, `shard` + `n_shards`, ... of all of them
    const struct xpl_cancel *cancel; // ends it early; asked some times a second
};

// Appends the result, as JSON (docs/cli-json.md).  *ret_complete: every product of each host
// is stored.  On the calling thread and the pool's.  NOT_FOUND: no such session; UNAVAILABLE: the
// store takes nothing for as long as a lease lasts; CANCELLED; RESOURCE_EXHAUSTED.
xpl_status_t xpl_conversion_run(const struct xpl_job_worker_options *parts,
                                const struct xpl_conversion_request *q, struct xpl_buf *ret,
                                bool *ret_complete, struct xpl_error *err) XPL_NODISCARD;

#endif
