// SPDX-License-Identifier: Apache-2.0
// Captures without a daemon: the public structs around capture/.
#include "capture/capture.h"

#include <string.h>

#include "base/text/parse.h"
#include "client/impl.h"

static struct xpl_capture_advanced advanced_of(const char *key, const char *value) {
    struct xpl_capture_advanced a = {.key = key, .type = XPL_CAPTURE_TEXT, .text = value};
    if (!value) return a; // the plan's check refuses it
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
        a.type = XPL_CAPTURE_BOOL;
        a.number = value[0] == 't';
    } else if (xpl_parse_int(xpl_str_from(value), INT64_MIN, INT64_MAX, &a.number)) {
        a.type = XPL_CAPTURE_INT;
    }
    return a;
}

static struct xpl_capture_plan plan_of(const xpl_capture_request *r, const xpl_client_options *o,
                                       const struct xpl_capture_advanced *advanced) {
    return (struct xpl_capture_plan){
        .size = sizeof(struct xpl_capture_plan),
        .targets = r->targets,
        .n_targets = r->n_targets,
        .host_names = r->host_names,
        .session = r->session ? xpl_str_from(r->session) : (xpl_str_t){0},
        .duration_ms = r->duration_ms ? r->duration_ms : 1000,
        .delay_ms = r->delay_ms,
        .host_tracer_level = r->host_tracer_level,
        .device_tracer_level = r->device_tracer_level,
        .python_tracer_level = r->python_tracer_level,
        .advanced = advanced,
        .n_advanced = r->n_advanced,
        .retries = r->retries,
        .connect_timeout_ms = r->connect_timeout_ms,
        .answer_timeout_ms = r->answer_timeout_ms,
        .remote_logdir = r->remote_logdir,
        .tls = o->tls_roots || o->tls_cert,
        .ca_path = o->tls_roots,
        .cert_path = o->tls_cert,
        .key_path = o->tls_key,
        .server_name = o->tls_name,
        .token = o->token ? xpl_str_from(o->token) : (xpl_str_t){0},
    };
}

struct relay {
    const xpl_capture_request *request;
    xpl_captured_host *hosts; // as many as targets
    atomic_bool cancel;
};

static xpl_capture_status status_of(const struct relay *r, const struct xpl_capture_host *hosts,
                                    size_t n) {
    size_t n_stored = 0;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_capture_host *const h = &hosts[i];
        r->hosts[i] = (xpl_captured_host){
            .target = h->target,
            .state = xpl_capture_state_name(h->state),
            .host = h->file.name,
            .reason = h->reason,
            .code = (int)h->code,
            .bytes = h->file.counts.bytes,
            .attempts = h->attempts,
            .events = h->file.counts.events,
            .start_unix_ns = h->start_ns,
        };
        n_stored += h->state == XPL_CAPTURE_STORED;
    }
    return (xpl_capture_status){.hosts = r->hosts, .n_hosts = n, .n_stored = n_stored};
}

static void on_progress(void *ctx, const struct xpl_capture_progress *p) {
    struct relay *const r = ctx;
    const xpl_capture_request *const q = r->request;
    if (q->progress && p->changed < p->n_hosts) {
        xpl_capture_status s = status_of(r, p->hosts, p->n_hosts);
        s.session = p->session;
        s.elapsed_ms = p->elapsed_ms;
        q->progress(q->arg, &s);
    }
    if (q->cancelled && q->cancelled(q->arg)) atomic_store(&r->cancel, true);
}

// The last call: the outcome of all hosts.
static void tell_end(const struct relay *r, const struct xpl_capture_plan *plan,
                     const struct xpl_capture_outcome *o) {
    struct xpl_buf b;
    if (!r->request->progress || o->n_hosts == 0) return;
    xpl_buf_init(&b, (size_t)64 << 20);
    xpl_capture_json(plan, o, &b);
    xpl_buf_putc(&b, '\0');
    xpl_capture_status s = status_of(r, o->hosts, o->n_hosts);
    s.session = o->session;
    s.elapsed_ms = (o->end_ns - o->begin_ns) / 1000000;
    s.over = 1;
    s.json = b.failed ? NULL : (const char *)b.p;
    r->request->progress(r->request->arg, &s);
    xpl_buf_fini(&b);
}

static xpl_status_t run_capture(const char *logdir, const xpl_client_options *o,
                                const xpl_capture_request *q, struct xpl_arena *arena,
                                struct xpl_error *err) {
    if (q->n_targets > XPL_CAPTURE_MAX_TARGETS || q->n_advanced > XPL_CAPTURE_MAX_ADVANCED)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "at most %d targets and %d advanced options",
                         XPL_CAPTURE_MAX_TARGETS, XPL_CAPTURE_MAX_ADVANCED);
    struct xpl_capture_advanced *const advanced =
        xpl_arena_array(arena, q->n_advanced, sizeof *advanced);
    struct relay relay = {.request = q,
                          .hosts = xpl_arena_array(arena, q->n_targets, sizeof *relay.hosts)};
    if (!advanced || !relay.hosts) XPL_RETURN_OOM(err, "capture");
    for (size_t i = 0; i < q->n_advanced; i++)
        advanced[i] = advanced_of(q->advanced[2 * i], q->advanced[2 * i + 1]);
    const struct xpl_capture_plan plan = plan_of(q, o, advanced);
    struct xpl_capture_outcome outcome;
    const xpl_status_t st =
        xpl_capture_run(&plan, logdir, &relay.cancel, on_progress, &relay, &outcome, err);
    tell_end(&relay, &plan, &outcome);
    xpl_capture_outcome_fini(&outcome);
    return st;
}

int xpl_capture_direct(const char *logdir, const xpl_client_options *channel,
                       const xpl_capture_request *given, xpl_result *result) {
    const xpl_capture_request request = xpl_client_capture_request(given);
    xpl_client_options options = {0};
    struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    struct xpl_error err = {0};
    if (channel)
        memcpy(&options, channel, channel->size < sizeof options ? channel->size : sizeof options);
    const xpl_status_t st = run_capture(logdir, &options, &request, &arena, &err);
    xpl_arena_fini(&arena);
    return xpl_client_result(result, st, &err, 0);
}
