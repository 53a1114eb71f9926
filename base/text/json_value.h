// SPDX-License-Identifier: Apache-2.0
// JSON of other programs as a tree, for texts that are small: what json_reader.h reads strictly,
// and UTF-8 and surrogates are checked; numbers beyond a double's range are errors.
#ifndef XPL_BASE_TEXT_JSON_VALUE_H_
#define XPL_BASE_TEXT_JSON_VALUE_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

struct xpl_arena;

enum xpl_json_type {
    XPL_JSON_NULL,
    XPL_JSON_BOOL,
    XPL_JSON_INT,  // text is its digits, in 64 bits of either sign
    XPL_JSON_REAL, // any other number
    XPL_JSON_STRING,
    XPL_JSON_ARRAY,
    XPL_JSON_OBJECT,
};

struct xpl_json_value {
    enum xpl_json_type type;
    bool b;
    double real;
    xpl_str_t text; // STRING without its escapes, INT
    xpl_str_t key;  // of a member of an object
    // Elements; members of an object are in order of their keys, of equal ones the last.
    struct xpl_json_value *children;
    size_t n;
};

enum xpl_json_result { XPL_JSON_OK, XPL_JSON_INVALID, XPL_JSON_OOM };

// Reads one value from the beginning of `text`; *ret_rest is the text after it.
enum xpl_json_result xpl_json_value_read(xpl_str_t text, struct xpl_arena *arena,
                                         struct xpl_json_value *ret, xpl_str_t *ret_rest)
    __attribute__((warn_unused_result));
// Reads a text that is one value and nothing else but blanks.
enum xpl_json_result xpl_json_value_parse(xpl_str_t text, struct xpl_arena *arena,
                                          struct xpl_json_value *ret)
    __attribute__((warn_unused_result));
// Member of an object, or NULL.
const struct xpl_json_value *xpl_json_value_member(const struct xpl_json_value *object,
                                                   xpl_str_t key);
// Compact text of a value.
void xpl_json_value_write(const struct xpl_json_value *v, struct xpl_buf *out);

#endif
