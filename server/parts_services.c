// SPDX-License-Identifier: Apache-2.0
// Components that answer calls: sessions, captures, imports, gRPC's servers, HTTP.
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "proto/descriptors.h"
#include "server/capture_jobs/captures.h"
#include "server/capture_jobs/keeper.h"
#include "server/capture_jobs/schedules.h"
#include "server/daemon_parts.h"
#include "server/http/http.h"
#include "server/labels/labels.h"
#include "server/monitor/newest.h"
#include "server/removal/retention.h"
#include "server/roles.h"
#include "server/watch.h"
#include "storage/places.h"
#include "storage/sessions/outgoing.h"

// ---- sessions, captures, imports ----

static xpl_status_t start_sessions(struct xpl_daemon *d, struct xpl_error *err) {
    if (!(d->labels = xpl_labels_new(d->history))) XPL_RETURN_OOM(err, "labels");
    if (!(d->newest = xpl_newest_new(d->engine, d->catalogue, d->labels)))
        XPL_RETURN_OOM(err, "labels");
    d->label_session = (struct xpl_svc_labels){d->labels, d->catalogue, d->pool};
    if ((d->sessions = xpl_svc_session_new(d->engine, d->catalogue, d->labels))) return XPL_OK;
    XPL_RETURN_OOM(err, "sessions");
}

static void free_sessions(struct xpl_daemon *d) {
    xpl_svc_session_free(d->sessions);
    xpl_newest_free(d->newest);
    xpl_labels_free(d->labels);
}

const struct xpl_component xpl_sessions_component = {
    .name = "sessions", .start = start_sessions, .free = free_sessions};

