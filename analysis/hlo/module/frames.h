// SPDX-License-Identifier: Apache-2.0
// The stack frames of a module: where in the user's program its instructions come from.
#ifndef XPL_ANALYSIS_HLO_MODULE_FRAMES_H_
#define XPL_ANALYSIS_HLO_MODULE_FRAMES_H_

#include "analysis/hlo/hlo_module.h"

// Reads a StackFrameIndexProto into the tables of `m`: files, functions, locations, frames.  No
// other function writes them.  DATA_LOSS: malformed; RESOURCE_EXHAUSTED at the arena's limit.
xpl_status_t xpl_hlo_frames_read(xpl_bytes_t bytes, struct xpl_arena *a, struct xpl_hlo_module *m)
    XPL_NODISCARD;

#endif
