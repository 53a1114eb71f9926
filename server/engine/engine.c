// SPDX-License-Identifier: Apache-2.0
// Jobs and tickets of the engine.
#include "server/engine/engine.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "analysis/products/values.h"
#include "base/cond.h"
#include "base/heap.h"
#include "server/engine/pool.h"

enum { BUSY_RETRY_MS = 500, LARGE_JOB = 64 << 20 };

struct xpl_engine {
    struct xpl_engine_parts parts;
    struct xpl_answer_parts answers;
    struct xpl_product_manager *products;
    atomic_size_t memory_limit, memory_total, in_flight; // bytes
    atomic_size_t delivered; // of in_flight: of jobs that go on after their answer
    atomic_ullong request_timeout_ns;
    pthread_mutex_t mu; // protects jobs and tickets
    struct job *jobs;
    atomic_bool stopping;
    atomic_ullong from_memory, from_store, computed, joined, prefetched, refused, cancelled,
        timed_out;
};

// ---- life ----

struct xpl_engine *xpl_engine_new(const struct xpl_engine_parts *parts,
                                  const struct xpl_engine_options *o) {
    struct xpl_engine *e = xpl_sys_alloc(sizeof *e);
    if (!e) return NULL;
    *e = (struct xpl_engine){.parts = *parts};
    const struct xpl_product_manager_parts p = {.store = parts->store,
                                                .identity = parts->identity,
                                                .writer = parts->writer,
                                                .cache = parts->cache,
                                                .files = parts->files};
    e->products = xpl_product_manager_new(&p, o->memory_limit);
    if (!e->products) {
        xpl_sys_free(e);
        return NULL;
    }
    e->answers = (struct xpl_answer_parts){.products = e->products,
                                           .store = parts->store,
                                           .writer = parts->writer,
                                           .cache = parts->cache,
                                           .front = parts->front};
    xpl_engine_set_options(e, o);
    pthread_mutex_init(&e->mu, NULL);
    return e;
}

void xpl_engine_free(struct xpl_engine *e) {
    if (!e) return;
    assert(!e->jobs);
    xpl_product_manager_free(e->products);
    pthread_mutex_destroy(&e->mu);
    xpl_sys_free(e);
}

void xpl_engine_set_options(struct xpl_engine *e, const struct xpl_engine_options *o) {
    atomic_store(&e->memory_limit, o->memory_limit);
    atomic_store(&e->memory_total, o->memory_total);
    atomic_store(&e->request_timeout_ns, o->request_timeout_ns);
    xpl_product_manager_set_limit(e->products, o->memory_limit);
}

uint64_t xpl_engine_deadline_ns(const struct xpl_engine *e, uint64_t since_ns) {
    uint64_t ret;
    const bool never = __builtin_add_overflow(since_ns, atomic_load(&e->request_timeout_ns), &ret);
    return never ? UINT64_MAX : ret;
}

size_t xpl_engine_memory_limit(const struct xpl_engine *e) {
    return atomic_load(&e->memory_limit);
}

struct xpl_product_manager *xpl_engine_get_products(struct xpl_engine *e) {
    return e->products;
}

xpl_status_t xpl_engine_resolve(struct xpl_engine *e, const struct xpl_request_words *words,
                                struct xpl_request **ret, struct xpl_error *err) {
    return xpl_request_resolve(e->parts.catalogue, words, ret, err);
}

struct xpl_tool_data *xpl_engine_lookup(struct xpl_engine *e, const struct xpl_request *q) {
    if (q->bypass_cache) return NULL;
    const struct xpl_cache_key key = {XPL_CACHE_ANSWER, q->key};
    struct xpl_tool_data *a = (struct xpl_tool_data *)xpl_cache_get(e->parts.cache, key);
    if (a) atomic_fetch_add(&e->from_memory, 1);
    return a;
}

void xpl_engine_count_memory(struct xpl_engine *e) {
    atomic_fetch_add_explicit(&e->from_memory, 1, memory_order_relaxed);
}

