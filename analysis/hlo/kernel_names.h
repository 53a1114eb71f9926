// SPDX-License-Identifier: Apache-2.0
// Fusions by the names of their kernels.  XLA names the kernel that it generates for a fusion after
// it, with "_" for characters that a function's name cannot have: loop_add_fusion_1 is that of
// loop_add_fusion.1.  Fusions with the same code share the kernel of the first.
#ifndef XPL_ANALYSIS_HLO_KERNEL_NAMES_H_
#define XPL_ANALYSIS_HLO_KERNEL_NAMES_H_

#include <stdbool.h>

#include "analysis/hlo/hlo_module.h"

struct xpl_hlo_kernel_names {
    struct xpl_map by_hash; // of the name: an instruction + 1; UINT64_MAX: several
};

// The names of a valid module.  False at the arena's limit.
bool xpl_hlo_kernel_names_read(const struct xpl_hlo_module *m, struct xpl_arena *a,
                               struct xpl_hlo_kernel_names *ret) XPL_NODISCARD;
// The fusion with that kernel; UINT32_MAX where none has, or more than one could.
uint32_t xpl_hlo_kernel_names_find(const struct xpl_hlo_kernel_names *k,
                                   const struct xpl_hlo_module *m, xpl_str_t kernel);

#endif
