// Private to the device part: what its files share.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_DEVICE_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_DEVICE_H_

#include "analysis/opstats/convert.h"
#include "analysis/opstats/metrics/kernels.h"
#include "analysis/opstats/opstats.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/status.h"

// The planes that count as devices: every "/device:TPU:" plane, or else every "/device:GPU:" plane.
static inline bool xpl_is_device_plane(const struct xpl_convert *c, const struct xpl_plane *p) {
    if (!c->is_tpu) return p->kind == XPL_PLANE_GPU;
    return p->kind == XPL_PLANE_TPU_CORE || p->kind == XPL_PLANE_SPARSE_CORE ||
           p->kind == XPL_PLANE_TPU_OTHER;
}
// Those of a space, in file order; NULL at the arena's limit.
const struct xpl_plane **xpl_device_planes(const struct xpl_convert *c, struct xpl_arena *arena,
                                           size_t *ret_n);

// The outcome of one piece of parallel work; the first failure in plane order is reported.
struct xpl_piece {
    xpl_status_t status;
    struct xpl_error error;
};

// device_op_metrics_db with idle and busy times, from TPU planes.  `details` has one entry for each
// plane, zero where a plane tells none (see has_details).
struct xpl_plane_details {
    bool present;
    struct xpl_core_details core;
};
xpl_status_t xpl_device_tpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            const struct xpl_plane_details *details, size_t n,
                            struct xpl_opstats *s, struct xpl_error *err) XPL_NODISCARD;
// device_op_metrics_db and kernel_reports, from GPU planes.
xpl_status_t xpl_device_gpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            size_t n, struct xpl_opstats *s, struct xpl_error *err) XPL_NODISCARD;
// kernel_reports alone, from TPU planes: events with kernel_details count wherever they stand.
xpl_status_t xpl_device_kernels(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                                size_t n, struct xpl_opstats *s, struct xpl_error *err)
    XPL_NODISCARD;

// perf_env.c: peak rates from the statistics of the first device plane, and what GPUs are called.
// False at the arena's limit.
bool xpl_perf_env_fill(const struct xpl_plane *plane, struct xpl_arena *arena,
                       struct xpl_perf_env *ret) XPL_NODISCARD;
// "Nvidia GPU (Hopper)", "AMD GPU - gfx942", ...; "" for other vendors.
bool xpl_gpu_model_name(const struct xpl_plane *plane, struct xpl_arena *arena, xpl_str_t *ret)
    XPL_NODISCARD;
// Statistic device_vendor: "" when absent.
xpl_str_t xpl_gpu_vendor(const struct xpl_plane *plane);

#endif
