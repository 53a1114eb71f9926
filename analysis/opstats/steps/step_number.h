// SPDX-License-Identifier: Apache-2.0
// The number and the series of a step, as every view shows them.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_NUMBER_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_NUMBER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

// The number that the program gave a step is the last word of its name, "train 17" or "train -2",
// for grouping names it so.  *ret_begin is where that word begins.  False for a name that ends
// otherwise, or in more than 18 digits.
static inline bool xpl_step_read_number(xpl_str_t name, int64_t *ret, size_t *ret_begin) {
    size_t at = name.len;
    int64_t v = 0, unit = 1;
    while (at && name.ptr[at - 1] >= '0' && name.ptr[at - 1] <= '9' && name.len - at < 18) {
        v += unit * (name.ptr[--at] - '0');
        unit *= 10;
    }
    if (at == name.len) return false;
    if (at && name.ptr[at - 1] == '-') at--, v = -v;
    *ret = v, *ret_begin = at;
    return !at || name.ptr[at - 1] == ' ';
}

// The number of a step; of one without, `index`, which counts the groups of the profile.
static inline int64_t xpl_step_number(xpl_str_t name, int64_t index) {
    int64_t v;
    size_t at;
    return xpl_step_read_number(name, &v, &at) ? v : index;
}

// Where nothing marks steps, executions of a program are: their series is this and its name.
#define XPL_STEP_EXECUTION "execution of "

static inline bool xpl_step_is_execution(xpl_str_t name) {
    return xpl_str_starts(name, XPL_STR(XPL_STEP_EXECUTION));
}

// What the steps of one loop have in common: the name of the annotation, "train".  A view.
static inline xpl_str_t xpl_step_series(xpl_str_t name) {
    int64_t v;
    size_t at;
    if (!xpl_step_read_number(name, &v, &at)) return name;
    return (xpl_str_t){name.ptr, at ? at - 1 : 0};
}

#endif
