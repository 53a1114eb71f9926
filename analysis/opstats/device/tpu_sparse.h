// SPDX-License-Identifier: Apache-2.0
// Op metrics of SparseCores, by the op of a TensorCore that started them.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_TPU_SPARSE_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_TPU_SPARSE_H_

#include "analysis/opstats/device/tpu_plane.h"

// Reads a SparseCore whole: t->results and t->duty.
xpl_status_t xpl_tpu_walk_sparse_core(struct tpu_plane *t) XPL_NODISCARD;

#endif
