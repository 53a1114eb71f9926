// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share: a profile while its requests are looked for.
#ifndef XPL_ANALYSIS_INFERENCE_IMPL_H_
#define XPL_ANALYSIS_INFERENCE_IMPL_H_

#include "analysis/grouping/groups.h"
#include "analysis/inference/inference.h"
#include "analysis/inference/kinds.h"
#include "analysis/opstats/steps/timespan.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"

// An event of a kind that matters, and that has a group.
struct xpl_infer_mark {
    uint32_t group;      // index
    uint32_t md;         // its name
    uint64_t begin, end; // as upstream's uint64 wrap
    struct xpl_stats stats;
};

// Transfers and computation of a group.
struct xpl_infer_span {
    enum xpl_span_type type;
    uint64_t begin, duration;
    uint32_t next; // + 1
};

// When a group came to the device; of several the one that upstream keeps.
struct xpl_infer_times {
    bool has_schedule, has_concat, has_execute, has_launch, has_callback;
    int64_t schedule, concat, execute, launch, callback;
};

struct xpl_infer_tensor {
    const struct xpl_infer_mark *mark;
    uint32_t next; // + 1
};

struct xpl_infer_group {
    int64_t id;
    bool known;          // grouping made it, so that it has relations
    bool is_batch;       // an event ProcessBatch is in it
    uint64_t begin, end; // of all its events on the host
    bool has_model;      // says one, which may be ""
    uint32_t model;      // interned
    uint32_t request;    // index + 1
    uint32_t batch;      // index + 1
    uint32_t n_spans;
    uint32_t spans;   // first + 1
    uint32_t tensors; // first + 1
    uint32_t n_tensors;
    uint32_t programs, last_program; // first and last + 1
    uint32_t first_child, n_children;
    uint32_t first_parent, n_parents;
    struct xpl_infer_times at;
};

struct xpl_infer_program {
    uint64_t id;
    uint32_t next; // + 1
};

struct xpl_inferring {
    const struct xpl_xspace *xs;
    struct xpl_exec *exec;
    struct xpl_arena *scratch, *result;
    size_t limit;
    struct xpl_groups *groups;
    struct xpl_group_relations relations;
    const struct xpl_plane *host;
    XPL_VEC(struct xpl_infer_group) v;
    struct xpl_map by_id; // group to index
    struct {
        bool seen; // also without a group
        XPL_VEC(struct xpl_infer_mark) v;
    } marks[XPL_INFER_KINDS];
    XPL_VEC(struct xpl_infer_span) spans;
    XPL_VEC(struct xpl_infer_tensor) tensors;
    uint64_t tensor_bytes; // of their texts, so far
    XPL_VEC(struct xpl_infer_program) programs;
    struct xpl_map program_known;
    const uint32_t *children, *parents; // indexes of groups, ascending by id in each
    struct xpl_intern *models;          // as the server names them
    struct xpl_intern *model_ids;       // those that count; index + 1
    struct xpl_intern *patterns;
    struct xpl_inference *out;
};

static inline struct xpl_infer_group *xpl_infer_group_of(struct xpl_inferring *k,
                                                         const struct xpl_infer_mark *m) {
    return &k->v.v[m->group];
}

// The group's index + 1; 0 where it has none.
uint32_t xpl_infer_find_group(const struct xpl_inferring *k, int64_t id);

// The stages, in their order.
xpl_status_t xpl_infer_collect(struct xpl_inferring *k, struct xpl_error *err) XPL_NODISCARD;
bool xpl_infer_relate(struct xpl_inferring *k) XPL_NODISCARD;
bool xpl_infer_find_requests(struct xpl_inferring *k) XPL_NODISCARD;
bool xpl_infer_find_batches(struct xpl_inferring *k) XPL_NODISCARD;
xpl_status_t xpl_infer_read_devices(struct xpl_inferring *k, struct xpl_error *err) XPL_NODISCARD;
void xpl_infer_delays(struct xpl_inferring *k);
xpl_status_t xpl_infer_break_down(struct xpl_inferring *k, struct xpl_error *err) XPL_NODISCARD;
bool xpl_infer_read_tensors(struct xpl_inferring *k) XPL_NODISCARD;
bool xpl_infer_read_params(struct xpl_inferring *k) XPL_NODISCARD;

#endif
