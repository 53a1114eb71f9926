// SPDX-License-Identifier: Apache-2.0
// pod_viewer: for each step and core how its time divides into nine kinds, as JSON of XProf's
// PodViewerDatabase with every field (XProf: op_stats_to_pod_stats.cc, op_stats_to_pod_viewer.cc).
// The times are those of the time breakdown, as in all views; XProf's with xprof_exact.
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/breakdown/breakdown.h"
#include "analysis/opstats/combine/combine.h"
#include "analysis/opstats/opstats.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/opstats/steps/timespan.h"
#include "analysis/tools/input_pipeline/input_pipeline.h"
#include "analysis/tools/lib/op_record.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json.h"

// The kinds by their numbers in the answer.
enum event {
    DEVICE_COMPUTE = 1,
    DEVICE_TO_DEVICE,
    COLLECTIVE,
    HOST_COMPUTE,
    KERNEL_LAUNCH,
    INPUT,
    OUTPUT,
    COMPILATION,
    OTHER,
    N_EVENTS
};
static const char *const kEventNames[N_EVENTS] = {
    [DEVICE_COMPUTE] = "Device compute",
    [DEVICE_TO_DEVICE] = "Device to device",
    [COLLECTIVE] = "Device collective communication",
    [HOST_COMPUTE] = "Host compute",
    [KERNEL_LAUNCH] = "Kernel launch",
    [INPUT] = "Input",
    [OUTPUT] = "Output",
    [COMPILATION] = "Compilation",
    [OTHER] = "All others",
};

static void put(struct xpl_buf *b, const char *z) {
    xpl_buf_str(b, xpl_str_from(z));
}

static void put_text(struct xpl_buf *b, const char *key, xpl_str_t s) {
    put(b, key);
    xpl_json_str(b, s, true);
}

static void put_microseconds(struct xpl_buf *b, const char *key, uint64_t ps) {
    put(b, key);
    xpl_json_proto_double(b, xpl_pico_to_micro(ps));
}

// ---- times of a core ----

