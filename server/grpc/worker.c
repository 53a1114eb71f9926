// SPDX-License-Identifier: Apache-2.0
// XprofAnalysisWorkerService: xplaned as the worker of an unmodified XProf.  The aggregator names
// one host's file by its path and reads the OpStats from a file that we name in the answer, or, for
// tools of other products, the answer itself; what we do not serve is UNIMPLEMENTED (it then
// computes by itself) or goes to a real worker.
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/tools/tool.h"
#include "base/cleanup.h"
#include "proto/xprof/worker_service.pb-c.h"
#include "rpc/client.h"
#include "rpc/message.h"
#include "server/engine/pool.h"
#include "server/grpc/services.h"
#include "server/metrics.h"
#include "storage/objects/objects.h"
#include "storage/places.h"
#include "storage/store/shared_files.h"

// As XProf 2.24.2 names its own, but for the beginning: those are never ours to remove.
#define FILE_PREFIX "xplaned-"
#define FILE_SUFFIX ".op_stats_v2.pb"

enum { KEEP_S = 600, FALLBACK_TIMEOUT_MS = 1800000, FORWARDS = 8, MAX_FORWARDS = 256 };

static const char method_path[] = "/xprof.pywrap.XprofAnalysisWorkerService/GetProfileData";

struct xpl_svc_worker {
    struct xpl_engine *engine;
    struct xpl_catalogue *catalogue;
    struct xpl_metrics *metrics;
    struct xpl_rpc_channel *fallback; // NULL: none
    struct xpl_pool *forwards;        // threads that wait for it; conversions have others
    char logdir[PATH_MAX], real_logdir[PATH_MAX]; // as configured, made absolute; and resolved
    struct xpl_shared_files *files;               // that aggregators read
    gid_t group;
    char id[HOST_NAME_MAX + 1];
};

// ---- start ----

static xpl_status_t choose_dir(const char *dir, char ret[PATH_MAX], struct xpl_error *err) {
    const char *base = getenv("RUNTIME_DIRECTORY"), *sub = "/worker";
    if (!base) base = getenv("XDG_RUNTIME_DIR"), sub = "/xplaned/worker";
    int n;
    if (dir[0])
        n = snprintf(ret, PATH_MAX, "%s", dir);
    else if (base)
        n = snprintf(ret, PATH_MAX, "%s%s", base, sub);
    else
        n = snprintf(ret, PATH_MAX, "/tmp/xplaned-%u/worker", (unsigned)getuid());
    if (n < 0 || n >= PATH_MAX)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--worker-dir: the path is too long");
    return XPL_OK;
}

static xpl_status_t open_files(struct xpl_svc_worker *w, const char *dir, struct xpl_error *err) {
    char path[PATH_MAX];
    struct xpl_error why = {0};
    XPL_TRY(choose_dir(dir, path, err));
    if (xpl_shared_files_new(path, FILE_PREFIX, FILE_SUFFIX, w->group, &w->files, &why) != XPL_OK)
        XPL_RETURN_ERROR(err, why.code, "--worker-dir %s", why.msg);
    return XPL_OK;
}

static xpl_status_t choose_group(struct xpl_svc_worker *w, const char *name,
                                 struct xpl_error *err) {
    w->group = (gid_t)-1;
    if (!name[0]) return XPL_OK;
    const struct group *g = getgrnam(name);
    if (!g) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--worker-group: no group \"%s\"", name);
    w->group = g->gr_gid;
    return XPL_OK;
}

static xpl_status_t set_logdir(struct xpl_svc_worker *w, const char *logdir,
                               struct xpl_error *err) {
    if (xpl_objects_is_url(logdir) && strlen(logdir) < sizeof w->logdir) {
        (void)strcpy(w->logdir, logdir);
        for (size_t n = strlen(logdir); n > 0 && logdir[n - 1] == '/'; n--)
            w->logdir[n - 1] = 0; // as of a directory that is made absolute
        (void)strcpy(w->real_logdir, w->logdir);
        return XPL_OK;
    }
    if (xpl_place_make_absolute(logdir, w->logdir) && xpl_place_resolve(logdir, w->real_logdir))
        return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--logdir %s: cannot be resolved: %s", logdir,
                     strerror(errno));
}