static xpl_status_t start_history(struct xpl_daemon *d, struct xpl_error *err) {
    char dir[PATH_MAX], text[512];
    XPL_TRY(xpl_daemon_state_dir(d->config, dir, sizeof dir, err));
    XPL_TRY(xpl_history_open(dir, &d->history, err));
    while (xpl_history_next_notice(d->history, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "capture", "%s", text);
    return XPL_OK;
}

static void free_history(struct xpl_daemon *d) {
    xpl_history_close(d->history);
}

const struct xpl_component xpl_history_component = {
    .name = "history", .start = start_history, .free = free_history};

struct scan_request { // for a directory, on its way to the loop
    struct xpl_daemon *d;
    char path[];
};

static void scan_now(void *arg) {
    struct scan_request *q = arg;
    if (!q->d->stopping && q->d->watch) xpl_watch_scan(q->d->watch, q->path);
    xpl_sys_free(q);
}

static void scan_soon(void *arg, const char *path) {
    struct xpl_daemon *d = arg;
    const size_t n = strlen(path) + 1;
    struct scan_request *q = xpl_sys_alloc(sizeof *q + n);
    if (!q) return; // the next scan finds it as well
    q->d = d;
    memcpy(q->path, path, n);
    if (!xpl_loop_post(d->loop, scan_now, q)) xpl_sys_free(q);
}

static xpl_status_t start_captures(struct xpl_daemon *d, struct xpl_error *err) {
    struct xpl_session_remote *const remote =
        d->outgoing ? xpl_outgoing_get_remote(d->outgoing) : NULL;
    // Workers capture nothing: all others of a fleet share captures and schedules.
    const bool is_worker = xpl_config_has_role(d->config, "worker");
    struct xpl_store *const shared = !is_worker && xpl_store_captures(d->store) ? d->store : NULL;
    const struct xpl_capture_jobs_options o = {.logdir = remote ? remote->dir : d->config->logdir,
                                               .remote = remote,
                                               .history = d->history,
                                               .shared = shared,
                                               .lease_ms = d->config->job_lease_ms,
                                               .catalogue = d->catalogue,
                                               .scan = scan_soon,
                                               .arg = d,
                                               .enabled = d->config->capture && !is_worker,
                                               .memory_limit = d->config->memory_limit,
                                               .memory_total = d->config->memory_total};
    if (shared) xpl_history_share(d->history, shared);
    if (!(d->captures = xpl_capture_jobs_new(&o))) XPL_RETURN_OOM(err, "captures");
    d->removals.logdir = d->config->logdir;
    d->removals.objects = d->objects;
    d->schedules = xpl_schedules_new(d->captures, d->history, &d->removals);
    if (!d->schedules) XPL_RETURN_OOM(err, "schedules");
    if (shared && !(d->keeper = xpl_capture_keeper_new(d->captures, d->schedules)))
        XPL_RETURN_OOM(err, "schedules");
    d->capture = xpl_svc_capture_new(d->captures, d->history, d->schedules);
    if (!d->capture) XPL_RETURN_OOM(err, "captures");
    return XPL_OK;
}

static void free_captures(struct xpl_daemon *d) {
    xpl_svc_capture_free(d->capture);
    xpl_capture_jobs_join(d->captures); // they refer to their schedules
    xpl_capture_keeper_free(d->keeper);
    xpl_schedules_free(d->schedules);
    xpl_capture_jobs_free(d->captures);
}

const struct xpl_component xpl_captures_component = {
    .name = "captures", .start = start_captures, .free = free_captures};

static xpl_status_t start_imports(struct xpl_daemon *d, struct xpl_error *err) {
    char cache[PATH_MAX - 16], dir[PATH_MAX];
    XPL_TRY(xpl_daemon_cache_dir(d->config, cache, sizeof cache, err));
    (void)xpl_place_join(cache, XPL_STR("incoming"), dir, sizeof dir);
    const struct xpl_svc_import_options o = {
        .logdir = d->config->logdir,
        .remote = d->outgoing ? xpl_outgoing_get_remote(d->outgoing) : NULL,
        .removals = &d->removals,
        .dir = dir,
        .allow_delete = d->config->allow_delete,
        .max_bytes = d->config->memory_limit,
        .idle_ms = d->config->import_idle_ms,
        .limit_bytes = d->config->import_limit};
    if ((d->import = xpl_svc_import_new(d->captures, d->catalogue, &o))) return XPL_OK;
    XPL_RETURN_OOM(err, "imports");
}

static void free_imports(struct xpl_daemon *d) {
    xpl_svc_import_free(d->import);
}

const struct xpl_component xpl_imports_component = {
    .name = "imports", .start = start_imports, .free = free_imports};

// Workers leave it to the others, which have labels.
static xpl_status_t start_retention(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_retention_options o = {.age_ms = d->config->retain_ms,
                                            .catalogue = d->catalogue,
                                            .history = d->history,
                                            .labels = d->labels,
                                            .removals = &d->removals,
                                            .scan = scan_soon,
                                            .arg = d};
    if (!o.age_ms || xpl_config_has_role(d->config, "worker")) return XPL_OK;
    if ((d->retention = xpl_retention_new(&o))) return XPL_OK;
    XPL_RETURN_OOM(err, "retention");
}

static void stop_retention(struct xpl_daemon *d) {
    xpl_retention_stop(d->retention);
}

static void free_retention(struct xpl_daemon *d) {
    xpl_retention_free(d->retention);
}

const struct xpl_component xpl_retention_component = {
    .name = "retention", .start = start_retention, .stop = stop_retention, .free = free_retention};

static void stop_long_calls(struct xpl_daemon *d) {
    if (d->sessions) xpl_svc_session_stop(d->sessions);
    xpl_newest_stop(d->newest);
    if (d->captures) xpl_capture_jobs_stop(d->captures);
    xpl_capture_keeper_stop(d->keeper);
}

const struct xpl_component xpl_long_calls_component = {.name = "long calls",
                                                       .stop = stop_long_calls};

// ---- gRPC's queue ----

static void on_grpc_log(int severity, const char *file, int line, const char *text) {
    const enum xpl_log_level level = severity >= 2 ? XPL_LOG_WARN : XPL_LOG_DEBUG;
    xpl_log(level, "grpc", "%s:%d: %s", file, line, text);
}

static xpl_status_t start_queue(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_rpc_connections_options o = {.max = (size_t)d->config->grpc_connections,
                                                  .per_address =
                                                      (size_t)d->config->connections_per_address};
    struct xpl_rpc_connections *const connections = xpl_rpc_connections_new(&o);
    if (!connections) XPL_RETURN_OOM(err, "connections");
    xpl_listeners_init(&d->listeners, xpl_loop_uv(d->loop), connections);
    xpl_rpc_set_log(on_grpc_log);
    return xpl_rpc_queue_new(&d->queue, err);
}

static void free_queue(struct xpl_daemon *d) {
    xpl_rpc_queue_free(d->queue);
    xpl_listeners_fini(&d->listeners);
}

const struct xpl_component xpl_queue_component = {
    .name = "grpc queue", .start = start_queue, .free = free_queue};

// ---- listening ----

// Listens on each of the comma-separated addresses.
static xpl_status_t listen_all(struct xpl_daemon *d, struct xpl_error *err) {
    const char *at = d->config->listen;
    while (*at) {
        char address[PATH_MAX];
        const size_t n = strcspn(at, ",");
        if (n >= sizeof address)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--listen: address too long");
        memcpy(address, at, n);
        address[n] = 0;
        at += n + (at[n] == ',');
        if (!xpl_listeners_is_local(address) && !d->tls && !d->config->insecure)
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "--listen %s can be reached from other machines: use --tls-cert and "
                             "--tls-key, or say --insecure",
                             address);
        const struct xpl_listen_request q = {.address = address,
                                             .service = "grpc",
                                             .server = d->server,
                                             .group = (gid_t)-1,
                                             .tls = d->tls != NULL};
        XPL_TRY(xpl_listeners_add(&d->listeners, &q, err));
    }
    return XPL_OK;
}

