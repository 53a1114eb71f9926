// SPDX-License-Identifier: Apache-2.0
#include "server/capture_jobs/schedules.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "rpc/message.h"
#include "server/capture_jobs/messages.h"
#include "server/removal/removal.h"
#include "storage/objects/objects.h"
#include "storage/sessions/layout.h"

enum {
    MIN_PAUSE_MS = 1000,   // between the end of a capture and the next
    BUSY_RETRY_MS = 1000,  // when another capture has its hosts
    HANDED_OVER_MS = 3000, // for whom a recording was stopped to take the host
    MAX_REQUEST = 1 << 20, // of a schedule, serialized
    MAX_SESSIONS_BYTES = 64 << 20
};
#define MAX_EVERY_MS ((uint64_t)366 * 86400000)

typedef Xplaned__V1__CreateScheduleRequest request_msg;

enum schedule_state {
    SCHEDULE_WAITING,   // for its turn
    SCHEDULE_CAPTURING, // its capture runs
    SCHEDULE_DELETED,   // removed when its capture has ended
    SCHEDULE_LOST,      // likewise; another daemon has it
};

struct schedule {
    struct schedule *next;
    struct xpl_schedules *all;
    struct xpl_arena arena; // the request
    const request_msg *request;
    struct xpl_capture_plan plan;
    struct xpl_intern *keys; // of its targets
    struct xpl_history_schedule row;
    int64_t try_ms; // when it is tried next: row.next_ms, or later while its hosts are busy
    enum schedule_state state;
    uint64_t capture_id; // of the capture that runs
    bool recording;      // continuous: its servers record
    bool hand_over;      // it stops recording, because a capture needs one of its hosts
    uint64_t leased_ns;  // where daemons share schedules: when the lease began that this one has
    uint64_t added_ns;   // when it came into the list
};

struct xpl_schedules {
    struct xpl_capture_jobs *captures;
    struct xpl_history *history;
    struct xpl_removals *removals; // also where sessions are
    struct xpl_store *shared;      // the list has this daemon's of them; NULL: it has all
    uint64_t lease_ms;
    pthread_mutex_t mu; // protects the list, and what changes in its schedules
    struct schedule *list;
    size_t n;
    size_t n_others; // of other daemons, as far as is known
    bool stopping;   // none begins a turn
    // The latest shared ones that cannot be read: no daemon tries again.
    uint64_t left_out[XPL_SCHEDULES_MAX];
    size_t n_left_out;
};

static void free_schedule(struct schedule *s) {
    if (!s) return;
    xpl_arena_fini(&s->arena);
    xpl_sys_free(s);
}

// ---- what can be scheduled ----

static xpl_status_t check(const request_msg *r, const struct xpl_capture_plan *p,
                          struct xpl_error *err) {
    XPL_TRY(xpl_capture_check(p, err));
    const uint64_t least =
        (uint64_t)MIN_PAUSE_MS + (r->continuous ? 0 : (uint64_t)(p->duration_ms + p->delay_ms));
    if (r->every_ms < least || r->every_ms > MAX_EVERY_MS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "every %" PRIu64 " ms: at least %" PRIu64
                         " (1 s more than the capture takes), at most a year",
                         r->every_ms, least);
    return XPL_OK;
}

static xpl_status_t decode(struct schedule *s, xpl_bytes_t raw, struct xpl_error *err) {
    ProtobufCMessage *m = NULL;
    uint8_t *copy = xpl_arena_alloc(&s->arena, raw.len);
    if (!copy) XPL_RETURN_OOM(err, "schedule");
    if (raw.len) memcpy(copy, raw.ptr, raw.len);
    s->row.request = (xpl_bytes_t){copy, raw.len};
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__create_schedule_request__descriptor,
                                   s->row.request, &s->arena, &m, err));
    s->request = (const request_msg *)m;
    if (!s->request->capture) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no capture to repeat");
    XPL_TRY(xpl_capture_plan_of(s->request->capture, &s->arena, &s->plan, err));
    XPL_TRY(check(s->request, &s->plan, err));
    return xpl_capture_target_keys(&s->plan, "", &s->arena, &s->keys, err);
}

static struct schedule *new_schedule(struct xpl_schedules *all) {
    struct schedule *s = xpl_sys_alloc(sizeof *s);
    if (!s) return NULL;
    *s = (struct schedule){.all = all};
    xpl_arena_init(&s->arena, 6 * MAX_REQUEST);
    return s;
}

