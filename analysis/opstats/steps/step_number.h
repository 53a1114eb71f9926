// SPDX-License-Identifier: Apache-2.0
// The number of a step that people see, in every view.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_NUMBER_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_NUMBER_H_

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

// The number that the program gave a step is the last word of its name, "train 17", for grouping
// names it so.  A step whose name ends otherwise, or in more than 18 digits, keeps `index`, which
// counts the groups of the profile.
static inline int64_t xpl_step_number(xpl_str_t name, int64_t index) {
    size_t at = name.len;
    int64_t v = 0, unit = 1;
    while (at && name.ptr[at - 1] >= '0' && name.ptr[at - 1] <= '9' && name.len - at < 18) {
        v += unit * (name.ptr[--at] - '0');
        unit *= 10;
    }
    return at < name.len && (!at || name.ptr[at - 1] == ' ') ? v : index;
}

#endif
