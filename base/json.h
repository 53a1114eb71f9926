// SPDX-License-Identifier: Apache-2.0
// JSON text into a buffer, in the two dialects that XProf's clients read.
#ifndef XPL_BASE_JSON_H_
#define XPL_BASE_JSON_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

// A quoted, escaped string.  Invalid UTF-8 is replaced by U+FFFD, so the output is always valid.
// `html`: also escape < > U+2028 U+2029, as proto JSON does.
void xpl_json_str(struct xpl_buf *b, xpl_str_t s, bool html);
// A member of an object, "key":"text": no comma.  `key` is written as it is.
void xpl_json_field(struct xpl_buf *b, const char *key, xpl_str_t text);
// Writes the first character of `s` (not empty) in the form of a quoted string, by the same rules
// without `html`.  Returns the bytes written to `out`, and sets the bytes of `s` that they encode.
enum { XPL_JSON_CHAR_MAX = 6 };
size_t xpl_json_char(xpl_str_t s, char out[XPL_JSON_CHAR_MAX], size_t *ret_used);
// gviz: shortest text that reads back the same, always with a point or exponent; NaN, Inf: null.
void xpl_json_gviz_number(struct xpl_buf *b, double v);
// As Python's repr prints it: shortest text that reads back the same, with a point or an exponent,
// the latter below 1e-4 and from 1e16 on; nan, inf, -inf.
void xpl_json_python_number(struct xpl_buf *b, double v);
// proto JSON: %.15g, or %.17g where that does not read back; "NaN", "Infinity" quoted.
void xpl_json_proto_double(struct xpl_buf *b, double v);
// The output of printf's %.6g, or of %.9g if that does not read back as the same float: the text
// that protobuf's text format and XLA give a finite float.  Returns its length; no terminator.
enum { XPL_JSON_FLOAT_MAX = 32 };
size_t xpl_json_float(float v, char out[XPL_JSON_FLOAT_MAX]);
// proto JSON 64-bit integers are strings.
void xpl_json_proto_int64(struct xpl_buf *b, int64_t v);
void xpl_json_proto_uint64(struct xpl_buf *b, uint64_t v);

// v with a fixed count of decimals (0 to 3), as printf's %.*f has it, for a magnitude below 1e14.
// Returns the length, 0 outside that range; no terminator.
enum { XPL_JSON_FIXED_MAX = 24 };
size_t xpl_json_fixed(double v, int decimals, char out[XPL_JSON_FIXED_MAX]);

#endif