const char *xpl_outcome_source(const struct xpl_outcome *o) {
    if (o->code != XPL_OK) return "";
    return o->joined                      ? "joined"
           : o->source == XPL_FROM_MEMORY ? "memory"
           : o->source == XPL_FROM_STORE  ? "store"
                                          : "computed";
}

// ---- jobs and tickets ----

enum job_state {
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_DELIVERED, // the waiters have the outcome; the job may go on for later requests
};

struct job {
    struct job *next; // among the engine's jobs
    struct xpl_engine *engine;
    struct xpl_request *q;
    struct xpl_ticket *waiters; // under the engine's mutex, as `listed` and `state`
    bool listed;                // others can join it
    enum job_state state;
    atomic_bool unwanted;   // no waiter is left
    atomic_bool background; // all requests that it answers are
    uint64_t queued_ns;
    size_t reserved; // of memory_total
};

struct xpl_ticket {
    atomic_uint refs; // the asker's and the job's
    struct xpl_ticket *next;
    struct xpl_engine *engine;
    struct job *job; // NULL once done was, or is about to be, called
    uint64_t queued_ns;
    void (*done)(void *arg, const struct xpl_outcome *o);
    void *arg;
    bool joined, background;
};

void xpl_ticket_unref(struct xpl_ticket *t) {
    if (t && atomic_fetch_sub(&t->refs, 1) == 1) xpl_sys_free(t);
}

static void job_set_state(struct job *j, enum job_state state) {
    assert(state > j->state);
    j->state = state;
}

static bool engine_is_stopping(void *arg) {
    const struct xpl_engine *e = arg;
    return atomic_load_explicit(&e->stopping, memory_order_relaxed);
}

static bool job_is_unwanted(void *arg) {
    const struct job *j = arg;
    return atomic_load_explicit(&j->unwanted, memory_order_relaxed) ||
           (atomic_load_explicit(&j->background, memory_order_relaxed) &&
            engine_is_stopping(j->engine));
}

static void job_unlist(struct xpl_engine *e, struct job *j) {
    xpl_assert_held(&e->mu);
    for (struct job **at = &e->jobs; j->listed && *at; at = &(*at)->next) {
        if (*at != j) continue;
        *at = j->next;
        break;
    }
    j->listed = false;
}

static void count_answer(struct xpl_engine *e, const struct xpl_outcome *o) {
    if (o->code != XPL_OK) return;
    if (o->source == XPL_COMPUTED) atomic_fetch_add(&e->computed, 1);
    if (o->source == XPL_FROM_STORE) atomic_fetch_add(&e->from_store, 1);
    if (o->joined) atomic_fetch_add(&e->joined, 1);
}

// Calls every waiter back, once. From then on no request joins or cancels the job.
static void job_deliver(void *arg, struct xpl_outcome *o) {
    struct job *const j = arg;
    struct xpl_engine *e = j->engine;
    pthread_mutex_lock(&e->mu);
    job_unlist(e, j);
    struct xpl_ticket *list = j->waiters;
    j->waiters = NULL;
    if (j->state != JOB_DELIVERED) {
        job_set_state(j, JOB_DELIVERED);
        atomic_fetch_add(&e->delivered, j->reserved);
    }
    for (struct xpl_ticket *t = list; t; t = t->next)
        t->job = NULL;
    pthread_mutex_unlock(&e->mu);
    while (list) {
        struct xpl_ticket *const t = list;
        list = t->next;
        o->joined = t->joined;
        count_answer(e, o);
        t->done(t->arg, o);
        xpl_ticket_unref(t);
    }
}

// Ends the job: delivers the outcome if that was not done, then frees the job.
static void job_finish(struct job *j, struct xpl_outcome *o) {
    job_deliver(j, o);
    if (o->answer) xpl_object_unref(&o->answer->object);
    pthread_mutex_lock(&j->engine->mu);
    atomic_fetch_sub(&j->engine->in_flight, j->reserved);
    atomic_fetch_sub(&j->engine->delivered, j->reserved);
    pthread_mutex_unlock(&j->engine->mu);
    // Everybody has the answer: what the job used goes back to the system.
    if (j->reserved >= LARGE_JOB && o->source == XPL_COMPUTED) xpl_heap_trim(LARGE_JOB / 4);
    xpl_request_free(j->q);
    xpl_sys_free(j);
}

