// SPDX-License-Identifier: Apache-2.0
// XProf's capture_profile: a capture that the browser waits for.

#include "base/json.h"
#include "base/text/parse.h"
#include "rpc/status.h"
#include "server/capture_jobs/captures.h"
#include "server/http/access.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/http/wait.h"
#include "server/roles.h"

enum { MAX_TEXT = 4096 };

// ---- the reply ----

static enum MHD_Result reply_pair(struct xpl_http_request *r, unsigned status, const char *key,
                                  xpl_str_t text) {
    struct xpl_buf b = xpl_buf_of(1 << 16);
    xpl_buf_printf(&b, "{\"%s\": ", key);
    xpl_json_str(&b, text, false);
    xpl_buf_putc(&b, '}');
    const enum MHD_Result got =
        b.failed ? xpl_http_busy(r)
                 : xpl_http_reply(r, status, XPL_POLICY_XPROF, "application/json",
                                  (xpl_str_t){(const char *)b.p, b.n}, 0);
    xpl_buf_fini(&b);
    return got;
}

static enum MHD_Result reply_error(struct xpl_http_request *r, const char *text) {
    return reply_pair(r, 500, "error", xpl_str_from(text));
}

struct outcome { // r->data
    bool ok;
    char text[MAX_TEXT];
};

static enum MHD_Result reply_outcome(struct xpl_http_request *r) {
    const struct outcome *const o = r->data;
    if (r->gone) return MHD_NO;
    return o->ok ? reply_pair(r, 200, "result", xpl_str_from(o->text)) : reply_error(r, o->text);
}

static void on_done(void *arg, const struct xpl_capture_result *c) {
    struct xpl_http_request *const r = arg;
    struct outcome *const o = r->data;
    static const char done[] = "Capture profile successfully. Please refresh.";
    char why[MAX_TEXT - 256];
    xpl_capture_jobs_explain(c, why, sizeof why);
    o->ok = c->code == XPL_OK;
    if (o->ok && why[0])
        (void)snprintf(o->text, sizeof o->text, "%s Not captured: %s", done, why);
    else if (o->ok)
        (void)snprintf(o->text, sizeof o->text, "%s", done);
    else
        (void)snprintf(o->text, sizeof o->text, "%s", why[0] ? why : c->err.msg);
    xpl_http_done(r);
}

static void cancel_capture(struct xpl_http_request *r) {
    // NOT_FOUND: it has ended.
    if (r->capture_id &&
        xpl_capture_jobs_cancel(r->http->parts.captures, r->capture_id, NULL) != XPL_OK)
        r->capture_id = 0;
}

// ---- the request ----

// A whole number from 0 to 2^31-1; `fallback` when it is absent or empty.
static bool int_arg(const struct xpl_http_request *r, const char *key, int fallback, int *ret) {
    const xpl_str_t text = xpl_http_arg(r, key);
    int32_t v = fallback;
    if (text.len && (!xpl_parse_i32(text, &v) || v < 0)) return false;
    *ret = v;
    return true;
}

// Cuts at commas; an address without a port gets `port` (may be empty).  NULL when out of memory.
static const char **split_targets(struct xpl_http_request *r, xpl_str_t list, xpl_str_t port,
                                  size_t *ret_n) {
    const char **all = xpl_arena_array(&r->arena, XPL_CAPTURE_MAX_TARGETS + 1, sizeof *all);
    *ret_n = 0;
    while (all && list.len && *ret_n <= XPL_CAPTURE_MAX_TARGETS) {
        const size_t comma = xpl_str_find(list, XPL_STR(","), 0);
        const xpl_str_t one = xpl_str_strip(xpl_str_sub(list, 0, comma));
        const bool has_port = xpl_str_has(one, XPL_STR(":"));
        xpl_str_t copy;
        list = comma == SIZE_MAX ? (xpl_str_t){0} : xpl_str_sub(list, comma + 1, SIZE_MAX);
        if (!one.len) continue;
        if (!xpl_arena_printf(&r->arena, &copy, "%.*s%s%.*s", XPL_STR_FMT(one),
                              has_port || !port.len ? "" : ":", has_port ? 0 : (int)port.len,
                              port.ptr ? port.ptr : ""))
            return NULL;
        all[(*ret_n)++] = copy.ptr;
    }
    return all;
}

