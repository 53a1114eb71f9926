// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/inference_tool.h"

#include "analysis/products/values.h"
#include "base/arena.h"

xpl_status_t xpl_inference_of_hosts(const struct xpl_tool_input *in, size_t need,
                                    struct xpl_arena *arena, struct xpl_inferences **ret,
                                    struct xpl_error *err) {
    const struct xpl_common_options *const o = in->options;
    const struct xpl_inference **const hosts = xpl_arena_array(arena, in->n_hosts, sizeof *hosts);
    if (!hosts) XPL_RETURN_OOM(err, "hosts");
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_inference_value *const v =
            in->hosts[i].products ? in->hosts[i].products[need] : NULL;
        hosts[i] = v ? v->inference : NULL;
    }
    return xpl_inferences_combine(hosts, in->n_hosts, o->xprof_exact, arena, ret, err);
}
