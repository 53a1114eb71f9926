// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/engine/pool.h"
#include "server/traceparent.h"
#include "storage/sessions/catalogue.h"

// A job whose file is not as the asker sees it: this daemon may not have seen it yet.  After
// PATIENCE_MS the asker is left to it.
enum { NOT_YET_MS = 300, PATIENCE_MS = 10000, PUBLISH_PAUSE_MS = 200 };

bool xpl_job_slot_fill(struct xpl_job_slot *s, const struct xpl_job *job) {
    xpl_arena_init(&s->arena, 1 << 20);
    s->job = *job;
    atomic_store(&s->lost, false);
    atomic_store(&s->cancelled, false);
    if (xpl_arena_str(&s->arena, job->spec.session, &s->job.spec.session) &&
        xpl_arena_str(&s->arena, job->spec.host, &s->job.spec.host) &&
        xpl_arena_str(&s->arena, job->spec.product, &s->job.spec.product) &&
        xpl_arena_str(&s->arena, job->spec.traceparent, &s->job.spec.traceparent))
        return true;
    xpl_arena_fini(&s->arena);
    return false;
}

static bool is_over(void *arg) {
    const struct xpl_job_slot *const s = arg;
    return atomic_load(&s->lost) || atomic_load(&s->cancelled);
}

