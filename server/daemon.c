// SPDX-License-Identifier: Apache-2.0
#include "server/daemon.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/net/accept.h"
#include "base/std_fds.h"
#include "server/capture_jobs/captures.h"
#include "server/capture_jobs/schedules.h"
#include "server/conversion.h"
#include "server/daemon_parts.h"
#include "server/engine/pool.h"
#include "server/engine/writer.h"
#include "server/http/http.h"
#include "server/notify.h"
#include "server/process.h"
#include "server/removal/retention.h"
#include "server/watch.h"
#include "storage/objects/objects.h"

enum { TICK_MS = 200, TIDY_TICKS = 300, TRIM_TICKS = 5 };
// Not longer: pages that show the daemon's counters ask several times a second.
enum { IDLE_NS = 100000000, TRIM_BYTES = 32 << 20 };
// How often a daemon that is never idle trims, at most.
static const uint64_t BUSY_TRIM_NS = 5000000000;
// How long nothing, or next to nothing, was done at rest.
static const uint64_t REST_NS = 5000000000, OWN_TRIM_NS = 2000000000;
// Of one processor's time, a twentieth at most is next to nothing.
enum { REST_TRIM_BYTES = 1 << 20, LIGHT_SHARE = 20 };
// A daemon that stops checks its servers so often; they are drained when they were so that many
// times in a row.
enum { DRAIN_CHECK_MS = 50, DRAIN_CHECKS = 3 };
enum { CONVERT_TEXT = 256 << 20 };

struct process {
    struct xpl_daemon d; // first: it is what components and their callbacks get
    int argc;
    char **argv;
    const struct xpl_component *const *components; // in the order of start
    size_t n_components;
    size_t n_started; // the last one's start may have failed
    int signal_fd;
    uv_poll_t signals;
    uv_timer_t tick, grace;
    unsigned ticks, drained_checks;
    uint64_t grace_end;            // in the loop's time
    uint64_t trim_ns;              // when it was last looked whether a trim is worth it
    uint64_t rest_ns;              // when memory went back at rest; 0: never
    uint64_t seen_ns, seen_cpu_ns; // at the last look at the processor's time
    uint64_t light_since_ns;       // since when next to nothing is done; 0: more is
};

static struct process *process_of(struct xpl_daemon *d) {
    return (struct process *)d;
}

static void stop_components(struct process *p);

// ---- stop ----

static void close_handle(uv_handle_t *h) {
    if (!uv_is_closing(h)) uv_close(h, NULL);
}

// The last stop has ended: closes the remaining handles of the loop, so that uv_run returns.
static void on_ended(void *arg) {
    struct xpl_daemon *const d = arg;
    struct process *const p = process_of(d);
    if (--d->n_ending) return;
    if (p->signals.type == UV_POLL) close_handle((uv_handle_t *)&p->signals);
    close_handle((uv_handle_t *)&p->tick);
    close_handle((uv_handle_t *)&p->grace);
    if (d->watch) xpl_watch_close(d->watch);
    xpl_loop_close(d->loop);
}

// Until the grace time ends: waits for calls, but not for clients that only stay connected.
static void on_grace(uv_timer_t *t) {
    struct process *const p = t->data;
    struct xpl_daemon *const d = &p->d;
    const bool over = uv_now(xpl_loop_uv(d->loop)) >= p->grace_end;
    const bool drained = xpl_rpc_server_is_drained(d->server) &&
                         (!d->worker_server || xpl_rpc_server_is_drained(d->worker_server));
    p->drained_checks = drained ? p->drained_checks + 1 : 0;
    if (p->drained_checks < DRAIN_CHECKS && !over) return;
    if (!drained)
        xpl_log(XPL_LOG_WARN, "daemon", "running requests are cancelled: --grace has expired");
    // Once: the HTTP gateway may still have requests under way when gRPC's servers are drained.
    if (over || p->drained_checks == DRAIN_CHECKS) xpl_daemon_cancel_calls(d);
    if (!over) return;
    xpl_capture_jobs_cancel_all(d->captures);
    if (d->objects) xpl_objects_stop(d->objects, XPL_OBJECTS_STOP_ALL);
    if (d->http) xpl_http_cancel(d->http);
    uv_timer_stop(t);
}

