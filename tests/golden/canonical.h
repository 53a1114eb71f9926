// SPDX-License-Identifier: Apache-2.0
// Whether two answers of one tool are equal in every way a user could see. What XProf itself does
// not keep from one process to the next is not compared: the order of keys, of rows that tie in
// every column a sort uses (with rank and running totals inside the tie), and which of several
// equal allocations a row of the memory profile shows. Numbers agree within 1e-9 of their size. The
// same meaning as tests/parity/compare.py.
#ifndef XPL_TESTS_GOLDEN_CANONICAL_H_
#define XPL_TESTS_GOLDEN_CANONICAL_H_

#include <stdbool.h>
#include <stddef.h>

#include "tests/golden/value.h"

// True when equal; else the first difference is in `why`.
bool canonical_equal(const char *tool, const struct value *expected, const struct value *got,
                     char *why, size_t why_size);

#endif
