// SPDX-License-Identifier: Apache-2.0
#include "server/engine/joint/joint.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/clock.h"
#include "server/engine/opened.h"

enum {
    AT_ONCE = 4, // of one request: the pool's other places are for others
    BUSY_RETRY_MS = 500
};

struct part {
    struct xpl_joint *joint;
    struct xpl_request *q;        // until it is submitted
    struct xpl_ticket *ticket;    // under the mutex
    struct xpl_tool_data *answer; // referenced
    xpl_str_t session;
};

struct xpl_joint {
    atomic_uint refs; // the asker's, and one of each part that is under way
    struct xpl_engine *engine;
    struct xpl_arena arena; // holds parts and names
    struct xpl_joint_request request;
    struct part *parts;
    pthread_mutex_t mu; // protects what follows
    size_t next, running;
    size_t answer_bytes; // of all answers
    size_t held;         // of --memory-total
    uint64_t since_ns;   // when it began: one time limit for the whole
    bool cancelled, finished;
    struct xpl_warnings warnings;
    struct xpl_joint_outcome outcome;
};

static void free_joint(struct xpl_joint *j) {
    for (size_t i = 0; i < j->request.n; i++) {
        xpl_request_free(j->parts[i].q);
        xpl_ticket_unref(j->parts[i].ticket);
        if (j->parts[i].answer) xpl_object_unref(&j->parts[i].answer->object);
    }
    pthread_mutex_destroy(&j->mu);
    xpl_warnings_fini(&j->warnings);
    xpl_arena_fini(&j->arena);
    xpl_sys_free(j);
}

void xpl_joint_unref(struct xpl_joint *j) {
    if (j && atomic_fetch_sub(&j->refs, 1) == 1) free_joint(j);
}

// ---- the end ----

static bool is_cancelled(struct xpl_joint *j) {
    pthread_mutex_lock(&j->mu);
    const bool ret = j->cancelled;
    pthread_mutex_unlock(&j->mu);
    return ret;
}

static bool is_late(const struct xpl_joint *j) {
    return xpl_clock_ns() > xpl_engine_deadline_ns(j->engine, j->since_ns);
}

static bool is_in_vain(void *arg) {
    return is_cancelled(arg) || is_late(arg);
}

static void render(struct xpl_joint *j, struct xpl_buf *out) {
    struct xpl_joint_outcome *const o = &j->outcome;
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_guarded_exec exec;
    xpl_guarded_exec_init(&exec, &serial, (struct xpl_work_owner){is_in_vain, j}, NULL);
    xpl_bytes_t *const answers = xpl_arena_array(&j->arena, j->request.n, sizeof *answers);
    for (size_t i = 0; answers && i < j->request.n; i++)
        answers[i] = j->parts[i].answer ? xpl_rpc_blob_get(j->parts[i].answer->blob)
                                        : (xpl_bytes_t){(const uint8_t *)"", 0};
    o->code = answers ? j->request.render(j->request.arg, answers, &exec.exec, out, &o->err)
                      : xpl_error_set(&o->err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__,
                                      UINT64_MAX, "out of memory");
    if (o->code == XPL_CANCELLED && !is_cancelled(j))
        o->code = xpl_error_set(&o->err, XPL_DEADLINE_EXCEEDED, __FILE__, __LINE__, UINT64_MAX,
                                XPL_ENGINE_LATE);
    o->out = out;
}

static void add_warnings(struct xpl_joint *j, const struct part *p) {
    for (size_t i = 0; p->answer && i < p->answer->n_warnings; i++) {
        const struct xpl_warning *const w = &p->answer->warnings[i];
        xpl_str_t text = w->text;
        if (w->host.len && !xpl_arena_printf(&j->arena, &text, "%.*s: %.*s", XPL_STR_FMT(w->host),
                                             XPL_STR_FMT(w->text)))
            return;
        xpl_warnings_add(&j->warnings, p->session, text);
    }
}

// Nothing is running: only the caller has the joint.
static void finish(struct xpl_joint *j) {
    struct xpl_buf out = xpl_buf_of(j->request.limit);
    if (j->outcome.code == XPL_OK) render(j, &out);
    const size_t n = j->request.n_needed ? j->request.n_needed : j->request.n;
    for (size_t i = 0; i < n; i++) // in the order of the sessions, not of the answers
        add_warnings(j, &j->parts[i]);
    j->outcome.warnings = xpl_warnings_bytes(&j->warnings);
    j->request.done(j->request.arg, &j->outcome);
    xpl_buf_fini(&out);
    xpl_engine_release(j->engine, j->held);
}

