// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/figures.h"

#include "base/heap.h"
#include "base/log.h"

void xpl_figures_read(const struct xpl_server_parts *p, struct xpl_capture_jobs *captures,
                      struct xpl_figures *ret) {
    xpl_server_stats_read(p, &ret->server);
    ret->calls_of = p->rpc;
    ret->connections = (struct xpl_rpc_connections_stats){0};
    if (p->connections) {
        xpl_rpc_connections_sweep(p->connections); // gRPC does not say what it closed
        xpl_rpc_connections_get_stats(p->connections, &ret->connections);
    }
    xpl_rpc_guarded_get_counts(ret->guarded);
    xpl_capture_jobs_get_stats(captures, &ret->captures);
    ret->jobs = (struct xpl_job_worker_stats){0};
    if (p->jobs) xpl_job_worker_get_stats(p->jobs, &ret->jobs);
    ret->knows_fleet = ret->jobs.knows_fleet && ret->server.store.role != XPL_STORE_OFF;
    xpl_objects_get_stats(p->objects, &ret->objects);
    for (int i = 0; i < XPL_REMOVAL_CAUSES; i++)
        ret->removed[i] = p->removals ? atomic_load(&p->removals->removed[i]) : 0;
    ret->store_writable = ret->server.store.role == XPL_STORE_WRITER;
    ret->build = 1;
    ret->large_blocks = xpl_heap_in_use();
    ret->log_dropped = xpl_log_dropped();
}
