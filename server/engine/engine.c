// Questions, jobs and tickets of the engine.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "server/engine/impl.h"

enum { BUSY_RETRY_MS = 500, LARGE_JOB = 64 << 20 };

struct xpl_engine *xpl_engine_new(struct xpl_catalogue *catalogue, struct xpl_store *store,
                                  struct xpl_pool *pool, struct xpl_store_writer *writer,
                                  struct xpl_cache *cache, const struct xpl_engine_options *o) {
    struct xpl_engine *e = xpl_sys_alloc(sizeof *e);
    if (!e) return NULL;
    memset(e, 0, sizeof *e);
    e->catalogue = catalogue;
    e->store = store;
    e->pool = pool;
    e->writer = writer;
    e->cache = cache;
    xpl_engine_set_options(e, o);
    pthread_mutex_init(&e->mu, NULL);
    pthread_cond_init(&e->converted, NULL);
    return e;
}

void xpl_engine_free(struct xpl_engine *e) {
    if (!e) return;
    pthread_mutex_destroy(&e->mu);
    pthread_cond_destroy(&e->converted);
    xpl_sys_free(e);
}

void xpl_engine_set_options(struct xpl_engine *e, const struct xpl_engine_options *o) {
    atomic_store(&e->memory_limit, o->memory_limit);
    atomic_store(&e->memory_total, o->memory_total);
    atomic_store(&e->request_timeout_ns, o->request_timeout_ns);
}

void xpl_engine_set_identity(struct xpl_engine *e, struct xpl_identity *i) {
    e->identity = i;
}

void xpl_engine_set_traces(struct xpl_engine *e, struct xpl_traces *t) {
    e->traces = t;
}

// ---- questions ----

void xpl_request_free(struct xpl_request *q) {
    if (!q) return;
    xpl_snapshot_unref(q->snapshot);
    xpl_arena_fini(&q->arena);
    xpl_sys_free(q);
}

static xpl_status_t no_host(const struct xpl_session *s, xpl_str_t host, struct xpl_error *err) {
    if (xpl_session_has_riegeli(s, host))
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "host %.*s of %.*s is a .xplane.riegeli file, which xplaned does not read; "
            "convert it to .xplane.pb",
            XPL_STR_FMT(host), XPL_STR_FMT(s->name));
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND,
                     "session %.*s has no host \"%.*s\"; GetSession lists its hosts",
                     XPL_STR_FMT(s->name), XPL_STR_FMT(host));
}

static int by_name(const void *a, const void *b) {
    const struct xpl_host *const *x = a, *const *y = b;
    return xpl_str_cmp((*x)->name, (*y)->name);
}

// Fills q->hosts: all of them, or those named, each once, by name.
static xpl_status_t choose_hosts(struct xpl_request *q, const xpl_str_t *hosts, size_t n,
                                 struct xpl_error *err) {
    const struct xpl_session *s = q->session;
    q->all_hosts = n == 0 || (n == 1 && xpl_str_eq(hosts[0], XPL_STR("ALL_HOSTS")));
    q->by_name = !q->all_hosts;
    const size_t room = q->all_hosts ? s->n_hosts : n;
    const struct xpl_host **list = xpl_arena_array(&q->arena, room, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "question");
    for (size_t i = 0; i < room; i++) {
        list[i] = q->all_hosts ? &s->hosts[i] : xpl_session_find_host(s, hosts[i]);
        if (!list[i]) return no_host(s, hosts[i], err);
    }
    if (!q->all_hosts) qsort(list, room, sizeof *list, by_name);
    for (size_t i = 0; i < room; i++)
        if (i == 0 || list[i] != list[i - 1]) list[q->n_hosts++] = list[i];
    q->hosts = list;
    if (q->n_hosts == s->n_hosts) q->all_hosts = true;
    if (q->n_hosts) return XPL_OK;
    if (s->n_riegeli) return no_host(s, s->riegeli[0], err);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "session %.*s has no profile (HOST.xplane.pb) yet",
                     XPL_STR_FMT(s->name));
}

