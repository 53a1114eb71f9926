// SPDX-License-Identifier: Apache-2.0
// Device ops regrouped by the framework op that they came from.  Apart from op_metrics.c, which
// knows no op names.
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/xplane/tf_op.h"

// Sums one device op into its framework op.  Occurrences are the largest of any part: a framework
// op that becomes three kernels ran once, not three times.
static bool add_part(struct xpl_op_metrics_builder *b, xpl_str_t name, xpl_str_t type,
                     const struct xpl_op_metrics *part) {
    struct xpl_op_metrics *const m = xpl_op_metrics_put(b, 0, name);
    if (!m) return false;
    if (!m->category.len) m->category = type.len ? type : XPL_STR("Unknown");
    m->is_eager = part->is_eager;
    if (m->occurrences < part->occurrences) m->occurrences = part->occurrences;
    m->time_ps += part->time_ps;
    m->self_time_ps += part->self_time_ps;
    m->flops += part->flops;
    m->flops_v2 += part->flops_v2;
    m->model_flops += part->model_flops;
    m->model_flops_v2 += part->model_flops_v2;
    m->bytes_accessed += part->bytes_accessed;
    m->core_type = part->core_type;
    return true;
}

bool xpl_op_metrics_by_framework_op(const struct xpl_op_metrics_db *device, bool with_idle,
                                    struct xpl_arena *arena, struct xpl_op_metrics_db *ret) {
    *ret = (struct xpl_op_metrics_db){
        .total_op_time_ps = device->total_op_time_ps,
        .total_time_ps = with_idle ? device->total_time_ps : device->total_op_time_ps,
    };
    struct xpl_op_metrics_builder b;
    xpl_op_metrics_begin(&b, ret, XPL_OP_METRICS_SHARE, arena, arena);
    for (size_t i = 0; i < device->metrics_db.n; i++) {
        const struct xpl_op_metrics *const part = &device->metrics_db.v[i];
        struct xpl_tf_op op = {.name = part->name, .type = XPL_STR("")};
        if (xpl_op_metrics_is_idle(part)) {
            if (!with_idle) continue;
            op.name = op.type = XPL_IDLE_OP;
        } else if (part->provenance.len) {
            op = xpl_tf_op_parse(part->provenance);
        }
        if (!add_part(&b, op.name, op.type, part)) return false;
    }
    return true;
}