static void on_stop_signal(struct process *p, uint32_t number) {
    struct xpl_daemon *const d = &p->d;
    if (d->stopping) {
        if (number == SIGINT) _exit(1); // a person lost patience
        return;
    }
    p->grace_end = uv_now(xpl_loop_uv(d->loop)) + d->config->grace_ms;
    uv_timer_start(&p->grace, on_grace, DRAIN_CHECK_MS, DRAIN_CHECK_MS);
    stop_components(p);
}

// ---- while running ----

static void on_reload_signal(struct process *p) {
    struct xpl_daemon *const d = &p->d;
    xpl_notify("RELOADING=1");
    struct xpl_error err = {0};
    struct xpl_config_reloaded left;
    // Settings are all checked before the first is taken over; certificates and the token are
    // independent and are read last.
    xpl_status_t st = xpl_config_reload(d->config, p->argc, p->argv, &left, &err);
    if (st == XPL_OK) {
        (void)xpl_log_configure(d->config->log);
        xpl_log_set_json(strcmp(d->config->log_format, "json") == 0);
        xpl_daemon_apply_settings(d);
        st = xpl_daemon_reload_credentials(d, &err);
    }
    if (st != XPL_OK)
        xpl_log(XPL_LOG_ERROR, "daemon", "settings not reloaded: %s", err.msg);
    else if (left.restart[0])
        xpl_log(XPL_LOG_WARN, "daemon",
                "%s takes effect after a restart; the other settings are in use", left.restart);
    else
        xpl_log(XPL_LOG_INFO, "daemon", "settings reloaded");
    xpl_notify("READY=1");
}

static void trim(void *unused) {
    (void)unused;
    xpl_heap_trim_idle(TRIM_BYTES);
}

static void trim_at_rest(void *unused) {
    (void)unused;
    xpl_heap_trim_rest(REST_TRIM_BYTES);
}

static void note_processor_time(struct process *p, uint64_t now) {
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    const uint64_t cpu_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    const bool is_light =
        (cpu_ns - p->seen_cpu_ns) * LIGHT_SHARE <= xpl_clock_between(p->seen_ns, now);
    if (!is_light || !p->light_since_ns) p->light_since_ns = is_light ? p->seen_ns : 0;
    p->seen_ns = now;
    p->seen_cpu_ns = cpu_ns;
}

// A trim under load leaves pages that are partly in use, and later frees do not return them.  An
// idle daemon therefore trims once more, so that its memory does not depend on the last request.
// That trim is short and does not count as work.  A daemon that only answers a scrape of /metrics
// each second is idle, too; it trims again once enough memory can be returned.
static bool is_rest_due(const struct process *p, uint64_t idle_since, uint64_t now) {
    if (!idle_since) return false;
    const uint64_t light_since = p->light_since_ns;
    const bool is_light = light_since && xpl_clock_between(light_since, now) >= REST_NS;
    if (!is_light && xpl_clock_between(idle_since, now) < REST_NS) return false;
    const uint64_t since = is_light && light_since < idle_since ? light_since : idle_since;
    if (!p->rest_ns || since > p->rest_ns + OWN_TRIM_NS) return true;
    return is_light && xpl_clock_between(p->rest_ns, now) >= REST_NS &&
           xpl_heap_may_trim_idle(REST_TRIM_BYTES);
}

// Answers are freed after the jobs that made them, and those of slow clients later still, so
// malloc's free memory is returned when the daemon is idle.  Under lasting load it never is, malloc
// itself returns only the top of an arena, and memory would grow for hours: the daemon then trims,
// but rarely, as a trim blocks the allocations of other threads for milliseconds.
static void trim_when_due(struct process *p) {
    struct xpl_pool *const pool = p->d.pool;
    const uint64_t since = xpl_pool_get_state(pool).idle_since_ns, now = xpl_clock_ns();
    const bool idle = since && xpl_clock_between(since, now) >= IDLE_NS;
    note_processor_time(p, now);
    if (is_rest_due(p, since, now)) {
        if (xpl_pool_submit(pool, trim_at_rest, NULL)) p->rest_ns = now;
        return;
    }
    if (!idle && xpl_clock_between(p->trim_ns, now) < BUSY_TRIM_NS) return;
    if (xpl_heap_may_trim_idle(TRIM_BYTES) && !xpl_pool_submit(pool, trim, NULL)) {
        xpl_log(XPL_LOG_DEBUG, "daemon", "not trimmed: the queue is full");
        return; // tried again at the next tick
    }
    p->trim_ns = now;
}