bool xpl_engine_hold(struct xpl_engine *e, size_t bytes) {
    pthread_mutex_lock(&e->mu);
    const bool ok = atomic_load(&e->in_flight) + bytes <= atomic_load(&e->memory_total);
    if (ok) {
        atomic_fetch_add(&e->in_flight, bytes);
        atomic_fetch_add(&e->delivered, bytes); // a concurrent job still counts as the only one
    }
    pthread_mutex_unlock(&e->mu);
    if (!ok) atomic_fetch_add(&e->refused, 1);
    return ok;
}

void xpl_engine_release(struct xpl_engine *e, size_t bytes) {
    pthread_mutex_lock(&e->mu);
    atomic_fetch_sub(&e->in_flight, bytes);
    atomic_fetch_sub(&e->delivered, bytes);
    pthread_mutex_unlock(&e->mu);
}

// Reserves what the job may need of --memory-total: the sizes of the hosts' files stand in for
// their conversion.
static bool job_reserve(void *arg) {
    struct job *j = arg;
    struct xpl_engine *e = j->engine;
    size_t need = (size_t)16 << 20;
    for (size_t i = 0; i < j->q->n_hosts; i++)
        need +=
            j->q->hosts[i]->fingerprint.size / 4 +
            xpl_opened_profile_expect(j->q->snapshot, j->q->hosts[i], xpl_tool_form(j->q->tool));
    const size_t limit = atomic_load(&e->memory_limit), total = atomic_load(&e->memory_total);
    if (need > limit) need = limit;
    // Together: a job that ends between the two would count as one that is not delivered.
    pthread_mutex_lock(&e->mu);
    const size_t before = atomic_fetch_add(&e->in_flight, need);
    j->reserved = need;
    // The only running job may exceed the limit. Jobs whose waiters are answered do not count.
    const bool ok = before <= atomic_load(&e->delivered) || before + need <= total;
    pthread_mutex_unlock(&e->mu);
    if (!ok) atomic_fetch_add(&e->refused, 1);
    return ok;
}

static void job_run(void *arg) {
    struct job *j = arg;
    struct xpl_engine *e = j->engine;
    struct xpl_outcome o = {.retry_ms = -1};
    o.stage_us[XPL_STAGE_QUEUE] = (xpl_clock_ns() - j->queued_ns) / 1000 + 1;
    pthread_mutex_lock(&e->mu);
    job_set_state(j, JOB_RUNNING);
    pthread_mutex_unlock(&e->mu);
    struct xpl_pool_exec exec;
    xpl_pool_exec_init(&exec, e->parts.pool, job_is_unwanted, j);
    const struct xpl_answer_context ctx = {.exec = &exec.exec,
                                           .owner = {job_is_unwanted, j},
                                           .limit = atomic_load(&e->memory_limit),
                                           .arg = j,
                                           .admit = job_reserve,
                                           .deliver = job_deliver,
                                           .rest_owner = {engine_is_stopping, e}};
    if (job_is_unwanted(j)) {
        o.code = XPL_CANCELLED;
    } else {
        o.answer = xpl_engine_lookup(e, j->q); // another job may have made it since
        o.source = XPL_FROM_MEMORY;
        o.kept = o.answer != NULL;
        if (!o.answer) xpl_request_make_answer(&e->answers, j->q, &ctx, &o);
    }
    if (o.code == XPL_CANCELLED && !o.err.code)
        xpl_outcome_fail(&o, XPL_CANCELLED, -1, "cancelled");
    job_finish(j, &o);
}

// ---- asking ----