// ---- gRPC ----

// The token file, whose text is good; "" without one.
static xpl_status_t read_tokens(const char *path, char ret[XPL_RPC_TOKEN_FILE],
                                struct xpl_error *err) {
    struct xpl_rpc_tokens *tokens = NULL;
    struct xpl_error why = {0};
    ret[0] = 0;
    if (!path[0]) return XPL_OK;
    FILE *f = fopen(path, "re");
    if (!f)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--token-file %s: %s", path,
                         strerror(errno));
    const size_t n = fread(ret, 1, XPL_RPC_TOKEN_FILE - 1, f);
    const bool is_complete = !ferror(f) && feof(f);
    (void)fclose(f);
    ret[n] = 0;
    if (!is_complete)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "--token-file %s: it cannot be read, or has more than %d bytes", path,
                         XPL_RPC_TOKEN_FILE - 1);
    if (xpl_rpc_tokens_parse(xpl_str_from(ret), &tokens, &why) != XPL_OK)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--token-file %s: %s", path, why.msg);
    if (!tokens)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--token-file %s: no token in it", path);
    xpl_rpc_tokens_free(tokens);
    return XPL_OK;
}

enum {
    N_SERVICES = XPL_SVC_ANALYSIS_METHODS + XPL_SVC_COMPARE_METHODS + XPL_SVC_STATEMENTS_METHODS +
                 XPL_SVC_SESSION_METHODS + XPL_SVC_LABELS_METHODS + XPL_SVC_CAPTURE_METHODS +
                 XPL_SVC_IMPORT_METHODS + XPL_SVC_PROFILE_ANALYSIS_METHODS +
                 XPL_SVC_SERVER_METHODS + XPL_SVC_FLEET_METHODS,
    N_METHODS = N_SERVICES + XPL_RPC_HEALTH_METHODS + XPL_RPC_REFLECTION_METHODS
};

_Static_assert((int)N_SERVICES == (int)XPL_ROLE_METHODS, "each method has a role");

// The methods of all services; those of health and reflection, which know the others, last.
static xpl_status_t fill_methods(struct xpl_daemon *d, struct xpl_rpc_method m[N_METHODS],
                                 struct xpl_error *err) {
    size_t n = 0;
    xpl_svc_analysis_methods(&d->analysis, m);
    n += XPL_SVC_ANALYSIS_METHODS;
    xpl_svc_compare_methods(&d->analysis, m + n);
    n += XPL_SVC_COMPARE_METHODS;
    xpl_svc_statements_methods(&d->run_statement, m + n);
    n += XPL_SVC_STATEMENTS_METHODS;
    xpl_svc_session_methods(d->sessions, m + n);
    n += XPL_SVC_SESSION_METHODS;
    xpl_svc_labels_methods(&d->label_session, m + n);
    n += XPL_SVC_LABELS_METHODS;
    xpl_svc_capture_methods(d->capture, m + n);
    n += XPL_SVC_CAPTURE_METHODS;
    xpl_svc_import_methods(d->import, m + n);
    n += XPL_SVC_IMPORT_METHODS;
    xpl_svc_profile_analysis_methods(&d->profile_analysis, m + n);
    n += XPL_SVC_PROFILE_ANALYSIS_METHODS;
    xpl_svc_server_methods(&d->stats, m + n);
    n += XPL_SVC_SERVER_METHODS;
    xpl_svc_fleet_methods(&d->fleet, m + n);
    n += XPL_SVC_FLEET_METHODS;
    XPL_TRY(xpl_rpc_health_new(m, n, &d->health, err));
    xpl_rpc_health_get_methods(d->health, m + n);
    n += XPL_RPC_HEALTH_METHODS;
    const xpl_bytes_t set = {xpl_proto_descriptors, xpl_proto_descriptors_len};
    XPL_TRY(xpl_rpc_reflection_new(set, m, n, &d->reflection, err));
    xpl_rpc_reflection_get_methods(d->reflection, m + n);
    assert(n + XPL_RPC_REFLECTION_METHODS == N_METHODS);
    for (size_t i = 0; i < N_SERVICES; i++)
        m[i].role = xpl_role_of_method(m[i].path);
    return XPL_OK;
}