// Whether the session is the cause of the error, and not the daemon or the caller.
static bool is_of_session(xpl_status_t code) {
    return code == XPL_NOT_FOUND || code == XPL_INVALID_ARGUMENT || code == XPL_DATA_LOSS ||
           code == XPL_FAILED_PRECONDITION || code == XPL_ABORTED || code == XPL_UNIMPLEMENTED;
}

static bool may_fail(const struct xpl_joint_request *q, size_t i, xpl_status_t code) {
    return q->failed && i >= q->n_needed && is_of_session(code);
}

// The first failure counts, and names its session.
static void note_failure(struct xpl_joint *j, const struct part *p, const struct xpl_outcome *o) {
    if (j->outcome.code != XPL_OK) return;
    const size_t i = (size_t)(p - j->parts);
    if (may_fail(&j->request, i, o->code)) {
        j->request.failed(j->request.arg, i, &o->err);
        return;
    }
    j->outcome.code = o->code;
    j->outcome.retry_ms = o->retry_ms;
    (void)xpl_error_set(&j->outcome.err, o->code, __FILE__, __LINE__, o->err.offset, "%.*s: %s",
                        XPL_STR_FMT(p->session), o->err.msg);
}

static void note_excess(struct xpl_joint *j, const char *what, int64_t retry_ms) {
    j->outcome.retry_ms = retry_ms;
    j->outcome.code = xpl_error_set(&j->outcome.err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__,
                                    UINT64_MAX, "%s", what);
}

// Answers stay until they are joined: together they may take as much as the result. They count to
// --memory-total twice, encoded and decoded.
static void note_answer(struct xpl_joint *j, struct part *p, struct xpl_tool_data *a) {
    const size_t n = xpl_rpc_blob_get(a->blob).len;
    p->answer = a;
    xpl_object_ref(&a->object);
    j->answer_bytes += n;
    if (j->outcome.code != XPL_OK) return;
    if (j->answer_bytes > j->request.limit)
        note_excess(j, "the answers of the sessions together exceed --memory-limit; request fewer",
                    -1);
    else if (xpl_engine_hold(j->engine, 2 * n))
        j->held += 2 * n;
    else
        note_excess(j,
                    "the answers of the sessions and the requests under way use all of "
                    "--memory-total; try again soon",
                    BUSY_RETRY_MS);
}

// ---- parts ----

static void begin_next(struct xpl_joint *j);

// Whether there is a part to begin: those that failed before have no request.
static bool has_next(struct xpl_joint *j) {
    while (j->next < j->request.n && !j->parts[j->next].q)
        j->next++;
    return j->next < j->request.n;
}

static void on_answer(void *arg, const struct xpl_outcome *o) {
    struct part *const p = arg;
    struct xpl_joint *const j = p->joint;
    pthread_mutex_lock(&j->mu);
    j->running--;
    if (o->code == XPL_OK) {
        note_answer(j, p, o->answer);
    } else {
        note_failure(j, p, o);
    }
    const bool more = j->outcome.code == XPL_OK && has_next(j);
    const bool last = !more && !j->running && !j->finished;
    const bool in_vain = j->outcome.code != XPL_OK && j->running;
    j->finished |= last;
    pthread_mutex_unlock(&j->mu);
    if (more) begin_next(j);
    if (in_vain) xpl_joint_cancel(j); // the answer cannot use the conversions that still run
    if (last) finish(j);
    xpl_joint_unref(j);
}

// The part's reference is on_answer's to give back.
static void begin_next(struct xpl_joint *j) {
    struct xpl_ticket *t = NULL;
    pthread_mutex_lock(&j->mu);
    // Who finishes has the outcome for itself.
    if (j->finished || j->outcome.code != XPL_OK || !has_next(j)) {
        pthread_mutex_unlock(&j->mu);
        return;
    }
    struct part *const p = &j->parts[j->next++];
    struct xpl_request *const q = p->q;
    p->q = NULL;
    j->running++;
    pthread_mutex_unlock(&j->mu);
    atomic_fetch_add(&j->refs, 2); // its own until the end of this function
    xpl_engine_submit(j->engine, q, on_answer, p, &t);
    pthread_mutex_lock(&j->mu);
    p->ticket = t;
    const bool late = j->cancelled;
    pthread_mutex_unlock(&j->mu);
    if (late && t) xpl_engine_cancel(t);
    xpl_joint_unref(j);
}

