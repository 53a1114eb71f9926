// The trace index: everything the streaming trace viewer shows of one host, laid out so that a view
// of any window at any resolution touches only the blocks it draws from.  Built from the profile in
// one go, or in two steps, kept as bytes (a file of ours, mapped), and asked any number of times.
//
//   xpl_trace_build(profile, exec, limit, sink, err)     profile -> bytes of an index
//   xpl_trace_open(index bytes, limit, arena, &trace)    checks and opens them
//   xpl_trace_answer(hosts, n, &options, exec, limit, out)   trace_viewer@'s JSON
//
// What is shown, at which level and in which words follows XProf:
// convert/xplane_to_trace_container,
// convert/trace_viewer/{trace_events,trace_viewer_visibility,trace_events_to_json}, and
// convert/trace_view_options.  Times are picoseconds of the profile's clock, unsigned as
// upstream's.
//
// Index bytes and options may be hostile: everything is checked before it is used.  An opened trace
// is immutable; any number of threads may ask it.
#ifndef XPL_ANALYSIS_TRACE_TRACE_H_
#define XPL_ANALYSIS_TRACE_TRACE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_exec;
struct xpl_trace;

// Changes whenever the bytes or their meaning do: an index of another version is refused.
#define XPL_TRACE_VERSION 2

// Where an index goes, piece by piece, in order.  write returns false when it cannot take more.
struct xpl_trace_sink {
    bool (*write)(void *ctx, const void *p, size_t n);
    void *ctx;
};
// Appends to a struct xpl_buf, given as ctx.
bool xpl_trace_sink_buf(void *ctx, const void *p, size_t n);

// Builds the index of one host's profile.  DATA_LOSS for a broken profile, RESOURCE_EXHAUSTED at
// `limit` bytes of memory or when the sink refuses, CANCELLED when the exec says so.
xpl_status_t xpl_trace_build(xpl_bytes_t profile, struct xpl_exec *exec, size_t limit,
                             const struct xpl_trace_sink *sink, struct xpl_error *err)
    XPL_NODISCARD;

// The same in steps, for whoever waits for one answer and wants the index afterwards: begin reads
// the profile (its bytes are not needed any more then); part, at most once and only where it is
// quicker (has_part), writes an index for the answer to these options and no other; finish writes
// the index.
// *ret and what it keeps is freed by xpl_trace_build_free, NULL is fine.
struct xpl_trace_build;
struct xpl_trace_options;
xpl_status_t xpl_trace_build_begin(xpl_bytes_t profile, struct xpl_exec *exec, size_t limit,
                                   struct xpl_trace_build **ret, struct xpl_error *err)
    XPL_NODISCARD;
bool xpl_trace_build_has_part(const struct xpl_trace_build *t, const struct xpl_trace_options *o);
// In the exec that it began in.
xpl_status_t xpl_trace_build_part(struct xpl_trace_build *t, const struct xpl_trace_options *o,
                                  const struct xpl_trace_sink *sink, struct xpl_error *err)
    XPL_NODISCARD;
xpl_status_t xpl_trace_build_finish(struct xpl_trace_build *t, struct xpl_exec *exec,
                                    const struct xpl_trace_sink *sink, struct xpl_error *err)
    XPL_NODISCARD;
void xpl_trace_build_free(struct xpl_trace_build *t);

// Opens an index.  `index` must be aligned to 8 and stay as long as the trace; *ret lives in
// `arena`.  DATA_LOSS for anything that is no sound index of this version; the blocks that hold
// events are checked when they are read.
xpl_status_t xpl_trace_open(xpl_bytes_t index, struct xpl_arena *arena, struct xpl_trace **ret,
                            struct xpl_error *err) XPL_NODISCARD;
// Events of the profile that the viewer can show.
uint64_t xpl_trace_n_events(const struct xpl_trace *t);

// An index in memory, for whoever keeps none: for the answer to `o` alone, or for all (NULL).
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

// What is asked for.  With event_name: that event with its arguments.  Else with search_prefix: all
// events whose names begin so.  Else the window at the resolution.
struct xpl_trace_options {
    uint64_t resolution;               // events per row that can be told apart; 0: no limit
    double start_time_ms, end_time_ms; // the window; an end of 0 is the end of the trace
    double duration_ms;                // of the event asked for
    uint64_t unique_id;                // of the event asked for
    xpl_str_t event_name, search_prefix;
    bool search_metadata, full_dma, mpmd_pipeline_view;
    bool pb; // the answer is a TraceDataResponse, compressed with zstd, instead of JSON
};
// The window of the whole trace at the resolution of XProf's page.
static inline void xpl_trace_options_init(struct xpl_trace_options *o) {
    *o = (struct xpl_trace_options){.resolution = 8000};
}

// One host of an answer.  `profile` is what the index was built from: arguments of events are read
// there, where they are asked for (event_name, search_metadata); otherwise it may be empty.
struct xpl_trace_host {
    xpl_str_t name;
    const struct xpl_trace *trace;
    xpl_bytes_t profile;
};
// Appends the answer for hosts in that order.  NOT_FOUND when event_name is not there; DATA_LOSS
// when an index or a profile does not hold what it should; CANCELLED when the exec says so, which
// is asked nothing else.
xpl_status_t xpl_trace_answer(const struct xpl_trace_host *hosts, size_t n,
                              const struct xpl_trace_options *o, struct xpl_exec *exec,
                              size_t limit, struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

#endif