static xpl_status_t start(struct xpl_svc_worker *w, const struct xpl_svc_worker_options *o,
                          struct xpl_error *err) {
    if (gethostname(w->id, sizeof w->id - 1) != 0) strcpy(w->id, "xplaned");
    XPL_TRY(set_logdir(w, o->logdir, err));
    XPL_TRY(choose_group(w, o->group, err));
    XPL_TRY(open_files(w, o->dir, err));
    if (!o->fallback[0]) return XPL_OK;
    if (!(w->forwards = xpl_pool_new(FORWARDS, MAX_FORWARDS))) XPL_RETURN_OOM(err, "forwarding");
    // All that is forwarded together may have what one request may.
    const struct xpl_rpc_channel_options c = {.size = sizeof c,
                                              .target = o->fallback,
                                              .max_message_bytes =
                                                  xpl_engine_memory_limit(w->engine),
                                              .bounded = true};
    return xpl_rpc_channel_open(&c, &w->fallback, err);
}

xpl_status_t xpl_svc_worker_new(struct xpl_engine *engine, struct xpl_catalogue *catalogue,
                                const struct xpl_svc_worker_options *o, struct xpl_svc_worker **ret,
                                struct xpl_error *err) {
    struct xpl_svc_worker *w = xpl_sys_alloc(sizeof *w);
    if (!w) XPL_RETURN_OOM(err, "worker service");
    memset(w, 0, sizeof *w);
    w->engine = engine;
    w->catalogue = catalogue;
    w->metrics = o->metrics;
    const xpl_status_t st = start(w, o, err);
    if (st == XPL_OK)
        *ret = w;
    else
        xpl_svc_worker_free(w);
    return st;
}

void xpl_svc_worker_free(struct xpl_svc_worker *w) {
    if (!w) return;
    xpl_pool_free(w->forwards);
    xpl_rpc_channel_close(w->fallback);
    xpl_shared_files_free(w->files);
    xpl_sys_free(w);
}

void xpl_svc_worker_tidy(struct xpl_svc_worker *w) {
    xpl_shared_files_sweep(w->files, KEEP_S);
}

gid_t xpl_svc_worker_group(const struct xpl_svc_worker *w) {
    return w->group;
}

// ---- the file named in a request ----

// The part after "LOGDIR/" in `path`, or "".
static xpl_str_t path_below(const char *logdir, xpl_str_t path) {
    xpl_str_t dir = xpl_str_from(logdir);
    if (xpl_str_eq(dir, XPL_STR("/"))) dir.len = 0;
    if (!xpl_str_starts(path, dir) || path.len <= dir.len || path.ptr[dir.len] != '/')
        return (xpl_str_t){0};
    return xpl_str_sub(path, dir.len + 1, SIZE_MAX);
}

static bool find_path(const struct xpl_snapshot *snap, xpl_str_t relative, xpl_str_t *ret_session,
                      xpl_str_t *ret_host) {
    xpl_str_t dir = relative; // without the file's name
    while (dir.len && dir.ptr[dir.len - 1] != '/')
        dir.len--;
    dir = dir.len ? xpl_str_sub(dir, 0, dir.len - 1) : XPL_STR(".");
    for (size_t i = 0; relative.len && i < snap->n_sessions; i++) {
        const struct xpl_session *s = &snap->sessions[i];
        if (!s->n_runs && !xpl_str_eq(s->path, dir)) continue;
        for (size_t h = 0; h < s->n_hosts; h++) {
            if (!xpl_str_eq(s->hosts[h].path, relative)) continue;
            *ret_session = s->name;
            *ret_host = s->hosts[h].name;
            return true;
        }
    }
    return false;
}

// The session and host whose file `path` is; only names that a scan of LOGDIR found count.
static bool find_host(const struct xpl_svc_worker *w, const struct xpl_snapshot *snap,
                      xpl_str_t path, xpl_str_t *ret_session, xpl_str_t *ret_host) {
    return find_path(snap, path_below(w->logdir, path), ret_session, ret_host) ||
           find_path(snap, path_below(w->real_logdir, path), ret_session, ret_host);
}