static struct xpl_ticket *ticket_new(struct xpl_engine *e, const struct xpl_request *q,
                                     void (*done)(void *arg, const struct xpl_outcome *o),
                                     void *arg) {
    struct xpl_ticket *t = xpl_sys_alloc(sizeof *t);
    if (!t) return NULL;
    *t = (struct xpl_ticket){.engine = e,
                             .done = done,
                             .arg = arg,
                             .background = q->background,
                             .queued_ns = q->since_ns ? q->since_ns : xpl_clock_ns()};
    atomic_init(&t->refs, 2);
    return t;
}

static struct job *job_new(struct xpl_engine *e, struct xpl_request *q) {
    struct job *j = xpl_sys_alloc(sizeof *j);
    if (!j) return NULL;
    *j = (struct job){.engine = e, .q = q, .queued_ns = xpl_clock_ns()};
    return j;
}

// The job of an equal request.
static struct job *find_equal_job(struct xpl_engine *e, const struct xpl_request *q) {
    xpl_assert_held(&e->mu);
    for (struct job *j = e->jobs; j; j = j->next)
        if (!q->bypass_cache && !j->q->bypass_cache && j->q->key.len == q->key.len &&
            memcmp(j->q->key.ptr, q->key.ptr, q->key.len) == 0 && !job_is_unwanted(j))
            return j;
    return NULL;
}

// After a waiter came or left.
static void job_set_background(struct job *j) {
    bool background = true;
    for (const struct xpl_ticket *t = j->waiters; t; t = t->next)
        background &= t->background;
    atomic_store(&j->background, background);
}

static void job_add_waiter(struct job *j, struct xpl_ticket *t) {
    t->job = j;
    t->next = j->waiters;
    j->waiters = t;
    job_set_background(j);
}

static void refuse(struct xpl_request *q, void (*done)(void *, const struct xpl_outcome *),
                   void *arg) {
    struct xpl_outcome o = {0};
    xpl_outcome_fail(&o, XPL_RESOURCE_EXHAUSTED, BUSY_RETRY_MS, "out of memory");
    xpl_request_free(q);
    done(arg, &o);
}

void xpl_engine_submit(struct xpl_engine *e, struct xpl_request *q,
                       void (*done)(void *arg, const struct xpl_outcome *o), void *arg,
                       struct xpl_ticket **ret) {
    struct xpl_ticket *t = ticket_new(e, q, done, arg);
    struct job *mine = t ? job_new(e, q) : NULL;
    *ret = t;
    if (!mine) {
        *ret = NULL;
        xpl_sys_free(t);
        refuse(q, done, arg);
        return;
    }
    pthread_mutex_lock(&e->mu);
    struct job *const other = find_equal_job(e, q);
    t->joined = other != NULL;
    job_add_waiter(other ? other : mine, t);
    if (!other) {
        mine->next = e->jobs;
        e->jobs = mine;
        mine->listed = true;
    }
    pthread_mutex_unlock(&e->mu);
    if (other) {
        xpl_request_free(q);
        xpl_sys_free(mine);
        return;
    }
    if (xpl_pool_submit(e->parts.pool, job_run, mine)) return;
    atomic_fetch_add(&e->refused, 1);
    struct xpl_outcome o = {0};
    xpl_outcome_fail(&o, XPL_RESOURCE_EXHAUSTED, BUSY_RETRY_MS,
                     "too many requests are waiting (--max-concurrent-requests); try again soon");
    job_finish(mine, &o);
}

void xpl_engine_answer(struct xpl_engine *e, struct xpl_request *q, struct xpl_exec *exec,
                       struct xpl_work_owner owner, struct xpl_outcome *ret) {
    struct job j = {.engine = e, .q = q};
    const struct xpl_answer_context ctx = {.exec = exec,
                                           .owner = owner,
                                           .limit = atomic_load(&e->memory_limit),
                                           .arg = &j,
                                           .admit = job_reserve};
    *ret = (struct xpl_outcome){.retry_ms = -1, .source = XPL_FROM_MEMORY};
    ret->answer = xpl_engine_lookup(e, q);
    if (!ret->answer) xpl_request_make_answer(&e->answers, q, &ctx, ret);
    pthread_mutex_lock(&e->mu);
    atomic_fetch_sub(&e->in_flight, j.reserved);
    pthread_mutex_unlock(&e->mu);
    count_answer(e, ret);
}

