// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "capture/capture.h"
#include "server/capture_jobs/captures_impl.h"
#include "server/capture_jobs/leftovers.h"
#include "storage/sessions/layout.h"
#include "storage/sessions/removal.h"

// ---- copies of plans, for jobs that outlive the request that began them ----

static const char *copy_text(struct xpl_arena *a, const char *z, bool *ok) {
    xpl_str_t s = {0};
    if (!z) return NULL;
    if (!xpl_arena_str(a, xpl_str_from(z), &s)) *ok = false;
    return s.ptr;
}

static const char *const *copy_list(struct xpl_arena *a, const char *const *list, size_t n,
                                    bool *ok) {
    if (!list) return NULL;
    const char **const all = xpl_arena_array(a, n, sizeof *all);
    *ok = *ok && all;
    for (size_t i = 0; *ok && i < n; i++)
        all[i] = copy_text(a, list[i], ok);
    return all;
}

// A copy of the plan with all that it refers to, in `arena`, but for whom it asks for its turn.
// False when out of memory.
static bool plan_copy(const struct xpl_capture_plan *from, struct xpl_arena *a,
                      struct xpl_capture_plan *p) {
    bool ok = true;
    *p = *from;
    p->may_ask = NULL;
    p->targets = copy_list(a, from->targets, from->n_targets, &ok);
    p->host_names = copy_list(a, from->host_names, from->n_targets, &ok);
    p->remote_logdir = copy_text(a, from->remote_logdir, &ok);
    ok = ok && xpl_arena_str(a, from->session, &p->session);
    struct xpl_capture_advanced *const more = xpl_arena_array(a, from->n_advanced, sizeof *more);
    ok = ok && more;
    for (size_t i = 0; ok && i < from->n_advanced; i++) {
        more[i] = from->advanced[i];
        more[i].key = copy_text(a, from->advanced[i].key, &ok);
        more[i].text = copy_text(a, from->advanced[i].text, &ok);
    }
    p->advanced = more;
    p->ca_path = copy_text(a, from->ca_path, &ok);
    p->cert_path = copy_text(a, from->cert_path, &ok);
    p->key_path = copy_text(a, from->key_path, &ok);
    p->server_name = copy_text(a, from->server_name, &ok);
    return ok && xpl_arena_str(a, from->token, &p->token);
}

enum { LISTED_MS = 2000, PLAN_BYTES = 12 << 20 };
// Notes of others' directories have numbers that captures do not reach.
static const uint64_t FIRST_NOTE = (uint64_t)1 << 62;

struct xpl_capture_jobs *xpl_capture_jobs_new(const struct xpl_capture_jobs_options *o) {
    struct xpl_capture_jobs *c = xpl_sys_alloc(sizeof *c);
    if (!c) return NULL;
    *c =
        (struct xpl_capture_jobs){.o = *o, .ops = o->shared ? xpl_store_captures(o->shared) : NULL};
    if (c->ops) (void)gethostname(c->machine, sizeof c->machine - 1);
    xpl_cond_init(&c->changed);
    pthread_mutex_init(&c->mu, NULL);
    c->last_id = xpl_history_last_id(o->history);
    if (o->shared && c->last_id < XPL_HISTORY_OWN) c->last_id = XPL_HISTORY_OWN;
    xpl_capture_jobs_set_memory(c, o->memory_limit, o->memory_total);
    xpl_capture_leftovers_remove(&c->o);
    return c;
}

void xpl_capture_jobs_set_memory(struct xpl_capture_jobs *c, uint64_t limit, uint64_t total) {
    // Requests have the other half, also while answers are received.
    const uint64_t half = total / 2 ? total / 2 : XPL_CAPTURE_MAX_BYTES;
    uint64_t most = XPL_CAPTURE_MAX_BYTES;
    if (limit && limit < most) most = limit;
    atomic_store(&c->host_bytes, half < most ? half : most);
    atomic_store(&c->budget.limit, half);
}

// A job stays within what captures may take, whatever its plan says.
static void bound_plan(struct xpl_capture_jobs *c, struct xpl_capture_plan *p) {
    const uint64_t most = atomic_load(&c->host_bytes);
    if (!p->max_host_bytes || p->max_host_bytes > most) p->max_host_bytes = most;
    p->budget = &c->budget;
}