// Steps of GPUs and CPUs have times by kinds of spans.  0: shown nowhere.
static enum event event_of_type(int32_t type) {
    static const struct {
        enum xpl_span_type type;
        enum event event;
    } kinds[] = {
        {XPL_SPAN_UNKNOWN_TIME, OTHER},
        {XPL_SPAN_HOST_COMPUTE, HOST_COMPUTE},
        {XPL_SPAN_HOST_COMPILE, COMPILATION},
        {XPL_SPAN_HOST_TO_DEVICE, INPUT},
        {XPL_SPAN_HOST_PREPARE, KERNEL_LAUNCH},
        {XPL_SPAN_DEVICE_COLLECTIVES, COLLECTIVE},
        {XPL_SPAN_HOST_WAIT_INPUT, INPUT},
        {XPL_SPAN_DEVICE_TO_DEVICE, DEVICE_TO_DEVICE},
        {XPL_SPAN_DEVICE_TO_HOST, OUTPUT},
        {XPL_SPAN_DEVICE_COMPUTE_32, DEVICE_COMPUTE},
        {XPL_SPAN_DEVICE_COMPUTE_16, DEVICE_COMPUTE},
        {XPL_SPAN_DEVICE_WAIT_DEVICE, DEVICE_TO_DEVICE},
        {XPL_SPAN_DEVICE_WAIT_HOST, INPUT},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((int32_t)kinds[i].type == type) return kinds[i].event;
    return 0;
}

// Steps of TPUs have times by categories of ops; those that are not named here compute. With a
// SparseCoreV0 infeed that took time, its parts are not input (XProf: profile_time_breakdown.cc).
static enum event event_of_category(xpl_str_t category, bool has_infeed_of_scv0) {
    static const struct {
        const char *category;
        enum event event;
    } kinds[] = {
        {"infeed", INPUT},
        {"sparsecorev0 infeed", INPUT},
        {"host recv", INPUT},
        {"host recv-done", INPUT},
        {"outfeed", OUTPUT},
        {"host send", OUTPUT},
        {"host send-done", OUTPUT},
        {"sparsecorev0 outfeed", OUTPUT},
        {"all-reduce", COLLECTIVE},
        {"all-to-all", COLLECTIVE},
        {"all-reduce fusion", COLLECTIVE},
        {"send", DEVICE_TO_DEVICE},
        {"send-done", DEVICE_TO_DEVICE},
        {"recv", DEVICE_TO_DEVICE},
        {"recv-done", DEVICE_TO_DEVICE},
        {"megacore fusion", DEVICE_TO_DEVICE},
        {"async-done", DEVICE_TO_DEVICE},
    };
    if (xpl_str_eq(category, XPL_STR("sparsecorev0 infeed wait")) ||
        xpl_str_eq(category, XPL_STR("sparsecorev0 infeed transform")))
        return has_infeed_of_scv0 ? DEVICE_COMPUTE : INPUT;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (xpl_str_eq(category, xpl_str_from(kinds[i].category))) return kinds[i].event;
    return DEVICE_COMPUTE;
}

struct times {
    uint64_t ps[N_EVENTS];
};

// What no category takes up is idle time; the category IDLE itself is ignored.
static void add_categories(const struct xpl_step_info *info, struct times *t) {
    const struct xpl_category_ps *const v = info->category_ps.v;
    const size_t n = info->category_ps.n;
    uint64_t total_ps = 0;
    bool has_infeed_of_scv0 = false;
    for (size_t i = 0; i < n; i++)
        if (v[i].ps && xpl_str_eq(v[i].category, XPL_STR("sparsecorev0 infeed")))
            has_infeed_of_scv0 = true;
    for (size_t i = 0; i < n; i++) {
        if (xpl_str_eq(v[i].category, XPL_STR("IDLE"))) continue;
        t->ps[event_of_category(v[i].category, has_infeed_of_scv0)] += v[i].ps;
        total_ps += v[i].ps;
    }
    if (n && info->duration_ps > total_ps) t->ps[OTHER] += info->duration_ps - total_ps;
}

// A breakdown of another kind, as old profiles have it, has no times here.
static struct times sum_up(const struct xpl_step_info *info) {
    struct times t = {0};
    if (info->breakdown != XPL_BREAKDOWN_GENERIC) return t;
    for (size_t i = 0; i < info->type_ps.n; i++)
        t.ps[event_of_type(info->type_ps.v[i].type)] += info->type_ps.v[i].ps;
    add_categories(info, &t);
    return t;
}

// ---- the same from time breakdowns ----

enum { OP_STATS, TIME_BREAKDOWN }; // its products

static const enum event kEventOfCause[XPL_TIME_CAUSES] = {
    [XPL_TIME_COMPUTE] = DEVICE_COMPUTE,
    [XPL_TIME_OVERLAPPED] = DEVICE_COMPUTE,
    [XPL_TIME_COLLECTIVES] = COLLECTIVE,
    [XPL_TIME_HOST_COPIES] = OUTPUT,
    [XPL_TIME_DEVICE_COPIES] = DEVICE_TO_DEVICE,
    [XPL_TIME_CALLBACK] = HOST_COMPUTE,
    [XPL_TIME_INPUT] = INPUT,
    [XPL_TIME_CHECKPOINT] = HOST_COMPUTE,
    [XPL_TIME_COMPILE] = COMPILATION,
    [XPL_TIME_LAUNCH] = KERNEL_LAUNCH,
    [XPL_TIME_QUEUED] = KERNEL_LAUNCH,
    [XPL_TIME_HOST] = HOST_COMPUTE,
    [XPL_TIME_UNKNOWN] = OTHER,
};

// The breakdown of a host, and which of its devices the program uses.
struct host_times {
    const struct xpl_time_breakdown *b;
    const bool *used;
};

// A step of a core, in the order of the answer.
struct core_step {
    const struct xpl_step_info *info;
    const xpl_str_t *host; // NULL: it is not known, the core is left out
    size_t next;           // of the same host; SIZE_MAX: none
    struct times times;
};

struct pod {
    const struct xpl_tool_input *in;
    const struct xpl_opstats *stats;
    struct core_step *steps;
    size_t *first; // of each host of the input; SIZE_MAX: none
    bool numbered; // a core's number says its host: each host of the input has steps
};

// ---- the steps of cores ----

static int by_name(const void *name, const void *host) {
    return xpl_str_cmp(*(const xpl_str_t *)name, ((const struct xpl_tool_host *)host)->name);
}

static int by_core(const void *a, const void *b) {
    const struct xpl_core_details *const x = a, *const y = b;
    return (x->core_id > y->core_id) - (x->core_id < y->core_id);
}

static const struct xpl_core_details *core_of(const struct xpl_opstats *s, uint32_t core_id) {
    const struct xpl_core_details key = {.core_id = core_id};
    const size_t n = s->core_id_to_details.n;
    return n ? bsearch(&key, s->core_id_to_details.v, n, sizeof key, by_core) : NULL;
}

static size_t number_of_host(const struct xpl_tool_input *in, uint32_t core_id) {
    if (core_id >= XPL_SPARSE_CORE_INDEX_START) core_id -= XPL_SPARSE_CORE_INDEX_START;
    return in->n_hosts > 1 ? core_id / XPL_CORES_PER_HOST : 0;
}

// The index of the core's host; SIZE_MAX: no host has this name.  core: NULL where the profile says
// nothing else of it, as a TPU's may.
static size_t host_of(const struct pod *p, const struct xpl_core_details *core, uint32_t core_id) {
    const struct xpl_tool_input *const in = p->in;
    if (!core) return p->numbered ? number_of_host(in, core_id) : SIZE_MAX;
    if (in->n_hosts == 1) return 0;
    const struct xpl_tool_host *const h =
        bsearch(&core->hostname, in->hosts, in->n_hosts, sizeof *h, by_name);
    return h ? (size_t)(h - in->hosts) : SIZE_MAX;
}

static bool are_numbered(const struct pod *p) {
    const struct xpl_step_db *const steps = &p->stats->step_db;
    const struct xpl_common_options *const o = p->in->options;
    size_t most = 0;
    for (size_t i = 0; i < steps->step_sequence.n; i++) {
        const struct xpl_per_core_step_info *const step = &steps->step_sequence.v[i];
        for (size_t k = 0; k < step->step_info_per_core.n; k++) {
            const size_t host = number_of_host(p->in, step->step_info_per_core.v[k].core_id);
            if (host > most) most = host;
        }
    }
    return !o->xprof_exact && most + 1 == p->in->n_hosts;
}

static void list_step(struct pod *p, const struct xpl_step_info *info, size_t at) {
    struct core_step *const c = &p->steps[at];
    const struct xpl_core_details *const core = core_of(p->stats, info->core_id);
    const size_t host = host_of(p, core, info->core_id);
    *c = (struct core_step){info, core ? &core->hostname : NULL, SIZE_MAX, sum_up(info)};
    if (host == SIZE_MAX) return;
    if (!core) c->host = &p->in->hosts[host].name;
    c->next = p->first[host];
    p->first[host] = at;
}

// With the times of XProf.
static bool list_steps(struct pod *p, struct xpl_arena *arena) {
    const struct xpl_step_db *const steps = &p->stats->step_db;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < steps->step_sequence.n; i++)
        n += steps->step_sequence.v[i].step_info_per_core.n;
    p->steps = xpl_arena_array(arena, n, sizeof *p->steps);
    p->first = xpl_arena_array(arena, p->in->n_hosts, sizeof *p->first);
    if (!p->steps || !p->first) return false;
    p->numbered = are_numbered(p);
    for (size_t i = 0; i < p->in->n_hosts; i++)
        p->first[i] = SIZE_MAX;
    for (size_t i = 0; i < steps->step_sequence.n; i++)
        for (size_t k = 0; k < steps->step_sequence.v[i].step_info_per_core.n; k++)
            list_step(p, &steps->step_sequence.v[i].step_info_per_core.v[k], at++);
    return true;
}