// The caller holds the mutex, or is the only one yet.
static void append(struct xpl_schedules *all, struct schedule *s) {
    struct schedule **at = &all->list;
    while (*at)
        at = &(*at)->next;
    *at = s;
    s->added_ns = xpl_clock_ns();
    all->n++;
}

static void drop(struct xpl_schedules *all, struct schedule *s) {
    struct schedule **at = &all->list;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    all->n--;
    free_schedule(s);
}

static bool is_known(const struct xpl_schedules *all, uint64_t id) {
    const struct schedule *s = all->list;
    while (s && s->row.id != id)
        s = s->next;
    return s != NULL;
}

static int64_t next_turn(const struct schedule *s, int64_t now);

// Adds one that is in the history.  The caller holds the mutex, or is the only one yet.  False: out
// of memory.
static bool add_row(struct xpl_schedules *all, const struct xpl_history_schedule *row,
                    uint64_t leased_ns) {
    struct schedule *const s = new_schedule(all);
    struct xpl_error why = {0};
    if (!s) return false;
    s->row = *row;
    s->leased_ns = leased_ns;
    if (decode(s, row->request, &why) != XPL_OK) {
        xpl_log(XPL_LOG_ERROR, "capture", "schedule %" PRIu64 " is left out: %s", row->id, why.msg);
        all->left_out[all->n_left_out++ % XPL_SCHEDULES_MAX] = row->id;
        free_schedule(s);
        return true;
    }
    // Its daemon was gone before it could note that this turn was over.
    if (row->done_ms && row->done_ms >= row->next_ms) s->row.next_ms = next_turn(s, xpl_unix_ms());
    s->try_ms = s->row.next_ms;
    append(all, s);
    return true;
}

// Reads the schedules of the history that are not here yet.
static bool load(struct xpl_schedules *all) {
    XPL_AUTO(xpl_arena_fini)
    struct xpl_arena arena = xpl_arena_of((size_t)XPL_SCHEDULES_MAX * MAX_REQUEST * 2);
    struct xpl_history_schedule *rows;
    size_t n;
    struct xpl_error err = {0};
    if (xpl_history_schedules(all->history, &arena, &rows, &n, &err) != XPL_OK)
        xpl_log(XPL_LOG_ERROR, "capture", "schedules cannot be read: %s", err.msg);
    for (size_t i = 0; i < n; i++)
        if (!is_known(all, rows[i].id) && !add_row(all, &rows[i], 0)) return false;
    return true;
}

// ---- hosts that are recorded all the time ----

// Another capture wants a host that the schedule records: its recording is fetched and its servers
// are stopped; its next capture starts them again.  False: its servers record nothing.
static bool stop_soon(struct schedule *s) {
    if (!s->recording && s->state != SCHEDULE_CAPTURING) return false;
    s->try_ms = s->hand_over ? s->try_ms : 0; // at once
    s->hand_over = true;
    return true;
}

// The continuous schedule that records the target, or begins to; 0: none.
static uint64_t hand_over(void *arg, const char *target) {
    struct xpl_schedules *const all = arg;
    char key[XPL_CAPTURE_KEY_SIZE];
    xpl_strid_t at;
    uint64_t id = 0;
    xpl_capture_target_key(key, target, "");
    pthread_mutex_lock(&all->mu);
    for (struct schedule *s = all->list; s && !id; s = s->next)
        if (s->request->continuous && s->state < SCHEDULE_DELETED &&
            xpl_intern_find(s->keys, xpl_str_from(key), &at) && stop_soon(s))
            id = s->row.id;
    pthread_mutex_unlock(&all->mu);
    return id;
}

struct xpl_schedules *xpl_schedules_new(struct xpl_capture_jobs *captures,
                                        struct xpl_history *history,
                                        struct xpl_removals *removals) {
    struct xpl_schedules *all = xpl_sys_alloc(sizeof *all);
    if (!all) return NULL;
    const struct xpl_capture_jobs_options *const o = xpl_capture_jobs_get_options(captures);
    *all = (struct xpl_schedules){.captures = captures,
                                  .history = history,
                                  .removals = removals,
                                  .shared = o->shared,
                                  .lease_ms = o->lease_ms};
    pthread_mutex_init(&all->mu, NULL);
    const struct xpl_capture_recorder recorder = {hand_over, all};
    xpl_capture_jobs_set_recorder(captures, &recorder);
    if (all->shared || load(all)) return all; // the keeper claims those that are shared
    xpl_schedules_free(all);
    return NULL;
}

