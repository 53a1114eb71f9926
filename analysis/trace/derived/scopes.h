// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/derived: scope ranges, a tree by ids, and the chain of an event's own.
#ifndef XPL_ANALYSIS_TRACE_DERIVED_SCOPES_H_
#define XPL_ANALYSIS_TRACE_DERIVED_SCOPES_H_

#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/status.h"

struct xpl_scope_tree; // child scope range to its parent; immutable, shared by planes
xpl_status_t xpl_scope_tree_new(const struct xpl_xspace *xs, struct xpl_arena *arena,
                                struct xpl_scope_tree **ret, struct xpl_error *err) XPL_NODISCARD;

// A plane's walks over the tree, which visit each scope once.  One thread.
struct xpl_scope_walks;
// NULL on OOM.  Lives in `arena`.
struct xpl_scope_walks *xpl_scope_walks_new(const struct xpl_scope_tree *tree,
                                            struct xpl_arena *arena);

// Ids of an event's scope ranges, innermost first.
struct xpl_scope_chain {
    uint32_t depth, node; // node + 1 of the innermost, 0: it has no parent
    int64_t innermost, root;
};
struct xpl_scope_chain xpl_scope_chain_of(struct xpl_scope_walks *w, int64_t innermost);
// Writes all c->depth ids of the chain, outermost first.
void xpl_scope_chain_ids(const struct xpl_scope_walks *w, const struct xpl_scope_chain *c,
                         int64_t *ret);

#endif
