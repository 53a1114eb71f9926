// SPDX-License-Identifier: Apache-2.0
// Captures and schedules as JSON, for our own pages (docs/http.md).
#ifndef XPL_SERVER_CAPTURE_JOBS_JSON_H_
#define XPL_SERVER_CAPTURE_JOBS_JSON_H_

#include "base/status.h"

struct xpl_buf;
struct xpl_capture_jobs;
struct xpl_history;
struct xpl_schedules;

// The newest 100 captures, those that run as they are now, and all schedules.  Reads the history:
// not for the loop's thread.  RESOURCE_EXHAUSTED when out of memory; else as the history says.
xpl_status_t xpl_capture_jobs_put_json(struct xpl_capture_jobs *c, struct xpl_history *h,
                                       struct xpl_schedules *s, struct xpl_buf *out,
                                       struct xpl_error *err) XPL_NODISCARD;

#endif
