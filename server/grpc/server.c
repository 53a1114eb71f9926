// SPDX-License-Identifier: Apache-2.0
// ServerService: counters of this process.
#include <time.h>

#include "base/cleanup.h"
#include "proto/xplaned/v1/server.pb-c.h"
#include "server/engine/pool.h"
#include "server/engine/writer.h"
#include "server/grpc/services.h"
#include "server/metrics.h"
#include "server/process.h"
#include "storage/store/history.h"

enum { MAX_ROWS = 600 };

struct parts {
    Xplaned__V1__RequestStats requests;
    Xplaned__V1__CacheStats cache;
    Xplaned__V1__QueueStats queue;
    Xplaned__V1__MemoryStats memory;
    Xplaned__V1__StoreStats store;
    Xplaned__V1__CatalogueStats catalogue;
    Xplaned__V1__RpcStats rpc;
    Xplaned__V1__HistoryStats history;
    struct xpl_store_writer_stats writer;
};

static bool fill_requests(struct xpl_svc_server *s, struct xpl_arena *arena, struct parts *p) {
    xplaned__v1__request_stats__init(&p->requests);
    struct xpl_metrics_row *rows = xpl_arena_array(arena, MAX_ROWS, sizeof *rows);
    if (!rows) return false;
    const size_t n = xpl_metrics_rows(s->metrics, rows, MAX_ROWS);
    p->requests.outcomes = xpl_arena_array(arena, n, sizeof *p->requests.outcomes);
    if (!p->requests.outcomes) return false;
    for (size_t i = 0; i < n; i++) {
        Xplaned__V1__RequestStats__Outcome *o = xpl_arena_alloc(arena, sizeof *o);
        if (!o) return false;
        xplaned__v1__request_stats__outcome__init(o);
        o->tool = (char *)(uintptr_t)rows[i].tool;
        o->code = (char *)(uintptr_t)rows[i].code;
        o->count = rows[i].count;
        o->micros = rows[i].micros;
        p->requests.outcomes[p->requests.n_outcomes++] = o;
        p->requests.total += rows[i].count;
    }
    return true;
}

static void fill_work(struct xpl_svc_server *s, struct parts *p) {
    struct xpl_engine_stats e;
    struct xpl_process_stats process;
    xpl_process_get_stats(&process);
    xpl_engine_get_stats(s->engine, &e);
    const struct xpl_cache_stats c = xpl_cache_get_stats(s->cache);
    const struct xpl_pool_state pool = xpl_pool_get_state(s->pool);
    xplaned__v1__cache_stats__init(&p->cache);
    p->cache.from_memory = e.from_memory;
    p->cache.from_store = e.from_store;
    p->cache.computed = e.computed;
    p->cache.joined = e.joined;
    p->cache.prefetched = e.prefetched;
    p->cache.evicted = c.evicted;
    xplaned__v1__queue_stats__init(&p->queue);
    p->queue.workers = pool.workers;
    p->queue.workers_busy = pool.busy;
    p->queue.queued = (uint32_t)pool.queued;
    p->queue.queue_limit = (uint32_t)pool.max_queued;
    p->queue.refused = e.refused;
    p->queue.cancelled = e.cancelled;
    p->queue.timed_out = e.timed_out;
    p->queue.conversions = e.conversions;
    p->queue.conversions_failed = e.conversions_failed;
    p->queue.bytes_converted = e.bytes_converted;
    xplaned__v1__memory_stats__init(&p->memory);
    p->memory.resident_bytes = process.resident_bytes;
    p->memory.anonymous_bytes = process.anonymous_bytes;
    p->memory.answers_bytes = c.bytes;
    p->memory.answers_limit_bytes = c.limit;
    p->memory.in_flight_bytes = e.in_flight_bytes;
    p->memory.in_flight_limit_bytes = e.memory_total;
}

static void fill_rest(struct xpl_svc_server *s, struct parts *p) {
    struct xpl_store_stats st;
    xpl_store_get_stats(s->store, &st);
    xpl_store_writer_get_stats(s->writer, &p->writer);
    xplaned__v1__store_stats__init(&p->store);
    p->store.read_only = st.role != XPL_STORE_WRITER;
    p->store.rebuilt = st.rebuilds != 0;
    p->store.bytes = st.used_bytes;
    p->store.limit_bytes = st.limit_bytes;
    p->store.hits = st.hits;
    p->store.misses = st.misses;
    p->store.writes = st.puts;
    p->store.writes_dropped = st.dropped + p->writer.dropped;
    p->store.write_queue = p->writer.queued;
    p->store.error = p->writer.error;
    xplaned__v1__history_stats__init(&p->history);
    p->history.off = !xpl_history_is_on(s->history);
    p->history.replaced = xpl_history_was_replaced(s->history);
    xplaned__v1__catalogue_stats__init(&p->catalogue);
    struct xpl_snapshot *snap = xpl_catalogue_get(s->catalogue);
    p->catalogue.sessions = (uint32_t)snap->n_sessions;
    for (size_t i = 0; i < snap->n_sessions; i++) {
        p->catalogue.hosts += (uint32_t)snap->sessions[i].n_hosts;
        p->catalogue.bytes += snap->sessions[i].bytes;
    }
    xpl_snapshot_unref(snap);
    struct xpl_rpc_server_stats r = {0};
    if (s->rpc) xpl_rpc_server_get_stats(s->rpc, &r);
    xplaned__v1__rpc_stats__init(&p->rpc);
    p->rpc.calls = r.calls;
    p->rpc.calls_open = r.open;
    p->rpc.calls_cancelled = r.cancelled;
    p->rpc.calls_unauthenticated = r.unauthenticated;
    p->rpc.calls_refused = r.refused;
}

const ProtobufCMessage *xpl_svc_server_stats(struct xpl_svc_server *s, struct xpl_arena *arena) {
    struct parts *p = xpl_arena_zalloc(arena, sizeof *p);
    Xplaned__V1__ServerStats *r = xpl_arena_alloc(arena, sizeof *r);
    if (!p || !r || !fill_requests(s, arena, p)) return NULL;
    fill_work(s, p);
    fill_rest(s, p);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    xplaned__v1__server_stats__init(r);
    r->version = (char *)(uintptr_t)XPL_VERSION;
    r->started_unix_ns = s->started_unix_ns;
    r->uptime_ms =
        ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - s->started_mono_ns) /
        1000000u;
    r->requests = &p->requests;
    r->cache = &p->cache;
    r->queue = &p->queue;
    r->memory = &p->memory;
    r->store = &p->store;
    r->catalogue = &p->catalogue;
    r->rpc = &p->rpc;
    r->history = &p->history;
    return &r->base;
}

static void get_server_stats(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    (void)request;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, 1 << 20);
    const ProtobufCMessage *const m = xpl_svc_server_stats(service, &arena);
    if (m)
        xpl_rpc_finish_message(c, m);
    else
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
}

void xpl_svc_server_methods(struct xpl_svc_server *s,
                            struct xpl_rpc_method ret[XPL_SVC_SERVER_METHODS]) {
    ret[0] = (struct xpl_rpc_method){.path = "/xplaned.v1.ServerService/GetServerStats",
                                     .on_request = get_server_stats,
                                     .service = s};
}
