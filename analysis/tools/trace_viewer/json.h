// SPDX-License-Identifier: Apache-2.0
// Parts of Chrome's trace format in the spelling of Python's json.dumps, and numbers for it.
#ifndef XPL_ANALYSIS_TOOLS_TRACE_VIEWER_JSON_H_
#define XPL_ANALYSIS_TOOLS_TRACE_VIEWER_JSON_H_

#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

// A quoted string in ASCII; invalid UTF-8 becomes U+FFFD.
void xpl_trace_json_str(struct xpl_buf *b, xpl_str_t s);
// Integers as strings.
void xpl_trace_json_int(struct xpl_buf *b, int64_t v);
void xpl_trace_json_uint(struct xpl_buf *b, uint64_t v);
// Picoseconds as microseconds: the shortest text that reads back as the double nearest to them.
void xpl_trace_json_us(struct xpl_buf *b, uint64_t ps);

#endif