// Names the session's hosts in a sentence, as far as they fit.
static xpl_status_t one_host_only(const struct xpl_request *q, struct xpl_error *err) {
    char names[120] = "";
    size_t at = 0;
    for (size_t i = 0; i < q->n_hosts && at < sizeof names - 1; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%.*s", i ? ", " : "",
                               XPL_STR_FMT(q->hosts[i]->name));
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                     "%s answers for one host at a time; ask for one of: %s", q->tool->name, names);
}

static xpl_status_t parse_options(struct xpl_request *q, const struct xpl_option *options, size_t n,
                                  bool strict, struct xpl_error *err) {
    XPL_TRY(xpl_tool_options_parse(q->tool, options, n, strict, &q->opt, err));
    q->fresh = q->opt.recompute;
    struct xpl_trace_options *const t = &q->opt.trace; // its texts outlive the call
    if (!xpl_arena_str(&q->arena, t->event_name, &t->event_name) ||
        !xpl_arena_str(&q->arena, t->search_prefix, &t->search_prefix))
        XPL_RETURN_OOM(err, "question");
    return XPL_OK;
}

static void put_part(struct xpl_buf *b, xpl_str_t s) {
    const uint64_t len = s.len;
    xpl_buf_put(b, &len, sizeof len);
    xpl_buf_str(b, s);
}

static void put_trace_options(struct xpl_buf *b, const struct xpl_trace_options *t) {
    const double times[3] = {t->start_time_ms, t->end_time_ms, t->duration_ms};
    xpl_buf_put(b, &t->resolution, sizeof t->resolution);
    xpl_buf_put(b, times, sizeof times);
    xpl_buf_put(b, &t->unique_id, sizeof t->unique_id);
    put_part(b, t->event_name);
    put_part(b, t->search_prefix);
    xpl_buf_putc(b, (char)t->search_metadata);
    xpl_buf_putc(b, (char)t->full_dma);
    xpl_buf_putc(b, (char)t->mpmd_pipeline_view);
    xpl_buf_putc(b, (char)t->pb);
}

// Session and its generation stand for the files: a change of any file is a new generation.
static xpl_status_t make_key(struct xpl_request *q, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, (size_t)64 << 20);
    xpl_buf_putc(&b, 'A');
    xpl_buf_putc(&b, (char)q->opt.group_by);
    xpl_buf_putc(&b, (char)q->opt.cpu_as_device);
    xpl_buf_putc(&b, (char)q->opt.xprof_exact);
    xpl_buf_put(&b, &q->session->changed, sizeof q->session->changed);
    put_part(&b, xpl_str_from(q->tool->name));
    put_part(&b, q->session->name);
    if (q->tool->product == XPL_PRODUCT_TRACE) put_trace_options(&b, &q->opt.trace);
    for (size_t i = 0; !q->all_hosts && i < q->n_hosts; i++)
        put_part(&b, q->hosts[i]->name);
    xpl_buf_putc(&b, (char)q->by_name); // a broken host asked for by name is an error
    xpl_str_t key;
    if (b.failed || !xpl_arena_str(&q->arena, (xpl_str_t){(char *)b.p, b.n}, &key))
        XPL_RETURN_OOM(err, "question");
    q->key = (xpl_bytes_t){(const uint8_t *)key.ptr, key.len};
    return XPL_OK;
}

// GetOpStats is a question like the tools', with the options of the conversion.
static const char *const no_options[] = {NULL};
static const struct xpl_tool op_stats = {.name = "op_stats",
                                         .content_type = "application/octet-stream",
                                         .product = XPL_PRODUCT_OP_STATS,
                                         .options = no_options};

static const struct xpl_tool worker_op_stats = {.name = "worker_op_stats",
                                                .content_type = "application/octet-stream",
                                                .product = XPL_PRODUCT_OP_STATS,
                                                .options = no_options};

static xpl_status_t find_tool(struct xpl_request *q, xpl_str_t name, struct xpl_error *err) {
    q->all_steps = xpl_str_eq(name, XPL_WORKER_OP_STATS);
    q->tool = q->all_steps ? &worker_op_stats : name.len ? xpl_tool_find(name) : &op_stats;
    if (q->tool) return XPL_OK;
    char names[160] = "";
    size_t n, at = 0;
    const struct xpl_tool *tools = xpl_tools(&n);
    for (size_t i = 0; i < n && at < sizeof names - 1; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", tools[i].name);
    const xpl_str_t shown = xpl_str_sub(name, 0, 40); // or the tools would not fit
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "unknown tool \"%.*s\"; tools: %s",
                     XPL_STR_FMT(shown), names);
}

