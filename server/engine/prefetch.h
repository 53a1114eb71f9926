// SPDX-License-Identifier: Apache-2.0
// A thread of the lowest priority that converts new sessions before anybody asks, while nothing
// else is going on.  Before that, after an unclean stop, it checks the store.
#ifndef XPL_SERVER_ENGINE_PREFETCH_H_
#define XPL_SERVER_ENGINE_PREFETCH_H_

#include <stdbool.h>

#include "server/engine/engine.h"
#include "server/engine/pool.h"

struct xpl_prefetch;

// NULL when the thread cannot be had.
struct xpl_prefetch *xpl_prefetch_new(struct xpl_engine *e, struct xpl_catalogue *catalogue,
                                      struct xpl_store *store, struct xpl_pool *pool, bool enabled);
void xpl_prefetch_set_enabled(struct xpl_prefetch *p, bool enabled);
// Gives up what is under way, joins.  NULL is fine.
void xpl_prefetch_free(struct xpl_prefetch *p);

#endif