// With the mutex, so that no capture begins before the numbers go on and its directory is known
// from those that were left.
bool xpl_capture_jobs_try_history(struct xpl_capture_jobs *c) {
    pthread_mutex_lock(&c->mu);
    const bool on = xpl_history_try_again(c->o.history);
    if (on) {
        const uint64_t last = xpl_history_last_id(c->o.history);
        if (last > c->last_id) c->last_id = last;
        xpl_capture_leftovers_remove(&c->o);
    }
    pthread_mutex_unlock(&c->mu);
    return on;
}

void xpl_capture_jobs_set_recorder(struct xpl_capture_jobs *c,
                                   const struct xpl_capture_recorder *r) {
    c->recorder = r ? *r : (struct xpl_capture_recorder){0};
}

bool xpl_capture_jobs_enabled(const struct xpl_capture_jobs *c) {
    return c->o.enabled;
}

xpl_status_t xpl_capture_jobs_check_enabled(const struct xpl_capture_jobs *c,
                                            struct xpl_error *err) {
    if (c->o.enabled) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_PERMISSION_DENIED,
                     "this daemon captures nothing: it was started with --no-capture");
}

static void free_job(struct job *j) {
    xpl_capture_job_free_data(j);
    xpl_sys_free(j);
}

static void unlink_job(struct xpl_capture_jobs *c, struct job *j) {
    struct job **at = &c->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    free_job(j);
}

// Joins and frees the finished jobs, or all; those whose ends are not sent stay. The caller holds
// the mutex, which is released in between.
static void join_jobs(struct xpl_capture_jobs *c, bool all) {
    for (struct job *j = c->jobs; j;) {
        if (j->joined || (!all && (j->state != JOB_OVER || j->unsent))) {
            j = j->next;
            continue;
        }
        j->joined = true;
        pthread_mutex_unlock(&c->mu);
        (void)pthread_join(j->thread, NULL);
        assert(j->state == JOB_OVER);
        pthread_mutex_lock(&c->mu);
        if (!j->unsent) unlink_job(c, j);
        j = c->jobs; // it may have changed meanwhile
    }
}

void xpl_capture_jobs_stop(struct xpl_capture_jobs *c) {
    pthread_mutex_lock(&c->mu);
    c->stopping = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mu);
}

void xpl_capture_jobs_cancel_all(struct xpl_capture_jobs *c) {
    pthread_mutex_lock(&c->mu);
    for (struct job *j = c->jobs; j; j = j->next)
        atomic_store(&j->cancel, true);
    pthread_mutex_unlock(&c->mu);
}

void xpl_capture_jobs_join(struct xpl_capture_jobs *c) {
    if (!c) return;
    xpl_capture_jobs_stop(c);
    xpl_capture_jobs_cancel_all(c);
    pthread_mutex_lock(&c->mu);
    join_jobs(c, true);
    pthread_mutex_unlock(&c->mu);
}

void xpl_capture_jobs_free(struct xpl_capture_jobs *c) {
    if (!c) return;
    xpl_capture_jobs_join(c);
    while (c->jobs)
        unlink_job(c, c->jobs);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mu);
    xpl_sys_free(c);
}

void xpl_capture_jobs_rescan(struct xpl_capture_jobs *c) {
    pthread_mutex_lock(&c->mu);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mu);
}

// ---- history ----

static void note(const struct job *j, const struct xpl_history_capture *h) {
    struct xpl_error err = {0};
    if (atomic_load(&j->shared)) return;
    if (!j->in_history || !xpl_history_is_on(j->captures->o.history)) return;
    if (xpl_history_put(j->captures->o.history, h, &err) != XPL_OK)
        xpl_log(XPL_LOG_WARN, "capture", "capture %" PRIu64 " is not in the history: %s", j->id,
                err.msg);
}

static xpl_status_t note_begin(struct job *j, int64_t begin_ms, struct xpl_error *err) {
    const size_t n = j->plan.n_targets;
    struct xpl_history_host *hosts = xpl_arena_array(&j->arena, n, sizeof *hosts);
    for (size_t i = 0; hosts && i < n; i++)
        hosts[i] = (struct xpl_history_host){.target = xpl_str_from(j->plan.targets[i]),
                                             .state = XPL_CAPTURE_CONNECTING + 1};
    const struct xpl_history_capture h = {.id = j->id,
                                          .state = XPL_CAPTURED_RUNNING,
                                          .session = j->plan.session,
                                          .begin_ms = begin_ms,
                                          .duration_ms = (uint64_t)j->plan.duration_ms,
                                          .schedule_id = j->of.id,
                                          .hosts = hosts,
                                          .n_hosts = hosts ? n : 0};
    if (xpl_capture_job_ops(j)) XPL_TRY(xpl_capture_job_number(j, &h, err));
    note(j, &h);
    return XPL_OK;
}

