// SPDX-License-Identifier: Apache-2.0
// Components from files to answers: catalogue, cache, store, index files, writer, workers, engine,
// prefetch.
#include <limits.h>
#include <stdlib.h>

#include "analysis/formats/format.h"
#include "analysis/xplane/captured.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "server/capture_jobs/captures.h"
#include "server/daemon_parts.h"
#include "server/engine/index_files.h"
#include "server/engine/opstats_rows.h"
#include "server/engine/pool.h"
#include "server/engine/prefetch.h"
#include "server/engine/statements.h"
#include "server/engine/writer.h"
#include "server/jobs/front.h"
#include "server/jobs/worker.h"
#include "server/metrics.h"
#include "sql/heap.h"
#include "storage/objects/objects.h"
#include "storage/places.h"
#include "storage/sessions/identity.h"
#include "storage/sessions/outgoing.h"

enum { DRAIN_MS = 3000 }; // the writer's, at the end

// ---- catalogue and storage ----

static const char *region_of(const struct xpl_config *c) {
    const char *const names[] = {c->object_region, getenv("AWS_REGION"),
                                 getenv("AWS_DEFAULT_REGION")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i] && names[i][0]) return names[i];
    return "";
}

static void warn_objects(void *arg, const char *text) {
    (void)arg;
    xpl_log(XPL_LOG_WARN, "catalogue", "%s", text);
}

static xpl_status_t open_objects(struct xpl_daemon *d, struct xpl_error *err) {
    char cache[PATH_MAX - 16], dir[PATH_MAX];
    const struct xpl_config *const c = d->config;
    XPL_TRY(xpl_daemon_cache_dir(c, cache, sizeof cache, err));
    (void)xpl_place_join(cache, XPL_STR("objects"), dir, sizeof dir);
    const struct xpl_objects_options o = {.size = sizeof o,
                                          .url = c->logdir,
                                          .endpoint = c->object_endpoint,
                                          .region = region_of(c),
                                          .anonymous = c->object_anonymous,
                                          .cache_dir = dir,
                                          .cache_limit = c->object_cache,
                                          .patience_ns = c->host_patience_ms * 1000000u,
                                          .warn = warn_objects};
    XPL_TRY(xpl_objects_open(&o, &d->objects, err));
    if (xpl_config_has_role(c, "convert")) return XPL_OK; // another daemon may send what is there
    (void)xpl_place_join(cache, XPL_STR("outgoing"), dir, sizeof dir);
    return xpl_outgoing_new(d->objects, dir, c->object_cache, &d->outgoing, err);
}

// A worker lists seldom: fronts know what is new, and a job for a file that is not known here has
// its session listed.
static uint64_t list_every_ns(const struct xpl_config *c) {
    enum { WORKER = 20 };
    return c->object_interval_ms * 1000000u * (xpl_config_has_role(c, "worker") ? WORKER : 1);
}

static xpl_status_t start_catalogue(struct xpl_daemon *d, struct xpl_error *err) {
    if (xpl_objects_is_url(d->config->logdir))
        XPL_TRY(open_objects(d, err));
    else
        XPL_TRY(xpl_daemon_make_logdir(d->config->logdir, err));
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = d->config->logdir,
                                            .match = xpl_format_match,
                                            .captured_ns = xpl_xspace_captured_ns,
                                            .identify_run =
                                                d->config->join ? xpl_xspace_identify : NULL,
                                            .links_anywhere = d->config->links_anywhere,
                                            .cancel = &d->starting,
                                            .objects = d->objects,
                                            .scan_later = d->objects != NULL,
                                            .list_every_ns = list_every_ns(d->config)};
    return xpl_catalogue_new(&o, &d->catalogue, err);
}

static void free_catalogue(struct xpl_daemon *d) {
    xpl_catalogue_free(d->catalogue);
    xpl_outgoing_free(d->outgoing);
    xpl_objects_unref(d->objects);
}

const struct xpl_component xpl_catalogue_component = {
    .name = "catalogue", .start = start_catalogue, .free = free_catalogue};

