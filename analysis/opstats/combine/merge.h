// SPDX-License-Identifier: Apache-2.0
// Private: the parts of a combination.  Hosts are added one after another, in their order; no part
// needs a host again once it was added.
#ifndef XPL_ANALYSIS_OPSTATS_COMBINE_MERGE_H_
#define XPL_ANALYSIS_OPSTATS_COMBINE_MERGE_H_

#include "analysis/opstats/combine/combine.h"
#include "analysis/opstats/combine/combine_hosts.h"
#include "analysis/opstats/host/tf_functions.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/intern.h"
#include "base/map.h"

struct xpl_merge {
    const struct xpl_combine_hosts *h;
    struct xpl_arena *result, *scratch;
    struct xpl_opstats *out;
    bool exact;
    struct xpl_intern *texts; // NULL: hosts stay, and `out` shares what is theirs
    struct xpl_op_metrics_builder host_ops, device_ops, complete_ops, *steps;
    struct xpl_tf_function_table functions;
    struct xpl_map programs;
    size_t n_counters;
};

// --- Every part: false when memory is out ---

// Once before the first host, for each host, and after the last one.
bool xpl_merge_steps_begin(struct xpl_merge *m) XPL_NODISCARD;
bool xpl_merge_steps_add(struct xpl_merge *m, size_t host, const struct xpl_opstats *s)
    XPL_NODISCARD;
bool xpl_merge_steps_finish(struct xpl_merge *m) XPL_NODISCARD;
// Kernels: the longest of all hosts, longest first.
bool xpl_merge_kernels_add(struct xpl_merge *m, const struct xpl_opstats *s) XPL_NODISCARD;
// Environment, peak rates, counters, serving, names, details of cores and diagnostics.
bool xpl_merge_context_begin(struct xpl_merge *m) XPL_NODISCARD;
bool xpl_merge_context_add(struct xpl_merge *m, size_t host, const struct xpl_opstats *s)
    XPL_NODISCARD;
bool xpl_merge_context_finish(struct xpl_merge *m) XPL_NODISCARD;

// --- What the parts share ---

// What of a host the result may refer to: the text itself, or where hosts do not stay, a copy.
bool xpl_merge_text(const struct xpl_merge *m, xpl_str_t *text) XPL_NODISCARD;
bool xpl_merge_bytes(const struct xpl_merge *m, xpl_bytes_t *bytes) XPL_NODISCARD;
// Of an array of `n` elements, or of one struct.
bool xpl_merge_array(const struct xpl_merge *m, void *at_pointer, size_t n, size_t size)
    XPL_NODISCARD;

// Core ids of all hosts.
uint32_t xpl_merge_core_id(size_t host, uint32_t core_id);
// Sorts an array whose elements begin with a core id and keeps the first of each id: upstream
// inserts into a map, host after host.
bool xpl_merge_unique_by_core(void *v, size_t *n, size_t size, struct xpl_arena *scratch)
    XPL_NODISCARD;

#endif