// NULL: the breakdown lacks it.
static const struct xpl_time_row *row_of(const struct xpl_time_breakdown *b, size_t device,
                                         uint32_t step) {
    const size_t at = device * (b->rows.n / b->devices.n) + step;
    const struct xpl_time_row *const r = at < b->rows.n ? &b->rows.v[at] : NULL;
    return r && r->device == device && r->step == step ? r : NULL;
}

// The mean of the core's devices that the program uses: GPUs of a host are one core.  *ret stays
// as it is where the breakdown lacks the step.
static void sum_causes(const struct pod *p, const struct host_times *h,
                       const struct xpl_step_info *info, struct times *ret) {
    const struct xpl_time_breakdown *const b = h->b;
    const uint64_t middle = info->begin_ps + info->duration_ps / 2 - b->base_ps;
    const uint32_t step = xpl_time_step_at(b, middle);
    // The breakdown has no SparseCores.
    const bool shared = p->in->n_hosts > 1 && info->core_id < XPL_SPARSE_CORE_INDEX_START;
    const uint32_t core = shared ? info->core_id % XPL_CORES_PER_HOST : info->core_id;
    uint64_t n = 0;
    struct times sum = {0};
    for (size_t d = 0; step != XPL_BETWEEN_STEPS && d < b->devices.n; d++) {
        const struct xpl_time_device *const device = &b->devices.v[d];
        const struct xpl_time_row *const r = row_of(b, d, step);
        if (!r || !h->used[d] || (device->kind == XPL_DEVICE_TPU && device->core_id != core))
            continue;
        n++;
        for (size_t c = 0; c < XPL_TIME_CAUSES; c++)
            sum.ps[kEventOfCause[c]] += r->ps[c];
    }
    for (size_t e = 0; n && e < N_EVENTS; e++)
        ret->ps[e] = sum.ps[e] / n;
}

