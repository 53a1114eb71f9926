// SPDX-License-Identifier: Apache-2.0
// Short forms for tables of struct xpl_iree_field; the file that uses them defines T as the
// record's struct.
#ifndef XPL_ANALYSIS_IREEPROF_FIELDS_H_
#define XPL_ANALYSIS_IREEPROF_FIELDS_H_

#include <stddef.h>

#include "analysis/ireeprof/row.h"

// A member that is called as in the struct.
#define XPL_F(KIND, T, member)                                                                     \
    {                                                                                              \
        .name = #member, .name_length = sizeof #member - 1, .kind = XPL_IREE_##KIND,               \
        .offset = offsetof(struct xpl_iree_##T, member)                                            \
    }
// One that is called otherwise.
#define XPL_F_AS(KIND, T, member, as)                                                              \
    {                                                                                              \
        .name = (as), .name_length = sizeof(as) - 1, .kind = XPL_IREE_##KIND,                      \
        .offset = offsetof(struct xpl_iree_##T, member)                                            \
    }
// The name of a number.
#define XPL_F_NAME(T, member, as, set)                                                             \
    {                                                                                              \
        .name = (as), .name_length = sizeof(as) - 1, .kind = XPL_IREE_ENUM,                        \
        .names = XPL_IREE_NAMES_##set, .offset = offsetof(struct xpl_iree_##T, member)             \
    }
// Whether a flag is set.
#define XPL_F_BIT(T, as, mask)                                                                     \
    {                                                                                              \
        .name = (as), .name_length = sizeof(as) - 1, .kind = XPL_IREE_BIT, .bit = (mask),          \
        .offset = offsetof(struct xpl_iree_##T, flags)                                             \
    }
#define XPL_F_CONST(as, value)                                                                     \
    { .name = (as), .name_length = sizeof(as) - 1, .kind = XPL_IREE_CONST, .text = (value) }

#endif
