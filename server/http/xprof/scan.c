// SPDX-License-Identifier: Apache-2.0
// run_tools, module_list and generate_cache: routes that list contents of profiles, without a tool.
#include <stdlib.h>
#include <string.h>

#include "analysis/products/values.h"
#include "base/cleanup.h"
#include "server/engine/products.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/http/wait.h"
#include "server/http/xprof/xprof.h"

struct scan { // r->data
    struct xpl_snapshot *snap;
    const struct xpl_session *session; // NULL: unknown
    xpl_str_t name;                    // of generate_cache's session
    bool any;                          // a host could be read
    bool enough;                       // the hosts that follow need not be read
    bool unsure;                       // a host may change, or has, without a new generation
    unsigned facts;                    // of XPL_FACTS_VARYING, those that it has
    xpl_str_t *modules;                // names, in the request's arena
    size_t n_modules, room;
    struct xpl_error err;
};

// ---- scanning ----

static void scan_release(struct xpl_http_request *r) {
    struct scan *s = r->data;
    xpl_snapshot_unref(s->snap);
    s->snap = NULL;
}

static struct scan *scan_new(struct xpl_http_request *r) {
    struct scan *s = xpl_arena_zalloc(&r->arena, sizeof *s);
    if (!s) return NULL;
    s->snap = xpl_catalogue_get(r->http->parts.catalogue);
    r->data = s;
    r->release = scan_release;
    return s;
}

// The client has gone, or the request takes too long.
static bool is_over(void *arg) {
    struct xpl_http_request *const r = arg;
    const uint64_t since_ns = r->began_ns;
    return r->gone || xpl_clock_ns() > xpl_engine_deadline_ns(r->http->parts.engine, since_ns);
}

// The product of a host, referenced; NULL where the host cannot be read: it says nothing.  Fails
// only without memory, where it would have, and without time.
static xpl_status_t get_product(struct xpl_http_request *r, const struct xpl_host *host,
                                const struct xpl_product *product, unsigned variant,
                                struct xpl_product_handle **ret, struct xpl_error *err) {
    struct scan *const s = r->data;
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_stage_times times = {0};
    const struct xpl_product_request q = {
        .product = product, .variant = variant, .snapshot = s->snap, .host = host};
    const struct xpl_build_context ctx = {.exec = &serial, .owner = {is_over, r}};
    *ret = NULL;
    const xpl_status_t st =
        xpl_product_get(xpl_engine_get_products(r->http->parts.engine), &q, &ctx, &times, ret, err);
    if (st != XPL_OK || !(*ret)->stable ||
        !xpl_fingerprint_eq(&(*ret)->fingerprint, &host->fingerprint))
        s->unsure = true;
    if (st == XPL_RESOURCE_EXHAUSTED || st == XPL_CANCELLED) return st;
    if (st != XPL_OK || (*ret)->status == XPL_OK) return XPL_OK;
    xpl_object_unref(&(*ret)->object);
    *ret = NULL;
    return XPL_OK;
}

// Adds what one host says to the scan.
typedef xpl_status_t scan_fn(struct xpl_http_request *r, const struct xpl_host *host,
                             struct xpl_error *err);

// False with s->err.
static bool scan_hosts(struct xpl_http_request *r, scan_fn *scan_host) {
    struct scan *const s = r->data;
    for (size_t i = 0; s->session && !s->enough && i < s->session->n_hosts; i++) {
        struct xpl_error err = {0};
        // After the last host the answer is complete, however late.
        const xpl_status_t st =
            i && is_over(r) ? XPL_CANCELLED : scan_host(r, &s->session->hosts[i], &err);
        if (st == XPL_OK) continue;
        if (st == XPL_CANCELLED) {
            err = (struct xpl_error){0};
            (void)xpl_error_set(&err, XPL_DEADLINE_EXCEEDED, __FILE__, __LINE__, UINT64_MAX, "%s",
                                XPL_ENGINE_LATE);
        }
        s->err = err;
        return false;
    }
    return true;
}

static enum MHD_Result begin_scan(struct xpl_http_request *r,
                                  void (*work)(struct xpl_http_request *),
                                  enum MHD_Result (*finish)(struct xpl_http_request *)) {
    struct scan *s = scan_new(r);
    if (!s) return xpl_http_busy(r);
    s->session = xpl_http_find_run(r, s->snap);
    if (xpl_http_defer(r, work, finish)) return MHD_YES;
    scan_release(r);
    return xpl_http_busy(r);
}

static enum MHD_Result scan_failed(struct xpl_http_request *r) {
    const struct scan *const s = r->data;
    return r->gone ? MHD_NO
                   : xpl_http_reply_text(r, xpl_http_status_of(s->err.code), "%s", s->err.msg);
}

// Replies with r->body, which holds until the catalogue changes where all that was scanned
// would show there.
static enum MHD_Result reply_scanned(struct xpl_http_request *r) {
    struct scan *const s = r->data;
    if (r->body) r->body->generation = s->snap->generation;
    r->keep = !s->unsure;
    scan_release(r);
    return s->err.code == XPL_OK ? xpl_http_result(r) : scan_failed(r);
}

