// SPDX-License-Identifier: Apache-2.0
// The comparison of two groups of sessions (docs/compare.md), for gRPC and HTTP.
#ifndef XPL_SERVER_ENGINE_JOINT_COMPARE_H_
#define XPL_SERVER_ENGINE_JOINT_COMPARE_H_

#include "server/engine/joint/history.h"

struct xpl_comparison_request {
    // Where other sessions with a label of A's are, which show the noise between runs if a side has
    // few runs; borrowed during the call.
    const struct xpl_follow_sources *from;
    const xpl_str_t *a, *b; // names of sessions; borrowed during the call
    size_t n_a, n_b;
    size_t memory_limit;   // bytes of the summaries, and of the answer
    xpl_str_t traceparent; // as the client sent it, or empty; borrowed during the call
    // As in xpl_joint_request; the bytes are JSON (docs/cli-json.md).
    void (*done)(void *arg, const struct xpl_joint_outcome *o);
    void *arg;
};

// As xpl_joint_begin.  Sessions of the history that cannot be read do not count.  *ret is cancelled
// and released as any joint is.
xpl_status_t xpl_comparison_begin(struct xpl_engine *e, const struct xpl_comparison_request *q,
                                  struct xpl_joint **ret, struct xpl_error *err) XPL_NODISCARD;

#endif
