// SPDX-License-Identifier: Apache-2.0
// Captures and schedules as messages of xplaned.v1, and back.
#ifndef XPL_SERVER_CAPTURE_JOBS_MESSAGES_H_
#define XPL_SERVER_CAPTURE_JOBS_MESSAGES_H_

#include "base/arena.h"
#include "proto/xplaned/v1/capture.pb-c.h"
#include "server/capture_jobs/captures.h"

// The plan that the request describes: views of the request, lists in `arena`.  Says nothing of
// whether it is a good one (xpl_capture_check does).
xpl_status_t xpl_capture_plan_of(const Xplaned__V1__CaptureRequest *r, struct xpl_arena *arena,
                                 struct xpl_capture_plan *ret, struct xpl_error *err) XPL_NODISCARD;
// NULL when out of memory.
Xplaned__V1__Capture *xpl_capture_jobs_message(const struct xpl_history_capture *c,
                                               struct xpl_arena *arena);
Xplaned__V1__CaptureProgress *xpl_capture_progress_message(uint64_t id,
                                                           const struct xpl_capture_progress *p,
                                                           struct xpl_arena *arena);

#endif
