// SPDX-License-Identifier: Apache-2.0
// Times and sizes with units: "500ms", "2s", "1.5h", "10GiB".  Only 0 needs no unit, because "5"
// could mean seconds or milliseconds.
#ifndef XPL_BASE_TEXT_UNITS_H_
#define XPL_BASE_TEXT_UNITS_H_

#include <stdbool.h>
#include <stdint.h>

enum xpl_unit_kind {
    XPL_UNIT_TIME, // ms, s, m, min, h, d; in milliseconds
    XPL_UNIT_SIZE, // B, KiB, MiB, GiB, TiB (K, M, G, T are the same); in bytes
};

enum xpl_unit_result {
    XPL_UNIT_OK,
    XPL_UNIT_MISSING, // a number, and nothing behind it
    XPL_UNIT_SMALL,   // more than 0, and less than a millisecond or a byte
    XPL_UNIT_BAD,     // anything else
};

// Decimal digits, maybe with a point, blanks, a unit in upper or lower case.  Fractions of the
// smallest unit are cut off.  Values of 2^63 or more are BAD.  *ret is set only by OK.
enum xpl_unit_result xpl_units_parse(const char *text, enum xpl_unit_kind kind, uint64_t *ret);

enum { XPL_UNITS_TEXT = 160 };
// The fault of `text`, whose result was not OK, and a correction: `a unit is missing; write 5s or
// 5ms`.
const char *xpl_units_explain(const char *text, enum xpl_unit_kind kind, enum xpl_unit_result r,
                              char buf[XPL_UNITS_TEXT]);

enum { XPL_UNITS_VALUE = 24 };
// A value as one could write it, in the largest unit of which it is a multiple: "1h", "256MiB",
// "0".
const char *xpl_units_show(uint64_t v, enum xpl_unit_kind kind, char buf[XPL_UNITS_VALUE]);

#endif