// The port of the first address, for workers that are named without one.
static xpl_str_t port_of(xpl_str_t addresses) {
    const xpl_str_t first = xpl_str_sub(addresses, 0, xpl_str_find(addresses, XPL_STR(","), 0));
    for (size_t i = first.len; i > 0; i--)
        if (first.ptr[i - 1] == ':') return xpl_str_sub(first, i, SIZE_MAX);
    return (xpl_str_t){0};
}

// NULL, or the error.
static const char *plan_of(struct xpl_http_request *r, struct xpl_capture_plan *p) {
    const xpl_str_t address = xpl_http_arg(r, "service_addr"),
                    workers = xpl_http_arg(r, "worker_list"),
                    is_tpu = xpl_http_arg(r, "is_tpu_name");
    int duration, retries, delay;
    *p = (struct xpl_capture_plan){.size = sizeof *p, .call = XPL_CAPTURE_PROFILE};
    if (xpl_str_eq(is_tpu, XPL_STR("true")) || xpl_str_eq(is_tpu, XPL_STR("True")))
        return "is_tpu_name: xplaned asks no cloud for addresses; give service_addr=HOST:PORT of "
               "the TPU hosts";
    if (!int_arg(r, "duration", 1000, &duration) || !int_arg(r, "num_retry", 0, &retries) ||
        !int_arg(r, "delay", 0, &delay) ||
        !int_arg(r, "host_tracer_level", 2, &p->host_tracer_level) ||
        !int_arg(r, "device_tracer_level", 1, &p->device_tracer_level) ||
        !int_arg(r, "python_tracer_level", 0, &p->python_tracer_level))
        return "duration, num_retry, delay and the tracer levels are whole numbers";
    p->duration_ms = duration;
    p->retries = (unsigned)retries;
    p->delay_ms = delay;
    p->session = xpl_http_arg(r, "session"); // only of our page
    p->targets = split_targets(r, workers.len ? workers : address, port_of(address), &p->n_targets);
    if (!p->targets) return "out of memory";
    return p->n_targets ? NULL : "service_addr=HOST:PORT is missing: whom to profile";
}

enum MHD_Result xpl_http_capture(struct xpl_http_request *r) {
    struct xpl_capture_plan plan;
    struct xpl_error err = {0};
    const enum xpl_http_access access = xpl_http_check_begin(r, XPL_METHOD_CAPTURE);
    if (access == XPL_ACCESS_NO_ROLE) return xpl_http_reject(r, access);
    if (access != XPL_ACCESS_OK) {
        r->http->stats.refused_origin++;
        return xpl_http_reply_text(r, 403,
                                   "captures are begun from this server's own pages; programs use "
                                   "POST, or send the header \"" XPL_HTTP_REQUEST_HEADER ": 1\"");
    }
    const char *const wrong = plan_of(r, &plan);
    if (wrong) return reply_error(r, wrong);
    r->data = xpl_arena_zalloc(&r->arena, sizeof(struct outcome));
    if (!r->data) return xpl_http_busy(r);
    const struct xpl_capture_listener l = {
        .client = xpl_http_audit_client(r), .done = on_done, .arg = r};
    if (xpl_capture_jobs_start(r->http->parts.captures, &plan, NULL, &l, &r->capture_id, &err) !=
        XPL_OK) {
        r->capture_id = 0;
        return reply_error(r, err.msg);
    }
    r->cancel = cancel_capture;
    xpl_http_wait(r, reply_outcome); // the loop handles its end, so not before
    return MHD_YES;
}
