// SPDX-License-Identifier: Apache-2.0
// One capture, from the plan to the outcome.  A host goes from state to state (capture.h); what
// moves it is an event of the driver or its clock running out.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "capture/driver.h"
#include "capture/impl.h"

enum {
    TICK_MS = 50,
    CONNECT_MS = 10000,
    ANSWER_MS = 60000,
    AT_ONCE = 4,
    STRAGGLER_MS = 3000, // how long hosts that are ready wait for those that are not
    LEAD_MS = 250,       // from the last host's readiness to the common start: all requests arrive
    FIRST_PAUSE_MS = 500,
    LAST_PAUSE_MS = 5000,
};
#define NEVER INT64_MAX
#define MS    ((int64_t)1000000)

struct job {
    struct run *run;
    struct xpl_capture_host *h;
    struct xpl_capture_connection *connection;
    struct xpl_profile_writer *writer; // NULL: no bytes have come
    struct xpl_error error;            // of the writer
    int64_t due;                       // when its patience is over, CLOCK_MONOTONIC
    unsigned retries;                  // left
    int pause_ms;
    char name[XPL_PROFILE_WRITER_NAME_SIZE];
    char hidden[32]; // where a server that writes itself puts its profile
};

struct run {
    const struct xpl_capture_plan *plan;
    const atomic_bool *cancel;
    xpl_capture_progress_fn progress;
    void *ctx;
    struct xpl_capture_outcome *out;
    const struct xpl_capture_driver *driver;
    struct xpl_capture_connections *connections;
    struct xpl_session_writer *session;
    struct job *jobs;
    char *root; // the session's directory as the hosts see it
    int64_t begin;
    int64_t connect_ns, answer_ns;
    size_t n_open, receiving, at_once;
    bool started;
};

static int64_t now(void) {
    return (int64_t)xpl_clock_ns();
}
static int64_t unix_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 * MS + t.tv_nsec;
}
static bool cancelled(const struct run *r) {
    return r->cancel && atomic_load_explicit(r->cancel, memory_order_relaxed);
}
static bool brings_data(const struct run *r) {
    return r->plan->call == XPL_CAPTURE_PROFILE || r->plan->call == XPL_CAPTURE_SNAPSHOT;
}

static void report_progress(struct run *r, size_t changed) {
    if (!r->progress) return;
    const struct xpl_capture_progress p = {
        .hosts = r->out->hosts,
        .n_hosts = r->out->n_hosts,
        .changed = changed,
        .session = r->session ? xpl_session_writer_get_name(r->session) : "",
        .elapsed_ms = (now() - r->begin) / MS,
    };
    r->progress(r->ctx, &p);
}

// ---- states ----

static void enter(struct job *j, enum xpl_capture_state state, int64_t due) {
    struct run *const r = j->run;
    if (j->h->state == XPL_CAPTURE_RECEIVING) r->receiving--;
    if (state == XPL_CAPTURE_RECEIVING) r->receiving++;
    if (xpl_capture_is_over(state)) r->n_open--;
    j->h->state = state;
    j->due = due;
    report_progress(r, (size_t)(j - r->jobs));
}

static void remove_hidden(struct job *j) {
    if (j->hidden[0] && j->run->session) xpl_capture_shared_remove(j->run->session, j->hidden);
}

static void end_attempt(struct job *j) {
    if (j->connection) j->run->driver->cancel(j->connection);
    remove_hidden(j);
}

static void finish(struct job *j, enum xpl_capture_state state, xpl_status_t code) {
    remove_hidden(j);
    j->h->code = code;
    enter(j, state, NEVER); // reported before a large answer is freed, which takes its time
    end_attempt(j);
}

static void finish_error(struct job *j, const struct xpl_error *err) {
    (void)snprintf(j->h->reason, sizeof j->h->reason, "%s", err->msg);
    finish(j, XPL_CAPTURE_FAILED, err->code);
}