static xpl_status_t resolve(struct xpl_request *q, xpl_str_t session, const xpl_str_t *hosts,
                            size_t n_hosts, xpl_str_t tool, const struct xpl_option *options,
                            size_t n_options, bool strict, struct xpl_error *err) {
    q->session = xpl_snapshot_find(q->snapshot, session);
    if (!q->session)
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND,
                         "no session \"%.*s\"; ListSessions tells what there is",
                         XPL_STR_FMT(session));
    XPL_TRY(find_tool(q, tool, err));
    XPL_TRY(parse_options(q, options, n_options, strict, err));
    XPL_TRY(choose_hosts(q, hosts, n_hosts, err));
    if (q->tool && q->tool->one_host && q->n_hosts > 1) return one_host_only(q, err);
    return make_key(q, err);
}

xpl_status_t xpl_engine_resolve(struct xpl_engine *e, xpl_str_t session, const xpl_str_t *hosts,
                                size_t n_hosts, xpl_str_t tool, const struct xpl_option *options,
                                size_t n_options, bool strict, struct xpl_request **ret,
                                struct xpl_error *err) {
    struct xpl_request *q = xpl_sys_alloc(sizeof *q);
    if (!q) XPL_RETURN_OOM(err, "question");
    *q = (struct xpl_request){0};
    xpl_arena_init(&q->arena, (size_t)64 << 20);
    q->snapshot = xpl_catalogue_get(e->catalogue);
    const xpl_status_t st =
        resolve(q, session, hosts, n_hosts, tool, options, n_options, strict, err);
    if (st == XPL_OK)
        *ret = q;
    else
        xpl_request_free(q);
    return st;
}

struct xpl_tool_data *xpl_engine_lookup(struct xpl_engine *e, const struct xpl_request *q) {
    if (q->fresh) return NULL;
    struct xpl_tool_data *a = (struct xpl_tool_data *)xpl_cache_get(e->cache, q->key);
    if (a) atomic_fetch_add(&e->from_memory, 1);
    return a;
}

void xpl_engine_count_memory(struct xpl_engine *e) {
    atomic_fetch_add_explicit(&e->from_memory, 1, memory_order_relaxed);
}

// ---- jobs and tickets ----

struct xpl_job {
    struct xpl_job *next; // among the engine's jobs
    struct xpl_engine *engine;
    struct xpl_request *q;
    struct xpl_ticket *waiters; // under the engine's mutex, as `listed`
    bool listed;
    atomic_bool nobody;
    uint64_t queued_ns;
    size_t reserved; // of memory_total
    bool delivered;
};

struct xpl_ticket {
    atomic_uint refs; // the asker's and the job's
    struct xpl_ticket *next;
    struct xpl_engine *engine;
    struct xpl_job *job; // NULL once done was, or is about to be, called
    uint64_t queued_ns;
    void (*done)(void *arg, const struct xpl_outcome *o);
    void *arg;
    bool joined;
};

void xpl_ticket_unref(struct xpl_ticket *t) {
    if (t && atomic_fetch_sub(&t->refs, 1) == 1) xpl_sys_free(t);
}

static bool job_cancelled(void *arg) {
    const struct xpl_job *j = arg;
    return atomic_load_explicit(&j->nobody, memory_order_relaxed);
}

static void unlist(struct xpl_engine *e, struct xpl_job *j) {
    for (struct xpl_job **at = &e->jobs; j->listed && *at; at = &(*at)->next) {
        if (*at != j) continue;
        *at = j->next;
        break;
    }
    j->listed = false;
}

