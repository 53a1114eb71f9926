// SPDX-License-Identifier: Apache-2.0
// The data of megascale_stats' trace for Perfetto: tracks of TPUs and, next to them, of MegaScale's
// work for each on the host.  Private to this folder.
//
// Built in this order: xpl_mgtrace_read_tpus, xpl_mgtrace_read_host, xpl_mgtrace_number_runs,
// xpl_mgtrace_join (flows), xpl_mgtrace_count (counters).  Each takes memory from the trace's arena
// and returns DATA_LOSS, RESOURCE_EXHAUSTED or CANCELLED.
#ifndef XPL_ANALYSIS_TOOLS_MEGASCALE_TRACE_H_
#define XPL_ANALYSIS_TOOLS_MEGASCALE_TRACE_H_

#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// An end of an arrow between two events; it is among the arguments of both.
struct xpl_mgtrace_flow {
    int64_t id;
    bool in;       // the arrow ends here
    uint32_t next; // of the same event: position + 1; 0: none
};
struct xpl_mgtrace_flows {
    uint32_t first, last; // positions + 1
};

struct xpl_mgtrace_event {
    const struct xpl_line *line;
    int64_t begin_ps, duration_ps;
    int64_t run;      // -1: of none
    uint64_t at;      // its offset in the line
    uint32_t md;      // its metadata
    uint32_t last_of; // executions whose last copy it is
    struct xpl_mgtrace_flows flows;
    bool has_run, own_run; // own_run: from the profile, so that it is among the statistics
};

// An event that waits for a copy is followed by an instant, the end of the copy's arrow.
struct xpl_mgtrace_end {
    size_t event; // of the track
    struct xpl_mgtrace_flows flows;
};

enum xpl_mgtrace_kind {
    XPL_MGTRACE_STEPS,
    XPL_MGTRACE_MODULES,
    XPL_MGTRACE_OPS,
    XPL_MGTRACE_MARKS,
    XPL_MGTRACE_HOST,
};

struct xpl_mgtrace_track {
    enum xpl_mgtrace_kind kind;
    xpl_str_t name;
    XPL_VEC(struct xpl_mgtrace_event) v; // by time, longer ones first
    XPL_VEC(struct xpl_mgtrace_end) ends;
};

struct xpl_mgtrace_run {
    int64_t begin_ps, run;
};

// Planes of one number are one device, which has the lines of all.
struct xpl_mgtrace_device {
    int64_t number;
    XPL_VEC(struct xpl_mgtrace_track) tracks, host_tracks;
    XPL_VEC(struct xpl_mgtrace_run) runs;
    struct xpl_map waiting;        // queues of flows, by run, rendezvous and their purpose
    struct xpl_map sent, received; // rendezvous by run and number of the op
};

// A value of a counter, from a time on: a count, or a rate.
struct xpl_mgtrace_value {
    int64_t ps;
    int64_t count;
    double rate; // Gbit/s
};
struct xpl_mgtrace_values {
    XPL_VEC(struct xpl_mgtrace_value) v; // by time
};
enum xpl_mgtrace_counter {
    XPL_MGTRACE_BYTES_RX,
    XPL_MGTRACE_BYTES_TX,
    XPL_MGTRACE_RATE_RX,
    XPL_MGTRACE_RATE_TX,
    XPL_MGTRACE_EXECUTIONS,
    XPL_MGTRACE_PAYLOAD,
    XPL_MGTRACE_COUNTERS,
};

struct xpl_mgtrace {
    struct xpl_exec *exec;
    struct xpl_arena *arena;
    bool exact;                                 // as XProf, faults and all
    XPL_VEC(struct xpl_mgtrace_device) devices; // by number
    XPL_VEC(int64_t) numbers;                   // of the planes of TPUs, in order: twins twice
    XPL_VEC(struct xpl_mgtrace_flow) flows;
    struct xpl_mgtrace_values counters[XPL_MGTRACE_COUNTERS];
};

xpl_status_t xpl_mgtrace_read_tpus(struct xpl_mgtrace *t, const struct xpl_xspace *xs,
                                   struct xpl_error *err) XPL_NODISCARD;
// Tracks of the planes called "/device:CUSTOM:Megascale Trace": the devices that their events name
// are those of the profile, both in order of number; of surplus ones nothing is read.
xpl_status_t xpl_mgtrace_read_host(struct xpl_mgtrace *t, const struct xpl_xspace *xs,
                                   struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_mgtrace_number_runs(struct xpl_mgtrace *t, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_mgtrace_join(struct xpl_mgtrace *t, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_mgtrace_count(struct xpl_mgtrace *t, struct xpl_error *err) XPL_NODISCARD;

// ---- for those ----

xpl_status_t xpl_mgtrace_cancelled(const struct xpl_mgtrace *t, struct xpl_error *err)
    XPL_NODISCARD;

// Appends the event; false: out of memory.
bool xpl_mgtrace_add(struct xpl_mgtrace *t, struct xpl_mgtrace_track *to, const struct xpl_line *l,
                     const struct xpl_event *ev) XPL_NODISCARD;
void xpl_mgtrace_sort(struct xpl_mgtrace_track *track);

static inline const struct xpl_event_md *xpl_mgtrace_md(const struct xpl_mgtrace_event *e) {
    return &e->line->plane->event_md[e->md];
}
static inline xpl_str_t xpl_mgtrace_name(const struct xpl_mgtrace_event *e) {
    const struct xpl_event_md *const md = xpl_mgtrace_md(e);
    return md->display_name.len ? md->display_name : md->name;
}
// Sums wrap, as XProf's do.
static inline int64_t xpl_mgtrace_end_ps(const struct xpl_mgtrace_event *e) {
    return (int64_t)((uint64_t)e->begin_ps + (uint64_t)e->duration_ps);
}

// The first statistic of that name that has a value of the kind, of the metadata or of the event.
// XPL_VALUE_STR: any text; one of bytes is empty.
xpl_status_t xpl_mgtrace_find(const struct xpl_mgtrace_event *e, xpl_str_t name,
                              enum xpl_stat_kind kind, struct xpl_stat *ret, bool *ret_found,
                              struct xpl_error *err) XPL_NODISCARD;

#endif