static void pause_ms(long ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

// ---- for tests ----

#if XPL_FAULTS
static const char *fault_value(const char *name) {
    const char *const all = getenv("XPLANED_FAULT_JOBS"), *const at =
                                                              all ? strstr(all, name) : NULL;
    return at ? at + strlen(name) : NULL;
}

// XPLANED_FAULT_JOBS="kill=HOST delay_ms=N": the file of HOST kills whoever reads it; each product
// takes so much longer.
static void inject_fault(const struct xpl_job_slot *s) {
    const char *const kill = fault_value("kill="), *const delay = fault_value("delay_ms=");
    const xpl_str_t host = s->job.spec.host;
    if (kill && strncmp(kill, host.ptr, host.len) == 0 && strchr(" ", kill[host.len])) abort();
    const uint64_t until = xpl_clock_ns() + (delay ? strtoull(delay, NULL, 10) : 0) * 1000000u;
    while (xpl_clock_ns() < until && !is_over((void *)(uintptr_t)s))
        pause_ms(5);
}
#else
static void inject_fault(const struct xpl_job_slot *s) {
    (void)s;
}
#endif

// ---- the end of a job ----

static void log_job(const struct xpl_job_slot *s, enum xpl_log_level level, const char *text,
                    const struct xpl_error *err) {
    struct xpl_log_line l;
    xpl_log_begin(&l, level, "jobs", text);
    xpl_log_str(&l, "session", s->job.spec.session);
    xpl_log_str(&l, "host", s->job.spec.host);
    xpl_log_str(&l, "product", s->job.spec.product);
    xpl_log_int(&l, "attempt", s->job.claim.attempt);
    xpl_log_int(&l, "queued_ms", s->job.queued_ms); // when it was begun
    if (err && err->msg[0]) xpl_log_str(&l, "why", xpl_str_from(err->msg));
    xpl_traceparent_log(s->job.spec.traceparent, &l);
    xpl_log_end(&l);
}

void xpl_job_slot_give_back(struct xpl_job_slot *s, uint64_t ms) {
    struct xpl_store *const store = s->parts->store;
    struct xpl_error err = {0};
    // Of a job that is another's it does nothing.
    atomic_fetch_add(atomic_load(&s->lost) ? &s->counts->lost : &s->counts->given_back, 1);
    const xpl_status_t st = xpl_store_jobs(store)->give_back(store, &s->job.claim, 1, ms, &err);
    if (st != XPL_OK) log_job(s, XPL_LOG_WARN, "not given back: its lease will end", &err);
}

// The asker makes the product by itself then, and says why that fails.
static void drop_job(struct xpl_job_slot *s, const struct xpl_error *why) {
    struct xpl_store *const store = s->parts->store;
    struct xpl_error err = {0};
    log_job(s, XPL_LOG_INFO, "left to the client", why);
    atomic_fetch_add(&s->counts->dropped, 1);
    if (xpl_store_jobs(store)->conclude(store, &s->job.claim, &err) != XPL_OK)
        log_job(s, XPL_LOG_WARN, "not dropped: its lease will end", &err);
}

static void postpone(struct xpl_job_slot *s, const char *why) {
    struct xpl_error err = {0};
    (void)xpl_error_set(&err, XPL_NOT_FOUND, __FILE__, __LINE__, UINT64_MAX, "%s", why);
    if (s->job.queued_ms > PATIENCE_MS)
        drop_job(s, &err);
    else
        xpl_job_slot_give_back(s, NOT_YET_MS);
}

// A database that is away may be back before the lease is over.
static void publish(struct xpl_job_slot *s, const struct xpl_product_request *r,
                    struct xpl_product_handle *h) {
    const uint64_t until = xpl_clock_ns() + s->parts->lease_ms * 1000000u;
    const struct xpl_work_owner owner = {is_over, s};
    struct xpl_error err;
    xpl_status_t st;
    do {
        err = (struct xpl_error){0};
        st = xpl_product_publish(s->parts->products, r, h, &s->job.claim, owner, &err);
        if (st != XPL_UNAVAILABLE && st != XPL_FAILED_PRECONDITION) break;
        pause_ms(PUBLISH_PAUSE_MS);
    } while (xpl_clock_ns() < until && !atomic_load(&s->cancelled));
    if (st == XPL_OK) {
        log_job(s, XPL_LOG_INFO, "published", NULL);
        atomic_fetch_add(&s->counts->published, 1);
    } else if (st == XPL_NOT_FOUND) {
        log_job(s, XPL_LOG_WARN, "refused: the lease was over, and is another's", NULL);
        atomic_fetch_add(&s->counts->lost, 1);
    } else if (st == XPL_ABORTED)
        postpone(s, err.msg);
    else if (st == XPL_CANCELLED)
        xpl_job_slot_give_back(s, 0);
    else
        drop_job(s, &err);
}

// ---- the job ----

static const struct xpl_product *find_product(const struct xpl_job_spec *spec) {
    size_t n;
    const struct xpl_product *const *const all = xpl_products(&n);
    for (size_t i = 0; i < n; i++)
        if (xpl_str_eq(xpl_str_from(all[i]->name), spec->product) &&
            all[i]->version == spec->version && all[i]->residency == XPL_RESIDENCY_STORE)
            return all[i];
    return NULL;
}

// The file, as far as size and time tell, that the asker saw: NULL when there is none.
static const struct xpl_host *find_host(const struct xpl_snapshot *snap,
                                        const struct xpl_job_spec *spec) {
    const struct xpl_session *const se = xpl_snapshot_find(snap, spec->session);
    const struct xpl_host *const h = se ? xpl_session_find_host(se, spec->host) : NULL;
    return h && h->fingerprint.size == spec->size_bytes && h->fingerprint.mtime_ns == spec->mtime_ns
               ? h
               : NULL;
}

static void make_product(struct xpl_job_slot *s, const struct xpl_product_request *r) {
    struct xpl_pool_exec exec;
    struct xpl_stage_times times = {0};
    struct xpl_product_handle *h = NULL;
    struct xpl_error err = {0};
    xpl_pool_exec_init(&exec, s->parts->pool, is_over, s);
    const struct xpl_build_context ctx = {.exec = &exec.exec,
                                          .owner = {is_over, s},
                                          .packed = true,
                                          .passing = true,
                                          .published = true};
    inject_fault(s);
    const xpl_status_t st = xpl_product_get(s->parts->products, r, &ctx, &times, &h, &err);
    if (st == XPL_OK && h->status == XPL_OK)
        publish(s, r, h);
    else if (st == XPL_CANCELLED)
        xpl_job_slot_give_back(s, 0);
    else
        drop_job(s, h ? &h->err : &err);
    if (h) xpl_object_unref(&h->object);
}

void xpl_job_slot_run(struct xpl_job_slot *s) {
    struct xpl_snapshot *const snap = xpl_catalogue_get(s->parts->catalogue);
    const struct xpl_product_request r = {.product = find_product(&s->job.spec),
                                          .variant = s->job.spec.variant,
                                          .snapshot = snap,
                                          .host = find_host(snap, &s->job.spec)};
    if (atomic_load(&s->cancelled))
        xpl_job_slot_give_back(s, 0);
    else if (!r.product)
        drop_job(s, NULL);
    else if (!r.host) {
        xpl_catalogue_mark_session(s->parts->catalogue, s->job.spec.session);
        postpone(s, "no such file here");
    } else
        make_product(s, &r);
    xpl_snapshot_unref(snap);
}
