// SPDX-License-Identifier: Apache-2.0
#include "server/capture_jobs/messages.h"

#include "rpc/status.h"

typedef Xplaned__V1__CapturedHost host_msg;

// The numbers of the messages are the enumerations' of capture/, shifted by the unspecified one.
_Static_assert((int)XPLANED__V1__HOST_STATE__HOST_STATE_CONNECTING == XPL_CAPTURE_CONNECTING + 1 &&
                   (int)XPLANED__V1__HOST_STATE__HOST_STATE_STORED == XPL_CAPTURE_STORED + 1 &&
                   (int)XPLANED__V1__HOST_STATE__HOST_STATE_FAILED == XPL_HISTORY_HOST_FAILED &&
                   (int)XPLANED__V1__HOST_STATE__HOST_STATE_CANCELLED == XPL_CAPTURE_CANCELLED + 1,
               "HostState");
_Static_assert((int)XPLANED__V1__CAPTURE__STATE__STATE_RUNNING == XPL_CAPTURED_RUNNING &&
                   (int)XPLANED__V1__CAPTURE__STATE__STATE_CANCELLED == XPL_CAPTURED_CANCELLED &&
                   (int)XPLANED__V1__CAPTURE__STATE__STATE_INTERRUPTED == XPL_HISTORY_INTERRUPTED,
               "Capture.State");

enum { DEFAULT_DURATION_MS = 1000 };

static const char *const *as_list(char **list) {
    return (const char *const *)list;
}

static struct xpl_capture_advanced
advanced_of(const Xplaned__V1__CaptureRequest__AdvancedEntry *e) {
    struct xpl_capture_advanced a = {.key = e->key, .type = XPL_CAPTURE_TEXT, .text = ""};
    const Xplaned__V1__AdvancedValue *const v = e->value;
    switch (v ? v->value_case : XPLANED__V1__ADVANCED_VALUE__VALUE__NOT_SET) {
        case XPLANED__V1__ADVANCED_VALUE__VALUE_STRING_VALUE: a.text = v->string_value; break;
        case XPLANED__V1__ADVANCED_VALUE__VALUE_BOOL_VALUE:
            a.type = XPL_CAPTURE_BOOL;
            a.number = v->bool_value != 0;
            break;
        case XPLANED__V1__ADVANCED_VALUE__VALUE_INT64_VALUE:
            a.type = XPL_CAPTURE_INT;
            a.number = v->int64_value;
            break;
        case XPLANED__V1__ADVANCED_VALUE__VALUE__NOT_SET:
        case _XPLANED__V1__ADVANCED_VALUE__VALUE__CASE_IS_INT_SIZE:
        default: break;
    }
    return a;
}

static int level(uint32_t v) {
    return v < 1000 ? (int)v : 1000;
}

xpl_status_t xpl_capture_plan_of(const Xplaned__V1__CaptureRequest *r, struct xpl_arena *arena,
                                 struct xpl_capture_plan *ret, struct xpl_error *err) {
    if (r->n_host_names && r->n_host_names != r->n_targets)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "%zu host names for %zu targets: give one for each, or none",
                         r->n_host_names, r->n_targets);
    struct xpl_capture_advanced *more = xpl_arena_array(arena, r->n_advanced, sizeof *more);
    if (!more) XPL_RETURN_OOM(err, "capture");
    for (size_t i = 0; i < r->n_advanced; i++)
        more[i] = advanced_of(r->advanced[i]);
    *ret = (struct xpl_capture_plan){
        .size = sizeof *ret,
        .call = XPL_CAPTURE_PROFILE,
        .targets = as_list(r->targets),
        .n_targets = r->n_targets,
        .host_names = r->n_host_names ? as_list(r->host_names) : NULL,
        .session = xpl_str_from(r->session),
        .duration_ms = r->duration_ms ? r->duration_ms : DEFAULT_DURATION_MS,
        .delay_ms = r->delay_ms,
        .host_tracer_level = r->tracers ? level(r->tracers->host) : -1,
        .device_tracer_level = r->tracers ? level(r->tracers->device) : -1,
        .python_tracer_level = r->tracers ? level(r->tracers->python) : -1,
        .advanced = more,
        .n_advanced = r->n_advanced,
        .retries = r->retries,
        .remote_logdir = r->remote_logdir[0] ? r->remote_logdir : NULL,
    };
    return XPL_OK;
}

