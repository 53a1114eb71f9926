// Components from files to answers: catalogue, cache, store, traces, writer, workers, engine,
// prefetch.
#include <limits.h>
#include <time.h>

#include "analysis/tools/pipeline.h"
#include "base/log.h"
#include "server/capture_jobs/captures.h"
#include "server/daemon_parts.h"
#include "server/engine/pool.h"
#include "server/engine/prefetch.h"
#include "server/engine/traces.h"
#include "server/engine/writer.h"
#include "server/metrics.h"

enum { DRAIN_MS = 3000 }; // the writer's, at the end

// ---- catalogue and storage ----

static xpl_status_t start_catalogue(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_catalogue_options o = {.size = sizeof o, .logdir = d->config->logdir};
    return xpl_catalogue_new(&o, &d->catalogue, err);
}

static void free_catalogue(struct xpl_daemon *d) {
    xpl_catalogue_free(d->catalogue);
}

const struct xpl_component xpl_catalogue_component = {
    .name = "catalogue", .start = start_catalogue, .free = free_catalogue};

static xpl_status_t start_cache(struct xpl_daemon *d, struct xpl_error *err) {
    if ((d->cache = xpl_cache_new((size_t)d->config->answer_cache))) return XPL_OK;
    XPL_RETURN_OOM(err, "workers");
}

static void free_cache(struct xpl_daemon *d) {
    xpl_cache_free(d->cache);
}

const struct xpl_component xpl_cache_component = {
    .name = "cache", .start = start_cache, .free = free_cache};

static xpl_status_t start_store(struct xpl_daemon *d, struct xpl_error *err) {
    char dir[PATH_MAX], text[512];
    XPL_TRY(xpl_daemon_cache_dir(d->config, dir, sizeof dir, err));
    const struct xpl_store_options o = {
        .size = sizeof o, .dir = dir, .limit_bytes = d->config->store_limit};
    XPL_TRY(xpl_store_open(&o, &d->store, err));
    while (xpl_store_next_notice(d->store, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "store", "%s", text);
    // The first look-up opens a reader and prepares its statements: this one.
    const struct xpl_fingerprint none = {0};
    const struct xpl_store_key any = {
        .kind = XPL_STORE_ANSWER, .name = XPL_STR("none"), .files = &none, .n_files = 1};
    (void)xpl_store_has(d->store, &any);
    return XPL_OK;
}

static void free_store(struct xpl_daemon *d) {
    xpl_store_close(d->store);
}

const struct xpl_component xpl_store_component = {
    .name = "store", .start = start_store, .free = free_store};

static xpl_status_t start_traces(struct xpl_daemon *d, struct xpl_error *err) {
    char dir[PATH_MAX];
    XPL_TRY(xpl_daemon_cache_dir(d->config, dir, sizeof dir, err));
    if ((d->traces = xpl_traces_new(dir, (uint64_t)d->config->store_limit))) return XPL_OK;
    XPL_RETURN_OOM(err, "traces");
}

static void free_traces(struct xpl_daemon *d) {
    xpl_traces_free(d->traces);
}

const struct xpl_component xpl_traces_component = {
    .name = "traces", .start = start_traces, .free = free_traces};

static xpl_status_t start_writer(struct xpl_daemon *d, struct xpl_error *err) {
    if ((d->writer = xpl_store_writer_new(d->store, XPL_ANALYSIS_VERSION))) return XPL_OK;
    XPL_RETURN_OOM(err, "writer");
}

static void free_writer(struct xpl_daemon *d) {
    xpl_store_writer_free(d->writer, DRAIN_MS);
}

const struct xpl_component xpl_writer_component = {
    .name = "writer", .start = start_writer, .free = free_writer};

// ---- workers and engine ----

static xpl_status_t start_workers(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_config *const c = d->config;
    d->metrics = xpl_metrics_new();
    d->pool = xpl_pool_new((unsigned)c->workers, (size_t)c->max_concurrent_requests);
    if (!d->metrics || !d->pool) XPL_RETURN_OOM(err, "workers");
    return XPL_OK;
}

static void free_workers(struct xpl_daemon *d) {
    xpl_pool_free(d->pool);
    xpl_metrics_free(d->metrics);
}

const struct xpl_component xpl_workers_component = {
    .name = "workers", .start = start_workers, .free = free_workers};

static struct xpl_engine_options engine_options(const struct xpl_config *c) {
    return (struct xpl_engine_options){.memory_limit = (size_t)c->memory_limit,
                                       .memory_total = (size_t)c->memory_total,
                                       .request_timeout_ns = c->request_timeout_ms * 1000000u};
}

static xpl_status_t start_engine(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_engine_options o = engine_options(d->config);
    d->engine = xpl_engine_new(d->catalogue, d->store, d->pool, d->writer, d->cache, &o);
    if (!d->engine) XPL_RETURN_OOM(err, "engine");
    xpl_engine_set_traces(d->engine, d->traces);
    return XPL_OK;
}

static void free_engine(struct xpl_daemon *d) {
    xpl_engine_free(d->engine);
}

const struct xpl_component xpl_engine_component = {
    .name = "engine", .start = start_engine, .free = free_engine};

static void end_threads(struct xpl_daemon *d) {
    xpl_capture_jobs_join(d->captures);
    xpl_pool_free(d->pool);
    d->pool = NULL;
}

const struct xpl_component xpl_threads_component = {.name = "threads", .free = end_threads};

static xpl_status_t start_prefetch(struct xpl_daemon *d, struct xpl_error *err) {
    d->prefetch = xpl_prefetch_new(d->engine, d->catalogue, d->store, d->pool, d->config->prefetch);
    if (!d->prefetch) XPL_RETURN_OOM(err, "watching");
    return XPL_OK;
}

static void free_prefetch(struct xpl_daemon *d) {
    xpl_prefetch_free(d->prefetch);
}

const struct xpl_component xpl_prefetch_component = {
    .name = "prefetch", .start = start_prefetch, .free = free_prefetch};

void xpl_daemon_apply_settings(struct xpl_daemon *d) {
    const struct xpl_engine_options o = engine_options(d->config);
    xpl_engine_set_options(d->engine, &o);
    xpl_cache_set_limit(d->cache, (size_t)d->config->answer_cache);
    xpl_pool_set_limit(d->pool, (size_t)d->config->max_concurrent_requests);
    xpl_prefetch_set_enabled(d->prefetch, d->config->prefetch);
}