// ---- requests ----

struct worker_call { // the call's user data
    struct xpl_svc_worker *w;
    struct xpl_rpc_call *call;
    struct xpl_ticket *ticket;
    struct xpl_rpc_cancel *cancel; // of the forwarded call
    char name[128];                // of the answer's file; "": the answer itself is sent
    struct xpl_arena arena;        // holds what follows
    xpl_bytes_t request;           // for the fallback
    xpl_str_t tool, session, host;
};

static void release_call(void *user) {
    struct worker_call *a = user;
    xpl_ticket_unref(a->ticket);
    xpl_rpc_cancel_free(a->cancel);
    xpl_arena_fini(&a->arena);
    xpl_sys_free(a);
}

static uint64_t since_us(int64_t start_ns) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)((int64_t)t.tv_sec * 1000000000 + t.tv_nsec - start_ns) / 1000;
}

// Counts and logs a request that the engine did not get, or that it answered with `o`.
static void count_request(const struct worker_call *a, xpl_status_t code,
                          const struct xpl_outcome *o, const char *source, const char *error) {
    const bool ok = code == XPL_OK && o;
    xpl_metrics_request(a->w->metrics, &(struct xpl_request_line){
                                           .service = "xprof",
                                           .tool = a->tool,
                                           .session = a->session,
                                           .n_hosts = 1,
                                           .host = a->host,
                                           .code = code,
                                           .source = source,
                                           .bytes = ok ? xpl_rpc_blob_get(o->answer->blob).len : 0,
                                           .micros = since_us(xpl_rpc_call_get_start_ns(a->call)),
                                           .stage_us = o ? o->stage_us : NULL,
                                           .traceparent = xpl_svc_traceparent(a->call),
                                           .error = code == XPL_OK ? NULL : error});
}

// Codes as the worker contract has them: a client must not retry permanent errors.
static xpl_status_t contract_code(xpl_status_t code) {
    switch ((int)code) {
        case XPL_DATA_LOSS: return XPL_OUT_OF_RANGE;
        case XPL_NOT_FOUND:
        case XPL_FAILED_PRECONDITION:
        case XPL_PERMISSION_DENIED:
        case XPL_INVALID_ARGUMENT: return XPL_UNIMPLEMENTED;
        default: return code;
    }
}

static void answer_output(struct worker_call *a, const void *bytes, size_t n) {
    Xprof__Pywrap__WorkerProfileDataResponse r;
    xprof__pywrap__worker_profile_data_response__init(&r);
    r.output = (ProtobufCBinaryData){.len = n, .data = (uint8_t *)(uintptr_t)bytes};
    r.worker_id = a->w->id;
    xpl_rpc_finish_message(a->call, &r.base);
}

static void answer_path(struct worker_call *a) {
    struct xpl_shared_files_path text;
    const char *const path = xpl_shared_files_path_of(a->w->files, a->name, &text);
    answer_output(a, path, strlen(path));
}

static void on_done(void *arg, const struct xpl_outcome *o) {
    struct worker_call *a = arg;
    struct xpl_error err = o->err;
    xpl_status_t st = o->code;
    const xpl_bytes_t answer = st == XPL_OK ? xpl_rpc_blob_get(o->answer->blob) : (xpl_bytes_t){0};
    if (st == XPL_OK && a->name[0]) st = xpl_shared_files_put(a->w->files, a->name, answer, &err);
    if (st == XPL_OK && a->name[0])
        answer_path(a);
    else if (st == XPL_OK)
        answer_output(a, answer.ptr, answer.len);
    else
        xpl_rpc_finish_status(a->call, contract_code(st), err.msg);
    count_request(a, st, o, xpl_outcome_source(o), err.msg);
    xpl_rpc_call_unref(a->call);
}

static void on_cancel(struct xpl_rpc_call *c, void *service) {
    (void)service;
    struct worker_call *a = xpl_rpc_call_get_user(c);
    if (a && a->ticket) xpl_engine_cancel(a->ticket);
    if (a && a->cancel) xpl_rpc_cancel_fire(a->cancel);
}

