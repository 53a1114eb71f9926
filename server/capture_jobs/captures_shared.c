// SPDX-License-Identifier: Apache-2.0
// Capture jobs of a fleet: numbers, leases and targets, which the daemons share (captures.h of the
// store). Requests that the database does not answer block no capture.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/capture_jobs/captures_impl.h"

enum { ASK_MS = 250, TEXT_BYTES = 1 << 20 };

static uint64_t ns_of(uint64_t ms) {
    return ms * 1000000u;
}

bool xpl_capture_job_init_shared(struct job *j) {
    const size_t n = j->plan.n_targets;
    xpl_arena_init(&j->texts, TEXT_BYTES);
    if (!xpl_capture_job_ops(j)) return true;
    j->taken = xpl_arena_zalloc(&j->arena, n * sizeof *j->taken);
    j->others = xpl_arena_zalloc(&j->arena, n * sizeof *j->others);
    return j->taken && j->others;
}

// ---- targets ----

// Its servers record, or are just being stopped: a capture of one waits a moment.
static bool is_recorder(const struct job *j) {
    return j->of.id && j->plan.call != XPL_CAPTURE_PROFILE;
}

static bool records_on(const struct job *j) {
    return j->of.id &&
           (j->plan.call == XPL_CAPTURE_CONTINUOUS || j->plan.call == XPL_CAPTURE_SNAPSHOT);
}

// Asks for those that are free here and not taken yet.
static xpl_status_t claim_targets(struct job *j, struct xpl_error *err) {
    const size_t n = j->plan.n_targets;
    const struct xpl_target_taker who = {j->id, j->of.id, is_recorder(j), j->captures->o.lease_ms};
    struct xpl_target_holder *const holders = xpl_arena_array(&j->texts, n, sizeof *holders);
    xpl_str_t *const names = xpl_arena_array(&j->texts, n, sizeof *names);
    size_t k = 0;
    if (!holders || !names) XPL_RETURN_OOM(err, "capture");
    for (size_t i = 0; i < n; i++)
        if (j->holds[i] && !j->taken[i]) names[k++] = xpl_capture_job_key(j, i);
    XPL_TRY(xpl_capture_job_ops(j)->claim_targets(j->captures->o.shared, &who, names, k, &j->texts,
                                                  holders, err));
    k = 0;
    for (size_t i = 0; i < n; i++) {
        if (!j->holds[i] || j->taken[i]) continue;
        j->others[i] = holders[k++];
        j->taken[i] = !j->others[i].capture_id && !j->others[i].schedule_id;
    }
    return XPL_OK;
}

// No more often than it helps.  A database that is away leaves all targets to the job.
static void ask_others(struct job *j) {
    struct xpl_error err = {0};
    const uint64_t now = xpl_clock_ns();
    if (j->asked_ns && now - j->asked_ns < ns_of(ASK_MS)) return;
    xpl_arena_fini(&j->texts); // of the last answer
    xpl_arena_init(&j->texts, TEXT_BYTES + j->plan.n_targets * 256);
    memset(j->others, 0, j->plan.n_targets * sizeof *j->others);
    const xpl_status_t st = claim_targets(j, &err);
    if (st != XPL_OK) {
        xpl_log(XPL_LOG_WARN, "capture", "capture %" PRIu64 " does not ask other daemons: %s",
                j->id, err.msg);
        for (size_t i = 0; i < j->plan.n_targets; i++)
            j->taken[i] = j->taken[i] || j->holds[i];
    }
    j->asked_ns = xpl_clock_ns();
}

static void explain_other(const struct xpl_target_holder *h, char reason[XPL_CAPTURE_REASON_SIZE]) {
    const xpl_str_t daemon = h->daemon.len ? h->daemon : XPL_STR("that reports no more");
    char of[64] = "";
    if (h->schedule_id && h->capture_id)
        (void)snprintf(of, sizeof of, " (of schedule %" PRIu64 ")", h->schedule_id);
    if (h->capture_id)
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE,
                       "it is being captured by capture %" PRIu64
                       "%s of daemon %.*s: try again when it has finished, or allow retries",
                       h->capture_id, of, XPL_STR_FMT(daemon));
    else
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE,
                       "schedule %" PRIu64 " of daemon %.*s records it all the time",
                       h->schedule_id, XPL_STR_FMT(daemon));
}

