// SPDX-License-Identifier: Apache-2.0
// One TPU plane while it is read: op metrics and duty cycle.
//
// A line is walked once: a stack of the ops that enclose each other yields self times, and feeds
// the duty cycle on the way.  XProf sorts the events of TensorCore planes beforehand; writers do so
// too, and a line that turns out not to be in order is walked again in order.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_TPU_PLANE_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_TPU_PLANE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/opstats/conversion.h"
#include "analysis/opstats/device/duty.h"
#include "analysis/opstats/device/offloads.h"
#include "analysis/opstats/device/planes.h"
#include "analysis/opstats/device/tpu_ops.h"
#include "analysis/opstats/opstats.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

struct tpu_frame { // an op that is running
    uint32_t md;
    int64_t num_occurrences;
    uint64_t event_duration_ps;
    struct xpl_tpu_values values;
    struct xpl_timespan span; // on the device's clock
    uint64_t children_ps;
    struct xpl_op_metrics_db *offloaded;
};

struct offload_builder { // SparseCore: ops of one offload
    uint64_t core_id, start_id, total_ps;
    struct xpl_tpu_ops ops;
    XPL_VEC(struct tpu_frame) stack;
};

// What an event's statistics say beyond its numbers, decoded together.
struct tpu_event_facts {
    struct xpl_timespan span;
    bool has_tf_op, is_async;
    bool has_core_id, has_start_id;
    uint64_t core_id;
    struct xpl_stat start_id;
    struct xpl_tpu_values values;
};

struct tpu_plane {
    const struct xpl_convert *c;
    const struct xpl_plane *plane;
    struct xpl_arena arena;
    struct xpl_piece piece;
    struct xpl_tpu_plane tp;
    struct xpl_duty_plane duty;
    const struct offloads *offloads; // TensorCore: input
    bool is_sparse;
    bool sorted;        // XProf sorts this plane's lines, and adds a line of framework ops
    bool framework_ops; // it adds that line, and some event may stand on it
    uint8_t *md_flags;  // by event metadata, MD_*

    // TensorCore
    struct xpl_tpu_ops ops;
    XPL_VEC(struct tpu_frame) stack;
    uint64_t first_ps, last_ps;
    struct xpl_op_metrics_db db;
    // SparseCore
    XPL_VEC(struct offload_builder) builders;
    XPL_VEC(struct offload) results;
};

// Makes ready to read the plane.  False at the arena's limit.
bool xpl_tpu_prepare(struct tpu_plane *t);
// Records that memory ran out.
xpl_status_t xpl_tpu_out_of_memory(struct tpu_plane *t) XPL_NODISCARD;
// CANCELLED when the work is, asked every few thousand events.
xpl_status_t xpl_tpu_check_cancelled(struct tpu_plane *t, const struct xpl_event *ev) XPL_NODISCARD;
// Whether some statistic of the plane has that type.
bool xpl_plane_has_stat_type(const struct xpl_plane *p, enum xpl_stat_type type);
// Decodes the statistics of an event.
void xpl_tpu_read_facts(struct tpu_plane *t, const struct xpl_line *line,
                        const struct xpl_event *ev, struct tpu_event_facts *ret);

// (Member by member: a copy would be read in wider pieces than it has just been written in.)
static inline void fill_frame(struct tpu_frame *frame, const struct xpl_event *ev,
                              const struct tpu_event_facts *f) {
    frame->md = ev->md;
    frame->num_occurrences = ev->num_occurrences;
    frame->event_duration_ps = (uint64_t)ev->duration_ps;
    frame->values.min_ps = f->values.min_ps;
    frame->values.dma_stall_ps = f->values.dma_stall_ps;
    frame->values.vdd_energy_j = f->values.vdd_energy_j;
    frame->values.time_scale = f->values.time_scale;
    frame->values.has_vdd_energy_j = f->values.has_vdd_energy_j;
    frame->values.has_time_scale = f->values.has_time_scale;
    frame->span.begin_ps = f->span.begin_ps;
    frame->span.duration_ps = f->span.duration_ps;
    frame->children_ps = 0;
    frame->offloaded = NULL;
}

// What a frame adds when its op ends.
static inline struct xpl_tpu_run frame_run(const struct tpu_frame *f) {
    return (struct xpl_tpu_run){.md = f->md,
                                .num_occurrences = f->num_occurrences,
                                .event_duration_ps = f->event_duration_ps,
                                .values = &f->values,
                                .time_ps = f->span.duration_ps,
                                .children_ps = f->children_ps,
                                .offloaded = f->offloaded};
}

// The duty cycle, and of a TensorCore its ops.
xpl_status_t xpl_tpu_walk_lines(struct tpu_plane *t) XPL_NODISCARD;
// Reads a TensorCore whole: t->db and t->duty.
xpl_status_t xpl_tpu_walk_tensor_core(struct tpu_plane *t) XPL_NODISCARD;

// ---- tpu_fusions.c ----

// The instructions inside fusions, as children of their ops.

// Adds them to the ops of `db`, in `a` [UpdateOpMetricsDbFromHloModuleMap].  RESOURCE_EXHAUSTED at
// a limit.
xpl_status_t xpl_tpu_add_fusion_children(struct xpl_hlo_map *hlo, struct xpl_arena *a,
                                         struct xpl_op_metrics_db *db, struct xpl_error *err)
    XPL_NODISCARD;

// ---- lines ----

// What the lines of TPU planes are, by their names.

static inline bool line_is(const struct xpl_line *l, xpl_str_t name) {
    return xpl_str_eq(l->name, name);
}
static inline bool is_op_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_OPS)) || line_is(l, XPL_STR(XPL_LINE_FRAMEWORK_OPS)) ||
           line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
}
static inline bool is_duty_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_OPS)) || line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
}
static inline bool is_module_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_MODULES)) ||
           line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_MODULES));
}
static inline bool is_step_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_STEPS)) || line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS));
}

// ---- tpu_sparse.c ----

// Op metrics of SparseCores, by the op of a TensorCore that started them.

// Reads a SparseCore whole: t->results and t->duty.
xpl_status_t xpl_tpu_walk_sparse_core(struct tpu_plane *t) XPL_NODISCARD;

#endif
