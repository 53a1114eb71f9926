// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/worker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "server/engine/pool.h"
#include "server/jobs/job.h"

// How long an idle worker waits until it asks again: longer each time.  At most: nine daemons that
// do nothing make no more than ten statements a second.
enum { ASK_MIN_MS = 20, ASK_MAX_MS = 1100, RENEWALS = 3 };
// How often all jobs are counted, and how long nobody must have read the counts until that ends.
enum { SLOT_BYTES = 4 << 20 }; // of one job's description
enum { COUNT_MS = 5000, WATCHED_MS = 120000 };

struct xpl_job_worker {
    struct xpl_job_worker_options o;
    struct xpl_store_version *products; // that it makes
    size_t n_products;
    struct xpl_job_slot *slots;
    size_t n_slots;
    struct xpl_job_counts counts;
    char name[96], role[16];
    pthread_t thread;
    pthread_mutex_t mu; // everything below
    pthread_cond_t changed;
    size_t n_running;
    bool stop, cancelled;
    uint64_t stop_ns; // when jobs are given up
    uint64_t ask_ns, ask_pause_ms, renew_ns;
    unsigned seed;
    uint64_t count_ns, watched_ns; // the next count of all jobs; until when it is made
    uint64_t n_claimed, queued_ms, claim_ns;
    bool knows_fleet; // the last count did not fail
    struct xpl_job_stats fleet;
    void (*ended)(void *arg);
    void *ended_arg;
};

static uint64_t ns_of(uint64_t ms) {
    return ms * 1000000u;
}

// ---- doing jobs ----

// A free slot, used from now on; NULL: all are used.
static struct xpl_job_slot *take_slot(struct xpl_job_worker *w, bool *ret_alone) {
    struct xpl_job_slot *ret = NULL;
    pthread_mutex_lock(&w->mu);
    *ret_alone = w->n_running == 0;
    for (size_t i = 0; !ret && !w->stop && i < w->n_slots; i++)
        if (!w->slots[i].used) ret = &w->slots[i];
    if (ret) {
        ret->used = true;
        ret->job.claim = (struct xpl_job_claim){0};
        w->n_running++;
    }
    pthread_mutex_unlock(&w->mu);
    return ret;
}

static void leave_slot(struct xpl_job_worker *w, struct xpl_job_slot *s) {
    pthread_mutex_lock(&w->mu);
    xpl_arena_fini(&s->arena);
    s->used = false;
    w->n_running--;
    pthread_mutex_unlock(&w->mu);
}

static void run_slot(void *arg) { // on a thread of the pool
    struct xpl_job_slot *const s = arg;
    struct xpl_job_worker *const w = s->worker;
    xpl_job_slot_run(s);
    leave_slot(w, s);
    pthread_mutex_lock(&w->mu);
    w->ask_ns = 0; // there is room for another one
    w->ask_pause_ms = ASK_MIN_MS;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mu);
}

// Claims a job for a free slot; false when there was none of either.
static bool claim_job(struct xpl_job_worker *w) {
    struct xpl_job *job = NULL;
    struct xpl_job_offer offer = {
        .products = w->products, .n_products = w->n_products, .lease_ms = w->o.lease_ms};
    struct xpl_job_slot *const s = take_slot(w, &offer.alone);
    if (!s) return false;
    xpl_arena_init(&s->arena, SLOT_BYTES);
    atomic_store(&s->lost, false);
    atomic_store(&s->cancelled, false);
    const uint64_t began = xpl_clock_ns();
    // What fails is tried again: the store says when it is away.
    const xpl_status_t st =
        xpl_store_jobs(w->o.store)->claim(w->o.store, &offer, &s->arena, &job, NULL);
    if (st == XPL_OK && job) {
        pthread_mutex_lock(&w->mu);
        s->job = *job;
        w->n_claimed++;
        w->queued_ms += (uint64_t)(job->queued_ms > 0 ? job->queued_ms : 0);
        w->claim_ns += xpl_clock_ns() - began;
        pthread_mutex_unlock(&w->mu);
        if (xpl_pool_submit(w->o.pool, run_slot, s)) return true;
        xpl_job_slot_give_back(s, ASK_MAX_MS);
    }
    leave_slot(w, s);
    return false;
}

// Claims as many as there is room for; false when there was nothing.
static bool claim_jobs(struct xpl_job_worker *w) {
    bool any = false;
    while (claim_job(w))
        any = true;
    return any;
}

// ---- leases ----

// A slot may have got another job since its claim was copied.
static void mark_lost(struct xpl_job_worker *w, const struct xpl_job_claim *c) {
    pthread_mutex_lock(&w->mu);
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].used && w->slots[i].job.claim.id == c->id)
            atomic_store(&w->slots[i].lost, true);
    pthread_mutex_unlock(&w->mu);
}

