// SPDX-License-Identifier: Apache-2.0
// One GPU plane while it is read: op metrics and kernels.
//
// Events name ops and kernels by strings; each distinct combination is decoded once and gets a
// small number, so that an event costs a few table lookups and some additions.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_GPU_PLANE_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_GPU_PLANE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/hlo/text/text.h"
#include "analysis/opstats/conversion.h"
#include "analysis/opstats/device/planes.h"
#include "analysis/opstats/metrics/kernels.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// An XLA op as events name it: program and path.
struct xla_op {
    bool found;         // the instruction is known
    bool is_graph;      // it stands for kernels of a CUDA graph whose ops are not known
    uint32_t module;    // of an op that is not known: the program's name, as events say; or NONE
    uint32_t innermost; // last part of the path
    uint64_t program_id;
    uint32_t entry;      // in the database; NONE until it is entered
    xpl_str_t framework; // "op_name:op_type"
    struct xpl_hlo_instruction instruction;
    struct xpl_hlo_cost cost; // of one run, once it is entered
};

// An op that the framework ran itself, in one kernel.
struct tf_op {
    uint32_t call; // of PyTorch: a string, or NONE
    uint32_t entry;
    struct xpl_hlo_cost cost; // of one run
};

struct gpu_plane {
    const struct xpl_convert *c;
    const struct xpl_plane *plane;
    struct xpl_arena arena;
    struct xpl_piece piece;
    bool kernels_only;
    enum xpl_gpu_vendor vendor;
    struct xpl_intern *strings;
    uint32_t *string_of_md; // by stat metadata: string of a reference to it; NONE until seen
    const struct xpl_stat_md *vdd;

    struct xpl_hlo_text_cache *texts; // NULL until an op is described
    XPL_VEC(struct xla_op) xla_ops;
    struct xpl_map xla_index;   // (program, path) and whether the program is known
    struct xpl_map graph_index; // (unknown XLA op, event metadata) to another XLA op, in a graph
    struct xpl_map graph_rest;  // unknown XLA op to the one for the rest of its graph
    struct xpl_map tf_index;    // (call and tf_op, event metadata) to one of
    XPL_VEC(struct tf_op) tf_ops;
    struct xpl_map kernel_pair;  // (XLA op, tf_op) to a number,
    struct xpl_map kernel_owner; // that and the equation to another,
    struct xpl_map kernel_index; // (event metadata, details) and that to the kernel
    XPL_VEC(struct xpl_kernel_report) kernels;

    struct xpl_op_metrics_builder builder;
    struct xpl_op_metrics_db db;
    int64_t first_offset_ps, last_offset_ps;
};

// Reads plane i of an array of struct gpu_plane; its piece says how that went.
void xpl_gpu_plane_run(void *ctx, size_t i);

#endif
