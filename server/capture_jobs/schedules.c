// SPDX-License-Identifier: Apache-2.0
#include "server/capture_jobs/schedules.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analysis/formats/format.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "rpc/message.h"
#include "server/capture_jobs/messages.h"
#include "storage/sessions/layout.h"
#include "storage/sessions/removal.h"

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
    SCHEDULE_DELETED,   // goes when its capture is over
};

struct schedule {
    struct schedule *next;
    struct xpl_schedules *all;
    struct xpl_arena arena; // the request
    const request_msg *request;
    struct xpl_capture_plan plan;
    struct xpl_history_schedule row;
    int64_t try_ms; // when it is tried next: row.next_ms, or later while its hosts are busy
    enum schedule_state state;
    uint64_t capture_id; // of the capture that runs
    bool recording;      // continuous: its servers record
    bool hand_over;      // it stops recording, because somebody captures one of its hosts
};

struct xpl_schedules {
    struct xpl_capture_jobs *captures;
    struct xpl_history *history;
    const char *logdir;
    struct xpl_objects *objects; // NULL: sessions are in logdir
    pthread_mutex_t mu;          // protects the list, and what changes in its schedules
    struct schedule *list;
    size_t n;
};

static int64_t now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

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
    return check(s->request, &s->plan, err);
}

static struct schedule *new_schedule(struct xpl_schedules *all) {
    struct schedule *s = xpl_sys_alloc(sizeof *s);
    if (!s) return NULL;
    *s = (struct schedule){.all = all};
    xpl_arena_init(&s->arena, 4 * MAX_REQUEST);
    return s;
}

// The caller holds the mutex, or is the only one yet.
static void append(struct xpl_schedules *all, struct schedule *s) {
    struct schedule **at = &all->list;
    while (*at)
        at = &(*at)->next;
    *at = s;
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

// Reads the schedules of the history that are not here yet.
static bool load(struct xpl_schedules *all) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, (size_t)XPL_SCHEDULES_MAX * MAX_REQUEST * 2);
    struct xpl_history_schedule *rows;
    size_t n;
    struct xpl_error err = {0};
    if (xpl_history_schedules(all->history, &arena, &rows, &n, &err) != XPL_OK)
        xpl_log(XPL_LOG_ERROR, "capture", "schedules cannot be read: %s", err.msg);
    for (size_t i = 0; i < n; i++) {
        if (is_known(all, rows[i].id)) continue;
        struct schedule *s = new_schedule(all);
        if (!s) return false;
        s->row = rows[i];
        s->try_ms = s->row.next_ms;
        struct xpl_error why = {0};
        if (decode(s, rows[i].request, &why) == XPL_OK) {
            append(all, s);
            continue;
        }
        xpl_log(XPL_LOG_ERROR, "capture", "schedule %" PRIu64 " is left out: %s", rows[i].id,
                why.msg);
        free_schedule(s);
    }
    return true;
}

// ---- hosts that are recorded all the time ----

static bool has_target(const struct schedule *s, const char *target) {
    for (size_t i = 0; i < s->plan.n_targets; i++)
        if (xpl_capture_same_target(s->plan.targets[i], target)) return true;
    return false;
}

// The continuous schedule that records the target, or begins to; 0: none.  What it has recorded is
// fetched and its servers are stopped; its next turn begins them again.
static uint64_t hand_over(void *arg, const char *target) {
    struct xpl_schedules *const all = arg;
    uint64_t id = 0;
    pthread_mutex_lock(&all->mu);
    for (struct schedule *s = all->list; s && !id; s = s->next) {
        if (!s->request->continuous || s->state == SCHEDULE_DELETED) continue;
        if ((!s->recording && s->state != SCHEDULE_CAPTURING) || !has_target(s, target)) continue;
        id = s->row.id;
        s->try_ms = s->hand_over ? s->try_ms : 0; // at once
        s->hand_over = true;
    }
    pthread_mutex_unlock(&all->mu);
    return id;
}

struct xpl_schedules *xpl_schedules_new(struct xpl_capture_jobs *captures,
                                        struct xpl_history *history, const char *logdir,
                                        struct xpl_objects *objects) {
    struct xpl_schedules *all = xpl_sys_alloc(sizeof *all);
    if (!all) return NULL;
    *all = (struct xpl_schedules){
        .captures = captures, .history = history, .logdir = logdir, .objects = objects};
    pthread_mutex_init(&all->mu, NULL);
    const struct xpl_capture_recorder recorder = {hand_over, all};
    xpl_capture_jobs_set_recorder(captures, &recorder);
    if (load(all)) return all;
    xpl_schedules_free(all);
    return NULL;
}

