// SPDX-License-Identifier: Apache-2.0
// The header or metadata "traceparent" (W3C Trace Context, level 1, section 3.2): which request of
// a client's trace this one is.
#ifndef XPL_SERVER_TRACEPARENT_H_
#define XPL_SERVER_TRACEPARENT_H_

#include <stdbool.h>

#include "base/str.h"

#define XPL_TRACEPARENT "traceparent"

struct xpl_traceparent { // lower-case hexadecimal digits, neither all zero
    char trace_id[33], parent_id[17];
};

// False, and *ret is unchanged, for any text that the standard tells to ignore: a version of ff,
// digits in upper case, ids of zeros, a wrong length.  Of versions later than 00 the fields of 00
// are read.
bool xpl_traceparent_parse(xpl_str_t text, struct xpl_traceparent *ret);

enum { XPL_TRACEPARENT_TEXT = 56 };
// The text of version 00 with the ids of any that can be read, without flags; else an empty one.
void xpl_traceparent_clean(xpl_str_t text, char ret[XPL_TRACEPARENT_TEXT]);

struct xpl_log_line;
// Adds trace_id and parent_id to a line, if the text can be read.
void xpl_traceparent_log(xpl_str_t text, struct xpl_log_line *l);

#endif
