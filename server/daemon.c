#include "server/daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/log.h"
#include "proto/descriptors.h"
#include "rpc/standard/health.h"
#include "rpc/standard/reflection.h"
#include "rpc/unix.h"
#include "server/capture_jobs/captures.h"
#include "server/capture_jobs/schedules.h"
#include "server/engine/index_files.h"
#include "server/engine/opstats_rows.h"
#include "server/engine/pool.h"
#include "server/engine/prefetch.h"
#include "server/engine/versions.h"
#include "server/engine/writer.h"
#include "server/grpc/services.h"
#include "server/grpc/tool_data.h"
#include "server/http/http.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "server/notify.h"
#include "server/watch.h"
#include "storage/sessions/identity.h"

enum { TICK_MS = 200, TIDY_TICKS = 300, DRAIN_MS = 3000, MAX_SOCKETS = 8 };
enum { QUIET_MS = 50, QUIET_LOOKS = 3 }; // of a stop: all has been said when it was so that often
enum {
    N_SERVICES = XPL_SVC_ANALYSIS_METHODS + XPL_SVC_SESSION_METHODS + XPL_SVC_CAPTURE_METHODS +
                 XPL_SVC_IMPORT_METHODS + XPL_SVC_PROFILE_ANALYSIS_METHODS + XPL_SVC_SERVER_METHODS
};
enum { N_METHODS = N_SERVICES + XPL_RPC_HEALTH_METHODS + XPL_RPC_REFLECTION_METHODS };

struct daemon { // members in order of start; NULL until then
    struct xpl_config *config;
    int argc;
    char **argv;
    struct xpl_loop *loop;
    struct xpl_catalogue *catalogue;
    struct xpl_store *store;
    struct xpl_identity *identity;
    struct xpl_store_version *versions; // of all results
    struct xpl_index_files *index_files;
    struct xpl_store_writer *writer;
    struct xpl_cache *cache;
    struct xpl_pool *pool;
    struct xpl_engine *engine;
    struct xpl_metrics *metrics;
    struct xpl_history *history;
    struct xpl_capture_jobs *captures;
    struct xpl_schedules *schedules;
    struct xpl_svc_capture *capture;
    struct xpl_svc_import *import;
    struct xpl_svc_profile_analysis profile_analysis;
    struct xpl_svc_analysis analysis;
    struct xpl_svc_session *sessions;
    struct xpl_svc_server stats;
    struct xpl_svc_worker *worker;
    struct xpl_rpc_queue *queue;
    struct xpl_rpc_tls *tls;
    struct xpl_rpc_health *health;
    struct xpl_rpc_reflection *reflection;
    struct xpl_rpc_server *server, *worker_server;
    struct unix_listener { // sockets whose peers the kernel names; libuv accepts for gRPC
        struct xpl_rpc_unix *socket;
        struct xpl_rpc_server *server;
        uv_poll_t poll;
    } sockets[MAX_SOCKETS];
    size_t n_sockets;
    struct xpl_http *http;
    struct xpl_watch *watch;
    struct xpl_prefetch *prefetch;
    uv_signal_t sigterm, sigint, sighup;
    uv_timer_t tick, grace;
    bool handles, stopping;
    unsigned ticks, quiet;
    uint64_t grace_end; // in the loop's time
    int servers_down;
};

static int64_t unix_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct xpl_engine_options engine_options(const struct xpl_config *c) {
    return (struct xpl_engine_options){.memory_limit = (size_t)c->memory_limit,
                                       .memory_total = (size_t)c->memory_total,
                                       .request_timeout_ns = c->request_timeout_ms * 1000000u};
}

// ---- stop ----

static void server_down(void *arg);
static void finish_stop(void *arg);

