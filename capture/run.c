// SPDX-License-Identifier: Apache-2.0
// One capture, from the plan to the outcome.  An event of the driver or a deadline moves a host
// from state to state (capture.h).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/clock.h"
#include "capture/budget.h"
#include "capture/run_impl.h"

enum {
    TICK_MS = 50,
    CONNECT_MS = 10000,
    CONNECTING_AT_ONCE = 256, // more handshakes at once would time out each other
    SPARE_DESCRIPTORS = 64,   // in addition to one for each target
    ANSWER_MS = 60000,
    AT_ONCE = 4,
    STRAGGLER_MS = 3000, // how long hosts that are ready wait for those that are not
    LEAD_MS = 250,       // from the last host's readiness to the common start: all requests arrive
    FIRST_PAUSE_MS = 500,
    LENGTH_MS = 2000,    // how long the length of an answer that has begun may take to come
    ROOM_MS = 10000,     // how long an answer that could be the only one waits for others' memory
    SOON_MS = 100,       // between two checks whether a host is free
    SOON_MAX_MS = 60000, // how long a host may take to become free, a snapshot may be large
};

// ---- connecting ----

// False when the host may not start yet: then it pauses, or has failed.
static bool may_ask(struct capture_job *j) {
    const struct xpl_capture_plan *const p = j->run->plan;
    const size_t i = (size_t)(j - j->run->jobs);
    const enum xpl_capture_turn turn =
        p->may_ask ? p->may_ask(p->may_ask_arg, i, j->h->reason) : XPL_CAPTURE_TURN_NOW;
    if (turn == XPL_CAPTURE_TURN_NOW) {
        if (p->may_ask) j->h->reason[0] = '\0'; // why it had to wait
        return true;
    }
    const int64_t t = capture_now();
    if (!j->soon_until) j->soon_until = t + SOON_MAX_MS * CAPTURE_MS;
    j->h->code = XPL_UNAVAILABLE;
    if (turn == XPL_CAPTURE_TURN_BUSY || t >= j->soon_until)
        xpl_capture_again_or(j, XPL_CAPTURE_FAILED);
    else if (j->h->state == XPL_CAPTURE_PAUSING)
        j->due = t + SOON_MS * CAPTURE_MS;
    else
        xpl_capture_enter(j, XPL_CAPTURE_PAUSING, t + SOON_MS * CAPTURE_MS);
    return false;
}

static void connect_host(struct capture_job *j) {
    struct xpl_error err = {0};
    if (!may_ask(j)) return;
    if (j->run->driver->connect(j->connection, &err) == XPL_OK)
        xpl_capture_enter(j, XPL_CAPTURE_CONNECTING, capture_now() + j->run->connect_ns);
    else
        xpl_capture_finish_error(j, &err);
}

// Connects the next hosts that have not begun, as many as may connect at once.
static void begin_hosts(struct capture_run *r) {
    while (r->n_begun < r->plan->n_targets && r->connecting < CONNECTING_AT_ONCE) {
        r->last_begun = capture_now();
        connect_host(&r->jobs[r->n_begun++]);
    }
}

static void random_name(char out[32]) {
    uint64_t x = 0;
    if (getrandom(&x, sizeof x, 0) != sizeof x) x = xpl_clock_ns();
    (void)snprintf(out, 32, ".xplaned-%016" PRIx64, x);
}

// start_ns: Unix time, 0 for at once.
static void start_host(struct capture_job *j, int64_t start_ns) {
    struct capture_run *const r = j->run;
    struct xpl_error err = {0};
    random_name(j->hidden);
    const struct xpl_capture_query q = {.host_name = j->name,
                                        .root = r->root,
                                        .session_id = j->hidden,
                                        .start_ns = (uint64_t)start_ns};
    if (r->driver->start(j->connection, &q, &err) != XPL_OK) {
        xpl_capture_finish_error(j, &err);
        return;
    }
    const int64_t t = xpl_unix_ns();
    const int64_t wait = start_ns > t ? start_ns - t : 0;
    const int64_t length =
        r->plan->call == XPL_CAPTURE_PROFILE ? r->plan->duration_ms * CAPTURE_MS : 0;
    j->h->attempts++;
    j->h->start_ns = t + wait;
    j->h->reason[0] = '\0';
    xpl_capture_enter(j, XPL_CAPTURE_COLLECTING, capture_now() + wait + length + r->answer_ns);
}