static void abandon_if_unwanted(struct xpl_engine *e, struct job *j) {
    xpl_assert_held(&e->mu);
    job_set_background(j);
    if (j->waiters) return;
    atomic_store(&j->unwanted, true);
    job_unlist(e, j);
}

void xpl_engine_cancel(struct xpl_ticket *t) {
    struct xpl_engine *e = t->engine;
    pthread_mutex_lock(&e->mu);
    struct job *const j = t->job;
    if (j) {
        for (struct xpl_ticket **at = &j->waiters; *at; at = &(*at)->next) {
            if (*at != t) continue;
            *at = t->next;
            break;
        }
        t->job = NULL;
        abandon_if_unwanted(e, j);
    }
    pthread_mutex_unlock(&e->mu);
    if (!j) return;
    atomic_fetch_add(&e->cancelled, 1);
    struct xpl_outcome o = {0};
    xpl_outcome_fail(&o, XPL_CANCELLED, -1, "cancelled");
    t->done(t->arg, &o);
    xpl_ticket_unref(t);
}

// Moves the waiters whose time has ended to `late`: each has its own limit, whichever began the
// job.
static struct xpl_ticket *remove_late_waiters(struct xpl_engine *e, struct job *j, uint64_t now,
                                              uint64_t limit, struct xpl_ticket *late) {
    xpl_assert_held(&e->mu);
    for (struct xpl_ticket **at = &j->waiters; *at;) {
        struct xpl_ticket *const t = *at;
        if (now <= t->queued_ns || now - t->queued_ns <= limit) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        t->job = NULL;
        t->next = late;
        late = t;
    }
    abandon_if_unwanted(e, j);
    return late;
}

void xpl_engine_sweep(struct xpl_engine *e) {
    const uint64_t now = xpl_clock_ns(), limit = atomic_load(&e->request_timeout_ns);
    struct xpl_ticket *late = NULL;
    pthread_mutex_lock(&e->mu);
    for (struct job *j = e->jobs, *next; j; j = next) {
        next = j->next;
        late = remove_late_waiters(e, j, now, limit, late);
    }
    pthread_mutex_unlock(&e->mu);
    while (late) {
        struct xpl_ticket *const t = late;
        late = t->next;
        atomic_fetch_add(&e->timed_out, 1);
        struct xpl_outcome o = {0};
        xpl_outcome_fail(&o, XPL_DEADLINE_EXCEEDED, -1, XPL_ENGINE_LATE);
        t->done(t->arg, &o);
        xpl_ticket_unref(t);
    }
}

// ---- ahead of requests ----

void xpl_engine_stop_background(struct xpl_engine *e) {
    atomic_store(&e->stopping, true);
}

// Of a host whose OpStats exist: rows of memory and the overview's first part need it.
static void prefetch_breakdown(struct xpl_engine *e, const struct xpl_product_request *ops,
                               struct xpl_product_handle *used,
                               const struct xpl_build_context *ctx) {
    struct xpl_product_request r = *ops;
    struct xpl_stage_times times = {0};
    struct xpl_product_handle *p = NULL;
    r.product = &xpl_product_time_breakdown;
    r.used = used;
    if (xpl_product_get(e->products, &r, ctx, &times, &p, NULL) == XPL_OK)
        xpl_object_unref(&p->object);
}

