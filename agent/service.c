// SPDX-License-Identifier: Apache-2.0
#include "agent/service.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/collect.h"
#include "agent/output.h"
#include "agent/pytorch/collect.h"
#include "agent/pytorch/serving.h"
#include "agent/record.h"
#include "agent/xspace_writer.h"
#include "analysis/wire/writer.h"
#include "base/log.h"
#include "proto/tensorflow/profiler_request.pb-c.h"
#include "rpc/message.h"

// A ProfileResponse is one protobuf message: 2 GiB, with room for its head.
#define MAX_XSPACE ((size_t)INT32_MAX - 64)
enum {
    REQUEST_MEMORY = 8 << 20,
    MAX_DURATION_MS = 3600000,
    RESPONSE_EMPTY = 7,
    RESPONSE_XSPACE = 8
};

typedef Tensorflow__ProfileRequest request_t;

struct job {
    struct xpl_rpc_call *call;
    struct xpl_arena memory; // of the request
    const request_t *request;
    bool of_pytorch;
    struct xpl_collect_options collect; // of CUDA programs
    struct xpl_pytorch_options pytorch; // of PyTorch's processes
    char host[256];
};

struct xpl_agent_service {
    struct xpl_agent_service_options opt;
    pthread_mutex_t mu;
    pthread_t thread;
    bool has_thread, busy, stopping; // under mu
    struct xpl_rpc_call *running;    // under mu: to know whose cancellation it is
    char session[256];               // under mu
    struct job job;                  // the thread's, until it has been joined
    atomic_int state;                // enum xpl_collect_state
    int wake;
};

// ---- the capture's thread ----

static void answer_empty(struct xpl_rpc_call *call) {
    static const uint8_t empty[] = {RESPONSE_EMPTY << 3, 1};
    xpl_rpc_finish(call, (xpl_bytes_t){empty, sizeof empty}, NULL);
}

static void answer_bytes(struct xpl_rpc_call *call, xpl_bytes_t head, struct xpl_buf *body) {
    size_t n = 0;
    uint8_t *const p = xpl_buf_take(body, &n);
    struct xpl_rpc_blob *const blob = p ? xpl_rpc_blob_take(p, n) : NULL;
    if (blob)
        xpl_rpc_finish(call, head, blob);
    else
        xpl_rpc_finish_status(call, XPL_RESOURCE_EXHAUSTED, "capture: out of memory");
    if (!blob) xpl_sys_free(p);
    xpl_rpc_blob_unref(blob);
}

static void answer_xspace(struct xpl_rpc_call *call, struct xpl_buf *xspace) {
    uint8_t bytes[16];
    const uint8_t *const end =
        xpl_varint_put(xpl_varint_put(bytes, RESPONSE_XSPACE << 3 | 2), xspace->n);
    answer_bytes(call, (xpl_bytes_t){bytes, (size_t)(end - bytes)}, xspace);
}

static const char *host_name(const request_t *q, char *ret, size_t size) {
    if (q->opts && q->opts->override_hostname && *q->opts->override_hostname)
        return q->opts->override_hostname;
    if (q->host_name && *q->host_name) return q->host_name;
    if (gethostname(ret, size) != 0) snprintf(ret, size, "localhost");
    ret[size - 1] = 0;
    return ret;
}

// Lets the next capture begin.  Called before the answer is sent, so that its receiver finds the
// service free.  (Beginning waits for this thread, which has little left to do.)
static void release(struct xpl_agent_service *s) {
    pthread_mutex_lock(&s->mu);
    s->busy = false;
    s->running = NULL;
    pthread_mutex_unlock(&s->mu);
}

