// SPDX-License-Identifier: Apache-2.0
// Short forms for tables of struct xpl_iree_field; the file that uses them defines T as the
// record's struct.
#ifndef XPL_ANALYSIS_IREEPROF_FIELDS_H_
#define XPL_ANALYSIS_IREEPROF_FIELDS_H_

#include <stddef.h>

#include "analysis/ireeprof/row.h"

// A name, which is a literal.
#define XPL_F_CALLED(as)                                                                           \
    .name = (as), .name_length = sizeof(as) - 1, .lead_length = sizeof("\"" as "\":") - 1,         \
    .lead = "\"" as "\":"
// A member that is called as in the struct.
#define XPL_F(KIND, T, member)                                                                     \
    {                                                                                              \
        XPL_F_CALLED(#member), .kind = XPL_IREE_##KIND,                                            \
                               .offset = offsetof(struct xpl_iree_##T, member)                     \
    }
// One that is called otherwise.
#define XPL_F_AS(KIND, T, member, as)                                                              \
    { XPL_F_CALLED(as), .kind = XPL_IREE_##KIND, .offset = offsetof(struct xpl_iree_##T, member) }
// The name of a number.
#define XPL_F_NAME(T, member, as, set)                                                             \
    {                                                                                              \
        XPL_F_CALLED(as), .kind = XPL_IREE_ENUM, .names = XPL_IREE_NAMES_##set,                    \
                          .offset = offsetof(struct xpl_iree_##T, member)                          \
    }
// Whether a flag is set.
#define XPL_F_BIT(T, as, mask)                                                                     \
    {                                                                                              \
        XPL_F_CALLED(as), .kind = XPL_IREE_BIT, .bit = (mask),                                     \
                          .offset = offsetof(struct xpl_iree_##T, flags)                           \
    }
// One of a u32 that is 0 or 1.
#define XPL_F_IS(T, member, as)                                                                    \
    {                                                                                              \
        XPL_F_CALLED(as), .kind = XPL_IREE_BIT, .bit = 1,                                          \
                          .offset = offsetof(struct xpl_iree_##T, member)                          \
    }
// The length of the span from one member to the next, and whether the span is valid.
#define XPL_F_SPAN(T, member, as)    XPL_F_AS(SPAN, T, member, as)
#define XPL_F_IS_SPAN(T, member, as) XPL_F_AS(IS_SPAN, T, member, as)
#define XPL_F_CONST(as, value)                                                                     \
    { XPL_F_CALLED(as), .kind = XPL_IREE_CONST, .text = (value) }

#endif