static void on_ready(struct capture_job *j) {
    xpl_capture_end_attempt(j);
    j->hidden[0] = '\0';
    xpl_capture_enter(j, XPL_CAPTURE_READY, CAPTURE_NEVER);
    if (j->run->started) start_host(j, 0);
}

// Begins as soon as no further host is expected.
static void maybe_start(struct capture_run *r) {
    const struct xpl_capture_plan *const p = r->plan;
    size_t ready = 0, coming = 0;
    for (size_t i = 0; i < p->n_targets; i++) {
        ready += r->jobs[i].h->state == XPL_CAPTURE_READY;
        coming += r->jobs[i].h->state == XPL_CAPTURE_CONNECTING;
    }
    const int64_t patience = p->delay_ms > STRAGGLER_MS ? p->delay_ms : STRAGGLER_MS;
    if (ready == 0 || r->n_begun < p->n_targets ||
        (coming > 0 && capture_now() - r->last_begun < patience * CAPTURE_MS))
        return;
    r->started = true;
    int64_t start = 0;
    if (p->call == XPL_CAPTURE_PROFILE && (p->n_targets > 1 || p->delay_ms > 0)) {
        start = xpl_unix_ns() + (p->n_targets > 1 ? LEAD_MS * CAPTURE_MS : 0);
        const int64_t earliest = r->out->begin_ns + p->delay_ms * CAPTURE_MS;
        if (start < earliest) start = earliest;
    }
    for (size_t i = 0; i < p->n_targets; i++)
        if (r->jobs[i].h->state == XPL_CAPTURE_READY) start_host(&r->jobs[i], start);
}

// ---- events ----

static void on_failure(struct capture_job *j, const struct xpl_capture_event *ev) {
    j->h->code = ev->code;
    memcpy(j->h->reason, ev->reason, sizeof j->h->reason);
    if (ev->again)
        xpl_capture_again_or(j, XPL_CAPTURE_FAILED);
    else
        xpl_capture_finish(j, XPL_CAPTURE_FAILED, ev->code);
}

static void on_answered(struct capture_job *j, const struct xpl_capture_event *ev) {
    j->h->answered_ns = xpl_unix_ns();
    if (ev->code != XPL_OK)
        on_failure(j, ev);
    else if (capture_brings_data(j->run))
        xpl_capture_store_answer(j);
    else
        xpl_capture_finish(j, XPL_CAPTURE_STORED, XPL_OK);
}

static void receive(struct capture_job *j) {
    j->run->driver->receive(j->connection, j->reserved);
    xpl_capture_enter(j, XPL_CAPTURE_RECEIVING, capture_now() + j->run->answer_ns);
}

// The answer's announced size; 0: not announced yet; UINT64_MAX: unknown.
static uint64_t announced_bytes(const struct capture_job *j) {
    const struct xpl_capture_driver *const d = j->run->driver;
    return d->announced ? d->announced(j->connection) : UINT64_MAX;
}

// The room that the answer needs; 0: not known yet.  An unknown size counts as the maximum.
static uint64_t needed_bytes(const struct capture_job *j, int64_t t) {
    const struct capture_run *const r = j->run;
    const uint64_t said = announced_bytes(j);
    if (!said && t - j->waits_since <= LENGTH_MS * CAPTURE_MS) return 0;
    return said && said < r->host_bytes ? said : r->host_bytes;
}