// ---- run_tools ----

// The first readable host says which tools there are.  Its list of modules tells that it is: the
// devices are found without reading further than the planes' names.
static xpl_status_t scan_host_devices(struct xpl_http_request *r, const struct xpl_host *host,
                                      struct xpl_error *err) {
    struct scan *const s = r->data;
    struct xpl_product_handle *modules, *devices;
    XPL_TRY(get_product(r, host, &xpl_product_hlo_modules, 0, &modules, err));
    if (!modules) return XPL_OK;
    if (((const struct xpl_hlo_modules_value *)modules->value)->n) s->facts |= XPL_FACT_PROGRAMS;
    xpl_object_unref(&modules->object);
    XPL_TRY(get_product(r, host, &xpl_product_devices, XPL_DEVICES_SHOWN, &devices, err));
    if (!devices) return XPL_OK;
    s->any = s->enough = true;
    const struct xpl_devices_value *const v = devices->value;
    s->facts |= (v->gpu ? XPL_FACT_KERNELS : 0) | (v->counters ? XPL_FACT_COUNTERS : 0) |
                (v->megascale ? XPL_FACT_MEGASCALE : 0);
    xpl_object_unref(&devices->object);
    return XPL_OK;
}

static void scan_devices(struct xpl_http_request *r) {
    (void)scan_hosts(r, scan_host_devices); // a failure is in s->err
}

// Whether XProf's page shows the tool for the session.  No readable host, no tools.
static bool is_shown(const struct scan *s, const struct xpl_tool *t) {
    if (!s->any || (s->session && !xpl_request_session_feeds(s->session, t)) ||
        t->facts & XPL_FACTS_VARYING & ~s->facts)
        return false;
    return t->shown == XPL_SHOWN_ALWAYS ||
           (t->shown == XPL_SHOWN_WITHOUT_STREAMING && !xpl_tool_find(XPL_STR("trace_viewer@")));
}

static enum MHD_Result reply_tools(struct xpl_http_request *r) {
    const struct scan *const s = r->data;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(XPL_HTTP_XPROF_MAX_REPLY);
    xpl_buf_putc(&b, '[');
    for (const struct xpl_tool *t = NULL; (t = xpl_tool_next_listed(t));)
        if (is_shown(s, t)) xpl_buf_printf(&b, "%s\"%s\"", b.n > 1 ? ", " : "", t->name);
    xpl_buf_putc(&b, ']');
    xpl_http_xprof_body(r, &b, "application/json");
    return reply_scanned(r);
}

enum MHD_Result xpl_http_run_tools(struct xpl_http_request *r) {
    return begin_scan(r, scan_devices, reply_tools);
}

// ---- module_list ----

static int by_text(const void *a, const void *b) {
    return xpl_str_cmp(*(const xpl_str_t *)a, *(const xpl_str_t *)b);
}

static bool add_modules(struct scan *s, struct xpl_arena *arena,
                        const struct xpl_hlo_modules_value *v) {
    if (s->room - s->n_modules < v->n) {
        const size_t room = 2 * s->room + v->n;
        xpl_str_t *const more = xpl_arena_array(arena, room, sizeof *more);
        if (!more) return false;
        if (s->n_modules) memcpy(more, s->modules, s->n_modules * sizeof *more);
        s->modules = more;
        s->room = room;
    }
    for (size_t i = 0; i < v->n; i++)
        if (!xpl_arena_str(arena, v->v[i].label, &s->modules[s->n_modules++])) return false;
    return true;
}

static xpl_status_t scan_host_modules(struct xpl_http_request *r, const struct xpl_host *host,
                                      struct xpl_error *err) {
    struct scan *const s = r->data;
    struct xpl_product_handle *h;
    XPL_TRY(get_product(r, host, &xpl_product_hlo_modules, 0, &h, err));
    if (!h) return XPL_OK;
    s->any = true;
    const bool ok = add_modules(s, &r->arena, h->value);
    xpl_object_unref(&h->object);
    if (!ok) XPL_RETURN_OOM(err, "names of modules");
    return XPL_OK;
}

// The programs of all hosts.
static void scan_modules(struct xpl_http_request *r) {
    struct scan *const s = r->data;
    if (!scan_hosts(r, scan_host_modules)) return;
    // XProf leaves a file of this name behind where it found no program.
    static const char nothing[] = "NO_MODULE";
    if (s->n_modules) qsort(s->modules, s->n_modules, sizeof *s->modules, by_text);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(XPL_HTTP_XPROF_MAX_REPLY);
    if (s->any && !s->n_modules) xpl_buf_str(&b, xpl_str_from(nothing));
    for (size_t i = 0; i < s->n_modules; i++) {
        if (i && xpl_str_eq(s->modules[i], s->modules[i - 1])) continue;
        if (b.n) xpl_buf_putc(&b, ',');
        xpl_buf_str(&b, s->modules[i]);
    }
    xpl_http_xprof_body(r, &b, "text/plain");
}

enum MHD_Result xpl_http_module_list(struct xpl_http_request *r) {
    return begin_scan(r, scan_modules, reply_scanned);
}