static void on_tick(uv_timer_t *t) {
    struct process *const p = t->data;
    struct xpl_daemon *const d = &p->d;
    xpl_engine_sweep(d->engine);
    xpl_svc_capture_tick(d->capture);
    xpl_svc_import_tick(d->import);
    xpl_schedules_tick(d->schedules);
    if (d->retention) xpl_retention_tick(d->retention, xpl_unix_ms());
    if (d->http) xpl_http_tick(d->http);
    xpl_listeners_tick(&d->listeners);
    if (p->ticks % TRIM_TICKS == 0) trim_when_due(p);
    if (++p->ticks % TIDY_TICKS == 0 && d->worker) xpl_svc_worker_tidy(d->worker);
}

static bool has_problem(const struct xpl_snapshot *s, xpl_str_t text) {
    for (size_t i = 0; i < s->n_problems_kept; i++)
        if (xpl_str_eq(s->problems[i], text)) return true;
    return false;
}

static void on_catalogue(void *arg, struct xpl_snapshot *before, struct xpl_snapshot *after) {
    struct xpl_daemon *d = arg;
    xpl_log(XPL_LOG_INFO, "catalogue", "%zu session%s", after->n_sessions,
            after->n_sessions == 1 ? "" : "s");
    for (size_t i = 0; i < after->n_problems_kept; i++)
        if (after == before || !has_problem(before, after->problems[i]))
            xpl_log(XPL_LOG_WARN, "catalogue", "%.*s", XPL_STR_FMT(after->problems[i]));
    if (after != before) xpl_svc_session_changed(d->sessions, before, after);
    xpl_svc_labels_changed(&d->label_session);
    xpl_capture_jobs_rescan(d->captures);
    xpl_store_writer_put_catalogue(d->writer, after);
}

// ---- signals ----

// They are blocked in all threads, which inherit that, and read from a descriptor: none has its
// default action at any moment.  One that comes when the daemon listens but is not ready yet, or
// once more when it ends, leaves no socket and no file behind.
static void hold_signals(struct process *p) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    p->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static bool is_end_pending(void *unused) {
    (void)unused;
    sigset_t set;
    return sigpending(&set) == 0 && (sigismember(&set, SIGTERM) || sigismember(&set, SIGINT));
}

static void on_signal(uv_poll_t *h, int status, int events) {
    (void)status, (void)events;
    struct process *const p = h->data;
    struct signalfd_siginfo one;
    while (read(p->signal_fd, &one, sizeof one) == (ssize_t)sizeof one)
        if (one.ssi_signo == SIGHUP)
            on_reload_signal(p);
        else
            on_stop_signal(p, one.ssi_signo);
}

// ---- components of this file ----

static xpl_status_t start_loop(struct xpl_daemon *d, struct xpl_error *err) {
    struct process *const p = process_of(d);
    if (!(d->loop = xpl_loop_new())) XPL_RETURN_OOM(err, "loop");
    uv_loop_t *const uv = xpl_loop_uv(d->loop);
    uv_timer_init(uv, &p->tick);
    uv_timer_init(uv, &p->grace);
    p->signals.data = p->tick.data = p->grace.data = p;
    if (p->signal_fd >= 0 && uv_poll_init(uv, &p->signals, p->signal_fd) == 0) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "no descriptor for signals");
}

static void free_loop(struct xpl_daemon *d) {
    if (d->loop) xpl_loop_free(d->loop);
    if (process_of(d)->signal_fd >= 0) (void)close(process_of(d)->signal_fd);
}

static const struct xpl_component loop_component = {
    .name = "loop", .start = start_loop, .free = free_loop};

// Watching goes on while calls under way end: on_ended closes it.
static xpl_status_t start_watch(struct xpl_daemon *d, struct xpl_error *err) {
    d->watch = xpl_watch_new(d->loop, d->catalogue, d->config->scan_interval_ms, on_catalogue, d);
    if (!d->watch) XPL_RETURN_OOM(err, "watching");
    return XPL_OK;
}

static const struct xpl_component watch_component = {.name = "watch", .start = start_watch};