static void renew_leases(struct xpl_job_worker *w) {
    struct xpl_job_claim claims[XPL_JOB_MAX_CLAIMS];
    bool kept[XPL_JOB_MAX_CLAIMS];
    size_t n = 0;
    pthread_mutex_lock(&w->mu);
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].used && w->slots[i].job.claim.id) claims[n++] = w->slots[i].job.claim;
    pthread_mutex_unlock(&w->mu);
    const struct xpl_job_ops *const ops = xpl_store_jobs(w->o.store);
    const struct xpl_job_daemon me = {.name = xpl_str_from(w->name),
                                      .role = xpl_str_from(w->role),
                                      .version = XPL_STR(XPL_VERSION),
                                      .n_jobs = (int64_t)n,
                                      .n_threads = (int64_t)w->n_slots};
    if (w->n_slots && ops->renew(w->o.store, claims, n, kept, NULL) == XPL_OK)
        for (size_t i = 0; i < n; i++)
            if (!kept[i]) mark_lost(w, &claims[i]);
    (void)ops->report(w->o.store, &me, w->o.lease_ms, NULL);
}

static void report_end(struct xpl_job_worker *w) {
    const struct xpl_job_daemon me = {.name = xpl_str_from(w->name),
                                      .role = xpl_str_from(w->role),
                                      .version = XPL_STR(XPL_VERSION)};
    (void)xpl_store_jobs(w->o.store)->report(w->o.store, &me, 0, NULL);
}

// ---- the thread ----

// The mutex is released meanwhile.
static void ask(struct xpl_job_worker *w) {
    xpl_assert_held(&w->mu);
    pthread_mutex_unlock(&w->mu);
    const bool any = claim_jobs(w);
    pthread_mutex_lock(&w->mu);
    if (any)
        w->ask_pause_ms = ASK_MIN_MS;
    else if (w->ask_pause_ms < ASK_MAX_MS)
        w->ask_pause_ms = w->ask_pause_ms * 2 < ASK_MAX_MS ? w->ask_pause_ms * 2 : ASK_MAX_MS;
    // Workers that were started at one moment would go on asking at one moment.
    const uint64_t part = w->ask_pause_ms / 4;
    w->ask_ns = xpl_clock_ns() +
                ns_of(w->ask_pause_ms - part / 2 + (uint64_t)rand_r(&w->seed) % (part + 1));
}

static void renew(struct xpl_job_worker *w) {
    w->renew_ns = xpl_clock_ns() + ns_of(w->o.lease_ms / RENEWALS);
    pthread_mutex_unlock(&w->mu);
    renew_leases(w);
    pthread_mutex_lock(&w->mu);
}

static void count_all(struct xpl_job_worker *w) {
    struct xpl_job_stats stats;
    w->count_ns = xpl_clock_ns() + ns_of(COUNT_MS);
    pthread_mutex_unlock(&w->mu);
    const xpl_status_t st = xpl_store_jobs(w->o.store)->get_stats(w->o.store, &stats, NULL);
    pthread_mutex_lock(&w->mu);
    w->knows_fleet = st == XPL_OK;
    if (st == XPL_OK) w->fleet = stats;
}

static void cancel_all(struct xpl_job_worker *w) {
    w->cancelled = true;
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].used) atomic_store(&w->slots[i].cancelled, true);
}

static uint64_t next_event(const struct xpl_job_worker *w, uint64_t now) {
    uint64_t next = w->renew_ns;
    if (!w->stop && w->n_running < w->n_slots && w->ask_ns < next) next = w->ask_ns;
    if (w->stop && !w->cancelled && w->stop_ns < next) next = w->stop_ns;
    if (now < w->watched_ns && w->count_ns < next) next = w->count_ns;
    return next;
}

static void *worker_main(void *arg) {
    struct xpl_job_worker *const w = arg;
    pthread_mutex_lock(&w->mu);
    while (!w->stop || w->n_running) {
        const uint64_t now = xpl_clock_ns();
        if (now >= w->renew_ns)
            renew(w);
        else if (!w->stop && w->n_running < w->n_slots && now >= w->ask_ns)
            ask(w);
        else if (w->stop && !w->cancelled && now >= w->stop_ns)
            cancel_all(w);
        else if (now >= w->count_ns && now < w->watched_ns)
            count_all(w);
        else
            (void)xpl_cond_wait_until(&w->changed, &w->mu, next_event(w, now));
    }
    pthread_mutex_unlock(&w->mu);
    report_end(w);
    if (w->ended) w->ended(w->ended_arg);
    return NULL;
}

