// SPDX-License-Identifier: Apache-2.0
// Profiles that statements read.  Private to this folder.
#ifndef XPL_SQL_OPENED_H_
#define XPL_SQL_OPENED_H_

#include <pthread.h>

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "sql/instructions.h"
#include "sql/memory.h"
#include "sql/sql.h"

// Of the events of one piece of a line: where they begin and end, from the profile's begin.
struct xpl_sql_mark {
    int64_t first, last, end; // least and greatest begin; greatest end
};

struct xpl_sql_line {
    const struct xpl_line *line;
    xpl_str_t name;
    int64_t begin_ps;           // of its time 0, from the profile's begin
    struct xpl_sql_mark *marks; // of the line's chunks, after the first request
};

struct xpl_sql_plane {
    const struct xpl_plane *plane;
    xpl_str_t name;
    xpl_str_t *names; // by event metadata
    struct xpl_sql_line *lines;
};

struct xpl_sql_opened {
    struct xpl_arena arena;
    const struct xpl_xspace *space;
    struct xpl_sql_plane *planes;
    // Of its programs, after the first request; of a session with accelerators, and without.
    struct xpl_sql_instructions instructions[2];
    bool has_instructions[2];
    struct xpl_sql_memory memory; // of its allocators, likewise
    bool has_memory;
    pthread_mutex_t mu; // protects the making of all these and of marks, and the arena
    void *file;
    void (*close)(void *file);
    bool (*is_intact)(void *file);
    struct xpl_arena_budget *budget; // that the arenas share; NULL: none
    size_t limit;                    // bytes of each arena
    xpl_str_t key;
    unsigned refs; // the cache's lock protects it; without a cache one statement has it
    struct xpl_sql_opened *next;
};

// Opens profile i, or takes it from the cache.
xpl_status_t xpl_sql_open(const struct xpl_sql_request *q, size_t i, struct xpl_sql_opened **ret,
                          struct xpl_error *err) XPL_NODISCARD;
void xpl_sql_release(const struct xpl_sql_request *q, struct xpl_sql_opened *o);
// The marks of a line.  The first call makes a pass over the line's events.
xpl_status_t xpl_sql_marks(struct xpl_sql_opened *o, struct xpl_sql_line *line,
                           struct xpl_exec *exec, const struct xpl_sql_mark **ret,
                           struct xpl_error *err) XPL_NODISCARD;
// The instructions of its programs; `cpu_as_device` as in xpl_sql_instructions_read.  The first
// caller reads them; other callers wait meanwhile.
xpl_status_t xpl_sql_instructions_of(struct xpl_sql_opened *o, bool cpu_as_device,
                                     struct xpl_exec *exec, size_t limit,
                                     const struct xpl_sql_instructions **ret, struct xpl_error *err)
    XPL_NODISCARD;
// The memory of its allocators, likewise.
xpl_status_t xpl_sql_memory_of(struct xpl_sql_opened *o, struct xpl_exec *exec, size_t limit,
                               const struct xpl_sql_memory **ret, struct xpl_error *err)
    XPL_NODISCARD;

#endif