static void set_host(struct xpl_history_host *to, const struct xpl_capture_host *h) {
    *to = (struct xpl_history_host){.target = xpl_str_from(h->target),
                                    .host = xpl_str_from(h->file.name),
                                    .reason = xpl_str_from(h->reason),
                                    .state = (int)h->state + 1,
                                    .code = (int)h->code,
                                    .bytes = h->file.counts.bytes,
                                    .attempts = h->attempts};
}

// The session that a schedule's turn made.  False: there is none.
static bool describe_session(const struct xpl_capture_result *r, struct xpl_history_session *ret) {
    struct stat sb = {0}; // an object has none
    const struct xpl_capture_outcome *const o = r->outcome;
    const struct xpl_session_remote *const remote = r->plan->session_remote;
    if (!r->schedule_id || r->code != XPL_OK || !o->session[0] || !o->path) return false;
    if (!remote && lstat(o->path, &sb) != 0) return false;
    *ret = (struct xpl_history_session){.name = xpl_str_from(o->session),
                                        .dev = remote ? remote->device : (uint64_t)sb.st_dev,
                                        .ino = (uint64_t)sb.st_ino,
                                        .made_ms = r->end_ms,
                                        .n_hosts = o->n_files};
    for (size_t i = 0; i < o->n_hosts; i++)
        if (o->hosts[i].state == XPL_CAPTURE_STORED) ret->bytes += o->hosts[i].file.counts.bytes;
    return true;
}

static void note_end(struct job *j) {
    const struct xpl_capture_result *const r = &j->result;
    const struct xpl_capture_outcome *const o = &j->outcome;
    struct xpl_history_host *hosts = xpl_arena_array(&j->arena, o->n_hosts, sizeof *hosts);
    for (size_t i = 0; hosts && i < o->n_hosts; i++)
        set_host(&hosts[i], &o->hosts[i]);
    j->record =
        (struct xpl_history_capture){.id = j->id,
                                     .state = (int)r->state,
                                     .code = (int)r->code,
                                     .session = xpl_str_from(o->session),
                                     .message = xpl_str_from(r->err.msg),
                                     .begin_ms = r->begin_ms,
                                     .end_ms = r->end_ms,
                                     .duration_ms = (uint64_t)j->plan.duration_ms,
                                     .schedule_id = j->of.id,
                                     .hosts = hosts,
                                     .n_hosts = hosts ? o->n_hosts : 0,
                                     .made = describe_session(r, &j->made) ? &j->made : NULL};
    j->result.record = &j->record;
    note(j, &j->record);
    if (atomic_load(&j->shared)) xpl_capture_job_end(j);
}

// ---- a job ----

// Notes a session's directory for the next daemon, should this one be killed.
static bool put_directory(struct xpl_history *h, const struct xpl_history_directory *d) {
    struct xpl_error err = {0};
    if (!xpl_history_is_on(h)) return false;
    if (xpl_history_put_directory(h, d, &err) == XPL_OK) return true;
    xpl_log(XPL_LOG_WARN, "capture", "%.*s: %s", XPL_STR_FMT(d->path), err.msg);
    return false;
}

uint64_t xpl_capture_jobs_note_directory(struct xpl_capture_jobs *c, const char *path) {
    const uint64_t note = FIRST_NOTE + atomic_fetch_add(&c->n_notes, 1);
    return put_directory(c->o.history, &(struct xpl_history_directory){.capture_id = note,
                                                                       .path = xpl_str_from(path)})
               ? note
               : 0;
}

void xpl_capture_jobs_forget_directory(struct xpl_capture_jobs *c, uint64_t note) {
    struct xpl_error err = {0};
    if (note && xpl_history_forget_directory(c->o.history, note, &err) != XPL_OK)
        xpl_log(XPL_LOG_WARN, "capture", "%s", err.msg);
}

// Before it is made, when it has no identity yet.
static void note_making(void *arg, const char *path) {
    const struct job *const j = arg;
    if (j->in_history)
        (void)put_directory(
            j->captures->o.history,
            &(struct xpl_history_directory){.capture_id = j->id, .path = xpl_str_from(path)});
}