// Ends a call whose answer says that it is larger than one may be: nothing more of it comes.
static bool refuse_large(struct capture_job *j) {
    const uint64_t said = announced_bytes(j);
    if (said == UINT64_MAX || said <= j->run->host_bytes) return false;
    (void)snprintf(j->h->reason, sizeof j->h->reason,
                   "the profile has %" PRIu64 " bytes, and one answer may have %" PRIu64
                   ": capture for a shorter time, or with lower tracer levels",
                   said, j->run->host_bytes);
    xpl_capture_finish(j, XPL_CAPTURE_FAILED, XPL_RESOURCE_EXHAUSTED);
    return true;
}

enum room {
    ROOM,         // for one more answer, which has its part of the budget now
    ROOM_UNKNOWN, // how much it needs is not known yet; others may come first
    ROOM_FULL,
};

// Whether one more answer may be in memory.
static enum room take_room(struct capture_job *j) {
    struct capture_run *const r = j->run;
    if (r->receiving >= r->at_once) return ROOM_FULL;
    j->reserved = r->host_bytes;
    if (!r->plan->budget) return ROOM;
    const int64_t t = capture_now();
    if (!j->waits_since) j->waits_since = t;
    const bool overdue = t - j->waits_since > ROOM_MS * CAPTURE_MS;
    j->reserved = needed_bytes(j, t);
    if (!j->reserved) return ROOM_UNKNOWN;
    return xpl_capture_budget_take(r->plan->budget, j->reserved, overdue) ? ROOM : ROOM_FULL;
}

// Receives the answer when there is room for it, or refuses it.
static enum room try_receive(struct capture_job *j) {
    if (refuse_large(j)) return ROOM_UNKNOWN;
    const enum room room = take_room(j);
    if (room == ROOM) receive(j);
    return room;
}

static void on_event(const struct xpl_capture_event *ev) {
    struct capture_job *const j = ev->user;
    switch (ev->kind) {
        case XPL_CAPTURE_EVENT_CONNECTED: on_ready(j); break;
        case XPL_CAPTURE_EVENT_UNREACHABLE: on_failure(j, ev); break;
        case XPL_CAPTURE_EVENT_ANSWERING:
            j->waits_since = 0;
            if (try_receive(j) != ROOM && !xpl_capture_is_over(j->h->state))
                xpl_capture_enter(j, XPL_CAPTURE_WAITING, CAPTURE_NEVER);
            break;
        case XPL_CAPTURE_EVENT_ANSWERED: on_answered(j, ev); break;
        case XPL_CAPTURE_EVENT_INTERNAL:
        case XPL_CAPTURE_EVENT_NONE:
        default: break;
    }
}

// ---- time ----

static void on_due(struct capture_job *j) {
    const int64_t connect_s = j->run->connect_ns / (1000 * CAPTURE_MS);
    const int64_t answer_s = j->run->answer_ns / (1000 * CAPTURE_MS);
    char *const why = j->h->reason;
    const size_t size = sizeof j->h->reason;
    if (j->h->state == XPL_CAPTURE_PAUSING) {
        if (j->run->connecting < CONNECTING_AT_ONCE)
            connect_host(j);
        else
            j->due = capture_now() + SOON_MS * CAPTURE_MS;
        return;
    }
    if (j->h->state == XPL_CAPTURE_CONNECTING)
        (void)snprintf(why, size,
                       "no profiler server answered in %" PRId64 " s: the address may be wrong, a "
                       "firewall may hold it back, or another kind of service listens there",
                       connect_s);
    else if (j->h->state == XPL_CAPTURE_RECEIVING)
        (void)snprintf(why, size,
                       "its answer was not complete after %" PRId64 " s: capture for a shorter "
                       "time, or allow more time for the answer",
                       answer_s);
    else
        (void)snprintf(why, size,
                       "no answer %" PRId64 " s after the capture's end: the program may hang, or "
                       "its profile is large; capture for a shorter time, or allow more time for "
                       "the answer",
                       answer_s);
    xpl_capture_finish(j, XPL_CAPTURE_FAILED, XPL_DEADLINE_EXCEEDED);
}

