// SPDX-License-Identifier: Apache-2.0
// Tools' answers as replies: from memory, or when the engine has made them.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/utf8.h"
#include "server/http/csv.h"
#include "server/http/gateway.h"
#include "server/http/known.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/http/wait.h"
#include "server/metrics.h"
#include "server/traceparent.h"

// Warm answers up to this size are compressed on the loop's thread, larger ones by a worker.
enum { SMALL_ANSWER = 32 << 10, MAX_HEADERS = 16 };

struct pending { // r->data
    const struct xpl_http_tool_request *request;
    xpl_str_t tool, session, host;
    size_t n_hosts; // 0: all
    uint64_t generation;
    bool bypass_cache;
    bool cached;                  // by the engine: it may be kept here as well
    struct xpl_tool_data *answer; // from memory, referenced, until the body is made
    struct xpl_error err;
    int64_t retry_ms;
    const char *source;
    uint64_t stage_us[XPL_N_STAGES];
    struct xpl_http_body *warm; // the cached answer of the URI: it says "memory"
};

// ---- headers ----

struct headers {
    struct xpl_arena *arena;
    struct xpl_http_header at[MAX_HEADERS];
    size_t n;
};

static void add_header(struct headers *h, const char *name, xpl_str_t value) {
    if (h->n < MAX_HEADERS) h->at[h->n++] = (struct xpl_http_header){name, value};
}

static void add_stages(struct headers *h, const uint64_t *us) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1024);
    xpl_str_t copy;
    for (int i = 0; i < XPL_N_STAGES; i++)
        if (us[i])
            xpl_buf_printf(&b, "%s%s;dur=%.3f", b.n ? ", " : "", xpl_stage_names[i],
                           (double)us[i] / 1000);
    if (b.n && !b.failed && xpl_arena_str(h->arena, (xpl_str_t){(char *)b.p, b.n}, &copy))
        add_header(h, "Server-Timing", copy);
}

// As XProf names it: tool, run and the last part of the host's name.
static void add_file_name(struct headers *h, const struct xpl_http_request *r,
                          const struct pending *p) {
    xpl_str_t host = p->request->dialect == XPL_DIALECT_XPROF ? xpl_http_arg(r, "host") : p->host;
    for (size_t i = host.len; i > 0; i--)
        if (host.ptr[i - 1] == '-') {
            host = xpl_str_sub(host, i, SIZE_MAX);
            break;
        }
    const xpl_str_t parts[] = {p->request->dialect == XPL_DIALECT_XPROF ? xpl_http_arg(r, "tag")
                                                                        : p->tool,
                               p->session, host};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(2000);
    xpl_buf_str(&b, XPL_STR("attachment; filename=\""));
    const size_t begin = b.n;
    for (size_t k = 0; k < 3; k++) {
        if (!parts[k].len) continue;
        if (b.n > begin) xpl_buf_putc(&b, '_');
        for (size_t i = 0; i < parts[k].len && i < 500; i++) {
            const char c = parts[k].ptr[i];
            const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '_' || c == '-';
            if (!xpl_utf8_inside(c)) // one '_' for each character
                xpl_buf_putc(&b, plain ? c : '_');
        }
    }
    xpl_buf_str(&b, XPL_STR(".csv\""));
    xpl_str_t copy;
    if (!b.failed && xpl_arena_str(h->arena, (xpl_str_t){(char *)b.p, b.n}, &copy))
        add_header(h, MHD_HTTP_HEADER_CONTENT_DISPOSITION, copy);
}

// ---- bodies ----

static struct xpl_http_body *make_body(struct xpl_http_request *r, const struct pending *p,
                                       struct xpl_rpc_blob *bytes, struct xpl_tool_data *a,
                                       const char *source, const struct xpl_http_body *like) {
    struct headers h = {.arena = &r->arena};
    add_header(&h, "Xplaned-Source", xpl_str_from(source));
    if (strcmp(source, "memory") != 0) add_stages(&h, p->stage_us);
    h.n += xpl_http_warnings(&r->arena, a, &h.at[h.n]);
    if (p->request->csv) add_file_name(&h, r, p);
    const bool xprof = p->request->dialect == XPL_DIALECT_XPROF;
    const struct xpl_http_body_options o = {.policy = xprof ? XPL_POLICY_XPROF : XPL_POLICY_API,
                                            .type = p->request->csv ? "text/csv" : a->content_type,
                                            .gzip = r->gzip,
                                            .validators = true,
                                            .headers = h.at,
                                            .n_headers = h.n,
                                            .tool = p->tool,
                                            .session = p->session,
                                            .host = p->host,
                                            .n_hosts = p->n_hosts,
                                            .answer = bytes == a->blob ? a : NULL,
                                            .like = like};
    struct xpl_http_body *b = xpl_http_body_new(bytes, &o);
    if (b) b->generation = p->generation;
    return b;
}

