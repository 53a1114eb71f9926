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

#endif
