// SPDX-License-Identifier: Apache-2.0
// Device ops regrouped by the framework op that they came from, or by its inputs or module.  Apart
// from op_metrics.c, which knows no op names.
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/xplane/tf_op.h"
#include "base/vec.h"

// Device ops are added to `b`.
struct regrouping {
    struct xpl_op_metrics_builder b;
    XPL_VEC(uint32_t) outer; // of each module: the entry of the one around it + 1; 0: not known yet
};

// Sums one device op into its framework op.  Occurrences are the largest of any part: a framework
// op that becomes three kernels ran once, not three times.
static void add_to(struct xpl_op_metrics *m, xpl_str_t type, const struct xpl_op_metrics *part,
                   bool is_own) {
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
}

static bool add_part(struct xpl_op_metrics_builder *b, xpl_str_t name, xpl_str_t type,
                     const struct xpl_op_metrics *part) {
    struct xpl_op_metrics *const m = xpl_op_metrics_put(b, 0, name);
    if (m) add_to(m, type, part, true);
    return m != NULL;
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

// The module around entry `at`, found by its path the first time only: many ops have one long path.
static struct xpl_op_metrics *outer_module(struct regrouping *g, size_t at, xpl_str_t path) {
    while (g->outer.n <= at) {
        uint32_t *const slot = xpl_vec_push(g->b.scratch, &g->outer);
        if (!slot) return NULL;
        *slot = 0;
    }
    if (g->outer.v[at]) return &g->b.db->metrics_db.v[g->outer.v[at] - 1];
    struct xpl_op_metrics *const m = xpl_op_metrics_put(&g->b, 0, path);
    if (m) g->outer.v[at] = (uint32_t)(m - g->b.db->metrics_db.v) + 1;
    return m;
}

enum { MOST_MODULES = 256 }; // in each other

// A module has the time of the modules inside of it; its self time is that of its direct ops.  Of
// ops in ops, as a CPU runs them, each counts without the others.
static bool add_to_modules(struct regrouping *g, const struct xpl_tf_op *op,
                           const struct xpl_op_metrics *whole) {
    struct xpl_op_metrics own = *whole, *const part = &own;
    own.time_ps = whole->self_time_ps;
    xpl_str_t path = outer_of(xpl_tf_op_scoped_name(part->provenance, op));
    if (!path.len) return add_part(&g->b, XPL_STR("(no module)"), XPL_STR(""), part);
    struct xpl_op_metrics *m = xpl_op_metrics_put(&g->b, 0, path);
    for (unsigned n = 0; m; n++) {
        add_to(m, class_of(path), part, n == 0);
        path = outer_of(path);
        if (!path.len || n + 1 == MOST_MODULES) return true;
        m = outer_module(g, (size_t)(m - g->b.db->metrics_db.v), path);
    }
    return false;
}

// ---- all ----

static bool add(struct regrouping *g, const struct xpl_op_metrics *part,
                enum xpl_framework_group group) {
    if (xpl_op_metrics_is_idle(part)) return add_part(&g->b, XPL_IDLE_OP, XPL_IDLE_OP, part);
    struct xpl_tf_op op = {.name = part->name, .type = XPL_STR("")};
    if (part->provenance.len) op = xpl_tf_op_parse(part->provenance);
    if (group == XPL_GROUP_MODULE) return add_to_modules(g, &op, part);
    // Of other frameworks this is the text of an instruction.
    if (group == XPL_GROUP_SHAPE && op.category == XPL_TF_OP_PYTORCH && part->long_name.len)
        op.name = part->long_name;
    return add_part(&g->b, op.name, op.type, part);
}

bool xpl_op_metrics_by_framework_op(const struct xpl_op_metrics_db *device, bool with_idle,
                                    enum xpl_framework_group group, struct xpl_arena *arena,
                                    struct xpl_op_metrics_db *ret) {
    *ret = (struct xpl_op_metrics_db){
        .total_op_time_ps = device->total_op_time_ps,
        .total_time_ps = with_idle ? device->total_time_ps : device->total_op_time_ps,
    };
    struct regrouping g = {.outer = {0}};
    xpl_op_metrics_begin(&g.b, ret, XPL_OP_METRICS_SHARE, arena, arena);
    for (size_t i = 0; i < device->metrics_db.n; i++) {
        const struct xpl_op_metrics *const part = &device->metrics_db.v[i];
        if (xpl_op_metrics_is_idle(part) && !with_idle) continue;
        if (!add(&g, part, group)) return false;
    }
    // Parts of other frameworks do not say which of them are of one run.
    for (size_t i = 0; i < ret->metrics_db.n; i++)
        if (ret->metrics_db.v[i].framework_runs)
            ret->metrics_db.v[i].occurrences = ret->metrics_db.v[i].framework_runs;
    return true;
}
