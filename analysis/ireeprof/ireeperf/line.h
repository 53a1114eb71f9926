// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/ireeperf/: one line of JSON, an object, by members and elements.
//
// IREE's export is not always valid JSON: bare words (nan, -inf) are values, and bytes of strings
// are taken as they are.  The caller enters objects and arrays that it knows, and skips the rest.
// The first error sticks.
#ifndef XPL_ANALYSIS_IREEPROF_IREEPERF_LINE_H_
#define XPL_ANALYSIS_IREEPROF_IREEPERF_LINE_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/text/json_reader.h"

struct xpl_ireeperf_line {
    struct xpl_json_reader r;
    const char *bad; // why the line is not read any further; NULL: all is well
};
enum xpl_ireeperf_token_kind {
    XPL_IREEPERF_TOKEN_WORD,   // a number, true, null, nan and so on
    XPL_IREEPERF_TOKEN_STRING, // text is what stands between the quotes, escapes and all
    XPL_IREEPERF_TOKEN_OBJECT,
    XPL_IREEPERF_TOKEN_ARRAY,
};
struct xpl_ireeperf_token {
    enum xpl_ireeperf_token_kind kind;
    xpl_str_t text; // of words and strings
};

// Begins a line; false (and l->bad) when it is no object.
bool xpl_ireeperf_line_begin(struct xpl_ireeperf_line *l, xpl_str_t text);
// The next member of the open object; false at its end, which is passed, or once l->bad.  A value
// that is an object or array is open then: to be read to its end, or skipped.
bool xpl_ireeperf_line_member(struct xpl_ireeperf_line *l, xpl_str_t *ret_name,
                              struct xpl_ireeperf_token *ret);
// The next element of the open array; likewise.
bool xpl_ireeperf_line_element(struct xpl_ireeperf_line *l, struct xpl_ireeperf_token *ret);
// Passes a value: nothing is left to do for words and strings.
void xpl_ireeperf_line_skip(struct xpl_ireeperf_line *l, const struct xpl_ireeperf_token *t);
// That nothing follows the object.
void xpl_ireeperf_line_end(struct xpl_ireeperf_line *l);

// A whole number of up to 64 bits; false when the token is none.
bool xpl_ireeperf_token_u64(const struct xpl_ireeperf_token *t, uint64_t *ret);
bool xpl_ireeperf_token_i64(const struct xpl_ireeperf_token *t, int64_t *ret);
// Appends a string without its escapes; false for an escape that is none.
bool xpl_ireeperf_token_text(xpl_str_t raw, struct xpl_buf *out);

#endif