// Reasons quote servers and paths, cut to size: invalid UTF-8 would make the message unreadable.
static char *text(struct xpl_arena *arena, xpl_str_t s, bool *ok) {
    char *const copy = xpl_arena_alloc(arena, s.len + 1);
    if (copy)
        (void)xpl_rpc_status_text(copy, s.len + 1, s);
    else
        *ok = false;
    return copy;
}

static host_msg **host_list(struct xpl_arena *arena, size_t n) {
    host_msg **list = xpl_arena_array(arena, n, sizeof *list);
    host_msg *all = xpl_arena_array(arena, n, sizeof *all);
    if (!list || !all) return NULL;
    for (size_t i = 0; i < n; i++) {
        list[i] = &all[i];
        xplaned__v1__captured_host__init(list[i]);
    }
    return list;
}

Xplaned__V1__Capture *xpl_capture_jobs_message(const struct xpl_history_capture *c,
                                               struct xpl_arena *arena) {
    Xplaned__V1__Capture *m = xpl_arena_alloc(arena, sizeof *m);
    if (!m) return NULL;
    bool ok = true;
    xplaned__v1__capture__init(m);
    m->id = c->id;
    m->state = (Xplaned__V1__Capture__State)c->state;
    m->session = text(arena, c->session, &ok);
    m->code = c->code;
    m->message = text(arena, c->message, &ok);
    m->begin_unix_ms = c->begin_ms;
    m->end_unix_ms = c->end_ms;
    m->duration_ms = (uint32_t)c->duration_ms;
    m->schedule_id = c->schedule_id;
    if (!(m->hosts = host_list(arena, c->n_hosts))) return NULL;
    m->n_hosts = c->n_hosts;
    for (size_t i = 0; i < c->n_hosts; i++) {
        const struct xpl_history_host *const from = &c->hosts[i];
        host_msg *const h = m->hosts[i];
        h->target = text(arena, from->target, &ok);
        h->state = (Xplaned__V1__HostState)from->state;
        h->host = text(arena, from->host, &ok);
        h->bytes = from->bytes;
        h->code = from->code;
        h->reason = text(arena, from->reason, &ok);
        h->attempts = (uint32_t)from->attempts;
    }
    return ok ? m : NULL;
}

Xplaned__V1__CaptureProgress *xpl_capture_progress_message(uint64_t id,
                                                           const struct xpl_capture_progress *p,
                                                           struct xpl_arena *arena) {
    Xplaned__V1__CaptureProgress *m = xpl_arena_alloc(arena, sizeof *m);
    if (!m) return NULL;
    bool ok = true;
    xplaned__v1__capture_progress__init(m);
    m->id = id;
    m->session = text(arena, xpl_str_from(p->session), &ok);
    m->elapsed_ms = p->elapsed_ms > 0 ? (uint64_t)p->elapsed_ms : 0;
    if (!(m->hosts = host_list(arena, p->n_hosts))) return NULL;
    m->n_hosts = p->n_hosts;
    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct xpl_capture_host *const from = &p->hosts[i];
        host_msg *const h = m->hosts[i];
        h->target = text(arena, xpl_str_from(from->target), &ok);
        h->state = (Xplaned__V1__HostState)(from->state + 1);
        h->host = text(arena, xpl_str_from(from->file.name), &ok);
        h->bytes = from->file.counts.bytes;
        h->code = (int32_t)from->code;
        h->reason = text(arena, xpl_str_from(from->reason), &ok);
        h->attempts = from->attempts;
    }
    return ok ? m : NULL;
}
