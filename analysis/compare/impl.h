// SPDX-License-Identifier: Apache-2.0
// Private to analysis/compare.
#ifndef XPL_ANALYSIS_COMPARE_IMPL_H_
#define XPL_ANALYSIS_COMPARE_IMPL_H_

#include "analysis/compare/compare.h"
#include "analysis/compare/series.h"

// An order in which equal rows stand together, so that two sorted lists can be walked side by side.
int xpl_run_row_cmp(const struct xpl_run_row *a, const struct xpl_run_row *b);

// The sum, or the greatest value where it would not fit.
static inline uint64_t xpl_run_add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

// The middle one of n sorted values; of two the mean; 0 without any.
double xpl_compare_median(const uint64_t *sorted, size_t n);
double xpl_compare_deviation(const uint64_t *v, size_t n);
// The metric of each run that has it.  False when the arena is full.
bool xpl_compare_values(const struct xpl_run_summary *const *runs, size_t n, xpl_str_t metric,
                        struct xpl_arena *arena, struct xpl_compare_values *ret);

// Rows of two runs that are one op, or one kernel; one of both may be NULL.
struct xpl_run_pair {
    const struct xpl_run_row *a, *b;
};
// Pairs the rows of two sorted lists without duplicates, in the order of their names.  *ret, in
// `arena`, has each row once.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_run_rows_match(const struct xpl_run_rows *a, const struct xpl_run_rows *b,
                                bool kernels, struct xpl_arena *arena, struct xpl_run_pair **ret,
                                size_t *ret_n, struct xpl_error *err) XPL_NODISCARD;

// Appends `"key":v`, or null where it is not known.
void xpl_run_put_known(struct xpl_buf *out, const char *key, double v, bool known);

// Metrics of what profiles name: "op:NAME" and others with a prefix.
struct xpl_series_part {
    const char *prefix, *what; // "op:", "op"
    // The i-th of a run's names; false beyond the last.
    bool (*name)(const struct xpl_run_summary *s, size_t i, xpl_str_t *ret);
    bool (*get)(const struct xpl_run_summary *s, xpl_str_t name, double *ret);
    enum xpl_series_kind kind;
};
// NULL: the metric has no such prefix.
const struct xpl_series_part *xpl_series_part_of(xpl_str_t metric, xpl_str_t *ret_name);

// Appends `,"times":[...],"ops":[...],"kernels":[...]` of two groups, which it joins: the causes
// that grew (sign 1) or shrank (-1), and the ops that did by as much as the causes of ops.
enum { XPL_COMPARE_BEHIND = 10 };
xpl_status_t xpl_compare_put_behind(struct xpl_run_group *a, struct xpl_run_group *b, int sign,
                                    struct xpl_arena *arena, struct xpl_buf *out,
                                    struct xpl_error *err) XPL_NODISCARD;

#endif
