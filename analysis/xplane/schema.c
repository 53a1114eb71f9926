// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/schema.h"

#include "analysis/xplane/tf_op.h"

#define ROW(e, name) {"" name, sizeof(name) - 1},
static const xpl_str_t stat_names[] = {{"", 0}, XPL_SCHEMA_STATS(ROW)};
static const xpl_str_t event_names[] = {{"", 0}, XPL_SCHEMA_EVENTS(ROW)};
#undef ROW

// Position of `name` in rows [1, n), or 0.  The lists are sorted (a test checks it).
static unsigned find_row(const xpl_str_t *rows, unsigned n, xpl_str_t name) {
    unsigned lo = 1, hi = n;
    while (lo < hi) {
        const unsigned mid = lo + (hi - lo) / 2;
        const int c = xpl_str_cmp(rows[mid], name);
        if (c == 0) return mid;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

enum xpl_stat_type xpl_stat_type_find(xpl_str_t name) {
    return (enum xpl_stat_type)find_row(stat_names, XPL_STAT_COUNT_, name);
}

enum xpl_event_type xpl_event_type_find(xpl_str_t name) {
    const unsigned known = find_row(event_names, XPL_EVENT_COUNT_, name);
    if (known) return (enum xpl_event_type)known;
    switch (xpl_tf_op_parse(name).category) {
        case XPL_TF_OP_TENSORFLOW: return XPL_EVENT_TF_OP_RUN;
        case XPL_TF_OP_TF_DATA: return XPL_EVENT_ITERATOR;
        case XPL_TF_OP_UNKNOWN:
        case XPL_TF_OP_PYTORCH:
        case XPL_TF_OP_JAX:
        case XPL_TF_OP_MEMCPY_HTOD:
        case XPL_TF_OP_MEMCPY_DTOH:
        case XPL_TF_OP_MEMCPY_DTOD:
        case XPL_TF_OP_MEMCPY_HTOH: break;
    }
    return XPL_EVENT_UNKNOWN;
}

xpl_str_t xpl_stat_type_name(enum xpl_stat_type t) {
    return stat_names[(unsigned)t < XPL_STAT_COUNT_ ? t : 0];
}

xpl_str_t xpl_event_type_name(enum xpl_event_type t) {
    return event_names[(unsigned)t < XPL_EVENT_COUNT_ ? t : 0];
}