static void set_services(struct xpl_daemon *d) {
    d->analysis = (struct xpl_svc_analysis){d->engine, d->catalogue, d->cache, d->metrics,
                                            d->labels, d->history,   d->pool};
    d->fleet = (struct xpl_svc_fleet){d->store, d->pool};
    d->run_statement = (struct xpl_svc_statements){d->statements, d->pool};
    d->profile_analysis =
        (struct xpl_svc_profile_analysis){d->engine, d->catalogue, d->captures, d->config->logdir};
    d->stats = (struct xpl_server_parts){.engine = d->engine,
                                         .catalogue = d->catalogue,
                                         .store = d->store,
                                         .writer = d->writer,
                                         .history = d->history,
                                         .cache = d->cache,
                                         .pool = d->pool,
                                         .metrics = d->metrics,
                                         .objects = d->objects,
                                         .removals = &d->removals,
                                         .connections = d->listeners.connections,
                                         .started_unix_ns = xpl_unix_ns(),
                                         .started_mono_ns = xpl_clock_ns()};
}

// What gRPC may hold of requests that arrive, on all connections of a server together: part of
// --memory-total, since requests are small and are not read before they are needed.
static size_t rpc_memory(const struct xpl_config *c) {
    enum { PART = 8 };
    const uint64_t least = (uint64_t)32 << 20, part = c->memory_total / PART;
    return (size_t)(part < least ? least : part);
}

static xpl_status_t start_grpc(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_config *const c = d->config;
    struct xpl_rpc_method m[N_METHODS];
    char tokens[XPL_RPC_TOKEN_FILE];
    set_services(d);
    XPL_TRY(fill_methods(d, m, err));
    XPL_TRY(read_tokens(c->token_file, tokens, err));
    if (c->tls_cert[0]) {
        const struct xpl_rpc_tls_options t = {.size = sizeof t,
                                              .cert_path = c->tls_cert,
                                              .key_path = c->tls_key,
                                              .client_ca_path =
                                                  c->tls_client_ca[0] ? c->tls_client_ca : NULL};
        XPL_TRY(xpl_rpc_tls_new(&t, &d->tls, err));
    }
    const struct xpl_rpc_server_options o = {
        .size = sizeof o, .memory_quota_bytes = rpc_memory(c), .tokens = xpl_str_from(tokens)};
    XPL_TRY(xpl_rpc_server_new(d->queue, m, N_METHODS, &o, &d->server, err));
    d->stats.rpc = d->server;
    if (d->tls) XPL_TRY(xpl_rpc_server_serve_tls(d->server, d->tls, err));
    XPL_TRY(listen_all(d, err));
    return xpl_rpc_server_start(d->server, err);
}

static void on_server_down(void *arg) { // on the queue's thread
    struct xpl_daemon *const d = arg;
    if (!xpl_loop_post(d->loop, d->ended, d)) abort(); // nothing could ever end the loop
}

// No new calls; those under way may finish until the grace time is over.
static void stop_server(struct xpl_daemon *d, struct xpl_rpc_server *server) {
    if (!server) return;
    xpl_listeners_stop(&d->listeners, server);
    d->n_ending++;
    xpl_rpc_server_shutdown(server, on_server_down, d);
}

static void stop_grpc(struct xpl_daemon *d) {
    stop_server(d, d->server);
}

static void free_grpc(struct xpl_daemon *d) {
    xpl_rpc_server_free(d->server);
    xpl_listeners_free(&d->listeners, d->server);
    xpl_rpc_health_free(d->health);
    xpl_rpc_reflection_free(d->reflection);
    xpl_rpc_tls_free(d->tls);
}

const struct xpl_component xpl_grpc_component = {
    .name = "grpc", .start = start_grpc, .stop = stop_grpc, .free = free_grpc};

// ---- the XProf worker ----

