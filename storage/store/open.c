// SPDX-License-Identifier: Apache-2.0
// Which implementation a store has.
#include "storage/store/sqlite/sqlite.h"
#include "storage/store/store.h"

xpl_status_t xpl_store_open(const struct xpl_store_options *o, struct xpl_store **ret,
                            struct xpl_error *err) {
    return xpl_sqlite_open(o, ret, err);
}