enum xpl_capture_turn xpl_capture_job_take_shared(struct job *j, size_t i,
                                                  char reason[XPL_CAPTURE_REASON_SIZE]) {
    if (!atomic_load(&j->shared) || j->taken[i]) return XPL_CAPTURE_TURN_NOW;
    ask_others(j);
    if (j->taken[i]) return XPL_CAPTURE_TURN_NOW;
    const struct xpl_target_holder *const h = &j->others[i];
    if (h->records && !j->of.id) {
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE,
                       "schedule %" PRIu64 " records it all the time, and hands it over",
                       h->schedule_id);
        return XPL_CAPTURE_TURN_SOON;
    }
    explain_other(h, reason);
    return j->plan.retries ? XPL_CAPTURE_TURN_SOON : XPL_CAPTURE_TURN_BUSY;
}

// ---- beginning ----

// As take_free_targets within one daemon: a capture without any target does not begin.
static xpl_status_t check_targets(const struct job *j, struct xpl_error *err) {
    char reason[XPL_CAPTURE_REASON_SIZE];
    const struct xpl_target_holder *first = NULL;
    for (size_t i = 0; i < j->plan.n_targets; i++) {
        if (j->taken[i] || !j->holds[i]) return XPL_OK;
        if (j->others[i].records && !j->of.id) return XPL_OK; // it is handed over
        if (!first) first = &j->others[i];
    }
    if (!first || j->plan.retries) return XPL_OK;
    explain_other(first, reason);
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%.80s: %s", j->plan.targets[0], reason);
}

static void set_number(struct job *j, uint64_t id, uint64_t leased_ns) {
    pthread_mutex_lock(&j->captures->mu);
    j->id = id;
    atomic_store(&j->leased_ns, leased_ns);
    j->shared_ns = xpl_clock_ns();
    atomic_store(&j->shared, true);
    pthread_mutex_unlock(&j->captures->mu);
}

// While a capture gets its number the set of known numbers is uncertain.
static void set_beginning(struct xpl_capture_jobs *c, bool begins, bool unsure) {
    pthread_mutex_lock(&c->mu);
    c->beginning += begins ? 1 : -1u;
    c->unsure |= unsure;
    pthread_mutex_unlock(&c->mu);
}

// The number that it had before, as nothing is known of the other one.
static void forget_number(struct job *j) {
    struct xpl_error err = {0};
    if (xpl_capture_job_ops(j)->withdraw(j->captures->o.shared, j->id, &err) != XPL_OK)
        xpl_log(XPL_LOG_WARN, "capture", "capture %" PRIu64 ": %s", j->id, err.msg);
    pthread_mutex_lock(&j->captures->mu);
    j->id = j->handle;
    atomic_store(&j->shared, false);
    pthread_mutex_unlock(&j->captures->mu);
}

xpl_status_t xpl_capture_job_number(struct job *j, const struct xpl_history_capture *h,
                                    struct xpl_error *err) {
    const struct xpl_capture_jobs_options *const o = &j->captures->o;
    struct xpl_error why = {0};
    uint64_t id = 0;
    set_beginning(j->captures, true, false);
    const uint64_t now = xpl_clock_ns();
    const xpl_status_t st = xpl_capture_job_ops(j)->begin(o->shared, h, j->of.fence ? &j->of : NULL,
                                                          o->lease_ms, &id, &why);
    if (st == XPL_OK) set_number(j, id, now);
    set_beginning(j->captures, false, st != XPL_OK && st != XPL_ABORTED);
    if (st == XPL_ABORTED) XPL_RETURN_ERROR(err, st, "%s", why.msg);
    if (st != XPL_OK && j->of.fence) XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s", why.msg);
    if (st != XPL_OK) {
        xpl_log(XPL_LOG_WARN, "capture", "a capture continues without the other daemons: %s",
                why.msg);
        return XPL_OK;
    }
    ask_others(j);
    const xpl_status_t free = check_targets(j, err);
    if (free != XPL_OK) forget_number(j);
    return free;
}

