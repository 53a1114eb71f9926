// run_tools, module_list and generate_cache: routes that look into profiles.
#include <stdlib.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/hlo/hlo_map.h"
#include "base/cleanup.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/http/wait.h"
#include "server/http/xprof.h"

struct module_list {
    xpl_str_t *names; // in the request's arena
    size_t n, room;
};

struct look { // r->data
    struct xpl_snapshot *snap;
    const struct xpl_session *session; // NULL: unknown
    xpl_str_t name;                    // of generate_cache's session
    bool any;                          // a host could be read
    bool enough;                       // the hosts that follow need not be read
    bool unsure;                       // a host may change, or has, without a new generation
    bool gpu;
    struct module_list modules;
    bool tools[64]; // by position in `order`
    struct xpl_error err;
};

// ---- looking ----

static void look_release(struct xpl_http_request *r) {
    struct look *l = r->data;
    xpl_snapshot_unref(l->snap);
    l->snap = NULL;
}

static struct look *look_new(struct xpl_http_request *r) {
    struct look *l = xpl_arena_zalloc(&r->arena, sizeof *l);
    if (!l) return NULL;
    l->snap = xpl_catalogue_get(r->http->parts.catalogue);
    r->data = l;
    r->release = look_release;
    return l;
}

static void source_free(struct xpl_source **s) {
    if (*s) xpl_source_free(*s);
}

// What one host says is added to the look.
typedef xpl_status_t see_fn(struct xpl_http_request *r, const struct xpl_xspace *xs,
                            struct xpl_error *err);

// OK also where the host cannot be read: it says nothing.  Without memory it would, so that is an
// error.
static xpl_status_t look_at(struct xpl_http_request *r, const struct xpl_host *host, see_fn *see,
                            struct xpl_error *err) {
    struct look *const l = r->data;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    XPL_AUTO(source_free) struct xpl_source *source = NULL;
    XPL_AUTO(xpl_profile_close) struct xpl_profile profile = {0};
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_format_limits limits = {.max_bytes = r->http->options.memory_limit};
    struct xpl_xspace *xs = NULL;
    xpl_arena_init(&arena, r->http->options.memory_limit);
    xpl_status_t st = xpl_snapshot_open(l->snap, host, 0, &source, err);
    if (st == XPL_OK)
        st = xpl_profile_open(host->path, xpl_source_bytes(source), &limits, &profile, err);
    if (st == XPL_OK) st = xpl_xspace_open(profile.bytes, &arena, &serial, &xs, err);
    if (st == XPL_OK) {
        l->any = true;
        st = see(r, xs, err);
    }
    if (!source || !xpl_source_is_stable(source) || xpl_source_verify(source, NULL) != XPL_OK ||
        !xpl_fingerprint_eq(xpl_source_fingerprint(source), &host->print))
        l->unsure = true;
    return st == XPL_RESOURCE_EXHAUSTED ? st : XPL_OK;
}

// False with l->err.
static bool look_at_hosts(struct xpl_http_request *r, see_fn *see) {
    struct look *const l = r->data;
    for (size_t i = 0; l->session && !l->enough && i < l->session->n_hosts; i++) {
        struct xpl_error err = {0};
        if (look_at(r, &l->session->hosts[i], see, &err) == XPL_OK) continue;
        l->err = err;
        return false;
    }
    return true;
}

static enum MHD_Result look(struct xpl_http_request *r, void (*work)(struct xpl_http_request *),
                            enum MHD_Result (*finish)(struct xpl_http_request *)) {
    struct look *l = look_new(r);
    if (!l) return xpl_http_busy(r);
    l->session = xpl_http_find_run(r, l->snap);
    if (xpl_http_defer(r, work, finish)) return MHD_YES;
    look_release(r);
    return xpl_http_busy(r);
}

static enum MHD_Result look_failed(struct xpl_http_request *r) {
    const struct look *const l = r->data;
    return r->gone ? MHD_NO
                   : xpl_http_reply_text(r, xpl_http_status_of(l->err.code), "%s", l->err.msg);
}

// Replies with r->body, which holds until the catalogue changes where all that was looked at would
// show there.
static enum MHD_Result looked(struct xpl_http_request *r) {
    struct look *const l = r->data;
    if (r->body) r->body->generation = l->snap->generation;
    r->keep = !l->unsure;
    look_release(r);
    return l->err.code == XPL_OK ? xpl_http_result(r) : look_failed(r);
}

// ---- run_tools ----

// In the order of XProf's tool list.
static const struct listed_tool {
    const char *name;
    enum { ALWAYS, WITH_GPU, WITHOUT_STREAMING } when;
} order[] = {
    {"overview_page", ALWAYS},  {"trace_viewer", WITHOUT_STREAMING}, {"trace_viewer@", ALWAYS},
    {"op_profile", ALWAYS},     {"input_pipeline_analyzer", ALWAYS}, {"kernel_stats", WITH_GPU},
    {"memory_profile", ALWAYS}, {"roofline_model", ALWAYS},          {"framework_op_stats", ALWAYS},
    {"hlo_stats", ALWAYS},
};
enum { N_ORDER = sizeof order / sizeof *order };

static bool have_tool(const char *name) {
    const struct xpl_tool *const t = xpl_tool_find(xpl_str_from(name));
    return t && strcmp(t->name, name) == 0;
}

// The first readable host says which tools there are.
static xpl_status_t see_devices(struct xpl_http_request *r, const struct xpl_xspace *xs,
                                struct xpl_error *err) {
    (void)err;
    struct look *const l = r->data;
    for (uint32_t i = 0; i < xs->n_planes; i++)
        l->gpu = l->gpu || xs->planes[i].kind == XPL_PLANE_GPU;
    l->enough = true;
    return XPL_OK;
}

