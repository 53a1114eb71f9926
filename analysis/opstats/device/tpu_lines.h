// SPDX-License-Identifier: Apache-2.0
// What the lines of TPU planes are, by their names.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_TPU_LINES_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_TPU_LINES_H_

#include <stdbool.h>

#include "analysis/xplane/xspace.h"

static inline bool line_is(const struct xpl_line *l, xpl_str_t name) {
    return xpl_str_eq(l->name, name);
}
static inline bool is_op_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_OPS)) || line_is(l, XPL_STR(XPL_LINE_FRAMEWORK_OPS)) ||
           line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
}
static inline bool is_duty_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_OPS)) || line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
}
static inline bool is_module_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_MODULES)) ||
           line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_MODULES));
}
static inline bool is_step_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_STEPS)) || line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS));
}

#endif