// Asks again later if there are retries left; h->reason says why.
static void again_or(struct job *j, enum xpl_capture_state state) {
    if (j->retries == 0) {
        finish(j, state, j->h->code);
        return;
    }
    j->retries--;
    end_attempt(j);
    enter(j, XPL_CAPTURE_PAUSING, now() + j->pause_ms * MS);
    j->pause_ms = j->pause_ms < LAST_PAUSE_MS / 2 ? j->pause_ms * 2 : LAST_PAUSE_MS;
}

// ---- connecting ----

static void connect_host(struct job *j) {
    struct xpl_error err = {0};
    if (j->run->driver->connect(j->connection, &err) == XPL_OK)
        enter(j, XPL_CAPTURE_CONNECTING, now() + j->run->connect_ns);
    else
        finish_error(j, &err);
}

// Connects to all but those that are left out.
static void begin_hosts(struct run *r) {
    for (size_t i = 0; i < r->plan->n_targets; i++) {
        struct job *const j = &r->jobs[i];
        const char *const why = r->plan->left_out ? r->plan->left_out[i] : NULL;
        if (!why) {
            connect_host(j);
            continue;
        }
        (void)snprintf(j->h->reason, sizeof j->h->reason, "%s", why);
        finish(j, XPL_CAPTURE_FAILED, XPL_UNAVAILABLE);
    }
}

static void random_name(char out[32]) {
    uint64_t x = 0;
    if (getrandom(&x, sizeof x, 0) != sizeof x) x = xpl_clock_ns();
    (void)snprintf(out, 32, ".xplaned-%016" PRIx64, x);
}

// start_ns: Unix time, 0 for at once.
static void start_host(struct job *j, int64_t start_ns) {
    struct run *const r = j->run;
    struct xpl_error err = {0};
    random_name(j->hidden);
    const struct xpl_capture_query q = {.host_name = j->name,
                                        .root = r->root,
                                        .session_id = j->hidden,
                                        .start_ns = (uint64_t)start_ns};
    if (r->driver->start(j->connection, &q, &err) != XPL_OK) {
        finish_error(j, &err);
        return;
    }
    const int64_t t = unix_now();
    const int64_t wait = start_ns > t ? start_ns - t : 0;
    const int64_t length = r->plan->call == XPL_CAPTURE_PROFILE ? r->plan->duration_ms * MS : 0;
    j->h->attempts++;
    j->h->start_ns = t + wait;
    j->h->reason[0] = '\0';
    enter(j, XPL_CAPTURE_COLLECTING, now() + wait + length + r->answer_ns);
}

static void on_ready(struct job *j) {
    end_attempt(j);
    j->hidden[0] = '\0';
    enter(j, XPL_CAPTURE_READY, NEVER);
    if (j->run->started) start_host(j, 0);
}

// Begins as soon as there is nobody to wait for.
static void maybe_start(struct run *r) {
    const struct xpl_capture_plan *const p = r->plan;
    size_t ready = 0, coming = 0;
    for (size_t i = 0; i < p->n_targets; i++) {
        ready += r->jobs[i].h->state == XPL_CAPTURE_READY;
        coming += r->jobs[i].h->state == XPL_CAPTURE_CONNECTING;
    }
    const int64_t patience = p->delay_ms > STRAGGLER_MS ? p->delay_ms : STRAGGLER_MS;
    if (ready == 0 || (coming > 0 && now() - r->begin < patience * MS)) return;
    r->started = true;
    int64_t start = 0;
    if (p->call == XPL_CAPTURE_PROFILE && (p->n_targets > 1 || p->delay_ms > 0)) {
        start = unix_now() + (p->n_targets > 1 ? LEAD_MS * MS : 0);
        const int64_t wanted = r->out->begin_ns + p->delay_ms * MS;
        if (start < wanted) start = wanted;
    }
    for (size_t i = 0; i < p->n_targets; i++)
        if (r->jobs[i].h->state == XPL_CAPTURE_READY) start_host(&r->jobs[i], start);
}

// ---- the answer ----

