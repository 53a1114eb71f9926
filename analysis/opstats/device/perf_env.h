// SPDX-License-Identifier: Apache-2.0
// What devices can do and what they are called, from the statistics of their planes.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_PERF_ENV_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_PERF_ENV_H_

#include <stdbool.h>

#include "analysis/opstats/opstats.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/status.h"

// Whether the statistics of a device's plane give its rate of operations or of memory.
bool xpl_plane_has_rates(const struct xpl_plane *plane);
// Peak rates from the statistics of a device's plane.  False at the arena's limit.
bool xpl_perf_env_fill(const struct xpl_plane *plane, struct xpl_arena *arena,
                       struct xpl_perf_env *ret) XPL_NODISCARD;
// "Nvidia GPU (Hopper)", "AMD GPU - gfx942", ...; "" for other vendors.
bool xpl_gpu_model_name(const struct xpl_plane *plane, struct xpl_arena *arena, xpl_str_t *ret)
    XPL_NODISCARD;
// Statistic device_vendor: "" when absent.
xpl_str_t xpl_gpu_vendor(const struct xpl_plane *plane);

#endif
