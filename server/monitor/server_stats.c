// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/server_stats.h"

#include "base/clock.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/history.h"

enum { MAX_OUTCOMES = XPL_METRICS_ROWS };

static void read_catalogue(struct xpl_catalogue *c, struct xpl_server_stats *ret) {
    struct xpl_snapshot *const snap = xpl_catalogue_get(c);
    ret->catalogue.sessions = snap->n_sessions;
    ret->catalogue.generation = snap->generation;
    for (size_t i = 0; i < snap->n_sessions; i++) {
        ret->catalogue.hosts += snap->sessions[i].n_hosts;
        ret->catalogue.bytes += snap->sessions[i].bytes;
    }
    xpl_snapshot_unref(snap);
}

void xpl_server_stats_read(const struct xpl_server_parts *p, struct xpl_server_stats *ret) {
    *ret = (struct xpl_server_stats){.version = XPL_VERSION,
                                     .started_unix_ns = p->started_unix_ns,
                                     .uptime_ms = (xpl_clock_ns() - p->started_mono_ns) / 1000000u,
                                     .cache = xpl_cache_get_stats(p->cache),
                                     .pool = xpl_pool_get_state(p->pool),
                                     .history_off = !xpl_history_is_on(p->history),
                                     .history_replaced = xpl_history_was_replaced(p->history)};
    xpl_process_get_stats(&ret->process);
    xpl_engine_get_stats(p->engine, &ret->engine);
    xpl_store_get_stats(p->store, &ret->store);
    xpl_store_writer_get_stats(p->writer, &ret->writer);
    if (p->rpc) xpl_rpc_server_get_stats(p->rpc, &ret->rpc);
    read_catalogue(p->catalogue, ret);
}

bool xpl_server_stats_read_outcomes(const struct xpl_server_parts *p, struct xpl_arena *arena,
                                    struct xpl_server_stats *ret) {
    struct xpl_metrics_row *const rows = xpl_arena_array(arena, MAX_OUTCOMES, sizeof *rows);
    if (!rows) return false;
    ret->n_outcomes = xpl_metrics_rows(p->metrics, rows, MAX_OUTCOMES);
    ret->outcomes = rows;
    return true;
}