// The answer as CSV.  Takes nothing over; *ret is the caller's.
static xpl_status_t make_csv(struct xpl_http_request *r, const struct pending *p,
                             const struct xpl_tool_data *a, struct xpl_rpc_blob **ret,
                             struct xpl_error *err) {
    if (strcmp(a->content_type, "application/json") != 0)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "CSV format not supported for this tool type");
    const xpl_bytes_t json = xpl_rpc_blob_get(a->blob);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(r->http->options.memory_limit);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(r->http->options.memory_limit);
    XPL_TRY(xpl_http_csv((xpl_str_t){(const char *)json.ptr, json.len},
                         p->request->dialect == XPL_DIALECT_XPROF ? NULL : xpl_tool_find(p->tool),
                         &scratch, &out, err));
    *ret = xpl_rpc_blob_copy((xpl_bytes_t){out.p, out.n});
    if (out.failed || !*ret) XPL_RETURN_OOM(err, "csv");
    return XPL_OK;
}

// Fills r->body, and p->warm where it is another.  On a worker, or for small answers on the loop.
static void build_body(struct xpl_http_request *r, struct xpl_tool_data *a) {
    struct pending *p = r->data;
    struct xpl_rpc_blob *csv = NULL;
    if (p->request->csv && make_csv(r, p, a, &csv, &p->err) != XPL_OK) return;
    struct xpl_rpc_blob *const bytes = csv ? csv : a->blob;
    r->body = make_body(r, p, bytes, a, p->source, NULL);
    if (!r->body)
        (void)xpl_error_set(&p->err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                            "out of memory");
    else if (p->cached && !p->bypass_cache && strcmp(p->source, "memory") == 0)
        r->keep = true;
    else if (p->cached && !p->bypass_cache)
        p->warm = make_body(r, p, bytes, a, "memory", r->body);
    xpl_rpc_blob_unref(csv);
}

// ---- failures ----

static enum MHD_Result reply_failure(struct xpl_http_request *r,
                                     const struct xpl_http_tool_request *a,
                                     const struct xpl_error *err, int64_t retry_ms) {
    if (a->dialect == XPL_DIALECT_API) return xpl_http_reply_api_error(r, err, retry_ms);
    const char *const none = a->csv ? "No Data Found: " : "No Data: ";
    const bool unsuitable = a->csv && err->code == XPL_INVALID_ARGUMENT;
    const bool lost = err->code == XPL_DATA_LOSS || err->code == XPL_FAILED_PRECONDITION ||
                      err->code == XPL_NOT_FOUND;
    char text[300];
    const int n =
        snprintf(text, sizeof text, "%s%s", lost ? none : "", err->msg); // as XProf: no data
    // XProf's answer where a tool has no table is 500.
    return xpl_http_reply(r,
                          lost         ? 404
                          : unsuitable ? 500
                                       : xpl_http_status_of(err->code),
                          XPL_POLICY_XPROF, "text/plain", (xpl_str_t){text, (size_t)n},
                          retry_ms < 0 ? 0 : (unsigned)(retry_ms / 1000 + 1));
}

static void count_request(const struct xpl_http_request *r, const struct pending *p, size_t bytes) {
    xpl_metrics_request(
        r->http->parts.metrics,
        &(struct xpl_request_line){.service = "http",
                                   .tool = p->tool,
                                   .session = p->session,
                                   .n_hosts = p->n_hosts,
                                   .host = p->host,
                                   .code = p->err.code,
                                   .source = p->source,
                                   .bytes = bytes,
                                   .micros = (xpl_clock_ns() - r->began_ns) / 1000,
                                   .traceparent = xpl_http_header(r, XPL_TRACEPARENT),
                                   .stage_us = p->stage_us,
                                   .error = p->err.code == XPL_OK ? NULL : p->err.msg});
}

// ---- flow ----