// Handles all clocks that have run out, and gives free places to answers that wait.  Returns for
// how many milliseconds nothing will happen by itself.
static int run_clocks(struct capture_run *r) {
    int64_t next = capture_now() + TICK_MS * CAPTURE_MS;
    enum room room = ROOM; // checked until it is full: a check may return memory, which takes time
    for (size_t i = 0; i < r->plan->n_targets; i++) {
        struct capture_job *const j = &r->jobs[i];
        if (j->h->state == XPL_CAPTURE_WAITING && room != ROOM_FULL)
            room = try_receive(j);
        else if (j->h->state == XPL_CAPTURE_RECEIVING)
            (void)refuse_large(j); // the length may come late
        if (j->due <= capture_now()) on_due(j);
        if (j->due < next) next = j->due;
    }
    begin_hosts(r);
    if (!r->started) maybe_start(r);
    const int64_t left = (next - capture_now()) / CAPTURE_MS;
    return left < 0 ? 0 : (int)left;
}

static void drive(struct capture_run *r) {
    while (r->n_open > 0 && !capture_cancelled(r)) {
        struct xpl_capture_event ev;
        const int wait_ms = run_clocks(r);
        if (r->n_open == 0) break;
        r->driver->next_event(r->connections, wait_ms, &ev);
        if (ev.kind == XPL_CAPTURE_EVENT_NONE) xpl_capture_report_progress(r, r->plan->n_targets);
        while (ev.kind != XPL_CAPTURE_EVENT_NONE && !capture_cancelled(r)) {
            on_event(&ev);
            r->driver->next_event(r->connections, 0, &ev);
        }
    }
}

// ---- beginning and end ----

// Hosts of a common start are all connected at once: without descriptors some would fail with
// whatever they need one for first.
static xpl_status_t check_descriptors(size_t n_targets, struct xpl_error *err) {
    struct rlimit limit;
    const size_t needed = n_targets + SPARE_DESCRIPTORS;
    if (n_targets <= CONNECTING_AT_ONCE || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur >= needed)
        return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                     "%zu targets need %zu open descriptors, and this process may have %llu: raise "
                     "its limit (ulimit -n, LimitNOFILE=), or capture fewer at once",
                     n_targets, needed, (unsigned long long)limit.rlim_cur);
}

static xpl_status_t set_up(struct capture_run *r, const char *logdir, struct xpl_error *err) {
    const struct xpl_capture_plan *const p = r->plan;
    XPL_TRY(check_descriptors(p->n_targets, err));
    const int64_t twice = 2 * p->duration_ms;
    r->connect_ns = (p->connect_timeout_ms ? p->connect_timeout_ms : CONNECT_MS) * CAPTURE_MS;
    r->answer_ns = CAPTURE_MS * (p->answer_timeout_ms ? p->answer_timeout_ms
                                 : twice > ANSWER_MS  ? twice
                                                      : ANSWER_MS);
    r->host_bytes = p->max_host_bytes ? p->max_host_bytes : XPL_CAPTURE_MAX_BYTES;
    r->at_once = p->receive_at_once ? p->receive_at_once : AT_ONCE;
    XPL_TRY(r->driver->open(p, &r->connections, err));
    XPL_TRY(xpl_capture_start_session(r, logdir, err));
    for (size_t i = 0; i < p->n_targets; i++) {
        struct capture_job *const j = &r->jobs[i];
        const char *const given = p->host_names ? p->host_names[i] : NULL;
        if (given && given[0])
            (void)xpl_session_writer_safe_name(j->name, xpl_str_from(given));
        else
            xpl_capture_target_name(j->name, p->targets[i]);
        XPL_TRY(r->driver->add(r->connections, p->targets[i], j, &j->connection, err));
    }
    return XPL_OK;
}