// ---- leases ----

static bool is_leased(const struct job *j, uint64_t now) {
    return now - atomic_load(&j->leased_ns) < ns_of(j->captures->o.lease_ms);
}

static void lose(struct job *j, const char *why) {
    if (atomic_exchange(&j->lost, true)) return;
    atomic_store(&j->cancel, true);
    xpl_log(XPL_LOG_WARN, "capture", "capture %" PRIu64 " is cancelled: %s", j->id, why);
}

static bool has_id(const uint64_t *ids, size_t n, uint64_t id) {
    size_t i = 0;
    while (i < n && ids[i] != id)
        i++;
    return i < n;
}

static bool is_known(const struct xpl_capture_jobs *c, uint64_t id) {
    const struct job *j = c->jobs;
    while (j && j->id != id)
        j = j->next;
    return j != NULL;
}

// Leaves in `l` the captures without a job: the answer with their number was lost, and they
// continue by themselves or begin again. The caller holds the mutex.
static void keep_strays(struct xpl_capture_jobs *c, struct xpl_kept_leases *l) {
    size_t n = 0;
    for (size_t i = 0; !c->beginning && i < l->n_captures; i++)
        if (!is_known(c, l->captures[i])) l->captures[n++] = l->captures[i];
    l->n_captures = n;
}

// One that has ended meanwhile is not running any more, and stays.
static void withdraw_strays(struct xpl_capture_jobs *c, const struct xpl_kept_leases *l) {
    struct xpl_error err = {0};
    for (size_t i = 0; i < l->n_captures; i++)
        if (c->ops->withdraw(c->o.shared, l->captures[i], &err) != XPL_OK)
            xpl_log(XPL_LOG_WARN, "capture", "capture %" PRIu64 ": %s", l->captures[i], err.msg);
}

// The caller holds the mutex.
static void take_kept(struct xpl_capture_jobs *c, const struct xpl_kept_leases *l, uint64_t now) {
    for (struct job *j = c->jobs; j; j = j->next) {
        // One that began meanwhile may not be among them.
        if (j->state != JOB_RUNNING || !atomic_load(&j->shared) || j->shared_ns > now) continue;
        if (has_id(l->captures, l->n_captures, j->id))
            atomic_store(&j->leased_ns, now);
        else
            lose(j, "its lease expired, and another daemon continues it");
    }
}

// Whether there may be strays that a list of now has.
static bool take_unsure(struct xpl_capture_jobs *c) {
    pthread_mutex_lock(&c->mu);
    const bool unsure = c->unsure;
    c->unsure = false;
    pthread_mutex_unlock(&c->mu);
    return unsure;
}

xpl_status_t xpl_capture_jobs_renew(struct xpl_capture_jobs *c, struct xpl_arena *arena,
                                    struct xpl_kept_leases *ret, uint64_t *ret_asked_ns,
                                    struct xpl_error *err) {
    const bool unsure = take_unsure(c);
    const uint64_t now = xpl_clock_ns();
    const xpl_status_t st = c->ops->renew(c->o.shared, c->o.lease_ms, arena, ret, err);
    pthread_mutex_lock(&c->mu);
    c->unsure |= unsure && (st != XPL_OK || c->beginning);
    if (st == XPL_OK) {
        take_kept(c, ret, now);
        keep_strays(c, ret);
    }
    pthread_mutex_unlock(&c->mu);
    if (st != XPL_OK) return st;
    withdraw_strays(c, ret);
    *ret_asked_ns = now;
    return XPL_OK;
}