bool xpl_engine_prefetch(struct xpl_engine *e, struct xpl_snapshot *snapshot,
                         const struct xpl_session *s, const struct xpl_host *h) {
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_build_context ctx = {
        .exec = &serial, .owner = {engine_is_stopping, e}, .prefetch = true};
    struct xpl_stage_times times = {0}, device_times = {0};
    struct xpl_session_devices devices = {0};
    // A request may need the same hosts: then it finds out.
    if (xpl_product_session_has_device(e->products, snapshot, s, &ctx, &device_times, &devices,
                                       NULL) != XPL_OK)
        return false;
    const struct xpl_product_request r = {.product = &xpl_product_op_stats,
                                          .variant = devices.any ? 0 : XPL_OP_STATS_CPU_AS_DEVICE,
                                          .snapshot = snapshot,
                                          .host = h};
    struct xpl_product_handle *p = NULL;
    if (xpl_product_get(e->products, &r, &ctx, &times, &p, NULL) != XPL_OK) return false;
    const bool made = p->status == XPL_OK && atomic_load(&times.us[XPL_STAGE_CONVERT]) > 0;
    if (p->status == XPL_OK) prefetch_breakdown(e, &r, p, &ctx);
    xpl_object_unref(&p->object);
    if (made) atomic_fetch_add(&e->prefetched, 1);
    return made;
}

// The variants that are stored for our own clients.
static const unsigned usual_variants[] = {0, XPL_OP_STATS_CPU_AS_DEVICE};

void xpl_engine_host_status(struct xpl_engine *e, const struct xpl_host *h,
                            struct xpl_host_status *ret) {
    const struct xpl_product *const p = &xpl_product_op_stats;
    *ret = (struct xpl_host_status){.state = XPL_HOST_NEW};
    for (unsigned variant = 0; variant < XPL_OP_STATS_N_VARIANTS; variant++) {
        struct xpl_product_handle *const found =
            xpl_product_lookup(e->products, p, variant, &h->fingerprint);
        if (!found) continue;
        ret->state = found->status == XPL_OK ? XPL_HOST_STORED : XPL_HOST_BROKEN;
        if (found->status != XPL_OK)
            (void)snprintf(ret->error, sizeof ret->error, "%s", found->err.msg);
        xpl_object_unref(&found->object);
        return;
    }
    if (xpl_product_is_running(e->products, p, &h->fingerprint)) {
        ret->state = XPL_HOST_CONVERTING;
        return;
    }
    const struct xpl_format *const format = xpl_format_of_name(h->path, NULL);
    for (size_t i = 0; i < sizeof usual_variants / sizeof *usual_variants; i++)
        if (xpl_product_is_stored(e->products, p, usual_variants[i], format, &h->fingerprint))
            ret->state = XPL_HOST_STORED;
}

static bool knows_breakdown(struct xpl_engine *e, const struct xpl_host *h) {
    const struct xpl_product *const p = &xpl_product_time_breakdown;
    bool known = false;
    for (size_t i = 0; !known && i < sizeof usual_variants / sizeof *usual_variants; i++) {
        struct xpl_product_handle *const found =
            xpl_product_lookup(e->products, p, usual_variants[i], &h->fingerprint);
        known = found || xpl_product_is_stored(e->products, p, usual_variants[i],
                                               xpl_format_of_name(h->path, NULL), &h->fingerprint);
        if (found) xpl_object_unref(&found->object);
    }
    return known;
}

bool xpl_engine_knows(struct xpl_engine *e, const struct xpl_host *h) {
    struct xpl_host_status st;
    xpl_engine_host_status(e, h, &st);
    return st.state != XPL_HOST_NEW && (st.state != XPL_HOST_STORED || knows_breakdown(e, h));
}

void xpl_engine_get_stats(struct xpl_engine *e, struct xpl_engine_stats *ret) {
    const struct xpl_product_stats p = xpl_product_get_stats(e->products);
    *ret = (struct xpl_engine_stats){
        .from_memory = atomic_load(&e->from_memory),
        .from_store = atomic_load(&e->from_store),
        .computed = atomic_load(&e->computed),
        .joined = atomic_load(&e->joined),
        .prefetched = atomic_load(&e->prefetched),
        .refused = atomic_load(&e->refused),
        .cancelled = atomic_load(&e->cancelled),
        .timed_out = atomic_load(&e->timed_out),
        .conversions = p.conversions,
        .conversions_failed = p.conversions_failed,
        .imports = p.imports,
        .bytes_converted = p.bytes_converted,
        .in_flight_bytes = atomic_load(&e->in_flight),
        .memory_total = atomic_load(&e->memory_total),
    };
}