static xpl_status_t deliver(struct xpl_agent_service *s, struct xpl_buf *xspace, bool is_empty,
                            struct xpl_error *err) {
    struct job *const j = &s->job;
    const request_t *const q = j->request;
    char name[256];
    if (is_empty) {
        release(s);
        answer_empty(j->call);
    } else if (q->emit_xspace) {
        release(s);
        answer_xspace(j->call, xspace);
    } else {
        XPL_TRY(xpl_agent_write_file(q->repository_root, q->session_id,
                                     host_name(q, name, sizeof name),
                                     (xpl_bytes_t){xspace->p, xspace->n}, err));
        release(s);
        xpl_rpc_finish(j->call, (xpl_bytes_t){0}, NULL); // an empty message
    }
    return XPL_OK;
}

static xpl_status_t convert(struct xpl_agent_service *s, const struct xpl_collection *c,
                            struct xpl_arena *a, struct xpl_error *err) {
    struct xpl_agent_process *const p = xpl_arena_zalloc(a, (c->n + 1) * sizeof *p);
    struct xpl_agent_result result;
    struct xpl_buf xspace;
    char name[256];
    if (!p) XPL_RETURN_OOM(err, "capture");
    for (size_t i = 0; i < c->n; i++) {
        p[i].records = (xpl_bytes_t){c->v[i].bytes.p, c->v[i].bytes.n};
        p[i].note = xpl_str_from(c->v[i].note);
    }
    xpl_buf_init(&xspace, MAX_XSPACE);
    const char *const host = host_name(s->job.request, name, sizeof name);
    xpl_status_t st = xpl_agent_write_xspace(p, c->n, xpl_str_from(host), a, &xspace, &result, err);
    if (st == XPL_OK) {
        xpl_log(XPL_LOG_INFO, "capture",
                "captured processes=%zu device_events=%llu host_events=%llu dropped=%llu bytes=%zu",
                c->n, (unsigned long long)result.device_events,
                (unsigned long long)result.host_events, (unsigned long long)result.dropped,
                xspace.n);
        st = deliver(s, &xspace, !result.device_events && !result.host_events, err);
    }
    xpl_buf_fini(&xspace);
    return st;
}

static xpl_status_t capture_cuda(struct xpl_agent_service *s, struct xpl_error *err) {
    struct xpl_collection c = {0};
    struct xpl_arena a;
    // The events in memory are up to four times the records.
    xpl_arena_init(&a, s->opt.max_bytes * 4 + (64 << 20));
    xpl_status_t st = xpl_collect(&s->job.collect, &a, &c, err);
    if (st == XPL_OK) st = convert(s, &c, &a, err);
    xpl_collection_fini(&c);
    xpl_arena_fini(&a);
    return st;
}

static xpl_status_t capture_pytorch(struct xpl_agent_service *s, struct xpl_error *err) {
    struct xpl_buf traces;
    xpl_buf_init(&traces, s->opt.max_bytes < MAX_XSPACE ? s->opt.max_bytes : MAX_XSPACE);
    const struct xpl_pytorch_options *const o = &s->job.pytorch;
    const xpl_status_t st =
        s->opt.serving ? xpl_pytorch_serve(s->opt.serving, o->start_ns, o->request.duration_ms,
                                           o->state, o->wake, &traces, err)
                       : xpl_pytorch_collect(s->opt.pytorch, o, &traces, err);
    if (st == XPL_OK) {
        release(s);
        answer_bytes(s->job.call, (xpl_bytes_t){0}, &traces);
    }
    xpl_buf_fini(&traces);
    return st;
}

static void *capture_main(void *arg) {
    struct xpl_agent_service *const s = arg;
    struct job *const j = &s->job;
    struct xpl_error err = {0};
    const xpl_status_t st = j->of_pytorch ? capture_pytorch(s, &err) : capture_cuda(s, &err);
    if (st != XPL_OK) {
        xpl_log(XPL_LOG_INFO, "capture", "failed: %s", err.msg);
        release(s);
        xpl_rpc_finish_error(j->call, &err);
    }
    xpl_arena_fini(&j->memory);
    xpl_rpc_call_unref(j->call);
    return NULL;
}

