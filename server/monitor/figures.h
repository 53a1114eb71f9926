// SPDX-License-Identifier: Apache-2.0
// All figures of the daemon, read at one moment.
#ifndef XPL_SERVER_MONITOR_FIGURES_H_
#define XPL_SERVER_MONITOR_FIGURES_H_

#include "rpc/listen/connections.h"
#include "rpc/listen/guarded.h"
#include "server/capture_jobs/captures.h"
#include "server/jobs/worker.h"
#include "server/monitor/newest.h"
#include "server/monitor/server_stats.h"
#include "server/removal/removal.h"
#include "storage/objects/objects.h"

enum {
    XPL_HTTP_METHODS = 4,    // GET, HEAD, POST, others
    XPL_HTTP_STATUSES = 500, // from 100
};

// What the HTTP gateway counts; it fills this in itself.
struct xpl_http_stats {
    uint64_t connections, requests_open;           // now
    uint64_t requests;                             // all that follow: since the start
    uint64_t refused_connections;                  // over --http-connections
    uint64_t refused_address, refused_descriptors; // connections, closed at once
    uint64_t refused_host, refused_origin, refused_site, refused_token, refused_role,
        refused_method;
    uint64_t refused_uri;
    uint64_t refused_body;                                 // too long, or of unknown length
    uint64_t refused_busy;                                 // no worker for it
    uint64_t replies[XPL_HTTP_METHODS][XPL_HTTP_STATUSES]; // by method and status
};

struct xpl_figures {
    struct xpl_server_stats server; // without outcomes: the metrics have them
    struct xpl_rpc_connections_stats connections;
    uint64_t guarded[XPL_RPC_GUARD_VERDICTS]; // connections closed for what their clients sent
    struct xpl_http_stats http;
    struct xpl_capture_jobs_stats captures;
    struct xpl_job_worker_stats jobs;     // all 0 where daemons do not share the store
    bool knows_fleet;                     // jobs.fleet is of now
    struct xpl_objects_stats objects;     // all 0 where LOGDIR is in no bucket
    uint64_t removed[XPL_REMOVAL_CAUSES]; // sessions
    uint64_t store_writable, build;
    uint64_t log_dropped, large_blocks;
    const struct xpl_rpc_server *calls_of; // its methods are counted there; or NULL
    const struct xpl_newest_row *newest;   // of labels; borrowed, as n_newest, from who asks
    size_t n_newest;
};

// Everything but `http` and `newest`, which are left as they are.  Waits for no lock that is held
// for long.  On the loop's thread, whose connections it counts: a system call for each.
void xpl_figures_read(const struct xpl_server_parts *p, struct xpl_capture_jobs *captures,
                      struct xpl_figures *ret);

#endif
