// SPDX-License-Identifier: Apache-2.0
// A tool's table as CSV, as XProf writes it, or with units in the header that the cells have.
#ifndef XPL_SERVER_HTTP_CSV_H_
#define XPL_SERVER_HTTP_CSV_H_

#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

// Appends the table of a tool's JSON answer to `out`.  The header says which columns of `tool` are
// fractions, and texts that are formulas to a spreadsheet get an apostrophe; of NULL all is as
// XProf has it, which calls the fractions "(%)".  INVALID_ARGUMENT: the answer has no table;
// RESOURCE_EXHAUSTED.  Any thread.
xpl_status_t xpl_http_csv(xpl_str_t json, const struct xpl_tool *tool, struct xpl_arena *scratch,
                          struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
