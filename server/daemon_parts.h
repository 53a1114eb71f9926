// SPDX-License-Identifier: Apache-2.0
// Private to server.  The daemon's components, which daemon.c starts in the order of its table and
// stops and frees in reverse.  All functions on the loop's thread.
#ifndef XPL_SERVER_DAEMON_PARTS_H_
#define XPL_SERVER_DAEMON_PARTS_H_

#include <uv.h>

#include "base/exec.h"
#include "rpc/standard/health.h"
#include "rpc/standard/reflection.h"
#include "server/config.h"
#include "server/grpc/services.h"
#include "server/listeners.h"
#include "server/loop.h"
#include "server/monitor/server_stats.h"
#include "server/removal/removal.h"

struct xpl_daemon { // members in order of start; NULL until then
    struct xpl_config *config;
    struct xpl_cancel starting; // set when a signal to end came; of what starts components
    struct xpl_loop *loop;
    struct xpl_objects *objects;   // when LOGDIR is in a bucket
    struct xpl_outgoing *outgoing; // likewise: what is on its way there
    struct xpl_catalogue *catalogue;
    struct xpl_cache *cache;
    struct xpl_store *store;
    struct xpl_identity *identity;
    struct xpl_index_files *index_files;
    struct xpl_store_version *versions; // in which results are made now
    struct xpl_store_writer *writer;
    struct xpl_metrics *metrics;
    struct xpl_pool *pool;
    struct xpl_engine *engine;
    struct xpl_statements *statements;
    struct xpl_history *history;
    struct xpl_labels *labels;
    struct xpl_removals removals;
    struct xpl_retention *retention; // NULL without --retain
    struct xpl_newest *newest;
    struct xpl_svc_session *sessions;
    struct xpl_svc_labels label_session;
    struct xpl_capture_jobs *captures;
    struct xpl_schedules *schedules;
    struct xpl_capture_keeper *keeper; // NULL: this daemon shares no captures
    struct xpl_svc_capture *capture;
    struct xpl_svc_import *import;
    struct xpl_svc_analysis analysis;
    struct xpl_svc_statements run_statement;
    struct xpl_svc_profile_analysis profile_analysis;
    struct xpl_svc_fleet fleet;
    struct xpl_server_parts stats;
    struct xpl_rpc_queue *queue;
    struct xpl_rpc_health *health;
    struct xpl_rpc_reflection *reflection;
    struct xpl_rpc_tls *tls;
    struct xpl_rpc_server *server;
    struct xpl_svc_worker *worker;
    struct xpl_rpc_server *worker_server;
    struct xpl_listeners listeners;
    struct xpl_http *http;
    struct xpl_watch *watch;
    struct xpl_prefetch *prefetch;
    struct xpl_job_worker *job_worker; // of role worker

    bool stopping;
    unsigned n_ending; // stops that go on, each ended by ended(d)
    // What began in a component's stop is over.  On the loop's thread, not from within `stop`.
    void (*ended)(void *d);
};

// Each may be NULL, for nothing to do.  `stop` and `free` also run for the component whose start
// failed, and leave alone what is not there.
struct xpl_component {
    const char *name;
    xpl_status_t (*start)(struct xpl_daemon *d, struct xpl_error *err);
    // Begins the end: nothing new is taken on, what is under way may finish.  What takes time adds
    // one to n_ending and calls d->ended later.
    void (*stop)(struct xpl_daemon *d);
    // After the loop has ended: releases what `start` made.
    void (*free)(struct xpl_daemon *d);
};

// ---- parts_engine.c: from files to answers ----

extern const struct xpl_component xpl_catalogue_component, xpl_cache_component, xpl_store_component,
    xpl_index_files_component, xpl_writer_component, xpl_workers_component, xpl_engine_component,
    xpl_prefetch_component, xpl_job_worker_component;
// Ends waits for an object store: before the threads that wait are joined.
extern const struct xpl_component xpl_objects_component;
// The threads of workers and captures: they end before what they answer through is freed.
extern const struct xpl_component xpl_threads_component;
// What all large blocks of the process may take together.
size_t xpl_daemon_heap_budget(const struct xpl_config *c);
// Takes over the settings that may change while the daemon runs.
void xpl_daemon_apply_settings(struct xpl_daemon *d);

// ---- parts_services.c: what answers calls ----

extern const struct xpl_component xpl_sessions_component, xpl_history_component,
    xpl_captures_component, xpl_imports_component, xpl_retention_component, xpl_queue_component,
    xpl_grpc_component, xpl_worker_component, xpl_http_component;
// Watches and captures: calls without an end of their own.  They are ended before servers wait for
// their calls.
extern const struct xpl_component xpl_long_calls_component;
// Reads certificates and token again.
xpl_status_t xpl_daemon_reload_credentials(struct xpl_daemon *d, struct xpl_error *err)
    XPL_NODISCARD;
// After stop: cancels the calls that are still under way.
void xpl_daemon_cancel_calls(struct xpl_daemon *d);

// ---- dirs.c ----

// Makes LOGDIR when it is missing, and says so in the log.  PERMISSION_DENIED and the like when it
// cannot be made; whatever else is wrong with it is found out by its first scan.
xpl_status_t xpl_daemon_make_logdir(const char *logdir, struct xpl_error *err) XPL_NODISCARD;
// Where cache.db is; where state.db is.  FAILED_PRECONDITION when there is no place.
xpl_status_t xpl_daemon_cache_dir(const struct xpl_config *c, char *ret, size_t size,
                                  struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_daemon_state_dir(const struct xpl_config *c, char *ret, size_t size,
                                  struct xpl_error *err) XPL_NODISCARD;

#endif