// On a separate thread: calls the real worker and passes its answer on.
static void forward(void *arg) {
    struct worker_call *a = arg;
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    const struct xpl_rpc_call_options o = {
        .size = sizeof o, .timeout_ms = FALLBACK_TIMEOUT_MS, .cancel = a->cancel};
    const xpl_status_t st =
        xpl_rpc_unary(a->w->fallback, method_path, a->request, &o, &reply, &err);
    if (st == XPL_OK)
        xpl_rpc_finish(a->call, reply.bytes, NULL);
    else
        xpl_rpc_finish_status(a->call, st, err.msg);
    xpl_rpc_reply_fini(&reply);
    count_request(a, st, NULL, "fallback", err.msg);
    xpl_rpc_call_unref(a->call);
}

static bool fill_call(struct worker_call *a, xpl_bytes_t request, const char *tool,
                      xpl_str_t session, xpl_str_t host) {
    xpl_str_t raw;
    if (!xpl_arena_str(&a->arena, (xpl_str_t){(const char *)request.ptr, request.len}, &raw) ||
        !xpl_arena_str(&a->arena, xpl_str_from(tool), &a->tool) ||
        !xpl_arena_str(&a->arena, session, &a->session) ||
        !xpl_arena_str(&a->arena, host, &a->host))
        return false;
    a->request = (xpl_bytes_t){(const uint8_t *)raw.ptr, raw.len};
    return true;
}

// The call's state, with a reference to the call; NULL, and the call answered, without memory.
static struct worker_call *new_call(struct xpl_svc_worker *w, struct xpl_rpc_call *c,
                                    xpl_bytes_t request, const char *tool, xpl_str_t session,
                                    xpl_str_t host) {
    struct worker_call *a = xpl_sys_alloc(sizeof *a);
    if (a) {
        *a = (struct worker_call){.w = w, .call = c, .cancel = xpl_rpc_cancel_new()};
        xpl_arena_init(&a->arena, (size_t)16 << 20);
        if (a->cancel && fill_call(a, request, tool, session, host)) {
            xpl_rpc_call_set_user(c, a, release_call);
            xpl_rpc_call_ref(c);
            return a;
        }
        release_call(a);
    }
    xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
    return NULL;
}

static void not_served(struct xpl_svc_worker *w, struct xpl_rpc_call *c, xpl_bytes_t request,
                       const char *tool, const char *why) {
    struct worker_call *a = new_call(w, c, request, tool, (xpl_str_t){0}, (xpl_str_t){0});
    if (!a || (w->fallback && xpl_pool_submit(w->forwards, forward, a))) return;
    const xpl_status_t st = w->fallback ? XPL_RESOURCE_EXHAUSTED : XPL_UNIMPLEMENTED;
    const char *const text = w->fallback ? "too many requests are waiting" : why;
    xpl_rpc_finish_status(c, st, text);
    count_request(a, st, NULL, "", text);
    xpl_rpc_call_unref(c);
}

static bool bypasses_cache(const Xprof__Pywrap__ProfileDataRequest *r) {
    for (size_t i = 0; i < r->n_parameters; i++)
        if (strcmp(r->parameters[i]->key, "use_saved_result") == 0 &&
            strcmp(r->parameters[i]->value, "false") == 0)
            return true;
    return false;
}

// A name that is the same for the same bytes of the same file.
static void name_file(struct worker_call *a, const struct xpl_host *h) {
    (void)snprintf(a->name, sizeof a->name,
                   FILE_PREFIX "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-v%d" FILE_SUFFIX,
                   h->fingerprint.dev, h->fingerprint.ino, h->fingerprint.size,
                   (uint64_t)h->fingerprint.mtime_ns, (int)xpl_product_op_stats.version);
}

