// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/op_stats_tool.h"

#include "analysis/opstats/combine/combine.h"
#include "base/cleanup.h"

const struct xpl_product *const xpl_op_stats_needs[] = {&xpl_product_op_stats, NULL};

unsigned xpl_op_stats_variant(const void *options, size_t i, bool session_has_device) {
    const struct xpl_common_options *const o = options;
    (void)i;
    const unsigned exact = o->xprof_exact ? XPL_OP_STATS_XPROF_EXACT : 0;
    return exact | (!session_has_device && o->cpu_as_device ? XPL_OP_STATS_CPU_AS_DEVICE : 0);
}

struct turns {
    const struct xpl_tool_turns *of;
    size_t product;
};

static xpl_status_t get_host(void *arg, size_t i, const struct xpl_opstats **ret,
                             struct xpl_error *err) {
    const struct turns *const t = arg;
    const void *value;
    XPL_TRY(t->of->get(t->of->arg, i, t->product, &value, err));
    *ret = ((const struct xpl_op_stats_value *)value)->stats;
    return XPL_OK;
}

static void release_host(void *arg, size_t i) {
    const struct turns *const t = arg;
    t->of->release(t->of->arg, i, t->product);
}

xpl_status_t xpl_op_stats_combine(const struct xpl_tool_input *in, size_t product,
                                  struct xpl_arena *arena, struct xpl_opstats **ret,
                                  struct xpl_error *err) {
    const struct xpl_common_options *const o = in->options;
    struct xpl_host_opstats *const list = xpl_arena_array(arena, in->n_hosts, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "hosts");
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_tool_host *const h = &in->hosts[i];
        const struct xpl_op_stats_value *const v = h->products ? h->products[product] : NULL;
        list[i] = (struct xpl_host_opstats){
            .host = h->name, .stats = v ? v->stats : NULL, .problem = h->problem};
        if (h->products && !v && h->outlines) list[i].outline = h->outlines[product];
    }
    struct turns turns = {in->turns, product};
    const struct xpl_combine_source source = {get_host, release_host, &turns, in->exec};
    const struct xpl_combine_input all = {.hosts = list,
                                          .n = in->n_hosts,
                                          .xprof_exact = o->xprof_exact,
                                          .by_name = in->by_name,
                                          .source = in->turns ? &source : NULL};
    return xpl_opstats_combine(&all, arena, ret, err);
}

// A profile of a CPU does not say what the CPU can do.
static bool set_peaks(const struct xpl_cpu_peak_options *o, struct xpl_opstats *s,
                      struct xpl_arena *arena) {
    struct xpl_perf_env *const env = &s->perf_env;
    const enum xpl_hardware hardware = s->run_environment.hardware_type;
    if (!o->common.cpu_as_device || hardware == XPL_HW_GPU || hardware == XPL_HW_TPU) return true;
    if (o->gflops > 0) env->peak_tera_flops_per_second = o->gflops / 1e3;
    if (o->gb_s > 0) { // the present value may be the host's, which others read
        double *const v = xpl_arena_array(arena, 1, sizeof *v);
        if (!v) return false;
        v[XPL_BW_HBM_RW] = o->gb_s;
        env->peak_bws_giga_bytes_per_second.v = v;
        env->peak_bws_giga_bytes_per_second.n = env->peak_bws_giga_bytes_per_second.cap = 1;
    }
    return true;
}

static xpl_status_t render(const struct xpl_tool_input *in,
                           const struct xpl_cpu_peak_options *peaks, xpl_op_stats_fn *write,
                           struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(in->limit);
    struct xpl_opstats *all;
    XPL_TRY(xpl_op_stats_combine(in, 0, &scratch, &all, err));
    if (peaks && !set_peaks(peaks, all, &scratch)) XPL_RETURN_OOM(err, "answer");
    XPL_TRY(write(all, in->options, &scratch, out, err));
    if (out->failed) XPL_RETURN_OOM(err, "answer");
    return XPL_OK;
}

xpl_status_t xpl_op_stats_render_with_peaks(const struct xpl_tool_input *in, xpl_op_stats_fn *write,
                                            struct xpl_buf *out, struct xpl_error *err) {
    return render(in, in->options, write, out, err);
}

xpl_status_t xpl_op_stats_render(const struct xpl_tool_input *in, xpl_op_stats_fn *write,
                                 struct xpl_buf *out, struct xpl_error *err) {
    return render(in, NULL, write, out, err);
}
