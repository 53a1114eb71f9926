// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the nearest known name to an unknown one.
//
// Names are compared without case.  A name is near when few letters are wrong, missing, too many or
// swapped with their neighbour (one of three to five letters, two of up to eight, else three), or
// when it begins with the given text (three letters or more).  A given text without a slash is also
// compared with the part after the last slash of a name.
//
//     struct xpl_near near = xpl_near_begin(given);
//     for (...) xpl_near_add(&near, names[i]);
//     char hint[XPL_NEAR_TEXT];
//     printf("no tool \"%s\"%s", given, xpl_near_text(&near, hint));
#ifndef XPL_BASE_TEXT_NEAR_H_
#define XPL_BASE_TEXT_NEAR_H_

#include "base/str.h"

enum { XPL_NEAR_TEXT = 96 }; // longer names are not proposed

struct xpl_near {
    xpl_str_t given, best; // views; `best` is empty while there is none
    unsigned distance;     // of the best
};

struct xpl_near xpl_near_begin(xpl_str_t given);
// Of several that are equally near the first counts.  The name's bytes must stay until the text is
// written.
void xpl_near_add(struct xpl_near *n, xpl_str_t name);
// The same, but only compares `part` of the name.
void xpl_near_add_part(struct xpl_near *n, xpl_str_t name, xpl_str_t part);
// Adds each of "a|b|c".
void xpl_near_add_list(struct xpl_near *n, const char *names);
// Writes and returns `; did you mean "NAME"?`, or "" when no name is near.
const char *xpl_near_text(const struct xpl_near *n, char buf[XPL_NEAR_TEXT]);
// The same of a flag's name: `; did you mean "--NAME"?`.
const char *xpl_near_flag(const struct xpl_near *n, char buf[XPL_NEAR_TEXT]);
// begin, add_list and text.
const char *xpl_near_of(const char *given, const char *names, char buf[XPL_NEAR_TEXT]);

#endif
