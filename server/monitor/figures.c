// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/figures.h"

#include "base/heap.h"
#include "base/log.h"
#include "storage/sessions/catalogue.h"

static void read_catalogue(struct xpl_catalogue *c, struct xpl_figures *ret) {
    struct xpl_snapshot *const snap = xpl_catalogue_get(c);
    ret->catalogue.sessions = snap->n_sessions;
    ret->catalogue.generation = snap->generation;
    ret->catalogue.hosts = ret->catalogue.bytes = 0;
    for (size_t i = 0; i < snap->n_sessions; i++) {
        ret->catalogue.hosts += snap->sessions[i].n_hosts;
        ret->catalogue.bytes += snap->sessions[i].bytes;
    }
    xpl_snapshot_unref(snap);
}

void xpl_figures_read(struct xpl_svc_server *s, struct xpl_capture_jobs *captures,
                      struct xpl_figures *ret) {
    xpl_process_get_stats(&ret->process);
    xpl_engine_get_stats(s->engine, &ret->engine);
    ret->cache = xpl_cache_get_stats(s->cache);
    ret->pool = xpl_pool_get_state(s->pool);
    xpl_store_get_stats(s->store, &ret->store);
    xpl_store_writer_get_stats(s->writer, &ret->writer);
    ret->rpc = (struct xpl_rpc_server_stats){0};
    if (s->rpc) xpl_rpc_server_get_stats(s->rpc, &ret->rpc);
    ret->calls_of = s->rpc;
    ret->connections = (struct xpl_rpc_connections_stats){0};
    if (s->connections) {
        xpl_rpc_connections_sweep(s->connections); // gRPC does not say what it closed
        xpl_rpc_connections_get_stats(s->connections, &ret->connections);
    }
    xpl_rpc_guarded_get_counts(ret->guarded);
    xpl_capture_jobs_get_stats(captures, &ret->captures);
    read_catalogue(s->catalogue, ret);
    ret->store_writable = ret->store.role == XPL_STORE_WRITER;
    ret->started_unix_ns = (uint64_t)s->started_unix_ns;
    ret->build = 1;
    ret->large_blocks = xpl_heap_in_use();
    ret->log_dropped = xpl_log_dropped();
}