static void note_directory(struct job *j, const char *session) {
    struct xpl_session_place place;
    j->noted = true;
    if (!xpl_session_locate(j->captures->o.logdir, xpl_str_from(session), &place)) return;
    if (atomic_load(&j->shared))
        (void)xpl_capture_job_ops(j)->note_session(j->captures->o.shared, j->id,
                                                   xpl_str_from(session), place.ino, NULL);
    if (!j->in_history) return;
    (void)put_directory(j->captures->o.history,
                        &(struct xpl_history_directory){.capture_id = j->id,
                                                        .path = xpl_str_from(place.path),
                                                        .dev = place.dev,
                                                        .ino = place.ino});
}

static void scan_session(struct xpl_capture_jobs *c, const char *session) {
    struct xpl_session_path path;
    c->o.scan(c->o.arg, xpl_session_path(xpl_str_from(session), &path));
}

static void on_progress(void *ctx, const struct xpl_capture_progress *p) {
    struct job *const j = ctx;
    if (!j->noted && p->session[0]) note_directory(j, p->session);
    if (p->changed < p->n_hosts) {
        pthread_mutex_lock(&j->captures->mu);
        j->live[p->changed] = p->hosts[p->changed];
        (void)snprintf(j->session, sizeof j->session, "%s", p->session);
        pthread_mutex_unlock(&j->captures->mu);
    }
    // The watch would find it, too, but later.
    if (p->changed < p->n_hosts && p->hosts[p->changed].state == XPL_CAPTURE_STORED)
        scan_session(j->captures, p->session);
    if (j->listener.progress) j->listener.progress(j->listener.arg, j->id, p);
}

static bool is_listed(struct xpl_capture_jobs *c, const char *path,
                      struct xpl_capture_jobs_listed what) {
    struct xpl_snapshot *snap = xpl_catalogue_get(c->o.catalogue);
    const struct xpl_session *found = NULL;
    for (size_t i = 0; !found && i < snap->n_sessions; i++)
        if (xpl_str_eq(snap->sessions[i].path, xpl_str_from(path))) found = &snap->sessions[i];
    const bool listed = what.n_hosts
                            ? found && found->n_hosts >= what.n_hosts &&
                                  found->n_lost >= what.n_lost && found->bytes >= what.bytes
                            : !found;
    xpl_snapshot_unref(snap);
    return listed;
}

void xpl_capture_jobs_await(struct xpl_capture_jobs *c, const char *path,
                            struct xpl_capture_jobs_listed what) {
    const uint64_t until_ns = xpl_clock_ns() + (uint64_t)LISTED_MS * 1000000;
    c->o.scan(c->o.arg, path);
    pthread_mutex_lock(&c->mu);
    while (!c->stopping && !is_listed(c, path, what))
        if (!xpl_cond_wait_until(&c->changed, &c->mu, until_ns)) break;
    pthread_mutex_unlock(&c->mu);
}

// Clients that get the outcome can then request the session at once.
static void await_session(struct xpl_capture_jobs *c, const struct xpl_capture_outcome *o) {
    struct xpl_session_path path;
    // The note that says which hosts were lost is written last: a scan may have been before it.
    // Those of a bucket are not read.
    const struct xpl_capture_jobs_listed what = {
        .n_hosts = o->n_files, .n_lost = c->o.remote ? 0 : o->n_hosts - o->n_stored};
    xpl_capture_jobs_await(c, xpl_session_path(xpl_str_from(o->session), &path), what);
}

static enum xpl_captured state_of(xpl_status_t code, const struct xpl_capture_outcome *o) {
    if (code == XPL_CANCELLED) return XPL_CAPTURED_CANCELLED;
    if (code != XPL_OK) return XPL_CAPTURED_NOTHING;
    return o->n_stored == o->n_hosts ? XPL_CAPTURED_ALL : XPL_CAPTURED_SOME;
}

static void log_end(const struct job *j) {
    const struct xpl_capture_result *const r = &j->result;
    static const char *const names[] = {"", "running", "done", "partial", "failed", "cancelled"};
    struct xpl_log_line l;
    xpl_audit_begin(&l, "capture ended", &j->listener.client, r->code, &r->err);
    xpl_log_int(&l, "id", (int64_t)r->id);
    if (r->schedule_id) xpl_log_int(&l, "schedule", (int64_t)r->schedule_id);
    xpl_log_z(&l, "state", names[r->state]);
    xpl_log_z(&l, "session", r->outcome->session);
    xpl_log_int(&l, "stored", (int64_t)r->outcome->n_stored);
    xpl_log_int(&l, "hosts", (int64_t)r->outcome->n_hosts);
    xpl_log_int(&l, "ms", r->end_ms - r->begin_ms);
    xpl_log_end(&l);
}