// Calls every waiter back.  From then on nobody joins the job, or cancels it.
static void job_deliver(void *arg, struct xpl_outcome *o) {
    struct xpl_job *const j = arg;
    struct xpl_engine *e = j->engine;
    pthread_mutex_lock(&e->mu);
    unlist(e, j);
    struct xpl_ticket *list = j->waiters;
    j->waiters = NULL;
    if (!j->delivered) atomic_fetch_add(&e->delivered, j->reserved);
    j->delivered = true;
    for (struct xpl_ticket *t = list; t; t = t->next)
        t->job = NULL;
    pthread_mutex_unlock(&e->mu);
    while (list) {
        struct xpl_ticket *const t = list;
        list = t->next;
        o->joined = t->joined;
        if (o->code == XPL_OK) {
            if (o->source == XPL_COMPUTED) atomic_fetch_add(&e->computed, 1);
            if (o->source == XPL_FROM_STORE) atomic_fetch_add(&e->from_store, 1);
            if (t->joined) atomic_fetch_add(&e->joined, 1);
        }
        t->done(t->arg, o);
        xpl_ticket_unref(t);
    }
}

// Ends the job: what was not delivered is, then it is freed.
static void job_finish(struct xpl_job *j, struct xpl_outcome *o) {
    job_deliver(j, o);
    if (o->answer) xpl_object_unref(&o->answer->object);
    atomic_fetch_sub(&j->engine->in_flight, j->reserved);
    atomic_fetch_sub(&j->engine->delivered, j->reserved);
    // Everybody has the answer: what the job used goes back to the system.
    if (j->reserved >= LARGE_JOB && o->source == XPL_COMPUTED) (void)malloc_trim(0);
    xpl_request_free(j->q);
    xpl_sys_free(j);
}

const char *xpl_outcome_source(const struct xpl_outcome *o) {
    if (o->code != XPL_OK) return "";
    return o->joined                      ? "joined"
           : o->source == XPL_FROM_MEMORY ? "memory"
           : o->source == XPL_FROM_STORE  ? "store"
                                          : "computed";
}

static void outcome_fail(struct xpl_outcome *o, xpl_status_t code, int64_t retry_ms,
                         const char *text) {
    o->err = (struct xpl_error){0};
    o->code = xpl_error_set(&o->err, code, __FILE__, __LINE__, UINT64_MAX, "%s", text);
    o->retry_ms = retry_ms;
}

// Reserves what the job may need of --memory-total: the hosts' files stand for their conversion.
static bool reserve(void *arg) {
    struct xpl_job *j = arg;
    struct xpl_engine *e = j->engine;
    size_t want = (size_t)16 << 20;
    for (size_t i = 0; i < j->q->n_hosts; i++)
        want += j->q->hosts[i]->print.size / 4;
    const size_t limit = atomic_load(&e->memory_limit), total = atomic_load(&e->memory_total);
    if (want > limit) want = limit;
    const size_t before = atomic_fetch_add(&e->in_flight, want);
    j->reserved = want;
    // One job alone may always try; who has his answer does not wait for what goes on after it.
    const bool ok = before <= atomic_load(&e->delivered) || before + want <= total;
    if (!ok) atomic_fetch_add(&e->refused, 1);
    return ok;
}

static void job_run(void *arg) {
    struct xpl_job *j = arg;
    struct xpl_engine *e = j->engine;
    struct xpl_outcome o = {.retry_ms = -1};
    o.stage_us[XPL_STAGE_QUEUE] = (xpl_clock_ns() - j->queued_ns) / 1000 + 1;
    struct xpl_pool_exec exec;
    xpl_pool_exec_init(&exec, e->pool, job_cancelled, j);
    const struct xpl_build_context want = {.exec = &exec.exec,
                                           .cancelled = job_cancelled,
                                           .arg = j,
                                           .fresh = j->q->fresh,
                                           .admit = reserve,
                                           .deliver = job_deliver};
    if (job_cancelled(j)) {
        o.code = XPL_CANCELLED;
    } else {
        o.answer = xpl_engine_lookup(e, j->q); // another job may have made it since
        o.source = XPL_FROM_MEMORY;
        o.kept = o.answer != NULL;
        if (!o.answer) xpl_answer_make(e, j->q, &want, &o);
    }
    if (o.code == XPL_CANCELLED && !o.err.code) {
        outcome_fail(&o, XPL_CANCELLED, -1, "cancelled");
    }
    job_finish(j, &o);
}

