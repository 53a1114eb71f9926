// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/op_stats_tool.h"

#include "analysis/opstats/combine/combine.h"
#include "base/cleanup.h"

const struct xpl_product *const xpl_op_stats_needs[] = {&xpl_product_op_stats, NULL};

unsigned xpl_op_stats_variant(const void *options, size_t i, bool session_has_device) {
    const struct xpl_common_options *const o = options;
    (void)i;
    return o->cpu_as_device && !session_has_device ? XPL_OP_STATS_CPU_AS_DEVICE : 0;
}

static xpl_status_t combine(const struct xpl_tool_input *in, struct xpl_arena *scratch,
                            struct xpl_opstats **ret, struct xpl_error *err) {
    const struct xpl_common_options *const o = in->options;
    struct xpl_host_opstats *const list = xpl_arena_array(scratch, in->n_hosts, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "hosts");
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_tool_host *const h = &in->hosts[i];
        const struct xpl_op_stats_value *const v = h->products ? h->products[0] : NULL;
        list[i] = (struct xpl_host_opstats){
            .host = h->name, .stats = v ? v->stats : NULL, .problem = h->problem};
    }
    return xpl_opstats_combine(list, in->n_hosts, o->xprof_exact, scratch, ret, err);
}

xpl_status_t xpl_op_stats_render(const struct xpl_tool_input *in, xpl_op_stats_fn *write,
                                 struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    struct xpl_opstats *all;
    xpl_arena_init(&scratch, in->limit);
    XPL_TRY(combine(in, &scratch, &all, err));
    XPL_TRY(write(all, in->options, &scratch, out, err));
    if (out->failed) XPL_RETURN_OOM(err, "answer");
    return XPL_OK;
}
