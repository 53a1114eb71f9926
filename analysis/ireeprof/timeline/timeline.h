// SPDX-License-Identifier: Apache-2.0
// A bundle as a trace for other viewers: run->options.trace says in which format.
//
// Tracks, slices, instants, counters and their arguments are those of IREE's renderer of
// ireeperf-jsonl; docs/iree.md lists what is added.  Times stay those of the bundle: nanoseconds of
// the machine's monotonic clock, moved only where one is below 0.  Ticks of devices are mapped by
// the midpoints of the brackets of the clock correlations with the first and the last tick, so that
// devices and hosts share a time; a device without correlations has no events.
//
// Memory is 56 bytes for each event, and metadata; everything else is read again when it is
// written.  An XSpace takes twice that for a while: it has the events of each line together.
#ifndef XPL_ANALYSIS_IREEPROF_TIMELINE_TIMELINE_H_
#define XPL_ANALYSIS_IREEPROF_TIMELINE_TIMELINE_H_

#include "analysis/ireeprof/run.h"

// Writes it where run->rows writes.  RESOURCE_EXHAUSTED; CANCELLED.
xpl_status_t xpl_iree_timeline_write(struct xpl_iree_run *run, struct xpl_error *err) XPL_NODISCARD;

#endif
