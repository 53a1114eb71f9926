// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/collectives/expression.h"

#include <string.h>

#include "analysis/hlo/types.h"
#include "base/text/parse.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { MAX_AXES = 16, MAX_TYPES = 64 };

// Longer names before those that they begin with.
static const char *const kKinds[] = {
    "all-reduce",           "all-gather", "reduce-scatter",
    "ragged-all-to-all",    "all-to-all", "collective-permute",
    "collective-broadcast", "send",       "recv",
};

// ---- the operation ----

// "-start" or "-done" after a kind: its length.
static size_t read_suffix(xpl_str_t rest, struct xpl_collective_text *t) {
    t->starts = xpl_str_starts(rest, XPL_STR("-start"));
    t->ends = xpl_str_starts(rest, XPL_STR("-done"));
    return t->starts ? strlen("-start") : t->ends ? strlen("-done") : 0;
}

// Finds " KIND(" and tells where the operands begin.
static bool find_operation(xpl_str_t s, struct xpl_collective_text *t, size_t *ret_begin,
                           size_t *ret_operands) {
    for (size_t i = 0; i < COUNT(kKinds); i++) {
        const xpl_str_t kind = xpl_str_from(kKinds[i]);
        for (size_t at = 0; (at = xpl_str_find(s, kind, at)) < s.len; at++) {
            const xpl_str_t rest = xpl_str_sub(s, at + kind.len, SIZE_MAX);
            if (at == 0 || s.ptr[at - 1] != ' ') continue;
            const size_t n = read_suffix(rest, t);
            if (n >= rest.len || rest.ptr[n] != '(') continue;
            t->kind = kind;
            *ret_begin = at;
            *ret_operands = at + kind.len + n;
            return true;
        }
    }
    return false;
}

static bool read_category(xpl_str_t category, struct xpl_collective_text *t) {
    for (size_t i = 0; i < COUNT(kKinds); i++) {
        const xpl_str_t kind = xpl_str_from(kKinds[i]);
        if (!xpl_str_starts(category, kind)) continue;
        const xpl_str_t rest = xpl_str_sub(category, kind.len, SIZE_MAX);
        const size_t n = read_suffix(rest, t);
        if (n < rest.len && rest.ptr[n] != '.' && rest.ptr[n] != ' ') continue;
        t->kind = kind;
        return true;
    }
    return false;
}

// The end of what begins with '(' at `at`: behind its ')'.
static size_t closing(xpl_str_t s, size_t at) {
    size_t depth = 0;
    for (; at < s.len; at++) {
        if (s.ptr[at] == '(') depth++;
        if (s.ptr[at] == ')' && --depth == 0) return at + 1;
    }
    return s.len;
}

// ---- bytes ----

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static unsigned bits_of(xpl_str_t name) {
    for (uint64_t i = 0; i < MAX_TYPES; i++) {
        const struct xpl_hlo_type_info *const info = xpl_hlo_type_info(i);
        if (info->bits && xpl_str_eq(info->name, name)) return info->bits;
    }
    return 0;
}

