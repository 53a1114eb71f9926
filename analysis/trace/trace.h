// SPDX-License-Identifier: Apache-2.0
// The trace index: everything that the streaming trace viewer shows of one host, stored so that an
// answer for any window at any resolution reads only the blocks whose events it shows.  It is built
// from the profile in one or two steps, stored as bytes (a file of ours, mapped), and answers any
// number of requests.
//
//   xpl_trace_build(profile, exec, limit, sink, err)             profile -> bytes of an index
//   xpl_trace_open(index bytes, arena, &trace, err)              checks and opens them
//   xpl_trace_answer(hosts, n, &options, exec, limit, out, err)  trace_viewer@'s JSON or protobuf
//
// The choice of events, levels and texts follows XProf: convert/xplane_to_trace_container,
// convert/trace_viewer/{trace_events,trace_viewer_visibility,trace_events_to_json}, and
// convert/trace_view_options.  Times are picoseconds of the profile's clock, unsigned as
// upstream's.
//
// Index bytes and options may be hostile: everything is checked before it is used.  An opened trace
// is immutable; any number of threads may answer from it.
#ifndef XPL_ANALYSIS_TRACE_TRACE_H_
#define XPL_ANALYSIS_TRACE_TRACE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/trace/options.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_exec;
struct xpl_trace;

// Changes whenever the bytes or their meaning do: an index of another version is refused.
#define XPL_TRACE_VERSION 10

// Receives an index piece by piece, in order.  write returns false when it failed.
struct xpl_trace_sink {
    bool (*write)(void *ctx, const void *p, size_t n);
    void *ctx;
};
// Appends to a struct xpl_buf, given as ctx.
bool xpl_trace_sink_buf(void *ctx, const void *p, size_t n);

// Builds the index of one host's profile.  DATA_LOSS for a broken profile, RESOURCE_EXHAUSTED at
// `limit` bytes of memory or when the sink fails, CANCELLED when the exec is cancelled.
xpl_status_t xpl_trace_build(xpl_bytes_t profile, struct xpl_exec *exec, size_t limit,
                             const struct xpl_trace_sink *sink, struct xpl_error *err)
    XPL_NODISCARD;

// The same in steps, for callers that need one answer first and the whole index afterwards.  begin
// reads the profile, whose bytes are not needed after it.  part, called at most once and only where
// it is quicker (has_part), writes an index for the answer to these options and no other.  finish
// writes the whole index.  xpl_trace_build_free frees *ret and its memory; NULL is fine.
struct xpl_trace_build;
xpl_status_t xpl_trace_build_begin(xpl_bytes_t profile, struct xpl_exec *exec, size_t limit,
                                   struct xpl_trace_build **ret, struct xpl_error *err)
    XPL_NODISCARD;
bool xpl_trace_build_has_part(const struct xpl_trace_build *t, const struct xpl_trace_options *o);
// Runs in the exec that was given to begin.
xpl_status_t xpl_trace_build_part(struct xpl_trace_build *t, const struct xpl_trace_options *o,
                                  const struct xpl_trace_sink *sink, struct xpl_error *err)
    XPL_NODISCARD;
xpl_status_t xpl_trace_build_finish(struct xpl_trace_build *t, struct xpl_exec *exec,
                                    const struct xpl_trace_sink *sink, struct xpl_error *err)
    XPL_NODISCARD;
void xpl_trace_build_free(struct xpl_trace_build *t);

// Opens an index.  `index` must be aligned to 8 and outlive the trace; *ret lives in `arena`.
// DATA_LOSS for anything that is not a valid index of this version; blocks of events are checked
// when they are read.
xpl_status_t xpl_trace_open(xpl_bytes_t index, struct xpl_arena *arena, struct xpl_trace **ret,
                            struct xpl_error *err) XPL_NODISCARD;

// An index in memory, for callers that store none: only for the answer to `o`, or for all (NULL).
struct xpl_trace_memory {
    struct xpl_buf index;
    struct xpl_arena *arena; // the caller's; holds the trace
    struct xpl_trace *trace;
};
xpl_status_t xpl_trace_memory_init(struct xpl_trace_memory *m, xpl_bytes_t profile,
                                   const struct xpl_trace_options *o, struct xpl_exec *exec,
                                   size_t limit, struct xpl_arena *arena, struct xpl_error *err)
    XPL_NODISCARD;
// Accepts a zero-initialised one.
void xpl_trace_memory_fini(struct xpl_trace_memory *m);

// One host of an answer.  `profile` is the index's source: arguments of events are read from it, if
// the options request them (event_name, search_metadata); otherwise it may be empty.
struct xpl_trace_host {
    xpl_str_t name;
    const struct xpl_trace *trace;
    xpl_bytes_t profile;
};
// Appends the answer for hosts in that order.  NOT_FOUND when no host has event_name; DATA_LOSS
// when an index is damaged or a profile is not the one of its index; CANCELLED when the exec is
// cancelled.  Runs on the calling thread; of `exec` only `cancelled` is used.
xpl_status_t xpl_trace_answer(const struct xpl_trace_host *hosts, size_t n,
                              const struct xpl_trace_options *o, struct xpl_exec *exec,
                              size_t limit, struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

#endif
