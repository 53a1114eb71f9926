// SPDX-License-Identifier: Apache-2.0
// The profiles of a session's hosts, for the tools that read all of them.
#ifndef XPL_ANALYSIS_TOOLS_LIB_SPACES_H_
#define XPL_ANALYSIS_TOOLS_LIB_SPACES_H_

#include "analysis/tools/tool.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"

// Opens the profile of each host; `spaces` has room for all.  NULL: the host is left out.  One that
// is damaged is, with a warning, unless hosts were named or no other can be opened: DATA_LOSS.
xpl_status_t xpl_spaces_open(const struct xpl_tool_input *in, struct xpl_arena *arena,
                             const struct xpl_xspace **spaces, struct xpl_error *err) XPL_NODISCARD;

// Leaves a host out whose profile turned out to be damaged, as `why` says, in the same way.  Fails
// with `why` where it is the last one, where hosts were named, and where it says something else.
xpl_status_t xpl_spaces_leave_out(const struct xpl_tool_input *in, const struct xpl_xspace **spaces,
                                  size_t host, const struct xpl_error *why, struct xpl_error *err)
    XPL_NODISCARD;

#endif
