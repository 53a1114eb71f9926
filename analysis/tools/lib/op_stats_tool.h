// SPDX-License-Identifier: Apache-2.0
// What the tools that show OpStats have in common: their hosts' OpStats are combined, and the tool
// writes its answer from the combination.
#ifndef XPL_ANALYSIS_TOOLS_LIB_OP_STATS_TOOL_H_
#define XPL_ANALYSIS_TOOLS_LIB_OP_STATS_TOOL_H_

#include "analysis/opstats/opstats.h"
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"

// Appends the tool's answer.  `options` is its option struct, `scratch` is for temporaries.
typedef xpl_status_t xpl_op_stats_fn(const struct xpl_opstats *stats, const void *options,
                                     struct xpl_arena *scratch, struct xpl_buf *out,
                                     struct xpl_error *err);

// Combines the OpStats that are the hosts' products at `product` of the tool's needs, as the
// options say; *ret is the arena's.
xpl_status_t xpl_op_stats_combine(const struct xpl_tool_input *in, size_t product,
                                  struct xpl_arena *arena, struct xpl_opstats **ret,
                                  struct xpl_error *err) XPL_NODISCARD;

// Begins the option struct of tools that show rates beside peaks: what one core of a CPU can do,
// where the CPU counts as a device.  0: not known.
struct xpl_cpu_peak_options {
    struct xpl_common_options common; // every tool's come first
    double gflops, gb_s;              // GFLOP/s, 10^9 bytes per second
};
// The rows of these, for the table of options.
#define XPL_CPU_PEAK_OPTIONS                                                                       \
    {.key = "cpu_core_gflops",                                                                     \
     .type = XPL_OPTION_RATE,                                                                      \
     .offset = offsetof(struct xpl_cpu_peak_options, gflops),                                      \
     .values = "GFLOP/s",                                                                          \
     .preset = "0",                                                                                \
     .ours = true,                                                                                 \
     .help = "peak rate of a CPU core, if the CPU counts as a device; 0: unknown"},                \
    {                                                                                              \
        .key = "cpu_core_gb_s", .type = XPL_OPTION_RATE,                                           \
        .offset = offsetof(struct xpl_cpu_peak_options, gb_s), .values = "GB/s", .preset = "0",    \
        .ours = true,                                                                              \
        .help = "peak memory rate of a CPU core while the other cores work; 0: unknown"            \
    }

// The same as the render below for such tools: the peaks of the options stand in the OpStats of
// CPUs.
xpl_status_t xpl_op_stats_render_with_peaks(const struct xpl_tool_input *in, xpl_op_stats_fn *write,
                                            struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

// A tool's render: combines the hosts' OpStats, then calls `write`.
xpl_status_t xpl_op_stats_render(const struct xpl_tool_input *in, xpl_op_stats_fn *write,
                                 struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

// Members of such a tool's row.
extern const struct xpl_product *const xpl_op_stats_needs[];
unsigned xpl_op_stats_variant(const void *options, size_t i, bool session_has_device);

#endif
