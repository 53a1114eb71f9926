// SPDX-License-Identifier: Apache-2.0
// What the author of a TPU kernel wrote for profilers: the value of "xprof_metadata" in the
// kernel_metadata of an instruction's frontend_attributes, out of the instruction's text.
#ifndef XPL_ANALYSIS_TOOLS_LIB_KERNEL_METADATA_H_
#define XPL_ANALYSIS_TOOLS_LIB_KERNEL_METADATA_H_

#include <stdbool.h>

#include "base/str.h"

struct xpl_arena;

// The value as compact JSON with its keys in order, as XProf prints it
// (ExtractXprofKernelMetadata);
// "" when there is none or it is no JSON.  Instructions that refer to computations have none
// either: XProf parses the line alone and fails.  *ret lives in `arena`.  False at its limit.
bool xpl_instruction_kernel_metadata(xpl_str_t instruction, struct xpl_arena *arena, xpl_str_t *ret)
    __attribute__((warn_unused_result));

#endif
