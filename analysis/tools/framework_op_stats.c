// SPDX-License-Identifier: Apache-2.0
// framework_op_stats: device ops regrouped by framework op, then host ops; once with idle time and
// once without (XProf: op_stats_to_tf_stats.cc, model_tracker.cc).
#include <stdlib.h>

#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/opstats.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/lib/op_record.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "analysis/xplane/tf_op.h"
#include "base/arena.h"
#include "base/std_sort.h"

enum {
    MAX_OPS = 500, // on each side, as in XProf; idle time counts as one even where it is left out
    MAX_GROUPS = 10000,
};

struct framework_op_stats_options {
    struct xpl_cpu_peak_options peaks;
    int group_by; // enum xpl_framework_group
};

static const struct xpl_tool_option kOptions[] = {
    {.key = "group_by",
     .type = XPL_OPTION_CHOICE,
     .offset = offsetof(struct framework_op_stats_options, group_by),
     .values = "op|shape|module",
     .preset = "op",
     .ours = true,
     .help = "rows of ops, of ops with the shapes and types of their inputs, or of modules"},
    XPL_CPU_PEAK_OPTIONS,
};

// Kernel times of one framework op, for its tensor core share.
struct kernel_time {
    xpl_str_t op_name;
    uint64_t total_ns, tensor_core_ns;
};

struct stats {
    const struct xpl_opstats *s;
    enum xpl_framework_group group;
    struct xpl_op_metrics_db device; // by framework op
    const struct xpl_op_metrics **device_ops, **host_ops;
    size_t n_device, n_host, n_kernels;
    struct kernel_time *kernels; // by op name
    bool is_gpu, shows_tensor_cores;
};

static int by_op_name(const void *a, const void *b) {
    const struct kernel_time *const x = a, *const y = b;
    return xpl_str_cmp(x->op_name, y->op_name);
}

static bool is_before(const void *ctx, const void *a, const void *b) {
    (void)ctx;
    return by_op_name(a, b) < 0;
}

// Sums up the kernels of each op (GroupKernelReportsByOpName).
static bool group_kernels(struct stats *t, struct xpl_arena *a) {
    const size_t n = t->s->kernel_reports.n;
    t->kernels = xpl_arena_array(a, n, sizeof *t->kernels);
    if (!t->kernels) return false;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_kernel_report *const k = &t->s->kernel_reports.v[i];
        t->kernels[i] = (struct kernel_time){k->op_name, k->total_duration_ns, 0};
        if (k->is_kernel_using_tensor_core) t->kernels[i].tensor_core_ns = k->total_duration_ns;
    }
    xpl_std_sort(t->kernels, n, sizeof *t->kernels, is_before, NULL);
    for (size_t i = 0; i < n; i++) {
        struct kernel_time *const last = t->n_kernels ? &t->kernels[t->n_kernels - 1] : NULL;
        if (last && by_op_name(last, &t->kernels[i]) == 0) {
            last->total_ns += t->kernels[i].total_ns;
            last->tensor_core_ns += t->kernels[i].tensor_core_ns;
        } else {
            t->kernels[t->n_kernels++] = t->kernels[i];
        }
    }
    return true;
}

static xpl_status_t prepare(struct stats *t, struct xpl_arena *a, struct xpl_error *err) {
    const struct xpl_opstats *const s = t->s;
    const size_t most = t->group == XPL_GROUP_OP ? MAX_OPS : MAX_GROUPS;
    t->is_gpu = xpl_str_has(s->run_environment.device_type, XPL_STR("GPU"));
    if (!group_kernels(t, a) ||
        !xpl_op_metrics_by_framework_op(&s->device_op_metrics_db, true, t->group, a, &t->device) ||
        !xpl_op_metrics_sorted(&t->device, most, a, &t->device_ops, &t->n_device) ||
        !xpl_op_metrics_sorted(&s->host_op_metrics_db, MAX_OPS, a, &t->host_ops, &t->n_host))
        XPL_RETURN_OOM(err, "framework_op_stats");
    // Ops of the host are known by name only, as are the kernels of ops.
    if (t->group != XPL_GROUP_OP) t->n_host = 0;
    t->shows_tensor_cores = t->group == XPL_GROUP_OP && t->is_gpu;
    return XPL_OK;
}

// ---- the model's task ----