// Begins the end: no new calls; those under way may finish until the grace time is over.
static void begin_stop(struct daemon *d) {
    d->stopping = true;
    xpl_notify("STOPPING=1");
    xpl_log(XPL_LOG_INFO, "daemon", "stopping");
    xpl_rpc_health_stop(d->health);
    xpl_svc_session_stop(d->sessions);
    xpl_capture_jobs_stop(d->captures);
    for (size_t i = 0; i < d->n_sockets; i++)
        uv_poll_stop(&d->sockets[i].poll);
    if (d->http) xpl_http_stop(d->http, finish_stop, d);
    xpl_rpc_server_shutdown(d->server, server_down, d);
    if (d->worker_server) xpl_rpc_server_shutdown(d->worker_server, server_down, d);
}

static void close_handle(uv_handle_t *h) {
    if (!uv_is_closing(h)) uv_close(h, NULL);
}

// All calls are over: the rest goes in the order opposite to its start.
static void finish_stop(void *arg) {
    struct daemon *d = arg;
    if (++d->servers_down < 1 + (d->worker_server != NULL) + (d->http != NULL)) return;
    close_handle((uv_handle_t *)&d->sigterm);
    close_handle((uv_handle_t *)&d->sigint);
    close_handle((uv_handle_t *)&d->sighup);
    close_handle((uv_handle_t *)&d->tick);
    close_handle((uv_handle_t *)&d->grace);
    for (size_t i = 0; i < d->n_sockets; i++)
        close_handle((uv_handle_t *)&d->sockets[i].poll);
    xpl_watch_close(d->watch);
    xpl_loop_close(d->loop); // uv_run returns when the last handle is closed
}

static void server_down(void *arg) { // on the queue's thread
    struct daemon *d = arg;
    if (!xpl_loop_post(d->loop, finish_stop, d)) abort(); // nothing could ever end the loop
}

// Until the grace time is over: waits for calls, but not for clients that only stay connected.
static void on_grace(uv_timer_t *t) {
    struct daemon *d = t->data;
    const bool over = uv_now(xpl_loop_uv(d->loop)) >= d->grace_end;
    const bool quiet = xpl_rpc_server_is_drained(d->server) &&
                       (!d->worker_server || xpl_rpc_server_is_drained(d->worker_server));
    d->quiet = quiet ? d->quiet + 1 : 0;
    if (d->quiet < QUIET_LOOKS && !over) return;
    if (!quiet)
        xpl_log(XPL_LOG_WARN, "daemon", "requests under way are cancelled: --grace is over");
    // A quiet server is told once: the HTTP gateway may still have something under way.
    if (over || d->quiet == QUIET_LOOKS) {
        xpl_rpc_server_cancel_all(d->server);
        if (d->worker_server) xpl_rpc_server_cancel_all(d->worker_server);
    }
    if (!over) return;
    xpl_capture_jobs_cancel_all(d->captures);
    if (d->http) xpl_http_cancel(d->http);
    uv_timer_stop(t);
}

static void on_stop_signal(uv_signal_t *s, int number) {
    struct daemon *d = s->data;
    if (d->stopping) {
        if (number == SIGINT) _exit(1); // a person lost patience
        return;
    }
    d->grace_end = uv_now(xpl_loop_uv(d->loop)) + d->config->grace_ms;
    uv_timer_start(&d->grace, on_grace, QUIET_MS, QUIET_MS);
    begin_stop(d);
}

// ---- while running ----

// First line of the token file; "" without one.
static xpl_status_t read_token(const char *path, char *ret, size_t size, struct xpl_error *err) {
    ret[0] = 0;
    if (!path[0]) return XPL_OK;
    FILE *f = fopen(path, "re");
    if (!f)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--token-file %s: %s", path,
                         strerror(errno));
    const bool got = fgets(ret, (int)size, f) != NULL;
    (void)fclose(f);
    ret[strcspn(ret, "\r\n")] = 0;
    if (!got || !ret[0])
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--token-file %s: no token in it", path);
    return XPL_OK;
}

// Takes certificates and token as the files have them now.
static xpl_status_t reload_credentials(struct daemon *d, struct xpl_error *err) {
    char token[4096];
    if (d->tls) XPL_TRY(xpl_rpc_tls_reload(d->tls, err));
    XPL_TRY(read_token(d->config->token_file, token, sizeof token, err));
    if (d->http) XPL_TRY(xpl_http_set_token(d->http, token, err));
    return xpl_rpc_server_set_token(d->server, xpl_str_from(token), err);
}

