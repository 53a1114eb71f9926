// SPDX-License-Identifier: Apache-2.0
// `--role convert`: makes and stores the products of a part of the hosts of some sessions, by the
// jobs of a worker (jobs/job.h) without a queue, and lists the hosts that are left.
#ifndef XPL_SERVER_CONVERSION_H_
#define XPL_SERVER_CONVERSION_H_

#include "server/jobs/worker.h"

struct xpl_buf;
struct xpl_cancel;
struct xpl_config;

// Of the sessions `c->runs`, hosts `c->shard_index`, that + `c->n_shards`, ... of all of them.
// Appends the result, as JSON (docs/cli-json.md).  *ret_complete: every product of each host is
// stored.  `cancel` ends it early; it is polled some times a second.  On the calling thread and the
// pool's.  NOT_FOUND: no such session; UNAVAILABLE: the store takes nothing for as long as a lease
// lasts; CANCELLED; RESOURCE_EXHAUSTED.
xpl_status_t xpl_conversion_run(const struct xpl_job_worker_options *parts,
                                const struct xpl_config *c, const struct xpl_cancel *cancel,
                                struct xpl_buf *ret, bool *ret_complete, struct xpl_error *err)
    XPL_NODISCARD;

#endif
