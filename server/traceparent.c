// SPDX-License-Identifier: Apache-2.0
#include "server/traceparent.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

// version "-" trace-id "-" parent-id "-" flags: where each begins, and how long all of it is.
enum { TRACE_AT = 3, TRACE_LEN = 32, PARENT_AT = 36, PARENT_LEN = 16, FLAGS_AT = 53, ALL_LEN = 55 };

static bool is_hex(xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f')))
            return false;
    return true;
}

static bool is_id(xpl_str_t s) {
    size_t zeros = 0;
    while (zeros < s.len && s.ptr[zeros] == '0')
        zeros++;
    return zeros < s.len && is_hex(s);
}

bool xpl_traceparent_parse(xpl_str_t text, struct xpl_traceparent *ret) {
    if (text.len < ALL_LEN) return false;
    const xpl_str_t version = xpl_str_sub(text, 0, 2), flags = xpl_str_sub(text, FLAGS_AT, 2);
    const xpl_str_t trace = xpl_str_sub(text, TRACE_AT, TRACE_LEN);
    const xpl_str_t parent = xpl_str_sub(text, PARENT_AT, PARENT_LEN);
    if (!is_hex(version) || xpl_str_eq(version, XPL_STR("ff"))) return false;
    if (text.len > ALL_LEN && (xpl_str_eq(version, XPL_STR("00")) || text.ptr[ALL_LEN] != '-'))
        return false;
    if (text.ptr[TRACE_AT - 1] != '-' || text.ptr[PARENT_AT - 1] != '-' ||
        text.ptr[FLAGS_AT - 1] != '-')
        return false;
    if (!is_id(trace) || !is_id(parent) || !is_hex(flags)) return false;
    *ret = (struct xpl_traceparent){0};
    memcpy(ret->trace_id, trace.ptr, trace.len);
    memcpy(ret->parent_id, parent.ptr, parent.len);
    return true;
}

void xpl_traceparent_clean(xpl_str_t text, char ret[XPL_TRACEPARENT_TEXT]) {
    struct xpl_traceparent t;
    ret[0] = 0;
    if (xpl_traceparent_parse(text, &t))
        (void)snprintf(ret, XPL_TRACEPARENT_TEXT, "00-%s-%s-00", t.trace_id, t.parent_id);
}

void xpl_traceparent_log(xpl_str_t text, struct xpl_log_line *l) {
    struct xpl_traceparent t;
    if (!xpl_traceparent_parse(text, &t)) return;
    xpl_log_z(l, "trace_id", t.trace_id);
    xpl_log_z(l, "parent_id", t.parent_id);
}