// Threads that wait for an object store would hold up the end: scans at once, and requests when
// nobody waits for them.
static void stop_listing(struct xpl_daemon *d) {
    if (d->objects) xpl_objects_stop(d->objects, XPL_OBJECTS_STOP_LISTING);
}

static void stop_objects(struct xpl_daemon *d) {
    if (d->objects) xpl_objects_stop(d->objects, XPL_OBJECTS_STOP_ALL);
}

const struct xpl_component xpl_objects_component = {
    .name = "objects", .stop = stop_listing, .free = stop_objects};

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
    (void)xpl_sql_heap_install(); // before the store wakes SQLite
    XPL_TRY(xpl_daemon_cache_dir(d->config, dir, sizeof dir, err));
    const struct xpl_store_options o = {.size = sizeof o,
                                        .dir = dir,
                                        .limit_bytes = d->config->store_limit,
                                        .url = d->config->store};
    XPL_TRY(xpl_store_open(&o, &d->store, err));
    // Workers list too seldom for others.
    xpl_catalogue_share(d->catalogue, d->store, !xpl_config_has_role(d->config, "worker"),
                        d->config->object_interval_ms * 1000000u);
    while (xpl_store_next_notice(d->store, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "store", "%s", text);
    // The first lookups open a reader and prepare its statements: these.
    const struct xpl_profile_id none = {0};
    const struct xpl_store_key any = {
        .kind = XPL_STORE_ANSWER, .name = XPL_STR("none"), .profiles = &none, .n_profiles = 1};
    (void)xpl_store_has(d->store, &any);
    XPL_TRY(xpl_identity_new(d->store, &d->identity, err));
    struct xpl_profile_id id;
    (void)xpl_identity_lookup(d->identity, &(struct xpl_fingerprint){0}, &id);
    (void)xpl_identity_must_hash_first(d->identity, 0);
    return XPL_OK;
}

static void free_store(struct xpl_daemon *d) {
    xpl_identity_free(d->identity);
    xpl_store_close(d->store);
}

const struct xpl_component xpl_store_component = {
    .name = "store", .start = start_store, .free = free_store};

static xpl_status_t start_index_files(struct xpl_daemon *d, struct xpl_error *err) {
    char dir[PATH_MAX];
    XPL_TRY(xpl_daemon_cache_dir(d->config, dir, sizeof dir, err));
    if ((d->index_files = xpl_index_files_new(dir, (uint64_t)d->config->store_limit, d->identity)))
        return XPL_OK;
    XPL_RETURN_OOM(err, "index files");
}

static void free_index_files(struct xpl_daemon *d) {
    xpl_index_files_free(d->index_files);
}

const struct xpl_component xpl_index_files_component = {
    .name = "index files", .start = start_index_files, .free = free_index_files};

static struct xpl_store_version answer_of(const struct xpl_tool *t) {
    return (struct xpl_store_version){XPL_STORE_ANSWER, xpl_str_from(t->name),
                                      xpl_tool_answer_version(t)};
}

// The versions in which results are made now, of all products and tools; freed by xpl_sys_free.
// NULL when out of memory.
static struct xpl_store_version *versions_new(size_t *ret_n) {
    size_t n_products, n_tools, n = 0;
    const struct xpl_product *const *const products = xpl_products(&n_products);
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    const struct xpl_tool *const hidden[] = {&xpl_tool_op_stats, &xpl_tool_worker_op_stats};
    enum { N_HIDDEN = sizeof hidden / sizeof *hidden };
    struct xpl_store_version *const v =
        xpl_sys_alloc((n_products + n_tools + N_HIDDEN) * sizeof *v);
    if (!v) return NULL;
    for (size_t i = 0; i < n_products; i++)
        v[n++] = (struct xpl_store_version){XPL_STORE_PRODUCT, xpl_str_from(products[i]->name),
                                            products[i]->version};
    for (size_t i = 0; i < n_tools; i++)
        v[n++] = answer_of(tools[i]);
    for (size_t i = 0; i < N_HIDDEN; i++)
        v[n++] = answer_of(hidden[i]);
    *ret_n = n;
    return v;
}