void xpl_capture_jobs_expire(struct xpl_capture_jobs *c) {
    const uint64_t now = xpl_clock_ns();
    pthread_mutex_lock(&c->mu);
    for (struct job *j = c->jobs; j; j = j->next)
        if (j->state == JOB_RUNNING && j->of.fence && atomic_load(&j->shared) && !is_leased(j, now))
            lose(j, "its lease could not be renewed");
    pthread_mutex_unlock(&c->mu);
}

bool xpl_capture_job_may_store(struct job *j) {
    struct xpl_capture_jobs *const c = j->captures;
    struct xpl_kept_leases kept;
    struct xpl_arena arena;
    struct xpl_error err = {0};
    uint64_t asked_ns;
    if (atomic_load(&j->lost)) return false;
    if (!atomic_load(&j->shared) || is_leased(j, xpl_clock_ns())) return true;
    xpl_arena_init(&arena, TEXT_BYTES);
    const xpl_status_t st = xpl_capture_jobs_renew(c, &arena, &kept, &asked_ns, &err);
    xpl_arena_fini(&arena);
    if (st != XPL_OK && j->of.fence) lose(j, "its lease could not be renewed");
    return !atomic_load(&j->lost);
}

bool xpl_capture_jobs_has_leases(struct xpl_capture_jobs *c) {
    pthread_mutex_lock(&c->mu);
    const struct job *j = c->jobs;
    while (j && (j->state != JOB_RUNNING || !atomic_load(&j->shared)))
        j = j->next;
    const bool has = j || c->unsure;
    pthread_mutex_unlock(&c->mu);
    return has;
}

const struct xpl_capture_jobs_options *
xpl_capture_jobs_get_options(const struct xpl_capture_jobs *c) {
    return &c->o;
}

bool xpl_capture_jobs_is_stopping(struct xpl_capture_jobs *c) {
    pthread_mutex_lock(&c->mu);
    const bool stopping = c->stopping;
    pthread_mutex_unlock(&c->mu);
    return stopping;
}

// ---- the end ----

// UNAVAILABLE: to be tried again.
static xpl_status_t send_end(struct job *j) {
    const struct xpl_history_capture *const h = &j->record;
    const struct xpl_captures_ops *const ops = xpl_capture_job_ops(j);
    struct xpl_error err = {0};
    xpl_status_t st = ops->put(j->captures->o.shared, h, records_on(j), &err);
    if (st == XPL_ABORTED) {
        xpl_log(XPL_LOG_WARN, "capture", "capture %" PRIu64 ": its outcome was refused: %s", h->id,
                err.msg);
        // A session that it stored anyway counts among those that the schedule keeps.
        if (h->made) st = ops->add_session(j->captures->o.shared, h->schedule_id, h->made, NULL);
    }
    return st == XPL_FAILED_PRECONDITION ? XPL_UNAVAILABLE : st;
}

void xpl_capture_job_end(struct job *j) {
    struct xpl_error err = {0};
    if (j->in_history &&
        xpl_history_forget_directory(j->captures->o.history, j->id, &err) != XPL_OK)
        xpl_log(XPL_LOG_WARN, "capture", "%s", err.msg);
    if (send_end(j) != XPL_UNAVAILABLE) return;
    pthread_mutex_lock(&j->captures->mu);
    j->unsent = true;
    pthread_mutex_unlock(&j->captures->mu);
}

// The next end that is not sent.  Its job stays until it is.
static struct job *find_unsent(struct xpl_capture_jobs *c) {
    pthread_mutex_lock(&c->mu);
    struct job *j = c->jobs;
    while (j && (j->state != JOB_OVER || !j->unsent))
        j = j->next;
    pthread_mutex_unlock(&c->mu);
    return j;
}

bool xpl_capture_jobs_send_ends(struct xpl_capture_jobs *c) {
    for (struct job *j = find_unsent(c); j; j = find_unsent(c)) {
        if (send_end(j) == XPL_UNAVAILABLE) return false;
        pthread_mutex_lock(&c->mu);
        j->unsent = false;
        xpl_capture_job_free_data(j);
        pthread_mutex_unlock(&c->mu);
    }
    return true;
}