void xpl_schedules_reload(struct xpl_schedules *all) {
    if (all->shared) return;
    pthread_mutex_lock(&all->mu);
    if (!load(all)) xpl_log(XPL_LOG_ERROR, "capture", "schedules cannot be read: out of memory");
    pthread_mutex_unlock(&all->mu);
}

void xpl_schedules_free(struct xpl_schedules *all) {
    if (!all) return;
    while (all->list)
        drop(all, all->list);
    xpl_capture_jobs_set_recorder(all->captures, NULL);
    pthread_mutex_destroy(&all->mu);
    xpl_sys_free(all);
}

// ---- which sessions are kept ----

static bool is_too_much(const request_msg *r, uint64_t count, uint64_t bytes, int64_t age_ms) {
    return (r->keep_count && count > r->keep_count) || (r->keep_bytes && bytes > r->keep_bytes) ||
           (r->keep_age_ms && age_ms > 0 && (uint64_t)age_ms > r->keep_age_ms);
}

// Of a directory that all daemons share the device is each machine's own number.
static uint64_t device_of(const struct xpl_schedules *all, const struct xpl_history_session *one) {
    struct xpl_session_place place;
    const bool is_it = all->shared &&
                       xpl_session_locate(all->removals->logdir, one->name, &place) &&
                       place.ino == one->ino;
    return is_it ? place.dev : one->dev;
}

// Whether it was made where sessions are now: a bucket's has the bucket in place of a device, and
// no inode. A session of its name elsewhere is another one.
static bool is_of_this_place(const struct xpl_schedules *all,
                             const struct xpl_history_session *one) {
    if (!all->removals->objects) return one->ino != 0;
    return one->ino == 0 && one->dev == xpl_objects_device(all->removals->objects);
}

static xpl_status_t remove_files(const struct xpl_schedules *all,
                                 const struct xpl_history_session *one, struct xpl_error *err) {
    struct xpl_session_path buf;
    const char *const path = xpl_session_path(one->name, &buf);
    // Others may have added profiles, or be writing some: the schedule does not remove those.  A
    // directory is identified by its inode, so that the machines' clocks do not matter.
    const struct xpl_session_made made = {one->n_hosts,
                                          all->removals->objects ? one->made_ms : INT64_MAX};
    if (!is_of_this_place(all, one))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%.120s was made under another --logdir; it is not removed", path);
    const struct xpl_removal what = {.cause = XPL_REMOVAL_SCHEDULE,
                                     .path = path,
                                     .dev = device_of(all, one),
                                     .ino = one->ino,
                                     .made = &made};
    return xpl_removals_run(all->removals, &what, err);
}

// Removes one of the schedule's sessions, and forgets it unless that has to be tried again.
static void remove_session(struct xpl_schedules *all, const struct schedule *s,
                           const struct xpl_history_session *one) {
    struct xpl_error err = {0};
    const xpl_status_t st = remove_files(all, one, &err);
    if (st != XPL_NOT_FOUND) {
        struct xpl_log_line l;
        xpl_audit_begin(&l, st == XPL_OK ? "an old session was removed" : "an old session stays",
                        &(struct xpl_audit_client){.cause = "schedule"}, st, &err);
        xpl_log_int(&l, "schedule", (int64_t)s->row.id);
        xpl_log_str(&l, "session", one->name);
        xpl_log_end(&l);
    }
    // Sessions that cannot be removed now are tried again.
    if (st == XPL_OK || st == XPL_NOT_FOUND || st == XPL_FAILED_PRECONDITION)
        if (xpl_history_forget_session(all->history, s->row.id, one->name, &err) != XPL_OK)
            xpl_log(XPL_LOG_WARN, "capture", "%s", err.msg);
}

static bool keeps_some(const request_msg *r) {
    return r->keep_count || r->keep_bytes || r->keep_age_ms;
}

// Removes the sessions that are more than the schedule keeps.
static void remove_old_sessions(struct xpl_schedules *all, const struct schedule *s) {
    const request_msg *const r = s->request;
    if (!keeps_some(r)) return;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MAX_SESSIONS_BYTES);
    struct xpl_history_session *list;
    size_t n;
    struct xpl_error err = {0};
    if (xpl_history_sessions(all->history, s->row.id, &arena, &list, &n, &err) != XPL_OK) {
        xpl_log(XPL_LOG_WARN, "capture", "%s", err.msg);
        return;
    }
    const int64_t now = xpl_unix_ms();
    uint64_t bytes = 0;
    for (size_t i = n; i > 0; i--) { // from the newest, which stays
        const struct xpl_history_session *const one = &list[i - 1];
        bytes += one->bytes;
        if (i < n && is_too_much(r, n - i + 1, bytes, now - one->made_ms))
            remove_session(all, s, one);
    }
}

