// SPDX-License-Identifier: Apache-2.0
// One pass over the events of all host threads.  It finds what three parts of the conversion need:
// host ops (with calls of tf.functions), the steps of the host, and, with cpu_as_device, the ops
// that stand for a device.  Decoding an event costs more than anything done with it, so none
// is decoded twice.
//
// What an event can mean is decided once per metadata entry (plan.c); statistics are only read
// where the plane has metadata for one that matters (read.c).  Lines are scanned in parallel,
// the longest first, and long ones in pieces where nothing asks for the order of a whole line;
// results are joined in file order and do not depend on timing.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_HOST_SCAN_H_
#define XPL_ANALYSIS_OPSTATS_HOST_HOST_SCAN_H_

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/host/read.h"
#include "analysis/opstats/steps/event_span.h"
#include "base/arena.h"

struct xpl_host_scan {
    bool done;
    const struct xpl_plane *plane; // "/host:CPU", NULL when the space has none
    struct xpl_host_piece *pieces; // of all lines with events, in file order
    size_t n_pieces;
    // Steps of all lines, when asked for: of a CPU-only profile in full, of a TPU's host only their
    // input_ps; none beside a GPU.
    struct xpl_steps steps;
    // Ops that count as a device's: they belong to the step in whose time they run.  A step of no
    // id; its spans overlap nothing of the same line.
    struct xpl_step loose;
    struct xpl_host_runs runs; // with cpu_as_device; matched
    struct xpl_arena arena;
    struct xpl_arena *shards; // one per piece of parallel work
    unsigned n_shards;
};

// Makes the pass unless it was made.  Results live in arenas of the scan.  RESOURCE_EXHAUSTED at a
// limit, DATA_LOSS where an event is broken, CANCELLED.
xpl_status_t xpl_host_scan_run(const struct xpl_convert *c, struct xpl_host_scan *scan,
                               struct xpl_error *err) XPL_NODISCARD;
// Accepts a zero-initialised scan.
void xpl_host_scan_fini(struct xpl_host_scan *scan);

#endif