static void count_end(struct xpl_capture_jobs *c, enum xpl_captured state) {
    pthread_mutex_lock(&c->mu);
    c->ended[state]++;
    pthread_mutex_unlock(&c->mu);
}

void xpl_capture_jobs_get_stats(struct xpl_capture_jobs *c, struct xpl_capture_jobs_stats *ret) {
    pthread_mutex_lock(&c->mu);
    ret->running = c->running;
    ret->reserved_bytes = atomic_load(&c->budget.used);
    memcpy(ret->ended, c->ended, sizeof ret->ended);
    pthread_mutex_unlock(&c->mu);
}

static void set_state(struct job *j, enum job_state to) {
    struct xpl_capture_jobs *const c = j->captures;
    pthread_mutex_lock(&c->mu);
    assert((int)to == (int)j->state + 1);
    j->state = to;
    if (to == JOB_RELEASED) c->running--;
    if (to == JOB_OVER && !j->unsent) xpl_capture_job_free_data(j);
    pthread_mutex_unlock(&c->mu);
}

// It does not begin after all.
static void refuse(struct job *j) {
    struct xpl_capture_result *const r = &j->result;
    r->refused = true;
    r->end_ms = xpl_unix_ms();
    r->state = XPL_CAPTURED_NOTHING;
    xpl_audit("capture refused", &j->listener.client, j->plan.session, r->code, &r->err);
    set_state(j, JOB_RELEASED);
    j->listener.done(j->listener.arg, r);
    set_state(j, JOB_OVER);
}

// The thread of a job.
static void *run(void *arg) {
    struct job *const j = arg;
    struct xpl_capture_jobs *const c = j->captures;
    struct xpl_capture_outcome *const o = &j->outcome;
    struct xpl_capture_result *const r = &j->result;
    *r = (struct xpl_capture_result){.id = j->id,
                                     .schedule_id = j->of.id,
                                     .plan = &j->plan,
                                     .outcome = o,
                                     .begin_ms = xpl_unix_ms()};
    if ((r->code = note_begin(j, r->begin_ms, &r->err)) != XPL_OK) {
        refuse(j);
        return NULL;
    }
    r->id = j->id; // which may be another one now
    r->code = xpl_capture_run(&j->plan, c->o.logdir, &j->cancel, on_progress, j, o, &r->err);
    r->end_ms = xpl_unix_ms();
    r->state = state_of(r->code, o);
    if (r->code == XPL_OK && o->session[0])
        await_session(c, o);
    else
        c->o.scan(c->o.arg, XPL_SESSIONS_DIR); // a scan may have found a removed one
    note_end(j);
    log_end(j);
    count_end(c, r->state);
    // Before the listener is called, so that it can start the next one.
    set_state(j, JOB_RELEASED);
    j->listener.done(j->listener.arg, r);
    set_state(j, JOB_OVER);
    return NULL;
}

// ---- start and cancel ----

// The other capture under way that has the job's target `i`, or NULL.  The caller holds the mutex.
static const struct job *find_holder(const struct job *me, size_t i) {
    const xpl_str_t key = xpl_capture_job_key(me, i);
    xpl_strid_t id;
    for (const struct job *j = me->captures->jobs; j; j = j->next)
        if (j != me && j->state == JOB_RUNNING && xpl_intern_find(j->keys, key, &id) &&
            j->holds[id.v - 1])
            return j;
    return NULL;
}

static void explain_holder(const struct job *holder, char reason[XPL_CAPTURE_REASON_SIZE]) {
    char of[64] = "";
    if (holder->of.id) (void)snprintf(of, sizeof of, " (of schedule %" PRIu64 ")", holder->of.id);
    (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE,
                   "it is being captured by capture %" PRIu64
                   "%s of this daemon: try again when it has finished, or allow retries",
                   holder->id, of);
}

// The schedule that has to hand the target over first, or 0.
static uint64_t ask_recorder(const struct job *j, const char *target) {
    const struct xpl_capture_recorder *const r = &j->captures->recorder;
    return r->hand_over && !j->of.id ? r->hand_over(r->arg, target) : 0;
}

