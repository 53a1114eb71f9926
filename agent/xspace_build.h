// SPDX-License-Identifier: Apache-2.0
// All records of all processes -> planes, lines and events.
#ifndef XPL_AGENT_XSPACE_BUILD_H_
#define XPL_AGENT_XSPACE_BUILD_H_

#include "agent/xspace_model.h"

// Fills the builder, whose arena, names and processes are set.  Uses a stream up to its first
// malformed record.  Fails only without memory: RESOURCE_EXHAUSTED.
xpl_status_t xpl_agent_build(struct builder *b, struct xpl_error *err) XPL_NODISCARD;

#endif