static xpl_status_t start_ready(struct xpl_daemon *d, struct xpl_error *err) {
    (void)err;
    struct process *const p = process_of(d);
    uv_poll_start(&p->signals, UV_READABLE, on_signal); // also for those that came meanwhile
    uv_timer_start(&p->tick, on_tick, TICK_MS, TICK_MS);
    xpl_rpc_health_set(d->health, true);
    if (d->http) xpl_http_set_ready(d->http, true);
    xpl_notify("READY=1");
    return XPL_OK;
}

static void stop_ready(struct xpl_daemon *d) {
    xpl_notify("STOPPING=1");
    xpl_log(XPL_LOG_INFO, "daemon", "stopping");
    xpl_rpc_health_stop(d->health);
    if (d->http) xpl_http_set_ready(d->http, false);
}

static const struct xpl_component ready_component = {
    .name = "ready", .start = start_ready, .stop = stop_ready};

// ---- the table ----

// clang-format off
static const struct xpl_component *const components[] = { // in the order of start
    &loop_component,
    &xpl_catalogue_component,
    &xpl_cache_component,
    &xpl_store_component,
    &xpl_index_files_component,
    &xpl_writer_component,
    &xpl_workers_component,
    &xpl_engine_component,
    &xpl_history_component,
    &xpl_sessions_component,
    &xpl_captures_component,
    &xpl_imports_component,
    &xpl_retention_component,
    &xpl_queue_component,
    &xpl_grpc_component,
    &xpl_worker_component,
    &xpl_http_component,
    &xpl_threads_component,
    &xpl_long_calls_component,
    &watch_component,
    &xpl_prefetch_component,
    &xpl_job_worker_component,
    &xpl_objects_component, // behind all whose threads wait for it, prefetching among them
    &ready_component,
};

static const struct xpl_component *const converting[] = { // of --role convert: no services
    &xpl_catalogue_component,
    &xpl_cache_component,
    &xpl_store_component,
    &xpl_index_files_component,
    &xpl_writer_component,
    &xpl_workers_component,
    &xpl_engine_component,
    &xpl_threads_component,
    &xpl_objects_component,
};
// clang-format on

static xpl_status_t start_components(struct process *p, struct xpl_error *err) {
    while (p->n_started < p->n_components) {
        const struct xpl_component *const c = p->components[p->n_started++];
        if (is_end_pending(NULL))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "a signal came before %s", c->name);
        if (c->start) XPL_TRY(c->start(&p->d, err));
    }
    return XPL_OK;
}

static void stop_components(struct process *p) {
    p->d.stopping = true;
    p->d.n_ending = 1; // this function
    for (size_t i = p->n_started; i > 0; i--)
        if (p->components[i - 1]->stop) p->components[i - 1]->stop(&p->d);
    on_ended(&p->d);
}

static void free_components(struct process *p) {
    for (size_t i = p->n_started; i > 0; i--)
        if (p->components[i - 1]->free) p->components[i - 1]->free(&p->d);
}

// ---- the process ----

// Descriptors for as many connections as the settings allow, or fewer connections. Fails below the
// number that gRPC needs: it aborts when it can open none.
static xpl_status_t fit_connections(struct xpl_config *c, struct xpl_error *err) {
    enum { OTHERS = 512, LEAST = 64 }; // files, databases, gRPC's, surplus connections of HTTP
    const uint64_t limit = xpl_descriptors_raise();
    if (limit < LEAST)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "%" PRIu64 " descriptors (ulimit -n) are too few: at least %d are needed",
                         limit, LEAST);
    const uint64_t room = limit > 2 * OTHERS ? limit - OTHERS : limit / 2;
    const uint64_t wanted = c->grpc_connections + c->http_connections;
    if (wanted <= room) return XPL_OK;
    c->grpc_connections = c->grpc_connections * room / wanted + 1;
    c->http_connections = c->http_connections * room / wanted + 1;
    xpl_log(XPL_LOG_WARN, "daemon",
            "%" PRIu64 " descriptors (ulimit -n) are enough for %" PRIu64
            " connections of gRPC and "
            "%" PRIu64 " of HTTP: --grpc-connections and --http-connections are lowered",
            limit, c->grpc_connections, c->http_connections);
    return XPL_OK;
}

