// SPDX-License-Identifier: Apache-2.0
// The parts of an op's full name: framework, name and type.  Rules: XProf's tf_op_utils.{h,cc}.
// Pure functions on views; nothing allocates but xpl_tf_op_event_name.  Any thread.
#ifndef XPL_ANALYSIS_XPLANE_TF_OP_H_
#define XPL_ANALYSIS_XPLANE_TF_OP_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct xpl_arena;

enum xpl_tf_op_category {
    XPL_TF_OP_UNKNOWN,
    XPL_TF_OP_TENSORFLOW,
    XPL_TF_OP_JAX,
    XPL_TF_OP_TF_DATA,
    XPL_TF_OP_MEMCPY_HTOD,
    XPL_TF_OP_MEMCPY_DTOH,
    XPL_TF_OP_MEMCPY_DTOD,
    XPL_TF_OP_MEMCPY_HTOH,
    XPL_TF_OP_PYTORCH,
};

struct xpl_tf_op {
    enum xpl_tf_op_category category;
    xpl_str_t name; // part of the full name; of PyTorch the op, without its modules
    xpl_str_t type; // part of the full name, or a constant ("Dataset", "MemcpyHToD"); "" if unknown
};

// Takes "name:Type" apart (ParseTfOpFullname).  "MODULES/aten::mm:torch.GEMM", which is ours, is an
// op of PyTorch.  "Iterator::..." is tf.data; "name:" and "name:jax_type[...]" are JAX ops when the
// type, or the last part of the name, looks like one; without ':' only memory copies are
// recognised, ignoring case.
struct xpl_tf_op xpl_tf_op_parse(xpl_str_t full_name);

// The name with the modules before it: the full name without its type.
xpl_str_t xpl_tf_op_scoped_name(xpl_str_t full_name, const struct xpl_tf_op *op);

bool xpl_is_tf_op_name(xpl_str_t s); // IsTfOpName
bool xpl_is_tf_op_type(xpl_str_t s); // IsTfOpType
// IsJaxOpNameAndType: `type` occurs in the last '/' part of `name`.
bool xpl_is_jax_op_name_and_type(xpl_str_t name, xpl_str_t type);

// Name scopes: the parts of `name` between '/' but the last (ParseTfNameScopes).  Call with *pos ==
// 0 first; false after the last one.
bool xpl_tf_op_next_scope(xpl_str_t name, size_t *pos, xpl_str_t *ret);
// The op's name in trace viewers (TfOpEventName): its type, "Iterator::<innermost>" for tf.data,
// the name without trailing blanks for unknown ones.  False at the arena's limit.
bool xpl_tf_op_event_name(struct xpl_arena *a, const struct xpl_tf_op *op, xpl_str_t *ret)
    __attribute__((warn_unused_result));

static inline bool xpl_is_dataset_op(xpl_str_t type) {
    return xpl_str_eq(type, XPL_STR("Dataset"));
}
static inline bool xpl_is_infeed_enqueue_op(xpl_str_t type) {
    return xpl_str_starts(type, XPL_STR("InfeedEnqueue"));
}
static inline bool xpl_is_memcpy_htod_op(xpl_str_t type) {
    return xpl_str_eq(type, XPL_STR("MemcpyHToD"));
}
// IsInfeedEnqueueOp(TfOp), which asks for a TensorFlow op.
static inline bool xpl_tf_op_is_infeed_enqueue(const struct xpl_tf_op *op) {
    return op->category == XPL_TF_OP_TENSORFLOW && xpl_is_infeed_enqueue_op(op->type);
}

#endif
