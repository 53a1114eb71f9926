// SPDX-License-Identifier: Apache-2.0
// Metrics over sessions: values in order of time, where their level changes, and the causes and ops
// behind it.
// docs/history.md has the definitions, docs/cli-json.md the keys.
#ifndef XPL_ANALYSIS_COMPARE_SERIES_H_
#define XPL_ANALYSIS_COMPARE_SERIES_H_

#include "analysis/compare/compare.h"

// ---- metrics ----

enum xpl_series_kind { // of the value
    XPL_SERIES_PS,     // for each step, or each device and step
    XPL_SERIES_COUNT,
    XPL_SERIES_BYTES,
    XPL_SERIES_PER_SECOND, // floating point operations
    XPL_SERIES_PERCENT,
};
extern const char
    *const xpl_series_units[]; // "ps", "count", "bytes", "flops_per_second", "percent"

struct xpl_series_value {
    enum xpl_series_kind kind;
    bool more_is_better;
    double v;
};
// False if the run does not have it (its kind is set nevertheless): a cause, "op:NAME",
// "kernel:NAME", "memory:ALLOCATOR" or a one of xpl_series_name.
bool xpl_series_get(const struct xpl_run_summary *run, xpl_str_t metric,
                    struct xpl_series_value *ret);
// "less", "more", or "" where neither is better.
const char *xpl_series_better(enum xpl_series_kind kind, bool more_is_better);
struct xpl_series_metric {
    xpl_str_t name; // as xpl_series_get takes it
    struct xpl_series_value value;
};
// All that the run has, each once, in `arena`.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_series_all(const struct xpl_run_summary *run, struct xpl_arena *arena,
                            struct xpl_series_metric **ret, size_t *ret_n, struct xpl_error *err)
    XPL_NODISCARD;
// The i-th of those that do not depend on the run; NULL beyond the last.
const char *xpl_series_name(size_t i);

// ---- changes of the level ----

enum {
    XPL_SERIES_LEAST = 6,   // values, for changes to be sought
    XPL_SERIES_SEGMENT = 2, // values between two changes, at least
    XPL_SERIES_MOST = 4096, // values, for one series
    XPL_SERIES_METRICS = 64 // of one document
};
// Writes where a new level begins, ascending, each an index of `v`, and returns how many there are;
// `ret` has room for n.  The optimal partition of the values into stretches of constant mean,
// without changes that a t interval does not tell from noise.
// RESOURCE_EXHAUSTED.
xpl_status_t xpl_series_changes(const double *v, size_t n, size_t *ret, size_t *ret_n,
                                struct xpl_error *err) XPL_NODISCARD;

// ---- as JSON ----

struct xpl_exec;
struct xpl_series_run {
    xpl_str_t session;
    int64_t captured_ms;
    const struct xpl_run_summary *run; // NULL: not read
    xpl_str_t error;                   // why
};
struct xpl_series_request {
    struct xpl_series_run *runs; // sorted by the call, by time and name
    size_t n_runs;
    const xpl_str_t *metrics; // none: step_time
    size_t n_metrics;
    bool selected; // the user chose the runs: they belong together even if they are not alike
    struct xpl_exec *exec; // NULL: never cancelled
};
// Appends the document.  INVALID_ARGUMENT: an unknown metric, or more than XPL_SERIES_METRICS;
// NOT_FOUND: one of an op, a kernel or an allocator that no run has; FAILED_PRECONDITION: runs of
// different programs that were not selected; CANCELLED; RESOURCE_EXHAUSTED.
xpl_status_t xpl_series_json(const struct xpl_series_request *q, struct xpl_arena *arena,
                             struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
