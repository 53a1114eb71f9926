// SPDX-License-Identifier: Apache-2.0
// The store in a PostgreSQL database (15 or later), which any number of daemons share: each of them
// writes.  README.md has the flow and the decisions.
#ifndef XPL_STORAGE_STORE_POSTGRESQL_POSTGRESQL_H_
#define XPL_STORAGE_STORE_POSTGRESQL_POSTGRESQL_H_

#include "storage/store/store.h"

// As xpl_store_open with a `url`.  INVALID_ARGUMENT for an invalid URL, FAILED_PRECONDITION without
// libpq or if the tables belong to another program.  Waits at most 3 s for the database: if it is
// unavailable, the store is OFF until it returns.
xpl_status_t xpl_pg_open(const struct xpl_store_options *o, struct xpl_store **ret,
                         struct xpl_error *err) XPL_NODISCARD;

#endif