void xpl_schedules_reload(struct xpl_schedules *all) {
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

// Whether there are profiles that others added, or are just writing: the schedule does not remove
// them.
static bool has_others(const struct xpl_schedules *all, const char *path, uint64_t n_hosts) {
    return xpl_session_count_files(all->logdir, path, xpl_format_match, NULL) > n_hosts;
}

// Removes one of the schedule's sessions, and forgets it unless that has to be tried again.
static void remove_session(struct xpl_schedules *all, const struct schedule *s,
                           const struct xpl_history_session *one) {
    struct xpl_session_path buf;
    struct xpl_error err = {0};
    const char *const path = xpl_session_path(one->name, &buf);
    const struct xpl_session_made made = {one->n_hosts, one->made_ms};
    const xpl_status_t st =
        all->objects ? xpl_session_remove_objects(all->objects, path, xpl_format_match, &made, &err)
        : has_others(all, path, one->n_hosts)
            ? xpl_error_set(&err, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                            "%.120s has profiles of others; it is left alone", path)
            : xpl_session_remove(all->logdir, path, xpl_format_match, one->dev, one->ino, &err);
    if (st == XPL_OK)
        xpl_log(XPL_LOG_INFO, "capture", "schedule %" PRIu64 ": an old session was removed",
                s->row.id);
    else if (st != XPL_NOT_FOUND)
        xpl_log(XPL_LOG_WARN, "capture", "schedule %" PRIu64 ": %s", s->row.id, err.msg);
    // What cannot be removed for now is tried again.
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
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, MAX_SESSIONS_BYTES);
    struct xpl_history_session *list;
    size_t n;
    struct xpl_error err = {0};
    if (xpl_history_sessions(all->history, s->row.id, &arena, &list, &n, &err) != XPL_OK) {
        xpl_log(XPL_LOG_WARN, "capture", "%s", err.msg);
        return;
    }
    const int64_t now = now_ms();
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
    const int64_t now = now_ms();
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
    if (xpl_capture_jobs_start(all->captures, &p, s->row.id, l, NULL, &err) == XPL_OK) return true;
    xpl_log(XPL_LOG_WARN, "capture", "schedule %" PRIu64 ": its servers go on recording: %s",
            s->row.id, err.msg);
    return false;
}

static void stop_for_good(struct xpl_schedules *all, const struct schedule *s) {
    const struct xpl_capture_listener l = {.done = stop_done};
    (void)stop_recording(all, s, &l);
}

// A turn is over, or the stop behind it.  The caller holds the mutex.
static void end_turn(struct xpl_schedules *all, struct schedule *s) {
    if (s->state == SCHEDULE_DELETED) {
        if (s->request->continuous) stop_for_good(all, s);
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
    s->try_ms = now_ms() + HANDED_OVER_MS;
    end_turn(all, s);
    pthread_mutex_unlock(&all->mu);
}

static void on_done(void *arg, const struct xpl_capture_result *r) {
    struct schedule *const s = arg;
    struct xpl_schedules *const all = s->all;
    remove_old_sessions(all, s);
    pthread_mutex_lock(&all->mu);
    assert(s->state != SCHEDULE_WAITING);
    plan_next(s, r);
    const struct xpl_history_schedule row = s->row;
    const bool deleted = s->state == SCHEDULE_DELETED;
    pthread_mutex_unlock(&all->mu);
    struct xpl_error err = {0};
    if (!deleted && xpl_history_set_schedule(all->history, &row, &err) != XPL_OK)
        xpl_log(XPL_LOG_WARN, "capture", "schedule %" PRIu64 ": %s", row.id, err.msg);
    pthread_mutex_lock(&all->mu);
    // What was recorded until now is stored; then the servers are stopped.
    const struct xpl_capture_listener l = {.done = handed_over, .arg = s};
    const bool stops = s->hand_over && s->state != SCHEDULE_DELETED;
    if (stops) s->try_ms = now_ms() + BUSY_RETRY_MS; // should it not work
    if (!stops || !stop_recording(all, s, &l)) end_turn(all, s);
    pthread_mutex_unlock(&all->mu);
}

static struct xpl_capture_plan plan_of(const struct schedule *s, char *name, size_t size) {
    struct xpl_capture_plan p = s->plan;
    char at[XPL_SESSION_WRITER_NAME_SIZE];
    if (s->request->continuous)
        p.call = s->recording ? XPL_CAPTURE_SNAPSHOT : XPL_CAPTURE_CONTINUOUS;
    if (p.session.len) {
        xpl_session_writer_name(at, now_ms() / 1000);
        const int n = snprintf(name, size, "%.*s_%s", XPL_STR_FMT(p.session), at);
        if (n > 0 && (size_t)n < size) p.session = (xpl_str_t){name, (size_t)n};
    }
    return p;
}

// Starts the schedule's capture.  The caller holds the mutex.
static void begin_turn(struct xpl_schedules *all, struct schedule *s, int64_t now) {
    char name[2 * XPL_SESSION_WRITER_NAME_SIZE];
    const struct xpl_capture_plan p = plan_of(s, name, sizeof name);
    const struct xpl_capture_listener l = {.done = on_done, .arg = s};
    struct xpl_error err = {0};
    const xpl_status_t st =
        xpl_capture_jobs_start(all->captures, &p, s->row.id, &l, &s->capture_id, &err);
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

void xpl_schedules_tick(struct xpl_schedules *all) {
    const int64_t now = now_ms();
    if (pthread_mutex_trylock(&all->mu) != 0)
        return; // another thread writes; the next tick comes soon
    for (struct schedule *s = all->list; s; s = s->next)
        if (s->state == SCHEDULE_WAITING && s->try_ms <= now) begin_turn(all, s, now);
    pthread_mutex_unlock(&all->mu);
}

// ---- the service's side ----

xpl_status_t xpl_schedules_create(struct xpl_schedules *all, const request_msg *r, uint64_t *ret_id,
                                  struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, MAX_REQUEST);
    xpl_rpc_message_put(&b, &r->base);
    if (b.failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "the schedule is longer than 1 MiB");
    XPL_TRY(xpl_capture_jobs_check_enabled(all->captures, err));
    struct schedule *s = new_schedule(all);
    if (!s) XPL_RETURN_OOM(err, "schedule");
    xpl_status_t st = decode(s, (xpl_bytes_t){b.p, b.n}, err);
    s->row.created_ms = s->row.next_ms = s->try_ms = now_ms();
    pthread_mutex_lock(&all->mu);
    if (st == XPL_OK && all->n >= XPL_SCHEDULES_MAX)
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "there are %d schedules already; delete one", (int)XPL_SCHEDULES_MAX);
    if (st == XPL_OK) st = xpl_history_add_schedule(all->history, &s->row, &s->row.id, err);
    if (st == XPL_OK) {
        *ret_id = s->row.id;
        append(all, s);
    }
    pthread_mutex_unlock(&all->mu);
    if (st != XPL_OK) free_schedule(s);
    return st;
}