static void release_pending(struct xpl_http_request *r) {
    struct pending *p = r->data;
    if (p->answer) xpl_object_unref(&p->answer->object);
    if (p->warm) xpl_object_unref(&p->warm->object);
    p->answer = NULL;
    p->warm = NULL;
}

// On the loop: there is a body, or an error.
static enum MHD_Result reply_built(struct xpl_http_request *r) {
    struct pending *p = r->data;
    if (p->warm) xpl_http_remember(r, p->warm);
    release_pending(r);
    count_request(r, p, r->body ? xpl_rpc_blob_get(r->body->bytes[XPL_HTTP_PLAIN]).len : 0);
    if (r->gone) return MHD_NO;
    return p->err.code == XPL_OK ? xpl_http_result(r)
                                 : reply_failure(r, p->request, &p->err, p->retry_ms);
}

static void build_warm(struct xpl_http_request *r) {
    const struct pending *p = r->data;
    build_body(r, p->answer);
}

static void on_answer(void *arg, const struct xpl_outcome *o) {
    struct xpl_http_request *r = arg;
    struct pending *p = r->data;
    p->source = xpl_outcome_source(o);
    p->retry_ms = o->retry_ms;
    p->cached = o->kept;
    memcpy(p->stage_us, o->stage_us, sizeof p->stage_us);
    if (o->code == XPL_OK)
        build_body(r, o->answer);
    else
        p->err = o->err;
    xpl_http_done(r);
}

static struct pending *pending_new(struct xpl_http_request *r,
                                   const struct xpl_http_tool_request *a,
                                   const struct xpl_request *q) {
    struct pending *p = xpl_arena_zalloc(&r->arena, sizeof *p);
    struct xpl_http_tool_request *copy = xpl_arena_zalloc(&r->arena, sizeof *copy);
    if (!p || !copy) return NULL;
    *copy = (struct xpl_http_tool_request){.dialect = a->dialect, .csv = a->csv};
    p->request = copy;
    p->source = "";
    p->retry_ms = -1;
    p->n_hosts = q->all_hosts ? 0 : q->n_hosts;
    p->generation = q->snapshot->generation;
    p->bypass_cache = q->bypass_cache;
    if (!xpl_arena_str(&r->arena, xpl_str_from(q->tool->name), &p->tool) ||
        !xpl_arena_str(&r->arena, q->session->name, &p->session) ||
        (p->n_hosts == 1 && !xpl_arena_str(&r->arena, q->hosts[0]->name, &p->host)))
        return NULL;
    return p;
}

static enum MHD_Result from_memory(struct xpl_http_request *r, struct xpl_tool_data *a) {
    struct pending *p = r->data;
    p->source = "memory";
    p->cached = true;
    p->answer = a;
    if (p->request->csv || xpl_rpc_blob_get(a->blob).len > SMALL_ANSWER) {
        if (xpl_http_defer(r, build_warm, reply_built)) return MHD_YES;
        // No worker is free: a table is too much for the loop, and so is compression.
        if (p->request->csv) return xpl_http_busy(r);
        r->gzip = false;
    }
    build_body(r, a);
    return reply_built(r);
}

enum MHD_Result xpl_http_answer_tool(struct xpl_http_request *r,
                                     const struct xpl_http_tool_request *a) {
    struct xpl_engine *e = r->http->parts.engine;
    struct xpl_request *q = NULL;
    struct xpl_error err = {0};
    const struct xpl_request_words words = {.session = a->session,
                                            .hosts = a->hosts,
                                            .n_hosts = a->n_hosts,
                                            .tool = a->tool,
                                            .options = a->options,
                                            .n_options = a->n_options,
                                            .strict = a->dialect == XPL_DIALECT_API,
                                            .traceparent = xpl_http_header(r, XPL_TRACEPARENT)};
    if (xpl_engine_resolve(e, &words, &q, &err) != XPL_OK) {
        const struct pending p = {.tool = a->tool, .session = a->session, .err = err, .source = ""};
        count_request(r, &p, 0);
        return reply_failure(r, a, &err, -1);
    }
    r->data = pending_new(r, a, q);
    if (!r->data) {
        xpl_request_free(q);
        return xpl_http_busy(r);
    }
    r->release = release_pending;
    struct xpl_tool_data *answer = xpl_engine_lookup(e, q);
    if (answer) {
        xpl_request_free(q);
        return from_memory(r, answer);
    }
    xpl_http_wait(r, reply_built);
    xpl_engine_submit(e, q, on_answer, r, &r->ticket);
    return MHD_YES;
}
