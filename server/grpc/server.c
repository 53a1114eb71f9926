// SPDX-License-Identifier: Apache-2.0
// ServerService: counters of this process.
#include "base/cleanup.h"
#include "proto/xplaned/v1/server.pb-c.h"
#include "server/grpc/services.h"
#include "server/monitor/server_stats.h"

struct message { // with all that it refers to
    Xplaned__V1__ServerStats top;
    Xplaned__V1__RequestStats requests;
    Xplaned__V1__CacheStats cache;
    Xplaned__V1__QueueStats queue;
    Xplaned__V1__MemoryStats memory;
    Xplaned__V1__StoreStats store;
    Xplaned__V1__CatalogueStats catalogue;
    Xplaned__V1__RpcStats rpc;
    Xplaned__V1__HistoryStats history;
};

static bool fill_requests(const struct xpl_server_stats *s, struct xpl_arena *arena,
                          Xplaned__V1__RequestStats *ret) {
    xplaned__v1__request_stats__init(ret);
    ret->total = xpl_server_stats_total(s);
    ret->outcomes = xpl_arena_array(arena, s->n_outcomes, sizeof *ret->outcomes);
    Xplaned__V1__RequestStats__Outcome *const each =
        xpl_arena_array(arena, s->n_outcomes, sizeof *each);
    if (!ret->outcomes || !each) return false;
    for (size_t i = 0; i < s->n_outcomes; i++) {
        xplaned__v1__request_stats__outcome__init(&each[i]);
        each[i].tool = xpl_svc_field(s->outcomes[i].tool);
        each[i].code = xpl_svc_field(s->outcomes[i].code);
        each[i].count = s->outcomes[i].count;
        each[i].micros = s->outcomes[i].micros;
        ret->outcomes[ret->n_outcomes++] = &each[i];
    }
    return true;
}

static void fill_work(const struct xpl_server_stats *s, struct message *m) {
    xplaned__v1__cache_stats__init(&m->cache);
    m->cache.from_memory = s->engine.from_memory;
    m->cache.from_store = s->engine.from_store;
    m->cache.computed = s->engine.computed;
    m->cache.joined = s->engine.joined;
    m->cache.prefetched = s->engine.prefetched;
    m->cache.evicted = s->cache.evicted;
    xplaned__v1__queue_stats__init(&m->queue);
    m->queue.workers = s->pool.workers;
    m->queue.workers_busy = s->pool.busy;
    m->queue.queued = (uint32_t)s->pool.queued;
    m->queue.queue_limit = (uint32_t)s->pool.max_queued;
    m->queue.refused = s->engine.refused;
    m->queue.cancelled = s->engine.cancelled;
    m->queue.timed_out = s->engine.timed_out;
    m->queue.conversions = s->engine.conversions;
    m->queue.conversions_failed = s->engine.conversions_failed;
    m->queue.bytes_converted = s->engine.bytes_converted;
    xplaned__v1__memory_stats__init(&m->memory);
    m->memory.resident_bytes = s->process.resident_bytes;
    m->memory.anonymous_bytes = s->process.anonymous_bytes;
    m->memory.answers_bytes = s->cache.bytes;
    m->memory.answers_limit_bytes = s->cache.limit;
    m->memory.in_flight_bytes = s->engine.in_flight_bytes;
    m->memory.in_flight_limit_bytes = s->engine.memory_total;
}

static void fill_stored(const struct xpl_server_stats *s, struct message *m) {
    xplaned__v1__store_stats__init(&m->store);
    m->store.read_only = s->store.role != XPL_STORE_WRITER;
    m->store.rebuilt = s->store.rebuilds != 0;
    m->store.bytes = s->store.used_bytes;
    m->store.limit_bytes = s->store.limit_bytes;
    m->store.hits = s->store.hits;
    m->store.misses = s->store.misses;
    m->store.writes = s->store.puts;
    m->store.writes_dropped = s->store.dropped + s->writer.dropped;
    m->store.write_queue = s->writer.queued;
    m->store.error = xpl_svc_field(s->writer.error);
    xplaned__v1__history_stats__init(&m->history);
    m->history.off = s->history_off;
    m->history.replaced = s->history_replaced;
    xplaned__v1__catalogue_stats__init(&m->catalogue);
    m->catalogue.sessions = (uint32_t)s->catalogue.sessions;
    m->catalogue.hosts = (uint32_t)s->catalogue.hosts;
    m->catalogue.bytes = s->catalogue.bytes;
}

static void fill_rpc(const struct xpl_rpc_server_stats *r, Xplaned__V1__RpcStats *ret) {
    xplaned__v1__rpc_stats__init(ret);
    ret->calls = r->calls;
    ret->calls_open = r->open;
    ret->calls_cancelled = r->cancelled;
    ret->calls_unauthenticated = r->unauthenticated;
    ret->calls_refused = r->refused;
}

const ProtobufCMessage *xpl_svc_server_stats(const struct xpl_server_stats *s,
                                             struct xpl_arena *arena) {
    struct message *const m = xpl_arena_zalloc(arena, sizeof *m);
    if (!m || !fill_requests(s, arena, &m->requests)) return NULL;
    fill_work(s, m);
    fill_stored(s, m);
    fill_rpc(&s->rpc, &m->rpc);
    xplaned__v1__server_stats__init(&m->top);
    m->top.version = xpl_svc_field(s->version);
    m->top.started_unix_ns = s->started_unix_ns;
    m->top.uptime_ms = s->uptime_ms;
    m->top.requests = &m->requests;
    m->top.cache = &m->cache;
    m->top.queue = &m->queue;
    m->top.memory = &m->memory;
    m->top.store = &m->store;
    m->top.catalogue = &m->catalogue;
    m->top.rpc = &m->rpc;
    m->top.history = &m->history;
    return &m->top.base;
}

static void get_server_stats(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    (void)request;
    struct xpl_server_stats s;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    xpl_server_stats_read(service, &s);
    const ProtobufCMessage *const m = xpl_server_stats_read_outcomes(service, &arena, &s)
                                          ? xpl_svc_server_stats(&s, &arena)
                                          : NULL;
    if (m)
        xpl_rpc_finish_message(c, m);
    else
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
}

void xpl_svc_server_methods(struct xpl_server_parts *p,
                            struct xpl_rpc_method ret[XPL_SVC_SERVER_METHODS]) {
    ret[0] = (struct xpl_rpc_method){.path = "/xplaned.v1.ServerService/GetServerStats",
                                     .on_request = get_server_stats,
                                     .service = p};
}