// Whether a TensorFlow or JAX op computes gradients, by the scopes in its name.
static bool has_gradient(xpl_str_t name, xpl_str_t type) {
    const bool is_tf = xpl_is_tf_op_type(type) && xpl_is_tf_op_name(name);
    if (is_tf) {
        xpl_str_t scope;
        for (size_t pos = 0; xpl_tf_op_next_scope(name, &pos, &scope);)
            if (xpl_str_eq(scope, XPL_STR("gradient_tape")) ||
                xpl_str_starts(scope, XPL_STR("gradients")))
                return true;
        return false;
    }
    if (type.len && !xpl_is_jax_op_name_and_type(name, type)) return false;
    // transpose(jvp(...)) is part of a gradient; transpose[permutation=...] is not.
    const xpl_str_t transpose = XPL_STR("transpose(");
    for (size_t at = xpl_str_find(name, transpose, 0); at != SIZE_MAX;
         at = xpl_str_find(name, transpose, at + 1))
        if (at == 0 || name.ptr[at - 1] == '/') return true;
    return false;
}

static bool is_skipped(const struct xpl_op_metrics *m, bool exclude_idle) {
    return exclude_idle && xpl_op_metrics_is_idle(m);
}

static bool is_training(const struct xpl_op_metrics *const *ops, size_t n, bool exclude_idle) {
    for (size_t i = 0; i < n; i++)
        if (!is_skipped(ops[i], exclude_idle) && has_gradient(ops[i]->name, ops[i]->category))
            return true;
    return false;
}

// ---- the table ----

enum { OF_GPU = 1 }; // columns
static const struct xpl_column kColumns[] = {
    XPL_NUMBERS("rank", "Rank", NULL),
    XPL_TEXTS("host_or_device", "Host/device"),
    XPL_TEXTS("type", "Operation Type"),
    XPL_TEXTS("operation", "Operation Name"),
    XPL_NUMBERS("occurrences", "#Occurrences", NULL),
    XPL_NUMBERS("total_time", "Total time (us)", "us"),
    XPL_NUMBERS("avg_time", "Avg. time (us)", "us"),
    XPL_NUMBERS("total_self_time", "Total self-time (us)", "us"),
    XPL_NUMBERS("avg_self_time", "Avg. self-time (us)", "us"),
    XPL_NUMBERS("device_total_self_time_percent", "Total self-time on Device (%)", XPL_FRACTION),
    XPL_NUMBERS("device_cumulative_total_self_time_percent",
                "Cumulative total-self time on Device (%)", XPL_FRACTION),
    XPL_NUMBERS("host_total_self_time_percent", "Total self-time on Host (%)", XPL_FRACTION),
    XPL_NUMBERS("Host_cumulative_total_self_time_percent", "Cumulative total-self time on Host (%)",
                XPL_FRACTION),
    XPL_NUMBERS("measured_flop_rate", "Normalized FLOP Rate (FLOPs/s)", "GFLOP/s"),
    XPL_NUMBERS("model_flop_rate", "Model FLOP Rate (GFLOP/s)", "GFLOP/s"),
    XPL_NUMBERS("measured_memory_bw", "Measured Memory BW (GBytes/Sec)", "GiB/s"),
    XPL_NUMBERS("operational_intensity", "Operational Intensity (FLOPs/Byte)", "FLOP/Byte"),
    XPL_COLUMN("gpu_tensorcore_utilization", "number", "GPU TensorCore utilization", XPL_FRACTION,
               OF_GPU),
    XPL_TEXTS("bound_by", "Bound by"),
    XPL_TEXTS("eager", "Execution mode"),
    {0},
};

// Where a table stands: the row's number and the shares of its side that have been shown.
struct position {
    uint32_t rank;
    double fraction, cumulative;
};

static void advance(struct position *p, const struct xpl_op_metrics *m, uint64_t total_ps) {
    p->rank++;
    p->fraction = xpl_safe_divide(xpl_pico_to_micro(m->self_time_ps), xpl_pico_to_micro(total_ps));
    p->cumulative += p->fraction;
}

static void put_times(struct xpl_gviz *g, const struct xpl_op_record *r, uint32_t occurrences) {
    xpl_gviz_number(g, occurrences);
    xpl_gviz_number(g, r->total_us);
    xpl_gviz_number(g, r->average_us);
    xpl_gviz_number(g, r->self_us);
    xpl_gviz_number(g, r->average_self_us);
}

static void put_shares(struct xpl_gviz *g, bool on_device, const struct position *p) {
    const struct position none = {0};
    const struct position *const device = on_device ? p : &none, *const host =
                                                                     on_device ? &none : p;
    xpl_gviz_number(g, device->fraction);
    xpl_gviz_number(g, device->cumulative);
    xpl_gviz_number(g, host->fraction);
    xpl_gviz_number(g, host->cumulative);
}