static bool allocate(struct capture_run *r) {
    const size_t n = r->plan->n_targets;
    struct xpl_capture_host *const hosts = xpl_sys_alloc(n * sizeof *hosts);
    r->jobs = hosts ? xpl_sys_alloc(n * sizeof *r->jobs) : NULL;
    if (!r->jobs) {
        xpl_sys_free(hosts);
        return false;
    }
    memset(hosts, 0, n * sizeof *hosts);
    memset(r->jobs, 0, n * sizeof *r->jobs);
    for (size_t i = 0; i < n; i++) {
        hosts[i].target = r->plan->targets[i];
        r->jobs[i] = (struct capture_job){.run = r,
                                          .h = &hosts[i],
                                          .due = CAPTURE_NEVER,
                                          .retries = r->plan->retries,
                                          .pause_ms = FIRST_PAUSE_MS};
    }
    r->out->hosts = hosts;
    r->out->n_hosts = r->n_open = n;
    return true;
}

// Hosts that are not over when the run ends: it was cancelled, or could not begin (`err`).
static void close_hosts(struct capture_run *r, const struct xpl_error *err) {
    const bool cancel = capture_cancelled(r);
    for (size_t i = 0; i < r->plan->n_targets; i++) {
        struct capture_job *const j = &r->jobs[i];
        if (cancel && j->h->state == XPL_CAPTURE_STORED) {
            j->h->state = XPL_CAPTURE_CANCELLED;
            j->h->code = XPL_CANCELLED;
            j->h->file = (struct xpl_profile_writer_file){0}; // it is removed
        } else if (cancel && !xpl_capture_is_over(j->h->state)) {
            (void)snprintf(j->h->reason, sizeof j->h->reason, "the capture was cancelled");
            xpl_capture_finish(j, XPL_CAPTURE_CANCELLED, XPL_CANCELLED);
        } else if (!xpl_capture_is_over(j->h->state)) {
            xpl_capture_finish_error(j, err);
        }
    }
}

static void count_outcome(struct xpl_capture_outcome *o) {
    for (size_t i = 0; i < o->n_hosts; i++) {
        const enum xpl_capture_state s = o->hosts[i].state;
        o->n_stored += s == XPL_CAPTURE_STORED;
        if (s == XPL_CAPTURE_STORED) o->n_files += o->hosts[i].n_files;
        o->n_idle += s == XPL_CAPTURE_IDLE;
        o->n_failed += s == XPL_CAPTURE_FAILED;
        o->n_cancelled += s == XPL_CAPTURE_CANCELLED;
    }
}

xpl_status_t xpl_capture_run(const struct xpl_capture_plan *plan, const char *logdir,
                             const atomic_bool *cancel, xpl_capture_progress_fn progress, void *ctx,
                             struct xpl_capture_outcome *ret, struct xpl_error *err) {
    *ret = (struct xpl_capture_outcome){0};
    XPL_TRY(xpl_capture_check(plan, err));
    struct capture_run r = {.plan = plan,
                            .driver = xpl_capture_driver_of(plan),
                            .cancel = cancel,
                            .progress = progress,
                            .ctx = ctx,
                            .out = ret,
                            .begin = capture_now()};
    struct xpl_error first = {0};
    ret->begin_ns = xpl_unix_ns();
    if (!allocate(&r)) XPL_RETURN_OOM(err, "capture");
    xpl_status_t st = set_up(&r, logdir, &first);
    if (st == XPL_OK) drive(&r);
    if (st == XPL_OK) xpl_capture_sync_session(&r);
    close_hosts(&r, &first);
    ret->end_ns = xpl_unix_ns();
    count_outcome(ret);
    xpl_capture_close_session(&r);
    r.driver->close(r.connections);
    xpl_sys_free(r.root);
    xpl_sys_free(r.jobs);
    if (st == XPL_OK) return xpl_capture_verdict(ret, err);
    XPL_RETURN_ERROR(err, st, "%s", first.msg);
}

void xpl_capture_outcome_fini(struct xpl_capture_outcome *o) {
    xpl_sys_free(o->hosts);
    xpl_sys_free(o->path);
    *o = (struct xpl_capture_outcome){0};
}