static struct xpl_ticket *
ticket_new(struct xpl_engine *e, void (*done)(void *arg, const struct xpl_outcome *o), void *arg) {
    struct xpl_ticket *t = xpl_sys_alloc(sizeof *t);
    if (!t) return NULL;
    *t = (struct xpl_ticket){.engine = e, .done = done, .arg = arg, .queued_ns = xpl_clock_ns()};
    atomic_init(&t->refs, 2);
    return t;
}

static struct xpl_job *job_new(struct xpl_engine *e, struct xpl_request *q) {
    struct xpl_job *j = xpl_sys_alloc(sizeof *j);
    if (!j) return NULL;
    *j = (struct xpl_job){.engine = e, .q = q, .queued_ns = xpl_clock_ns()};
    return j;
}

static struct xpl_job *find_job(struct xpl_engine *e, const struct xpl_request *q) {
    for (struct xpl_job *j = e->jobs; j; j = j->next)
        if (!q->fresh && !j->q->fresh && j->q->key.len == q->key.len &&
            memcmp(j->q->key.ptr, q->key.ptr, q->key.len) == 0 && !job_cancelled(j))
            return j;
    return NULL;
}

static void wait_for(struct xpl_job *j, struct xpl_ticket *t) {
    t->job = j;
    t->next = j->waiters;
    j->waiters = t;
}

static void refuse(struct xpl_request *q, void (*done)(void *, const struct xpl_outcome *),
                   void *arg, xpl_status_t code, int64_t retry_ms, const char *text) {
    struct xpl_outcome o = {0};
    outcome_fail(&o, code, retry_ms, text);
    xpl_request_free(q);
    done(arg, &o);
}

void xpl_engine_submit(struct xpl_engine *e, struct xpl_request *q,
                       void (*done)(void *arg, const struct xpl_outcome *o), void *arg,
                       struct xpl_ticket **ret) {
    struct xpl_ticket *t = ticket_new(e, done, arg);
    struct xpl_job *mine = t ? job_new(e, q) : NULL;
    *ret = t;
    if (!mine) {
        *ret = NULL;
        xpl_sys_free(t);
        refuse(q, done, arg, XPL_RESOURCE_EXHAUSTED, BUSY_RETRY_MS, "out of memory");
        return;
    }
    pthread_mutex_lock(&e->mu);
    struct xpl_job *const other = find_job(e, q);
    t->joined = other != NULL;
    wait_for(other ? other : mine, t);
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
    if (xpl_pool_submit(e->pool, job_run, mine)) return;
    atomic_fetch_add(&e->refused, 1);
    struct xpl_outcome o = {0};
    outcome_fail(&o, XPL_RESOURCE_EXHAUSTED, BUSY_RETRY_MS,
                 "too many requests are waiting (--max-concurrent-requests); try again soon");
    job_finish(mine, &o);
}

void xpl_engine_cancel(struct xpl_ticket *t) {
    struct xpl_engine *e = t->engine;
    pthread_mutex_lock(&e->mu);
    struct xpl_job *const j = t->job;
    if (j) {
        for (struct xpl_ticket **at = &j->waiters; *at; at = &(*at)->next) {
            if (*at != t) continue;
            *at = t->next;
            break;
        }
        t->job = NULL;
        if (!j->waiters) {
            atomic_store(&j->nobody, true);
            unlist(e, j);
        }
    }
    pthread_mutex_unlock(&e->mu);
    if (!j) return;
    atomic_fetch_add(&e->cancelled, 1);
    struct xpl_outcome o = {0};
    outcome_fail(&o, XPL_CANCELLED, -1, "cancelled");
    t->done(t->arg, &o);
    xpl_ticket_unref(t);
}

// Moves the waiters whose time is over to `late`: each has its own, whoever began the job.  The
// mutex is held.
static struct xpl_ticket *take_late(struct xpl_engine *e, struct xpl_job *j, uint64_t now,
                                    uint64_t limit, struct xpl_ticket *late) {
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
    if (!j->waiters) {
        atomic_store(&j->nobody, true);
        unlist(e, j);
    }
    return late;
}