// Takes the target for the job, on the job's thread or before there is one: never two captures of
// one host at once.
static enum xpl_capture_turn take_target(void *arg, size_t i,
                                         char reason[XPL_CAPTURE_REASON_SIZE]) {
    struct job *const j = arg;
    struct xpl_capture_jobs *const c = j->captures;
    enum xpl_capture_turn turn = XPL_CAPTURE_TURN_NOW;
    // A target that was free at the start, or here, may be another daemon's.
    if (j->holds[i]) return xpl_capture_job_take_shared(j, i, reason);
    const uint64_t schedule = ask_recorder(j, j->plan.targets[i]);
    pthread_mutex_lock(&c->mu);
    const struct job *const holder = find_holder(j, i);
    if (schedule) {
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE,
                       "schedule %" PRIu64 " records it all the time, and hands it over", schedule);
        turn = XPL_CAPTURE_TURN_SOON;
    } else if (holder) {
        explain_holder(holder, reason);
        // It ends by itself: a capture with retries waits, and keeps them for later failures.
        turn = j->plan.retries ? XPL_CAPTURE_TURN_SOON : XPL_CAPTURE_TURN_BUSY;
    } else {
        j->holds[i] = true;
    }
    pthread_mutex_unlock(&c->mu);
    return j->holds[i] ? xpl_capture_job_take_shared(j, i, reason) : turn;
}

static bool may_store(void *arg) {
    return xpl_capture_job_may_store(arg);
}

// Takes the free targets; a capture without any target ends here, and otherwise continues with
// them. The caller holds the mutex.
static xpl_status_t take_free_targets(struct job *j, const bool *handed_over,
                                      struct xpl_error *err) {
    const struct xpl_capture_plan *const p = &j->plan;
    const struct job *holder = NULL;
    size_t n_busy = 0;
    for (size_t i = 0; i < p->n_targets; i++) {
        const struct job *const other = find_holder(j, i);
        j->holds[i] = !other && !handed_over[i];
        if (handed_over[i] || !other) continue;
        if (n_busy++ == 0) holder = other;
    }
    if (n_busy < p->n_targets || p->retries) return XPL_OK;
    char reason[XPL_CAPTURE_REASON_SIZE];
    explain_holder(holder, reason);
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%.80s: %s", p->targets[0], reason);
}

// Numbers the job, lists it and starts its thread.  The caller holds the mutex.
static xpl_status_t launch_job(struct xpl_capture_jobs *c, struct job *j, const bool *handed_over,
                               uint64_t *ret_id, struct xpl_error *err) {
    if (c->stopping) XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the daemon is stopping");
    if (c->running == XPL_CAPTURES_AT_ONCE)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "%d captures are running; wait until one finishes",
                         (int)XPL_CAPTURES_AT_ONCE);
    XPL_TRY(take_free_targets(j, handed_over, err));
    j->id = j->handle = c->last_id + 1;
    j->in_history = xpl_history_is_on(c->o.history);
    if (ret_id) *ret_id = j->id;
    if (pthread_create(&j->thread, NULL, run, j) != 0)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "no thread for the capture; try again later");
    c->last_id = j->id;
    c->running++;
    j->next = c->jobs;
    c->jobs = j;
    return XPL_OK;
}

static bool make_hosts(struct job *j) {
    j->live = xpl_arena_array(&j->arena, j->plan.n_targets, sizeof *j->live);
    j->holds = xpl_arena_zalloc(&j->arena, j->plan.n_targets * sizeof *j->holds);
    j->plan.may_ask = take_target;
    j->plan.may_store = may_store;
    j->plan.may_ask_arg = j->plan.making_arg = j;
    j->plan.making = note_making;
    j->plan.session_remote = j->captures->o.remote;
    for (size_t i = 0; j->live && i < j->plan.n_targets; i++)
        j->live[i] = (struct xpl_capture_host){.target = j->plan.targets[i]};
    return j->live && j->holds &&
           xpl_capture_target_keys(&j->plan, j->captures->machine, &j->arena, &j->keys, NULL) ==
               XPL_OK &&
           xpl_capture_job_init_shared(j);
}