static void signal_state(struct xpl_agent_service *s, enum xpl_collect_state state) {
    const uint64_t one = 1;
    int run = XPL_COLLECT_RUN;
    if (state == XPL_COLLECT_CANCEL)
        atomic_store(&s->state, state);
    else
        atomic_compare_exchange_strong(&s->state, &run, state);
    if (write(s->wake, &one, sizeof one) < 0) return; // it checks by itself within a second
}

// ---- calls ----

typedef Tensorflow__ProfileOptions__AdvancedConfigValue value_t;

// The entry of that name in advanced_configuration; NULL without one of that type.
static const value_t *advanced(const request_t *q, const char *key, unsigned value_case) {
    const Tensorflow__ProfileOptions *const o = q->opts;
    const value_t *v = NULL;
    for (size_t i = 0; i < o->n_advanced_configuration; i++)
        if (strcmp(o->advanced_configuration[i]->key, key) == 0)
            v = o->advanced_configuration[i]->value;
    return v && (unsigned)v->value_case == value_case ? v : NULL;
}

static bool flag(const request_t *q, const char *key, bool otherwise) {
    const value_t *const v =
        advanced(q, key, TENSORFLOW__PROFILE_OPTIONS__ADVANCED_CONFIG_VALUE__VALUE_BOOL_VALUE);
    return v ? v->bool_value : otherwise;
}

// A number from 0 on; others are 0.
static uint32_t count_of(const request_t *q, const char *key) {
    const value_t *const v =
        advanced(q, key, TENSORFLOW__PROFILE_OPTIONS__ADVANCED_CONFIG_VALUE__VALUE_INT64_VALUE);
    return v && v->int64_value > 0 && v->int64_value <= INT32_MAX ? (uint32_t)v->int64_value : 0;
}

static uint32_t wanted_options(const request_t *q) {
    uint32_t v = XPL_AGENT_UNIFIED | XPL_AGENT_OVERHEAD;
    if (flag(q, "gpu_enable_nvtx_tracking", true)) v |= XPL_AGENT_NVTX;
    if (!flag(q, "gpu_enable_cupti_activity_graph_trace", true)) v |= XPL_AGENT_GRAPH_NODES;
    if (q->opts->host_tracer_level >= 1) v |= XPL_AGENT_DRIVER_API;
    if (q->opts->host_tracer_level >= 2) v |= XPL_AGENT_RUNTIME_API;
    return v;
}

static void set_pytorch(struct xpl_agent_service *s, const request_t *q) {
    struct job *const j = &s->job;
    const value_t *const id = advanced(
        q, "pytorch_job", TENSORFLOW__PROFILE_OPTIONS__ADVANCED_CONFIG_VALUE__VALUE_INT64_VALUE);
    const bool stack = q->opts->python_tracer_level > 0;
    if (gethostname(j->host, sizeof j->host) != 0) snprintf(j->host, sizeof j->host, "localhost");
    j->host[sizeof j->host - 1] = 0;
    j->pytorch =
        (struct xpl_pytorch_options){.size = sizeof j->pytorch,
                                     .directory = s->opt.directory,
                                     .host = j->host,
                                     .start_ns = q->opts->start_timestamp_ns,
                                     .request = {.duration_ms = q->opts->duration_ms,
                                                 .iterations = count_of(q, "pytorch_iterations"),
                                                 .round_up = count_of(q, "pytorch_round_up"),
                                                 .shapes = q->opts->host_tracer_level >= 2,
                                                 .stack = stack,
                                                 .modules = stack,
                                                 .memory = flag(q, "pytorch_memory", false),
                                                 .flops = flag(q, "pytorch_flops", false)},
                                     .job = id ? id->int64_value : 0,
                                     .any_job = !id,
                                     .state = &s->state,
                                     .wake = s->wake};
}

static bool asks_for_pytorch(const request_t *q) {
    for (size_t i = 0; i < q->n_tools; i++)
        if (strcmp(q->tools[i], "pytorch") == 0) return true;
    return false;
}