// ---- turns ----

// Turns that were missed (the daemon was away, hosts were busy) are left out.
static int64_t next_turn(const struct schedule *s, int64_t now) {
    const int64_t every = (int64_t)s->request->every_ms;
    const int64_t due = s->row.next_ms;
    if (due > now + every) return now + every; // the clock was set back
    return due > now ? due : due + ((now - due) / every + 1) * every;
}

static bool any_says(const struct xpl_capture_outcome *o, xpl_status_t code) {
    for (size_t i = 0; i < o->n_hosts; i++)
        if (o->hosts[i].code == code) return true;
    return false;
}

// Sets when the schedule's turn comes next.  The caller holds the mutex.
static void plan_next(struct schedule *s, const struct xpl_capture_result *r) {
    const int64_t now = xpl_unix_ms();
    s->row.last_capture_id = r->id;
    s->row.next_ms = next_turn(s, now);
    s->try_ms = s->row.next_ms;
    if (!s->request->continuous) return;
    const bool was = s->recording;
    if (r->plan->call == XPL_CAPTURE_CONTINUOUS)
        s->recording = r->code == XPL_OK || any_says(r->outcome, XPL_ALREADY_EXISTS);
    else
        s->recording = !any_says(r->outcome, XPL_NOT_FOUND);
    // A server that was restarted records nothing: the schedule starts it again.
    if (was && !s->recording) s->try_ms = now + BUSY_RETRY_MS;
}

static void stop_done(void *arg, const struct xpl_capture_result *r) {
    (void)arg; // a server that is gone records no more, either
    (void)r;
}

// Stops the recording of a continuous schedule's servers.  False: they go on.
static bool stop_recording(struct xpl_schedules *all, const struct schedule *s,
                           const struct xpl_capture_listener *l) {
    struct xpl_capture_plan p = s->plan;
    struct xpl_error err = {0};
    p.call = XPL_CAPTURE_STOP;
    const struct xpl_schedule_claim of = {.id = s->row.id}; // it may be deleted by now
    if (xpl_capture_jobs_start(all->captures, &p, &of, l, NULL, &err) == XPL_OK) return true;
    xpl_log(XPL_LOG_WARN, "capture", "schedule %" PRIu64 ": its servers go on recording: %s",
            s->row.id, err.msg);
    return false;
}

static void stop_for_good(struct xpl_schedules *all, const struct schedule *s) {
    const struct xpl_capture_listener l = {.client = {.cause = "schedule"}, .done = stop_done};
    (void)stop_recording(all, s, &l);
}

// A capture has ended, or the stop after it. The caller holds the mutex.
static void end_turn(struct xpl_schedules *all, struct schedule *s) {
    if (s->state >= SCHEDULE_DELETED) {
        if (s->request->continuous && s->state == SCHEDULE_DELETED) stop_for_good(all, s);
        drop(all, s);
        return;
    }
    assert(s->state == SCHEDULE_CAPTURING);
    s->state = SCHEDULE_WAITING;
}

// Its servers record no more: whoever wanted one of them has a while to take it.
static void handed_over(void *arg, const struct xpl_capture_result *r) {
    struct schedule *const s = arg;
    struct xpl_schedules *const all = s->all;
    (void)r;
    pthread_mutex_lock(&all->mu);
    s->recording = s->hand_over = false;
    s->try_ms = xpl_unix_ms() + HANDED_OVER_MS;
    end_turn(all, s);
    pthread_mutex_unlock(&all->mu);
}

// A turn did not begin, or was cancelled because this daemon ends: the schedule's next owner, or
// its next try, has it again.  False: it was one.
static bool repeat_turn(struct xpl_schedules *all, struct schedule *s,
                        const struct xpl_capture_result *r) {
    if (!all->shared) return false;
    const bool ended =
        r->state == XPL_CAPTURED_CANCELLED && xpl_capture_jobs_is_stopping(all->captures);
    pthread_mutex_lock(&all->mu);
    const bool repeats = r->refused || ended || s->state == SCHEDULE_LOST;
    if (repeats) {
        if (r->code == XPL_ABORTED && s->state == SCHEDULE_CAPTURING) s->state = SCHEDULE_LOST;
        s->try_ms = xpl_unix_ms() + BUSY_RETRY_MS;
        end_turn(all, s);
    }
    pthread_mutex_unlock(&all->mu);
    return repeats;
}

