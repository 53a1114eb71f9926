// SPDX-License-Identifier: Apache-2.0
// Comparison of runs: the summary of a run, its encoding, groups of runs, and their comparison as
// JSON. docs/compare.md has the definitions, docs/cli-json.md the keys.
//
// A summary is the answer of the tool run_summary, so that a daemon caches it like every answer,
// and so that a file can be compared with a session.  Times are picoseconds.  Nothing here is freed
// separately: all memory comes from the caller's arenas.
#ifndef XPL_ANALYSIS_COMPARE_COMPARE_H_
#define XPL_ANALYSIS_COMPARE_COMPARE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;

// ---- a run ----

// An op or a kernel: all that tells it from others in every compilation, and its time.
enum { XPL_RUN_OP, XPL_RUN_CATEGORY, XPL_RUN_SOURCE_FILE, XPL_RUN_SHAPE }; // texts of an op
enum { XPL_RUN_KERNEL, XPL_RUN_KERNEL_OP };                                // of a kernel
enum { XPL_RUN_TEXTS = 4 };
struct xpl_run_row {
    xpl_str_t text[XPL_RUN_TEXTS];
    uint64_t source_line; // 0: not known
    uint64_t ps, count;   // self time and occurrences, of all devices
};
struct xpl_run_rows {
    struct xpl_run_row *v;
    size_t n, cap;
};

struct xpl_run_memory {
    xpl_str_t name; // of the allocator
    uint64_t peak_bytes, capacity_bytes;
};

// The steps of one annotation.
struct xpl_run_series {
    xpl_str_t name;
    uint64_t n_steps, ps; // their number, and the sum of their times
};

struct xpl_run_time {
    xpl_str_t cause;
    uint64_t ps; // of all devices
};

struct xpl_run_summary {
    uint64_t n_hosts, n_devices;
    uint64_t wall_ps;                // of all devices
    uint64_t n_compiles, compile_ps; // of the host that compiled longest
    uint64_t busy_ps;                // of the ops of all devices
    uint64_t model_flops;            // of the same ops, as programs have them
    uint64_t bf16_flops;             // weighed by what their types cost
    uint64_t bf16_flops_per_second;  // that rate, of a device, at its full clock
    uint64_t peak_flops_per_second;  // of a device; 0: not known
    uint64_t units;                  // steps times devices, at least 1: what sums are divided by
    XPL_VEC(uint64_t) steps;         // the time of each step of the series with most
    XPL_VEC(struct xpl_run_series) series;
    XPL_VEC(struct xpl_run_time) times;
    struct xpl_run_rows ops, kernels;      // each once
    XPL_VEC(struct xpl_run_memory) memory; // each allocator once, the greatest of all hosts
};

// What an op is called in all compilations: its framework op without a colon at the end; without
// one the name less '%' in front and a number behind: "fusion" of "%fusion.12".  A view.
xpl_str_t xpl_run_op_name(xpl_str_t framework_op, xpl_str_t name);
// "f32[8,128]" of "%x.1 = f32[8,128]{1,0} fusion(...)": the result without its layouts, or
// "(f32[8,128])" of PyTorch's "aten::relu(f32[8,128])"; at most 200 bytes.  False when the arena is
// full.
bool xpl_run_op_shape(xpl_str_t expression, struct xpl_arena *arena, xpl_str_t *ret);
// "loop_fusion" of "loop_fusion_12": numbers that a compiler counts with.  Others stay.  A view.
xpl_str_t xpl_run_kernel_name(xpl_str_t name);

// Sorts ops, kernels and allocators and joins equal ones: times and counts are added, of memory the
// greatest stays.
void xpl_run_summary_join(struct xpl_run_summary *s);

// Appends the encoding, a message of protobuf.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_run_summary_encode(const struct xpl_run_summary *s, struct xpl_buf *out,
                                    struct xpl_error *err) XPL_NODISCARD;