static void on_reload_signal(uv_signal_t *s, int number) {
    (void)number;
    struct daemon *d = s->data;
    xpl_notify("RELOADING=1");
    struct xpl_error err = {0};
    // Settings are all checked before the first is taken over; certificates and the token stand for
    // themselves and are read last.
    xpl_status_t st = xpl_config_reload(d->config, d->argc, d->argv, &err);
    if (st == XPL_OK) {
        (void)xpl_log_configure(d->config->log);
        const struct xpl_engine_options o = engine_options(d->config);
        xpl_engine_set_options(d->engine, &o);
        xpl_cache_set_limit(d->cache, (size_t)d->config->answer_cache);
        xpl_pool_set_limit(d->pool, (size_t)d->config->max_concurrent_requests);
        xpl_prefetch_set_enabled(d->prefetch, d->config->prefetch);
        st = reload_credentials(d, &err);
    }
    if (st == XPL_OK) {
        xpl_log(XPL_LOG_INFO, "daemon", "settings reloaded");
    } else {
        xpl_log(XPL_LOG_ERROR, "daemon", "settings not reloaded: %s", err.msg);
    }
    xpl_notify("READY=1");
}

static void on_tick(uv_timer_t *t) {
    struct daemon *d = t->data;
    xpl_engine_sweep(d->engine);
    xpl_schedules_tick(d->schedules);
    if (d->http) xpl_http_tick(d->http);
    if (++d->ticks % TIDY_TICKS == 0 && d->worker) xpl_svc_worker_tidy(d->worker);
}

static void on_socket(uv_poll_t *p, int status, int events) {
    (void)events;
    struct unix_listener *u = p->data;
    if (status == 0) xpl_rpc_unix_accept(u->socket, u->server);
}

static bool has_problem(const struct xpl_snapshot *s, xpl_str_t text) {
    for (size_t i = 0; i < s->n_problems_kept; i++)
        if (xpl_str_eq(s->problems[i], text)) return true;
    return false;
}

static void on_catalogue(void *arg, struct xpl_snapshot *before, struct xpl_snapshot *after) {
    struct daemon *d = arg;
    xpl_log(XPL_LOG_INFO, "catalogue", "%zu sessions", after->n_sessions);
    for (size_t i = 0; i < after->n_problems_kept; i++)
        if (after == before || !has_problem(before, after->problems[i]))
            xpl_log(XPL_LOG_WARN, "catalogue", "%.*s", XPL_STR_FMT(after->problems[i]));
    if (after != before) xpl_svc_session_changed(d->sessions, before, after);
    xpl_capture_jobs_rescan(d->captures);
    xpl_store_writer_put_catalogue(d->writer, after);
}

static void on_grpc_log(int severity, const char *file, int line, const char *text) {
    const enum xpl_log_level level = severity >= 2 ? XPL_LOG_WARN : XPL_LOG_DEBUG;
    xpl_log(level, "grpc", "%s:%d: %s", file, line, text);
}

// ---- start ----

static xpl_status_t state_dir(const struct xpl_config *c, char *ret, size_t size,
                              struct xpl_error *err) {
    const char *const cache = getenv("CACHE_DIRECTORY"), *const xdg = getenv("XDG_CACHE_HOME"),
                      *const home = getenv("HOME");
    int n = -1;
    if (c->state_dir[0])
        n = snprintf(ret, size, "%s", c->state_dir);
    else if (cache && cache[0])
        n = snprintf(ret, size, "%s", cache);
    else if (xdg && xdg[0])
        n = snprintf(ret, size, "%s/xplaned", xdg);
    else if (home && home[0])
        n = snprintf(ret, size, "%s/.cache/xplaned", home);
    if (n < 0 || (size_t)n >= size)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "no place for cache.db: set --state-dir DIR");
    return XPL_OK;
}

