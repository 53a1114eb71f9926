// SPDX-License-Identifier: Apache-2.0
// Private to capture/: failures of profiler servers as sentences with a remedy.
#ifndef XPL_CAPTURE_EXPLAIN_H_
#define XPL_CAPTURE_EXPLAIN_H_

#include "capture/capture.h"

// A host's progress at the time of a failure: the advice depends on it.
enum xpl_capture_phase { XPL_CAPTURE_AT_CONNECT, XPL_CAPTURE_AT_CALL };

// Writes into `reason` the error of the server or of gRPC (`err`) as a sentence with advice.
void xpl_capture_explain(char reason[XPL_CAPTURE_REASON_SIZE], const struct xpl_capture_plan *plan,
                         enum xpl_capture_phase phase, const struct xpl_error *err);
// Explains an idle host, with a remedy: `what` ("idle", "no events"), then its profiler's complaint
// (`notice`, or ""), or the tracer that the plan leaves off, or that it is idle.
void xpl_capture_explain_idle(char reason[XPL_CAPTURE_REASON_SIZE],
                              const struct xpl_capture_plan *plan, const char *what,
                              const char *notice);
// Whether the host refuses because another profile is being taken.
bool xpl_capture_is_busy(xpl_status_t code, const char *message);

#endif
