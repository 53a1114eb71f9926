// SPDX-License-Identifier: Apache-2.0
// A host's trace for other viewers: every plane with its lines, recorded and derived ones, as it is
// after preprocessing (derived.h).  Output goes to a sink piece by piece; memory depends on
// the names in a profile and on its longest line that is out of order, not on the output.
//
// Perfetto: a stream of TracePackets (protos/perfetto/trace/trace_packet.proto).  Streams of
// several hosts may be written one after another.  Planes are processes, lines are threads; events
// that overlap without nesting move to further tracks below the thread.  Times are cut to
// nanoseconds.  Chrome: elements of "traceEvents" of Chrome's JSON trace format; xpl_export_begin
// and _end write the text around those of all hosts.
//
// Several hosts whose profiles say when they began, and one with absolute times (xspace.h), have
// one time: Perfetto's counts from 1970, Chrome's from the first host, since its readers keep times
// as doubles; of several from a day before it, for others may have begun earlier.  Hosts further
// apart begin together.
#ifndef XPL_ANALYSIS_TRACE_EXPORT_EXPORT_H_
#define XPL_ANALYSIS_TRACE_EXPORT_EXPORT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_xspace;

enum xpl_export_format { XPL_EXPORT_PERFETTO, XPL_EXPORT_CHROME };

// Receives the output.  write returns false to end the export, and records its reason itself.
struct xpl_export_sink {
    bool (*write)(void *ctx, const void *bytes, size_t n);
    void *ctx;
};

struct xpl_export {
    enum xpl_export_format format;
    struct xpl_export_sink sink;
    bool several;     // hosts will be written
    uint32_t n_hosts; // written so far
    int64_t first_ns; // when the first one began, 0: unknown
    bool any;         // Chrome: an element was written
    // Events that begin before 0, as where a device's clock is early: they are shown from 0 on.
    uint64_t n_early;
};

// ABORTED when the sink failed.
xpl_status_t xpl_export_begin(struct xpl_export *e, struct xpl_error *err) XPL_NODISCARD;
// One host.  RESOURCE_EXHAUSTED at `limit` bytes of memory, DATA_LOSS for broken events, CANCELLED,
// ABORTED when the sink failed: the output is then incomplete.
xpl_status_t xpl_export_host(struct xpl_export *e, const struct xpl_xspace *xs, xpl_str_t host,
                             struct xpl_exec *exec, size_t limit, struct xpl_error *err)
    XPL_NODISCARD;
xpl_status_t xpl_export_end(struct xpl_export *e, struct xpl_error *err) XPL_NODISCARD;

#endif