static xpl_status_t check_request(const struct xpl_agent_service *s, const request_t *q,
                                  struct xpl_error *err) {
    if (q->opts->duration_ms > MAX_DURATION_MS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "duration_ms is at most %d", MAX_DURATION_MS);
    if (asks_for_pytorch(q) && !s->opt.pytorch && !s->opt.serving)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "this xplaned-agent was started without --pytorch or --serving");
    if (!q->emit_xspace && (!q->repository_root[0] || !q->session_id[0]))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "either emit_xspace, or repository_root and session_id must be set");
    return XPL_OK;
}

static xpl_status_t parse_request(const struct xpl_agent_service *s, struct xpl_arena *a,
                                  xpl_bytes_t bytes, const request_t **ret, struct xpl_error *err) {
    ProtobufCMessage *m = NULL;
    XPL_TRY(xpl_rpc_message_unpack(&tensorflow__profile_request__descriptor, bytes, a, &m, err));
    *ret = (const request_t *)m;
    if ((*ret)->opts) XPL_TRY(check_request(s, *ret, err));
    return XPL_OK;
}

// Under s->mu.
static bool begin_capture(struct xpl_agent_service *s, struct xpl_rpc_call *c,
                          struct xpl_arena *memory, const request_t *q) {
    uint64_t drained;
    if (s->has_thread) pthread_join(s->thread, NULL);
    s->has_thread = false;
    if (read(s->wake, &drained, sizeof drained) < 0) drained = 0;
    atomic_store(&s->state, XPL_COLLECT_RUN);
    s->job =
        (struct job){.call = c, .memory = *memory, .request = q, .of_pytorch = asks_for_pytorch(q)};
    set_pytorch(s, q);
    s->job.collect = (struct xpl_collect_options){.size = sizeof s->job.collect,
                                                  .directory = s->opt.directory,
                                                  .start_ns = q->opts->start_timestamp_ns,
                                                  .duration_ms = q->opts->duration_ms,
                                                  .options = wanted_options(q),
                                                  .buffers = s->opt.buffers,
                                                  .max_bytes = s->opt.max_bytes,
                                                  .state = &s->state,
                                                  .wake = s->wake};
    snprintf(s->session, sizeof s->session, "%s", q->session_id);
    s->busy = true;
    s->running = c;
    xpl_rpc_call_ref(c);
    xpl_log(XPL_LOG_INFO, "capture", "begun");
    if (pthread_create(&s->thread, NULL, capture_main, s) == 0) return s->has_thread = true;
    s->busy = false;
    s->running = NULL;
    xpl_rpc_call_unref(c);
    return false;
}

// As the servers in JAX and TensorFlow: only opts.duration_ms counts, and without it, or with
// device_tracer_level 0, there is nothing to record.
static void on_profile(struct xpl_rpc_call *c, xpl_bytes_t bytes, void *service) {
    struct xpl_agent_service *const s = service;
    const request_t *q = NULL;
    struct xpl_error err = {0};
    struct xpl_arena memory;
    xpl_arena_init(&memory, REQUEST_MEMORY);
    if (parse_request(s, &memory, bytes, &q, &err) != XPL_OK) {
        xpl_rpc_finish_error(c, &err);
        xpl_arena_fini(&memory);
        return;
    }
    if (!q->opts || !q->opts->duration_ms || !q->opts->device_tracer_level) {
        answer_empty(c);
        xpl_arena_fini(&memory);
        return;
    }
    pthread_mutex_lock(&s->mu);
    const bool free_to_go = !s->busy && !s->stopping;
    const bool begun = free_to_go && begin_capture(s, c, &memory, q);
    pthread_mutex_unlock(&s->mu);
    if (begun) return;
    xpl_arena_fini(&memory);
    xpl_rpc_finish_status(c, free_to_go ? XPL_RESOURCE_EXHAUSTED : XPL_INTERNAL,
                          free_to_go ? "no thread for the capture"
                                     : "Another profiling session active.");
}

