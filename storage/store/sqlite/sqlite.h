// SPDX-License-Identifier: Apache-2.0
// The store in a SQLite database: see storage/store/store.h for what it promises.
#ifndef XPL_STORAGE_STORE_SQLITE_SQLITE_H_
#define XPL_STORAGE_STORE_SQLITE_SQLITE_H_

#include "storage/store/store.h"

// As xpl_store_open; the database is DIR/cache.db, the lock beside it cache.db.lock.
xpl_status_t xpl_sqlite_open(const struct xpl_store_options *o, struct xpl_store **ret,
                             struct xpl_error *err) XPL_NODISCARD;

#endif
