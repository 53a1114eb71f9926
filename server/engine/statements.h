// SPDX-License-Identifier: Apache-2.0
// SQL over sessions: from their names to an answer, with limits of the daemon's.
#ifndef XPL_SERVER_ENGINE_STATEMENTS_H_
#define XPL_SERVER_ENGINE_STATEMENTS_H_

#include "base/buf.h"
#include "server/engine/opened.h"

struct xpl_engine;
struct xpl_statements;
struct xpl_store_writer;

struct xpl_statements_options {
    struct xpl_catalogue *catalogue; // borrowed
    struct xpl_engine *engine;       // borrowed; it makes the summaries of runs
    struct xpl_store_writer *writer; // borrowed; a statement sees what it was given before
    const char *store;   // path of the store's database, copied; NULL: it is not in SQLite
    const char *state;   // path of the history's database, copied
    size_t memory_limit; // bytes of a profile that is decompressed, and of its index
    unsigned most;       // that run at once
};

// NULL when out of memory.
struct xpl_statements *xpl_statements_new(const struct xpl_statements_options *o);
// No statement may run.  NULL is fine.
void xpl_statements_free(struct xpl_statements *s);

// Runs one on the calling thread, over the sessions of these names, or over all; appends JSON
// (docs/sql.md).  NOT_FOUND: there is no such session.  RESOURCE_EXHAUSTED: as many as may run do.
// Others as xpl_sql_run has them.
xpl_status_t xpl_statements_run(struct xpl_statements *s, xpl_str_t statement,
                                const xpl_str_t *sessions, size_t n, struct xpl_work_owner owner,
                                struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
