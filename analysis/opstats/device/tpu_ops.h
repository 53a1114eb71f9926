// SPDX-License-Identifier: Apache-2.0
// Op metrics from TPU op events, whose numbers stand in the statistics of the events and, for what
// is the same each time an op runs, of their metadata.  Shared by the device's op metrics and by
// those of single steps.
// Rules: XProf's utils/op_metrics_db_utils.cc (FromXEvent, XEventsOpMetricsDbBuilder).
//
// What metadata says is decoded once per metadata entry; an event only adds numbers.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_TPU_OPS_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_TPU_OPS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/opstats.h"
#include "analysis/xplane/xspace.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;

// ---- metadata of one plane ----

// Statistics that tell a custom call that works from one that waits.
enum xpl_tpu_work { XPL_TPU_FLOPS, XPL_TPU_MODEL_FLOPS, XPL_TPU_USES_ICI, XPL_TPU_WORKS };
extern const enum xpl_stat_type xpl_tpu_work_stats[XPL_TPU_WORKS];

struct xpl_tpu_md {
    bool ready;       // the fields below are filled
    bool has_key;     // program_id and symbol_id are known and the symbol is not the root (0)
    bool custom_call; // category "custom-call"
    bool has_category;
    bool off_duty;                // the category is, see xpl_tpu_category_is_off_duty
    bool waits;                   // the name does, see xpl_tpu_op_waits
    bool positive[XPL_TPU_WORKS]; // the statistic is above 0, as an int of 32 bits
    uint64_t program_id, symbol_id;
    // What the metadata says, and the op with its children: read when first needed, NULL until
    // then.
    const struct xpl_tpu_md_op *decoded;
    struct xpl_op_metrics *op;
};

struct xpl_tpu_plane {
    const struct xpl_plane *plane;
    struct xpl_arena *arena;       // owns md and what it points to, strings included
    struct xpl_tpu_md *md;         // by xpl_event.md
    const struct xpl_stat_md *vdd; // "vdd_energy_j", which is no known statistic; NULL when absent
};
// False at the arena's limit.  One thread at a time may use the result.
bool xpl_tpu_plane_init(struct xpl_tpu_plane *tp, const struct xpl_plane *plane,
                        struct xpl_arena *arena) XPL_NODISCARD;
const struct xpl_tpu_md *xpl_tpu_md_get(struct xpl_tpu_plane *tp, uint32_t md);

// True for a name that marks waiting, not work: XProf 2.24.2 (not the public source) counts such
// ops as off duty, and in the metrics of steps relabels them "async-done".
bool xpl_tpu_op_waits(xpl_str_t name);
// IsOffDutyOp: categories during which a core does no work of its own.
bool xpl_tpu_category_is_off_duty(xpl_str_t category);

// ---- building a database ----

enum xpl_tpu_ops_kind {
    XPL_TPU_OPS_TENSOR, // device metrics of a TensorCore
    XPL_TPU_OPS_SPARSE, // of a SparseCore
    XPL_TPU_OPS_STEP,   // metrics of one step: core type unset, waiting ops relabelled
};

// What the statistics of one event say of the run.
struct xpl_tpu_values {
    uint64_t min_ps, dma_stall_ps;
    double vdd_energy_j, time_scale;
    bool has_vdd_energy_j, has_time_scale;
};
// Prepares the values of an event without any statistics, and notes one statistic.
static inline struct xpl_tpu_values xpl_tpu_values_of(const struct xpl_event *ev) {
    return (struct xpl_tpu_values){.min_ps = (uint64_t)ev->duration_ps};
}
void xpl_tpu_values_note(const struct xpl_tpu_plane *tp, const struct xpl_stat *s,
                         struct xpl_tpu_values *v);

struct xpl_tpu_op_sums { // of one (program, symbol)
    uint32_t md;         // of the first event
    uint32_t occurrences;
    uint64_t time_ps, self_time_ps, min_time_ps, normalized_time_ps, dma_stall_ps;
    double vdd_energy_j;
    struct xpl_op_metrics_db *offloaded; // of the first event, see add; NULL when there is none
    bool has_vdd_energy_j;
};

struct xpl_tpu_ops {
    struct xpl_tpu_plane *plane;
    struct xpl_arena *arena; // of the sums
    enum xpl_tpu_ops_kind kind;
    struct xpl_map index; // (program, symbol) to position in sums
    uint32_t *sum_of_md;  // TENSOR: by event metadata, position + 1; 0 until seen
    XPL_VEC(struct xpl_tpu_op_sums) sums;
};
void xpl_tpu_ops_begin(struct xpl_tpu_ops *b, struct xpl_tpu_plane *plane,
                       enum xpl_tpu_ops_kind kind, struct xpl_arena *arena);
// Adds one run of an op: an event whose children took children_ps of its time_ps.  Events without
// a key are ignored.  `offloaded` (may be NULL) is what the op had run on SparseCores; the first
// event's is kept and must outlive finish.  False at an arena's limit.
bool xpl_tpu_ops_add(struct xpl_tpu_ops *b, const struct xpl_event *ev, uint64_t time_ps,
                     uint64_t children_ps, struct xpl_op_metrics_db *offloaded) XPL_NODISCARD;
// The same for callers that read the statistics themselves.
struct xpl_tpu_run {
    uint32_t md; // xpl_event.md
    int64_t num_occurrences;
    uint64_t event_duration_ps;
    const struct xpl_tpu_values *values;
    uint64_t time_ps, children_ps;
    struct xpl_op_metrics_db *offloaded;
};
bool xpl_tpu_ops_add_run(struct xpl_tpu_ops *b, const struct xpl_tpu_run *run) XPL_NODISCARD;
// Writes the entries, in order of first appearance, and the totals of op time to `*ret`, in `arena`
// and sharing strings with the plane; total time and idle op are the caller's.
bool xpl_tpu_ops_finish(struct xpl_tpu_ops *b, struct xpl_arena *arena,
                        struct xpl_op_metrics_db *ret) XPL_NODISCARD;

#endif
