// SPDX-License-Identifier: Apache-2.0
// CaptureService: captures, their history, schedules.
#include <stdatomic.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/capture_jobs/messages.h"
#include "server/capture_jobs/schedules.h"
#include "server/engine/pool.h"
#include "server/grpc/services.h"

enum {
    MAX_TASKS = 256,
    DEFAULT_LIMIT = 100,
    MAX_LIMIT = 1000,
    PAUSE_MS = 50,    // between two messages of one stream
    MAX_BACKLOG = 16, // messages that may wait to be read; each has all hosts
};
#define ANSWER_BYTES ((size_t)256 << 20)
#define HISTORY_NS   UINT64_C(1000000000) // between attempts to take it

struct xpl_svc_capture {
    struct xpl_capture_jobs *captures;
    struct xpl_history *history;
    struct xpl_schedules *schedules;
    struct xpl_pool *tasks; // one thread: these calls wait for the disk
    atomic_bool trying;     // to take the history
    uint64_t tried_ns;      // when; on the loop's thread
};

struct xpl_svc_capture *xpl_svc_capture_new(struct xpl_capture_jobs *captures,
                                            struct xpl_history *history,
                                            struct xpl_schedules *schedules) {
    struct xpl_svc_capture *s = xpl_sys_alloc(sizeof *s);
    if (!s) return NULL;
    *s = (struct xpl_svc_capture){.captures = captures,
                                  .history = history,
                                  .schedules = schedules,
                                  .tasks = xpl_pool_new(1, MAX_TASKS)};
    if (s->tasks) return s;
    xpl_sys_free(s);
    return NULL;
}

void xpl_svc_capture_free(struct xpl_svc_capture *s) {
    if (!s) return;
    xpl_pool_free(s->tasks);
    xpl_sys_free(s);
}

// ---- the history ----

// On the thread of the tasks, as it waits for the disk.
static void try_history(void *arg) {
    struct xpl_svc_capture *const s = arg;
    if (xpl_capture_jobs_try_history(s->captures)) xpl_schedules_reload(s->schedules);
    atomic_store(&s->trying, false);
}

void xpl_svc_capture_tick(struct xpl_svc_capture *s) {
    char text[512];
    while (xpl_history_next_notice(s->history, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "capture", "%s", text);
    const uint64_t now = xpl_clock_ns();
    if (xpl_history_is_on(s->history) || now - s->tried_ns < HISTORY_NS ||
        atomic_exchange(&s->trying, true))
        return;
    s->tried_ns = now;
    if (!xpl_pool_submit(s->tasks, try_history, s)) atomic_store(&s->trying, false);
}

// ---- Capture ----

struct stream { // a call's user data
    struct xpl_svc_capture *svc;
    struct xpl_rpc_call *call;
    uint64_t id; // 0: nothing runs
    bool detach;
    // The job's thread:
    uint64_t sent_ns;
    bool pending; // a host moved on, and no message says so yet
};

static void stream_release(void *user) {
    xpl_sys_free(user);
}

static void send_progress(struct stream *s, uint64_t id, const struct xpl_capture_progress *p) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    const Xplaned__V1__CaptureProgress *const m = xpl_capture_progress_message(id, p, &arena);
    if (m) (void)xpl_rpc_send_message(s->call, &m->base);
}

static void on_progress(void *arg, uint64_t id, const struct xpl_capture_progress *p) {
    struct stream *const s = arg;
    const uint64_t now = xpl_clock_ns(), since_ms = (now - s->sent_ns) / 1000000;
    s->pending = s->pending || p->changed < p->n_hosts;
    if (since_ms < (s->pending ? PAUSE_MS : 1000)) return;
    if (xpl_rpc_call_finished(s->call) || xpl_rpc_call_queued(s->call) > MAX_BACKLOG) return;
    s->sent_ns = now;
    s->pending = false;
    send_progress(s, id, p);
}

static void on_done(void *arg, const struct xpl_capture_result *r) {
    struct stream *const s = arg;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    const struct xpl_capture_outcome *const o = r->outcome;
    const struct xpl_capture_progress p = {.hosts = o->hosts,
                                           .n_hosts = o->n_hosts,
                                           .changed = o->n_hosts,
                                           .session = o->session,
                                           .elapsed_ms = r->end_ms - r->begin_ms};
    Xplaned__V1__CaptureProgress *const m =
        r->refused ? NULL : xpl_capture_progress_message(r->id, &p, &arena);
    if (m && (m->capture = xpl_capture_jobs_message(r->record, &arena)) != NULL)
        (void)xpl_rpc_send_message(s->call, &m->base);
    if (r->code == XPL_OK)
        xpl_rpc_finish_ok(s->call);
    else
        xpl_rpc_finish_error(s->call, &r->err);
    xpl_rpc_call_unref(s->call);
}