static bool begin_file(struct job *j) {
    const struct xpl_profile_writer_options o = {.size = sizeof o,
                                                 .host = xpl_str_from(j->name),
                                                 .flags = XPL_PROFILE_WRITER_UNIQUE |
                                                          XPL_PROFILE_WRITER_SYNC_LATER,
                                                 .max_bytes = j->run->plan->max_host_bytes};
    return j->writer ||
           xpl_profile_writer_begin(j->run->session, &o, &j->writer, &j->error) == XPL_OK;
}

static bool on_xspace(void *ctx, xpl_bytes_t piece) {
    struct job *const j = ctx;
    return !cancelled(j->run) && begin_file(j) &&
           xpl_profile_writer_put(j->writer, piece, &j->error) == XPL_OK;
}

static void abort_file(struct job *j) {
    xpl_profile_writer_abort(j->writer);
    j->writer = NULL;
}

// Bytes that are no profile are the host's fault, all else is ours.
static void finish_store_error(struct job *j) {
    struct xpl_error *const err = &j->error;
    if (err->code != XPL_DATA_LOSS) {
        finish_error(j, err);
        return;
    }
    (void)snprintf(j->h->reason, sizeof j->h->reason,
                   "the profile it sent is broken (%s): capture again; if that does not help, its "
                   "profiler is at fault",
                   err->msg);
    finish(j, XPL_CAPTURE_FAILED, XPL_DATA_LOSS);
}

static void commit(struct job *j) {
    struct xpl_profile_writer *const w = j->writer;
    j->writer = NULL;
    const xpl_status_t st = xpl_profile_writer_commit(w, &j->h->file, &j->error);
    if (st == XPL_OK) {
        finish(j, XPL_CAPTURE_STORED, XPL_OK);
    } else if (st == XPL_FAILED_PRECONDITION) {
        j->h->code = XPL_UNAVAILABLE;
        (void)snprintf(j->h->reason, sizeof j->h->reason,
                       "no events: the program did nothing that is traced; is it working? Capture "
                       "for longer, or allow retries");
        again_or(j, XPL_CAPTURE_IDLE);
    } else {
        finish_store_error(j);
    }
}

// The answer has no XSpace: the server wrote it itself, or has nothing.
static void store_shared(struct job *j, const struct xpl_capture_answer *answer) {
    xpl_status_t st = XPL_NOT_FOUND;
    if (!begin_file(j)) {
        finish_error(j, &j->error);
        return;
    }
    if (j->run->plan->call == XPL_CAPTURE_PROFILE)
        st = xpl_capture_shared_copy(j->run->session, j->hidden, j->writer, &j->error);
    if (st == XPL_OK) {
        j->h->shared_dir = true;
        commit(j);
        return;
    }
    abort_file(j);
    if (st != XPL_NOT_FOUND) {
        finish_error(j, &j->error);
    } else if (answer->idle) {
        j->h->code = XPL_UNAVAILABLE;
        (void)snprintf(j->h->reason, sizeof j->h->reason,
                       "idle: the program did nothing that is traced; is it working? Capture for "
                       "longer, or allow retries");
        again_or(j, XPL_CAPTURE_IDLE);
    } else {
        (void)snprintf(j->h->reason, sizeof j->h->reason, "%s", answer->reason);
        finish(j, XPL_CAPTURE_FAILED, XPL_FAILED_PRECONDITION);
    }
}

static void store(struct job *j) {
    const struct xpl_capture_sink sink = {on_xspace, j};
    struct xpl_capture_answer answer;
    struct xpl_error err = {0};
    j->error = (struct xpl_error){0};
    const xpl_status_t st = j->run->driver->read(j->connection, &sink, &answer, &err);
    if (cancelled(j->run)) {
        abort_file(j); // the run ends
        return;
    }
    if (st != XPL_OK) abort_file(j);
    if (st == XPL_CANCELLED)
        finish_store_error(j);
    else if (st != XPL_OK)
        finish_error(j, &err);
    else if (j->writer)
        commit(j);
    else
        store_shared(j, &answer);
}

// ---- events ----