void xpl_joint_cancel(struct xpl_joint *j) {
    pthread_mutex_lock(&j->mu);
    const bool first = !j->cancelled;
    const size_t begun = j->next;
    j->cancelled = true;
    pthread_mutex_unlock(&j->mu);
    for (size_t i = 0; first && i < begun; i++) {
        pthread_mutex_lock(&j->mu);
        struct xpl_ticket *const t = j->parts[i].ticket;
        pthread_mutex_unlock(&j->mu);
        if (t) xpl_engine_cancel(t);
    }
}

// ---- the beginning ----

// A name such as "A,B" makes a new session, which takes eight times as long for each host.
enum { JOINED_COST = 8 };

static size_t cost_of(const struct xpl_session *s, xpl_str_t name) {
    return s->n_hosts * (xpl_str_has(name, XPL_STR(",")) ? JOINED_COST : 1);
}

static xpl_status_t resolve(struct xpl_joint *j, struct xpl_error *err) {
    const struct xpl_joint_request *const q = &j->request;
    size_t n_failed = 0, n_hosts = 0;
    for (size_t i = 0; i < q->n; i++) {
        struct part *const p = &j->parts[i];
        const struct xpl_request_words words = {.session = q->sessions[i],
                                                .tool = xpl_str_from(q->tool),
                                                .traceparent = q->traceparent,
                                                .strict = true};
        p->joint = j;
        if (!xpl_arena_str(&j->arena, q->sessions[i], &p->session)) XPL_RETURN_OOM(err, "sessions");
        struct xpl_error why = {0};
        const xpl_status_t st = xpl_engine_resolve(j->engine, &words, &p->q, &why);
        if (st == XPL_OK && (n_hosts += cost_of(p->q->session, q->sessions[i])) > XPL_JOINT_HOSTS)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "the sessions have more than %d hosts, the limit of one request, in "
                             "which those of joined sessions count %d times",
                             XPL_JOINT_HOSTS, JOINED_COST);
        if (st == XPL_OK) {
            p->q->since_ns = j->since_ns;
            continue;
        }
        if (!may_fail(q, i, st) || ++n_failed == q->n) {
            if (err) *err = why;
            return st;
        }
        q->failed(q->arg, i, &why);
    }
    return XPL_OK;
}

static struct xpl_joint *joint_new(struct xpl_engine *e, const struct xpl_joint_request *q) {
    struct xpl_joint *const j = xpl_sys_alloc(sizeof *j);
    if (!j) return NULL;
    *j = (struct xpl_joint){
        .engine = e, .request = *q, .since_ns = xpl_clock_ns(), .outcome = {.retry_ms = -1}};
    xpl_arena_init(&j->arena, (size_t)16 << 20);
    j->parts = xpl_arena_zalloc(&j->arena, q->n * sizeof *j->parts);
    if (!j->parts) {
        xpl_sys_free(j);
        return NULL;
    }
    atomic_init(&j->refs, 1);
    xpl_warnings_init(&j->warnings);
    pthread_mutex_init(&j->mu, NULL);
    return j;
}

xpl_status_t xpl_joint_begin(struct xpl_engine *e, const struct xpl_joint_request *q,
                             struct xpl_joint **ret, struct xpl_error *err) {
    *ret = NULL;
    if (!q->n) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no session is named");
    if (q->n > XPL_JOINT_SESSIONS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%zu sessions: at most %d are read together",
                         q->n, XPL_JOINT_SESSIONS);
    struct xpl_joint *const j = joint_new(e, q);
    if (!j) XPL_RETURN_OOM(err, "sessions");
    const xpl_status_t st = resolve(j, err);
    if (st != XPL_OK) {
        free_joint(j);
        return st;
    }
    j->request.sessions = NULL; // the caller's, as the next
    j->request.traceparent = (xpl_str_t){0};
    *ret = j;
    atomic_fetch_add(&j->refs, 1); // the asker may give the other one back while parts begin
    for (size_t i = 0; i < AT_ONCE; i++)
        begin_next(j);
    xpl_joint_unref(j);
    return XPL_OK;
}
