// SPDX-License-Identifier: Apache-2.0
#include "server/capture_jobs/keeper.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "server/capture_jobs/leftovers.h"

// INSPECT_MS: how often all schedules are inspected while there are some, QUIET_MS: while there are
// none; AWAY_MS: while the database is away; STOPPING_MS: while captures end.
enum {
    INSPECT_MS = 1000,
    QUIET_MS = 5000,
    AWAY_MS = 500,
    STOPPING_MS = 50,
    CLAIM_AT_ONCE = 8, // so that those of a daemon that is gone go to several others
    ARENA_BYTES = 64 << 20
};

struct xpl_capture_keeper {
    struct xpl_capture_jobs *captures;
    struct xpl_schedules *schedules;
    const struct xpl_capture_jobs_options *o;
    const struct xpl_captures_ops *ops;
    pthread_t thread;
    pthread_mutex_t mu; // protects the two flags
    pthread_cond_t changed;
    bool stopping, freed;
    // The thread's:
    uint64_t renewed_ns, inspected_ns,
        steady_ns; // steady_ns: others had time to renew from then on
    bool answered; // by the database, the last time
    bool any;      // there are schedules
    struct xpl_schedule_claim strays[XPL_SCHEDULES_MAX]; // at the last inspection
    size_t n_strays;
};

static uint64_t ns_of(uint64_t ms) {
    return ms * 1000000u;
}

// ---- the actions ----

static xpl_status_t renew(struct xpl_capture_keeper *k, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(ARENA_BYTES);
    struct xpl_kept_leases kept;
    uint64_t asked_ns;
    if (!xpl_schedules_count(k->schedules) && !xpl_capture_jobs_has_leases(k->captures))
        return XPL_OK;
    XPL_TRY(xpl_capture_jobs_renew(k->captures, &arena, &kept, &asked_ns, err));
    xpl_schedules_renewed(k->schedules, &kept, asked_ns);
    k->renewed_ns = asked_ns;
    return XPL_OK;
}

static xpl_status_t claim(struct xpl_capture_keeper *k, struct xpl_arena *arena,
                          struct xpl_error *err) {
    struct xpl_history_schedule *rows;
    size_t n;
    const uint64_t asked_ns = xpl_clock_ns();
    XPL_TRY(k->ops->claim(k->o->shared, CLAIM_AT_ONCE, k->o->lease_ms, arena, &rows, &n, err));
    if (!xpl_schedules_adopt(k->schedules, rows, n, asked_ns)) XPL_RETURN_OOM(err, "schedules");
    return XPL_OK;
}

static xpl_status_t reap(struct xpl_capture_keeper *k, struct xpl_arena *arena,
                         struct xpl_error *err) {
    struct xpl_capture_lost *lost;
    size_t n;
    XPL_TRY(k->ops->reap(k->o->shared, arena, &lost, &n, err));
    for (size_t i = 0; i < n; i++) {
        xpl_log(XPL_LOG_WARN, "capture", "capture %" PRIu64 " of another daemon is interrupted",
                lost[i].id);
        xpl_capture_leftovers_adopt(k->o, &lost[i]);
    }
    return XPL_OK;
}

// Another daemon may have been away with the database: it gets time to renew its leases.
static bool may_take_over(const struct xpl_capture_keeper *k) {
    return xpl_clock_ns() >= k->steady_ns;
}

static bool was_stray(const struct xpl_capture_keeper *k, const struct xpl_schedule_claim *c) {
    size_t i = 0;
    while (i < k->n_strays && (k->strays[i].id != c->id || k->strays[i].fence != c->fence))
        i++;
    return i < k->n_strays;
}

// Leases that this daemon has and does not know are released, as otherwise no daemon would run
// them: those seen in two inspections, as one of this moment may be just being created.
static xpl_status_t give_back_strays(struct xpl_capture_keeper *k,
                                     const struct xpl_schedule_state *states, size_t n,
                                     struct xpl_error *err) {
    struct xpl_schedule_claim now[XPL_SCHEDULES_MAX], back[XPL_SCHEDULES_MAX];
    size_t n_back = 0;
    const size_t n_now = xpl_schedules_find_strays(k->schedules, states, n, now, XPL_SCHEDULES_MAX);
    for (size_t i = 0; i < n_now; i++)
        if (was_stray(k, &now[i])) back[n_back++] = now[i];
    memcpy(k->strays, now, n_now * sizeof *now);
    k->n_strays = n_now;
    return n_back ? k->ops->give_back(k->o->shared, back, n_back, err) : XPL_OK;
}

static xpl_status_t inspect(struct xpl_capture_keeper *k, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(ARENA_BYTES);
    struct xpl_schedule_state *states;
    uint64_t release[XPL_SCHEDULES_MAX];
    size_t n, n_free = 0;
    bool lost;
    const uint64_t asked_ns = xpl_clock_ns();
    XPL_TRY(k->ops->inspect(k->o->shared, &arena, &states, &n, &lost, err));
    k->inspected_ns = asked_ns;
    k->any = n > 0;
    const size_t n_release =
        xpl_schedules_inspected(k->schedules, states, n, asked_ns, release, XPL_SCHEDULES_MAX);
    for (size_t i = 0; i < n_release; i++)
        XPL_TRY(k->ops->release_targets(k->o->shared, release[i], err));
    XPL_TRY(give_back_strays(k, states, n, err));
    for (size_t i = 0; i < n; i++)
        n_free += states[i].is_free && !states[i].is_ours;
    if (lost && may_take_over(k)) XPL_TRY(reap(k, &arena, err));
    if (n_free && k->o->enabled && may_take_over(k)) XPL_TRY(claim(k, &arena, err));
    return XPL_OK;
}

