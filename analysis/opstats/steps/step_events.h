// SPDX-License-Identifier: Apache-2.0
// Steps of device planes, from their step markers and their kernel or op events.
// Rules: XProf's convert/xplane_to_step_events.cc (ConvertDeviceTraceXPlaneToStepEvents).
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_H_

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/opstats/steps/step_events_sparse.h"
#include "base/arena.h"
#include "base/status.h"

// Steps of all device planes together: on GPU those that some device has, on TPU those that all
// cores have.
struct xpl_device_steps {
    struct xpl_steps steps;
    struct xpl_sparse_cores sparse;
    struct xpl_arena arena;
    struct xpl_arena *shards; // one per piece of parallel work
    unsigned n_shards;
};

// RESOURCE_EXHAUSTED at a limit, DATA_LOSS where an event is broken, CANCELLED.  Strings and
// children of op metrics live in c->result.
xpl_status_t xpl_device_steps_run(const struct xpl_convert *c, struct xpl_device_steps *ret,
                                  struct xpl_error *err) XPL_NODISCARD;
// Accepts a zero-initialised struct.
void xpl_device_steps_fini(struct xpl_device_steps *d);

#endif
