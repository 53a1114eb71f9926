// SPDX-License-Identifier: Apache-2.0
// The memory of a profile's allocators.  Private to this folder; knows nothing of SQLite.
#ifndef XPL_SQL_MEMORY_H_
#define XPL_SQL_MEMORY_H_

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_sql_allocator {
    xpl_str_t name;
    uint64_t peak_bytes, capacity_bytes;
};

struct xpl_sql_memory {
    struct xpl_arena arena; // of the rows and their texts, which are copies
    struct xpl_sql_allocator *v;
    uint32_t n;
};

// The memory in the time breakdown, and so in the store's rows.  The arena of `ret` is
// prepared by the caller, who frees it.  RESOURCE_EXHAUSTED at its limit, or at `limit` bytes of
// another arena, CANCELLED; *ret is then empty, with its arena.
xpl_status_t xpl_sql_memory_read(const struct xpl_xspace *xs, struct xpl_exec *exec, size_t limit,
                                 struct xpl_sql_memory *ret, struct xpl_error *err) XPL_NODISCARD;

#endif