static void on_done(void *arg, const struct xpl_capture_result *r) {
    struct schedule *const s = arg;
    struct xpl_schedules *const all = s->all;
    if (repeat_turn(all, s, r)) return;
    remove_old_sessions(all, s);
    pthread_mutex_lock(&all->mu);
    assert(s->state != SCHEDULE_WAITING);
    plan_next(s, r);
    const struct xpl_history_schedule row = s->row;
    const bool deleted = s->state >= SCHEDULE_DELETED;
    pthread_mutex_unlock(&all->mu);
    struct xpl_error err = {0};
    if (!deleted && xpl_history_set_schedule(all->history, &row, &err) != XPL_OK)
        xpl_log(XPL_LOG_WARN, "capture", "schedule %" PRIu64 ": %s", row.id, err.msg);
    pthread_mutex_lock(&all->mu);
    // The recording is stored; then the servers are stopped.  Where it has only begun, the next
    // turn stores it.
    const struct xpl_capture_listener l = {
        .client = {.cause = "schedule"}, .done = handed_over, .arg = s};
    const bool begun = s->recording && r->plan->call == XPL_CAPTURE_CONTINUOUS;
    const bool stops = s->hand_over && !begun && s->state < SCHEDULE_DELETED;
    if (s->hand_over && begun) s->try_ms = 0;
    if (stops) s->try_ms = xpl_unix_ms() + BUSY_RETRY_MS; // should it not work
    if (!stops || !stop_recording(all, s, &l)) end_turn(all, s);
    pthread_mutex_unlock(&all->mu);
}

static struct xpl_capture_plan plan_of(const struct schedule *s, char *name, size_t size) {
    struct xpl_capture_plan p = s->plan;
    char at[XPL_SESSION_WRITER_NAME_SIZE];
    if (s->request->continuous)
        p.call = s->recording ? XPL_CAPTURE_SNAPSHOT : XPL_CAPTURE_CONTINUOUS;
    if (p.session.len) {
        xpl_session_writer_name(at, xpl_unix_ms() / 1000);
        const int n = snprintf(name, size, "%.*s_%s", XPL_STR_FMT(p.session), at);
        if (n > 0 && (size_t)n < size) p.session = (xpl_str_t){name, (size_t)n};
    }
    return p;
}

// Starts the schedule's capture.  The caller holds the mutex.
static void begin_turn(struct xpl_schedules *all, struct schedule *s, int64_t now) {
    char name[2 * XPL_SESSION_WRITER_NAME_SIZE];
    const struct xpl_capture_plan p = plan_of(s, name, sizeof name);
    const struct xpl_capture_listener l = {
        .client = {.cause = "schedule"}, .done = on_done, .arg = s};
    const struct xpl_schedule_claim of = {s->row.id, s->row.fence};
    struct xpl_error err = {0};
    const xpl_status_t st =
        xpl_capture_jobs_start(all->captures, &p, &of, &l, &s->capture_id, &err);
    if (st == XPL_OK) {
        assert(s->state == SCHEDULE_WAITING);
        s->state = SCHEDULE_CAPTURING; // before its end, which takes the mutex
        return;
    }
    if (st == XPL_UNAVAILABLE || st == XPL_RESOURCE_EXHAUSTED) {
        s->try_ms = now + BUSY_RETRY_MS; // another capture has its hosts; this turn waits for it
        return;
    }
    xpl_log(XPL_LOG_WARN, "capture", "schedule %" PRIu64 ": %s", s->row.id, err.msg);
    s->row.next_ms = next_turn(s, now);
    s->try_ms = s->row.next_ms;
}

// The lease is not over: by our clock it began earlier than by the database's.
static bool is_leased(const struct schedule *s) {
    return !s->all->shared || xpl_clock_ns() - s->leased_ns < s->all->lease_ms * 1000000u;
}

// The clock was set back while the schedule waited, or before this daemon read it: its turn may
// have moved years away.
static void follow_clock(struct schedule *s, int64_t now) {
    const int64_t every = (int64_t)s->request->every_ms;
    if (s->try_ms - now <= (every > HANDED_OVER_MS ? every : HANDED_OVER_MS)) return;
    s->row.next_ms = next_turn(s, now);
    s->try_ms = s->row.next_ms;
}

