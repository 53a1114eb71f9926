// SPDX-License-Identifier: Apache-2.0
// Answers that are protobuf, as lines of text: equal answers have equal lines.  What XProf itself
// does not keep from one process to the next is not in them: the order of arguments and of map
// entries, ids of interned texts, numbers of flows.  Nor is what the trace for Perfetto says of
// hidden events, which is in words of one's own.
#ifndef XPL_TESTS_GOLDEN_PACKETS_H_
#define XPL_TESTS_GOLDEN_PACKETS_H_

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

// Appends a line for each packet of a trace, or for each list of fractions; false: it is neither.
bool packets_of_trace(xpl_bytes_t trace, struct xpl_buf *ret);
bool packets_of_fractions(xpl_bytes_t results, struct xpl_buf *ret);

// True when the lines are equal; else the first that differ are in `why`.
bool packets_equal(const struct xpl_buf *expected, const struct xpl_buf *got, char *why,
                   size_t why_size);

#endif
