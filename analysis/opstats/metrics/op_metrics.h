// SPDX-License-Identifier: Apache-2.0
// Op-metrics databases (message OpMetricsDb): building, merging, ordering, regrouping.  Shared by
// the device part, the host part, steps, the combination of hosts and the tools.
// Rules: XProf's utils/op_metrics_db_utils.cc, convert/op_metrics_db_combiner.cc,
// convert/op_metrics_to_record.cc.
//
// All sums wrap as upstream's unsigned fields do.  Functions that return bool or a pointer report
// false or NULL when an arena is at its limit or memory is out; nothing else can fail.
// A builder and its arenas belong to one thread at a time.
#ifndef XPL_ANALYSIS_OPSTATS_METRICS_OP_METRICS_H_
#define XPL_ANALYSIS_OPSTATS_METRICS_OP_METRICS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/opstats/opstats.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;

// Name and category of the op that stands for idle time.
#define XPL_IDLE_OP XPL_STR("IDLE")
// Category of ops of programs that the profile does not have.
#define XPL_CATEGORY_NO_HLO XPL_STR("no HLO")

// How deep OpMetrics.children may nest in what we build; deeper levels are left out.
enum { XPL_OP_METRICS_MAX_DEPTH = 32 };

// Whether strings, breakdowns, layouts and children put into a database are copied into its arena
// or shared with the source, which must then outlive it.
enum xpl_op_metrics_strings { XPL_OP_METRICS_SHARE, XPL_OP_METRICS_COPY };

// Looks up entries of a database by (hlo_module_id, name), and inserts what is missing
// (OpMetricsDbBuilder).  Opaque to callers but for the size; nothing to free.
struct xpl_op_metrics_builder {
    struct xpl_op_metrics_db *db;
    struct xpl_arena *arena, *scratch;
    struct xpl_op_metrics_slot *slots;
    size_t cap;
    enum xpl_op_metrics_strings strings;
};

// Prepares a builder for `db`, which must be zero-initialised: the builder is then the only one who
// adds entries (an IDLE op may be appended after the last put).  Entries live in `arena`, the
// lookup table in `scratch`, which must last as long as the builder and may be the same arena.
void xpl_op_metrics_begin(struct xpl_op_metrics_builder *b, struct xpl_op_metrics_db *db,
                          enum xpl_op_metrics_strings strings, struct xpl_arena *arena,
                          struct xpl_arena *scratch);
// The entry of that module and name; a new one has only these two set and everything else zero.
// Valid until the next put or combine.  Entries stand in order of first appearance.
struct xpl_op_metrics *xpl_op_metrics_put(struct xpl_op_metrics_builder *b, uint64_t hlo_module_id,
                                          xpl_str_t name) XPL_NODISCARD;
// Adds a whole database (OpMetricsDbCombiner::Combine): totals are summed, entries merged, the
// first non-empty metadata kept.  `update_num_cores` also sums num_cores: true for device ops.
bool xpl_op_metrics_combine(struct xpl_op_metrics_builder *b, const struct xpl_op_metrics_db *src,
                            bool update_num_cores) XPL_NODISCARD;

// Adds the memory that `src` accessed to an entry's.
bool xpl_op_metrics_add_breakdown(const struct xpl_memory_accessed *src, size_t n,
                                  struct xpl_op_metrics *dst, struct xpl_arena *arena)
    XPL_NODISCARD;

// Copies a database with everything it points to into `arena`.
bool xpl_op_metrics_db_copy(const struct xpl_op_metrics_db *src, struct xpl_arena *arena,
                            struct xpl_op_metrics_db *ret) XPL_NODISCARD;

// SetTotalTimePs: never below the time of the ops themselves.
void xpl_op_metrics_set_total_time(struct xpl_op_metrics_db *db, uint64_t total_time_ps);
// AddIdleOp: total minus op time; call once, when both are final.
bool xpl_op_metrics_add_idle(struct xpl_op_metrics_db *db, struct xpl_arena *arena) XPL_NODISCARD;

static inline bool xpl_op_metrics_is_idle(const struct xpl_op_metrics *m) {
    return xpl_str_eq(m->category, XPL_IDLE_OP);
}
// Time without children.
static inline uint64_t xpl_op_metrics_children_time(const struct xpl_op_metrics *m) {
    return m->time_ps - m->self_time_ps;
}
// IdleTimePs.
static inline uint64_t xpl_op_metrics_idle_time(const struct xpl_op_metrics_db *db) {
    return db->total_time_ps - db->total_op_time_ps;
}
// IdleTimeRatio: 1 - op time / total time, 1 when the total is 0.
double xpl_op_metrics_idle_ratio(const struct xpl_op_metrics_db *db);
// HostInfeedEnqueueRatio.  False when there is none.
bool xpl_op_metrics_infeed_ratio(const struct xpl_op_metrics_db *db, double *ret);

// SortedOpMetricsDb: entries by self time, longest first, then by name; others that tie stand as
// upstream's sort leaves them.  At most `max` of them (SIZE_MAX: all).  `*ret` lives in `scratch`.
bool xpl_op_metrics_sorted(const struct xpl_op_metrics_db *db, size_t max,
                           struct xpl_arena *scratch, const struct xpl_op_metrics ***ret,
                           size_t *ret_n) XPL_NODISCARD;

// How device ops are regrouped: by framework op; of PyTorch also by the shapes and types of its
// inputs, where these are known; or by module, of other frameworks the scope of the name.
enum xpl_framework_group { XPL_GROUP_OP, XPL_GROUP_SHAPE, XPL_GROUP_MODULE };

// CreateTfMetricsDbFromDeviceOpMetricsDb: device ops regrouped by the framework op they came from
// (provenance), times and costs summed, occurrences the largest, or the runs of ops of PyTorch.
// `*ret` lives in `arena` and shares strings with `device`.
bool xpl_op_metrics_by_framework_op(const struct xpl_op_metrics_db *device, bool with_idle,
                                    enum xpl_framework_group group, struct xpl_arena *arena,
                                    struct xpl_op_metrics_db *ret) XPL_NODISCARD;

#endif