static void put_rates(struct xpl_gviz *g, const struct xpl_op_record *r) {
    xpl_gviz_number(g, r->flop_rate);
    xpl_gviz_number(g, r->model_flop_rate);
    xpl_gviz_number(g, r->bandwidth);
    xpl_gviz_number(g, r->intensity);
}

static double tensor_core_share(const struct stats *t, xpl_str_t op_name) {
    const struct kernel_time key = {.op_name = op_name};
    const struct kernel_time *const k =
        bsearch(&key, t->kernels, t->n_kernels, sizeof *t->kernels, by_op_name);
    return k ? xpl_safe_divide((double)k->tensor_core_ns, (double)k->total_ns) : 0;
}

static void put_row(struct xpl_gviz *g, const struct stats *t, const struct xpl_op_metrics *m,
                    bool on_device, const struct position *p) {
    struct xpl_op_record r;
    xpl_op_record_make(m, &t->s->perf_env, t->s->run_environment.hardware_type, &r);
    xpl_gviz_row(g);
    xpl_gviz_number(g, p->rank);
    xpl_gviz_text(g, on_device ? XPL_STR("Device") : XPL_STR("Host"));
    xpl_gviz_text(g, m->category);
    xpl_gviz_text(g, m->name);
    put_times(g, &r, m->occurrences);
    put_shares(g, on_device, p);
    put_rates(g, &r);
    if (t->shows_tensor_cores) xpl_gviz_number(g, on_device ? tensor_core_share(t, m->name) : 0);
    xpl_gviz_text(g, r.bound_by);
    xpl_gviz_text(g, m->is_eager ? XPL_STR("Eager") : XPL_STR("Function"));
}

static uint64_t total_time(const struct xpl_op_metrics_db *db, bool exclude_idle) {
    return exclude_idle ? db->total_op_time_ps : db->total_time_ps;
}

static void put_table(const struct stats *t, bool exclude_idle, struct xpl_arena *a,
                      struct xpl_buf *out) {
    struct xpl_gviz g;
    struct xpl_gviz_props props;
    const bool training = is_training(t->device_ops, t->n_device, exclude_idle) ||
                          is_training(t->host_ops, t->n_host, exclude_idle);
    xpl_gviz_begin(&g, out, kColumns, t->shows_tensor_cores ? OF_GPU : 0);
    xpl_gviz_props_init(&props, a);
    xpl_gviz_prop(&props, "task_type", training ? XPL_STR("Training") : XPL_STR("Inference"));
    xpl_gviz_prop(&props, "architecture_type", XPL_STR("Unknown")); // never known in open XProf
    xpl_gviz_put_props(&g, &props);
    struct position p = {0};
    const uint64_t device_ps = total_time(&t->device, exclude_idle);
    for (size_t i = 0; i < t->n_device; i++) {
        if (is_skipped(t->device_ops[i], exclude_idle)) continue;
        advance(&p, t->device_ops[i], device_ps);
        put_row(&g, t, t->device_ops[i], true, &p);
    }
    p.cumulative = 0;
    const uint64_t host_ps = total_time(&t->s->host_op_metrics_db, exclude_idle);
    for (size_t i = 0; i < t->n_host; i++) {
        if (is_skipped(t->host_ops[i], exclude_idle)) continue;
        advance(&p, t->host_ops[i], host_ps);
        put_row(&g, t, t->host_ops[i], false, &p);
    }
    xpl_gviz_end(&g);
}

static xpl_status_t write_answer(const struct xpl_opstats *s, const void *options,
                                 struct xpl_arena *scratch, struct xpl_buf *out,
                                 struct xpl_error *err) {
    const struct framework_op_stats_options *const opt = options;
    struct stats t = {.s = s, .group = (enum xpl_framework_group)opt->group_by};
    XPL_TRY(prepare(&t, scratch, err));
    xpl_buf_putc(out, '[');
    put_table(&t, false, scratch, out);
    xpl_buf_putc(out, ',');
    put_table(&t, true, scratch, out);
    xpl_buf_putc(out, ']');
    if (out->failed) XPL_RETURN_OOM(err, "framework_op_stats");
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render_with_peaks(in, write_answer, out, err);
}

static const char *const kAliases[] = {"tensorflow_stats", NULL};

static const char *const kTitles[] = {"With idle time", "Without idle time", NULL};

const struct xpl_tool xpl_tool_framework_op_stats = {
    .name = "framework_op_stats",
    .aliases = kAliases,
    .version = 3,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_DEVICE_OPS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct framework_op_stats_options),
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 13,
    .content_type = "application/json",
    .columns = {kColumns},
    .titles = kTitles,
    .worker_served = true,
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