void xpl_schedules_tick(struct xpl_schedules *all) {
    const int64_t now = xpl_unix_ms();
    if (pthread_mutex_trylock(&all->mu) != 0)
        return; // another thread writes; the next tick comes soon
    for (struct schedule *s = all->list; s; s = s->next) {
        follow_clock(s, now);
        if (s->state == SCHEDULE_WAITING && s->try_ms <= now && !all->stopping && is_leased(s))
            begin_turn(all, s, now);
    }
    pthread_mutex_unlock(&all->mu);
}

// ---- the service's side ----

// The others see it from now on, and this daemon has it.  Without the mutex: the database may be
// slow.
static xpl_status_t add_shared(struct xpl_schedules *all, struct schedule *s,
                               struct xpl_error *err) {
    pthread_mutex_lock(&all->mu);
    const size_t n = all->n + all->n_others;
    pthread_mutex_unlock(&all->mu);
    if (n >= XPL_SCHEDULES_MAX)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "there are %d schedules already; delete one",
                         (int)XPL_SCHEDULES_MAX);
    s->leased_ns = xpl_clock_ns();
    s->row.fence = 1;
    return xpl_store_captures(all->shared)
        ->add_schedule(all->shared, &s->row, all->lease_ms, &s->row.id, err);
}

xpl_status_t xpl_schedules_create(struct xpl_schedules *all, const request_msg *r, uint64_t *ret_id,
                                  struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REQUEST);
    xpl_rpc_message_put(&b, &r->base);
    if (b.failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "the schedule is longer than 1 MiB");
    XPL_TRY(xpl_capture_jobs_check_enabled(all->captures, err));
    struct schedule *s = new_schedule(all);
    if (!s) XPL_RETURN_OOM(err, "schedule");
    xpl_status_t st = decode(s, (xpl_bytes_t){b.p, b.n}, err);
    s->row.created_ms = s->row.next_ms = s->try_ms = xpl_unix_ms();
    const bool shared = all->shared != NULL;
    if (st == XPL_OK && shared) st = add_shared(all, s, err);
    pthread_mutex_lock(&all->mu);
    if (st == XPL_OK && !shared && all->n >= XPL_SCHEDULES_MAX)
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "there are %d schedules already; delete one", (int)XPL_SCHEDULES_MAX);
    if (st == XPL_OK && !shared)
        st = xpl_history_add_schedule(all->history, &s->row, &s->row.id, err);
    if (st == XPL_OK) {
        *ret_id = s->row.id;
        append(all, s);
    }
    pthread_mutex_unlock(&all->mu);
    if (st != XPL_OK) free_schedule(s);
    return st;
}

// It is gone from the history.  The caller holds the mutex.
static void drop_deleted(struct xpl_schedules *all, struct schedule *s) {
    if (s->state == SCHEDULE_CAPTURING) {
        s->state = SCHEDULE_DELETED;
        if (xpl_capture_jobs_cancel(all->captures, s->capture_id, NULL) != XPL_OK)
            xpl_log(XPL_LOG_DEBUG, "capture", "its capture has already finished");
    } else if (s->state == SCHEDULE_WAITING) {
        if (s->request->continuous) stop_for_good(all, s);
        drop(all, s);
    }
}

static struct schedule *find(const struct xpl_schedules *all, uint64_t id) {
    struct schedule *s = all->list;
    while (s && (s->row.id != id || s->state >= SCHEDULE_DELETED))
        s = s->next;
    return s;
}

// Whichever daemon has it: that one finds it gone.
static xpl_status_t delete_shared(struct xpl_schedules *all, uint64_t id, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini)
    struct xpl_arena arena = xpl_arena_of((size_t)XPL_SCHEDULES_MAX * MAX_REQUEST * 2);
    struct xpl_history_schedule *rows;
    size_t n;
    XPL_TRY(xpl_history_schedules(all->history, &arena, &rows, &n, err));
    while (n && rows[n - 1].id != id)
        n--;
    if (!n) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no schedule %" PRIu64 " exists", id);
    XPL_TRY(xpl_history_delete_schedule(all->history, id, err));
    pthread_mutex_lock(&all->mu);
    struct schedule *const s = find(all, id);
    if (s) drop_deleted(all, s);
    pthread_mutex_unlock(&all->mu);
    return XPL_OK;
}

