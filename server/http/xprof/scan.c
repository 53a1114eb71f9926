// run_tools, module_list and generate_cache: routes that read profiles themselves.
#include <stdlib.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/hlo/hlo_map.h"
#include "base/cleanup.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/http/wait.h"
#include "server/http/xprof/xprof.h"

struct module_list {
    xpl_str_t *names; // in the request's arena
    size_t n, room;
};

struct scan { // r->data
    struct xpl_snapshot *snap;
    const struct xpl_session *session; // NULL: unknown
    xpl_str_t name;                    // of generate_cache's session
    bool any;                          // a host could be read
    bool enough;                       // the hosts that follow need not be read
    bool unsure;                       // a host may change, or has, without a new generation
    bool gpu;
    struct module_list modules;
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

static void source_free(struct xpl_source **s) {
    if (*s) xpl_source_free(*s);
}

// What one host says is added to the scan.
typedef xpl_status_t read_fn(struct xpl_http_request *r, const struct xpl_xspace *xs,
                             struct xpl_error *err);

// OK also where the host cannot be read: it says nothing.  Without memory it would, so that is an
// error.
static xpl_status_t scan_host(struct xpl_http_request *r, const struct xpl_host *host,
                              read_fn *read, struct xpl_error *err) {
    struct scan *const s = r->data;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    XPL_AUTO(source_free) struct xpl_source *source = NULL;
    XPL_AUTO(xpl_profile_close) struct xpl_profile profile = {0};
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_format_limits limits = {.max_bytes = r->http->options.memory_limit};
    struct xpl_xspace *xs = NULL;
    xpl_arena_init(&arena, r->http->options.memory_limit);
    xpl_status_t st = xpl_snapshot_open(s->snap, host, 0, &source, err);
    if (st == XPL_OK)
        st = xpl_profile_open(host->path, xpl_source_bytes(source), &limits, &profile, err);
    if (st == XPL_OK) st = xpl_xspace_open(profile.bytes, &arena, &serial, &xs, err);
    if (st == XPL_OK) {
        s->any = true;
        st = read(r, xs, err);
    }
    if (!source || !xpl_source_is_stable(source) || xpl_source_verify(source, NULL) != XPL_OK ||
        !xpl_fingerprint_eq(xpl_source_fingerprint(source), &host->print))
        s->unsure = true;
    return st == XPL_RESOURCE_EXHAUSTED ? st : XPL_OK;
}

// False with s->err.
static bool scan_hosts(struct xpl_http_request *r, read_fn *read) {
    struct scan *const s = r->data;
    for (size_t i = 0; s->session && !s->enough && i < s->session->n_hosts; i++) {
        struct xpl_error err = {0};
        if (scan_host(r, &s->session->hosts[i], read, &err) == XPL_OK) continue;
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

// The first readable host says which tools there are.
static xpl_status_t read_devices(struct xpl_http_request *r, const struct xpl_xspace *xs,
                                 struct xpl_error *err) {
    (void)err;
    struct scan *const s = r->data;
    for (uint32_t i = 0; i < xs->n_planes; i++)
        s->gpu = s->gpu || xs->planes[i].kind == XPL_PLANE_GPU;
    s->enough = true;
    return XPL_OK;
}

static void scan_devices(struct xpl_http_request *r) {
    (void)scan_hosts(r, read_devices); // a failure is in s->err
}

// Whether XProf's page shows the tool for the session.  No readable host, no tools.
static bool is_shown(const struct scan *s, const struct xpl_tool *t) {
    switch (t->shown) {
        case XPL_SHOWN_NEVER: return false;
        case XPL_SHOWN_ALWAYS: return s->any;
        case XPL_SHOWN_WITH_GPU: return s->any && s->gpu;
        case XPL_SHOWN_WITHOUT_STREAMING: return s->any && !xpl_tool_find(XPL_STR("trace_viewer@"));
    }
    return false;
}

static enum MHD_Result reply_tools(struct xpl_http_request *r) {
    const struct scan *const s = r->data;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, XPL_HTTP_XPROF_MAX_REPLY);
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

static bool add_module(struct module_list *m, struct xpl_arena *arena, xpl_str_t name) {
    if (m->n == m->room) {
        const size_t room = m->room ? m->room * 2 : 64;
        xpl_str_t *more = xpl_arena_array(arena, room, sizeof *more);
        if (!more) return false;
        if (m->n) memcpy(more, m->names, m->n * sizeof *more);
        m->names = more;
        m->room = room;
    }
    m->names[m->n++] = name;
    return true;
}

static xpl_status_t read_modules(struct xpl_http_request *r, const struct xpl_xspace *xs,
                                 struct xpl_error *err) {
    struct scan *const s = r->data;
    struct xpl_hlo_map *map = NULL;
    XPL_TRY(xpl_hlo_map_new(xs, r->http->options.memory_limit, &map, err));
    size_t n;
    const struct xpl_hlo_program *const p = xpl_hlo_map_programs(map, &n);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        xpl_str_t name;
        ok = xpl_arena_printf(&r->arena, &name, "%.*s(%llu)", XPL_STR_FMT(p[i].name),
                              (unsigned long long)p[i].program_id) &&
             add_module(&s->modules, &r->arena, name);
    }
    xpl_hlo_map_free(map);
    if (!ok) XPL_RETURN_OOM(err, "names of modules");
    return XPL_OK;
}

// The programs of all hosts.
static void scan_modules(struct xpl_http_request *r) {
    struct scan *const s = r->data;
    if (!scan_hosts(r, read_modules)) return;
    struct module_list *const m = &s->modules;
    // XProf leaves a file of this name behind where it found no program.
    static const char nothing[] = "NO_MODULE";
    if (m->n) qsort(m->names, m->n, sizeof *m->names, by_text);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, XPL_HTTP_XPROF_MAX_REPLY);
    if (s->any && !m->n) xpl_buf_str(&b, xpl_str_from(nothing));
    for (size_t i = 0; i < m->n; i++) {
        if (i && xpl_str_eq(m->names[i], m->names[i - 1])) continue;
        if (b.n) xpl_buf_putc(&b, ',');
        xpl_buf_str(&b, m->names[i]);
    }
    xpl_http_xprof_body(r, &b, "text/plain");
}

enum MHD_Result xpl_http_module_list(struct xpl_http_request *r) {
    return begin_scan(r, scan_modules, reply_scanned);
}

// ---- generate_cache ----

struct task { // a question that nobody waits for
    struct xpl_ticket *ticket;
};

static void task_done(void *arg, const struct xpl_outcome *o) {
    (void)o; // the engine keeps the answer, or the next one who asks gets the error
    struct task *e = arg;
    if (e->ticket) xpl_ticket_unref(e->ticket);
    xpl_sys_free(e);
}

static void submit_task(struct xpl_http *h, const struct scan *s, const struct xpl_tool *t) {
    const bool one_host = t->hosts == XPL_HOSTS_ONE;
    for (size_t i = 0; i < (one_host ? s->session->n_hosts : 1); i++) {
        struct xpl_request *q = NULL;
        struct task *e = xpl_sys_alloc(sizeof *e);
        if (!e) return;
        *e = (struct task){0};
        const struct xpl_request_words words = {.session = s->session->name,
                                                .hosts = &s->session->hosts[i].name,
                                                .n_hosts = one_host,
                                                .tool = xpl_str_from(t->name)};
        if (xpl_engine_resolve(h->parts.engine, &words, &q, NULL) == XPL_OK)
            xpl_engine_submit(h->parts.engine, q, task_done, e, &e->ticket);
        else
            xpl_sys_free(e);
    }
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
    bool any = false;
    for (const struct xpl_tool *t = NULL; s->err.code == XPL_OK && (t = xpl_tool_next_listed(t));) {
        if (!is_shown(s, t) || !is_in_list(list, t->name)) continue;
        any = true;
        submit_task(r->http, s, t);
    }
    xpl_str_t name = {0};
    const bool ok = xpl_arena_str(&r->arena, s->name, &name);
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
