// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/precheck.h"

#include "analysis/grouping/plan/planes.h"
#include "analysis/xplane/schema.h"

static bool has_loop_op(const struct xpl_plane *p) {
    for (uint32_t i = 1; i < p->n_event_md; i++) {
        const enum xpl_event_type t = p->event_md[i].type;
        if (t == XPL_EVENT_WHILE_OP_EVAL_COND || t == XPL_EVENT_WHILE_OP_START_BODY ||
            t == XPL_EVENT_FOR_OP || t == XPL_EVENT_PARALLEL_FOR_OP || t == XPL_EVENT_FOREVER_OP)
            return true;
    }
    return false;
}

static bool has_is_func(const struct xpl_plane *p) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == XPL_STAT_IS_FUNC) return true;
    return false;
}

void xpl_grp_precheck_plane(const struct plan *p, struct precheck *check) {
    const uint32_t loop = SC_BIT(SC_STEP_ID) | SC_BIT(SC_ITER_NUM);
    check->loops |= has_loop_op(p->plane);
    check->tpu |= p->tpu;
    check->iterators |= (p->roles & ROLE_ITERATOR) != 0;
    check->tpu_execute |= (p->roles & ROLE_TPU_EXECUTE) != 0;
    if (p->tpu) {
        check->lock_step |=
            p->plane->kind == XPL_PLANE_TPU_CORE && xpl_grp_tpu_line(p->plane, NULL);
        check->from_device |= (p->classes & SC_PRODUCER) == SC_PRODUCER;
        return;
    }
    check->roots |= (p->classes & SC_BIT(SC_IS_ROOT)) ||
                    (p->roles & (ROLE_TRACE_CONTEXT | ROLE_ROOT_1 | ROLE_ROOT_2)) ||
                    ((p->roles & ROLE_EXECUTOR) && (p->classes & loop) == loop);
    check->context |= (p->classes & SC_CONTEXT) != 0;
    check->eager |= (p->roles & ROLE_EAGER) && has_is_func(p->plane);
    check->kernels |=
        p->plane->kind != XPL_PLANE_HOST_THREADS && (p->classes & SC_BIT(SC_CORRELATION));
}

// [IsXSpaceGrouped]
bool xpl_grp_is_grouped(const struct xpl_groups *g) {
    for (uint32_t i = 0; i < g->xs->n_planes; i++) {
        const struct plan *const p = &g->planes[i].plan;
        const bool counts = xpl_grp_is_device_plane(p->plane) || xpl_grp_is_host_plane(p->plane);
        if (counts && !p->own_groups) return false;
    }
    return true;
}