static xpl_status_t start_writer(struct xpl_daemon *d, struct xpl_error *err) {
    size_t n;
    d->versions = versions_new(&n);
    if (!d->versions) XPL_RETURN_OOM(err, "writer");
    const struct xpl_store_writer_options o = {.store = d->store,
                                               .identity = d->identity,
                                               .current = d->versions,
                                               .n_current = n,
                                               .rows_version = XPL_ROWS_VERSION};
    if ((d->writer = xpl_store_writer_new(&o))) return XPL_OK;
    XPL_RETURN_OOM(err, "writer");
}

static void free_writer(struct xpl_daemon *d) {
    xpl_store_writer_free(d->writer, DRAIN_MS);
    xpl_sys_free(d->versions);
}

const struct xpl_component xpl_writer_component = {
    .name = "writer", .start = start_writer, .free = free_writer};

// ---- workers and engine ----

static bool pool_is_busy(void *pool) {
    return xpl_pool_get_state(pool).idle_since_ns == 0;
}

// Between two jobs a worker is idle for a moment, which is not one for rows.
static bool worker_is_busy(void *pool) {
    enum { QUIET_MS = 300 };
    const uint64_t since = xpl_pool_get_state(pool).idle_since_ns;
    return since == 0 || xpl_clock_ns() < since + (uint64_t)QUIET_MS * 1000000u;
}

// Those of a front wait for other daemons most of the time.
static unsigned threads_of(const struct xpl_config *c) {
    enum { FRONT_THREADS = 32 };
    if (c->workers == 0 && xpl_config_has_role(c, "front")) return FRONT_THREADS;
    return (unsigned)c->workers;
}

static xpl_status_t start_workers(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_config *const c = d->config;
    d->metrics = xpl_metrics_new();
    d->pool = xpl_pool_new(threads_of(c), (size_t)c->max_concurrent_requests);
    if (!d->metrics || !d->pool) XPL_RETURN_OOM(err, "workers");
    xpl_metrics_set_slow(d->metrics, c->slow_request_ms * 1000);
    xpl_store_writer_set_busy(
        d->writer, xpl_config_has_role(c, "worker") ? worker_is_busy : pool_is_busy, d->pool);
    return XPL_OK;
}

// Joins the workers.
static void free_pool(struct xpl_daemon *d) {
    xpl_store_writer_set_busy(d->writer, NULL, NULL);
    xpl_pool_free(d->pool);
    d->pool = NULL;
}

static void free_workers(struct xpl_daemon *d) {
    free_pool(d);
    xpl_metrics_free(d->metrics);
}

const struct xpl_component xpl_workers_component = {
    .name = "workers", .start = start_workers, .free = free_workers};

static struct xpl_engine_options engine_options(const struct xpl_config *c) {
    return (struct xpl_engine_options){.memory_limit = (size_t)c->memory_limit,
                                       .memory_total = (size_t)c->memory_total,
                                       .request_timeout_ns = c->request_timeout_ms * 1000000u};
}

// A statement keeps a worker busy for as long as it may take: the others stay for requests.
static xpl_status_t start_statements(struct xpl_daemon *d, struct xpl_error *err) {
    char dir[PATH_MAX - 16], path[PATH_MAX], state[PATH_MAX];
    XPL_TRY(xpl_daemon_cache_dir(d->config, dir, sizeof dir, err));
    (void)xpl_place_join(dir, XPL_STR("cache.db"), path, sizeof path);
    XPL_TRY(xpl_daemon_state_dir(d->config, dir, sizeof dir, err));
    (void)xpl_place_join(dir, XPL_STR("state.db"), state, sizeof state);
    const unsigned workers = xpl_pool_get_state(d->pool).workers;
    const struct xpl_statements_options o = {.catalogue = d->catalogue,
                                             .engine = d->engine,
                                             .writer = d->writer,
                                             .store = d->config->store[0] ? NULL : path,
                                             .state = state,
                                             .memory_limit = (size_t)d->config->memory_limit,
                                             .most = workers > 3 ? workers / 2 : 1};
    if ((d->statements = xpl_statements_new(&o))) return XPL_OK;
    XPL_RETURN_OOM(err, "statements");
}