// An aggregator can show neither certificate nor token: it gets a listener of its own, that only
// this machine's users reach unless the operator knows better.
static xpl_status_t start_worker(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_config *c = d->config;
    const char *const address = c->xprof_worker;
    if (!address[0]) return XPL_OK;
    if (!xpl_listeners_is_local(address) && !c->insecure)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "--xprof-worker %s: an aggregator can show neither certificate nor token: "
                         "use unix:/PATH or a loopback address, or say --insecure",
                         address);
    const struct xpl_svc_worker_options o = {c->logdir, c->worker_dir, c->worker_group,
                                             c->worker_fallback, d->metrics};
    XPL_TRY(xpl_svc_worker_new(d->engine, d->catalogue, &o, &d->worker, err));
    struct xpl_rpc_method m[XPL_SVC_WORKER_METHODS];
    xpl_svc_worker_methods(d->worker, m);
    const struct xpl_rpc_server_options so = {.size = sizeof so,
                                              .memory_quota_bytes = rpc_memory(c)};
    XPL_TRY(xpl_rpc_server_new(d->queue, m, XPL_SVC_WORKER_METHODS, &so, &d->worker_server, err));
    const struct xpl_listen_request q = {.address = address,
                                         .service = "xprof-worker",
                                         .server = d->worker_server,
                                         .group = xpl_svc_worker_group(d->worker)};
    XPL_TRY(xpl_listeners_add(&d->listeners, &q, err));
    return xpl_rpc_server_start(d->worker_server, err);
}

static void stop_worker(struct xpl_daemon *d) {
    stop_server(d, d->worker_server);
}

static void free_worker(struct xpl_daemon *d) {
    xpl_rpc_server_free(d->worker_server);
    xpl_listeners_free(&d->listeners, d->worker_server);
    xpl_svc_worker_free(d->worker);
}

const struct xpl_component xpl_worker_component = {
    .name = "xprof worker", .start = start_worker, .stop = stop_worker, .free = free_worker};

// ---- HTTP ----

static xpl_status_t start_http(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_config *c = d->config;
    if (!c->http[0] || strcmp(c->http, "off") == 0) return XPL_OK;
    const struct xpl_http_options o = {.listen = c->http,
                                       .hosts = c->http_host,
                                       .prefix = c->http_prefix,
                                       .ui_dir = c->ui_dir,
                                       .src_prefix = c->src_prefix,
                                       .tls_cert = c->tls_cert,
                                       .tls_key = c->tls_key,
                                       .client_ca = c->tls_client_ca,
                                       .insecure = c->insecure,
                                       .max_connections = (size_t)c->http_connections,
                                       .per_address = (size_t)c->connections_per_address,
                                       .memory_limit = (size_t)c->memory_limit,
                                       .idle_ms = c->http_idle_ms};
    const struct xpl_http_parts p = {.loop = d->loop,
                                     .engine = d->engine,
                                     .catalogue = d->catalogue,
                                     .labels = d->labels,
                                     .history = d->history,
                                     .newest = d->newest,
                                     .cache = d->cache,
                                     .pool = d->pool,
                                     .metrics = d->metrics,
                                     .statements = d->statements,
                                     .store = d->store,
                                     .needs_store = xpl_config_has_role(c, "worker"),
                                     .captures = d->captures,
                                     .schedules = d->schedules,
                                     .stats = &d->stats};
    char tokens[XPL_RPC_TOKEN_FILE];
    XPL_TRY(read_tokens(c->token_file, tokens, err));
    XPL_TRY(xpl_http_new(&o, &p, &d->http, err));
    return xpl_http_set_tokens(d->http, xpl_str_from(tokens), err);
}

static void stop_http(struct xpl_daemon *d) {
    if (!d->http) return;
    d->n_ending++;
    xpl_http_stop(d->http, d->ended, d);
}

static void free_http(struct xpl_daemon *d) {
    xpl_http_free(d->http);
}

const struct xpl_component xpl_http_component = {
    .name = "http", .start = start_http, .stop = stop_http, .free = free_http};

// ---- all of them ----

xpl_status_t xpl_daemon_reload_credentials(struct xpl_daemon *d, struct xpl_error *err) {
    char tokens[XPL_RPC_TOKEN_FILE];
    if (d->tls) {
        XPL_TRY(xpl_http_check_certificate(d->config->tls_cert, d->config->tls_key, err));
        XPL_TRY(xpl_rpc_tls_reload(d->tls, err));
        if (d->http) XPL_TRY(xpl_http_renew_certificate(d->http, err));
    }
    XPL_TRY(read_tokens(d->config->token_file, tokens, err));
    if (d->http) XPL_TRY(xpl_http_set_tokens(d->http, xpl_str_from(tokens), err));
    return xpl_rpc_server_set_tokens(d->server, xpl_str_from(tokens), err);
}

void xpl_daemon_cancel_calls(struct xpl_daemon *d) {
    if (d->server) xpl_rpc_server_cancel_all(d->server);
    if (d->worker_server) xpl_rpc_server_cancel_all(d->worker_server);
}