// The options of the request, and whether a stored answer may be given.
static struct xpl_option *list_options(const Xprof__Pywrap__ProfileDataRequest *r,
                                       struct xpl_arena *arena, size_t *ret_n) {
    struct xpl_option *const v = xpl_arena_array(arena, r->n_parameters + 1, sizeof *v);
    if (!v) return NULL;
    for (*ret_n = 0; *ret_n < r->n_parameters; ++*ret_n)
        v[*ret_n] = (struct xpl_option){xpl_str_from(r->parameters[*ret_n]->key),
                                        xpl_str_from(r->parameters[*ret_n]->value)};
    v[(*ret_n)++] = (struct xpl_option){XPL_STR("use_saved_result"),
                                        bypasses_cache(r) ? XPL_STR("false") : XPL_STR("true")};
    return v;
}

// What an aggregator asks of one host.
struct worker_request {
    const struct xpl_tool *tool;
    const Xprof__Pywrap__ProfileDataRequest *message;
    xpl_bytes_t raw;
    xpl_str_t session, host;
    struct xpl_arena *arena;
};

static xpl_status_t resolve_request(struct xpl_svc_worker *w, const struct worker_request *r,
                                    xpl_str_t traceparent, struct xpl_request **ret,
                                    struct xpl_error *err) {
    const bool op_stats = r->tool->needs[0] == &xpl_product_op_stats;
    size_t n;
    const struct xpl_option *const options = list_options(r->message, r->arena, &n);
    if (!options) XPL_RETURN_OOM(err, "options");
    // Of tools of OpStats, options are the aggregator's own matter.
    const struct xpl_request_words words = {.session = r->session,
                                            .hosts = &r->host,
                                            .n_hosts = 1,
                                            .row = op_stats ? &xpl_tool_worker_op_stats : r->tool,
                                            .options = op_stats ? &options[n - 1] : options,
                                            .n_options = op_stats ? 1 : n,
                                            .traceparent = traceparent};
    return xpl_engine_resolve(w->engine, &words, ret, err);
}

static void submit_call(struct xpl_svc_worker *w, struct xpl_rpc_call *c,
                        const struct worker_request *r) {
    struct xpl_request *q = NULL;
    struct xpl_error err = {0};
    if (resolve_request(w, r, xpl_svc_traceparent(c), &q, &err) != XPL_OK) {
        xpl_rpc_finish_status(c, contract_code(err.code), err.msg);
        return;
    }
    struct worker_call *a = new_call(w, c, r->raw, r->tool->name, r->session, r->host);
    if (!a) {
        xpl_request_free(q);
        return;
    }
    if (r->tool->needs[0] == &xpl_product_op_stats) name_file(a, q->hosts[0]);
    xpl_engine_submit(w->engine, q, on_done, a, &a->ticket);
}

static void get_profile_data(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_worker *w = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    ProtobufCMessage *msg = NULL;
    struct xpl_error err = {0};
    if (xpl_rpc_message_unpack(&xprof__pywrap__worker_profile_data_request__descriptor, request,
                               &arena, &msg, &err) != XPL_OK) {
        xpl_rpc_finish_error(c, &err);
        return;
    }
    const Xprof__Pywrap__ProfileDataRequest *r =
        ((Xprof__Pywrap__WorkerProfileDataRequest *)msg)->origin_request;
    if (!r) {
        xpl_rpc_finish_status(c, XPL_UNIMPLEMENTED, "no origin_request");
        return;
    }
    const xpl_str_t path = xpl_str_from(r->session_id);
    struct xpl_snapshot *snap = xpl_catalogue_get(w->catalogue);
    struct worker_request q = {.tool = xpl_tool_find_named(xpl_str_from(r->tool_name)),
                               .message = r,
                               .raw = request,
                               .arena = &arena};
    if (!q.tool || !q.tool->worker_served) {
        not_served(w, c, request, r->tool_name, "this tool is not served yet");
    } else if (!find_host(w, snap, path, &q.session, &q.host)) {
        not_served(w, c, request, r->tool_name, "not a profile below --logdir");
    } else {
        submit_call(w, c, &q);
    }
    xpl_snapshot_unref(snap);
}

void xpl_svc_worker_methods(struct xpl_svc_worker *w,
                            struct xpl_rpc_method ret[XPL_SVC_WORKER_METHODS]) {
    ret[0] = (struct xpl_rpc_method){
        .path = method_path, .on_request = get_profile_data, .on_cancel = on_cancel, .service = w};
}