// Where state.db goes.
static xpl_status_t history_dir(const struct xpl_config *c, char *ret, size_t size,
                                struct xpl_error *err) {
    const char *const state = getenv("STATE_DIRECTORY"), *const xdg = getenv("XDG_STATE_HOME"),
                      *const home = getenv("HOME");
    int n = -1;
    if (c->state_dir[0])
        n = snprintf(ret, size, "%s", c->state_dir);
    else if (state && state[0])
        n = snprintf(ret, size, "%s", state);
    else if (xdg && xdg[0])
        n = snprintf(ret, size, "%s/xplaned", xdg);
    else if (home && home[0])
        n = snprintf(ret, size, "%s/.local/state/xplaned", home);
    if (n < 0 || (size_t)n >= size)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "no place for state.db: set --state-dir DIR");
    return XPL_OK;
}

struct look { // a request to look at a directory, on its way to the loop
    struct daemon *d;
    char path[];
};

static void look_now(void *arg) {
    struct look *l = arg;
    if (!l->d->stopping && l->d->watch) xpl_watch_scan(l->d->watch, l->path);
    xpl_sys_free(l);
}

static void look_soon(void *arg, const char *path) {
    struct daemon *d = arg;
    const size_t n = strlen(path) + 1;
    struct look *l = xpl_sys_alloc(sizeof *l + n);
    if (!l) return; // the next scan finds it as well
    l->d = d;
    memcpy(l->path, path, n);
    if (!xpl_loop_post(d->loop, look_now, l)) xpl_sys_free(l);
}

