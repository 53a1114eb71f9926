// SPDX-License-Identifier: Apache-2.0
// Device ops regrouped by the framework op that they came from, or by its inputs or module.  Apart
// from op_metrics.c, which knows no op names.
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/xplane/tf_op.h"

// Sums one device op into its framework op.  Occurrences are the largest of any part: a framework
// op that becomes three kernels ran once, not three times.
static bool add_part(struct xpl_op_metrics_builder *b, xpl_str_t name, xpl_str_t type,
                     const struct xpl_op_metrics *part, bool is_own) {
    struct xpl_op_metrics *const m = xpl_op_metrics_put(b, 0, name);
    if (!m) return false;
    if (!m->category.len) m->category = type.len ? type : XPL_STR("Unknown");
    m->is_eager = part->is_eager;
    if (m->occurrences < part->occurrences) m->occurrences = part->occurrences;
    m->framework_runs += part->framework_runs;
    m->time_ps += part->time_ps;
    if (is_own) m->self_time_ps += part->self_time_ps;
    m->flops += part->flops;
    m->flops_v2 += part->flops_v2;
    m->model_flops += part->model_flops;
    m->model_flops_v2 += part->model_flops_v2;
    m->bytes_accessed += part->bytes_accessed;
    m->core_type = part->core_type;
    return true;
}

// ---- modules ----

static xpl_str_t outer_of(xpl_str_t path) {
    size_t n = path.len;
    while (n && path.ptr[n - 1] != '/')
        n--;
    return xpl_str_sub(path, 0, n ? n - 1 : 0);
}

// "Linear" of "Net_0/Linear_3".
static xpl_str_t class_of(xpl_str_t path) {
    const size_t outer = outer_of(path).len;
    xpl_str_t name = xpl_str_sub(path, outer ? outer + 1 : 0, SIZE_MAX);
    size_t n = name.len;
    while (n && name.ptr[n - 1] >= '0' && name.ptr[n - 1] <= '9')
        n--;
    return n > 1 && n < name.len && name.ptr[n - 1] == '_' ? xpl_str_sub(name, 0, n - 1) : name;
}

// A module has the time of the modules inside of it; its self time is that of its direct ops.  Of
// ops in ops, as a CPU runs them, each counts without the others.
static bool add_to_modules(struct xpl_op_metrics_builder *b, const struct xpl_tf_op *op,
                           const struct xpl_op_metrics *whole) {
    struct xpl_op_metrics own = *whole, *const part = &own;
    own.time_ps = whole->self_time_ps;
    xpl_str_t path = outer_of(xpl_tf_op_scoped_name(part->provenance, op));
    if (!path.len) return add_part(b, XPL_STR("(no module)"), XPL_STR(""), part, true);
    for (bool is_own = true; path.len; path = outer_of(path), is_own = false)
        if (!add_part(b, path, class_of(path), part, is_own)) return false;
    return true;
}

// ---- all ----

static bool add(struct xpl_op_metrics_builder *b, const struct xpl_op_metrics *part,
                enum xpl_framework_group group) {
    if (xpl_op_metrics_is_idle(part)) return add_part(b, XPL_IDLE_OP, XPL_IDLE_OP, part, true);
    struct xpl_tf_op op = {.name = part->name, .type = XPL_STR("")};
    if (part->provenance.len) op = xpl_tf_op_parse(part->provenance);
    if (group == XPL_GROUP_MODULE) return add_to_modules(b, &op, part);
    // Of other frameworks this is the text of an instruction.
    if (group == XPL_GROUP_SHAPE && op.category == XPL_TF_OP_PYTORCH && part->long_name.len)
        op.name = part->long_name;
    return add_part(b, op.name, op.type, part, true);
}

bool xpl_op_metrics_by_framework_op(const struct xpl_op_metrics_db *device, bool with_idle,
                                    enum xpl_framework_group group, struct xpl_arena *arena,
                                    struct xpl_op_metrics_db *ret) {
    *ret = (struct xpl_op_metrics_db){
        .total_op_time_ps = device->total_op_time_ps,
        .total_time_ps = with_idle ? device->total_time_ps : device->total_op_time_ps,
    };
    struct xpl_op_metrics_builder b;
    xpl_op_metrics_begin(&b, ret, XPL_OP_METRICS_SHARE, arena, arena);
    for (size_t i = 0; i < device->metrics_db.n; i++) {
        const struct xpl_op_metrics *const part = &device->metrics_db.v[i];
        if (xpl_op_metrics_is_idle(part) && !with_idle) continue;
        if (!add(&b, part, group)) return false;
    }
    // Parts of other frameworks do not say which of them are of one run.
    for (size_t i = 0; i < ret->metrics_db.n; i++)
        if (ret->metrics_db.v[i].framework_runs)
            ret->metrics_db.v[i].occurrences = ret->metrics_db.v[i].framework_runs;
    return true;
}