static xpl_status_t start_engine(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_engine_options o = engine_options(d->config);
    const struct xpl_engine_parts parts = {
        .catalogue = d->catalogue,
        .store = d->store,
        .identity = d->identity,
        .pool = d->pool,
        .writer = d->writer,
        .cache = d->cache,
        .files = d->index_files,
        .front = xpl_config_has_role(d->config, "front") ? &xpl_job_front : NULL};
    if (!(d->engine = xpl_engine_new(&parts, &o))) XPL_RETURN_OOM(err, "engine");
    return start_statements(d, err);
}

static void free_engine(struct xpl_daemon *d) {
    xpl_statements_free(d->statements);
    xpl_engine_free(d->engine);
}

const struct xpl_component xpl_engine_component = {
    .name = "engine", .start = start_engine, .free = free_engine};

static void end_threads(struct xpl_daemon *d) {
    xpl_capture_jobs_join(d->captures);
    free_pool(d);
}

const struct xpl_component xpl_threads_component = {.name = "threads", .free = end_threads};

// Daemons with one role convert what is asked for.
static bool prefetches(const struct xpl_config *c) {
    return c->prefetch && xpl_config_has_role(c, "all");
}

static xpl_status_t start_prefetch(struct xpl_daemon *d, struct xpl_error *err) {
    d->prefetch =
        xpl_prefetch_new(d->engine, d->catalogue, d->store, d->pool, prefetches(d->config));
    if (!d->prefetch) XPL_RETURN_OOM(err, "watching");
    return XPL_OK;
}

static void free_prefetch(struct xpl_daemon *d) {
    xpl_prefetch_free(d->prefetch);
}

const struct xpl_component xpl_prefetch_component = {
    .name = "prefetch", .start = start_prefetch, .free = free_prefetch};

// ---- jobs for other daemons ----

static xpl_status_t start_job_worker(struct xpl_daemon *d, struct xpl_error *err) {
    const struct xpl_job_worker_options o = {.store = d->store,
                                             .catalogue = d->catalogue,
                                             .products = xpl_engine_get_products(d->engine),
                                             .pool = d->pool,
                                             .lease_ms = d->config->job_lease_ms,
                                             .role = d->config->role};
    if (!xpl_store_jobs(d->store)) return XPL_OK;
    if (!(d->job_worker = xpl_job_worker_new(&o))) XPL_RETURN_OOM(err, "jobs");
    d->stats.jobs = d->job_worker;
    return XPL_OK;
}

static void on_jobs_ended(void *arg) { // on the worker's thread
    struct xpl_daemon *const d = arg;
    if (!xpl_loop_post(d->loop, d->ended, d)) abort(); // nothing could ever end the loop
}

static void stop_job_worker(struct xpl_daemon *d) {
    if (!d->job_worker) return;
    d->n_ending++;
    xpl_job_worker_stop(d->job_worker, d->config->grace_ms, on_jobs_ended, d);
}

static void free_job_worker(struct xpl_daemon *d) {
    d->stats.jobs = NULL;
    xpl_job_worker_free(d->job_worker);
}

const struct xpl_component xpl_job_worker_component = {
    .name = "jobs", .start = start_job_worker, .stop = stop_job_worker, .free = free_job_worker};

// One job at a time is always admitted, which needs some memory.  There is no margin: what malloc
// keeps between blocks comes on top.
enum { LEAST_TOTAL = 192 << 20 };

size_t xpl_daemon_heap_budget(const struct xpl_config *c) {
    return (size_t)(c->memory_total > LEAST_TOTAL ? c->memory_total : LEAST_TOTAL);
}

void xpl_daemon_apply_settings(struct xpl_daemon *d) {
    const struct xpl_engine_options o = engine_options(d->config);
    xpl_engine_set_options(d->engine, &o);
    xpl_heap_set_budget(xpl_daemon_heap_budget(d->config));
    xpl_metrics_set_slow(d->metrics, d->config->slow_request_ms * 1000);
    xpl_cache_set_limit(d->cache, (size_t)d->config->answer_cache);
    xpl_pool_set_limit(d->pool, (size_t)d->config->max_concurrent_requests);
    xpl_prefetch_set_enabled(d->prefetch, prefetches(d->config));
    xpl_capture_jobs_set_memory(d->captures, d->config->memory_limit, d->config->memory_total);
}
