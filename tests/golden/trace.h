// SPDX-License-Identifier: Apache-2.0
// Whether two answers of a trace tool show the same events, in any order.  What XProf itself does
// not keep from one process to the next is not compared: ids of flows, serial numbers, the order of
// events.  Times agree to 15 digits.  The rest must be the same.
#ifndef XPL_TESTS_GOLDEN_TRACE_H_
#define XPL_TESTS_GOLDEN_TRACE_H_

#include <stdbool.h>
#include <stddef.h>

#include "tests/golden/value.h"

// True when equal; else the first difference is in `why`.
bool trace_equal(const struct value *expected, const struct value *got, char *why, size_t why_size);

#endif
