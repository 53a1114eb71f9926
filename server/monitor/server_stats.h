// SPDX-License-Identifier: Apache-2.0
// Statistics of the daemon as plain structs: what GetServerStats, /api/v1/server and /metrics give
// alike.  gRPC encodes them, HTTP renders them.
#ifndef XPL_SERVER_MONITOR_SERVER_STATS_H_
#define XPL_SERVER_MONITOR_SERVER_STATS_H_

#include "base/arena.h"
#include "rpc/server.h"
#include "server/engine/cache.h"
#include "server/engine/engine.h"
#include "server/engine/pool.h"
#include "server/engine/writer.h"
#include "server/metrics.h"
#include "server/process.h"
#include "storage/store/store.h"

struct xpl_catalogue;
struct xpl_history;
struct xpl_job_worker;
struct xpl_removals;
struct xpl_rpc_connections;

struct xpl_server_parts { // whose counters are read; all borrowed
    struct xpl_engine *engine;
    struct xpl_catalogue *catalogue;
    struct xpl_store *store;
    struct xpl_store_writer *writer;
    struct xpl_history *history;
    struct xpl_cache *cache;
    struct xpl_pool *pool;
    struct xpl_metrics *metrics;
    struct xpl_rpc_server *rpc;              // NULL until there is one
    struct xpl_rpc_connections *connections; // of the loop's thread; may be NULL
    struct xpl_job_worker *jobs;             // NULL: daemons do not share the store
    struct xpl_objects *objects;             // NULL: LOGDIR is in no bucket
    const struct xpl_removals *removals;     // NULL: none
    int64_t started_unix_ns;
    uint64_t started_mono_ns;
};

struct xpl_server_stats {
    const char *version; // lives as long as the program
    int64_t started_unix_ns;
    uint64_t uptime_ms;
    struct xpl_process_stats process;
    struct xpl_engine_stats engine;
    struct xpl_cache_stats cache;
    struct xpl_pool_state pool;
    struct xpl_store_stats store;
    struct xpl_store_writer_stats writer;
    struct xpl_rpc_server_stats rpc;
    struct {
        uint64_t sessions, hosts, bytes, generation;
    } catalogue;
    bool history_off, history_replaced;
    // Requests by tool and code: none but after xpl_server_stats_read_outcomes.
    const struct xpl_metrics_row *outcomes;
    size_t n_outcomes;
};

// Everything but the outcomes.  Waits for no lock that is held for long.  Any thread.
void xpl_server_stats_read(const struct xpl_server_parts *p, struct xpl_server_stats *ret);
// The outcomes, in `arena`.  False when out of memory; *ret is then as it was.  Any thread.
bool xpl_server_stats_read_outcomes(const struct xpl_server_parts *p, struct xpl_arena *arena,
                                    struct xpl_server_stats *ret) XPL_NODISCARD;
// All requests that the outcomes count.
static inline uint64_t xpl_server_stats_total(const struct xpl_server_stats *s) {
    uint64_t total = 0;
    for (size_t i = 0; i < s->n_outcomes; i++)
        total += s->outcomes[i].count;
    return total;
}

#endif