xpl_status_t xpl_schedules_delete(struct xpl_schedules *all, uint64_t id, struct xpl_error *err) {
    pthread_mutex_lock(&all->mu);
    struct schedule *s = all->list;
    while (s && (s->row.id != id || s->state == SCHEDULE_DELETED))
        s = s->next;
    xpl_status_t st = XPL_OK;
    if (!s)
        st = xpl_error_set(err, XPL_NOT_FOUND, __FILE__, __LINE__, UINT64_MAX,
                           "there is no schedule %" PRIu64, id);
    else
        st = xpl_history_delete_schedule(all->history, id, err);
    if (st == XPL_OK) {
        if (s->state == SCHEDULE_CAPTURING) {
            s->state = SCHEDULE_DELETED;
            if (xpl_capture_jobs_cancel(all->captures, s->capture_id, NULL) != XPL_OK)
                xpl_log(XPL_LOG_DEBUG, "capture", "its capture is over already");
        } else {
            if (s->request->continuous) stop_for_good(all, s);
            drop(all, s);
        }
    }
    pthread_mutex_unlock(&all->mu);
    return st;
}

static xpl_status_t describe(struct xpl_schedules *all, const struct schedule *s,
                             struct xpl_arena *arena, Xplaned__V1__Schedule *m,
                             struct xpl_error *err) {
    ProtobufCMessage *request = NULL;
    struct xpl_history_session *list;
    size_t n;
    xplaned__v1__schedule__init(m);
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__create_schedule_request__descriptor,
                                   s->row.request, arena, &request, err));
    XPL_TRY(xpl_history_sessions(all->history, s->row.id, arena, &list, &n, err));
    m->id = s->row.id;
    m->request = (request_msg *)request;
    m->created_unix_ms = s->row.created_ms;
    m->next_unix_ms = s->row.next_ms;
    m->last_capture_id = s->row.last_capture_id;
    m->sessions = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        m->bytes += list[i].bytes;
    return XPL_OK;
}

xpl_status_t xpl_schedules_list(struct xpl_schedules *all, uint64_t id, struct xpl_arena *arena,
                                Xplaned__V1__ListSchedulesResponse *ret, struct xpl_error *err) {
    xplaned__v1__list_schedules_response__init(ret);
    xpl_status_t st = XPL_OK;
    pthread_mutex_lock(&all->mu);
    Xplaned__V1__Schedule *each = xpl_arena_array(arena, all->n, sizeof *each);
    ret->schedules = xpl_arena_array(arena, all->n, sizeof *ret->schedules);
    if (!each || !ret->schedules)
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "out of memory");
    for (struct schedule *s = all->list; st == XPL_OK && s; s = s->next) {
        if (s->state == SCHEDULE_DELETED || (id && s->row.id != id)) continue;
        // As bytes of the arena: the request is decoded anew, because schedules may go.
        const xpl_bytes_t raw = s->row.request;
        uint8_t *copy = xpl_arena_alloc(arena, raw.len);
        if (!copy) {
            st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                               "out of memory");
            break;
        }
        if (raw.len) memcpy(copy, raw.ptr, raw.len);
        struct schedule view = *s;
        view.row.request = (xpl_bytes_t){copy, raw.len};
        st = describe(all, &view, arena, &each[ret->n_schedules], err);
        ret->schedules[ret->n_schedules] = &each[ret->n_schedules];
        ret->n_schedules++;
    }
    pthread_mutex_unlock(&all->mu);
    return st;
}
