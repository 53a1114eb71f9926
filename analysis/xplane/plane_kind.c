// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/plane_kind.h"

#include "analysis/xplane/schema.h"

static bool is_all(xpl_str_t s, bool (*test)(char)) {
    for (size_t i = 0; i < s.len; i++)
        if (!test(s.ptr[i])) return false;
    return true;
}
static bool is_digit(char ch) {
    return ch >= '0' && ch <= '9';
}
static bool is_letter(char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

// A core number as XProf's int: -1 when there is none or it does not fit.
static int64_t core_number(xpl_str_t digits) {
    int64_t v = 0;
    for (size_t i = 0; i < digits.len; i++) {
        v = v * 10 + (digits.ptr[i] - '0');
        if (v > INT32_MAX) return -1;
    }
    return digits.len ? v : -1;
}

static void set_tpu_kind(struct xpl_plane *p, xpl_str_t rest) {
    p->kind = XPL_PLANE_TPU_OTHER;
    if (is_all(rest, is_digit)) {
        p->kind = XPL_PLANE_TPU_CORE;
        p->core_id = core_number(rest);
        return;
    }
    static const xpl_str_t words = {" SparseCore ", 12};
    const size_t at = xpl_str_find(rest, words, 0);
    if (at == SIZE_MAX || at == 0 || !is_all(xpl_str_sub(rest, 0, at), is_digit)) return;
    xpl_str_t number = xpl_str_sub(rest, at + words.len, SIZE_MAX);
    const size_t space = xpl_str_find(number, XPL_STR(" "), 0);
    if (space != SIZE_MAX) { // "SparseCore abc 3"
        if (space == 0 || !is_all(xpl_str_sub(number, 0, space), is_letter)) return;
        number = xpl_str_sub(number, space + 1, SIZE_MAX);
    }
    if (number.len == 0 || !is_all(number, is_digit)) return;
    p->kind = XPL_PLANE_SPARSE_CORE;
    p->core_id = core_number(number);
}

void xpl_plane_set_kind(struct xpl_plane *p) {
    static const xpl_str_t tpu = {XPL_PLANE_NAME_TPU_PREFIX, sizeof XPL_PLANE_NAME_TPU_PREFIX - 1};
    p->core_id = -1;
    p->kind = XPL_PLANE_OTHER;
    if (xpl_str_eq(p->name, XPL_STR(XPL_PLANE_NAME_HOST_THREADS)))
        p->kind = XPL_PLANE_HOST_THREADS;
    else if (xpl_str_eq(p->name, XPL_STR(XPL_PLANE_NAME_METADATA)))
        p->kind = XPL_PLANE_METADATA;
    else if (xpl_str_starts(p->name, XPL_STR(XPL_PLANE_NAME_GPU_PREFIX)))
        p->kind = XPL_PLANE_GPU;
    else if (xpl_str_starts(p->name, XPL_STR(XPL_PLANE_NAME_CUSTOM_PREFIX)))
        p->kind = XPL_PLANE_CUSTOM;
    else if (xpl_str_starts(p->name, tpu))
        set_tpu_kind(p, xpl_str_sub(p->name, tpu.len, SIZE_MAX));
}

bool xpl_line_is_stream(const struct xpl_line *line) {
    return !xpl_is_derived_line_id(line->id) && !xpl_str_eq(line->name, XPL_STR(XPL_LINE_STEPS)) &&
           !xpl_str_eq(line->name, XPL_STR(XPL_LINE_XLA_MODULES)) &&
           !xpl_str_eq(line->name, XPL_STR(XPL_LINE_XLA_OPS)) &&
           !xpl_str_eq(line->name, XPL_STR(XPL_LINE_COUNTERS));
}