static void capture(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_capture *const svc = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__capture_request__descriptor, request, &arena, &msg))
        return;
    const Xplaned__V1__CaptureRequest *const q = (const Xplaned__V1__CaptureRequest *)msg;
    struct xpl_capture_plan plan;
    struct xpl_error err = {0};
    struct stream *s = xpl_sys_alloc(sizeof *s);
    if (!s) {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    *s = (struct stream){.svc = svc, .call = c, .detach = q->detach};
    xpl_rpc_call_set_user(c, s, stream_release);
    xpl_rpc_call_ref(c); // on_done's
    const struct xpl_capture_listener l = {xpl_audit_client_of(c), on_progress, on_done, s};
    if (xpl_capture_plan_of(q, &arena, &plan, &err) == XPL_OK &&
        xpl_capture_jobs_start(svc->captures, &plan, NULL, &l, &s->id, &err) == XPL_OK)
        return;
    s->id = 0;
    xpl_rpc_finish_error(c, &err);
    xpl_rpc_call_unref(c);
}

// A client's order: which capture or schedule (0: none), and its result.
static void audit(const char *what, const struct xpl_rpc_call *c, const char *of, uint64_t id,
                  xpl_status_t code, const struct xpl_error *err) {
    struct xpl_log_line l;
    const struct xpl_audit_client client = xpl_audit_client_of(c);
    xpl_audit_begin(&l, what, &client, code, err);
    if (id) xpl_log_int(&l, of, (int64_t)id);
    xpl_log_end(&l);
}

static void capture_cancelled(struct xpl_rpc_call *c, void *service) {
    struct xpl_svc_capture *const svc = service;
    const struct stream *const s = xpl_rpc_call_get_user(c);
    // NOT_FOUND: it has ended.
    if (s && s->id && !s->detach && xpl_capture_jobs_cancel(svc->captures, s->id, NULL) != XPL_OK)
        return;
}

static void cancel_capture(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_capture *const svc = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 16);
    ProtobufCMessage *msg = NULL;
    struct xpl_error err = {0};
    if (!xpl_svc_decode(c, &xplaned__v1__cancel_capture_request__descriptor, request, &arena, &msg))
        return;
    Xplaned__V1__CancelCaptureResponse r;
    xplaned__v1__cancel_capture_response__init(&r);
    const uint64_t id = ((Xplaned__V1__CancelCaptureRequest *)msg)->id;
    const xpl_status_t st = xpl_capture_jobs_cancel(svc->captures, id, &err);
    audit("capture cancelled", c, "capture", id, st, &err);
    if (st == XPL_OK)
        xpl_rpc_finish_message(c, &r.base);
    else
        xpl_rpc_finish_error(c, &err);
}

// ---- what waits for the disk ----

static void answer_later(struct xpl_svc_capture *svc, struct xpl_rpc_call *c, xpl_bytes_t request,
                         xpl_svc_answer_fn answer) {
    xpl_svc_later(svc->tasks, c, request, answer, svc, "too much at once; try again soon");
}

static void answer_list(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_capture *const svc = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(ANSWER_BYTES);
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__list_captures_request__descriptor, request, &arena, &msg))
        return;
    const Xplaned__V1__ListCapturesRequest *const q = (const Xplaned__V1__ListCapturesRequest *)msg;
    const size_t limit = !q->limit ? DEFAULT_LIMIT : q->limit > MAX_LIMIT ? MAX_LIMIT : q->limit;
    struct xpl_history_capture *list;
    size_t n;
    struct xpl_error err = {0};
    if (xpl_history_list(svc->history, q->before_id, limit, &arena, &list, &n, &err) != XPL_OK) {
        xpl_rpc_finish_error(c, &err);
        return;
    }
    Xplaned__V1__ListCapturesResponse r;
    xplaned__v1__list_captures_response__init(&r);
    r.captures = xpl_arena_array(&arena, n, sizeof *r.captures);
    while (r.captures && r.n_captures < n &&
           (list[r.n_captures].state != XPL_HISTORY_RUNNING ||
            xpl_capture_jobs_show(svc->captures, &arena, &list[r.n_captures])) &&
           (r.captures[r.n_captures] = xpl_capture_jobs_message(&list[r.n_captures], &arena)))
        r.n_captures++;
    if (r.n_captures == n)
        xpl_rpc_finish_message(c, &r.base);
    else
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory; ask for fewer captures");
}

