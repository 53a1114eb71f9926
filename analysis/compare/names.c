// SPDX-License-Identifier: Apache-2.0
// Names that stay the same when a program is compiled again.

#include "analysis/compare/compare.h"
#include "base/arena.h"

// Without the digits at the end and the separator before them.
static xpl_str_t without_number(xpl_str_t name, char separator) {
    size_t n = name.len;
    while (n && name.ptr[n - 1] >= '0' && name.ptr[n - 1] <= '9')
        n--;
    return n > 1 && n < name.len && name.ptr[n - 1] == separator ? xpl_str_sub(name, 0, n - 1)
                                                                 : name;
}

xpl_str_t xpl_run_op_name(xpl_str_t framework_op, xpl_str_t name) {
    if (framework_op.len)
        return xpl_str_sub(framework_op, 0,
                           framework_op.len - xpl_str_ends(framework_op, XPL_STR(":")));
    return without_number(xpl_str_sub(name, xpl_str_starts(name, XPL_STR("%")), SIZE_MAX), '.');
}

// Libraries' kernels have numbers that mean something ("..._128x64_32"); those of fusions do not.
xpl_str_t xpl_run_kernel_name(xpl_str_t name) {
    return xpl_str_has(name, XPL_STR("fusion")) || xpl_str_starts(name, XPL_STR("wrapped_"))
               ? without_number(name, '_')
               : name;
}

enum { MAX_SHAPE = 200 };

bool xpl_run_op_shape(xpl_str_t expression, struct xpl_arena *arena, xpl_str_t *ret) {
    const size_t open = xpl_str_find(expression, XPL_STR("("), 0);
    const size_t equal = xpl_str_find(expression, XPL_STR(" = "), 0);
    char out[MAX_SHAPE];
    size_t n = 0;
    if (equal == SIZE_MAX && open != SIZE_MAX && xpl_str_ends(expression, XPL_STR(")")))
        return xpl_arena_str(arena, xpl_str_sub(expression, open, MAX_SHAPE), ret);
    int braces = 0, parentheses = 0;
    for (size_t i = equal == SIZE_MAX ? expression.len : equal + 3;
         i < expression.len && n < sizeof out; i++) {
        const char c = expression.ptr[i];
        if (c == '{') braces++;
        if (!braces && !parentheses && c == ' ') break;
        if (!braces) out[n++] = c;
        if (!braces) parentheses += (c == '(') - (c == ')');
        if (c == '}') braces--;
    }
    return xpl_arena_str(arena, (xpl_str_t){out, n}, ret);
}
