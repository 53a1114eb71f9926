// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/plan/planes.h"

#include "analysis/xplane/schema.h"

bool xpl_grp_is_host_plane(const struct xpl_plane *p) {
    static const char *const hosts[] = {XPL_PLANE_NAME_HOST_THREADS, XPL_PLANE_NAME_HOST_CPUS,
                                        XPL_PLANE_NAME_TF_STREAMZ,   XPL_PLANE_NAME_METADATA,
                                        XPL_PLANE_NAME_SYSCALLS,     XPL_PLANE_NAME_PYTHON_TRACER,
                                        XPL_PLANE_NAME_CUPTI_API,    XPL_PLANE_NAME_SCOPE_RANGE_ID};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (xpl_str_starts(p->name, xpl_str_from(hosts[i]))) return true;
    return false;
}

bool xpl_grp_is_device_plane(const struct xpl_plane *p) {
    return !xpl_grp_is_host_plane(p) &&
           (xpl_str_starts(p->name, XPL_STR("/device")) ||
            xpl_str_starts(p->name, XPL_STR(XPL_PLANE_NAME_TPU_NON_CORE)) ||
            xpl_str_starts(p->name, XPL_STR("/custom:")));
}

bool xpl_grp_is_step_line(const struct xpl_line *l) {
    return xpl_str_eq(l->name, XPL_STR(XPL_LINE_STEPS)) ||
           xpl_str_eq(l->name, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS));
}

const struct xpl_line *xpl_grp_tpu_line(const struct xpl_plane *p,
                                        const struct xpl_line **ret_steps) {
    const struct xpl_line *steps = NULL, *modules = NULL;
    for (uint32_t i = 0; i < p->n_lines; i++) {
        const xpl_str_t name = p->lines[i].name;
        if (xpl_str_eq(name, XPL_STR(XPL_LINE_STEPS)) ||
            xpl_str_eq(name, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS)))
            steps = &p->lines[i];
        else if (xpl_str_eq(name, XPL_STR(XPL_LINE_XLA_MODULES)) ||
                 xpl_str_eq(name, XPL_STR(XPL_LINE_SPARSE_CORE_MODULES)))
            modules = &p->lines[i];
    }
    if (ret_steps) *ret_steps = steps;
    if (steps && steps->n_events) return steps;
    return modules && modules->n_events ? modules : NULL;
}
