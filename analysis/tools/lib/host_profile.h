// SPDX-License-Identifier: Apache-2.0
// Profiles of hosts, for tools that read profiles: an error names the file, as those of products
// do.
#ifndef XPL_ANALYSIS_TOOLS_LIB_HOST_PROFILE_H_
#define XPL_ANALYSIS_TOOLS_LIB_HOST_PROFILE_H_

#include "analysis/tools/tool.h"
#include "analysis/xplane/xspace.h"

// Opens the profile of one host.  Errors of xpl_xspace_open, as below.
xpl_status_t xpl_host_profile_open(const struct xpl_tool_input *in, size_t host,
                                   struct xpl_arena *arena, struct xpl_xspace **ret,
                                   struct xpl_error *err) XPL_NODISCARD;
// Sets `why`, which came up while the host's profile was read, and returns its code; what is wrong
// with the profile (DATA_LOSS) gets the file's path before it.
xpl_status_t xpl_host_profile_failed(const struct xpl_tool_input *in, size_t host,
                                     const struct xpl_error *why, struct xpl_error *err)
    XPL_NODISCARD;

#endif