xpl_status_t xpl_schedules_delete(struct xpl_schedules *all, uint64_t id, struct xpl_error *err) {
    if (all->shared) return delete_shared(all, id, err);
    pthread_mutex_lock(&all->mu);
    struct schedule *const s = find(all, id);
    xpl_status_t st = XPL_OK;
    if (!s)
        st = xpl_error_set(err, XPL_NOT_FOUND, __FILE__, __LINE__, UINT64_MAX,
                           "no schedule %" PRIu64 " exists", id);
    else
        st = xpl_history_delete_schedule(all->history, id, err);
    if (st == XPL_OK) drop_deleted(all, s);
    pthread_mutex_unlock(&all->mu);
    return st;
}

static xpl_status_t describe(struct xpl_schedules *all, const struct xpl_history_schedule *row,
                             struct xpl_arena *arena, Xplaned__V1__Schedule *m,
                             struct xpl_error *err) {
    ProtobufCMessage *request = NULL;
    struct xpl_history_session *list;
    size_t n;
    xplaned__v1__schedule__init(m);
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__create_schedule_request__descriptor, row->request,
                                   arena, &request, err));
    XPL_TRY(xpl_history_sessions(all->history, row->id, arena, &list, &n, err));
    m->id = row->id;
    m->request = (request_msg *)request;
    m->created_unix_ms = row->created_ms;
    m->next_unix_ms = row->next_ms;
    m->last_capture_id = row->last_capture_id;
    m->sessions = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        m->bytes += list[i].bytes;
    return XPL_OK;
}

// The schedules as they are now, in `arena`: requests are decoded anew, because schedules may go.
static xpl_status_t copy_rows(struct xpl_schedules *all, struct xpl_arena *arena,
                              struct xpl_history_schedule **ret, size_t *ret_n,
                              struct xpl_error *err) {
    if (all->shared) return xpl_history_schedules(all->history, arena, ret, ret_n, err);
    bool ok = true;
    pthread_mutex_lock(&all->mu);
    struct xpl_history_schedule *const rows = xpl_arena_array(arena, all->n, sizeof *rows);
    *ret_n = 0;
    for (const struct schedule *s = all->list; rows && ok && s; s = s->next) {
        if (s->state >= SCHEDULE_DELETED) continue;
        const xpl_bytes_t raw = s->row.request;
        uint8_t *const copy = xpl_arena_alloc(arena, raw.len);
        ok = copy != NULL;
        if (ok && raw.len) memcpy(copy, raw.ptr, raw.len);
        rows[*ret_n] = s->row;
        rows[(*ret_n)++].request = (xpl_bytes_t){copy, raw.len};
    }
    pthread_mutex_unlock(&all->mu);
    *ret = rows;
    if (!rows || !ok) XPL_RETURN_OOM(err, "schedules");
    return XPL_OK;
}

xpl_status_t xpl_schedules_list(struct xpl_schedules *all, uint64_t id, struct xpl_arena *arena,
                                Xplaned__V1__ListSchedulesResponse *ret, struct xpl_error *err) {
    struct xpl_history_schedule *rows;
    size_t n;
    xplaned__v1__list_schedules_response__init(ret);
    XPL_TRY(copy_rows(all, arena, &rows, &n, err));
    Xplaned__V1__Schedule *const each = xpl_arena_array(arena, n, sizeof *each);
    ret->schedules = xpl_arena_array(arena, n, sizeof *ret->schedules);
    if (!each || !ret->schedules) XPL_RETURN_OOM(err, "schedules");
    for (size_t i = 0; i < n; i++) {
        if (id && rows[i].id != id) continue;
        XPL_TRY(describe(all, &rows[i], arena, &each[ret->n_schedules], err));
        ret->schedules[ret->n_schedules] = &each[ret->n_schedules];
        ret->n_schedules++;
    }
    return XPL_OK;
}

// ---- where daemons share schedules ----

// The caller's list may lack those added since `asked_ns`.
static bool is_newer(const struct schedule *s, uint64_t asked_ns) {
    return s->added_ns > asked_ns;
}

static void lose(struct xpl_schedules *all, struct schedule *s) {
    xpl_log(XPL_LOG_WARN, "capture", "schedule %" PRIu64 " is another daemon's by now", s->row.id);
    if (s->state == SCHEDULE_WAITING) {
        drop(all, s);
        return;
    }
    s->state = SCHEDULE_LOST;
    if (xpl_capture_jobs_cancel(all->captures, s->capture_id, NULL) != XPL_OK)
        xpl_log(XPL_LOG_DEBUG, "capture", "its capture has already finished");
}