static xpl_status_t start_captures(struct daemon *d, struct xpl_error *err) {
    char dir[PATH_MAX], text[512];
    XPL_TRY(history_dir(d->config, dir, sizeof dir, err));
    XPL_TRY(xpl_history_open(dir, &d->history, err));
    while (xpl_history_next_notice(d->history, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "capture", "%s", text);
    const struct xpl_capture_jobs_options o = {.logdir = d->config->logdir,
                                               .history = d->history,
                                               .catalogue = d->catalogue,
                                               .look = look_soon,
                                               .arg = d,
                                               .enabled = d->config->capture};
    if (!(d->captures = xpl_capture_jobs_new(&o))) XPL_RETURN_OOM(err, "captures");
    d->schedules = xpl_schedules_new(d->captures, d->history, d->config->logdir);
    if (!d->schedules) XPL_RETURN_OOM(err, "schedules");
    d->capture = xpl_svc_capture_new(d->captures, d->history, d->schedules);
    if (!d->capture) XPL_RETURN_OOM(err, "captures");
    char cache[PATH_MAX - 16];
    XPL_TRY(state_dir(d->config, cache, sizeof cache, err));
    (void)snprintf(dir, sizeof dir, "%s/incoming", cache);
    const struct xpl_svc_import_options io = {d->config->logdir, dir, d->config->allow_delete};
    if (!(d->import = xpl_svc_import_new(d->captures, d->catalogue, &io)))
        XPL_RETURN_OOM(err, "imports");
    return XPL_OK;
}

static xpl_status_t start_writer(struct daemon *d, struct xpl_error *err) {
    size_t n;
    d->versions = xpl_versions_new(&n);
    if (!d->versions) XPL_RETURN_OOM(err, "writer");
    const struct xpl_store_writer_options wo = {.store = d->store,
                                                .identity = d->identity,
                                                .current = d->versions,
                                                .n_current = n,
                                                .rows_version = XPL_ROWS_VERSION};
    d->writer = xpl_store_writer_new(&wo);
    if (!d->writer) XPL_RETURN_OOM(err, "writer");
    return XPL_OK;
}

static bool pool_is_busy(void *pool) {
    return xpl_pool_get_state(pool).idle_since_ns == 0;
}

static xpl_status_t start_storage(struct daemon *d, struct xpl_error *err) {
    const struct xpl_catalogue_options co = {
        .size = sizeof co, .logdir = d->config->logdir, .match = xpl_format_match};
    XPL_TRY(xpl_catalogue_new(&co, &d->catalogue, err));
    char dir[PATH_MAX], text[512];
    XPL_TRY(state_dir(d->config, dir, sizeof dir, err));
    const struct xpl_store_options so = {
        .size = sizeof so, .dir = dir, .limit_bytes = d->config->store_limit};
    XPL_TRY(xpl_store_open(&so, &d->store, err));
    if (!(d->index_files = xpl_index_files_new(dir, (uint64_t)d->config->store_limit)))
        XPL_RETURN_OOM(err, "traces");
    while (xpl_store_next_notice(d->store, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "store", "%s", text);
    XPL_TRY(xpl_identity_new(d->store, &d->identity, err));
    XPL_TRY(start_writer(d, err));
    // A reader is opened, and its statements are prepared, by the first question: this one.
    const struct xpl_profile_id none = {0};
    const struct xpl_store_key any = {
        .kind = XPL_STORE_ANSWER, .name = XPL_STR("none"), .profiles = &none, .n_profiles = 1};
    (void)xpl_store_has(d->store, &any);
    return XPL_OK;
}

static xpl_status_t start_engine(struct daemon *d, struct xpl_error *err) {
    const struct xpl_config *c = d->config;
    const struct xpl_engine_options eo = engine_options(c);
    d->cache = xpl_cache_new((size_t)c->answer_cache);
    d->pool = xpl_pool_new((unsigned)c->workers, (size_t)c->max_concurrent_requests);
    d->metrics = xpl_metrics_new();
    if (!d->cache || !d->pool || !d->metrics) XPL_RETURN_OOM(err, "workers");
    const struct xpl_engine_parts parts = {.catalogue = d->catalogue,
                                           .store = d->store,
                                           .identity = d->identity,
                                           .pool = d->pool,
                                           .writer = d->writer,
                                           .cache = d->cache,
                                           .files = d->index_files,
                                           .head = xpl_tool_data_put_head};
    d->engine = xpl_engine_new(&parts, &eo);
    if (!d->engine) XPL_RETURN_OOM(err, "engine");
    xpl_store_writer_set_busy(d->writer, pool_is_busy, d->pool);
    d->sessions = xpl_svc_session_new(d->engine, d->catalogue);
    if (!d->sessions) XPL_RETURN_OOM(err, "sessions");
    d->analysis = (struct xpl_svc_analysis){d->engine, d->catalogue, d->cache, d->metrics};
    struct timespec mono;
    clock_gettime(CLOCK_MONOTONIC, &mono);
    d->stats = (struct xpl_svc_server){.engine = d->engine,
                                       .catalogue = d->catalogue,
                                       .store = d->store,
                                       .writer = d->writer,
                                       .cache = d->cache,
                                       .pool = d->pool,
                                       .metrics = d->metrics,
                                       .started_unix_ns = unix_ns(),
                                       .started_mono_ns = (uint64_t)mono.tv_sec * 1000000000u +
                                                          (uint64_t)mono.tv_nsec};
    return XPL_OK;
}

// True for addresses that only this machine's users can reach.
static bool is_local(const char *a) {
    static const char *const local[] = {"localhost:", "[::1]:", "unix:", "unix-abstract:"};
    char host[INET_ADDRSTRLEN]; // 127.0.0.0/8 in numbers: "127.example.com" is anywhere
    const char *const colon = strrchr(a, ':');
    struct in_addr ip;
    const size_t len = colon ? (size_t)(colon - a) : strlen(a);
    if (len < sizeof host) {
        memcpy(host, a, len);
        host[len] = 0;
        if (inet_pton(AF_INET, host, &ip) == 1) return ntohl(ip.s_addr) >> 24 == 127;
    }
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (strncmp(a, local[i], strlen(local[i])) == 0) return true;
    return false;
}

static void log_listening(const char *service, const char *address, int port) {
    const char *const colon = strncmp(address, "unix", 4) == 0 ? NULL : strrchr(address, ':');
    char text[PATH_MAX + 32];
    if (colon)
        (void)snprintf(text, sizeof text, "%.*s:%d", (int)(colon - address), address, port);
    else
        (void)snprintf(text, sizeof text, "%s", address);
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_INFO, "daemon", "listening");
    xpl_log_z(&l, "service", service);
    xpl_log_z(&l, "address", text);
    xpl_log_end(&l);
}

// A unix socket is ours to accept on, anything else gRPC's.
static xpl_status_t listen_on(struct daemon *d, struct xpl_rpc_server *server, const char *service,
                              const char *address, struct xpl_rpc_tls *tls, gid_t group,
                              struct xpl_error *err) {
    int port = 0;
    if (strncmp(address, "unix:", 5) == 0) {
        if (d->n_sockets == MAX_SOCKETS)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "at most %d unix sockets", MAX_SOCKETS);
        struct unix_listener *u = &d->sockets[d->n_sockets];
        XPL_TRY(xpl_rpc_unix_new(address + 5, group, &u->socket, err));
        u->server = server;
        d->n_sockets++;
    } else {
        XPL_TRY(xpl_rpc_server_listen(server, address, tls, &port, err));
    }
    log_listening(service, address, port);
    return XPL_OK;
}