// gRPC waits for ever for threads that it cannot start, so the daemon starts as many beforehand.
static xpl_status_t check_threads(const struct xpl_config *c, struct xpl_error *err) {
    enum { OTHERS = 32 }; // gRPC's, those of the parts, libuv's
    const unsigned n = OTHERS + (unsigned)c->workers;
    if (xpl_process_can_start(n)) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                     "%u threads cannot be started: raise the limit of processes (ulimit -u, "
                     "TasksMax) or of address space (ulimit -v)",
                     n);
}

static xpl_status_t prepare_process(struct xpl_config *c, struct xpl_error *err) {
    // A client that goes away, or a quota on the cache, must not end the daemon.
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    // Our arenas do the small allocations, so that threads do not wait for malloc's. It returns
    // only the free end of its main arena: each other one keeps up to 64 MiB while idle.
    (void)mallopt(M_ARENA_MAX, 1);
    if (!xpl_log_configure(c->log))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--log %s: not LEVEL[,TOPIC:LEVEL]", c->log);
    xpl_log_set_json(strcmp(c->log_format, "json") == 0);
    xpl_log_start();
    xpl_heap_set_budget(xpl_daemon_heap_budget(c));
    const xpl_status_t st = fit_connections(c, err);
    return st == XPL_OK ? check_threads(c, err) : st;
}

static xpl_status_t convert(struct xpl_daemon *d, struct xpl_buf *ret, bool *ret_complete,
                            struct xpl_error *err) {
    const struct xpl_job_worker_options parts = {.store = d->store,
                                                 .catalogue = d->catalogue,
                                                 .products = xpl_engine_get_products(d->engine),
                                                 .pool = d->pool,
                                                 .lease_ms = d->config->job_lease_ms};
    return xpl_conversion_run(&parts, d->config, &d->starting, ret, ret_complete, err);
}

// 0: all is stored; 3: not all; 1: nothing is known.
static int run_conversion(struct xpl_config *config) {
    struct process p = {.d = {.config = config, .starting = {.is_cancelled = is_end_pending}},
                        .components = converting,
                        .n_components = sizeof converting / sizeof *converting};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(CONVERT_TEXT);
    struct xpl_error err = {0};
    bool complete = false;
    hold_signals(&p); // they stay pending: is_end_pending
    xpl_status_t st = prepare_process(config, &err);
    if (st == XPL_OK) st = start_components(&p, &err);
    if (st == XPL_OK) st = convert(&p.d, &out, &complete, &err);
    if (st == XPL_OK) (void)printf("%.*s\n", (int)out.n, (const char *)out.p);
    free_components(&p);
    if (p.signal_fd >= 0) (void)close(p.signal_fd);
    xpl_log_stop();
    if (st != XPL_OK) (void)fprintf(stderr, "xplaned: nothing converted: %s\n", err.msg);
    const int status = st != XPL_OK ? 1 : complete ? 0 : 3;
    return xpl_std_out_end("xplaned", status, false);
}

int xpl_daemon_run(struct xpl_config *config, int argc, char **argv) {
    struct process p = {
        .d = {.config = config, .starting = {.is_cancelled = is_end_pending}, .ended = on_ended},
        .argc = argc,
        .argv = argv,
        .components = components,
        .n_components = sizeof components / sizeof *components};
    struct xpl_error err = {0};
    if (xpl_config_has_role(config, "convert")) return run_conversion(config);
    hold_signals(&p); // before there are threads
    xpl_status_t st = prepare_process(config, &err);
    if (st == XPL_OK) st = start_components(&p, &err);
    if (st == XPL_OK) {
        (void)uv_run(xpl_loop_uv(p.d.loop), UV_RUN_DEFAULT);
        xpl_log(XPL_LOG_INFO, "daemon", "stopped");
    } else {
        if (st == XPL_CANCELLED)
            xpl_log(XPL_LOG_INFO, "daemon", "stopping while it starts: %s", err.msg);
        else
            xpl_log(XPL_LOG_ERROR, "daemon", "cannot start: %s", err.msg);
        if (p.d.loop) {
            stop_components(&p);
            xpl_daemon_cancel_calls(&p.d); // the daemon was not ready yet
            (void)uv_run(xpl_loop_uv(p.d.loop), UV_RUN_DEFAULT);
        }
    }
    free_components(&p);
    xpl_log_stop();
    return st == XPL_OK || st == XPL_CANCELLED ? 0 : 1;
}