// No host, no tools.
static void find_tools(struct xpl_http_request *r) {
    struct look *l = r->data;
    if (!look_at_hosts(r, see_devices)) return;
    const bool streaming = have_tool("trace_viewer@");
    for (size_t i = 0; i < N_ORDER; i++)
        l->tools[i] = l->any && have_tool(order[i].name) &&
                      (order[i].when == ALWAYS || (order[i].when == WITH_GPU && l->gpu) ||
                       (order[i].when == WITHOUT_STREAMING && !streaming));
}

static enum MHD_Result tools_found(struct xpl_http_request *r) {
    const struct look *const l = r->data;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, XPL_HTTP_XPROF_MAX_REPLY);
    xpl_buf_putc(&b, '[');
    for (size_t i = 0; i < N_ORDER; i++)
        if (l->tools[i]) xpl_buf_printf(&b, "%s\"%s\"", b.n > 1 ? ", " : "", order[i].name);
    xpl_buf_putc(&b, ']');
    xpl_http_xprof_body(r, &b, "application/json");
    return looked(r);
}

enum MHD_Result xpl_http_run_tools(struct xpl_http_request *r) {
    return look(r, find_tools, tools_found);
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

static xpl_status_t see_modules(struct xpl_http_request *r, const struct xpl_xspace *xs,
                                struct xpl_error *err) {
    struct look *const l = r->data;
    struct xpl_hlo_map *map = NULL;
    XPL_TRY(xpl_hlo_map_new(xs, r->http->options.memory_limit, &map, err));
    size_t n;
    const struct xpl_hlo_program *const p = xpl_hlo_map_programs(map, &n);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        xpl_str_t name;
        ok = xpl_arena_printf(&r->arena, &name, "%.*s(%llu)", XPL_STR_FMT(p[i].name),
                              (unsigned long long)p[i].program_id) &&
             add_module(&l->modules, &r->arena, name);
    }
    xpl_hlo_map_free(map);
    if (!ok) XPL_RETURN_OOM(err, "names of modules");
    return XPL_OK;
}

// The programs of all hosts.
static void find_modules(struct xpl_http_request *r) {
    struct look *const l = r->data;
    if (!look_at_hosts(r, see_modules)) return;
    struct module_list *const m = &l->modules;
    // XProf leaves a file of this name behind where it found no program.
    static const char nothing[] = "NO_MODULE";
    if (m->n) qsort(m->names, m->n, sizeof *m->names, by_text);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, XPL_HTTP_XPROF_MAX_REPLY);
    if (l->any && !m->n) xpl_buf_str(&b, xpl_str_from(nothing));
    for (size_t i = 0; i < m->n; i++) {
        if (i && xpl_str_eq(m->names[i], m->names[i - 1])) continue;
        if (b.n) xpl_buf_putc(&b, ',');
        xpl_buf_str(&b, m->names[i]);
    }
    xpl_http_xprof_body(r, &b, "text/plain");
}

enum MHD_Result xpl_http_module_list(struct xpl_http_request *r) {
    return look(r, find_modules, looked);
}

// ---- generate_cache ----

struct errand { // a question that nobody waits for
    struct xpl_ticket *ticket;
};

static void errand_done(void *arg, const struct xpl_outcome *o) {
    (void)o; // the engine keeps the answer, or the next one who asks gets the error
    struct errand *e = arg;
    if (e->ticket) xpl_ticket_unref(e->ticket);
    xpl_sys_free(e);
}

static void ask_ahead(struct xpl_http *h, const struct look *l, const char *tool) {
    const struct xpl_tool *const t = xpl_tool_find(xpl_str_from(tool));
    const bool one_host = t->hosts == XPL_HOSTS_ONE;
    for (size_t i = 0; i < (one_host ? l->session->n_hosts : 1); i++) {
        struct xpl_request *q = NULL;
        struct errand *e = xpl_sys_alloc(sizeof *e);
        if (!e) return;
        *e = (struct errand){0};
        const struct xpl_request_words words = {.session = l->session->name,
                                                .hosts = &l->session->hosts[i].name,
                                                .n_hosts = one_host,
                                                .tool = xpl_str_from(tool)};
        if (xpl_engine_resolve(h->parts.engine, &words, &q, NULL) == XPL_OK)
            xpl_engine_submit(h->parts.engine, q, errand_done, e, &e->ticket);
        else
            xpl_sys_free(e);
    }
}

static bool wanted(xpl_str_t list, const char *tool) {
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

static enum MHD_Result cache_begun(struct xpl_http_request *r) {
    struct look *l = r->data;
    const xpl_str_t list = xpl_http_arg(r, "tools");
    bool any = false;
    for (size_t i = 0; i < N_ORDER; i++) {
        if (!l->tools[i] || !wanted(list, order[i].name)) continue;
        any = true;
        ask_ahead(r->http, l, order[i].name);
    }
    xpl_str_t name = {0};
    const bool ok = xpl_arena_str(&r->arena, l->name, &name);
    look_release(r);
    if (l->err.code != XPL_OK) return look_failed(r);
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
    struct look *l = look_new(r);
    if (!l) return xpl_http_busy(r);
    l->session = xpl_http_find_session(r, l->snap, &l->name);
    if (l->session && xpl_http_defer(r, find_tools, cache_begun)) return MHD_YES;
    const bool found = l->session != NULL;
    look_release(r);
    return found ? xpl_http_busy(r)
                 : xpl_http_reply_text(r, 404, "No XPlane files found in session_path");
}