// Listens on each of the comma-separated addresses.
static xpl_status_t listen_all(struct daemon *d, struct xpl_error *err) {
    const char *at = d->config->listen;
    while (*at) {
        char address[PATH_MAX];
        const size_t n = strcspn(at, ",");
        if (n >= sizeof address)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--listen: address too long");
        memcpy(address, at, n);
        address[n] = 0;
        at += n + (at[n] == ',');
        if (!is_local(address) && !d->tls && !d->config->insecure)
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "--listen %s can be reached from other machines: use --tls-cert and "
                             "--tls-key, or say --insecure",
                             address);
        XPL_TRY(listen_on(d, d->server, "grpc", address, d->tls, (gid_t)-1, err));
    }
    return XPL_OK;
}

static xpl_status_t start_server(struct daemon *d, struct xpl_error *err) {
    const struct xpl_config *c = d->config;
    struct xpl_rpc_method m[N_METHODS];
    size_t n = 0;
    xpl_svc_analysis_methods(&d->analysis, m);
    n += XPL_SVC_ANALYSIS_METHODS;
    xpl_svc_session_methods(d->sessions, m + n);
    n += XPL_SVC_SESSION_METHODS;
    xpl_svc_capture_methods(d->capture, m + n);
    n += XPL_SVC_CAPTURE_METHODS;
    xpl_svc_import_methods(d->import, m + n);
    n += XPL_SVC_IMPORT_METHODS;
    d->profile_analysis =
        (struct xpl_svc_profile_analysis){d->engine, d->catalogue, d->captures, c->logdir};
    xpl_svc_profile_analysis_methods(&d->profile_analysis, m + n);
    n += XPL_SVC_PROFILE_ANALYSIS_METHODS;
    xpl_svc_server_methods(&d->stats, m + n);
    n += XPL_SVC_SERVER_METHODS;
    XPL_TRY(xpl_rpc_health_new(m, n, &d->health, err));
    xpl_rpc_health_get_methods(d->health, m + n);
    n += XPL_RPC_HEALTH_METHODS;
    const xpl_bytes_t set = {xpl_proto_descriptors, xpl_proto_descriptors_len};
    XPL_TRY(xpl_rpc_reflection_new(set, m, n, &d->reflection, err));
    xpl_rpc_reflection_get_methods(d->reflection, m + n);
    n += XPL_RPC_REFLECTION_METHODS;
    char token[4096];
    XPL_TRY(read_token(c->token_file, token, sizeof token, err));
    if (c->tls_cert[0]) {
        const struct xpl_rpc_tls_options t = {.size = sizeof t,
                                              .cert_path = c->tls_cert,
                                              .key_path = c->tls_key,
                                              .client_ca_path =
                                                  c->tls_client_ca[0] ? c->tls_client_ca : NULL};
        XPL_TRY(xpl_rpc_tls_new(&t, &d->tls, err));
    }
    const struct xpl_rpc_server_options o = {.size = sizeof o, .token = xpl_str_from(token)};
    XPL_TRY(xpl_rpc_server_new(d->queue, m, n, &o, &d->server, err));
    d->stats.rpc = d->server;
    XPL_TRY(listen_all(d, err));
    return xpl_rpc_server_start(d->server, err);
}

