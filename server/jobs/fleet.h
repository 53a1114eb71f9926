// SPDX-License-Identifier: Apache-2.0
// Who shares the store, and who works on what, as JSON (docs/cli-json.md).
#ifndef XPL_SERVER_JOBS_FLEET_H_
#define XPL_SERVER_JOBS_FLEET_H_

#include "base/status.h"

struct xpl_buf;
struct xpl_store;

// Asks the database: not for the loop's thread.  FAILED_PRECONDITION: this daemon shares no store;
// else as storage/store/jobs.h says.
xpl_status_t xpl_fleet_put_json(struct xpl_store *s, struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

#endif
