// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/megascale/names.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t skip_digits(xpl_str_t s, size_t at) {
    while (at < s.len && is_digit(s.ptr[at]))
        at++;
    return at;
}

// Steps over a literal.
static bool skip(xpl_str_t s, size_t *at, xpl_str_t literal) {
    if (!xpl_str_starts(xpl_str_sub(s, *at, SIZE_MAX), literal)) return false;
    *at += literal.len;
    return true;
}

// Steps over one digit or more.
static bool skip_number(xpl_str_t s, size_t *at, xpl_str_t *ret) {
    const size_t end = skip_digits(s, *at);
    if (end == *at) return false;
    *ret = xpl_str_sub(s, *at, end - *at);
    *at = end;
    return true;
}

static bool number_of(xpl_str_t digits, int64_t *ret) {
    int64_t v = 0;
    for (size_t i = 0; i < digits.len; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digits.ptr[i] - '0', &v))
            return false;
    *ret = v;
    return digits.len > 0;
}

// ---- ops ----

enum xpl_mgtrace_op xpl_mgtrace_op_of(xpl_str_t name) {
    const bool send = xpl_str_starts(name, XPL_STR("send"));
    size_t at = sizeof "send" - 1;
    if (!send && !xpl_str_starts(name, XPL_STR("recv"))) return XPL_MGTRACE_OP_OTHER;
    const bool done = skip(name, &at, XPL_STR("-done"));
    if (at < name.len && name.ptr[at] == '.') at++;
    if (skip_digits(name, at) < name.len) return XPL_MGTRACE_OP_OTHER;
    if (send) return done ? XPL_MGTRACE_OP_SEND_DONE : XPL_MGTRACE_OP_SEND;
    return done ? XPL_MGTRACE_OP_RECV_DONE : XPL_MGTRACE_OP_RECV;
}

int64_t xpl_mgtrace_op_number(xpl_str_t name) {
    const size_t dot = xpl_str_find(name, XPL_STR("."), 0);
    int64_t n;
    if (dot == SIZE_MAX || skip_digits(name, dot + 1) < name.len) return 0;
    return number_of(xpl_str_sub(name, dot + 1, SIZE_MAX), &n) ? n : 0;
}

xpl_str_t xpl_mgtrace_attribute(xpl_str_t long_name) {
    static const char key[] = "_xla_host_transfer_rendezvous=\"";
    const size_t at = xpl_str_find(long_name, xpl_str_from(key), 0);
    if (at == SIZE_MAX) return (xpl_str_t){0};
    const size_t from = at + sizeof key - 1, end = xpl_str_find(long_name, XPL_STR("\""), from);
    return end == SIZE_MAX ? (xpl_str_t){0} : xpl_str_sub(long_name, from, end - from);
}

// ---- graphs ----

static bool is_graph_char(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '-';
}

// "device_N_gid_" at `at`: *ret_end is behind it.
static bool read_device(xpl_str_t s, size_t at, xpl_str_t *ret_digits, size_t *ret_end) {
    if (!skip(s, &at, XPL_STR("device_")) || !skip_number(s, &at, ret_digits) ||
        !skip(s, &at, XPL_STR("_gid_")))
        return false;
    *ret_end = at;
    return true;
}

// The first "device_N_gid_" from *at on.
static bool find_device(xpl_str_t s, size_t at, xpl_str_t *ret_digits, size_t *ret_end) {
    for (; (at = xpl_str_find(s, XPL_STR("device_"), at)) != SIZE_MAX; at++)
        if (read_device(s, at, ret_digits, ret_end)) return true;
    return false;
}

// The longest that begins at `at` and ends with "_1", some number.
static bool read_rendezvous(xpl_str_t s, size_t at, xpl_str_t *ret) {
    size_t end = at;
    while (end < s.len && is_graph_char(s.ptr[end]))
        end++;
    for (size_t i = end; i > at + 2; i--) {
        // s[i - 2] is the underscore, and not the first.
        if (s.ptr[i - 2] != '_' || !is_digit(s.ptr[i - 1])) continue;
        *ret = xpl_str_sub(s, at, skip_digits(s, i) - at);
        return true;
    }
    return false;
}

bool xpl_mgtrace_graph_in(xpl_str_t text, struct xpl_mgtrace_graph *ret) {
    for (size_t at = 0; find_device(text, at, &ret->device, &at);)
        if (read_rendezvous(text, at, &ret->rendezvous)) return true;
    return false;
}

bool xpl_mgtrace_is_graph(xpl_str_t text, struct xpl_mgtrace_graph *ret) {
    size_t at;
    return read_device(text, 0, &ret->device, &at) && read_rendezvous(text, at, &ret->rendezvous) &&
           at + ret->rendezvous.len == text.len;
}

bool xpl_mgtrace_tpu_number(xpl_str_t plane, int64_t *ret) {
    return number_of(xpl_str_sub(plane, sizeof "/device:TPU:" - 1, SIZE_MAX), ret);
}

bool xpl_mgtrace_key_device(xpl_str_t key, int64_t *ret) {
    xpl_str_t digits;
    size_t at;
    return find_device(key, 0, &digits, &at) && number_of(digits, ret);
}

// The digits behind the last "^i" that has some.
static xpl_str_t iteration_in(xpl_str_t s) {
    for (size_t i = s.len; i >= 3; i--) {
        if (s.ptr[i - 3] != '^' || s.ptr[i - 2] != 'i' || !is_digit(s.ptr[i - 1])) continue;
        return xpl_str_sub(s, i - 1, skip_digits(s, i - 1) - (i - 1));
    }
    return (xpl_str_t){0};
}

struct xpl_mgtrace_place xpl_mgtrace_key_place(xpl_str_t key) {
    struct xpl_mgtrace_place p = {0};
    xpl_str_t device;
    size_t at;
    if (!read_device(key, 0, &device, &at)) return p;
    const size_t dollar = xpl_str_find(key, XPL_STR("$"), at);
    if (dollar == SIZE_MAX || dollar == at) return p;
    const xpl_str_t rest = xpl_str_sub(key, dollar + 1, SIZE_MAX);
    const xpl_str_t iteration = iteration_in(rest);
    if (!iteration.len || xpl_str_has(rest, XPL_STR("\n"))) return p;
    if (!number_of(device, &p.device)) return p;
    p.name = xpl_str_sub(key, at, dollar - at);
    if (!number_of(iteration, &p.iteration)) p.iteration = 0;
    return p;
}

// ---- buffers ----

static bool read_buffer(xpl_str_t s, size_t *at, xpl_str_t numbers[3]) {
    xpl_str_t chunk;
    return skip(s, at, XPL_STR("s")) && skip_number(s, at, &numbers[0]) &&
           skip(s, at, XPL_STR("->")) && skip_number(s, at, &numbers[1]) &&
           skip(s, at, XPL_STR("d|$c")) && skip_number(s, at, &chunk) &&
           skip(s, at, XPL_STR("=")) && skip_number(s, at, &numbers[2]);
}

bool xpl_mgtrace_next_buffer(xpl_str_t list, size_t *at, struct xpl_mgtrace_buffer *ret) {
    while ((*at = xpl_str_find(list, XPL_STR("s"), *at)) != SIZE_MAX) {
        xpl_str_t n[3];
        size_t end = *at;
        if (read_buffer(list, &end, n)) {
            *at = end;
            return number_of(n[0], &ret->from) && number_of(n[1], &ret->to) &&
                   number_of(n[2], &ret->bytes);
        }
        ++*at;
    }
    return false;
}