// An aggregator can show neither certificate nor token: it gets a listener of its own that only
// this machine's users reach.
static xpl_status_t start_worker(struct daemon *d, struct xpl_error *err) {
    const struct xpl_config *c = d->config;
    const char *const address = c->xprof_worker;
    if (!address[0]) return XPL_OK;
    if (!is_local(address))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "--xprof-worker %s: must be unix:/PATH or a loopback address", address);
    const struct xpl_svc_worker_options o = {c->logdir, c->worker_dir, c->worker_group,
                                             c->worker_fallback, d->metrics};
    XPL_TRY(xpl_svc_worker_new(d->engine, d->catalogue, &o, &d->worker, err));
    struct xpl_rpc_method m[XPL_SVC_WORKER_METHODS];
    xpl_svc_worker_methods(d->worker, m);
    const struct xpl_rpc_server_options so = {.size = sizeof so};
    XPL_TRY(xpl_rpc_server_new(d->queue, m, XPL_SVC_WORKER_METHODS, &so, &d->worker_server, err));
    XPL_TRY(listen_on(d, d->worker_server, "xprof-worker", address, NULL,
                      xpl_svc_worker_group(d->worker), err));
    return xpl_rpc_server_start(d->worker_server, err);
}

static xpl_status_t start_http(struct daemon *d, struct xpl_error *err) {
    const struct xpl_config *c = d->config;
    if (!c->http[0] || strcmp(c->http, "off") == 0) return XPL_OK;
    const struct xpl_http_options o = {.listen = c->http,
                                       .hosts = c->http_host,
                                       .prefix = c->http_prefix,
                                       .ui_dir = c->ui_dir,
                                       .src_prefix = c->src_prefix,
                                       .tls_cert = c->tls_cert,
                                       .tls_key = c->tls_key,
                                       .client_ca = c->tls_client_ca[0] != 0,
                                       .insecure = c->insecure,
                                       .max_connections = (size_t)c->http_connections,
                                       .memory_limit = (size_t)c->memory_limit,
                                       .idle_ms = c->http_idle_ms};
    const struct xpl_http_parts p = {.loop = d->loop,
                                     .engine = d->engine,
                                     .catalogue = d->catalogue,
                                     .cache = d->cache,
                                     .pool = d->pool,
                                     .metrics = d->metrics,
                                     .captures = d->captures,
                                     .stats = &d->stats};
    char token[4096];
    XPL_TRY(read_token(c->token_file, token, sizeof token, err));
    XPL_TRY(xpl_http_new(&o, &p, &d->http, err));
    return xpl_http_set_token(d->http, token, err);
}

static xpl_status_t start_handles(struct daemon *d, struct xpl_error *err) {
    uv_loop_t *const uv = xpl_loop_uv(d->loop);
    d->handles = true;
    uv_signal_init(uv, &d->sigterm);
    uv_signal_init(uv, &d->sigint);
    uv_signal_init(uv, &d->sighup);
    uv_timer_init(uv, &d->tick);
    uv_timer_init(uv, &d->grace);
    d->sigterm.data = d->sigint.data = d->sighup.data = d->tick.data = d->grace.data = d;
    uv_signal_start(&d->sigterm, on_stop_signal, SIGTERM);
    uv_signal_start(&d->sigint, on_stop_signal, SIGINT);
    uv_signal_start(&d->sighup, on_reload_signal, SIGHUP);
    uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
    for (size_t i = 0; i < d->n_sockets; i++) {
        struct unix_listener *u = &d->sockets[i];
        uv_poll_init(uv, &u->poll, xpl_rpc_unix_get_fd(u->socket));
        u->poll.data = u;
        uv_poll_start(&u->poll, UV_READABLE, on_socket);
    }
    d->watch = xpl_watch_new(d->loop, d->catalogue, d->config->scan_interval_ms, on_catalogue, d);
    d->prefetch = xpl_prefetch_new(d->engine, d->catalogue, d->store, d->pool, d->config->prefetch);
    if (!d->watch || !d->prefetch) XPL_RETURN_OOM(err, "watching");
    return XPL_OK;
}