// The product of "8,<=16,32]", *ret_at behind it; false when it is not known or too large.
static bool read_extents(xpl_str_t s, size_t *at, uint64_t *ret) {
    uint64_t all = 1;
    while (*at < s.len && s.ptr[*at] != ']') {
        uint64_t v = 0;
        const size_t begin = *at;
        for (; *at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9'; ++*at)
            if (__builtin_mul_overflow(v, 10, &v) ||
                __builtin_add_overflow(v, (uint64_t)(s.ptr[*at] - '0'), &v))
                return false;
        if (*at > begin && __builtin_mul_overflow(all, v, &all)) return false;
        if (*at == begin) { // "<=", ",", or "?" of an unknown size
            if (s.ptr[*at] != '<' && s.ptr[*at] != '=' && s.ptr[*at] != ',') return false;
            ++*at;
        }
    }
    *ret = all;
    return *at < s.len;
}

// The bytes of all shapes in a text; 0 when some are not known.
static uint64_t bytes_of(xpl_str_t s) {
    uint64_t sum = 0;
    for (size_t i = 0; i < s.len;) {
        const size_t begin = i;
        while (i < s.len && is_word(s.ptr[i]))
            i++;
        if (i == begin || i >= s.len || s.ptr[i] != '[') {
            i += i == begin;
            continue;
        }
        const unsigned bits = bits_of((xpl_str_t){s.ptr + begin, i - begin});
        uint64_t n, all;
        i++;
        if (!bits) continue;
        if (!read_extents(s, &i, &n) || __builtin_mul_overflow(n, bits, &all) ||
            __builtin_add_overflow(sum, all / 8 + (all % 8 != 0), &sum))
            return 0;
    }
    return sum;
}

// ---- groups ----

static uint64_t count_of(xpl_str_t list) { // "0,1,2"
    uint64_t n = list.len > 0;
    for (size_t i = 0; i < list.len; i++)
        n += list.ptr[i] == ',';
    return n;
}

// "{{0,1},{2,3}}": groups as long as the longest.
static void read_lists(xpl_str_t s, struct xpl_collective_text *t) {
    for (size_t at = 1; at < s.len && s.ptr[at] == '{';) {
        const size_t end = xpl_str_find(s, XPL_STR("}"), at);
        if (end >= s.len) return;
        const uint64_t n = count_of((xpl_str_t){s.ptr + at + 1, end - at - 1});
        t->n_groups++;
        if (n > t->group_size) t->group_size = n;
        at = end + 1 + (end + 1 < s.len && s.ptr[end + 1] == ',');
    }
}

// "[4,2]<=[8]": four groups of two.
static void read_iota(xpl_str_t s, struct xpl_collective_text *t) {
    const size_t comma = xpl_str_find(s, XPL_STR(","), 0), end = xpl_str_find(s, XPL_STR("]"), 0);
    int64_t groups, size;
    if (end >= s.len || comma >= end ||
        !xpl_parse_int((xpl_str_t){s.ptr + 1, comma - 1}, 1, UINT32_MAX, &groups) ||
        !xpl_parse_int((xpl_str_t){s.ptr + comma + 1, end - comma - 1}, 1, UINT32_MAX, &size))
        return;
    t->n_groups = (uint64_t)groups;
    t->group_size = (uint64_t)size;
}

// "mesh['a'=8,'b'=2] {'a'}": as many groups as the axes that are not named have places.
static void read_mesh(xpl_str_t s, struct xpl_collective_text *t) {
    const size_t end = xpl_str_find(s, XPL_STR("]"), 0), close = xpl_str_find(s, XPL_STR("}"), end);
    uint64_t all = 1, size = 1;
    if (close >= s.len) return;
    const xpl_str_t named = {s.ptr + end, close - end};
    size_t at = xpl_str_find(s, XPL_STR("["), 0) + 1;
    for (int axes = 0; at < end && axes < MAX_AXES; axes++) {
        size_t stop = xpl_str_find(s, XPL_STR(","), at);
        if (stop > end) stop = end;
        const xpl_str_t axis = {s.ptr + at, stop - at}; // 'a'=8
        const size_t equal = xpl_str_find(axis, XPL_STR("="), 0);
        int64_t n;
        if (equal >= axis.len ||
            !xpl_parse_int(xpl_str_sub(axis, equal + 1, SIZE_MAX), 1, UINT32_MAX, &n) ||
            __builtin_mul_overflow(all, (uint64_t)n, &all))
            return;
        if (xpl_str_has(named, xpl_str_sub(axis, 0, equal))) size *= (uint64_t)n;
        at = stop + 1;
    }
    t->n_groups = all / size;
    t->group_size = size;
}

static void read_groups(xpl_str_t rest, struct xpl_collective_text *t) {
    const xpl_str_t key = XPL_STR("replica_groups=");
    const size_t at = xpl_str_find(rest, key, 0);
    if (at >= rest.len) return;
    const xpl_str_t s = xpl_str_sub(rest, at + key.len, SIZE_MAX);
    if (xpl_str_starts(s, XPL_STR("{{")))
        read_lists(s, t);
    else if (xpl_str_starts(s, XPL_STR("[")))
        read_iota(s, t);
    else if (xpl_str_starts(s, XPL_STR("mesh[")))
        read_mesh(s, t);
}

bool xpl_collective_read(xpl_str_t s, xpl_str_t category, struct xpl_collective_text *ret) {
    size_t begin, operands;
    *ret = (struct xpl_collective_text){.kind = XPL_STR("")};
    if (!find_operation(s, ret, &begin, &operands)) return read_category(category, ret);
    const size_t end = closing(s, operands);
    read_groups(xpl_str_sub(s, end, SIZE_MAX), ret);
    if (ret->ends) return true; // its operand is the beginning
    ret->bytes = bytes_of((xpl_str_t){s.ptr + operands, end - operands});
    if (xpl_str_eq(ret->kind, XPL_STR("all-gather")) &&
        (!ret->group_size || __builtin_mul_overflow(ret->bytes, ret->group_size, &ret->bytes)))
        ret->bytes = 0;
    return true;
}

double xpl_collective_bus_factor(xpl_str_t kind, uint64_t n) {
    const double size = (double)n;
    if (xpl_str_eq(kind, XPL_STR("collective-permute")) ||
        xpl_str_eq(kind, XPL_STR("collective-broadcast")) || xpl_str_eq(kind, XPL_STR("send")) ||
        xpl_str_eq(kind, XPL_STR("recv")) || xpl_str_eq(kind, XPL_STR("broadcast")) ||
        xpl_str_eq(kind, XPL_STR("reduce")) || xpl_str_eq(kind, XPL_STR("send-recv")))
        return 1;
    if (n < 2 || xpl_str_eq(kind, XPL_STR("unknown"))) return 0;
    return (xpl_str_eq(kind, XPL_STR("all-reduce")) ? 2 : 1) * (size - 1) / size;
}