static void on_failure(struct job *j, const struct xpl_capture_event *ev) {
    j->h->code = ev->code;
    memcpy(j->h->reason, ev->reason, sizeof j->h->reason);
    if (ev->again)
        again_or(j, XPL_CAPTURE_FAILED);
    else
        finish(j, XPL_CAPTURE_FAILED, ev->code);
}

static void on_answered(struct job *j, const struct xpl_capture_event *ev) {
    j->h->answered_ns = unix_now();
    if (ev->code != XPL_OK)
        on_failure(j, ev);
    else if (brings_data(j->run))
        store(j);
    else
        finish(j, XPL_CAPTURE_STORED, XPL_OK);
}

static void receive(struct job *j) {
    j->run->driver->receive(j->connection);
    enter(j, XPL_CAPTURE_RECEIVING, now() + j->run->answer_ns);
}

static void on_event(const struct xpl_capture_event *ev) {
    struct job *const j = ev->user;
    switch (ev->kind) {
        case XPL_CAPTURE_EVENT_CONNECTED: on_ready(j); break;
        case XPL_CAPTURE_EVENT_UNREACHABLE: on_failure(j, ev); break;
        case XPL_CAPTURE_EVENT_ANSWERING:
            if (j->run->receiving < j->run->at_once)
                receive(j);
            else
                enter(j, XPL_CAPTURE_WAITING, NEVER);
            break;
        case XPL_CAPTURE_EVENT_ANSWERED: on_answered(j, ev); break;
        case XPL_CAPTURE_EVENT_INTERNAL:
        case XPL_CAPTURE_EVENT_NONE:
        default: break;
    }
}

// ---- time ----

