// SPDX-License-Identifier: Apache-2.0
// Requests that a model server answered while it was profiled, and the batches in which it ran
// them: how long each took, and what of that was spent where.
// Rules: XProf's inference_stats.cc, as the released package has them; a request is a group of
// events (analysis/grouping), a batch is a group that begins with ProcessBatch.
#ifndef XPL_ANALYSIS_INFERENCE_INFERENCE_H_
#define XPL_ANALYSIS_INFERENCE_INFERENCE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;
struct xpl_buf;

// Times are in picoseconds; differences wrap as upstream's uint64 do.
struct xpl_infer_request {
    int64_t id;    // of its group
    int32_t model; // index; -1: the profile does not say of which model
    int32_t size;  // of its input, as the batch scheduler counts
    uint64_t begin_ps, end_ps;
    uint64_t delay_ps; // until its first batch begins
    uint64_t preprocess_ps, formation_ps, runtime_ps, postprocess_ps; // of the host
    uint64_t h2d_ps, d2h_ps, device_ps, idle_ps;
    int32_t pattern; // of tensors that it moved outside of batches; -1: none
    uint64_t tensor_ps;
    uint32_t first_batch, n_batches; // in batch_ids, ascending; groups that are none are among them
};

struct xpl_infer_batch {
    int64_t id;
    int32_t model;
    int32_t padding, size; // size: with padding
    uint64_t begin_ps, end_ps;
    uint64_t delay_ps; // since its first request began
    uint64_t device_ps;
    int32_t pattern;
    uint64_t tensor_ps;
    uint32_t first_program, n_programs; // in programs, in the order of their runs
};

struct xpl_infer_model {
    xpl_str_t name;
    bool has_params; // how the server makes batches for it, as far as it was recorded
    int64_t batch_threads, timeout_us, max_batch_size, max_enqueued;
    xpl_str_t allowed_sizes;
};

struct xpl_inference {
    XPL_VEC(struct xpl_infer_model) models;
    XPL_VEC(xpl_str_t) patterns; // shapes and layouts of tensors, "<br>" between them
    XPL_VEC(struct xpl_infer_request) requests; // by duration, begin, id
    XPL_VEC(struct xpl_infer_batch) batches;    // likewise
    XPL_VEC(int64_t) batch_ids;
    XPL_VEC(uint64_t) programs;
};

// Spans of devices that requests share are looked at once for each of them; this often at most.
enum { XPL_INFER_MAX_SPANS = 1 << 23 };
// Bytes of what tensors are called, all together.
enum { XPL_INFER_MAX_TENSOR_TEXT = 1 << 27 };

// Whether a profile may have requests, only by its names and without reading its events; true in
// doubt, also for a damaged profile.
bool xpl_inference_possible(xpl_bytes_t profile);

// *ret lives in `arena` and does not refer to `xs`; temporaries take up to `limit` bytes.
// DATA_LOSS, RESOURCE_EXHAUSTED, CANCELLED.
xpl_status_t xpl_inference_make(const struct xpl_xspace *xs, struct xpl_exec *exec,
                                struct xpl_arena *arena, size_t limit, struct xpl_inference **ret,
                                struct xpl_error *err) XPL_NODISCARD;

// Appends the encoding.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_inference_encode(const struct xpl_inference *v, struct xpl_buf *out,
                                  struct xpl_error *err) XPL_NODISCARD;
// DATA_LOSS if the bytes are not a valid encoding, or its parts are inconsistent.
xpl_status_t xpl_inference_decode(xpl_bytes_t bytes, struct xpl_arena *arena,
                                  struct xpl_inference **ret, struct xpl_error *err) XPL_NODISCARD;

#endif
