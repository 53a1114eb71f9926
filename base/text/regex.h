// SPDX-License-Identifier: Apache-2.0
// Untrusted regular expressions: search in a text, and the match of the first group.  By PCRE2, in
// its syntax, over bytes.
//
// Searches use PCRE2's automaton, which follows all alternatives in parallel, from each position of
// the text: its steps grow with the square of the text's length times that of the expression, and
// are limited.  It does not support backreferences, conditions on groups, verbs and \K; these are
// refused when the expression is compiled, as is recursion (a call of a group before its end),
// which may not terminate.  Assertions and other calls are separate searches, whose number is
// limited.  Groups need PCRE2's other matcher, which tries alternatives one by one; its steps are
// limited, too.  A text that needs more steps is an error.
//
// A compiled expression belongs to one thread at a time.
#ifndef XPL_BASE_TEXT_REGEX_H_
#define XPL_BASE_TEXT_REGEX_H_

#include <stdbool.h>

#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_regex;

enum {
    XPL_REGEX_MAX = 1000,      // bytes of an expression
    XPL_REGEX_TEXT_MAX = 4096, // searched bytes of a text; the rest is ignored
};

// INVALID_ARGUMENT: `what` (the option's name), the fault, and its character, from 1 on.
// RESOURCE_EXHAUSTED without memory.  Searches end with CANCELLED soon after `exec` (may be NULL)
// is cancelled.  Free with xpl_regex_free.
xpl_status_t xpl_regex_new(xpl_str_t pattern, const char *what, struct xpl_exec *exec,
                           struct xpl_regex **ret, struct xpl_error *err) XPL_NODISCARD;
void xpl_regex_free(struct xpl_regex *r); // NULL is fine

// Whether the text has a match.  INVALID_ARGUMENT when it takes too many steps to say.
xpl_status_t xpl_regex_search(struct xpl_regex *r, xpl_str_t text, bool *ret, struct xpl_error *err)
    XPL_NODISCARD;
// Like xpl_regex_search, and returns the match of the first group: a part of `text`, empty if the
// group does not take part in the match.  Without a group it is the complete match.
xpl_status_t xpl_regex_group(struct xpl_regex *r, xpl_str_t text, bool *ret, xpl_str_t *group,
                             struct xpl_error *err) XPL_NODISCARD;

#endif