static void on_due(struct job *j) {
    const int64_t connect_s = j->run->connect_ns / (1000 * MS);
    const int64_t answer_s = j->run->answer_ns / (1000 * MS);
    char *const why = j->h->reason;
    const size_t size = sizeof j->h->reason;
    if (j->h->state == XPL_CAPTURE_PAUSING) {
        connect_host(j);
        return;
    }
    if (j->h->state == XPL_CAPTURE_CONNECTING)
        (void)snprintf(why, size,
                       "no gRPC server answered in %" PRId64 " s: the address may be wrong, a "
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
    finish(j, XPL_CAPTURE_FAILED, XPL_DEADLINE_EXCEEDED);
}

// Handles all clocks that have run out, and gives free places to answers that wait.  Returns for
// how many milliseconds nothing will happen by itself.
static int run_clocks(struct run *r) {
    int64_t next = now() + TICK_MS * MS;
    for (size_t i = 0; i < r->plan->n_targets; i++) {
        struct job *const j = &r->jobs[i];
        if (j->h->state == XPL_CAPTURE_WAITING && r->receiving < r->at_once) receive(j);
        if (j->due <= now()) on_due(j);
        if (j->due < next) next = j->due;
    }
    if (!r->started) maybe_start(r);
    const int64_t left = (next - now()) / MS;
    return left < 0 ? 0 : (int)left;
}

static void drive(struct run *r) {
    while (r->n_open > 0 && !cancelled(r)) {
        struct xpl_capture_event ev;
        const int wait_ms = run_clocks(r);
        if (r->n_open == 0) break;
        r->driver->next_event(r->connections, wait_ms, &ev);
        if (ev.kind == XPL_CAPTURE_EVENT_NONE) report_progress(r, r->plan->n_targets);
        while (ev.kind != XPL_CAPTURE_EVENT_NONE && !cancelled(r)) {
            on_event(&ev);
            r->driver->next_event(r->connections, 0, &ev);
        }
    }
}

// ---- beginning and end ----

static xpl_status_t set_root(struct run *r, struct xpl_error *err) {
    static const char middle[] = "/plugins/profile/";
    const char *const path = r->session ? xpl_session_writer_get_path(r->session) : "";
    const char *const name = r->session ? xpl_session_writer_get_name(r->session) : "";
    const char *const remote = r->session ? r->plan->remote_logdir : NULL;
    const size_t size = strlen(path) + (remote ? strlen(remote) : 0) + sizeof middle + strlen(name);
    r->root = xpl_sys_alloc(size);
    if (!r->root) XPL_RETURN_OOM(err, "capture");
    if (remote)
        (void)snprintf(r->root, size, "%s%s%s", remote, middle, name);
    else
        (void)snprintf(r->root, size, "%s", path);
    return XPL_OK;
}

static xpl_status_t start_session(struct run *r, const char *logdir, struct xpl_error *err) {
    if (brings_data(r)) {
        const struct xpl_session_writer_options o = {
            .size = sizeof o, .logdir = logdir, .name = r->plan->session, .unique = true};
        XPL_TRY(xpl_session_writer_open(&o, &r->session, err));
    }
    return set_root(r, err);
}

static xpl_status_t set_up(struct run *r, const char *logdir, struct xpl_error *err) {
    const struct xpl_capture_plan *const p = r->plan;
    const int64_t twice = 2 * p->duration_ms;
    r->connect_ns = (p->connect_timeout_ms ? p->connect_timeout_ms : CONNECT_MS) * MS;
    r->answer_ns = MS * (p->answer_timeout_ms ? p->answer_timeout_ms
                         : twice > ANSWER_MS  ? twice
                                              : ANSWER_MS);
    r->at_once = p->receive_at_once ? p->receive_at_once : AT_ONCE;
    XPL_TRY(r->driver->open(p, &r->connections, err));
    XPL_TRY(start_session(r, logdir, err));
    for (size_t i = 0; i < p->n_targets; i++) {
        struct job *const j = &r->jobs[i];
        const char *const given = p->host_names ? p->host_names[i] : NULL;
        if (given && given[0])
            (void)xpl_profile_writer_safe_name(j->name, xpl_str_from(given));
        else
            xpl_capture_target_name(j->name, p->targets[i]);
        XPL_TRY(r->driver->add(r->connections, p->targets[i], j, &j->connection, err));
    }
    return XPL_OK;
}

static bool allocate(struct run *r) {
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
        r->jobs[i] = (struct job){.run = r,
                                  .h = &hosts[i],
                                  .due = NEVER,
                                  .retries = r->plan->retries,
                                  .pause_ms = FIRST_PAUSE_MS};
    }
    r->out->hosts = hosts;
    r->out->n_hosts = r->n_open = n;
    return true;
}

// Hosts that are not over when the run ends: it was cancelled, or could not begin (`err`).
static void close_hosts(struct run *r, const struct xpl_error *err) {
    const bool cancel = cancelled(r);
    for (size_t i = 0; i < r->plan->n_targets; i++) {
        struct job *const j = &r->jobs[i];
        if (cancel && j->h->state == XPL_CAPTURE_STORED) {
            j->h->state = XPL_CAPTURE_CANCELLED;
            j->h->code = XPL_CANCELLED;
            j->h->file = (struct xpl_profile_writer_file){0}; // it is removed
        } else if (cancel && !xpl_capture_is_over(j->h->state)) {
            (void)snprintf(j->h->reason, sizeof j->h->reason, "the capture was cancelled");
            finish(j, XPL_CAPTURE_CANCELLED, XPL_CANCELLED);
        } else if (!xpl_capture_is_over(j->h->state)) {
            finish_error(j, err);
        }
    }
}

// What was stored is reported only when it is on the disk.
static void sync_session(struct run *r) {
    struct xpl_error err = {0};
    if (!r->session || cancelled(r) || xpl_session_writer_sync(r->session, &err) == XPL_OK) return;
    for (size_t i = 0; i < r->plan->n_targets; i++) {
        struct xpl_capture_host *const h = r->jobs[i].h;
        if (h->state != XPL_CAPTURE_STORED) continue;
        h->state = XPL_CAPTURE_FAILED;
        h->code = err.code;
        h->file = (struct xpl_profile_writer_file){0};
        (void)snprintf(h->reason, sizeof h->reason, "%s", err.msg);
    }
}