// ---- generate_cache ----

// A session's requests without a client, one after the other: the queue has room for others.
struct generation {
    struct xpl_engine *engine;
    struct xpl_snapshot *snap;
    const struct xpl_session *session;
    struct xpl_ticket *ticket; // of the request under way
    size_t at, host;           // the next request: tool and host
    size_t n_tools;
    const struct xpl_tool *tools[];
};

static void generation_free(struct generation *g) {
    xpl_snapshot_unref(g->snap);
    xpl_sys_free(g);
}

static bool submit_next(struct generation *g);

// The engine caches the answer, or the next request gets the error.
static void on_generated(void *arg, const struct xpl_outcome *o) {
    struct generation *const g = arg;
    const bool refused = o->code == XPL_CANCELLED || o->retry_ms >= 0;
    xpl_ticket_unref(g->ticket);
    if (refused || !submit_next(g)) generation_free(g);
}

// False when none is left.  Otherwise on_generated has `g`, and may have freed it.
static bool submit_next(struct generation *g) {
    for (; g->at < g->n_tools; g->at++, g->host = 0) {
        const struct xpl_tool *const t = g->tools[g->at];
        const bool one_host = t->hosts == XPL_HOSTS_ONE;
        while (g->host < (one_host ? g->session->n_hosts : 1)) {
            struct xpl_request *q = NULL;
            const struct xpl_request_words words = {.session = g->session->name,
                                                    .hosts = &g->session->hosts[g->host++].name,
                                                    .n_hosts = one_host,
                                                    .tool = xpl_str_from(t->name)};
            if (xpl_engine_resolve(g->engine, &words, &q, NULL) != XPL_OK) continue;
            q->background = true;
            xpl_engine_submit(g->engine, q, on_generated, g, &g->ticket);
            return true;
        }
    }
    return false;
}

static struct generation *generation_new(struct xpl_http *h, const struct scan *s) {
    size_t n = 0;
    for (const struct xpl_tool *t = NULL; (t = xpl_tool_next_listed(t));)
        n++;
    struct generation *const g = xpl_sys_alloc(sizeof *g + n * sizeof(void *));
    if (g)
        *g = (struct generation){
            .engine = h->parts.engine, .snap = xpl_snapshot_ref(s->snap), .session = s->session};
    return g;
}

static bool is_in_list(xpl_str_t list, const char *tool) {
    if (!list.len) list = XPL_STR("overview_page,trace_viewer@");
    while (list.len) {
        const size_t comma = xpl_str_find(list, XPL_STR(","), 0);
        xpl_str_t one = xpl_str_sub(list, 0, comma);
        while (one.len && one.ptr[0] == ' ')
            one = xpl_str_sub(one, 1, SIZE_MAX);
        while (one.len && one.ptr[one.len - 1] == ' ')
            one.len--;
        if (xpl_str_eq(one, xpl_str_from(tool))) return true;
        list = comma == SIZE_MAX ? (xpl_str_t){0} : xpl_str_sub(list, comma + 1, SIZE_MAX);
    }
    return false;
}

static enum MHD_Result submit_tasks(struct xpl_http_request *r) {
    struct scan *s = r->data;
    const xpl_str_t list = xpl_http_arg(r, "tools");
    struct generation *const g = generation_new(r->http, s);
    for (const struct xpl_tool *t = NULL;
         g && s->err.code == XPL_OK && (t = xpl_tool_next_listed(t));)
        if (is_shown(s, t) && is_in_list(list, t->name)) g->tools[g->n_tools++] = t;
    const bool any = g && g->n_tools;
    if (g && !submit_next(g)) generation_free(g);
    xpl_str_t name = {0};
    const bool ok = g && xpl_arena_str(&r->arena, s->name, &name);
    scan_release(r);
    if (s->err.code != XPL_OK) return scan_failed(r);
    if (r->gone) return MHD_NO;
    if (!ok) return xpl_http_busy(r);
    if (!any)
        return xpl_http_reply_text(
            r, 400, "No valid XPlane tools found or specified for caching in run %.*s.",
            XPL_STR_FMT(name));
    return xpl_http_reply(
        r, 202, XPL_POLICY_XPROF, "application/json",
        XPL_STR("{\"message\": \"Cache generation started\", \"status\": \"ACCEPTED\"}"), 0);
}

enum MHD_Result xpl_http_generate_cache(struct xpl_http_request *r) {
    if (!r->post) return xpl_http_reply_text(r, 405, "Method Not Allowed");
    if (!xpl_http_arg(r, "session_path").len)
        return xpl_http_reply_text(r, 400, "Missing \"session_path\" parameter");
    struct scan *s = scan_new(r);
    if (!s) return xpl_http_busy(r);
    s->session = xpl_http_find_session(r, s->snap, &s->name);
    if (s->session && xpl_http_defer(r, scan_devices, submit_tasks)) return MHD_YES;
    const bool found = s->session != NULL;
    scan_release(r);
    return found ? xpl_http_busy(r)
                 : xpl_http_reply_text(r, 404, "No XPlane files found in session_path");
}