bool xpl_schedules_adopt(struct xpl_schedules *all, const struct xpl_history_schedule *rows,
                         size_t n, uint64_t asked_ns) {
    bool ok = true;
    pthread_mutex_lock(&all->mu);
    for (size_t i = 0; ok && i < n; i++) {
        xpl_log(XPL_LOG_INFO, "capture", "schedule %" PRIu64 " is this daemon's", rows[i].id);
        ok = add_row(all, &rows[i], asked_ns);
    }
    pthread_mutex_unlock(&all->mu);
    return ok;
}

static bool is_kept(const struct xpl_kept_leases *kept, const struct schedule *s) {
    size_t i = 0;
    while (i < kept->n_schedules &&
           (kept->schedules[i].id != s->row.id || kept->schedules[i].fence != s->row.fence))
        i++;
    return i < kept->n_schedules;
}

void xpl_schedules_renewed(struct xpl_schedules *all, const struct xpl_kept_leases *kept,
                           uint64_t asked_ns) {
    pthread_mutex_lock(&all->mu);
    for (struct schedule *s = all->list, *next; s; s = next) {
        next = s->next;
        if (s->state >= SCHEDULE_DELETED || is_newer(s, asked_ns)) continue;
        if (is_kept(kept, s)) s->leased_ns = asked_ns;
        // A schedule that is not kept is another daemon's, or deleted: xpl_schedules_inspected
        // tells these apart.
    }
    pthread_mutex_unlock(&all->mu);
}

static const struct xpl_schedule_state *state_of(const struct xpl_schedule_state *states, size_t n,
                                                 uint64_t id) {
    size_t i = 0;
    while (i < n && states[i].claim.id != id)
        i++;
    return i < n ? &states[i] : NULL;
}

size_t xpl_schedules_inspected(struct xpl_schedules *all, const struct xpl_schedule_state *states,
                               size_t n, uint64_t asked_ns, uint64_t *ret_release, size_t max) {
    size_t n_release = 0, n_ours = 0;
    pthread_mutex_lock(&all->mu);
    for (struct schedule *s = all->list, *next; s; s = next) {
        next = s->next;
        const struct xpl_schedule_state *const now = state_of(states, n, s->row.id);
        n_ours += now != NULL;
        if (s->state >= SCHEDULE_DELETED || is_newer(s, asked_ns)) continue;
        if (!now)
            drop_deleted(all, s);
        else if (!now->is_ours || now->claim.fence != s->row.fence)
            lose(all, s);
        else if (now->is_wanted && !stop_soon(s) && n_release < max)
            ret_release[n_release++] = s->row.id;
    }
    all->n_others = n - n_ours;
    pthread_mutex_unlock(&all->mu);
    return n_release;
}

static bool is_left_out(const struct xpl_schedules *all, uint64_t id) {
    size_t i = 0;
    while (i < XPL_SCHEDULES_MAX && all->left_out[i] != id)
        i++;
    return i < XPL_SCHEDULES_MAX;
}

static bool has_claim(const struct xpl_schedules *all, const struct xpl_schedule_claim *c) {
    const struct schedule *s = all->list;
    while (s && (s->row.id != c->id || s->row.fence != c->fence))
        s = s->next;
    return s != NULL;
}

size_t xpl_schedules_find_strays(struct xpl_schedules *all, const struct xpl_schedule_state *states,
                                 size_t n, struct xpl_schedule_claim *ret, size_t max) {
    size_t n_strays = 0;
    pthread_mutex_lock(&all->mu);
    for (size_t i = 0; i < n && n_strays < max; i++) {
        const struct xpl_schedule_claim *const c = &states[i].claim;
        if (states[i].is_ours && !has_claim(all, c) && !is_left_out(all, c->id))
            ret[n_strays++] = *c;
    }
    pthread_mutex_unlock(&all->mu);
    return n_strays;
}

void xpl_schedules_stop(struct xpl_schedules *all) {
    pthread_mutex_lock(&all->mu);
    all->stopping = true;
    pthread_mutex_unlock(&all->mu);
}

size_t xpl_schedules_take_waiting(struct xpl_schedules *all, struct xpl_schedule_claim *ret,
                                  size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&all->mu);
    for (struct schedule *s = all->list, *next; s && n < max; s = next) {
        next = s->next;
        if (s->state != SCHEDULE_WAITING) continue;
        ret[n++] = (struct xpl_schedule_claim){s->row.id, s->row.fence};
        drop(all, s);
    }
    pthread_mutex_unlock(&all->mu);
    return n;
}

size_t xpl_schedules_count(struct xpl_schedules *all) {
    pthread_mutex_lock(&all->mu);
    const size_t n = all->n;
    pthread_mutex_unlock(&all->mu);
    return n;
}