// ---- life ----

// The products that the store keeps: those are what others can use.
static bool list_products(struct xpl_job_worker *w) {
    size_t n;
    const struct xpl_product *const *const all = xpl_products(&n);
    w->products = xpl_sys_alloc(n * sizeof *w->products + 1);
    for (size_t i = 0; w->products && i < n; i++)
        if (all[i]->residency == XPL_RESIDENCY_STORE)
            w->products[w->n_products++] = (struct xpl_store_version){
                XPL_STORE_PRODUCT, xpl_str_from(all[i]->name), all[i]->version};
    return w->products != NULL;
}

static bool make_slots(struct xpl_job_worker *w) {
    const unsigned threads = xpl_pool_get_state(w->o.pool).workers;
    w->n_slots = strcmp(w->role, "worker") != 0 ? 0
                 : threads < XPL_JOB_MAX_CLAIMS ? threads
                                                : XPL_JOB_MAX_CLAIMS;
    w->slots = xpl_sys_alloc(w->n_slots * sizeof *w->slots + 1);
    for (size_t i = 0; w->slots && i < w->n_slots; i++)
        w->slots[i] = (struct xpl_job_slot){.parts = &w->o, .worker = w, .counts = &w->counts};
    return w->slots != NULL;
}

static void worker_free(struct xpl_job_worker *w) {
    xpl_sys_free(w->slots);
    xpl_sys_free(w->products);
    pthread_mutex_destroy(&w->mu);
    pthread_cond_destroy(&w->changed);
    xpl_sys_free(w);
}

struct xpl_job_worker *xpl_job_worker_new(const struct xpl_job_worker_options *o) {
    char host[64] = "";
    struct xpl_job_worker *const w = xpl_sys_alloc(sizeof *w);
    if (!w) return NULL;
    // One count at the start, for the first who reads it.  The first claim precedes the first
    // report: it finds out whether this daemon can have jobs.
    *w = (struct xpl_job_worker){.o = *o,
                                 .ask_pause_ms = ASK_MIN_MS,
                                 .renew_ns = xpl_clock_ns() + ns_of(ASK_MIN_MS),
                                 .watched_ns = xpl_clock_ns() + ns_of(COUNT_MS),
                                 .seed = (unsigned)xpl_clock_ns()};
    pthread_mutex_init(&w->mu, NULL);
    xpl_cond_init(&w->changed);
    (void)snprintf(w->role, sizeof w->role, "%s", o->role);
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(w->name, sizeof w->name, "%s:%ld", host, (long)getpid());
    if (list_products(w) && make_slots(w) && pthread_create(&w->thread, NULL, worker_main, w) == 0)
        return w;
    worker_free(w);
    return NULL;
}

void xpl_job_worker_stop(struct xpl_job_worker *w, uint64_t grace_ms, void (*ended)(void *arg),
                         void *arg) {
    pthread_mutex_lock(&w->mu);
    w->stop = true;
    w->stop_ns = xpl_clock_ns() + ns_of(grace_ms);
    w->ended = ended;
    w->ended_arg = arg;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mu);
}

void xpl_job_worker_get_stats(struct xpl_job_worker *w, struct xpl_job_worker_stats *ret) {
    pthread_mutex_lock(&w->mu);
    const uint64_t now = xpl_clock_ns();
    w->watched_ns = now + ns_of(WATCHED_MS);
    if (now >= w->count_ns) pthread_cond_signal(&w->changed);
    // Nobody counted while nobody read: an old count is none.
    const bool is_recent = now < w->count_ns + ns_of(COUNT_MS);
    *ret = (struct xpl_job_worker_stats){.claimed = w->n_claimed,
                                         .published = atomic_load(&w->counts.published),
                                         .given_back = atomic_load(&w->counts.given_back),
                                         .dropped = atomic_load(&w->counts.dropped),
                                         .lost = atomic_load(&w->counts.lost),
                                         .queued_ms = w->queued_ms,
                                         .claim_us = w->claim_ns / 1000,
                                         .publish_us = atomic_load(&w->counts.publish_ns) / 1000,
                                         .leases = w->n_running,
                                         .knows_fleet = w->knows_fleet && is_recent,
                                         .fleet = w->fleet};
    pthread_mutex_unlock(&w->mu);
}

void xpl_job_worker_free(struct xpl_job_worker *w) {
    if (!w) return;
    pthread_mutex_lock(&w->mu);
    if (!w->stop) w->stop_ns = 0;
    w->stop = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mu);
    (void)pthread_join(w->thread, NULL);
    worker_free(w);
}