static void on_profile_cancelled(struct xpl_rpc_call *c, void *service) {
    struct xpl_agent_service *const s = service;
    pthread_mutex_lock(&s->mu);
    if (s->running == c) signal_state(s, XPL_COLLECT_CANCEL);
    pthread_mutex_unlock(&s->mu);
}

// Ends the session of that id early, with its data.  Unlike the servers in JAX and TensorFlow it
// does not remember ids that are not running.
static void on_terminate(struct xpl_rpc_call *c, xpl_bytes_t bytes, void *service) {
    struct xpl_agent_service *const s = service;
    struct xpl_error err = {0};
    struct xpl_arena a;
    ProtobufCMessage *m = NULL;
    xpl_arena_init(&a, 1 << 20);
    if (xpl_rpc_message_unpack(&tensorflow__terminate_request__descriptor, bytes, &a, &m, &err) !=
        XPL_OK) {
        xpl_rpc_finish_error(c, &err);
    } else {
        const char *const id = ((const Tensorflow__TerminateRequest *)m)->session_id;
        pthread_mutex_lock(&s->mu);
        if (s->busy && strcmp(id, s->session) == 0) signal_state(s, XPL_COLLECT_FINISH);
        pthread_mutex_unlock(&s->mu);
        xpl_rpc_finish(c, (xpl_bytes_t){0}, NULL);
    }
    xpl_arena_fini(&a);
}

static void on_unimplemented(struct xpl_rpc_call *c, xpl_bytes_t bytes, void *service) {
    (void)bytes, (void)service;
    xpl_rpc_finish_status(c, XPL_UNIMPLEMENTED,
                          "xplaned-agent captures with Profile; it has no monitoring and no "
                          "continuous mode");
}

void xpl_agent_service_get_methods(struct xpl_agent_service *s,
                                   struct xpl_rpc_method ret[XPL_AGENT_METHODS]) {
    static const char *const others[] = {"/tensorflow.ProfilerService/Monitor",
                                         "/tensorflow.ProfilerService/StartContinuousProfiling",
                                         "/tensorflow.ProfilerService/StopContinuousProfiling",
                                         "/tensorflow.ProfilerService/GetSnapshot"};
    ret[0] = (struct xpl_rpc_method){.path = "/tensorflow.ProfilerService/Profile",
                                     .on_request = on_profile,
                                     .on_cancel = on_profile_cancelled,
                                     .service = s};
    ret[1] = (struct xpl_rpc_method){
        .path = "/tensorflow.ProfilerService/Terminate", .on_request = on_terminate, .service = s};
    for (size_t i = 0; i < 4; i++)
        ret[2 + i] = (struct xpl_rpc_method){
            .path = others[i], .on_request = on_unimplemented, .service = s};
}

// ---- its life ----

xpl_status_t xpl_agent_service_new(const struct xpl_agent_service_options *opt,
                                   struct xpl_agent_service **ret, struct xpl_error *err) {
    struct xpl_agent_service *const s = xpl_sys_alloc(sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "service");
    *s = (struct xpl_agent_service){.opt = *opt, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (s->wake < 0) {
        xpl_sys_free(s);
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "no file descriptor left");
    }
    pthread_mutex_init(&s->mu, NULL);
    *ret = s;
    return XPL_OK;
}

void xpl_agent_service_stop(struct xpl_agent_service *s) {
    pthread_mutex_lock(&s->mu);
    s->stopping = true;
    if (s->busy) signal_state(s, XPL_COLLECT_FINISH);
    const bool join = s->has_thread;
    s->has_thread = false;
    pthread_mutex_unlock(&s->mu);
    if (join) pthread_join(s->thread, NULL);
}

void xpl_agent_service_free(struct xpl_agent_service *s) {
    if (!s) return;
    close(s->wake);
    pthread_mutex_destroy(&s->mu);
    xpl_sys_free(s);
}