// DATA_LOSS if the bytes are not a valid encoding, RESOURCE_EXHAUSTED. *ret does not refer to
// `bytes`.
xpl_status_t xpl_run_summary_decode(xpl_bytes_t bytes, struct xpl_arena *arena,
                                    struct xpl_run_summary **ret, struct xpl_error *err)
    XPL_NODISCARD;

// ---- groups of runs ----

// Runs that are compared as one: steps of all, sums of all.  Zero-initialised is an empty group.
struct xpl_run_group {
    uint64_t n_runs;
    XPL_VEC(const struct xpl_run_summary *) runs; // each of them
    struct xpl_run_summary all;
    struct xpl_intern *names; // of the series
    struct xpl_map series_of; // by name, in all.series
};
// Adds a run, which must outlive the group.  False when the arena is full.
bool xpl_run_group_add(struct xpl_run_group *g, const struct xpl_run_summary *run,
                       struct xpl_arena *arena) XPL_NODISCARD;

// Appends statistics over repeated runs, pooled, as JSON. Runs without steps count as one sample
// each, those without steps and window as none.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_aggregate_json(const struct xpl_run_summary *const *runs, size_t n,
                                struct xpl_arena *arena, struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

// ---- statistics ----

double xpl_compare_mean(const uint64_t *v, size_t n);
// The quantile of Student's distribution: above it lies 1 - probability.  probability is from 0.5
// on and below 1, freedom above 0 and need not be whole.
double xpl_compare_student(double probability, double freedom);

enum {
    XPL_COMPARE_LEAST_STEPS = 5,   // of a run, for its first and last step not to count
    XPL_COMPARE_LEAST_RUNS = 3,    // of a side; below it a history says more of the noise
    XPL_COMPARE_LEAST_FREEDOM = 2, // of a history's noise
    XPL_COMPARE_HISTORY = 20       // sessions of a history, at most
};

// Runs of the same program in order of time, which show the noise between runs.
struct xpl_run_history {
    const struct xpl_run_summary *const *runs;
    size_t n;
    xpl_str_t label; // of their sessions
};

// Where the noise between runs comes from.
enum xpl_compare_noise {
    XPL_NOISE_NONE,
    XPL_NOISE_STEPS, // of one run a side: only the noise within it
    XPL_NOISE_HISTORY,
    XPL_NOISE_RUNS
};

// One value of each run, where it has one.
struct xpl_compare_values {
    double *v;
    size_t n;
};
struct xpl_compare_sides {
    struct xpl_compare_values a, b, history;
    const struct xpl_run_summary *one_a, *one_b; // of single runs whose steps are compared, or NULL
};

struct xpl_compare_estimate {
    double a, b;       // means of the runs' values
    double half;       // the 95% interval is the difference, this much less and more
    double detectable; // a difference that 9 of 10 such comparisons tell from noise
    enum xpl_compare_noise noise;
    bool known, has_interval; // both sides have a value; the noise is known
};
// RESOURCE_EXHAUSTED.
xpl_status_t xpl_compare_estimate(const struct xpl_compare_sides *s, struct xpl_arena *arena,
                                  struct xpl_compare_estimate *ret, struct xpl_error *err)
    XPL_NODISCARD;
// The same of a metric by name: "step_time" and "median_step_time", both without first and last
// steps, or one of xpl_series_get.  `h` may be NULL.
xpl_status_t xpl_compare_groups(const struct xpl_run_group *a, const struct xpl_run_group *b,
                                const struct xpl_run_history *h, xpl_str_t metric,
                                struct xpl_arena *arena, struct xpl_compare_estimate *ret,
                                struct xpl_error *err) XPL_NODISCARD;

// ---- the comparison ----

// Appends the comparison of two groups, which it joins, as JSON.  `h` may be NULL: no history shows
// the noise between runs.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_compare_json(struct xpl_run_group *a, struct xpl_run_group *b,
                              const struct xpl_run_history *h, struct xpl_arena *arena,
                              struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