static void count(struct xpl_capture_outcome *o) {
    for (size_t i = 0; i < o->n_hosts; i++) {
        const enum xpl_capture_state s = o->hosts[i].state;
        o->n_stored += s == XPL_CAPTURE_STORED;
        o->n_idle += s == XPL_CAPTURE_IDLE;
        o->n_failed += s == XPL_CAPTURE_FAILED;
        o->n_cancelled += s == XPL_CAPTURE_CANCELLED;
    }
}

// Writes the report, and closes the session; one without hosts vanishes.
static void close_session(struct run *r) {
    struct xpl_capture_outcome *const o = r->out;
    if (!r->session) return;
    if (o->n_stored > 0) {
        const char *const path = xpl_session_writer_get_path(r->session);
        (void)snprintf(o->session, sizeof o->session, "%s",
                       xpl_session_writer_get_name(r->session));
        o->path = xpl_sys_alloc(strlen(path) + 1);
        if (o->path) memcpy(o->path, path, strlen(path) + 1);
        struct xpl_buf b;
        xpl_buf_init(&b, (size_t)64 << 20);
        xpl_capture_json(r->plan, o, &b);
        // Without it the profiles are as good, and the caller has the same report.
        if (!b.failed)
            (void)!xpl_profile_writer_note(r->session, "capture", ".json", (xpl_bytes_t){b.p, b.n},
                                           NULL);
        xpl_buf_fini(&b);
    } else {
        xpl_session_writer_undo(r->session);
    }
    xpl_session_writer_close(r->session);
    r->session = NULL;
}

// The one sentence about a capture without any profile.
static xpl_status_t verdict(const struct xpl_capture_outcome *o, struct xpl_error *err) {
    if (o->n_stored > 0) return XPL_OK;
    if (o->n_cancelled > 0) XPL_RETURN_ERROR(err, XPL_CANCELLED, "the capture was cancelled");
    const struct xpl_capture_host *const h = o->hosts;
    xpl_status_t code = h[0].code;
    for (size_t i = 1; i < o->n_hosts; i++)
        if (h[i].code != code) code = XPL_UNAVAILABLE;
    if (o->n_hosts == 1) XPL_RETURN_ERROR(err, code, "%.60s: %s", h[0].target, h[0].reason);
    XPL_RETURN_ERROR(err, code, "none of %zu hosts gave a profile; %.50s: %s", o->n_hosts,
                     h[0].target, h[0].reason);
}

xpl_status_t xpl_capture_run(const struct xpl_capture_plan *plan, const char *logdir,
                             const atomic_bool *cancel, xpl_capture_progress_fn progress, void *ctx,
                             struct xpl_capture_outcome *ret, struct xpl_error *err) {
    *ret = (struct xpl_capture_outcome){0};
    XPL_TRY(xpl_capture_check(plan, err));
    struct run r = {.plan = plan,
                    .driver = xpl_capture_driver_of(plan),
                    .cancel = cancel,
                    .progress = progress,
                    .ctx = ctx,
                    .out = ret,
                    .begin = now()};
    struct xpl_error first = {0};
    ret->begin_ns = unix_now();
    if (!allocate(&r)) XPL_RETURN_OOM(err, "capture");
    xpl_status_t st = set_up(&r, logdir, &first);
    if (st == XPL_OK) {
        begin_hosts(&r);
        drive(&r);
    }
    if (st == XPL_OK) sync_session(&r);
    close_hosts(&r, &first);
    ret->end_ns = unix_now();
    count(ret);
    close_session(&r);
    r.driver->close(r.connections);
    xpl_sys_free(r.root);
    xpl_sys_free(r.jobs);
    if (st == XPL_OK) return verdict(ret, err);
    XPL_RETURN_ERROR(err, st, "%s", first.msg);
}

void xpl_capture_outcome_fini(struct xpl_capture_outcome *o) {
    xpl_sys_free(o->hosts);
    xpl_sys_free(o->path);
    *o = (struct xpl_capture_outcome){0};
}
