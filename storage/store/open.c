// SPDX-License-Identifier: Apache-2.0
// Which implementation a store has.
#include "storage/store/sqlite/sqlite.h"
#include "storage/store/store.h"
#if XPL_POSTGRESQL
#include "storage/store/postgresql/postgresql.h"
#endif

xpl_status_t xpl_store_open(const struct xpl_store_options *o, struct xpl_store **ret,
                            struct xpl_error *err) {
    if (!o->url || !o->url[0]) return xpl_sqlite_open(o, ret, err);
#if XPL_POSTGRESQL
    return xpl_pg_open(o, ret, err);
#else
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "--store: this xplaned was built without PostgreSQL (-Dpostgresql=enabled)");
#endif
}