static xpl_status_t sum_host(const struct pod *p, size_t host, const void *value,
                             struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(p->in->limit);
    const struct xpl_time_breakdown_value *const v = value;
    const struct host_times h = {v->breakdown, xpl_time_used_devices(v->breakdown, &arena)};
    if (!h.used) XPL_RETURN_OOM(err, "pod_viewer");
    for (size_t i = p->first[host]; i != SIZE_MAX; i = p->steps[i].next)
        sum_causes(p, &h, p->steps[i].info, &p->steps[i].times);
    return XPL_OK;
}

// Of many hosts only one breakdown is in memory at once.
static xpl_status_t sum_hosts(const struct pod *p, struct xpl_error *err) {
    const struct xpl_tool_turns *const t = p->in->turns;
    for (size_t i = 0; i < p->in->n_hosts; i++) {
        const struct xpl_tool_host *const h = &p->in->hosts[i];
        const void *value = h->products ? h->products[TIME_BREAKDOWN] : NULL;
        const bool in_turn = h->products && !value && t;
        if (p->first[i] == SIZE_MAX) continue;
        if (xpl_exec_cancelled(p->in->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        if (in_turn) XPL_TRY(t->get(t->arg, i, TIME_BREAKDOWN, &value, err));
        const xpl_status_t st = value ? sum_host(p, i, value, err) : XPL_OK;
        if (in_turn) t->release(t->arg, i, TIME_BREAKDOWN);
        if (st != XPL_OK) return st;
    }
    return XPL_OK;
}

// The kind with the most time; of equal ones that of the greatest name.
static xpl_str_t find_bottleneck(const struct times *t) {
    enum event most = DEVICE_COMPUTE;
    for (enum event e = DEVICE_TO_DEVICE; e < N_EVENTS; e++)
        if (t->ps[e] > t->ps[most] ||
            (t->ps[e] == t->ps[most] &&
             xpl_str_cmp(xpl_str_from(kEventNames[e]), xpl_str_from(kEventNames[most])) > 0))
            most = e;
    return xpl_str_from(kEventNames[most]);
}

// ---- the answer ----

static void put_core(struct xpl_buf *b, const struct core_step *c) {
    const struct xpl_step_info *const info = c->info;
    xpl_buf_printf(b, "\"%" PRIu32 "\":", info->core_id);
    put_text(b, "{\"hostName\":", *c->host);
    xpl_buf_printf(b, ",\"chipId\":0,\"nodeId\":0,\"stepNum\":%" PRIu32, info->step_num);
    put_microseconds(b, ",\"totalDurationUs\":", info->duration_ps);
    put_text(b, ",\"bottleneck\":", find_bottleneck(&c->times));
    put(b, ",\"stepBreakdownUs\":{");
    for (enum event e = DEVICE_COMPUTE; e < N_EVENTS; e++) {
        xpl_buf_printf(b, "%s\"%d\":", e > DEVICE_COMPUTE ? "," : "", (int)e);
        xpl_json_proto_double(b, xpl_pico_to_micro(c->times.ps[e]));
    }
    put(b, "}}");
}

// XProf leaves out cores of which nothing else is known.
static void put_step(struct xpl_buf *b, const struct xpl_per_core_step_info *step,
                     const struct core_step *cores) {
    bool any = false;
    xpl_buf_printf(b, "{\"stepNum\":%" PRIu32 ",\"podStatsPerCore\":{", step->step_num);
    for (size_t i = 0; i < step->step_info_per_core.n; i++) {
        if (!cores[i].host) continue;
        if (any) xpl_buf_putc(b, ',');
        any = true;
        put_core(b, &cores[i]);
    }
    put(b, "},\"channelDb\":[],\"coreIdToReplicaIdMap\":{},\"allReduceOpDb\":[]}");
}

static void put_events(struct xpl_buf *b) {
    put(b, ",\"stepBreakdownEvents\":[");
    for (enum event e = DEVICE_COMPUTE; e < N_EVENTS; e++)
        xpl_buf_printf(b, "%s{\"id\":%d,\"name\":\"%s\"}", e > DEVICE_COMPUTE ? "," : "", (int)e,
                       kEventNames[e]);
    xpl_buf_putc(b, ']');
}

static void put_diagnostics(struct xpl_buf *b, const struct xpl_step_db *steps) {
    struct xpl_input_pipeline_warnings w;
    xpl_input_pipeline_warn(steps, &w);
    put(b, ",\"diagnostics\":{\"info\":[],\"warnings\":[");
    for (size_t i = 0; i < w.n; i++)
        put_text(b, i ? "," : "", w.v[i]);
    put(b, "],\"errors\":[]}");
}

static void write_answer(const struct pod *p, struct xpl_buf *out) {
    const struct xpl_step_db *const steps = &p->stats->step_db;
    const struct core_step *cores = p->steps;
    put(out, "{\"podStatsSequence\":{\"podStatsMap\":[");
    for (size_t i = 0; i < steps->step_sequence.n; i++) {
        if (i) xpl_buf_putc(out, ',');
        put_step(out, &steps->step_sequence.v[i], cores);
        cores += steps->step_sequence.v[i].step_info_per_core.n;
    }
    put(out, "]}");
    put_diagnostics(out, steps);
    put_events(out);
    put_text(out, ",\"deviceType\":", p->stats->run_environment.device_type);
    xpl_buf_putc(out, '}');
}

// XProf shows every step here, also the first and the last.
static unsigned variant(const void *options, size_t i, bool session_has_device) {
    const unsigned of_steps = xpl_op_stats_variant(options, i, session_has_device);
    return i == OP_STATS ? of_steps | XPL_OP_STATS_ALL_STEPS
                         : of_steps & XPL_TIME_BREAKDOWN_CPU_AS_DEVICE;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(in->limit);
    const struct xpl_common_options *const o = in->options;
    struct xpl_opstats *stats;
    XPL_TRY(xpl_op_stats_combine(in, OP_STATS, &scratch, &stats, err));
    struct pod p = {.in = in, .stats = stats};
    if (!list_steps(&p, &scratch)) XPL_RETURN_OOM(err, "pod_viewer");
    if (!o->xprof_exact) XPL_TRY(sum_hosts(&p, err));
    write_answer(&p, out);
    if (out->failed) XPL_RETURN_OOM(err, "pod_viewer");
    return XPL_OK;
}

static const struct xpl_product *const kNeeds[] = {
    [OP_STATS] = &xpl_product_op_stats, [TIME_BREAKDOWN] = &xpl_product_time_breakdown, NULL};

const struct xpl_tool xpl_tool_pod_viewer = {
    .name = "pod_viewer",
    .version = 6,
    .needs = kNeeds,
    .facts = XPL_FACT_STEPS,
    .hosts = XPL_HOSTS_ALL,
    .in_turn = 1u << TIME_BREAKDOWN,
    .shown = XPL_SHOWN_UNLISTED,
    .content_type = "application/json",
    .worker_served = true,
    .variant = variant,
    .asks_device = true,
    .render = render,
};
