// SPDX-License-Identifier: Apache-2.0
// Items of a compiled expression that the search does not support.  Private to regex.c, whose
// header has the reasons.
#ifndef XPL_BASE_TEXT_REGEX_ITEMS_H_
#define XPL_BASE_TEXT_REGEX_ITEMS_H_

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>

#include "base/str.h"

struct xpl_regex_item {
    xpl_str_t text;         // of the expression
    size_t at;              // where in it
    const char *kind, *why; // its name before its text, and the reason after it
};
// The first such item of `code`, which was compiled from `pattern` with PCRE2_AUTO_CALLOUT; false:
// there is none.
bool xpl_regex_item_find(const pcre2_code *code, xpl_str_t pattern, struct xpl_regex_item *ret);

#endif