void xpl_engine_sweep(struct xpl_engine *e) {
    const uint64_t now = xpl_clock_ns(), limit = atomic_load(&e->request_timeout_ns);
    struct xpl_ticket *late = NULL;
    pthread_mutex_lock(&e->mu);
    for (struct xpl_job *j = e->jobs, *next; j; j = next) {
        next = j->next;
        late = take_late(e, j, now, limit, late);
    }
    pthread_mutex_unlock(&e->mu);
    while (late) {
        struct xpl_ticket *const t = late;
        late = t->next;
        atomic_fetch_add(&e->timed_out, 1);
        struct xpl_outcome o = {0};
        outcome_fail(&o, XPL_DEADLINE_EXCEEDED, -1,
                     "the request took longer than --request-timeout");
        t->done(t->arg, &o);
        xpl_ticket_unref(t);
    }
}

// ---- ahead of questions ----

bool xpl_engine_is_stopping(void *arg) {
    const struct xpl_engine *e = arg;
    return atomic_load_explicit(&e->stopping, memory_order_relaxed);
}

void xpl_engine_stop_background(struct xpl_engine *e) {
    atomic_store(&e->stopping, true);
}

bool xpl_engine_knows(struct xpl_engine *e, const struct xpl_session *s, const struct xpl_host *h) {
    struct xpl_host_status st;
    xpl_engine_host_status(e, s, h, &st);
    return st.state != XPL_HOST_NEW;
}

bool xpl_engine_prefetch(struct xpl_engine *e, struct xpl_snapshot *snapshot,
                         const struct xpl_session *s, const struct xpl_host *h) {
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_build_context want = {
        .exec = &serial, .cancelled = xpl_engine_is_stopping, .arg = e, .prefetch = true};
    _Atomic uint64_t stage_us[XPL_N_STAGES] = {0};
    struct xpl_host_product *p = NULL;
    struct xpl_error err = {0};
    const unsigned variant = xpl_product_session_has_device(e, snapshot, s) ? 0 : XPL_VARIANT_CPU;
    if (xpl_product_get(e, snapshot, h, variant, &want, stage_us, &p, &err) != XPL_OK) return false;
    const bool sound = p->status == XPL_OK;
    xpl_object_unref(&p->object);
    if (sound) atomic_fetch_add(&e->prefetched, 1);
    return sound;
}

void xpl_engine_host_status(struct xpl_engine *e, const struct xpl_session *s,
                            const struct xpl_host *h, struct xpl_host_status *ret) {
    (void)s;
    *ret = (struct xpl_host_status){.state = XPL_HOST_NEW};
    for (unsigned variant = 0; variant < XPL_N_VARIANTS; variant++) {
        struct xpl_host_product *p = xpl_product_peek(e, &h->print, variant);
        if (!p) continue;
        ret->state = p->status == XPL_OK ? XPL_HOST_STORED : XPL_HOST_BROKEN;
        if (p->status != XPL_OK) (void)snprintf(ret->error, sizeof ret->error, "%s", p->err.msg);
        xpl_object_unref(&p->object);
        return;
    }
    if (xpl_product_running(e, &h->print))
        ret->state = XPL_HOST_CONVERTING;
    else if (xpl_product_is_stored(e, &h->print))
        ret->state = XPL_HOST_STORED;
}

void xpl_engine_get_stats(struct xpl_engine *e, struct xpl_engine_stats *ret) {
    *ret = (struct xpl_engine_stats){
        .from_memory = atomic_load(&e->from_memory),
        .from_store = atomic_load(&e->from_store),
        .computed = atomic_load(&e->computed),
        .joined = atomic_load(&e->joined),
        .prefetched = atomic_load(&e->prefetched),
        .refused = atomic_load(&e->refused),
        .cancelled = atomic_load(&e->cancelled),
        .timed_out = atomic_load(&e->timed_out),
        .conversions = atomic_load(&e->converted_ok),
        .conversions_failed = atomic_load(&e->conversions_failed),
        .bytes_converted = atomic_load(&e->bytes_converted),
        .in_flight_bytes = atomic_load(&e->in_flight),
        .memory_total = atomic_load(&e->memory_total),
    };
}
