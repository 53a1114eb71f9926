// SPDX-License-Identifier: Apache-2.0
// The requests and batches of several hosts together, by model.
// Rules: XProf's inference_stats_combiner.cc, inference_stats_grouping.cc,
// inference_stats_sampler.cc and compute_inference_latency.cc.
#ifndef XPL_ANALYSIS_INFERENCE_COMBINE_H_
#define XPL_ANALYSIS_INFERENCE_COMBINE_H_

#include "analysis/inference/inference.h"

struct xpl_infer_request_at {
    const struct xpl_infer_request *r;
    size_t host;
};
struct xpl_infer_batch_at {
    const struct xpl_infer_batch *b;
    size_t host;
};

// Means, cut to whole numbers, and what belongs to a group of requests and batches.
struct xpl_infer_summary {
    uint64_t n_requests, n_batches;
    struct xpl_infer_request request; // from 0 to the mean duration
    struct xpl_infer_batch batch;
    double efficiency;          // of batches: the share of their size without padding
    XPL_VEC(uint64_t) programs; // each once, in the order of batches
};
// Of batches of one size, and of the requests that they worked for.
struct xpl_infer_by_size {
    int32_t size;
    struct xpl_infer_summary sums;
};

struct xpl_infer_time { // of tensors
    uint32_t pattern;
    uint64_t ps;
};

struct xpl_infer_model_stats {
    xpl_str_t name;
    const struct xpl_infer_model *params;          // of a host that knows them; NULL: none
    XPL_VEC(struct xpl_infer_request_at) requests; // by duration
    XPL_VEC(struct xpl_infer_batch_at) batches;
    double request_throughput, request_latency_us; // a second; mean
    double batch_throughput, batch_latency_us;
    struct xpl_infer_summary all;
    XPL_VEC(struct xpl_infer_by_size) sizes;
    XPL_VEC(struct xpl_infer_time) times; // by pattern, then time
};

struct xpl_inferences {
    const struct xpl_inference *const *hosts;
    size_t n_hosts;
    XPL_VEC(struct xpl_infer_model_stats) models; // as hosts name them first; "ALL" where none does
    XPL_VEC(xpl_str_t) patterns;
    bool has_batches;
};

// Combines hosts; NULL among them is one that is left out.  exact: requests may have been
// in batches of other hosts that have the same id, as by XProf.  *ret lives in `arena` and refers
// to `hosts`.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_inferences_combine(const struct xpl_inference *const *hosts, size_t n, bool exact,
                                    struct xpl_arena *arena, struct xpl_inferences **ret,
                                    struct xpl_error *err) XPL_NODISCARD;

// What requests and batches can be sorted by, to be chosen from.
enum xpl_infer_request_column {
    XPL_INFER_BY_LATENCY,
    XPL_INFER_BY_DELAY,
    XPL_INFER_BY_SIZE,
    XPL_INFER_BY_PREPROCESS,
    XPL_INFER_BY_FORMATION,
    XPL_INFER_BY_RUNTIME,
    XPL_INFER_BY_H2D,
    XPL_INFER_BY_D2H,
    XPL_INFER_BY_DEVICE,
    XPL_INFER_BY_POSTPROCESS,
    XPL_INFER_BY_IDLE,
};
#define XPL_INFER_REQUEST_COLUMNS                                                                  \
    "Latency|Request delay for batching|Request size|Host preprocess|Host batch formation|"        \
    "Host runtime|Data transfer H2D|Data transfer D2H|Device compute|Host postprocess|Idle time"
enum xpl_infer_batch_column {
    XPL_INFER_BATCH_BY_LATENCY,
    XPL_INFER_BATCH_BY_DELAY,
    XPL_INFER_BATCH_BY_PADDING,
    XPL_INFER_BATCH_BY_SIZE,
    XPL_INFER_BATCH_BY_EFFICIENCY,
};
#define XPL_INFER_BATCH_COLUMNS                                                                    \
    "Latency|Batching delay|Padding amount|Batch size after padding|Batching efficiency"

// The share of the size without padding.
double xpl_infer_efficiency(int32_t size, int32_t padding);

// Samples at most 60 of them around certain percentiles: all if there are not more.
struct xpl_infer_sample {
    size_t at; // in the model's list, sorted by the column
    double percentile;
};
enum { XPL_INFER_SAMPLES = 60 };
size_t xpl_infer_sample(size_t n, struct xpl_infer_sample ret[XPL_INFER_SAMPLES]);
void xpl_infer_sort_requests(struct xpl_infer_model_stats *m, enum xpl_infer_request_column by);
void xpl_infer_sort_batches(struct xpl_infer_model_stats *m, enum xpl_infer_batch_column by);

// Latencies of all requests, in microseconds.
struct xpl_infer_latency {
    double host, device, communication, total;
};
enum { XPL_INFER_LATENCIES = 6 }; // the mean, then 50, 75, 90, 99 and 99.9 percent
// False in *ret_any without requests.
xpl_status_t xpl_infer_latencies(const struct xpl_inferences *all, struct xpl_arena *scratch,
                                 struct xpl_infer_latency ret[XPL_INFER_LATENCIES], bool *ret_any,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