static xpl_status_t start(struct daemon *d, struct xpl_error *err) {
    // A client that goes away, or a quota on the cache, must not end the daemon.
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    // Arenas of our own do the small allocations; more than two of malloc's only keep memory apart.
    (void)mallopt(M_ARENA_MAX, 2);
    if (!xpl_log_configure(d->config->log))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--log %s: want LEVEL[,TOPIC:LEVEL]",
                         d->config->log);
    xpl_log_start();
    if (!(d->loop = xpl_loop_new())) XPL_RETURN_OOM(err, "loop");
    XPL_TRY(start_storage(d, err));
    XPL_TRY(start_engine(d, err));
    XPL_TRY(start_captures(d, err));
    xpl_rpc_set_log(on_grpc_log);
    XPL_TRY(xpl_rpc_queue_new(&d->queue, err));
    XPL_TRY(start_server(d, err));
    XPL_TRY(start_worker(d, err));
    XPL_TRY(start_http(d, err));
    XPL_TRY(start_handles(d, err));
    xpl_rpc_health_set(d->health, true);
    xpl_notify("READY=1");
    return XPL_OK;
}

// A start that failed half way: whatever is there goes.
static void unwind_handles(struct daemon *d) {
    if (d->handles) {
        close_handle((uv_handle_t *)&d->sigterm);
        close_handle((uv_handle_t *)&d->sigint);
        close_handle((uv_handle_t *)&d->sighup);
        close_handle((uv_handle_t *)&d->tick);
        close_handle((uv_handle_t *)&d->grace);
        for (size_t i = 0; i < d->n_sockets; i++)
            close_handle((uv_handle_t *)&d->sockets[i].poll);
        if (d->watch) xpl_watch_close(d->watch);
    }
    if (d->http) xpl_http_stop(d->http, NULL, NULL);
    xpl_loop_close(d->loop);
    (void)uv_run(xpl_loop_uv(d->loop), UV_RUN_DEFAULT);
}

static void free_all(struct daemon *d) {
    xpl_prefetch_free(d->prefetch);
    xpl_capture_jobs_free(d->captures);
    xpl_rpc_server_free(d->worker_server);
    xpl_rpc_server_free(d->server);
    if (d->writer) xpl_store_writer_set_busy(d->writer, NULL, NULL);
    xpl_pool_free(d->pool);
    for (size_t i = 0; i < d->n_sockets; i++)
        xpl_rpc_unix_free(d->sockets[i].socket);
    xpl_rpc_health_free(d->health);
    xpl_rpc_reflection_free(d->reflection);
    xpl_rpc_tls_free(d->tls);
    xpl_rpc_queue_free(d->queue);
    xpl_svc_worker_free(d->worker);
    xpl_svc_import_free(d->import);
    xpl_svc_capture_free(d->capture);
    xpl_schedules_free(d->schedules);
    xpl_history_close(d->history);
    xpl_svc_session_free(d->sessions);
    xpl_engine_free(d->engine);
    xpl_index_files_free(d->index_files);
    xpl_store_writer_free(d->writer, DRAIN_MS);
    xpl_cache_free(d->cache);
    xpl_http_free(d->http);
    xpl_metrics_free(d->metrics);
    xpl_identity_free(d->identity);
    xpl_sys_free(d->versions);
    xpl_store_close(d->store);
    xpl_catalogue_free(d->catalogue);
    if (d->loop) xpl_loop_free(d->loop);
}

int xpl_daemon_run(struct xpl_config *config, int argc, char **argv) {
    struct daemon d = {.config = config, .argc = argc, .argv = argv};
    struct xpl_error err = {0};
    int status = 0;
    if (start(&d, &err) == XPL_OK) {
        (void)uv_run(xpl_loop_uv(d.loop), UV_RUN_DEFAULT);
        xpl_log(XPL_LOG_INFO, "daemon", "stopped");
    } else {
        xpl_log(XPL_LOG_ERROR, "daemon", "cannot start: %s", err.msg);
        status = 1;
        if (d.loop) unwind_handles(&d);
    }
    free_all(&d);
    xpl_log_stop();
    return status;
}
