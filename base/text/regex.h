// SPDX-License-Identifier: Apache-2.0
// Regular expressions that strangers may write: whether one is found in a text, and what its first
// group matched.  By PCRE2, in its syntax, over bytes.
//
// A search is done by PCRE2's automaton, which follows all alternatives side by side, from one
// place of the text after the other: its steps grow with the square of the text's length times that
// of the expression, and are limited.  It knows no backreferences, no conditions on groups, no
// verbs and no \K, which are refused when the expression is compiled, as is recursion: a call of a
// group before its end, which may never end.  Assertions and other calls are searches of their own,
// whose number is limited.  Groups need PCRE2's other matcher, which tries one alternative after
// the other; its steps are limited, too.  A text that takes more is an error, not a wait.
//
// A compiled expression belongs to one thread at a time.
#ifndef XPL_BASE_TEXT_REGEX_H_
#define XPL_BASE_TEXT_REGEX_H_

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

struct xpl_regex;

enum {
    XPL_REGEX_MAX = 1000,      // bytes of an expression
    XPL_REGEX_TEXT_MAX = 4096, // bytes of a text that are searched; what follows does not count
};

// INVALID_ARGUMENT: `what` (the option's name), what is wrong, and at which character, from 1 on.
// RESOURCE_EXHAUSTED without memory.  Free with xpl_regex_free.
xpl_status_t xpl_regex_new(xpl_str_t pattern, const char *what, struct xpl_regex **ret,
                           struct xpl_error *err) XPL_NODISCARD;
void xpl_regex_free(struct xpl_regex *r); // NULL is fine

// Whether the text has a match.  INVALID_ARGUMENT when it takes too many steps to say.
xpl_status_t xpl_regex_search(struct xpl_regex *r, xpl_str_t text, bool *ret, struct xpl_error *err)
    XPL_NODISCARD;
// Likewise, and what the first group matched there: a part of `text`, empty when the group has no
// part in the match; all that matched when there is no group.
xpl_status_t xpl_regex_group(struct xpl_regex *r, xpl_str_t text, bool *ret, xpl_str_t *group,
                             struct xpl_error *err) XPL_NODISCARD;

#endif