// Launches the job, after asking who records its targets: that takes locks of others.
static xpl_status_t start_job(struct xpl_capture_jobs *c, struct job *j, uint64_t *ret_id,
                              struct xpl_error *err) {
    const size_t n = j->plan.n_targets;
    bool *const handed_over = xpl_arena_zalloc(&j->arena, n * sizeof *handed_over);
    if (!handed_over) XPL_RETURN_OOM(err, "capture");
    for (size_t i = 0; i < n; i++)
        handed_over[i] = ask_recorder(j, j->plan.targets[i]) != 0;
    pthread_mutex_lock(&c->mu);
    join_jobs(c, false);
    const xpl_status_t st = launch_job(c, j, handed_over, ret_id, err);
    pthread_mutex_unlock(&c->mu);
    return st;
}

static xpl_status_t start(struct xpl_capture_jobs *c, const struct xpl_capture_plan *plan,
                          const struct xpl_schedule_claim *schedule,
                          const struct xpl_capture_listener *l, uint64_t *ret_id,
                          struct xpl_error *err) {
    XPL_TRY(xpl_capture_jobs_check_enabled(c, err));
    XPL_TRY(xpl_capture_check(plan, err));
    struct job *j = xpl_sys_alloc(sizeof *j);
    if (!j) XPL_RETURN_OOM(err, "capture");
    *j = (struct job){.captures = c, .listener = *l};
    if (schedule) j->of = *schedule;
    xpl_arena_init(&j->arena, PLAN_BYTES);
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (!plan_copy(plan, &j->arena, &j->plan) || !make_hosts(j)) {
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "capture: out of memory");
    } else {
        bound_plan(c, &j->plan);
        st = start_job(c, j, ret_id, err);
    }
    if (st != XPL_OK) free_job(j);
    return st;
}

xpl_status_t xpl_capture_jobs_start(struct xpl_capture_jobs *c, const struct xpl_capture_plan *plan,
                                    const struct xpl_schedule_claim *schedule,
                                    const struct xpl_capture_listener *l, uint64_t *ret_id,
                                    struct xpl_error *err) {
    const xpl_status_t st = start(c, plan, schedule, l, ret_id, err);
    // A schedule tries again every second while its hosts are busy.
    if (st != XPL_OK && !schedule) xpl_audit("capture refused", &l->client, plan->session, st, err);
    return st;
}

xpl_status_t xpl_capture_jobs_cancel(struct xpl_capture_jobs *c, uint64_t id,
                                     struct xpl_error *err) {
    pthread_mutex_lock(&c->mu);
    struct job *j = c->jobs;
    while (j && ((j->id != id && j->handle != id) || j->state != JOB_RUNNING))
        j = j->next;
    if (j) atomic_store(&j->cancel, true);
    pthread_mutex_unlock(&c->mu);
    if (!j) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no capture %" PRIu64 " is running", id);
    return XPL_OK;
}

bool xpl_capture_jobs_show(struct xpl_capture_jobs *c, struct xpl_arena *arena,
                           struct xpl_history_capture *h) {
    bool ok = true;
    pthread_mutex_lock(&c->mu);
    const struct job *j = c->jobs;
    while (j && (j->id != h->id || j->state != JOB_RUNNING))
        j = j->next;
    const size_t n = j ? j->plan.n_targets : 0;
    struct xpl_history_host *const hosts = xpl_arena_array(arena, n, sizeof *hosts);
    ok = hosts && (!j || xpl_arena_str(arena, xpl_str_from(j->session), &h->session));
    for (size_t i = 0; ok && i < n; i++) {
        set_host(&hosts[i], &j->live[i]);
        ok = xpl_arena_str(arena, hosts[i].target, &hosts[i].target) &&
             xpl_arena_str(arena, hosts[i].host, &hosts[i].host) &&
             xpl_arena_str(arena, hosts[i].reason, &hosts[i].reason);
    }
    pthread_mutex_unlock(&c->mu);
    if (!ok || !n) return ok;
    h->hosts = hosts;
    h->n_hosts = n;
    return true;
}

void xpl_capture_jobs_explain(const struct xpl_capture_result *r, char *buf, size_t size) {
    size_t n = 0;
    buf[0] = 0;
    for (size_t i = 0; i < r->outcome->n_hosts && n + 1 < size; i++) {
        const struct xpl_capture_host *const h = &r->outcome->hosts[i];
        if (h->state == XPL_CAPTURE_STORED) continue;
        const int k = snprintf(buf + n, size - n, "%s%s: %s", n ? "; " : "", h->target, h->reason);
        if (k < 0) return;
        n += (size_t)k < size - n ? (size_t)k : size - n - 1;
    }
}
