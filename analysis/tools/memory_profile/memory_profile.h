// SPDX-License-Identifier: Apache-2.0
// memory_profile: the memory of a host's allocators over time, from the MemoryAllocation and
// MemoryDeallocation events of its thread plane (XProf: xplane_to_memory_profile.cc).
#ifndef XPL_ANALYSIS_TOOLS_MEMORY_PROFILE_MEMORY_PROFILE_H_
#define XPL_ANALYSIS_TOOLS_MEMORY_PROFILE_MEMORY_PROFILE_H_

#include <stddef.h>

#include "base/buf.h"
#include "base/status.h"

struct xpl_exec;
struct xpl_xspace;

// Appends the finished answer (JSON).  Decodes events of the host plane only, and of those only the
// ones about memory; steps are worked out only when there are such events.  Uses 16 bytes per
// event of memory; `limit` bounds each arena and each array, in bytes.
// FAILED_PRECONDITION without a host plane (XProf has no answer either), DATA_LOSS for a broken
// event, CANCELLED, RESOURCE_EXHAUSTED.  On failure `out` holds a part of the answer.
xpl_status_t xpl_memory_profile(const struct xpl_xspace *xs, struct xpl_exec *exec, size_t limit,
                                struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