// The one schedule, or all (id 0).
static void reply_schedules(struct xpl_svc_capture *svc, struct xpl_rpc_call *c, uint64_t id,
                            struct xpl_arena *arena) {
    Xplaned__V1__ListSchedulesResponse r;
    struct xpl_error err = {0};
    if (xpl_schedules_list(svc->schedules, id, arena, &r, &err) != XPL_OK)
        xpl_rpc_finish_error(c, &err);
    else if (!id)
        xpl_rpc_finish_message(c, &r.base);
    else if (r.n_schedules)
        xpl_rpc_finish_message(c, &r.schedules[0]->base);
    else
        xpl_rpc_finish_status(c, XPL_ABORTED, "the schedule was deleted at once");
}

static void answer_create(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_capture *const svc = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(ANSWER_BYTES);
    ProtobufCMessage *msg = NULL;
    struct xpl_error err = {0};
    uint64_t id = 0;
    if (!xpl_svc_decode(c, &xplaned__v1__create_schedule_request__descriptor, request, &arena,
                        &msg))
        return;
    const xpl_status_t st = xpl_schedules_create(
        svc->schedules, (const Xplaned__V1__CreateScheduleRequest *)msg, &id, &err);
    audit("schedule created", c, "schedule", id, st, &err);
    if (st != XPL_OK)
        xpl_rpc_finish_error(c, &err);
    else
        reply_schedules(svc, c, id, &arena);
}

static void answer_schedules(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_capture *const svc = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(ANSWER_BYTES);
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__list_schedules_request__descriptor, request, &arena, &msg))
        return;
    reply_schedules(svc, c, 0, &arena);
}

static void answer_delete(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_capture *const svc = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(ANSWER_BYTES);
    ProtobufCMessage *msg = NULL;
    struct xpl_error err = {0};
    if (!xpl_svc_decode(c, &xplaned__v1__delete_schedule_request__descriptor, request, &arena,
                        &msg))
        return;
    Xplaned__V1__DeleteScheduleResponse r;
    xplaned__v1__delete_schedule_response__init(&r);
    const uint64_t id = ((Xplaned__V1__DeleteScheduleRequest *)msg)->id;
    const xpl_status_t st = xpl_schedules_delete(svc->schedules, id, &err);
    audit("schedule deleted", c, "schedule", id, st, &err);
    if (st == XPL_OK)
        xpl_rpc_finish_message(c, &r.base);
    else
        xpl_rpc_finish_error(c, &err);
}

static void on_list(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    answer_later(service, c, request, answer_list);
}
static void on_create(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    answer_later(service, c, request, answer_create);
}
static void on_schedules(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    answer_later(service, c, request, answer_schedules);
}
static void on_delete(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    answer_later(service, c, request, answer_delete);
}

void xpl_svc_capture_methods(struct xpl_svc_capture *s,
                             struct xpl_rpc_method ret[XPL_SVC_CAPTURE_METHODS]) {
    static const struct {
        const char *path;
        void (*on_request)(struct xpl_rpc_call *, xpl_bytes_t, void *);
    } table[XPL_SVC_CAPTURE_METHODS] = {
        {"/xplaned.v1.CaptureService/Capture", capture},
        {"/xplaned.v1.CaptureService/ListCaptures", on_list},
        {"/xplaned.v1.CaptureService/CancelCapture", cancel_capture},
        {"/xplaned.v1.CaptureService/CreateSchedule", on_create},
        {"/xplaned.v1.CaptureService/ListSchedules", on_schedules},
        {"/xplaned.v1.CaptureService/DeleteSchedule", on_delete},
    };
    for (size_t i = 0; i < XPL_SVC_CAPTURE_METHODS; i++)
        ret[i] = (struct xpl_rpc_method){
            .path = table[i].path, .on_request = table[i].on_request, .service = s};
    ret[0].on_cancel = capture_cancelled;
}
