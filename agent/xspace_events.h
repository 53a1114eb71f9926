// SPDX-License-Identifier: Apache-2.0
// Turns one record into one event: its plane and line, its name, its details.
#ifndef XPL_AGENT_XSPACE_EVENTS_H_
#define XPL_AGENT_XSPACE_EVENTS_H_

#include "agent/stream.h"
#include "agent/xspace_model.h"

// Adds the events of a record of `process`; other kinds are skipped.  Call it after the first pass
// over the records (xspace_build.c), which finds names, devices and clocks.  Fails only without
// memory: RESOURCE_EXHAUSTED.
xpl_status_t xpl_agent_add_event(struct builder *b, uint32_t process,
                                 const struct xpl_stream_record *r, struct xpl_error *err)
    XPL_NODISCARD;

#endif
