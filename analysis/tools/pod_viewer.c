// SPDX-License-Identifier: Apache-2.0
// pod_viewer: for each step and core how its time divides into nine kinds, as JSON of XProf's
// PodViewerDatabase with every field (XProf: op_stats_to_pod_stats.cc, op_stats_to_pod_viewer.cc).
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/opstats/opstats.h"
#include "analysis/opstats/steps/timespan.h"
#include "analysis/tools/input_pipeline/input_pipeline.h"
#include "analysis/tools/lib/op_record.h"
#include "analysis/tools/lib/op_stats_tool.h"
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

static int by_core(const void *a, const void *b) {
    const struct xpl_core_details *const x = a, *const y = b;
    return (x->core_id > y->core_id) - (x->core_id < y->core_id);
}

static void put_core(struct xpl_buf *b, const struct xpl_step_info *info,
                     const struct xpl_core_details *core) {
    const struct times t = sum_up(info);
    xpl_buf_printf(b, "\"%" PRIu32 "\":", info->core_id);
    put_text(b, "{\"hostName\":", core->hostname);
    xpl_buf_printf(b, ",\"chipId\":0,\"nodeId\":0,\"stepNum\":%" PRIu32, info->step_num);
    put_microseconds(b, ",\"totalDurationUs\":", info->duration_ps);
    put_text(b, ",\"bottleneck\":", find_bottleneck(&t));
    put(b, ",\"stepBreakdownUs\":{");
    for (enum event e = DEVICE_COMPUTE; e < N_EVENTS; e++) {
        xpl_buf_printf(b, "%s\"%d\":", e > DEVICE_COMPUTE ? "," : "", (int)e);
        xpl_json_proto_double(b, xpl_pico_to_micro(t.ps[e]));
    }
    put(b, "}}");
}

// Cores of which nothing else is known are left out.
static void put_step(struct xpl_buf *b, const struct xpl_opstats *s,
                     const struct xpl_per_core_step_info *step) {
    bool any = false;
    xpl_buf_printf(b, "{\"stepNum\":%" PRIu32 ",\"podStatsPerCore\":{", step->step_num);
    for (size_t i = 0; i < step->step_info_per_core.n; i++) {
        const struct xpl_step_info *const info = &step->step_info_per_core.v[i];
        const struct xpl_core_details key = {.core_id = info->core_id}, *core = NULL;
        if (s->core_id_to_details.n)
            core = bsearch(&key, s->core_id_to_details.v, s->core_id_to_details.n, sizeof key,
                           by_core);
        if (!core) continue;
        if (any) xpl_buf_putc(b, ',');
        any = true;
        put_core(b, info, core);
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

static xpl_status_t write_answer(const struct xpl_opstats *s, const void *options,
                                 struct xpl_arena *scratch, struct xpl_buf *out,
                                 struct xpl_error *err) {
    (void)options;
    (void)scratch;
    put(out, "{\"podStatsSequence\":{\"podStatsMap\":[");
    for (size_t i = 0; i < s->step_db.step_sequence.n; i++) {
        if (i) xpl_buf_putc(out, ',');
        put_step(out, s, &s->step_db.step_sequence.v[i]);
    }
    put(out, "]}");
    put_diagnostics(out, &s->step_db);
    put_events(out);
    put_text(out, ",\"deviceType\":", s->run_environment.device_type);
    xpl_buf_putc(out, '}');
    if (out->failed) XPL_RETURN_OOM(err, "pod_viewer");
    return XPL_OK;
}

// XProf shows every step here, also the first and the last.
static unsigned variant(const void *options, size_t i, bool session_has_device) {
    return xpl_op_stats_variant(options, i, session_has_device) | XPL_OP_STATS_ALL_STEPS;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render(in, write_answer, out, err);
}

const struct xpl_tool xpl_tool_pod_viewer = {
    .name = "pod_viewer",
    .version = 2,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_STEPS,
    .hosts = XPL_HOSTS_ALL,
    .shown = XPL_SHOWN_UNLISTED,
    .content_type = "application/json",
    .worker_served = true,
    .variant = variant,
    .asks_device = true,
    .render = render,
};
