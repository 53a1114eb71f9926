// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/convert.h"

#include "analysis/hlo/hlo_map.h"
#include "analysis/opstats/conversion.h"
#include "analysis/opstats/device/part.h"
#include "analysis/opstats/host/cpu_device.h"
#include "analysis/opstats/host/host_scan.h"
#include "analysis/opstats/host/input_work.h"
#include "analysis/opstats/host/part.h"
#include "analysis/opstats/steps/steps.h"
#include "base/arena.h"
#include "base/cleanup.h"

static bool has_kind(const struct xpl_xspace *xs, enum xpl_plane_kind a, enum xpl_plane_kind b,
                     enum xpl_plane_kind c) {
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        const enum xpl_plane_kind k = xs->planes[i].kind;
        if (k == a || k == b || k == c) return true;
    }
    return false;
}

static bool has_tpu(const struct xpl_xspace *xs) {
    return has_kind(xs, XPL_PLANE_TPU_CORE, XPL_PLANE_SPARSE_CORE, XPL_PLANE_TPU_OTHER);
}
static bool has_gpu(const struct xpl_xspace *xs) {
    return has_kind(xs, XPL_PLANE_GPU, XPL_PLANE_GPU, XPL_PLANE_GPU);
}

bool xpl_xspace_has_device(const struct xpl_xspace *xs) {
    return has_tpu(xs) || has_gpu(xs);
}

// TPUs tell what their ops cost.
static enum xpl_hlo_costs_kind needed_costs(const struct xpl_xspace *xs,
                                            const struct xpl_convert_options *opt) {
    if (has_tpu(xs)) return XPL_HLO_COSTS_NONE;
    if (has_gpu(xs)) return opt->xprof_exact ? XPL_HLO_COSTS_XPROF : XPL_HLO_COSTS_KNOWN;
    return opt->cpu_as_device ? XPL_HLO_COSTS_CPU : XPL_HLO_COSTS_NONE;
}

static void free_search(struct xpl_input_search **s) {
    xpl_input_search_free(*s);
}

// Groups the space, and searches it for what tf.data runs where that matters.
static xpl_status_t group(const struct xpl_xspace *xs, const struct xpl_convert_options *opt,
                          struct xpl_exec *exec, struct xpl_arena *arena, struct xpl_groups **ret,
                          struct xpl_input_work *ret_input, struct xpl_error *err) {
    XPL_AUTO(free_search) struct xpl_input_search *search = NULL;
    const struct xpl_plane *const host = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    if (host && opt->cpu_as_device && !xpl_xspace_has_device(xs))
        XPL_TRY(xpl_input_search_new(host, arena, &search, err));
    const struct xpl_group_options grouping = {.batches = !opt->xprof_exact,
                                               .watch = xpl_input_search_watch(search)};
    XPL_TRY(xpl_groups_build_with(xs, &grouping, arena, exec, ret, err));
    return xpl_input_search_end(search, exec, ret_input, err);
}

enum { FASTEST_RAM = 1000 }; // GB/s; no CPU of 2026 has it

static void free_map(struct xpl_hlo_map **m) {
    xpl_hlo_map_free(*m);
}

// Steps come last: they read what the others found.
static xpl_status_t run_parts(const struct xpl_convert *c, struct xpl_opstats *s,
                              struct xpl_error *err) {
    if (c->opt->steps_only) return xpl_convert_steps(c, s, err);
    XPL_TRY(xpl_convert_device(c, s, err));
    XPL_TRY(xpl_convert_host(c, s, err));
    XPL_TRY(xpl_convert_cpu_device(c, s, err));
    if (s->run_environment.hardware_type == XPL_HW_CPU_ONLY)
        xpl_device_forget_cached_bytes(s, FASTEST_RAM);
    return xpl_convert_steps(c, s, err);
}

xpl_status_t xpl_opstats_convert(const struct xpl_xspace *xs, const struct xpl_convert_options *opt,
                                 struct xpl_exec *exec, struct xpl_arena *result,
                                 size_t scratch_limit, struct xpl_opstats **ret,
                                 struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = {0}; // of the groups
    xpl_arena_init(&arena, scratch_limit);
    XPL_AUTO(free_map) struct xpl_hlo_map *hlo = NULL;
    XPL_AUTO(xpl_host_scan_fini) struct xpl_host_scan host = {0};
    struct xpl_groups *groups = NULL;
    XPL_TRY(xpl_hlo_map_new(xs, scratch_limit, &hlo, err));
    xpl_hlo_map_need_costs(hlo, needed_costs(xs, opt));
    struct xpl_input_work input = {0};
    XPL_TRY(group(xs, opt, exec, &arena, &groups, &input, err));
    struct xpl_opstats *const s = xpl_arena_zalloc(result, sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "op statistics");
    const struct xpl_convert c = {
        .xs = xs,
        .groups = groups,
        .hlo = hlo,
        .opt = opt,
        .exec = exec,
        .result = result,
        .scratch_limit = scratch_limit,
        .is_tpu = has_tpu(xs),
        .is_gpu = !has_tpu(xs) && has_gpu(xs),
        .host = &host,
        .input = &input,
    };
    XPL_TRY(run_parts(&c, s, err));
    *ret = s;
    return XPL_OK;
}
