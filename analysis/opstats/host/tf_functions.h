// SPDX-License-Identifier: Apache-2.0
// Calls of tf.functions on host threads: how they ran, and their time without what they called.
// Rules: XProf's convert/xplane_to_tf_functions.cc.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_TF_FUNCTIONS_H_
#define XPL_ANALYSIS_OPSTATS_HOST_TF_FUNCTIONS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/opstats.h"
#include "analysis/opstats/steps/event_span.h"
#include "base/vec.h"

struct xpl_arena;

// One call, as its event states it.  `mode` is the text of stat tf_function_call.
struct xpl_tf_call {
    xpl_str_t name, mode;
    struct xpl_timespan span;
    int64_t tracing_count;
    uint64_t children_ps; // set by xpl_tf_calls_nest
};
struct xpl_tf_calls {
    XPL_VEC(struct xpl_tf_call) v; // of one line, in file order
};

// Finds out which calls of the line called which others.  Calls are expected to nest; where they
// do not, the innermost open call counts as the caller, as upstream.  False at the arena's limit.
bool xpl_tf_calls_nest(struct xpl_tf_calls *calls, struct xpl_arena *scratch)
    __attribute__((warn_unused_result));

// Functions seen so far; lines are added in their order.
struct xpl_tf_function_table {
    struct xpl_arena *result;
    struct xpl_intern *names;
    XPL_VEC(struct xpl_tf_function) v; // by interned name - 1 once `names` exists
};
bool xpl_tf_functions_add(struct xpl_tf_function_table *t, const struct xpl_tf_calls *calls)
    __attribute__((warn_unused_result));
// Adds a finished table (CombineTfFunctionDb).
bool xpl_tf_functions_combine(struct xpl_tf_function_table *t, const struct xpl_tf_function *src,
                              size_t n) __attribute__((warn_unused_result));
// Sorts by name and computes the shares of expensive calls; the array is t->v.
void xpl_tf_functions_finish(struct xpl_tf_function_table *t);

#endif
