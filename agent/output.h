// SPDX-License-Identifier: Apache-2.0
// A captured XSpace as a file: REPOSITORY_ROOT/SESSION/HOST.xplane.pb, as profiler servers write it
// for clients that do not take the bytes over the wire.
#ifndef XPL_AGENT_OUTPUT_H_
#define XPL_AGENT_OUTPUT_H_

#include "base/status.h"
#include "base/str.h"

// `session` and `host` must be names, not paths: '/' and a leading '.' are refused; ':' becomes
// '_' in `host`.  Written aside, then renamed: a reader sees the whole file or none.  Directories
// are made.
xpl_status_t xpl_agent_write_file(const char *root, const char *session, const char *host,
                                  xpl_bytes_t xspace, struct xpl_error *err) XPL_NODISCARD;

#endif
