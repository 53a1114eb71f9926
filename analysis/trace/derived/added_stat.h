// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/derived: statistics that preprocessing adds.
#ifndef XPL_ANALYSIS_TRACE_DERIVED_ADDED_STAT_H_
#define XPL_ANALYSIS_TRACE_DERIVED_ADDED_STAT_H_

#include "analysis/xplane/xspace.h"

// Defines `var`, the metadata of an added statistic.
#define XPL_ADDED_STAT_MD(var, t, text)                                                            \
    static const struct xpl_stat_md var = {0, {"" text, sizeof(text) - 1}, t}

static inline struct xpl_stat xpl_added_int(const struct xpl_stat_md *md, int64_t v) {
    return (struct xpl_stat){.md = md, .kind = XPL_VALUE_INT, .i = v};
}
static inline struct xpl_stat xpl_added_uint(const struct xpl_stat_md *md, uint64_t v) {
    return (struct xpl_stat){.md = md, .kind = XPL_VALUE_UINT, .u = v};
}
static inline struct xpl_stat xpl_added_double(const struct xpl_stat_md *md, double v) {
    return (struct xpl_stat){.md = md, .kind = XPL_VALUE_DOUBLE, .d = v};
}
static inline struct xpl_stat xpl_added_str(const struct xpl_stat_md *md, xpl_str_t s) {
    return (struct xpl_stat){.md = md, .kind = XPL_VALUE_STR, .str = s};
}

#endif