static void give_back(struct xpl_capture_keeper *k) {
    struct xpl_schedule_claim claims[XPL_SCHEDULES_MAX];
    struct xpl_error err = {0};
    const size_t n = xpl_schedules_take_waiting(k->schedules, claims, XPL_SCHEDULES_MAX);
    if (n && k->ops->give_back(k->o->shared, claims, n, &err) != XPL_OK)
        xpl_log(XPL_LOG_WARN, "capture", "schedules are not handed over: %s", err.msg);
}

// ---- the thread ----

static bool is_due(uint64_t since_ns, uint64_t ms) {
    return !since_ns || xpl_clock_ns() - since_ns >= ns_of(ms);
}

static xpl_status_t work(struct xpl_capture_keeper *k, bool stopping, struct xpl_error *err) {
    // First, before another daemon takes it.
    if (!k->answered || is_due(k->renewed_ns, k->o->lease_ms / 3)) XPL_TRY(renew(k, err));
    if (!xpl_capture_jobs_send_ends(k->captures))
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "ends of captures cannot be noted");
    if (stopping || !is_due(k->inspected_ns, k->any ? INSPECT_MS : QUIET_MS)) return XPL_OK;
    if (xpl_history_is_on(k->o->history)) XPL_TRY(xpl_history_move(k->o->history, err));
    return inspect(k, err);
}

// How long it may rest.
static uint64_t run_once(struct xpl_capture_keeper *k, bool stopping) {
    struct xpl_error err = {0};
    xpl_capture_jobs_expire(k->captures);
    if (stopping) give_back(k);
    // Before the first inspection after an outage, which must not take anything over.
    if (!k->answered) k->steady_ns = xpl_clock_ns() + ns_of(k->o->lease_ms);
    const xpl_status_t st =
        xpl_store_role(k->o->shared) == XPL_STORE_OFF ? XPL_UNAVAILABLE : work(k, stopping, &err);
    if (st != XPL_OK) {
        if (k->answered)
            xpl_log(XPL_LOG_WARN, "capture", "schedules pause: %s",
                    err.msg[0] ? err.msg : "the database is away");
        k->answered = false;
        return stopping ? STOPPING_MS : AWAY_MS;
    }
    k->answered = true;
    return stopping ? STOPPING_MS : INSPECT_MS;
}

static void *keeper_main(void *arg) {
    struct xpl_capture_keeper *const k = arg;
    pthread_mutex_lock(&k->mu);
    while (!k->freed) {
        const bool stopping = k->stopping;
        pthread_mutex_unlock(&k->mu);
        const uint64_t until_ns = xpl_clock_ns() + ns_of(run_once(k, stopping));
        pthread_mutex_lock(&k->mu);
        while (!k->freed && k->stopping == stopping)
            if (!xpl_cond_wait_until(&k->changed, &k->mu, until_ns)) break;
    }
    pthread_mutex_unlock(&k->mu);
    give_back(k);
    (void)xpl_capture_jobs_send_ends(k->captures);
    return NULL;
}

struct xpl_capture_keeper *xpl_capture_keeper_new(struct xpl_capture_jobs *captures,
                                                  struct xpl_schedules *schedules) {
    struct xpl_capture_keeper *const k = xpl_sys_alloc(sizeof *k);
    if (!k) return NULL;
    const struct xpl_capture_jobs_options *const o = xpl_capture_jobs_get_options(captures);
    *k = (struct xpl_capture_keeper){.captures = captures,
                                     .schedules = schedules,
                                     .o = o,
                                     .ops = xpl_store_captures(o->shared),
                                     .answered = true};
    pthread_mutex_init(&k->mu, NULL);
    xpl_cond_init(&k->changed);
    if (pthread_create(&k->thread, NULL, keeper_main, k) == 0) return k;
    pthread_mutex_destroy(&k->mu);
    pthread_cond_destroy(&k->changed);
    xpl_sys_free(k);
    return NULL;
}

void xpl_capture_keeper_stop(struct xpl_capture_keeper *k) {
    if (!k) return;
    xpl_schedules_stop(k->schedules);
    pthread_mutex_lock(&k->mu);
    k->stopping = true;
    pthread_cond_signal(&k->changed);
    pthread_mutex_unlock(&k->mu);
}

void xpl_capture_keeper_free(struct xpl_capture_keeper *k) {
    if (!k) return;
    xpl_capture_keeper_stop(k);
    pthread_mutex_lock(&k->mu);
    k->freed = true;
    pthread_cond_signal(&k->changed);
    pthread_mutex_unlock(&k->mu);
    (void)pthread_join(k->thread, NULL);
    pthread_mutex_destroy(&k->mu);
    pthread_cond_destroy(&k->changed);
    xpl_sys_free(k);
}
